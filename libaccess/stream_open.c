/* SPDX-License-Identifier: Apache-2.0 */

/*
 * oa_open(): from checked options to a stream that is served.
 *
 *   recording --> filter --> token --> part of the dataset --> dial until OPENED --> stream_adopt()
 *
 * Each step settles something of the request that the next one needs: a recording says which epochs
 * there are, the token in which order and where the job goes on, the part which samples it wants. A
 * token at the end of all epochs needs no accessd at all. Nobody else has the stream yet, so no lock is
 * taken; if a step fails, oa_close() gives back what there is.
 */

#include "libaccess/connect/client.h"
#include "libaccess/error.h"
#include "libaccess/connect/inquire.h"
#include "libaccess/stream.h"

/* ---- the stream, and its token ---- */

static int stream_new(const struct dial_route *route, const struct oa_options *options,
		      struct oa_stream **ret, struct diag *diag)
{
	struct oa_stream *stream;
	int r = stream_alloc(route, &stream);

	if (r)
		return r;
	stream_set_flags(stream, options->flags);
	stream->schema.batch = options->batch;
	stream->course.epochs = options->epochs;
	stream->course.seed = options->seed;
	*ret = stream;
	if (options->record && !(stream->record.path = strdup(options->record)))
		return -ENOMEM;
	stream->carries.has_keys = options->record;
	r = objective_batch_read(&stream->batch_mixed.objective, options->objective, diag);
	r = r ? r : sampler_init(&stream->course.sampler, options->sampler);
	r = r ? r : stream_set_open(&stream->redial.ask, options);
	course_set_order(&stream->course, options->order ? options->order : PLAN_CAROUSEL);
	return r;
}

/* With a list accessd knows nothing of the order that it is of. */
static int stream_check_order(const struct oa_stream *stream, const struct token *token,
			      struct diag *diag)
{
	uint32_t wanted = stream->redial.ask.order;

	if (!sampler_is_used(&stream->course.sampler) || !wanted || wanted == token->order ||
	    (!plan_is_fixed(wanted) && !plan_is_fixed(token->order)))
		return 0;
	return diag_fail(diag, OA_E_TOKEN,
			 "resume token: it is of order \"%s\", this job asks for \"%s\"; resume "
			 "without an order, or start without a token",
			 plan_name(token->order), plan_name(wanted));
}

static bool stream_may_resample(const struct oa_stream *stream, const struct token *token)
{
	return (stream->flags & OA_RESAMPLE) && !token->delivered && !token->n_tail;
}

/* A token at the end of all epochs: nothing to ask accessd for. *ret_ended tells. */
static int stream_check_token(struct oa_stream *stream, bool *ret_ended, struct diag *diag)
{
	struct course *course = &stream->course;
	struct token token = {0};
	int r;

	*ret_ended = false;
	if (!stream->redial.ask.token)
		return 0;
	r = token_parse(stream->redial.ask.token, stream->redial.ask.token_size, &token, diag);
	if (!r && !stream_may_resample(stream, &token))
		r = token_fits_sampler(&token, course->sampler.hash, diag);
	r = r ? r : stream_check_order(stream, &token, diag);
	if (r) {
		token_fini(&token);
		return r > 0 ? OA_E_TOKEN : r;
	}
	if (plan_is_fixed(token.order))
		course_resume(course, &token);
	if (course->epochs > 0 && token.epoch >= course->epochs) {
		*ret_ended = true;
		permutation_init(&course->permutation, token.n, token.dataset);
		memcpy(course->dataset, token.dataset, sizeof(course->dataset));
		course->n_samples = token.n;
		course_resume(course, &token);
		course->epochs = token.epoch;
		r = token.block == course->permutation.block
			? progress_begin(&stream->progress, &token)
			: diag_fail(diag, OA_E_TOKEN,
				    "resume token: its block does not fit its dataset");
	}
	token_fini(&token);
	return r;
}

/* ---- which samples ---- */

/* What OPEN says of the part. */
static int stream_tell_part(struct oa_stream *stream)
{
	struct part *part = &stream->course.part;
	int r = part_seal(part);

	if (r)
		return r;
	if (part->is_random) { /* never a chunk with samples of others */
		free(part->members);
		part->members = NULL;
	}
	stream->redial.ask.part = part;
	return 0;
}

/*
 * The classes that the pipeline's filter leaves out, which make a part as the sampler's do. Only accessd
 * reads pipelines: it is asked where the word occurs, so that others cost no question, and it refuses a
 * job that has a filter and did not ask. A replayed plan says itself which samples there are.
 */
static int stream_set_filter(struct oa_stream *stream, const struct oa_options *options,
			     struct diag *diag)
{
	_cleanup_(inquire_filter_fini) struct inquire_filter filter = {0};
	struct catalog catalog;
	int r;

	if (!strstr(options->pipeline, "filter"))
		return 0;
	stream->redial.ask.has_filtered = true;
	if (options->replay)
		return 0;
	r = inquire(&stream->redial.route, &stream->redial.remote, options->pipeline,
		    dial_deadline(options->timeout_ms ? options->timeout_ms : 600000), options,
		    &catalog, &filter, diag);
	if (r)
		return r;
	catalog_detach(&catalog);
	if (!filter.keep && !filter.drop)
		return 0;
	r = sampler_set_filter(&stream->course.sampler, &filter.keep, filter.n_keep, &filter.drop,
			       filter.n_drop);
	course_set_order(&stream->course, stream->course.order);
	return r;
}

/* Which samples the job wants, where that is a part of them. A fixed plan has it as a list. */
static int stream_set_part(struct oa_stream *stream, const struct oa_options *options,
			   struct diag *diag)
{
	struct course *course = &stream->course;
	struct catalog catalog;
	int r;

	if (!part_is_asked(&course->sampler, !course->is_fixed))
		return 0;
	r = inquire(&stream->redial.route, &stream->redial.remote, NULL,
		    dial_deadline(options->timeout_ms ? options->timeout_ms : 600000), options,
		    &catalog, NULL, diag);
	if (r)
		return r;
	r = part_make(&course->part, &course->sampler, !course->is_fixed, &catalog, diag);
	catalog_detach(&catalog);
	if (!r)
		r = course->is_fixed ? part_filter(&course->part, &course->sampler, diag)
				     : stream_tell_part(stream);
	if (course->is_fixed)
		part_forget(&course->part);
	return r < 0 ? error_of_errno(diag, r, "oa_open(): options.sampler") : r;
}

/* The stream's token becomes this one. 0 or -ENOMEM. */
static int stream_set_token(struct oa_stream *stream, const struct token *token)
{
	struct dial_open *ask = &stream->redial.ask;
	size_t size = token_size(token);
	void *bytes = malloc(size);

	if (!bytes)
		return -ENOMEM;
	token_write(token, bytes, size);
	free(ask->token);
	ask->token = bytes;
	ask->token_size = size;
	return 0;
}

/* Is the token of the data set that the part was made of? */
static bool stream_is_of_part(const struct part *part, const struct token *token)
{
	return !part->n || (part->n == token->n &&
			    memcmp(part->version, token->dataset, sizeof(token->dataset)) == 0);
}

/*
 * The token of an epoch's beginning becomes what it would be of this sampler: all of the part is
 * needed. One of another version of the data set stays as it is, and is refused as such.
 */
static int stream_resample(struct oa_stream *stream, struct diag *diag)
{
	_cleanup_(entry_rest_fini) struct entry_rest rest = {0};
	_cleanup_(token_fini) struct token token = {0};
	const struct dial_open *ask = &stream->redial.ask;
	const struct course *course = &stream->course;
	struct permutation permutation;
	const struct entry_set set = {.permutation = &permutation, .bits = course->part.bits};
	int r;

	if (!(stream->flags & OA_RESAMPLE) || !ask->token)
		return 0;
	r = token_parse(ask->token, ask->token_size, &token, diag);
	if (r)
		return r > 0 ? OA_E_TOKEN : r;
	if (!stream_may_resample(stream, &token) || !stream_is_of_part(&course->part, &token))
		return 0;
	permutation_init(&permutation, token.n, token.dataset);
	if (token.block != permutation.block)
		return 0; /* accessd says so */
	if (!plan_is_fixed(token.order)) {
		if (entry_rest_init(&set, NULL, NULL, 0, &rest))
			return -ENOMEM;
		free(token.need);
		token.need = base_take_ptr(rest.need);
	}
	token.has_log = false;
	memcpy(token.sampler, course->sampler.hash, sizeof(token.sampler));
	return stream_set_token(stream, &token);
}

/* The recording says how many epochs there are, and where they begin. */
static int stream_set_replay(struct oa_stream *stream, const struct oa_options *options,
			     struct diag *diag)
{
	struct course *course = &stream->course;
	struct replay *replay = &course->replay;
	int r = replay_open(replay, options->replay, course->sampler.hash, diag);
	uint64_t end;

	if (r)
		return r;
	end = replay->first + replay->n_epochs;
	if (course->epochs > end)
		return error_open(
		    diag,
		    "options.epochs is %llu, %s ends with epoch %llu (they are numbered from 0)",
		    (unsigned long long)course->epochs, replay->path, (unsigned long long)end - 1);
	if (!course->epochs)
		course->epochs = stream->redial.ask.epochs = end;
	if (stream->redial.ask.token || !replay->first)
		return 0;
	return replay_token(replay, course->epochs, course->sampler.hash, &stream->redial.ask.token,
			    &stream->redial.ask.token_size);
}

/* ---- all of it ---- */

/* Where it is, as accessd is told; the first thing, as all else asks about it. */
static int stream_set_dataset(struct oa_stream *stream, const struct oa_options *options,
			      struct diag *diag)
{
	struct redial *redial = &stream->redial;
	int r = remote_open(&redial->remote, &redial->route, options->dataset,
			    dial_deadline(options->timeout_ms ? options->timeout_ms : 600000),
			    options, diag);

	if (r)
		return r;
	redial->ask.is_remote = redial->remote.url.text;
	redial->ask.dataset = strdup(redial->remote.path);
	return redial->ask.dataset ? 0 : -ENOMEM;
}

static int stream_connect(struct oa_stream *stream, const struct oa_options *options,
			  struct diag *diag)
{
	_cleanup_(wire_in_fini) struct wire_in opened;
	struct session *session;
	bool has_ended;
	int r;

	wire_in_init(&opened);
	r = stream_set_dataset(stream, options, diag);
	if (r)
		return r;
	r = options->replay ? stream_set_replay(stream, options, diag) : 0;
	r = r ? r : stream_set_filter(stream, options, diag);
	if (r)
		return r;
	r = stream_check_token(stream, &has_ended, diag);
	if (r || has_ended)
		return r;
	r = stream_set_part(stream, options, diag);
	r = r ? r : stream_resample(stream, diag);
	if (r)
		return r;
	if (stream->course.is_listed)
		stream->redial.ask.order = PLAN_LIST;
	r = redial_first(&stream->redial, options, &opened, diag);
	if (!r)
		r = redial_session(&stream->redial, &opened, stream_has_view(stream), &session,
				   diag);
	return r ? r : stream_adopt(stream, session, diag);
}

/* Of a job that brings none: what an administrator has set for its named data set. *ret owns it. */
static int stream_usual_pipeline(const struct dial_route *route, struct oa_options *options,
				 struct inquire_filter *ret, struct diag *diag)
{
	const uint64_t deadline = dial_deadline(options->timeout_ms ? options->timeout_ms : 600000);
	_cleanup_(remote_fini) struct remote named;
	struct catalog catalog;
	int r;

	remote_init(&named);
	if (options->pipeline && *options->pipeline)
		return 0;
	r = remote_open(&named, route, options->dataset, deadline, NULL, diag);
	r = r ? r : inquire(route, &named, NULL, deadline, options, &catalog, ret, diag);
	if (r)
		return r;
	catalog_detach(&catalog);
	options->pipeline = ret->usual;
	if (ret->usual)
		return 0;
	return error_open(
	    diag,
	    "no pipeline is given, and %.100s has no usual one here: give one (options.pipeline; "
	    "--pipeline of the tools), JSON or a name as \"imagenet-train\", or let who runs "
	    "accessd set dataset.NAME.pipeline (accessd.conf(5))",
	    options->dataset);
}

int oa_open(struct oa_client *client, const struct oa_options *options, struct oa_stream **ret,
	    struct oa_error *error)
{
	_cleanup_(inquire_filter_fini) struct inquire_filter usual = {0};
	struct oa_stream *stream = NULL;
	struct oa_options mine;
	struct diag diag = {""};
	int r;

	if (!client || !ret)
		return error_export(error, OA_E_INVALID, "oa_open(): client or ret is NULL");
	if (!guard_is_ours(&client->guard))
		return error_export(error, OA_E_FORKED, ERROR_FORKED_TEXT);
	r = stream_read_options(options, &mine, &diag);
	r = r ? r : stream_check_options(&mine, &diag);
	r = r ? r : stream_check_job(&mine, &diag);
	r = r ? r : stream_usual_pipeline(&client->route, &mine, &usual, &diag);
	if (r)
		return error_export(error, r, diag.text);
	r = stream_new(&client->route, &mine, &stream, &diag);
	r = r ? r : stream_connect(stream, &mine, &diag);
	if (r < 0 && !diag.text[0])
		diag_set(&diag, "oa_open(): %s", oa_error_name(r));
	if (r)
		oa_close(stream);
	else
		*ret = stream;
	return error_export(error, r, diag.text);
}

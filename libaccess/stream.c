/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stream from oa_open() to the last release.
 *
 *   oa_open() --> served <--> lost (dialling) --> closed --> freed, with the last batch
 *
 * A stream outlives sessions: what it promises (fields, sizes, the dataset's version) is fixed by
 * the first one, and a later one must agree or is refused, because a training loop cannot take
 * other shapes in the middle. It keeps the truth about what was delivered (state.c); accessd is
 * told at each opening.
 *
 * Closing never invalidates a batch: hands with open windows keep their session, and the stream's
 * memory goes with the last batch. It never pulls memory from under a thread either that is in
 * oa_next(): closing fails the stream, rouses the sleeper, and whoever leaves last frees. In a
 * forked child only the child's copies go.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "libaccess/client.h"
#include "libaccess/error.h"
#include "libaccess/inquire.h"
#include "libaccess/stream.h"

/* ---- errors ---- */

int stream_error(struct oa_stream *stream, int code, const char *fmt, ...)
{
	char text[sizeof(stream->error.text)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	diag_set(&stream->error, "%s", text);
	return code;
}

int stream_fail(struct oa_stream *stream, int code, const char *text)
{
	if (!stream->failed) {
		stream->failed = code;
		diag_set(&stream->failure, "%s", text);
	}
	stream->error = stream->failure;
	return stream->failed;
}

/* A copy of this thread's: another thread's failed call may change the stream's at any time. */
const char *oa_error_text(const struct oa_stream *stream)
{
	static _Thread_local struct diag copy;

	if (!stream)
		return "no stream";
	if (!guard_is_ours(&stream->guard))
		return ERROR_FORKED_TEXT;
	pthread_mutex_lock((pthread_mutex_t *)&stream->lock);
	copy = stream->error;
	pthread_mutex_unlock((pthread_mutex_t *)&stream->lock);
	return copy.text;
}

/* ---- sessions come and go ---- */

/* Where the fields' arrays lie in a buffer of one batch. */
static void stream_place_fields(struct oa_stream *stream)
{
	uint64_t end = base_align_up(stream->batch * sizeof(int64_t), 64);

	for (uint32_t i = 0; i < stream->n_fields; i++) {
		struct stream_field *field = &stream->field[i];

		field->carry_offset = end;
		if (field->where == LAYOUT_IN_SLOT)
			end += base_align_up(stream->batch * field->sample_bytes, 64);
	}
	stream->carry_bytes = end;
}

static void stream_set_fields(struct oa_stream *stream, const struct board_geometry *geometry)
{
	stream->n_fields = geometry->n_fields;
	for (uint32_t i = 0; i < geometry->n_fields; i++) {
		const struct layout_field *from = &geometry->field[i];
		struct stream_field *field = &stream->field[i];

		memcpy(field->name, from->name, sizeof(from->name));
		field->dtype = from->dtype;
		field->where = from->where;
		field->ndim = from->ndim;
		memcpy(field->shape, from->shape, sizeof(field->shape));
		field->sample_bytes = from->sample_bytes;
	}
	stream_place_fields(stream);
}

static bool stream_has_fields(const struct oa_stream *stream, const struct board_geometry *geometry)
{
	if (stream->n_fields != geometry->n_fields)
		return false;
	for (uint32_t i = 0; i < stream->n_fields; i++) {
		const struct stream_field *a = &stream->field[i];
		const struct layout_field *b = &geometry->field[i];

		if (memcmp(a->name, b->name, sizeof(b->name)) != 0 || a->dtype != b->dtype ||
		    a->where != b->where || a->ndim != b->ndim ||
		    a->sample_bytes != b->sample_bytes ||
		    memcmp(a->shape, b->shape, b->ndim * sizeof(b->shape[0])) != 0)
			return false;
	}
	return true;
}

static void stream_set_order(struct oa_stream *stream, uint32_t order)
{
	stream->order = order;
	stream->is_fixed = plan_is_fixed(order);
	stream->is_listed =
	    stream->is_fixed && (order == PLAN_LIST || sampler_is_used(&stream->sampler));
	stream->is_ranked = stream->open.ranks > 1;
	stream->is_logged = stream->is_ranked && !stream->is_fixed;
}

/* The first session says what the stream is. */
static int stream_found(struct oa_stream *stream, const struct board_geometry *geometry,
			struct diag *diag)
{
	struct token token = {0};
	uint64_t places;
	int r;

	deal_init(&stream->deal, geometry->n_samples, geometry->dataset);
	memcpy(stream->dataset, geometry->dataset, sizeof(stream->dataset));
	stream->n_samples = stream->part.bits ? stream->part.count : geometry->n_samples;
	stream_set_fields(stream, geometry);
	r = stream->is_listed ? listed_check(stream, diag) : 0;
	if (r)
		return r;
	if (geometry->grain != stream->deal.grain)
		return error_set(diag, -EPROTO,
				 "accessd deals grains of %u samples, this libaccess %u",
				 geometry->grain, stream->deal.grain);
	if (stream->part.n &&
	    (geometry->n_samples != stream->part.n ||
	     memcmp(geometry->dataset, stream->part.version, sizeof(stream->dataset)) != 0))
		return error_set(diag, -EPROTO,
				 "accessd opened another version of the dataset than it described");
	places = stream->n_samples;
	if (stream->is_listed)
		places = listed_places(stream, stream->replay.first);
	if ((stream->flags & OA_DROP_LAST) && places < stream->batch)
		return error_set(
		    diag, OA_E_INVALID,
		    "an epoch has %llu samples, fewer than one batch of %u: with OA_DROP_LAST "
		    "nothing would be left",
		    (unsigned long long)places, stream->batch);
	if (!stream->open.token) {
		r = progress_init(stream, NULL);
		return r ? r : record_open(stream, NULL, diag);
	}
	r = token_parse(stream->open.token, stream->open.token_size, &token, diag);
	if (!r)
		r = token_fits(&token, stream->deal.n, stream->deal.grain, stream->dataset, diag);
	if (!r)
		r = token_fits_sampler(&token, stream->sampler.hash, diag);
	if (!r) {
		stream_set_order(stream, token.order);
		if (stream->is_fixed)
			stream->seed = token.seed;
		stream->listed.next = token.epoch;
		if (stream->is_listed && token.delivered > listed_places(stream, token.epoch))
			r = error_set(diag, OA_E_TOKEN, "resume token: its place is past the end");
		else
			r = progress_init(stream, &token);
	}
	if (r > 0)
		r = OA_E_TOKEN;
	if (!r)
		r = record_open(stream, &token, diag);
	token_fini(&token);
	return r;
}

/* A later one must be the same to the job. */
static int stream_found_again(const struct oa_stream *stream, const struct board_geometry *geometry,
			      struct diag *diag)
{
	if (geometry->n_samples != stream->deal.n ||
	    memcmp(geometry->dataset, stream->dataset, sizeof(stream->dataset)) != 0)
		return error_set(
		    diag, OA_E_DATASET,
		    "the dataset %s has changed while this job was running: start the job again",
		    stream->open.dataset);
	if (geometry->grain != stream->deal.grain || !stream_has_fields(stream, geometry))
		return error_set(diag, OA_E_PIPELINE,
				 "accessd came back with other fields or shapes for this pipeline: "
				 "start the job "
				 "again from its token");
	return 0;
}

/* What could not be sent to the new session is its end. */
static int stream_adopted(const struct oa_stream *stream, struct diag *diag)
{
	if (stream->failed)
		*diag = stream->failure;
	return stream->failed;
}

int stream_adopt(struct oa_stream *stream, struct session *session, struct diag *diag)
{
	const struct board_geometry *geometry = &session->board.geometry;
	struct progress *progress = &stream->progress;
	int r;

	memcpy(stream->pipeline, session->pipeline, sizeof(stream->pipeline));
	listed_begin(stream);
	r = progress->need ? stream_found_again(stream, geometry, diag)
			   : stream_found(stream, geometry, diag);

	if (!r && stream->is_logged)
		r = ranked_adopt(stream, session, diag);
	if (r) {
		session_unref(session);
		return r;
	}
	if (stream->is_fixed)
		; /* its instances are the plan's, whatever stream makes them */
	else if (progress->seed !=
		 geometry->seed) /* noted laps are of another stream's instances */
		progress->n_laps = 0;
	progress->seed = geometry->seed;
	stream->hand = geometry->hand;
	stream->session = session;
	stream->is_idle = false;
	listed_feed(stream);
	return stream_adopted(stream, diag);
}

void stream_lose(struct oa_stream *stream, const char *why)
{
	struct session *session = stream->session;

	diag_set(&stream->dial_error, "%s", why);
	pollable_forget(stream);
	if (progress_rewind(stream))
		stream_fail(stream, -ENOMEM,
			    "out of memory while taking back what was not delivered");
	stream->session = NULL;
	stream->is_idle = false;
	stream->explain_ns = 0;
	stream->lost_ns = base_now_ns();
	stream->retry_ns = stream->lost_ns + stream->backoff_ns;
	if (session)
		prefault_stop(session->prefault);
	session_unref(session);
}

/* ---- open: the options ---- */

/* Copies what the caller's version of the struct has; what it has beyond ours must be zero. */
int stream_read_options(const struct oa_options *from, struct oa_options *ret, struct diag *diag)
{
	const uint8_t *bytes = (const uint8_t *)from;

	if (!from || from->size < offsetof(struct oa_options, flags))
		return error_set(diag, OA_E_INVALID,
				 "oa_open(): options.size must be sizeof(struct oa_options)");
	for (size_t i = sizeof(*ret); i < from->size; i++)
		if (bytes[i])
			return error_set(
			    diag, OA_E_VERSION,
			    "oa_open(): options of a newer libaccess: upgrade libaccess");
	*ret = (struct oa_options){0};
	memcpy(ret, from, BASE_MIN(from->size, sizeof(*ret)));
	ret->ranks = ret->ranks ? ret->ranks : 1;
	return 0;
}

static int stream_check_options(const struct oa_options *options, struct diag *diag)
{
	if (!options->dataset || !*options->dataset)
		return error_set(diag, OA_E_INVALID,
				 "oa_open(): options.dataset must name a folder");
	if (!options->pipeline || !*options->pipeline)
		return error_set(
		    diag, OA_E_INVALID,
		    "oa_open(): options.pipeline must be JSON or a name, as \"imagenet-train\"");
	if (options->batch < 1 || options->batch > LAYOUT_MAX_HAND)
		return error_set(diag, OA_E_INVALID,
				 "oa_open(): options.batch is %u, must be 1 to %d", options->batch,
				 LAYOUT_MAX_HAND);
	if (options->flags & ~(uint32_t)(OA_COPY | OA_DROP_LAST | OA_POISON))
		return error_set(diag, OA_E_INVALID,
				 "oa_open(): options.flags has an unknown flag (0x%x)",
				 options->flags);
	if ((unsigned)options->bad > OA_BAD_SUBSTITUTE)
		return error_set(diag, OA_E_INVALID,
				 "oa_open(): options.bad is %d, must be an OA_BAD_...",
				 (int)options->bad);
	if ((unsigned)options->order > OA_ORDER_REPLAY)
		return error_set(diag, OA_E_INVALID,
				 "oa_open(): options.order is %d, must be an OA_ORDER_...",
				 (int)options->order);
	if (options->rank >= options->ranks)
		return error_set(diag, OA_E_INVALID, "oa_open(): options.rank is %u of %u ranks",
				 options->rank, options->ranks);
	if (options->hand > LAYOUT_MAX_HAND)
		return error_set(diag, OA_E_INVALID,
				 "oa_open(): options.hand is %u, must be 0 to %d", options->hand,
				 LAYOUT_MAX_HAND);
	if (!options->token != !options->token_size)
		return error_set(diag, OA_E_INVALID,
				 "oa_open(): options.token and options.token_size go together");
	return sampler_check(options, diag);
}

/* Ranks find each other by their job's name. */
static int stream_check_job(const struct oa_options *options, struct diag *diag)
{
	struct token token = {0};
	uint32_t order = options->order;

	if (options->ranks == 1 || (options->job && *options->job))
		return 0;
	if (!order && options->token &&
	    token_parse(options->token, options->token_size, &token, diag) == 0)
		order = token.order;
	token_fini(&token);
	if (plan_is_fixed(order))
		return 0;
	return error_set(
	    diag, OA_E_INVALID,
	    "oa_open(): options.job must be the same name on all %u ranks of a job: by "
	    "it they find each other",
	    options->ranks);
}

static char *stream_job_name(const char *name)
{
	char *text;

	if (name && *name)
		return strdup(name);
	return asprintf(&text, "%s (pid %d)", program_invocation_short_name, (int)getpid()) < 0
		   ? NULL
		   : text;
}

static int stream_set_open(struct dial_open *open, const struct oa_options *options)
{
	*open = (struct dial_open){
	    .dataset = inquire_absolute(options->dataset),
	    .pipeline = strdup(options->pipeline),
	    .job = stream_job_name(options->job),
	    .batch = options->batch,
	    .hand = options->hand,
	    .ranks = options->ranks,
	    .rank = options->rank,
	    .order = options->order,
	    .seed = options->seed,
	    .epochs = options->epochs,
	    .bad = options->bad,
	    .bad_budget = options->bad_budget,
	    .reuse = options->reuse,
	    .token_size = options->token_size,
	    .log_fd = -1,
	};
	if (options->token_size) {
		open->token = malloc(options->token_size);
		if (open->token)
			memcpy(open->token, options->token, options->token_size);
	}
	return open->dataset && open->pipeline && open->job && (open->token || !options->token_size)
		   ? 0
		   : -ENOMEM;
}

/* ---- open: the stream ---- */

static int stream_alloc(const struct dial_route *route, struct oa_stream **ret)
{
	struct oa_stream *stream = calloc(1, sizeof(*stream));
	int r;

	if (!stream)
		return -ENOMEM;
	r = guard_init(&stream->guard);
	if (r) {
		free(stream);
		return r;
	}
	stream->route = *route;
	stream->full_end = &stream->full;
	part_init(&stream->part);
	record_init(&stream->record);
	replay_init(&stream->replay);
	stream->epoll_fd = stream->timer_fd = stream->watched_fd = stream->log.fd = -1;
	dial_init(&stream->dial, &stream->route);
	pthread_mutex_init(&stream->lock, NULL);
	sem_init(&stream->turn, 0, 0);
	diag_set(&stream->error, "no error");
	*ret = stream;
	return 0;
}

int stream_new_like(const struct oa_stream *other, uint32_t batch, uint32_t flags,
		    struct oa_stream **ret)
{
	int r = stream_alloc(&other->route, ret);

	if (r)
		return r;
	(*ret)->batch = batch;
	(*ret)->flags = flags;
	(*ret)->n_fields = other->n_fields;
	memcpy((*ret)->field, other->field, sizeof(other->field));
	stream_place_fields(*ret);
	return 0;
}

static int stream_new(const struct dial_route *route, const struct oa_options *options,
		      struct oa_stream **ret)
{
	struct oa_stream *stream;
	int r = stream_alloc(route, &stream);

	if (r)
		return r;
	stream->flags = options->flags;
	stream->batch = options->batch;
	stream->epochs = options->epochs;
	stream->seed = options->seed;
	*ret = stream;
	if (options->record && !(stream->record.path = strdup(options->record)))
		return -ENOMEM;
	r = sampler_init(&stream->sampler, options->sampler);
	if (!r)
		r = stream_set_open(&stream->open, options);
	stream_set_order(stream, options->order ? options->order : PLAN_CAROUSEL);
	return r;
}

/* With a list accessd knows nothing of the order that it is of. */
static int stream_check_order(const struct oa_stream *stream, const struct token *token,
			      struct diag *diag)
{
	uint32_t wanted = stream->open.order;

	if (!sampler_is_used(&stream->sampler) || !wanted || wanted == token->order ||
	    (!plan_is_fixed(wanted) && !plan_is_fixed(token->order)))
		return 0;
	return error_set(diag, OA_E_TOKEN,
			 "resume token: it is of order \"%s\", this job asks for \"%s\"; resume "
			 "without an order, or start without a token",
			 plan_name(token->order), plan_name(wanted));
}

/* A token at the end of all epochs: nothing to ask accessd for. *ret_ended tells. */
static int stream_check_token(struct oa_stream *stream, bool *ret_ended, struct diag *diag)
{
	struct token token = {0};
	int r;

	*ret_ended = false;
	if (!stream->open.token)
		return 0;
	r = token_parse(stream->open.token, stream->open.token_size, &token, diag);
	if (!r)
		r = token_fits_sampler(&token, stream->sampler.hash, diag);
	if (!r)
		r = stream_check_order(stream, &token, diag);
	if (r) {
		token_fini(&token);
		return r > 0 ? OA_E_TOKEN : r;
	}
	if (plan_is_fixed(token.order)) {
		stream_set_order(stream, token.order);
		stream->seed = token.seed;
	}
	if (stream->epochs > 0 && token.epoch >= stream->epochs) {
		*ret_ended = true;
		deal_init(&stream->deal, token.n, token.dataset);
		memcpy(stream->dataset, token.dataset, sizeof(stream->dataset));
		stream->n_samples = token.n;
		stream_set_order(stream, token.order);
		stream->seed = token.seed;
		stream->epochs = token.epoch;
		r = token.grain == stream->deal.grain
			? progress_init(stream, &token)
			: error_set(diag, OA_E_TOKEN,
				    "resume token: its grain does not fit its dataset");
	}
	token_fini(&token);
	return r;
}

static int stream_open_late(struct oa_stream *stream, struct diag *diag)
{
	char name[192];

	if (stream->dial.state == DIAL_HELLO || stream->dial.state == DIAL_OPEN)
		return error_set(diag, OA_E_TIMEOUT, "%s has not opened the stream in time%s%s",
				 dial_name(&stream->dial, name, sizeof(name)),
				 stream->dial.progress[0] ? "; it was at: " : "",
				 stream->dial.progress);
	return error_set(diag, OA_E_TIMEOUT, "no accessd at %s in time", stream->route.socket);
}

/* Dials until OPENED is in *ret. */
static int stream_dial(struct oa_stream *stream, const struct oa_options *options,
		       struct wire_in *ret, struct diag *diag)
{
	uint64_t deadline = dial_deadline(options->timeout_ms ? options->timeout_ms : 600000);
	_cleanup_(dial_wait_end) struct dial_wait wait = {.has_begun = false};
	struct dial *dial = &stream->dial;
	unsigned gone = 0;

	dial_wait_begin(&wait);
	for (;;) {
		int r = dial_step(dial, &stream->open, ret, diag);

		if (r == DIAL_PROGRESS) {
			if (options->progress)
				options->progress(options->progress_arg, dial->progress, dial->done,
						  dial->total);
			continue;
		}
		if (r == DIAL_GONE && ++gone > 3)
			return OA_E_UNREACHABLE;
		if (r == DIAL_GONE)
			dial->wake_ns = base_now_ns() + 50000000;
		else if (r != DIAL_AGAIN)
			return r;
		if (base_now_ns() >= deadline)
			return stream_open_late(stream, diag);
		r = dial_wait(&wait, dial_fd(dial), BASE_MIN(dial->wake_ns, deadline));
		if (r)
			return error_set(diag, r, "oa_open(): interrupted by a signal");
	}
}

/* What OPEN says of the part. */
static int stream_tell_part(struct oa_stream *stream)
{
	int r = part_seal(&stream->part);

	if (r)
		return r;
	if (stream->part.is_random) { /* never a hand with samples of others */
		free(stream->part.members);
		stream->part.members = NULL;
	}
	stream->open.part = &stream->part;
	return 0;
}

/* Which samples the job wants, where that is a part of them. A fixed plan has it as a list. */
static int stream_set_part(struct oa_stream *stream, const struct oa_options *options,
			   struct diag *diag)
{
	struct catalog catalog;
	int r;

	if (!part_is_asked(&stream->sampler, !stream->is_fixed))
		return 0;
	r = inquire(&stream->route, stream->open.dataset,
		    dial_deadline(options->timeout_ms ? options->timeout_ms : 600000), options,
		    &catalog, diag);
	if (r)
		return r;
	r = part_make(&stream->part, &stream->sampler, !stream->is_fixed, &catalog, diag);
	catalog_detach(&catalog);
	if (!r)
		r = stream->is_fixed ? part_filter(&stream->part, &stream->sampler, diag)
				     : stream_tell_part(stream);
	if (stream->is_fixed)
		part_forget(&stream->part);
	return r < 0 ? error_of_errno(diag, r, "oa_open(): options.sampler") : r;
}

/* The recording says how many epochs there are, and where they begin. */
static int stream_set_replay(struct oa_stream *stream, const struct oa_options *options,
			     struct diag *diag)
{
	struct replay *replay = &stream->replay;
	int r = replay_open(replay, options->replay, stream->sampler.hash, diag);
	uint64_t end;

	if (r)
		return r;
	end = replay->first + replay->n_epochs;
	if (stream->epochs > end)
		return error_set(diag, OA_E_INVALID,
				 "oa_open(): options.epochs is %llu, %s ends with epoch %llu (they "
				 "are numbered from 0)",
				 (unsigned long long)stream->epochs, replay->path,
				 (unsigned long long)end - 1);
	if (!stream->epochs)
		stream->epochs = stream->open.epochs = end;
	if (stream->open.token || !replay->first)
		return 0;
	return replay_token(replay, stream->epochs, stream->sampler.hash, &stream->open.token,
			    &stream->open.token_size);
}

static int stream_connect(struct oa_stream *stream, const struct oa_options *options,
			  struct diag *diag)
{
	_cleanup_(wire_in_fini) struct wire_in opened;
	struct session *session;
	bool has_ended;
	int r;

	wire_in_init(&opened);
	r = options->replay ? stream_set_replay(stream, options, diag) : 0;
	if (r)
		return r;
	r = stream_check_token(stream, &has_ended, diag);
	if (r || has_ended)
		return r;
	r = stream_set_part(stream, options, diag);
	if (r)
		return r;
	if (stream->is_listed)
		stream->open.order = PLAN_LIST;
	r = stream_dial(stream, options, &opened, diag);
	if (!r)
		r = session_new(&opened, &stream->dial.sock, stream->dial.pid, &session, diag);
	dial_reset(&stream->dial);
	return r ? r : stream_adopt(stream, session, diag);
}

int oa_open(struct oa_client *client, const struct oa_options *options, struct oa_stream **ret,
	    struct oa_error *error)
{
	struct oa_stream *stream = NULL;
	struct oa_options mine;
	struct diag diag = {""};
	int r;

	if (!client || !ret)
		return error_export(error, OA_E_INVALID, "oa_open(): client or ret is NULL");
	if (!guard_is_ours(&client->guard))
		return error_export(error, OA_E_FORKED, ERROR_FORKED_TEXT);
	r = stream_read_options(options, &mine, &diag);
	if (!r)
		r = stream_check_options(&mine, &diag);
	if (!r)
		r = stream_check_job(&mine, &diag);
	if (r)
		return error_export(error, r, diag.text);
	r = stream_new(&client->route, &mine, &stream);
	if (!r)
		r = stream_connect(stream, &mine, &diag);
	if (r < 0 && !diag.text[0])
		diag_set(&diag, "oa_open(): %s", oa_error_name(r));
	if (r)
		oa_close(stream);
	else
		*ret = stream;
	return error_export(error, r, diag.text);
}

/* ---- close ---- */

static void stream_free_pools(struct oa_stream *stream)
{
	while (stream->batch_pool) {
		struct oa_batch *batch = stream->batch_pool;

		stream->batch_pool = batch->next;
		free(batch);
	}
	while (stream->hand_pool) {
		struct held *held = stream->hand_pool;

		stream->hand_pool = held->next;
		free(held);
	}
	while (stream->carry_pool) {
		struct carry *carry = stream->carry_pool;

		stream->carry_pool = carry->next;
		carry_destroy(carry);
	}
}

void stream_free(struct oa_stream *stream)
{
	stream_free_pools(stream);
	free(stream->parts);
	progress_fini(&stream->progress);
	listed_fini(&stream->listed);
	planlog_fini(&stream->log);
	sampler_fini(&stream->sampler);
	part_fini(&stream->part);
	dial_open_fini(&stream->open);
	sem_destroy(&stream->turn);
	pthread_mutex_destroy(&stream->lock);
	guard_fini(&stream->guard);
	record_fini(&stream->record);
	replay_fini(&stream->replay);
	free(stream);
}

/* The locks may be held for ever by a thread that was not forked, so none is taken. */
static void stream_close_in_child(struct oa_stream *stream)
{
	base_close(&stream->epoll_fd);
	base_close(&stream->timer_fd);
	base_close(&stream->dial.sock);
	base_close(&stream->record.fd);
	base_close(&stream->replay.fd);
	base_close(&stream->log.fd);
	if (stream->session)
		session_abandon(stream->session, stream->hands != NULL);
	stream->session = NULL;
}

void stream_shut(struct oa_stream *stream)
{
	dial_fini(&stream->dial);
	base_close(&stream->epoll_fd);
	base_close(&stream->timer_fd);
}

bool stream_is_unused(const struct oa_stream *stream)
{
	return stream->is_closed && stream->callers == 0 && stream->stats.outstanding == 0;
}

/*
 * Ends the sleep of a thread in oa_next(): the socket becomes readable. Not with open windows, as
 * hanging up would give their slots back: the sleeper then looks by itself, within WAIT_SLICE.
 */
static void stream_rouse(const struct oa_stream *stream)
{
	int sock = stream->session ? stream->session->sock : stream->dial.sock;

	if (sock >= 0 && !(stream->session && stream->hands))
		shutdown(sock, SHUT_RDWR);
}

void oa_close(struct oa_stream *stream)
{
	bool is_unused;

	if (!stream)
		return;
	if (!guard_is_ours(&stream->guard)) {
		stream_close_in_child(stream);
		return;
	}
	pthread_mutex_lock(&stream->lock);
	if (stream->is_closed) {
		pthread_mutex_unlock(&stream->lock);
		return;
	}
	stream->is_closed = true;
	record_flush(stream);
	base_close(&stream->record.fd);
	stream_fail(stream, OA_E_INVALID, "the stream was closed by oa_close() in another thread");
	carry_clear(stream);
	if (stream->held)
		held_spend(stream, stream->held);
	if (stream->session)
		prefault_stop(stream->session->prefault);
	if (stream->callers > 0)
		stream_rouse(stream);
	else
		stream_shut(stream);
	session_unref(stream->session);
	stream->session = NULL;
	is_unused = stream_is_unused(stream);
	pthread_mutex_unlock(&stream->lock);
	if (is_unused)
		stream_free(stream);
}

/* ---- statistics ---- */

void oa_stream_stats(struct oa_stream *stream, struct oa_stats *ret)
{
	struct oa_stats stats;
	size_t size;

	if (!stream || !ret || !guard_is_ours(&stream->guard))
		return;
	pthread_mutex_lock(&stream->lock);
	stats = stream->stats;
	for (const struct held *held = stream->hands; held; held = held->next)
		stats.pins++;
	stats.hand = stream->hand;
	stats.grain = stream->deal.grain;
	stats.n_samples = stream->n_samples;
	stats.epoch = stream->progress.epoch;
	pthread_mutex_unlock(&stream->lock);
	size = BASE_MIN(ret->size, sizeof(stats));
	stats.size = size;
	memcpy(ret, &stats, size);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests. Everything in an OPEN is hostile: sizes were checked when it was read (message_tbl.h), here numbers
 * come to lie in ranges before they are narrowed, and the pipeline is compiled, so that a request that was accepted
 * can be refused later only for what the node has, never for how it looks. What takes time by what the client
 * says of the dataset waits until that is known: of the token only the head is looked at (prepare.c).
 */
#include "daemon/net/request.h"

#include <stdio.h>

#include "daemon/param.h"
#include "libaccess/libaccess.h"
#include "pipeline/pipeline.h"
#include "plan/plan.h"
#include "plan/ranks/spread.h"
#include "plan/token.h"

#define MOST_BATCH 65536
#define MOST_RANKS 65536

uint64_t request_budget(const struct request *request, uint64_t n_samples)
{
	return request->has_budget ? request->budget : BASE_MAX(UINT64_C(10), n_samples / 100);
}

void request_fini(struct request *request)
{
	free(request->dataset);
	free(request->job);
	free(request->program);
	free(request->token.data);
	pipeline_free(request->pipeline);
	base_close(&request->part.fd);
	base_close(&request->log_fd);
	request_init(request);
}

void request_init(struct request *request)
{
	*request = (struct request){.part.fd = -1, .log_fd = -1};
}

char *request_name(const char *name)
{
	return name ? strndup(name, REQUEST_NAME_MAX) : NULL;
}

/* What only the client can do, must be a client that does it: an older one would give the pipeline's
 * batches unmingled, and all classes. */
static int check_client(const struct request *request, struct diag *diag)
{
	const struct pipeline_batch *batch = &request->batch_mix;
	unsigned count;

	if (batch->n && batch->op[0].kind == PIPELINE_MOSAIC && request->minor < PROTO_SINCE_MOSAIC)
		diag_set(diag, "pipeline: mosaic is done by the client, and this job's is older: "
			       "upgrade libaccess");
	else if (batch->n && request->minor < PROTO_SINCE_MIXES)
		diag_set(diag, "pipeline: mixup and cutmix are done by the client, and this job's "
			       "is older: upgrade libaccess");
	else if (!request->has_filtered &&
		 (pipeline_filter_labels(request->pipeline, true, &count) ||
		  pipeline_filter_labels(request->pipeline, false, &count)))
		diag_set(diag,
			 "pipeline: a filter by class is applied by the client, and this job's has "
			 "not asked for it: upgrade libaccess, and write the op's name plainly");
	else
		return 0;
	return OA_E_VERSION;
}

static void say_names(const char *asked, struct diag *diag)
{
	const char *const *names;
	const unsigned n = pipeline_names(&names);
	char shown[64], list[256] = "";
	size_t used = 0;

	base_quote(asked, shown, sizeof(shown));
	for (unsigned i = 0; i < n && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 names[i]);
	diag_set(diag,
		 "pipeline: none is called \"%s\"; there are %s, and others are written as JSON, "
		 "as {\"ops\": [...]} (oneaccess-pipeline(5))",
		 shown, list);
}

int request_compile(struct request *request, const char *text, struct diag *diag)
{
	const char *named;

	if (!text)
		return diag_fail(diag, OA_E_PIPELINE, "no pipeline was given");
	named = pipeline_named(text);
	if (!named && !strpbrk(text, "{[")) {
		say_names(text, diag);
		return OA_E_PIPELINE;
	}
	text = named ? named : text;
	if (pipeline_compile(text, strlen(text), &request->pipeline, diag))
		return OA_E_PIPELINE;
	pipeline_hash_asked(request->pipeline, &request->asked);
	request->batch_mix = *pipeline_batch(request->pipeline);
	return 0;
}

static int take_pipeline(struct request *request, const struct message_open *open,
			 struct diag *diag)
{
	int r = request_compile(request, open->pipeline, diag);

	request->has_filtered = open->filtered != 0;
	return r ? r : check_client(request, diag);
}

/* A plan cannot be left in the middle, nor entered there. Carousel and any are no plans: their tokens
 * say the same, a set of samples. */
static bool orders_fit(uint32_t wanted, uint32_t tokens)
{
	return !wanted || wanted == tokens || (!plan_is_fixed(wanted) && !plan_is_fixed(tokens));
}

static int join_orders(struct request *request, bool has_seed, const struct token *token,
		       struct diag *diag)
{
	bool is_listed = plan_is_fixed(token->order) && token_has_sampler(token);

	if (is_listed != (request->order == PLAN_LIST))
		diag_set(diag,
			 "resume token: it is of %s, and this job has %s; resume with the samples "
			 "and the order it was saved with, or start without a token",
			 is_listed ? "a list of samples" : "all samples",
			 is_listed ? "no list" : "one");
	else if (!is_listed && !orders_fit(request->order, token->order))
		diag_set(diag,
			 "resume token: it is of order \"%s\", this job asks for \"%s\"; resume "
			 "without an order, or start without a token",
			 plan_name(token->order), plan_name(request->order));
	else if (has_seed && plan_is_fixed(token->order) && request->seed != token->seed)
		diag_set(diag,
			 "resume token: it is of seed %llu, this job asks for %llu; resume with "
			 "the token's seed, or start without a token",
			 (unsigned long long)token->seed, (unsigned long long)request->seed);
	else {
		if (!plan_is_fixed(token->order))
			return 0;
		request->order = is_listed ? PLAN_LIST : token->order;
		request->seed = token->seed;
		return 0;
	}
	return OA_E_TOKEN;
}

static int take_order(struct request *request, const struct message_open *open, struct diag *diag)
{
	request->seed = open->seed;
	if (open->order > PLAN_LIST)
		return diag_fail(diag, OA_E_INVALID,
				 "order %llu is none that this accessd knows; update accessd",
				 (unsigned long long)open->order);
	if (open->order == PLAN_ANY && pipeline_is_random(request->pipeline))
		return diag_fail(diag, OA_E_INVALID,
				 "order \"any\" serves the same pixels again and again, and this "
				 "pipeline has random ops; use \"carousel\"");
	request->order = (uint32_t)open->order;
	return 0;
}

static int take_token(struct request *request, const struct message_open *open, struct diag *diag)
{
	const struct items_bytes *bytes = &open->token;
	struct token token;

	if (!bytes->data)
		return 0;
	if (token_look(bytes->data, bytes->size, &token, diag) ||
	    join_orders(request, open->has_seed, &token, diag))
		return OA_E_TOKEN;
	request->token.data = malloc(bytes->size ? bytes->size : 1);
	if (!request->token.data)
		return OA_E_MEMORY;
	memcpy(request->token.data, bytes->data, bytes->size);
	request->token.size = bytes->size;
	return 0;
}

static int take_numbers(struct request *request, const struct message_open *open, struct diag *diag)
{
	const uint64_t ranks = open->has_ranks ? open->ranks : 1;
	const uint64_t reuse = open->has_reuse ? open->reuse : 1;

	if (open->batch < 1 || open->batch > MOST_BATCH || open->chunk > MOST_BATCH)
		diag_set(diag, "batch %llu, chunk %llu: both must lie in 1 .. %d",
			 (unsigned long long)open->batch, (unsigned long long)open->chunk,
			 MOST_BATCH);
	else if (open->policy > PROTO_POLICY_SUBSTITUTE)
		diag_set(diag, "policy for bad samples %llu: 0 error, 1 skip, 2 substitute",
			 (unsigned long long)open->policy);
	else if (ranks < 1 || ranks > MOST_RANKS || open->rank >= ranks)
		diag_set(diag, "rank %llu of %llu: there may be 1 to %d ranks, numbered from 0",
			 (unsigned long long)open->rank, (unsigned long long)ranks, MOST_RANKS);
	else {
		request->batch = (uint32_t)open->batch;
		request->chunk = (uint32_t)open->chunk;
		request->ranks = (uint32_t)ranks;
		request->rank = (uint32_t)open->rank;
		request->policy = (enum proto_policy)open->policy;
		request->epochs = open->epochs;
		request->budget = open->budget;
		request->has_budget = open->has_budget;
		request->reuse = (uint32_t)BASE_MIN(reuse, (uint64_t)REQUEST_MOST_REUSE);
		request->is_exact = open->exact != 0;
		return 0;
	}
	return OA_E_INVALID;
}

static int check_spread(const struct request *request, uint64_t arithmetic, struct diag *diag)
{
	const struct slice *slice = &request->slice;

	if (request->order != PLAN_LIST && spread_is_even(slice) && arithmetic == SPREAD_ARITHMETIC)
		return 0;
	if (arithmetic != SPREAD_ARITHMETIC)
		diag_set(diag,
			 "this accessd is of OneAccess " PACKAGE_VERSION
			 ", and the job's library of a version that spreads samples over nodes in "
			 "another way: some would come twice and others not at all; install one "
			 "version on all nodes of the job, or leave the spread out");
	else if (request->order == PLAN_LIST)
		diag_set(
		    diag,
		    "a spread over nodes is for orders \"seeded\" and \"sequential\" of a data "
		    "set, not for lists of samples, weights and recorded plans; leave it out");
	else
		diag_set(diag,
			 "a spread over nodes needs equally many ranks on each: the %u ranks from "
			 "%u on are here, of %u",
			 slice->count, slice->first, slice->ranks.ranks);
	return OA_E_INVALID;
}

/* Which ranks are here, once the order is known: each node of a job deals for itself. */
static int take_slice(struct request *request, const struct message_open *open, struct diag *diag)
{
	const uint64_t first = open->local_first, count = open->local_ranks;
	const struct ranks ranks = {
	    .batch = request->batch, .ranks = request->ranks, .drop_last = open->drop_last != 0};

	if (!open->has_local_ranks || (count == request->ranks && !first))
		return 0;
	if (count < 1 || count > request->ranks || first > request->ranks - count ||
	    request->rank < first || request->rank >= first + count)
		return diag_fail(diag, OA_E_INVALID,
				 "ranks %llu and the %llu from there on are on this node: rank %u "
				 "of %u is not among them, or they are not the job's",
				 (unsigned long long)first, (unsigned long long)count,
				 request->rank, request->ranks);
	if (!plan_is_fixed(request->order))
		return diag_fail(
		    diag, OA_E_INVALID,
		    "%llu of %u ranks are on this node: each node's accessd would deal an epoch of "
		    "its own, and samples would be lost and repeated; ask for order \"seeded\" "
		    "with one seed for all ranks, which every node computes for itself",
		    (unsigned long long)count, request->ranks);
	slice_init(&request->slice, &ranks, (uint32_t)first, (uint32_t)count);
	request->slice.is_spread = open->spread != 0;
	return open->spread ? check_spread(request, open->spread, diag) : 0;
}

/* Whoever gives a seed believes that it decides something. */
static int check_seed(const struct request *request, const struct message_open *open,
		      struct diag *diag)
{
	if (!open->has_seed || plan_is_fixed(request->order))
		return 0;
	return diag_fail(diag, OA_E_INVALID,
			 "seed %llu: under the usual order jobs share what the stream draws, so "
			 "they have no seeds of their own and are no independent replicates; ask "
			 "for order \"seeded\", or leave the seed out",
			 (unsigned long long)request->seed);
}

/* Of ranks that lost their accessd: what is in the descriptor is read when their stream is there. */
static void take_log(struct request *request, const struct message_open *open, struct wire_in *in)
{
	if (open->has_log && request->ranks > 1 && !plan_is_fixed(request->order))
		request->log_fd = wire_take_fd(in, open->log_fd);
}

static int take_split(struct request *request, const struct message_open *open, struct diag *diag)
{
	struct population_split *split = &request->part.split;

	if (!open->has_split)
		return 0;
	memcpy(&split->from, open->split, 8);
	memcpy(&split->to, open->split + 8, 8);
	memcpy(&split->seed, open->split + 16, 8);
	if (split->from >= 0 && split->from <= 1 && split->to >= 0 && split->to <= 1 &&
	    split->from != split->to)
		return 0;
	return diag_fail(diag, OA_E_INVALID, "a split from %g to %g: must be 0 to 1, and differ",
			 split->from, split->to);
}

/* Which samples: what is in the descriptor is read when the dataset is open. */
static int take_part(struct request *request, const struct message_open *open, struct wire_in *in,
		     struct diag *diag)
{
	if (!open->has_part)
		return 0;
	if (plan_is_fixed(request->order))
		return diag_fail(
		    diag, OA_E_INVALID,
		    "a part of the dataset and a fixed plan: the plan has the samples");
	request->part.fd = wire_take_fd(in, open->part_fd);
	if (request->part.fd < 0)
		return diag_fail(diag, OA_E_INVALID,
				 "the part's bitmap is no memory: update libaccess");
	memcpy(request->part.version, open->part, sizeof(request->part.version));
	return take_split(request, open, diag);
}

bool request_is_dataset(const char *text)
{
	return *text == '/' || (PROTO_MINOR >= PROTO_SINCE_NAMES && named_asked(text));
}

static int take_texts(struct request *request, const struct message_open *open, struct diag *diag)
{
	if (!request_is_dataset(open->dataset))
		return diag_fail(diag, OA_E_INVALID, REQUEST_PATH_TEXT);
	request->dataset = strdup(open->dataset);
	request->job = open->job          ? request_name(open->job)
		       : request->program ? strdup(request->program)
					  : strdup("?");
	if (open->form)
		strcpy(request->keep, open->form);
	return request->dataset && request->job ? 0 : OA_E_MEMORY;
}

int request_parse(struct request *request, const struct message_open *open, struct wire_in *in,
		  const uint8_t nonce[MESSAGE_NONCE], struct diag *diag)
{
	int r;

	if (memcmp(open->nonce, nonce, MESSAGE_NONCE) != 0)
		return diag_fail(diag, OA_E_REFUSED, "OPEN does not repeat the nonce of WELCOME");
	r = take_texts(request, open, diag);
	r = r ? r : take_numbers(request, open, diag);
	r = r ? r : take_pipeline(request, open, diag);
	r = r ? r : take_order(request, open, diag);
	r = r ? r : take_token(request, open, diag);
	r = r ? r : take_slice(request, open, diag);
	if (!r)
		take_log(request, open, in);
	r = r ? r : take_part(request, open, in, diag);
	return r ? r : check_seed(request, open, diag);
}

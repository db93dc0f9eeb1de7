/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests. Everything in an OPEN is hostile: texts are bounded before they are copied, numbers lie
 * in ranges before they are narrowed, the pipeline is compiled and the token parsed here, so that a
 * request that was accepted can be refused later only for what the node has, never for how it
 * looks.
 */
#include "daemon/request.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/param.h"
#include "libaccess/libaccess.h"
#include "pipeline/pipeline.h"
#include "sched/plan.h"
#include "sched/token.h"

#define MOST_BATCH 65536
#define MOST_RANKS 65536

void request_fini(struct request *request)
{
	free(request->dataset);
	free(request->job);
	free(request->program);
	free(request->token);
	pipeline_free(request->pipeline);
	base_close(&request->part_fd);
	base_close(&request->log_fd);
	request_init(request);
}

void request_init(struct request *request)
{
	*request = (struct request){.part_fd = -1, .log_fd = -1};
}

char *request_text(const struct wire_in *in, uint16_t key, size_t most)
{
	const char *text;

	if (wire_get_string(in, key, &text) || strlen(text) > most)
		return NULL;
	return strdup(text);
}

/* What only the client can do, must be a client that does it: an older one would give the pipeline's
 * batches unmingled, and all classes. */
static int check_client(const struct request *request, struct diag *diag)
{
	unsigned count;

	if (request->mingle.n && request->minor < 1)
		diag_set(diag,
			 "pipeline: mixup and cutmix are done by the client, and this job's is "
			 "older: upgrade libaccess");
	else if (!request->has_sifted && (pipeline_filter_labels(request->pipeline, true, &count) ||
					  pipeline_filter_labels(request->pipeline, false, &count)))
		diag_set(
		    diag,
		    "pipeline: a filter by class is applied by the client, and this job's "
		    "has not asked for it: upgrade libaccess, and write the op's name plainly");
	else
		return 0;
	return OA_E_VERSION;
}

int request_compile(struct request *request, const struct wire_in *in, struct diag *diag)
{
	const char *text = NULL, *named;
	uint64_t sifted = 0;

	if (wire_get_string(in, PROTO_KEY_PIPELINE, &text)) {
		diag_set(diag, "no pipeline was given");
		return OA_E_PIPELINE;
	}
	named = pipeline_named(text);
	text = named ? named : text;
	if (pipeline_compile(text, strlen(text), &request->pipeline, diag))
		return OA_E_PIPELINE;
	pipeline_hash_asked(request->pipeline, &request->asked);
	request->mingle = *pipeline_batch(request->pipeline);
	wire_get_u64(in, PROTO_KEY_SIFTED, &sifted);
	request->has_sifted = sifted != 0;
	return in->type == PROTO_DESCRIBE ? 0 : check_client(request, diag);
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
		diag_set(
		    diag,
		    "resume token: it is of seed %llu, this job asks for %llu; resume with the "
		    "token's seed, or start without a token",
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

static int take_order(struct request *request, const struct wire_in *in, bool *ret_has_seed,
		      struct diag *diag)
{
	uint64_t order = 0;

	wire_get_u64(in, PROTO_KEY_ORDER, &order);
	*ret_has_seed = wire_get_u64(in, PROTO_KEY_SEED, &request->seed) == 0;
	if (order > PLAN_LIST) {
		diag_set(diag, "order %llu is none that this accessd knows; update accessd",
			 (unsigned long long)order);
		return OA_E_INVALID;
	}
	if (order == PLAN_ANY && pipeline_is_random(request->pipeline)) {
		diag_set(diag, "order \"any\" serves the same pixels again and again, and this "
			       "pipeline has random ops; use \"carousel\"");
		return OA_E_INVALID;
	}
	request->order = (uint32_t)order;
	return 0;
}

static int take_token(struct request *request, const struct wire_in *in, bool has_seed,
		      struct diag *diag)
{
	__attribute__((cleanup(token_fini))) struct token token = {0};
	const void *bytes;
	size_t size;

	if (wire_get_bytes(in, PROTO_KEY_TOKEN, &bytes, &size))
		return 0;
	if (token_parse(bytes, size, &token, diag) || join_orders(request, has_seed, &token, diag))
		return OA_E_TOKEN;
	request->token = malloc(size ? size : 1);
	if (!request->token)
		return OA_E_MEMORY;
	memcpy(request->token, bytes, size);
	request->token_size = size;
	return 0;
}

static int check_numbers(struct request *request, const struct wire_in *in, struct diag *diag)
{
	uint64_t batch = 0, hand = 0, policy = 0, ranks = 1, rank = 0;

	wire_get_u64(in, PROTO_KEY_BATCH, &batch);
	wire_get_u64(in, PROTO_KEY_HAND, &hand);
	wire_get_u64(in, PROTO_KEY_POLICY, &policy);
	wire_get_u64(in, PROTO_KEY_RANKS, &ranks);
	wire_get_u64(in, PROTO_KEY_RANK, &rank);
	wire_get_u64(in, PROTO_KEY_EPOCHS, &request->epochs);
	request->has_budget = wire_get_u64(in, PROTO_KEY_BUDGET, &request->budget) == 0;
	if (batch < 1 || batch > MOST_BATCH || hand > MOST_BATCH)
		diag_set(diag, "batch %llu, hand %llu: both must lie in 1 .. %d",
			 (unsigned long long)batch, (unsigned long long)hand, MOST_BATCH);
	else if (policy > PROTO_POLICY_SUBSTITUTE)
		diag_set(diag, "policy for bad samples %llu: 0 error, 1 skip, 2 substitute",
			 (unsigned long long)policy);
	else if (ranks < 1 || ranks > MOST_RANKS || rank >= ranks)
		diag_set(diag, "rank %llu of %llu: there may be 1 to %d ranks, numbered from 0",
			 (unsigned long long)rank, (unsigned long long)ranks, MOST_RANKS);
	else {
		request->batch = (uint32_t)batch;
		request->hand = (uint32_t)hand;
		request->ranks = (uint32_t)ranks;
		request->rank = (uint32_t)rank;
		request->policy = (enum proto_policy)policy;
		return 0;
	}
	return OA_E_INVALID;
}

/* Whoever gives a seed believes that it decides something. */
static int check_seed(const struct request *request, bool has_seed, struct diag *diag)
{
	if (!has_seed || plan_is_fixed(request->order))
		return 0;
	diag_set(
	    diag,
	    "seed %llu: under the usual order jobs share what the stream draws, so they have no "
	    "seeds of their own and are no independent replicates; ask for order \"seeded\", "
	    "or leave the seed out",
	    (unsigned long long)request->seed);
	return OA_E_INVALID;
}

/* Of ranks that lost their accessd: what is in the descriptor is read when their stream is there. */
static void take_log(struct request *request, struct wire_in *in)
{
	uint64_t index;

	if (request->ranks > 1 && !plan_is_fixed(request->order) &&
	    wire_get_u64(in, PROTO_KEY_LOG, &index) == 0 && index < WIRE_MAX_FDS)
		request->log_fd = wire_take_fd(in, (unsigned)index);
}

static int check_split(const struct request *request, struct diag *diag)
{
	const struct population_split *split = &request->split;

	if (split->from >= 0 && split->from < split->to && split->to <= 1)
		return 0;
	diag_set(diag, "a split from %g to %g: must be 0 <= from < to <= 1", split->from,
		 split->to);
	return OA_E_INVALID;
}

/* Which samples: what is in the descriptor is read when the dataset is open. */
static int take_part(struct request *request, struct wire_in *in, struct diag *diag)
{
	const void *version = NULL, *split = NULL;
	uint64_t reuse = 1, exact = 0, words[3];
	size_t size = 0;

	wire_get_u64(in, PROTO_KEY_REUSE, &reuse);
	request->reuse = (uint32_t)BASE_MIN(reuse, (uint64_t)REQUEST_MOST_REUSE);
	wire_get_u64(in, PROTO_KEY_EXACT, &exact);
	request->is_exact = exact != 0;
	request->part_fd = wire_take_fd(in, 0);
	wire_get_bytes(in, PROTO_KEY_PART, &version, &size);
	if ((request->part_fd >= 0) != (version && size == sizeof(request->part_version)) ||
	    (version && plan_is_fixed(request->order))) {
		diag_set(diag,
			 "a part of the dataset is a version, a descriptor and no fixed plan");
		return OA_E_INVALID;
	}
	if (!version)
		return 0;
	memcpy(request->part_version, version, size);
	if (wire_get_bytes(in, PROTO_KEY_SPLIT, &split, &size) || size != sizeof(words))
		return 0;
	memcpy(words, split, sizeof(words));
	memcpy(&request->split.from, &words[0], sizeof(words[0]));
	memcpy(&request->split.to, &words[1], sizeof(words[1]));
	request->split.seed = words[2];
	return check_split(request, diag);
}

static int take_form(struct request *request, const struct wire_in *in, struct diag *diag)
{
	const char *text = "";

	wire_get_string(in, PROTO_KEY_FORM, &text);
	if (strlen(text) < sizeof(request->keep)) {
		strcpy(request->keep, text);
		return 0;
	}
	diag_set(diag, "keep: no form has a name of %zu bytes", strlen(text));
	return OA_E_INVALID;
}

int request_parse(struct request *request, struct wire_in *in, const uint8_t nonce[REQUEST_NONCE],
		  struct diag *diag)
{
	const void *repeated = NULL;
	bool has_seed = false;
	size_t size = 0;
	int r;

	wire_get_bytes(in, PROTO_KEY_NONCE, &repeated, &size);
	if (size != REQUEST_NONCE || memcmp(repeated, nonce, size)) {
		diag_set(diag, "OPEN does not repeat the nonce of WELCOME");
		return OA_E_REFUSED;
	}
	request->dataset = request_text(in, PROTO_KEY_DATASET, PARAM_TEXT_MAX);
	request->job = request_text(in, PROTO_KEY_JOB, REQUEST_NAME_MAX);
	if (!request->dataset || *request->dataset != '/') {
		diag_set(diag, REQUEST_PATH_TEXT, PARAM_TEXT_MAX);
		return OA_E_INVALID;
	}
	if (!request->job)
		request->job = strdup(request->program ? request->program : "?");
	if (!request->job)
		return OA_E_MEMORY;
	r = check_numbers(request, in, diag);
	if (!r)
		r = request_compile(request, in, diag);
	if (!r)
		r = take_order(request, in, &has_seed, diag);
	if (!r)
		r = take_token(request, in, has_seed, diag);
	if (!r)
		take_log(request, in);
	if (!r)
		r = take_part(request, in, diag);
	if (!r)
		r = check_seed(request, has_seed, diag);
	if (!r)
		r = take_form(request, in, diag);
	return r;
}

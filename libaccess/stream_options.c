/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the caller of oa_open() asks for: his version of the options is read, each one is checked by
 * itself, and what accessd is to be told of them is copied into the request (struct dial_open), which
 * the stream keeps, as it is sent again for each new session. What is wrong with an option as such is
 * found here, before anything is dialled, and the error names the option.
 */

#include <stdio.h>
#include <unistd.h>
#include "libaccess/error.h"
#include "libaccess/stream.h"
#include "shmring/proto.h"

/* ---- read and checked ---- */

int stream_read_options(const struct oa_options *from, struct oa_options *ret, struct diag *diag)
{
	int r;

	if (!from || from->size < offsetof(struct oa_options, flags))
		return error_open(diag, "options.size must be sizeof(struct oa_options)");
	r = error_read(ret, sizeof(*ret), from, from->size, "oa_open(): options", diag);
	if (r)
		return r;
	ret->ranks = ret->ranks ? ret->ranks : 1;
	ret->local_ranks = ret->local_ranks ? ret->local_ranks : ret->ranks;
	return 0;
}

/* Where ranks are on several nodes: is this one among its node's? */
static int stream_check_local(const struct oa_options *options, struct diag *diag)
{
	uint32_t first = options->local_first, count = options->local_ranks;

	if (count <= options->ranks && first <= options->ranks - count && options->rank >= first &&
	    options->rank - first < count)
		return 0;
	return error_open(diag,
			  "options.local_first, options.local_ranks: the %u ranks from %u on are "
			  "no node's of rank %u of %u",
			  count, first, options->rank, options->ranks);
}

int stream_check_options(const struct oa_options *options, struct diag *diag)
{
	if (!options->dataset || !*options->dataset)
		return error_open(diag, "options.dataset must name a folder");
	if ((!options->pipeline || !*options->pipeline) && !proto_is_named(options->dataset))
		return error_open(diag,
				  "options.pipeline must be JSON or a name, as \"imagenet-train\"");
	if (options->batch < 1 || options->batch > LAYOUT_MAX_CHUNK)
		return error_open(diag, "options.batch is %u, must be 1 to %d", options->batch,
				  LAYOUT_MAX_CHUNK);
	if (options->flags & ~(uint32_t)(OA_COPY | OA_DROP_LAST | OA_POISON | OA_KEEP |
					 OA_WRITABLE | OA_SPREAD | OA_RESAMPLE))
		return error_open(diag, "options.flags has an unknown flag (0x%x)", options->flags);
	if ((unsigned)options->bad > OA_BAD_SUBSTITUTE)
		return error_open(diag, "options.bad is %d, must be an OA_BAD_...",
				  (int)options->bad);
	if ((unsigned)options->order > OA_ORDER_REPLAY)
		return error_open(diag, "options.order is %d, must be an OA_ORDER_...",
				  (int)options->order);
	if (options->rank >= options->ranks)
		return error_open(diag, "options.rank is %u of %u ranks", options->rank,
				  options->ranks);
	if (stream_check_local(options, diag))
		return OA_E_INVALID;
	if (options->chunk > LAYOUT_MAX_CHUNK)
		return error_open(diag, "options.chunk is %u, must be 0 to %d", options->chunk,
				  LAYOUT_MAX_CHUNK);
	if (!options->token != !options->token_size)
		return error_open(diag, "options.token and options.token_size go together");
	return sampler_check(options, diag);
}

int stream_check_job(const struct oa_options *options, struct diag *diag)
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
	return error_open(diag,
			  "options.job must be the same name on all %u ranks of a job: by it they "
			  "find each other",
			  options->ranks);
}

/* ---- the request ---- */

static char *stream_job_name(const char *name)
{
	if (name && *name)
		return strdup(name);
	return base_format("%s (pid %d)", program_invocation_short_name, (int)getpid());
}

int stream_set_open(struct dial_open *open, const struct oa_options *options)
{
	*open = (struct dial_open){
	    .pipeline = strdup(options->pipeline),
	    .job = stream_job_name(options->job),
	    .keep = options->keep ? strdup(options->keep) : NULL,
	    .batch = options->batch,
	    .chunk = options->chunk,
	    .ranks = options->ranks,
	    .rank = options->rank,
	    .local_ranks = options->local_ranks,
	    .local_first = options->local_first,
	    .drop_last = options->flags & OA_DROP_LAST,
	    .is_spread = options->flags & OA_SPREAD,
	    .order = options->order,
	    .seed = options->seed,
	    .epochs = options->epochs,
	    .bad = options->bad,
	    .bad_budget = options->bad_budget,
	    .reuse = options->reuse,
	    .is_exact = options->record != NULL,
	    .token_size = options->token_size,
	    .log_fd = -1,
	};
	if (options->token_size) {
		open->token = malloc(options->token_size);
		if (open->token)
			memcpy(open->token, options->token, options->token_size);
	}
	return open->pipeline && open->job && (open->keep || !options->keep) &&
		       (open->token || !options->token_size)
		   ? 0
		   : -ENOMEM;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A log that comes from elsewhere is hostile, whoever brings it: each entry is copied once, checked
 * against the set of samples and against what the token leaves, and a log that does not fit is left aside.
 *
 * Its forger says how much there is to do, so it is done in steps, each of which ends soon:
 *
 *   RESERVE  some of the new log's memory, which is as large as the dataset is; for a new group that is all
 *   READ   the next record; one of whole blocks is checked at once, by its blocks
 *   CHECK  some of the samples of one that lists them
 *   LIST   some of the samples of a chunk that is larger than ours are: its parts list theirs
 *   ADD    a chunk, or one of its parts, to the group's log: it is the same samples at the same places, made by
 *          the same seed and nonce
 *
 * And how much memory: what is added is what a group's log keeps, in memory that counts as the stream's, and
 * the oldest entries give way as they do there. Samples that are left of begun chunks are those of the token and
 * of one chunk, no more. The end is where it was in the beginning: the forger may still write.
 */

#include "daemon/serve/group_brought.h"

#include "daemon/net/conn.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/serve/group_pay.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "sched/carousel.h"

#define CHECK_STEP 2048 /* samples */
#define LIST_STEP 64    /* blocks */
#define MOST_CHUNK 65536

/* ---- beginning ---- */

void brought_fini(struct brought *log)
{
	group_end_plan_log(&log->stream->node->endings, &log->from);
	free(log->ids);
	log->ids = NULL;
	entry_rest_fini(&log->rest);
	group_end_log(&log->stream->node->endings, base_take_ptr(log->log));
	if (log->payer)
		group_pay_back(log->stream, log->payer);
	log->payer = NULL;
	if (!log->plan_log.map)
		return;
	keep_end(&log->keep, true);
	group_end_plan_log(&log->stream->node->endings, &log->plan_log);
	porter_close(&log->stream->node->porters, PORTER_OWN, &log->plan_log_fd);
}

/* The token's place, or, in a log that began with the same token, where that one began. */
static int find_place(struct brought *log, const struct brought_from *from)
{
	const struct token *token = log->token;
	const bool is_named = from->is_named;

	if (is_named && !plan_log_has(&log->from, token->log, token->epoch, token->place))
		return from->is_newest && memcmp(log->from.id, token->log, PLAN_LOG_PLAN) == 0
			   ? BROUGHT_E_PARTED
			   : BROUGHT_E_BAD;
	if (!is_named && log->from.origin != from->origin)
		return BROUGHT_E_BAD;
	if (from->beside && !plan_log_has(&log->from, from->beside, 0, 0))
		return BROUGHT_E_PARTED;
	log->epoch = log->rest.epoch = is_named ? token->epoch : log->from.first_epoch;
	log->place = log->rest.place = is_named ? token->place : 0;
	return entry_rest_copy(&log->set, from->rest, &log->rest) ? BROUGHT_E_BAD : 0;
}

static int make_log(struct brought *log, const struct conn *conn)
{
	const struct carousel *carousel = log->stream->carousel;
	const uint64_t bytes = carousel_log_bytes(carousel);
	const struct keep_job of = {&conn->variant->key, conn->uid, &conn->request};
	uint8_t id[PLAN_LOG_ID];

	memcpy(id, log->from.id, sizeof(id));
	if (!log->is_newest && base_random(id + PLAN_LOG_PLAN, sizeof(id) - PLAN_LOG_PLAN))
		return BROUGHT_E_BAD;
	if (!group_pay(conn, &log->payer))
		return BROUGHT_E_BAD;
	log->log = carousel_log_new(carousel, bytes);
	if (!log->log ||
	    plan_log_new(bytes, log->from.n_samples, id, &log->plan_log, &log->plan_log_fd))
		return BROUGHT_E_BAD;
	plan_log_set_origin(&log->plan_log, log->from.origin, log->from.first_epoch);
	keep_begin(&log->keep, &log->stream->node->kept, &of, &log->plan_log);
	return 0;
}

int brought_begin_new(struct brought *log, const struct conn *conn, const struct token *token,
		      uint64_t origin)
{
	struct stream *stream = conn->stream;

	*log = (struct brought){.stream = stream,
				.is_new = true,
				.is_newest = true,
				.token = token,
				.plan_log_fd = -1,
				.keep = {.fd = -1},
				.from = {.n_samples = stream->geometry.n_samples,
					 .origin = origin,
					 .first_epoch = token->epoch}};
	if (base_random(log->from.id, sizeof(log->from.id)))
		return BROUGHT_E_BAD;
	return make_log(log, conn);
}

int brought_begin(struct brought *log, struct conn *conn, int fd, const struct brought_from *from,
		  const struct entry_set *set)
{
	struct stream *stream = conn->stream;
	/* accessd before us may have had chunks of another size */
	const uint64_t most = plan_log_bytes(carousel_log_most(stream->carousel));
	int r;

	*log = (struct brought){.stream = stream,
				.token = from->token,
				.set = *set,
				.is_newest = from->is_newest,
				.plan_log_fd = -1,
				.keep = {.fd = -1}};
	if (plan_log_attach(fd, most, &log->from))
		return BROUGHT_E_BAD;
	log->offset = plan_log_first(&log->from);
	log->end = plan_log_end(&log->from);
	if (log->from.n_samples != set->permutation->n)
		return BROUGHT_E_BAD;
	r = find_place(log, from);
	return r ? r : make_log(log, conn);
}

/* ---- steps ---- */

static void go_on(struct brought *log, enum brought_stage stage)
{
	log->stage = stage;
	log->at = 0;
}

/* Passes the entry, or a part of it; at the log's end the rest is where it ends. */
static bool follow(struct brought *log, const struct entry *entry)
{
	return entry_is_good(&log->set, entry) &&
	       entry_rest_pass(&log->set, &log->rest, entry, entry->place + entry->count) == 0 &&
	       log->rest.n_tail <= (uint64_t)log->token->n_tail + MOST_CHUNK;
}

/* A rank that ended an epoch as far as the log goes is in the next one, of which nothing was dealt yet. */
static bool ends_where_it_says(const struct brought *log)
{
	const struct entry *last = &log->last;
	const struct entry_rest *rest = &log->rest;

	if (!last->count) /* nothing was dealt yet */
		return log->epoch == log->from.first_epoch && !log->place;
	if (last->epoch != rest->epoch)
		return rest->epoch && last->epoch == rest->epoch - 1 && !rest->place;
	return last->place + last->count == rest->place;
}

static int reserve_some(struct brought *log)
{
	struct plan_log *plan_log = &log->plan_log;

	if (plan_log_reserve(plan_log, log->plan_log_fd, BROUGHT_STEP))
		return BROUGHT_E_BAD;
	if (plan_log->reserved < plan_log->bytes)
		return BROUGHT_E_MORE;
	go_on(log, BROUGHT_READ);
	return log->is_new ? 0 : BROUGHT_E_MORE;
}

/* An epoch that is dealt to its end is over, whoever brings it is still in it or not. */
static void end_reading(struct brought *log)
{
	const struct entry_rest *rest = &log->rest;
	const bool is_over = !entry_rest_count(rest);

	plan_log_go_on(&log->plan_log, &log->from, rest->epoch + is_over,
		       is_over ? 0 : rest->place);
}

static int read_one(struct brought *log)
{
	struct entry read;
	int r = log->offset < log->end ? plan_log_read(&log->from, &log->offset, &read)
				       : PLAN_LOG_E_NONE;

	if (r == PLAN_LOG_E_NONE && ends_where_it_says(log)) {
		end_reading(log);
		return 0;
	}
	if (r)
		return BROUGHT_E_BAD;
	log->entry = log->last = read;
	go_on(log, BROUGHT_CHECK);
	if (!log->entry.n_blocks)
		return BROUGHT_E_MORE;
	if (!follow(log, &log->entry))
		return BROUGHT_E_BAD;
	go_on(log, log->entry.count > log->stream->geometry.chunk ? BROUGHT_LIST : BROUGHT_ADD);
	return BROUGHT_E_MORE;
}

/* So many samples of the entry, which lists them, as an entry. */
static struct entry part_of(const struct brought *log, uint32_t most)
{
	struct entry part = log->entry;

	part.place += log->at;
	part.count = BASE_MIN(part.count - log->at, most);
	part.ids += log->at;
	return part;
}

static int check_some(struct brought *log)
{
	const struct entry part = part_of(log, CHECK_STEP);

	if (!follow(log, &part))
		return BROUGHT_E_BAD;
	log->at += part.count;
	if (log->at == log->entry.count)
		go_on(log, BROUGHT_ADD);
	return BROUGHT_E_MORE;
}

/* The entry was checked: its blocks have as many samples as it says. `at` counts blocks. */
static int list_some(struct brought *log)
{
	struct entry *entry = &log->entry;
	uint32_t n = BASE_MIN(entry->n_blocks - log->at, (uint32_t)LIST_STEP);

	if (!log->at) {
		log->listed = 0;
		log->ids = malloc(entry->count * sizeof(*log->ids));
	}
	if (!log->ids)
		return BROUGHT_E_BAD;
	log->listed += permutation_list(log->set.permutation, log->set.bits,
					entry->blocks + log->at, n, log->ids + log->listed);
	log->at += n;
	if (log->at < entry->n_blocks)
		return BROUGHT_E_MORE;
	permutation_shuffle(entry->seed, entry->nonce, log->ids, entry->count);
	entry->n_blocks = 0;
	entry->blocks = NULL;
	entry->ids = log->ids;
	go_on(log, BROUGHT_ADD);
	return BROUGHT_E_MORE;
}

static int add_one(struct brought *log)
{
	const uint32_t chunk = log->stream->geometry.chunk;
	struct entry part = log->entry.n_blocks ? log->entry : part_of(log, chunk);

	if (carousel_recall(log->stream->carousel, log->log, &part))
		return BROUGHT_E_BAD;
	plan_log_append(&log->plan_log, &part);
	log->at += part.count;
	if (log->at < log->entry.count)
		return BROUGHT_E_MORE;
	free(log->ids);
	log->ids = NULL;
	go_on(log, BROUGHT_READ);
	return BROUGHT_E_MORE;
}

int brought_step(struct brought *log)
{
	switch (log->stage) {
	case BROUGHT_RESERVE:
		return reserve_some(log);
	case BROUGHT_READ:
		return read_one(log);
	case BROUGHT_CHECK:
		return check_some(log);
	case BROUGHT_LIST:
		return list_some(log);
	case BROUGHT_ADD:
		return add_one(log);
	}
	return BROUGHT_E_BAD;
}

void brought_save(struct brought *log)
{
	keep_save(&log->keep, &log->plan_log);
}

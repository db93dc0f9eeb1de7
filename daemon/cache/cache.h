/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is kept of a stream's samples so that it is not done again, in which form, and whether it is worth it.
 *
 * Points: the file (0), and the stored forms that all the stream's variants can begin from. A form's values
 * are a group of the domain's store; how large each sample's is says the group's table, which the reader
 * writes and accessd reads, so what is kept is known without asking.
 */

#include "daemon/cache/cache_state.h"

struct ahead_look;
struct carousel_chunk;
struct fill;
struct fill_task;
struct hash_id;
struct json_out;
struct queue_keep;
struct queue_kept;
struct slice;
struct stream;

void cache_fini(struct stream *stream);
/* The stream's variants may have changed: which points there are. Asks the reader for their groups. */
void cache_settle(struct stream *stream);
/* A job has that slice: if its samples are spread over nodes, what each is given is to be kept there. */
void cache_spread(struct stream *stream, const struct slice *slice);
/* The reader of the queue is a new one, and knows no groups. */
void cache_reader_died(struct stream *stream);
/* From the reader: a form's table (-1: why not); the descriptor stays the caller's. */
void cache_formed(struct stream *stream, uint64_t form, int table_fd, const char *why);
/* Somebody had the store drop that group: streams that are there do without it from now on. */
void cache_dropped(struct stream *stream, const struct hash_id *group);
/* Can what the stream is to keep (stream->asked.keep) be kept? 0, or OA_E_REFUSED with diag. */
int cache_check(const struct stream *stream, struct diag *diag);
/* It will be known in a moment what is kept: nothing is fed before. A stream that is to be kept waits for
 * that, any other one for a tenth of a second at its beginning: *ret_until_ns is when it looks again, 0: it is
 * called. */
bool cache_is_awaited(struct stream *stream, uint64_t now_ns, uint64_t *ret_until_ns);
/* A chunk begins: where instances are kept, which of its samples come from those, with what key, and how often it may
 * be granted. */
void cache_begin(struct stream *stream, struct fill *fill, const struct carousel_chunk *chunk);
/* A worker made what is to be kept of the instance of that nonce. */
void cache_made(struct stream *stream, uint64_t sample, uint64_t nonce);
/* Bytes of the arena for what is kept of the sample; 0: it is not, or does not fit. */
uint64_t cache_room_for(const struct stream *stream, const struct cache_point *point,
			uint64_t sample, uint32_t file_bytes);
/* Is the form known by its name on other nodes, to processes of the same domain? */
bool cache_is_shared(const struct stream *stream, const struct cache_point *point);
/* What task is to say of forms: *ret, and returned the bytes it needs in the arena. cache_fed() when it
 * was queued so. */
uint64_t cache_plan(struct stream *stream, const struct fill_task *task, uint32_t file_bytes,
		    struct queue_keep *ret);
void cache_fed(struct stream *stream, const struct fill_task *task);
/* What is to be made of the chosen form where no job waits for it: is that worth it, may other nodes have it, and is there room
 * for it? */
void cache_look_ahead(const struct stream *stream, uint64_t now_ns, struct ahead_look *ret);
/* The same as cache_plan() of a sample that no job waits for. false: there is nothing to do. */
bool cache_plan_ahead(const struct stream *stream, uint64_t sample, uint32_t file_bytes,
		      struct queue_keep *ret);
/* It ended. true: a form was made. */
bool cache_note_ahead(struct stream *stream, const struct fill_task *task,
		      const struct queue_kept *kept);
/* What a point costs, into the input of the choice. */
void cache_cost(struct stream *stream, unsigned p);
/* Is nothing chosen before they, and those under way, have ended? */
bool cache_is_learning(const struct stream *stream);
/* Is what is queued promised to other nodes? */
bool cache_is_promising(const struct stream *stream);
/* The task (as planned) ended well. */
void cache_note(struct stream *stream, const struct fill_task *task,
		const struct queue_keep *planned, const struct queue_kept *kept,
		uint32_t file_bytes);
/* Often: decides anew where measurements ask for it, but for the end of trials no more than some times a
 * second. */
void cache_tick(struct stream *stream, uint64_t now_ns);
void cache_describe(const struct stream *stream, struct json_out *out); /* members of "cache" */

/* ---- inside: cache_again.c ---- */

/* The cut's name in this stream: what is kept of its instances is nobody else's. */
void cache_own_cut(const struct stream *stream, const struct hash_id *cut, struct hash_id *ret);

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_CACHE_CACHE_H
#define DAEMON_CACHE_CACHE_H

/*
 * What is kept of a stream's samples so that it is not done again, in which form, and whether it is worth it.
 *
 * Points: the file (0), and the stored forms that all the stream's variants can begin from. A form's values
 * are a group of the domain's store; how large each sample's is says the group's table, which the reader
 * writes and accessd reads, so what is kept is known without asking.
 */

#include <sys/queue.h>
#include "base/base.h"
#include "base/counter.h"
#include "base/hash.h"
#include "sched/instance.h"
#include "sched/peering.h"
#include "sched/point.h"
#include "shmring/lane.h"

struct carousel_chunk;
struct fill;
struct fill_task;
struct json_out;
struct stream;

enum cache_table { CACHE_UNASKED, CACHE_ASKED, CACHE_READY, CACHE_REFUSED };

struct cache_point {
	uint8_t form;         /* LAYOUT_FORM_..., 0: the file */
	struct hash_id cut;   /* of the ops that it is behind */
	struct hash_id group; /* of the store */
	enum cache_table state;
	const struct counter_cell *table; /* mapping, owned; [samples] */
	uint8_t *unfit; /* owned: a bit a sample that has no such form; NULL: none so far */
	struct point_form figures;
	uint64_t trials, tried; /* asked for; ended, but for those in vain */
	unsigned vain;          /* of samples that have no such form */
	uint64_t most_trials;   /* as it looks now */
	double worth;           /* that the reader was told: us of a processor a MiB */
	bool yields;            /* the reader was told that another form is brought */
	uint64_t n_unfit;
	bool is_found; /* found: samples that were kept when it was looked first */
	uint64_t found;
	uint64_t kept_samples,
	    kept_bytes; /* as looked at last, the former estimated for large datasets */
};

struct cache_origin { /* what came from there */
	uint64_t samples, bytes;
};

struct cache {
	bool is_on;
	char why[256]; /* it is off */
	unsigned n;    /* points */
	unsigned
	    listed; /* with the last one, where that is augmented and some job allows no reuse */
	struct cache_point point[POINT_MAX];
	uint32_t allows; /* chunks in which all jobs allow an instance, as the last chunk began */
	struct instance_book book;
	struct hash_id book_group; /* of what is kept of those instances */
	struct hash_id
	    taken[LAYOUT_FORMS]; /* groups that the lane has in the reader, zeros: none */
	bool has_taken[LAYOUT_FORMS];
	uint32_t variants; /* whose pipelines the points are of, a bit each */
	int forced;        /* point that the configuration asks for, -1: none */
	struct point_input input;
	struct point_choice choice;
	uint64_t looked_ns, chosen_ns;
	uint64_t passed_ns;      /* the forms know the time up to here */
	uint64_t served;         /* samples, before the first choice */
	unsigned awaited;        /* looks that found only trials that had not ended */
	unsigned jobs;           /* that there were then */
	uint64_t await_until_ns; /* samples wait for tables no longer; 0: none was to be fed yet */
	uint64_t fed, hits, misses,
	    bytes_hit; /* samples given to the reader, that came kept, that did not */
	struct cache_origin from[LAYOUT_FROM_PEER + 1]; /* by enum layout_from */
	struct peering peering;
	struct peering_choice peers; /* is it worth asking them? */
	uint64_t wrong; /* kept forms that did not serve, and were made from the file again */
	uint64_t begun; /* samples of the stream that were done before, by other variants */
};

void cache_init(struct cache *cache);
void cache_fini(struct stream *stream);
/* The stream's variants may have changed: which points there are. Asks the reader for their groups. */
void cache_settle(struct stream *stream);
/* The reader of the lane is a new one, and knows no groups. */
void cache_reader_died(struct stream *stream);
/* From the reader: a form's table (-1: why not); the descriptor stays the caller's. */
void cache_formed(struct stream *stream, uint64_t form, int table_fd, const char *why);
/* Somebody had the store drop that group: streams that are there do without it from now on. */
void cache_dropped(struct stream *stream, const struct hash_id *group);
/* Can what the stream is to keep (stream->keep) be kept? 0, or OA_E_REFUSED with diag. */
int cache_check(const struct stream *stream, struct diag *diag);
/* It will be known in a moment what is kept: nothing is fed before. A stream that is to be kept waits for
 * that, any other one for a tenth of a second at its beginning: *ret_until_ns is when it looks again, 0: it is
 * called. */
bool cache_is_awaited(struct stream *stream, uint64_t now_ns, uint64_t *ret_until_ns);
/* A chunk begins: where instances are kept, which of its samples come from those, with what key, and how often it may
 * be granted. */
void cache_begin(struct stream *stream, struct fill *fill, const struct carousel_chunk *chunk);
/* A worker made what is to be kept of the instance of that lap. */
void cache_made(struct stream *stream, uint64_t sample, uint64_t lap);
/* Bytes of the arena for what is kept of the sample; 0: it is not, or does not fit. */
uint64_t cache_room_for(const struct stream *stream, const struct cache_point *point,
			uint64_t sample, uint32_t file_bytes);
/* Is the form known by its name on other nodes, to processes of the same domain? */
bool cache_is_shared(const struct stream *stream, const struct cache_point *point);
/* What task is to say of forms: *ret, and returned the bytes it needs in the arena. cache_fed() when it
 * was queued so. */
uint64_t cache_plan(struct stream *stream, const struct fill_task *task, uint32_t file_bytes,
		    struct lane_keep *ret);
void cache_fed(struct stream *stream, const struct fill_task *task);
/* What a point costs, into the input of the choice. */
void cache_cost(struct stream *stream, unsigned p);
/* The input of the choice is another: how many trials may there be? */
void cache_count_trials(struct cache *cache);
/* Are there trials to be made yet? */
bool cache_is_trying(const struct cache *cache);
bool cache_has_trials_out(const struct cache *cache);
/* Is nothing chosen before they, and those under way, have ended? */
bool cache_is_learning(const struct stream *stream);
/* Is what is queued promised to other nodes? */
bool cache_is_promising(const struct stream *stream);
/* The task (as planned) ended well. */
void cache_note(struct stream *stream, const struct fill_task *task,
		const struct lane_keep *planned, const struct lane_kept *kept, uint32_t file_bytes);
/* Often: decides anew where measurements ask for it, but for the end of trials no more than some times a
 * second. */
void cache_tick(struct stream *stream, uint64_t now_ns);
/* Name of a point for people: "file", "indexed", ... */
const char *cache_name(unsigned form, char ret[24]);
/* Is it a value of cache_point? */
bool cache_is_choice(const char *text);
void cache_describe(const struct stream *stream, struct json_out *out); /* members of "cache" */

/* ---- inside: cache_again.c ---- */

/* The point that is kept of instances, behind random ops, open or not; NULL: there is none. */
const struct cache_point *cache_augmented(const struct cache *cache);
/* Which of the points are there, by what the jobs allow. */
void cache_open(struct cache *cache);
/* The cut's name in this stream: what is kept of its instances is nobody else's. */
void cache_own_cut(const struct stream *stream, const struct hash_id *cut, struct hash_id *ret);
void cache_take_book(struct cache *from, struct cache *to);

#endif

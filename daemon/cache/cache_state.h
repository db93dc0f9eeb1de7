/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is known of the points of a stream, and what that says: numbers alone. Who asks and decides is cache.c. */

#include "base/base.h"
#include "base/counter.h"
#include "base/hash.h"
#include "sched/instance.h"
#include "sched/peering.h"
#include "sched/point.h"
#include "shmring/layout.h"

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
	/* As looked at last, the former estimated for large datasets */
	uint64_t kept_samples, kept_bytes;
};

struct cache_origin { /* what came from there */
	uint64_t samples, bytes;
};

struct cache_told {                         /* to the reader, of the queue */
	struct hash_id group[LAYOUT_FORMS]; /* that it has, zeros: none */
	bool has_group[LAYOUT_FORMS];
	/* Of the last job with a spread: which of how many nodes this is, nodes 0: there was none */
	uint32_t spread_number, spread_nodes;
	bool is_spread_told;
};

struct cache_figures {
	/* Samples given to the reader, that came kept, that did not */
	uint64_t fed, hits, misses, bytes_hit;
	struct cache_origin from[LAYOUT_FROM_PEER + 1]; /* by enum layout_from */
	uint64_t wrong; /* kept forms that did not serve, and were made from the file again */
};

struct cache {
	bool is_on;
	char why[256]; /* it is off */
	unsigned n;    /* points */
	/* With the last one, where that is augmented and some job allows no reuse */
	unsigned listed;
	struct cache_point point[POINT_MAX];
	uint32_t allows; /* chunks in which all jobs allow an instance, as the last chunk began */
	struct instance_book book;
	struct hash_id book_group; /* of what is kept of those instances */
	struct cache_told told;
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
	struct cache_figures figures;
	uint64_t begun; /* samples of the stream that were done before, by other variants */
	struct peering peering;
	struct peering_choice peers; /* is it worth asking them? */
};

void cache_init(struct cache *cache);
/* The input of the choice is another: how many trials may there be? */
void cache_count_trials(struct cache *cache);
/* Are there trials to be made yet? */
bool cache_is_trying(const struct cache *cache);
bool cache_has_trials_out(const struct cache *cache);
/* Name of a point for people: "file", "indexed", ... */
const char *cache_name(unsigned form, char ret[24]);
/* Is it a value of cache_point? */
bool cache_is_choice(const char *text);
/* The point that is kept of instances, behind random ops, open or not; NULL: there is none. */
const struct cache_point *cache_augmented(const struct cache *cache);
/* Which of the points are there, by what the jobs allow. */
void cache_open(struct cache *cache);
void cache_take_book(struct cache *from, struct cache *to);
/* May there be another trial of that point? */
bool cache_wants_trials(const struct cache *cache, unsigned p);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The GETs that are out at a peer, and how long he may be silent meanwhile. A GET has an id of the carrier's own, which
 * is never used again, so an answer that comes when it was given up is known as one. Arithmetic: time is an argument.
 */

#include "cluster/value.h"

#define ASKED_MOST 4096 /* out at a peer */
#define ASKED_RECENT 32 /* answers that the median is of */
/* Its carrier may not be run for so long: workers fill all cores */
#define ASKED_LEAST_NS UINT64_C(250000000)
#define ASKED_LONGEST_NS UINT64_C(2000000000)
#define ASKED_ALIVE_NS UINT64_C(2250000000) /* nor longer while the peer says that he is alive */

struct asked_get {
	uint64_t id;        /* on the connection; 0: free */
	uint64_t reader_id; /* what its reader calls it */
	uint64_t sample, sent_ns;
	struct hash_id group;
	uint32_t room;
	uint32_t next, previous; /* by time; of a free one: the next free */
	bool is_try;             /* the breaker's */
};

struct asked {
	struct asked_get *get; /* ASKED_MOST */
	uint32_t oldest, newest, free, n;
	uint32_t recent_us[ASKED_RECENT];
	uint64_t answers; /* whose times were noted */
	uint64_t patience_ns;
};

int asked_init(struct asked *asked); /* 0 or -ENOMEM */
void asked_fini(struct asked *asked);
bool asked_is_full(const struct asked *asked);
/* A GET that goes out now; there is room. *serial counts all ids of the process. The id. */
uint64_t asked_add(struct asked *asked, const struct value_head *head, bool is_try, uint64_t now_ns,
		   uint64_t *serial);
/* Which one has that id; NULL: none any more. */
const struct asked_get *asked_find(const struct asked *asked, uint64_t id);
/* It was answered, or given up. */
void asked_drop(struct asked *asked, const struct asked_get *get);
/* Notes how long an answer took. */
void asked_note(struct asked *asked, uint64_t took_ns);
/* The oldest; NULL: none is out. */
const struct asked_get *asked_oldest(const struct asked *asked);
/* When the oldest one, which is there, is given up, if nothing comes before; heard_ns: something came last. */
uint64_t asked_until(const struct asked *asked, uint64_t heard_ns);
/* Was the peer of that one, which is given up now, silent for too long, and not only slow? */
bool asked_is_silent(const struct asked *asked, const struct asked_get *get, uint64_t heard_ns,
		     uint64_t now_ns);

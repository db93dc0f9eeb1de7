/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading past the page cache, right into the memory where bytes are wanted: which part of a file that takes, several reads at
 * once, and whether it takes less than reading through the page cache.
 */

#include "base/base.h"

#define DIRECT_DEEP 32 /* reads at once, of a thread */

/* ---- direct.c: arithmetic alone ---- */

struct direct_span { /* what is read of a file, so that some bytes of it come */
	uint64_t at;
	uint32_t bytes;
	uint32_t before; /* of these, before those that are wanted */
};
/* Of a file that is read by multiples of align. before, behind: bytes of memory on both sides that may be overwritten.
 * false: there are too few, or nothing is wanted, or align is none. */
bool direct_span(uint64_t at, uint32_t bytes, uint32_t align, uint64_t before, uint64_t behind,
		 struct direct_span *ret);

struct direct_cost { /* of one way, as measured lately */
	unsigned batches;
	double kib, cpu_ns, disk_kib;
};
struct direct_choice { /* zeros: nothing is known */
	bool is_settled, is_direct;
	unsigned turn;  /* of batches: until it is known, then since the other way was tried */
	unsigned every; /* of so many batches one is read in the other way; 0: not known yet */
	struct direct_cost cost[2]; /* through the page cache, and direct */
	bool is_said, said_direct;  /* what people were told last, ... */
	uint64_t said_ns;           /* ... and when */
};
/* Is the next batch to be read directly? Both ways in turn until each was measured; then the better one, and the other one
 * now and then, ever less often as long as that changes nothing. */
bool direct_choice_next(struct direct_choice *choice);
/* One was read; disk_bytes: so many came from the disk, not from the page cache. The way changes where the other one is better by
 * a tenth. */
void direct_choice_note(struct direct_choice *choice, bool is_direct, uint64_t bytes,
			uint64_t cpu_ns, uint64_t disk_bytes);
/* Are people to be told now which way it is? Once it is known, and of a change at most once a minute. */
bool direct_choice_says(struct direct_choice *choice, uint64_t now_ns);
/* us of a processor a MiB; 0: not measured. */
double direct_choice_us(const struct direct_choice *choice, bool is_direct);

/* ---- direct_aio.c ---- */

/* By what files on the descriptor's file system are read so: bytes, of places and memory. 0: they are not. */
uint32_t direct_align(int fd);

struct
    direct_queue { /* of one thread; zeros: none yet. It ends with its process, reads under way before that */
	bool is_open;
	unsigned long context;
};
struct direct_read {
	int fd; /* with O_DIRECT */
	uint8_t *to;
	uint64_t at;
	uint32_t bytes;
	int result; /* bytes, or negative errno */
};
struct direct_batch {
	struct direct_read *read;
	unsigned n; /* at most DIRECT_DEEP */
	/* Those of that number have ended; others may still be under way. NULL: nobody asks. */
	void (*ended)(void *arg, const unsigned *number, unsigned n);
	void *arg;
};
/* All of them; none is under way any more when it returns. 0, or negative errno: there is no such queue to be had, and nothing
 * was read. -EAGAIN: the node has no more now. */
int direct_queue_read(struct direct_queue *queue, const struct direct_batch *batch);

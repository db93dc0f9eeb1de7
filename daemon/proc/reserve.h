/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_PROC_RESERVE_H
#define DAEMON_PROC_RESERVE_H

/*
 * Slots' memory is reserved beside the loop: fallocate() fills 147 MiB of a slot with zeros in tens
 * of milliseconds, too long for a loop that serves everybody. A short-lived child does it and its
 * exit status tells how far it came. Another one then puts it into huge pages. One child of each
 * kind a variant at a time.
 */

#include <sys/queue.h>
#include <sys/types.h>
#include "base/base.h"

struct variant;
struct node;

struct reserve {
	pid_t pid; /* 0: nothing under way */
	uint32_t from, to;
	uint32_t reserved; /* slots, by now */
	pid_t gatherer;    /* 0: none */
	uint32_t gathered; /* slots below it are, or were seen to */
	bool is_mixed;     /* some of those that were reserved last are in small pages */
	bool is_small;     /* and of those that were seen to */
	bool is_refused;   /* huge pages are required, and the kernel did not give them */
};

struct reserve_leaving { /* a child that was killed and has not ended */
	LIST_ENTRY(reserve_leaving) link;
	pid_t pid;
	int slots_fd;
};

/* Begins reserving slots variant->slots .. to-1; their bytes are accounted at once. 0 or negative
 * errno. stream_reserved() follows. Nothing happens when a child is under way. */
int reserve_begin(struct variant *variant, uint32_t to);
/* A child ended. false: it was none of these. */
bool reserve_ended(struct node *node, pid_t pid, int status);
/* Does all of its memory that could lie in huge pages? */
bool reserve_is_huge(const struct variant *variant);
/* Huge pages are required and were refused: with which numbers, and what helps. */
void reserve_refusal(const struct variant *variant, char *ret, size_t size);
/* The variant ends, and so do its children: never waits for that. */
void reserve_cancel(struct variant *variant);
/* accessd ends: waits for those that were cancelled. */
void reserve_fini(struct node *node);

#endif

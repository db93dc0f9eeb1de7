/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Slots' memory is reserved beside the loop: fallocate() fills 147 MiB of a slot with zeros in tens
 * of milliseconds, too long for a loop that serves everybody. A short-lived child does it and its
 * exit status tells how far it came. Another one then puts it into huge pages. One child of each
 * kind a variant at a time.
 */

#include <sys/queue.h>
#include "base/base.h"

struct variant;
struct node;

struct reserve_leaving { /* a child that was killed and has not ended */
	LIST_ENTRY(reserve_leaving) link;
	pid_t pid;
	int slots_fd;
};

/* Begins reserving slots variant->slots .. to-1; their bytes are accounted at once. 0 or negative
 * errno. Nothing happens when a child is under way. */
int reserve_begin(struct variant *variant, uint32_t to);
struct reserve_done {
	struct variant *variant; /* NULL: nothing is reserved that was not before */
	uint32_t slots;          /* so many more */
	bool all_of_them;        /* as many as were asked for */
};
/* Has what is reserved, and was not seen to, put into huge pages beside all else. Nothing is lost if it cannot be done; where no
 * child can be started it is tried again after a second, and after twice as long each time, up to a minute. */
void reserve_gather(struct variant *variant);
/* A child ended. false: it was none of these. */
bool reserve_ended(struct node *node, pid_t pid, int status, struct reserve_done *ret);
/* Does all of its memory that could lie in huge pages? */
bool reserve_is_huge(const struct variant *variant);
/* Huge pages are required and were refused: with which numbers, and what helps. */
void reserve_refusal(const struct variant *variant, char *ret, size_t size);
/* The variant ends, and so do its children: never waits for that. */
void reserve_cancel(struct variant *variant);
/* accessd ends: waits for those that were cancelled. */
void reserve_fini(struct node *node);

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_GROUP_BROUGHT_H
#define DAEMON_GROUP_BROUGHT_H

/*
 * The plan log of a group under another accessd, which was killed: brought by a rank, or kept in a file
 * (group_keep.c).
 */

#include "base/base.h"
#include "sched/entry.h"
#include "sched/token.h"
#include "shmring/scroll.h"

struct brought {
	struct entry *entries; /* owned, and their arrays */
	size_t n, room;
	uint8_t id[SCROLL_ID];
	uint64_t origin, first_epoch;
	uint64_t epoch, place;  /* where the rank that brings it is in it */
	struct entry_rest rest; /* owned; what it leaves, and where it ends */
};

/*
 * Reads the scroll behind fd. is_named: it must be the log that the token names; else one that began
 * with the token, or with none if that is empty. Hands of more than `most` samples are taken in parts.
 * false: it is none, or does not fit, or has no memory; the caller calls brought_fini() in any case.
 */
bool brought_read(int fd, const struct token *token, bool is_named, const struct entry_set *set,
		  uint32_t most, struct brought *ret);
void brought_fini(struct brought *log);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_GROUP_H
#define DAEMON_GROUP_H

/*
 * The ranks of a job under the carousel: who belongs together, and the plan log that they share
 * (sched/carousel_log.c), shown to them as a scroll (shmring/scroll.h).
 */

#include <sys/queue.h>
#include <sys/types.h>
#include "base/base.h"
#include "daemon/group_keep.h"
#include "shmring/scroll.h"

struct carousel_action;
struct carousel_join;
struct conn;
struct job;
struct stream;
struct token;
struct variant;

struct group {
	LIST_ENTRY(group) link; /* in stream->groups */
	struct stream *stream;
	const struct variant *variant;
	uid_t uid;
	char *job;
	uint32_t ranks, batch;
	uint64_t epochs;
	uint64_t part;   /* checksum of its population, 0: the whole */
	uint32_t number; /* in the carousel */
	/* Its origin: hash of the token that it began with, 0: it began without; and in which epoch. */
	struct scroll scroll;
	int scroll_fd;
	struct keep keep;
	uint64_t *begun; /* bitmap: ranks that have been here */
	uint32_t present;
	uint64_t left_ns; /* when the last one left */
};

/* Finds or founds the group of conn's request and fills join for the rank. 0; else *code, diag. */
int group_enter(struct conn *conn, const struct token *token, struct carousel_join *join,
		struct group **ret, uint64_t *code, struct diag *diag);
/* A rank has joined, or is gone. */
void group_joined(struct group *group, uint32_t rank);
void group_left(struct group *group);
/* CAROUSEL_LOG: shows the newest entry to the group's ranks; fails those that are behind. */
void group_log(struct stream *stream, const struct carousel_action *action);
/* Groups that nobody came back to. */
void group_sweep(struct stream *stream, uint64_t now_ns);
void group_free_all(struct stream *stream);

#endif

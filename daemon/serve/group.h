/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The ranks of a job under the carousel: who belongs together, and the plan log that they share
 * (sched/carousel_log.c), shown to them as a plan log (shmring/plan_log.h).
 */

#include <sys/queue.h>
#include "daemon/serve/group_keep.h"
#include "shmring/plan_log.h"

struct brought;
struct carousel_action;
struct carousel_join;
struct conn;
struct domain;
struct request;
struct stream;
struct token;
struct variant;

struct group {
	LIST_ENTRY(group) link; /* in stream->users.groups */
	struct stream *stream;
	const struct variant *variant;
	uid_t uid;
	char *job;
	uint32_t ranks, batch;
	uint64_t epochs;
	uint64_t part;   /* checksum of its population, 0: the whole */
	uint32_t number; /* in the carousel */
	/* Its origin: hash of the token that it began with, 0: it began without; and in which epoch. */
	struct plan_log plan_log;
	struct domain *payer; /* whose share its memory is of: the founder's; a reference */
	int plan_log_fd;
	struct keep keep;
	uint64_t *begun; /* bitmap: ranks that have been here */
	bool is_resumed; /* it goes on with a log that was there before it */
	uint32_t present;
	uint64_t left_ns; /* when the last one left */
	uint64_t since;   /* its jobs', from when the first of those present came */
};

/* What the log of a group that a request founds is said to begin with: 0 without a token. */
uint64_t group_origin(const struct request *request);
/* Is there a group that conn's request belongs to, or that stands in its way? If there is none, a log that is
 * kept or brought is gone on with. */
bool group_is_there(struct conn *conn, const struct token *token, uint64_t origin);
/* Finds or founds the group of conn's request and fills join for the rank. log: what a founder begins with, of
 * which the group takes what it needs, or NULL, where there was no memory for it. 0; else *code, diag. */
int group_enter(struct conn *conn, const struct token *token, uint64_t origin, struct brought *log,
		struct carousel_join *join, struct group **ret, uint64_t *code, struct diag *diag);
/* What the rank had of its token's plan is lacking in the version that others went on with: the code to refuse with, and diag. */
int group_refuse_parted(const struct conn *conn, struct diag *diag);
/* A rank has joined, or is gone. */
void group_joined(struct group *group, uint32_t rank);
void group_left(struct group *group);
/* CAROUSEL_LOG: shows the newest entry to the ranks of the group, which it returns; NULL: there is none. */
struct group *group_log(struct stream *stream, const struct carousel_action *action);
/* Groups that nobody came back to. */
void group_sweep(struct stream *stream, uint64_t now_ns);
/* The stream is LOST, or FAILED: whoever comes back founds its groups anew, with their logs, though ranks that have not
 * noticed are still in these. */
void group_leave_all(struct stream *stream);
void group_free_all(struct stream *stream);

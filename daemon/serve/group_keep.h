/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A group's plan log in a file, for the accessd that comes after one that was killed (group_keep.c).
 */

#include <sys/queue.h>
#include "base/hash.h"
#include "shmring/plan_log.h"

struct request;

#define KEEP_NAME 104

struct kept;
struct loop;
struct loop_watch;

/* Those of groups that are not here, of an accessd before us or of ours. */
struct kept_logs {
	const char *folder;
	int fd;                   /* of it; -1: no log is kept */
	struct loop_watch *timer; /* NULL: none yet */
	bool stays; /* accessd ends: what is left now is its ranks', however much it is */
	LIST_HEAD(, kept) list; /* what was left last comes first */
};

struct keep_job { /* whose log it is */
	const struct hash_id *pipeline;
	uid_t uid;
	const struct request *request;
};

struct keep {
	struct kept_logs *logs;
	uid_t uid;
	int fd;                    /* -1: the log is not kept, or not by this group any more */
	bool is_lent;              /* others find it, and ranks may still be in the group */
	uint64_t saved;            /* end of the log as far as it is in the file */
	char temporary[KEEP_NAME]; /* its name until keep_publish(), then empty */
	char name[KEEP_NAME];
};

/* Begins to keep the log of a group that the request founds. What fails is logged, and the log is
 * then not kept: ranks that come back bring it. */
void keep_begin(struct keep *keep, struct kept_logs *logs, const struct keep_job *of,
		const struct plan_log *plan_log);
void keep_publish(
    struct keep *keep,
    const struct plan_log *plan_log); /* from now on others find it, and none before */
void keep_save(struct keep *keep, const struct plan_log *plan_log); /* after each entry */
/* over: nobody will come back to it. */
void keep_end(struct keep *keep, bool over);
/* The group ends soon, and ranks may come back to its log: keep_end() says when they cannot be in it any more. */
void keep_lend(struct keep *keep);
/* All ranks are gone, and may come back. begun (taken): bitmap, of so many ranks, of those that have been here; one that
 * begins anew, without a token, is another run; NULL: others may be left, that have less of the log. */
void keep_leave(struct keep *keep, uint64_t *begun, uint32_t ranks);

/* Reads which logs there are, before anybody is served; and forgets that. */
void keep_load(struct kept_logs *logs, const char *folder, int folder_fd);
void keep_unload(struct kept_logs *logs);
/* From now on those that are too old are removed in their time. 0 or negative errno. */
int keep_watch(struct kept_logs *logs, struct loop *loop);

/*
 * The log that was kept for the request, by an accessd before us or for a group that ended: the one of the plan that log is of
 * (NULL: none is), else one that began with the same token, a minute long. Its file, which is the caller's, or -1: there is none.
 */
int keep_find(struct kept_logs *logs, const struct keep_job *of, const uint8_t *log,
	      uint64_t origin);
/* Copies some more of such a file into a new memfd; *ret_is_whole: that was all, and it is sealed as a plan log
 * is. false: it cannot be copied. */
bool keep_copy(int from, int to, bool *ret_is_whole);

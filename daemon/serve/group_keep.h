/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVE_GROUP_KEEP_H
#define DAEMON_SERVE_GROUP_KEEP_H

/*
 * A group's plan log in a file, for the accessd that comes after one that was killed (group_keep.c).
 */

#include "base/base.h"
#include "shmring/plan_log.h"

struct conn;
struct node;

#define KEEP_NAME 104

struct keep {
	struct node *node;
	int fd;                    /* -1: the log is not kept */
	uint64_t saved;            /* end of the log as far as it is in the file */
	char temporary[KEEP_NAME]; /* its name until keep_publish(), then empty */
	char name[KEEP_NAME];
};

/* Begins to keep the log of a group that conn's request founds. What fails is logged, and the log is
 * then not kept: ranks that come back bring it. */
void keep_begin(struct keep *keep, const struct conn *conn, const struct plan_log *plan_log);
void keep_publish(struct keep *keep);                               /* from now on others find it */
void keep_save(struct keep *keep, const struct plan_log *plan_log); /* after each entry */
/* over: nobody will come back to it. */
void keep_end(struct keep *keep, bool over);

/* Reads which logs there are, before anybody is served; and forgets that. */
void keep_load(struct node *node);
void keep_unload(struct node *node);

/*
 * The log that an accessd before us kept for conn's request: the one named log (NULL: none is), else one
 * that began with the same token. Its file, which is the caller's, or -1: there is none. Removes what is
 * too old to be asked for.
 */
int keep_find(const struct conn *conn, const uint8_t *log, uint64_t origin);
/* Copies some more of such a file into a new memfd; *ret_is_whole: that was all, and it is sealed as a plan log
 * is. false: it cannot be copied. */
bool keep_copy(int from, int to, bool *ret_is_whole);

#endif

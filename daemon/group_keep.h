/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_GROUP_KEEP_H
#define DAEMON_GROUP_KEEP_H

/*
 * A group's plan log in a file, for the accessd that comes after one that was killed (group_keep.c).
 */

#include "base/base.h"
#include "shmring/scroll.h"

struct conn;
struct place;

#define KEEP_NAME 104

struct keep {
	const struct place *place;
	int fd;                    /* -1: the log is not kept */
	uint64_t saved;            /* end of the log as far as it is in the file */
	char temporary[KEEP_NAME]; /* its name until keep_publish(), then empty */
	char name[KEEP_NAME];
};

/* Begins to keep the log of a group that conn's request founds. What fails is logged, and the log is
 * then not kept: ranks that come back bring it. */
void keep_begin(struct keep *keep, const struct conn *conn, const struct scroll *scroll);
void keep_publish(struct keep *keep);                           /* from now on others find it */
void keep_save(struct keep *keep, const struct scroll *scroll); /* after each entry */
/* over: nobody will come back to it. */
void keep_end(struct keep *keep, bool over);

/*
 * The log that an accessd before us kept for conn's request: the one named log (NULL: none is), else one
 * that began with the same token. A sealed memfd, which is the caller's, or -1: there is none. Removes
 * what is too old to be asked for.
 */
int keep_find(const struct conn *conn, const uint8_t *log, uint64_t origin);

#endif

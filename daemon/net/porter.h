/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Descriptors that others made never come into accessd before a porter, a process of its own for each
 * uid, has looked at them, and end there. All that accessd gets is memory: closing it waits for nobody.
 */

#include <sys/queue.h>
#include "base/base.h"

struct errand;
struct loop;
struct porter;
struct reaper;
struct wire_in;

struct porters { /* but for loop and reaper zeroed: none, and none can be started */
	struct loop *loop;
	struct reaper *reaper; /* that their processes are left to */
	const char *program; /* that is a porter when it is started as PORTER_NAME: accessd's own */
	LIST_HEAD(porters_at_work, porter) list;
	LIST_HEAD(porters_partings, parting) partings;
	struct loop_watch *retry;
	unsigned n;
	uint64_t next_id;
};

/* The message, or why there is none: wire_recv()'s outcomes, WIRE_E_CLOSED also when the porter died.
 * Descriptors that are no memory are not there (-1), but counted. in is the caller's. */
typedef void (*porter_fn)(void *arg, int r, struct wire_in *in);

/* Has the next message of sock fetched, which is uid's; nobody may read there meanwhile. fn(arg, ...) is
 * called at a later turn, unless porter_cancel() comes first. 0, or negative errno: there is no porter. */
int porter_fetch(struct porters *porters, uid_t uid, int sock, porter_fn fn, void *arg,
		 struct errand **ret);
void porter_cancel(struct errand **errand); /* NULL is fine */
/* Closes a socket that the uid writes to (after hanging up), or memory that he or accessd made, where that takes nobody's
 * time: what nobody read of a socket ends, and a GiB of memory takes half a second to give back. Also once it is not
 * mapped any more. *fd is -1 then; -1 is fine. */
void porter_close(struct porters *porters, uid_t uid, int *fd);
/* Of his, what is not closed yet. */
unsigned porter_closes(const struct porters *porters, uid_t uid);
/* Waits for nobody. */
void porter_fini(struct porters *porters);

/* No user, for porter_close(): memory that accessd made itself. Nobody can make this porter wait. */
#define PORTER_OWN ((uid_t)-1)
#define PORTER_NAME "accessd-porter" /* accessd that was started as this is one */
int porter_main(void);

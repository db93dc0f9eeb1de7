/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A child of accessd that is always to be there: it is heard, and when it dies another one is started, after a pause
 * where that happens again and again. The log has NAME-start (that failed), NAME-died, NAME-unreachable and
 * NAME-hopeless of it.
 */

#include <sys/queue.h>
#include "base/items.h"
#include "daemon/loop.h"
#include "daemon/proc/child.h"
#include "daemon/proc/hearing.h"

struct keeper_kind {
	const char *name;  /* "reader" */
	const char *lacks; /* for people: accessd has no workers: ... */
	const char *each;  /* ... "6 worker parents in a row failed at once": what is between */
	const char *then;  /* what follows its death, for people */
	const char *end;   /* its death, for who looks for what holds the loop */
	uint64_t pause_ns; /* after its death, at least */
	bool fetches;      /* it may say something with descriptors */
	int (*start)(void *arg,
		     struct diag *diag); /* keeper_start(), and what it must know first */
	hearing_fn said;
	/* keeper_died(), keeper_again(), and what it leaves; cpu_ns: what it used */
	void (*died)(void *arg, int status, uint64_t cpu_ns);
	void (*restarted)(
	    void *arg); /* there is one in the place of one that died; NULL: nobody asks */
	void (*hopeless)(void *arg, const char *text); /* it dies again and again; NULL: the same */
};

LIST_HEAD(keepers, keeper);
struct keeper {
	LIST_ENTRY(keeper) link;        /* among the node's */
	const struct keeper_kind *kind; /* NULL: it was never begun */
	void *arg;                      /* its calls' */
	struct child child;
	const struct child_wants *wants;
	struct hearing hearing;
	struct loop_watch *restart;
	struct child_luck luck;
	struct diag last; /* what the last one failed of */
};

/* No child yet. wants is borrowed. 0 or negative errno. */
int keeper_begin(struct keeper *keeper, const struct keeper_kind *kind, void *arg,
		 const struct child_wants *wants);
/* Starts the program arguments[0], with the option --as if it is to be somebody else. arguments ends with NULL. 0 or
 * negative errno with diag. */
int keeper_start(struct keeper *keeper, const char *const *arguments, struct diag *diag);
/* Starts it, or tries again later: of a keeper. */
void keeper_restart(void *arg);
/* Sends it a message; one that cannot be reached is killed. */
void keeper_tell_of(struct keeper *keeper, uint16_t type, const struct wire_part *parts);
#define keeper_tell(keeper, type, ...) keeper_tell_of(keeper, type, WIRE_PARTS(__VA_ARGS__))
/* Reads what it said, base/items.h says how. false: it makes no sense, and the log has NAME-message. */
bool keeper_reads(const struct keeper *keeper, const struct wire_in *in,
		  const struct items_type *types, size_t n, void *ret);
/* Whose child was that one; pid 0: whose has ended, its status and CPU time (child_has_ended()). NULL: nobody's. */
struct keeper *keeper_of_ended(struct keepers *keepers, pid_t pid, int *ret_status,
			       uint64_t *ret_cpu_ns);
/* It has ended: it is there no more, ... */
void keeper_lost(struct keeper *keeper);
/* ... the log says so, and then another one is to be started. */
void keeper_died(struct keeper *keeper, int status);
void keeper_again(struct keeper *keeper);
/* No other one is started, and this one is heard no more: it is to end. Also where it was never begun. */
void keeper_end(struct keeper *keeper);

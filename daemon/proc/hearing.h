/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a child of ours says: a message a turn of the loop, so that everybody else has his turn after each, and
 * no more than a share of the time, so that one that a hostile file made its own costs the node no more
 * than that.
 */

#include "base/wire.h"
#include "daemon/loop.h"
#include "daemon/proc/child.h"

/* One message. false: an honest child never says that, and this one is killed. */
typedef bool (*hearing_fn)(void *arg, struct wire_in *in);

struct errand;
struct porters;

struct hearing { /* zeroed: nobody is heard */
	struct loop *loop;
	/* The caller's; it has a pid and a socket as long as it is heard */
	const struct child *child;
	hearing_fn fn;
	void *arg;
	struct loop_watch *watch, *rest;
	struct porters *porters; /* who fetch its descriptors; NULL: it has none to give */
	uid_t uid;
	struct errand *errand;      /* a porter fetches its next message */
	uint64_t since_ns, took_ns; /* what its messages took since then */
};

/* Hears the child until it hangs up, says what makes no sense, or hearing_end(); in the first two cases it is
 * killed. 0 or negative errno. */
int hearing_begin(struct hearing *hearing, struct loop *loop, const struct child *child,
		  hearing_fn fn, void *arg);
/* It may say something with descriptors, which are that uid's. */
void hearing_fetches(struct hearing *hearing, struct porters *porters, uid_t uid);
void hearing_end(struct hearing *hearing);

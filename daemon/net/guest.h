/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A user who is connected, however often: what all his connections together may say to us in a while. Each
 * message of each connection waits for its turn; a user with many connections would have many turns.
 */

#include <sys/queue.h>
#include "base/base.h"

#define GUEST_WINDOW_NS UINT64_C(50000000)
#define GUEST_MOST 4000    /* units in a window */
#define GUEST_MESSAGE 1    /* a message that only says something */
#define GUEST_QUESTION 100 /* one that is answered: 0.1 to 1 ms of the loop's time */

struct guest {
	LIST_ENTRY(guest) link;
	uid_t uid;
	unsigned conns;
	uint64_t since_ns;
	uint64_t units; /* since then */
};
LIST_HEAD(guest_list, guest);

/* The guest of that uid, a reference; NULL: out of memory. */
struct guest *guest_ref(struct guest_list *list, uid_t uid);
void guest_unref(struct guest *guest); /* NULL is fine */
/* May he say something now? If not, he may when the window ends. */
bool guest_may_speak(struct guest *guest, uint64_t now_ns);
/* He did. */
void guest_spoke(struct guest *guest, uint64_t units);

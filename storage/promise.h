/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_PROMISE_H
#define STORAGE_PROMISE_H

/*
 * What an owner knows of values that he does not have: who said that he makes it, and who waits for that. So each file
 * is read once and each form made once, by whoever needs it first. A promise holds for a while and binds nobody: when
 * its time is over, or its maker is gone, those who waited are on their own.
 *
 * Arithmetic on memory that is there from the beginning: no I/O, no clock, no lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

#define PROMISE_SELF UINT32_MAX /* as maker or waiter: this node */

struct promise_waiter {
	struct promise_waiter *next;
	struct hash_id group;
	uint64_t sample, id; /* id: of his question */
	uint32_t peer, room;
};

enum promise_answer {
	PROMISE_MAKE,  /* nobody does: it is the asker who makes it now */
	PROMISE_WAITS, /* it is being made, and he will be among those that wait */
	PROMISE_FULL,  /* as MAKE, but there was no room to note anything */
};

struct promises;

/* NULL: not enough memory. So many promises, and waiters; a promise holds that long. */
struct promises *promise_new(unsigned most, unsigned most_waiters, uint64_t lasts_ns);
void promise_free(struct promises *promises); /* NULL is fine */

enum promise_answer promise_ask(struct promises *promises, const struct promise_waiter *asker,
				uint64_t now_ns);
/* The same for who cannot make it: does he wait? */
bool promise_join(struct promises *promises, const struct promise_waiter *asker);
/* That peer makes it, if nobody does yet. */
void promise_note(struct promises *promises, const struct hash_id *group, uint64_t sample,
		  uint32_t peer, uint64_t now_ns);

/* Lists of waiters, which the caller gives back when he answered them: promise_answered(). */

/* It was made: who waits for it. Until its time is over who asks waits, as it may still be on its way to the disk:
 * promise_kept(). */
struct promise_waiter *promise_made(struct promises *promises, const struct hash_id *group,
				    uint64_t sample);
/* Who waits for what was made: to be looked for again. */
struct promise_waiter *promise_kept(struct promises *promises);
/* Whose time is over. */
struct promise_waiter *promise_expired(struct promises *promises, uint64_t now_ns);
/* A peer is gone: who waits for what he makes. Who he is waits for nothing. */
struct promise_waiter *promise_gone(struct promises *promises, uint32_t peer);
/* NULL is fine. */
void promise_answered(struct promises *promises, struct promise_waiter *list);

unsigned promise_count(const struct promises *promises, unsigned *ret_waiters);

#endif

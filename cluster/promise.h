/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an owner knows of values that he does not have: who said that he makes it, and who waits for that. So each file
 * is read once and each form made once, by whoever needs it first.
 *
 * A promise binds nobody. How long a maker takes depends on how much he has in front of it, so no fixed time will do: it
 * holds as long as he keeps others. It is over when he has kept none for a while, or has kept one that he gave that
 * much later (so this one is bad there, or nobody there wants it any more). Then, or when he is gone, it passes to who
 * has waited longest: the others go on waiting, for him.
 *
 * Arithmetic on memory that is there from the beginning: no I/O, no clock, no lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

#define PROMISE_SELF UINT32_MAX /* as maker or waiter: this node */
#define PROMISE_PEERS 31        /* others, numbered from 0 */

struct promise_waiter {
	struct promise_waiter *next;
	struct hash_id group;
	uint64_t sample, id; /* id: of his question */
	uint64_t since_ns;
	uint32_t peer, room;
};

enum promise_answer {
	PROMISE_MAKE,  /* nobody does: it is the asker who makes it now */
	PROMISE_WAITS, /* it is being made, and he will be among those that wait */
	PROMISE_FULL, /* as MAKE, but there was no room to note anything, or it is too much like others */
};

struct promises;

/* NULL: not enough memory. So many promises, and waiters; a while has so many ns. */
struct promises *promise_new(unsigned most, unsigned most_waiters, uint64_t lasts_ns);
void promise_free(struct promises *promises); /* NULL is fine */

enum promise_answer promise_ask(struct promises *promises, const struct promise_waiter *asker,
				uint64_t now_ns);
/* That peer makes it, if nobody does yet. false: somebody does, or it cannot be noted. */
bool promise_note(struct promises *promises, const struct hash_id *group, uint64_t sample,
		  uint32_t peer, uint64_t now_ns);

/* Lists of waiters, which the caller gives back when he answered them: promise_answered(). */

/* It was made: who waits for it. For a while more who asks waits, as it may still be on its way to the disk:
 * promise_kept(). */
struct promise_waiter *promise_made(struct promises *promises, const struct hash_id *group,
				    uint64_t sample, uint64_t now_ns);
/* It is not, and nobody could: who waits for it. */
struct promise_waiter *promise_unmade(struct promises *promises, const struct hash_id *group,
				      uint64_t sample, uint64_t now_ns);
/* Who waits for what was made: to be looked for again. */
struct promise_waiter *promise_kept(struct promises *promises);
/* Promises that are over: to whom they passed, who make it now. */
struct promise_waiter *promise_expired(struct promises *promises, uint64_t now_ns);
/* Who has waited since then or longer for what is not made yet: to ask again. */
struct promise_waiter *promise_patient(struct promises *promises, uint64_t since_ns);
/* A peer is gone: to whom what he was to make passed. Who he is waits for nothing. */
struct promise_waiter *promise_gone(struct promises *promises, uint32_t peer, uint64_t now_ns);
/* NULL is fine. */
void promise_answered(struct promises *promises, struct promise_waiter *list);

unsigned promise_count(const struct promises *promises, unsigned *ret_waiters);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Grant, take, give back: the two sides of a rank's inbox and outbox (layout.h has the states).
 * A grant is not a pin: untaken grants can always be reclaimed. Everything here is a few loads and
 * stores; nothing sleeps, nothing enters the kernel.
 */

#include "base/base.h"
#include "shmring/layout.h"

enum {
	GRANT_E_NONE = 1, /* nothing posted that is not looked at yet */
	GRANT_E_PINS = 2, /* the rank holds LAYOUT_MAX_PINS already */
	GRANT_E_FULL = 3, /* the ring has no room: ends of untaken grants are not known yet */
	GRANT_E_HELD = 4, /* revoke: the rank has (or may have) taken it; grant_poll() will tell */
	GRANT_E_BAD = 5,  /* memory that is no inbox or outbox */
};

struct grant { /* private copy of an entry */
	uint64_t number, instance, epoch;
	uint32_t slot, first, count, flags;
};

/* ---- memory (grant_memory.c) ---- */
/* accessd: makes both memories, mapped here (inbox writable then sealed FUTURE_WRITE; outbox
 * writable by the rank). 0 or negative errno; fds are the caller's, to pass on and close. c_next is
 * 1 from the start: nothing was looked at yet. */
int grant_memory_new(struct layout_inbox **ret_inbox, int *ret_inbox_fd,
		     const struct layout_outbox **ret_outbox, int *ret_outbox_fd);
void grant_memory_free(struct layout_inbox *inbox, const struct layout_outbox *outbox);
/* rank: maps inbox read-only, outbox writable; checks seals, magic, version, size. 0, GRANT_E_BAD,
 * negative errno. */
int grant_memory_attach(int inbox_fd, int outbox_fd, const struct layout_inbox **ret_inbox,
			struct layout_outbox **ret_outbox);
void grant_memory_detach(const struct layout_inbox *inbox, struct layout_outbox *outbox);

/* ---- the rank's side (grant.c): one thread at a time (the caller's lock) ---- */
struct grant_rank {
	const struct layout_inbox *inbox;
	struct layout_outbox *outbox;
	uint64_t next;                  /* number of the next grant to look at */
	uint64_t held[LAYOUT_MAX_PINS]; /* grant numbers, 0: free */
};
void grant_rank_init(struct grant_rank *rank, const struct layout_inbox *inbox,
		     struct layout_outbox *outbox);
/* Takes the next grant that was not revoked. 0, GRANT_E_NONE, GRANT_E_PINS (also when nothing is
 * posted: what comes could not be taken). */
int grant_take(struct grant_rank *rank, struct grant *ret);
/* The same of the one that grant_peek() found. GRANT_E_NONE, too, where that does not stand any more. */
int grant_take_one(struct grant_rank *rank, uint64_t number, struct grant *ret);
/* Would grant_take() find one? (GRANT_E_PINS aside.) */
bool grant_is_posted(const struct grant_rank *rank);
/* What grant_take() would look at next, as far as can be said without taking it: accessd may revoke it, and use its
 * place again, at any moment, so it is a hint. false: nothing is posted. */
bool grant_peek(const struct grant_rank *rank, struct grant *ret);
/* Is there a pin for it? */
bool grant_has_pin(const struct grant_rank *rank);
/* Gives grant number back (all of it consumed). A number that is not held changes nothing. */
void grant_release(struct grant_rank *rank, uint64_t number);
/* Before sleeping: tells accessd to send a wake. The caller then re-checks and sleeps. */
void grant_arm(struct grant_rank *rank);
void grant_disarm(struct grant_rank *rank);
/* Does accessd want a message: after grant_release(); after grant_arm(), if the caller then sleeps? */
bool grant_wants_kick(const struct grant_rank *rank);
bool grant_wants_sleep(const struct grant_rank *rank);

/* ---- accessd's side (grant.c): loop thread only ---- */
enum grant_fate { GRANT_UNTAKEN = 0, GRANT_TAKEN, GRANT_DONE, GRANT_RETURNED, GRANT_RECLAIMED };
struct grant_look { /* private copy of the words of an outbox that matter */
	uint64_t next, take[LAYOUT_MAX_PINS], result[LAYOUT_GRANT_RING];
};
struct grant_server {
	struct layout_inbox *inbox;
	const struct layout_outbox *outbox;
	uint64_t posted;  /* number of the last grant posted */
	uint64_t settled; /* all grants up to this one have ended, or were left out */
	struct grant ledger[LAYOUT_GRANT_RING];
	uint8_t fate[LAYOUT_GRANT_RING];
	bool revoked[LAYOUT_GRANT_RING];
	bool seen[LAYOUT_GRANT_RING];   /* a revoke saw it held; nothing of it is reported yet */
	uint8_t due[LAYOUT_GRANT_RING]; /* its end is known (DONE, RETURNED) but not reported yet */
	uint64_t woken;                 /* last c_armed that was answered with a wake */
	struct grant_look absorbed;     /* while !has_changed, grant_poll() finds nothing in it */
	bool has_changed;               /* the ledger, since then */
	/* words that made no sense last, so that each counts once: results, take words, c_next */
	uint64_t nonsense[LAYOUT_GRANT_RING + LAYOUT_MAX_PINS + 1];
};
void grant_server_init(struct grant_server *server, struct layout_inbox *inbox,
		       const struct layout_outbox *outbox);
/* Posts a grant (number is set in ret_number). 0 or GRANT_E_FULL. */
int grant_post(struct grant_server *server, const struct grant *grant, uint64_t *ret_number);
/* The oldest grant after that number whose end is not known, 0: none is. */
uint64_t grant_next_open(const struct grant_server *server, uint64_t after);
/* Marks it revoked, then looks. 0: reclaimed for good (also if it was before). GRANT_E_HELD: poll
 * will tell whether the rank has it for good (TAKEN) or yields (RETURNED). GRANT_E_NONE: it has ended
 * otherwise, or never was. */
int grant_revoke(struct grant_server *server, uint64_t number);
/* Reads the outbox once and reports each change of fate, oldest first, one a call:
 * 0 and *ret (fate TAKEN, DONE or RETURNED), or GRANT_E_NONE. TAKEN is for good: DONE alone follows
 * it, and is always preceded by it; RETURNED never is.
 * Words that make no sense are ignored; *ret_nonsense (if not NULL) goes up by one for each that
 * is new. Call until GRANT_E_NONE: words are judged when all that makes sense is absorbed. */
int grant_poll(struct grant_server *server, struct grant *ret, enum grant_fate *ret_fate,
	       uint64_t *ret_nonsense);
/* Does the rank sleep with an unanswered arm? If so answers it: the caller sends one wake. */
bool grant_wants_wake(struct grant_server *server);
bool grant_is_waiting(const struct grant_server *server); /* asleep in oa_next(), as it says */
bool grant_is_asleep(const struct grant_server *server);  /* the same, and no wake is on its way */

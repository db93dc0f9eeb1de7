/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The parts of access-reader that have to do with other nodes, among themselves. What the rest of it sees is in
 * reader_parts.h.
 */

#include "cluster/promise.h"
#include "cluster/value.h"
#include "storage/reader_parts.h"

/* ---- reader_asks.c: tasks that wait for a value ---- */

#define ASKS_MOST 4096 /* a power of two: its bits of an id are the place */

struct reader_ask {
	struct reader_ask *next;    /* in whose list it is */
	uint64_t id;                /* 0: nobody may answer any more */
	uint32_t peer;              /* who is asked; PROMISE_SELF: it is being made for this node */
	struct reader_queue *queue; /* busy with it */
	struct reader_shared *shared; /* the queue's */
	bool is_last;                 /* his answer is the last one: nobody else is asked */
	bool has_waited;              /* while somebody made it: how long it took says nothing */
	struct queue_task task;
	struct hash_id group;
	uint64_t since_ns, until_ns;
	uint32_t came; /* bytes of a crop index that lies in the arena; its file is to be read */
};

int reader_asks_init(void); /* 0 or -ENOMEM */
/* Waits from now on, and its id; 0: there are as many as can be. From then on whoever takes it ends it. */
uint64_t reader_asks_add(const struct reader_ask *ask);
/* Who has one of these has it alone: answers it, and gives it back with reader_asks_free(). */
/* NULL: it waits no longer, or for somebody else, or something else. */
struct reader_ask *reader_asks_take(uint64_t id, uint32_t peer, const struct hash_id *group,
				    uint64_t sample);
struct reader_ask *reader_asks_take_of(uint32_t peer); /* all of that peer: a list */
/* Whose time is over, or whose queue leaves: a list. */
struct reader_ask *reader_asks_take_late(uint64_t now_ns);
/* Who have waited since then, at most so many: a list. */
struct reader_ask *reader_asks_take_old(uint64_t since_ns, unsigned most);
void reader_asks_free(struct reader_ask *ask);
unsigned reader_asks_count(void);

/* ---- reader_guests.c: groups that peers said, open while they are used; from the peers' thread ---- */

/* Of all that are open together: 12 bytes of tables each. A larger group is shared with nobody. */
#define READER_GUEST_SAMPLES (UINT64_C(32) << 20)

struct reader_guest {
	struct hash_id id;
	uint64_t samples;
	unsigned form;                    /* 0: nothing is here */
	uint32_t peers;                   /* who said it, a bit each */
	bool is_sure;                     /* a stream of this node said so, too */
	uint64_t turn;                    /* of the last use */
	bool is_open;                     /* with what follows */
	struct store_group *group;        /* owned; NULL: there is no store */
	struct reader_resident *resident; /* owned; NULL: there is no memory */
	char *note;                       /* owned */
	/* Owned: a bit a sample whose source was looked at since then; NULL: none */
	uint8_t *looked;
	uint64_t looked_ns;
};

/* A GROUP, its note not checked yet. false: it cannot be had. */
bool reader_guests_say(const struct value_head *head, const uint8_t *note);
/* The group of a GET or PUT, open, and nobody else's until reader_guests_leave(); NULL: that peer did not say it, or it
 * has no such sample. store: NULL: there is none (yet). */
struct reader_guest *reader_guests_find(struct store *store, const struct value_head *head);
void reader_guests_leave(void);
/* Did its peer name the head's group? */
bool reader_guests_is_named(const struct value_head *head);
/* Of the one that reader_guests_find() gave: was the sample's source not looked at for READER_PEERS' while? */
bool reader_guests_is_due(struct reader_guest *guest, uint64_t sample);
void reader_guests_looked(const struct hash_id *group, uint64_t sample);
void reader_guests_gone(uint32_t peer);
void reader_guests_end(void);

/* ---- reader_tell.c: what is said, from any thread ---- */

struct reader_shared {
	struct hash_id id;
	uint64_t samples;
	unsigned form;
	/* Which of a job's nodes this one is, told behind the group's name; nodes 0: nothing of it */
	uint64_t key;
	uint32_t number, nodes;
	uint32_t told
	    [VALUE_MOST_PEERS]; /* under the lock of reader_tell.c: in which connection; 0: never */
	char note[];
};
/* false: no room, or no carrier. */
bool reader_tell(const struct value_head *head, const void *data);
/* The same behind the group's name, which is said once a connection. */
bool reader_tell_of(struct reader_shared *shared, const struct value_head *head, const void *data);
bool reader_tell_group(struct reader_shared *shared, uint32_t peer); /* only that name */
bool reader_tell_has_room(uint32_t bytes);                           /* behind a head */
struct rings reader_tell_by(const struct rings *to); /* from now on; the one before, the caller's */
void reader_tell_anew(uint32_t peer);                /* it knows no names any more */

#define PEERS_TICK_NS UINT64_C(50000000) /* how exactly time is kept */

/* ---- reader_owed.c: questions of peers that wait for room for their answers; any thread ---- */

struct reader_owed {
	struct value_head get;
	bool is_looked; /* its source was looked at for it: it is not done again */
};
bool reader_owed_init(void); /* false: not enough memory */
/* false: there are as many as can be. */
bool reader_owed_add(const struct value_head *get, bool is_looked);
/* The next one, if there is room for its answer; from the peers' thread. */
bool reader_owed_take(struct reader_owed *ret);
void reader_owed_gone(uint32_t peer);
unsigned reader_owed_count(void);

/* ---- reader_fetch.c: what this node's tasks ask for; from the peers' thread ---- */

void reader_fetch_have(const struct value_head *have, const uint8_t *value);
/* The owner has not got it: who was the owner before him may have. */
void reader_fetch_miss(const struct value_head *miss);
void reader_fetch_gone(uint32_t peer);
void reader_fetch_tick(uint64_t now_ns);
/* Of a task of this node's own, which waits for what is made here, also from the keeper: nothing comes of it; it has come; and
 * it has waited for long, so that it asks once more. */
void reader_fetch_none(const struct promise_waiter *waiter);
void reader_fetch_value(const struct promise_waiter *waiter, enum layout_from from, unsigned form,
			const uint8_t *value, uint32_t bytes);
void reader_fetch_patient(const struct promise_waiter *waiter);

/* ---- reader_answer.c: who waits for a value; any thread ---- */

bool reader_answer_init(void); /* false: not enough memory */
bool reader_answer_owns(const struct hash_id *group, uint64_t sample); /* this node does */
/* A sample of this node's own: does somebody make it already? Then he waits for it, else he is the one who makes it. */
bool reader_answer_waits(const struct promise_waiter *waiter);
/* Others who want it are to wait until it is made here. false: somebody makes it. */
bool reader_answer_promise(const struct reader_shared *shared, uint64_t sample);
/* He makes it himself. */
void reader_answer_miss(const struct promise_waiter *waiter);
void reader_answer_value(const struct promise_waiter *waiter, enum layout_from from, unsigned form,
			 const uint8_t *value, uint32_t bytes);
/* A value is here: to all who wait for it. */
void reader_answer_all(const struct value_head *put, enum layout_from from, const uint8_t *value);
/* None comes: each who waits looks for himself. */
void reader_answer_none(const struct hash_id *group, uint64_t sample);
void reader_answer_gone(uint32_t peer);
void reader_answer_tick(uint64_t now_ns);
bool reader_answer_is_awaited(void); /* is anything promised to anybody? */

/* ---- reader_serve.c: what peers say and ask for; from the peers' thread ---- */

bool reader_serve_init(void); /* its memory; from the main thread. false: not enough */
void reader_serve_take(const uint8_t *data, uint32_t bytes); /* an item of the carrier's: hostile */
void reader_serve_owed(void);                                /* what there is room for by now */
void reader_serve_tick(uint64_t now_ns); /* what was to be answered by now, and was not */
void reader_serve_gone(uint32_t peer);   /* no answer comes from there, and none goes there */
uint64_t reader_serve_nap_ns(void);      /* until something may be late */

/* What he gives is not taken, till he is connected anew; accessd does not name him again. */
void reader_serve_distrust(uint32_t peer);
bool reader_serve_distrusts(uint32_t peer);
/* A reading thread has looked whether the source still has that sample as it was: then he is answered. */
void reader_serve_looked(const struct value_head *get, bool is_same);

struct reader_look { /* at a sample's source, for a peer */
	struct reader_look *next;
	struct reader_queue *queue; /* busy with it */
	struct value_head get;
	uint64_t since_ns; /* it waits */
};

/* ---- reader_checks.c: some of what peers give is compared with the source ---- */

/* A HAVE or PUT is to be made here, too: it is not taken. */
bool reader_checks_begin(const struct value_head *head, const uint8_t *value);
/* One that was put here is to be, so nothing else of the sample is taken until then. */
bool reader_checks_waits(const struct hash_id *group, uint64_t sample);
void reader_checks_made(const struct hash_id *group, const struct rings_item *item);
void reader_checks_not_made(const struct hash_id *group, uint64_t sample);

/* ---- reader_spread.c: whose samples are, where a job's are spread over nodes; from any thread ---- */

#define READER_SPREAD_NOBODY (UINT32_MAX - 1) /* beside PROMISE_SELF */

void reader_spread_heard(const struct value_head *head); /* a SPREAD of a group that is known */
void reader_spread_gone(uint32_t peer);
bool reader_spread_tell(uint32_t peer); /* what he does not know yet. false: there is no room */
/* PROMISE_SELF, a peer, or READER_SPREAD_NOBODY: it says nothing of that sample. *ret_is_in: this node is one of the job's. */
uint32_t reader_spread_owner(const struct hash_id *group, uint64_t sample, bool *ret_is_in);

/* ---- reader_peers.c ---- */

void reader_peers_tell_spreads(void); /* soon, to all */
/* Is this node to make it though no job of its own needs it? It owns it, or would without a spread in which it is not. */
bool reader_peers_makes(const struct hash_id *group, uint64_t sample);

uint64_t reader_peers_id(uint32_t peer); /* of the node; 0: it is no member */
void reader_peers_wake(void);            /* its thread */

/* PROMISE_SELF: this node; as *ret_next, who it would be without the owner, also: there is no other. */
uint32_t reader_peers_owner(const struct hash_id *group, uint64_t sample, uint32_t *ret_next);
struct store *reader_peers_store_now(void); /* NULL: there is none, or not yet */
/* The peers' thread: takes what there is. false: time to end. */
bool reader_peers_turn(void);

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The handshake of grants, both sides of it in one file, as each edge has its partner on the other.
 *
 * A grant says "slot s holds what you need", and accessd may want it back at any moment. A rank
 * takes it by publishing that it does (R1) and then looking again whether it still stands (R2);
 * accessd takes it back by publishing that (A1) and then looking whether the rank has it (A2). Each
 * side stores first and loads second, all four sequentially consistent, so at least one of the two
 * sees the other (the store-buffering pattern, Dekker):
 *
 *   rank                                      accessd
 *   R1  c_take := k|HELD                      A1  d_word[k] := k|REVOKED
 *   R2  d_word[k] == k|POSTED ? has it        A2  c_take or c_result[k] ? held : reclaimed
 *       else c_result[k] := k|RETURNED
 *   R6  c_take := k|KEPT, having it
 *   R3  c_result[k] := k|DONE, when consumed
 *   R4  c_take := free
 *
 * If both see each other, the rank yields and says RETURNED, and accessd waits for exactly that
 * word. If accessd alone does, the rank has it, and says KEPT: the revoke was too late. The answer
 * must not wait for the batch's end, for what a job may be granted next hangs on it, and a caller
 * may keep a batch for as long as it likes while it asks for the next. A reclaimed grant needs no
 * answer, and a late RETURNED for one is no offence.
 *
 * The order of looking matters as much. accessd copies c_next first, then the take words, then the
 * results. A rank stores a grant's result before it uses the take word again, and its take before
 * it moves c_next, so whoever sees an effect also sees its cause: a take word that moved on implies
 * its old grant's result, and of three grants seen taken at least one is seen ended. A rank for
 * which that does not hold has broken the protocol, as has one that returns what it kept. All its words are hostile: each is copied once,
 * words that make no sense are counted and change nothing, what was seen once stays so (seen, due),
 * and no rank can hold more than LAYOUT_MAX_PINS grants, whatever it writes.
 *
 * The ledger (struct grant_server) is the truth. A number is posted only when the end of the one that
 * had its place before is known, so a word never stands for two grants at once. Where that one is
 * KEPT, for a job may hold a batch for as long as it likes while grants come and are withdrawn, the
 * number is left out, and the next one posted: the rank sees that d_posted is beyond it (W4). So what
 * is older than the ring and has not ended is KEPT, and lies behind the rank. The handshake is model-checked with all
 * interleavings in doc/models/grant.pml, and with both take words in pins.pml.
 *
 * Rejected: a pin count in shared memory (a dead or hostile rank leaves it wrong for ever); a mutex
 * between job and daemon (a stopped job stops the node); asking the rank before each eviction.
 */

#include "shmring/grant.h"

#define RING LAYOUT_GRANT_RING
#define WORD(number, low) ((number) << 8 | (low))
#define NUMBER_OF(word) ((word) >> 8)
#define LOW_OF(word) ((word)&0xff)

/* ---- the rank ---- */

void grant_rank_init(struct grant_rank *rank, const struct layout_inbox *inbox,
		     struct layout_outbox *outbox)
{
	*rank = (struct grant_rank){.inbox = inbox, .outbox = outbox, .next = 1};
}

static uint64_t word_of(const struct layout_inbox *inbox, uint64_t number)
{
	/* W2: seq_cst, pairs with A0, after W1: before sleeping, one of the two sees.
	 * Acquire part: the grant's other words, pairs with A0. */
	return atomic_load_explicit(&inbox->grant[number % RING].d_word, memory_order_seq_cst);
}

/*
 * Moves *next over revoked grants to the first that stands. A newer number in the place of *next
 * means that accessd has settled *next (reclaimed it) and reused the place, and all before it but what
 * the rank has taken. An older one, looked for when a later one was posted, means that *next was left
 * out.
 */
static BASE_HOT bool find_posted(const struct layout_inbox *inbox, uint64_t *next)
{
	for (;;) {
		uint64_t word = word_of(inbox, *next);

		if (NUMBER_OF(word) < *next) {
			/* W4: seq_cst as W2. Acquire part: all that was posted up to it. */
			if (atomic_load_explicit(&inbox->d_posted, memory_order_seq_cst) < *next)
				return false;
			word = word_of(inbox, *next);
		}
		if (NUMBER_OF(word) > *next)
			*next = BASE_MAX(*next + 1,
					 NUMBER_OF(word) - BASE_MIN(NUMBER_OF(word), RING - 1));
		else if (word == WORD(*next, LAYOUT_GRANT_POSTED))
			return true;
		else
			++*next;
	}
}

bool grant_is_posted(const struct grant_rank *rank)
{
	uint64_t next = rank->next;

	return find_posted(rank->inbox, &next);
}

static inline struct grant entry_of(const struct layout_inbox *inbox, uint64_t number)
{
	const struct layout_grant *entry = &inbox->grant[number % RING];

	return (struct grant){
	    .number = number,
	    .instance = entry->d_instance,
	    .epoch = entry->d_epoch,
	    .slot = entry->d_slot,
	    .first = entry->d_first,
	    .count = entry->d_count,
	    .flags = entry->d_flags,
	};
}

bool grant_peek(const struct grant_rank *rank, struct grant *ret)
{
	uint64_t next = rank->next;

	if (!find_posted(rank->inbox, &next))
		return false;
	*ret = entry_of(rank->inbox, next);
	return true;
}

static BASE_HOT void end(struct grant_rank *rank, unsigned pin, uint64_t number,
			 enum layout_result result)
{
	/* R3: release of the rank's reads of the slot, pairs with A4. */
	atomic_store_explicit(&rank->outbox->c_result[number % RING], WORD(number, result),
			      memory_order_release);
	/* R4: release of R3, pairs with A3; seq_cst before the look for a kick (K2), pairs with
	 * K1. */
	atomic_store_explicit(&rank->outbox->c_take[pin], WORD(number, LAYOUT_TAKE_FREE),
			      memory_order_seq_cst);
}

/* The handshake for one posted grant. false: it was revoked meanwhile, and has been returned. */
static BASE_HOT bool try_take(struct grant_rank *rank, unsigned pin, uint64_t number,
			      struct grant *ret)
{
	const struct layout_grant *entry = &rank->inbox->grant[number % RING];

	/* R1: seq_cst store, then R2; pairs with A2. */
	atomic_store_explicit(&rank->outbox->c_take[pin], WORD(number, LAYOUT_TAKE_HELD),
			      memory_order_seq_cst);
	/* R2: seq_cst load after R1; pairs with A1. */
	if (atomic_load_explicit(&entry->d_word, memory_order_seq_cst) !=
	    WORD(number, LAYOUT_GRANT_POSTED)) {
		end(rank, pin, number, LAYOUT_RESULT_RETURNED);
		return false;
	}
	*ret = entry_of(rank->inbox, number);
	rank->held[pin] = number;
	/* R6: release, after R2, before R5: a grant passed over that stands is seen KEPT; pairs
	 * with A3. */
	atomic_store_explicit(&rank->outbox->c_take[pin], WORD(number, LAYOUT_TAKE_KEPT),
			      memory_order_release);
	return true;
}

static unsigned find_pin(const struct grant_rank *rank, uint64_t number)
{
	unsigned pin = 0;

	while (pin < LAYOUT_MAX_PINS && rank->held[pin] != number)
		pin++;
	return pin;
}

bool grant_has_pin(const struct grant_rank *rank)
{
	return find_pin(rank, 0) < LAYOUT_MAX_PINS;
}

/* only: 0, or the number of the one that may be taken. */
static inline int take(struct grant_rank *rank, uint64_t only, struct grant *ret)
{
	unsigned pin = find_pin(rank, 0);
	bool taken = false;

	if (pin == LAYOUT_MAX_PINS)
		return GRANT_E_PINS;
	while (!taken && find_posted(rank->inbox, &rank->next) && (!only || rank->next == only))
		taken = try_take(rank, pin, rank->next++, ret);
	/* R5: release, after R1: a grant passed over was taken or revoked; pairs with A5. */
	atomic_store_explicit(&rank->outbox->c_next, rank->next, memory_order_release);
	return taken ? 0 : GRANT_E_NONE;
}

BASE_HOT int grant_take(struct grant_rank *rank, struct grant *ret)
{
	return take(rank, 0, ret);
}

int grant_take_one(struct grant_rank *rank, uint64_t number, struct grant *ret)
{
	return take(rank, number, ret);
}

BASE_HOT void grant_release(struct grant_rank *rank, uint64_t number)
{
	unsigned pin = find_pin(rank, number);

	if (number == 0 || pin == LAYOUT_MAX_PINS)
		return;
	end(rank, pin, number, LAYOUT_RESULT_DONE);
	rank->held[pin] = 0;
}

bool grant_wants_kick(const struct grant_rank *rank)
{
	/* K2: seq_cst load after R4, pairs with K1 (inbox.c): accessd sees the
	 * result or we see its wish. */
	return atomic_load_explicit(&rank->inbox->d_wants_kick, memory_order_seq_cst) &
	       LAYOUT_KICK_ENDS;
}

bool grant_wants_sleep(const struct grant_rank *rank)
{
	/* K3: seq_cst load after W1, pairs with K1 (inbox.c): accessd, which polls after it, sees the
	 * arm or we see its wish. */
	return !(atomic_load_explicit(&rank->inbox->d_wants_kick, memory_order_seq_cst) &
		 LAYOUT_KICK_NO_SLEEP);
}

void grant_arm(struct grant_rank *rank)
{
	uint64_t armed = atomic_load_explicit(&rank->outbox->c_armed, memory_order_relaxed);

	/* W1: seq_cst store before the re-check (W2), pairs with W3. */
	atomic_store_explicit(&rank->outbox->c_armed, armed + 1, memory_order_seq_cst);
}

void grant_disarm(struct grant_rank *rank)
{
	uint64_t armed = atomic_load_explicit(&rank->outbox->c_armed, memory_order_relaxed);

	atomic_store_explicit(&rank->outbox->c_awake, armed, memory_order_release);
}

/* ---- accessd: the ledger ---- */

void grant_server_init(struct grant_server *server, struct layout_inbox *inbox,
		       const struct layout_outbox *outbox)
{
	*server = (struct grant_server){.inbox = inbox, .outbox = outbox, .has_changed = true};
	server->nonsense[RING + LAYOUT_MAX_PINS] = 1; /* c_next as it is made */
}

/* Posted, and its end is not known. */
static bool is_open(const struct grant_server *server, uint64_t number)
{
	return server->ledger[number % RING].number == number && number &&
	       server->fate[number % RING] < GRANT_DONE;
}

/* Of those older than the ring, which are few: the rank has them. */
static uint64_t next_old(const struct grant_server *server, uint64_t after, uint64_t oldest)
{
	uint64_t next = 0;

	for (unsigned i = 0; i < RING; i++) {
		uint64_t number = server->ledger[i].number;

		if (number > after && number <= oldest && is_open(server, number) &&
		    (!next || number < next))
			next = number;
	}
	return next;
}

uint64_t grant_next_open(const struct grant_server *server, uint64_t after)
{
	uint64_t oldest = server->posted - BASE_MIN(server->posted, RING), next = 0;

	after = BASE_MAX(after, server->settled);
	if (after < oldest)
		next = next_old(server, after, oldest);
	for (uint64_t k = BASE_MAX(after, oldest) + 1; k <= server->posted && !next; k++)
		if (is_open(server, k))
			next = k;
	return next;
}

static void settle(struct grant_server *server, uint64_t number, enum grant_fate fate)
{
	uint64_t next;

	server->fate[number % RING] = (uint8_t)fate;
	server->has_changed = true;
	next = grant_next_open(server, server->settled);
	server->settled = next ? next - 1 : server->posted;
}

/* The number of the next grant. 0: there is no place for it. */
static uint64_t next_number(const struct grant_server *server)
{
	uint64_t number = server->posted + 1;

	for (unsigned left_out = 0; left_out <= LAYOUT_MAX_PINS; left_out++, number++) {
		uint64_t before = server->ledger[number % RING].number;

		if (!is_open(server, before))
			return number;
		if (server->fate[before % RING] != GRANT_TAKEN)
			return 0;
	}
	return 0;
}

int grant_post(struct grant_server *server, const struct grant *grant, uint64_t *ret_number)
{
	uint64_t number = next_number(server);
	struct layout_grant *entry = &server->inbox->grant[number % RING];

	if (!number)
		return GRANT_E_FULL;
	server->ledger[number % RING] = *grant;
	server->ledger[number % RING].number = number;
	server->fate[number % RING] = GRANT_UNTAKEN;
	server->revoked[number % RING] = server->seen[number % RING] = false;
	server->due[number % RING] = GRANT_UNTAKEN;
	server->posted = number;
	server->has_changed = true;
	entry->d_instance = grant->instance;
	entry->d_slot = grant->slot;
	entry->d_first = grant->first;
	entry->d_count = grant->count;
	entry->d_flags = grant->flags;
	entry->d_epoch = grant->epoch;
	/* A0: release of the entry and of the slot it speaks of, pairs with W2; seq_cst, as the
	 * rank's arm is looked for after it (W3). */
	atomic_store_explicit(&entry->d_word, WORD(number, LAYOUT_GRANT_POSTED),
			      memory_order_seq_cst);
	/* Seq_cst, after A0: pairs with W4. */
	atomic_store_explicit(&server->inbox->d_posted, number, memory_order_seq_cst);
	*ret_number = number;
	return 0;
}

/* ---- accessd: one look at the outbox ---- */

static void look(const struct grant_server *server, struct grant_look *ret)
{
	const struct layout_outbox *outbox = server->outbox;

	/* A5: acquire, before A2; pairs with R5. */
	ret->next = atomic_load_explicit(&outbox->c_next, memory_order_acquire);
	/* A2: seq_cst load after A1, pairs with R1. A3: its acquire part, pairs with R4. */
	for (unsigned pin = 0; pin < LAYOUT_MAX_PINS; pin++)
		ret->take[pin] = atomic_load_explicit(&outbox->c_take[pin], memory_order_seq_cst);
	/* A4: acquire, after A3; pairs with R3. */
	for (unsigned i = 0; i < RING; i++)
		ret->result[i] = atomic_load_explicit(&outbox->c_result[i], memory_order_acquire);
}

/* Notes the ends that the outbox tells, for good: no later word takes one back. A grant that was
 * not revoked, or was KEPT, cannot come back RETURNED. */
static void note_ends(struct grant_server *server, const struct grant_look *look)
{
	for (uint64_t k = 0; (k = grant_next_open(server, k));) {
		uint64_t i = k % RING;

		if (server->due[i] != GRANT_UNTAKEN)
			continue;
		if (look->result[i] == WORD(k, LAYOUT_RESULT_DONE))
			server->due[i] = GRANT_DONE;
		else if (look->result[i] == WORD(k, LAYOUT_RESULT_RETURNED) && server->revoked[i] &&
			 server->fate[i] == GRANT_UNTAKEN)
			server->due[i] = GRANT_RETURNED;
	}
}

/* Can the rank hold number besides all that it is known to hold? */
static bool has_pin_for(const struct grant_server *server, uint64_t number)
{
	unsigned held = 0;

	for (uint64_t k = 0; (k = grant_next_open(server, k));)
		if (k != number &&
		    (server->fate[k % RING] == GRANT_TAKEN || server->seen[k % RING]) &&
		    server->due[k % RING] == GRANT_UNTAKEN)
			held++;
	return held < LAYOUT_MAX_PINS;
}

static bool says(const struct grant_look *look, uint64_t number, enum layout_take_state state)
{
	bool said = false;

	for (unsigned pin = 0; pin < LAYOUT_MAX_PINS; pin++)
		said = said || look->take[pin] == WORD(number, state);
	return said;
}

/* Has the rank number for good? Lies beyond its pins are not believed. */
static bool is_kept(const struct grant_server *server, const struct grant_look *look,
		    uint64_t number)
{
	return says(look, number, LAYOUT_TAKE_KEPT) && has_pin_for(server, number);
}

/* Does the rank hold number, for all that can be known? */
static bool is_held(const struct grant_server *server, const struct grant_look *look,
		    uint64_t number)
{
	return server->seen[number % RING] || is_kept(server, look, number) ||
	       (says(look, number, LAYOUT_TAKE_HELD) && has_pin_for(server, number));
}

int grant_revoke(struct grant_server *server, uint64_t number)
{
	uint64_t i = number % RING;
	struct grant_look now;

	if (number == 0 || server->ledger[i].number != number)
		return GRANT_E_NONE;
	if (!is_open(server, number))
		return server->fate[i] == GRANT_RECLAIMED ? 0 : GRANT_E_NONE;
	server->revoked[i] = true;
	server->has_changed = true;
	/* A1: seq_cst store, then A2; pairs with R2. */
	atomic_store_explicit(&server->inbox->grant[i].d_word, WORD(number, LAYOUT_GRANT_REVOKED),
			      memory_order_seq_cst);
	if (server->fate[i] == GRANT_TAKEN)
		return GRANT_E_HELD;
	look(server, &now);
	note_ends(server, &now);
	if (server->due[i] != GRANT_UNTAKEN)
		return GRANT_E_HELD;
	server->seen[i] = is_held(server, &now, number);
	if (server->seen[i])
		return GRANT_E_HELD;
	settle(server, number, GRANT_RECLAIMED);
	return 0;
}

/* ---- accessd: what has changed ---- */

/* The next fate of a grant under way: UNTAKEN -> TAKEN -> DONE, or UNTAKEN -> RETURNED. */
static enum grant_fate fate_now(const struct grant_server *server, const struct grant_look *look,
				uint64_t number)
{
	enum grant_fate fate = server->fate[number % RING];
	enum grant_fate end = server->due[number % RING];

	if (end == GRANT_RETURNED || (end == GRANT_DONE && fate == GRANT_TAKEN))
		return end;
	if (fate == GRANT_UNTAKEN && (end == GRANT_DONE || is_kept(server, look, number)))
		return GRANT_TAKEN;
	return fate;
}

static bool result_makes_sense(const struct grant_server *server, uint64_t i, uint64_t word)
{
	uint64_t number = NUMBER_OF(word), result = LOW_OF(word);
	enum grant_fate fate = server->fate[i];

	if (word == 0)
		return true;
	if (number == 0 || number > server->ledger[i].number || number % RING != i ||
	    (result != LAYOUT_RESULT_DONE && result != LAYOUT_RESULT_RETURNED))
		return false;
	if (number < server->ledger[i].number)
		return true; /* of an earlier grant in this place */
	if (result == LAYOUT_RESULT_DONE)
		return fate == GRANT_DONE;
	return fate == GRANT_RETURNED || fate == GRANT_RECLAIMED;
}

static bool take_makes_sense(const struct grant_server *server, const struct grant_look *look,
			     uint64_t word)
{
	uint64_t number = NUMBER_OF(word);
	enum grant_fate fate = server->fate[number % RING];

	if (LOW_OF(word) == LAYOUT_TAKE_FREE)
		return number <= server->posted;
	if (number == 0 || number > server->ledger[number % RING].number)
		return false;
	/* An ended grant may still stand here: the rank is between R3 and R4, or before R2. */
	if (number < server->ledger[number % RING].number)
		return LOW_OF(word) <= LAYOUT_TAKE_KEPT;
	if (LOW_OF(word) == LAYOUT_TAKE_HELD) /* or between R1 and R2 */
		return fate != GRANT_UNTAKEN || is_held(server, look, number);
	return LOW_OF(word) == LAYOUT_TAKE_KEPT && (fate == GRANT_TAKEN || fate == GRANT_DONE);
}

/* The rank may pass over a grant that stands only by taking it. */
static bool next_makes_sense(const struct grant_server *server, const struct grant_look *look)
{
	if (look->next == 0 || look->next > server->posted + 1)
		return false;
	for (uint64_t k = 0; (k = grant_next_open(server, k)) && k < look->next;)
		if (server->fate[k % RING] == GRANT_UNTAKEN && !server->revoked[k % RING])
			return false;
	return true;
}

/* 1 for a word of the outbox that makes no sense and was not counted before. */
static uint64_t judge(uint64_t *counted, uint64_t word, bool makes_sense)
{
	if (makes_sense || *counted == word)
		return 0;
	*counted = word;
	return 1;
}

static uint64_t count_nonsense(struct grant_server *server, const struct grant_look *look)
{
	uint64_t *counted = server->nonsense, n = 0;

	for (uint64_t i = 0; i < RING; i++)
		n += judge(counted++, look->result[i],
			   result_makes_sense(server, i, look->result[i]));
	for (unsigned pin = 0; pin < LAYOUT_MAX_PINS; pin++)
		n += judge(counted++, look->take[pin],
			   take_makes_sense(server, look, look->take[pin]));
	return n + judge(counted, look->next, next_makes_sense(server, look));
}

int grant_poll(struct grant_server *server, struct grant *ret, enum grant_fate *ret_fate,
	       uint64_t *ret_nonsense)
{
	struct grant_look now;
	uint64_t nonsense;

	look(server, &now);
	if (!server->has_changed && memcmp(&now, &server->absorbed, sizeof(now)) == 0)
		return GRANT_E_NONE;
	note_ends(server, &now);
	for (uint64_t k = 0; (k = grant_next_open(server, k));) {
		enum grant_fate fate = fate_now(server, &now, k);

		if (fate == server->fate[k % RING])
			continue;
		server->seen[k % RING] = false;
		*ret = server->ledger[k % RING];
		*ret_fate = fate;
		settle(server, k, fate);
		return 0;
	}
	nonsense = count_nonsense(server, &now);
	if (ret_nonsense)
		*ret_nonsense += nonsense;
	server->absorbed = now;
	server->has_changed = false;
	return GRANT_E_NONE;
}

/* ---- accessd: wakes ---- */

bool grant_is_waiting(const struct grant_server *server)
{
	/* c_awake first: an honest one never runs ahead of c_armed. */
	uint64_t awake = atomic_load_explicit(&server->outbox->c_awake, memory_order_acquire);

	return atomic_load_explicit(&server->outbox->c_armed, memory_order_acquire) != awake;
}

bool grant_is_asleep(const struct grant_server *server)
{
	uint64_t awake = atomic_load_explicit(&server->outbox->c_awake, memory_order_acquire);
	/* K4: seq_cst after K1, pairs with K3. */
	uint64_t armed = atomic_load_explicit(&server->outbox->c_armed, memory_order_seq_cst);

	return armed != awake && armed != server->woken;
}

bool grant_wants_wake(struct grant_server *server)
{
	uint64_t awake = atomic_load_explicit(&server->outbox->c_awake, memory_order_acquire);
	/* W3: seq_cst load after A0, pairs with W1. */
	uint64_t armed = atomic_load_explicit(&server->outbox->c_armed, memory_order_seq_cst);

	if (armed == awake || armed == server->woken)
		return false;
	server->woken = armed;
	return true;
}

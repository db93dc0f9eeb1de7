/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The handshake of shmring/grant.c with all interleavings: one rank, one accessd, the labels of the
 * edges as in the code. Atomic words are Spin's globals (sequentially consistent, as R1, R2, A1 and
 * A2 are). One slot only, which is the hardest case: each grant reuses the slot of the one before,
 * and a ring of RING = 2 places, so that words are reused for later grants, too, and a rank that
 * slept meets newer numbers in old places.
 *
 * Checked: the slot is never written while the rank uses it, and the rank never reads another
 * instance than it was granted (SAFE); both sides agree on the end of each grant (AGREE); an honest
 * rank is never taken for a liar (HONEST), and never returns what it said that it keeps; neither side ever waits for good (Spin's invalid end
 * states: both processes must come to their end).
 *
 *	spin -a grant.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * With -DMUTANT=1 .. 5 one edge is turned round, and the check must fail: 1 the rank looks before it
 * stores (R2, R1), 2 accessd does (A2, A1), 3 accessd copies results before take words (A4, A3),
 * 4 the rank frees the take word before it stores the result (R4, R3), 5 it says that it keeps the
 * grant before it looks (R6, R2).
 */

#ifndef MUTANT
#define MUTANT 0
#endif

#ifndef N
#define N 4 /* grants */
#endif
#define RING 2
#define PLACE(k) ((k) % RING)

/* state of a word: POSTED, REVOKED; HELD, KEPT; DONE, RETURNED. Number 0: never written. */
mtype = { none, posted, revoked, held, kept, done, returned, reclaimed }

/* inbox: written by accessd */
byte word_number[RING];
mtype word_state[RING];
/* outbox: written by the rank. A word of two parts is stored in one step (atomic). */
byte take_number;
mtype take_state = none;
byte result_number[RING];
mtype result_state[RING];
byte next_ = 1;

byte slot;                      /* instance that the slot's memory holds */
bool in_use;                    /* the rank reads the slot */
mtype rank_says[N + 1] = none;  /* done: delivered */
mtype fate[N + 1] = none;       /* accessd's ledger */
bool closed;

proctype rank()
{
	byte k = 1, number;
	mtype state;

	do
	:: closed -> break
	:: atomic { number = word_number[PLACE(k)]; state = word_state[PLACE(k)] } /* W2 */
	   if
	   :: number < k -> skip                        /* nothing posted yet */
	   :: number > k -> k = number - RING + 1       /* its place was reused: settled without us */
	   :: number == k && state == revoked -> k++    /* passed over */
	   :: number == k && state == posted ->
#if MUTANT != 1
R1:		atomic { take_number = k; take_state = held }
#endif
#if MUTANT == 5
		take_state = kept;
#endif
R2:		atomic { number = word_number[PLACE(k)]; state = word_state[PLACE(k)] }
#if MUTANT == 1
		atomic { take_number = k; take_state = held }
#endif
		if
		:: number == k && state == posted ->
			in_use = true;
R6:			take_state = kept;
			assert(slot == k);              /* SAFE */
			assert(slot == k);
			in_use = false;
			rank_says[k] = done;
#if MUTANT == 4
			take_state = none;
#endif
R3d:			atomic { result_number[PLACE(k)] = k; result_state[PLACE(k)] = done }
		:: else ->
R3r:			atomic { result_number[PLACE(k)] = k; result_state[PLACE(k)] = returned }
		fi;
R4:		take_state = none;
		k++
	   fi;
R5:	   next_ = k
	od
}

/* One look at the outbox (A5, A3, A4) and what it means for grant k. */
inline look_at(k)
{
	seen_next = next_;                                                       /* A5 */
#if MUTANT == 3
	seen_result = (result_number[PLACE(k)] == k -> result_state[PLACE(k)] : none);
#endif
	atomic {                                                                 /* A2, A3 */
		seen_take = (take_number == k && take_state != none);
		seen_kept = (take_number == k && take_state == kept)
	};
#if MUTANT != 3
	seen_result = (result_number[PLACE(k)] == k -> result_state[PLACE(k)] : none) /* A4 */
#else
	skip
#endif
}

inline end_with(k, how)
{
	fate[k] = how;
	assert(!in_use);                                /* SAFE: the slot is accessd's again */
	slot = 0
}

proctype accessd()
{
	byte k = 1, seen_next;
	bool seen_take, seen_kept, is_revoked, known_kept;
	mtype seen_result;

	do
	:: k > N -> break
	:: else ->
		slot = k;                               /* compose */
A0:		atomic { word_number[PLACE(k)] = k; word_state[PLACE(k)] = posted }
		is_revoked = false;
		known_kept = false;
		do
		:: fate[k] != none -> break
		:: fate[k] == none && !is_revoked ->    /* grant_revoke() */
#if MUTANT == 2
			look_at(k);
#endif
A1:			word_state[PLACE(k)] = revoked;
			is_revoked = true;
#if MUTANT != 2
			look_at(k);
#endif
			if
			:: known_kept || seen_take || seen_result != none -> skip
			:: else -> end_with(k, reclaimed)
			fi
		:: fate[k] == none ->                   /* grant_poll() */
			look_at(k);
			if
			:: seen_result == done -> end_with(k, done)
			:: seen_result == returned ->
				assert(is_revoked && !known_kept);      /* HONEST */
				end_with(k, returned)
			:: else ->
				known_kept = known_kept || seen_kept;
				/* HONEST: passed over only by taking, or revoked */
				assert(seen_next <= k || known_kept || is_revoked)
			fi
		od;
		k++
	od;
	closed = true
}

init {
	atomic { run rank(); run accessd() }
	(_nr_pr == 1);                                  /* both have come to their end */
	byte k;
	for (k : 1 .. N) {
		assert((fate[k] == done) == (rank_says[k] == done))     /* AGREE */
	}
}

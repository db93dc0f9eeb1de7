/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The handshake of grant.pml with as many grants at once as a rank has places for: two take words,
 * given back in either order, and a ring in which a third grant waits behind two that are held. With a
 * smaller ring and more grants (-DSMALL_RING; the rank uses one pin, to be quicker) numbers are left out
 * whose place a grant has that is kept. Labels are those of shmring/grant.c. A look of accessd is a copy
 * of the take words, one load each, and then of all results.
 *
 * Checked: accessd never has a slot back that the rank uses (SAFE); of three grants seen taken one is
 * seen ended, or an honest rank would count as one that lies about its pins (PINS); the rank passes over
 * what was left out, and nothing else (LEFT OUT); both sides agree on the end of each grant (AGREE);
 * both come to their end (Spin's invalid end states).
 *
 *	spin -a pins.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000
 *
 * With -DMUTANT=1 .. 4 one edge is turned round, and the check must fail: 1 the rank looks before it
 * stores (R2, R1), 2 accessd does (A2, A1), 3 accessd copies results before take words (A4, A3), 4
 * the rank frees the take word before it stores the result (R4, R3); and 5, with the smaller ring: the
 * rank does not look again at a place when it sees that a later grant was posted (W2, W4).
 */

#ifndef MUTANT
#define MUTANT 0
#endif

#define PINS 2
#ifdef SMALL_RING
#define N 4 /* grants */
#define RING 2
#define USED 1
#else
#define N 3
#define RING 3
#define USED PINS
#endif
#define PLACE(k) ((k) % RING)

mtype = { none, posted, revoked, done, returned, reclaimed, left_out }

/* inbox: written by accessd */
byte word_number[RING];
mtype word_state[RING] = none;
byte d_posted;
/* outbox: written by the rank; a word is its number, 0: free, and whether it is kept */
byte take[PINS];
bool kept[PINS];
byte result_number[RING];
mtype result_state[RING] = none;

bool in_use[N + 1]; /* the rank reads the slot of this grant */
bool delivered[N + 1];
mtype fate[N + 1] = none; /* accessd's ledger */
bool closed;

inline give_back(p)
{
	atomic { in_use[pin[p]] = false; delivered[pin[p]] = true };
#if MUTANT == 4
	take[p] = 0;
#endif
R3d:	atomic { result_number[PLACE(pin[p])] = pin[p]; result_state[PLACE(pin[p])] = done }
R4d:	atomic { take[p] = 0; kept[p] = false; pin[p] = 0; p = 0 }
}

proctype rank()
{
	byte pin[PINS];
	byte k = 1, number, p;
	mtype state = none;

	do
	:: closed && pin[0] == 0 && pin[1] == 0 -> break
	:: atomic { pin[0] != 0 -> p = 0 }; give: give_back(p)
	:: atomic { pin[1] != 0 -> p = 1 }; goto give
	:: !closed && (pin[0] == 0 || (pin[1] == 0 && USED > 1)) ->
		atomic {
			p = (pin[0] == 0 -> 0 : 1);
			number = word_number[PLACE(k)];          /* W2 */
			state = word_state[PLACE(k)]
		}
		if
		:: number < k && d_posted >= k ->                /* W4 */
			if
			:: MUTANT == 5 || word_number[PLACE(k)] < k ->
				assert(fate[k] == left_out);     /* LEFT OUT */
				k++
			:: else -> skip
			fi
		:: number < k && d_posted < k -> skip
		:: number > k -> k = (number - RING + 1 > k + 1 -> number - RING + 1 : k + 1)
		:: number == k && state == revoked -> k++
		:: number == k && state == posted ->
#if MUTANT != 1
R1:			take[p] = k;
#endif
R2:			atomic { number = word_number[PLACE(k)]; state = word_state[PLACE(k)] }
#if MUTANT == 1
			take[p] = k;
#endif
			if
			:: number == k && state == posted ->
				assert(fate[k] == none);         /* SAFE */
				atomic { in_use[k] = true; pin[p] = k };
R6:				kept[p] = true
			:: else ->
R3r:				atomic {
					result_number[PLACE(k)] = k;
					result_state[PLACE(k)] = returned
				}
R4r:				take[p] = 0
			fi;
			k++
		fi;
		atomic { number = 0; state = none; p = 0 }
	od
}

/* What accessd notes for good: an end that it saw, a take that it saw. */
inline note_end(g)
{
	if
	:: g > settled && g <= post && due[g] == none && fate[g] == none &&
	   seen_number[PLACE(g)] == g ->
		if
		:: seen_result[PLACE(g)] == done -> due[g] = done
		:: seen_result[PLACE(g)] == returned && is_revoked[g] -> due[g] = returned
		:: else -> skip
		fi
	:: else -> skip
	fi
}

/* In one step: a result changes once, and one that comes a moment later is found at the next look. */
inline copy_results()
{
	atomic {
		for (i : 0 .. RING - 1) {
			seen_number[i] = result_number[i];
			seen_result[i] = result_state[i]
		}
	}
}

inline look()
{
#if MUTANT == 3
	copy_results();
#endif
	atomic { seen_take[0] = take[0]; seen_kept[0] = kept[0] };      /* A2, A3 */
	atomic { seen_take[1] = take[1]; seen_kept[1] = kept[1] };
#if MUTANT != 3
	copy_results();                                         /* A4 */
#endif
	atomic {
		for (i : 1 .. N) { note_end(i) };
		for (i : 0 .. RING - 1) { seen_number[i] = 0; seen_result[i] = none };
		i = 0
	}
}

/* That fewer states differ. */
inline forget_takes()
{
	seen_take[0] = 0;
	seen_take[1] = 0;
	seen_kept[0] = false;
	seen_kept[1] = false
}

/* is_held(), or is_kept(): claimed, and with a pin for it besides all that are known to be held. */
#define CLAIMS(p, g, for_good) (seen_take[p] == g && (seen_kept[p] || !for_good))
inline judge_held(g, for_good)
{
	atomic {
		is_held = known[g];
		if
		:: !is_held && (CLAIMS(0, g, for_good) || CLAIMS(1, g, for_good)) &&
		   due[g] == none ->
			held = 0;
			for (i : 1 .. N) {
				held = held + (i != g && i > settled && i <= post &&
					       fate[i] == none && known[i] && due[i] == none)
			}
			assert(held < PINS);                    /* PINS */
			is_held = true
		:: else -> skip
		fi;
		forget_takes();
		held = 0;
		i = 0
	}
}

#define IS_OPEN(g) (g != 0 && fate[g] == none)

/* The first number whose place no grant has that is kept. */
inline find_number()
{
	number = post + 1;
	do
	:: number <= N && IS_OPEN(word_number[PLACE(number)]) &&
	   taken[word_number[PLACE(number)]] -> number++
	:: else -> break
	od
}

inline leave_out()
{
	post++;
	do
	:: post < number -> fate[post] = left_out; post++
	:: else -> break
	od
}

inline end_with(g, how)
{
	atomic {
		assert(!in_use[g]);                             /* SAFE: its slot is accessd's again */
		fate[g] = how;
		do
		:: settled < post && fate[settled + 1] != none -> settled++
		:: else -> break
		od
	}
}

proctype accessd()
{
	byte post, settled, k, i, held, number;
	byte seen_take[PINS], seen_number[RING];
	bool seen_kept[PINS];
	mtype seen_result[RING] = none, due[N + 1] = none;
	bool known[N + 1], taken[N + 1], is_revoked[N + 1], is_held;

	do
	:: settled == N -> break
	:: atomic { post < N -> find_number() };
		if
		:: number > N || IS_OPEN(word_number[PLACE(number)]) -> skip
		:: else ->
			atomic {
				leave_out();
A0:				word_number[PLACE(post)] = post;
				word_state[PLACE(post)] = posted
			};
			d_posted = post
		fi;
		number = 0
	:: settled < post ->
		atomic {
			k = settled + 1;
			do                                      /* any that is under way */
			:: k < post -> k++
			:: break
			od
		}
		if
		:: fate[k] == none && !is_revoked[k] ->         /* grant_revoke() */
#if MUTANT == 2
			look();
#endif
A1:			word_state[PLACE(k)] = revoked;
			is_revoked[k] = true;
#if MUTANT != 2
			look();
#endif
			if
			:: known[k] || due[k] != none -> atomic { forget_takes() }
			:: else ->
				judge_held(k, false);
				if
				:: is_held -> known[k] = true
				:: else -> end_with(k, reclaimed)
				fi
			fi
		:: fate[k] == none ->                           /* grant_poll() */
			look();
			if
			:: due[k] != none ->
				atomic { forget_takes() };
				end_with(k, due[k])
			:: else -> judge_held(k, true); known[k] = is_held; taken[k] = is_held
			fi
		:: else -> skip
		fi;
		atomic { k = 0; is_held = false }
	od;
	closed = true
}

init {
	atomic { run rank(); run accessd() }
	(_nr_pr == 1);
	byte k;
	for (k : 1 .. N) {
		assert((fate[k] == done) == delivered[k])       /* AGREE */
	}
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who is woken, and who says that he sleeps, with all interleavings: accessd's turn (daemon/serve/pump.c), two ranks in oa_next()
 * (libaccess/wait.c), and workers. The labels of the edges are those of shmring/grant.c, inbox.c and slot_table.c; atomic words
 * are Spin's globals (sequentially consistent, as they are there). A message is a flag that is seen.
 *
 * A rank that finds nothing arms (W1), looks again (W2), looks whether accessd wants to know (K3), says so, and sleeps. What it
 * gives back (R4) it says if accessd wants to know that (K2). accessd shows what is finished (B2), and then looks who is armed
 * (W3). It shows what it wants to know (K1), and then looks once more at what was given back and who sleeps (K4).
 *
 * accessd begins a chunk for who is seen to sleep, one at a time, where a slot is free. While it is in production, no
 * rank that comes to it next need say that it sleeps: nothing would come of it (NO_SLEEP). Nor is then what was given back
 * worth a turn. There is one slot, which the second chunk needs again. Rank 1 may do something else, after any chunk,
 * until rank 0 has all of them. That a chunk is overtaken is not in here.
 *
 * Checked: nobody sleeps for good (Spin's invalid end states): each rank gets each chunk, and all come to their end.
 *
 *	spin -a wake.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * With -DMUTANT=1 .. 4 the check must fail: 1 a rank looks for the wish before it gives back (K2, R4), 2 or before it arms
 * (K3, W1), 3 accessd shows its wish after it looked (K4, K1), 4 what was given back in a turn is worth no other one, though
 * a chunk may be begun. That a rank looks again behind W1 (W2) nothing hangs on: news stay until somebody is woken for
 * them, and K4 sees who armed too late.
 */

#ifndef MUTANT
#define MUTANT 0
#endif

#define ALL 3 /* chunks, a bit each */

/* inbox and slot table: written by accessd */
byte posted[2];                 /* chunks that a rank was granted */
byte shown;                     /* that are finished, as ranks see it */
bool wants_ends[2], no_sleep[2];
/* outbox: written by the rank */
mtype = { up, armed, answered }
mtype sleep[2] = up;            /* c_armed, as it differs from c_awake, and from what accessd answered */
byte given[2];                  /* chunks that it gave back */
/* messages */
bool kicked, wake[2];
/* production */
byte begun, done;
bool turn_soon = true;
byte ended;                     /* ranks */

#define READY(r) (posted[r] & shown & ~given[r])
#define FIRST(set) ((set) & 1 -> 1 : (set) & 2)
#define SLEEPS(r) (sleep[r] == armed)

inline tell(wish)
{
	atomic {
		if
		:: wish -> kicked = true
		:: else
		fi;
		wish = false
	}
}

proctype rank(byte r)
{
	bool wish;

	do
	:: given[r] == ALL -> break
	:: given[r] != ALL && READY(r) ->
#if MUTANT == 1
		wish = wants_ends[r];
#endif
R4:		given[r] = given[r] | FIRST(READY(r));
#if MUTANT != 1
K2:		wish = wants_ends[r];
#endif
		tell(wish);
		if
		:: r == 1 -> (given[0] == ALL)
		:: true
		fi
	:: given[r] != ALL && !READY(r) ->
#if MUTANT == 2
		wish = !no_sleep[r];
#endif
W1:		sleep[r] = armed;
		if
		:: !READY(r) ->                         /* W2 */
#if MUTANT != 2
K3:			wish = !no_sleep[r];
#endif
			tell(wish);
			atomic { wake[r] -> wake[r] = false }   /* it sleeps */
		:: else
		fi;
		sleep[r] = up
	od;
	ended++
}

proctype worker(byte chunk)
{
	(begun & chunk);
	atomic {
		done = done | chunk;
		turn_soon = true
	}
}

/* job_poll(): what was given back since, and whether it sleeps. */
inline poll(r)
{
	has_given = has_given || seen[r] != given[r];
	seen[r] = given[r];
	asleep[r] = SLEEPS(r)                           /* K4 */
}

#define MADE (begun & ~shown)                   /* in production */
#define MAY_BEGIN (MADE == 0)
#define LIVE (begun & ~(seen[0] & seen[1]))
#define NEXT_FILL(r) FIRST(posted[r] & MADE)

inline post_to(r)
{
	before = READY(r);
	posted[r] = begun;
	news[r] = news[r] || (READY(r) & ~before);
	before = 0
}

inline decide()
{
	if
	:: MAY_BEGIN && begun != ALL && LIVE == 0 && (asleep[0] || asleep[1]) ->
		begun = begun << 1 | 1
	:: else
	fi;
	post_to(0);
	post_to(1)
}

inline wake_up(r)
{
	if
	:: news[r] && SLEEPS(r) ->                      /* W3 */
		sleep[r] = answered;
		news[r] = false;
		asleep[r] = false;
		wake[r] = true
	:: else
	fi
}

/* job_show(), and a look behind it. */
inline show_to(r)
{
	if
	:: MUTANT == 3 -> atomic { was_asleep = asleep[r]; poll(r) }
	:: else
	fi;
	atomic {                                        /* K1 */
		wants_ends[r] = MAY_BEGIN;
		no_sleep[r] = !MAY_BEGIN && NEXT_FILL(r)
	};
	atomic {
	if
	:: MUTANT != 3 -> was_asleep = asleep[r]; poll(r)
	:: else
	fi;
	again = again || (asleep[r] && !was_asleep && !no_sleep[r]);
	was_asleep = false
	}
}

proctype accessd()
{
	byte before, seen[2];
	bool asleep[2], news[2], has_given, was_asleep, again;

	do
	:: ended == 2 -> break
	:: turn_soon || kicked ->
		atomic {
			turn_soon = false;
			kicked = false;
			poll(0);
			poll(1);
			news[0] = news[0] || (posted[0] & done & ~shown & ~given[0]);
			news[1] = news[1] || (posted[1] & done & ~shown & ~given[1]);
			shown = done;                   /* B2 */
			decide()                        /* A0 */
		};
		atomic { wake_up(0); wake_up(1); has_given = false };
		show_to(0);
		show_to(1);
		atomic {
			turn_soon = turn_soon || again || (has_given && MAY_BEGIN && MUTANT != 4);
			has_given = false;
			again = false
		}
	od
}

init {
	atomic {
		run rank(0);
		run rank(1);
		run worker(1);
		run worker(2);
		run accessd()
	}
}

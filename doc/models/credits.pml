/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Credits over a pair of queues (cluster/transport_verbs.c), and the flush of what was under way when a connection ended.
 * Two ends, each of which sends and receives. A message takes a receive at the other end; what comes with it is what its
 * sender owes. A receive is posted anew when its message was copied, and then owed; what is owed goes along with the next
 * message, or in one without bytes once it is half of all. Completions are polled one at a time. At any moment the
 * connection may be cut: both ends begin anew with the same queues, in which completions of before may still lie.
 *
 * Checked: no message comes where no receive is posted (RECEIVE); no receive is posted into memory whose message was not
 * copied yet (MEMORY); nobody gets more credits than there are (CREDITS); all that is to be sent arrives, whatever credits
 * are under way (Spin's invalid end states).
 *
 *	spin -a credits.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000
 *
 * With -DMUTANT=1 .. 5 the check must fail: 1 a receive is owed when its message has come, before it is posted anew; 2 a
 * completion is not looked at for whose connection it is; 3 nothing is ever sent without bytes; 4 there is no room for messages
 * without bytes beside those that credits are for; 5 the receive of a message without bytes is owed, too.
 */

#ifndef MUTANT
#define MUTANT 0
#endif

#define CREDITS 2
#define OWED_MOST 1
#define RECEIVES (MUTANT == 4 -> CREDITS : CREDITS + 2)
#define BUFFERS 1
#define EMPTIES 2
#define WIRE 4
#define DONE 6
#define MESSAGES 3 /* that each end has for the other */

/* On the wire: has it bytes, what is owed. */
chan wire[2] = [WIRE] of { bool, byte };
/* Completions: of which connection, a receive or a send, has it bytes, what is owed. */
chan done[2] = [DONE] of { bit, bool, bool, byte };

bit now; /* the connection */
byte posted[2], held[2], credits[2], owed[2], free[2], empties[2], to_send[2], got[2];
bool was_cut;

#define OTHER (1 - i)
#define is_done(e) (to_send[e] == 0 && got[e] == MESSAGES)

inline begin(e)
{
	posted[e] = RECEIVES; held[e] = 0; credits[e] = CREDITS; owed[e] = 0; free[e] = BUFFERS;
	empties[e] = 0; to_send[e] = MESSAGES; got[e] = 0
}

/* Nothing goes without bytes while something is owed that may go along, but once it is much. */
inline give_back()
{
	if
	:: MUTANT != 3 && owed[i] >= OWED_MOST && empties[i] < EMPTIES && len(wire[i]) < WIRE ->
		wire[i]!false, owed[i];
		owed[i] = 0;
		empties[i]++
	:: else
	fi
}

proctype end(bit i)
{
	bit which;
	bool is_receive, has_bytes;
	byte said;

	do
	:: atomic { to_send[i] > 0 && credits[i] > 0 && free[i] > 0 && len(wire[i]) < WIRE ->
		credits[i]--; free[i]--; to_send[i]--;
		wire[i]!true, owed[i];
		owed[i] = 0
	   }
	:: atomic { done[i]?which, is_receive, has_bytes, said ->
		if
		:: MUTANT != 2 && which != now
		:: else ->
			if
			:: !is_receive && has_bytes -> free[i]++
			:: !is_receive && !has_bytes -> empties[i] = (empties[i] -> empties[i] - 1 : 0)
			:: is_receive ->
				assert(said <= CREDITS - credits[i]);       /* CREDITS */
				credits[i] = credits[i] + said;
				if
				:: has_bytes ->
					held[i]++;
					owed[i] = owed[i] + (MUTANT == 1 -> 1 : 0)
				:: else ->
					posted[i]++;
					owed[i] = owed[i] + (MUTANT == 5 -> 1 : 0)
				fi
			fi
		fi;
		assert(posted[i] + held[i] <= RECEIVES);                    /* MEMORY */
		give_back();
		which = 0; is_receive = 0; has_bytes = 0; said = 0
	   }
	:: atomic { held[i] > 0 ->
		held[i]--; posted[i]++; got[i]++;
		owed[i] = owed[i] + (MUTANT == 1 -> 0 : 1);
		assert(got[i] <= MESSAGES);
		give_back()
	   }
	:: atomic { is_done(0) && is_done(1) && len(wire[0]) == 0 && len(wire[1]) == 0 -> break }
	od
}

/* What is sent arrives, in its order, and both ends hear of it. */
proctype network()
{
	bool has_bytes;
	byte said;
	bit i;

	do
	:: atomic { len(wire[0]) > 0 && len(done[0]) < DONE && len(done[1]) < DONE -> i = 0 }; goto carry
	:: atomic { len(wire[1]) > 0 && len(done[0]) < DONE && len(done[1]) < DONE -> i = 1 };
carry:		atomic {
			if
			:: len(wire[i]) > 0 ->
				wire[i]?has_bytes, said;
				assert(posted[OTHER] > 0);                  /* RECEIVE */
				posted[OTHER]--;
				done[OTHER]!now, true, has_bytes, said;
				done[i]!now, false, has_bytes, 0
			:: else /* it was cut meanwhile */
			fi;
			has_bytes = 0; said = 0; i = 0
		}
	:: atomic { !was_cut && !(is_done(0) && is_done(1)) -> /* it is cut, and there is a new one */
		was_cut = true;
		do
		:: wire[0]?has_bytes, said
		:: wire[1]?has_bytes, said
		:: len(wire[0]) == 0 && len(wire[1]) == 0 -> break
		od;
		has_bytes = 0; said = 0;
		now = 1 - now;
		begin(0); begin(1)
	   }
	:: atomic { is_done(0) && is_done(1) && len(wire[0]) == 0 && len(wire[1]) == 0 -> break }
	od
}

init
{
	atomic {
		begin(0); begin(1);
		run end(0); run end(1); run network()
	}
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection that is handed to a carrier, which may die at any moment (cluster/gate_carriers.c, cell.c, carrier_control.c).
 * The gate of node A connects to node B, whose gate and carrier live on, and hands the socket to A's carrier over the pair
 * that accessd gave it. It learns of a death by that pair's end, and of another carrier by accessd, which starts one. A
 * carrier whose channel has ended, or cannot begin, says so over its pair.
 *
 * B's side is as plain as can be: it takes a call when it has no channel, and its channel ends with A's.
 *
 * Checked: in the end, however often the carrier has died, both sides have a channel, it is the same, and each gate knows
 * that there is one (JOINED). A gate that took a lost one for alive would never call again.
 *
 *	spin -a hand.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000
 *
 * With -DMUTANT=1 .. 4 the check must fail: 1 the pair's end does not end what the gate knew of the domain; 2 a new carrier goes
 * by the old one's pair, and what is left in it is believed; 3 of a channel that has ended nothing is
 * said; 4 nor of one that cannot begin.
 */

#ifndef MUTANT
#define MUTANT 0
#endif

#define DEATHS 2
#define REFUSALS 1 /* channels that cannot begin: there is no memory, say */
#define NONE 0

byte serial;              /* of connections */
byte life = 1, deaths;    /* of A's carrier */
byte refusals, cuts;
bool is_there = true;     /* A's carrier */
byte has_a, has_b;        /* the connection that each carrier has */
bool alive_a, alive_b;    /* as the gates know */
bool has_domain = true;   /* A's gate: of this life of the carrier */
byte domain = 1;
byte in_vain;             /* the life to which it could not hand a socket */
byte cut_off;             /* connections up to that one have an end that is gone: B has not heard of it yet */
bool calls;

/* A pair for each life: sockets there, ENDED back. */
chan sockets[DEATHS + 2] = [2] of { byte };
chan ended[DEATHS + 2] = [4] of { byte };
chan ended_b = [4] of { byte };

#define PAIR(l) (MUTANT == 2 -> 1 : l)

/* A's gate. */
active proctype gate()
{
	byte which;

end:	do
	:: atomic { has_domain && !alive_a && !calls && !alive_b && in_vain != domain -> /* it calls, B says yes, and both are done */
		serial++;
		calls = true
	   };
	   atomic {
		calls = false;
		if
		:: has_domain && !alive_a && !alive_b ->
			alive_a = true;
			alive_b = true;
			has_b = serial;
			if
			:: (MUTANT == 2 || (domain == life && is_there)) && len(sockets[PAIR(domain)]) < 2 ->
				sockets[PAIR(domain)]!serial
			:: else -> /* nobody takes it: until it has heard why, it does not try again */
				alive_a = false; cut_off = serial; in_vain = domain
			fi
		:: else
		fi
	   }
	:: atomic { len(ended[PAIR(domain)]) > 0 && has_domain ->
		ended[PAIR(domain)]?which;
		alive_a = false;
		which = 0
	   }
	:: atomic { has_domain && domain != life || (has_domain && !is_there) -> /* the pair's end */
#if MUTANT != 1
		alive_a = false;
#endif
		has_domain = false
	   }
	:: atomic { !has_domain && is_there -> domain = life; has_domain = true } /* accessd says so */
	od
}

/* A's carrier, one life after the other. */
active proctype carrier()
{
	byte which;

end:	do
	:: atomic { is_there && len(sockets[PAIR(life)]) > 0 ->
		sockets[PAIR(life)]?which;
		if
		:: refusals < REFUSALS ->
			refusals++;
			cut_off = which;
#if MUTANT != 4
			ended[PAIR(life)]!which
#endif
		:: else ->
			has_a = which
		fi;
		which = 0
	   }
	:: atomic { is_there && has_a != NONE && has_a <= cut_off -> /* B's end is gone */
#if MUTANT != 3
		ended[PAIR(life)]!has_a;
#endif
		has_a = NONE
	   }
	:: atomic { is_there && deaths < DEATHS -> /* with all that it has, and what lies in its pair */
		deaths++;
		is_there = false;
		has_a = NONE;
		cut_off = serial;
#if MUTANT != 2
		do
		:: sockets[life]?which
		:: len(sockets[life]) == 0 -> break
		od;
#endif
		which = 0
	   }
	:: atomic { !is_there -> life++; is_there = true }
	od
}

/* B: its carrier, and its gate. A's newer connection ends an older one there. */
active proctype other()
{
	byte which;

end:	do
	:: atomic { has_b != NONE && has_b <= cut_off -> ended_b!has_b; has_b = NONE }
	:: atomic { has_b != NONE && has_a == has_b && cuts == 0 -> /* the net ends it */
		cuts++;
		cut_off = has_b
	   }
	:: atomic { ended_b?which; alive_b = false; which = 0 }
	od
}

/* When nobody has anything to do any more. */
active proctype judge()
{
	timeout ->
	assert(has_a != NONE && has_a == has_b && alive_a && alive_b) /* JOINED */
}

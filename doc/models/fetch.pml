/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A task that waits for a value of another node (storage/peers/reader_asks.c, peers/reader_fetch.c): its entry in the table, the answer,
 * the deadline, the peer that is gone, the reader that dies, and the place in the arena, which is another task's once this
 * one has ended. The table has one entry and the arena one place, so each task after the first gets what others had.
 *
 * A reading thread enters a task and tells the carrier, which may have no room. The peers' thread takes what comes, when it
 * comes: an answer, also of a task that has long ended, or twice; the deadline, or the end of the peer. Whoever takes the
 * entry out has the task: he writes its place, or gives it to a reading thread, which reads the source into it. accessd
 * gives a place on when its task has ended, or when the reader that had it is no more.
 *
 * Checked: nothing is written to a place but the value of the task that has it (PLACE), and no two write it at once (ONE); a task ends once
 * (ONCE); each task ends (Spin's invalid end states).
 *
 *	spin -a fetch.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000
 *
 * With -DMUTANT=1 .. 5 the check must fail: 1 an id is the entry's place, whatever it was used for before; 2 who takes an
 * entry looks at it first, and takes it out then; 3 the deadline has a task read and leaves its entry; 4 a thread that could
 * not tell the carrier reads its task without taking the entry out; 5 accessd gives the places of a reader on when it has
 * lost the connection to it, before the process has ended.
 */

#ifndef MUTANT
#define MUTANT 0
#endif

#define TASKS 3
#define ID(task) (MUTANT == 1 -> 1 : task)

byte entry;              /* of the table: which use of it, which is the task; 0: it is free */
byte place;              /* whose the place of the arena is */
byte writers;            /* of the place, at this moment */
byte ended[TASKS + 1];
bool asked[TASKS + 1];   /* the carrier has its question: answers may come, now and ever after */
byte back;               /* to be read from its source; 0: none */
bool is_lost, is_dead;   /* the reader: to accessd; to itself */
bool was_dead;           /* it dies once */

/* Of a process that is killed here the rest is not done, and what it wrote is written. */
inline write_place(task, value)
{
	atomic {
		assert(place == value);               /* PLACE */
		assert(writers == 0);                 /* ONE */
		writers++
	};
	if
	:: atomic { is_dead -> writers-- }; goto over
	:: atomic {
		!is_dead -> writers--;
		ended[task]++;
		assert(ended[task] == 1)              /* ONCE */
	   }
	fi
}

inline take(id, got)
{
	atomic {
		got = (entry != 0 && ID(entry) == id -> entry : 0);
#if MUTANT == 2
	};
	atomic {
#endif
		if
		:: got != 0 -> entry = 0
		:: else
		fi
	}
}

proctype peers()
{
	byte got, one;

	do
	:: is_dead -> break
	:: atomic { !is_dead && asked[1] -> one = 1 }; goto answer
	:: atomic { !is_dead && asked[2] -> one = 2 }; goto answer
	:: atomic { !is_dead && asked[3] -> one = 3 };
answer:		take(ID(one), got);
		if
		:: got != 0 -> write_place(got, one)
		:: else
		fi;
		atomic { got = 0; one = 0 }
	:: atomic { !is_dead && entry != 0 && back == 0 -> /* its time is over, or its peer is gone */
		back = entry;
#if MUTANT != 3
		entry = 0
#endif
	   }
	:: ended[TASKS] && !is_dead && !was_dead -> break
	:: ended[TASKS] && was_dead -> break
	od;
over:	skip
}

proctype reads()
{
	byte got, seen;

	do
	:: is_dead -> break
	:: atomic { !is_dead && back != 0 -> got = back; back = 0 };
source:		write_place(got, got);
		got = 0
	:: atomic { !is_dead && place > seen && !ended[place] && entry == 0 -> seen = place; entry = seen };
		if
		:: asked[seen] = true
		:: skip; /* there is no room to tell it */
#if MUTANT == 4
			got = seen;
#else
			take(ID(seen), got);
#endif
			if
			:: got != 0 -> goto source
			:: else
			fi
		fi
	:: ended[TASKS] -> break
	od;
over:	skip
}

active proctype accessd()
{
	byte task = 1;

	place = task;
	run peers();
	run reads();
	do
	:: ended[task] && task == TASKS -> break
	:: atomic { ended[task] && task < TASKS -> task++; place = task }
	:: atomic { !was_dead && !ended[task] -> was_dead = true; is_lost = true };
#if MUTANT == 5
		if
		:: task < TASKS -> atomic { ended[task] = 1; task++; place = task }
		:: else
		fi;
#endif
		is_dead = true;
		_nr_pr == 1;
		atomic { /* another one: it knows nothing, and who asked the one before gets no answer */
			is_dead = false; entry = 0; back = 0;
			asked[1] = false; asked[2] = false; asked[3] = false
		};
		run peers();
		run reads()
	od
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Faults that are planted, to see that they are found: of the kinds that were made so far. */
enum mutant {
	MUTANT_NONE,
	/* in accessd */
	MUTANT_RING_LOST,      /* readers are not rung for what is queued */
	MUTANT_TASK_LOST,      /* what a dead worker or reader had is nobody's */
	MUTANT_SHOWN_EARLY,    /* a sample is shown before it is finished */
	MUTANT_ARENA_EARLY,    /* room of the arena is given away while it is in use */
	MUTANT_BYTES_LEAK,     /* what a variant frees stays counted */
	MUTANT_HANG_UNSEEN,    /* nobody looks for workers that hang */
	MUTANT_FD_LEAK,        /* a descriptor is not closed */
	MUTANT_FORM_FINAL,     /* what no pipeline takes of a kept form is a bad sample */
	MUTANT_ROOM_FORGOTTEN, /* a task that brings a form has the room of its file */
	MUTANT_WAKE_LOST,      /* now and then nobody is woken */
	MUTANT_PLAN_LATE,      /* a lost stream keeps its groups' plans to itself */
	MUTANT_PLAN_REMOVED,   /* a plan ends with the stream that its last rank has left */
	MUTANT_LOSS_UNSAID,    /* nobody is told that his stream is lost */
	MUTANT_RUN_UNENDED,    /* who has been in a plan is forgotten with its stream */
	MUTANT_PLAN_UNNAMED, /* a plan that nobody came back to for a minute is not found by its name */
	MUTANT_PLAN_PARTED, /* where ranks have different plans of one name nobody notices */
	/* in the carousel */
	MUTANT_INSTANCE_TWICE, /* a job may be granted what it has seen */
	MUTANT_NEED_UNASKED,   /* and what it does not need any more */
	MUTANT_PLACE_LOST, /* a fixed plan's chunk begins where it begins, not where the job is */
	MUTANT_GRANT_FORGOTTEN, /* what was withdrawn untaken is not needed again */
	/* in libaccess */
	MUTANT_REWIND_LOST,  /* what was taken and not delivered is not taken back */
	MUTANT_RELEASE_LOST, /* a chunk is not given back */
	MUTANTS
};

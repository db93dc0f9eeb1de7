/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What to give back when memory is short on the node, and when to take it again. Values in, decisions out:
 * the kernel's figures (how much of the time somebody waited for memory) and the time are arguments.
 *
 *   NONE --hard--> CACHES --still hard after a while, or everybody waits--> SLOTS
 *   SLOTS --calm--> CACHES --calm: an eighth of the caches at a time--> NONE
 *
 * Hard and calm are far apart, and calm has to last: longer each time that the pressure came back soon, for then what
 * was taken again is what there is no room for.
 */

#include <stdbool.h>
#include <stdint.h>

#define PRESSURE_EIGHTHS 8

enum pressure_level {
	PRESSURE_NONE,
	PRESSURE_CACHES, /* what lies in memory though it could be read again is given back */
	PRESSURE_SLOTS,  /* so is what nobody needs now, and nothing is reserved ahead of need */
};

struct pressure { /* zeroed: no pressure yet */
	enum pressure_level level;
	unsigned withheld;    /* eighths of the memory caches that may not be had now */
	uint64_t risen_ns;    /* last rise or repetition */
	uint64_t calm_ns;     /* calm since, or the last step down; 0: it is not calm */
	uint64_t relaxed_ns;  /* NONE since */
	uint64_t patience_ns; /* how long calm has to last; 0: the least */
};

struct pressure_look {
	uint64_t now_ns;
	double some, full; /* percent of the last ten seconds in which some, or all, waited */
	bool is_triggered; /* the kernel called: many stalls at once */
};

struct pressure_act {  /* what to do now */
	bool caches;   /* give back the caches */
	bool slots;    /* give back streams and variants without jobs */
	bool is_moved; /* level or share is another one */
};

struct pressure_act pressure_step(struct pressure *pressure, const struct pressure_look *look);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who may begin more work when several want the same: fair queueing by weight, in what their work takes of it. Of processors that
 * is CPU time, in ns; of a disk, bytes (fair_read.h). Arithmetic on what callers measure; no clock.
 */

#include <stdbool.h>
#include <stdint.h>

#define FAIR_ALL UINT32_MAX

struct fair {          /* one who shares; zeroed and with fair_enter(), it begins */
	double weight; /* over 0 */
	double done;   /* given to it, over its weight */
	double cost;   /* of one sample; 0: not known yet, and guessed */
	double ahead;  /* charged for samples that are not settled yet */
	double open;   /* given since a sample ended last: part of what the next cost */
};

struct fair_node {
	double rate;   /* that all of them together have had lately, a ns: processors, or bytes */
	double weight; /* of all who have work */
};

/* How far one may be ahead of another, in units of done. */
double fair_window(const struct fair_node *node);
/* How far it really is, of samples that it began and that are not finished. */
double fair_reached(const struct fair *one, uint64_t under_way);
/* It has work, after a time without: it is as far as the one who is least far (fair_reached()) of those who have work too,
 * and gets nothing for the time that it did not want anything. least < 0: there is nobody else. */
void fair_enter(struct fair *one, double least);
/* `other` has work that waits for a processor, and *least is how far the least far of such is; < 0: none was looked at yet. */
void fair_look(const struct fair *other, double *least);
/* After all were looked at for `one`: other, if it is far behind without holding it back, loses what it did not want. */
void fair_pass(struct fair *other, const struct fair *one, const struct fair_node *node,
	       double least);
/* Samples that one may begin now, by that (*least < 0: nobody was found); FAIR_ALL: as many as it likes. */
uint32_t fair_room(const struct fair *one, const struct fair_node *node, double least);
/* Samples that one should have under way at most beside others. */
uint32_t fair_depth(const struct fair *one, const struct fair_node *node);
/* It wants nothing of this, and has it all the same: it is no further ahead than that, for when it wants it. */
void fair_forgive(struct fair *one, const struct fair_node *node, double least);
/* It began so many. */
void fair_charge(struct fair *one, uint32_t samples);
/* It had so much, by the kernel's count, in which `samples` were finished; so many more are under way. */
void fair_settle(struct fair *one, uint64_t samples, uint64_t under_way, double amount);

struct fair_account {                     /* what somebody has had */
	double cpu_ns, bytes;             /* his part of what was done */
	double alone_cpu_ns, alone_bytes; /* what all that he took would have been for him alone */
};

struct fair_had { /* somebody */
	struct fair_account account;
	uint64_t samples; /* that were accounted */
};

void fair_account_add(struct fair_account *account, const struct fair_account *more);
/* What others' jobs and what is kept did for him: alone - had; never less than 0. */
double fair_saved(double alone, double had);

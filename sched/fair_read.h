/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who may begin more reading when several wait for the same disk: fair.h in bytes. Only who waits for it is held back, and only for the
 * sake of those who do. Arithmetic on what callers see; no clock.
 */

#include "sched/fair.h"

struct fair_read {         /* one who reads; zeroed, with a weight and a cost, it begins */
	struct fair fair;  /* in bytes */
	double rate;       /* bytes a ns that it had lately */
	double fresh;      /* bytes since that was reckoned last */
	uint64_t bound_ns; /* when it was seen to be bound by the disk last */
	uint64_t moved_ns; /* when it finished a sample last, or had none under way */
	uint64_t wants_ns; /* when a sample of it was seen that is not read last */
};

/* Of its samples so many wait to be read from there, or are, and so many are read and wait for a processor. */
void fair_read_look(struct fair_read *one, uint32_t unread, uint32_t ready, uint64_t now_ns);
/* Is the disk what it has waited for lately? */
bool fair_read_is_bound(const struct fair_read *one, uint64_t now_ns);
/* And is there something that it wants of it now? */
bool fair_read_wants(const struct fair_read *one, uint64_t now_ns);
/* One who wants something, or for whom it is asked, is of the disk: zeroed, it has nobody. */
void fair_read_add(struct fair_node *disk, const struct fair_read *one);
/* Samples that one may begin now, of which so many are under way, beside the least far of those who want something
 * (least < 0: there is nobody). FAIR_ALL: as many as it likes. */
uint32_t fair_read_room(struct fair_read *one, const struct fair_node *disk, double least,
			uint32_t under_way, uint64_t now_ns);
/* It finished so many samples, for which that was read; so many more are under way. */
void fair_read_settle(struct fair_read *one, uint64_t samples, uint64_t under_way, double bytes,
		      uint64_t now_ns);
/* So long after the last time: how fast it reads. */
void fair_read_tick(struct fair_read *one, double passed_ns);

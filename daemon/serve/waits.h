/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a job has waited for lately, by stage, for the status: time is accounted to the stage that the pump
 * found, once a turn and job, over two windows of WAITS_WINDOW_NS, the last whole one and the current one.
 * Arithmetic alone: the clock is an argument, and one that goes back counts as one that stands.
 */

#include "base/base.h"
#include "shmring/layout.h"

#define WAITS_STAGES (LAYOUT_STAGE_DRAIN + 1)
#define WAITS_WINDOW_NS UINT64_C(10000000000)

struct waits {
	enum layout_stage stage; /* since `noted_ns`; NONE: it does not wait */
	bool is_late;            /* since then, too: for a sample that takes longer than a chunk */
	uint64_t since_ns;       /* it waits without an end from then on, while stage is not NONE */
	/* Of the current window: its begin, and how far it is accounted */
	uint64_t began_ns, noted_ns;
	uint64_t last_window_ns;        /* the length of the one before; 0: there was none */
	uint64_t now_ns[WAITS_STAGES];  /* by stage, of the current window */
	uint64_t last_ns[WAITS_STAGES]; /* of the one before */
	uint64_t all_ns[WAITS_STAGES];  /* of all of its time */
	uint64_t late_ns;               /* of that, for such samples */
};

struct waits_view {
	uint64_t window_ns;  /* what `by_stage` is of; 0: it has only begun */
	uint64_t waiting_ns; /* it has waited without an end for so long; 0: it does not wait */
	uint64_t by_stage[WAITS_STAGES];
	uint64_t all_ns[WAITS_STAGES], late_ns; /* since it is there */
};

void waits_init(struct waits *waits, uint64_t now_ns);
/* From now on it waits for the stage; NONE: it does not wait, and for no late sample. */
void waits_note(struct waits *waits, enum layout_stage stage, bool is_late, uint64_t now_ns);
void waits_look(const struct waits *waits, uint64_t now_ns, struct waits_view *ret);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How fast a job is, and whether it moves at all: for people. Plain arithmetic; zeroed and with pace_begin(), it begins. */

#include "base/base.h"

struct pace {
	uint64_t rate_ns, rate_samples; /* given back since then */
	double rate;                    /* samples/s lately, when it last gave something back */
	uint64_t moved_ns;              /* it took, gave back or delivered something last */
	uint64_t delivered;             /* as it said then */
};

void pace_begin(struct pace *pace, uint64_t now_ns);
/* It took something, or gave it back: a chunk of so many samples, else 0. */
void pace_moved(struct pace *pace, uint32_t samples, uint64_t now_ns);
/* It says that it has delivered so many in all. */
void pace_said(struct pace *pace, uint64_t delivered, uint64_t now_ns);
/* Samples/s of a job with chunks of so many, which falls when it gives nothing back; delivered: as it says now. */
double pace_rate(const struct pace *pace, uint32_t chunk, uint64_t delivered, uint64_t now_ns);
/* Time without any progress. */
uint64_t pace_idle_ns(const struct pace *pace, uint64_t now_ns);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* When dead workers may be replaced. Plain arithmetic: the time is an argument. */

#include <stdint.h>

#define BACKOFF_BURST 10 /* deaths within one window that cost nothing */
#define BACKOFF_WINDOW_NS UINT64_C(1000000000)
#define BACKOFF_FIRST_NS UINT64_C(10000000)
#define BACKOFF_LONGEST_NS UINT64_C(1000000000)

struct backoff {                          /* zeroed: nobody died yet */
	uint64_t death_ns[BACKOFF_BURST]; /* ring of the last deaths, 0: none */
	uint64_t delay_ns;                /* 0: no loop of crashes */
	uint64_t ready_ns;                /* no worker starts before */
	unsigned next;
};

/* A worker that lived lived_ns died by itself at now_ns (> 0). */
void backoff_death(struct backoff *backoff, uint64_t now_ns, uint64_t lived_ns);
/* ns until workers may be started; 0: now. */
uint64_t backoff_wait_ns(const struct backoff *backoff, uint64_t now_ns);

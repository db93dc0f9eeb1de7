/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The pairs of a dataset.json as StyleGAN, EDM and what came of them write it: {"labels": [["00000/img00000000.png", 6], ...]}, with
 * nothing else in it. What a pair is JSON itself says. Pure; the bytes may be any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PAIRS_E_MORE = 1, /* it does not end in these bytes */
	PAIRS_E_BAD = 2,  /* it is something else, or is cut off */
};

enum pairs_place { PAIRS_BEGIN, PAIRS_FIRST, PAIRS_NEXT, PAIRS_END, PAIRS_OVER };

struct pairs_step {
	size_t bytes;    /* what is over */
	size_t at, pair; /* in these: where a pair begins, and its bytes; 0: there is none */
};

/* What comes next at that place, in size > 0 bytes; is_last: no more follow. 0 and the place behind it, PAIRS_E_MORE, PAIRS_E_BAD. */
int pairs_step(enum pairs_place *place, const uint8_t *bytes, size_t size, bool is_last,
	       struct pairs_step *ret);

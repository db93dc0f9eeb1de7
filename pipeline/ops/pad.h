/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pictures with more around them. */

#include "pipeline/picture.h"

struct steps_scratch;

/* As op_pad_words of op.c. */
enum pad_mode { PAD_CONSTANT = 0, PAD_EDGE = 1, PAD_REFLECT = 2, PAD_SYMMETRIC = 3 };

struct pad {               /* a window of a picture without end */
	int64_t top, left; /* of the window, from the picture's corner; below 0: outside */
	uint64_t height, width;
	enum pad_mode mode;
	uint8_t fill[3]; /* of PAD_CONSTANT */
};

/* The window as the scratch's next picture. 0, PIPELINE_FAIL_REFUSED, PIPELINE_FAIL_MEMORY. */
int pad_run(struct steps_scratch *scratch, const struct pad *pad, struct picture *picture);

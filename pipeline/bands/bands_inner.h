/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What bands.c and bands_run.c know, and nobody else. */

#include "pipeline/bands/bands.h"

struct bands_program {
	struct op_list ops; /* as numbers go through them */
	struct shape shape;
	struct steps steps; /* borrows ops */
	float mean[BANDS_MOST], std[BANDS_MOST];
};

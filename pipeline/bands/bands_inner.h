/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What bands.c, bands_run.c and measure.c know, and nobody else. */

#include "pipeline/bands/bands.h"

struct bands_program {
	struct op_list ops; /* as numbers go through them */
	struct shape shape;
	struct steps steps; /* borrows ops */
	float mean[BANDS_MOST], std[BANDS_MOST];
};

struct bands_room {
	struct steps_scratch *scratch;   /* owned */
	struct picture_buffer memory;    /* of the planes */
	struct decode_numbers numbers;   /* of the open file */
	struct decode_numbers_head head; /* no rows: none is open */
	struct bands_resize resize;
};

/* ---- bands_run.c ---- */

/* Plane number c of the open file, a copy in the scratch: ops may change it in place, and others want it, too. 0, or PIPELINE_E_BAD with *ret_error. */
int bands_plane(struct bands_room *room, unsigned c, struct picture *ret,
		struct pipeline_error *ret_error);
/* Op number i on one plane. As above. */
int bands_one(struct bands_room *room, const struct bands_program *program, unsigned i,
	      struct picture *picture, const struct draw *draw, struct pipeline_error *ret_error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was measured of each pixel of a picture: depth, disparity, optical flow, normals. A file of numbers that goes where the picture
 * goes, and whose numbers change where the picture's size and sides do.
 */

#include "pipeline/bands/bands.h"

struct measure; /* what is done to one field of it; immutable */

/* Is there an op that it cannot follow? Why not, how to mend it too, and its number in the list (from 0); else NULL. */
const char *measure_check(const struct op_list *ops, const struct shape *shape,
			  enum pipeline_measure what, unsigned *ret_at);
/* field gets its shape, and valid, the field that says of each pixel whether it was measured. The caller owns *ret. 0 or -ENOMEM. */
int measure_new(const struct op_list *ops, const struct shape *shape, struct pipeline_field *field,
		struct pipeline_field *valid, struct measure **ret);
void measure_free(struct measure *measure);
/* As bands_open(), for bands_size() and bands_close(). */
int measure_open(struct bands_room *room, const struct measure *measure, struct decode *decode,
		 const void *data, size_t size, struct pipeline_error *ret_error);
/* The open one through the picture's ops, with its draws; step: what they did to steps on it (follow.h). Numbers of what was not measured
 * are 0. 0, or PIPELINE_E_BAD with *ret_error. */
int measure_run(struct bands_room *room, const struct measure *measure, const struct draw *draw,
		const double step[4], float *out, uint8_t *valid, struct pipeline_error *ret_error);

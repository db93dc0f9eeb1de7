/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is taken of a volume. Crops, flips and quarter turns move whole numbers, so that all of them together say for each place of the output
 * where its number stands in the file; none is moved before it is known which ones are needed. Changes of the numbers come afterwards.
 */

#include "base/philox.h"
#include "pipeline/types.h"

#define VOLUME_AXES 3 /* slices, rows, columns */

struct volume_axis {   /* of what is taken */
	unsigned of;   /* the file's axis that runs along it */
	int64_t first; /* of that, what stands at 0; it may lie outside */
	int step;      /* 1 or -1 */
	int64_t size;
};

struct volume_change {
	float times, plus;
	bool is_noise; /* times what noise has, which is added; else the number */
	struct philox_seq seq;
};

struct volume_part {
	struct volume_axis axis[VOLUME_AXES];
	int64_t least[VOLUME_AXES], end[VOLUME_AXES]; /* of the file's axes, what is left of them */
	unsigned n_changes;
	struct volume_change change[PIPELINE_MAX_OPS];
	struct volume_room *room; /* of volume_find() */
};

/* How many places of the label volume are 0 (or not), and where the one of that number (from 0) is, slice by slice and row by row; errors are the room's. volume_labels.c */
uint64_t volume_count(const struct volume_room *room, bool is_labelled);
void volume_find(struct volume_room *room, bool is_labelled, uint64_t number,
		 int64_t ret[VOLUME_AXES]);

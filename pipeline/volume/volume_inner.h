/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What volume_run.c and volume_labels.c know, and nobody else. */

#include "pipeline/volume/volume.h"
#include "pipeline/volume/volume_part.h"

struct volume_room {
	struct decode *labels;        /* owned; of a label volume */
	struct picture_buffer memory; /* of what is decoded */
	struct decode_numbers numbers;
	struct decode_numbers_head head; /* of the open volume; that of labels is alike */
	struct volume_part part;
	uint32_t labelled[DECODE_NUMBERS_MOST]; /* places of each slice */
	int failed;                             /* volume_find() did, with the error: */
	struct pipeline_error error;
};

/* Of the open file, by that decoder: slices from first on, `depth` of each of so many volumes, that part of each. Into room->numbers. */
int volume_read(struct volume_room *room, struct decode *decode, unsigned volumes, unsigned first,
		unsigned depth, const struct picture_box *part, struct pipeline_error *ret_error);
/* Counts what is labelled of the open labels. */
int volume_count_labels(struct volume_room *room, struct pipeline_error *ret_error);

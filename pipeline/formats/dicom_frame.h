/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The stored numbers of one frame of a DICOM file, decompressed. */

#include "pipeline/formats/dicom_head.h"

struct dicom_room {                         /* all zero at the start */
	struct picture_buffer joined, made; /* a frame's pieces; what came out */
	void *jpeg, *jp2;                   /* the formats' states */
};

struct dicom_frame { /* numbers, as they stand in memory that the room or the file owns */
	const uint8_t *at;
	enum pipeline_dtype dtype;
	size_t pixel, row, sample; /* bytes from one to the next */
};

/* Frame number i (hostile). 0, or PIPELINE_E_BAD with *ret_error. */
int dicom_frame_read(struct dicom_room *room, const struct dicom_head *head, uint32_t i,
		     struct dicom_frame *ret, struct pipeline_error *ret_error);
void dicom_room_trim(struct dicom_room *room);
void dicom_room_fini(struct dicom_room *room);

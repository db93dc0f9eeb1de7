/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Rows of a picture, as they are decoded, through a plan into a field or a picture. */

#include "pipeline/engine/fuse_fan.h"
#include "pipeline/engine/fuse_kernels.h"
#include "pipeline/formats/decode.h"

struct fuse_rows { /* of one run; all zero at the start */
	const struct plane_kernels *kernels;
	struct plane_cache across_cache, down_cache;
	struct picture_buffer room;
	struct fuse_fan fan; /* what is made, and for whom */
	/* of one picture */
	const struct plane_table *across, *down; /* NULL: that axis keeps its size */
	bool down_first;
	struct picture_box box;           /* of the picture: the rows and columns that are fed */
	uint32_t fed, made;               /* rows of box so far; rows of the window so far */
	const struct fuse_kernels *fused; /* straight into the one sink's field; NULL: by tile */
	/* in room */
	uint8_t *held[3]; /* a row that waits for the other one of its pair */
	uint8_t *ring[3]; /* pairs of rows; slots of them, a power of two */
	uint32_t slots;
	size_t ring_stride;
	uint8_t *tile[3]; /* rows of the window */
	size_t tile_stride;
	uint8_t *temporary[3];
	const uint8_t *const *pair[3]; /* the ring's slots, twice over */
};

void fuse_rows_fini(struct fuse_rows *rows);
/* Gives memory back that only an unusual picture needed. */
void fuse_rows_trim(struct fuse_rows *rows);

/* Begins with a picture, for one sink, which is borrowed till the end. rows->box is then what is wanted of the picture.
 * 0 or PIPELINE_FAIL_MEMORY. */
int fuse_rows_begin(struct fuse_rows *rows, const struct fuse_sink *sink);
/* The same for all sinks of rows->fan. */
int fuse_rows_begin_fan(struct fuse_rows *rows);
/* The next rows of box. After the last one all is written. */
void fuse_rows_feed(struct fuse_rows *rows, const struct decode_band *band);

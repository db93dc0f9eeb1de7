/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Batches of a pipeline with mosaic: each picture of four of the batch, and what goes with it. With the stream's turn. */

#include "libaccess/schema.h"
#include "plan/mix/mosaic.h"
#include "shmring/proto.h"

struct mosaic_field {
	uint32_t role;      /* enum proto_mosaic_role, MOSAIC_BATCH_LENGTHS */
	uint64_t row_bytes; /* of boxes, rows and points */
	uint32_t points;    /* of a row */
	uint32_t numbers;   /* of a mask: the field that has numbers, or LAYOUT_MAX_FIELDS */
	bool is_numbers;    /* of rows: they are numbers in a mask */
	struct mosaic_picture picture; /* image, mask */
};

struct mosaic_batch {
	struct mosaic_ask ask;
	struct mosaic_field field[LAYOUT_MAX_FIELDS];
	uint32_t image;
	uint32_t
	    leader; /* the field whose rows all others have: boxes, else points, or LAYOUT_MAX_FIELDS */
	uint32_t most;      /* rows of a sample */
	uint32_t most_kept; /* of a result: as numbers of a mask can tell apart */
	void *scratch;
	uint16_t *
	    numbers; /* [MOSAIC_TILES][MOSAIC_NUMBERS], zeros between pictures; NULL: no mask has any */
	uint32_t *rows; /* of the result: 4 row + picture */
};

struct oa_batch;

/* Sets up batches of these fields, of zeros or anew; ret: what they become. 0; -ENOMEM; -EPROTO: they do not fit. What is said is hostile. */
int mosaic_batch_begin(struct mosaic_batch *mosaic_batch, const struct proto_mosaic *said,
		       const struct schema *schema, struct schema *ret);
/* Writes the batch's fields into memory, as shown has them. */
void mosaic_batch_fill(const struct mosaic_batch *mosaic_batch, const struct batch_mix_key *key,
		       const struct schema *schema, const struct schema *shown,
		       const struct oa_batch *batch, uint8_t *memory);
void mosaic_batch_fini(struct mosaic_batch *mosaic_batch);

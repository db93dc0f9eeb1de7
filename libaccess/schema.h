/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a batch has: its fields, and where their arrays lie in a private buffer of one batch. A plain value. */

#include "base/base.h"
#include "shmring/layout.h"

struct slot_geometry;

struct schema_field { /* of one sample */
	char name[33];
	uint32_t dtype, where, ndim;
	uint64_t shape[LAYOUT_MAX_DIMS], sample_bytes;
	uint64_t offset;        /* of its array in a buffer */
	uint32_t kind, lengths; /* as layout_field has them */
};

struct schema {
	uint32_t n, batch; /* fields; samples of a batch, at most */
	uint64_t bytes;    /* of a buffer: ids, then the fields' arrays, each at a multiple of 64 */
	struct schema_field field[LAYOUT_MAX_FIELDS];
};

/* The fields of a slot table, for batches of so many samples. */
void schema_init(struct schema *schema, const struct slot_geometry *geometry, uint32_t batch);
/* The fields, or their shapes, or the batch are others now. */
void schema_lay_out(struct schema *schema);
/* Does the slot table have just these fields? */
bool schema_fits(const struct schema *schema, const struct slot_geometry *geometry);

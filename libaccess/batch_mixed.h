/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Batches of a pipeline with mixup or cutmix: private copies, made by oa_next(). */

#include "base/base.h"
#include "base/wire.h"
#include "libaccess/libaccess.h"
#include "libaccess/schema.h"
#include "sched/mix/batch_mix.h"

struct batch_mixed_ask { /* what accessd says of the pipeline's last ops */
	struct batch_mix_op op[BATCH_MIX_MAX];
	uint32_t n;       /* 0: there are none */
	bool is_planar;   /* the image is channels, rows, columns; else rows, columns, channels */
	uint32_t classes; /* 0: as many as labels have numbers */
};

struct batch_mixed_buffer {              /* one batch */
	struct batch_mixed_buffer *next; /* in batch_mixed.pool */
	uint8_t *memory;                 /* ids, then the fields' arrays */
};

struct batch_mixed {
	struct batch_mixed_ask ask;
	uint32_t image, label; /* numbers of these fields */
	uint32_t height, width;
	struct schema schema;     /* as batches show it, and of a buffer */
	struct batch_mix_key key; /* of the batch that is being handed out */
	struct batch_mixed_buffer *pool;
	uint32_t n_pool;
};

/* From OPENED; hostile. 0, or -EPROTO with diag. */
int batch_mixed_read(const struct wire_in *opened, struct batch_mixed_ask *ret, struct diag *diag);
bool batch_mixed_same(const struct batch_mixed_ask *a, const struct batch_mixed_ask *b);

struct oa_batch;
struct oa_stream;

/* ---- with the stream's lock ---- */
/* Sets up batches of these fields. 0, or -EPROTO with diag: they do not fit. */
int batch_mixed_begin(struct batch_mixed *batch_mixed, const struct batch_mixed_ask *ask,
		      const struct schema *schema, struct diag *diag);
/* Is there a buffer for one batch more? 0, OA_E_PINS, -ENOMEM: nothing was taken. */
int batch_mixed_reserve(struct oa_stream *stream);
/* Notes what the draws of the batch are made from, which is known before the epoch moves on. */
void batch_mixed_note(struct oa_stream *stream, const struct oa_batch *batch);
/* Mixes the batch, which was noted and for which a buffer was reserved; drops the lock meanwhile. 0; OA_E_PIPELINE: a
 * label fits no class, the stream has failed and the batch is gone. */
int batch_mixed_batch(struct oa_stream *stream, struct oa_batch *batch);
void batch_mixed_free(struct oa_stream *stream, struct batch_mixed_buffer *buffer);
void batch_mixed_fini(struct batch_mixed *batch_mixed);

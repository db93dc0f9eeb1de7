/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Batches of a pipeline with mixup, cutmix or mosaic, or with an objective: private copies, made by oa_next(). With the stream's lock
 * but for what says otherwise. */

#include "libaccess/mixed_ask.h"
#include "libaccess/mosaic/mosaic_batch.h"
#include "libaccess/objective/objective_batch.h"
#include "libaccess/schema.h"

struct batch_mixed_buffer {              /* one batch */
	struct batch_mixed_buffer *next; /* in batch_mixed.pool */
	uint8_t *memory;                 /* ids, then the fields' arrays */
};

struct batch_mixed {
	struct mixed_ask ask;
	uint32_t image, label; /* numbers of these fields */
	uint32_t height, width;
	struct mosaic_batch mosaic;       /* instead of all that, where ask.has_mosaic */
	struct objective_batch objective; /* instead of all that, where there is one */
	struct schema schema;             /* as batches show it, and of a buffer */
	struct batch_mix_key key;         /* of the batch that is being handed out */
	struct batch_mixed_buffer *pool;
	uint32_t n_pool;
	bool is_poisoned, is_closed; /* is_closed: nothing goes into the pool */
};

struct oa_batch;
struct progress;

/* Sets up batches of these fields. 0; -ENOMEM; -EPROTO, OA_E_INVALID with diag: they do not fit. */
int batch_mixed_begin(struct batch_mixed *batch_mixed, const struct mixed_ask *ask,
		      const struct schema *schema, struct diag *diag);
/* Is there anything to be done to batches? */
bool batch_mixed_is_used(const struct batch_mixed *batch_mixed);
/* And does it join samples of a batch? */
bool batch_mixed_joins(const struct batch_mixed *batch_mixed);
/* Is there a buffer for one batch more? 0 or -ENOMEM. */
int batch_mixed_reserve(struct batch_mixed *batch_mixed);
struct batch_mixed_buffer *batch_mixed_take(struct batch_mixed *batch_mixed); /* reserved */
void batch_mixed_free(struct batch_mixed *batch_mixed, struct batch_mixed_buffer *buffer);
/* Notes what the draws of the batch are made from, which is known before the epoch moves on. */
void batch_mixed_note(struct batch_mixed *batch_mixed, const struct progress *progress,
		      const struct oa_batch *batch);
/* Mixes the batch, which was noted, into the buffer's memory; schema: of what it is made of. Without the lock.
 * batch->count, or the number of a sample whose label is no class. */
uint32_t batch_mixed_fill(const struct batch_mixed *batch_mixed, const struct schema *schema,
			  const struct oa_batch *batch, uint8_t *memory);
void batch_mixed_fini(struct batch_mixed *batch_mixed);

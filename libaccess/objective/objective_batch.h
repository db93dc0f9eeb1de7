/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Batches of tokens with an objective: what a model is to learn of each sample, in a private copy. With the stream's turn. */

#include "libaccess/libaccess.h"
#include "libaccess/schema.h"
#include "plan/objective/objective.h"

struct objective_batch {
	struct objective objective; /* OBJECTIVE_NONE: there is none */
	uint8_t *what;              /* owned; so are the others */
	int64_t *sentinels;
	struct objective_from from;
	uint32_t field;            /* the tokens' */
	struct objective_key *key; /* of each sample of the batch that is being handed out */
};

struct oa_batch;
struct progress;

/* ---- objective_options.c ---- */
/* Copies the caller's, as far as his version of the struct has it; NULL: none. 0; OA_E_INVALID, OA_E_VERSION with diag naming
 * the member; -ENOMEM. objective_batch_fini() in all cases. */
int objective_batch_read(struct objective_batch *objective_batch, const struct oa_objective *from,
			 struct diag *diag);

/* ---- objective_batch.c ---- */
/* Sets up batches of these fields, of which ret says what they become. 0; -ENOMEM; OA_E_INVALID with diag: they are no
 * tokens of which that can be learned. */
int objective_batch_begin(struct objective_batch *objective_batch, const struct schema *schema,
			  struct schema *ret, struct diag *diag);
/* Notes what the draws of the batch are made from. */
void objective_batch_note(struct objective_batch *objective_batch, const struct progress *progress,
			  const struct oa_batch *batch);
/* Writes the batch's fields into memory, as shown has them. */
void objective_batch_fill(const struct objective_batch *objective_batch,
			  const struct schema *schema, const struct schema *shown,
			  const struct oa_batch *batch, uint8_t *memory);
void objective_batch_fini(struct objective_batch *objective_batch);

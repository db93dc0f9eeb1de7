/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private buffers of a batch each: what was left over of chunks, in the order in which it is handed out. With the
 * stream's lock. */

#include "libaccess/progress.h"

/* Room for one batch in private memory. */
struct carry {
	struct carry *next; /* in carries->full or carries->pool */
	uint8_t *memory;    /* ids, then the fields' arrays */
	int64_t *ids;
	struct listing_key *keys; /* for a recording, or mixup, cutmix and mosaic, else NULL */
	uint32_t count, substituted;
};

struct carries {
	struct carry *filling; /* fewer than a batch */
	struct carry *full, **full_end;
	const struct schema *schema; /* borrowed */
	struct carry *pool;
	uint32_t n_pool;
	bool has_keys, is_poisoned;
	bool is_closed; /* nothing goes into the pool */
};

void carry_init(struct carries *carries, const struct schema *schema);
void carry_fini(struct carries *carries);
struct carry *carry_new(struct carries *carries); /* from the pool; NULL: no memory */
void carry_free(struct carries *carries, struct carry *carry);
/* Copies count samples at first of held behind what is there: all fields. */
void carry_copy(const struct carries *carries, const struct progress *progress, struct carry *carry,
		const struct held *held, uint32_t first, uint32_t count);
/* Moves up to count samples at the cursor into the buffer at hand (a full one goes to carries->full).
 * Returns how many; 0: no memory. */
uint32_t carry_add(struct carries *carries, struct progress *progress, struct held *held,
		   uint32_t count, struct met *met);
/* The buffer at *from, which moves on to the one behind it. */
struct carry *carry_take(struct carries *carries, struct carry **from);
void carry_clear(struct carries *carries); /* all that is carried, full ones too */
/* Samples in the buffer that is being filled. */
static inline uint32_t carry_count(const struct carries *carries)
{
	return carries->filling ? carries->filling->count : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pins that outlive their batch's object.
 *
 * A tensor that was made from a batch is freed by its own library, in any thread and at any time; what
 * it has is a reference here, not one to a Python object, so that freeing it needs no interpreter.
 */

#include "python/core/pyhold.h"

#include <stdatomic.h>
#include <stdlib.h>
#include "python/core/pyguard.h"

#define PYHOLD_FIELDS 8

struct pyhold {
	atomic_uint refs;
	bool is_writable;
	uint32_t n_guards;
	int guard[PYHOLD_FIELDS];
	struct oa_batch *batch;
};

/* One that there is no place to watch for is made writable now, where that can be. */
static void pyhold_watch(struct pyhold *hold)
{
	struct oa_field field = {.size = sizeof(field)};

	while (hold->n_guards < PYHOLD_FIELDS &&
	       oa_batch_field(hold->batch, hold->n_guards, &field) == 0) {
		int guard = pyguard_watch(hold->batch, field.data, (size_t)field.bytes);

		hold->guard[hold->n_guards++] = guard;
		if (guard < 0)
			oa_make_writable(hold->batch);
	}
}

/* In memory that nobody else has? */
static bool pyhold_is_copied(const struct oa_batch *batch)
{
	struct oa_batch_info info = {.size = sizeof(info)};

	oa_batch_info(batch, &info);
	return info.copied > 0;
}

struct pyhold *pyhold_new(struct oa_batch *batch, bool is_writable)
{
	struct pyhold *hold = malloc(sizeof(*hold));

	if (hold == NULL)
		return NULL;
	atomic_init(&hold->refs, 1);
	hold->is_writable = is_writable;
	hold->batch = batch;
	hold->n_guards = 0;
	if (!is_writable && !pyhold_is_copied(batch))
		pyhold_watch(hold);
	return hold;
}

struct pyhold *pyhold_ref(struct pyhold *hold)
{
	atomic_fetch_add_explicit(&hold->refs, 1, memory_order_relaxed);
	return hold;
}

void pyhold_unref(struct pyhold *hold)
{
	if (hold == NULL || atomic_fetch_sub_explicit(&hold->refs, 1, memory_order_acq_rel) > 1)
		return;
	for (uint32_t i = 0; i < hold->n_guards; i++)
		pyguard_forget(hold->guard[i]);
	oa_release(hold->batch);
	free(hold);
}

const struct oa_batch *pyhold_batch(const struct pyhold *hold)
{
	return hold->batch;
}

bool pyhold_is_writable(const struct pyhold *hold)
{
	return hold->is_writable;
}

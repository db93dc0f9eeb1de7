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

struct pyhold {
	atomic_uint refs;
	bool is_writable;
	int guard;
	struct oa_batch *batch;
};

/* The image, the field that programs work on. */
static int pyhold_watch(const struct oa_batch *batch)
{
	struct oa_field field;

	if (oa_batch_field(batch, 0, &field) != 0 || field.bytes == 0)
		return -1;
	return pyguard_watch(field.data, (size_t)field.bytes);
}

struct pyhold *pyhold_new(struct oa_batch *batch, bool is_writable)
{
	struct pyhold *hold = malloc(sizeof(*hold));

	if (hold == NULL)
		return NULL;
	atomic_init(&hold->refs, 1);
	hold->is_writable = is_writable;
	hold->batch = batch;
	hold->guard = is_writable ? -1 : pyhold_watch(batch);
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
	pyguard_forget(hold->guard);
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

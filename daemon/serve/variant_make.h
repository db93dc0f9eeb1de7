/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The memory of a variant: made, and given back. */

#include "base/base.h"

struct slot_geometry;
struct domain;
struct hash_id;
struct pipeline;
struct stream;
struct variant;

/* Takes pipeline, where it succeeds. geometry is planned; payer pays. Its slots are not reserved yet,
 * and the worker parent does not know it. 0 or negative errno. */
int variant_new(struct stream *stream, struct pipeline *pipeline, const struct hash_id *key,
		const struct slot_geometry *geometry, struct domain *payer, struct variant **ret);
/* Closes its slots: nobody is given them any more. Before others are told to let go, so that the last to hold
 * that memory, who frees it, is not accessd. */
void variant_let_go(struct variant *variant);
/* At once, with its stream or when nobody maps it. */
void variant_free(struct variant *variant);
void variant_give_back(struct variant *variant); /* all but its number */

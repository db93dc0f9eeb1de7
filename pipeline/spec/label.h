/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ops on labels, map, one_hot and smooth: what a class number of the data set becomes. */

#include "base/hash.h"
#include "pipeline/spec/op.h"

struct label { /* immutable once made; zeros: the class number itself */
	bool has_map, has_one_hot, has_smooth;
	struct op map;     /* its lists are in the pool of the list that it came from */
	uint32_t classes;  /* 0: a number, int64; else a float32 for each class */
	float own, others; /* of the sample's class, of the others */
};

/* The next op in the order of the text. What is wrong with it there, how to mend it too; else NULL. */
const char *label_add(struct label *label, const struct op_list *ops, const struct op *op);
/* What decides which classes have no place. */
void label_hash(const struct label *label, const struct op_list *ops, struct hash *hash);
/* To out: an int64, or the floats. 0, or PIPELINE_E_BAD with *ret_error: it has no place. */
int label_write(const struct label *label, const struct op_list *ops, uint32_t class, void *out,
		struct pipeline_error *ret_error);

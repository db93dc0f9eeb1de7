/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The op "filter": which samples a job wants, by class and by the size of the file's picture. */

#include "base/hash.h"
#include "pipeline/spec/op.h"

struct label_filter { /* zeros: all */
	bool is_there, by_label, by_size;
	struct op op;               /* its lists are in the pool of the list that it came from */
	uint32_t least[2], most[2]; /* height and width */
};

/* What is wrong with the op, how to mend it too; else NULL and *ret. */
const char *label_filter_init(struct label_filter *ret, const struct op *op);
/* What decides which samples fail it. */
void label_filter_hash(const struct label_filter *label_filter, struct hash *hash);
/* Does a picture of that size stay? */
bool label_filter_has_size(const struct label_filter *label_filter, uint32_t height,
			   uint32_t width);
/* The class numbers of keep or drop; NULL: none are given. */
const int32_t *label_filter_labels(const struct label_filter *label_filter,
				   const struct op_list *ops, bool keep, unsigned *ret_count);

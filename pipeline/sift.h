/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_SIFT_H
#define PIPELINE_SIFT_H

/* The op "filter": which samples a job wants, by class and by the size of the file's picture. */

#include "pipeline/op.h"

struct sift { /* zeros: all */
	bool is_there, by_label, by_size;
	struct op op;               /* its lists are in the pool of the list that it came from */
	uint32_t least[2], most[2]; /* height and width */
};

/* What is wrong with the op, how to mend it too; else NULL and *ret. */
const char *sift_init(struct sift *ret, const struct op *op);
/* What decides which samples fail it. */
void sift_hash(const struct sift *sift, struct hash *hash);
/* Does a picture of that size stay? */
bool sift_has_size(const struct sift *sift, uint32_t height, uint32_t width);
/* The class numbers of keep or drop; NULL: none are given. */
const int32_t *sift_labels(const struct sift *sift, const struct op_list *ops, bool keep,
			   unsigned *ret_count);

#endif

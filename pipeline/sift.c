/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op "filter" is two in one. Classes are known from the index, so samples that are left out by
 * class never were in the job's epoch: it is a part of the data set, as those of a sampler are, and none
 * of the worker's business; jobs that differ in it share a stream. How large a picture is says its file's
 * head alone: such a sample is in the epoch until it is read, and then a hole in it, the same for all who
 * share.
 */

#include "pipeline/op_run.h"
#include "pipeline/sift.h"

static uint32_t sift_bound(const struct op *op, unsigned param, uint32_t otherwise)
{
	return op_is_null(op, param) ? otherwise : (uint32_t)op_number(op, param, 0);
}

const char *sift_init(struct sift *ret, const struct op *op)
{
	*ret = (struct sift){
	    .is_there = true,
	    .op = *op,
	    .by_label = !op_is_null(op, OP_FILTER_KEEP) || !op_is_null(op, OP_FILTER_DROP),
	    .least = {sift_bound(op, OP_FILTER_MIN_HEIGHT, 0),
		      sift_bound(op, OP_FILTER_MIN_WIDTH, 0)},
	    .most = {sift_bound(op, OP_FILTER_MAX_HEIGHT, UINT32_MAX),
		     sift_bound(op, OP_FILTER_MAX_WIDTH, UINT32_MAX)},
	};
	for (unsigned i = 0; i < 2; i++) {
		ret->by_size |= ret->least[i] > 0 || ret->most[i] < UINT32_MAX;
		if (ret->least[i] > ret->most[i])
			return "nothing is as large as its min and as small as its max; exchange "
			       "them";
	}
	if (!ret->by_label && !ret->by_size)
		return "it leaves nothing out; give keep or drop (lists of class numbers), or "
		       "min_width, max_width, min_height or max_height";
	return NULL;
}

void sift_hash(const struct sift *sift, struct hash *hash)
{
	hash_add_u64(hash, sift->by_size);
	for (unsigned i = 0; sift->by_size && i < 2; i++) {
		hash_add_u64(hash, sift->least[i]);
		hash_add_u64(hash, sift->most[i]);
	}
}

bool sift_has_size(const struct sift *sift, uint32_t height, uint32_t width)
{
	return height >= sift->least[0] && height <= sift->most[0] && width >= sift->least[1] &&
	       width <= sift->most[1];
}

const int32_t *sift_labels(const struct sift *sift, const struct op_list *ops, bool keep,
			   unsigned *ret_count)
{
	unsigned param = keep ? OP_FILTER_KEEP : OP_FILTER_DROP;

	if (!sift->by_label || op_is_null(&sift->op, param))
		return NULL;
	*ret_count = sift->op.value[param].count;
	return op_items(ops, &sift->op, param);
}

const struct op_impl sift_op = {.stage = OP_STAGE_FILTER};

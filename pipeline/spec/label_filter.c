/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op "filter" is two in one. Classes are known from the index, so samples that are left out by
 * class never were in the job's epoch: it is a part of the data set, as those of a sampler are, and none
 * of the worker's business; jobs that differ in it share a stream. How large a picture is says its file's
 * head alone: such a sample is in the epoch until it is read, and then a hole in it, the same for all who
 * share.
 */

#include "pipeline/ops/op_run.h"
#include "pipeline/spec/label_filter.h"

static uint32_t label_filter_bound(const struct op *op, unsigned param, uint32_t otherwise)
{
	return op_is_null(op, param) ? otherwise : (uint32_t)op_number(op, param, 0);
}

const char *label_filter_init(struct label_filter *ret, const struct op *op)
{
	*ret = (struct label_filter){
	    .is_there = true,
	    .op = *op,
	    .by_label = !op_is_null(op, OP_FILTER_KEEP) || !op_is_null(op, OP_FILTER_DROP),
	    .least = {label_filter_bound(op, OP_FILTER_MIN_HEIGHT, 0),
		      label_filter_bound(op, OP_FILTER_MIN_WIDTH, 0)},
	    .most = {label_filter_bound(op, OP_FILTER_MAX_HEIGHT, UINT32_MAX),
		     label_filter_bound(op, OP_FILTER_MAX_WIDTH, UINT32_MAX)},
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

void label_filter_hash(const struct label_filter *label_filter, struct hash *hash)
{
	hash_add_u64(hash, label_filter->by_size);
	for (unsigned i = 0; label_filter->by_size && i < 2; i++) {
		hash_add_u64(hash, label_filter->least[i]);
		hash_add_u64(hash, label_filter->most[i]);
	}
}

bool label_filter_has_size(const struct label_filter *label_filter, uint32_t height, uint32_t width)
{
	return height >= label_filter->least[0] && height <= label_filter->most[0] &&
	       width >= label_filter->least[1] && width <= label_filter->most[1];
}

const int32_t *label_filter_labels(const struct label_filter *label_filter,
				   const struct op_list *ops, bool keep, unsigned *ret_count)
{
	unsigned param = keep ? OP_FILTER_KEEP : OP_FILTER_DROP;

	if (!label_filter->by_label || op_is_null(&label_filter->op, param))
		return NULL;
	*ret_count = label_filter->op.value[param].count;
	return op_items(ops, &label_filter->op, param);
}

const struct op_impl label_filter_op = {.stage = OP_STAGE_FILTER};

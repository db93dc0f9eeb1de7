/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels. map gives class numbers others, one_hot makes 0 and 1 of them, and smooth what
 * torch.nn.CrossEntropyLoss(label_smoothing=epsilon) means by that: every class has epsilon / classes, and
 * the sample's own 1 - epsilon more. So a label is a number, or one of two values for each class,
 * which are computed once, in double, and rounded to float32.
 *
 * A class without a place is the sample's error and never a guess: who trains with nine classes on ten
 * is to hear of it. A default of map is how to say that it is meant.
 */

#include "pipeline/formats/decode.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/spec/label.h"

/* ---- the ops ---- */

static const char *label_check_table(const struct op_list *ops, const struct op *op)
{
	const int32_t *item = op_items(ops, op, OP_MAP_TABLE);

	for (unsigned i = 0; i < op->value[OP_MAP_TABLE].count; i += 3) {
		if (item[i] != 2)
			return "table has an entry that is no pair; give [[from, to], ...]";
		if (item[i + 1] < 0)
			return "table has a class below 0; class numbers count from 0";
		for (unsigned k = 0; k < i; k += 3)
			if (item[k + 1] == item[i + 1])
				return "table has a class twice; give each one entry";
	}
	return NULL;
}

static const char *label_add_map(struct label *label, const struct op_list *ops,
				 const struct op *op)
{
	if (label->has_map)
		return "it is there twice; leave one out";
	if (label->classes)
		return "it maps class numbers; put it before one_hot and smooth";
	if (op_is_null(op, OP_MAP_LABELS) == op_is_null(op, OP_MAP_TABLE))
		return "give one of labels (the new number of each class) and table ([[from, to], "
		       "...])";
	label->has_map = true;
	label->map = *op;
	return op_is_null(op, OP_MAP_TABLE) ? NULL : label_check_table(ops, op);
}

static void label_set_classes(struct label *label, uint32_t classes, double epsilon)
{
	double others = epsilon / classes;

	label->classes = classes;
	label->others = (float)others;
	label->own = (float)(1 - epsilon + others);
}

static const char *label_add_smooth(struct label *label, const struct op *op)
{
	uint32_t classes = 0;

	if (!op_is_null(op, OP_SMOOTH_NUM_CLASSES))
		classes = (uint32_t)op_number(op, OP_SMOOTH_NUM_CLASSES, 0);
	if (label->has_smooth)
		return "it is there twice; leave one out";
	if (!classes && !label->classes)
		return "how many classes there are is not known; give num_classes, or put one_hot "
		       "before it";
	if (classes && label->classes && classes != label->classes)
		return "its num_classes is not that of one_hot; leave it out";
	label->has_smooth = true;
	label_set_classes(label, classes ? classes : label->classes,
			  op_number(op, OP_SMOOTH_EPSILON, 0));
	return NULL;
}

const char *label_add(struct label *label, const struct op_list *ops, const struct op *op)
{
	if (op->id == OP_MAP)
		return label_add_map(label, ops, op);
	if (op->id == OP_SMOOTH)
		return label_add_smooth(label, op);
	if (label->has_one_hot)
		return "it is there twice; leave one out";
	if (label->has_smooth)
		return "smooth has made a vector of the label already; put it before smooth";
	label->has_one_hot = true;
	label_set_classes(label, (uint32_t)op_number(op, OP_ONE_HOT_NUM_CLASSES, 0), 0);
	return NULL;
}

void label_hash(const struct label *label, const struct op_list *ops, struct hash *hash)
{
	static const unsigned lists[] = {OP_MAP_LABELS, OP_MAP_TABLE};
	bool maps = label->has_map && (label->classes || op_is_null(&label->map, OP_MAP_DEFAULT));

	hash_add_u64(hash, label->classes);
	hash_add_u64(hash, maps);
	for (unsigned i = 0; maps && i < BASE_ARRAY_LEN(lists); i++) {
		unsigned count = label->map.value[lists[i]].count;

		hash_add_u64(hash, count);
		hash_add(hash, op_items(ops, &label->map, lists[i]), count * sizeof(int32_t));
	}
	if (maps && !op_is_null(&label->map, OP_MAP_DEFAULT))
		hash_add_u64(hash, (uint64_t)(int64_t)op_number(&label->map, OP_MAP_DEFAULT, 0));
}

const struct op_impl label_op = {.stage = OP_STAGE_LABEL};

/* ---- one sample ---- */

/* The entry of a class, or NULL. */
static const int32_t *label_entry(const struct op_list *ops, const struct op *map, uint32_t class)
{
	unsigned count = map->value[OP_MAP_TABLE].count;
	const int32_t *item = op_items(ops, map, OP_MAP_TABLE);

	if (!op_is_null(map, OP_MAP_LABELS))
		return class < map->value[OP_MAP_LABELS].count
			   ? op_items(ops, map, OP_MAP_LABELS) + class
			   : NULL;
	for (unsigned i = 0; i < count; i += 3)
		if ((uint32_t)item[i + 1] == class)
			return &item[i + 2];
	return NULL;
}

static int label_map(const struct op_list *ops, const struct op *map, uint32_t class, int64_t *ret,
		     struct pipeline_error *ret_error)
{
	const int32_t *entry = label_entry(ops, map, class);

	if (!entry && op_is_null(map, OP_MAP_DEFAULT))
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0,
				   "map: no entry for class %u, and no default", class);
	*ret = entry ? *entry : (int64_t)op_number(map, OP_MAP_DEFAULT, 0);
	return 0;
}

int label_write(const struct label *label, const struct op_list *ops, uint32_t class, void *out,
		struct pipeline_error *ret_error)
{
	int64_t number = class;
	float *value = out;

	if (label->has_map && label_map(ops, &label->map, class, &number, ret_error) != 0)
		return PIPELINE_E_BAD;
	if (!label->classes) {
		memcpy(out, &number, sizeof(number));
		return 0;
	}
	if (number < 0 || number >= label->classes)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0,
				   "label %lld, but num_classes is %u", (long long)number,
				   label->classes);
	for (uint32_t i = 0; i < label->classes; i++)
		value[i] = label->others;
	value[number] = label->own;
	return 0;
}

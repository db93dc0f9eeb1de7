/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op "cloud", which takes the place of decode, what may stand behind it, and what comes out: of a file with more points than are
 * asked for a part, and behind those of one with fewer the same again, or zeros.
 *
 * A random part is drawn by Fisher and Yates' exchanges, so its points are in random order, too. It is drawn of the points
 * that are left there: an op on points in front of point_sample decides what that draws of.
 */

#include "pipeline/cloud/cloud.h"

static bool cloud_is_random(const struct op *op)
{
	return op_number(op, OP_CLOUD_PICK, 0) == CLOUD_RANDOM ||
	       op_number(op, OP_CLOUD_SOURCE, 0) == OP_RECORDED_ANEW;
}

const struct op_impl cloud_op = {.stage = OP_STAGE_DECODE, .is_random = cloud_is_random};

/* ---- parameters ---- */

static void cloud_read_properties(const struct op_list *ops, struct cloud *ret)
{
	const struct op *op = &ops->op[0];
	const unsigned count = op->value[OP_CLOUD_PROPERTIES].count;
	const int32_t *item = op_items(ops, op, OP_CLOUD_PROPERTIES), *end = item + count;

	for (; count > 0 && item < end && ret->n_properties < CLOUD_MOST_CHANNELS;
	     item += 1 + *item) {
		char *to = ret->property[ret->n_properties++];

		for (int32_t i = 0; i < *item; i++)
			to[i] = (char)item[1 + i];
	}
}

static const char *cloud_check_surface(const struct op *op, const struct cloud *cloud)
{
	const bool is_plain = cloud->channels == 3 && cloud->normals == 0;

	if (!is_plain && (cloud->channels != 6 || cloud->normals != 3))
		return "a point of a surface is x, y and z; or give 6 channels and normals 3";
	if (op->value[OP_CLOUD_PROPERTIES].count > 0 && cloud->n_properties != 3)
		return "of a mesh's vertices three properties are taken: x, y and z";
	if (cloud->raw)
		return "a file of raw_columns has no faces; leave surface out";
	return cloud->pick == CLOUD_FIRST
		   ? "a surface has no first points; give pick random or even"
		   : NULL;
}

static const char *cloud_check(const struct op *op, const struct cloud *cloud)
{
	if (cloud->surface)
		return cloud_check_surface(op, cloud);
	if (cloud->channels < 3 ||
	    (cloud->n_properties > 0 && cloud->n_properties != cloud->channels))
		return "properties are one for each of channels, 3 to 32, of which the first are "
		       "x, y and z; give as many, "
		       "or leave channels out";
	if (cloud->raw && cloud->raw < cloud->channels)
		return "raw_columns are fewer than channels; give as many, or more";
	if (cloud->normals > 0 && cloud->normals + 3 > cloud->channels)
		return "a normal has three channels, and normals is the first of them; give more "
		       "channels, or less for "
		       "normals";
	if (op->value[OP_CLOUD_PROPERTIES].count > 0 && cloud->raw)
		return "a file of raw_columns has no names for them; leave properties out";
	return NULL;
}

static void cloud_set(const struct op_list *ops, struct cloud *ret)
{
	const struct op *op = &ops->op[0];

	*ret = (struct cloud){
	    .points = (uint32_t)op_number(op, OP_CLOUD_POINTS, 0),
	    .pick = (enum cloud_pick)op_number(op, OP_CLOUD_PICK, 0),
	    .padding = (enum cloud_padding)op_number(op, OP_CLOUD_PADDING, 0),
	};
	cloud_read_properties(ops, ret);
	ret->most = ret->points;
	ret->channels = ret->n_properties > 0 ? ret->n_properties : 3;
	if (!op_is_null(op, OP_CLOUD_CHANNELS))
		ret->channels = (unsigned)op_number(op, OP_CLOUD_CHANNELS, 0);
	if (!op_is_null(op, OP_CLOUD_RAW_COLUMNS))
		ret->raw = (unsigned)op_number(op, OP_CLOUD_RAW_COLUMNS, 0);
	if (!op_is_null(op, OP_CLOUD_NORMALS))
		ret->normals = (unsigned)op_number(op, OP_CLOUD_NORMALS, 0);
	ret->surface = op_number(op, OP_CLOUD_SURFACE, 0) != 0;
	ret->read = ret->surface ? 3 : ret->channels;
}

/* ---- ops behind it ---- */

static const char *cloud_check_range(const struct op *op)
{
	const struct op_value *range = &op->value[OP_POINT_RANGE_RANGE];

	for (unsigned i = 0; i < 3 && range->count == 6; i++)
		if (range->number[i] > range->number[i + 3])
			return "range begins with the larger number; give [x, y, z] of the least "
			       "and then of the most";
	return range->count == 6
		   ? NULL
		   : "range is six numbers: x, y, z of the least and then of the most";
}

static const char *cloud_check_each(const struct cloud *cloud, const struct op *op, unsigned param)
{
	const unsigned given = op->value[param].count;

	return given == 1 || given == cloud->channels
		   ? NULL
		   : "mean and std are one number each, or one for each channel";
}

static const char *cloud_check_normalize(const struct cloud *cloud, const struct op *op)
{
	const char *wrong = cloud_check_each(cloud, op, OP_NORMALIZE_MEAN);

	if (!op_is_null(op, OP_NORMALIZE_OF))
		return "\"of\" is of pictures; leave it out";
	return wrong ? wrong : cloud_check_each(cloud, op, OP_NORMALIZE_STD);
}

static const char *cloud_check_op(const struct cloud *cloud, const struct op *op)
{
	if (op->id == OP_NORMALIZE)
		return cloud_check_normalize(cloud, op);
	if (op_impl(op->id)->stage != OP_STAGE_CLOUD)
		return "behind cloud there are points, on which it does not work; leave it out";
	if (op->id == OP_POINT_RANGE)
		return cloud_check_range(op);
	if (op->id == OP_POINT_TRANSLATION &&
	    op->value[OP_POINT_TRANSLATION_TRANSLATE].count != 1 &&
	    op->value[OP_POINT_TRANSLATION_TRANSLATE].count != 3)
		return "translate is one number, or one for each of x, y and z";
	if (op->id == OP_POINT_ROTATION && op_number(op, OP_POINT_ROTATION_AXIS, 0) == CLOUD_ANY &&
	    (op_number(op, OP_POINT_ROTATION_DEGREES, 0) != -180 ||
	     op_number(op, OP_POINT_ROTATION_DEGREES, 1) != 180))
		return "about any axis all rotations are drawn alike; leave degrees out";
	return NULL;
}

int cloud_init(const struct op_list *ops, unsigned end, struct cloud *ret, struct diag *diag)
{
	struct cloud cloud;
	const char *wrong;
	unsigned at = 0;

	cloud_set(ops, &cloud);
	cloud.end = end;
	wrong = cloud_check(&ops->op[0], &cloud);
	while (!wrong && ++at < end) {
		const struct op *op = &ops->op[at];

		wrong = cloud_check_op(&cloud, op);
		if (op->id == OP_POINT_SAMPLE)
			cloud.most = BASE_MIN(cloud.most,
					      (uint32_t)op_number(op, OP_POINT_SAMPLE_POINTS, 0));
	}
	if (wrong)
		return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op %u (%s): %s", at + 1,
				 op_name(ops->op[at].id), wrong);
	*ret = cloud;
	return 0;
}

/* ---- how many there are ---- */

void cloud_keep(struct cloud_part *part, bool (*stays)(void *arg, const float *point), void *arg)
{
	const unsigned channels = part->cloud->channels;
	size_t kept = 0;

	for (size_t i = 0; i < part->n; i++) {
		const float *point = part->at + i * channels;

		if (!stays(arg, point))
			continue;
		if (kept != i)
			memcpy(part->at + kept * channels, point, channels * sizeof(*point));
		kept++;
	}
	part->n = kept;
}

void cloud_shuffle_first(struct philox_seq *seq, size_t count, struct cloud_part *part)
{
	const unsigned channels = part->cloud->channels;

	for (size_t i = 0; i < count; i++) {
		float *to = part->at + i * channels,
		      *from = to + philox_below(seq, part->n - i) * channels;
		float row[CLOUD_MOST_CHANNELS];

		memcpy(row, from, channels * sizeof(*row));
		memmove(from, to, channels * sizeof(*row));
		memcpy(to, row, channels * sizeof(*row));
	}
}

void cloud_choose(enum cloud_pick pick, uint32_t points, struct philox_seq *seq,
		  struct cloud_part *part)
{
	const unsigned channels = part->cloud->channels;

	if (part->n <= points)
		return;
	if (pick == CLOUD_RANDOM)
		cloud_shuffle_first(seq, points, part);
	for (size_t i = 1; i < points && pick == CLOUD_EVEN; i++)
		memcpy(part->at + i * channels, part->at + i * part->n / points * channels,
		       channels * sizeof(*part->at));
	part->n = points;
}

static void cloud_do(const struct op_impl *impl, const struct op *op, struct op_drawn *drawn,
		     struct cloud_part *part)
{
	impl->cloud(op, drawn, part);
	if (impl->cloud_boxes)
		impl->cloud_boxes(op, drawn, &part->boxes);
}

void cloud_ops(const struct op_list *ops, const struct pipeline_key *key, struct cloud_part *part)
{
	struct draw draw;

	draw_init(&draw, key);
	for (unsigned i = 1; i < part->cloud->end; i++) {
		const struct op_impl *impl = op_impl(ops->op[i].id);
		struct op_drawn drawn;

		op_draw(&ops->op[i], i, &draw, 1, (uint32_t)part->n, &drawn);
		if (ops->op[i].id == OP_NORMALIZE)
			cloud_normalize(ops, &ops->op[i], part);
		else if (!impl->draw || drawn.number[0] != 0)
			cloud_do(impl, &ops->op[i], &drawn, part);
	}
}

void cloud_fill(const struct cloud_part *part, float *out)
{
	const size_t row = part->cloud->channels, whole = part->cloud->most * row;
	size_t filled = part->n * row;

	memcpy(out, part->at, filled * sizeof(*out));
	if (part->cloud->padding != CLOUD_REPEAT || filled == 0) {
		memset(out + filled, 0, (whole - filled) * sizeof(*out));
		return;
	}
	for (; filled < whole; filled++)
		out[filled] = out[filled - part->n * row];
}

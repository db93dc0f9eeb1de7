/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of ops and the shape of what they give.
 *
 * A pipeline has two parts: decode and the ops that change 8-bit pictures, in any order and number;
 * then at most one each of normalize, cast and layout, which together are one step (finish.c). That
 * split is what engines are written against. Every sample of a stream has the same place and size
 * in the slot, so the image's shape must be known before any picture is: a pipeline that leaves it
 * to the pictures is refused here, and told which op to add.
 */

#include "pipeline/ops/op_run.h"
#include "pipeline/spec/shape.h"

struct shape_state {
	struct shape shape; /* height and width are 0 while they depend on the picture */
	const struct op_list *ops;
	unsigned number;         /* of ops looked at */
	unsigned tail;           /* number of the first op behind the picture's, 0: none */
	unsigned seen[OP_COUNT]; /* number (from 1) of the last op of that id, 0: none */
	struct diag *diag;
};

static int shape_bad(struct shape_state *state, unsigned number, const struct op *op,
		     const char *what)
{
	return diag_fail(state->diag, PIPELINE_E_BAD, "pipeline: op %u (%s): %s", number,
			 op_name(op->id), what);
}

/* The first op behind those on 8-bit pictures that was there already, or NULL. */
static const struct op *shape_finishing(const struct shape_state *state, unsigned *ret_number)
{
	for (unsigned i = 0; i < state->number; i++) {
		if (op_impl(state->ops->op[i].id)->stage != OP_STAGE_FINISH &&
		    i + 1 != state->shape.raw)
			continue;
		*ret_number = i + 1;
		return &state->ops->op[i];
	}
	return NULL;
}

/* May an op on pictures stand here? Notes what it is then. */
static int shape_place(struct shape_state *state, unsigned number, const struct op *op)
{
	unsigned at;
	const struct op *before = shape_finishing(state, &at);

	if (op_impl(op->id)->floats && state->seen[op->id])
		return shape_bad(state, number, op, "it is there twice; leave one out");
	if (before && !op_impl(op->id)->finished)
		return diag_fail(
		    state->diag, PIPELINE_E_BAD,
		    "pipeline: op %u (%s) works on 8-bit pictures; put it before op %u (%s)",
		    number, op_name(op->id), at, op_name(before->id));
	if (!before && state->shape.views)
		return shape_bad(state, number, op,
				 "there are several pictures already; put it before the op that "
				 "makes them");
	if (state->shape.patches.most > 0 && op_impl(op->id)->floats)
		return shape_bad(state, number, op,
				 "it is of floats, and patches are made of pictures; leave it out");
	if (before && state->shape.patches.most > 0)
		return shape_bad(state, number, op,
				 "there are patches by then; put it before normalize and cast");
	if (!before && op_impl(op->id)->floats && !state->shape.is_volume)
		state->shape.raw = number;
	if (before || state->shape.raw)
		state->shape.finished |= UINT32_C(1) << (number - 1);
	else
		state->shape.pixel_ops = number;
	return 0;
}

/* A picture of one channel stays one. */
static int shape_check_colors(struct shape_state *state, unsigned number, const struct op *op)
{
	const struct op_param *param;
	const unsigned n = state->shape.channels == 1 ? op_params(op->id, &param) : 0;

	for (unsigned i = 0; i < n; i++) {
		const double *value = op->value[i].number;

		if ((param[i].type.kind == OP_KIND_COLOR || param[i].type.kind == OP_KIND_VALUE) &&
		    op->value[i].count == 3 && (value[0] != value[1] || value[0] != value[2]))
			return diag_fail(state->diag, PIPELINE_E_BAD,
					 "pipeline: op %u (%s): the picture has one channel; give "
					 "one number for %s instead of three",
					 number, op_name(op->id), param[i].name);
	}
	return 0;
}

static int shape_pixel_op(struct shape_state *state, unsigned number, const struct op *op)
{
	const struct op_impl *impl = op_impl(op->id);
	int r = shape_place(state, number, op);
	const char *wrong;

	if (r == 0 && state->shape.is_volume && !impl->volume)
		return shape_bad(state, number, op,
				 "it works on pictures, and this is a volume; leave it out, or "
				 "take an op of volumes");
	if (r == 0 && impl->volume && !impl->finished && !state->shape.is_volume)
		return shape_bad(state, number, op,
				 "it works on volumes; leave it out, or begin with volume in place "
				 "of decode");
	r = r ? r : shape_check_colors(state, number, op);
	if (r != 0 || !impl->shape)
		return r;
	if (state->shape.patches.most > 0 && !impl->stays)
		return shape_bad(state, number, op, "put it before patches, which need their size");
	wrong = impl->shape(op, &state->shape);
	if (!wrong && state->shape.views && state->shape.frames)
		wrong = "there are several pictures already, the frames of the video; leave it out";
	return wrong ? shape_bad(state, number, op, wrong) : 0;
}

/* normalize and cast would change what an op behind them has written. */
static int shape_check_finished(struct shape_state *state, unsigned number, const struct op *op)
{
	const uint32_t raw = state->shape.raw ? UINT32_C(1) << (state->shape.raw - 1) : 0;
	const uint32_t finished = state->shape.finished & ~raw;

	if (!finished || op->id == OP_LAYOUT || (op->id == OP_CAST && state->shape.normalize))
		return 0;
	return diag_fail(state->diag, PIPELINE_E_BAD,
			 "pipeline: op %u (%s) would change what op %d (%s) wrote; put it first",
			 number, op_name(op->id), __builtin_ctz(finished) + 1,
			 op_name(state->ops->op[__builtin_ctz(finished)].id));
}

/* One number for all channels, or one for each. */
static int shape_check_each(struct shape_state *state, unsigned number, const struct op *op,
			    unsigned param)
{
	const unsigned channels = state->shape.channels, given = op->value[param].count;

	if (given == 1 || given == channels)
		return 0;
	if (channels == 1)
		return shape_bad(state, number, op,
				 "the picture has one channel; give one number for mean and one "
				 "for std");
	return diag_fail(state->diag, PIPELINE_E_BAD,
			 "pipeline: op %u (%s): there are %u channels, and %u numbers for mean or "
			 "std; give one for each, or one for all",
			 number, op_name(op->id), channels, given);
}

static int shape_finishing_op(struct shape_state *state, unsigned number, const struct op *op)
{
	struct shape *shape = &state->shape;
	int r;

	if (state->seen[op->id])
		return shape_bad(state, number, op, "it is there twice; leave one out");
	if (op->id == OP_NORMALIZE && !op_is_null(op, OP_NORMALIZE_OF))
		return shape_bad(
		    state, number, op,
		    "\"of\" is of pictures that follow the first one; put it among the "
		    "first one's ops");
	r = shape_check_finished(state, number, op);
	if (r != 0)
		return r;
	if (op->id == OP_NORMALIZE) {
		r = shape_check_each(state, number, op, OP_NORMALIZE_MEAN);
		r = r ? r : shape_check_each(state, number, op, OP_NORMALIZE_STD);
		if (r != 0)
			return r;
		if (state->seen[OP_CAST])
			return shape_bad(state, number, op,
					 "it works in float32; put it before cast");
		shape->normalize = op;
		shape->dtype = PIPELINE_F32;
	} else if (op->id == OP_CAST) {
		shape->dtype = op_dtype(op);
		if (shape->normalize && shape->dtype == PIPELINE_U8)
			return shape_bad(state, number, op,
					 "normalized values do not fit u8; give f16, bf16 or "
					 "f32, or leave normalize out");
	} else {
		shape->order = (enum op_order)op_number(op, OP_LAYOUT_ORDER, 0);
	}
	return 0;
}

/* Numbers are float32 from the first op on, and planes. */
static void shape_of_bands(const struct op *op, struct shape *shape)
{
	shape->bands = op_is_null(op, OP_BANDS_BANDS)
			   ? (unsigned)op_number(op, OP_BANDS_CHANNELS, 0)
			   : op->value[OP_BANDS_BANDS].count;
	shape->channels = shape->bands;
	shape->dtype = PIPELINE_F32;
	shape->order = OP_CHW;
}

static void shape_of_volume(const struct op *op, struct shape *shape)
{
	shape->is_volume = true;
	shape->channels = (unsigned)op_number(op, OP_VOLUME_CHANNELS, 0);
	shape->dtype = PIPELINE_F32;
	shape->order = OP_CHW;
}

void shape_intake(const struct op *first, struct shape *shape)
{
	const struct op_intake *intake = op_intake(first->id);

	shape->by_members = !op_is_null(first, intake->members);
	shape->by_record = op_number(first, intake->source, 0) != OP_FILE || shape->by_members;
}

/* decode, or what takes its place. */
static void shape_first(struct shape *shape, const struct op *op)
{
	shape->pixel_ops = 1;
	if (op->id == OP_DECODE) {
		shape->by_exif = op_number(op, OP_DECODE_EXIF_TRANSPOSE, 0) != 0;
		shape->is_size = op_number(op, OP_DECODE_ONLY_SIZE, 0) != 0;
	} else if (op->id == OP_VIDEO)
		shape->frames = (unsigned)op_number(op, OP_VIDEO_FRAMES, 0);
	else if (op->id == OP_VOLUME)
		shape_of_volume(op, shape);
	else
		shape_of_bands(op, shape);
	shape_intake(op, shape);
}

/* May it stand at that place of the list? */
static const char *shape_check_first(unsigned number, const struct op *op)
{
	if (number == 1 && op->id != OP_DECODE && op->id != OP_VIDEO && op->id != OP_BANDS &&
	    op->id != OP_VOLUME)
		return "the first op must be decode; put {\"op\": \"decode\"} before it";
	if (number == 1)
		return NULL;
	switch (op->id) {
	case OP_DECODE:
		return "the picture is decoded already; leave it out";
	case OP_RECORD:
		return "it stands alone; give decode \"source\": \"record\" instead";
	case OP_AUDIO:
		return "it takes the place of decode, and sounds have no pictures' ops; put it "
		       "first, "
		       "alone";
	case OP_VIDEO:
	case OP_BANDS:
	case OP_CLOUD:
	case OP_DURATION:
	case OP_VOLUME:
		return "it takes the place of decode; put it first, and leave decode out";
	default:
		if (op_impl(op->id)->stage == OP_STAGE_CLOUD)
			return "it works on points; leave it out, or begin with cloud in place of "
			       "decode";
		return op_impl(op->id)->stage == OP_STAGE_WAVE ||
			       op_impl(op->id)->stage == OP_STAGE_SOUND
			   ? "it works on sounds; leave it out, or begin with audio in place of "
			     "decode"
			   : NULL;
	}
}

static int shape_op(struct shape_state *state, unsigned number, const struct op *op)
{
	enum op_stage stage = op_impl(op->id)->stage;
	const char *wrong = shape_check_first(number, op);
	int r = 0;

	if (wrong)
		return shape_bad(state, number, op, wrong);
	if (number > 1 && stage < OP_STAGE_FILTER && state->shape.is_size)
		return shape_bad(state, number, op,
				 "decode gives the picture's size and no pixels; leave it out, or "
				 "decode's \"only_size\"");
	if (stage < OP_STAGE_FILTER && state->tail)
		return diag_fail(
		    state->diag, PIPELINE_E_BAD,
		    "pipeline: op %u (%s) works on the picture; put it before op %u (%s)", number,
		    op_name(op->id), state->tail, op_name(state->ops->op[state->tail - 1].id));
	if (stage >= OP_STAGE_FILTER)
		state->tail = state->tail ? state->tail : number;
	else if (stage == OP_STAGE_FINISH)
		r = shape_finishing_op(state, number, op);
	else if (stage == OP_STAGE_PICTURE)
		r = shape_pixel_op(state, number, op);
	else
		shape_first(&state->shape, op);
	state->seen[op->id] = number;
	state->number = number;
	return r;
}

/* ---- random_apply ---- */

static int shape_ops(struct shape_state *state, unsigned first, unsigned end);

/* What may differ from one of two groups of ops to the other. */
struct shape_size {
	uint32_t height, width;
	unsigned channels;
};

static struct shape_size shape_size_of(const struct shape *shape)
{
	return (struct shape_size){shape->height, shape->width, shape->channels};
}

/* The ops from number first (from 0) on up to end, which the random_apply at `gate` decides on. */
static int shape_group(struct shape_state *state, unsigned gate, unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++) {
		const struct op *op = &state->ops->op[i];

		if (op_impl(op->id)->stage != OP_STAGE_PICTURE || op->id == OP_FIVE_CROP ||
		    op->id == OP_TEN_CROP || op->id == OP_PATCHES)
			return diag_fail(
			    state->diag, PIPELINE_E_BAD,
			    "pipeline: op %u (%s) cannot be done at random; put it behind "
			    "those of op %u (random_apply), or give that fewer ops",
			    i + 1, op_name(op->id), gate + 1);
	}
	return shape_ops(state, first, end);
}

/* Both groups of the random_apply at `at`, each from what is there before it. A size that depends on
 * which of them is done is not known. */
static int shape_either(struct shape_state *state, unsigned at, unsigned end, unsigned *ret_next)
{
	const struct op *op = &state->ops->op[at];
	const unsigned middle = at + 1 + (unsigned)op_number(op, OP_RANDOM_APPLY_OPS, 0);
	const unsigned next = middle + (unsigned)op_number(op, OP_RANDOM_APPLY_OTHERWISE, 0);
	const struct shape_size before = shape_size_of(&state->shape);
	struct shape_size one, other;
	int r;

	if (next > end)
		return shape_bad(state, at + 1, op,
				 "fewer ops than that are behind it; give less for \"ops\" and "
				 "\"otherwise\", or add ops");
	r = shape_group(state, at, at + 1, middle);
	if (r != 0)
		return r;
	one = shape_size_of(&state->shape);
	state->shape.height = before.height;
	state->shape.width = before.width;
	state->shape.channels = before.channels;
	r = shape_group(state, at, middle, next);
	if (r != 0)
		return r;
	other = shape_size_of(&state->shape);
	if (one.channels != other.channels)
		return shape_bad(state, at + 1, op,
				 "the picture would have one channel at random; give grayscale "
				 "\"num_output_channels\": 3");
	if (one.height != other.height || one.width != other.width)
		state->shape.height = state->shape.width = 0;
	*ret_next = next;
	return 0;
}

static int shape_ops(struct shape_state *state, unsigned first, unsigned end)
{
	unsigned i = first;

	while (i < end) {
		const struct op *op = &state->ops->op[i];
		int r = shape_op(state, i + 1, op);

		if (r == 0 && op->id == OP_RANDOM_APPLY)
			r = shape_either(state, i, end, &i);
		else
			i++;
		if (r != 0)
			return r;
	}
	return 0;
}

/* ---- all of it ---- */

int shape_infer(const struct op_list *ops, struct shape *ret, struct diag *diag)
{
	struct shape_state state = {.shape = {.channels = 3, .dtype = PIPELINE_U8, .order = OP_HWC},
				    .ops = ops,
				    .diag = diag};

	int r = shape_ops(&state, 0, ops->count);

	if (r != 0)
		return r;
	if (state.shape.raw && state.shape.dtype == PIPELINE_U8)
		return shape_bad(&state, state.shape.raw, &ops->op[state.shape.raw - 1],
				 "it is of floats; put normalize or {\"op\": \"cast\"} behind it");
	if (!state.shape.height && state.shape.is_volume)
		return diag_fail(
		    diag, PIPELINE_E_BAD,
		    "pipeline: the volume's size would differ from sample to sample; behind op 1 "
		    "(volume) add {\"op\": \"random_crop_3d\", \"size\": [96, 96, 96]}, or "
		    "center_crop_3d, which add what is missing");
	if (!state.shape.height && !state.shape.is_size && !state.shape.patches.most)
		return diag_fail(
		    diag, PIPELINE_E_BAD,
		    "pipeline: the image's size would differ from sample to sample; after op "
		    "%u (%s) add {\"op\": \"center_crop\", \"size\": 224}, or fixed_size_crop, "
		    "which "
		    "adds what is missing at the bottom and at the right; or give resize [height, "
		    "width]",
		    state.shape.pixel_ops, op_name(ops->op[state.shape.pixel_ops - 1].id));
	*ret = state.shape;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rand_augment, trivial_augment, auto_augment and aug_mix: torchvision's RandAugment, TrivialAugmentWide,
 * AutoAugment and AugMix. The last one makes a tensor of a Pillow image before its changes; here they are those of images, as of the
 * others, and the mixture alone is torch's.
 *
 * Each draws changes with their magnitudes and then makes one after another: geometry by turn.h,
 * colours by colour.h. A magnitude is one of a number of bins between two ends. torchvision takes it
 * from torch.linspace, in float32: start + step * bin in the lower half and end - step * (what is
 * left) in the upper one, rounded once (PyTorch's kernel uses fused multiply-add, here a double
 * holds the product). That last bit counts: a solarize threshold of 102 or just below it are two
 * pictures.
 *
 * Drawn: pairs of a change's number and its magnitude, with its sign; AUGMENT_IDENTITY, 0, for none.
 */

#include <math.h>
#include "pipeline/engine/steps.h"
#include "pipeline/ops/augment_mix.h"
#include "pipeline/ops/colour.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/turn.h"

#define AUGMENT_PI 3.14159265358979323846
#define AUGMENT_MOST 8 /* changes of one picture: num_ops in op_tbl.h */
_Static_assert(AUGMENT_MOST * 2 <= OP_MAX_DRAWN, "a number and a magnitude for each");

enum augment_kind { /* in torchvision's order; the last is only in policies */
		    AUGMENT_IDENTITY,
		    AUGMENT_SHEAR_X,
		    AUGMENT_SHEAR_Y,
		    AUGMENT_TRANSLATE_X,
		    AUGMENT_TRANSLATE_Y,
		    AUGMENT_ROTATE,
		    AUGMENT_BRIGHTNESS,
		    AUGMENT_COLOR,
		    AUGMENT_CONTRAST,
		    AUGMENT_SHARPNESS,
		    AUGMENT_POSTERIZE,
		    AUGMENT_SOLARIZE,
		    AUGMENT_AUTOCONTRAST,
		    AUGMENT_EQUALIZE,
		    AUGMENT_INVERT,
};

/* ---- magnitudes ---- */

enum augment_form {
	AUGMENT_NONE,      /* no magnitude */
	AUGMENT_LINE,      /* from start to end */
	AUGMENT_OF_WIDTH,  /* from start to end, both in widths of the picture */
	AUGMENT_OF_HEIGHT, /* the same in heights */
	AUGMENT_BITS,      /* start less up to end, whole */
};

struct augment_range {
	enum augment_form form;
	double start, end;
	bool has_sign; /* negative half of the time */
};

typedef const struct augment_range augment_space[AUGMENT_INVERT + 1];

static augment_space augment_usual = {
    [AUGMENT_SHEAR_X] = {AUGMENT_LINE, 0, 0.3, true},
    [AUGMENT_SHEAR_Y] = {AUGMENT_LINE, 0, 0.3, true},
    [AUGMENT_TRANSLATE_X] = {AUGMENT_OF_WIDTH, 0, 150.0 / 331.0, true},
    [AUGMENT_TRANSLATE_Y] = {AUGMENT_OF_HEIGHT, 0, 150.0 / 331.0, true},
    [AUGMENT_ROTATE] = {AUGMENT_LINE, 0, 30, true},
    [AUGMENT_BRIGHTNESS] = {AUGMENT_LINE, 0, 0.9, true},
    [AUGMENT_COLOR] = {AUGMENT_LINE, 0, 0.9, true},
    [AUGMENT_CONTRAST] = {AUGMENT_LINE, 0, 0.9, true},
    [AUGMENT_SHARPNESS] = {AUGMENT_LINE, 0, 0.9, true},
    [AUGMENT_POSTERIZE] = {AUGMENT_BITS, 8, 4, false},
    [AUGMENT_SOLARIZE] = {AUGMENT_LINE, 1, 0, false},
};

static augment_space augment_wide = {
    [AUGMENT_SHEAR_X] = {AUGMENT_LINE, 0, 0.99, true},
    [AUGMENT_SHEAR_Y] = {AUGMENT_LINE, 0, 0.99, true},
    [AUGMENT_TRANSLATE_X] = {AUGMENT_LINE, 0, 32, true},
    [AUGMENT_TRANSLATE_Y] = {AUGMENT_LINE, 0, 32, true},
    [AUGMENT_ROTATE] = {AUGMENT_LINE, 0, 135, true},
    [AUGMENT_BRIGHTNESS] = {AUGMENT_LINE, 0, 0.99, true},
    [AUGMENT_COLOR] = {AUGMENT_LINE, 0, 0.99, true},
    [AUGMENT_CONTRAST] = {AUGMENT_LINE, 0, 0.99, true},
    [AUGMENT_SHARPNESS] = {AUGMENT_LINE, 0, 0.99, true},
    [AUGMENT_POSTERIZE] = {AUGMENT_BITS, 8, 6, false},
    [AUGMENT_SOLARIZE] = {AUGMENT_LINE, 1, 0, false},
};

static augment_space augment_mixed = {
    [AUGMENT_SHEAR_X] = {AUGMENT_LINE, 0, 0.3, true},
    [AUGMENT_SHEAR_Y] = {AUGMENT_LINE, 0, 0.3, true},
    [AUGMENT_TRANSLATE_X] = {AUGMENT_OF_WIDTH, 0, 1 / 3.0, true},
    [AUGMENT_TRANSLATE_Y] = {AUGMENT_OF_HEIGHT, 0, 1 / 3.0, true},
    [AUGMENT_ROTATE] = {AUGMENT_LINE, 0, 30, true},
    [AUGMENT_BRIGHTNESS] = {AUGMENT_LINE, 0, 0.9, true},
    [AUGMENT_COLOR] = {AUGMENT_LINE, 0, 0.9, true},
    [AUGMENT_CONTRAST] = {AUGMENT_LINE, 0, 0.9, true},
    [AUGMENT_SHARPNESS] = {AUGMENT_LINE, 0, 0.9, true},
    [AUGMENT_POSTERIZE] = {AUGMENT_BITS, 4, 4, false},
    [AUGMENT_SOLARIZE] = {AUGMENT_LINE, 1, 0, false},
};

/* torch.linspace(from, to, bins)[bin]. */
static double augment_line(double from, double to, unsigned bins, unsigned bin)
{
	float start = (float)from, end = (float)to, step = (end - start) / (float)(bins - 1);

	if (bin < bins / 2)
		return (float)((double)start + (double)step * bin);
	return (float)((double)end - (double)step * (bins - 1 - bin));
}

static double augment_magnitude(const struct augment_range *range, unsigned bins, unsigned bin,
				uint32_t height, uint32_t width)
{
	float part;

	switch (range->form) {
	case AUGMENT_LINE:
		return augment_line(range->start, range->end, bins, bin);
	case AUGMENT_OF_WIDTH:
		return augment_line(range->start * width, range->end * width, bins, bin);
	case AUGMENT_OF_HEIGHT:
		return augment_line(range->start * height, range->end * height, bins, bin);
	case AUGMENT_BITS:
		part = (float)bin / (float)((bins - 1) / range->end);
		return rintf((float)range->start - part);
	default:
		return 0;
	}
}

/* ---- drawing ---- */

static void augment_put(struct op_drawn *drawn, unsigned at, augment_space space,
			enum augment_kind kind, unsigned bins, unsigned bin, uint32_t height,
			uint32_t width)
{
	double magnitude = augment_magnitude(&space[kind], bins, bin, height, width);

	if (space[kind].has_sign && draw_chance(&drawn->seq, 0.5))
		magnitude = -magnitude;
	drawn->number[at] = kind;
	drawn->number[at + 1] = magnitude;
}

static void augment_set(struct op_drawn *drawn, unsigned i, augment_space space,
			enum augment_kind kind, unsigned bins, unsigned bin, uint32_t height,
			uint32_t width)
{
	augment_put(drawn, 2 * i, space, kind, bins, bin, height, width);
}

static enum augment_kind augment_choose(struct op_drawn *drawn)
{
	return (enum augment_kind)draw_integer(&drawn->seq, AUGMENT_IDENTITY, AUGMENT_EQUALIZE);
}

static void augment_draw_rand(const struct op *op, uint32_t height, uint32_t width,
			      struct op_drawn *drawn)
{
	const unsigned changes = (unsigned)op_number(op, OP_RAND_AUGMENT_NUM_OPS, 0);
	const unsigned bin = (unsigned)op_number(op, OP_RAND_AUGMENT_MAGNITUDE, 0);
	const unsigned bins = (unsigned)op_number(op, OP_RAND_AUGMENT_NUM_MAGNITUDE_BINS, 0);

	for (unsigned i = 0; i < changes; i++)
		augment_set(drawn, i, augment_usual, augment_choose(drawn), bins, bin, height,
			    width);
}

static void augment_draw_trivial(const struct op *op, uint32_t height, uint32_t width,
				 struct op_drawn *drawn)
{
	const unsigned bins = (unsigned)op_number(op, OP_TRIVIAL_AUGMENT_NUM_MAGNITUDE_BINS, 0);
	enum augment_kind kind = augment_choose(drawn);
	unsigned bin = (unsigned)draw_integer(&drawn->seq, 0, bins - 1);

	augment_set(drawn, 0, augment_wide, kind, bins, bin, height, width);
}

/* ---- policies ---- */

#define AUGMENT_PAIRS 25 /* of a policy */
#define AUGMENT_BINS 10

struct augment_pair {
	struct augment_change {
		enum augment_kind kind;
		double p;
		unsigned bin;
	} change[2];
};

/* One policy after another, in the order of op.c's words. */
static const struct augment_pair augment_pairs[] = {
#define PAIR(policy, a, p, m, b, q, n) {{{AUGMENT_##a, p, m}, {AUGMENT_##b, q, n}}},
#include "pipeline/ops/augment_policy_tbl.h"
#undef PAIR
};
_Static_assert(BASE_ARRAY_LEN(augment_pairs) == 3 * AUGMENT_PAIRS, "three policies");

static void augment_draw_auto(const struct op *op, uint32_t height, uint32_t width,
			      struct op_drawn *drawn)
{
	const unsigned policy = (unsigned)op_number(op, OP_AUTO_AUGMENT_POLICY, 0);
	const int64_t which = draw_integer(&drawn->seq, 0, AUGMENT_PAIRS - 1);
	const struct augment_pair *pair = &augment_pairs[policy * AUGMENT_PAIRS + which];

	for (unsigned i = 0; i < 2; i++) {
		const struct augment_change *change = &pair->change[i];

		if (draw_chance(&drawn->seq, change->p))
			augment_set(drawn, i, augment_usual, change->kind, AUGMENT_BINS,
				    change->bin, height, width);
	}
}

/* ---- chains ---- */

static struct augment_mix augment_mix_of(const struct op *op)
{
	return augment_mix_plan(op_number(op, OP_AUG_MIX_MIXTURE_WIDTH, 0),
				op_number(op, OP_AUG_MIX_CHAIN_DEPTH, 0), 2);
}

/* All that have a magnitude, autocontrast and equalize; without all_ops not those of brightness and the like. */
static enum augment_kind augment_choose_mixed(const struct op *op, struct philox_seq *seq)
{
	const bool is_all = op_number(op, OP_AUG_MIX_ALL_OPS, 0) != 0;
	const unsigned kind =
	    (unsigned)draw_integer(seq, AUGMENT_SHEAR_X, is_all ? AUGMENT_EQUALIZE : 9);

	if (is_all || kind <= AUGMENT_ROTATE)
		return (enum augment_kind)kind;
	return (enum augment_kind)(kind + AUGMENT_POSTERIZE - AUGMENT_BRIGHTNESS);
}

/* Drawn (augment_mix.h): first the picture's own weight. */
static void augment_draw_mixed(const struct op *op, uint32_t height, uint32_t width,
			       struct op_drawn *drawn)
{
	const struct augment_mix mix = augment_mix_of(op);
	const double alpha = op_number(op, OP_AUG_MIX_ALPHA, 0);
	const int64_t severity = (int64_t)op_number(op, OP_AUG_MIX_SEVERITY, 0);
	float both[2], share[OP_MAX_DRAWN];

	augment_mix_shares(&drawn->seq, alpha, 2, both);
	augment_mix_shares(&drawn->seq, alpha, mix.chains, share);
	drawn->number[0] = both[0];
	for (unsigned chain = 0; chain < mix.chains; chain++) {
		const unsigned depth = augment_mix_depth(&mix, &drawn->seq);

		drawn->number[1 + chain] = share[chain] * both[1];
		for (unsigned i = 0; i < depth; i++) {
			const enum augment_kind kind = augment_choose_mixed(op, &drawn->seq);
			const unsigned bin = (unsigned)draw_integer(&drawn->seq, 0, severity - 1);

			augment_put(drawn, augment_mix_at(&mix, chain, i), augment_mixed, kind,
				    AUGMENT_BINS, bin, height, width);
		}
	}
}

static const char *augment_shape_mixed(const struct op *op, struct shape *shape)
{
	const struct augment_mix mix = augment_mix_of(op);

	(void)shape;
	return augment_mix_check(&mix);
}

/* ---- changing ---- */

/* torchvision shears by the angle whose tangent is the magnitude, around the upper left corner. */
static int augment_move(struct steps_scratch *scratch, enum augment_kind kind, double magnitude,
			struct turn *turn, struct picture *picture)
{
	turn->scale = 1;
	switch (kind) {
	case AUGMENT_SHEAR_X:
	case AUGMENT_SHEAR_Y:
		turn->shear[kind == AUGMENT_SHEAR_Y] = atan(magnitude) * (180.0 / AUGMENT_PI);
		turn->has_center = true;
		return turn_affine(scratch, turn, picture);
	case AUGMENT_TRANSLATE_X:
	case AUGMENT_TRANSLATE_Y:
		turn->shift[kind == AUGMENT_TRANSLATE_Y] = trunc(magnitude);
		return turn_affine(scratch, turn, picture);
	default:
		turn->angle = magnitude;
		return turn_rotate(scratch, turn, picture);
	}
}

static void augment_recolour(enum augment_kind kind, double magnitude,
			     const struct picture *picture)
{
	const float factor = (float)(1.0 + magnitude);

	switch (kind) {
	case AUGMENT_BRIGHTNESS:
		colour_brightness(picture, factor);
		break;
	case AUGMENT_COLOR:
		colour_saturation(picture, factor);
		break;
	case AUGMENT_CONTRAST:
		colour_contrast(picture, factor);
		break;
	case AUGMENT_POSTERIZE:
		colour_posterize(picture, (unsigned)magnitude);
		break;
	case AUGMENT_SOLARIZE:
		colour_solarize(picture, 255.0 * magnitude);
		break;
	case AUGMENT_AUTOCONTRAST:
		colour_autocontrast(picture);
		break;
	case AUGMENT_EQUALIZE:
		colour_equalize(picture);
		break;
	default: /* AUGMENT_INVERT; identity, geometry and sharpness are others' */
		colour_invert(picture);
		break;
	}
}

static int augment_change(struct steps_scratch *scratch, enum augment_kind kind, double magnitude,
			  struct turn *turn, struct picture *picture)
{
	if (kind == AUGMENT_IDENTITY)
		return 0;
	if (kind >= AUGMENT_SHEAR_X && kind <= AUGMENT_ROTATE)
		return augment_move(scratch, kind, magnitude, turn, picture);
	if (kind == AUGMENT_SHARPNESS)
		return colour_op_sharpen(scratch, (float)(1.0 + magnitude), picture);
	augment_recolour(kind, magnitude, picture);
	return 0;
}

/* ---- the ops ---- */

/* The table puts these two first. */
#define AUGMENT_INTERPOLATION OP_RAND_AUGMENT_INTERPOLATION
#define AUGMENT_FILL OP_RAND_AUGMENT_FILL
_Static_assert(OP_TRIVIAL_AUGMENT_INTERPOLATION == AUGMENT_INTERPOLATION &&
		   OP_AUTO_AUGMENT_INTERPOLATION == AUGMENT_INTERPOLATION &&
		   OP_AUG_MIX_INTERPOLATION == AUGMENT_INTERPOLATION &&
		   OP_AUG_MIX_FILL == AUGMENT_FILL && OP_TRIVIAL_AUGMENT_FILL == AUGMENT_FILL &&
		   OP_AUTO_AUGMENT_FILL == AUGMENT_FILL,
	       "one run for all");

/* number: of a change and its magnitude. */
static int augment_one(struct steps_scratch *scratch, const struct op *op, const double *number,
		       struct picture *picture)
{
	struct turn turn = {.filter = (enum warp_filter)op_number(op, AUGMENT_INTERPOLATION, 0)};

	op_color(op, AUGMENT_FILL, turn.fill);
	return augment_change(scratch, (enum augment_kind)number[0], number[1], &turn, picture);
}

static int augment_run(struct steps_scratch *scratch, const struct op *op,
		       const struct op_drawn *drawn, struct picture *picture)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < AUGMENT_MOST; i++)
		r = augment_one(scratch, op, drawn->number + 2 * (size_t)i, picture);
	return r;
}

static int augment_run_mixed(struct steps_scratch *scratch, const struct op *op,
			     const struct op_drawn *drawn, struct picture *picture)
{
	const struct augment_mix mix = augment_mix_of(op);

	return augment_mix_run(&mix, scratch, op, drawn, augment_one, (float)drawn->number[0], NULL,
			       picture);
}

static const char *augment_shape_rand(const struct op *op, struct shape *shape)
{
	(void)shape;
	if (op_number(op, OP_RAND_AUGMENT_MAGNITUDE, 0) >=
	    op_number(op, OP_RAND_AUGMENT_NUM_MAGNITUDE_BINS, 0))
		return "there is no such bin; give a magnitude below num_magnitude_bins";
	return NULL;
}

static bool augment_is_random_rand(const struct op *op)
{
	return op_number(op, OP_RAND_AUGMENT_NUM_OPS, 0) > 0;
}

const struct op_impl augment_rand_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = augment_shape_rand,
    .draw = augment_draw_rand,
    .is_random = augment_is_random_rand,
    .run = augment_run,
};

const struct op_impl augment_trivial_op = {
    .stage = OP_STAGE_PICTURE,
    .draw = augment_draw_trivial,
    .run = augment_run,
};

const struct op_impl augment_auto_op = {
    .stage = OP_STAGE_PICTURE,
    .draw = augment_draw_auto,
    .run = augment_run,
};

const struct op_impl augment_mix_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = augment_shape_mixed,
    .draw = augment_draw_mixed,
    .run = augment_run_mixed,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_apply: whether the ops behind it are done, or others, is drawn for each sample.
 *
 * torchvision's RandomApply holds a list; here ops are one list, so that places, draws and names stay
 * what they are, and random_apply says how many of those behind it belong to it. Which op is decided
 * on by which random_apply is found once, when they are parsed (op_set_gates), and groups may lie within groups.
 * The op itself does nothing to the picture. Whoever is to run an op that belongs to one asks here; the
 * answer is drawn anew each time, from the same numbers, so that nothing has to be remembered between
 * ops. It counts as random whatever its probability: nothing behind it is kept as what all nonces have.
 */

#include "pipeline/ops/apply.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"

/* One number: are its first ops done, and not the others? */
static void apply_draw(const struct op *op, uint32_t height, uint32_t width, struct op_drawn *drawn)
{
	(void)height;
	(void)width;
	drawn->number[0] = draw_chance(&drawn->seq, op_number(op, OP_RANDOM_APPLY_P, 0));
}

static int apply_run(struct steps_scratch *scratch, const struct op *op,
		     const struct op_drawn *drawn, struct picture *picture)
{
	(void)scratch;
	(void)op;
	(void)drawn;
	(void)picture;
	return 0;
}

bool apply_skips(const struct op_list *ops, unsigned i, const struct draw *draw)
{
	for (unsigned gate = ops->op[i].gate; gate != 0; i = gate, gate = ops->op[i].gate) {
		struct op_drawn drawn;

		op_draw(&ops->op[gate], gate, draw, 0, 0, &drawn);
		if ((drawn.number[0] != 0) == ops->op[i].is_otherwise)
			return true;
	}
	return false;
}

const struct op_impl apply_op = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .draw = apply_draw,
    .run = apply_run,
};

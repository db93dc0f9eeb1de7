/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of what ops do. Decode and the finishing ops stand in it with their stage alone: engines
 * run them their own way (decode.h, finish.h).
 */

#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"

#define OP(ident, name, impl, help) extern const struct op_impl impl;
#define PARAM(op, ident, name, type, fallback, help)
#include "pipeline/spec/op_tbl.h"
#undef OP
#undef PARAM

static const struct op_impl *const op_run_table[OP_COUNT] = {
#define OP(ident, name, impl, help) [OP_##ident] = &(impl),
#define PARAM(op, ident, name, type, fallback, help)
#include "pipeline/spec/op_tbl.h"
#undef OP
#undef PARAM
};

/* Decoding is not, but a wrapped data set's sample may be. */
static bool op_run_is_anew(const struct op *op)
{
	return op_number(op, OP_DECODE_SOURCE, 0) == OP_RECORDED_ANEW;
}

const struct op_impl op_run_decode = {.stage = OP_STAGE_DECODE, .is_random = op_run_is_anew};
const struct op_impl op_run_finish = {.stage = OP_STAGE_FINISH};

const struct op_impl *op_impl(enum op_id id)
{
	return op_run_table[id];
}

bool op_is_random(const struct op *op)
{
	const struct op_impl *impl = op_impl(op->id);

	return impl->is_random ? impl->is_random(op) : impl->draw != NULL;
}

void op_draw(const struct op *op, unsigned index, const struct draw *draw, uint32_t height,
	     uint32_t width, struct op_drawn *ret)
{
	const struct op_impl *impl = op_impl(op->id);

	memset(ret->number, 0, sizeof(ret->number));
	if (impl->choose && draw->choices)
		memcpy(ret->number, draw->choices[index].number,
		       sizeof(draw->choices[index].number));
	if (!impl->draw)
		return;
	draw_seq(draw, index, &ret->seq);
	impl->draw(op, height, width, ret);
}

void op_draw_spans(const struct op *op, unsigned last, struct op_drawn *drawn)
{
	drawn->number[0] = draw_chance(&drawn->seq, op_number(op, 0, 0));
	for (unsigned i = 1; i <= last; i++)
		drawn->number[i] =
		    draw_between(&drawn->seq, op_number(op, i, 0), op_number(op, i, 1));
}

bool op_spans_vary(const struct op *op, unsigned last)
{
	bool does = false;

	for (unsigned i = 1; i <= last; i++)
		does |= op_is_span(op, i);
	return op_varies(op, 0, does);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* What goes wrong, one after the other and several at a time, until it is time that all is well again. */

#include "tests/cluster/bottle.h"

static struct node *one_of(struct bottle *bottle)
{
	return &bottle->node[bottle_below(bottle, bottle->n_nodes)];
}

static uint64_t between(struct bottle *bottle, uint64_t least, uint64_t most)
{
	return least + bottle_below(bottle, most - least);
}

/* ---- wires ---- */

static void on_healed(void *arg, uint64_t a, uint64_t b)
{
	struct bottle *bottle = arg;
	struct wire *wire = &bottle->wire[a][b];

	if (wire->until_ns > bottle->clock.now_ns) /* something else is wrong with it by now */
		return;
	wire->is_hole = wire->is_cut = false;
	wire->harm = 0;
	wire->late_ns = BASE_MIN(wire->late_ns, MS);
	net_healed(bottle, (unsigned)a, (unsigned)b);
}

static void heal_at(struct bottle *bottle, unsigned a, unsigned b, uint64_t until_ns)
{
	struct wire *wire = &bottle->wire[a][b];

	wire->until_ns = BASE_MAX(wire->until_ns, until_ns);
	bottle_at(bottle, wire->until_ns, on_healed, bottle, a, b);
}

static void make_hole(struct bottle *bottle, unsigned a, unsigned b, uint64_t until_ns)
{
	bottle->wire[a][b].is_hole = true;
	heal_at(bottle, a, b, until_ns);
}

static void cut(struct bottle *bottle, unsigned a, unsigned b, uint64_t until_ns)
{
	net_cut(bottle, a, b);
	bottle->wire[a][b].is_cut = bottle->wire[b][a].is_cut = true;
	heal_at(bottle, a, b, until_ns);
	heal_at(bottle, b, a, until_ns);
}

static void on_cut(void *arg, uint64_t a, uint64_t b)
{
	struct bottle *bottle = arg;

	cut(bottle, (unsigned)a, (unsigned)b, bottle->clock.now_ns + 100 * MS);
}

static void part(struct bottle *bottle, uint64_t until_ns)
{
	const uint64_t side = bottle_below(bottle, UINT64_C(1) << bottle->n_nodes);

	for (unsigned a = 0; a < bottle->n_nodes; a++)
		for (unsigned b = 0; b < bottle->n_nodes; b++)
			if ((side >> a & 1) != (side >> b & 1))
				make_hole(bottle, a, b, until_ns);
}

static void break_wire(struct bottle *bottle, uint64_t what, uint64_t most_ns)
{
	const unsigned a = one_of(bottle)->number;
	const unsigned b =
	    (a + 1 + (unsigned)bottle_below(bottle, bottle->n_nodes - 1)) % bottle->n_nodes;
	const uint64_t until_ns =
	    bottle->clock.now_ns + BASE_MIN(between(bottle, 100 * MS, 20 * SECOND), most_ns);

	switch (what) {
	case 0: /* one way */
		make_hole(bottle, a, b, until_ns);
		break;
	case 1: /* shorter than a channel lives without a word */
		make_hole(bottle, a, b,
			  bottle->clock.now_ns + between(bottle, 300 * MS, 1900 * MS));
		make_hole(bottle, b, a,
			  bottle->clock.now_ns + between(bottle, 300 * MS, 1900 * MS));
		break;
	case 2:
		part(bottle, until_ns);
		break;
	case 3:
		cut(bottle, a, b, until_ns);
		break;
	case 4: /* it flaps */
		for (uint64_t i = 0; i * 2 * SECOND < until_ns - bottle->clock.now_ns; i++)
			bottle_at(bottle, bottle->clock.now_ns + i * 2 * SECOND, on_cut, bottle, a,
				  b);
		break;
	case 5:
		bottle->wire[a][b].harm = 2 + (unsigned)bottle_below(bottle, 30);
		heal_at(bottle, a, b, until_ns);
		break;
	default:
		bottle->wire[a][b].late_ns = between(bottle, 10 * MS, 400 * MS);
		heal_at(bottle, a, b, until_ns);
	}
}

/* ---- nodes ---- */

static void on_start(void *arg, uint64_t a, uint64_t b)
{
	(void)a;
	(void)b;
	node_start(arg);
}

static void stand_still(struct node *node, bool reader_alone, uint64_t ns)
{
	struct bottle *bottle = node->bottle;
	uint64_t *until_ns = reader_alone ? &node->reader_until_ns : &node->until_ns;

	*until_ns = BASE_MAX(*until_ns, bottle->clock.now_ns + ns);
	job_stood_still(node, ns);
}

static void break_node(struct bottle *bottle, uint64_t what, uint64_t most_ns)
{
	struct node *node = one_of(bottle);
	const uint64_t ns = BASE_MIN(between(bottle, 200 * MS, 15 * SECOND), most_ns);

	switch (what) {
	case 0:
		carrier_die(node, between(bottle, 100 * MS, 2 * SECOND));
		break;
	case 1: /* and cannot be started again for longer than a task waits */
		carrier_die(node, BASE_MIN(40 * SECOND, most_ns));
		break;
	case 2:
		reader_die(node);
		break;
	case 3:
		gate_die(node, between(bottle, 100 * MS, 2 * SECOND));
		break;
	case 4:
		node_die(node);
		bottle_at(bottle, bottle->clock.now_ns + ns, on_start, node, 0, 0);
		break;
	case 5:
		stand_still(node, false, ns);
		break;
	case 6:
		stand_still(node, true, BASE_MIN(ns, 6 * SECOND));
		break;
	case 7:
		node->source_until_ns = bottle->clock.now_ns + BASE_MIN(ns, 5 * SECOND);
		break;
	default:
		kept_lose(node);
	}
}

static void on_fault(void *arg, uint64_t until_ns, uint64_t unused)
{
	struct bottle *bottle = arg;
	const uint64_t left_ns = until_ns - BASE_MIN(bottle->clock.now_ns, until_ns);
	const uint64_t what = bottle_below(bottle, 16);

	(void)unused;
	if (left_ns < 3 * SECOND) {
		bottle->is_wild = false;
		return;
	}
	bottle_note(bottle, 'f', what, ++bottle->faults);
	if (what < 7)
		break_wire(bottle, what, left_ns - SECOND);
	else
		break_node(bottle, what - 7, left_ns - SECOND);
	bottle_at(bottle, bottle->clock.now_ns + between(bottle, 200 * MS, 4 * SECOND), on_fault,
		  bottle, until_ns, 0);
}

void fault_begin(struct bottle *bottle, uint64_t until_ns)
{
	bottle->is_wild = true;
	on_fault(bottle, until_ns, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of the resize, as Pillow computes them.
 *
 * An output pixel is the weighted mean of the input pixels under a filter centred on it. When the
 * picture shrinks, the filter is stretched by the same factor (that is the antialiasing); at a
 * border it is cut off and the rest is weighted up. Weights are computed in double, divided by
 * their sum, and rounded (half away from zero) to 22 bits of fraction. Each step is done in the
 * order of Pillow's, since the last bit of a weight decides a pixel now and then. Nearest takes one
 * pixel with weight 1; its position is added up step by step, as there, so that rounding adds up
 * alike. Nearest by corners is PyTorch's, which computes in float. A cut moves the centres and shortens the scale, as Pillow's box does; without one nothing but
 * zeros is added.
 */

#include <math.h>
#include "base/exact.h"
#include "pipeline/ops/filter.h"

static double filter_box(double x)
{
	return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double filter_bilinear(double x)
{
	x = fabs(x);
	return x < 1.0 ? 1.0 - x : 0.0;
}

static inline double filter_hamming_by(double x, double (*sine)(double), double (*cosine)(double))
{
	x = fabs(x);
	if (x == 0.0)
		return 1.0;
	if (x >= 1.0)
		return 0.0;
	x = x * M_PI;
	return sine(x) / x * ((double)0.54f + (double)0.46f * cosine(x)); /* float there, too */
}

static double filter_hamming(double x)
{
	return filter_hamming_by(x, sin, cos);
}

static double filter_hamming_exact(double x)
{
	return filter_hamming_by(x, exact_sin, exact_cos);
}

static double filter_bicubic(double x)
{
	const double a = -0.5;

	x = fabs(x);
	if (x < 1.0)
		return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
	if (x < 2.0)
		return (((x - 5) * x + 8) * x - 4) * a;
	return 0.0;
}

static inline double filter_sinc(double x, double (*sine)(double))
{
	if (x == 0.0)
		return 1.0;
	x = x * M_PI;
	return sine(x) / x;
}

static inline double filter_lanczos_by(double x, double (*sine)(double))
{
	return x >= -3.0 && x < 3.0 ? filter_sinc(x, sine) * filter_sinc(x / 3, sine) : 0.0;
}

static double filter_lanczos(double x)
{
	return filter_lanczos_by(x, sin);
}

static double filter_lanczos_exact(double x)
{
	return filter_lanczos_by(x, exact_sin);
}

/* Half the filter's width, in input pixels before stretching. */
static const double filter_support[] = {
    [FILTER_NEAREST] = 0.0, [FILTER_BOX] = 0.5,     [FILTER_BILINEAR] = 1.0, [FILTER_HAMMING] = 1.0,
    [FILTER_BICUBIC] = 2.0, [FILTER_LANCZOS] = 3.0, [FILTER_CORNER] = 0.0,
};

/* How far the stretched filter reaches, in input pixels. */
static double filter_reach(enum filter_id id, double scale)
{
	return filter_support[id] * BASE_MAX(scale, 1.0);
}

/* Input pixels to an output pixel. */
static double filter_scale(const struct filter_table *table)
{
	return (table->in - (table->cut.front + table->cut.back) / 8.0) / table->out;
}

static void filter_take(const struct filter_table *table, uint32_t x, uint32_t from)
{
	table->first[x] = BASE_MIN(from, table->in - 1);
	table->count[x] = 1;
	table->weight[x] = 1 << FILTER_BITS;
}

static void filter_fill_nearest(const struct filter_table *table)
{
	double scale = (double)table->in / table->out, at = scale * 0.5;

	for (uint32_t x = 0; x < table->out; x++, at += scale)
		filter_take(table, x, (uint32_t)at);
}

static void filter_fill_corner(const struct filter_table *table)
{
	const float scale = (float)table->in / (float)table->out;

	for (uint32_t x = 0; x < table->out; x++)
		filter_take(table, x, (uint32_t)((float)x * scale));
}

static int32_t filter_round(double weight)
{
	double scaled = weight * (1 << FILTER_BITS);

	return (int32_t)(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

/* One output; `at` is a constant where this is put in, so that nothing is called for a weight. false: rounded from a weight with another
 * last bit it may be another. */
static inline __attribute__((always_inline)) bool filter_fill_one(const struct filter_table *table,
								  uint32_t x, double scale,
								  double reach,
								  double (*at)(double))
{
	double center = table->cut.front / 8.0 + (x + 0.5) * scale,
	       shrink = 1.0 / BASE_MAX(scale, 1.0), sum = 0.0;
	double low = center - reach + 0.5, high = center + reach + 0.5;
	uint32_t first = low < 0 ? 0 : (uint32_t)low;
	uint32_t end = high > table->in ? table->in : (uint32_t)high;
	bool is_sure = true;

	for (uint32_t t = 0; t < end - first; t++) {
		double weight = at((t + first - center + 0.5) * shrink);

		table->scratch[t] = weight;
		sum += weight;
	}
	for (uint32_t t = 0; t < end - first; t++) {
		double weight = table->scratch[t];

		if (sum != 0.0)
			weight /= sum;
		table->weight[(size_t)x * table->taps + t] = filter_round(weight);
		is_sure &= exact_is_sure(weight * (1 << FILTER_BITS));
	}
	table->first[x] = first;
	table->count[x] = end - first;
	return is_sure;
}

#define FILTER_FILL(name)                                                       \
	static void filter_fill_##name(const struct filter_table *table)        \
	{                                                                       \
		double scale = filter_scale(table);                             \
		double reach = filter_reach(table->id, scale);                  \
                                                                                \
		for (uint32_t x = 0; x < table->out; x++)                       \
			filter_fill_one(table, x, scale, reach, filter_##name); \
	}
FILTER_FILL(box)
FILTER_FILL(bilinear)
FILTER_FILL(bicubic)

/* Those whose weights are libm's. */
#define FILTER_FILL_EXACT(name)                                                                 \
	static void filter_fill_##name(const struct filter_table *table)                        \
	{                                                                                       \
		double scale = filter_scale(table);                                             \
		double reach = filter_reach(table->id, scale);                                  \
                                                                                                \
		for (uint32_t x = 0; x < table->out; x++)                                       \
			if (!filter_fill_one(table, x, scale, reach, filter_##name))            \
				filter_fill_one(table, x, scale, reach, filter_##name##_exact); \
	}
FILTER_FILL_EXACT(hamming)
FILTER_FILL_EXACT(lanczos)

/* Room for the arrays of a table of this size; what was in it is gone. */
static bool filter_reserve(struct filter_table *table)
{
	size_t out = table->out, taps = table->taps;
	size_t size = taps * 8 + out * 8 + out * taps * 4;

	if (size > table->size) {
		free(table->memory);
		table->size = 0;
		table->memory = malloc(size);
		if (!table->memory)
			return false;
		table->size = size;
	}
	table->scratch = table->memory;
	table->first = (uint32_t *)(table->scratch + taps);
	table->count = table->first + out;
	table->weight = (int32_t *)(table->count + out);
	return true;
}

uint32_t filter_taps(enum filter_id id, uint32_t in, uint32_t out)
{
	if (filter_support[id] == 0)
		return 1;
	return BASE_MIN((uint32_t)ceil(filter_reach(id, (double)in / out)) * 2 + 1, in);
}

bool filter_make(struct filter_table *table, enum filter_id id, uint32_t in, uint32_t out,
		 struct filter_cut cut)
{
	static void (*const fill[])(const struct filter_table *table) = {
	    [FILTER_NEAREST] = filter_fill_nearest,   [FILTER_BOX] = filter_fill_box,
	    [FILTER_BILINEAR] = filter_fill_bilinear, [FILTER_HAMMING] = filter_fill_hamming,
	    [FILTER_BICUBIC] = filter_fill_bicubic,   [FILTER_LANCZOS] = filter_fill_lanczos,
	    [FILTER_CORNER] = filter_fill_corner,
	};

	table->id = id;
	table->in = in;
	table->out = out;
	table->cut = cut;
	table->taps = filter_taps(id, in, out);
	if (!filter_reserve(table)) {
		table->in = table->out = 0;
		return false;
	}
	fill[id](table);
	return true;
}

void filter_fini(struct filter_table *table)
{
	free(table->memory);
	*table = (struct filter_table){0};
}

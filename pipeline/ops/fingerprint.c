/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/ops/fingerprint.h"

#include "base/exact.h"
#include "pipeline/engine/rescale.h"
#include "pipeline/ops/colour.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/warp.h"

#define FINGERPRINT_DRAWS 4096
#define FINGERPRINT_HEIGHT 45
#define FINGERPRINT_WIDTH 67

struct fingerprint {
	uint64_t sum;
	struct picture_buffer from_buffer, to_buffer;
	struct picture from, to;
	struct rescale *rescale; /* owned: a large one */
	uint32_t table[FINGERPRINT_WIDTH];
};

/* FNV-1a */
static void add(struct fingerprint *print, const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		print->sum = (print->sum ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
}

static void add_picture(struct fingerprint *print, const struct picture *picture)
{
	for (uint32_t y = 0; y < picture->height; y++)
		for (uint32_t x = 0; x < picture->width; x++)
			add(print, picture_row(picture, y) + (size_t)4 * x, 3);
}

/* ---- draws ---- */

static void add_functions(struct fingerprint *print, double unit)
{
	const double values[] = {exact_exp(8 * unit - 4), exact_log(1 - unit), exact_sin(7 * unit),
				 exact_cos(7 * unit), exact_tan(unit)};

	add(print, values, sizeof(values));
}

static void add_draws(struct fingerprint *print)
{
	static const double ratio[2] = {0.75, 4.0 / 3};
	struct philox_seq seq;

	philox_seq_init(&seq, 1, 2, 3);
	for (unsigned i = 0; i < FINGERPRINT_DRAWS; i++) {
		double value[4];
		float pair[2];

		value[0] = draw_between(&seq, 0.08, 1);
		draw_sides(&seq, value[0] * 375 * 500, ratio, &value[1], &value[2]);
		value[3] = draw_normal(&seq);
		draw_normal_floats(&seq, pair);
		add(print, value, sizeof(value));
		add(print, pair, sizeof(pair));
		add_functions(print, philox_unit(&seq));
	}
}

/* ---- kernels ---- */

static bool make_pictures(struct fingerprint *print)
{
	struct philox_seq seq;

	if (picture_make(&print->from_buffer, FINGERPRINT_HEIGHT, FINGERPRINT_WIDTH,
			 &print->from) ||
	    picture_make(&print->to_buffer, FINGERPRINT_HEIGHT, FINGERPRINT_WIDTH, &print->to))
		return false;
	philox_seq_init(&seq, 4, 5, 6);
	for (uint32_t y = 0; y < print->from.height; y++) {
		uint8_t *row = picture_row(&print->from, y);

		for (uint32_t i = 0; i < 4 * print->from.width; i++)
			row[i] = (uint8_t)(2 * i + 3 * y + (philox_u32(&seq) & 31));
	}
	return true;
}

static bool add_resized(struct fingerprint *print)
{
	static const struct resize_cut none;
	struct picture_buffer buffer = {.memory = NULL};
	struct picture resized;
	bool is_made = true;

	for (unsigned filter = FILTER_NEAREST; filter <= FILTER_LANCZOS && is_made; filter++) {
		is_made = rescale_run(print->rescale, &print->from, (enum filter_id)filter, &none,
				      29, 83, &buffer, &resized) == 0;
		if (is_made)
			add_picture(print, &resized);
	}
	picture_buffer_fini(&buffer);
	return is_made;
}

static void add_warped(struct fingerprint *print)
{
	const double matrix[6] = {exact_cos(0.3),  exact_sin(0.3), -3,
				  exact_tan(-0.4), exact_cos(0.3), 5.5};
	const uint8_t fill[3] = {1, 2, 3};

	for (unsigned filter = WARP_NEAREST; filter <= WARP_BICUBIC; filter++) {
		warp_run(&print->from, &print->to, matrix, (enum warp_filter)filter, fill,
			 print->table);
		add_picture(print, &print->to);
	}
}

/* Each op on what the one before it left. */
static void add_coloured(struct fingerprint *print)
{
	colour_sharpness(&print->from, 1.7f, &print->to);
	add_picture(print, &print->to);
	colour_brightness(&print->to, 1.1f);
	add_picture(print, &print->to);
	colour_contrast(&print->to, 0.7f);
	add_picture(print, &print->to);
	colour_saturation(&print->to, 1.4f);
	add_picture(print, &print->to);
	colour_hue(&print->to, 0.13);
	add_picture(print, &print->to);
	colour_autocontrast(&print->to);
	add_picture(print, &print->to);
	colour_equalize(&print->to);
	add_picture(print, &print->to);
}

uint64_t fingerprint_of_arithmetic(void)
{
	struct fingerprint print = {.sum = UINT64_C(0xcbf29ce484222325),
				    .rescale = calloc(1, sizeof(*print.rescale))};
	bool is_made = print.rescale && make_pictures(&print);

	if (is_made) {
		add_draws(&print);
		add_warped(&print);
		add_coloured(&print);
		is_made = add_resized(&print);
	}
	if (print.rescale)
		rescale_fini(print.rescale);
	free(print.rescale);
	picture_buffer_fini(&print.from_buffer);
	picture_buffer_fini(&print.to_buffer);
	return is_made ? print.sum : 0;
}

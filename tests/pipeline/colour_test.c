/* SPDX-License-Identifier: Apache-2.0 */
/* Colour kernels by themselves: all makes agree, and the reference agrees with Pillow's arithmetic
 * written out; what colour ops do to pictures is held against Pillow by parity.py. */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/philox.h"
#include "pipeline/ops/colour.h"
#include "pipeline/ops/colour_kernels.h"
#include "tests/suite.h"

#define WIDEST 75

/* Three rows of pixels with a pixel to spare on each side, in all makes. */
struct colour_rows {
	uint8_t above[4 * (WIDEST + 2)], pixel[4 * (WIDEST + 2)], below[4 * (WIDEST + 2)];
	uint8_t to[4 * (WIDEST + 2)];
};

static void colour_fill(struct colour_rows *rows, uint64_t seed)
{
	uint8_t *byte = (uint8_t *)rows;
	struct philox_seq seq;

	philox_seq_init(&seq, seed, 0, 0);
	for (size_t i = 0; i < sizeof(*rows); i++) {
		uint32_t value = philox_u32(&seq);

		/* many extremes, and neighbours that are equal */
		byte[i] = (uint8_t)(value & 0x700 ? value : (value & 0x80 ? 255 : 0));
		if (i >= 4 && (value & 0x7000) == 0)
			byte[i] = byte[i - 4];
	}
}

/* Asserts only where something differs: Check notes each assertion, and there are many pixels. */
static void colour_assert_same(const uint8_t *a, const uint8_t *b, uint32_t width)
{
	for (uint32_t x = 0; x < width; x++, a += 4, b += 4) {
		if (memcmp(a, b, 3) != 0)
			ck_abort_msg("pixel %u of %u: %u %u %u and %u %u %u", x, width, a[0], a[1],
				     a[2], b[0], b[1], b[2]);
	}
}

static void colour_run_all(const struct colour_kernels *kernels, struct colour_rows *rows,
			   uint32_t width, float factor, unsigned number)
{
	uint8_t *pixel = rows->pixel + 4;

	kernels->smooth(rows->above + 4, pixel, rows->below + 4, width, rows->to + 4);
	kernels->blend_row(rows->to + 4, pixel, width, factor, rows->to + 4);
	kernels->blend_flat(rows->above + 4, width, (uint8_t)number, factor);
	kernels->blend_luma(rows->below + 4, width, factor);
	kernels->turn(pixel, width, (uint8_t)number);
	kernels->invert(pixel, width, number % 257, (uint8_t)(0xff00 >> (1 + number % 8)));
	kernels->invert(rows->above + 4, width, 256, (uint8_t)(0xff00 >> (1 + number % 8)));
}

START_TEST(kernels_agree)
{
	static const float factors[] = {0, 0.25F, 0.7F, 0.99999994F, 1, 1.0000001F, 1.4F, 3, 1e6F};
	const struct colour_kernels *fast = colour_avx2();
	struct colour_rows plain, quick;

	for (uint32_t width = 0; fast && width <= WIDEST; width++) {
		for (unsigned i = 0; i < BASE_ARRAY_LEN(factors); i++) {
			colour_fill(&plain, width * 10 + i);
			quick = plain;
			colour_run_all(&colour_plain, &plain, width, factors[i], width * 3 + i);
			colour_run_all(fast, &quick, width, factors[i], width * 3 + i);
			colour_assert_same(plain.above, quick.above, WIDEST + 2);
			colour_assert_same(plain.pixel, quick.pixel, WIDEST + 2);
			colour_assert_same(plain.below, quick.below, WIDEST + 2);
			colour_assert_same(plain.to, quick.to, WIDEST + 2);
		}
	}
}
END_TEST

START_TEST(counts_agree)
{
	const struct colour_kernels *fast = colour_avx2();
	struct colour_rows plain, quick;

	for (uint32_t width = 0; fast && width <= WIDEST; width++) {
		uint8_t least[2][4], most[2][4];

		memset(least, 200, sizeof(least));
		memset(most, 100, sizeof(most));
		colour_fill(&plain, width);
		quick = plain;
		ck_assert_uint_eq(colour_plain.luma_sum(plain.pixel, width),
				  fast->luma_sum(plain.pixel, width));
		colour_plain.extremes(plain.pixel, width, least[0], most[0]);
		fast->extremes(plain.pixel, width, least[1], most[1]);
		ck_assert_mem_eq(least[0], least[1], 3);
		ck_assert_mem_eq(most[0], most[1], 3);
		colour_plain.gray(plain.pixel, width);
		fast->gray(quick.pixel, width);
		colour_assert_same(plain.pixel, quick.pixel, WIDEST + 2);
	}
}
END_TEST

/* Convert.c's rgb2hsv_row and hsv2rgb of one pixel, in its types. */
static void colour_to_hsv(const uint8_t in[3], uint8_t hsv[3])
{
	uint8_t r = in[0], g = in[1], b = in[2];
	uint8_t most = BASE_MAX(r, BASE_MAX(g, b)), least = BASE_MIN(r, BASE_MIN(g, b));
	float h, range = (float)(most - least), rc, gc, bc;

	hsv[0] = hsv[1] = 0;
	hsv[2] = most;
	if (most == least)
		return;
	rc = (float)(most - r) / range;
	gc = (float)(most - g) / range;
	bc = (float)(most - b) / range;
	if (r == most)
		h = bc - gc;
	else if (g == most)
		h = (float)(2.0 + (double)rc - (double)bc);
	else
		h = (float)(4.0 + (double)gc - (double)rc);
	h = (float)fmod((double)h / 6.0 + 1.0, 1.0);
	hsv[0] = (uint8_t)BASE_MIN(255, (int)((double)h * 255.0));
	hsv[1] = (uint8_t)BASE_MIN(255, (int)((double)(range / (float)most) * 255.0));
}

/* p, q and t of hsv2rgb as Pillow rounds them. */
static void colour_thirds(uint8_t h, uint8_t s, uint8_t v, unsigned *sector, uint8_t ret[3])
{
	int i = (int)floor((double)(float)h * 6.0 / 255.0);
	float f = (float)((double)(float)h * 6.0 / 255.0 - (double)(float)i);
	float fs = (float)((double)(float)s / 255.0);

	*sector = (unsigned)i % 6;
	ret[0] = (uint8_t)round((double)(float)v * (1.0 - (double)fs));
	ret[1] = (uint8_t)round((double)(float)v * (1.0 - (double)(fs * f)));
	ret[2] = (uint8_t)round((double)(float)v * (1.0 - (double)fs * (1.0 - (double)f)));
}

static void colour_turn_pillow(uint8_t *pixel, uint8_t turn)
{
	uint8_t hsv[3], third[3];
	unsigned sector;

	colour_to_hsv(pixel, hsv);
	colour_thirds((uint8_t)(hsv[0] + turn), hsv[1], hsv[2], &sector, third);
	for (unsigned c = 0; c < 3; c++) {
		/* v: 3, p: 0, q: 1, t: 2 */
		static const uint8_t parts[6][3] = {{3, 2, 0}, {1, 3, 0}, {0, 3, 2},
						    {0, 1, 3}, {2, 0, 3}, {3, 0, 1}};
		uint8_t part = parts[sector][c];

		pixel[c] = part == 3 || hsv[1] == 0 ? hsv[2] : third[part];
	}
}

/* Every colour, red in the row, green and blue by the loop; the turns are all met on the way. */
START_TEST(every_colour)
{
	const struct colour_kernels *fast = colour_avx2();
	uint8_t plain[1024], quick[1024], pillow[1024];

	for (unsigned i = (unsigned)_i; i < 65536; i += 8) {
		uint8_t turn = (uint8_t)(i / 8 * 37);

		for (unsigned red = 0; red < 256; red++) {
			const uint8_t pixel[4] = {(uint8_t)red, (uint8_t)i, (uint8_t)(i >> 8), 0};

			memcpy(plain + (size_t)4 * red, pixel, 4);
		}
		memcpy(quick, plain, sizeof(plain));
		memcpy(pillow, plain, sizeof(plain));
		colour_plain.turn(plain, 256, turn);
		if (fast) {
			fast->turn(quick, 256, turn);
			colour_assert_same(plain, quick, 256);
		}
		for (unsigned red = 0; red < 256; red++)
			colour_turn_pillow(pillow + (size_t)4 * red, turn);
		colour_assert_same(plain, pillow, 256);
	}
}
END_TEST

/* Bytes between the picture and its rows' ends are nobody's: in place or not, they stay. */
START_TEST(keeps_to_the_picture)
{
	uint8_t bytes[8 * 64], before[8 * 64], other[8 * 64] = {0};
	struct picture picture = {bytes + 64 + 8, 64, 5, 9}, to = {other + 64 + 8, 64, 5, 9};

	for (unsigned i = 0; i < sizeof(bytes); i++)
		before[i] = bytes[i] = (uint8_t)(i * 7919 >> 3);
	colour_sharpness(&picture, 3, &to);
	ck_assert_mem_eq(bytes, before, sizeof(bytes));
	colour_brightness(&picture, 0.5F);
	colour_contrast(&picture, 0.5F);
	colour_saturation(&picture, 0.5F);
	colour_hue(&picture, 0.2);
	colour_autocontrast(&picture);
	colour_equalize(&picture);
	colour_solarize(&picture, 100);
	colour_posterize(&picture, 4);
	colour_invert(&picture);
	colour_grayscale(&picture);
	ck_assert_mem_ne(bytes, before, sizeof(bytes));
	for (unsigned y = 0; y < 8; y++) {
		for (unsigned x = 0; x < 64; x++) {
			bool outside = y < 1 || y >= 6 || x < 8 || x >= 8 + 9 * 4;

			if (outside &&
			    (bytes[y * 64 + x] != before[y * 64 + x] || other[y * 64 + x] != 0))
				ck_abort_msg("row %u, byte %u", y, x);
		}
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, kernels_agree);
	tcase_add_test(tcase, counts_agree);
	tcase_add_loop_test(tcase, every_colour, 0, 8);
	tcase_add_test(tcase, keeps_to_the_picture);
}

int main(void)
{
	return suite_run("colour", add);
}

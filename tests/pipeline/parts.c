/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is compared is all of a part's pixels, with every set of kernels, and the message of a difference
 * says where it is. Places of parts are drawn by number, so that a test that fails does so again.
 */

#include "tests/patience.h"
#include "tests/pipeline/parts.h"

#include <stdlib.h>

struct baseline *parts_baseline[PARTS_KERNELS];
struct oracle_picture parts_picture;
const int parts_sampling[PARTS_KINDS][2] = {{2, 2}, {2, 1}, {1, 1}, {0, 0}};

static void parts_setup(void)
{
	for (unsigned i = 0; i < PARTS_KERNELS; i++)
		ck_assert_int_eq(baseline_new(&parts_baseline[i]), 0);
	parts_baseline[PARTS_KERNELS - 1]->kernels = &baseline_kernels_plain;
}

static void parts_teardown(void)
{
	for (unsigned i = 0; i < PARTS_KERNELS; i++)
		baseline_free(parts_baseline[i]);
	oracle_fini(&parts_picture);
}

int parts_main(const char *name, void (*add)(TCase *tcase))
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_checked_fixture(tcase, parts_setup, parts_teardown);
	add(tcase);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

struct oracle_file parts_file(int kind, uint32_t height, uint32_t width)
{
	return (struct oracle_file){
	    .height = height,
	    .width = width,
	    .across = parts_sampling[kind][0],
	    .down = parts_sampling[kind][1],
	    .quality = 90,
	    .noise = 70,
	    .seed = height * 1000 + width,
	};
}

void parts_rows(const struct decode_band *band, const struct picture_box *box, uint32_t y)
{
	for (uint32_t i = 0; i < band->rows; i++) {
		const uint8_t *right =
		    parts_picture.rgb +
		    ((size_t)(box->top + y + i) * parts_picture.width + box->left) * 3;

		for (size_t x = 0; x < (size_t)box->width * 3; x++) {
			uint8_t got = band->plane[x % 3][i * band->stride + x / 3];

			if (got != right[x])
				ck_abort_msg(
				    "row %u, column %zu of the part %u %u %u %u: %u, not %u", y + i,
				    x / 3, box->top, box->left, box->height, box->width, got,
				    right[x]);
		}
	}
}

int parts_decode(unsigned k, const struct picture_box *box, bool is_compared)
{
	struct decode_band band = {0};
	int r = baseline_start(parts_baseline[k], box);

	for (uint32_t y = 0; r == 0 && y < box->height; y += band.rows) {
		r = baseline_next(parts_baseline[k], &band);
		if (r == 0 && (band.rows < 1 || band.rows > box->height - y))
			ck_abort_msg("%u rows", band.rows);
		if (r == 0 && is_compared)
			parts_rows(&band, box, y);
	}
	return r;
}

void parts_span(struct philox_seq *seq, uint32_t size, uint32_t *ret_first, uint32_t *ret_size)
{
	uint32_t a = (uint32_t)philox_below(seq, size), b = (uint32_t)philox_below(seq, size);
	uint32_t aligned = (a & ~7u) + (uint32_t)philox_below(seq, 2) * 7;

	if (philox_below(seq, 2) == 0)
		a = BASE_MIN(aligned, size - 1);
	*ret_first = BASE_MIN(a, b);
	*ret_size = BASE_MAX(a, b) - *ret_first + 1;
}

void parts_compare(const uint8_t *data, size_t size, unsigned shift, unsigned count,
		   int (*open)(unsigned k))
{
	struct philox_seq seq;
	struct picture_box box;

	parts_picture.shift = shift;
	ck_assert_int_eq(oracle_decode(data, size, UINT64_MAX, &parts_picture), 0);
	philox_seq_init(&seq, size, shift, 0);
	for (unsigned k = 0; k < PARTS_KERNELS; k++) {
		ck_assert_int_eq(open(k), 0);
		if (baseline_reduce(parts_baseline[k], shift) != 0)
			continue; /* so narrow that it is left to libjpeg */
		for (unsigned i = 0; i < count; i++) {
			parts_span(&seq, parts_picture.height, &box.top, &box.height);
			parts_span(&seq, parts_picture.width, &box.left, &box.width);
			ck_assert_int_eq(parts_decode(k, &box, true), 0);
		}
	}
}

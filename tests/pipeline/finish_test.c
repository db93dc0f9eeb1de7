/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last step: every value of a byte, type, order, width and alignment, by the kernels that were
 * chosen, against arithmetic written out here.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/half.h"
#include "base/philox.h"
#include "pipeline/engine/finish.h"
#include "pipeline/engine/fuse_kernels.h"
#include "tests/suite.h"

static const struct finish_norm {
	const char *name;
	double mean[3], std[3];
} finish_norms[] = {
    {"none", {0, 0, 0}, {0, 0, 0}},
    {"imagenet", {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
    {"cifar", {0.4914, 0.4822, 0.4465}, {0.2023, 0.1994, 0.2010}},
    {"clip", {0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}},
    {"half", {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
    {"odd", {-1e6, 1e-6, 0.1}, {1e-6, 1e6, 3}},
    {"thirds", {1 / 3.0, 2 / 3.0, 1}, {1 / 3.0, 1e-3, 7e5}},
};

static const enum pipeline_dtype finish_dtypes[] = {PIPELINE_U8, PIPELINE_F16, PIPELINE_F32,
						    PIPELINE_BF16};

static uint32_t finish_reference(const struct finish_norm *norm, enum pipeline_dtype dtype,
				 unsigned c, uint8_t value)
{
	float f = (float)value / 255.0f;

	if (dtype == PIPELINE_U8)
		return value;
	if (norm->std[0] != 0) {
		f -= (float)norm->mean[c];
		f /= (float)norm->std[c];
	}
	return dtype == PIPELINE_F16    ? half_f16(f)
	       : dtype == PIPELINE_BF16 ? half_bf16(f)
					: half_bits(f);
}

static struct shape finish_shape(struct op *op, const struct finish_norm *norm,
				 enum pipeline_dtype dtype, enum op_order order)
{
	struct shape shape = {.dtype = dtype, .order = order, .channels = 3};

	memset(op, 0, sizeof(*op));
	op->id = OP_NORMALIZE;
	op->value[OP_NORMALIZE_MEAN].count = op->value[OP_NORMALIZE_STD].count = 3;
	memcpy(op->value[OP_NORMALIZE_MEAN].number, norm->mean, sizeof(norm->mean));
	memcpy(op->value[OP_NORMALIZE_STD].number, norm->std, sizeof(norm->std));
	if (norm->std[0] != 0 && dtype != PIPELINE_U8)
		shape.normalize = op;
	return shape;
}

static void finish_check(const struct finish_norm *norm, const struct finish *finish,
			 const struct picture *picture, const uint8_t *out)
{
	const unsigned bytes = finish_value_bytes(finish->dtype);
	const size_t plane = (size_t)picture->height * picture->width;

	for (size_t i = 0; i < 3 * plane; i++) {
		unsigned c = (unsigned)(finish->order == OP_CHW ? i / plane : i % 3);
		size_t at = finish->order == OP_CHW ? i % plane : i / 3;
		const uint8_t *pixel =
		    picture_row(picture, (uint32_t)(at / picture->width)) + at % picture->width * 4;
		uint32_t want = finish_reference(norm, finish->dtype, c, pixel[c]), got = 0;

		memcpy(&got, out + i * bytes, bytes);
		if (got != want)
			ck_abort_msg("%s, type %d, order %d, %u x %u, value %d: %x, not %x",
				     norm->name, finish->dtype, finish->order, picture->height,
				     picture->width, (int)i, got, want);
	}
}

static const uint32_t finish_sizes[][2] = {{1, 1},   {3, 7},   {2, 8},   {17, 24}, {9, 31},
					   {16, 32}, {20, 97}, {4, 600}, {8, 224}, {1, 1041}};

static void finish_check_sizes(const struct finish_norm *norm, const struct finish *finish)
{
	struct picture_buffer buffer = {0};
	struct philox_seq seq;

	philox_seq_init(&seq, 4, (uint64_t)finish->dtype, finish->order);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(finish_sizes); i++) {
		struct picture picture;
		size_t values = (size_t)3 * finish_sizes[i][0] * finish_sizes[i][1];
		size_t size = values * finish_value_bytes(finish->dtype);
		uint8_t *memory = aligned_alloc(64, base_align_up(size + 64, 64));

		ck_assert_ptr_nonnull(memory);
		ck_assert_int_eq(
		    picture_make(&buffer, finish_sizes[i][0], finish_sizes[i][1], &picture), 0);
		for (uint32_t y = 0; y < picture.height; y++) {
			for (uint32_t x = 0; x < picture.width * 4; x++)
				picture_row(&picture, y)[x] = (uint8_t)philox_u32(&seq);
		}
		for (unsigned offset = 0; offset < 64; offset += 28) {
			memset(memory, 0xa5, size + 64);
			finish_run(finish, &picture, memory + offset);
			finish_check(norm, finish, &picture, memory + offset);
			for (size_t at = 0; at < 64; at++)
				ck_assert_uint_eq(memory[at < offset ? at : size + at], 0xa5);
		}
		free(memory);
	}
	picture_buffer_fini(&buffer);
}

START_TEST(values)
{
	const struct finish_norm *norm = &finish_norms[_i];

	for (unsigned i = 0; i < BASE_ARRAY_LEN(finish_dtypes); i++) {
		for (enum op_order order = OP_HWC; order <= OP_CHW; order++) {
			struct finish finish;
			struct op op;
			struct shape shape = finish_shape(&op, norm, finish_dtypes[i], order);

			finish_init(&finish, &shape);
			finish_check_sizes(norm, &finish);
			finish.kernels = &finish_plain;
			finish_check_sizes(norm, &finish);
		}
	}
}
END_TEST

/* The means and spreads that people use are computed, not looked up. */
START_TEST(quick)
{
	for (unsigned i = 0; finish_best() != &finish_plain && i < 5 * 4; i++) {
		const struct finish_norm *norm = &finish_norms[i / 4];
		struct finish finish;
		struct op op;
		struct shape shape = finish_shape(&op, norm, finish_dtypes[i % 4], OP_CHW);

		finish_init(&finish, &shape);
		ck_assert_msg(finish.kernels == finish_best(), "%s, type %d", norm->name,
			      finish.dtype);
	}
}
END_TEST

START_TEST(join)
{
	const struct finish_kernels *all[] = {&finish_plain, finish_best()};
	uint8_t plane[3][100], to[4 * 100];

	for (unsigned x = 0; x < 300; x++)
		plane[x / 100][x % 100] = (uint8_t)(x * 31);
	for (unsigned i = 0; i < 2; i++) {
		for (size_t n = 1; n <= 100; n++) {
			const uint8_t *const from[3] = {plane[0], plane[1], plane[2]};

			memset(to, 0, sizeof(to));
			all[i]->join(from, n, to);
			for (size_t x = 0; x < 400; x++)
				ck_assert_uint_eq(to[x], x >= 4 * n   ? 0
							 : x % 4 == 3 ? 255
								      : plane[x % 4][x / 4]);
		}
	}
}
END_TEST

/* ---- the column pass and the last step as one ---- */

#define FUSED_WIDE 97
#define FUSED_STRIDE (2 * FUSED_WIDE + 2 * PLANE_PAD)
#define FUSED_PAIRS 16
#define FUSED_ROWS 3

static uint8_t fused_pairs[FUSED_PAIRS][FUSED_STRIDE];

static void fused_fill(void)
{
	uint8_t row[2][FUSED_WIDE + PLANE_PAD];
	struct philox_seq seq;

	philox_seq_init(&seq, 9, 0, 0);
	for (unsigned i = 0; i < FUSED_PAIRS; i++) {
		for (unsigned x = 0; x < 2 * sizeof(row[0]); x++) {
			uint32_t value = philox_u32(&seq);

			/* many extremes, so that clipping is met */
			row[x % 2][x / 2] =
			    (uint8_t)(value & 0x300 ? value : (value & 0x80 ? 255 : 0));
		}
		plane_best()->zip(row[0], row[1], FUSED_WIDE, fused_pairs[i]);
	}
}

/* Row y of a table by the references, compared with what stands at `got`, which is then wiped. */
static void fused_check_row(const struct fuse_down *down, uint32_t y, uint8_t *got)
{
	static float want[FUSED_WIDE];
	const struct plane_table *table = down->table;
	const size_t size = down->width * finish_value_bytes(down->finish->dtype);
	const uint8_t *rows[FUSED_PAIRS];
	uint8_t bytes[FUSED_WIDE + PLANE_PAD];

	ck_assert_uint_le(table->count[y] / 2, FUSED_PAIRS);
	for (uint32_t i = 0; i < table->count[y] / 2; i++)
		rows[i] = fused_pairs[(table->first[y] / 2 + i) % FUSED_PAIRS];
	plane_best()->down(rows, table->count[y] / 2, table->split + 2 * (size_t)y * table->taps,
			   (uint32_t)down->width, bytes);
	finish_plain.plane(down->finish, down->c, bytes, down->width, want);
	ck_assert_mem_eq(got, want, size);
	memset(got, 0x77, size);
}

/* Up to three rows from row y on, downwards or upwards, close together or past the cache. */
static void fused_check(const struct finish *finish, const struct plane_table *table, uint32_t y,
			size_t n, unsigned offset)
{
	static uint8_t out[FUSED_ROWS * FUSED_WIDE * 4 + 160] __attribute__((aligned(32)));
	const uint8_t *pair[2 * FUSED_PAIRS];
	const size_t size = n * finish_value_bytes(finish->dtype);
	const ptrdiff_t step = (ptrdiff_t)(y % 4 < 2 ? base_align_up(size, 32) : size);
	struct fuse_down down = {table,
				 y,
				 BASE_MIN(y + FUSED_ROWS, table->want.count),
				 pair,
				 FUSED_PAIRS - 1,
				 finish,
				 y % 3,
				 n,
				 out + offset,
				 step};

	for (uint32_t i = 0; i < 2 * FUSED_PAIRS; i++)
		pair[i] = fused_pairs[i % FUSED_PAIRS];
	if (y % 5 < 2) {
		down.out += (FUSED_ROWS - 1) * step;
		down.step = -step;
	}
	memset(out, 0x77, sizeof(out));
	fuse_avx2(finish)->down(&down);
	for (; y < down.end; y++, down.out += down.step)
		fused_check_row(&down, y, down.out);
	for (size_t i = 0; i < sizeof(out); i++)
		ck_assert_uint_eq(out[i], 0x77);
}

START_TEST(fused)
{
	static const uint32_t sizes[][2] = {{1, 5}, {40, 224}, {97, 31}, {300, 97}, {700, 97}};
	static const enum filter_id filters[] = {FILTER_BOX, FILTER_BILINEAR, FILTER_BICUBIC};
	struct op op;
	struct shape shape = finish_shape(&op, &finish_norms[1], finish_dtypes[1 + _i % 3], OP_CHW);
	struct filter_table filter = {0};
	struct plane_table table = {0};
	struct finish finish;

	finish_init(&finish, &shape);
	fused_fill();
	for (unsigned i = 0; fuse_avx2(&finish) && i < BASE_ARRAY_LEN(sizes); i++) {
		struct plane_want want = {.form = PLANE_DOWN,
					  .id = filters[_i / 3],
					  .in = sizes[i][0],
					  .out = sizes[i][1],
					  .count = sizes[i][1]};

		ck_assert(plane_table_make(&table, &filter, &want));
		for (uint32_t y = 0; y < want.count; y++)
			fused_check(&finish, &table, y, 1 + y * 13 % FUSED_WIDE, y % 2 * 4);
	}
	plane_table_fini(&table);
	filter_fini(&filter);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, values, 0, BASE_ARRAY_LEN(finish_norms));
	tcase_add_test(tcase, quick);
	tcase_add_test(tcase, join);
	tcase_add_loop_test(tcase, fused, 0, 9);
}

int main(void)
{
	return suite_run("finish", add);
}

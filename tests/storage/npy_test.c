/* SPDX-License-Identifier: Apache-2.0 */

/* Heads of .npy and .idx files, and numbers that are widened. */

#include "base/little.h"
#include "base/npy.h"
#include "storage/source/scan/megatron.h"
#include "tests/storage/scan_run.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- .npy ---- */

/* As numpy.save() of NumPy 1.24 writes numpy.arange(6, dtype="<i4").reshape(2, 3). */
static const uint8_t golden[] =
    "\x93NUMPY\x01\x00v\x00{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }"
    "                                                          \n"
    "\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x05\x00\x00"
    "\x00";
#define GOLDEN_BYTES (sizeof(golden) - 1)

START_TEST(golden_array)
{
	struct diag diag;
	struct npy npy;
	int64_t row[3];

	ck_assert_uint_eq(GOLDEN_BYTES, 128 + 24);
	ck_assert_int_eq(npy_parse(golden, GOLDEN_BYTES, GOLDEN_BYTES, &npy, &diag), 0);
	ck_assert_uint_eq(npy.data_at, 128);
	ck_assert_int_eq(npy.number, NUMBER_I32);
	ck_assert_uint_eq(npy.ndim, 2);
	ck_assert_uint_eq(npy.shape[0], 2);
	ck_assert_uint_eq(npy.row_values, 3);
	number_widen(npy.number, golden + npy.data_at + 12, 3, row);
	ck_assert_int_eq(row[0], 3);
	ck_assert_int_eq(row[2], 5);
	ck_assert_int_eq(npy_parse(golden, 100, 100, &npy, &diag), NPY_E_BAD);
	ck_assert_int_eq(npy_parse(golden + 1, 100, 100, &npy, &diag), NPY_E_NONE);
}
END_TEST

static const struct head_case {
	const char *head;
	uint64_t data; /* bytes that follow */
	const char *why;
	uint64_t rows, values;
} head_cases[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", 20, NULL, 5, 1},
    {"{'shape': (2, 3, 4), 'fortran_order': False, 'descr': '|u1'}", 24, NULL, 2, 12},
    {"{'descr': '<u2', 'fortran_order': False, 'shape': (1, 1, 1, 1, 2), }", 4, NULL, 1, 2},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", 19, "cut off", 0, 0},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", 24, "cut off", 0, 0},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (5,), }", 20, "Fortran", 0, 0},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (5,), }", 40, "of type <c8", 0, 0},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (5,), }", 20, "of type >f4", 0, 0},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (5,), }", 20, "of type |O", 0, 0},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (5,), }", 20, "plain", 0, 0},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4, "has no rows", 0, 0},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4), }", 0, "no row", 0, 0},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 0), }", 0, "no value", 0, 0},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1), }", 4, "five", 0, 0},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, "no shape", 0, 0},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", 4, "no shape", 0, 0},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, "
     "9223372036854775807), }",
     4, "more than 1 GiB", 0, 0},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 4, "plain", 0, 0},
    {"{'descr': '<f4', 'shape': (1,), }", 4, "Fortran", 0, 0},
    {"", 4, "plain", 0, 0},
};

START_TEST(heads)
{
	const struct head_case *is = &head_cases[_i];
	struct diag diag = {.text = ""};
	struct shard_bytes file;
	struct npy npy;
	int r;

	shard_bytes_init(&file, 4096);
	shard_put(&file, "\x93NUMPY\x02", 8);
	shard_put_32(&file, (uint32_t)strlen(is->head));
	shard_put(&file, is->head, strlen(is->head));
	shard_put_fill(&file, 0, is->data);
	r = npy_parse(file.data, file.size, file.size, &npy, &diag);
	if (is->why) {
		ck_assert_int_eq(r, NPY_E_BAD);
		ck_assert_msg(strstr(diag.text, is->why), "%s", diag.text);
	} else {
		ck_assert_int_eq(r, 0);
		ck_assert_uint_eq(npy.data_at, file.size - is->data);
		ck_assert_uint_eq(npy.shape[0], is->rows);
		ck_assert_uint_eq(npy.row_values, is->values);
	}
	shard_bytes_fini(&file);
}
END_TEST

/* ---- .idx ---- */

static void put_idx(struct shard_bytes *idx, uint8_t type, uint64_t sequences, uint64_t documents)
{
	shard_put(idx, "MMIDIDX\0", 9);
	shard_put_64(idx, 1);
	shard_put_fill(idx, type, 1);
	shard_put_64(idx, sequences);
	shard_put_64(idx, documents);
}

static const struct idx_case {
	uint8_t type;
	uint64_t sequences, documents, more; /* bytes behind the head */
	enum number number;                  /* 0: refused */
} idx_cases[] = {
    {8, 3, 4, 3 * 12 + 4 * 8, NUMBER_U16},
    {4, 3, 4, 3 * 12 + 4 * 8, NUMBER_I32},
    {8, 3, 4, 3 * 12 + 4 * 8 + 3, NUMBER_U16}, /* with modes */
    {8, 3, 4, 3 * 12 + 4 * 8 + 2, 0},
    {8, 3, 4, 3 * 12 + 4 * 8 - 1, 0},
    {7, 3, 4, 3 * 12 + 4 * 8, 0},
    {0, 3, 4, 3 * 12 + 4 * 8, 0},
    {255, 3, 4, 3 * 12 + 4 * 8, 0},
    {8, UINT64_MAX / 12 + 1, 0, 0, 0},
    {8, 0, UINT64_MAX / 8 + 1, 0, 0},
};

START_TEST(idx_heads)
{
	const struct idx_case *is = &idx_cases[_i];
	struct diag diag = {.text = ""};
	struct megatron megatron;
	struct shard_bytes idx;
	int r;

	shard_bytes_init(&idx, 4096);
	put_idx(&idx, is->type, is->sequences, is->documents);
	ck_assert_uint_eq(idx.size, MEGATRON_HEAD);
	r = megatron_parse(idx.data, MEGATRON_HEAD + is->more, &megatron, &diag);
	ck_assert_int_eq(r, is->number ? 0 : NPY_E_BAD);
	if (r == 0) {
		ck_assert_int_eq(megatron.number, is->number);
		ck_assert_uint_eq(megatron.starts_at, MEGATRON_HEAD + 12);
	} else {
		ck_assert(diag.text[0]);
	}
	idx.data[0] = 'x';
	ck_assert_int_eq(megatron_parse(idx.data, MEGATRON_HEAD + is->more, &megatron, &diag),
			 NPY_E_NONE);
	shard_bytes_fini(&idx);
}
END_TEST

/* ---- numbers ---- */

static const struct widen_case {
	const char *name, *numpy;
	unsigned bytes;
	int64_t largest; /* of bytes that are all ones */
} widen_cases[] = {
    {"int8", "|i1", 1, -1},           {"uint16", "<u2", 2, 65535}, {"int16", "<i2", 2, -1},
    {"uint32", "<u4", 4, UINT32_MAX}, {"int32", "<i4", 4, -1},     {"int64", "<i8", 8, -1},
};

START_TEST(whole_numbers)
{
	const struct widen_case *is = &widen_cases[_i];
	const enum number number = number_of_name(is->name);
	uint8_t bytes[16];
	int64_t wide[2];

	ck_assert(number && number == number_of_numpy(is->numpy));
	ck_assert_uint_eq(number_bytes(number), is->bytes);
	ck_assert_uint_eq(number_batch_bytes(number), 8);
	memset(bytes, 0xff, sizeof(bytes));
	memset(bytes, 0, is->bytes);
	bytes[0] = 5;
	number_widen(number, bytes, 2, wide);
	ck_assert_int_eq(wide[0], 5);
	ck_assert_int_eq(wide[1], is->largest);
}
END_TEST

/* Where they are written to, of any number: as a row is, whose numbers stand at the end of their place. */
START_TEST(tokens_in_their_place)
{
	uint64_t wide[40];

	for (size_t n = 1; n <= BASE_ARRAY_LEN(wide); n++) {
		uint8_t *raw = (uint8_t *)(wide + n) - 2 * n;

		for (size_t i = 0; i < n; i++)
			little_put(raw + 2 * i, 65535 - 257 * i, 2);
		number_widen(number_of_name("uint16"), raw, n, wide);
		for (size_t i = 0; i < n; i++)
			ck_assert_uint_eq(wide[i], 65535 - 257 * i);
	}
}
END_TEST

START_TEST(others)
{
	static const char *const same[] = {"uint8",   "bool",   "float16",
					   "float32", "uint64", "float64"};
	uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8}, copy[8];

	for (unsigned i = 0; i < BASE_ARRAY_LEN(same); i++) {
		const enum number number = number_of_name(same[i]);

		ck_assert_uint_eq(number_bytes(number), number_batch_bytes(number));
		number_widen(number, bytes, 8 / number_bytes(number), copy);
		ck_assert_mem_eq(bytes, copy, 8);
	}
	ck_assert_int_eq(number_of_name("complex64"), 0);
	ck_assert_int_eq(number_of_numpy(">f8"), 0);
	ck_assert_int_eq(number_of_name(""), 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, golden_array);
	tcase_add_loop_test(tcase, heads, 0, BASE_ARRAY_LEN(head_cases));
	tcase_add_loop_test(tcase, idx_heads, 0, BASE_ARRAY_LEN(idx_cases));
	tcase_add_loop_test(tcase, whole_numbers, 0, BASE_ARRAY_LEN(widen_cases));
	tcase_add_test(tcase, tokens_in_their_place);
	tcase_add_test(tcase, others);
}

int main(void)
{
	return suite_run("npy", add);
}

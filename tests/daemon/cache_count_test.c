/* SPDX-License-Identifier: Apache-2.0 */

/* What a table says is kept: exact where it is small, and no look at each sample where it is not. */

#include "daemon/cache/cache_count.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/suite.h"

#define LARGE UINT64_C(100000000)

static struct counter_cell *table;
static int fd;

static void begin(uint64_t n)
{
	fd = base_memfd("table", n * sizeof(*table));
	ck_assert_int_ge(fd, 0);
	table = mmap(NULL, n * sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(table, MAP_FAILED);
}

static uint64_t count(uint64_t n, uint64_t *ret_bytes)
{
	uint64_t samples;

	cache_count(table, n, &samples, ret_bytes);
	return samples;
}

static void end(uint64_t n)
{
	munmap(table, n * sizeof(*table));
	close(fd);
}

START_TEST(a_small_one_is_exact)
{
	static const uint64_t sizes[] = {1, 255, 65535, 65536};
	const uint64_t n = sizes[_i];
	uint64_t bytes;

	begin(n);
	ck_assert_uint_eq(count(n, &bytes), 0);
	for (uint64_t i = 0; i < n; i += 3)
		counter_cell_set(&table[i], 7);
	ck_assert_uint_eq(count(n, &bytes), (n + 2) / 3);
	ck_assert_uint_eq(bytes, 7 * ((n + 2) / 3));
	end(n);
}
END_TEST

/* A read of a hole makes it a page: that of each 1,500th cell would take 256 MiB of it, and as many faults of the loop. */
START_TEST(a_large_one_takes_few_pages)
{
	struct stat status;
	uint64_t bytes;

	begin(LARGE);
	ck_assert_uint_eq(count(LARGE, &bytes), 0);
	ck_assert_uint_eq(bytes, 0);
	ck_assert_int_eq(fstat(fd, &status), 0);
	ck_assert_uint_le(512 * (uint64_t)status.st_blocks, 4 << 20);
	end(LARGE);
}
END_TEST

/* As a stream in sequence leaves it, and one in any order. */
START_TEST(a_large_one_is_near)
{
	const uint64_t n = UINT64_C(1) << 20;
	uint64_t bytes;

	begin(n);
	for (uint64_t i = 0; i < n / 4; i++)
		counter_cell_set(&table[i], 100);
	ck_assert_uint_ge(count(n, &bytes), n / 4 - n / 100);
	ck_assert_uint_le(count(n, &bytes), n / 4 + n / 100);
	ck_assert_uint_eq(bytes, 100 * count(n, &bytes));
	for (uint64_t i = 0; i < n; i++)
		counter_cell_set(&table[i], i % 4 ? 0 : 100);
	ck_assert_uint_eq(count(n, &bytes), n / 4);
	for (uint64_t i = 0; i < n; i++)
		counter_cell_set(&table[i], 100);
	ck_assert_uint_eq(count(n, &bytes), n);
	end(n);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, a_small_one_is_exact, 0, 4);
	tcase_add_test(tcase, a_large_one_takes_few_pages);
	tcase_add_test(tcase, a_large_one_is_near);
}

int main(void)
{
	return suite_run("cache_count", add);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Packing: each token of each document is in one sequence, at one place; it is the same each time; and how much stays unused,
 * of documents whose lengths are log-normal, as those of a corpus are about. */

#include "storage/source/scan/packing.h"

#include "base/base.h"
#include "tests/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct packing packing, again;
static struct packing_part part[PACKING_GROUP];
static uint32_t size[PACKING_GROUP];

/* xorshift: the tests' own numbers, the same everywhere. */
static uint64_t state;
static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}
static double uniform(void)
{
	return ((double)(draw() >> 11) + 0.5) / 9007199254740992.0;
}
static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* Each document's parts, taken together, are all of it once. Returns its tokens. */
static uint64_t check_all(unsigned n, uint32_t length)
{
	static uint64_t seen[PACKING_GROUP], squares[PACKING_GROUP];
	uint64_t tokens = 0;

	memset(seen, 0, sizeof(seen));
	memset(squares, 0, sizeof(squares));
	ck_assert_int_eq(packing_make(size, n, length, &packing), 0);
	for (uint64_t k = 0; k < packing.sequences; k++) {
		const unsigned parts = packing_parts(&packing, k, part);
		uint32_t used = 0;

		ck_assert_uint_gt(parts, 0);
		for (unsigned i = 0; i < parts; i++) {
			ck_assert_uint_lt(part[i].document, n);
			ck_assert_uint_gt(part[i].tokens, 0);
			ck_assert_uint_eq(part[i].at % length, 0);
			ck_assert_uint_le(part[i].at + (uint64_t)part[i].tokens,
					  size[part[i].document]);
			ck_assert(i == 0 || part[i].tokens <= part[i - 1].tokens);
			seen[part[i].document] += part[i].tokens;
			squares[part[i].document] += part[i].at / length + 1;
			used += part[i].tokens;
		}
		ck_assert_uint_le(used, length);
	}
	for (unsigned i = 0; i < n; i++) {
		const uint64_t pieces = ((uint64_t)size[i] + length - 1) / length;

		ck_assert_uint_eq(seen[i], size[i]);
		ck_assert_uint_eq(squares[i], pieces * (pieces + 1) / 2);
		tokens += size[i];
	}
	ck_assert_int_eq(packing_make(size, n, length, &again), 0);
	ck_assert(again.sequences == packing.sequences &&
		  memcmp(again.rest, packing.rest, sizeof(again.rest)) == 0);
	return tokens;
}

START_TEST(each_token_once)
{
	static const uint32_t lengths[] = {1, 2, 63, 64, 65, 1000, PACKING_MOST_LENGTH};

	state = 7;
	for (unsigned round = 0; round < 60; round++) {
		const uint32_t length = lengths[round % BASE_ARRAY_LEN(lengths)];
		const unsigned n = 1 + (unsigned)(draw() % (round % 10 ? 100 : PACKING_GROUP));

		for (unsigned i = 0; i < n; i++)
			size[i] = (uint32_t)(draw() % (BASE_MIN(length, 5000u) * 3 + 1));
		check_all(n, length);
	}
}
END_TEST

START_TEST(known_packing)
{
	static const uint32_t sizes[] = {25, 4, 6, 0, 10, 3, 7, 4};
	static const unsigned wanted[][3] = {{0}, {0}, {4}, {6, 5}, {2, 1}, {0, 7}};

	memcpy(size, sizes, sizeof(sizes));
	ck_assert_uint_eq(check_all(8, 10), 59);
	ck_assert_uint_eq(packing.whole, 3);
	ck_assert_uint_eq(packing.sequences, 6);
	for (unsigned k = 0; k < 6; k++)
		for (unsigned i = 0; i < packing_parts(&packing, k, part); i++)
			ck_assert_uint_eq(part[i].document, wanted[k][i]);
	packing_parts(&packing, 1, part);
	ck_assert_uint_eq(part[0].at, 10);
}
END_TEST

START_TEST(little_stays_unused)
{
	static const uint32_t lengths[] = {2048, 8192};
	const uint32_t length = lengths[_i];
	uint64_t tokens = 0, room = 0;

	state = 11;
	for (unsigned group = 0; group < 20; group++) {
		for (unsigned i = 0; i < PACKING_GROUP; i++) /* of mean 923 */
			size[i] = (uint32_t)exp(6.2 + 1.127 * normal()) + 1;
		tokens += check_all(PACKING_GROUP, length);
		room += packing.sequences * length;
	}
	printf("S = %u: %.3f %% of the tokens are padding\n", length,
	       100.0 * (double)(room - tokens) / (double)room);
	ck_assert_uint_le((room - tokens) * 500, room); /* 0.2 % */
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, each_token_once);
	tcase_add_test(tcase, known_packing);
	tcase_add_loop_test(tcase, little_stays_unused, 0, 2);
}

int main(void)
{
	return suite_run("packing", add);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* float16 and bfloat16: each value of theirs, what lies beside it, and each tie between two. */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include "base/half.h"

/* What the bits mean: an exponent of that many bits, then the fraction; from the definition. */
static double half_value(uint32_t bits, int exponent_bits)
{
	int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
	int exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
	double fraction = bits & ((1u << fraction_bits) - 1), one = 1 << fraction_bits;

	if (exponent)
		return ldexp(one + fraction, exponent - bias - fraction_bits);
	return ldexp(fraction, 1 - bias - fraction_bits);
}

static const struct {
	uint16_t (*round)(float value);
	float (*value)(uint16_t half);
	int exponent_bits;
	uint16_t infinity;
} kinds[] = {
    {half_f16, half_f16_value, 5, 0x7c00},
    {half_bf16, half_bf16_value, 8, 0x7f80},
};

START_TEST(each_value)
{
	uint16_t (*round)(float) = kinds[_i].round;

	for (uint32_t bits = 0; bits < kinds[_i].infinity; bits++) {
		float value = (float)half_value(bits, kinds[_i].exponent_bits);
		float next = (float)half_value(bits + 1, kinds[_i].exponent_bits);
		float tie = value + (next - value) / 2;
		uint16_t even = (uint16_t)(bits % 2 == 0 ? bits : bits + 1);

		if (bits + 1 == kinds[_i].infinity) /* beyond the float32s, for bfloat16 */
			tie = half_float(half_bits(value) +
					 ((half_bits(value) & -half_bits(value)) >> 1));
		if (round(value) != bits || round(-value) != (bits | 0x8000) ||
		    round(tie) != even || round(nextafterf(tie, 0)) != bits ||
		    round(nextafterf(tie, INFINITY)) != bits + 1)
			ck_abort_msg("bits %#x", bits);
		if (kinds[_i].value((uint16_t)bits) != value ||
		    kinds[_i].value((uint16_t)(bits | 0x8000)) != -value)
			ck_abort_msg("value of bits %#x", bits);
	}
}
END_TEST

START_TEST(beyond_numbers)
{
	uint16_t infinity = kinds[_i].infinity;

	ck_assert_uint_eq(kinds[_i].round(INFINITY), infinity);
	ck_assert_uint_eq(kinds[_i].round(-INFINITY), infinity | 0x8000);
	ck_assert_uint_eq(kinds[_i].round(3.4e38f), infinity);
	ck_assert_uint_gt(kinds[_i].round(NAN) & 0x7fff, infinity);
	ck_assert_uint_gt(kinds[_i].round(half_float(0x7f800001)) & 0x7fff, infinity);
	ck_assert(kinds[_i].value(infinity) == INFINITY);
	ck_assert(kinds[_i].value(infinity | 0x8000) == -INFINITY);
	for (uint32_t bits = infinity + 1u; bits < 0x8000; bits++)
		ck_assert(isnan(kinds[_i].value((uint16_t)bits)));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("half");
	TCase *tests = tcase_create("half");
	SRunner *runner = srunner_create(suite);
	int failed, n = sizeof(kinds) / sizeof(kinds[0]);

	suite_add_tcase(suite, tests);
	tcase_add_loop_test(tests, each_value, 0, n);
	tcase_add_loop_test(tests, beyond_numbers, 0, n);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}

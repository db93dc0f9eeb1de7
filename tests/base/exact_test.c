/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Functions that are right to the last bit: values that were computed with 300 bits (by mpmath), among them such as glibc 2.36
 * rounds the other way, and never far from libm's.
 */

#include <math.h>
#include <stdlib.h>

#include "base/exact.h"
#include "base/philox.h"
#include "tests/suite.h"

#define ARGUMENTS 20000

static const struct {
	double (*function)(double);
	double x, value;
} right[] = {
    {exact_exp, -0x1.afe7932de96a2p+4, 0x1.0a1a2d2f3a4a3p-39},
    {exact_exp, -0x1.441b5db151798p+3, 0x1.4ef8a1026657bp-15},
    {exact_exp, -0x1.0830f7f1edee0p+3, 0x1.1051183d9d783p-12},
    {exact_exp, -0x1.cd70eac80c540p-1, 0x1.9fce6e29365dbp-2},
    {exact_exp, 0x0.0p+0, 0x1.0000000000000p+0},
    {exact_exp, -0x1.0000000000000p+0, 0x1.78b56362cef38p-2},
    {exact_exp, 0x1.0000000000000p+0, 0x1.5bf0a8b145769p+1},
    {exact_exp, -0x1.5680000000000p+9, 0x1.afb418cf3e80fp-989},
    {exact_exp, 0x1.0000000000000p-30, 0x1.0000000400000p+0},
    {exact_exp, -0x1.8000000000000p-51, 0x1.ffffffffffffap-1},
    {exact_log, 0x1.157df1be89557p-2, -0x1.4e41083263e1dp+0},
    {exact_log, 0x1.2bcb2a03308edp-3, -0x1.ebe90b33cd53cp+0},
    {exact_log, 0x1.79befba1143d0p+0, 0x1.8e61b7c8ba255p-2},
    {exact_log, 0x1.04016da49b3e1p+1, 0x1.6ad72a22fa885p-1},
    {exact_log, 0x1.0000000000000p+0, 0x0.0p+0},
    {exact_log, 0x1.8000000000000p-1, -0x1.269621134db92p-2},
    {exact_log, 0x1.5555555555555p+0, 0x1.269621134db91p-2},
    {exact_log, 0x1.fffffffe00000p-1, -0x1.0000000080000p-32},
    {exact_log, 0x1.0000000001000p+0, 0x1.ffffffffff000p-41},
    {exact_log, 0x1.0000000000000p-32, -0x1.62e42fefa39efp+4},
    {exact_log, 0x1.93e5939a08ceap+99, 0x1.144f69ff9ffc4p+6},
    {exact_sin, -0x1.de620202487d8p+6, -0x1.b550ca869593dp-3},
    {exact_sin, 0x1.2ab0569922c5ep+8, -0x1.e1e0ecda66e01p-3},
    {exact_sin, 0x1.0888bbad69f08p+6, -0x1.46736e9dad7bdp-3},
    {exact_sin, -0x1.f525f8e752394p+6, 0x1.789c1e0832725p-2},
    {exact_sin, 0x0.0p+0, 0x0.0p+0},
    {exact_sin, 0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53},
    {exact_sin, 0x1.921fb54442d18p+2, -0x1.1a62633145c07p-52},
    {exact_sin, 0x1.12e0be826d695p-30, 0x1.12e0be826d695p-30},
    {exact_sin, -0x1.0000000000000p-1, -0x1.eaee8744b05f0p-2},
    {exact_sin, 0x1.3a28c59d5433bp+9, 0x1.1b19140c0c0d5p-48},
    {exact_cos, 0x1.7c796b595cb5cp+8, -0x1.e26b61ea8418bp-1},
    {exact_cos, 0x1.64e76158158a0p+6, 0x1.37d3d0bfa8617p-2},
    {exact_cos, -0x1.8e765ec5d9230p+7, -0x1.07315a654e487p-2},
    {exact_cos, 0x1.29c3b2819dceep+9, 0x1.9101ac4c88139p-3},
    {exact_cos, 0x0.0p+0, 0x1.0000000000000p+0},
    {exact_cos, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54},
    {exact_cos, 0x1.2d97c7f3321d2p+2, -0x1.a79394c9e8a0ap-53},
    {exact_cos, 0x1.12e0be826d695p-30, 0x1.0000000000000p+0},
    {exact_cos, 0x1.2c00000000000p+9, -0x1.ff8001630c056p-1},
    {exact_tan, 0x1.f0902b0f2b700p+2, 0x1.4f2e59525e939p+3},
    {exact_tan, -0x1.c05389c775412p+8, 0x1.513195845cbc9p+0},
    {exact_tan, 0x1.a7ef45afa53c8p+6, -0x1.18312e4fd7a09p+0},
    {exact_tan, 0x1.cd4e569b3c860p+4, 0x1.3f11d96d326c4p-1},
    {exact_tan, 0x0.0p+0, 0x0.0p+0},
    {exact_tan, 0x1.921fb54442d18p-1, 0x1.fffffffffffffp-1},
    {exact_tan, -0x1.8cccccccccccdp+0, -0x1.80a0bb6c0c707p+5},
    {exact_tan, 0x1.12e0be826d695p-30, 0x1.12e0be826d695p-30},
    {exact_tan, 0x1.921fb54442d18p+0, 0x1.d02967c31cdb5p+53},
};

START_TEST(the_nearest_double)
{
	for (unsigned i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		ck_assert_msg(right[i].function(right[i].x) == right[i].value, "row %u: %a, not %a",
			      i, right[i].function(right[i].x), right[i].value);
	ck_assert(exact_exp(-1e300) == 0);
	ck_assert(isinf(exact_exp(1e300)));
}
END_TEST

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 0x1p-52 * fabs(b);
}

START_TEST(libm_is_not_far)
{
	struct philox_seq seq;

	philox_seq_init(&seq, 7, 0, 0);
	for (unsigned i = 0; i < ARGUMENTS; i++) {
		const double unit = philox_unit(&seq), wide = 1256 * unit - 628;

		ck_assert(is_near(exact_exp(unit * 60 - 50), exp(unit * 60 - 50)));
		ck_assert(is_near(exact_log(1 - unit), log(1 - unit)));
		ck_assert(is_near(exact_sin(wide), sin(wide)));
		ck_assert(is_near(exact_cos(wide), cos(wide)));
		ck_assert(is_near(exact_tan(wide), tan(wide)));
	}
}
END_TEST

/* What is said to be sure is the same for all that are as near as any libm is. */
START_TEST(what_is_sure_is_so_for_any_libm)
{
	struct philox_seq seq;
	unsigned doubts = 0;

	philox_seq_init(&seq, 8, 0, 0);
	for (unsigned i = 0; i < ARGUMENTS; i++) {
		const double x = philox_unit(&seq) * 500, low = x * (1 - 0x1p-50),
			     high = x * (1 + 0x1p-50);

		ck_assert(!exact_is_sure(x) || rint(low) == rint(high));
		ck_assert(!exact_is_sure_float(x) || (float)low == (float)high);
		doubts += !exact_is_sure_float(x);
	}
	ck_assert_uint_le(doubts, 1);
	ck_assert(!exact_is_sure(17.5));
	ck_assert(!exact_is_sure(-3.4999999999));
	ck_assert(!exact_is_sure_float(1 + 0x1p-24));
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, the_nearest_double);
	tcase_add_test(tcase, libm_is_not_far);
	tcase_add_test(tcase, what_is_sure_is_so_for_any_libm);
}

int main(void)
{
	return suite_run("exact", add);
}

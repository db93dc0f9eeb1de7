/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mixup and cutmix: lambda is of the Beta distribution (Kolmogorov-Smirnov, with fixed keys), boxes are
 * those of torchvision's definition, which is written out here once more, sums are rounded where torch's
 * are, ops are chosen as often as they say, and nothing but the key decides.
 */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/philox.h"
#include "plan/mix/batch_mix.h"
#include "plan/mix/batch_mix_sums.h"
#include "tests/suite.h"

#define DRAWS 20000

static struct batch_mix draw(enum batch_mix_kind kind, double alpha, uint64_t number)
{
	const struct batch_mix_op op = {kind, alpha, 1};
	const struct batch_mix_key key = {7, number / 1000, number % 3, (int64_t)(number % 1000)};

	return batch_mix_draw(&op, 1, &key, 224, 160);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The distribution function of Beta(a, a), by the integral of its density from 0 or, as that is endless
 * there for a < 1, in the variable t = x^a. */
static double beta_below(double a, double x)
{
	const unsigned steps = 4000;
	double whole = exp(2 * lgamma(a) - lgamma(2 * a)), sum = 0, most = pow(x, a);

	if (x > 0.5)
		return 1 - beta_below(a, 1 - x);
	for (unsigned i = 0; i < steps; i++) {
		double t = most * (i + 0.5) / steps;

		sum += pow(1 - pow(t, 1 / a), a - 1);
	}
	return sum * most / steps / a / whole;
}

static const double alphas[] = {0.2, 0.3, 0.5, 1, 1.5, 2, 8};

START_TEST(lambda_is_of_beta)
{
	double *lambda = malloc(DRAWS * sizeof(*lambda)), far = 0;

	for (unsigned i = 0; i < DRAWS; i++) {
		lambda[i] = draw(BATCH_MIX_MIXUP, alphas[_i], i).lambda;
		ck_assert(lambda[i] >= 0 && lambda[i] <= 1);
	}
	qsort(lambda, DRAWS, sizeof(*lambda), by_value);
	for (unsigned i = 0; i < DRAWS; i += 20) {
		double below = beta_below(alphas[_i], lambda[i]);

		far = fmax(far, fmax(fabs(below - (double)i / DRAWS),
				     fabs(below - (double)(i + 20) / DRAWS) - 20.0 / DRAWS));
	}
	ck_assert_msg(far < 1.63 / sqrt(DRAWS), "alpha %g: %g", alphas[_i], far); /* 1 % */
	free(lambda);
}
END_TEST

/* torchvision's CutMix.make_params for a middle and a lambda. */
static void box_of(int x, int y, int width, int height, double lambda, int box[4])
{
	double r = 0.5 * sqrt(1.0 - lambda);
	int w = (int)(r * width), h = (int)(r * height);

	box[0] = x - w > 0 ? x - w : 0;
	box[1] = y - h > 0 ? y - h : 0;
	box[2] = x + w < width ? x + w : width;
	box[3] = y + h < height ? y + h : height;
}

/* Is there a middle which gives this box? Lambda of mixup is drawn from the same numbers. */
static bool is_a_box(const struct batch_mix *cut, double lambda)
{
	int box[4];

	for (int x = 0; x < 160; x++) {
		box_of(x, 0, 160, 224, lambda, box);
		if (box[0] != (int)cut->left || box[2] != (int)cut->right)
			continue;
		for (int y = 0; y < 224; y++) {
			box_of(x, y, 160, 224, lambda, box);
			if (box[1] == (int)cut->top && box[3] == (int)cut->bottom)
				return true;
		}
		return false;
	}
	return false;
}

START_TEST(boxes_are_torchvisions)
{
	for (unsigned i = 0; i < 3000; i++) {
		struct batch_mix cut = draw(BATCH_MIX_CUTMIX, 1, i);
		double lambda = draw(BATCH_MIX_MIXUP, 1, i).lambda;
		double area = (double)(cut.right - cut.left) * (cut.bottom - cut.top);

		ck_assert(cut.left <= cut.right && cut.right <= 160 && cut.bottom <= 224);
		ck_assert_msg(is_a_box(&cut, lambda), "draw %u", i);
		ck_assert(cut.lambda == 1 - area / (160 * 224));
	}
}
END_TEST

/* Each pixel is as often covered as others at its distance from the borders: middles are uniform. */
START_TEST(middles_are_everywhere)
{
	unsigned left = 0, upper = 0, n = 0;

	for (unsigned i = 0; i < DRAWS; i++) {
		struct batch_mix cut = draw(BATCH_MIX_CUTMIX, 1, i);

		if (cut.left == 0 || cut.right == 160 || cut.top == 0 || cut.bottom == 224)
			continue;
		n++;
		left += cut.left + cut.right < 160;
		upper += cut.top + cut.bottom < 224;
	}
	ck_assert_uint_gt(n, 2000);
	ck_assert(fabs((double)left / n - 0.5) < 0.04);
	ck_assert(fabs((double)upper / n - 0.5) < 0.04);
}
END_TEST

START_TEST(chosen_as_often_as_said)
{
	const struct batch_mix_op ops[] = {{BATCH_MIX_CUTMIX, 1, 0.25},
					   {BATCH_MIX_MIXUP, 0.2, 0.5}};
	unsigned seen[3] = {0};

	for (unsigned i = 0; i < DRAWS; i++) {
		const struct batch_mix_key key = {1, 2, i, 3};
		struct batch_mix batch_mix = batch_mix_draw(ops, 2, &key, 8, 8);

		seen[batch_mix.kind]++;
		ck_assert(batch_mix.kind != BATCH_MIX_NONE || batch_mix.lambda == 1);
	}
	ck_assert(fabs(seen[BATCH_MIX_CUTMIX] - 0.25 * DRAWS) < 4 * sqrt(DRAWS) / 2);
	ck_assert(fabs(seen[BATCH_MIX_MIXUP] - 0.5 * DRAWS) < 4 * sqrt(DRAWS) / 2);
}
END_TEST

START_TEST(only_the_key_decides)
{
	const struct batch_mix_op op = {BATCH_MIX_MIXUP, 0.4, 1};
	const struct batch_mix_key key = {11, 12, 13, 14};
	double lambda = batch_mix_draw(&op, 1, &key, 8, 8).lambda;

	ck_assert(batch_mix_draw(&op, 1, &key, 224, 224).lambda == lambda);
	for (unsigned i = 0; i < 4; i++) {
		struct batch_mix_key other = key;

		other.seed += i == 0;
		other.nonce += i == 1;
		other.epoch += i == 2;
		other.sample += i == 3;
		ck_assert(batch_mix_draw(&op, 1, &other, 8, 8).lambda != lambda);
	}
}
END_TEST

/* Replayed runs depend on these. */
START_TEST(draws_are_frozen)
{
	static const struct {
		enum batch_mix_kind kind;
		double alpha, lambda;
		uint32_t box[4];
	} known[] = {
	    {BATCH_MIX_MIXUP, 1, 0.80876338143208248, {0, 0, 0, 0}},
	    {BATCH_MIX_MIXUP, 0.2, 0.99999637441757538, {0, 0, 0, 0}},
	    {BATCH_MIX_CUTMIX, 1, 0.85770089285714279, {149, 22, 224, 90}},
	};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(known); i++) {
		struct batch_mix m = draw(known[i].kind, known[i].alpha, 4321);
		const uint32_t box[4] = {m.top, m.left, m.bottom, m.right};

		ck_assert_msg(fabs(m.lambda - known[i].lambda) < 1e-12, "%u: %.17g", i, m.lambda);
		ck_assert_msg(memcmp(box, known[i].box, sizeof(box)) == 0, "%u: %u %u %u %u", i,
			      box[0], box[1], box[2], box[3]);
	}
}
END_TEST

static const struct {
	struct batch_mix_op op[2];
	uint32_t n;
	bool good;
} lists[] = {
    {{{BATCH_MIX_MIXUP, 1, 1}}, 1, true},
    {{{BATCH_MIX_MIXUP, 1, 0.5}, {BATCH_MIX_CUTMIX, 1, 0.5}}, 2, true},
    {{{BATCH_MIX_MIXUP, 1, 0.5}, {BATCH_MIX_MIXUP, 1, 0.5}}, 2, false},
    {{{BATCH_MIX_MIXUP, 1, 0.6}, {BATCH_MIX_CUTMIX, 1, 0.5}}, 2, false},
    {{{BATCH_MIX_NONE, 1, 1}}, 1, false},
    {{{(enum batch_mix_kind)3, 1, 1}}, 1, false},
    {{{BATCH_MIX_MIXUP, 0, 1}}, 1, false},
    {{{BATCH_MIX_MIXUP, NAN, 1}}, 1, false},
    {{{BATCH_MIX_MIXUP, INFINITY, 1}}, 1, false},
    {{{BATCH_MIX_MIXUP, 1, NAN}}, 1, false},
    {{{BATCH_MIX_MIXUP, 1, -0.1}}, 1, false},
    {{{BATCH_MIX_MIXUP, 1, 1.1}}, 1, false},
    {{{BATCH_MIX_MIXUP, 1, 1}}, 3, false},
};

START_TEST(checked)
{
	ck_assert_int_eq(batch_mix_is_good(lists[_i].op, lists[_i].n), lists[_i].good);
}
END_TEST

/* ---- sums ---- */

static float rounded(float value, unsigned type)
{
	if (type == 1)
		return half_f16_value(half_f16(value));
	return type == 2 ? half_bf16_value(half_bf16(value)) : value;
}

/* The definition, operation by operation; volatile keeps the compiler from joining any. */
static float sum_of(float own, float other, double lambda, unsigned type)
{
	volatile float a = other * (float)(1 - lambda), b = own * (float)lambda, sum;

	a = rounded(a, type);
	b = rounded(b, type);
	sum = a + b;
	return rounded(sum, type);
}

START_TEST(sums)
{
	enum { N = 77 };
	float own[N], other[N], out[N];
	uint16_t own16[N], other16[N], out16[N];
	struct philox_seq seq;

	philox_seq_init(&seq, 99, (uint64_t)_i, 0);
	for (unsigned round = 0; round < 200; round++) {
		double lambda = philox_unit(&seq);

		for (unsigned i = 0; i < N; i++) {
			own[i] = rounded((float)(6 * philox_unit(&seq) - 3), (unsigned)_i);
			other[i] = rounded((float)(6 * philox_unit(&seq) - 3), (unsigned)_i);
			own16[i] = _i == 1 ? half_f16(own[i]) : half_bf16(own[i]);
			other16[i] = _i == 1 ? half_f16(other[i]) : half_bf16(other[i]);
		}
		if (_i == 0)
			batch_mix_f32(out, own, other, N, lambda);
		else if (_i == 1)
			batch_mix_f16(out16, own16, other16, N, lambda);
		else
			batch_mix_bf16(out16, own16, other16, N, lambda);
		for (unsigned i = 0; i < N; i++) {
			float sum = sum_of(own[i], other[i], lambda, (unsigned)_i);

			if (_i > 0)
				out[i] =
				    _i == 1 ? half_f16_value(out16[i]) : half_bf16_value(out16[i]);
			ck_assert_msg(out[i] == sum, "%g is not %g", (double)out[i], (double)sum);
		}
	}
}
END_TEST

/* Vectors give what single sums give, for every float of the type, numbers or not; up to its bits. */
START_TEST(vectors_agree)
{
	static uint16_t own[65536], other[65536], fast[65536], slow[65536];
	float (*value)(uint16_t) = _i ? half_bf16_value : half_f16_value;

	if (!batch_mix_has_avx2())
		return;
	for (uint32_t i = 0; i < 65536; i++) {
		own[i] = (uint16_t)i;
		other[i] = (uint16_t)(i * 40503u + 7);
	}
	ck_assert_uint_eq((_i ? batch_mix_bf16_avx2 : batch_mix_f16_avx2)(
			      fast, own, other, 65536, 0.3f, (float)(1 - (double)0.3f)),
			  65536);
	for (uint32_t i = 0; i < 65536; i++)
		(_i ? batch_mix_bf16 : batch_mix_f16)(&slow[i], &own[i], &other[i], 1,
						      (double)0.3f);
	for (uint32_t i = 0; i < 65536; i++)
		ck_assert_msg(fast[i] == slow[i] ||
				  (isnan(value(fast[i])) && isnan(value(slow[i]))),
			      "%#x and %#x: %#x is not %#x", own[i], other[i], fast[i], slow[i]);
}
END_TEST

START_TEST(classes)
{
	float row[5];

	batch_mix_classes(row, 1, 3, 5, 0.25);
	for (unsigned c = 0; c < 5; c++)
		ck_assert(row[c] == (c == 1 ? 0.25f : c == 3 ? 0.75f : 0));
	batch_mix_classes(row, 2, 2, 5, 0.3);
	ck_assert(row[2] == (float)(1 - 0.3) + (float)0.3 && row[1] == 0);
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_loop_test(tests, lambda_is_of_beta, 0, BASE_ARRAY_LEN(alphas));
	tcase_add_test(tests, boxes_are_torchvisions);
	tcase_add_test(tests, middles_are_everywhere);
	tcase_add_test(tests, chosen_as_often_as_said);
	tcase_add_test(tests, only_the_key_decides);
	tcase_add_test(tests, draws_are_frozen);
	tcase_add_loop_test(tests, checked, 0, BASE_ARRAY_LEN(lists));
	tcase_add_loop_test(tests, sums, 0, 3);
	tcase_add_loop_test(tests, vectors_agree, 0, 2);
	tcase_add_test(tests, classes);
}

int main(void)
{
	return suite_run("batch_mix", add);
}

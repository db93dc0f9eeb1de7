/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The augmentation families: what is refused, canonical texts, which changes are drawn how often and
 * with which magnitudes (fixed seeds, bounds of five standard errors), magnitudes of torch.linspace,
 * frozen draws. Their pixels are golden_augment.tsv's and parity.py's.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/spec.h"
#include "tests/suite.h"

#define SAMPLES 42000
#define MIXED 8000 /* whose weights take some time */
#define KINDS 15   /* AUGMENT_... of augment.c, identity first, invert last */
#define D "{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":8}"
#define C "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]},"

static const struct {
	const char *text, *parts[2];
} augment_bad[] = {
    {"[" D ",{\"op\":\"rand_augment\",\"num_ops\":9}]", {"num_ops is not from 0 to 8", "changes"}},
    {"[" D ",{\"op\":\"rand_augment\",\"magnitude\":-1}]", {"magnitude is not from 0", "bin"}},
    {"[" D ",{\"op\":\"rand_augment\",\"magnitude\":31}]",
     {"op 3 (rand_augment): there is no such bin", "below num_magnitude_bins"}},
    {"[" D ",{\"op\":\"rand_augment\",\"num_magnitude_bins\":1}]",
     {"is not from 2 to 1000", "bins"}},
    {"[" D ",{\"op\":\"rand_augment\",\"magnitude\":2.5}]",
     {"magnitude is no whole number", "bin"}},
    {"[" D ",{\"op\":\"rand_augment\",\"interpolation\":\"lanczos\"}]",
     {"interpolation is none of its words", "nearest, bilinear or bicubic"}},
    {"[" D ",{\"op\":\"rand_augment\",\"fill\":[1,2]}]", {"fill is neither one nor three", "null"}},
    {"[" D ",{\"op\":\"rand_augment\",\"fill\":256}]", {"fill is not from 0 to 255", "colour"}},
    {"[" D ",{\"op\":\"trivial_augment\",\"magnitude\":3}]",
     {"no parameter \"magnitude\"", "num_magnitude_bins"}},
    {"[" D ",{\"op\":\"trivial_augment\",\"num_magnitude_bins\":1001}]",
     {"from 2 to 1000", "bins"}},
    {"[" D ",{\"op\":\"auto_augment\",\"policy\":\"coco\"}]",
     {"policy is none of its words", "imagenet, cifar10 or svhn"}},
    {"[" D ",{\"op\":\"aug_mix\",\"severity\":11}]",
     {"severity is not from 1 to 10", "magnitudes"}},
    {"[" D ",{\"op\":\"aug_mix\",\"mixture_width\":8,\"chain_depth\":4}]",
     {"op 3 (aug_mix): so many changes", "fewer chains or less depth"}},
    {"[" D ",{\"op\":\"timm_aug_mix\",\"width\":6,\"depth\":4}]",
     {"op 3 (timm_aug_mix): so many changes", "fewer chains"}},
    {"[" D ",{\"op\":\"aug_mix\",\"alpha\":0}]", {"alpha is not from 0.001 to 1000", "Dirichlet"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"auto_augment\",\"fill\":[1,2,3]}]",
     {"op 4 (auto_augment): the picture has one channel", "one number for fill"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"rand_augment\",\"fill\":[1,1,3]}]",
     {"op 4 (rand_augment): the picture has one channel", "one number for fill"}},
};

START_TEST(bad)
{
	const char *text = augment_bad[_i].text;
	struct pipeline *pipeline;
	struct diag diag = {""};

	ck_assert_int_eq(pipeline_compile(text, strlen(text), &pipeline, &diag), PIPELINE_E_BAD);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_msg(strstr(diag.text, augment_bad[_i].parts[i]), "no \"%s\" in: %s",
			      augment_bad[_i].parts[i], diag.text);
}
END_TEST

static const struct {
	const char *text, *canonical;
	bool is_random;
} augment_good[] = {
    {"[" D ",{\"op\":\"rand_augment\"}]",
     C "{\"fill\":null,\"interpolation\":\"nearest\",\"magnitude\":9,\"num_magnitude_bins\":31,"
       "\"num_ops\":2,\"op\":\"rand_augment\"}]}",
     true},
    {"[" D ",{\"op\":\"rand_augment\",\"num_ops\":0,\"fill\":7}]",
     C "{\"fill\":[7,7,7],\"interpolation\":\"nearest\",\"magnitude\":9,\"num_magnitude_bins\":31,"
       "\"num_ops\":0,\"op\":\"rand_augment\"}]}",
     false},
    {"[" D ",{\"op\":\"trivial_augment\",\"interpolation\":\"bilinear\"}]",
     C "{\"fill\":null,\"interpolation\":\"bilinear\",\"num_magnitude_bins\":31,"
       "\"op\":\"trivial_augment\"}]}",
     true},
    {"[" D ",{\"op\":\"auto_augment\"}]",
     C "{\"fill\":null,\"interpolation\":\"nearest\",\"op\":\"auto_augment\",\"policy\":"
       "\"imagenet\"}]}",
     true},
    {"[" D ",{\"op\":\"aug_mix\"}]",
     C "{\"all_ops\":true,\"alpha\":1,\"chain_depth\":-1,\"fill\":null,\"interpolation\":"
       "\"bilinear\",\"mixture_width\":3,\"op\":\"aug_mix\",\"severity\":3}]}",
     true},
    {"[" D ",{\"op\":\"timm_aug_mix\"}]",
     C "{\"alpha\":1,\"depth\":-1,\"fill\":[128,128,128],\"increasing\":true,\"interpolation\":"
       "\"random\",\"magnitude\":3,\"magnitude_max\":10,\"magnitude_std\":0,\"op\":"
       "\"timm_aug_mix\",\"translate\":0.3,\"uniform\":true,\"width\":3}]}",
     true},
};

START_TEST(good)
{
	struct pipeline *pipeline;
	struct diag diag = {""};
	const char *text = augment_good[_i].text;
	int r = pipeline_compile(text, strlen(text), &pipeline, &diag);

	ck_assert_msg(r == 0, "%s", diag.text);
	ck_assert_str_eq(pipeline_canonical(pipeline), augment_good[_i].canonical);
	ck_assert(pipeline_is_random(pipeline) == augment_good[_i].is_random);
	pipeline_free(pipeline);
}
END_TEST

/* ---- draws ---- */

struct augment_count { /* by kind */
	unsigned met[KINDS], negative[KINDS];
};

static void augment_parse(const char *op, struct op_list *ret)
{
	struct diag diag = {""};
	char text[512];

	snprintf(text, sizeof(text), "[{\"op\":\"decode\"},%s]", op);
	ck_assert_msg(spec_parse(text, strlen(text), ret, &diag) == 0, "%s", diag.text);
}

static void augment_drawn(const struct op_list *ops, uint64_t sample, struct op_drawn *ret)
{
	struct pipeline_key key = {3, 4, sample};
	struct draw draw;

	draw_init(&draw, &key);
	op_draw(&ops->op[1], 1, &draw, 331, 662, ret);
}

static bool augment_has_sign(unsigned kind)
{
	return kind >= 1 && kind <= 9;
}

static void augment_count_one(struct augment_count *count, double kind, double magnitude)
{
	unsigned k = (unsigned)kind;

	if (k >= KINDS)
		ck_abort_msg("%g is no change", kind);
	count->met[k]++;
	count->negative[k] += signbit(magnitude) != 0;
}

static void augment_near(double count, double wanted, double p)
{
	ck_assert_msg(fabs(count - wanted) <= 5 * sqrt(wanted * (1 - p)), "%g for %g", count,
		      wanted);
}

/* Each of fourteen as often as any other, each sign half of the time where there is one. */
static void augment_check_even(const struct augment_count *count, double all)
{
	for (unsigned k = 0; k < 14; k++) {
		augment_near(count->met[k], all / 14, 1 / 14.0);
		if (augment_has_sign(k))
			augment_near(count->negative[k], count->met[k] / 2.0, 0.5);
		else
			ck_assert_uint_eq(count->negative[k], 0);
	}
	ck_assert_uint_eq(count->met[14], 0);
}

/* torch 2.15.0's values, printed as hexadecimal floats: magnitude 9 of 31 bins for a width of 662
 * and a height of 331. */
static const double augment_at_9[KINDS] = {
    0,
    0x1.70a3d80000000p-4,
    0x1.70a3d80000000p-4,
    0x1.6800000000000p+6,
    0x1.6800000000000p+5,
    0x1.2000000000000p+3,
    0x1.147ae00000000p-2,
    0x1.147ae00000000p-2,
    0x1.147ae00000000p-2,
    0x1.147ae00000000p-2,
    7,
    0x1.6666660000000p-1,
    0,
    0,
    0,
};

START_TEST(rand_draws)
{
	static struct op_list ops;
	struct augment_count first = {{0}, {0}}, second = {{0}, {0}};
	unsigned same = 0, wrong = 0;
	struct op_drawn drawn;

	augment_parse("{\"op\":\"rand_augment\"}", &ops);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		augment_drawn(&ops, i, &drawn);
		augment_count_one(&first, drawn.number[0], drawn.number[1]);
		augment_count_one(&second, drawn.number[2], drawn.number[3]);
		same += drawn.number[0] == drawn.number[2];
		for (unsigned k = 0; k < 4; k += 2)
			wrong +=
			    fabs(drawn.number[k + 1]) != augment_at_9[(unsigned)drawn.number[k]];
		wrong += drawn.number[4] != 0;
	}
	ck_assert_uint_eq(wrong, 0);
	augment_check_even(&first, SAMPLES);
	augment_check_even(&second, SAMPLES);
	augment_near(same, SAMPLES / 14.0, 1 / 14.0);
}
END_TEST

/* All bins alike often; of one kind with a sign, and of solarize. */
START_TEST(trivial_draws)
{
	static struct op_list ops;
	struct augment_count count = {{0}, {0}};
	unsigned rotated[7] = {0}, solarized[7] = {0};
	struct op_drawn drawn;

	augment_parse("{\"op\":\"trivial_augment\",\"num_magnitude_bins\":7}", &ops);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		double magnitude;

		augment_drawn(&ops, i, &drawn);
		augment_count_one(&count, drawn.number[0], drawn.number[1]);
		magnitude = fabs(drawn.number[1]);
		if (drawn.number[0] == 5) /* rotate: 0, 22.5 ... 135 */
			rotated[(unsigned)lround(magnitude / 22.5)]++;
		if (drawn.number[0] == 11) /* solarize: 1, 5/6 ... 0 */
			solarized[(unsigned)lround((1 - magnitude) * 6)]++;
	}
	augment_check_even(&count, SAMPLES);
	for (unsigned k = 0; k < 7; k++) {
		augment_near(rotated[k], count.met[5] / 7.0, 1 / 7.0);
		augment_near(solarized[k], count.met[11] / 7.0, 1 / 7.0);
	}
}
END_TEST

/* How often a change is made, first and second, from the pairs of the policy. */
static const struct {
	const char *name;
	double rate[2][KINDS]; /* sum of probabilities over the 25 pairs */
} augment_policies[] = {
    {"imagenet",
     {{0, 0.6, 0, 0, 0, 2.2, 0, 2.4, 0, 0.4, 1.8, 1.8, 0, 3.4, 1.2},
      {0, 0, 0, 0, 0, 1.4, 0, 1.4, 2, 0, 1, 1.8, 1.2, 7.8, 0.6}}},
    {"cifar10",
     {{0, 0, 0.7, 0, 2, 0.7, 1, 2, 0.6, 1.1, 0, 0.9, 2.2, 2.1, 0.1},
      {0, 0, 0, 0.8, 1.4, 0, 1.3, 0.9, 0.2, 1.7, 0.3, 1, 2.8, 2.6, 0.1}}},
    {"svhn",
     {{0, 4.2, 6.1, 0, 0, 0, 0, 0, 0.3, 0, 0, 0.7, 0, 2.7, 4.1},
      {0, 0, 0, 0.9, 2, 3.4, 0, 0, 0, 0, 0, 1.5, 2.3, 1.2, 3.5}}},
};

START_TEST(auto_draws)
{
	static struct op_list ops;
	struct augment_count count[2] = {{{0}, {0}}, {{0}, {0}}};
	struct op_drawn drawn;
	char op[96];

	snprintf(op, sizeof(op), "{\"op\":\"auto_augment\",\"policy\":\"%s\"}",
		 augment_policies[_i].name);
	augment_parse(op, &ops);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		augment_drawn(&ops, i, &drawn);
		for (unsigned k = 0; k < 2; k++)
			augment_count_one(&count[k], drawn.number[2 * k], drawn.number[2 * k + 1]);
	}
	for (unsigned k = 0; k < 2 * KINDS; k++) {
		const struct augment_count *one = &count[k / KINDS];
		double p = augment_policies[_i].rate[k / KINDS][k % KINDS] / 25;

		if (k % KINDS == 0)
			continue; /* identity: what the others leave */
		augment_near(one->met[k % KINDS], p * SAMPLES, p);
		if (augment_has_sign(k % KINDS) && p > 0)
			augment_near(one->negative[k % KINDS], one->met[k % KINDS] / 2.0, 0.5);
	}
}
END_TEST

/* Weights are shares of Dirichlet's distribution: of a Beta's mean and deviation each. The depths of chains and the changes in them are
 * alike often. */
START_TEST(mixed_draws)
{
	static const double alphas[] = {1, 0.2, 4};
	const double alpha = alphas[_i];
	static struct op_list ops;
	double sum[2] = {0, 0}, squares[2] = {0, 0};
	unsigned depth[4] = {0}, met[KINDS] = {0}, all = 0, wrong = 0;
	struct op_drawn drawn;
	char op[96];

	snprintf(op, sizeof(op), "{\"op\":\"aug_mix\",\"severity\":10,\"alpha\":%g}", alpha);
	augment_parse(op, &ops);
	for (uint64_t i = 0; i < MIXED; i++) {
		const double *number = drawn.number;
		unsigned n = 0;

		augment_drawn(&ops, i, &drawn);
		sum[0] += number[0];
		squares[0] += number[0] * number[0];
		if (number[0] < 1) { /* the first chain's part of what is left */
			const double share = number[1] / (1 - number[0]);

			sum[1] += share;
			squares[1] += share * share;
		}
		wrong += fabs(number[0] + number[1] + number[2] + number[3] - 1) > 1e-6;
		for (unsigned k = 4; k < 10 && number[k] != 0; k += 2) {
			met[(unsigned)number[k]]++;
			n++;
		}
		depth[n]++;
		all += n;
	}
	ck_assert_uint_eq(wrong, 0);
	for (unsigned k = 0; k < 2; k++) {
		const double rest = (k + 1) * alpha, total = alpha + rest, mean = alpha / total;
		const double variance = mean * (1 - mean) / (total + 1);

		ck_assert_double_le(fabs(sum[k] / MIXED - mean), 5 * sqrt(variance / MIXED));
		ck_assert_double_le(fabs(squares[k] / MIXED - mean * mean - variance), 0.01);
	}
	for (unsigned n = 1; n <= 3; n++)
		augment_near(depth[n], MIXED / 3.0, 1 / 3.0);
	for (unsigned kind = 1; kind <= 13; kind++)
		augment_near(met[kind], all / 13.0, 1 / 13.0);
	ck_assert_uint_eq(depth[0] + met[0] + met[14], 0);
}
END_TEST

/* Recorded instances must come out the same for ever. */
static const struct {
	const char *op;
	double number[6];
} augment_frozen[] = {
    {"{\"op\":\"rand_augment\"}", {11, 0.69999998807907104, 1, 0.090000003576278687, 0, 0}},
    {"{\"op\":\"rand_augment\",\"num_ops\":3,\"magnitude\":17,\"num_magnitude_bins\":20}",
     {11, 0.10526315867900848, 1, 0.26842105388641357, 9, 0.80526316165924072}},
    {"{\"op\":\"trivial_augment\"}", {11, 0.89999997615814209, 0, 0, 0, 0}},
    {"{\"op\":\"auto_augment\",\"policy\":\"cifar10\"}", {0, 0, 12, 0, 0, 0}},
    {"{\"op\":\"aug_mix\"}",
     {0.73395192623138428, 0.15825693309307098, 0.046821504831314087, 0.060969632118940353, 10, 3}},
    {"{\"op\":\"timm_aug_mix\",\"width\":1}",
     {0.36199629306793213, 1, 14, 0.028988177555910238, 1, 0}},
};

START_TEST(frozen)
{
	static struct op_list ops;
	struct op_drawn drawn;
	char text[256];
	int at = 0;

	augment_parse(augment_frozen[_i].op, &ops);
	augment_drawn(&ops, 77, &drawn);
	for (unsigned i = 0; i < 6; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%.17g, ", drawn.number[i]);
	for (unsigned i = 0; i < 6; i++)
		ck_assert_msg(drawn.number[i] == augment_frozen[_i].number[i], "it draws %s", text);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, bad, 0, BASE_ARRAY_LEN(augment_bad));
	tcase_add_loop_test(tcase, good, 0, BASE_ARRAY_LEN(augment_good));
	tcase_add_test(tcase, rand_draws);
	tcase_add_test(tcase, trivial_draws);
	tcase_add_loop_test(tcase, auto_draws, 0, BASE_ARRAY_LEN(augment_policies));
	tcase_add_loop_test(tcase, mixed_draws, 0, 3);
	tcase_add_loop_test(tcase, frozen, 0, BASE_ARRAY_LEN(augment_frozen));
}

int main(void)
{
	return suite_run("augment", add);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is made of samples of tokens: by the rules of each objective, which are undone here, as often as the numbers say (of fixed
 * keys), and of nothing but the key and the sample.
 */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/objective/objective.h"
#include "tests/suite.h"

#define MOST 1024
#define MASK 999
#define VOCABULARY 1000
#define DRAWS 4000

static int64_t sample[4 * MOST], made[4 * MOST];

static struct objective_key key_of(uint64_t number)
{
	return (struct objective_key){7, number / 100, number % 3, (int64_t)(number % 100)};
}

/* Tokens first, first + 1, ... */
static void count_from(int64_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sample[i] = first + i;
}

/* Parts of so many tokens, the rest is padding. */
static void pack(const uint32_t *part, unsigned n, uint32_t length)
{
	uint32_t at = 0;

	memset(sample, 0, sizeof(sample));
	for (unsigned i = 0; i < n; i++) {
		for (uint32_t k = 0; k < part[i]; k++, at++) {
			sample[at] = 100 + at;
			sample[length + at] =
			    k + 1 < part[i] ? 101 + (int64_t)at : OBJECTIVE_IGNORED;
			sample[2 * length + at] = k;
			sample[3 * length + at] = 5 + i;
		}
	}
	for (; at < length; at++) {
		sample[length + at] = OBJECTIVE_IGNORED;
		sample[3 * length + at] = -1;
	}
}

static void make(const struct objective *objective, const struct objective_from *from,
		 uint64_t number)
{
	const struct objective_key key = key_of(number);

	memset(made, 0x55, sizeof(made));
	objective_make(objective, from, &key, sample, made);
}

/* So many of n draws with probability p: within five deviations of it. */
static void check_share(uint64_t found, uint64_t n, double p, const char *what)
{
	double far = fabs((double)found - n * p), deviation = sqrt(n * p * (1 - p));

	ck_assert_msg(far <= 5 * deviation + 1e-9, "%s: %llu of %llu, not %g", what,
		      (unsigned long long)found, (unsigned long long)n, p);
}

/* ---- masked ---- */

static struct objective masked_of(double probability, double mask, double random)
{
	return (struct objective){
	    .kind = OBJECTIVE_MASKED,
	    .masked = {probability, mask, random, MASK, VOCABULARY, NULL, 0},
	};
}

static const double masks[][3] = {{.15, .8, .1}, {.3, 1, 0}, {.5, 0, 1}, {.4, .25, .5}, {1, 0, 0}};

START_TEST(masks_by_the_rules)
{
	const struct objective_from from = {500, false};
	const double *p = masks[_i];
	struct objective objective = masked_of(p[0], p[1], p[2]);
	struct objective_shape shape;
	uint64_t chosen = 0, mask = 0, same = 0, other = 0, tokens = 0;

	ck_assert(objective_shape(&objective, &from, &shape));
	ck_assert(shape.rows == 2 && shape.columns == 500);
	count_from(0, 501); /* none of which is the mask */
	for (unsigned round = 0; round < 200; round++) {
		make(&objective, &from, round);
		for (uint32_t i = 0; i < 500; i++, tokens++) {
			if (made[500 + i] == OBJECTIVE_IGNORED) {
				ck_assert(made[i] == sample[i]);
				continue;
			}
			ck_assert(made[500 + i] == sample[i]);
			ck_assert(made[i] >= 0 && made[i] < VOCABULARY);
			chosen++;
			mask += made[i] == MASK;
			same += made[i] == sample[i];
			other += made[i] != MASK && made[i] != sample[i];
		}
	}
	check_share(chosen, tokens, p[0], "chosen");
	check_share(mask, chosen, p[1] + p[2] / VOCABULARY, "mask");
	check_share(other, chosen, p[2] * (VOCABULARY - 2) / VOCABULARY, "random");
	check_share(same, chosen, 1 - p[1] - p[2] + p[2] / VOCABULARY, "same");
}
END_TEST

START_TEST(masks_no_special_token)
{
	const struct objective_from from = {300, false};
	struct objective objective = masked_of(1, 1, 0);
	uint8_t what[200] = {0};

	for (unsigned i = 0; i < 200; i += 3)
		what[i] = OBJECTIVE_SPECIAL | (i % 2 ? OBJECTIVE_CONTINUES : 0);
	objective.masked.what = what;
	objective.masked.n_what = 200;
	count_from(0, 301);
	sample[7] = -1; /* what no table has, any number of a hostile file */
	sample[8] = INT64_MIN;
	make(&objective, &from, 1);
	for (uint32_t i = 0; i < 300; i++) {
		const bool is_special = i < 200 && i % 3 == 0;

		ck_assert(made[i] == (is_special ? sample[i] : MASK));
		ck_assert(made[300 + i] == (is_special ? OBJECTIVE_IGNORED : sample[i]));
	}
}
END_TEST

/* Token 3 n + 0 begins a word, the others continue it; every tenth word is a special token alone. */
START_TEST(masks_whole_words)
{
	const struct objective_from from = {600, false};
	struct objective objective = masked_of(.25, .5, 0);
	uint8_t what[700] = {0};
	uint64_t words = 0, chosen = 0;

	for (unsigned i = 0; i < 700; i++)
		what[i] = i % 30 == 0 ? OBJECTIVE_SPECIAL : i % 3 ? OBJECTIVE_CONTINUES : 0;
	objective.masked.what = what;
	objective.masked.n_what = 700;
	count_from(0, 601);
	for (unsigned round = 0; round < 200; round++) {
		make(&objective, &from, round);
		for (uint32_t i = 0; i < 600; i += 3) {
			const bool is_chosen = made[600 + i + 1] != OBJECTIVE_IGNORED;

			ck_assert(is_chosen == (made[600 + i + 2] != OBJECTIVE_IGNORED));
			if (i % 30)
				ck_assert(is_chosen == (made[600 + i] != OBJECTIVE_IGNORED));
			else
				ck_assert(made[600 + i] == OBJECTIVE_IGNORED);
			words++;
			chosen += is_chosen;
		}
	}
	check_share(chosen, words, .25, "words");
}
END_TEST

/* Padding stays, places and documents stay, and no word goes from one document to the next. */
START_TEST(masks_packed)
{
	static const uint32_t part[] = {5, 1, 40, 30};
	const struct objective_from from = {100, true};
	struct objective objective = masked_of(.5, 1, 0);
	uint8_t what[300];
	struct objective_shape shape;
	unsigned differs = 0;

	ck_assert(objective_shape(&objective, &from, &shape));
	ck_assert(shape.rows == 4 && shape.columns == 100);
	memset(what, OBJECTIVE_CONTINUES, sizeof(what)); /* each part is a word */
	objective.masked.what = what;
	objective.masked.n_what = sizeof(what);
	pack(part, 4, 100);
	for (unsigned round = 0; round < 60; round++) {
		uint32_t at = 0;

		make(&objective, &from, round);
		ck_assert(memcmp(made + 200, sample + 200, 200 * sizeof(*made)) == 0);
		for (unsigned i = 0; i < 4; at += part[i++]) {
			for (uint32_t k = at; k < at + part[i]; k++) {
				ck_assert(made[k] == (made[100 + at] < 0 ? sample[k] : MASK));
				ck_assert(made[100 + k] ==
					  (made[100 + at] < 0 ? OBJECTIVE_IGNORED : sample[k]));
			}
			differs += i && (made[100 + at] < 0) != (made[100 + at - 1] < 0);
		}
		for (; at < 100; at++)
			ck_assert(made[at] == 0 && made[100 + at] == OBJECTIVE_IGNORED);
	}
	check_share(differs, 180, .5, "neighbours that differ");
}
END_TEST

/* ---- spans ---- */

static int64_t sentinels[MOST];

static struct objective spans_of(double density, double mean, int64_t end)
{
	for (unsigned i = 0; i < MOST; i++)
		sentinels[i] = 50000 - (int64_t)i;
	return (struct objective){.kind = OBJECTIVE_SPANS,
				  .spans = {density, mean, sentinels, MOST, end}};
}

/* Puts the window together again; span[]: how long each was, and part[]. */
static void undo(const struct objective_spans *spans, uint32_t length, uint32_t *span,
		 uint32_t *part)
{
	const struct objective_noise noise = objective_noise(spans, length);
	const bool has_end = spans->end >= 0;
	const uint32_t inputs = length - noise.tokens + noise.spans + has_end;
	const int64_t *input = made, *target = made + inputs;
	uint32_t at = 0;

	for (uint32_t i = 0; i < noise.spans; i++) {
		for (part[i] = 0; *input != sentinels[i]; part[i]++)
			ck_assert(*input++ == sample[at++]);
		ck_assert(*input++ == *target++);
		for (span[i] = 0;
		     target < made + inputs + noise.tokens + noise.spans && *target < 40000;
		     span[i]++)
			ck_assert(*target++ == sample[at++]);
		ck_assert(part[i] >= 1 && span[i] >= 1);
	}
	ck_assert_uint_eq(at, length);
	if (has_end)
		ck_assert(*input++ == spans->end && *target++ == spans->end);
	ck_assert(input == made + inputs);
	ck_assert(target == made + inputs + noise.tokens + noise.spans + has_end);
	ck_assert(*target == 0x5555555555555555);
}

static const struct {
	double density, mean;
	int64_t end;
} corruptions[] = {{.15, 3, 45000}, {.15, 3, -1}, {.5, 3, 45000}, {.15, 8, 45000},
		   {.5, 32, 45000}, {.9, 20, -1}, {.01, 1, 45000}};

START_TEST(spans_are_cut_out)
{
	static uint32_t span[MOST], part[MOST];
	unsigned good = 0;

	for (uint32_t length = 1; length <= 700; length += 1 + length / 20) {
		struct objective objective =
		    spans_of(corruptions[_i].density, corruptions[_i].mean, corruptions[_i].end);
		const struct objective_from from = {length, false};
		struct objective_shape shape;

		if (!objective_shape(&objective, &from, &shape))
			continue;
		good++;
		count_from(1, length + 1);
		make(&objective, &from, length);
		undo(&objective.spans, length, span, part);
		ck_assert(made[shape.rows - 1] != 0x5555555555555555);
		ck_assert(made[shape.rows] == 0x5555555555555555);
	}
	ck_assert_uint_gt(good, 30);
}
END_TEST

/* 9 tokens out in 4 spans, and 11 that stay in 4 parts: each of the 56 and 120 ways as often as the others. */
START_TEST(spans_are_drawn_evenly)
{
	static unsigned out[10000], stay[10000];
	struct objective objective = spans_of(.45, 2.25, -1);
	const struct objective_from from = {20, false};
	unsigned ways = 0;
	double far = 0;

	ck_assert(objective_noise(&objective.spans, 20).tokens == 9);
	ck_assert(objective_noise(&objective.spans, 20).spans == 4);
	count_from(1, 21);
	for (unsigned i = 0; i < DRAWS; i++) {
		uint32_t span[4], part[4];

		make(&objective, &from, i);
		undo(&objective.spans, 20, span, part);
		out[span[0] * 100 + span[1] * 10 + span[2]]++;
		stay[part[0] * 100 + part[1] * 10 + part[2]]++;
	}
	for (unsigned i = 0; i < 10000; i++) {
		ways += out[i] > 0;
		far += out[i] ? pow(out[i] - DRAWS / 56.0, 2) / (DRAWS / 56.0) : 0;
	}
	ck_assert_uint_eq(ways, 56);
	ck_assert_msg(far < 55 + 5 * sqrt(110), "chi square %g", far);
	ways = 0;
	far = 0;
	for (unsigned i = 0; i < 10000; i++) {
		ways += stay[i] > 0;
		far += stay[i] ? pow(stay[i] - DRAWS / 120.0, 2) / (DRAWS / 120.0) : 0;
	}
	ck_assert_uint_eq(ways, 120);
	ck_assert_msg(far < 119 + 5 * sqrt(238), "chi square %g", far);
}
END_TEST

START_TEST(spans_are_refused)
{
	struct objective objective = spans_of(.15, 3, 1);
	struct objective_shape shape;

	ck_assert(!objective_shape(&objective, &(struct objective_from){1, false}, &shape));
	ck_assert(!objective_shape(&objective, &(struct objective_from){0, false}, &shape));
	ck_assert(!objective_shape(&objective, &(struct objective_from){100, true}, &shape));
	ck_assert(objective_shape(&objective, &(struct objective_from){100, false}, &shape));
	objective.spans.n_sentinels = 4; /* of five */
	ck_assert(!objective_shape(&objective, &(struct objective_from){100, false}, &shape));
	objective = spans_of(.9, 1, 1); /* more spans than tokens stay */
	ck_assert(!objective_shape(&objective, &(struct objective_from){100, false}, &shape));
}
END_TEST

/* ---- middle ---- */

enum { PREFIX = 60001, MIDDLE, SUFFIX, END };

static struct objective middle_of(double rate, double swapped, int64_t end)
{
	return (struct objective){.kind = OBJECTIVE_MIDDLE,
				  .middle = {rate, swapped, PREFIX, MIDDLE, SUFFIX, end}};
}

static uint32_t find(const int64_t *tokens, uint32_t n, int64_t token)
{
	uint32_t at = 0;

	while (at < n && tokens[at] != token)
		at++;
	return at;
}

/* The document in its own order: what it was of whole; its length. 0: it is not cut. is_swapped: SPM. */
static uint32_t join(const int64_t *tokens, uint32_t n, int64_t *ret, bool *ret_is_swapped)
{
	const uint32_t suffix = find(tokens, n, SUFFIX), middle = find(tokens, n, MIDDLE);
	uint32_t at = 0;

	if (n == 0 || tokens[0] != PREFIX)
		return 0;
	ck_assert(suffix < middle && middle < n);
	*ret_is_swapped = suffix == 1;
	for (uint32_t i = 1; i < suffix; i++)
		ret[at++] = tokens[i];
	for (uint32_t i = middle + 1; i < n; i++)
		ret[at++] = tokens[i];
	for (uint32_t i = suffix + 1; i < middle; i++)
		ret[at++] = tokens[i];
	return at;
}

/* Documents of a window of which the last are cut off: each, joined, is what it was. */
START_TEST(windows_have_middles)
{
	const struct objective objective = middle_of(.5, .25, END);
	const struct objective_from from = {400, false};
	struct objective_shape shape;
	uint64_t documents = 0, cut = 0, swapped = 0, empty = 0;

	ck_assert(objective_shape(&objective, &from, &shape));
	ck_assert(shape.rows == 401 && shape.columns == 0);
	for (unsigned round = 0; round < 500; round++) {
		uint32_t at = 0, was = 0;

		count_from(1, 401);
		for (uint32_t i = 20 + round % 20; i < 401; i += 1 + i % 37)
			sample[i] = END;
		make(&objective, &from, round);
		ck_assert(made[401] == 0x5555555555555555);
		while (at < 401) {
			const uint32_t n = find(made + at, 401 - at, END),
				       m = find(sample + was, 401 - was, END);
			int64_t whole[MOST];
			bool is_swapped = false;
			uint32_t joined;

			if (at + n == 401)
				break; /* it may be cut off */
			joined = join(made + at, n, whole, &is_swapped);
			documents += m > 0;
			empty += m == 0;
			cut += joined > 0;
			swapped += is_swapped;
			if (joined) {
				ck_assert_uint_eq(n, m + 3);
				ck_assert_uint_eq(joined, m);
			} else {
				ck_assert_uint_eq(n, m);
				memcpy(whole, made + at, n * sizeof(*made));
			}
			ck_assert(memcmp(whole, sample + was, m * sizeof(*made)) == 0);
			at += n + 1;
			was += m + 1;
		}
	}
	ck_assert_uint_gt(empty, 0);
	check_share(cut, documents, .5, "cut");
	ck_assert_uint_gt(swapped, cut / 5); /* those without a prefix look so, too */
	ck_assert_uint_lt(swapped, cut / 2);
}
END_TEST

/* Parts keep their places; the suffix loses three tokens, what is before it none. */
START_TEST(packed_parts_have_middles)
{
	static const uint32_t part[] = {40, 3, 60, 20, 1};
	const struct objective objective = middle_of(1, .5, END);
	const struct objective_from from = {150, true};
	struct objective_shape shape;
	uint64_t cut = 0;

	ck_assert(objective_shape(&objective, &from, &shape));
	ck_assert(shape.rows == 4 && shape.columns == 150);
	for (unsigned round = 0; round < 300; round++) {
		uint32_t at = 0;

		pack(part, 5, 150);
		sample[39] = END;
		make(&objective, &from, round);
		ck_assert(memcmp(made + 300, sample + 300, 300 * sizeof(*made)) == 0);
		for (unsigned i = 0; i < 5; at += part[i++]) {
			const uint32_t n = part[i] - (i == 0);
			int64_t whole[MOST];
			bool is_swapped;
			uint32_t joined = join(made + at, n, whole, &is_swapped);

			if (i == 0)
				ck_assert(made[at + n] == END);
			if (!joined) {
				ck_assert(memcmp(made + at, sample + at, n * sizeof(*made)) == 0);
				ck_assert(memcmp(made + 150 + at, sample + 150 + at,
						 part[i] * sizeof(*made)) == 0);
				continue;
			}
			cut++;
			ck_assert_uint_eq(joined, n - 3);
			ck_assert(memcmp(whole, sample + at, joined * sizeof(*made)) == 0);
			for (uint32_t k = at; k + 1 < at + part[i]; k++)
				ck_assert(made[150 + k] == made[k + 1]);
			ck_assert(made[150 + at + part[i] - 1] == OBJECTIVE_IGNORED);
		}
		for (; at < 150; at++)
			ck_assert(made[at] == 0 && made[150 + at] == OBJECTIVE_IGNORED);
	}
	ck_assert_uint_gt(cut, 700);
}
END_TEST

/* ---- all ---- */

/* Each part of the key decides, and nothing else does. */
START_TEST(draws_are_of_the_key)
{
	static const struct objective_key keys[] = {
	    {1, 2, 3, 4}, {9, 2, 3, 4}, {1, 9, 3, 4}, {1, 2, 9, 4}, {1, 2, 3, 9}};
	const struct objective objectives[] = {masked_of(.15, .8, .1), spans_of(.15, 3, 1),
					       middle_of(1, .5, END)};
	const struct objective_from from = {300, false};
	static int64_t first[5][4 * MOST], again[4 * MOST];

	count_from(1, 301);
	for (unsigned kind = 0; kind < 3; kind++) {
		for (unsigned i = 0; i < 5; i++) {
			memset(first[i], 0, sizeof(first[i]));
			memset(again, 0, sizeof(again));
			objective_make(&objectives[kind], &from, &keys[i], sample, first[i]);
			objective_make(&objectives[kind], &from, &keys[i], sample, again);
			ck_assert(memcmp(first[i], again, sizeof(again)) == 0);
			for (unsigned k = 0; k < i; k++)
				ck_assert(memcmp(first[i], first[k], sizeof(again)) != 0);
		}
	}
}
END_TEST

/* Frozen. */
START_TEST(known_answers)
{
	static const uint64_t known[] = {0xba37499598c399ce, 0xb72af37eebba82a0, 0xdb331fa02baf1aa4,
					 0x445d08584a00c805};
	const struct objective objectives[] = {masked_of(.15, .8, .1), spans_of(.15, 3, 1),
					       middle_of(.7, .5, END), middle_of(.7, .5, END)};

	for (unsigned kind = 0; kind < 4; kind++) {
		static const uint32_t part[] = {90, 60, 30};
		const struct objective_from from = {200, kind == 3};
		uint64_t sum = 0;

		count_from(1, 201);
		if (kind == 3)
			pack(part, 3, 200);
		memset(made, 0, sizeof(made));
		objective_make(&objectives[kind], &from, &(struct objective_key){1, 2, 3, 4},
			       sample, made);
		for (unsigned k = 0; k < 4 * MOST; k++)
			sum = sum * UINT64_C(6364136223846793005) + (uint64_t)made[k];
		ck_assert_msg(sum == known[kind], "%u: %#llx", kind, (unsigned long long)sum);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, masks_by_the_rules, 0, BASE_ARRAY_LEN(masks));
	tcase_add_test(tcase, masks_no_special_token);
	tcase_add_test(tcase, masks_whole_words);
	tcase_add_test(tcase, masks_packed);
	tcase_add_loop_test(tcase, spans_are_cut_out, 0, BASE_ARRAY_LEN(corruptions));
	tcase_add_test(tcase, spans_are_drawn_evenly);
	tcase_add_test(tcase, spans_are_refused);
	tcase_add_test(tcase, windows_have_middles);
	tcase_add_test(tcase, packed_parts_have_middles);
	tcase_add_test(tcase, draws_are_of_the_key);
	tcase_add_test(tcase, known_answers);
}

int main(void)
{
	return suite_run("objective", add);
}

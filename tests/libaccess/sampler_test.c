/* SPDX-License-Identifier: Apache-2.0 */

/* What a sampler may say: each wrong member is named; what is right is copied, and has a name of its
 * own. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libaccess/sampler.h"
#include "tests/suite.h"

static const int64_t ids[] = {4, 2, 2}, negative[] = {0, -1};
static const double weights[] = {1, 0, 2.5}, nan_weight[] = {1, NAN}, minus[] = {-1};
static const double endless[] = {INFINITY};
static const int64_t blocks[] = {0, 5, 9}, twice[] = {0, 5, 5};
static const char *const classes[] = {"cat", "dog"}, *const nameless[] = {"cat", ""};

#define SAMPLER(...)                                           \
	{                                                      \
		.size = sizeof(struct oa_sampler), __VA_ARGS__ \
	}

START_TEST(each_wrong_member_is_named)
{
	static const struct {
		struct oa_sampler sampler;
		enum oa_order order;
		const char *says;
	} wrong[] = {
	    {{.size = 8}, 0, "sampler.size"},
	    {SAMPLER(.ids = ids), 0, "sampler.n_ids"},
	    {SAMPLER(.n_ids = 3), 0, "sampler.ids"},
	    {SAMPLER(.ids = ids, .n_ids = UINT64_MAX), 0, "sampler.n_ids"},
	    {SAMPLER(.ids = negative, .n_ids = 2), 0, "ids[1] is -1"},
	    {SAMPLER(.n_classes = 1), 0, "sampler.classes"},
	    {SAMPLER(.classes = classes), 0, "sampler.classes"},
	    {SAMPLER(.classes = nameless, .n_classes = 2), 0, "classes[1]"},
	    {SAMPLER(.classes = classes, .n_classes = 1000000), 0, "sampler.n_classes"},
	    {SAMPLER(.from = .5, .to = .5), 0, "must be 0 to 1, and differ"},
	    {SAMPLER(.from = -.5, .to = .5), 0, "must be 0 to 1, and differ"},
	    {SAMPLER(.to = 1.5), 0, "must be 0 to 1, and differ"},
	    {SAMPLER(.to = NAN), 0, "must be 0 to 1, and differ"},
	    {SAMPLER(.flags = 2), 0, "sampler.flags"},
	    {SAMPLER(.flags = OA_REPLACEMENT), 0, "sampler.flags"},
	    {SAMPLER(.samples = 7), 0, "sampler.samples"},
	    {SAMPLER(.n_weights = 3), OA_ORDER_SEEDED, "sampler.weights"},
	    {SAMPLER(.weights = weights), OA_ORDER_SEEDED, "sampler.n_weights"},
	    {SAMPLER(.weights = weights, .n_weights = 3), 0, "OA_ORDER_SEEDED"},
	    {SAMPLER(.weights = weights, .n_weights = 3), OA_ORDER_SEQUENTIAL, "OA_ORDER_SEEDED"},
	    {SAMPLER(.weights = nan_weight, .n_weights = 2), OA_ORDER_SEEDED, "weights[1]"},
	    {SAMPLER(.weights = minus, .n_weights = 1), OA_ORDER_SEEDED, "weights[0] is -1"},
	    {SAMPLER(.weights = endless, .n_weights = 1), OA_ORDER_SEEDED, "weights[0]"},
	    {SAMPLER(.ids = ids, .n_ids = 3, .weights = weights, .n_weights = 2), OA_ORDER_SEEDED,
	     "3 ids and 2 weights"},
	    {SAMPLER(.n_blocks = 3), OA_ORDER_SEEDED, "sampler.blocks is NULL"},
	    {SAMPLER(.window = 3), OA_ORDER_SEEDED, "sampler.blocks is NULL"},
	    {SAMPLER(.blocks = blocks, .n_blocks = 3, .window = 2), 0, "OA_ORDER_SEEDED"},
	    {SAMPLER(.blocks = blocks, .n_blocks = 3), OA_ORDER_SEEDED, "sampler.window"},
	    {SAMPLER(.blocks = blocks, .window = 2), OA_ORDER_SEEDED, "sampler.n_blocks"},
	    {SAMPLER(.blocks = blocks + 1, .n_blocks = 2, .window = 2), OA_ORDER_SEEDED,
	     "begin with 0"},
	    {SAMPLER(.blocks = twice, .n_blocks = 3, .window = 2), OA_ORDER_SEEDED,
	     "blocks[2] is 5"},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(wrong); i++) {
		struct oa_options options = {.order = wrong[i].order, .sampler = &wrong[i].sampler};
		struct diag diag = {""};

		ck_assert_int_eq(sampler_check(&options, &diag), OA_E_INVALID);
		ck_assert_msg(strstr(diag.text, wrong[i].says) != NULL, "%zu: %s", i, diag.text);
	}
}
END_TEST

START_TEST(files_and_orders_go_together)
{
	static const struct oa_sampler sampler = SAMPLER(.ids = ids, .n_ids = 3);
	static const struct {
		struct oa_options options;
		const char *says;
	} wrong[] = {
	    {{.record = ""}, "options.record"},
	    {{.replay = "a"}, "options.replay"},
	    {{.order = OA_ORDER_REPLAY}, "options.replay"},
	    {{.order = OA_ORDER_REPLAY, .replay = ""}, "options.replay"},
	    {{.order = OA_ORDER_REPLAY, .replay = "a", .seed = 7}, "options.seed"},
	    {{.order = OA_ORDER_REPLAY, .replay = "a", .sampler = &sampler}, "options.sampler"},
	    {{.order = OA_ORDER_REPLAY, .replay = "a", .flags = OA_RESAMPLE}, "OA_RESAMPLE"},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(wrong); i++) {
		struct diag diag = {""};

		ck_assert_int_eq(sampler_check(&wrong[i].options, &diag), OA_E_INVALID);
		ck_assert_msg(strstr(diag.text, wrong[i].says) != NULL, "%zu: %s", i, diag.text);
	}
}
END_TEST

START_TEST(what_is_unknown_asks_for_an_upgrade)
{
	struct {
		struct oa_sampler sampler;
		uint64_t newer;
	} of_tomorrow = {.sampler = {.size = sizeof(of_tomorrow)}, .newer = 1};
	struct oa_options options = {.sampler = &of_tomorrow.sampler};
	struct diag diag = {""};

	ck_assert_int_eq(sampler_check(&options, &diag), OA_E_VERSION);
	ck_assert_ptr_nonnull(strstr(diag.text, "upgrade"));
}
END_TEST

/* Each of them, and nothing else, changes the name. */
START_TEST(each_member_is_part_of_the_name)
{
	static const struct oa_sampler samplers[] = {
	    SAMPLER(.ids = ids, .n_ids = 3),
	    SAMPLER(.ids = ids, .n_ids = 2),
	    SAMPLER(.ids = ids + 1, .n_ids = 2),
	    SAMPLER(.classes = classes, .n_classes = 1),
	    SAMPLER(.classes = classes, .n_classes = 2),
	    SAMPLER(.to = .5),
	    SAMPLER(.from = .5, .to = 1),
	    SAMPLER(.to = .5, .split_seed = 1),
	    SAMPLER(.weights = weights, .n_weights = 3),
	    SAMPLER(.weights = weights, .n_weights = 2),
	    SAMPLER(.weights = weights, .n_weights = 3, .samples = 7),
	    SAMPLER(.weights = weights, .n_weights = 3, .flags = OA_REPLACEMENT),
	    SAMPLER(.blocks = blocks, .n_blocks = 3, .window = 2),
	    SAMPLER(.blocks = blocks, .n_blocks = 3, .window = 3),
	    SAMPLER(.blocks = blocks, .n_blocks = 2, .window = 2),
	};
	struct sampler made[BASE_ARRAY_LEN(samplers)], again;

	for (size_t i = 0; i < BASE_ARRAY_LEN(samplers); i++) {
		ck_assert_int_eq(sampler_init(&made[i], &samplers[i]), 0);
		ck_assert_int_eq(sampler_init(&again, &samplers[i]), 0);
		ck_assert(sampler_is_used(&made[i]));
		ck_assert_mem_eq(made[i].hash, again.hash, TOKEN_SAMPLER);
		sampler_fini(&again);
		for (size_t k = 0; k < i; k++)
			ck_assert_mem_ne(made[i].hash, made[k].hash, TOKEN_SAMPLER);
	}
	ck_assert_str_eq(made[4].classes[1], "dog");
	ck_assert_int_eq(made[2].ids[1], 2);
	ck_assert(made[8].weights[2] == 2.5);
	for (size_t i = 0; i < BASE_ARRAY_LEN(samplers); i++)
		sampler_fini(&made[i]);
}
END_TEST

START_TEST(one_that_says_nothing_has_no_name)
{
	static const struct oa_sampler nothing = SAMPLER(.split_seed = 7);
	static const uint8_t none[TOKEN_SAMPLER];
	struct sampler sampler;

	ck_assert_int_eq(sampler_init(&sampler, NULL), 0);
	ck_assert(!sampler_is_used(&sampler));
	ck_assert_int_eq(sampler_init(&sampler, &nothing), 0);
	ck_assert(!sampler_is_used(&sampler));
	ck_assert_mem_eq(sampler.hash, none, TOKEN_SAMPLER);
	sampler_fini(&sampler);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, each_wrong_member_is_named);
	tcase_add_test(t, files_and_orders_go_together);
	tcase_add_test(t, what_is_unknown_asks_for_an_upgrade);
	tcase_add_test(t, each_member_is_part_of_the_name);
	tcase_add_test(t, one_that_says_nothing_has_no_name);
}

int main(void)
{
	return suite_run("sampler", add);
}

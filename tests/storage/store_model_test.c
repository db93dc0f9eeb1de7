/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store against a model of it: what was put and not dropped is there, with its bytes, and nothing
 * else, whatever is done in which order, over closings and openings. There is room for all of it.
 */

#include "tests/storage/hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "tests/suite.h"

#define LIMIT (32 << 20)
#define GROUPS 5
#define SAMPLES 40
#define STEPS 3000

static struct hold hold;
static struct philox_seq seq;
static struct model {
	struct store_group *group;  /* NULL: closed */
	bool is_pinned, is_dropped; /* while it was open */
	uint32_t size[SAMPLES];     /* 0: none */
} model[GROUPS];

static uint64_t below(uint64_t n)
{
	return philox_below(&seq, n);
}

static struct model *some_open(uint64_t *ret_number)
{
	*ret_number = below(GROUPS);
	if (!model[*ret_number].group) {
		model[*ret_number].group = hold_group(&hold, *ret_number, SAMPLES);
		model[*ret_number].is_dropped = false;
	}
	return &model[*ret_number];
}

static void step_put(void)
{
	const uint64_t sample = below(SAMPLES), size = 1 + below(below(4) ? 3000 : 60000);
	uint64_t number;
	struct model *m = some_open(&number);
	const bool is_taken = hold_put(m->group, number, sample, size);

	if (m->is_dropped || hold_table(m->group, sample) > 0)
		ck_assert(!is_taken ||
			  m->size[sample] > 0); /* the writer was faster than we looked */
	if (is_taken && m->size[sample] == 0)
		m->size[sample] = (uint32_t)size; /* else the first one waits still, and stays */
}

/* Is there to be found when all is written, and until then nothing. */
static void step_replace(void)
{
	const uint64_t sample = below(SAMPLES), size = 1 + below(below(4) ? 3000 : 60000);
	uint64_t number;
	struct model *m = some_open(&number);

	if (below(2)) /* else what it replaces may wait still */
		hold_settle(&hold);
	ck_assert(hold_replace(m->group, number, sample, size) != m->is_dropped);
	if (!m->is_dropped)
		m->size[sample] = (uint32_t)size;
}

static void step_get(void)
{
	const uint64_t sample = below(SAMPLES);
	uint64_t number;
	struct model *m = some_open(&number);
	const int r = hold_get(m->group, number, sample, 0);

	/* a value may wait still, or one that replaces it */
	ck_assert(r == STORE_E_NONE || (r == 0 && m->size[sample] > 0));
}

static void step_close(void)
{
	struct model *m = &model[below(GROUPS)];

	store_group_close(m->group);
	m->group = NULL;
}

static void close_all(void)
{
	for (unsigned i = 0; i < GROUPS; i++) {
		store_group_close(model[i].group);
		model[i].group = NULL;
	}
}

static bool is_empty(const struct model *m)
{
	for (unsigned i = 0; i < SAMPLES; i++) {
		if (m->size[i] > 0)
			return false;
	}
	return true;
}

static void step_drop(void)
{
	const uint64_t number = below(GROUPS);
	const struct hash_id id = hold_id(number);
	struct model *m = &model[number];
	int r;

	hold_settle(&hold);
	r = store_drop(hold.store, &id);
	if (m->is_pinned) {
		ck_assert_int_eq(r, -EBUSY);
		return;
	}
	ck_assert(r == 0 || (r == -ENOENT && is_empty(m)));
	memset(m->size, 0, sizeof(m->size));
	m->is_dropped = m->group != NULL;
}

static void step_pin(void)
{
	const uint64_t number = below(GROUPS);
	const struct hash_id id = hold_id(number);
	const bool pinned = below(3) == 0;
	const int r = store_pin(hold.store, &id, pinned);

	ck_assert(r == 0 || r == -ENOENT);
	if (r == 0)
		model[number].is_pinned = pinned;
	else
		ck_assert(!model[number].is_pinned);
}

static void count_listing(void *arg, const struct store_listing *listing)
{
	uint64_t *sum = arg, values = 0, bytes = 0;

	for (unsigned i = 0; i < GROUPS; i++) {
		const struct hash_id id = hold_id(i);

		if (memcmp(&id, &listing->id, sizeof(id)) != 0)
			continue;
		for (unsigned k = 0; k < SAMPLES; k++) {
			values += model[i].size[k] > 0;
			bytes += model[i].size[k];
		}
		ck_assert(listing->is_pinned == model[i].is_pinned);
		ck_assert(listing->is_used == (model[i].group != NULL));
	}
	ck_assert_uint_eq(listing->values, values);
	ck_assert_uint_eq(listing->bytes, bytes);
	*sum += values;
}

/* Everything, after all was written. */
static void step_compare(void)
{
	struct store_checked checked;
	uint64_t sum = 0, values = 0;

	hold_settle(&hold);
	for (unsigned i = 0; i < GROUPS; i++) {
		const bool was_open = model[i].group != NULL;

		if (!was_open)
			model[i].group = hold_group(&hold, i, SAMPLES);
		for (unsigned k = 0; k < SAMPLES; k++) {
			const uint32_t size = model[i].size[k];

			ck_assert_int_eq(hold_get(model[i].group, i, k, size),
					 size > 0 ? 0 : STORE_E_NONE);
			ck_assert_uint_eq(hold_table(model[i].group, k), size);
			values += size > 0;
		}
		if (!was_open) {
			store_group_close(model[i].group);
			model[i].group = NULL;
		}
	}
	ck_assert_int_eq(store_list(hold.store, count_listing, &sum), 0);
	ck_assert_uint_eq(sum, values);
	ck_assert_uint_eq(hold_state(&hold).values, values);
	ck_assert_int_eq(store_verify(hold.store, NULL, &checked), 0);
	ck_assert_uint_eq(checked.values, values);
	ck_assert_uint_eq(checked.damaged, 0);
	ck_assert_uint_eq(hold_state(&hold).evicted + hold_state(&hold).damaged +
			      hold_state(&hold).write_errors,
			  0);
}

static void step_reopen(void)
{
	close_all();
	hold.settings.suspect = below(5) == 0;
	hold_reopen(&hold);
	ck_assert_uint_eq(hold_state(&hold).set_aside, hold.settings.suspect);
	if (hold.settings.suspect)
		memset(model, 0, sizeof(model));
}

static void step(void)
{
	const uint64_t what = below(1000);

	if (what < 300)
		step_put();
	else if (what < 500)
		step_replace();
	else if (what < 930)
		step_get();
	else if (what < 960)
		step_close();
	else if (what < 970)
		step_drop();
	else if (what < 985)
		step_pin();
	else if (what < 993)
		step_compare();
	else
		step_reopen();
}

START_TEST(test_model)
{
	memset(model, 0, sizeof(model));
	philox_seq_init(&seq, 7, (uint64_t)_i, 9);
	hold_new(&hold, LIMIT);
	hold_open(&hold);
	for (unsigned i = 0; i < STEPS; i++)
		step();
	step_compare();
	close_all();
	hold_remove(&hold);
}
END_TEST

static void add(TCase *models)
{
	tcase_add_loop_test(models, test_model, 0, 2);
}

int main(void)
{
	return suite_run("store_model", add);
}

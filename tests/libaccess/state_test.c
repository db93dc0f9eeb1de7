/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The token at every cut point: what was delivered and what it says is left make up the epoch, each
 * sample once; and a job that goes on from it gets exactly the rest.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"
#include "plan/permutation.h"
#include "plan/token.h"
#include "tests/libaccess/fake.h"
#include "tests/suite.h"

static uint8_t status_some(uint64_t id)
{
	return id % 6 == 2 ? LAYOUT_SAMPLE_SKIPPED : LAYOUT_SAMPLE_OK;
}

static const struct state_case {
	uint64_t n;
	uint32_t batch, chunk;
	uint8_t (*status)(uint64_t id);
	bool drips, shortens;
	unsigned late;
	uint32_t flags;
} cases[] = {
    {.n = 60, .batch = 8, .chunk = 16},
    {.n = 61, .batch = 7, .chunk = 16, .shortens = true},
    {.n = 61, .batch = 7, .chunk = 16, .drips = true},
    {.n = 60, .batch = 20, .chunk = 8},
    {.n = 60, .batch = 7, .chunk = 16, .status = status_some},
    {.n = 61, .batch = 7, .chunk = 16, .flags = OA_COPY},
    {.n = 61, .batch = 7, .chunk = 16, .flags = OA_DROP_LAST},
    {.n = 60, .batch = 4, .chunk = 8, .late = 3},
    {.n = 61, .batch = 7, .chunk = 16, .late = 2, .shortens = true},
    {.n = 60, .batch = 7, .chunk = 16, .late = 2, .status = status_some},
};

enum { EPOCHS = 2 };

struct run {
	const struct state_case *c;
	struct fake fake;
	struct oa_options options;
	struct oa_stream *stream;
	uint8_t *seen; /* [EPOCHS][n] */
	void *token;
	size_t token_size;
};

static void save(struct run *run)
{
	free(run->token);
	run->token = NULL;
	run->token_size = 0;
	ck_assert_int_eq(oa_state(run->stream, NULL, &run->token_size), -ENOBUFS);
	run->token = malloc(run->token_size);
	ck_assert_int_eq(oa_state(run->stream, run->token, &run->token_size), 0);
}

/* Counts what the token says is left of its epoch. */
static void count_left(const struct token *token, const struct permutation *permutation,
		       uint8_t *count)
{
	for (uint64_t block = 0; block < permutation->blocks; block++)
		for (uint32_t i = 0; bits_test(token->need, block) &&
				     i < permutation_block_size(permutation, block);
		     i++)
			count[permutation_sample(
			    permutation, permutation_block_first(permutation, block) + i)]++;
	for (uint32_t i = 0; i < token->n_tail; i++)
		count[token->tail[i]]++;
}

static void check_token(const struct run *run, uint64_t delivered)
{
	const struct state_case *c = run->c;
	uint8_t *count = calloc(c->n, 1);
	struct token token = {0};
	struct permutation permutation;
	struct diag diag;

	ck_assert_msg(token_parse(run->token, run->token_size, &token, &diag) == 0, "%s",
		      diag.text);
	permutation_init(&permutation, c->n, run->fake.dataset);
	ck_assert_int_eq(token_fits(&token, c->n, permutation.block, run->fake.dataset, &diag), 0);
	count_left(&token, &permutation, count);
	if (token.epoch < EPOCHS)
		for (uint64_t id = 0; id < c->n; id++) {
			unsigned sum = count[id] + run->seen[token.epoch * c->n + id];
			bool may_be_missing = c->status && c->status(id) == LAYOUT_SAMPLE_SKIPPED;

			if (sum != 1 && !(may_be_missing && sum == 0))
				ck_abort_msg("sample %u of epoch %u: %u times", (unsigned)id,
					     (unsigned)token.epoch, sum);
		}
	ck_assert_uint_eq(token.delivered, delivered);
	token_fini(&token);
	free(count);
}

static void resume(struct run *run)
{
	run->options.token = run->token;
	run->options.token_size = run->token_size;
	run->stream = fake_open(&run->fake, &run->options);
}

/* Takes up to most batches. Returns oa_next()'s last word. */
static int take(struct run *run, unsigned most, uint64_t *delivered, uint64_t *epoch)
{
	struct oa_batch_info info = {.size = sizeof(info)};
	struct oa_batch *batch;
	int r = 0;

	for (unsigned i = 0; i < most && r == 0; i++) {
		r = oa_next(run->stream, PATIENCE_MS, &batch);
		if (r)
			break;
		fake_check_batch(batch);
		oa_batch_info(batch, &info);
		if (info.epoch != *epoch)
			*delivered = 0;
		*epoch = info.epoch;
		*delivered += info.count;
		for (uint32_t k = 0; k < info.count; k++)
			ck_assert_uint_eq(
			    run->seen[info.epoch * run->c->n + (uint64_t)info.ids[k]]++, 0);
		if (info.is_last && !(run->c->flags & OA_DROP_LAST)) {
			*delivered = 0;
			++*epoch;
		}
		oa_release(batch);
	}
	return r;
}

static void start(struct run *run, const struct state_case *c)
{
	struct fake_config config = {.n = c->n,
				     .chunk = c->chunk,
				     .slots = 4,
				     .status = c->status,
				     .drips = c->drips,
				     .late = c->late,
				     .shortens = c->shortens};

	*run = (struct run){.c = c, .options = fake_options(c->batch, EPOCHS)};
	run->options.flags = c->flags;
	run->options.bad = OA_BAD_SKIP;
	run->seen = calloc(EPOCHS * c->n, 1);
	fake_start(&run->fake, &config);
	run->stream = fake_open(&run->fake, &run->options);
}

static void finish(struct run *run)
{
	uint64_t missing = 0;

	for (uint64_t i = 0; i < EPOCHS * run->c->n; i++)
		missing += !run->seen[i] &&
			   !(run->c->status && run->c->status(i % run->c->n) != LAYOUT_SAMPLE_OK);
	if (run->c->flags & OA_DROP_LAST)
		ck_assert_uint_le(missing, EPOCHS * (run->c->batch - 1));
	else
		ck_assert_uint_eq(missing, 0);
	fake_stop(&run->fake);
	free(run->token);
	free(run->seen);
}

/* After each batch the token accounts for every sample. */
START_TEST(token_is_right_at_every_cut)
{
	uint64_t delivered = 0, epoch = 0;
	struct run run;
	int r;

	start(&run, &cases[_i]);
	do {
		save(&run);
		check_token(&run, delivered);
		r = take(&run, 1, &delivered, &epoch);
	} while (r == 0);
	ck_assert_int_eq(r, OA_E_END);
	save(&run);
	oa_close(run.stream);
	finish(&run);
}
END_TEST

/* Cut after every k batches, close, go on from the token: nothing twice, nothing missing. */
START_TEST(jobs_go_on_from_tokens)
{
	for (unsigned k = 1; k <= 5; k += 2) {
		uint64_t delivered = 0, epoch = 0;
		struct run run;
		int r;

		start(&run, &cases[_i]);
		while ((r = take(&run, k, &delivered, &epoch)) == 0) {
			save(&run);
			oa_close(run.stream);
			resume(&run);
		}
		ck_assert_msg(r == OA_E_END, "%s", oa_error_text(run.stream));
		save(&run);
		oa_close(run.stream);
		resume(&run); /* at the end of all epochs, too */
		ck_assert_int_eq(take(&run, 1, &delivered, &epoch), OA_E_END);
		save(&run);
		oa_close(run.stream);
		finish(&run);
	}
}
END_TEST

/* The daemon dies and comes back, again and again, while batches are held. */
START_TEST(jobs_go_on_after_a_loss)
{
	const struct state_case *c = &cases[_i];
	struct oa_batch *held[64] = {NULL};
	struct oa_stats stats = {.size = sizeof(stats)};
	struct oa_batch_info info = {.size = sizeof(info)};
	unsigned n_held = 0, batches = 0;
	uint64_t session = 0;
	struct run run;
	int r;

	start(&run, c);
	while ((r = oa_next(run.stream, PATIENCE_MS, &held[n_held])) == 0) {
		oa_batch_info(held[n_held], &info);
		if (info.slot) { /* of the daemon that is there, and told apart from earlier ones */
			ck_assert_uint_ge(info.session, session);
			session = info.session;
		}
		for (uint32_t k = 0; k < info.count; k++)
			ck_assert_uint_eq(run.seen[info.epoch * c->n + (uint64_t)info.ids[k]]++, 0);
		if (++batches % 3 == 0) {
			fake_kill(&run.fake);
			fake_again(&run.fake);
		} else {
			n_held++;
		}
		for (unsigned i = 0; i < n_held; i++) /* readable, also those of dead daemons */
			fake_check_batch(held[i]);
		if (n_held < BASE_ARRAY_LEN(held) && batches % 3 == 0)
			n_held++;
		while (n_held > 1)
			oa_release(held[--n_held]);
	}
	ck_assert_msg(r == OA_E_END, "%s: %s", oa_error_name(r), oa_error_text(run.stream));
	oa_stream_stats(run.stream, &stats);
	ck_assert_uint_gt(stats.reconnects, 0);
	ck_assert_uint_le(session, stats.reconnects);
	save(&run);
	oa_close(run.stream);
	while (n_held > 0) { /* after the close */
		fake_check_batch(held[--n_held]);
		oa_release(held[n_held]);
	}
	finish(&run);
}
END_TEST

/* Blocks of two samples: what is left of begun blocks is in the tail, and comes again first. */
START_TEST(begun_blocks_are_in_the_tail)
{
	static const struct state_case c = {.n = 530000, .batch = 700, .chunk = 2048};
	uint64_t delivered = 0, epoch = 0;
	unsigned tails = 0;
	struct run run;

	start(&run, &c);
	for (unsigned cut = 0; cut < 8; cut++) {
		struct token token;
		struct diag diag;

		ck_assert_int_eq(take(&run, 1 + cut % 2, &delivered, &epoch), 0);
		save(&run);
		check_token(&run, delivered);
		ck_assert_int_eq(token_parse(run.token, run.token_size, &token, &diag), 0);
		ck_assert_uint_eq(token.block, 2);
		tails += token.n_tail > 0;
		token_fini(&token);
		if (cut % 2) {
			fake_kill(&run.fake);
			fake_again(&run.fake);
		} else {
			oa_close(run.stream);
			resume(&run);
		}
	}
	ck_assert_uint_gt(tails, 4);
	oa_close(run.stream);
	fake_stop(&run.fake);
	free(run.token);
	free(run.seen);
}
END_TEST

static uint64_t take_one(struct run *run, uint64_t *seen_epoch)
{
	struct oa_batch_info info = {.size = sizeof(info)};
	struct oa_batch *batch;

	ck_assert_int_eq(oa_next(run->stream, PATIENCE_MS, &batch), 0);
	oa_batch_info(batch, &info);
	*seen_epoch = info.epoch;
	for (uint32_t k = 0; k < info.count; k++)
		ck_assert_uint_eq(run->seen[info.epoch * run->c->n + (uint64_t)info.ids[k]]++, 0);
	oa_release(batch);
	return info.step;
}

/* An epoch that is left in the middle: the next one is whole. */
START_TEST(epochs_are_left)
{
	const struct state_case *c = &cases[_i];
	uint64_t delivered = 0, epoch = 0;
	struct run run;
	size_t size = 0;

	start(&run, c);
	take_one(&run, &epoch);
	take_one(&run, &epoch);
	ck_assert_uint_eq(epoch, 0);
	ck_assert_int_eq(oa_state_epoch(run.stream, 1, NULL, &size), -ENOBUFS);
	run.token = malloc(size);
	run.token_size = size;
	ck_assert_int_eq(oa_state_epoch(run.stream, EPOCHS + 1, run.token, &size), OA_E_INVALID);
	ck_assert_ptr_nonnull(strstr(oa_error_text(run.stream), "epoch is 3"));
	ck_assert_int_eq(oa_state_epoch(run.stream, 1, run.token, &size), 0);
	oa_close(run.stream);
	resume(&run);
	ck_assert_uint_eq(take_one(&run, &epoch), 0);
	ck_assert_uint_eq(epoch, 1);
	ck_assert_int_eq(take(&run, 1000, &delivered, &epoch), OA_E_END);
	oa_close(run.stream);
	for (uint64_t id = 0; id < c->n; id++) /* the first epoch's rest is nobody's */
		run.seen[id] = 1;
	finish(&run);
}
END_TEST

START_TEST(foreign_and_damaged_tokens_are_refused)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_stream *stream = NULL;
	uint64_t delivered = 0, epoch = 0;
	struct oa_client *client;
	struct run run;

	start(&run, &cases[0]);
	take(&run, 2, &delivered, &epoch);
	save(&run);
	oa_close(run.stream);
	run.options.token = run.token;
	run.options.token_size = run.token_size;
	client = fake_connect(&run.fake);
	((uint8_t *)run.token)[100] ^= 1;
	ck_assert_int_eq(oa_open(client, &run.options, &stream, &error), OA_E_TOKEN);
	ck_assert_ptr_nonnull(strstr(error.text, "damaged"));
	((uint8_t *)run.token)[100] ^= 1;
	run.options.token_size--;
	ck_assert_int_eq(oa_open(client, &run.options, &stream, &error), OA_E_TOKEN);
	oa_disconnect(client);
	fake_stop(&run.fake);
	free(run.token);
	free(run.seen);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, token_is_right_at_every_cut, 0, BASE_ARRAY_LEN(cases));
	tcase_add_loop_test(tcase, jobs_go_on_from_tokens, 0, BASE_ARRAY_LEN(cases));
	tcase_add_loop_test(tcase, jobs_go_on_after_a_loss, 0, BASE_ARRAY_LEN(cases));
	tcase_add_loop_test(tcase, epochs_are_left, 0, BASE_ARRAY_LEN(cases));
	tcase_add_test(tcase, begun_blocks_are_in_the_tail);
	tcase_add_test(tcase, foreign_and_damaged_tokens_are_refused);
}

int main(void)
{
	return suite_run("state", add);
}

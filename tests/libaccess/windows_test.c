/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Batches of all sizes out of chunks of all sizes: every sample exactly once an epoch, B at a time,
 * with the bytes that belong to it, whatever is revoked, short, skipped or slow.
 */

#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "tests/libaccess/fake.h"
#include "tests/suite.h"

static uint8_t status_some(uint64_t id)
{
	return id % 7 == 3   ? LAYOUT_SAMPLE_SKIPPED
	       : id % 5 == 1 ? LAYOUT_SAMPLE_SUBSTITUTED
			     : LAYOUT_SAMPLE_OK;
}

static uint8_t status_many(uint64_t id)
{
	return id % 3 ? LAYOUT_SAMPLE_SKIPPED : LAYOUT_SAMPLE_OK;
}

static uint8_t status_all(uint64_t id)
{
	(void)id;
	return LAYOUT_SAMPLE_SKIPPED;
}

static const struct windows_case {
	uint64_t n;
	uint32_t batch, chunk, slots, flags;
	uint8_t (*status)(uint64_t id);
	bool drips, shortens;
	unsigned revoke, late;
} cases[] = {
    {.n = 100, .batch = 10, .chunk = 20, .slots = 4},
    {.n = 100, .batch = 10, .chunk = 20, .slots = 4, .flags = OA_COPY},
    {.n = 101, .batch = 10, .chunk = 20, .slots = 4},
    {.n = 101, .batch = 10, .chunk = 20, .slots = 4, .flags = OA_DROP_LAST},
    {.n = 97, .batch = 7, .chunk = 16, .slots = 4},
    {.n = 97, .batch = 7, .chunk = 16, .slots = 4, .drips = true},
    {.n = 97, .batch = 7, .chunk = 16, .slots = 4, .revoke = 3},
    {.n = 97, .batch = 7, .chunk = 16, .slots = 4, .flags = OA_DROP_LAST, .shortens = true},
    {.n = 64, .batch = 64, .chunk = 64, .slots = 2},
    {.n = 64, .batch = 100, .chunk = 16, .slots = 3},
    {.n = 1, .batch = 1, .chunk = 1, .slots = 2},
    {.n = 1, .batch = 8, .chunk = 8, .slots = 2},
    {.n = 50, .batch = 1, .chunk = 8, .slots = 3},
    {.n = 50, .batch = 3, .chunk = 2, .slots = 3},
    {.n = 50, .batch = 11, .chunk = 3, .slots = 5, .shortens = true, .revoke = 4},
    {.n = 200, .batch = 8, .chunk = 32, .slots = 4, .status = status_some},
    {.n = 200, .batch = 8, .chunk = 32, .slots = 4, .status = status_some, .drips = true},
    {.n = 200,
     .batch = 8,
     .chunk = 32,
     .slots = 4,
     .status = status_some,
     .flags = OA_COPY | OA_POISON},
    {.n = 200, .batch = 8, .chunk = 32, .slots = 4, .status = status_some, .flags = OA_DROP_LAST},
    {.n = 200, .batch = 6, .chunk = 64, .slots = 4, .status = status_many, .revoke = 3},
    {.n = 200,
     .batch = 6,
     .chunk = 64,
     .slots = 4,
     .status = status_many,
     .drips = true,
     .shortens = true},
    {.n = 40, .batch = 4, .chunk = 8, .slots = 4, .status = status_all},
    {.n = 100, .batch = 10, .chunk = 20, .slots = 4, .late = 3},
    {.n = 97, .batch = 7, .chunk = 16, .slots = 4, .late = 2},
    {.n = 97, .batch = 7, .chunk = 16, .slots = 5, .late = 1, .revoke = 3, .shortens = true},
    {.n = 97, .batch = 40, .chunk = 16, .slots = 6, .late = 2, .flags = OA_DROP_LAST},
    {.n = 200, .batch = 8, .chunk = 32, .slots = 4, .late = 2, .status = status_some},
    {.n = 200, .batch = 6, .chunk = 64, .slots = 4, .late = 3, .status = status_many},
    {.n = 40, .batch = 4, .chunk = 8, .slots = 4, .late = 2, .status = status_all},
    {.n = 0, .batch = 4, .chunk = 8, .slots = 2},
};

enum { EPOCHS = 3 };

struct tally {
	uint8_t *seen; /* of the epoch */
	uint64_t samples, batches, substituted, epoch;
	bool has_last;
};

static bool is_skipped(const struct windows_case *c, uint64_t id)
{
	return c->status && c->status(id) == LAYOUT_SAMPLE_SKIPPED;
}

/* What is said behind the last batch. */
static int end_of(const struct windows_case *c)
{
	return c->status == status_all ? OA_E_SAMPLE : OA_E_END;
}

static uint64_t count_good(const struct windows_case *c)
{
	uint64_t good = 0;

	for (uint64_t id = 0; id < c->n; id++)
		good += !is_skipped(c, id);
	return good;
}

/* All of an epoch came: nothing but a dropped short batch may be missing. */
static void end_epoch(const struct windows_case *c, struct tally *tally)
{
	uint64_t good = count_good(c), expected = good;

	if (c->flags & OA_DROP_LAST)
		expected -= good % c->batch;
	ck_assert_uint_eq(tally->samples, expected);
	ck_assert_uint_eq(tally->batches, (expected + c->batch - 1) / c->batch);
	if (!c->status)
		ck_assert(tally->has_last || expected == 0);
	memset(tally->seen, 0, c->n + 1);
	*tally = (struct tally){.seen = tally->seen, .epoch = tally->epoch + 1};
}

/* What is in shared memory lies within whole pages of it. */
static void check_slot(const struct windows_case *c, const struct oa_batch *batch,
		       const struct oa_batch_info *info)
{
	const uintptr_t start = (uintptr_t)info->slot;
	struct oa_field field = {.size = sizeof(field)};

	ck_assert_int_eq(oa_batch_field(batch, 0, &field), 0);
	ck_assert_uint_eq(info->session, 0);
	if ((c->flags & OA_COPY) || info->copied)
		ck_assert_ptr_null(info->slot);
	if (!info->slot) {
		ck_assert_uint_eq(info->slot_bytes, 0);
		return;
	}
	ck_assert_uint_eq(start % base_page_size(), 0);
	ck_assert_uint_eq(info->slot_bytes % base_page_size(), 0);
	ck_assert_uint_ge((uintptr_t)field.data, start);
	ck_assert_uint_le((uintptr_t)field.data + field.bytes, start + info->slot_bytes);
}

static void count_batch(const struct windows_case *c, struct tally *tally,
			const struct oa_batch *batch)
{
	struct oa_batch_info info = {.size = sizeof(info)};

	oa_batch_info(batch, &info);
	fake_check_batch(batch);
	check_slot(c, batch, &info);
	while (info.epoch > tally->epoch)
		end_epoch(c, tally);
	ck_assert_uint_eq(info.epoch, tally->epoch);
	ck_assert_uint_eq(info.step, tally->batches);
	ck_assert(!tally->has_last);
	tally->has_last = info.is_last;
	ck_assert(info.count == c->batch ||
		  (info.is_last && info.count > 0 && !(c->flags & OA_DROP_LAST)));
	for (uint32_t i = 0; i < info.count; i++) {
		ck_assert_int_ge(info.ids[i], 0);
		ck_assert_int_lt(info.ids[i], (int64_t)c->n);
		ck_assert_msg(!tally->seen[info.ids[i]]++, "sample %lld twice",
			      (long long)info.ids[i]);
		ck_assert(!is_skipped(c, (uint64_t)info.ids[i]));
		tally->substituted +=
		    c->status && c->status((uint64_t)info.ids[i]) == LAYOUT_SAMPLE_SUBSTITUTED;
	}
	tally->samples += info.count;
	tally->batches++;
}

static struct fake_config config_of(const struct windows_case *c)
{
	return (struct fake_config){.n = c->n,
				    .chunk = c->chunk,
				    .slots = c->slots,
				    .status = c->status,
				    .drips = c->drips,
				    .late = c->late,
				    .shortens = c->shortens,
				    .revoke = c->revoke};
}

START_TEST(every_sample_once)
{
	const struct windows_case *c = &cases[_i];
	struct fake_config config = config_of(c);
	struct oa_options options = fake_options(c->batch, EPOCHS);
	struct tally tally = {.seen = calloc(c->n + 1, 1)};
	struct oa_stats stats = {.size = sizeof(stats)};
	struct oa_batch *batch, *before = NULL;
	struct oa_stream *stream;
	struct fake fake;
	int r;

	options.flags = c->flags;
	options.bad = c->status ? OA_BAD_SKIP : OA_BAD_ERROR;
	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	while ((r = oa_next(stream, PATIENCE_MS, &batch)) == 0) {
		count_batch(c, &tally, batch);
		oa_release(before); /* as a loop that prefetches does */
		before = batch;
	}
	ck_assert_msg(r == end_of(c), "%s: %s", oa_error_name(r), oa_error_text(stream));
	ck_assert_int_eq(oa_next(stream, 0, &batch), end_of(c));
	while (c->n > 0 && tally.epoch < EPOCHS)
		end_epoch(c, &tally);
	oa_stream_stats(stream, &stats);
	ck_assert_uint_eq(stats.outstanding, before ? 1 : 0);
	ck_assert_uint_eq(stats.reconnects, 0);
	if (c->chunk % c->batch == 0 && !c->status && !c->shortens &&
	    c->n % c->chunk % c->batch == 0)
		ck_assert_uint_eq(stats.copied, 0);
	oa_release(before);
	oa_stream_stats(stream, &stats);
	ck_assert_uint_eq(stats.pins, 0);
	ck_assert(fake_has_no_pins(&fake));
	ck_assert_uint_eq(atomic_load(&fake.nonsense), 0);
	oa_close(stream);
	fake_stop(&fake);
	free(tally.seen);
}
END_TEST

/* Nobody sees what a program writes to a batch, not even itself in the batches that follow. */
static void scribble(struct oa_batch *batch)
{
	struct oa_field field = {.size = sizeof(field)};

	ck_assert_int_eq(oa_make_writable(batch), 0);
	ck_assert_int_eq(oa_batch_field(batch, 0, &field), 0);
	memset((void *)(uintptr_t)field.data, 0xee, field.bytes);
}

enum { KEPT = 9 };

/* Batches that are kept, in any number, stay as they are; others are written to. */
START_TEST(batches_are_kept_and_written_to)
{
	const struct windows_case *c = &cases[_i];
	struct fake_config config = config_of(c);
	struct oa_options options = fake_options(c->batch, EPOCHS);
	struct tally tally = {.seen = calloc(c->n + 1, 1)};
	struct oa_stats stats = {.size = sizeof(stats)};
	struct oa_batch *batch, *kept[KEPT] = {NULL};
	struct oa_stream *stream;
	struct fake fake;
	unsigned at = 0;
	int r;

	options.flags = c->flags | OA_KEEP;
	options.bad = c->status ? OA_BAD_SKIP : OA_BAD_ERROR;
	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	for (; (r = oa_next(stream, PATIENCE_MS, &batch)) == 0; at++) {
		count_batch(c, &tally, batch);
		if (at % 2) {
			scribble(batch);
			oa_release(batch);
			continue;
		}
		if (kept[at / 2 % KEPT])
			fake_check_batch(kept[at / 2 % KEPT]);
		oa_release(kept[at / 2 % KEPT]);
		kept[at / 2 % KEPT] = batch;
	}
	ck_assert_msg(r == end_of(c), "%s: %s", oa_error_name(r), oa_error_text(stream));
	while (c->n > 0 && tally.epoch < EPOCHS)
		end_epoch(c, &tally);
	oa_stream_stats(stream, &stats);
	ck_assert_uint_le(stats.pins, 2);
	oa_close(stream);
	for (unsigned i = 0; i < KEPT; i++) {
		if (kept[i])
			fake_check_batch(kept[i]);
		oa_release(kept[i]);
	}
	ck_assert(fake_has_no_pins(&fake));
	ck_assert_uint_eq(atomic_load(&fake.nonsense), 0);
	fake_stop(&fake);
	free(tally.seen);
}
END_TEST

/* With an empty carry the epoch's short end is a window: nothing is copied. */
START_TEST(short_end_is_a_window)
{
	struct fake_config config = {.n = 45, .chunk = 20, .slots = 4};
	struct oa_options options = fake_options(10, 2);
	struct oa_stats stats = {.size = sizeof(stats)};
	struct oa_batch *batch;
	struct oa_stream *stream;
	struct fake fake;
	unsigned batches = 0;

	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	for (; oa_next(stream, PATIENCE_MS, &batch) == 0; batches++)
		oa_release(batch);
	ck_assert_uint_eq(batches, 10);
	oa_stream_stats(stream, &stats);
	ck_assert_uint_eq(stats.copied, 0);
	ck_assert_uint_eq(stats.samples, 90);
	ck_assert_uint_eq(stats.epochs, 2);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* Windows first, then the batch that the chunk's left-over completed. */
START_TEST(carried_batch_comes_after_windows)
{
	struct fake_config config = {.n = 48, .chunk = 12, .slots = 6};
	struct oa_options options = fake_options(8, 1);
	static const uint32_t copied[] = {0, 0, 8,
					  0, 0, 8}; /* chunks of 12: 8 + 4, 8 + 4 | 8, ... */
	struct oa_batch_info info = {.size = sizeof(info)};
	struct oa_batch *batch;
	struct oa_stream *stream;
	struct fake fake;

	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	for (unsigned i = 0; i < 6; i++) {
		ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
		oa_batch_info(batch, &info);
		ck_assert_uint_eq(info.copied, copied[i]);
		ck_assert_int_eq(info.is_last, i == 5);
		oa_release(batch);
	}
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* A sample that never comes holds up the batch that it is in, and none of another chunk; nor does it end an epoch. */
START_TEST(a_late_sample_is_overtaken)
{
	struct fake_config config = {
	    .n = 100, .chunk = 20, .slots = 4, .late = 1000, .late_stays = true};
	const uint32_t flags[] = {0, OA_KEEP, OA_COPY};
	struct oa_options options = fake_options(10, 2);
	struct oa_batch *batch, *kept = NULL;
	struct oa_batch_info info = {.size = sizeof(info)};
	struct oa_stream *stream;
	struct fake fake;

	options.flags = flags[_i];
	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	for (unsigned i = 0; i < 9; i++) {
		ck_assert_msg(oa_next(stream, PATIENCE_MS, &batch) == 0, "%u: %s", i,
			      oa_error_text(stream));
		fake_check_batch(batch);
		oa_batch_info(batch, &info);
		ck_assert_uint_eq(info.epoch, 0);
		ck_assert(!info.is_last);
		oa_release(kept);
		kept = flags[_i] & OA_KEEP ? batch : NULL; /* held while it comes to the next one */
		if (!kept)
			oa_release(batch);
	}
	oa_release(kept);
	ck_assert_int_eq(oa_next(stream, 0, &batch), OA_E_TIMEOUT);
	fake_lock(&fake);
	fake.config.late_stays = false;
	fake_unlock(&fake);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
	oa_batch_info(batch, &info);
	ck_assert(info.is_last && info.count == 10);
	oa_release(batch);
	for (unsigned i = 0; i < 10; i++) {
		ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
		oa_release(batch);
	}
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), OA_E_END);
	oa_close(stream);
	ck_assert_uint_eq(atomic_load(&fake.nonsense), 0);
	fake_stop(&fake);
}
END_TEST

/* A program that holds both slots waits for the late sample, as before: it is not told that it holds too many. When it
 * gives one back, the next chunk goes first. */
START_TEST(who_holds_all_pins_waits_for_the_late_sample)
{
	struct fake_config config = {
	    .n = 60, .chunk = 20, .slots = 4, .late = 1000, .late_stays = true};
	struct oa_options options = fake_options(10, 1);
	struct pollfd fd = {.events = POLLIN};
	struct oa_batch *batch[3], *next;
	struct oa_stream *stream;
	struct fake fake;

	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	for (unsigned i = 0; i < 3;
	     i++) /* of the first chunk, which is late, one; two of the second */
		ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch[i]), 0);
	do { /* until all that can come without a pin has come */
		ck_assert_int_eq(oa_next(stream, 0, &next), OA_E_TIMEOUT);
		fd.fd = oa_fd(stream);
	} while (poll(&fd, 1, 100) == 1);
	oa_release(batch[1]);
	oa_release(batch[2]);
	ck_assert_int_eq(poll(&fd, 1, PATIENCE_MS), 1); /* who polls is told */
	for (unsigned i = 1; i < 3; i++)
		ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch[i]), 0);
	for (unsigned i = 0; i < 3; i++)
		oa_release(batch[i]);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* What a program knows of a field, and no byte more, is written: it may be older than the library. */
START_TEST(a_field_has_the_size_that_its_program_knows)
{
	struct fake_config config = {.n = 45, .chunk = 20, .slots = 4};
	struct oa_options options = fake_options(10, 1);
	struct {
		struct oa_field field;
		uint64_t behind;
	} older = {.field = {.size = offsetof(struct oa_field, bytes), .bytes = 7}},
	  newer = {.field = {.size = sizeof(newer)}, .behind = 7};
	struct oa_field none = {.size = 0};
	struct oa_batch *batch;
	struct oa_stream *stream;
	struct fake fake;

	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
	ck_assert_int_eq(oa_batch_field(batch, 0, &none), OA_E_INVALID);
	ck_assert_int_eq(oa_batch_field(batch, 0, &older.field), 0);
	ck_assert_uint_eq(older.field.size, offsetof(struct oa_field, bytes));
	ck_assert_uint_eq(older.field.shape[0], 10);
	ck_assert_uint_eq(older.field.bytes, 7);
	ck_assert_int_eq(oa_batch_field(batch, 0, &newer.field), 0);
	ck_assert_uint_eq(newer.field.size, sizeof(struct oa_field));
	ck_assert_uint_eq(newer.behind, 7);
	oa_release(batch);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* What stands in memory that others write is cut off at what the field has room for. */
START_TEST(lengths_are_checked)
{
	const int64_t lengths[] = {0, 3, 5, 6, INT64_MAX, -1};
	const uint64_t want[] = {0, 3, 5, 5, 5, 5};
	struct oa_field field = {.size = sizeof(field),
				 .ndim = 3,
				 .shape = {BASE_ARRAY_LEN(lengths), 5, 4},
				 .kind = OA_RAGGED,
				 .lengths = lengths};

	for (uint32_t i = 0; i < BASE_ARRAY_LEN(lengths); i++)
		ck_assert_uint_eq(oa_field_length(&field, i), want[i]);
	ck_assert_uint_eq(oa_field_length(&field, BASE_ARRAY_LEN(lengths)), 0);
	ck_assert_uint_eq(oa_field_length(NULL, 0), 0);
	field.lengths = NULL; /* dense */
	ck_assert_uint_eq(oa_field_length(&field, 0), 5);
	field.lengths = lengths;
	field.size = offsetof(struct oa_field, kind); /* of a program that knows of no lengths */
	ck_assert_uint_eq(oa_field_length(&field, 0), 5);
	field.ndim = 1;
	ck_assert_uint_eq(oa_field_length(&field, 0), 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, every_sample_once, 0, BASE_ARRAY_LEN(cases));
	tcase_add_loop_test(tcase, batches_are_kept_and_written_to, 0, BASE_ARRAY_LEN(cases));
	tcase_add_test(tcase, short_end_is_a_window);
	tcase_add_test(tcase, carried_batch_comes_after_windows);
	tcase_add_loop_test(tcase, a_late_sample_is_overtaken, 0, 3);
	tcase_add_test(tcase, who_holds_all_pins_waits_for_the_late_sample);
	tcase_add_test(tcase, a_field_has_the_size_that_its_program_knows);
	tcase_add_test(tcase, lengths_are_checked);
}

int main(void)
{
	return suite_run("windows", add);
}

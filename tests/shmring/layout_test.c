/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Freezes shared bytes. A number here may change only together with LAYOUT_VERSION: an old job and
 * a new accessd meet in this memory.
 */

#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "shmring/layout.h"
#include "tests/shmring/suite.h"

#define AT(type, member, offset)                                         \
	{                                                                \
#type "." #member, offsetof(struct type, member), offset \
	}

static const struct {
	const char *what;
	size_t is, frozen;
} offsets[] = {
    AT(layout_field, name, 0),
    AT(layout_field, dtype, 32),
    AT(layout_field, where, 36),
    AT(layout_field, ndim, 40),
    AT(layout_field, shape, 48),
    AT(layout_field, offset, 80),
    AT(layout_field, sample_bytes, 88),
    AT(layout_field, kind, 96),
    AT(layout_field, lengths, 100),
    AT(layout_slot, d_instance, 0),
    AT(layout_slot, d_nonce, 8),
    AT(layout_slot, d_count, 16),
    AT(layout_slot, d_blocks, 20),
    AT(layout_slot, d_private, 24),
    AT(layout_slot, d_watermark, 64),
    AT(layout_slot_table, magic, 0),
    AT(layout_slot_table, version, 8),
    AT(layout_slot_table, head_bytes, 12),
    AT(layout_slot_table, bytes, 16),
    AT(layout_slot_table, slots_bytes, 24),
    AT(layout_slot_table, slot_stride, 32),
    AT(layout_slot_table, max_slots, 40),
    AT(layout_slot_table, chunk, 44),
    AT(layout_slot_table, block, 48),
    AT(layout_slot_table, n_fields, 52),
    AT(layout_slot_table, n_samples, 56),
    AT(layout_slot_table, seed, 64),
    AT(layout_slot_table, dataset, 72),
    AT(layout_slot_table, stream, 104),
    AT(layout_slot_table, slot_offset, 136),
    AT(layout_slot_table, status_offset, 144),
    AT(layout_slot_table, ids_offset, 152),
    AT(layout_slot_table, blocks_offset, 160),
    AT(layout_slot_table, field, 168),
    AT(layout_slot_table_wide, more, 1280),
    AT(layout_grant, d_word, 0),
    AT(layout_grant, d_instance, 8),
    AT(layout_grant, d_slot, 16),
    AT(layout_grant, d_first, 20),
    AT(layout_grant, d_count, 24),
    AT(layout_grant, d_flags, 28),
    AT(layout_grant, d_epoch, 32),
    AT(layout_inbox, magic, 0),
    AT(layout_inbox, version, 8),
    AT(layout_inbox, ring, 12),
    AT(layout_inbox, bytes, 16),
    AT(layout_inbox, d_posted, 64),
    AT(layout_inbox, d_heartbeat_ns, 72),
    AT(layout_inbox, d_stage, 80),
    AT(layout_inbox, d_wants_kick, 84),
    AT(layout_inbox, d_end_epoch, 88),
    AT(layout_inbox, d_late_ns, 96),
    AT(layout_inbox, grant, 128),
    AT(layout_outbox, magic, 0),
    AT(layout_outbox, version, 8),
    AT(layout_outbox, ring, 12),
    AT(layout_outbox, bytes, 16),
    AT(layout_outbox, c_take, 64),
    AT(layout_outbox, c_next, 80),
    AT(layout_outbox, c_armed, 88),
    AT(layout_outbox, c_awake, 96),
    AT(layout_outbox, c_samples, 128),
    AT(layout_outbox, c_batches, 136),
    AT(layout_outbox, c_wait_ns, 144),
    AT(layout_outbox, c_copied, 152),
    AT(layout_outbox, c_epochs, 160),
    AT(layout_outbox, c_result, 192),
    AT(layout_task, d_sample, 0),
    AT(layout_task, d_random_id, 8),
    AT(layout_task, d_arena_offset, 16),
    AT(layout_task, d_bytes, 24),
    AT(layout_task, d_label, 28),
    AT(layout_task, d_position, 32),
    AT(layout_task, d_attempt, 36),
    AT(layout_task, d_seed, 40),
    AT(layout_task, d_nonce, 48),
    AT(layout_task, d_room, 56),
    AT(layout_task, d_want, 60),
    AT(layout_task, d_make, 61),
    AT(layout_task, d_probe, 62),
    AT(layout_task, d_timed, 63),
    AT(layout_task, s_state, 64),
    AT(layout_task, s_stage, 68),
    AT(layout_task, s_code, 72),
    AT(layout_task, s_work_us, 76),
    AT(layout_task, s_text, 80),
    AT(layout_task, r_read_ns, 128),
    AT(layout_task, r_bytes, 136),
    AT(layout_task, r_form, 140),
    AT(layout_task, r_cpu_us, 144),
    AT(layout_task, s_made, 148),
    AT(layout_task, s_make_us, 152),
    AT(layout_task, s_form_us, 156),
    AT(layout_task, s_form_bytes, 160),
    AT(layout_task, s_cpu_us, 164),
    AT(layout_task, r_resident, 168),
    AT(layout_ring, w_head, 0),
    AT(layout_ring, r_tail, 64),
    AT(layout_rings, n_rings, 12),
    AT(layout_rings, data_offset, 32),
    AT(layout_rings, s_seq, 64),
    AT(layout_rings, s_armed, 68),
    AT(layout_rings, ring, 128),
    AT(layout_pane, magic, 0),
    AT(layout_pane, version, 8),
    AT(layout_pane, head_bytes, 12),
    AT(layout_pane, room, 16),
    AT(layout_pane, d_seq, 64),
    AT(layout_pane, d_size, 72),
    AT(layout_pane, d_ended, 80),
    AT(layout_item, bytes, 4),
    AT(layout_item, sample, 24),
    AT(layout_row, d_order, 0),
    AT(layout_row, d_nonce, 8),
    AT(layout_row, d_seed, 16),
    AT(layout_row, d_slot, 24),
    AT(layout_row, d_count, 28),
    AT(layout_row, d_variants, 32),
    AT(layout_row, s_read_hint, 64),
    AT(layout_row, s_run_hint, 128),
    AT(layout_row, s_ended, 192),
    AT(layout_row, d_ring_at, 196),
    AT(layout_queue, magic, 0),
    AT(layout_queue, version, 8),
    AT(layout_queue, n_rows, 12),
    AT(layout_queue, bytes, 16),
    AT(layout_queue, arena_bytes, 24),
    AT(layout_queue, chunk, 32),
    AT(layout_queue, queue, 36),
    AT(layout_queue, row_offset, 40),
    AT(layout_queue, task_offset, 48),
    AT(layout_queue, d_closed, 56),
    AT(layout_queue, r_reading, 64),
    AT(layout_worker, w_task, 0),
    AT(layout_worker, w_started_ns, 8),
    AT(layout_worker, w_done, 16),
    AT(layout_worker, w_busy_ns, 24),
    AT(layout_worker, w_pixels, 32),
    AT(layout_doorbell, magic, 0),
    AT(layout_doorbell, version, 8),
    AT(layout_doorbell, max_workers, 12),
    AT(layout_doorbell, bytes, 16),
    AT(layout_doorbell, s_work_seq, 64),
    AT(layout_doorbell, s_work_armed, 68),
    AT(layout_doorbell, s_read_seq, 128),
    AT(layout_doorbell, s_read_armed, 132),
    AT(layout_doorbell, s_event_armed, 192),
    AT(layout_doorbell, worker, 256),
};

static const struct {
	long is, frozen;
} numbers[] = {
    {LAYOUT_VERSION, 1},
    {LAYOUT_VERSION_FIELDS, 2},
    {LAYOUT_MAX_FIELDS, 24},
    {LAYOUT_FIRST_FIELDS, 8},
    {LAYOUT_MAX_DIMS, 4},
    {LAYOUT_GRANT_RING, 64},
    {LAYOUT_MAX_PINS, 2},
    {LAYOUT_U8, 1},
    {LAYOUT_F16, 2},
    {LAYOUT_F32, 3},
    {LAYOUT_I64, 4},
    {LAYOUT_BF16, 5},
    {LAYOUT_I8, 6},
    {LAYOUT_I16, 7},
    {LAYOUT_I32, 8},
    {LAYOUT_U16, 9},
    {LAYOUT_U32, 10},
    {LAYOUT_U64, 11},
    {LAYOUT_F64, 12},
    {LAYOUT_BOOL, 13},
    {LAYOUT_DENSE, 0},
    {LAYOUT_RAGGED, 1},
    {LAYOUT_TEXT, 2},
    {LAYOUT_IN_SLOT, 1},
    {LAYOUT_IN_TABLE, 2},
    {LAYOUT_SAMPLE_PENDING, 0},
    {LAYOUT_SAMPLE_OK, 1},
    {LAYOUT_SAMPLE_SKIPPED, 2},
    {LAYOUT_SAMPLE_SUBSTITUTED, 3},
    {LAYOUT_SAMPLE_ERROR, 4},
    {LAYOUT_SAMPLE_FILTERED, 5},
    {LAYOUT_GRANT_POSTED, 1},
    {LAYOUT_GRANT_REVOKED, 2},
    {LAYOUT_TAKE_FREE, 0},
    {LAYOUT_TAKE_HELD, 1},
    {LAYOUT_RESULT_DONE, 1},
    {LAYOUT_RESULT_RETURNED, 2},
    {LAYOUT_GRANT_LAST, 1},
    {LAYOUT_STAGE_NONE, 0},
    {LAYOUT_STAGE_DRAIN, 7},
};

/* The magics as text, so that a hex dump says what it is. */
static const struct {
	uint64_t magic;
	const char *text;
} magics[] = {
    {LAYOUT_MAGIC_SLOT_TABLE, "OA!BORD1"}, {LAYOUT_MAGIC_INBOX, "OA!INBX1"},
    {LAYOUT_MAGIC_OUTBOX, "OA!!OBX1"},     {LAYOUT_MAGIC_QUEUE, "OA!LANE1"},
    {LAYOUT_MAGIC_DOORBELL, "OA!BELL1"},
};

/* Words of different writers that are stored to all the time. */
static const struct {
	size_t a, b;
} apart[] = {
    {offsetof(struct layout_slot, d_instance), offsetof(struct layout_slot, d_watermark)},
    {offsetof(struct layout_task, d_sample), offsetof(struct layout_task, s_state)},
    {offsetof(struct layout_row, d_order), offsetof(struct layout_row, s_read_hint)},
    {offsetof(struct layout_row, s_read_hint), offsetof(struct layout_row, s_run_hint)},
    {offsetof(struct layout_row, s_run_hint), offsetof(struct layout_row, s_ended)},
    {offsetof(struct layout_queue, d_closed), offsetof(struct layout_queue, r_reading)},
    {offsetof(struct layout_doorbell, s_work_seq), offsetof(struct layout_doorbell, s_read_seq)},
    {offsetof(struct layout_doorbell, s_read_seq), offsetof(struct layout_doorbell, s_event_armed)},
    {offsetof(struct layout_doorbell, s_event_armed), offsetof(struct layout_doorbell, worker)},
    {offsetof(struct layout_outbox, c_take), offsetof(struct layout_outbox, c_samples)},
};

START_TEST(offset_is_frozen)
{
	ck_assert_msg(offsets[_i].is == offsets[_i].frozen, "%s is at %zu, frozen at %zu",
		      offsets[_i].what, offsets[_i].is, offsets[_i].frozen);
}
END_TEST

START_TEST(number_is_frozen)
{
	ck_assert_int_eq(numbers[_i].is, numbers[_i].frozen);
}
END_TEST

START_TEST(magic_reads_as_text)
{
	ck_assert_int_eq(memcmp(&magics[_i].magic, magics[_i].text, 8), 0);
}
END_TEST

START_TEST(writers_are_on_separate_lines)
{
	ck_assert_uint_ne(apart[_i].a / BASE_CACHE_LINE, apart[_i].b / BASE_CACHE_LINE);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, offset_is_frozen, 0, BASE_ARRAY_LEN(offsets));
	tcase_add_loop_test(tcase, number_is_frozen, 0, BASE_ARRAY_LEN(numbers));
	tcase_add_loop_test(tcase, magic_reads_as_text, 0, BASE_ARRAY_LEN(magics));
	tcase_add_loop_test(tcase, writers_are_on_separate_lines, 0, BASE_ARRAY_LEN(apart));
}

int main(void)
{
	return suite_run("layout", add);
}

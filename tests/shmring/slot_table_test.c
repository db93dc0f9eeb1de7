/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shmring/slot_table.h"
#include "tests/invariants/invariants.h"
#include "tests/shmring/suite.h"

#define ALL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

static struct slot_geometry small(void)
{
	struct slot_geometry geometry = {
	    .max_slots = 4,
	    .chunk = 6,
	    .block = 2,
	    .n_fields = 3,
	    .n_samples = 100,
	    .seed = 7,
	    .field =
		{
		    {.name = "image",
		     .dtype = LAYOUT_F32,
		     .where = LAYOUT_IN_SLOT,
		     .ndim = 3,
		     .shape = {3, 5, 7}},
		    {.name = "label", .dtype = LAYOUT_I64, .where = LAYOUT_IN_SLOT},
		    {.name = "index", .dtype = LAYOUT_I64, .where = LAYOUT_IN_TABLE},
		},
	};

	memset(geometry.dataset, 0xd5, sizeof(geometry.dataset));
	return geometry;
}

static void compose(struct slot_table *table, uint32_t slot, uint64_t instance, uint32_t count)
{
	int64_t ids[64];
	uint32_t blocks[64];

	for (uint32_t i = 0; i < count; i++) {
		ids[i] = 99 - i;
		blocks[i] = i;
	}
	slot_table_begin(table, slot, instance, 1000 + instance, ids, count, blocks, count / 2,
			 false);
}

START_TEST(plan_lays_fields_out_one_after_the_other)
{
	struct slot_geometry geometry = small();

	ck_assert_int_eq(slot_table_plan(&geometry), 0);
	ck_assert_uint_eq(geometry.field[0].sample_bytes, 3 * 5 * 7 * 4);
	ck_assert_uint_eq(geometry.field[0].offset, 0);
	ck_assert_uint_eq(geometry.field[1].offset, base_align_up(6 * 420, 64));
	ck_assert_uint_eq(geometry.field[1].sample_bytes, 8);
	ck_assert_uint_eq(geometry.field[2].offset, 0);
	ck_assert_uint_eq(geometry.slot_stride % base_page_size(), 0);
	ck_assert_uint_eq(geometry.slots_bytes, 4 * geometry.slot_stride);
	ck_assert_uint_ge(geometry.slot_stride, geometry.field[1].offset + 6 * 8);
	ck_assert_uint_ge(geometry.slot_offset, sizeof(struct layout_slot_table));
	ck_assert_uint_ge(geometry.table_bytes, geometry.blocks_offset + 4 * 6 * 4);
}
END_TEST

/* Each edit makes a good geometry bad. */
static void edit_no_slots(struct slot_geometry *g)
{
	g->max_slots = 0;
}
static void edit_many_slots(struct slot_geometry *g)
{
	g->max_slots = LAYOUT_MAX_SLOTS + 1;
}
static void edit_no_chunk(struct slot_geometry *g)
{
	g->chunk = 0;
}
static void edit_large_chunk(struct slot_geometry *g)
{
	g->chunk = LAYOUT_MAX_CHUNK + 1;
}
static void edit_no_block(struct slot_geometry *g)
{
	g->block = 0;
}
static void edit_odd_block(struct slot_geometry *g)
{
	g->block = 3;
}
static void edit_large_block(struct slot_geometry *g)
{
	g->block = 64;
}
static void edit_no_fields(struct slot_geometry *g)
{
	g->n_fields = 0;
}
static void edit_many_fields(struct slot_geometry *g)
{
	g->n_fields = LAYOUT_MAX_FIELDS + 1;
}
static void edit_samples(struct slot_geometry *g)
{
	g->n_samples = UINT64_C(1) << 63;
}
static void edit_dtype(struct slot_geometry *g)
{
	g->field[0].dtype = LAYOUT_BOOL + 1;
}
static void edit_where(struct slot_geometry *g)
{
	g->field[0].where = 3;
}
static void edit_ndim(struct slot_geometry *g)
{
	g->field[0].ndim = LAYOUT_MAX_DIMS + 1;
}
static void edit_shape(struct slot_geometry *g)
{
	g->field[0].shape[1] = 0;
}
static void edit_no_name(struct slot_geometry *g)
{
	g->field[0].name[0] = 0;
}
static void edit_name(struct slot_geometry *g)
{
	memset(g->field[0].name, 'x', 32);
}
static void edit_same_name(struct slot_geometry *g)
{
	strcpy(g->field[1].name, "image");
}
static void edit_stride(struct slot_geometry *g)
{
	g->field[0].sample_bytes = 416;
}
static void edit_odd_stride(struct slot_geometry *g)
{
	g->field[0].sample_bytes = 422;
}
static void edit_table_field(struct slot_geometry *g)
{
	g->field[2].dtype = LAYOUT_F32;
}
static void edit_table_shape(struct slot_geometry *g)
{
	g->field[2].ndim = 1;
	g->field[2].shape[0] = 2;
}
static void edit_nothing_in_slot(struct slot_geometry *g)
{
	g->field[0] = g->field[2];
	g->n_fields = 1;
}

static void (*const bad_edits[])(struct slot_geometry *) = {
    edit_no_slots,    edit_many_slots,      edit_no_chunk,  edit_large_chunk, edit_no_block,
    edit_odd_block,   edit_large_block,     edit_no_fields, edit_many_fields, edit_samples,
    edit_dtype,       edit_where,           edit_ndim,      edit_shape,       edit_no_name,
    edit_name,        edit_same_name,       edit_stride,    edit_odd_stride,  edit_table_field,
    edit_table_shape, edit_nothing_in_slot,
};

START_TEST(plan_refuses_bad_numbers)
{
	struct slot_geometry geometry = small();

	bad_edits[_i](&geometry);
	ck_assert_int_eq(slot_table_plan(&geometry), SLOT_TABLE_E_BAD);
}
END_TEST

static const struct {
	uint64_t shape[4];
	uint32_t max_slots, chunk;
} too_large[] = {
    {{UINT64_MAX, UINT64_MAX, 1, 1}, 1, 1},
    {{UINT64_C(1) << 61, 1, 1, 1}, 1, 1},
    {{UINT64_C(1) << 32, UINT64_C(1) << 32, 1, 1}, 1, 1},
    {{UINT64_C(1) << 50, 1, 1, 1}, 1, 65536},
    {{UINT64_C(1) << 40, 1, 1, 1}, 1024, 65536},
};

START_TEST(plan_reports_overflow)
{
	struct slot_geometry geometry = small();

	memcpy(geometry.field[0].shape, too_large[_i].shape, sizeof(geometry.field[0].shape));
	geometry.field[0].ndim = 4;
	geometry.max_slots = too_large[_i].max_slots;
	geometry.chunk = too_large[_i].chunk;
	ck_assert_int_eq(slot_table_plan(&geometry), -EOVERFLOW);
}
END_TEST

START_TEST(rank_sees_what_accessd_writes)
{
	struct slot_geometry geometry = small();
	struct slot_table table, rank;
	int fd;

	ck_assert_int_eq(slot_table_plan(&geometry), 0);
	ck_assert_int_eq(slot_table_new(&geometry, &table, &fd), 0);
	ck_assert_int_eq(fcntl(fd, F_GET_SEALS) & ALL_SEALS, ALL_SEALS);
	ck_assert_int_eq(slot_table_attach(fd, &rank), 0);
	ck_assert_int_eq(memcmp(&rank.geometry, &table.geometry, sizeof(geometry)), 0);
	ck_assert(!rank.writable);
	assert_fine(slot_table_check(&table));
	compose(&table, 2, 11, 6);
	assert_fine(slot_table_check(&table));
	ck_assert_uint_eq(slot_table_of(&rank, 2)->d_instance, 11);
	ck_assert_uint_eq(slot_table_of(&rank, 2)->d_nonce, 1011);
	ck_assert_uint_eq(slot_table_of(&rank, 2)->d_blocks, 3);
	ck_assert_int_eq(slot_table_ids_of(&rank, 2)[5], 94);
	ck_assert_uint_eq(slot_table_blocks_of(&rank, 2)[2], 2);
	for (uint32_t i = 0; i < 6; i++) {
		slot_table_status(&table, 2, i, LAYOUT_SAMPLE_OK);
		slot_table_watermark(&table, 2, i + 1);
		assert_fine(slot_table_check(&table));
		ck_assert_uint_eq(slot_table_read_watermark(&rank, 2), i + 1);
		ck_assert_uint_eq(slot_table_status_of(&rank, 2)[i], LAYOUT_SAMPLE_OK);
	}
	compose(&table, 2, 12, 4);
	ck_assert_uint_eq(slot_table_read_watermark(&rank, 2), 0);
	slot_table_empty(&table, 2);
	ck_assert_uint_eq(slot_table_of(&rank, 2)->d_instance, 0);
	assert_fine(slot_table_check(&table));
	slot_table_detach(&rank);
	slot_table_detach(&table);
	close(fd);
}
END_TEST

START_TEST(numbers_of_slots_are_checked)
{
	struct slot_geometry geometry = small();
	struct slot_table table;
	int fd;

	ck_assert_int_eq(slot_table_plan(&geometry), 0);
	ck_assert_int_eq(slot_table_new(&geometry, &table, &fd), 0);
	ck_assert_ptr_null(slot_table_of(&table, 4));
	ck_assert_ptr_null(slot_table_status_of(&table, UINT32_MAX));
	ck_assert_ptr_null(slot_table_ids_of(&table, 4));
	ck_assert_ptr_null(slot_table_blocks_of(&table, 4));
	ck_assert_uint_eq(slot_table_read_watermark(&table, 4), 0);
	slot_table_detach(&table);
	close(fd);
}
END_TEST

/* Breaks one rule each. */
static void break_watermark(struct slot_table *table)
{
	slot_table_status(table, 1, 0, LAYOUT_SAMPLE_OK);
	slot_table_watermark(table, 1, 2);
}
static void break_instance(struct slot_table *table)
{
	compose(table, 3, 21, 2);
}
static void break_id(struct slot_table *table)
{
	int64_t id = 100;

	slot_table_begin(table, 2, 30, 1, &id, 1, NULL, 0, true);
}
static void break_block(struct slot_table *table)
{
	int64_t ids[2] = {1, 2};
	uint32_t block = 50;

	slot_table_begin(table, 2, 30, 1, ids, 2, &block, 1, false);
}
static void break_status(struct slot_table *table)
{
	slot_table_status(table, 1, 3, LAYOUT_SAMPLE_FILTERED + 1);
}
static void break_empty(struct slot_table *table)
{
	slot_table_watermark(table, 0, 1);
}
static void break_head(struct slot_table *table)
{
	((struct layout_slot_table *)table->map)->chunk++;
}

static void (*const breaks[])(struct slot_table *) = {
    break_watermark, break_instance, break_id, break_block, break_status, break_empty, break_head,
};

START_TEST(check_finds_broken_rules)
{
	struct slot_geometry geometry = small();
	struct slot_table table;
	int fd;

	ck_assert_int_eq(slot_table_plan(&geometry), 0);
	ck_assert_int_eq(slot_table_new(&geometry, &table, &fd), 0);
	compose(&table, 1, 21, 6);
	assert_fine(slot_table_check(&table));
	breaks[_i](&table);
	ck_assert_ptr_nonnull(slot_table_check(&table));
	slot_table_detach(&table);
	close(fd);
}
END_TEST

/* A copy of a good slot table's head in a memfd of its own, sealed or not. */
static int forged(const struct layout_slot_table *head, uint64_t bytes, int seals)
{
	int fd = base_memfd("forged", bytes);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, head, BASE_MIN(bytes, sizeof(*head)), 0),
			 (ssize_t)BASE_MIN(bytes, sizeof(*head)));
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void good_head(struct layout_slot_table *ret)
{
	struct slot_geometry geometry = small();
	struct slot_table table;
	int fd;

	ck_assert_int_eq(slot_table_plan(&geometry), 0);
	ck_assert_int_eq(slot_table_new(&geometry, &table, &fd), 0);
	memcpy(ret, table.map, sizeof(*ret));
	slot_table_detach(&table);
	close(fd);
}

/* A ragged field with its lengths, and so many others. */
static struct slot_geometry wide(uint32_t others)
{
	struct slot_geometry geometry = small();

	geometry.field[1] = (struct layout_field){
	    .name = "boxes.length", .dtype = LAYOUT_I64, .where = LAYOUT_IN_SLOT};
	geometry.field[0] = (struct layout_field){.name = "boxes",
						  .dtype = LAYOUT_F32,
						  .where = LAYOUT_IN_SLOT,
						  .ndim = 2,
						  .shape = {5, 4},
						  .kind = LAYOUT_RAGGED,
						  .lengths = 1};
	for (uint32_t i = 0; i < others; i++) {
		struct layout_field *field = &geometry.field[geometry.n_fields++];

		*field = (struct layout_field){.dtype = LAYOUT_I8 + i % 8, .where = LAYOUT_IN_SLOT};
		snprintf(field->name, sizeof(field->name), "field%u", i);
	}
	return geometry;
}

START_TEST(a_table_of_many_fields_says_another_version)
{
	struct slot_geometry geometry = wide(_i), plain = small();
	struct layout_slot_table head;
	struct slot_table table, seen;
	int fd;

	ck_assert_int_eq(slot_table_plan(&geometry), 0);
	ck_assert(slot_table_is_wide(&geometry));
	ck_assert(!slot_table_is_wide(&plain));
	good_head(&head);
	ck_assert_uint_eq(head.version, LAYOUT_VERSION);
	ck_assert_uint_eq(head.head_bytes, 1280);
	ck_assert_int_eq(slot_table_new(&geometry, &table, &fd), 0);
	memcpy(&head, table.map, sizeof(head));
	ck_assert_uint_eq(head.version, LAYOUT_VERSION_FIELDS);
	ck_assert_uint_eq(head.head_bytes, 3328);
	ck_assert_int_eq(slot_table_attach(fd, &seen), 0);
	ck_assert_mem_eq(&seen.geometry, &geometry, sizeof(geometry));
	assert_fine(slot_table_check(&seen));
	slot_table_detach(&seen);
	slot_table_detach(&table);
	close(fd);
}
END_TEST

static void lengths_elsewhere(struct layout_field *field)
{
	field->lengths = 3;
}
static void lengths_far_off(struct layout_field *field)
{
	field->lengths = UINT32_MAX;
}
static void lengths_in_the_table(struct layout_field *field)
{
	field->lengths = 2;
}
static void its_own_lengths(struct layout_field *field)
{
	field->lengths = 0;
}
static void no_dimension(struct layout_field *field)
{
	field->ndim = 0;
}
static void an_unknown_kind(struct layout_field *field)
{
	field->kind = LAYOUT_TEXT + 1;
}
static void a_text_of_floats(struct layout_field *field)
{
	field->kind = LAYOUT_TEXT;
}
static void dense_with_lengths(struct layout_field *field)
{
	field->kind = LAYOUT_DENSE;
}
static void (*const ragged_edits[])(struct layout_field *) = {
    lengths_elsewhere, lengths_far_off, lengths_in_the_table, its_own_lengths,
    no_dimension,      an_unknown_kind, a_text_of_floats,     dense_with_lengths,
};

START_TEST(plan_refuses_lengths_that_are_none)
{
	struct slot_geometry geometry = wide(0);

	ragged_edits[_i](&geometry.field[0]);
	ck_assert_int_eq(slot_table_plan(&geometry), SLOT_TABLE_E_BAD);
}
END_TEST

START_TEST(attach_refuses_each_changed_byte_that_matters)
{
	struct layout_slot_table head, changed;
	struct slot_table table;
	unsigned refused = 0;

	good_head(&head);
	for (size_t i = 0; i < sizeof(head); i++) {
		uint8_t *byte = (uint8_t *)&changed + i;
		int fd, r;

		changed = head;
		*byte ^= 0x80;
		fd = forged(&changed, head.bytes, ALL_SEALS);
		r = slot_table_attach(fd, &table);
		ck_assert_msg(r == 0 || r == SLOT_TABLE_E_BAD, "byte %zu: %d", i, r);
		refused += r != 0;
		if (r == 0) {
			assert_fine(slot_table_check(&table));
			slot_table_detach(&table);
		}
		close(fd);
	}
	ck_assert_uint_gt(refused, 150);
}
END_TEST

static const struct {
	int seals;
	int64_t more_bytes;
	int expected;
} forgeries[] = {
    {ALL_SEALS, 0, 0},
    {F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE, 0, 0},
    {F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, 0, SLOT_TABLE_E_BAD},
    {F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE, 0, SLOT_TABLE_E_BAD},
    {F_SEAL_GROW | F_SEAL_FUTURE_WRITE, 0, SLOT_TABLE_E_BAD},
    {0, 0, SLOT_TABLE_E_BAD},
    {ALL_SEALS, 4096, SLOT_TABLE_E_BAD},
    {ALL_SEALS, -4096, SLOT_TABLE_E_BAD},
    {ALL_SEALS, -1, SLOT_TABLE_E_BAD},
    {ALL_SEALS, INT64_MIN, SLOT_TABLE_E_BAD}, /* one byte long */
};

START_TEST(attach_checks_seals_and_size)
{
	struct layout_slot_table head;
	struct slot_table table;
	uint64_t bytes;
	int fd;

	good_head(&head);
	bytes = forgeries[_i].more_bytes == INT64_MIN ? 1 : head.bytes + forgeries[_i].more_bytes;
	fd = forged(&head, bytes, forgeries[_i].seals);
	ck_assert_int_eq(slot_table_attach(fd, &table), forgeries[_i].expected);
	close(fd);
}
END_TEST

START_TEST(attach_refuses_what_is_no_memfd)
{
	struct slot_table table;
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(slot_table_attach(fds[0], &table), SLOT_TABLE_E_BAD);
	ck_assert_int_eq(slot_table_attach(-1, &table), -EBADF);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(slots_are_reserved_one_by_one_also_after_the_seal)
{
	struct slot_geometry geometry = small();
	const uint8_t *slots;
	uint8_t *writer;
	struct slot_geometry other;
	int fd;

	ck_assert_int_eq(slot_table_plan(&geometry), 0);
	ck_assert_int_eq(slots_new(&geometry, &fd), 0);
	ck_assert_int_eq(slots_reserve(fd, &geometry, 0), 0);
	writer = mmap(NULL, geometry.slots_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(writer, MAP_FAILED);
	ck_assert_int_eq(slots_attach(fd, &geometry, &slots), SLOT_TABLE_E_BAD);
	ck_assert_int_eq(slots_seal(fd), 0);
	ck_assert_int_eq(slots_reserve(fd, &geometry, 3), 0);
	ck_assert_int_eq(slots_reserve(fd, &geometry, 4), -EINVAL);
	ck_assert_int_eq(slots_attach(fd, &geometry, &slots), 0);
	writer[3 * geometry.slot_stride] = 99;
	ck_assert_uint_eq(slots[3 * geometry.slot_stride], 99);
	slots_detach(&geometry, slots);
	other = geometry;
	other.slots_bytes += base_page_size();
	ck_assert_int_eq(slots_attach(fd, &other, &slots), SLOT_TABLE_E_BAD);
	munmap(writer, geometry.slots_bytes);
	close(fd);
}
END_TEST

/* Kilobytes of the mapping that are in huge pages. */
static unsigned long huge_kb_of(const void *map)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	unsigned long begin, end, kb = 0;
	bool here = false;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			here = begin == (unsigned long)(uintptr_t)map;
		if (here && sscanf(line, "ShmemPmdMapped: %lu", &kb) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kb;
}

static struct slot_geometry large(void)
{
	struct slot_geometry geometry = small();

	geometry.chunk = 1200;
	geometry.field[0].shape[0] = 100;
	geometry.field[0].sample_bytes = 0;
	ck_assert_int_eq(slot_table_plan(&geometry), 0);
	ck_assert_uint_ge(geometry.slot_stride, 1200 * 100 * 5 * 7 * 4);
	ck_assert_uint_eq(geometry.slot_stride % (2 << 20), 0);
	return geometry;
}

/* Whether a large slot gets huge pages is the kernel's affair. All of it is there in any case, also
 * when it was there before, with what was written to it, and nothing of its neighbours. */
START_TEST(large_slots_are_reserved_in_full)
{
	struct slot_geometry geometry = large();
	struct stat st;
	uint8_t *writer;
	void *map;
	int fd;

	ck_assert_int_eq(slots_new(&geometry, &fd), 0);
	ck_assert_int_eq(slots_map(fd, geometry.slots_bytes, &map), 0);
	writer = map;
	ck_assert_int_eq(slots_seal(fd), 0);
	for (uint64_t slots = 1; slots <= 2; slots++) {
		ck_assert_int_le(slots_reserve_huge(fd, &geometry, (uint32_t)slots), 0);
		ck_assert_int_eq(slots_reserve(fd, &geometry, (uint32_t)slots), 0);
		ck_assert_int_eq(fstat(fd, &st), 0);
		ck_assert_uint_eq((uint64_t)st.st_blocks * 512, slots * geometry.slot_stride);
	}
	for (uint64_t i = 0; i < geometry.slot_stride; i += 1000)
		ck_assert_uint_eq(writer[geometry.slot_stride + i], 0);
	writer[geometry.slot_stride + 12345] = 67;
	ck_assert_int_le(slots_reserve_huge(fd, &geometry, 1), 0);
	ck_assert_int_eq(slots_reserve(fd, &geometry, 1), 0);
	ck_assert_uint_eq(writer[geometry.slot_stride + 12345], 67);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq((uint64_t)st.st_blocks * 512, 2 * geometry.slot_stride);
	munmap(map, geometry.slots_bytes);
	close(fd);
}
END_TEST

/* A large slot goes into huge pages, if the kernel can: bytes, mappings and seals stay. */
START_TEST(large_slots_are_gathered)
{
	struct slot_geometry geometry = large();
	const uint8_t *slots;
	void *map;
	uint8_t *writer;
	int fd, r;

	ck_assert_int_eq(slots_new(&geometry, &fd), 0);
	ck_assert_int_eq(slots_map(fd, geometry.slots_bytes, &map), 0);
	writer = map;
	ck_assert_int_eq(slots_seal(fd), 0);
	ck_assert_int_eq(slots_reserve(fd, &geometry, 1), 0);
	for (uint64_t i = 0; i < geometry.slot_stride; i += 1000)
		writer[geometry.slot_stride + i] = (uint8_t)(i / 1000);
	r = slots_gather(fd, &geometry, 1);
	ck_assert_int_le(r, 0);
	ck_assert_int_eq(slots_gather(fd, &geometry, geometry.max_slots), -EINVAL);
	ck_assert_int_eq(slots_reserve_huge(fd, &geometry, geometry.max_slots), -EINVAL);
	ck_assert_int_eq(slots_attach(fd, &geometry, &slots), 0);
	ck_assert_uint_eq((uintptr_t)slots % (2 << 20), 0);
	for (uint64_t i = 0; i < geometry.slot_stride; i += 1000)
		if (slots[geometry.slot_stride + i] != (uint8_t)(i / 1000))
			ck_abort_msg("byte %lu has changed", (unsigned long)i);
	writer[geometry.slot_stride] = 77;
	ck_assert_uint_eq(slots[geometry.slot_stride], 77);
	if (r == 0)
		ck_assert_uint_eq(huge_kb_of(slots), geometry.slot_stride / 1024);
	slots_detach(&geometry, slots);
	munmap(writer, geometry.slots_bytes);
	close(fd);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, plan_lays_fields_out_one_after_the_other);
	tcase_add_loop_test(tcase, a_table_of_many_fields_says_another_version, 0,
			    LAYOUT_MAX_FIELDS - 2);
	tcase_add_loop_test(tcase, plan_refuses_lengths_that_are_none, 0,
			    BASE_ARRAY_LEN(ragged_edits));
	tcase_add_loop_test(tcase, plan_refuses_bad_numbers, 0, BASE_ARRAY_LEN(bad_edits));
	tcase_add_loop_test(tcase, plan_reports_overflow, 0, BASE_ARRAY_LEN(too_large));
	tcase_add_test(tcase, rank_sees_what_accessd_writes);
	tcase_add_test(tcase, numbers_of_slots_are_checked);
	tcase_add_loop_test(tcase, check_finds_broken_rules, 0, BASE_ARRAY_LEN(breaks));
	tcase_add_test(tcase, attach_refuses_each_changed_byte_that_matters);
	tcase_add_loop_test(tcase, attach_checks_seals_and_size, 0, BASE_ARRAY_LEN(forgeries));
	tcase_add_test(tcase, attach_refuses_what_is_no_memfd);
	tcase_add_test(tcase, slots_are_reserved_one_by_one_also_after_the_seal);
	tcase_add_test(tcase, large_slots_are_reserved_in_full);
	tcase_add_test(tcase, large_slots_are_gathered);
}

int main(void)
{
	return suite_run("slot table", add);
}

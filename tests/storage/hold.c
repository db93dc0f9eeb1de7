/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/patience.h"
#include "tests/storage/hold.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void hold_new(struct hold *hold, uint64_t limit)
{
	const char *parent = getenv("TMPDIR");

	memset(hold, 0, sizeof(*hold));
	snprintf(hold->path, sizeof(hold->path), "%.96s/store-XXXXXX", parent ? parent : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(hold->path));
	hold->fd = open(hold->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(hold->fd, 0);
	/* whatever the scratch folder lies on */
	hold->settings =
	    (struct store_settings){.folder_fd = hold->fd, .limit = limit, .force = true};
}

void hold_open(struct hold *hold)
{
	struct diag diag = {.text = ""};
	int r = store_open(&hold->settings, &hold->store, &diag);

	ck_assert_msg(r == 0, "store_open: %d: %s", r, diag.text);
}

void hold_close(struct hold *hold)
{
	store_close(hold->store);
	hold->store = NULL;
}

void hold_reopen(struct hold *hold)
{
	hold_close(hold);
	hold_open(hold);
}

void hold_remove(struct hold *hold)
{
	DIR *entries;
	struct dirent *entry;

	hold_close(hold);
	entries = opendir(hold->path);
	ck_assert_ptr_nonnull(entries);
	while ((entry = readdir(entries)))
		unlinkat(dirfd(entries), entry->d_name, 0);
	closedir(entries);
	base_close(&hold->fd);
	ck_assert_int_eq(rmdir(hold->path), 0);
}

/* ---- groups and values ---- */

struct hash_id hold_id(uint64_t number)
{
	struct hash_id id;

	hash_of(&number, sizeof(number), &id);
	return id;
}

struct store_group *hold_group(struct hold *hold, uint64_t number, uint64_t n_samples)
{
	const struct hash_id id = hold_id(number);
	struct store_group *group;
	char note[64];

	snprintf(note, sizeof(note), "{\"dataset\":\"/data/%lu\"}", (unsigned long)number);
	ck_assert_int_eq(store_group_open(hold->store, &id, note, n_samples, &group), 0);
	return group;
}

void hold_fill(uint64_t number, uint64_t sample, size_t size, uint8_t *ret)
{
	uint64_t word = number * UINT64_C(0x9e3779b97f4a7c15) + sample * 7919 + size + 1;

	for (size_t i = 0; i < size; i += sizeof(word)) {
		word ^= word << 13;
		word ^= word >> 7;
		word ^= word << 17;
		memcpy(ret + i, &word, BASE_MIN(size - i, sizeof(word)));
	}
}

bool hold_put(struct store_group *group, uint64_t number, uint64_t sample, size_t size)
{
	_cleanup_free_ uint8_t *value = malloc(size + 1);

	ck_assert_ptr_nonnull(value);
	hold_fill(number, sample, size, value);
	return store_put(group, sample, value, size);
}

bool hold_replace(struct store_group *group, uint64_t number, uint64_t sample, size_t size)
{
	_cleanup_free_ uint8_t *value = malloc(size + 1);

	ck_assert_ptr_nonnull(value);
	hold_fill(number, sample, size, value);
	return store_replace(group, sample, value, size);
}

int hold_get(struct store_group *group, uint64_t number, uint64_t sample, size_t size)
{
	static _Thread_local uint8_t is[HOLD_VALUE_MAX], should[HOLD_VALUE_MAX];
	size_t is_size = 0;
	int r = store_get(group, sample, is, sizeof(is), &is_size);

	if (r)
		return r;
	ck_assert(size == 0 || is_size == size);
	hold_fill(number, sample, is_size, should);
	ck_assert_msg(memcmp(is, should, is_size) == 0, "wrong bytes of sample %lu",
		      (unsigned long)sample);
	return 0;
}

uint32_t hold_table(const struct store_group *group, uint64_t sample)
{
	const size_t bytes = (sample + 1) * sizeof(struct counter_cell);
	struct counter_cell *table =
	    mmap(NULL, bytes, PROT_READ, MAP_SHARED, store_group_table(group), 0);
	uint32_t size;

	ck_assert_ptr_ne(table, MAP_FAILED);
	size = counter_cell_get(&table[sample]);
	munmap(table, bytes);
	return size;
}

/* ---- waiting ---- */

struct store_state hold_state(struct hold *hold)
{
	struct store_state state;

	store_state(hold->store, &state);
	return state;
}

void hold_until(bool (*is_so)(void *arg), void *arg)
{
	const struct timespec step = {.tv_nsec = 2000000};
	const uint64_t until = base_now_ns() + PATIENCE_NS;

	while (!is_so(arg)) {
		ck_assert_msg(base_now_ns() < until, "what a test waits for did not come");
		nanosleep(&step, NULL);
	}
}

static bool hold_is_settled(void *arg)
{
	return hold_state(arg).queue_values == 0;
}

void hold_settle(struct hold *hold)
{
	store_flush(hold->store);
	hold_until(hold_is_settled, hold);
}

/* ---- files ---- */

uint64_t hold_bytes(const struct hold *hold, const char *name)
{
	struct stat st;

	return fstatat(hold->fd, name, &st, 0) == 0 ? (uint64_t)st.st_size : 0;
}

void hold_scribble(const struct hold *hold, const char *name, uint64_t at, const void *data,
		   size_t size)
{
	_cleanup_close_ int fd = openat(hold->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, data, size, (off_t)at), (ssize_t)size);
}

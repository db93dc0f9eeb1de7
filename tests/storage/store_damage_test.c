/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Damage: whatever becomes of the files, a get never brings wrong bytes, and the store works again.
 *
 * Where LMDB may crash the store is used by a child, as access-reader is one of accessd: if that dies of a
 * signal, the next one is told that the store is suspect.
 */

#include "tests/storage/hold.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/philox.h"
#include "storage/store_parts.h"

#define LIMIT (4 << 20)
#define SAMPLES 120
#define DATA "cache.mdb"
#define LOCK "cache.mdb-lock"
#define ASIDE "cache.mdb-damaged"

static struct hold hold;
static struct philox_seq seq;
static uint8_t *pristine;
static size_t pristine_size;

static size_t size_of(uint64_t sample)
{
	return sample % 3 == 0 ? 50 + sample : 1000 * (sample % 7) + 3;
}

static void put_some(uint64_t number, uint64_t from)
{
	struct store_group *group = hold_group(&hold, number, SAMPLES);

	for (uint64_t i = from; i < SAMPLES; i++)
		hold_put(group, number, i, size_of(i));
	store_group_close(group);
}

static unsigned count_right(uint64_t number)
{
	struct store_group *group;
	unsigned right = 0;

	hold_settle(&hold);
	group = hold_group(&hold, number, SAMPLES);
	for (uint64_t i = 0; i < SAMPLES; i++)
		right += hold_get(group, number, i, size_of(i)) == 0;
	store_group_close(group);
	return right;
}

static void keep_pristine(void)
{
	_cleanup_close_ int fd = openat(hold.fd, DATA, O_RDONLY | O_CLOEXEC);
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	pristine_size = (size_t)st.st_size;
	pristine = malloc(pristine_size);
	ck_assert_ptr_nonnull(pristine);
	ck_assert_int_eq(pread(fd, pristine, pristine_size, 0), (ssize_t)pristine_size);
}

static void restore_pristine(void)
{
	unlinkat(hold.fd, DATA, 0);
	unlinkat(hold.fd, LOCK, 0);
	unlinkat(hold.fd, ASIDE, 0);
	hold_scribble(&hold, DATA, 0, pristine, pristine_size);
}

/* A small store with two groups, and a copy of its bytes. */
static void setup(void)
{
	hold_new(&hold, LIMIT);
	hold_open(&hold);
	philox_seq_init(&seq, 4, 5, 6);
	put_some(1, 0);
	put_some(2, 60);
	ck_assert_uint_eq(count_right(1), SAMPLES);
	hold_close(&hold);
	keep_pristine();
}

static void teardown(void)
{
	free(pristine);
	hold_remove(&hold);
}

/* ---- children ---- */

enum { WELL = 0, WELL_ANEW = 10, CRASHED = 11 };

static void child_use(bool is_suspect)
{
	struct store_checked checked;

	hold.settings.suspect = is_suspect;
	hold_open(&hold);
	count_right(1);
	count_right(2);
	store_verify(hold.store, NULL, &checked); /* fails where the environment does */
	put_some(1, 0);
	put_some(3, 0);
	count_right(1);
	count_right(3);
}

/* Has store used by a child: how it went. */
static int use(void (*fn)(bool is_suspect), bool is_suspect)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		for (size_t i = 0; i < BASE_ARRAY_LEN(signals); i++)
			signal(signals[i], SIG_DFL); /* no sanitizer's report */
		alarm(300);
		/* what LMDB says of itself before it aborts */
		ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
		fn(is_suspect);
		_exit(hold_state(&hold).set_aside > 0 ? WELL_ANEW : WELL);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	for (size_t i = 0; i < BASE_ARRAY_LEN(signals); i++) {
		if (WTERMSIG(status) == signals[i])
			return CRASHED;
	}
	ck_abort_msg("a child died of signal %d", WTERMSIG(status));
}

/* A child may crash; then the next one begins anew and does not. */
static int use_twice(void (*fn)(bool is_suspect))
{
	const int first = use(fn, false);

	ck_assert_msg(first == WELL || first == WELL_ANEW || first == CRASHED, "%d", first);
	if (first == CRASHED)
		ck_assert_int_eq(use(fn, true), WELL_ANEW);
	return first;
}

/* ---- bytes of the file ---- */

/* One to a few bytes in each page of the small file, one page at a time. */
START_TEST(test_flipped_bytes)
{
	const size_t pages = pristine_size / 4096;
	unsigned outcomes[CRASHED + 1] = {0};

	for (unsigned i = 0; i < 40; i++) {
		restore_pristine();
		for (uint64_t n = 1 + philox_below(&seq, 3); n > 0; n--) {
			const uint64_t head = philox_below(&seq, 2) ? 4096 : 64;
			const uint64_t at = i % pages * 4096 + philox_below(&seq, head);
			const uint8_t byte = pristine[at] ^ (uint8_t)(1 + philox_below(&seq, 255));

			hold_scribble(&hold, DATA, at, &byte, 1);
		}
		outcomes[use_twice(child_use)]++;
	}
	ck_assert_uint_gt(outcomes[WELL], 0);
}
END_TEST

START_TEST(test_pages_of_rubbish)
{
	uint8_t page[4096];

	for (unsigned i = 0; i < 20; i++) {
		restore_pristine();
		for (size_t n = 0; n < sizeof(page); n++)
			page[n] = i % 3 ? (uint8_t)philox_below(&seq, 256) : 0;
		hold_scribble(&hold, DATA, i % (pristine_size / 4096) * 4096, page, sizeof(page));
		use_twice(child_use);
	}
}
END_TEST

/* In the bytes of values nothing crashes, and nothing else is lost. */
START_TEST(test_flipped_values)
{
	const struct hash_id id = hold_id(1);
	struct store_group *group;
	struct store_checked checked;
	uint8_t value[HOLD_VALUE_MAX];
	uint64_t sample = 4; /* of 4003 bytes */
	uint8_t *at;

	hold_fill(1, sample, size_of(sample), value);
	at = memmem(pristine, pristine_size, value, size_of(sample));
	ck_assert_ptr_nonnull(at);
	hold_open(&hold);
	group = hold_group(&hold, 1, SAMPLES);
	ck_assert_int_eq(hold_get(group, 1, sample, size_of(sample)), 0);
	at[2000] ^= 1;
	hold_scribble(&hold, DATA, (uint64_t)(at - pristine) + 2000, at + 2000, 1);
	ck_assert_int_eq(hold_get(group, 1, sample, 0), STORE_E_DAMAGED);
	ck_assert_uint_eq(hold_table(group, sample), 0);
	ck_assert_int_eq(hold_get(group, 1, sample, 0), STORE_E_NONE);
	ck_assert_uint_eq(hold_state(&hold).damaged, 1);
	ck_assert(hold_put(group, 1, sample, size_of(sample))); /* it is made anew */
	hold_settle(&hold);
	ck_assert_int_eq(hold_get(group, 1, sample, size_of(sample)), 0);
	ck_assert_int_eq(store_verify(hold.store, NULL, &checked), 0);
	ck_assert_uint_eq(checked.damaged, 0);
	ck_assert_uint_eq(checked.values, SAMPLES + 60);
	store_group_close(group);
	ck_assert_uint_eq(count_right(1), SAMPLES);
	ck_assert_int_eq(store_drop(hold.store, &id), 0);
}
END_TEST

START_TEST(test_verify_finds_a_flipped_value)
{
	struct store_checked checked;
	uint8_t value[HOLD_VALUE_MAX];
	uint8_t *at;

	hold_fill(1, 6, size_of(6), value);
	at = memmem(pristine, pristine_size, value, size_of(6));
	ck_assert_ptr_nonnull(at);
	at[0] ^= 0x80;
	hold_scribble(&hold, DATA, (uint64_t)(at - pristine), at, 1);
	hold_open(&hold);
	ck_assert_int_eq(store_verify(hold.store, NULL, &checked), 0);
	ck_assert_uint_eq(checked.damaged, 1);
	ck_assert_uint_eq(checked.values, SAMPLES + 60 - 1);
	hold_settle(&hold);
	ck_assert_uint_eq(count_right(1), SAMPLES - 1);
	ck_assert_int_eq(store_verify(hold.store, NULL, &checked), 0);
	ck_assert_uint_eq(checked.damaged, 0);
}
END_TEST

/* ---- while it is open ---- */

static uint64_t zeroed_page;

static void zero_page(uint64_t page)
{
	static const uint8_t zeros[4096];

	hold_scribble(&hold, DATA, page * 4096, zeros, sizeof(zeros));
}

static void child_zeroed(bool is_suspect)
{
	struct store_group *group;

	hold.settings.suspect = is_suspect;
	hold_open(&hold);
	group = hold_group(&hold, 1, SAMPLES);
	if (!is_suspect)
		zero_page(zeroed_page);
	for (unsigned turn = 0; turn < 2; turn++) {
		for (uint64_t i = 0; i < SAMPLES; i++) {
			if (hold_get(group, 1, i, size_of(i)) != 0)
				hold_put(group, 1, i, size_of(i));
		}
		hold_settle(&hold);
	}
	ck_assert_int_ne(hold_state(&hold).mode, STORE_OFF);
	store_group_close(group);
}

START_TEST(test_pages_zeroed_while_it_is_open)
{
	unsigned outcomes[CRASHED + 1] = {0};

	for (zeroed_page = 2; zeroed_page < pristine_size / 4096; zeroed_page += 5) {
		restore_pristine();
		outcomes[use_twice(child_zeroed)]++;
	}
	for (zeroed_page = 2; zeroed_page < pristine_size / 4096 && outcomes[WELL_ANEW] == 0;
	     zeroed_page++) {
		restore_pristine();
		outcomes[use_twice(child_zeroed)]++;
	}
	ck_assert_uint_gt(outcomes[WELL_ANEW],
			  0); /* met, set aside, begun anew, all while it was open */
}
END_TEST

/* ---- damage that two meet ---- */

static _Thread_local bool is_late;
static atomic_bool late_waits, late_is_over;

int __real_store_lmdb_get(struct store_lmdb *db, enum store_lmdb_table table,
			  const struct store_lmdb_key *key, uint8_t *head, size_t head_size,
			  uint8_t *buffer, size_t room, size_t *ret_size);
int __wrap_store_lmdb_get(struct store_lmdb *db, enum store_lmdb_table table,
			  const struct store_lmdb_key *key, uint8_t *head, size_t head_size,
			  uint8_t *buffer, size_t room, size_t *ret_size);

static bool is_told(void)
{
	BASE_HOLD(&hold.store->lock);
	return hold.store->is_broken;
}

/* Who is late has seen damage, and goes on when the writer begins to see to it, which somebody else told of. A writer
 * that waits for all who are in there is not waited for. */
int __wrap_store_lmdb_get(struct store_lmdb *db, enum store_lmdb_table table,
			  const struct store_lmdb_key *key, uint8_t *head, size_t head_size,
			  uint8_t *buffer, size_t room, size_t *ret_size)
{
	const struct timespec step = {.tv_nsec = 1000000};
	const int r =
	    __real_store_lmdb_get(db, table, key, head, head_size, buffer, room, ret_size);
	bool was_told = false;

	if (!is_late || r != STORE_LMDB_E_DAMAGED)
		return r;
	late_waits = true;
	for (unsigned i = 0; i < 500 && !(was_told && !is_told()); i++) {
		was_told = was_told || is_told();
		nanosleep(&step, NULL);
	}
	return r;
}

static bool is_there(void *arg)
{
	(void)arg;
	return late_waits || late_is_over;
}

static bool takes_values(void *arg)
{
	struct store_group *group = arg;

	hold_put(group, 2, 0, 1000);
	store_flush(hold.store);
	return hold_get(group, 2, 0, 1000) == 0;
}

static void get_all(struct store_group *group)
{
	for (uint64_t i = 0; i < SAMPLES; i++)
		hold_get(group, 1, i, size_of(i));
}

static void *get_late(void *arg)
{
	is_late = true;
	get_all(arg);
	late_is_over = true;
	return NULL;
}

/* What was begun anew is not blamed for what somebody saw before. */
static void child_of_two(bool is_suspect)
{
	struct store_group *group, *other;
	pthread_t late;

	hold.settings.suspect = is_suspect;
	hold_open(&hold);
	group = hold_group(&hold, 1, SAMPLES);
	other = hold_group(&hold, 2, SAMPLES);
	if (!is_suspect)
		zero_page(zeroed_page);
	late_waits = late_is_over = false;
	ck_assert_int_eq(pthread_create(&late, NULL, get_late, group), 0);
	hold_until(is_there, NULL);
	get_all(group);
	ck_assert_int_eq(pthread_join(late, NULL), 0);
	hold_until(takes_values, other);
	ck_assert_uint_le(hold_state(&hold).set_aside, 1);
	store_group_close(group);
	store_group_close(other);
}

START_TEST(test_damage_that_two_meet)
{
	unsigned outcomes[CRASHED + 1] = {0};

	for (zeroed_page = 2; zeroed_page < pristine_size / 4096 && outcomes[WELL_ANEW] == 0;
	     zeroed_page++) {
		restore_pristine();
		outcomes[use_twice(child_of_two)]++;
	}
	ck_assert_uint_gt(outcomes[WELL_ANEW], 0);
}
END_TEST

/* ---- whole files ---- */

START_TEST(test_truncated)
{
	uint64_t anew = 0;
	static const int64_t cut[] = {0, 1, 100, 4095, 4096, 8191, 8192, 20480, -1, -4096, -40960};

	for (size_t i = 0; i < BASE_ARRAY_LEN(cut); i++) {
		const int64_t size = cut[i] >= 0 ? cut[i] : (int64_t)pristine_size + cut[i];
		int fd;

		restore_pristine();
		fd = openat(hold.fd, DATA, O_WRONLY | O_CLOEXEC);
		ck_assert_int_eq(ftruncate(fd, size), 0);
		close(fd);
		hold_open(&hold);
		if (size > 0 &&
		    hold_state(&hold).set_aside == 0) /* nothing was in the part cut off */
			ck_assert_uint_eq(count_right(1) + count_right(2), SAMPLES + 60);
		else
			ck_assert_uint_eq(hold_state(&hold).values, 0);
		anew += hold_state(&hold).set_aside;
		put_some(1, 0);
		ck_assert_uint_eq(count_right(1), SAMPLES);
		hold_close(&hold);
	}
	ck_assert_uint_ge(anew, 8);
}
END_TEST

/* More pages than the limit allows, than memory has addresses for, than numbers have room for: the head is
 * damaged, which is not said of the machine. */
START_TEST(test_head_of_too_many_pages)
{
	enum { LAST_PAGE = 136 }; /* in LMDB's heads, which are the first two pages */
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t last[] = {LIMIT / page, UINT64_C(1) << 24, UINT64_C(1) << 40,
				 UINT64_C(1) << 52, UINT64_MAX};

	for (size_t i = 0; i < BASE_ARRAY_LEN(last); i++) {
		restore_pristine();
		for (uint64_t head = 0; head < 2; head++)
			hold_scribble(&hold, DATA, (off_t)(head * page + LAST_PAGE), &last[i],
				      sizeof(last[i]));
		hold_open(&hold);
		ck_assert_uint_eq(hold_state(&hold).set_aside, 1);
		put_some(1, 0);
		ck_assert_uint_eq(count_right(1), SAMPLES);
		hold_close(&hold);
	}
}
END_TEST

START_TEST(test_lock_file)
{
	uint8_t rubbish[20000];

	for (size_t i = 0; i < sizeof(rubbish); i++)
		rubbish[i] = (uint8_t)philox_below(&seq, 256);
	for (unsigned i = 0; i < 4; i++) {
		if (i == 0)
			ck_assert_int_eq(unlinkat(hold.fd, LOCK, 0), 0);
		else
			hold_scribble(&hold, LOCK, 0, rubbish, i == 1 ? 10 : i == 2 ? 8192 : 20000);
		hold_open(&hold);
		ck_assert_uint_eq(hold_state(&hold).set_aside, 0);
		ck_assert_uint_eq(count_right(1), SAMPLES);
		hold_close(&hold);
	}
}
END_TEST

/* Puts a record into one of the tables with LMDB itself. */
static void put_raw(const char *table, const void *key, size_t key_size, const void *data,
		    size_t size)
{
	MDB_val name = {.mv_size = key_size, .mv_data = (void *)key};
	MDB_val value = {.mv_size = size, .mv_data = (void *)data};
	char path[200];
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;

	snprintf(path, sizeof(path), "%s/%s", hold.path, DATA);
	ck_assert_int_eq(mdb_env_create(&env), 0);
	ck_assert_int_eq(mdb_env_set_maxdbs(env, 4), 0);
	ck_assert_int_eq(mdb_env_open(env, path, MDB_NOSUBDIR, 0600), 0);
	ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
	ck_assert_int_eq(mdb_dbi_open(txn, table, MDB_CREATE, &dbi), 0);
	ck_assert_int_eq(mdb_put(txn, dbi, &name, &value, 0), 0);
	ck_assert_int_eq(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
}

START_TEST(test_another_format)
{
	static const char newer[16] = "OA!STOR1\2";

	put_raw("groups", "format", 6, newer, sizeof(newer));
	hold_open(&hold);
	ck_assert_uint_eq(hold_state(&hold).set_aside, 1);
	ck_assert_uint_eq(hold_bytes(&hold, ASIDE), BASE_MIN(pristine_size, LIMIT / 64 + 65536));
	put_some(1, 0);
	ck_assert_uint_eq(count_right(1), SAMPLES);
}
END_TEST

START_TEST(test_somebody_elses_environment)
{
	restore_pristine();
	unlinkat(hold.fd, DATA, 0);
	put_raw("accounts", "name", 4, "value", 5);
	hold_open(&hold);
	ck_assert_uint_eq(hold_state(&hold).set_aside, 1);
	ck_assert_uint_gt(hold_bytes(&hold, ASIDE), 0);
}
END_TEST

static void listed(void *arg, const struct store_listing *listing)
{
	const struct hash_id id = hold_id(1);
	const bool is_first = memcmp(&id, &listing->id, sizeof(id)) == 0;
	uint64_t bytes = 0;

	(void)arg;
	for (uint64_t i = is_first ? 0 : 60; i < SAMPLES; i++)
		bytes += size_of(i);
	ck_assert_uint_eq(listing->values, is_first ? SAMPLES : 60);
	ck_assert_uint_eq(listing->bytes, bytes);
}

/* No other group has to do with it; who opens it finds his values again. */
START_TEST(test_damaged_record_of_a_group)
{
	const struct hash_id id = hold_id(1);

	put_raw("groups", &id, sizeof(id), "no record", 9);
	hold_open(&hold);
	ck_assert_uint_eq(hold_state(&hold).damaged, 1);
	ck_assert_uint_eq(hold_state(&hold).set_aside, 0);
	ck_assert_uint_eq(count_right(2), 60);
	put_some(1, 0);
	ck_assert_uint_eq(count_right(1), SAMPLES); /* values have checksums of their own */
	hold_reopen(&hold);
	ck_assert_int_eq(store_list(hold.store, listed, NULL), 0);
	ck_assert_uint_eq(hold_state(&hold).damaged, 0);
	ck_assert_uint_eq(count_right(1), SAMPLES);
}
END_TEST

/* Puts values of group 1 with LMDB itself, until not even a small one finds room. */
static void fill_raw(void)
{
	static const size_t sizes[] = {200000, 3000, 20};
	static uint8_t bytes[200000];
	char path[200];
	MDB_env *env;
	int r = 0;

	snprintf(path, sizeof(path), "%s/%s", hold.path, DATA);
	ck_assert_int_eq(mdb_env_create(&env), 0);
	ck_assert_int_eq(mdb_env_set_maxdbs(env, 4), 0);
	ck_assert_int_eq(mdb_env_set_mapsize(env, (LIMIT - LIMIT / 64 - 65536) & ~4095), 0);
	ck_assert_int_eq(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOSYNC, 0600), 0);
	for (uint64_t i = 0, kind = 0; kind < BASE_ARRAY_LEN(sizes); i++) {
		uint8_t key[STORE_RECORD_KEY];
		const struct hash_id id = hold_id(1);
		MDB_val name = {sizeof(key), key}, value = {sizes[kind], bytes};
		MDB_txn *txn;
		MDB_dbi dbi;

		store_record_key(&id, 1000 + i, key);
		ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
		ck_assert_int_eq(mdb_dbi_open(txn, "values", 0, &dbi), 0);
		r = mdb_put(txn, dbi, &name, &value, 0);
		if (r)
			mdb_txn_abort(txn);
		else
			r = mdb_txn_commit(txn);
		kind += r != 0;
	}
	ck_assert_int_eq(r, MDB_MAP_FULL);
	mdb_env_close(env);
}

/* Nothing can be written, not even what deletes; the store finds a way out, if only by beginning anew. */
START_TEST(test_full_to_the_last_page)
{
	struct store_group *group;

	fill_raw();
	hold_open(&hold);
	group = hold_group(&hold, 2, SAMPLES);
	store_group_worth(group, 1000);
	hold_until(takes_values, group);
	ck_assert_uint_le(hold_state(&hold).set_aside, 1);
	ck_assert_uint_le(hold_bytes(&hold, DATA), LIMIT);
	store_group_close(group);
}
END_TEST

START_TEST(test_keys_of_nobody)
{
	struct store_checked checked;
	uint8_t key[40];

	memset(key, 7, sizeof(key));
	put_raw("values", key, sizeof(key), "12345678bytes", 13);
	hold_open(&hold);
	ck_assert_int_eq(store_verify(hold.store, NULL, &checked), 0);
	ck_assert_uint_eq(checked.damaged, 1);
	hold_settle(&hold);
	ck_assert_int_eq(store_verify(hold.store, NULL, &checked), 0);
	ck_assert_uint_eq(checked.damaged, 0);
	ck_assert_uint_eq(checked.values, SAMPLES + 60);
}
END_TEST

/* Suspect or damaged: there is one copy, of a bounded size, and nothing else is touched. */
START_TEST(test_set_aside)
{
	const uint64_t most = LIMIT / 64 + 65536 + 4096;

	hold_scribble(&hold, "notes.txt", 0, "mine", 4);
	hold_scribble(&hold, "data.mdb", 0, "mine", 4);
	hold.settings.suspect = true;
	for (unsigned i = 0; i < 3; i++) {
		hold_open(&hold);
		ck_assert_uint_eq(hold_state(&hold).set_aside, 1);
		ck_assert_uint_eq(hold_state(&hold).values, 0);
		for (uint64_t number = 1; number <= 3; number++) {
			put_some(number, 0);
			hold_settle(&hold);
		}
		hold_close(&hold);
		ck_assert_uint_gt(hold_bytes(&hold, ASIDE), 0);
		ck_assert_uint_le(hold_bytes(&hold, ASIDE), most);
	}
	ck_assert_uint_eq(hold_bytes(&hold, "notes.txt"), 4);
	ck_assert_uint_eq(hold_bytes(&hold, "data.mdb"), 4);
	hold.settings.suspect = false;
	hold_open(&hold);
	ck_assert_uint_eq(hold_state(&hold).set_aside, 0);
	ck_assert_uint_eq(count_right(3), SAMPLES);
}
END_TEST

/* ---- killed while it writes ---- */

/* What is there when it says so is dropped again, or replaced, by the same. */
static void write_for_ever(uint64_t number, bool replaces, int ready_fd)
{
	const struct hash_id id = hold_id(number);
	struct store_group *group;

	hold_open(&hold);
	for (bool is_ready = false;; is_ready = true) {
		bool (*put)(struct store_group *, uint64_t, uint64_t, size_t) =
		    is_ready && replaces ? hold_replace : hold_put;

		if (put == hold_put)
			store_drop(hold.store, &id);
		group = hold_group(&hold, number, SAMPLES);
		for (uint64_t i = 0; i < SAMPLES; i++) {
			put(group, number, i, size_of(i));
			if (i % 20 == 19)
				store_flush(hold.store);
			if (!is_ready && i + 1 == (replaces ? SAMPLES : 1)) {
				if (replaces)
					hold_settle(&hold);
				ck_assert_int_eq((int)write(ready_fd, "r", 1), 1);
			}
		}
		store_group_close(group);
	}
}

static void kill_while_it_writes(uint64_t number, bool replaces)
{
	struct timespec pause = {.tv_nsec = (long)philox_below(&seq, 5000000)};
	int ready[2], status;
	pid_t child;
	char c;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		write_for_ever(number, replaces, ready[1]);
	close(ready[1]);
	ck_assert_int_eq((int)read(ready[0], &c, 1), 1);
	close(ready[0]);
	nanosleep(&pause, NULL);
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Within so short a time that it is killed anywhere; some when all is there, however slow the disk is. */
START_TEST(test_killed_while_it_writes)
{
	for (unsigned i = 0; i < 200; i++) {
		kill_while_it_writes(3 + i % 3, i % 10 == 8);
		if (i % 10 != 9) /* some find what several killed ones left */
			continue;
		hold_open(&hold);
		ck_assert_uint_eq(hold_state(&hold).set_aside, 0);
		ck_assert_uint_eq(count_right(1), SAMPLES); /* as it was */
		for (unsigned number = 3; number < 6; number++) {
			const unsigned right = count_right(number);

			if (number == 3 + (i - 1) % 3)
				ck_assert_uint_gt(right, 0);
		}
		ck_assert_uint_eq(hold_state(&hold).damaged, 0);
		hold_close(&hold);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store_damage");
	TCase *damage = tcase_create("damage"), *two = tcase_create("two");
	TCase *killed = tcase_create("killed");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(damage, setup, teardown);
	tcase_add_test(damage, test_flipped_bytes);
	tcase_add_test(damage, test_pages_of_rubbish);
	tcase_add_test(damage, test_flipped_values);
	tcase_add_test(damage, test_verify_finds_a_flipped_value);
	tcase_add_test(damage, test_pages_zeroed_while_it_is_open);
	tcase_add_test(damage, test_truncated);
	tcase_add_test(damage, test_head_of_too_many_pages);
	tcase_add_test(damage, test_lock_file);
	tcase_add_test(damage, test_another_format);
	tcase_add_test(damage, test_somebody_elses_environment);
	tcase_add_test(damage, test_damaged_record_of_a_group);
	tcase_add_test(damage, test_keys_of_nobody);
	tcase_add_test(damage, test_set_aside);
	tcase_add_test(damage, test_full_to_the_last_page);
	suite_add_tcase(suite, damage);
	tcase_add_checked_fixture(two, setup, teardown);
	tcase_add_test(two, test_damage_that_two_meet);
	suite_add_tcase(suite, two);
	tcase_add_checked_fixture(killed, setup, teardown);
	tcase_add_test(killed, test_killed_while_it_writes);
	suite_add_tcase(suite, killed);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}

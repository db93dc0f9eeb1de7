/* SPDX-License-Identifier: Apache-2.0 */

/* Data sets in object stores: the note, names, and ranges that an access-bucket of this program's brings, or does not. */

#include "storage/source/source_bytes.h"

#include "storage/source/source_kind.h"
#include "tests/patience.h"
#include "tests/storage/bucket_fake.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 200
#define LARGE (2 * SOURCE_SLOT + 4321)

static struct tree tree;
static struct fake fake;

static void setup(void)
{
	tree_new(&tree);
	fake_tree(&tree);
}

static void teardown(void)
{
	tree_remove(&tree);
}

/* ---- the note ---- */

/* What is opened at that path below the tree. */
static int open_at(const char *below, struct reader_dataset *ret, struct diag *diag)
{
	static char path[4200];

	snprintf(path, sizeof(path), "%s/%s", tree.path, below);
	*ret = (struct reader_dataset){.path = path, .root_fd = -1, .stored_fd = -1};
	return source_open_root(ret, diag);
}

START_TEST(roots_of_a_data_set)
{
	static const struct {
		const char *path, *name, *is, *pattern;
	} cases[] = {
	    {"data", "a", "a", NULL},
	    {"data/", "sub/./a", "sub/a", NULL},
	    {"data/sub", "b", "sub/b", NULL},
	    {"data/sub", "../a", "a", NULL},
	    {"data/sub", "../../a", "", NULL},
	    {"data/sub", "/a", "", NULL},
	    {"data/one.bin", NULL, "one.bin", NULL},
	    {"data/sub/two.bin", NULL, "sub/two.bin", NULL},
	    {"data/sub/two.bin", "two.idx", "sub/two.idx", NULL},
	    {"link", NULL, "sub/two.bin", NULL},
	    {"data/data/x", NULL, "data/x", NULL},
	    {"data/{a,b}.tar", "a.tar", "a.tar", "{a,b}.tar"},
	    {"data/sub/{a,b}.tar", "a.tar", "sub/a.tar", "{a,b}.tar"},
	};
	struct diag diag = {.text = ""};
	struct reader_dataset dataset;
	char name[BUCKET_NAME_ROOM];
	struct stat st;
	uint8_t byte;

	tree_file(&tree, "data/one.bin", 10);
	tree_file(&tree, "data/sub/two.bin", 10);
	tree_file(&tree, "data/data/x", 10);
	tree_link(&tree, "data/sub/two.bin", "link");
	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		size_t length;

		ck_assert_msg(open_at(cases[i].path, &dataset, &diag) == 0, "%s", diag.text);
		ck_assert_ptr_nonnull(dataset.bucket);
		ck_assert_str_eq(dataset.bucket->folder, tree.path);
		ck_assert_str_eq(dataset.shown, FAKE_URL);
		length = source_bucket_name(dataset.bucket, cases[i].name, name);
		ck_assert_uint_eq(length, strlen(cases[i].is));
		ck_assert_str_eq(length ? name : "", cases[i].is);
		ck_assert_int_eq(fstat(dataset.root_fd, &st), 0);
		ck_assert_int_eq(S_ISDIR(st.st_mode), dataset.is_folder);
		if (!dataset.is_folder) {
			ck_assert_int_lt(pread(dataset.root_fd, &byte, 1, 0), 0);
			ck_assert_int_eq(errno, EBADF);
		}
		source_close(&dataset);
	}
}
END_TEST

/* A signature is in no log; and two URLs that differ there are two data sets. */
START_TEST(signatures_are_not_shown)
{
	static const struct {
		const char *url, *path, *shown;
	} cases[] = {
	    {"https://h/one.bin?X-Amz-Signature=1", "data/one.bin", "https://h/one.bin"},
	    {"https://h/one.bin?X-Amz-Signature=2", "data/one.bin?dtype=u8",
	     "https://h/one.bin#dtype=u8"},
	    {"s3://b/one.bin", "data/one.bin?dtype=u8", "s3://b/one.bin?dtype=u8"},
	};
	uint64_t seen[BASE_ARRAY_LEN(cases)];
	struct diag diag = {.text = ""};

	tree_file(&tree, "data/one.bin", 10);
	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		const struct bucket_note note = {.magic = BUCKET_MAGIC,
						 .url_bytes = (uint32_t)strlen(cases[i].url)};
		int fd = openat(tree.fd, BUCKET_NOTE, O_WRONLY | O_TRUNC | O_CLOEXEC);
		struct reader_dataset dataset;

		ck_assert_int_eq(base_write_at(fd, &note, sizeof(note), 0), 0);
		ck_assert_int_eq(base_write_at(fd, cases[i].url, note.url_bytes, sizeof(note)), 0);
		close(fd);
		ck_assert_msg(open_at(cases[i].path, &dataset, &diag) == 0, "%s", diag.text);
		ck_assert_str_eq(dataset.shown, cases[i].shown);
		seen[i] = dataset.root.inode;
		ck_assert(i == 0 || seen[i] != seen[i - 1]);
		source_close(&dataset);
	}
}
END_TEST

START_TEST(other_folders_are_none)
{
	static const char *const paths[] = {"real", "other", "other/data", "database"};
	struct diag diag = {.text = ""};
	struct reader_dataset dataset;

	tree_folder(&tree, "other/data");
	tree_folder(&tree, "database");
	for (size_t i = 0; i < BASE_ARRAY_LEN(paths); i++) {
		ck_assert_int_eq(open_at(paths[i], &dataset, &diag), 0);
		ck_assert_ptr_null(dataset.bucket);
		source_close(&dataset);
	}
}
END_TEST

START_TEST(names_as_long_as_may_be)
{
	struct bucket bucket = {.below = (char[]){"sub/"}};
	char name[1200], ret[BUCKET_NAME_ROOM];

	memset(name, 'x', sizeof(name));
	name[BUCKET_MOST_NAME - 4] = '\0';
	ck_assert_uint_eq(source_bucket_name(&bucket, name, ret), BUCKET_MOST_NAME);
	ck_assert_uint_eq(strlen(ret), BUCKET_MOST_NAME);
	name[BUCKET_MOST_NAME - 4] = 'x';
	name[BUCKET_MOST_NAME - 3] = '\0';
	ck_assert_uint_eq(source_bucket_name(&bucket, name, ret), 0);
	ck_assert_uint_eq(source_bucket_name(&bucket, "..", ret), 0);
	ck_assert_uint_eq(source_bucket_name(&bucket, NULL, ret), 0);
}
END_TEST

static void lie_magic(struct bucket_note *note)
{
	note->magic++;
}
static void lie_none(struct bucket_note *note)
{
	note->url_bytes = 0;
}
static void lie_long(struct bucket_note *note)
{
	note->url_bytes++;
}
static void lie_short(struct bucket_note *note)
{
	note->url_bytes = 2;
}
static void lie_longer(struct bucket_note *note)
{
	note->url_bytes = UINT32_MAX;
}
static void lie_reserved(struct bucket_note *note)
{
	note->reserved1[5] = 1;
}
static void (*const lies[])(struct bucket_note *note) = {lie_magic, lie_none,   lie_long,
							 lie_short, lie_longer, lie_reserved};

START_TEST(a_false_note_is_refused)
{
	struct diag diag = {.text = ""};
	struct reader_dataset dataset;
	struct bucket_note note;
	int fd = openat(tree.fd, BUCKET_NOTE, O_RDWR | O_CLOEXEC);

	ck_assert_int_eq(base_read_at(fd, &note, sizeof(note), 0), 0);
	lies[_i](&note);
	ck_assert_int_eq(base_write_at(fd, &note, sizeof(note), 0), 0);
	close(fd);
	ck_assert_int_eq(open_at("data", &dataset, &diag), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "damaged"));
	source_close(&dataset);
}
END_TEST

START_TEST(a_note_is_the_users_own)
{
	struct diag diag = {.text = ""};
	struct reader_dataset dataset;

	ck_assert_int_eq(fchmodat(tree.fd, BUCKET_NOTE, 0620, 0), 0);
	ck_assert_int_eq(open_at("data", &dataset, &diag), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "others may write"));
	source_close(&dataset);
	ck_assert_int_eq(fchmodat(tree.fd, BUCKET_NOTE, 0600, 0), 0);
	ck_assert_int_eq(fchmod(tree.fd, 0770), 0);
	ck_assert_int_eq(open_at("data", &dataset, &diag), DATASET_E_REFUSED);
	source_close(&dataset);
	ck_assert_int_eq(fchmod(tree.fd, 0700), 0);
	ck_assert_int_eq(renameat(tree.fd, BUCKET_NOTE, tree.fd, "other"), 0);
	tree_link(&tree, "other", BUCKET_NOTE);
	ck_assert_int_eq(open_at("data", &dataset, &diag), DATASET_E_REFUSED);
	source_close(&dataset);
}
END_TEST

START_TEST(it_is_its_users_alone)
{
	struct diag diag = {.text = ""};
	struct reader_dataset dataset;

	ck_assert_int_eq(open_at("data", &dataset, &diag), 0);
	dataset.how = READER_HOW_OPEN_ONLY;
	ck_assert_int_eq(source_probe(&dataset, NULL, &diag), DATASET_E_CLOSED);
	dataset.how = READER_HOW_NAMED;
	ck_assert_int_eq(source_probe(&dataset, NULL, &diag), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, FAKE_URL));
	ck_assert_ptr_nonnull(strstr(diag.text, "credentials"));
	source_close(&dataset);
}
END_TEST

/* ---- ranges ---- */

static struct reader_dataset dataset;

static void setup_ranges(void)
{
	struct diag diag;
	char name[64];

	setup();
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "real/%u", i);
		tree_file(&tree, name, 1 + i * 37);
	}
	tree_file(&tree, "real/large", LARGE);
	fake_list(&tree);
	fake_start(&fake, &tree);
	ck_assert_int_eq(open_at("data", &dataset, &diag), 0);
	source_bucket_want(dataset.bucket, true);
}

static void teardown_ranges(void)
{
	source_close(&dataset);
	fake_stop(&fake);
	teardown();
}

struct wanted {
	unsigned next, came, good, pauses;
	int result[FILES];
	unsigned file[SOURCE_SLOTS];
	char name[FILES][8];
	uint8_t bytes[FILES][8192];
	char why[SOURCE_WHY];
};

static bool next(void *arg, unsigned number, struct source_range *ret)
{
	struct wanted *all = arg;
	const unsigned i = all->next;
	struct stat st;

	if (i == FILES)
		return false;
	all->file[number] = i;
	all->next++;
	snprintf(all->name[i], sizeof(all->name[i]), "%u", i);
	ck_assert_int_eq(fstatat(dataset.root_fd, all->name[i], &st, 0), 0);
	*ret = (struct source_range){.name = all->name[i],
				     .size = (uint64_t)st.st_size,
				     .mtime_ns = st.st_mtim.tv_sec * INT64_C(1000000000) +
						 st.st_mtim.tv_nsec,
				     .at = i / 2,
				     .bytes = (uint32_t)st.st_size - i / 2,
				     .to = all->bytes[i]};
	return true;
}

static void came(void *arg, unsigned number, int result, const char *why)
{
	struct wanted *all = arg;
	const unsigned i = all->file[number];
	char path[64];

	snprintf(path, sizeof(path), "real/%u", i);
	all->came++;
	all->good += result == 0;
	all->result[i] = result;
	if (result)
		snprintf(all->why, sizeof(all->why), "%s", why);
	for (uint32_t k = 0; !result && k < 1 + i * 37 - i / 2; k++)
		if (all->bytes[i][k] != tree_byte(path, i / 2 + k))
			ck_abort_msg("%s: byte %u", path, k);
}

static void paused(void *arg)
{
	((struct wanted *)arg)->pauses++;
}

static struct wanted *fetch_all(void)
{
	static struct wanted all;
	const struct source_fetch fetch = {next, came, paused, &all};

	memset(&all, 0, sizeof(all));
	source_fetch(dataset.bucket, &fetch);
	ck_assert_uint_eq(all.came, FILES);
	return &all;
}

START_TEST(ranges_come)
{
	static const enum fake_act acts[] = {FAKE_GOOD,         FAKE_BACKWARDS, FAKE_WRONG_ID,
					     FAKE_WRONG_STATUS, FAKE_TWICE,     FAKE_SHORT,
					     FAKE_CLOSE,        FAKE_HALF_CLOSE};
	struct fake counts;

	for (unsigned i = 0; i < 2; i++) { /* the next one has the same connection */
		fake_says(&fake, acts[_i], "");
		ck_assert_uint_eq(fetch_all()->good, FILES);
	}
	counts = fake_counts(&fake);
	ck_assert_uint_eq(counts.most, SOURCE_SLOTS);
	ck_assert_uint_eq(counts.connections, acts[_i] > FAKE_BACKWARDS ? 3 : 1);
}
END_TEST

START_TEST(one_is_not_good)
{
	static const struct {
		enum fake_act act;
		int result;
		const char *why;
	} cases[] = {{FAKE_CHANGED, SOURCE_E_CHANGED, ""},
		     {FAKE_DENIED, -EACCES, FAKE_TEXT},
		     {FAKE_FAILED, -EREMOTEIO, "the store says HTTP 503"}};
	const struct wanted *all;

	fake_says(&fake, cases[_i].act, "77");
	all = fetch_all();
	ck_assert_uint_eq(all->good, FILES - 1);
	ck_assert_int_eq(all->result[77], cases[_i].result);
	ck_assert_str_eq(all->why, cases[_i].why);
	ck_assert_uint_eq(fake_counts(&fake).connections, 1);
}
END_TEST

/* What is not what was listed is so by its size or time. */
START_TEST(one_has_changed)
{
	const struct wanted *all;

	tree_mtime(&tree, "real/11", 1000, 5);
	tree_file(&tree, "real/12", 3);
	ck_assert_int_eq(unlinkat(tree.fd, "real/13", 0), 0);
	all = fetch_all();
	ck_assert_uint_eq(all->good, FILES - 3);
	for (unsigned i = 11; i <= 13; i++)
		ck_assert_int_eq(all->result[i], SOURCE_E_CHANGED);
}
END_TEST

START_TEST(nothing_comes)
{
	static const enum fake_act acts[] = {FAKE_NEVER, FAKE_CLOSE_ALWAYS, FAKE_WRONG_ALWAYS};
	const struct wanted *all;

	dataset.bucket->patience_ms = 200;
	fake_says(&fake, acts[_i], "");
	all = fetch_all();
	ck_assert_uint_eq(all->good, 0);
	ck_assert_int_eq(all->result[0], acts[_i] == FAKE_NEVER ? -ETIMEDOUT : -EREMOTEIO);
	fake_says(&fake, FAKE_GOOD, "");
	ck_assert_uint_eq(fetch_all()->good, FILES);
}
END_TEST

START_TEST(nobody_is_there)
{
	const struct wanted *all;

	fake_stop(&fake);
	dataset.bucket->wait_ns = 200000000;
	all = fetch_all();
	ck_assert_uint_eq(all->good, 0);
	ck_assert_str_eq(all->why, "access-bucket is gone");
	fake_start(&fake, &tree);
	ck_assert_uint_eq(fetch_all()->good, FILES);
}
END_TEST

/* Of a queue that leaves meanwhile, or an opening that is cancelled. */
static bool cancelled(void *arg)
{
	return ++*(unsigned *)arg > 2;
}

START_TEST(nobody_waits)
{
	unsigned asked = 0;
	const struct scan_progress progress = {.cancelled = cancelled, .arg = &asked};

	fake_says(&fake, FAKE_NEVER, "");
	source_bucket_opening(dataset.bucket, &progress);
	ck_assert_int_eq(fetch_all()->result[FILES - 1], -ECANCELED);
	source_bucket_opening(dataset.bucket, NULL);
	fake_stop(&fake);
	source_bucket_want(dataset.bucket, false);
	ck_assert_int_eq(fetch_all()->result[0], -ECANCELED);
	fake_start(&fake, &tree);
}
END_TEST

static void *start_again(void *arg)
{
	(void)arg;
	usleep(300000);
	fake_start(&fake, &tree);
	return NULL;
}

START_TEST(another_one_is_started)
{
	pthread_t thread;

	ck_assert_uint_eq(fetch_all()->good, FILES);
	fake_says(&fake, FAKE_CLOSE, "");
	fake_stop(&fake);
	ck_assert_int_eq(pthread_create(&thread, NULL, start_again, NULL), 0);
	ck_assert_uint_eq(fetch_all()->good, FILES);
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(pieces_of_a_file)
{
	struct source_from from = {.dataset = &dataset, .name = "large"};
	uint8_t *bytes = malloc(LARGE), head[100];
	int fd;

	fake_says(&fake, FAKE_BACKWARDS, "");
	from.fd = source_open_file(&dataset, dataset.root_fd, "large");
	ck_assert_int_ge(from.fd, 0);
	ck_assert_int_eq(source_read(&from, bytes, LARGE, 0), 0);
	ck_assert_uint_eq(fake_counts(&fake).most, 3);
	for (uint32_t i = 0; i < LARGE; i++)
		if (bytes[i] != tree_byte("real/large", i))
			ck_abort_msg("byte %u", i);
	ck_assert_int_eq(source_read(&from, bytes, 10, LARGE - 10), 0);
	ck_assert_uint_eq(bytes[9], tree_byte("real/large", LARGE - 1));
	ck_assert_int_eq(source_read(&from, bytes, 11, LARGE - 10), -ENODATA);
	ck_assert_int_eq(source_read(&from, bytes, 0, 0), 0);
	ck_assert_int_eq(source_read_begin(&from, head, sizeof(head)), sizeof(head));
	fd = source_read_all(&from);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(base_read_at(fd, bytes, LARGE, 0), 0);
	ck_assert_uint_eq(bytes[LARGE - 1], tree_byte("real/large", LARGE - 1));
	close(fd);
	tree_mtime(&tree, "real/large", 1, 1);
	ck_assert_int_eq(source_read(&from, bytes, 1, 0), -ESTALE);
	ck_assert_int_eq(source_read_begin(&from, head, sizeof(head)), -ESTALE);
	close(from.fd);
	free(bytes);
}
END_TEST

/* Several threads have connections of their own, and leave them to those that come later. */
static void *fetch_some(void *arg)
{
	struct source_from from = {.dataset = &dataset, .name = arg};
	uint8_t bytes[8192];

	from.fd = source_open_file(&dataset, dataset.root_fd, arg);
	for (unsigned i = 0; i < 50; i++)
		ck_assert_int_eq(source_read(&from, bytes, 100, i), 0);
	close(from.fd);
	return NULL;
}

START_TEST(threads_share_connections)
{
	static char names[4][8] = {"50", "60", "70", "80"};
	pthread_t thread[4];

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 4; i++)
			ck_assert_int_eq(pthread_create(&thread[i], NULL, fetch_some, names[i]), 0);
		for (unsigned i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
	}
	ck_assert_uint_le(fake_counts(&fake).connections, 4);
}
END_TEST

static Suite *bucket_suite(void)
{
	Suite *suite = suite_create("bucket");
	TCase *note = tcase_create("note"), *ranges = tcase_create("ranges");

	tcase_set_timeout(note, PATIENCE_S);
	tcase_set_timeout(ranges, PATIENCE_S);
	tcase_add_checked_fixture(note, setup, teardown);
	tcase_add_test(note, roots_of_a_data_set);
	tcase_add_test(note, signatures_are_not_shown);
	tcase_add_test(note, other_folders_are_none);
	tcase_add_test(note, names_as_long_as_may_be);
	tcase_add_loop_test(note, a_false_note_is_refused, 0, BASE_ARRAY_LEN(lies));
	tcase_add_test(note, a_note_is_the_users_own);
	tcase_add_test(note, it_is_its_users_alone);
	suite_add_tcase(suite, note);
	tcase_add_checked_fixture(ranges, setup_ranges, teardown_ranges);
	tcase_add_loop_test(ranges, ranges_come, 0, 8);
	tcase_add_loop_test(ranges, one_is_not_good, 0, 3);
	tcase_add_test(ranges, one_has_changed);
	tcase_add_loop_test(ranges, nothing_comes, 0, 3);
	tcase_add_test(ranges, nobody_is_there);
	tcase_add_test(ranges, nobody_waits);
	tcase_add_test(ranges, another_one_is_started);
	tcase_add_test(ranges, pieces_of_a_file);
	tcase_add_test(ranges, threads_share_connections);
	suite_add_tcase(suite, ranges);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(bucket_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Converted data sets behind a real accessd, against the folder that they were made of: the same
 * samples, labels, classes, pixels and outcomes, whatever the form and however broken the pictures are;
 * copies are the same data set; jobs go on after a kill; changes of the file are told.
 */

#include "storage/oads.h"
#include "tests/scenarios/runs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DAMAGED 24

static const char *const forms[] = {"file", "indexed", "packed"};

static const char *from_tree(const char *path)
{
	static char whole[2 * PATH_MAX];
	const char *top = getenv("top_srcdir");

	snprintf(whole, sizeof(whole), "%s/%s", top ? top : ".", path);
	return whole;
}

static size_t load(const char *path, uint8_t *ret, size_t size)
{
	FILE *file = fopen(path, "rb");

	ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
	size = fread(ret, 1, size, file);
	fclose(file);
	return size;
}

static void store(const char *path, const uint8_t *data, size_t size)
{
	FILE *file = fopen(path, "wb");

	ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
	ck_assert_uint_eq(fwrite(data, 1, size, file), size);
	ck_assert_int_eq(fclose(file), 0);
}

/* The photograph, cut and with other bytes in its head and scan. */
static void make_damaged(const char *folder)
{
	static uint8_t good[1 << 20], bad[1 << 20];
	const size_t size = load(from_tree("tests/worker/photo.jpg"), good, sizeof(good));

	ck_assert_int_eq(mkdir(rig_path("%s", folder), 0755), 0);
	for (unsigned i = 0; i < DAMAGED; i++) {
		const size_t at = size * (i + 1) / (DAMAGED + 1);

		memcpy(bad, good, size);
		bad[at] ^= (uint8_t)(1 << i % 8);
		store(rig_path("%s/flip%02u.jpg", folder, i), bad, size);
		store(rig_path("%s/cut%02u.jpg", folder, i), good, at);
	}
	store(rig_path("%s/empty.jpg", folder), good, 0);
	store(rig_path("%s/whole.jpg", folder), good, size);
}

/* Pictures of each format, under names that say nothing of it. */
static void make_formats(const char *folder, const char *from)
{
	static uint8_t data[1 << 20];
	DIR *dir = opendir(from_tree(from));
	struct dirent *entry;

	ck_assert_ptr_nonnull(dir);
	ck_assert_int_eq(mkdir(rig_path("%s", folder), 0755), 0);
	while ((entry = readdir(dir))) {
		char path[PATH_MAX];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", from, entry->d_name);
		store(rig_path("%s/%s.jpg", folder, entry->d_name), data,
		      load(from_tree(path), data, sizeof(data)));
	}
	closedir(dir);
}

static void make_dataset(void)
{
	if (mkdir(rig_path("all"), 0755) < 0)
		return; /* made by an earlier test */
	make_damaged("all/damaged");
	make_formats("all/exif", "tests/pipeline/exif");
	make_formats("all/formats", "tests/pipeline/formats");
	make_formats("all/jpegs", "tests/pipeline/data");
	ck_assert_int_eq(rig_write_cmyk(rig_path("all/damaged/cmyk.jpg")), 0);
	ck_assert_int_eq(rig_write_bomb(rig_path("all/damaged/bomb.jpg")), 0);
	ck_assert_int_eq(symlink(rig_path("all/damaged/whole.jpg"), rig_path("all/exif/link.jpg")),
			 0);
}

/* Its exit status. */
static int convert(const char *form, const char *source, const char *target)
{
	const char *build = getenv("top_builddir");
	char command[3 * PATH_MAX];
	int status;

	snprintf(command, sizeof(command),
		 "%s/tools/access-ctl convert --form %s --jobs 2 '%s' '%s' >/dev/null",
		 build ? build : ".", form, source, target);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static struct oa_options options_of(const char *dataset)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_SEQUENTIAL, 7, 9);

	options.bad = OA_BAD_SKIP;
	options.bad_budget = 1000;
	return options;
}

/* ---- the same as the folder ---- */

static void assert_same_description(const char *one, const char *two)
{
	struct oa_client *client = rig_connect();
	struct oa_dataset *a, *b;

	ck_assert_int_eq(oa_dataset_open(client, one, PATIENCE_MS, &a, NULL), 0);
	ck_assert_int_eq(oa_dataset_open(client, two, PATIENCE_MS, &b, NULL), 0);
	ck_assert_uint_eq(oa_dataset_count(a), oa_dataset_count(b));
	ck_assert_uint_eq(oa_dataset_classes(a), oa_dataset_classes(b));
	for (uint32_t i = 0; i < oa_dataset_classes(a); i++)
		ck_assert_str_eq(oa_dataset_class_name(a, i), oa_dataset_class_name(b, i));
	for (uint64_t i = 0; i < oa_dataset_count(a); i++)
		ck_assert_uint_eq(oa_dataset_label(a, i), oa_dataset_label(b, i));
	oa_dataset_close(a);
	oa_dataset_close(b);
	oa_disconnect(client);
}

/* Some samples have a form and some have not. */
static void assert_formed(const char *path, bool is_formed)
{
	struct oads_head head;

	ck_assert_uint_eq(load(path, (uint8_t *)&head, sizeof(head)), sizeof(head));
	ck_assert_uint_lt(head.n_formed, head.n_samples);
	ck_assert(is_formed == (head.n_formed > 0));
}

START_TEST(every_form_gives_the_folder)
{
	const char *folder, *target;
	struct oa_options of_folder, of_form;

	make_dataset();
	folder = strdup(rig_path("all"));
	target = strdup(rig_path("%s.oads", forms[_i]));
	ck_assert_int_eq(convert(forms[_i], folder, target), 0);
	assert_formed(target, _i > 0);
	rig_start("workers=2", NULL);
	of_folder = options_of(folder);
	of_form = options_of(target);
	runs_assert_same(runs_digest(&of_folder), runs_digest(&of_form));
	ck_assert_double_gt(rig_status("node.bad_samples"), 2 * DAMAGED / 2);
	ck_assert_double_eq(rig_status("node.worker_restarts"), 0);
	assert_same_description(folder, target);
	rig_end();
	free((void *)(uintptr_t)folder);
	free((void *)(uintptr_t)target);
}
END_TEST

START_TEST(copies_are_one_data_set)
{
	static uint8_t data[8 << 20];
	const char *folder = runs_photos("photos");
	char one[PATH_MAX], two[PATH_MAX];
	struct oa_options a, b;
	size_t size;

	snprintf(one, sizeof(one), "%s", rig_path("one.oads"));
	snprintf(two, sizeof(two), "%s", rig_path("two.oads"));
	ck_assert_int_eq(convert("packed", folder, one), 0);
	ck_assert_int_eq(convert("packed", folder, one), 1); /* it is there */
	size = load(one, data, sizeof(data));
	ck_assert_uint_lt(size, sizeof(data));
	store(two, data, size);
	rig_start("workers=2", NULL);
	a = runs_options(one, OA_ORDER_SEEDED, 3, 8);
	b = runs_options(two, OA_ORDER_SEEDED, 3, 5);
	runs_assert_same(runs_digest(&a), runs_digest(&b));
	rig_end();
}
END_TEST

/* ---- what happens to jobs ---- */

/* accessd and all it started are killed in the middle; another one goes on from the token, with a copy. */
START_TEST(jobs_go_on_after_a_kill)
{
	const char *folder = runs_photos("photos");
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_options options;
	struct hash_id whole, parts;
	struct oa_batch *batch;
	struct hash *hash;
	char target[PATH_MAX], copy[PATH_MAX];
	size_t size;

	snprintf(target, sizeof(target), "%s", rig_path("kill.oads"));
	snprintf(copy, sizeof(copy), "%s", rig_path("copy.oads"));
	ck_assert_int_eq(convert("indexed", folder, target), 0);
	rig_start("workers=1", "chunk=6", NULL);
	options = runs_options(target, OA_ORDER_SEEDED, 11, 4);
	whole = runs_digest(&options);
	client = rig_connect();
	stream = rig_open(client, &options);
	ck_assert_int_eq(hash_new(&hash), 0);
	for (unsigned i = 0; i < 5; i++) {
		batch = runs_next(stream);
		runs_digest_batch(hash, batch);
		oa_release(batch);
	}
	options.token = runs_token(stream, &size);
	options.token_size = size;
	oa_close(stream);
	oa_disconnect(client);
	runs_kill_and_restart();
	ck_assert_int_eq(rename(target, copy), 0);
	options.dataset = copy;
	client = rig_connect();
	stream = rig_open(client, &options);
	runs_digest_rest(hash, stream);
	hash_finish(hash, &parts);
	hash_free(hash);
	runs_assert_same(whole, parts);
	oa_close(stream);
	oa_disconnect(client);
	free((void *)(uintptr_t)options.token);
	rig_end();
}
END_TEST

/* Something in the middle of the samples. */
static void damage(const char *path)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;
	uint8_t byte;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(pread(fd, &byte, 1, st.st_size / 2), 1);
	byte ^= 1;
	ck_assert_int_eq(pwrite(fd, &byte, 1, st.st_size / 2), 1);
	close(fd);
}

START_TEST(damage_is_one_bad_sample)
{
	const char *folder = runs_photos("photos");
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_options options;
	struct oa_batch *batch = NULL;
	char target[PATH_MAX];
	int r;

	snprintf(target, sizeof(target), "%s", rig_path("damage.oads"));
	ck_assert_int_eq(convert("packed", folder, target), 0);
	damage(target);
	rig_start("workers=1", NULL);
	options = runs_options(target, OA_ORDER_SEQUENTIAL, 1, 8);
	client = rig_connect();
	stream = rig_open(client, &options);
	while ((r = oa_next(stream, PATIENCE_MS, &batch)) == 0)
		oa_release(batch);
	ck_assert_int_eq(r, OA_E_SAMPLE);
	ck_assert_msg(strstr(oa_error_text(stream), "checksum") &&
			  strstr(oa_error_text(stream), "damage.oads") &&
			  strstr(oa_error_text(stream), "class/00"),
		      "%s", oa_error_text(stream));
	oa_close(stream);
	oa_disconnect(client);
	options.bad = OA_BAD_SKIP;
	runs_digest(&options);
	ck_assert_double_eq(rig_status("node.worker_restarts"), 0);
	rig_end();
}
END_TEST

static void touch_it(const char *path)
{
	ck_assert_int_eq(utimensat(AT_FDCWD, path, (struct timespec[2]){{1, 0}, {1, 0}}, 0), 0);
}
static void cut_it(const char *path)
{
	ck_assert_int_eq(truncate(path, 8192), 0);
}
static void (*const changes[])(const char *path) = {touch_it, damage, cut_it};

/* Whatever is done with bad samples: it is the dataset that changed, not one of them. */
START_TEST(a_change_is_told)
{
	const int how = _i % (int)BASE_ARRAY_LEN(changes);
	const char *folder = runs_photos("photos");
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_options options;
	struct oa_batch *batch = NULL;
	char target[PATH_MAX];
	int r;

	snprintf(target, sizeof(target), "%s", rig_path("change%d.oads", _i));
	ck_assert_int_eq(convert("file", folder, target), 0);
	rig_start("workers=1", "chunk=4", "slots=4", NULL);
	options = runs_options(target, OA_ORDER_SEQUENTIAL, 1, 4);
	options.epochs = 0;
	if (_i != how) {
		options.bad = OA_BAD_SKIP;
		options.bad_budget = INT32_MAX;
	}
	client = rig_connect();
	stream = rig_open(client, &options);
	batch = runs_next(stream);
	changes[how](target);
	oa_release(batch);
	while ((r = oa_next(stream, PATIENCE_MS, &batch)) == 0)
		oa_release(batch);
	ck_assert_int_eq(r, OA_E_DATASET);
	ck_assert_msg(strstr(oa_error_text(stream), "dataset changed") != NULL, "%s",
		      oa_error_text(stream));
	ck_assert_double_eq(rig_status("node.reader_restarts"), 0);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* What has the name now is for those who open it now. */
START_TEST(a_file_in_its_place_is_another_data_set)
{
	const char *folder = runs_photos("photos");
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_options options;
	struct hash_id whole, parts;
	struct hash *hash;
	char target[PATH_MAX], other[PATH_MAX];

	make_dataset();
	snprintf(target, sizeof(target), "%s", rig_path("place.oads"));
	snprintf(other, sizeof(other), "%s", rig_path("other.oads"));
	ck_assert_int_eq(convert("packed", folder, target), 0);
	ck_assert_int_eq(convert("packed", rig_path("all"), other), 0);
	rig_start("workers=1", "chunk=4", "slots=4", NULL);
	options = runs_options(target, OA_ORDER_SEQUENTIAL, 1, 4);
	whole = runs_digest(&options);
	client = rig_connect();
	stream = rig_open(client, &options);
	ck_assert_int_eq(rename(other, target), 0);
	ck_assert_int_eq(hash_new(&hash), 0);
	runs_digest_rest(hash, stream);
	hash_finish(hash, &parts);
	hash_free(hash);
	runs_assert_same(whole, parts);
	oa_close(stream);
	oa_disconnect(client);
	assert_same_description(target, rig_path("all"));
	rig_end();
}
END_TEST

static void copy_in_place(const char *path)
{
	char command[3 * PATH_MAX];

	snprintf(command, sizeof(command), "cp -p '%s' '%s.new' && cat '%s.new' >'%s'", path, path,
		 path, path);
	ck_assert_int_eq(system(command), 0);
}
static void copy_and_damage(const char *path)
{
	char command[3 * PATH_MAX];

	snprintf(command, sizeof(command), "mv '%s' '%s.old' && cp -p '%s.old' '%s'", path, path,
		 path, path);
	ck_assert_int_eq(system(command), 0);
	snprintf(command, sizeof(command), "%s.old", path);
	cut_it(command);
}
static void (*const remakes[])(const char *path) = {touch_it, copy_in_place, copy_and_damage};

/* The same samples, so the same version; who has it open has another file, or the file as it was. */
START_TEST(a_file_made_anew_is_served_beside_a_held_one)
{
	const char *folder = runs_photos("photos");
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_options options;
	struct oa_batch *batch;
	struct hash_id before, after;
	char target[PATH_MAX];

	snprintf(target, sizeof(target), "%s", rig_path("anew%d.oads", _i));
	ck_assert_int_eq(convert("packed", folder, target), 0);
	rig_start("workers=1", "chunk=4", "slots=4", NULL);
	options = runs_options(target, OA_ORDER_SEQUENTIAL, 1, 4);
	before = runs_digest(&options);
	client = rig_connect();
	stream = rig_open(client, &options);
	batch = runs_next(stream);
	remakes[_i](target);
	after = runs_digest(&options);
	runs_assert_same(before, after);
	oa_release(batch);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

START_TEST(what_is_no_data_set_is_refused)
{
	struct oa_options options;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", rig_path("nothing.oads"));
	store(path, (const uint8_t *)"nothing", 7);
	rig_start("workers=1", NULL);
	options = options_of(path);
	runs_assert_refused(&options, OA_E_DATASET, "access-ctl convert");
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, every_form_gives_the_folder, 0, BASE_ARRAY_LEN(forms));
	tcase_add_test(tcase, copies_are_one_data_set);
	tcase_add_test(tcase, jobs_go_on_after_a_kill);
	tcase_add_test(tcase, damage_is_one_bad_sample);
	tcase_add_loop_test(tcase, a_change_is_told, 0, 2 * BASE_ARRAY_LEN(changes));
	tcase_add_test(tcase, a_file_in_its_place_is_another_data_set);
	tcase_add_loop_test(tcase, a_file_made_anew_is_served_beside_a_held_one, 0,
			    BASE_ARRAY_LEN(remakes));
	tcase_add_test(tcase, what_is_no_data_set_is_refused);
}

int main(void)
{
	return rig_main("convert", add);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What users' files and notes claim, with real uids, against a system accessd: whoever claims much has it of his
 * own share, and it is there again when he is gone.
 */

#include "tests/scenarios/folk.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/wrapped.h"

#define N FOLK_PICTURES
#define MIB 1048576.0

/* A wrapped data set of so many samples, or the note of one; the path is good until the next call. */
static const char *note_of(const char *name, const struct town_user *user, uint64_t samples)
{
	const struct wrapped_note note = {.magic = WRAPPED_MAGIC,
					  .count = samples,
					  .room = 4096,
					  .workers = 1,
					  .seconds = 60,
					  .id = {.bytes = {1}}};
	static char folder[512];
	int fd;

	snprintf(folder, sizeof(folder), "%s", rig_path("%s", name));
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	fd = open(rig_path("%s/" WRAPPED_NOTE, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, &note, sizeof(note)), sizeof(note));
	close(fd);
	town_give(folder, user, user->gid, 0700, 0600);
	return folder;
}

/* Opens it and waits. */
static int stay(void *arg)
{
	struct town_errand *errand = arg;
	struct oa_options options = trainee_options(errand->dataset, 8, 1);
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = NULL;
	struct oa_stream *stream;

	errand->code = oa_connect(rig_host.socket, &client, &error);
	if (!errand->code)
		errand->code = oa_open(client, &options, &stream, &error);
	snprintf(errand->text, sizeof(errand->text), "%s", error.text);
	errand->holds = true;
	while (!errand->goes)
		rig_sleep_ms(5);
	return 0;
}

/* Files in accessd's folder of indexes whose names begin so, and their bytes. One may go while we look. */
static unsigned stored(const char *key, uint64_t *ret_bytes)
{
	DIR *folder = opendir(rig_path("cache/index"));
	const struct dirent *entry;
	struct stat status;
	unsigned n = 0;

	*ret_bytes = 0;
	ck_assert_ptr_nonnull(folder);
	while ((entry = readdir(folder))) {
		if (entry->d_name[0] == '.' || strncmp(entry->d_name, key, strlen(key)) != 0)
			continue;
		if (fstatat(dirfd(folder), entry->d_name, &status, 0) < 0)
			continue;
		*ret_bytes += (uint64_t)status.st_size;
		n++;
	}
	closedir(folder);
	return n;
}

/* They are written beside the jobs. Waits until there are so many; their bytes. */
static uint64_t wait_stored(const char *key, unsigned least, unsigned most)
{
	const uint64_t end = base_now_ns() + PATIENCE_NS;
	uint64_t bytes;
	unsigned n = stored(key, &bytes);

	for (; (n < least || n > most) && base_now_ns() < end; n = stored(key, &bytes))
		rig_sleep_ms(20);
	ck_assert_msg(n >= least && n <= most, "%u files %s", n, key);
	return bytes;
}

START_TEST(a_note_has_no_more_than_a_share)
{
	const char *annas = folk_secret("anna", &town_anna);
	const char *berts = note_of("large", &town_bert, 10000000);

	town_start("workers=1", "linger_s=0", "memory=400M", "tenant_memory=200M", NULL);
	folk_must_be_refused(&town_bert, berts, OA_E_DATASET, "tenant_memory");
	ck_assert(rig_wait_status("node.memory_used", 0, MIB));
	folk_must_train(&town_anna, annas, 1);
	town_end();
}
END_TEST

/* 31 MiB for a million samples, of the 200 that he may have; the disk has none of it. */
START_TEST(an_index_is_its_users_memory)
{
	struct town_errand *errand = town_errand_new(note_of("million", &town_bert, 1000000), N, 1);
	unsigned before; /* of other tests' users */
	uint64_t bytes;
	pid_t bert;

	town_start("workers=1", "linger_s=0", "tenant_idle_s=60", "memory=400M",
		   "tenant_memory=200M", "chunk=16", "slots=4", "arena=16M", NULL);
	before = stored("user:", &bytes);
	bert = town_send(&town_bert, stay, errand);
	ck_assert(town_wait_holding(errand, bert));
	ck_assert_msg(errand->code == 0, "%d %s", errand->code, errand->text);
	ck_assert_int_gt(folk_tenant(&town_bert, "memory"), (pid_t)(30 * MIB + 16 * MIB));
	ck_assert_uint_eq(stored("user:", &bytes), before);
	ck_assert(rig_status("node.memory_used") > 30 * MIB + 16 * MIB);
	errand->goes = true;
	ck_assert_int_eq(town_wait(bert), 0);
	ck_assert(rig_wait_status("node.memory_used", 0, 0));
	town_errand_free(errand);
	town_end();
}
END_TEST

/* Many data sets of one user take his part of the disk, and nobody else's. */
START_TEST(stored_indexes_have_a_share)
{
	char name[32];
	uint64_t one, bytes;

	town_start("workers=1", "linger_s=0", "index_size=40K", NULL);
	folk_must_train(&town_anna, folk_secret("anna", &town_anna), 1);
	one = wait_stored("user:65201:", 1, 1);
	ck_assert(one <= 10 << 10 && 8 * one > 15 << 10);
	for (unsigned i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "berts-%u", i);
		folk_must_train(&town_bert, folk_secret(name, &town_bert), 1);
		ck_assert_uint_le(stored("user:65202:", &bytes), i + 1);
		ck_assert_uint_le(bytes, 10 << 10);
	}
	ck_assert_uint_ge(wait_stored("user:65202:", 1, 8), 1);
	ck_assert_uint_eq(stored("user:65201:", &bytes), 1);
	wait_stored("tmp-", 0, 0);
	folk_must_train(&town_bert, rig_path("%s", "berts-0"), 1); /* listed anew */
	town_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, stored_indexes_have_a_share);
	tcase_add_test(tcase, a_note_has_no_more_than_a_share);
	tcase_add_test(tcase, an_index_is_its_users_memory);
}

int main(void)
{
	return folk_main("claims", add);
}

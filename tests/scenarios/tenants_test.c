/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tenants, with real uids, against a system accessd: each reads and keeps what he may, open data are read
 * once for all, and what is seen and left of them. Cases 14 and 19 of the README's table; harm: harm_test.c.
 */

#include "tests/scenarios/folk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/wire.h"
#include "shmring/proto.h"

#define N FOLK_PICTURES

static int cannot_open(void *path)
{
	return open(path, O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES ? 0 : 1;
}

/* A store of somebody who was here once. */
static void leave_a_store(const char *key, const struct town_user *owner, size_t bytes)
{
	char path[PATH_MAX];
	_cleanup_free_ char *all = calloc(1, bytes);
	int fd;

	ck_assert_ptr_nonnull(all);
	memset(all, 7, bytes);
	snprintf(path, sizeof(path), "%s", rig_path("cache/store/%s", key));
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(chown(path, town_accessd.uid, town_accessd.gid), 0);
	strcat(path, "/store");
	ck_assert_int_eq(mkdir(path, 0777), 0);
	ck_assert_int_eq(chown(path, town_accessd.uid, town_accessd.gid), 0);
	strcat(path, "/cache.mdb");
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, all, bytes), (ssize_t)bytes);
	ck_assert_int_eq(fsync(fd), 0);
	ck_assert_int_eq(fchown(fd, owner->uid, owner->gid), 0);
	close(fd);
}

/* ---- who may read what ---- */

/* accessd itself may read none of it, as with a root-squashed file system. */
START_TEST(each_reads_what_he_may)
{
	const char *annas = folk_secret("anna", &town_anna),
		   *berts = folk_secret("bert", &town_bert);

	town_start("workers=1", "log_level=debug", NULL);
	ck_assert_int_eq(town_do(&town_accessd, cannot_open, (void *)(uintptr_t)annas), 0);
	folk_must_train(&town_anna, annas, 2);
	folk_must_train(&town_bert, berts, 1);
	folk_must_be_refused(&town_bert, annas, OA_E_DATASET, "Permission denied");
	folk_must_be_refused(&town_anna, berts, OA_E_DATASET, "Permission denied");
	folk_must_train(&town_anna, annas, 1);
	town_end();
}
END_TEST

START_TEST(groups_count)
{
	const struct town_user anna_as_carls = {town_anna.uid, TOWN_GROUP, 0};
	const char *carls = folk_secret("carls", &town_carl);

	town_give(carls, &town_accessd, TOWN_GROUP, 0050, 0040);
	town_start("workers=1", NULL);
	folk_must_be_refused(&town_anna, carls, OA_E_DATASET, "Permission denied");
	folk_must_train(&anna_as_carls, carls, 1); /* a gid of its own makes a domain of its own */
	folk_must_be_refused(&town_anna, carls, OA_E_DATASET, "Permission denied");
	if (town_has_database())
		folk_must_train(&town_carl, carls, 1);
	else
		puts("skipped: no mount namespace for a user database of our own");
	town_end();
}
END_TEST

START_TEST(root_is_refused_unless_asked_for)
{
	static const struct town_user root = {0, 0, 0};
	const char *annas = folk_secret("anna", &town_anna), *roots = folk_secret("root", &root);

	town_start("workers=1", "linger_s=0", NULL);
	folk_must_be_refused(&root, roots, OA_E_PERMISSION, "serve_root");
	town_end();
	town_start("workers=1", "linger_s=0", "serve_root=1", NULL);
	folk_must_train(&root, roots, 1);
	folk_must_be_refused(&root, annas, OA_E_DATASET, "Permission denied");
	town_end();
}
END_TEST

START_TEST(without_capabilities_it_serves_its_own_user)
{
	static const struct town_user root = {0, 0, 0};
	const char *roots = folk_secret("root", &root), *all = folk_secret("berts", &town_bert);

	town_is_powerless = true;
	town_start("workers=1", "linger_s=0", NULL);
	folk_must_be_refused(&town_bert, all, OA_E_PERMISSION, "serves user 0 only");
	folk_must_train(&root, roots, 1);
	ck_assert_double_eq(rig_status("tenants"), 0);
	town_end();
}
END_TEST

/* ---- what everybody may read ---- */

/* Anna and bert train at the same time; the errands are freed. */
static void train_together(const char *dataset, double streams, double read)
{
	struct town_errand *annas = town_errand_new(dataset, N, 1);
	struct town_errand *berts = town_errand_new(dataset, N, 1);
	pid_t anna, bert;

	annas->hold = berts->hold = 1;
	anna = town_send(&town_anna, town_train, annas);
	ck_assert(town_wait_holding(annas, anna));
	bert = town_send(&town_bert, town_train, berts);
	ck_assert(town_wait_holding(berts, bert));
	ck_assert_double_eq(rig_status("streams"), streams);
	ck_assert_double_eq(rig_status("streams.0.public"), streams == 1);
	annas->goes = true;
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert(annas->saw_all && !annas->wrong);
	if (streams == 1) /* who stays pays */
		ck_assert(folk_wait_tenant(&town_anna, "memory", -1, 0) &&
			  folk_wait_tenant(&town_bert, "memory", 1, 1e12));
	berts->goes = true;
	ck_assert_int_eq(town_wait(bert), 0);
	ck_assert_msg(berts->saw_all && !berts->wrong, "%s", berts->text);
	ck_assert_double_eq(rig_status("node.samples_read"), read);
	town_errand_free(annas);
	town_errand_free(berts);
}

START_TEST(open_data_are_read_once_for_all)
{
	const char *all = folk_open("all");

	town_start("workers=1", "linger_s=0", NULL);
	train_together(all, 1, N);
	town_end();
	town_start("workers=1", "linger_s=0", NULL); /* now from the stored index */
	train_together(all, 1, N);
	town_end();
	town_start("workers=1", "linger_s=0", "share_public=0", NULL);
	train_together(all, 2, 2 * N);
	town_end();
}
END_TEST

/* Two tar shards of the same pictures; in the folder of its own they are all there is. */
static void open_shards(char path[PATH_MAX])
{
	const char *all = folk_open("all");
	char command[8 * PATH_MAX];

	snprintf(path, PATH_MAX, "%s", rig_path("shards"));
	snprintf(command, sizeof(command),
		 "set -e; mkdir -p '%s'; cp -r '%s' '%s.tree'; cd '%s.tree'; for c in 0 1; do "
		 "for f in *$c/*.jpg; do printf $c >${f%%.jpg}.cls; done; "
		 "find . -path \"*$c/*\" | sort | tar -cf '%s'/$c.tar -T -; done; rm -r '%s.tree'",
		 path, all, path, path, path, path);
	ck_assert_int_eq(system(command), 0);
	town_give(path, &town_anna, town_anna.gid, 0755, 0644);
}

START_TEST(open_shards_are_read_once_for_all)
{
	char shards[PATH_MAX], one[PATH_MAX + 8];

	open_shards(shards);
	snprintf(one, sizeof(one), "%s/1.tar", shards);
	for (unsigned i = 0; i < 2; i++) { /* the second time from the stored index */
		town_start("workers=1", "linger_s=0", NULL);
		train_together(shards, 1, N);
		town_end();
	}
	ck_assert_int_eq(chmod(one, 0640), 0);
	town_start("workers=1", "linger_s=0", NULL);
	folk_must_be_refused(&town_bert, shards, OA_E_DATASET, "1.tar");
	folk_must_train(&town_anna, shards, 1);
	town_end();
}
END_TEST

/* Nobody of accessd's own is to look at what anybody may have made. */
START_TEST(without_a_reader_of_its_own_nothing_is_shared)
{
	static const char *const users[] = {"public_user=no-such-user", "public_user=65200",
					    "public_user=0"};
	const char *all = folk_open("unshared");

	for (size_t i = 0; i < BASE_ARRAY_LEN(users); i++) {
		const char *why = i ? "another user than accessd" : "there is no such user";

		town_start("workers=1", "linger_s=0", users[i], NULL);
		ck_assert_ptr_nonnull(strstr(town_status_of(&town_anna), why));
		train_together(all, 2, 2 * N);
		town_end();
	}
}
END_TEST

START_TEST(who_reads_for_all_has_no_jobs)
{
	const char *all = folk_open("jobs");

	town_start("workers=1", NULL);
	folk_must_be_refused(&town_public, all, OA_E_PERMISSION, "public_user");
	town_end();
}
END_TEST

/* An accessd before read it as its own user: what it kept rests until its room is needed. */
START_TEST(what_is_kept_for_all_is_its_readers)
{
	const char *all = folk_open("kept");
	char path[PATH_MAX], text[768];
	struct stat status;

	town_start("workers=1", "linger_s=0", "cache_size=64M", "cache_force=1",
		   "cache_point=decoded", NULL);
	leave_a_store("public", &town_accessd, 4 << 20);
	ck_assert_msg(folk_warm(&town_anna, all, text) == 0, "%s", text);
	snprintf(path, sizeof(path), "%s/store/cache.mdb",
		 rig_path("cache/store/public:%u", (unsigned)town_public.uid));
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert_uint_eq(status.st_uid, town_public.uid);
	ck_assert_int_eq(town_do(&town_public, cannot_open, path), 0);
	ck_assert_int_eq(access(rig_path("cache/store/public/store/cache.mdb"), F_OK), 0);
	town_end();
}
END_TEST

/* The same of one file, of which mode and way decide. */
START_TEST(an_open_converted_data_set_is_read_once_for_all)
{
	const char *build = getenv("top_builddir"), *folder = folk_open("whole");
	char file[512], command[2048];

	snprintf(file, sizeof(file), "%s", rig_path("whole.oads"));
	snprintf(command, sizeof(command),
		 "%s/tools/access-ctl convert --jobs 1 '%s' '%s' >/dev/null", build ? build : ".",
		 folder, file);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(chmod(file, 0644), 0);
	town_start("workers=1", "linger_s=0", NULL);
	train_together(file, 1, N);
	town_end();
	ck_assert_int_eq(chmod(file, 0604), 0); /* root's, and his group is shut out */
	town_start("workers=1", "linger_s=0", NULL);
	train_together(file, 2, 2 * N);
	town_end();
}
END_TEST

/* Everybody may read each of these, and none of them is shared. */
START_TEST(what_is_not_quite_open_is_not_shared)
{
	const char *group = folk_open("grouped"), *linked = folk_open("linked"),
		   *way = folk_open("way");
	char path[600];

	snprintf(path, sizeof(path), "%s/class_0000/000003.jpg", group);
	ck_assert_int_eq(chown(path, town_anna.uid, TOWN_GROUP), 0);
	ck_assert_int_eq(chmod(path, 0604), 0);
	snprintf(path, sizeof(path), "%s/class_0001/link", linked);
	ck_assert_int_eq(symlink("/etc/hostname", path), 0);
	ck_assert_int_eq(chmod(way, 0711), 0);
	snprintf(path, sizeof(path), "%s/deep", way);
	ck_assert_int_eq(rig_write_pictures(path, N, 2, 40), 0);
	town_give(path, &town_anna, town_anna.gid, 0755, 0644);
	town_start("workers=1", "linger_s=0", NULL);
	train_together(group, 2, 2 * N);
	town_end();
	town_start("workers=1", "linger_s=0", NULL);
	train_together(linked, 2, 2 * N);
	town_end();
	town_start("workers=1", "linger_s=0", NULL);
	train_together(path, 2, 2 * N);
	town_end();
}
END_TEST

/* Made anew while anna holds the shared stream: whoever opens it is served, she is told. */
START_TEST(what_is_made_anew_is_served_beside_anothers_job)
{
	enum { MANY = 400 }; /* more than slots hold */
	static const char *const ways[] = {
	    "mv \"$D\" \"$D.old\" && cp -a \"$D.old\" \"$D\" && rm -rf \"$D.old\"",
	    "mv \"$D\" \"$D.old\" && cp -r \"$D.old\" \"$D\" && rm -rf \"$D.old\""};
	struct town_errand *annas, *berts;
	char path[512];
	pid_t anna;

	snprintf(path, sizeof(path), "%s", rig_pictures("anew", MANY, 2, 40));
	setenv("D", path, 1);
	town_give(path, &town_anna, town_anna.gid, 0755, 0644);
	town_start("workers=1", "slots=4", "linger_s=1000", NULL);
	annas = town_errand_new(path, MANY, 1);
	annas->hold = 1;
	anna = town_send(&town_anna, town_train, annas);
	ck_assert(town_wait_holding(annas, anna));
	for (size_t i = 0; i < BASE_ARRAY_LEN(ways); i++) {
		ck_assert_int_eq(system(ways[i]), 0);
		for (unsigned k = 0; k < 2; k++) {
			berts = town_errand_new(path, MANY, 1);
			ck_assert_int_eq(town_do(k ? &town_anna : &town_bert, town_train, berts),
					 0);
			ck_assert_msg(berts->saw_all && !berts->wrong, "%s: %s", ways[i],
				      berts->text);
			town_errand_free(berts);
		}
		ck_assert_double_eq(rig_status("streams.0.public"), 1);
	}
	annas->goes = true;
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert_int_eq(annas->code, OA_E_DATASET);
	ck_assert_msg(strstr(annas->text, "dataset changed") != NULL, "%s", annas->text);
	town_errand_free(annas);
	town_end();
}
END_TEST

/* A folder that is closed to others no longer is nobody else's, at the next open. */
START_TEST(what_was_open_can_be_closed)
{
	const char *all = folk_open("closing");

	town_start("workers=1", NULL);
	folk_must_train(&town_bert, all, 1);
	ck_assert_int_eq(chmod(all, 0700), 0);
	folk_must_be_refused(&town_bert, all, OA_E_DATASET, "Permission denied");
	folk_must_train(&town_anna, all, 1);
	ck_assert_int_eq(chmod(all, 0755), 0);
	folk_must_train(&town_bert, all, 1);
	town_end();
}
END_TEST

/* Anna fills the shared stream; there is no room in it for bert, who gets one of his own. */
START_TEST(a_full_stream_keeps_nobody_out)
{
	const char *all = folk_open("full");
	struct town_errand *errand[2];
	pid_t pid[2];

	town_start("workers=1", "slots=4", "linger_s=1000", NULL);
	for (unsigned i = 0; i < 2; i++) {
		errand[i] = town_errand_new(all, N, 1);
		errand[i]->hold = 1;
		pid[i] = town_send(&town_anna, town_train, errand[i]);
		ck_assert(town_wait_holding(errand[i], pid[i]));
	}
	folk_must_train(&town_bert, all, 1);
	ck_assert_double_eq(rig_status("streams"), 2);
	for (unsigned i = 0; i < 2; i++) {
		errand[i]->goes = true;
		ck_assert_int_eq(town_wait(pid[i]), 0);
		ck_assert(errand[i]->saw_all && !errand[i]->wrong);
		town_errand_free(errand[i]);
	}
	town_end();
}
END_TEST

/* ---- what is left, what is seen ---- */

START_TEST(an_idle_domain_leaves_nothing)
{
	const char *annas = folk_secret("anna", &town_anna);
	pid_t children[8];
	unsigned fds;

	town_start("workers=1", "tenant_idle_s=0", "linger_s=0", NULL);
	fds = rig_settled_fds(0);
	for (unsigned i = 0; i < 3; i++)
		folk_must_train(&town_anna, annas, 1);
	ck_assert(rig_wait_status("tenants", 0, 0));
	ck_assert(rig_wait_status("node.memory_used", 0, 0));
	ck_assert_uint_le(rig_settled_fds(fds), fds);
	for (uint64_t end = base_now_ns() + PATIENCE_NS;
	     town_children(rig_host.pid, children, 8) && base_now_ns() < end;)
		rig_sleep_ms(10);
	ck_assert_uint_eq(town_children(rig_host.pid, children, 8), 0);
	town_end();
}
END_TEST

START_TEST(room_is_made_for_the_next_user)
{
	const char *annas = folk_secret("anna", &town_anna),
		   *berts = folk_secret("bert", &town_bert);
	struct town_errand *errand = town_errand_new(annas, N, 1);
	pid_t anna;

	town_start("workers=1", "tenants=1", "linger_s=0", NULL);
	errand->hold = 1;
	anna = town_send(&town_anna, town_train, errand);
	ck_assert(town_wait_holding(errand, anna));
	folk_must_be_refused(&town_bert, berts, OA_E_REFUSED, "`tenants`");
	errand->goes = true;
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert(rig_wait_status("streams", 0, 0));
	folk_must_train(&town_bert, berts, 1);
	town_errand_free(errand);
	town_end();
}
END_TEST

/* Anna comes with ever another group, and is one user all the same. */
START_TEST(many_groups_are_one_user)
{
	const char *annas = folk_secret("anna", &town_anna),
		   *berts = folk_secret("bert", &town_bert);
	struct town_user as[4];
	struct town_errand *errand[3];
	pid_t anna[3];

	town_start("workers=1", "tenants=2", "linger_s=0", NULL);
	for (unsigned i = 0; i < 4; i++)
		as[i] = (struct town_user){town_anna.uid, town_anna.gid + 100 * i, 0};
	for (unsigned i = 0; i < 3; i++) {
		errand[i] = town_errand_new(annas, N, 1);
		errand[i]->hold = 1;
		anna[i] = town_send(&as[i], town_train, errand[i]);
		ck_assert(town_wait_holding(errand[i], anna[i]));
	}
	folk_must_be_refused(&as[3], annas, OA_E_REFUSED, "3 groups");
	folk_must_train(&town_bert, berts, 1);
	for (unsigned i = 0; i < 3; i++) {
		errand[i]->goes = true;
		ck_assert_int_eq(town_wait(anna[i]), 0);
		ck_assert_msg(errand[i]->saw_all && !errand[i]->wrong, "%s", errand[i]->text);
		town_errand_free(errand[i]);
	}
	ck_assert(rig_wait_status("streams", 0, 0));
	folk_must_train(&as[3], annas, 1);
	ck_assert(rig_status("tenants") <= 4);
	town_end();
}
END_TEST

/* Of anna's, when the node is told so: then they are not a user more, and bert is. */
START_TEST(subordinate_users_count_as_their_owner)
{
	static const struct town_user sub = {300005, 300005, 0};
	struct town_errand *errand = town_errand_new(folk_secret("anna", &town_anna), N, 1);
	const char *subs = folk_secret("sub", &sub), *berts = folk_secret("bert", &town_bert);
	char setting[600];
	FILE *file = fopen(rig_path("subuid"), "w");
	pid_t anna;

	ck_assert_ptr_nonnull(file);
	fprintf(file, "%u:300000:10\n", (unsigned)town_anna.uid);
	fclose(file);
	ck_assert_int_eq(chmod(rig_path("subuid"), 0644), 0);
	snprintf(setting, sizeof(setting), "subordinate_ids=%s", rig_path("subuid"));
	town_start("workers=1", "tenants=1", "linger_s=0", setting, NULL);
	errand->hold = 1;
	anna = town_send(&town_anna, town_train, errand);
	ck_assert(town_wait_holding(errand, anna));
	folk_must_train(&sub, subs, 1);
	folk_must_be_refused(&town_anna, subs, OA_E_DATASET, "Permission denied");
	folk_must_be_refused(&town_bert, berts, OA_E_REFUSED, "`tenants`");
	errand->goes = true;
	ck_assert_int_eq(town_wait(anna), 0);
	town_errand_free(errand);
	town_end();
}
END_TEST

START_TEST(the_status_shows_what_is_ones_own)
{
	struct town_errand *annas = town_errand_new(folk_secret("annas-folder", &town_anna), N, 1);
	struct town_errand *berts = town_errand_new(folk_secret("berts-folder", &town_bert), N, 1);
	const char *seen;
	pid_t anna, bert;

	town_start("workers=1", NULL);
	strcpy(annas->job, "annas-job");
	strcpy(berts->job, "berts-job");
	annas->hold = berts->hold = 1;
	anna = town_send(&town_anna, town_train, annas);
	bert = town_send(&town_bert, town_train, berts);
	ck_assert(town_wait_holding(annas, anna) && town_wait_holding(berts, bert));
	seen = town_status_of(&town_bert);
	ck_assert(strstr(seen, "berts-folder") && strstr(seen, "berts-job") &&
		  strstr(seen, "65202"));
	ck_assert(!strstr(seen, "annas-folder") && !strstr(seen, "annas-job") &&
		  !strstr(seen, "65201"));
	seen = town_status_of(&(struct town_user){0, 0, 0});
	ck_assert(strstr(seen, "berts-folder") && strstr(seen, "annas-job"));
	seen = town_status_of(&(struct town_user){town_carl.uid, town_carl.gid, town_accessd.gid});
	ck_assert(strstr(seen, "berts-folder") && strstr(seen, "annas-job"));
	seen = town_status_of(&town_carl);
	ck_assert(!strstr(seen, "berts") && !strstr(seen, "annas"));
	annas->goes = berts->goes = true;
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert_int_eq(town_wait(bert), 0);
	town_errand_free(annas);
	town_errand_free(berts);
	town_end();
}
END_TEST

/* As much of a status as Check has room for in a message. */
static const char *who_works(const char *status)
{
	static char text[2048];
	const char *workers = strstr(status, "\"workers\":[");

	snprintf(text, sizeof(text), "%s", workers ? workers : status);
	return text;
}

/* Who has a job on them sees who works for it; nobody else does. */
START_TEST(workers_of_open_data_are_shown_to_their_users)
{
	struct town_errand *annas = town_errand_new(folk_open("all"), N, 1);
	struct town_errand *berts = town_errand_new(folk_secret("bert", &town_bert), N, 1);
	char workers[64], tenant[64];
	const char *seen;
	pid_t anna, bert;

	town_start("workers=1", NULL);
	snprintf(workers, sizeof(workers), "\"uid\":%u,\"public\":true,\"busy\"",
		 (unsigned)town_public.uid);
	snprintf(tenant, sizeof(tenant), "\"uid\":%u,\"gid\":", (unsigned)town_public.uid);
	annas->hold = berts->hold = 1;
	anna = town_send(&town_anna, town_train, annas);
	bert = town_send(&town_bert, town_train, berts);
	ck_assert(town_wait_holding(annas, anna) && town_wait_holding(berts, bert));
	/* a worker may have made a batch before its parent has said that it is there */
	ck_assert(rig_wait_status("workers.1.pid", 1, 1e9));
	seen = town_status_of(&town_anna);
	ck_assert_msg(strstr(seen, workers) && strstr(seen, tenant), "%s", who_works(seen));
	ck_assert(!strstr(seen, "\"workers\":0,\"workers_alive\""));
	seen = town_status_of(&town_bert);
	ck_assert_msg(!strstr(seen, workers) && !strstr(seen, tenant), "%s", who_works(seen));
	seen = town_status_of(&town_carl);
	ck_assert_msg(strstr(seen, "\"workers\":[]") && !strstr(seen, tenant), "%s",
		      who_works(seen));
	annas->goes = berts->goes = true;
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert_int_eq(town_wait(bert), 0);
	town_errand_free(annas);
	town_errand_free(berts);
	town_end();
}
END_TEST

/* As oa_bad_samples() asks, of a job of this number: PROTO_BAD_SAMPLES or PROTO_REFUSED; 0: nothing is heard. */
static int ask_for_bad(void *job)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct wire_out hello, bad;
	struct wire_in in;
	int type = 0;

	strcpy(address.sun_path, rig_host.socket);
	wire_out_init(&hello, PROTO_HELLO);
	wire_put_u64(&hello, PROTO_KEY_MAJOR, PROTO_MAJOR);
	wire_out_init(&bad, PROTO_BAD);
	wire_put_u64(&bad, PROTO_KEY_JOB_ID, *(uint64_t *)job);
	if (connect(sock, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    wire_send(sock, &hello, 0) == 0 && wire_recv(sock, &in, 0) == 0) {
		wire_in_fini(&in);
		if (wire_send(sock, &bad, 0) == 0 && wire_recv(sock, &in, 0) == 0) {
			type = in.type;
			wire_in_fini(&in);
		}
	}
	wire_out_fini(&hello);
	wire_out_fini(&bad);
	close(sock);
	return type;
}

START_TEST(bad_samples_are_told_to_their_user)
{
	struct town_errand *annas = town_errand_new(folk_secret("annas-folder", &town_anna), N, 1);
	const struct town_user root = {0, 0, 0},
			       member = {town_carl.uid, town_carl.gid, town_accessd.gid};
	uint64_t job;
	pid_t anna;

	town_start("workers=1", NULL);
	annas->hold = 1;
	anna = town_send(&town_anna, town_train, annas);
	ck_assert(town_wait_holding(annas, anna));
	job = (uint64_t)rig_status("jobs.0.id");
	ck_assert_int_eq(town_do(&town_anna, ask_for_bad, &job), PROTO_BAD_SAMPLES);
	ck_assert_int_eq(town_do(&root, ask_for_bad, &job), PROTO_BAD_SAMPLES);
	ck_assert_int_eq(town_do(&member, ask_for_bad, &job), PROTO_BAD_SAMPLES);
	ck_assert_int_eq(town_do(&town_bert, ask_for_bad, &job), PROTO_REFUSED);
	ck_assert_int_eq(town_do(&town_carl, ask_for_bad, &job), PROTO_REFUSED);
	annas->goes = true;
	ck_assert_int_eq(town_wait(anna), 0);
	town_errand_free(annas);
	town_end();
}
END_TEST

/* What is kept of a user's samples is his, in a folder that nobody else but accessd gets to, nor he. */
START_TEST(each_keeps_his_own)
{
	const char *annas = folk_secret("anna", &town_anna),
		   *berts = folk_secret("bert", &town_bert);
	char path[PATH_MAX], text[768];
	struct stat status;

	town_start("workers=1", "linger_s=0", "cache_size=64M", "cache_memory=32M", "cache_force=1",
		   "cache_point=decoded", NULL);
	ck_assert_msg(folk_warm(&town_anna, annas, text) == 0, "%s", text);
	folk_must_train(&town_bert, berts, 1);
	ck_assert(rig_wait_status("caches.1.uid", 1, 1e9));
	for (unsigned i = 0; i < 100 && folk_kept(&town_anna, "hits") <= 0; i++, rig_sleep_ms(200))
		folk_must_train(&town_anna, annas, 5);
	ck_assert(folk_kept(&town_anna, "hits") > 0);
	ck_assert(folk_wait_kept(&town_bert, "memory_limit", 8 << 20, 8 << 20));
	ck_assert_double_eq(folk_kept(&town_bert, "hits"), 0);
	ck_assert(folk_wait_kept(&town_anna, "limit", 16 << 20, 16 << 20));
	ck_assert(folk_wait_kept(&town_anna, "memory_limit", 8 << 20, 8 << 20));
	ck_assert_double_le(folk_kept(&town_anna, "memory_used"), 8 << 20);
	snprintf(
	    path, sizeof(path), "%s/store/cache.mdb",
	    rig_path("cache/store/user:%u:%u", (unsigned)town_anna.uid, (unsigned)town_anna.gid));
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert_uint_eq(status.st_uid, town_anna.uid);
	ck_assert_uint_eq(status.st_mode & 07777, 0600);
	ck_assert_int_eq(town_do(&town_bert, cannot_open, path), 0);
	ck_assert_int_eq(town_do(&town_anna, cannot_open, path), 0);
	town_end();
}
END_TEST

/* Until his store is open. */
static void must_wait_for_limit(const struct town_user *user, double limit)
{
	ck_assert(folk_wait_kept(user, "file", 1, 1e12));
	ck_assert(folk_wait_kept(user, "limit", limit, limit));
}

/* Shares never come to more than there is, and room is made by what rests, not by what is in use. accessd may
 * delete the user's files since the folder is its own. */
START_TEST(room_on_the_disk_is_made_by_those_who_rest)
{
	struct town_errand *annas = town_errand_new(folk_secret("anna", &town_anna), N, 1);
	struct town_errand *berts = town_errand_new(folk_secret("bert", &town_bert), N, 1);
	char path[PATH_MAX];
	pid_t anna, bert;

	town_start("workers=1", "cache_size=24M", "tenant_cache=18M", "tenants=2", "cache_force=1",
		   NULL);
	leave_a_store("user:65299:65299", &town_carl, 4 << 20);
	annas->hold = berts->hold = 1;
	anna = town_send(&town_anna, town_train, annas);
	ck_assert(town_wait_holding(annas, anna));
	must_wait_for_limit(&town_anna,
			    18 << 20); /* sure are 2 MiB, a twelfth; for two who may come */
	ck_assert_int_eq(access(rig_path("cache/store/user:65299:65299"), F_OK), 0);
	bert = town_send(&town_bert, town_train, berts);
	ck_assert(town_wait_holding(berts, bert));
	must_wait_for_limit(&town_bert, 4 << 20);
	ck_assert(rig_wait_status("node.cache_given", 22 << 20, 22 << 20));
	ck_assert(rig_status("node.cache_resting") <= 2 << 20);
	ck_assert(rig_status("node.cache_pruned") >= 1);
	ck_assert_int_lt(access(rig_path("cache/store/user:65299:65299"), F_OK), 0);
	snprintf(
	    path, sizeof(path), "%s/store/cache.mdb",
	    rig_path("cache/store/user:%u:%u", (unsigned)town_anna.uid, (unsigned)town_anna.gid));
	ck_assert_int_eq(access(path, F_OK), 0);
	annas->goes = berts->goes = true;
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert_int_eq(town_wait(bert), 0);
	ck_assert(annas->saw_all && !annas->wrong && berts->saw_all && !berts->wrong);
	town_errand_free(annas);
	town_errand_free(berts);
	town_end();
}
END_TEST

/* Names of files are in the indexes that accessd stores. */
START_TEST(stored_indexes_are_for_accessd_alone)
{
	const char *annas = folk_secret("anna", &town_anna);

	town_start("workers=1", NULL);
	folk_must_train(&town_anna, annas, 1);
	ck_assert_int_eq(access(rig_path("cache/index"), F_OK), 0);
	ck_assert_int_eq(
	    town_do(&town_bert, cannot_open, (void *)(uintptr_t)rig_path("cache/index")), 0);
	ck_assert_int_eq(
	    town_do(&town_anna, cannot_open, (void *)(uintptr_t)rig_path("cache/index")), 0);
	folk_must_be_refused(&town_bert, annas, OA_E_DATASET, "Permission denied");
	town_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, each_reads_what_he_may);
	tcase_add_test(tcase, groups_count);
	tcase_add_test(tcase, root_is_refused_unless_asked_for);
	tcase_add_test(tcase, without_capabilities_it_serves_its_own_user);
	tcase_add_test(tcase, open_data_are_read_once_for_all);
	tcase_add_test(tcase, open_shards_are_read_once_for_all);
	tcase_add_test(tcase, without_a_reader_of_its_own_nothing_is_shared);
	tcase_add_test(tcase, who_reads_for_all_has_no_jobs);
	tcase_add_test(tcase, what_is_kept_for_all_is_its_readers);
	tcase_add_test(tcase, an_open_converted_data_set_is_read_once_for_all);
	tcase_add_test(tcase, what_is_not_quite_open_is_not_shared);
	tcase_add_test(tcase, what_is_made_anew_is_served_beside_anothers_job);
	tcase_add_test(tcase, what_was_open_can_be_closed);
	tcase_add_test(tcase, a_full_stream_keeps_nobody_out);
	tcase_add_test(tcase, an_idle_domain_leaves_nothing);
	tcase_add_test(tcase, room_is_made_for_the_next_user);
	tcase_add_test(tcase, many_groups_are_one_user);
	tcase_add_test(tcase, subordinate_users_count_as_their_owner);
	tcase_add_test(tcase, the_status_shows_what_is_ones_own);
	tcase_add_test(tcase, workers_of_open_data_are_shown_to_their_users);
	tcase_add_test(tcase, bad_samples_are_told_to_their_user);
	tcase_add_test(tcase, each_keeps_his_own);
	tcase_add_test(tcase, room_on_the_disk_is_made_by_those_who_rest);
	tcase_add_test(tcase, stored_indexes_are_for_accessd_alone);
}

int main(void)
{
	return folk_main("tenants", add);
}

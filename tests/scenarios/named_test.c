/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Named data sets, with real uids: carl's pictures, which nobody else can read, under a name for anna and for a group. They are
 * read once for all of them; who is not among them is told so, and who no longer is, too, in the middle of an epoch.
 */

#include "tests/scenarios/folk.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/wrapped.h"

#define N FOLK_PICTURES
#define NAME "name:pets"
#define LONG_RUN 100000 /* epochs: it ends otherwise */

static const struct town_user member = {65202, 65202, TOWN_GROUP}; /* bert, in the group */
static char config[512];

/* One line a rule more. The file is accessd's, which reads it again as its own user. */
static void write_config(const char *path, const char *rules)
{
	FILE *file;

	snprintf(config, sizeof(config), "%s", rig_path("accessd.conf"));
	file = fopen(config, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "dataset.pets.path = %s\ndataset.pets.owner = %u\n%s", path,
		(unsigned)town_carl.uid, rules);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_int_eq(chmod(config, 0644), 0);
	town_config = config;
}

static const char *begin(const char *rules)
{
	const char *pets = folk_secret("pets", &town_carl);

	write_config(pets, rules);
	town_start("workers=1", "linger_s=0", "tenant_idle_s=1000", NULL);
	return pets;
}

static struct town_errand *send(const struct town_user *user, unsigned epochs, pid_t *ret)
{
	struct town_errand *errand = town_errand_new(NAME, N, epochs);

	errand->hold = 1;
	*ret = town_send(user, town_train, errand);
	ck_assert_msg(town_wait_holding(errand, *ret), "%s", errand->text);
	return errand;
}

static void must_see_all(struct town_errand *errand, pid_t pid)
{
	errand->goes = true;
	ck_assert_int_eq(town_wait(pid), 0);
	ck_assert_msg(errand->saw_all && !errand->wrong, "%d %s", errand->code, errand->text);
	town_errand_free(errand);
}

/* ---- shared ---- */

START_TEST(members_share_one_reading)
{
	const char *pets = begin("dataset.pets.users = 65201\ndataset.pets.groups = 65300\n");
	struct town_errand *annas, *berts;
	pid_t anna, bert;

	folk_must_be_refused(&town_anna, pets, OA_E_DATASET, "Permission denied");
	folk_must_be_refused(&member, pets, OA_E_DATASET, "Permission denied");
	annas = send(&town_anna, 1, &anna);
	berts = send(&member, 1, &bert);
	ck_assert_double_eq(rig_status("streams"), 1);
	ck_assert_double_eq(rig_status("streams.0.jobs"), 2);
	ck_assert(folk_wait_tenant(&town_anna, "bytes_used", 1, 1e12));
	must_see_all(annas, anna);
	ck_assert(folk_wait_tenant(&member, "memory", 1, 1e12)); /* who stays pays */
	must_see_all(berts, bert);
	ck_assert_double_eq(rig_status("node.samples_read"), N);
	ck_assert(folk_wait_tenant(&member, "bytes_saved", 1, 1e12)); /* it was read for anna */
	folk_must_train(&town_carl, NAME, 1);                         /* as his own name for it */
	town_end();
}
END_TEST

/* One of several names, and each has its own processes. */
START_TEST(another_name_is_another_domain)
{
	const char *pets = folk_secret("pets", &town_carl);
	char rules[700];

	snprintf(rules, sizeof(rules),
		 "dataset.pets.users = 65201\ndataset.again.path = %s\n"
		 "dataset.again.owner = 65203\ndataset.again.users = 65202\n",
		 pets);
	write_config(pets, rules);
	town_start("workers=1", "linger_s=0", NULL);
	folk_must_train(&town_anna, NAME, 1);
	folk_must_train(&town_bert, "name:again", 1);
	folk_must_be_refused(&town_anna, "name:again", OA_E_PERMISSION, "\"again\" is for users");
	ck_assert_double_eq(rig_status("node.samples_read"), 2 * N);
	town_end();
}
END_TEST

START_TEST(the_status_names_them)
{
	struct town_errand *annas;
	const char *pets, *seen;
	pid_t anna;

	pets = begin("dataset.pets.users = 65201\n");
	annas = send(&town_anna, 1, &anna);
	seen = town_status_of(&town_anna);
	ck_assert_ptr_nonnull(strstr(seen, "\"dataset\":\"" NAME "\",\"named\":\"pets\""));
	ck_assert_ptr_nonnull(strstr(seen, "\"datasets\":[{\"name\":\"pets\""));
	ck_assert_ptr_nonnull(strstr(seen, "\"allowed\":true,\"jobs\":1"));
	seen = town_status_of(&town_bert);
	ck_assert_ptr_nonnull(strstr(seen, "\"datasets\":[]"));
	ck_assert(!strstr(seen, "pets") && !strstr(seen, pets));
	seen = town_status_of(&(struct town_user){0, 0, 0});
	ck_assert_ptr_nonnull(strstr(seen, "\"allowed\":false,\"jobs\":1"));
	must_see_all(annas, anna);
	town_end();
}
END_TEST

/* What is kept of them is kept once, in a folder that nobody but accessd enters. */
START_TEST(what_is_kept_is_kept_under_the_name)
{
	const char *pets = folk_secret("pets", &town_carl);
	struct stat status;
	char text[768], path[PATH_MAX];

	write_config(pets, "dataset.pets.users = 65201\n");
	town_start("workers=1", "linger_s=0", "cache_size=64M", "cache_force=1",
		   "cache_point=decoded", NULL);
	ck_assert_msg(folk_warm(&town_anna, NAME, text) == 0, "%s", text);
	snprintf(path, sizeof(path), "%s/store/cache.mdb",
		 rig_path("cache/store/name:pets:%u", (unsigned)town_carl.uid));
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert_uint_eq(status.st_uid, town_carl.uid);
	town_end();
}
END_TEST

/* ---- refused ---- */

START_TEST(who_is_not_a_member_is_told_so)
{
	static const struct town_user root = {0, 0, 0};

	begin("dataset.pets.users = 65201\ndataset.pets.groups = 65300\n"
	      "dataset.pets.contact = vera@lab\n");
	folk_must_be_refused(&town_bert, NAME, OA_E_PERMISSION,
			     "data set \"pets\" is for users \"65201\" and groups \"65300\"");
	folk_must_be_refused(&town_bert, NAME, OA_E_PERMISSION, "ask vera@lab");
	folk_must_be_refused(&root, NAME, OA_E_PERMISSION, "serve_root");
	folk_must_be_refused(&town_anna, "name:pet", OA_E_DATASET, "no data set is called \"pet\"");
	folk_must_be_refused(&town_anna, "name:", OA_E_DATASET, "access-ctl datasets");
	folk_must_be_refused(&town_anna, NAME "/class_0000", OA_E_DATASET, "no data set is called");
	folk_must_be_refused(&town_anna, NAME "?seq_len=4", OA_E_DATASET, "is set where the name");
	folk_must_train(&town_anna, NAME, 1);
	town_end();
}
END_TEST

/* All groups of a client are looked at for each question: of so many that this would take long, none. */
static int train_in_groups(struct town_errand *errand, size_t n)
{
	gid_t *groups = calloc(n, sizeof(*groups));
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		for (size_t i = 0; i < n; i++)
			groups[i] = i ? 30000 + (gid_t)(n - i) : TOWN_GROUP;
		if (setgroups(n, groups) < 0 ||
		    setresgid(town_bert.gid, town_bert.gid, town_bert.gid) < 0 ||
		    setresuid(town_bert.uid, town_bert.uid, town_bert.uid) < 0)
			_exit(125);
		_exit(town_train(errand));
	}
	free(groups);
	return town_wait(pid);
}

START_TEST(who_has_thousands_of_groups_is_in_none)
{
	struct town_errand *few, *many;

	begin("dataset.pets.groups = 65300\n");
	few = town_errand_new(NAME, N, 1);
	many = town_errand_new(NAME, N, 1);
	ck_assert_int_eq(train_in_groups(few, 4096), 0);
	ck_assert_msg(few->saw_all && !few->wrong, "%d %s", few->code, few->text);
	ck_assert_int_eq(train_in_groups(many, 4097), 0);
	ck_assert_int_eq(many->code, OA_E_PERMISSION);
	town_errand_free(few);
	town_errand_free(many);
	town_end();
}
END_TEST

START_TEST(an_owner_who_may_not_read_is_said)
{
	static const char *const owners[][2] = {{"0", "serve_root"},
						{"65200", "accessd's own user"},
						{"no-such-user", "user database"},
						{"65201", "Permission denied"}};

	begin("dataset.pets.users = 65201\n");
	town_end();
	for (size_t i = 0; i < BASE_ARRAY_LEN(owners); i++) {
		char setting[64];

		snprintf(setting, sizeof(setting), "dataset.pets.owner=%s", owners[i][0]);
		town_start("workers=1", setting, NULL);
		folk_must_be_refused(&town_anna, NAME, i == 3 ? OA_E_DATASET : OA_E_PERMISSION,
				     owners[i][1]);
		town_end();
	}
}
END_TEST

/* A pool would run its user's Python for others. */
START_TEST(nobodys_programs_are_run_for_others)
{
	const struct wrapped_note note = {.magic = WRAPPED_MAGIC,
					  .count = N,
					  .room = 4096,
					  .workers = 1,
					  .seconds = 60,
					  .id = {.bytes = {1, 2, 3}}};
	const char *folder = rig_path("wrapped");
	char path[600];
	int fd;

	ck_assert_int_eq(mkdir(folder, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s", folder, WRAPPED_NOTE);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(fd, &note, sizeof(note)), sizeof(note));
	close(fd);
	town_give(folder, &town_carl, town_carl.gid, 0700, 0600);
	write_config(folder, "dataset.pets.users = 65201\n");
	town_start("workers=1", NULL);
	folk_must_be_refused(&town_anna, NAME, OA_E_DATASET, "Python code, which nobody else");
	town_end();
}
END_TEST

/* ---- taken away ---- */

START_TEST(who_loses_it_is_turned_out_and_others_go_on)
{
	struct town_errand *annas, *berts;
	const char *pets = begin("dataset.pets.users = 65201 65202\n");
	pid_t anna, bert;
	double stream;

	berts = send(&town_bert, 3, &bert);
	annas = send(&town_anna, LONG_RUN, &anna);
	ck_assert_double_eq(rig_status("streams"), 1);
	stream = rig_status("streams.0.id");
	annas->goes = true;
	write_config(pets, "dataset.pets.users = 65202\n");
	ck_assert_int_eq(kill(rig_host.pid, SIGHUP), 0);
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert_msg(annas->code == OA_E_PERMISSION &&
			  strstr(annas->text, "is for users \"65202\""),
		      "%d %s", annas->code, annas->text);
	town_errand_free(annas);
	folk_must_be_refused(&town_anna, NAME, OA_E_PERMISSION, "is for users \"65202\"");
	berts->hold = 0;
	berts->goes = true; /* he was in the same slots, and is in others now */
	ck_assert_int_eq(town_wait(bert), 0);
	ck_assert_msg(berts->saw_all && !berts->wrong, "%d %s", berts->code, berts->text);
	town_errand_free(berts);
	ck_assert_double_ge(rig_status("node.opens"), 3);
	berts = send(&town_bert, 1, &bert);
	ck_assert_double_ne(rig_status("streams.0.id"), stream);
	must_see_all(berts, bert);
	town_end();
}
END_TEST

/* More may come, and nobody notices. */
START_TEST(who_gets_it_disturbs_nobody)
{
	struct town_errand *annas;
	const char *pets = begin("dataset.pets.users = 65201\n");
	pid_t anna;

	annas = send(&town_anna, 1, &anna);
	folk_must_be_refused(&town_bert, NAME, OA_E_PERMISSION, "is for users");
	write_config(pets, "dataset.pets.users = 65201 65202\n");
	ck_assert_int_eq(kill(rig_host.pid, SIGHUP), 0);
	while (!strstr(town_status_of(&town_bert), "\"name\":\"pets\""))
		rig_sleep_ms(10);
	folk_must_train(&town_bert, NAME, 1);
	must_see_all(annas, anna);
	ck_assert_double_eq(rig_status("node.opens"), 2);
	town_end();
}
END_TEST

/* Whom the opening waits for, and stands still meanwhile; where the status says that it is. */
static const char *const awaited[][2] = {{"reader_pid", "\"stage\":\"scan\""},
					 {"parent_pid", "\"stage\":\"slot\""}};

START_TEST(who_is_just_opening_gets_what_it_is_then)
{
	struct town_errand *annas;
	const char *other;
	pid_t anna, stopped;

	begin("dataset.pets.users = 65201\n");
	other = folk_secret("other", &town_carl);
	folk_must_train(&town_anna, NAME, 1);
	stopped = folk_tenant(&town_carl, awaited[_i][0]);
	ck_assert_int_gt(stopped, 0);
	ck_assert_int_eq(kill(stopped, SIGSTOP), 0);
	annas = town_errand_new(NAME, N, 1);
	annas->goes = true;
	anna = town_send(&town_anna, town_train, annas);
	while (!strstr(town_status_of(&town_anna), awaited[_i][1]))
		rig_sleep_ms(10);
	write_config(other, "dataset.pets.users = 65201 65202\n");
	ck_assert_int_eq(kill(rig_host.pid, SIGHUP), 0);
	while (!strstr(town_status_of(&town_bert), "\"name\":\"pets\""))
		rig_sleep_ms(10);
	ck_assert_int_eq(kill(stopped, SIGCONT), 0);
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert_msg(annas->saw_all && !annas->wrong, "%d %s", annas->code, annas->text);
	town_errand_free(annas);
	town_end();
}
END_TEST

/* A configuration that is wrong changes nothing; one without the name ends it for all. */
START_TEST(a_name_that_is_gone_is_gone_for_all)
{
	struct town_errand *annas;
	const char *pets = begin("dataset.pets.users = 65201\n");
	pid_t anna;

	annas = send(&town_anna, LONG_RUN, &anna);
	write_config(pets, "dataset.pets.luck = 1\n");
	ck_assert_int_eq(kill(rig_host.pid, SIGHUP), 0);
	annas->goes = true;
	ck_assert_int_eq(truncate(config, 0), 0);
	ck_assert_int_eq(kill(rig_host.pid, SIGHUP), 0);
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert_msg(annas->code == OA_E_PERMISSION && strstr(annas->text, "no longer"), "%d %s",
		      annas->code, annas->text);
	town_errand_free(annas);
	folk_must_be_refused(&town_anna, NAME, OA_E_DATASET, "no data set is called \"pets\"");
	town_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, members_share_one_reading);
	tcase_add_test(tcase, another_name_is_another_domain);
	tcase_add_test(tcase, the_status_names_them);
	tcase_add_test(tcase, what_is_kept_is_kept_under_the_name);
	tcase_add_test(tcase, who_is_not_a_member_is_told_so);
	tcase_add_test(tcase, who_has_thousands_of_groups_is_in_none);
	tcase_add_test(tcase, an_owner_who_may_not_read_is_said);
	tcase_add_test(tcase, nobodys_programs_are_run_for_others);
	tcase_add_test(tcase, who_loses_it_is_turned_out_and_others_go_on);
	tcase_add_loop_test(tcase, who_is_just_opening_gets_what_it_is_then, 0,
			    BASE_ARRAY_LEN(awaited));
	tcase_add_test(tcase, who_gets_it_disturbs_nobody);
	tcase_add_test(tcase, a_name_that_is_gone_is_gone_for_all);
}

int main(void)
{
	return folk_main("named", add);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tenants, with real uids, against a system accessd: each reads what he may, nobody gets at another's
 * pixels, who does harm does it to himself. Cases 14, 19, 32 and 51 of the README's table.
 */

#include "tests/scenarios/folk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define N FOLK_PICTURES

static int cannot_open(void *path)
{
	return open(path, O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES ? 0 : 1;
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

	town_start("workers=1", NULL);
	folk_must_be_refused(&root, roots, OA_E_PERMISSION, "serve_root");
	town_end();
	town_start("workers=1", "serve_root=1", NULL);
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
	town_start("workers=1", NULL);
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
		ck_assert(folk_tenant(&town_bert, "memory") > 0 &&
			  folk_tenant(&town_anna, "memory") <= 0);
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

	town_start("workers=1", NULL);
	train_together(all, 1, N);
	town_end();
	town_start("workers=1", NULL); /* now from the stored index */
	train_together(all, 1, N);
	town_end();
	town_start("workers=1", "share_public=0", NULL);
	train_together(all, 2, 2 * N);
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
	town_start("workers=1", NULL);
	train_together(file, 1, N);
	town_end();
	ck_assert_int_eq(chmod(file, 0604), 0); /* root's, and his group is shut out */
	town_start("workers=1", NULL);
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
	town_start("workers=1", NULL);
	train_together(group, 2, 2 * N);
	town_end();
	town_start("workers=1", NULL);
	train_together(linked, 2, 2 * N);
	town_end();
	town_start("workers=1", NULL);
	train_together(path, 2, 2 * N);
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

	town_start("workers=1", "slots=4", NULL);
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

/* ---- walls ---- */

struct attack {
	pid_t victim[64];
	unsigned n;
	unsigned n_there; /* at least so many are still there while they are attacked */
	bool may_signal;  /* the processes are the attacker's own user's */
};

static bool opens(pid_t pid, const char *what, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	fd = open(path, flags | O_CLOEXEC);
	if (fd >= 0)
		fprintf(stderr, "%s can be opened\n", path);
	return fd >= 0;
}

/* accessd may start a process and end it meanwhile: one that is gone (ESRCH) is no way in, and none that
 * was tried. Returns whether one got in; *ret_there when the process was there to be tried. */
static bool gets_in(pid_t pid, bool *ret_there)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)0x400000, 1};
	int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	ssize_t n_bytes;
	bool gets = false;

	gets |= opens(pid, "mem", O_RDONLY) || opens(pid, "mem", O_RDWR);
	gets |= opens(pid, "fd", O_RDONLY | O_DIRECTORY) || opens(pid, "maps", O_RDONLY);
	gets |= opens(pid, "map_files", O_RDONLY | O_DIRECTORY) &&
		opens(pid, "map_files/0-1", O_RDONLY);
	gets |= opens(pid, "environ", O_RDONLY);
	n_bytes = process_vm_readv(pid, &here, 1, &there, 1, 0);
	*ret_there = n_bytes >= 0 || errno != ESRCH;
	if (n_bytes >= 0 || (errno != EPERM && errno != ESRCH)) {
		fprintf(stderr, "%d: process_vm_readv: %zd, %s\n", (int)pid, n_bytes,
			strerror(errno));
		gets = true;
	}
	gets |= ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
	for (int fd = 0; fd < 64 && pid_fd >= 0; fd++)
		gets |= syscall(SYS_pidfd_getfd, pid_fd, fd, 0) >= 0;
	for (int fd = 0; fd < 64; fd++) {
		char name[32];

		snprintf(name, sizeof(name), "fd/%d", fd);
		gets |= opens(pid, name, O_RDONLY);
	}
	if (pid_fd >= 0)
		close(pid_fd);
	return gets;
}

static int attack_all(void *arg)
{
	const struct attack *attack = arg;
	unsigned n_there = 0;

	for (unsigned i = 0; i < attack->n; i++) {
		bool is_there;

		if (gets_in(attack->victim[i], &is_there))
			return 1;
		if (!attack->may_signal &&
		    (kill(attack->victim[i], 0) == 0 || (errno != EPERM && is_there)))
			return 2;
		n_there += is_there;
	}
	return n_there >= attack->n_there ? 0 : 3;
}

static void add_below(struct attack *attack, pid_t pid)
{
	unsigned first = attack->n;

	attack->n += town_children(pid, attack->victim + attack->n,
				   (unsigned)BASE_ARRAY_LEN(attack->victim) - attack->n);
	for (unsigned end = attack->n; first < end; first++)
		add_below(attack, attack->victim[first]);
}

/* Another user's: accessd, reader, worker parent, workers and the job itself, while it holds slots. His
 * own: those of ours that work for him. */
START_TEST(nobody_gets_at_anothers_pixels)
{
	struct town_errand *errand = town_errand_new(folk_secret("anna", &town_anna), N, 1);
	struct attack attack = {.n = 0};
	pid_t anna;

	town_start("workers=2", NULL);
	errand->hold = 2;
	anna = town_send(&town_anna, town_train, errand);
	ck_assert(town_wait_holding(errand, anna));
	add_below(&attack, rig_host.pid);
	attack.n_there = 3; /* reader, parent, at least one worker */
	attack.may_signal = true;
	ck_assert_int_eq(town_do(&town_anna, attack_all, &attack), 0);
	attack.may_signal = false;
	attack.victim[attack.n++] = rig_host.pid;
	attack.victim[attack.n++] = anna;
	attack.n_there += 2;
	ck_assert_int_eq(town_do(&town_bert, attack_all, &attack), 0);
	errand->goes = true;
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert_msg(errand->saw_all && !errand->wrong, "%s", errand->text);
	town_errand_free(errand);
	town_end();
}
END_TEST

static bool status_line(pid_t pid, const char *key, char *ret, size_t size)
{
	char path[64], line[256];
	size_t length = strlen(key);
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	while (file && !found && fgets(line, sizeof(line), file))
		found = strncmp(line, key, length) == 0;
	if (file)
		fclose(file);
	snprintf(ret, size, "%s", found ? line + length + 1 : "");
	return found;
}

static void must_be(pid_t pid, const char *key, const char *expected)
{
	char text[256];

	ck_assert(status_line(pid, key, text, sizeof(text)));
	ck_assert_msg(strcmp(text, expected) == 0, "%d: %s is %s, not %s", (int)pid, key, text,
		      expected);
}

/* As the kernel tells it: accessd has its three capabilities, those who work for anna are anna and have
 * none, and none is to come. */
START_TEST(processes_are_who_they_should_be)
{
	struct town_errand *errand = town_errand_new(folk_secret("anna", &town_anna), N, 1);
	struct attack below = {.n = 0};
	char ids[64];
	pid_t anna;

	town_start("workers=2", NULL);
	errand->hold = 1;
	anna = town_send(&town_anna, town_train, errand);
	ck_assert(town_wait_holding(errand, anna));
	must_be(rig_host.pid, "CapEff:", "00000000000000e0\n");
	must_be(rig_host.pid, "CapPrm:", "00000000000000e0\n");
	below.victim[below.n++] = folk_tenant(&town_anna, "reader_pid");
	below.victim[below.n++] = folk_tenant(&town_anna, "parent_pid");
	add_below(&below, below.victim[1]);
	ck_assert_uint_ge(below.n, 3);
	snprintf(ids, sizeof(ids), "%u\t%u\t%u\t%u\n", town_anna.uid, town_anna.uid, town_anna.uid,
		 town_anna.uid);
	for (unsigned i = 0; i < below.n; i++) {
		must_be(below.victim[i], "Uid:", ids);
		must_be(below.victim[i], "Gid:", ids);
		must_be(below.victim[i], "Groups:", " \n");
		must_be(below.victim[i], "CapPrm:", "0000000000000000\n");
		must_be(below.victim[i], "CapInh:", "0000000000000000\n");
		must_be(below.victim[i], "CapAmb:", "0000000000000000\n");
		must_be(below.victim[i], "NoNewPrivs:", "1\n");
	}
	errand->goes = true;
	ck_assert_int_eq(town_wait(anna), 0);
	town_errand_free(errand);
	town_end();
}
END_TEST

/* ---- harm ---- */

static int kill_all(void *arg)
{
	const struct attack *attack = arg;
	unsigned killed = 0;

	for (unsigned i = 0; i < attack->n; i++)
		killed += kill(attack->victim[i], SIGKILL) == 0;
	return killed > 0 ? 0 : 1;
}

START_TEST(who_kills_his_own_harms_nobody_else)
{
	struct town_errand *annas = town_errand_new(folk_secret("anna", &town_anna), N, 3);
	struct town_errand *berts = town_errand_new(folk_secret("bert", &town_bert), N, 3);
	struct attack own = {.n = 2};
	pid_t anna, bert;

	town_start("workers=1", NULL);
	annas->hold = berts->hold = 1;
	anna = town_send(&town_anna, town_train, annas);
	bert = town_send(&town_bert, town_train, berts);
	ck_assert(town_wait_holding(annas, anna) && town_wait_holding(berts, bert));
	own.victim[0] = folk_tenant(&town_anna, "reader_pid");
	own.victim[1] = folk_tenant(&town_anna, "parent_pid");
	ck_assert_int_gt(own.victim[0], 1);
	ck_assert_int_gt(own.victim[1], 1);
	ck_assert_int_eq(town_do(&town_bert, kill_all, &own), 1);
	ck_assert_int_eq(town_do(&town_anna, kill_all, &own), 0);
	annas->goes = berts->goes = true;
	ck_assert_int_eq(town_wait(bert), 0);
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert_msg(berts->saw_all && !berts->wrong, "bert: %s", berts->text);
	ck_assert_msg(annas->saw_all && !annas->wrong, "anna: %s", annas->text);
	ck_assert_int_eq(folk_tenant(&town_bert, "reader_restarts"), 0);
	ck_assert_int_eq(folk_tenant(&town_bert, "parent_restarts"), 0);
	ck_assert_int_eq(folk_tenant(&town_anna, "reader_restarts"), 1);
	ck_assert_int_eq(folk_tenant(&town_anna, "parent_restarts"), 1);
	town_errand_free(annas);
	town_errand_free(berts);
	town_end();
}
END_TEST

static int flood(void *arg)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)arg;
	strcpy(address.sun_path, rig_host.socket);
	for (unsigned i = 0; i < 400; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
			return 1;
	}
	pause();
	return 0;
}

/* Opens streams of one dataset with ever another pipeline, until it is refused. */
static int hoard(void *arg)
{
	struct town_errand *errand = arg;
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = NULL;

	errand->code = oa_connect(rig_host.socket, &client, &error);
	for (unsigned i = 0; i < 64 && !errand->code; i++) {
		struct oa_options options = trainee_options(errand->dataset, 8, 1);
		struct oa_stream *stream;
		char spec[256];

		snprintf(spec, sizeof(spec),
			 "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[%u,%u]},"
			 "{\"op\":\"layout\",\"order\":\"CHW\"}]}",
			 40 + i, 40 + i);
		options.pipeline = spec;
		errand->code = oa_open(client, &options, &stream, &error);
		errand->batches += !errand->code;
	}
	snprintf(errand->text, sizeof(errand->text), "%s", error.text);
	errand->holds = true;
	while (!errand->goes)
		rig_sleep_ms(5);
	return 0;
}

START_TEST(who_floods_meets_his_own_limits)
{
	const char *annas = folk_secret("anna", &town_anna);
	struct town_errand *hoarded = town_errand_new(folk_secret("bert", &town_bert), N, 1);
	pid_t crowd, hoarder;

	town_start("workers=1", "max_clients=64", "tenant_clients=12", "tenant_streams=3",
		   "variants=1", NULL);
	crowd = town_send(&town_bert, flood, NULL);
	ck_assert(rig_wait_status("node.clients", 12, 14));
	folk_must_train(&town_anna, annas, 1);
	hoarder = town_send(&town_bert, hoard, hoarded);
	ck_assert(town_wait_holding(hoarded, hoarder));
	ck_assert_msg(hoarded->batches == 3 && hoarded->code == OA_E_REFUSED &&
			  strstr(hoarded->text, "3 streams") &&
			  strstr(hoarded->text, "tenant_streams"),
		      "%u opened, %d %s", hoarded->batches, hoarded->code, hoarded->text);
	folk_must_train(&town_anna, annas, 1);
	hoarded->goes = true;
	ck_assert_int_eq(town_wait(hoarder), 0);
	kill(crowd, SIGKILL);
	town_wait(crowd);
	town_errand_free(hoarded);
	town_end();
}
END_TEST

START_TEST(nobody_takes_all_the_memory)
{
	const char *annas = folk_secret("anna", &town_anna);
	struct town_errand *hoarded = town_errand_new(folk_secret("bert", &town_bert), N, 1);
	pid_t hoarder;

	town_start("workers=1", "memory=400M", "tenant_memory=150M", "hand=16", NULL);
	hoarder = town_send(&town_bert, hoard, hoarded);
	ck_assert(town_wait_holding(hoarded, hoarder));
	ck_assert_msg(hoarded->code == OA_E_MEMORY && hoarded->batches > 0 &&
			  strstr(hoarded->text, "tenant_memory"),
		      "%u opened, %d %s", hoarded->batches, hoarded->code, hoarded->text);
	ck_assert(rig_status("node.memory_used") <= 150 * 1048576.0);
	folk_must_train(&town_anna, annas, 1);
	hoarded->goes = true;
	ck_assert_int_eq(town_wait(hoarder), 0);
	town_errand_free(hoarded);
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
	for (uint64_t end = base_now_ns() + UINT64_C(60000000000);
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

/* What is kept of a user's samples is his, in a folder that nobody else but accessd gets to, nor he. */
START_TEST(each_keeps_his_own)
{
	const char *annas = folk_secret("anna", &town_anna),
		   *berts = folk_secret("bert", &town_bert);
	char path[PATH_MAX], text[768];
	struct stat status;

	town_start("workers=1", "linger_s=0", "cache_size=64M", "cache_force=1",
		   "cache_point=decoded", NULL);
	ck_assert_msg(folk_warm(&town_anna, annas, text) == 0, "%s", text);
	folk_must_train(&town_bert, berts, 1);
	ck_assert(rig_wait_status("caches.1.uid", 1, 1e9));
	for (unsigned i = 0; i < 100 && folk_kept(&town_anna, "hits") <= 0; i++, rig_sleep_ms(200))
		folk_must_train(&town_anna, annas, 5);
	ck_assert(folk_kept(&town_anna, "hits") > 0);
	ck_assert_double_eq(folk_kept(&town_bert, "hits"), 0);
	ck_assert_double_eq(folk_kept(&town_anna, "limit"), 16 << 20);
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

/* A store of somebody who was here once. */
static void leave_a_store(const char *key, size_t bytes)
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
	ck_assert_int_eq(fchown(fd, town_carl.uid, town_carl.gid), 0);
	close(fd);
}

static void must_wait_for_limit(const struct town_user *user, double limit)
{
	const uint64_t end = base_now_ns() + UINT64_C(60000000000);

	while (folk_kept(user, "limit") <= 0 && base_now_ns() < end)
		rig_sleep_ms(20);
	ck_assert_double_eq(folk_kept(user, "limit"), limit);
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
	leave_a_store("user:65299:65299", 4 << 20);
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
	tcase_add_test(tcase, an_open_converted_data_set_is_read_once_for_all);
	tcase_add_test(tcase, what_is_not_quite_open_is_not_shared);
	tcase_add_test(tcase, what_was_open_can_be_closed);
	tcase_add_test(tcase, a_full_stream_keeps_nobody_out);
	tcase_add_test(tcase, nobody_gets_at_anothers_pixels);
	tcase_add_test(tcase, processes_are_who_they_should_be);
	tcase_add_test(tcase, who_kills_his_own_harms_nobody_else);
	tcase_add_test(tcase, who_floods_meets_his_own_limits);
	tcase_add_test(tcase, nobody_takes_all_the_memory);
	tcase_add_test(tcase, an_idle_domain_leaves_nothing);
	tcase_add_test(tcase, room_is_made_for_the_next_user);
	tcase_add_test(tcase, the_status_shows_what_is_ones_own);
	tcase_add_test(tcase, each_keeps_his_own);
	tcase_add_test(tcase, room_on_the_disk_is_made_by_those_who_rest);
	tcase_add_test(tcase, stored_indexes_are_for_accessd_alone);
}

static void add_if_possible(TCase *tcase)
{
	const char *why;

	if (town_can(&why)) {
		add(tcase);
		return;
	}
	printf("skipped: %s\n", why);
	rmdir(rig_path("%s", ""));
	exit(77);
}

int main(void)
{
	return rig_main("tenants", add_if_possible);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tenants who mean harm, with real uids, against a system accessd: nobody gets at another's pixels, and who
 * does harm does it to himself. Cases 14, 32 and 51 of the README's table.
 */

#include "base/wire.h"
#include "shmring/proto.h"
#include "tests/scenarios/folk.h"
#include "tests/scenarios/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define N FOLK_PICTURES

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

/* Of a process that has ended the kernel opens this for everybody: it is empty then. */
static bool tells(pid_t pid, const char *what)
{
	char path[64], byte;
	_cleanup_close_ int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &byte, 1) <= 0)
		return false;
	fprintf(stderr, "%s can be read\n", path);
	return true;
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
	gets |= opens(pid, "fd", O_RDONLY | O_DIRECTORY) || tells(pid, "maps");
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
		    (kill(attack->victim[i], 0) == 0 || (errno != EPERM && errno != ESRCH)))
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

static int end_at_once(void *arg)
{
	(void)arg;
	return 0;
}

/* Another user's: accessd, reader, worker parent, workers and the job itself, while it holds slots. His
 * own: those of ours that work for him. And one that has ended, as any of ours may meanwhile. */
START_TEST(nobody_gets_at_anothers_pixels)
{
	struct town_errand *errand = town_errand_new(folk_secret("anna", &town_anna), N, 1);
	struct attack attack = {.n = 0};
	pid_t anna, ended = town_send(&town_anna, end_at_once, NULL);

	while (!town_has_ended(ended))
		rig_sleep_ms(5);
	town_start("workers=2", "linger_s=0", NULL);
	errand->hold = 2;
	anna = town_send(&town_anna, town_train, errand);
	ck_assert(town_wait_holding(errand, anna));
	attack.victim[attack.n++] = ended;
	add_below(&attack, rig_host.pid);
	attack.n_there = 3; /* reader, parent, at least one worker */
	attack.may_signal = true;
	ck_assert_int_eq(town_do(&town_anna, attack_all, &attack), 0);
	attack.may_signal = false;
	attack.victim[attack.n++] = rig_host.pid;
	attack.victim[attack.n++] = anna;
	attack.n_there += 2;
	ck_assert_int_eq(town_do(&town_bert, attack_all, &attack), 0);
	ck_assert_int_eq(town_wait(ended), 0);
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

/* The processes of a domain are that user and have no rights. */
static void must_work_as(const struct town_user *user)
{
	struct attack below = {.n = 0};
	char uids[64], gids[64];

	below.victim[below.n++] = folk_tenant(user, "reader_pid");
	below.victim[below.n++] = folk_tenant(user, "parent_pid");
	add_below(&below, below.victim[1]);
	ck_assert_uint_ge(below.n, 3);
	snprintf(uids, sizeof(uids), "%u\t%u\t%u\t%u\n", user->uid, user->uid, user->uid,
		 user->uid);
	snprintf(gids, sizeof(gids), "%u\t%u\t%u\t%u\n", user->gid, user->gid, user->gid,
		 user->gid);
	for (unsigned i = 0; i < below.n; i++) {
		must_be(below.victim[i], "Uid:", uids);
		must_be(below.victim[i], "Gid:", gids);
		must_be(below.victim[i], "Groups:", " \n");
		must_be(below.victim[i], "CapPrm:", "0000000000000000\n");
		must_be(below.victim[i], "CapInh:", "0000000000000000\n");
		must_be(below.victim[i], "CapAmb:", "0000000000000000\n");
		must_be(below.victim[i], "NoNewPrivs:", "1\n");
	}
}

/* As the kernel tells it: accessd has its three capabilities, those who work for anna are anna and have
 * none, and none is to come; those who read what is open to everybody are neither she nor accessd. */
START_TEST(processes_are_who_they_should_be)
{
	struct town_errand *errand[2] = {
	    town_errand_new(folk_secret("anna", &town_anna), N, 1),
	    town_errand_new(folk_open("everybodys"), N, 1),
	};
	pid_t anna[2];

	town_start("workers=2", "linger_s=0", NULL);
	for (unsigned i = 0; i < 2; i++) {
		errand[i]->hold = 1;
		anna[i] = town_send(&town_anna, town_train, errand[i]);
		ck_assert(town_wait_holding(errand[i], anna[i]));
	}
	must_be(rig_host.pid, "CapEff:", "00000000000000e0\n");
	must_be(rig_host.pid, "CapPrm:", "00000000000000e0\n");
	must_work_as(&town_anna);
	must_work_as(&town_public);
	for (unsigned i = 0; i < 2; i++) {
		errand[i]->goes = true;
		ck_assert_int_eq(town_wait(anna[i]), 0);
		town_errand_free(errand[i]);
	}
	town_end();
}
END_TEST

static uid_t owner_of(pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return stat(path, &st) == 0 ? st.st_uid : 0;
}

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

	town_start("workers=1", "linger_s=0", "tenant_idle_s=3600", NULL);
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
	ck_assert(folk_wait_tenant(&town_anna, "reader_restarts", 1, 1));
	ck_assert(folk_wait_tenant(&town_anna, "parent_restarts", 1, 1));
	ck_assert_int_eq(folk_tenant(&town_bert, "reader_restarts"), 0);
	ck_assert_int_eq(folk_tenant(&town_bert, "parent_restarts"), 0);
	town_errand_free(annas);
	town_errand_free(berts);
	town_end();
}
END_TEST

/* What the epilogue of a batch system does to a user, as root: all processes of his, again until none is left. */
static unsigned kill_all_of(const struct town_user *user, pid_t job)
{
	unsigned killed = kill(job, SIGKILL) == 0, before;

	town_wait(job);
	do {
		struct attack below = {.n = 0};

		before = killed;
		add_below(&below, rig_host.pid);
		for (unsigned i = 0; i < below.n; i++)
			killed += owner_of(below.victim[i]) == user->uid &&
				  kill(below.victim[i], SIGKILL) == 0;
	} while (killed > before);
	return killed;
}

static uid_t wiped_uid;
static unsigned wiped;

static int wipe_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	if (st->st_uid == wiped_uid && type != FTW_D && remove(path) == 0)
		wiped++;
	return 0;
}

/* All that is his in /dev/shm and where temporary files are, and his shared memory of System V. Returns how much
 * there was of it. */
static unsigned wipe_all_of(const struct town_user *user)
{
	struct shmid_ds info;
	int last = shmctl(0, SHM_INFO, &info);

	wiped = 0;
	wiped_uid = user->uid;
	ck_assert_int_eq(nftw("/dev/shm", wipe_one, 16, FTW_PHYS), 0);
	ck_assert_int_eq(nftw(rig_path("tmp"), wipe_one, 16, FTW_PHYS), 0);
	for (int i = 0; i <= last; i++) {
		int id = shmctl(i, SHM_STAT, &info);

		wiped +=
		    id >= 0 && info.shm_perm.uid == user->uid && shmctl(id, IPC_RMID, NULL) == 0;
	}
	return wiped;
}

/* What a job leaves about: one of each kind. */
static int leave_things(void *arg)
{
	int fd = open(arg, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int shm = open("/dev/shm/of-a-job", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd >= 0 && shm >= 0 && shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0 ? 0 : 1;
}

/* A node of our own for what is wiped: nobody else's memory and temporary files. */
static bool has_own_node(void)
{
	mkdir(rig_path("tmp"), 01777);
	chmod(rig_path("tmp"), 01777);
	setenv("TMPDIR", rig_path("tmp"), 1);
	return unshare(CLONE_NEWNS | CLONE_NEWIPC) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("shm", "/dev/shm", "tmpfs", 0, "mode=1777,size=64m") == 0;
}

/* Anna is logged out under her job: nothing of what is wiped was ours, bert and the data that are open to all
 * notice nothing, and she is served when she comes back. */
START_TEST(who_is_logged_out_harms_nobody_else)
{
	const char *hers = folk_secret("anna", &town_anna);
	struct town_errand *annas = town_errand_new(hers, N, 0);
	struct town_errand *berts = town_errand_new(folk_secret("bert", &town_bert), N, 3);
	struct town_errand *opens = town_errand_new(folk_open("everybodys"), N, 3);
	pid_t accessd, anna, bert, carl;

	if (!has_own_node()) {
		puts("who_is_logged_out_harms_nobody_else: skipped: no mount and IPC namespaces "
		     "here");
		return;
	}
	town_start("workers=1", "linger_s=0", "cache_size=64M", "cache_force=1",
		   "cache_point=decoded", NULL);
	accessd = rig_host.pid;
	annas->hold = berts->hold = opens->hold = 1;
	anna = town_send(&town_anna, town_train, annas);
	bert = town_send(&town_bert, town_train, berts);
	carl = town_send(&town_carl, town_train, opens);
	ck_assert(town_wait_holding(annas, anna) && town_wait_holding(berts, bert) &&
		  town_wait_holding(opens, carl));
	ck_assert_int_eq(
	    town_do(&town_anna, leave_things, (void *)(uintptr_t)rig_path("tmp/of-a-job")), 0);
	ck_assert_uint_ge(kill_all_of(&town_anna, anna), 3); /* her job, a reader, a parent */
	ck_assert_uint_eq(wipe_all_of(&town_anna), 3);       /* and nothing of ours */
	berts->goes = opens->goes = true;
	ck_assert_int_eq(town_wait(bert), 0);
	ck_assert_int_eq(town_wait(carl), 0);
	ck_assert_msg(berts->saw_all && !berts->wrong, "bert: %s", berts->text);
	ck_assert_msg(opens->saw_all && !opens->wrong, "carl: %s", opens->text);
	ck_assert_double_eq(rig_status("pid"), accessd);
	for (unsigned i = 0; i < 2; i++) {
		const struct town_user *const others[] = {&town_bert, &town_public};

		ck_assert_int_eq(folk_tenant(others[i], "reader_restarts"), 0);
		ck_assert_int_eq(folk_tenant(others[i], "parent_restarts"), 0);
	}
	folk_must_train(&town_anna, hers, 2);
	ck_assert_uint_eq(wipe_all_of(&town_anna), 0);
	town_errand_free(annas);
	town_errand_free(berts);
	town_errand_free(opens);
	town_end();
}
END_TEST

#define VICTIMS 48
#define SCANNED \
	1000 /* of 196 kB each as they are kept: ten times what is kept of all users, and more */

/* Trains, and returns how many files of bert's were opened for it, which the kernel tells: each sample that did
 * not come from what is kept. The other epochs come from slots. */
static unsigned opened_for_bert(const char *dataset, int notify)
{
	_Alignas(struct inotify_event) char events[65536];
	unsigned n = 0;
	ssize_t size;

	folk_must_train(&town_bert, dataset, 2);
	while ((size = read(notify, events, sizeof(events))) > 0)
		for (ssize_t at = 0; at < size;) {
			const struct inotify_event *event = (const void *)(events + at);

			n += event->len > 0 && event->mask & IN_OPEN && !(event->mask & IN_ISDIR);
			at += (ssize_t)sizeof(*event) + event->len;
		}
	return n;
}

/* Bert's share is guaranteed: anna, who keeps all that she may, reads ten times what there is. What he has kept
 * stays, is never made again, and all that he reads comes from it, beside her and behind her. */
START_TEST(who_scans_takes_nothing_of_anothers_share)
{
	struct town_errand *annas =
	    town_errand_new(rig_pictures("much", SCANNED, 2, 256), SCANNED, 2);
	const char *berts = rig_pictures("victim", VICTIMS, 2, 120);
	_cleanup_close_ int notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	unsigned n_full = 0;
	char text[768];
	double kept;
	pid_t anna;

	town_give(annas->dataset, &town_anna, town_anna.gid, 0700, 0600);
	town_give(berts, &town_bert, town_bert.gid, 0700, 0600);
	town_start("workers=2", "linger_s=0", "cache_size=16M", "cache_memory=16M", "tenants=2",
		   "cache_force=1", "cache_point=decoded", "tenant_idle_s=600", NULL);
	ck_assert_msg(folk_warm(&town_bert, berts, text) == 0, "%s", text);
	for (unsigned i = 0; i < 2; i++) {
		char folder[PATH_MAX];

		snprintf(folder, sizeof(folder), "%s/class_%04u", berts, i);
		ck_assert_int_ge(inotify_add_watch(notify, folder, IN_OPEN | IN_CLOSE), 0);
	}
	for (unsigned i = 0; opened_for_bert(berts, notify) > 0; i++) /* all comes kept */
		ck_assert_uint_lt(i, 100);
	ck_assert(folk_wait_kept(&town_bert, "values", VICTIMS, 1e9));
	ck_assert(folk_wait_kept(&town_bert, "kept", VICTIMS, 1e9));
	kept = folk_kept(&town_bert, "kept");

	annas->hold = 1;
	anna = town_send(&town_anna, town_train, annas);
	ck_assert(town_wait_holding(annas, anna));
	annas->goes = true;
	do
		n_full += opened_for_bert(berts, notify) == 0;
	while (!town_has_ended(anna));
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert_msg(annas->saw_all && !annas->wrong, "anna: %s", annas->text);
	for (unsigned i = 0; n_full == 0; i++, n_full += opened_for_bert(berts, notify) == 0)
		ck_assert_uint_lt(i, 100);
	ck_assert_double_eq(folk_kept(&town_bert, "kept"), kept);
	ck_assert_double_eq(folk_kept(&town_bert, "evicted"), 0);
	ck_assert_double_ge(folk_kept(&town_bert, "values"), VICTIMS);
	ck_assert(folk_wait_kept(&town_anna, "not_taken", 1, 1e9)); /* more than her share */
	ck_assert_double_le(folk_kept(&town_anna, "used"), folk_kept(&town_anna, "limit"));
	town_errand_free(annas);
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

	town_start("workers=1", "linger_s=0", "memory=400M", "tenant_memory=150M", "chunk=16",
		   NULL);
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

/* Says something with a file that cannot be closed, and stays: to end would be to close it. */
static int send_slow_file(void *arg)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct town_errand *errand = arg;
	int fd = open(errand->dataset, O_RDONLY | O_CLOEXEC);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct wire_out out;

	strcpy(address.sun_path, rig_host.socket);
	if (fd < 0 || connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0)
		_exit(1);
	wire_out_init(&out, PROTO_HELLO);
	foreign_send(sock, out.data, out.size, fd, FOREIGN_MOST);
	errand->holds = true;
	for (;;)
		pause();
}

/* What was forked just now has accessd's rights until it gives them up; who is gone has none. */
static void must_come_to_nothing(pid_t pid)
{
	const uint64_t end = base_now_ns() + PATIENCE_NS;
	char text[256];

	while (status_line(pid, "CapPrm:", text, sizeof(text)) &&
	       strcmp(text, "0000000000000000\n") != 0) {
		ck_assert_msg(base_now_ns() < end, "%d has %s", (int)pid, text);
		rig_sleep_ms(5);
	}
}

/* Who takes a message of hers waits for ever; bert's reader and workers are started meanwhile. */
START_TEST(who_hangs_hangs_alone)
{
	const char *annas = folk_secret("anna", &town_anna),
		   *berts = folk_secret("bert", &town_bert);
	struct town_errand *errand = town_errand_new(rig_path("slow/file"), N, 1);
	pid_t server = foreign_files_start(rig_path("slow")), anna, child[16];
	unsigned n;

	if (server < 0)
		return;
	town_start("workers=1", "linger_s=0", NULL);
	anna = town_send(&town_anna, send_slow_file, errand);
	ck_assert(town_wait_holding(errand, anna));
	folk_must_train(&town_bert, berts, 2);
	n = town_children(rig_host.pid, child, BASE_ARRAY_LEN(child));
	ck_assert_uint_ge(n, 3); /* bert's, and her porter */
	for (unsigned i = 0; i < n; i++)
		must_come_to_nothing(child[i]);
	kill(server, SIGKILL);
	town_wait(server);
	kill(anna, SIGKILL);
	town_wait(anna);
	folk_must_train(&town_anna, annas, 1);
	town_errand_free(errand);
	town_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, nobody_gets_at_anothers_pixels);
	tcase_add_test(tcase, processes_are_who_they_should_be);
	tcase_add_test(tcase, who_kills_his_own_harms_nobody_else);
	tcase_add_test(tcase, who_is_logged_out_harms_nobody_else);
	tcase_add_test(tcase, who_scans_takes_nothing_of_anothers_share);
	tcase_add_test(tcase, who_floods_meets_his_own_limits);
	tcase_add_test(tcase, nobody_takes_all_the_memory);
	tcase_add_test(tcase, who_hangs_hangs_alone);
}

int main(void)
{
	return folk_main("harm", add);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tenants who mean harm, with real uids, against a system accessd: nobody gets at another's pixels, and who
 * does harm does it to himself. Cases 14, 32 and 51 of the README's table.
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

/* Another user's: accessd, reader, worker parent, workers and the job itself, while it holds slots. His
 * own: those of ours that work for him. */
START_TEST(nobody_gets_at_anothers_pixels)
{
	struct town_errand *errand = town_errand_new(folk_secret("anna", &town_anna), N, 1);
	struct attack attack = {.n = 0};
	pid_t anna;

	town_start("workers=2", "linger_s=0", NULL);
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

	town_start("workers=2", "linger_s=0", NULL);
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

	town_start("workers=1", "linger_s=0", NULL);
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

	town_start("workers=1", "linger_s=0", "memory=400M", "tenant_memory=150M", "hand=16", NULL);
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

static void add(TCase *tcase)
{
	tcase_add_test(tcase, nobody_gets_at_anothers_pixels);
	tcase_add_test(tcase, processes_are_who_they_should_be);
	tcase_add_test(tcase, who_kills_his_own_harms_nobody_else);
	tcase_add_test(tcase, who_floods_meets_his_own_limits);
	tcase_add_test(tcase, nobody_takes_all_the_memory);
}

int main(void)
{
	return folk_main("harm", add);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ACCESS_DAEMON=BUILD/daemon/accessd ACCESS_LIBEXEC=BUILD/libexec BUILD/bench/neighbour: the rate of two honest users'
 * jobs beside a hostile neighbour (tests/scenarios/neighbour.h) over that beside a polite one, who trains, too; then what
 * is missing or repeated, the longest turns of the loop, and what he made the node keep: all rows of a table, in less
 * than five minutes.
 * Needs root. The environment of the test has the seed and the attacks here, too; there are as many as there is time for.
 *
 * The two jobs run all the time, with one accessd, each sample checked; the neighbours take turns, for a window of
 * WINDOW_S each, and what counts is the batches that a job got in a window. A machine that is slower for a while is
 * so for both.
 *
 * A process that burns CPU time, or starts others that do, needs no accessd for it, and how much of the CPU it gets
 * is the scheduler's matter. So in both windows all that runs as the neighbour's uid, his processes and those that
 * accessd has started for him, has nice 19, with all its threads, some milliseconds after it began. What remains is what
 * only accessd can do to the honest: turns of its loop that they wait for, children that it forks, locks, memory and
 * the disk; and the little that nice 19 leaves to each process that wants all it can get. That little is not
 * accessd's doing, so the rate is also given by what the honest's own processes had of the CPU, with what accessd's own
 * took.
 */

#include "tests/scenarios/neighbour.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/scenarios/folk.h"
#include "tests/scenarios/honest.h"
#include "tests/scenarios/kept.h"

#define WINDOW_S 10
#define ROUNDS 5
#define PICTURES 480
#define SIDE 224
#define EPOCHS 20 /* of a run */
#define POLITE_STEP_MS 20
#define LOOK_NS UINT64_C(1000000000) /* between looks at what he has */
#define SHARE_MIB 256                /* of memory */
#define INDEX_MIB 64                 /* of everybody's stored indexes; caches are off */
#define STRING_OF(number) #number
#define MIB(number) STRING_OF(number) "M"

static const struct speed {
	const char *what;
	unsigned step_ms;
} speeds[] = {{"a step of 10 ms a batch", 10}, {"as fast as they can", 0}};

struct pair {
	struct honest anna, carl;
};

struct usage {           /* seconds of CPU time */
	double honest;   /* all processes of the two honest users */
	double accessd;  /* its own */
	double children; /* of children of it that have ended, whoever they ran as */
	double machine;  /* all that was not idle */
};

struct service {     /* of a window */
	double rate; /* batches/s of both jobs */
	struct usage usage;
};

static struct neighbour neighbour;
static struct kept before, most; /* while he was there */

/* ---- who is where ---- */

static unsigned batches_of(const struct honest *honest)
{
	return *(volatile const unsigned *)&honest->errand->batches;
}

/* Begins a job of a folder that is this user's alone, and returns when it has its first batch. */
static void begin(struct honest *honest, const struct town_user *user, const char *name,
		  enum oa_order order, unsigned step_ms)
{
	char path[512];

	snprintf(path, sizeof(path), "%s", rig_path("%s", name));
	if (access(path, F_OK) < 0)
		rig_pictures(name, PICTURES, 2, SIDE);
	town_give(path, user, user->gid, 0700, 0600);
	honest_start(honest, user, path, PICTURES, EPOCHS, order, step_ms);
	while (batches_of(honest) == 0 && !town_has_ended(honest->pid))
		rig_sleep_ms(10);
}

/* ---- CPU time ---- */

/* Of a process, and of its children that have ended; zeros: it is gone. */
static double cpu_of(const char *pid, double *ret_children)
{
	unsigned long long user = 0, system = 0, ended_user = 0, ended_system = 0;
	const double tick_s = 1 / (double)sysconf(_SC_CLK_TCK);
	char path[64], line[1024] = "", *behind;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	file = fopen(path, "r");
	if (file && !fgets(line, sizeof(line), file))
		line[0] = '\0';
	if (file)
		fclose(file);
	behind = strrchr(line, ')');
	if (behind)
		sscanf(behind, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
		       &user, &system, &ended_user, &ended_system);
	*ret_children = (double)(ended_user + ended_system) * tick_s;
	return (double)(user + system) * tick_s;
}

static bool is_of_honest(const char *pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.20s", pid);
	return stat(path, &st) == 0 && (st.st_uid == town_anna.uid || st.st_uid == town_carl.uid);
}

static double cpu_of_machine(void)
{
	unsigned long long user = 0, nice = 0, system = 0;
	FILE *file = fopen("/proc/stat", "r");

	if (file && fscanf(file, "cpu %llu %llu %llu", &user, &nice, &system) != 3)
		system = 0;
	if (file)
		fclose(file);
	return (double)(user + nice + system) / (double)sysconf(_SC_CLK_TCK);
}

static struct usage usage_now(void)
{
	struct usage now = {.machine = cpu_of_machine()};
	DIR *folder = opendir("/proc");
	char accessd[24];

	snprintf(accessd, sizeof(accessd), "%d", (int)rig_host.pid);
	now.accessd = cpu_of(accessd, &now.children);
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		double children;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    !is_of_honest(entry->d_name))
			continue;
		now.honest += cpu_of(entry->d_name, &children);
		now.honest += children;
	}
	if (folder)
		closedir(folder);
	return now;
}

/* ---- a window ---- */

static unsigned batches_of_both(const struct pair *pair)
{
	return batches_of(&pair->anna) + batches_of(&pair->carl);
}

/* The looks are the same beside either neighbour. */
static struct service service_now(const struct pair *pair)
{
	const struct usage then = usage_now();
	const unsigned batches = batches_of_both(pair);
	const uint64_t begin_ns = base_now_ns();
	uint64_t now_ns = begin_ns, look_ns = begin_ns + LOOK_NS;
	struct usage now;

	do {
		setpriority(PRIO_USER, town_bert.uid, 19); /* all threads of his, as they come */
		rig_sleep_ms(5);
		if (now_ns >= look_ns) {
			kept_look(&neighbour, &most);
			look_ns += LOOK_NS;
		}
		now_ns = base_now_ns();
	} while (now_ns < begin_ns + WINDOW_S * UINT64_C(1000000000));
	now = usage_now();
	return (struct service){.rate = (batches_of_both(pair) - batches) * 1e9 /
					(double)(now_ns - begin_ns),
				.usage = {.honest = now.honest - then.honest,
					  .accessd = now.accessd - then.accessd,
					  .children = now.children - then.children,
					  .machine = now.machine - then.machine}};
}

static void until_he_is_gone(void)
{
	ck_assert(rig_wait_status("jobs", 0, 2));
	rig_sleep_ms(1500); /* tenant_idle_s */
}

static struct service beside_polite(const struct pair *pair, const char *berts)
{
	struct town_errand *errand = town_errand_new(berts, FOLK_PICTURES, 1000000);
	struct service service;
	pid_t pid;

	errand->step_ms = POLITE_STEP_MS;
	pid = town_send(&town_bert, town_train, errand);
	setpriority(PRIO_PROCESS, (id_t)pid, 19);
	service = service_now(pair);
	kill(pid, SIGKILL);
	town_wait(pid);
	town_errand_free(errand);
	until_he_is_gone();
	return service;
}

static struct service beside_hostile(const struct pair *pair)
{
	struct service service;

	neighbour_start(&neighbour);
	service = service_now(pair);
	neighbour_end(&neighbour);
	until_he_is_gone();
	return service;
}

/* ---- rounds ---- */

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* What accessd did for the honest with what they had of the CPU, and what it took itself. */
static double service_rate(const struct service *service)
{
	return service->rate / (service->usage.honest + service->usage.accessd);
}

static void tell_window(const char *beside, const struct service *service)
{
	const struct usage *usage = &service->usage;

	printf("  beside %s %.1f batches/s; seconds of CPU: the honest %.2f, accessd %.2f, its "
	       "children that ended %.2f, all else %.2f\n",
	       beside, service->rate, usage->honest, usage->accessd, usage->children,
	       usage->machine - usage->honest - usage->accessd - usage->children);
}

static void tell_ratios(const char *what, const char *asked, const struct speed *speed,
			double ratios[ROUNDS])
{
	qsort(ratios, ROUNDS, sizeof(ratios[0]), by_size);
	printf("| %s beside a hostile neighbour over beside a polite one, %s | %s | %.3f (%.3f to "
	       "%.3f in %d rounds) |\n",
	       what, speed->what, asked, ratios[ROUNDS / 2], ratios[0], ratios[ROUNDS - 1], ROUNDS);
}

static void measure(const struct speed *speed)
{
	double rates[ROUNDS], services[ROUNDS];
	struct pair pair;

	begin(&pair.anna, &town_anna, "annas", OA_ORDER_CAROUSEL, speed->step_ms);
	begin(&pair.carl, &town_carl, "carls", OA_ORDER_SEEDED, speed->step_ms);
	for (unsigned i = 0; i < ROUNDS; i++) {
		const struct service polite = beside_polite(&pair, neighbour.data);
		const struct service hostile = beside_hostile(&pair);

		rates[i] = hostile.rate / polite.rate;
		services[i] = service_rate(&hostile) / service_rate(&polite);
		printf("round %u, %s: %.3f, by CPU time %.3f\n", i + 1, speed->what, rates[i],
		       services[i]);
		tell_window("polite", &polite);
		tell_window("hostile", &hostile);
		fflush(stdout);
	}
	honest_end(&pair.anna);
	honest_end(&pair.carl);
	tell_ratios("rate", ">= 0.9", speed, rates);
	tell_ratios("batches a CPU second of the honest and accessd", ">= 0.9", speed, services);
}

/* honest_end() has looked at each sample. */
static void tell_kept(void)
{
	puts("| samples missing, repeated or wrong | 0 | 0 |");
	printf("| what he made the node keep: memory that is his | <= %d MiB | %.0f MiB |\n",
	       SHARE_MIB, most.memory / 1048576);
	printf("| accessd's own memory, more than before | | %.1f MiB |\n",
	       (most.anon_kib - before.anon_kib) / 1024);
	printf("| on the disk, with what the honest have: indexes, plan logs | <= %d MiB | %.1f "
	       "MiB |\n",
	       INDEX_MIB, most.disk / 1048576);
	printf("| descriptors of accessd, more than before | | %u |\n",
	       most.fds - BASE_MIN(most.fds, before.fds));
	printf("| an answer to a question for the status, the longest | | %.0f ms |\n",
	       most.status_ms);
}

START_TEST(rates)
{
	neighbour_names();
	town_start("workers=1", "linger_s=0", "tenant_idle_s=1", "memory=1G",
		   "tenant_memory=" MIB(SHARE_MIB), "index_size=" MIB(INDEX_MIB), NULL);
	before = kept_now();
	neighbour_init(&neighbour, 0);
	neighbour.nice = 19;
	for (size_t i = 0; i < BASE_ARRAY_LEN(speeds); i++)
		measure(&speeds[i]);
	neighbour_tell(&neighbour);
	tell_kept();
	town_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, rates);
}

int main(void)
{
	return folk_main("neighbour", add);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The jobs' processes: forked, reaped, and, when asked for, killed, stopped and continued at times
 * drawn from --seed. P times a minute on average means that in a tick of dt seconds each job is hit
 * with probability P dt / 60.
 *
 * A job that was killed by us begins a new life from its ledger. One that dies of anything else has
 * failed: the benchmark must not hide a crash behind a restart.
 */

#include "tools/bench.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int bench_crew_fork(struct bench_crew *crew, unsigned job)
{
	struct bench_member *member = &crew->member[job];
	int parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		_exit(bench_job(crew->config, crew->socket, job, crew->shared, member->ledger_fd));
	}
	member->pid = pid;
	member->lives++;
	member->continue_ns = 0;
	return 0;
}

int bench_crew_start(struct bench_crew *crew, const struct bench_config *config, const char *socket,
		     struct bench_shared *shared)
{
	*crew = (struct bench_crew){.config = config, .socket = socket, .shared = shared};
	philox_seq_init(&crew->draws, config->seed, 0, 0);
	for (unsigned i = 0; i < config->jobs; i++)
		crew->member[i].ledger_fd = -1;
	for (unsigned i = 0; i < config->jobs; i++) {
		crew->member[i].ledger_fd = ledger_memory();
		if (crew->member[i].ledger_fd < 0)
			return crew->member[i].ledger_fd;
	}
	shared->zero_ns = crew->last_ns = base_now_ns();
	for (unsigned i = 0; i < config->jobs; i++) {
		int r = bench_crew_fork(crew, i);

		if (r)
			return r;
	}
	return 0;
}

/* The job's process, if it has ended, or with no options when it has. */
static bool bench_crew_wait(struct bench_crew *crew, unsigned job, int options, int *ret_status)
{
	struct bench_member *member = &crew->member[job];
	struct rusage used;

	if (wait4(member->pid, ret_status, options, &used) != member->pid)
		return false;
	member->pid = 0;
	crew->cpu_seconds += (double)base_usage_ns(&used) / 1e9;
	return true;
}

static void bench_crew_give_up(struct bench_crew *crew, unsigned job, const char *what, int number)
{
	struct bench_seat *seat = &crew->shared->seat[job];

	crew->member[job].over = true;
	if (counter_get(&seat->stage) >= BENCH_ENDED)
		return;
	snprintf(seat->error, sizeof(seat->error), "%s %d", what, number);
	counter_set(&seat->ended_ns, base_now_ns());
	counter_set(&seat->stage, BENCH_FAILED);
	bench_shared_mark(crew->shared);
}

static void bench_crew_reap(struct bench_crew *crew, unsigned job)
{
	struct bench_member *member = &crew->member[job];
	int status = 0, r;

	if (member->pid == 0 || !bench_crew_wait(crew, job, WNOHANG, &status))
		return;
	if (counter_get(&crew->shared->seat[job].stage) >= BENCH_ENDED) {
		member->over = true;
	} else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && crew->config->kill > 0) {
		r = bench_crew_fork(crew, job);
		if (r)
			bench_crew_give_up(crew, job, "cannot fork: errno", -r);
	} else if (WIFSIGNALED(status)) {
		bench_crew_give_up(crew, job, "died of signal", WTERMSIG(status));
	} else {
		bench_crew_give_up(crew, job, "exited with status", WEXITSTATUS(status));
	}
}

static bool bench_crew_is_hit(struct bench_crew *crew, double a_minute, double seconds)
{
	return a_minute > 0 && philox_unit(&crew->draws) < a_minute * seconds / 60;
}

/* Kills, stops or continues a job that runs. */
static void bench_crew_disturb(struct bench_crew *crew, unsigned job, double seconds,
			       uint64_t now_ns)
{
	struct bench_member *member = &crew->member[job];
	uint32_t stage = counter_get(&crew->shared->seat[job].stage);

	if (member->pid == 0 || stage == BENCH_WAITS || stage >= BENCH_ENDED)
		return;
	if (member->continue_ns > 0 && now_ns >= member->continue_ns) {
		kill(member->pid, SIGCONT);
		member->continue_ns = 0;
	}
	if (bench_crew_is_hit(crew, crew->config->kill, seconds)) {
		kill(member->pid, SIGKILL);
		member->kills++;
	} else if (member->continue_ns == 0 &&
		   bench_crew_is_hit(crew, crew->config->stop, seconds)) {
		kill(member->pid, SIGSTOP);
		member->stops++;
		member->continue_ns = now_ns + 1000000000 + philox_below(&crew->draws, 2000000000);
	}
}

unsigned bench_crew_tend(struct bench_crew *crew, uint64_t now_ns)
{
	double seconds = (double)(now_ns - crew->last_ns) * 1e-9;
	unsigned left = 0;

	for (unsigned i = 0; i < crew->config->jobs; i++) {
		bench_crew_disturb(crew, i, seconds, now_ns);
		bench_crew_reap(crew, i);
		if (!crew->member[i].over)
			left++;
	}
	bench_shared_mark(crew->shared);
	crew->last_ns = now_ns;
	return left;
}

void bench_crew_kill(struct bench_crew *crew)
{
	uint64_t now_ns = base_now_ns();

	for (unsigned i = 0; i < crew->config->jobs; i++) {
		struct bench_member *member = &crew->member[i];
		struct bench_seat *seat = &crew->shared->seat[i];
		int status;

		if (member->pid <= 0)
			continue;
		kill(member->pid, SIGKILL);
		bench_crew_wait(crew, i, 0, &status);
		if (counter_get(&seat->started_ns) > 0 && counter_get(&seat->ended_ns) == 0)
			counter_set(&seat->ended_ns, now_ns);
	}
}

void bench_crew_end(struct bench_crew *crew)
{
	bench_crew_kill(crew);
	for (unsigned i = 0; i < crew->config->jobs; i++)
		base_close(&crew->member[i].ledger_fd);
}

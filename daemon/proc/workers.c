/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers, seen from accessd. A worker's death arrives as a message of the parent after it was
 * reaped, so its task can be taken over without a race. (Which one hangs: hung.c.)
 *
 * The parent may be captured, so what it says of workers is compared with what it said before and with
 * what the kernel knows: a pid is looked at later, and shown to people.
 */
#include "daemon/proc/workers.h"

#include <stdio.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/wire.h"
#include "daemon/limits.h"
#include "daemon/machine/machine.h"
#include "daemon/serve/fill_state.h"
#include "pipeline/pipeline.h"
#include "shmring/slot_table.h"
#include "worker/parent.h"
#include "worker/worker.h"

#define ITEMS_TABLE "daemon/proc/workers_tbl.h"
#define ITEMS_STRUCT(name) workers_##name
#define ITEMS_UNION workers_message
#define ITEMS_KEY(KEY) PARENT_KEY_##KEY
#define ITEMS_TYPE(NAME) PARENT_##NAME
#define ITEMS_WHOSE "worker parent's "
#include "base/items_structs_tbl.h"
#include "base/items_types_tbl.h"

#define OWNER_MOST ((UINT32_C(1) << 24) - 1) /* they have 24 bits in task words */
#define STATUS_MOST 0xffff                   /* of wait() */
#define ROOM_SHARE 8                         /* of the memory: so much free is much */
#define GROWN_NS UINT64_C(1000000000)        /* a worker that lived so long can work */

#define tell(workers, type, ...) keeper_tell(&(workers)->keeper, type, __VA_ARGS__)

void workers_add(struct workers *workers, const struct workers_variant *variant)
{
	const struct slot_geometry *geometry = variant->geometry;
	const struct pipeline_field *fields;
	unsigned n = pipeline_fields(variant->pipeline, &fields);
	uint64_t offsets[PIPELINE_MAX_FIELDS][2];

	for (unsigned i = 0; i < n; i++) {
		offsets[i][0] = geometry->field[i].offset;
		offsets[i][1] = geometry->field[i].sample_bytes;
	}
	tell(workers, PARENT_ADD, WIRE_U64(PARENT_KEY_QUEUE, variant->queue),
	     WIRE_U64(PARENT_KEY_VARIANT, variant->number),
	     WIRE_STRING(PARENT_KEY_SPEC, pipeline_canonical(variant->pipeline)),
	     WIRE_U64(PARENT_KEY_STRIDE, geometry->slot_stride),
	     WIRE_U64(PARENT_KEY_SLOTS_BYTES, geometry->slots_bytes),
	     WIRE_BYTES(PARENT_KEY_OFFSETS, offsets, n * sizeof(offsets[0])),
	     WIRE_FD(variant->slots_fd), WIRE_FD(variant->queue_fd), WIRE_FD(variant->arena_fd));
}

void workers_go(struct workers *workers, uint32_t queue)
{
	tell(workers, PARENT_GO, WIRE_U64(PARENT_KEY_QUEUE, queue));
}

void workers_remove(struct workers *workers, uint32_t queue)
{
	workers->leaving += workers->keeper.child.sock >= 0;
	tell(workers, PARENT_REMOVE, WIRE_U64(PARENT_KEY_QUEUE, queue));
}

void workers_remove_variant(struct workers *workers, uint32_t queue, uint32_t variant)
{
	tell(workers, PARENT_REMOVE, WIRE_U64(PARENT_KEY_QUEUE, queue),
	     WIRE_U64(PARENT_KEY_VARIANT, variant));
}

void workers_resize(struct workers *workers, unsigned size)
{
	workers->size = size;
	tell(workers, PARENT_SIZE, WIRE_U64(PARENT_KEY_WORKERS, size));
}

void workers_kill(struct workers *workers, unsigned index, bool is_stopped)
{
	struct workers_one *worker = &workers->worker[index];

	worker->doom = is_stopped ? WORKERS_STOPPED : WORKERS_HUNG;
	tell(workers, PARENT_KILL, WIRE_U64(PARENT_KEY_WORKER, worker->owner));
}

/* ---- from the parent ---- */

/* A worker is a child of the parent and has a place, a number and a pid that no other has. One that is gone
 * already will be said to have ended. */
static bool is_worker(const struct workers *workers, const struct workers_started *said)
{
	pid_t parent;

	if (said->index >= LAYOUT_MAX_WORKERS || workers->worker[said->index].pid ||
	    said->owner == 0 || said->owner > OWNER_MOST || said->pid == 0 || said->pid > INT_MAX)
		return false;
	for (unsigned i = 0; i < LAYOUT_MAX_WORKERS; i++)
		if (workers->worker[i].pid && (workers->worker[i].pid == (pid_t)said->pid ||
					       workers->worker[i].owner == said->owner))
			return false;
	parent = limits_parent((pid_t)said->pid);
	return parent < 0 || parent == workers->keeper.child.pid;
}

static bool on_started(struct workers *workers, const struct workers_started *said)
{
	if (!is_worker(workers, said))
		return false;
	workers->alive++;
	workers->worker[said->index] = (struct workers_one){
	    .pid = (pid_t)said->pid, .owner = said->owner, .started_ns = base_now_ns()};
	return true;
}

static bool is_stillborn(int status)
{
	return WIFEXITED(status) && (WEXITSTATUS(status) == WORKER_EXIT_SETUP ||
				     WEXITSTATUS(status) == WORKER_EXIT_SANDBOX);
}

static bool has_grown_worker(const struct workers *workers)
{
	uint64_t now_ns = base_now_ns();

	for (unsigned i = 0; i < LAYOUT_MAX_WORKERS; i++)
		if (workers->worker[i].pid && now_ns - workers->worker[i].started_ns > GROWN_NS)
			return true;
	return false;
}

/* When none can begin to work, nobody decodes: who waits is told why. */
static void note_birth(struct workers *workers, int status)
{
	unsigned least = BASE_MAX(workers->size, (unsigned)CHILD_HOPELESS);
	char text[512];

	workers->stillborn = is_stillborn(status) ? workers->stillborn + 1 : 0;
	if (workers->stillborn < least || has_grown_worker(workers))
		return;
	snprintf(text, sizeof(text),
		 "accessd has no workers: %u in a row %s; open again when that is mended",
		 workers->stillborn,
		 WEXITSTATUS(status) == WORKER_EXIT_SANDBOX
		     ? "could not enter their sandbox (the kernel needs CONFIG_SECCOMP_FILTER, and "
		       "a container must allow seccomp())"
		     : "could not set themselves up (look for limits on memory, such as the "
		       "cgroup's or `worker_memory`)");
	log_line(LOG_LEVEL_ERROR, "workers-hopeless", "text=\"%s\"", text);
	workers->stillborn = 0;
	workers->calls->hopeless(workers->domain, text);
}

static bool is_killed(const struct workers_one *worker, int status)
{
	return worker->doom == WORKERS_LIVES && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static bool leaves_room(const struct workers *workers)
{
	const struct limits *limits = &workers->wants.machine->limits;

	return limits_room(limits) >= BASE_MIN(limits->memory, limits->ram) / ROOM_SHARE;
}

static void log_death(const struct workers *workers, unsigned index, int status)
{
	const struct workers_one *worker = &workers->worker[index];
	const bool is_ours = worker->doom != WORKERS_LIVES;
	char how[64];

	log_line(LOG_LEVEL_WARN, "worker-died", "index=%u pid=%ld uid=%u how=\"%s\"%s", index,
		 (long)worker->pid, (unsigned)workers->wants.uid,
		 is_ours ? "accessd has ended it: it hung, or was stopped"
			 : child_describe_end(status, how, sizeof(how)),
		 is_killed(worker, status)
		     ? " text=\"by its user, or by the kernel for want of memory: journalctl -k\""
		     : "");
}

static void end_worker(struct workers *workers, unsigned index, int status, uint64_t cpu_ns)
{
	const struct workers_one worker = workers->worker[index];
	const uint64_t limit_ns = workers->wants.param->sample_timeout_ms * UINT64_C(1000000);
	const bool was_stopped = worker.doom == WORKERS_STOPPED;
	const struct fill_death death = {
	    .owner = worker.owner,
	    .stage = worker.doom == WORKERS_HUNG ? LAYOUT_FAIL_HANG : LAYOUT_FAIL_CRASH,
	    .status = was_stopped ? SIGSTOP : status, /* SIGKILL was our own */
	    .work_us = hang_used_ns(&worker.hang, cpu_ns, limit_ns) / 1000,
	    .left_room = is_killed(&worker, status) && leaves_room(workers),
	};

	if (status)
		log_death(workers, index, status);
	workers->worker[index] = (struct workers_one){0};
	workers->alive--;
	workers->calls->worker_died(workers->domain, &death);
	note_birth(workers, status);
}

static bool on_exited(struct workers *workers, const struct workers_exited *said)
{
	const struct workers_one *worker;
	uint64_t cpu_ns;

	if (said->index >= LAYOUT_MAX_WORKERS || said->status > STATUS_MOST)
		return false;
	worker = &workers->worker[said->index];
	if (!worker->pid || worker->owner != said->owner)
		return false;
	/* It has one thread. */
	cpu_ns = BASE_MAX(BASE_MIN(said->cpu_ns, base_now_ns() - worker->started_ns),
			  worker->cpu_ns); /* which nobody can take back */
	workers->cpu_ns += cpu_ns;
	end_worker(workers, said->index, (int)said->status, cpu_ns);
	return true;
}

/* Without a variant: no worker has that queue any more. */
static void on_removed(struct workers *workers, const struct workers_removed *said)
{
	if (said->has_variant) {
		workers->calls->removed(workers->domain, said->queue, said->variant);
	} else if (workers->leaving) {
		workers->leaving--;
		workers->calls->let_go(workers->domain);
	}
}

static bool on_message(void *arg, struct wire_in *in)
{
	struct workers *workers = arg;
	union workers_message message;

	if (!keeper_reads(&workers->keeper, in, items_types, BASE_ARRAY_LEN(items_types), &message))
		return false;
	switch (in->type) {
	case PARENT_ADDED:
		workers->calls->added(workers->domain, message.added.queue, message.added.variant);
		break;
	case PARENT_REFUSED:
		workers->calls->refused(workers->domain, message.refused.queue,
					message.refused.variant, message.refused.text);
		break;
	case PARENT_REMOVED:
		on_removed(workers, &message.removed);
		break;
	case PARENT_STARTED:
		return on_started(workers, &message.started);
	case PARENT_EXITED:
		return on_exited(workers, &message.exited);
	default: /* of no type in the table */
		return false;
	}
	return true;
}

/* ---- life ---- */

static int start_process(void *arg, struct diag *diag)
{
	struct workers *workers = arg;
	const struct child_wants *wants = &workers->wants;
	char count[24], memory[24], nice[24];
	const char *const arguments[] = {"access-worker", "--workers", count, "--memory",
					 memory,          "--nice",    nice,  NULL};
	int r;

	snprintf(count, sizeof(count), "%u", workers->size);
	snprintf(memory, sizeof(memory), "%llu", (unsigned long long)wants->param->worker_memory);
	snprintf(nice, sizeof(nice), "%llu", (unsigned long long)wants->param->nice);
	r = keeper_start(&workers->keeper, arguments, diag);
	if (!r)
		tell(workers, PARENT_START, CHILD_FDS(wants));
	return r;
}

static void on_died(void *arg, int status, uint64_t cpu_ns)
{
	struct workers *workers = arg;

	(void)cpu_ns; /* the parent's own, which is nothing */
	keeper_died(&workers->keeper, status);
	for (unsigned i = 0; i < LAYOUT_MAX_WORKERS; i++)
		workers->cpu_ns += workers->worker[i].cpu_ns;
	memset(workers->worker, 0, sizeof(workers->worker));
	workers->alive = 0;
	keeper_again(&workers->keeper);
	workers->calls->died(workers->domain);
	workers->leaving = 0; /* who died has let go of all */
	workers->calls->let_go(workers->domain);
}

static void on_restarted(void *arg)
{
	const struct workers *workers = arg;

	workers->calls->restarted(workers->domain);
}

/* When no parent gets on its feet all streams end for good. */
static void on_hopeless(void *arg, const char *text)
{
	const struct workers *workers = arg;

	workers->calls->hopeless(workers->domain, text);
}

int workers_start(struct workers *workers, const struct child_wants *wants,
		  const struct workers_calls *calls, struct domain *domain, struct diag *diag)
{
	static const struct keeper_kind kind = {
	    .name = "worker-parent",
	    .lacks = "workers",
	    .each = " worker parents",
	    .then = "jobs open again with a new one",
	    .start = start_process,
	    .end = "end of a worker parent",
	    .said = on_message,
	    .died = on_died,
	    .restarted = on_restarted,
	    .hopeless = on_hopeless,
	};
	int r;

	*workers = (struct workers){
	    .calls = calls, .domain = domain, .wants = *wants, .size = wants->machine->workers};
	r = keeper_begin(&workers->keeper, &kind, workers, &workers->wants);
	return r ? r : start_process(workers, diag);
}

void workers_stop(struct workers *workers, bool waits)
{
	if (!workers->calls)
		return; /* it was never started */
	keeper_end(&workers->keeper);
	if (waits)
		child_end(&workers->keeper.child);
	else
		child_abandon(&workers->keeper.child, workers->wants.reaper);
}

uint64_t workers_cpu_ns(const struct workers *workers)
{
	uint64_t sum = workers->cpu_ns;

	for (unsigned i = 0; i < LAYOUT_MAX_WORKERS; i++)
		sum += BASE_MAX(limits_cpu_ns(workers->worker[i].pid), workers->worker[i].cpu_ns);
	return sum;
}

/* ---- do they want a processor? ---- */

/* One that a sandbox does not let us ask about is as we made it. */
static bool is_as_made(const struct child_wants *wants, pid_t pid)
{
	const int most =
	    getpriority(PRIO_PROCESS, 0) + child_nice(wants->priority) + (int)wants->param->nice;
	cpu_set_t set;

	if (wants->priority != CPU_PRIORITY_IDLE && sched_getscheduler(pid) == SCHED_IDLE)
		return false;
	if (getpriority(PRIO_PROCESS, (id_t)pid) > BASE_MIN(most, 19))
		return false;
	return sched_getaffinity(pid, sizeof(set), &set) < 0 ||
	       (unsigned)CPU_COUNT(&set) >= wants->machine->limits.mask;
}

bool workers_compete(struct workers *workers)
{
	pid_t pid = 0;

	for (unsigned i = 0; i < LAYOUT_MAX_WORKERS && !pid; i++) {
		workers->asked = (workers->asked + 1) % LAYOUT_MAX_WORKERS;
		pid = workers->worker[workers->asked].pid;
	}
	return pid && limits_state(pid) == 'R' && is_as_made(&workers->wants, pid);
}

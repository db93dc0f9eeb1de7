/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every two seconds: the files of the limits and of the pressure, some 20 reads of the kernel's own files, 0.1 ms.
 * Of the cgroups' limits nobody tells us; of pressure the kernel may, and then it is looked at at once.
 *
 * Fewer CPUs: surplus workers finish their task and end (worker/pool.h), so nothing is lost. Less memory: the
 * caches go first, since they can be read again, then streams and variants without jobs. What a job has
 * stays: its slots are sealed, and nobody can take pages out of sealed memory. New requests meet the new budget.
 *
 * What to do under pressure is daemon/machine/pressure.h; here it is done.
 */
#include "daemon/machine/machine.h"

#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "shmring/layout.h"

#define LOOK_NS UINT64_C(2000000000)

static const char *const levels[] = {
    [PRESSURE_NONE] = "none", [PRESSURE_CACHES] = "caches", [PRESSURE_SLOTS] = "slots"};

bool machine_has_room_ahead(const struct machine *machine)
{
	return machine->pressure.level != PRESSURE_SLOTS;
}

uint64_t machine_share(const struct machine *machine, uint64_t bytes)
{
	return bytes / PRESSURE_EIGHTHS * (PRESSURE_EIGHTHS - machine->pressure.withheld);
}

/* ---- limits ---- */

static void follow_cpus(struct machine *machine)
{
	const unsigned before = machine->workers;
	unsigned workers =
	    machine->wants.workers ? (unsigned)machine->wants.workers : machine->limits.cpus;

	workers = BASE_MIN(workers, machine->workers_most);
	if (workers == before)
		return;
	machine->workers = workers;
	if (before) {
		machine->workers_changed++;
		log_line(LOG_LEVEL_INFO, "workers-follow", "before=%u now=%u from=\"%s\"", before,
			 workers, machine->limits.cpus_file);
	}
	machine->calls->set_workers(machine->arg, workers);
}

static void follow_memory(struct machine *machine)
{
	const uint64_t before = machine->budget;
	const char *source;

	machine->budget = limits_budget(&machine->limits, machine->wants.memory, &source);
	if (machine->budget == before)
		return;
	if (before) {
		machine->budget_changed++;
		log_line(LOG_LEVEL_INFO, "memory-follows",
			 "before=\"%s\" now=\"%s\" source=\"%s\" from=\"%s\"", BASE_BYTES(before),
			 BASE_BYTES(machine->budget), source, machine->limits.memory_file);
	}
	if (machine->wants.memory > machine->budget)
		log_line(
		    LOG_LEVEL_WARN, "memory-bounded",
		    "memory=\"%s\" now=\"%s\" source=\"%s\" from=\"%s\" text=\"set `memory` to no "
		    "more than this\"",
		    BASE_BYTES(machine->wants.memory), BASE_BYTES(machine->budget), source,
		    machine->limits.memory_file);
	machine->calls->set_memory(machine->arg, machine->budget, source);
}

/* ---- pressure ---- */

static void note_pressure(struct machine *machine, bool is_triggered)
{
	const struct pressure_look look = {.now_ns = base_now_ns(),
					   .some = machine->psi.some,
					   .full = machine->psi.full,
					   .is_triggered = is_triggered};
	const enum pressure_level before = machine->pressure.level;
	const struct pressure_act act = pressure_step(&machine->pressure, &look);
	uint64_t bytes = 0;

	if (act.caches || act.slots)
		bytes = machine->calls->give_back(machine->arg, act.caches, act.slots);
	machine->pressures += before == PRESSURE_NONE && machine->pressure.level != before;
	if (act.is_moved || bytes)
		log_line(act.caches ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "memory-pressure",
			 "level=%s some=%.1f full=%.1f gives=%llu cache_eighths=%u from=\"%s\"",
			 levels[machine->pressure.level], look.some, look.full,
			 (unsigned long long)bytes, PRESSURE_EIGHTHS - machine->pressure.withheld,
			 machine->psi.file);
}

void machine_look(struct machine *machine)
{
	struct limits limits;

	limits_read(&limits);
	if (!limits.error) /* else those of before hold */
		machine->limits = limits;
	follow_cpus(machine);
	follow_memory(machine);
	psi_read(&machine->psi);
	note_pressure(machine, false);
}

static void on_look(void *arg)
{
	struct machine *machine = arg;

	machine_look(machine);
	loop_timer_set(machine->look, LOOK_NS);
}

static void on_call(void *arg)
{
	struct machine *machine = arg;
	const bool is_call = psi_take(&machine->psi);

	if (!is_call) { /* the look every two seconds is left */
		loop_unwatch(&machine->call);
		psi_close(&machine->psi);
		log_line(LOG_LEVEL_INFO, "pressure-calls-end", "from=\"%s\"", machine->psi.file);
	}
	psi_read(&machine->psi);
	note_pressure(machine, is_call);
}

/* ---- life ---- */

/* Rings and tables are made for so many: the machine may be given to us whole later. */
static unsigned most_workers(const struct machine *machine)
{
	const long all = sysconf(_SC_NPROCESSORS_CONF);
	unsigned most = (unsigned)machine->wants.workers;

	if (!most)
		most = BASE_MAX(machine->limits.cpus, all > 0 ? (unsigned)all : 1u);
	return BASE_MIN(most, (unsigned)LAYOUT_MAX_WORKERS);
}

int machine_begin(struct machine *machine, struct loop *loop, const struct machine_wants *wants,
		  const struct machine_calls *calls, void *arg)
{
	int r;

	*machine = (struct machine){
	    .wants = *wants, .calls = calls, .arg = arg, .psi = {.fd = -1, .poll_fd = -1}};
	limits_read(&machine->limits);
	machine->workers_most = most_workers(machine);
	numa_init(&machine->numa, wants->numa);
	follow_cpus(machine);
	follow_memory(machine);
	if (wants->pressure)
		psi_open(&machine->psi);
	r = loop_timer_new(loop, on_look, machine, &machine->look);
	if (!r && machine->psi.poll_fd >= 0)
		r = loop_watch_fd(loop, machine->psi.poll_fd, on_call, machine, &machine->call);
	if (!r)
		loop_timer_set(machine->look, LOOK_NS);
	return r;
}

void machine_end(struct machine *machine)
{
	loop_unwatch(&machine->look);
	loop_unwatch(&machine->call);
	psi_close(&machine->psi);
}

/* ---- for people ---- */

static const char *cpus_source(const struct machine *machine)
{
	if (machine->wants.workers)
		return "parameter `workers`";
	return machine->limits.cpus_file[0] ? "the cgroup's CPU quota" : "the CPU mask";
}

void machine_describe(const struct machine *machine, struct json_out *out)
{
	const struct limits *limits = &machine->limits;

	json_out_member_object(out, "machine");
	json_out_member_u64(out, "cpus", limits->cpus);
	json_out_member_u64(out, "cpus_mask", limits->mask);
	json_out_member_string(out, "cpus_from", limits->cpus_file);
	json_out_member_u64(out, "workers", machine->workers);
	json_out_member_string(out, "workers_source", cpus_source(machine));
	json_out_member_u64(out, "ram", limits->ram);
	json_out_member_u64(out, "memory_limit", limits->memory == UINT64_MAX ? 0 : limits->memory);
	json_out_member_string(out, "memory_from", limits->memory_file);
	JSON_OUT_MEMBERS(out, machine, workers_changed, budget_changed);
	json_out_member_object(out, "pressure");
	json_out_member_string(out, "level", levels[machine->pressure.level]);
	JSON_OUT_MEMBERS(out, &machine->psi, some, full);
	json_out_member_u64(out, "cache_eighths", PRESSURE_EIGHTHS - machine->pressure.withheld);
	json_out_member_u64(out, "times", machine->pressures);
	json_out_member_bool(out, "kernel_calls", machine->psi.poll_fd >= 0);
	json_out_member_string(out, "from", machine->psi.file);
	json_out_object_end(out);
	json_out_object_end(out);
	numa_describe(&machine->numa, out);
}

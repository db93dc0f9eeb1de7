/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Children of accessd that are no processes: they have a number that the kernel never gives, a socket, and an end. What the
 * kernel would say of them is said here.
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/limits.h"
#include "daemon/machine/psi.h"
#include "daemon/net/porter.h"
#include "daemon/proc/child.h"
#include "daemon/proc/reaper.h"
#include "daemon/proc/reserve.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/domain.h"
#include "tests/daemon/bottle/bottle.h"

/* ---- the dead ---- */

static struct zombie *find(pid_t pid)
{
	struct bottle *bottle = bottle_now();

	for (unsigned i = 0; i < BOTTLE_ZOMBIES; i++)
		if (bottle->zombie[i].pid == pid)
			return &bottle->zombie[i];
	return NULL;
}

void process_ended(pid_t pid, int status, bool is_forked)
{
	struct zombie *zombie = find(0);

	if (zombie)
		*zombie = (struct zombie){pid, status, is_forked};
	else
		bottle_break("nobody reaps");
	loop_child_ended();
}

static void kill_one(pid_t pid)
{
	struct bottle *bottle = bottle_now();

	if (pid == bottle->reader.pid)
		reader_die(SIGKILL);
	else if (pid == bottle->parent.pid)
		parent_die(SIGKILL);
}

static void reap(pid_t pid)
{
	struct zombie *zombie = pid > 0 ? find(pid) : NULL;

	if (zombie)
		zombie->pid = 0;
}

void process_end(void)
{
	struct bottle *bottle = bottle_now();

	kill_one(bottle->reader.pid);
	kill_one(bottle->parent.pid);
	memset(bottle->zombie, 0, sizeof(bottle->zombie));
	bottle->looks = 0;
}

/* ---- what accessd asks; and Check, between lives ---- */

int __real_kill(pid_t pid, int signo);
int __wrap_kill(pid_t pid, int signo);
pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __real_waitpid(pid_t pid, int *ret_status, int options);
pid_t __wrap_waitpid(pid_t pid, int *ret_status, int options);
int __wrap_child_find(const char *program, bool is_private, char *ret, size_t size,
		      struct diag *diag);
int __wrap_child_start(const char *path, char *const argv[], enum cpu_priority priority,
		       struct child *ret);
void __wrap_child_end(struct child *child);
void __wrap_child_leave(struct child *child, unsigned patience_ms);
void __wrap_child_abandon(struct child *child, struct reaper *reaper);
bool __wrap_child_has_ended(pid_t pid, int *ret_status, uint64_t *ret_cpu_ns);
int __wrap_reaper_begin(struct reaper *reaper, struct loop *loop);
void __wrap_reaper_take(struct reaper *reaper, pid_t pid);
void __wrap_reaper_end(struct reaper *reaper);
uint64_t __wrap_limits_cpu_ns(pid_t pid);
char __wrap_limits_state(pid_t pid);
pid_t __wrap_limits_parent(pid_t pid);
void __wrap_limits_read(struct limits *ret);
void __wrap_psi_open(struct psi *psi);
void __wrap_psi_read(struct psi *psi);

int __wrap_kill(pid_t pid, int signo)
{
	if (!bottle_now())
		return __real_kill(pid, signo);
	if (signo == SIGKILL)
		kill_one(pid);
	return 0;
}

static void on_looked(void *arg, uint64_t pid, uint64_t life)
{
	if (((const struct bottle *)arg)->life == life)
		process_ended((pid_t)pid, 0, true);
}

/* Is it about to look how much of the disk is left? */
static bool is_to_look(const struct bottle *bottle)
{
	const struct domain *domain;
	bool is_one = false;

	LIST_FOREACH(domain, &bottle->node->domains, link)
		is_one |= domain->disk_cache.share == DISK_CACHE_LOOKS;
	return is_one && !bottle->looks;
}

/* Who forks beside the loop goes without where there is no child to be had, but who looks at the disk finds it empty. */
pid_t __wrap_fork(void)
{
	struct bottle *bottle = bottle_now();

	if (!bottle)
		return __real_fork();
	if (is_to_look(bottle)) {
		bottle->looks = (pid_t)(BOTTLE_PID + ++bottle->last_pid);
		bottle_after(bottle_between(MS, 300 * MS), on_looked, bottle,
			     (uint64_t)bottle->looks, bottle->life);
		return bottle->looks;
	}
	errno = EAGAIN;
	return -1;
}

pid_t __wrap_waitpid(pid_t pid, int *ret_status, int options)
{
	struct bottle *bottle = bottle_now();

	if (!bottle)
		return __real_waitpid(pid, ret_status, options);
	for (unsigned i = 0; i < BOTTLE_ZOMBIES; i++) {
		struct zombie *zombie = &bottle->zombie[i];
		const pid_t its = zombie->pid;

		if (!its || (pid ? its != pid : !zombie->is_forked))
			continue;
		if (ret_status)
			*ret_status = zombie->status;
		zombie->pid = 0;
		if (its == bottle->looks)
			bottle->looks = 0;
		return its;
	}
	return pid ? pid : 0; /* who is waited for by name was killed */
}

int __wrap_child_find(const char *program, bool is_private, char *ret, size_t size,
		      struct diag *diag)
{
	(void)is_private;
	(void)diag;
	snprintf(ret, size, "%s", program);
	return 0;
}

int __wrap_child_start(const char *path, char *const argv[], enum cpu_priority priority,
		       struct child *ret)
{
	struct bottle *bottle = bottle_now();
	const pid_t pid = (pid_t)(BOTTLE_PID + ++bottle->last_pid);
	int pair[2];

	(void)priority;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		abort();
	*ret = (struct child){.pid = pid, .sock = pair[0]};
	if (strcmp(path, "access-reader") == 0)
		reader_start(pid, pair[1]);
	else
		parent_start(pid, pair[1], (unsigned)atoi(argv[2]));
	return 0;
}

void __wrap_child_end(struct child *child)
{
	kill_one(child->pid);
	reap(child->pid);
	child->pid = 0;
	base_close(&child->sock);
}

void __wrap_child_leave(struct child *child, unsigned patience_ms)
{
	(void)patience_ms;
	__wrap_child_end(child);
}

void __wrap_child_abandon(struct child *child, struct reaper *reaper)
{
	(void)reaper;
	__wrap_child_end(child);
}

bool __wrap_child_has_ended(pid_t pid, int *ret_status, uint64_t *ret_cpu_ns)
{
	const struct zombie *zombie = pid > 0 ? find(pid) : NULL;

	if (!zombie)
		return false;
	*ret_status = zombie->status;
	*ret_cpu_ns = 0;
	return true;
}

int __wrap_reaper_begin(struct reaper *reaper, struct loop *loop)
{
	(void)reaper;
	(void)loop;
	return 0;
}

void __wrap_reaper_take(struct reaper *reaper, pid_t pid)
{
	(void)reaper;
	reap(pid);
}

void __wrap_reaper_end(struct reaper *reaper)
{
	(void)reaper;
}

/* ---- what the kernel says of processes and of the machine ---- */

static const struct hand *worker_of(pid_t pid)
{
	struct bottle *bottle = bottle_now();

	for (unsigned i = 0; i < BOTTLE_WORKERS; i++)
		if (bottle->worker[i].pid == pid && pid)
			return &bottle->worker[i];
	return NULL;
}

uint64_t __wrap_limits_cpu_ns(pid_t pid)
{
	const struct hand *worker = worker_of(pid);

	if (!worker)
		return 0;
	return worker->cpu_ns + (worker->queue && !worker->hangs
				     ? bottle_now()->clock.now_ns - worker->begun_ns
				     : 0);
}

char __wrap_limits_state(pid_t pid)
{
	const struct hand *worker = worker_of(pid);

	if (!worker)
		return 0;
	if (bottle_now()->clock.now_ns < bottle_now()->parent.until_ns)
		return 'T';
	return worker->queue && !worker->hangs ? 'R' : 'S';
}

pid_t __wrap_limits_parent(pid_t pid)
{
	(void)pid;
	return bottle_now()->parent.pid;
}

void __wrap_limits_read(struct limits *ret)
{
	*ret =
	    (struct limits){.ram = UINT64_C(8) << 30, .memory = UINT64_MAX, .mask = 4, .cpus = 4};
}

void __wrap_psi_open(struct psi *psi)
{
	*psi = (struct psi){.fd = -1, .poll_fd = -1};
}

void __wrap_psi_read(struct psi *psi)
{
	(void)psi;
}

/* ---- the porter: messages with descriptors ---- */

struct errand {
	uint64_t id;
	uid_t uid;
	int sock;
	porter_fn fn;
	void *arg;
	struct errand *next;
};

static struct errand *errands;
static uint64_t last_errand;

int __wrap_porter_fetch(struct porters *porters, uid_t uid, int sock, porter_fn fn, void *arg,
			struct errand **ret);
void __wrap_porter_cancel(struct errand **errand);

static struct errand *take_errand(uint64_t id)
{
	struct errand **at = &errands, *found;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = found->next;
	return found;
}

static void on_fetched(void *arg, uint64_t id, uint64_t unused)
{
	struct bottle *bottle = arg;
	struct errand *errand;
	struct wire_in in;
	int r;

	(void)unused;
	if (bottle->clock.now_ns < bottle->until_ns) {
		clock_at(&bottle->clock, bottle->until_ns, on_fetched, bottle, id, 0);
		return;
	}
	errand = take_errand(id);
	if (!errand)
		return;
	wire_in_init(&in);
	r = wire_recv(errand->sock, &in, MSG_DONTWAIT);
	errand->fn(errand->arg, r, &in);
	wire_in_fini(&in);
	free(errand);
	loop_poke();
}

int __wrap_porter_fetch(struct porters *porters, uid_t uid, int sock, porter_fn fn, void *arg,
			struct errand **ret)
{
	struct errand *errand = calloc(1, sizeof(*errand));

	(void)porters;
	if (!errand)
		abort();
	*errand = (struct errand){++last_errand, uid, sock, fn, arg, errands};
	errands = *ret = errand;
	bottle_after(bottle_below(2 * MS), on_fetched, bottle_now(), errand->id, 0);
	return 0;
}

void __wrap_porter_cancel(struct errand **errand)
{
	if (*errand)
		free(take_errand((*errand)->id));
	*errand = NULL;
}

/* ---- who reserves slots ---- */

int __wrap_reserve_begin(struct variant *variant, uint32_t to);

static void on_reserved(void *arg, uint64_t pid, uint64_t life)
{
	struct bottle *bottle = arg;
	int status;

	if (!bottle->node || life != bottle->life)
		return;
	status = role_reserved(bottle->node, (pid_t)pid);
	process_ended((pid_t)pid, status < 0 ? SIGKILL : status, true);
}

int __wrap_reserve_begin(struct variant *variant, uint32_t to)
{
	struct bottle *bottle = bottle_now();
	const pid_t pid = (pid_t)(BOTTLE_PID + bottle->last_pid + 1);

	if (!role_reserve(variant, BASE_MIN(to, variant->slots + 100), pid))
		return 0;
	bottle->last_pid++;
	bottle_after(bottle_between(MS, 50 * MS), on_reserved, bottle, (uint64_t)pid, bottle->life);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserving beside the loop. The child of a fork() of this process, whose other thread only reaps, knows three kinds
 * of system call, fallocate(), madvise() and exit; it ends with the number of slots it reserved (at most
 * 120 a child, a larger growth goes in steps) and a bit that says whether some of them are in small pages. Whatever it could not reserve is given back to the budget.
 *
 * It reserves in huge pages as long as the kernel has them ready, which takes less time than small ones.
 * What stands in small ones, if anything does, goes into huge ones by another child, whom nobody waits for: that takes as
 * long as to copy it, and many times that where the kernel has to make room, and a job wants to begin.
 * It is started with a tick of the node, for all that was reserved until then: jobs that come together have one such child.
 * It runs in time that nobody else wants, and goes from the last slot to the first, as slots are
 * used from the first to the last: a page that is gathered before its first use is written and
 * mapped at a five-hundredth of the faults. Where the kernel has no huge page left, or is slow to make
 * one, the first refusal is the last question. Where huge pages are required it asks on as long as the kernel is only
 * slow, and the first refusal is its end.
 *
 * The loop does not wait for their end either. To die takes CPU time, too, and so polite a process
 * gets little where jobs want all of it. For the same reason accessd keeps a stream's slots open until
 * they have ended, and hands them to its porter then: who is the last to hold that memory frees it, which takes
 * longest of all.
 */
#include "daemon/proc/reserve.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/proc/child.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/domain.h"
#include "shmring/region.h"

#define MOST_AT_ONCE 120 /* an exit status has 8 bits */
#define SMALL_PAGES 0x80 /* of it */
#define MOST_TRIES 10
#define SHMEM_ENABLED "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
#define POLITE 19                         /* nice value: what nobody else wants */
#define PATIENCE_NS UINT64_C(10000000000) /* at our own end, with children that were killed */
#define LEAST_PAUSE_NS UINT64_C(1000000000)
#define MOST_PAUSE_NS UINT64_C(60000000000)

/* Each call gets further than the one before, until the kernel refuses. */
static bool reserve_huge(const struct variant *variant, uint32_t slot, bool is_patient)
{
	unsigned tries = 0;
	int r;

	do
		r = slots_reserve_huge(variant->slots_fd, &variant->table.geometry, slot);
	while (is_patient && (r == -ETIME || (r == -EAGAIN && ++tries < MOST_TRIES)));
	return r == 0;
}

static void reserve_in_child(const struct variant *variant, pid_t accessd, uint32_t from,
			     uint32_t to)
{
	const uint64_t choice = variant->stream->node->param.huge_pages;
	bool huge = choice != HUGE_PAGES_OFF;
	uint32_t done = 0;

	child_settle(accessd, variant->slots_fd);
	for (; from + done < to; done++) {
		huge = huge && reserve_huge(variant, from + done, choice == HUGE_PAGES_REQUIRE);
		if (!huge && choice == HUGE_PAGES_REQUIRE)
			break;
		if (slots_reserve(variant->slots_fd, &variant->table.geometry, from + done) < 0)
			break;
	}
	_exit((int)done | (huge ? 0 : SMALL_PAGES));
}

static void gather_in_child(const struct variant *variant, pid_t accessd, uint32_t from,
			    uint32_t to)
{
	child_settle(accessd, variant->slots_fd);
	setpriority(PRIO_PROCESS, 0, POLITE);
	while (to-- > from)
		if (slots_gather(variant->slots_fd, &variant->table.geometry, to))
			_exit(SMALL_PAGES);
	_exit(0);
}

void reserve_gather(struct variant *variant)
{
	struct reserve *reserve = &variant->reserve;
	const uint64_t now_ns = base_now_ns();
	pid_t accessd = getpid(), pid;

	if (reserve->gatherer || reserve->gathered == reserve->reserved ||
	    variant->stream->node->param.huge_pages == HUGE_PAGES_OFF || now_ns < reserve->retry_ns)
		return;
	pid = fork();
	if (pid < 0) {
		reserve->pause_ns =
		    BASE_MIN(BASE_MAX(2 * reserve->pause_ns, LEAST_PAUSE_NS), MOST_PAUSE_NS);
		reserve->retry_ns = now_ns + reserve->pause_ns;
		return;
	}
	if (pid == 0)
		gather_in_child(variant, accessd, reserve->gathered, reserve->reserved);
	reserve->gatherer = pid;
	reserve->gathered = reserve->reserved;
	reserve->pause_ns = 0;
}

static void account(struct variant *variant, int64_t slots)
{
	variant_account(variant, slots * (int64_t)variant->table.geometry.slot_stride);
}

int reserve_begin(struct variant *variant, uint32_t to)
{
	struct reserve *reserve = &variant->reserve;
	pid_t accessd = getpid(), pid;

	to = BASE_MIN(to, variant->slots + MOST_AT_ONCE);
	if (reserve->pid || to <= variant->slots)
		return 0;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		reserve_in_child(variant, accessd, variant->slots, to);
	reserve->pid = pid;
	reserve->from = variant->slots;
	reserve->to = to;
	account(variant, to - variant->slots);
	return 0;
}

static void finish(struct variant *variant, int status, struct reserve_done *ret)
{
	struct reserve done = variant->reserve;
	uint32_t asked = done.to - done.from;
	uint32_t said = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0;
	uint32_t got = BASE_MIN(said & ~(uint32_t)SMALL_PAGES, asked);
	const uint64_t choice = variant->stream->node->param.huge_pages;

	variant->reserve.pid = 0;
	variant->reserve.reserved = done.from + got;
	if (!(said & SMALL_PAGES) && done.gathered == done.from)
		variant->reserve.gathered = variant->reserve.reserved; /* all is huge */
	variant->reserve.is_mixed |= got && (said & SMALL_PAGES) && choice != HUGE_PAGES_REQUIRE;
	variant->reserve.is_refused = (said & SMALL_PAGES) && choice == HUGE_PAGES_REQUIRE;
	account(variant, (int64_t)got - (int64_t)asked);
	if (got < asked)
		log_line(LOG_LEVEL_WARN, "slots-not-reserved", "queue=%u asked=%u got=%u",
			 variant->stream->shared.queue.number, asked, got);
	*ret = (struct reserve_done){variant, got, got == asked};
}

bool reserve_is_huge(const struct variant *variant)
{
	const struct reserve *reserve = &variant->reserve;

	return reserve->reserved && !reserve->is_mixed && !reserve->is_small &&
	       variant->table.geometry.slot_stride >= REGION_HUGE;
}

void reserve_refusal(const struct variant *variant, char *ret, size_t size)
{
	char setting[128] = "cannot be read";
	_cleanup_close_ int fd = open(SHMEM_ENABLED, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, setting, sizeof(setting) - 1, 0);

	if (n > 0)
		setting[n] = '\0';
	setting[strcspn(setting, "\n")] = '\0';
	snprintf(ret, size,
		 "huge_pages = require, and the kernel gave %u slots of %s in huge pages and "
		 "refused one more: echo advise >" SHMEM_ENABLED
		 " (it is \"%s\"), echo 1 >/proc/sys/vm/compact_memory where free memory is in "
		 "small pieces, or set huge_pages = auto",
		 variant->slots, BASE_BYTES(variant->table.geometry.slot_stride), setting);
}

static void forget(struct node *node, struct reserve_leaving *leaving)
{
	LIST_REMOVE(leaving, link);
	porter_close(&node->porters, PORTER_OWN, &leaving->slots_fd);
	free(leaving);
}

static bool has_left(struct node *node, pid_t pid)
{
	BASE_EACH(leaving, &node->leaving, link)
		if (leaving->pid == pid) {
			forget(node, leaving);
			return true;
		}
	return false;
}

/* Was it a child of this variant? */
static bool is_of(struct variant *variant, pid_t pid, int status, struct reserve_done *ret)
{
	if (variant->reserve.gatherer == pid) {
		variant->reserve.gatherer = 0;
		variant->reserve.is_small |= variant->reserve.is_mixed && status != 0;
		/* what was reserved meanwhile waits for the next one */
		variant->reserve.is_mixed &= variant->reserve.gathered != variant->reserve.reserved;
		return true;
	}
	if (variant->reserve.pid != pid)
		return false;
	finish(variant, status, ret);
	return true;
}

bool reserve_ended(struct node *node, pid_t pid, int status, struct reserve_done *ret)
{
	ret->variant = NULL;
	if (has_left(node, pid))
		return true;
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link)
			VARIANT_EACH(variant, stream)
				if (is_of(variant, pid, status, ret))
					return true;
	return false;
}

/* Without memory for this, or descriptors, the child frees what it was the last to hold. */
static void keep_until_ended(struct node *node, pid_t pid, int slots_fd)
{
	struct reserve_leaving *leaving = calloc(1, sizeof(*leaving));

	if (!leaving)
		return;
	leaving->pid = pid;
	leaving->slots_fd = fcntl(slots_fd, F_DUPFD_CLOEXEC, 0);
	LIST_INSERT_HEAD(&node->leaving, leaving, link);
}

static void end_child(struct variant *variant, pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	keep_until_ended(variant->stream->node, pid, variant->slots_fd);
}

void reserve_cancel(struct variant *variant)
{
	end_child(variant, variant->reserve.pid);
	end_child(variant, variant->reserve.gatherer);
	variant->reserve = (struct reserve){0};
}

void reserve_fini(struct node *node)
{
	const uint64_t end_ns = base_now_ns() + PATIENCE_NS;
	struct reserve_leaving *leaving;

	while ((leaving = LIST_FIRST(&node->leaving))) {
		const uint64_t now_ns = base_now_ns();

		if (now_ns < end_ns)
			child_await(leaving->pid, (unsigned)((end_ns - now_ns) / 1000000));
		waitpid(leaving->pid, NULL, WNOHANG);
		forget(node, leaving);
	}
}

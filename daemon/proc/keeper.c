/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/proc/keeper.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/log.h"
#include "daemon/net/porter.h"

#define MOST_ARGUMENTS 12
#define EVENT 48 /* bytes of an event's name */

static const char *event_of(const struct keeper *keeper, const char *what, char ret[EVENT])
{
	snprintf(ret, EVENT, "%s-%s", keeper->kind->name, what);
	return ret;
}

/* Who waits for one that does not get on its feet is told why. */
static void start_later(struct keeper *keeper, uint64_t least_ns)
{
	const struct keeper_kind *kind = keeper->kind;
	uint64_t pause_ns = child_luck_failure(&keeper->luck, base_now_ns());
	char text[1024], event[EVENT];

	loop_timer_set(keeper->restart, BASE_MAX(pause_ns, least_ns));
	if (!kind->hopeless || !child_luck_is_hopeless(&keeper->luck))
		return;
	snprintf(text, sizeof(text),
		 "accessd has no %s: %d%s in a row failed at once, the last one %s; accessd's log "
		 "(%s) has more; open again when that is mended",
		 kind->lacks, CHILD_HOPELESS, kind->each, keeper->last.text, log_place());
	log_line(LOG_LEVEL_ERROR, event_of(keeper, "hopeless", event), "text=\"%s\"", text);
	kind->hopeless(keeper->arg, text);
}

void keeper_restart(void *arg)
{
	struct keeper *keeper = arg;
	char event[EVENT];

	if (keeper->kind->start(keeper->arg, &keeper->last)) {
		log_line(LOG_LEVEL_ERROR, event_of(keeper, "start", event), "error=\"%s\"",
			 keeper->last.text);
		start_later(keeper, CHILD_PAUSE_NS);
	} else if (keeper->kind->restarted) {
		keeper->kind->restarted(keeper->arg);
	}
}

int keeper_begin(struct keeper *keeper, const struct keeper_kind *kind, void *arg,
		 const struct child_wants *wants)
{
	int r;

	*keeper = (struct keeper){.kind = kind, .arg = arg, .child = {.sock = -1}, .wants = wants};
	r = loop_timer_new(wants->loop, keeper_restart, keeper, &keeper->restart);
	if (!r)
		LIST_INSERT_HEAD(wants->keepers, keeper, link);
	return r;
}

int keeper_start(struct keeper *keeper, const char *const *arguments, struct diag *diag)
{
	const struct child_wants *wants = keeper->wants;
	const char *argv[MOST_ARGUMENTS + 1] = {NULL};
	char path[PATH_MAX];
	unsigned n = 0;
	int r = child_find(arguments[0], wants->is_private, path, sizeof(path), diag);

	if (r)
		return r;
	for (; arguments[n]; n++)
		argv[n] = arguments[n];
	if (*wants->as) {
		argv[n] = "--as";
		argv[n + 1] = wants->as;
	}
	r = child_start(path, (char *const *)argv, wants->priority, &keeper->child);
	r = r ? r
	      : hearing_begin(&keeper->hearing, wants->loop, &keeper->child, keeper->kind->said,
			      keeper->arg);
	if (r) {
		child_abandon(&keeper->child, wants->reaper);
		return diag_fail(diag, r, "cannot start %s: %s", path, strerror(-r));
	}
	if (keeper->kind->fetches)
		hearing_fetches(&keeper->hearing, wants->porters, wants->uid);
	child_luck_start(&keeper->luck, base_now_ns());
	return 0;
}

void keeper_tell_of(struct keeper *keeper, uint16_t type, const struct wire_part *parts)
{
	const struct child *child = &keeper->child;
	int r = child->sock >= 0 ? wire_tell_of(child->sock, MSG_DONTWAIT, type, parts) : 0;
	char event[EVENT];

	if (r && child->pid > 0) {
		log_line(LOG_LEVEL_WARN, event_of(keeper, "unreachable", event), "error=%d", r);
		kill(child->pid, SIGKILL);
	}
}

bool keeper_reads(const struct keeper *keeper, const struct wire_in *in,
		  const struct items_type *types, size_t n, void *ret)
{
	struct diag diag = {""};
	char event[EVENT];

	if (items_read(in, types, n, ret, &diag)) {
		log_line(LOG_LEVEL_WARN, event_of(keeper, "message", event), "text=\"%s\"",
			 diag.text);
		return false;
	}
	loop_is_about(keeper->wants->loop, items_name(types, n, in->type));
	return true;
}

struct keeper *keeper_of_ended(struct keepers *keepers, pid_t pid, int *ret_status,
			       uint64_t *ret_cpu_ns)
{
	BASE_EACH(keeper, keepers, link)
		if (pid > 0 ? keeper->child.pid == pid
			    : child_has_ended(keeper->child.pid, ret_status, ret_cpu_ns))
			return keeper;
	return NULL;
}

static void hang_up(struct keeper *keeper)
{
	hearing_end(&keeper->hearing);
	porter_close(keeper->wants->porters, keeper->wants->uid, &keeper->child.sock);
}

void keeper_lost(struct keeper *keeper)
{
	hang_up(keeper);
	keeper->child.pid = 0;
}

void keeper_died(struct keeper *keeper, int status)
{
	char event[EVENT];

	child_describe_end(status, keeper->last.text, sizeof(keeper->last.text));
	log_line(LOG_LEVEL_ERROR, event_of(keeper, "died", event),
		 "pid=%ld uid=%u how=\"%s\" text=\"%s\"", (long)keeper->child.pid,
		 (unsigned)keeper->wants->uid, keeper->last.text, keeper->kind->then);
	keeper_lost(keeper);
}

void keeper_again(struct keeper *keeper)
{
	start_later(keeper, keeper->kind->pause_ns);
}

void keeper_end(struct keeper *keeper)
{
	if (!keeper->restart)
		return; /* it was never begun */
	LIST_REMOVE(keeper, link);
	loop_unwatch(&keeper->restart);
	hang_up(keeper);
}

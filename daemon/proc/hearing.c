/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers and worker parents say little: an answer, a death, a sample that cannot be read. They run as the user
 * and look at his files, so one may be captured and say things without end. A message
 * costs us between a microsecond and some milliseconds (a death: all tasks of its streams are looked at), so it
 * is not counted but measured what they take. Who has had his share is not heard for a while: then his socket is
 * full, and he waits.
 *
 * The time is that of the clock and not of our CPU: what waits for the disk keeps others waiting, too.
 */
#include "daemon/proc/hearing.h"

#include <signal.h>

#include "base/log.h"
#include "daemon/net/porter.h"

#define SPAN_NS UINT64_C(50000000)
#define SHARE_NS UINT64_C(10000000) /* of each span */

static void give_up(struct hearing *hearing)
{
	hearing_end(hearing);
	if (hearing->child->pid > 0)
		kill(hearing->child->pid, SIGKILL);
}

/* false: it is not heard now. */
static bool may_speak(struct hearing *hearing, uint64_t now_ns)
{
	if (now_ns - hearing->since_ns > SPAN_NS) {
		hearing->since_ns = now_ns;
		hearing->took_ns = 0;
	}
	if (hearing->took_ns < SHARE_NS)
		return true;
	loop_unwatch(&hearing->watch);
	loop_timer_set(hearing->rest, SPAN_NS);
	return false;
}

static void on_readable(void *arg);

static bool watch(struct hearing *hearing)
{
	return loop_watch_fd(hearing->loop, hearing->child->sock, on_readable, hearing,
			     &hearing->watch) == 0;
}

/* r, in: what was received. */
static void hear(struct hearing *hearing, int r, struct wire_in *in)
{
	uint64_t begin_ns = base_now_ns();
	bool makes_sense = r == 0 && hearing->fn(hearing->arg, in);

	if (r == 0 && !makes_sense)
		log_line(LOG_LEVEL_WARN, "child-misbehaves", "pid=%ld message=%u",
			 (long)hearing->child->pid, in->type);
	hearing->took_ns += base_now_ns() - begin_ns;
	if (!makes_sense && r != -EAGAIN && r != -EINTR)
		give_up(hearing); /* its death follows */
}

static void on_fetched(void *arg, int r, struct wire_in *in)
{
	struct hearing *hearing = arg;

	hearing->errand = NULL;
	if (watch(hearing))
		hear(hearing, r, in);
	else
		give_up(hearing);
}

/* The message has descriptors. */
static int fetch(struct hearing *hearing)
{
	if (!hearing->porters)
		return WIRE_E_HAS_FDS;
	loop_unwatch(&hearing->watch);
	return porter_fetch(hearing->porters, hearing->uid, hearing->child->sock, on_fetched,
			    hearing, &hearing->errand);
}

static void on_readable(void *arg)
{
	struct hearing *hearing = arg;
	struct wire_in in;
	int r;

	if (!may_speak(hearing, base_now_ns()))
		return;
	wire_in_init(&in);
	r = loop_recv(hearing->child->sock, &in);
	if (r == WIRE_E_HAS_FDS)
		r = fetch(hearing) ? WIRE_E_HAS_FDS : -EAGAIN;
	hear(hearing, r, &in);
	wire_in_fini(&in);
}

static void on_rested(void *arg)
{
	struct hearing *hearing = arg;

	if (!watch(hearing))
		give_up(hearing);
}

int hearing_begin(struct hearing *hearing, struct loop *loop, const struct child *child,
		  hearing_fn fn, void *arg)
{
	int r;

	*hearing = (struct hearing){.loop = loop, .child = child, .fn = fn, .arg = arg};
	r = loop_timer_new(loop, on_rested, hearing, &hearing->rest);
	if (!r && !watch(hearing))
		r = -ENOMEM;
	if (r)
		hearing_end(hearing);
	return r;
}

void hearing_fetches(struct hearing *hearing, struct porters *porters, uid_t uid)
{
	hearing->porters = porters;
	hearing->uid = uid;
}

void hearing_end(struct hearing *hearing)
{
	porter_cancel(&hearing->errand);
	loop_unwatch(&hearing->watch);
	loop_unwatch(&hearing->rest);
}

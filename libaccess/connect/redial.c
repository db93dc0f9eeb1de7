/* SPDX-License-Identifier: Apache-2.0 */

/*
 * oa_open() dials within its own time, and gives up where nobody answers. Whoever has lost a session dials for ever, a
 * step at a time, within the time of whatever call waits. The pause between two tries is 50 ms and an eighth of the absence,
 * at most 5 s: a job that waited for a second comes no more than 180 ms after accessd. Pauses double where there is a
 * private accessd to start. They are short again after a session that gave something.
 */

#include "libaccess/connect/redial.h"

#include <stdio.h>
#include "libaccess/error.h"

#define REDIAL_MIN_NS UINT64_C(50000000)
#define REDIAL_MAX_NS UINT64_C(5000000000)

void redial_init(struct redial *redial, const struct dial_route *route)
{
	*redial = (struct redial){.route = *route};
	dial_init(&redial->dial, &redial->route);
	remote_init(&redial->remote);
}

void redial_fini(struct redial *redial)
{
	dial_open_fini(&redial->ask);
	remote_fini(&redial->remote);
}

static int redial_late(const struct redial *redial, struct diag *diag)
{
	char name[192];

	if (redial->dial.state == DIAL_HELLO || redial->dial.state == DIAL_OPEN)
		return diag_fail(diag, OA_E_TIMEOUT, "%s has not opened the stream in time%s%s",
				 dial_name(&redial->dial, name, sizeof(name)),
				 redial->dial.progress[0] ? "; it was at: " : "",
				 redial->dial.progress);
	return diag_fail(diag, OA_E_TIMEOUT, "no accessd at %s in time", redial->route.socket);
}

int redial_first(struct redial *redial, const struct oa_options *options, struct wire_in *ret,
		 struct diag *diag)
{
	uint64_t deadline = dial_deadline(options->timeout_ms ? options->timeout_ms : 600000);
	_cleanup_(dial_wait_end) struct dial_wait wait = {.has_begun = false};
	struct dial *dial = &redial->dial;
	unsigned gone = 0;

	dial_wait_begin(&wait);
	for (;;) {
		int r = dial_step(dial, &redial->ask, ret, diag);

		if (r == DIAL_PROGRESS) {
			if (options->progress)
				options->progress(options->progress_arg, dial->progress, dial->done,
						  dial->total);
			continue;
		}
		if (r == DIAL_GONE && ++gone > 3)
			return OA_E_UNREACHABLE;
		if (r == DIAL_GONE)
			dial->wake_ns = base_now_ns() + 50000000;
		else if (r != DIAL_AGAIN)
			return r;
		r = remote_look(&redial->remote, diag);
		if (r)
			return r;
		if (base_now_ns() >= deadline)
			return redial_late(redial, diag);
		r = dial_wait(&wait, dial_fd(dial),
			      BASE_MIN(BASE_MIN(dial->wake_ns, redial->remote.wake_ns), deadline));
		if (r)
			return diag_fail(diag, r, "oa_open(): interrupted by a signal");
	}
}

const char *redial_dataset(const struct redial *redial)
{
	return redial->remote.url.text ? redial->remote.url.text : redial->ask.dataset;
}

bool redial_pauses(struct redial *redial)
{
	if (redial->dial.state != DIAL_IDLE || base_now_ns() >= redial->retry_ns)
		return false;
	redial->dial.wake_ns = redial->retry_ns;
	return true;
}

int redial_step(struct redial *redial, struct wire_in *ret)
{
	int r;

	do
		r = dial_step(&redial->dial, &redial->ask, ret, &redial->error);
	while (r == DIAL_PROGRESS);
	return r;
}

int redial_session(struct redial *redial, struct wire_in *opened, bool has_view,
		   struct session **ret, struct diag *diag)
{
	int r = session_new(opened, &redial->dial.sock, redial->dial.pid, has_view, ret, diag);

	dial_reset(&redial->dial);
	if (!r)
		(*ret)->number = redial->n_sessions++;
	return r;
}

void redial_lose(struct redial *redial, const char *why)
{
	diag_set(&redial->error, "%s", why);
	redial->lost_ns = base_now_ns();
	redial->retry_ns = redial->lost_ns + redial->backoff_ns;
}

void redial_back_off(struct redial *redial)
{
	/* of a private one each try may start a process */
	const uint64_t more = redial->backoff_ns / (redial->route.is_private ? 1 : 8);
	uint64_t next = BASE_MAX(redial->backoff_ns + more, REDIAL_MIN_NS);

	redial->backoff_ns = BASE_MIN(next, REDIAL_MAX_NS);
	redial->retry_ns = redial->dial.wake_ns = base_now_ns() + redial->backoff_ns;
}

static unsigned long long redial_seconds(uint64_t since_ns)
{
	uint64_t now = base_now_ns();

	return now > since_ns ? (now - since_ns) / 1000000000 : 0;
}

void redial_describe(const struct redial *redial, char *ret, size_t size)
{
	char name[192];

	if (redial->dial.state == DIAL_OPEN && redial->dial.progress[0])
		snprintf(ret, size, "%s opens the stream again and is at: %s",
			 dial_name(&redial->dial, name, sizeof(name)), redial->dial.progress);
	else if (redial->dial.state == DIAL_HELLO || redial->dial.state == DIAL_OPEN)
		snprintf(
		    ret, size,
		    "%s has accepted the connection and not answered for %llu s: stopped or busy?",
		    dial_name(&redial->dial, name, sizeof(name)),
		    redial_seconds(redial->dial.since_ns));
	else
		snprintf(ret, size,
			 "no daemon at %s since %llu s; the job goes on when it is back (%.300s)",
			 redial->route.socket, redial_seconds(redial->lost_ns), redial->error.text);
}

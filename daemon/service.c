/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beat is a timer of the loop like any other. That it comes says that the loop turns: a callback that never returns, a
 * stopped process, an endless crowd of events none of which is ever the last, all hold it up, and the manager, which has had no
 * datagram for WatchdogSec, starts accessd again. Three beats come in that time, so one may be lost.
 *
 * A child that does not answer is accessd's own affair (operate.c). Rejected: to starve the watchdog then. It would take all
 * users' processes for one user's.
 *
 * The status is a sentence for `systemctl status`, sent when it changes.
 */
#include "daemon/service.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "base/log.h"
#include "daemon/loop.h"

#define BEATS 3                           /* in the watchdog's time */
#define UNWATCHED_NS UINT64_C(5000000000) /* between beats when nobody waits for them */
#define RETRY_NS UINT64_C(100000000)      /* until what must be heard is said again */

/* ---- children ---- */

enum service_child service_judge(uint64_t *stopped_ns, char state, uint64_t now_ns,
				 uint64_t limit_ns)
{
	if (state != 'T') {
		*stopped_ns = 0;
		return SERVICE_CHILD_WELL;
	}
	if (!*stopped_ns)
		*stopped_ns = now_ns;
	return now_ns - *stopped_ns >= limit_ns ? SERVICE_CHILD_STUCK : SERVICE_CHILD_STOPPED;
}

/* ---- what is told ---- */

static void describe(const struct service *service, char *ret, size_t size)
{
	size_t length;

	service->calls.describe(service->calls.arg, ret, size);
	length = strlen(ret);
	snprintf(ret + length, size - length, "%s%s", *service->trouble ? "; " : "",
		 service->trouble);
}

/* before: other lines, each with its end. */
static bool say(struct service *service, const char *before, const char *status)
{
	char lines[sizeof(service->said) + 128];

	snprintf(lines, sizeof(lines), "%sSTATUS=%s\n", before, status);
	if (!notify_say(&service->notify, lines))
		return false;
	snprintf(service->said, sizeof(service->said), "%s", status);
	return true;
}

static void say_ready(struct service *service)
{
	char status[sizeof(service->said)];

	describe(service, status, sizeof(status));
	service->is_ready = say(service, "READY=1\n", status);
}

static void say_news(struct service *service)
{
	char status[sizeof(service->said)];

	describe(service, status, sizeof(status));
	if (strcmp(status, service->said) != 0)
		say(service, "", status);
}

static uint64_t pause_of(const struct service *service)
{
	const uint64_t pause_ns = service->notify.watchdog_ns / BEATS;

	if (!service->is_ready)
		return RETRY_NS;
	return pause_ns ? BASE_MIN(pause_ns, UNWATCHED_NS) : UNWATCHED_NS;
}

static void on_beat(void *arg)
{
	struct service *service = arg;

	loop_is_about(service->loop, "watchdog and status of the service");
	if (!service->is_ready)
		say_ready(service);
	else
		say_news(service);
	if (service->notify.watchdog_ns) {
		notify_say(&service->notify, "WATCHDOG=1\n");
		service->calls.look(service->calls.arg, service->notify.watchdog_ns / 2);
	}
	loop_timer_set(service->beat, pause_of(service));
}

/* ---- SIGHUP ---- */

static void take(struct service *service, const struct param *wanted)
{
	struct param_change change;

	service->calls.take(service->calls.arg, wanted, &change);
	log_line(LOG_LEVEL_INFO, "reloaded", "changed=\"%s\"", change.taken);
	service->trouble[0] = '\0';
	if (!*change.left)
		return;
	snprintf(service->trouble, sizeof(service->trouble), "needs a restart: %.900s",
		 change.left);
	log_line(LOG_LEVEL_WARN, "reload-left",
		 "parameters=\"%s\" text=\"only a restart changes these: systemctl restart "
		 "accessd; jobs go on\"",
		 change.left);
}

static void refuse(struct service *service, const struct diag *diag)
{
	snprintf(service->trouble, sizeof(service->trouble), "configuration not taken: %.900s",
		 diag->text);
	log_line(LOG_LEVEL_ERROR, "reload-refused", "error=\"%s\" text=\"nothing was changed\"",
		 diag->text);
}

static void on_hup(void *arg)
{
	struct service *service = arg;
	struct param wanted;
	struct diag diag = {""};
	char before[96];

	if (service->is_stopping)
		return;
	snprintf(before, sizeof(before), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\n",
		 base_now_ns() / 1000);
	say(service, before, "Reads its configuration again");
	if (service->calls.reread(service->calls.arg, &wanted, &diag) == 0)
		take(service, &wanted);
	else
		refuse(service, &diag);
	say_ready(service);
	loop_timer_set(service->beat, pause_of(service));
}

/* ---- from the start to the end ---- */

int service_begin(struct service *service, struct loop *loop, struct notify *notify,
		  const struct service_calls *calls)
{
	int r;

	*service = (struct service){.loop = loop, .notify = *notify, .calls = *calls};
	*notify = (struct notify){.fd = 0};
	r = loop_timer_new(loop, on_beat, service, &service->beat);
	r = r ? r : loop_watch_signal(loop, SIGHUP, on_hup, service, &service->hup);
	if (r)
		return r;
	say_ready(service);
	if (service->notify.fd)
		loop_timer_set(service->beat, pause_of(service));
	return 0;
}

void service_stops(struct service *service, const char *why)
{
	char status[128];

	snprintf(status, sizeof(status), "Ends (%s): jobs wait and go on with the next accessd",
		 why);
	if (!service->is_stopping)
		say(service, "STOPPING=1\n", status);
	service->is_stopping = true;
}

void service_end(struct service *service)
{
	loop_unwatch(&service->beat);
	loop_unwatch(&service->hup);
	notify_close(&service->notify);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * accessd as a service: it tells the service manager that it is ready, what it does, that it lives (notify.h), and reads its
 * configuration again on SIGHUP. Without a manager only the latter.
 */

#include "daemon/notify.h"
#include "daemon/param.h"

struct loop;
struct loop_watch;

struct service_calls {
	void *arg;
	/* The configuration as a start would read it now. 0, or not, with diag; ret is whatever then. */
	int (*reread)(void *arg, struct param *ret, struct diag *diag);
	/* Takes over what can change. */
	void (*take)(void *arg, const struct param *wanted, struct param_change *ret);
	/* A sentence of what it does, for people. */
	void (*describe)(void *arg, char *ret, size_t size);
	/* Children that have been stopped for that long are to be replaced. */
	void (*look)(void *arg, uint64_t limit_ns);
};

struct service { /* zeroed: nobody is told anything */
	struct loop *loop;
	struct notify notify;
	struct loop_watch *beat, *hup;
	struct service_calls calls;
	bool is_ready, is_stopping;
	char said[1536];    /* of the status */
	char trouble[1024]; /* with the configuration, as it was read last */
};

/* Says that accessd is ready, and goes on until service_end(). notify: taken. 0 or negative errno. */
int service_begin(struct service *service, struct loop *loop, struct notify *notify,
		  const struct service_calls *calls);
void service_stops(struct service *service, const char *why);
void service_end(struct service *service); /* fine twice, and before service_begin() */

/* Of a reader or a parent of workers. */
enum service_child { SERVICE_CHILD_WELL, SERVICE_CHILD_STOPPED, SERVICE_CHILD_STUCK };
/* state: as limits_state() has it. STUCK: it has been stopped for that long. Plain arithmetic. */
enum service_child service_judge(uint64_t *stopped_ns, char state, uint64_t now_ns,
				 uint64_t limit_ns);

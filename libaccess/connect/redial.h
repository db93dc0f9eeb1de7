/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The way to a session, the first one and again whenever one is lost: whom to dial, what to ask for, and when the next
 * try is due. With the turn. */

#include "base/base.h"
#include "libaccess/connect/dial.h"
#include "libaccess/connect/remote.h"
#include "libaccess/connect/session.h"

struct redial {
	uint64_t backoff_ns; /* between two tries; 0: the last session gave something */
	uint64_t lost_ns;    /* since when there is no session */
	uint64_t retry_ns;   /* the next try */
	uint64_t n_sessions; /* so far */
	struct dial_route route;
	struct remote remote; /* the data set */
	struct dial dial;
	struct dial_open ask;
	struct diag error; /* why the last try failed */
};

void redial_init(struct redial *redial, const struct dial_route *route);
void redial_fini(struct redial *redial);
/* oa_open(): dials until OPENED is in *ret. 0, OA_E_TIMEOUT and others with diag. */
int redial_first(struct redial *redial, const struct oa_options *options, struct wire_in *ret,
		 struct diag *diag);
/* Is it not yet time for a try? dial.wake_ns says when. */
bool redial_pauses(struct redial *redial);
/* The data set as the job named it. */
const char *redial_dataset(const struct redial *redial);
/* One step towards OPENED, as dial_step(); why it failed is redial->error. */
int redial_step(struct redial *redial, struct wire_in *ret);
/* Makes a session of OPENED, as session_new(). */
int redial_session(struct redial *redial, struct wire_in *opened, bool has_view,
		   struct session **ret, struct diag *diag);
/* A session is lost, and why. */
void redial_lose(struct redial *redial, const char *why);
/* A try has failed: the next one comes later than the last did. */
void redial_back_off(struct redial *redial);
/* Where it stands, for a person. */
void redial_describe(const struct redial *redial, char *ret, size_t size);

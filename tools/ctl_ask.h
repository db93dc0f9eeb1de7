/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A conversation with accessd of our own: questions that are not its status. */

#include "base/base.h"
#include "base/wire.h"

#define CTL_ASK_MOST (16 << 20) /* bytes of a status */

struct ctl_ask {
	int sock;             /* owned, -1: none */
	uint64_t until_ns;    /* CLOCK_MONOTONIC; PROGRESS puts it off */
	uint64_t patience_ns; /* by so much: what there was at the begin */
	const char *counts;   /* what PROGRESS counts, shown on a terminal; NULL: is not shown */
	bool drew;            /* it was */
	const char *program;  /* who asks; NULL: access-ctl */
	uint64_t minor;       /* of the protocol, that accessd speaks */
	bool is_lost; /* a question has no answer: what comes would be taken for another's */
};

/* Connects and says HELLO; waits until then for this and for all that is asked. 0; else 1 with diag. The caller closes ask->sock in both cases. */
int ctl_ask_begin(struct ctl_ask *ask, const char *socket, uint64_t until_ns, struct diag *diag);
/* From now on there is as much time as at the begin. */
void ctl_ask_renew(struct ctl_ask *ask);
/* Sends a message of these parts and waits for the answer that says that all is well: 0, and ret is the caller's. Else 1
 * with diag: accessd's text, quoted. */
int ctl_ask_of(struct ctl_ask *ask, uint16_t answer, struct wire_in *ret, struct diag *diag,
	       uint16_t type, const struct wire_part *parts);
#define ctl_ask(ask, answer, ret, diag, type, ...) \
	ctl_ask_of(ask, answer, ret, diag, type, WIRE_PARTS(__VA_ARGS__))
/* The text in the answer's descriptor, of most bytes at most; the caller frees it. NULL: it cannot be read. in is used up. */
char *ctl_ask_text(struct wire_in *in, uint64_t most);
/* The JSON text of accessd's status; the caller frees it. 0; else 1 with diag. */
int ctl_ask_status(struct ctl_ask *ask, char **ret, struct diag *diag);
/* The same, by a connection of its own. */
int ctl_status(const char *socket, uint64_t until_ns, char **ret, struct diag *diag);

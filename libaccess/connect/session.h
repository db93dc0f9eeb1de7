/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A session: one served connection and the memory that came with it. */

#include "base/base.h"
#include "base/wire.h"
#include "libaccess/mixed_ask.h"
#include "libaccess/connect/prefault.h"
#include "libaccess/connect/view.h"
#include "shmring/slot_table.h"
#include "shmring/grant.h"
#include "shmring/plan_log.h"

struct session { /* all under the stream's lock but what never changes */
	/* never changes */
	int sock;
	uint64_t pid;         /* of accessd */
	uint64_t job_id;      /* at that accessd */
	uint64_t number;      /* of the stream's sessions, from 0 */
	uint8_t pipeline[32]; /* hash of its canonical text; zeros: accessd did not say */
	char shares[512];     /* what the job shares with others, in words */
	const struct layout_inbox *inbox;
	struct layout_outbox *outbox;
	struct slot_table table;
	const uint8_t *slots;
	/* One reference, which has the stream's lock; NULL: batches are in slots */
	struct view *view;
	struct prefault *prefault;
	struct mixed_ask batch_mixed;
	bool has_holes;        /* the pipeline may leave samples out */
	uint64_t local_ranks;  /* whose chunks it is granted; 0: the plan's */
	bool has_log;          /* a rank under the carousel */
	struct plan_log log;   /* until the stream takes it, and log_fd */
	int log_fd;            /* owned, -1: none */
	uint64_t epoch, place; /* with has_log: where the rank goes on */
	/* lock */
	struct grant_rank rank;
	uint32_t refs; /* the stream's while it serves, and one for each chunk taken from it */
};

/* From OPENED: takes its descriptors and maps them, the slots as a view, too, if has_view. *sock is taken
 * on success. 0, or OA_E_LIMIT, negative errno with diag. */
int session_new(struct wire_in *opened, int *sock, uint64_t pid, bool has_view,
		struct session **ret, struct diag *diag);
void session_ref(struct session *session);
/* With the last one it hangs up, which gives everything back, and unmaps. NULL is fine. */
void session_unref(struct session *session);
/* In a forked child: closes its copies, keeps what the parent's pins protect if keep_slots. */
void session_abandon(struct session *session, bool keep_slots);

/* Sends a message without more than its type; never blocks. Failures show at the next receive. */
void session_send(const struct session *session, uint16_t type);
void session_ask_explanation(const struct session *session, uint64_t instance, uint32_t position);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A job's rank in a stream: its inbox and outbox, its place in the carousel, its figures. */

#include "daemon/serve/lists.h"
#include "daemon/serve/pace.h"
#include "daemon/serve/waits.h"
#include "sched/fair.h"
#include "shmring/grant.h"

struct carousel_action;
struct conn;
struct fill;
struct group;
struct stream;

struct job_slot {
	uint64_t granted; /* number of its grant under way, 0: none */
	uint32_t end;     /* of what was granted: behind its last sample of the chunk */
	bool held;        /* it has taken it, or may have */
};

struct job {
	struct conn *conn;
	struct stream *stream;
	struct group *group; /* NULL: it is no rank under the carousel */
	uint64_t id;         /* for people */
	uint32_t number;     /* in the carousel and in stream->users.job[] */
	char *name;
	uint32_t batch, order; /* order: enum plan_order */
	uint32_t stride;       /* B, or 1 if its batches begin anywhere in a chunk */
	uint64_t epochs, budget;
	uint64_t since; /* revisit_opened() said so */
	bool active;    /* in the carousel; false once it failed, left or the stream was lost */
	struct grant_server grants;
	struct job_slot *slot;   /* what it has of each of the stream's */
	struct job_later *later; /* grants that found the ring full, in order */
	uint32_t n_later;
	struct lists lists; /* of a plan that is a list */
	bool news;          /* something became ready for it since it was woken last */
	bool is_asleep;     /* it was, when its outbox was read last */
	/* At the end of the last turn: the chunk in production that it comes to first, NULL: none; and what it waits for, if
	 * it does */
	struct fill *front;
	enum layout_stage stage;
	struct pace pace;
	struct waits waits; /* for people: what it waited for lately */
	struct fair_had had;
};

/* For conn's request, not in the carousel yet, with the memory that it shares with its process; NULL: none is left. */
struct job *job_new(struct conn *conn, int *ret_inbox_fd, int *ret_outbox_fd);
void job_destroy(struct job *job); /* one that never was in the carousel, or is out of it */
/* The connection is gone: everything the job had is free. Frees the job. */
void job_free(struct job *job);
/* It gets nothing more, what it holds stays pinned until its connection ends. FAILED or LOST is
 * sent. */
void job_fail(struct job *job, uint64_t code, const char *text);
void job_lost(struct job *job, const char *text);

/* More of this was for it: to it and its user, with what it took since then. */
void job_account(struct job *job, struct fair_account more);
/* Samples that it has taken; 0 once it is out of the carousel, which counts them then. */
uint64_t job_taken(const struct job *job);

/* For pump.c: reads the outbox and tells the carousel. true when anything had happened. */
bool job_poll(struct job *job, uint64_t now_ns);
/* It sleeps, which is seen now: it has waited for the stage since it went to sleep. */
void job_slept(struct job *job, enum layout_stage stage, uint64_t now_ns);
void job_grant(struct job *job, const struct carousel_action *action);
void job_revoke(struct job *job, uint32_t slot, uint64_t now_ns);
void job_post_later(struct job *job);
/* A chunk that it is granted, whose files are to be looked at before it is shown that. */
bool job_awaits_look(const struct job *job, uint32_t *ret_slot);
/* It was not shown it, nor what was granted behind it: that is needed again. */
void job_take_back(struct job *job, uint32_t slot, uint64_t now_ns);
/* Sends a wake if the rank sleeps unanswered and there is news for it. */
void job_wake(struct job *job, uint64_t now_ns);
/* Sets d_stage, d_heartbeat and d_wants_kick (LAYOUT_KICK_...), and accounts its wait. */
void job_show(struct job *job, bool is_late, uint32_t kicks, uint64_t now_ns);

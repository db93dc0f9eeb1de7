/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A conversation with accessd up to the point where it serves: connect (or start a private daemon),
 * HELLO, WELCOME and, for a stream, OPEN, OPENED. Never blocks: step it, poll what it says, step
 * again.
 */

#include <signal.h>
#include "base/base.h"
#include "base/wire.h"
#include "libaccess/libaccess.h"
#include "libaccess/part.h"
#include "libaccess/connect/private.h"

#define DIAL_PATH 108 /* sun_path */

struct dial_route { /* where the daemon is; a plain value */
	char socket[DIAL_PATH];
	char folder[DIAL_PATH]; /* of the private daemon */
	char buckets
	    [256]; /* where it wants folders of access-bucket, as it sees it; "": it did not say */
	bool is_private;
};

struct dial_open { /* what OPEN asks for; strings and token are the owner's */
	char *dataset, *pipeline, *job;
	bool is_remote; /* dataset is a folder of access-bucket */
	char *keep;     /* NULL: none */
	uint32_t batch, chunk, ranks, rank, local_ranks,
	    local_first; /* local_ranks == ranks: one node */
	bool drop_last, is_spread;
	uint32_t order; /* enum oa_order */
	uint64_t seed;
	uint64_t epochs;
	uint32_t bad;
	int64_t bad_budget;
	void *token;
	size_t token_size;
	int log_fd; /* borrowed; of the plan log that the token is of, -1: none */
	uint32_t reuse;
	bool is_exact;           /* what it is served is recorded, a nonce for each chunk */
	const struct part *part; /* borrowed; NULL: all samples */
	bool has_filtered;       /* accessd was asked for the pipeline's filter */
};
void dial_open_fini(struct dial_open *open);

enum {
	DIAL_AGAIN = 256,    /* poll dial_fd() until dial->wake_ns, then step again */
	DIAL_GONE = 257,     /* nobody there, or it hung up; diag says. The dial is idle again */
	DIAL_PROGRESS = 258, /* progress, done, total have news; step again */
};

enum dial_state { DIAL_IDLE, DIAL_STARTING, DIAL_HELLO, DIAL_OPEN };

struct dial {
	const struct dial_route *route; /* borrowed */
	enum dial_state state;
	int sock;          /* owned, -1: none */
	uint64_t wake_ns;  /* of CLOCK_MONOTONIC */
	uint64_t since_ns; /* this state began */
	struct spawn spawn;
	uint64_t pid, minor; /* of accessd, as it says */
	char version[32];
	char buckets[256]; /* of the route */
	char progress[256];
	uint64_t done, total;
};

void dial_init(struct dial *dial, const struct dial_route *route);
void dial_fini(struct dial *dial);
/* Back to idle: closes the socket. */
void dial_reset(struct dial *dial);
/*
 * One step. open NULL: 0 when WELCOME came (dial->sock talks). Else 0 when OPENED came: it is in
 * *ret. DIAL_..., a positive OA_E_... or a negative errno with diag otherwise; after those the dial
 * is idle.
 */
int dial_step(struct dial *dial, const struct dial_open *open, struct wire_in *ret,
	      struct diag *diag);
/* A message that came instead of what was awaited: notes the news of PROGRESS (DIAL_PROGRESS), or
 * says what REFUSED, or anything else, means; the dial is idle then. */
int dial_other(struct dial *dial, const struct wire_in *in, struct diag *diag);
/* The next message: 0, DIAL_AGAIN, or the end of the conversation as dial_step(). */
int dial_receive(struct dial *dial, struct wire_in *ret, struct diag *diag);
/* After WELCOME: does accessd know such data sets? 0, or OA_E_VERSION with diag. */
int dial_knows(const struct dial *dial, const char *dataset, bool is_remote, struct diag *diag);
int dial_fd(const struct dial *dial); /* to poll for reading; -1: only the time counts */
/* "accessd (pid 7) at /run/accessd/socket" or the part of it that is known. Returns ret. */
char *dial_name(const struct dial *dial, char *ret, size_t size);

/* The signals of a program are its own: blocks what others send, in this thread, for a moment or in a thread of ours. A fault of
 * the thread itself (SIGSEGV, ...) goes to the program's handler as ever: run-time systems live on such faults, and blocked
 * they would kill. */
void dial_block_signals(sigset_t *ret_before);

/*
 * A wait that a signal ends, whenever it comes: signals are blocked from dial_wait_begin() on, but
 * for the sleep itself, so none is handled between a look and the sleep and then slept over.
 */
struct dial_wait {
	sigset_t before;
	bool has_begun;
};
void dial_wait_begin(struct dial_wait *wait); /* a second time changes nothing */
void dial_wait_end(struct dial_wait *wait);
/* Polls fd (-1: none) for reading until until_ns. 0 (readable or time), OA_E_INTERRUPTED,
 * -errno. */
int dial_wait(const struct dial_wait *wait, int fd, uint64_t until_ns);
/* When timeout_ms from now ends; < 0: never (UINT64_MAX). */
uint64_t dial_deadline(int64_t timeout_ms);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What accessd knows of the samples of a stream, asked on a connection of its own. */

#include "libaccess/connect/client.h"
#include "libaccess/libaccess.h"
#include "shmring/bad_list.h"

enum { BAD_ASK_GONE = 320 }; /* not that accessd, or not that job any more */

struct bad_ask { /* a conversation */
	struct dial dial;
	uint64_t deadline, job_id, n; /* n: samples of the dataset */
	struct bad_list *list;        /* what was told */
	const char *what;             /* it is, for people: plural */
};
/* Adds all bad samples that accessd knows. 0, BAD_ASK_GONE, or what went wrong, with diag. */
int bad_ask_all(struct bad_ask *ask, struct diag *diag);
/* Adds these samples, bad or not, in their order; each is below n. The same. */
int bad_ask_ids(struct bad_ask *ask, const uint64_t *ids, uint64_t count, struct diag *diag);

/* What is asked in a conversation: 0, BAD_ASK_GONE, or what went wrong, with diag. */
struct bad_ask_way {
	const char *what;
	int (*ask)(struct oa_stream *stream, struct bad_ask *ask, void *arg, struct diag *diag);
	void *arg;
};
/* One try, with a list that is emptied before. BAD_ASK_GONE: the session is not, or no more, what it was. Without the
 * stream's lock. */
int bad_ask_once(struct oa_stream *stream, uint64_t deadline, const struct bad_ask_way *way,
		 struct bad_list *list, struct diag *diag);
/* A call for that, which connects again where it must. timeout_ms: 0: 10 minutes, < 0: no limit. 0, or what
 * oa_error_text() has the text of. Without the stream's lock. */
int bad_ask(struct oa_stream *stream, int timeout_ms, const struct bad_ask_way *way,
	    struct bad_list *list);
/* Leaves a text for oa_error_text() and returns code. */
int bad_ask_fail(struct oa_stream *stream, int code, const char *text);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ranges of objects, into readers' memory. For the thread of the loop; credentials are mended by another (errand.h), which the
 * owner asks.
 */

#include "bucket/provider.h"
#include "bucket/question.h"

struct fetch;
struct fetch_sink {
	/* To who asked: the bytes are there, or will not come. text: "" or why. Begins and cuts nothing. */
	void (*answer)(void *guest, uint64_t id, enum bucket_status status, int code,
		       const char *text);
	/* A server said no. The owner finds out what can be done, and says fetch_mended(). answer->body may be taken. */
	void (*refused)(void *owner, struct http_answer *answer, const char *key);
	void *owner;
};
struct fetch_counts {
	uint64_t requests, bytes, dropped; /* dropped: between what was asked */
	uint64_t again, slow, changed, failed;
	uint64_t hastened; /* that were late, and asked for again */
	unsigned waiting, running, limit;
};

/* provider and sink are the caller's, who keeps them as long. 0, -ENOMEM. */
int fetch_new(const struct provider_ops *ops, void *provider, const struct fetch_sink *sink,
	      struct fetch **ret);
void fetch_free(struct fetch *fetch);
/* What is asked of objects whose keys are folder and name, into memory, which stays until fetch_leave(). Each ask is answered once, unless its guest leaves. */
void fetch_add(struct fetch *fetch, void *guest, uint8_t *memory, const char *folder,
	       struct question *question);
void fetch_leave(struct fetch *fetch, void *guest);
void fetch_mended(struct fetch *fetch, bool is_mended, const char *why);
int fetch_fd(const struct fetch *fetch);          /* is readable when there is something to do */
uint64_t fetch_due_ns(const struct fetch *fetch); /* then there is, too */
void fetch_turn(struct fetch *fetch);
void fetch_count(const struct fetch *fetch, struct fetch_counts *ret);

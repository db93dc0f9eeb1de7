/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_BAD_H
#define DAEMON_BAD_H

/*
 * What went wrong with which samples of a stream: the distinct bad ids (for budgets and the status)
 * and the reason of each sample that was ended as an error (for EXPLAIN).
 */

#include "base/base.h"
#include "shmring/layout.h"

#define BAD_REASONS 256 /* reasons kept; older ones are forgotten */

struct bad_reason {
	uint64_t instance, id;
	uint32_t position;
	char text[400];
};

struct bad {
	uint64_t *id; /* distinct, sorted */
	uint64_t count, room;
	struct bad_reason *reason; /* ring of BAD_REASONS, made at the first */
	uint64_t reasons;
};

void bad_fini(struct bad *bad);
/* Counts id; true when it was not known yet. */
bool bad_add(struct bad *bad, uint64_t id);
void bad_explain(struct bad *bad, uint64_t instance, uint32_t position, uint64_t id,
		 const char *text);
/* Why; NULL when not known (any more). */
const char *bad_reason_of(const struct bad *bad, uint64_t instance, uint32_t position);
/* The sentence for a person: what, which file, which stage, why. name: relative path, any bytes. */
void bad_text(char *ret, size_t size, const char *folder, const char *name, uint64_t id,
	      enum layout_fail stage, int code, const char *detail);

#endif

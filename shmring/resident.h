/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The resident memory of a trust domain: stored forms that stay where workers can read them, so that neither
 * the store nor a copy is on the way of a sample. The reader writes it and says in a task where a form
 * lies (queue_read_came()); what is where is its knowledge alone.
 */

#include "base/base.h"

enum { RESIDENT_E_BAD = 1 };

/* Memory is taken and given back in chunks, on multiples of their size: a huge page of the hardware. */
#define RESIDENT_CHUNK (UINT64_C(2) << 20)
#define RESIDENT_VALUE_MOST RESIDENT_CHUNK /* so it fits in any chunk that is empty */

struct resident { /* mapped */
	uint8_t *data;
	uint64_t bytes;
};

/* accessd: memory of at most that many bytes, rounded down to chunks, none of which is taken yet. The caller
 * owns *ret_fd. 0, RESIDENT_E_BAD (not even a chunk, or absurd) or negative errno. */
int resident_new(uint64_t bytes, int *ret_fd);
/* 0, RESIDENT_E_BAD, negative errno; fd stays the caller's. */
int resident_attach(int fd, bool writable, struct resident *ret);
void resident_detach(struct resident *resident); /* one that is not attached is fine */

/* ---- the reader ---- */
/* Before a chunk is written, so that no touch of it can fail. 0 or negative errno. */
int resident_take(int fd, uint64_t chunk);
/* Nobody reads these chunks any more: their memory is the system's again. 0 or negative errno. */
int resident_give_back(int fd, uint64_t first, uint64_t count);

/* ---- workers ---- */
/* What a task says lies there (queue_task.resident, a hostile number); NULL: it does not. */
const uint8_t *resident_at(const struct resident *resident, uint64_t place, uint64_t bytes);

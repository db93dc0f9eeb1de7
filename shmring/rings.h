/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rings of bytes in one memory, each with one writer and one reader, so that nobody waits for anybody: where there is
 * no room, the item is not taken this time. Stored forms go so from workers, each with a ring of its own, to the reader,
 * which keeps them (the write-back rings), and values between the reader and a carrier.
 */

#include "base/base.h"
#include "shmring/layout.h"

enum { RINGS_E_BAD = 1 };

struct rings { /* mapped; the numbers are private copies, checked */
	struct layout_rings *head;
	uint8_t *data;
	uint64_t bytes, ring_bytes;
	uint32_t n_rings;
};
struct rings_item { /* a form: private copy, sizes checked against the ring */
	uint32_t queue, row, task, form, bytes;
	uint64_t sample;
	/* In the ring; whoever writes it can change it: copy before checking */
	const uint8_t *data;
	uint64_t next; /* of the ring, for rings_pass() */
};

/* accessd: reserves nothing, memory is taken as it is used. The caller owns *ret_fd. 0 or negative errno. */
int rings_new(uint32_t n_rings, uint64_t ring_bytes, int *ret_fd);
/* 0, RINGS_E_BAD, negative errno; fd stays the caller's. */
int rings_attach(int fd, struct rings *ret);
void rings_detach(struct rings *rings); /* one that is not attached is fine */

/* ---- the worker whose ring it is ---- */
/* Where a form of at most `most` bytes can be made; NULL: no room now. */
uint8_t *rings_begin(const struct rings *rings, uint32_t ring, uint64_t most);
/* Most bytes that a form in a ring may have. */
uint64_t rings_most(const struct rings *rings);
/* The form, made where rings_begin() said last, is the reader's. */
void rings_end(const struct rings *rings, uint32_t ring, const struct rings_item *item);

/* ---- the reader ---- */
/* The oldest item of a ring. false: none. A ring that makes no sense is emptied: *ret_bad. */
bool rings_look(const struct rings *rings, uint32_t ring, struct rings_item *ret, bool *ret_bad);
void rings_pass(const struct rings *rings, uint32_t ring, const struct rings_item *item);
uint32_t rings_seq(const struct rings *rings); /* before looking */
/* Wakes the reader for another reason than an item. */
void rings_wake(const struct rings *rings);
void rings_sleep(const struct rings *rings, uint32_t seen, uint64_t timeout_ns);

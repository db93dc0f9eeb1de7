/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHMRING_TRAY_H
#define SHMRING_TRAY_H

/*
 * The tray: stored forms on their way from the workers that made them to the reader, which keeps them.
 * A ring of bytes for each worker, with one writer and one reader, so that nobody waits for anybody:
 * where there is no room, the form is not kept this time.
 */

#include "base/base.h"
#include "shmring/layout.h"

enum { TRAY_E_BAD = 1 };

struct tray { /* mapped; the numbers are private copies, checked */
	struct layout_tray *head;
	uint8_t *data;
	uint64_t bytes, ring_bytes;
	uint32_t n_rings;
};
struct tray_item { /* a form: private copy, sizes checked against the ring */
	uint32_t lane, block, task, form, bytes;
	uint64_t sample;
	const uint8_t
	    *data; /* in the tray; whoever writes the ring can change it: copy before checking */
	uint64_t next; /* of the ring, for tray_pass() */
};

/* accessd: reserves nothing, memory is taken as it is used. The caller owns *ret_fd. 0 or negative errno. */
int tray_new(uint32_t n_rings, uint64_t ring_bytes, int *ret_fd);
/* 0, TRAY_E_BAD, negative errno; fd stays the caller's. */
int tray_attach(int fd, struct tray *ret);
void tray_detach(struct tray *tray); /* one that is not attached is fine */

/* ---- the worker whose ring it is ---- */
/* Where a form of at most `most` bytes can be made; NULL: no room now. */
uint8_t *tray_begin(const struct tray *tray, uint32_t ring, uint64_t most);
/* Most bytes that a form in a ring of the tray may have. */
uint64_t tray_most(const struct tray *tray);
/* The form, made where tray_begin() said last, is the reader's. */
void tray_end(const struct tray *tray, uint32_t ring, const struct tray_item *item);

/* ---- the reader ---- */
/* The oldest item of a ring. false: none. A ring that makes no sense is emptied: *ret_bad. */
bool tray_look(const struct tray *tray, uint32_t ring, struct tray_item *ret, bool *ret_bad);
void tray_pass(const struct tray *tray, uint32_t ring, const struct tray_item *item);
uint32_t tray_seq(const struct tray *tray); /* before looking */
/* Wakes the reader for another reason than an item. */
void tray_ring(const struct tray *tray);
void tray_sleep(const struct tray *tray, uint32_t seen, uint64_t timeout_ns);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A session's slots as batches show them when they may become private: see view.c. Under the stream's lock
 * but for what says otherwise. */

#include "shmring/slot_table.h"

struct view;

/* Maps the slots a second time. 0 and *ret with one reference, or negative errno. */
int view_new(int slots_fd, const struct slot_geometry *geometry, struct view **ret);
void view_ref(struct view *view);
void view_unref(struct view *view); /* NULL is fine; unmaps with the last one */
/* Where a slot's memory is in it, and a field's array in a slot; without the lock. */
uint8_t *view_slot(const struct view *view, uint32_t slot);
uint64_t view_offset(const struct view *view, uint32_t field);
/* For the thread that touches pages beforehand. */
const uint8_t *view_memory(const struct view *view);

/* A chunk in the slot is in use from now on, and not any more: with the last one what became private in the
 * slot is dropped, and it shows the shared memory again. true: something was written to, not just kept. */
void view_enter(struct view *view, uint32_t slot);
bool view_leave(struct view *view, uint32_t slot);
/* Some of the slot's pages may be private, and not what the shared memory has. Asked after a sample was
 * seen finished. false: what is read of that sample in the view is right, now and later. */
bool view_is_private(const struct view *view, uint32_t slot);
/* The slot may be written to; pages that are become private. 0 or negative errno. Any thread, without the
 * lock, also in a signal's handler. */
int view_open(struct view *view, uint32_t slot);
/* Makes the pages of these bytes of the slot private as they are, after view_open(). 0 or negative errno. */
int view_keep(struct view *view, uint32_t slot, uint64_t offset, uint64_t bytes);
/* Since the slot was shared: was view_keep() among what made it private? */
bool view_is_kept(const struct view *view, uint32_t slot);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A text that accessd renews and any number of watchers read, without a message or a system call (struct layout_pane). It is
 * the status as one user may see it. Watchers cannot write it, so they cannot lie to each other; they believe nothing of
 * it either.
 */

#include "base/base.h"
#include "shmring/layout.h"

#define PANE_MAX (UINT64_C(16) << 20) /* bytes of text */

enum {
	PANE_E_BAD = 1,   /* none of ours, or not what it was */
	PANE_E_OLD = 2,   /* nothing new since the last time */
	PANE_E_BUSY = 3,  /* it is being written, or its writer died meanwhile */
	PANE_E_ENDED = 4, /* nobody writes it any more */
	PANE_E_ROOM = 5,  /* the text is larger than the pane */
};

/* pane.c, accessd's side */
struct pane {
	struct layout_pane *map; /* NULL: there is none */
	uint64_t bytes, room;    /* of the memory, and of text in it */
	int fd;                  /* to give away: it reads */
};
/* Reserved in full, sealed. room is rounded up. 0 or negative errno. */
int pane_new(uint64_t room, struct pane *ret);
/* 0, or PANE_E_ROOM: the text before stays. */
int pane_write(struct pane *pane, const char *text, size_t size);
/* Tells the watchers and forgets it; theirs stays theirs. No pane is fine. */
void pane_end(struct pane *pane);

/* pane.c, a watcher's side */
struct pane_view {
	const struct layout_pane *map; /* NULL: there is none */
	uint64_t bytes, room;
	uint64_t seq; /* of the text that was read last */
};
/* fd stays the caller's. 0, PANE_E_BAD, negative errno. */
int pane_attach(int fd, struct pane_view *ret);
/* The newest text, terminated; caller frees. 0, PANE_E_OLD, _BUSY, _ENDED (also: of the last text), _BAD, or -ENOMEM. */
int pane_read(struct pane_view *view, char **ret, size_t *ret_size);
void pane_detach(struct pane_view *view); /* no pane is fine */

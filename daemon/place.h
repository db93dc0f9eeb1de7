/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where an accessd lives: its folder, the lock that makes it the only one there, its socket, its
 * folder for stored indexes.
 */

#include "base/identity.h"
#include "daemon/param.h"

enum { PLACE_E_REFUSED = 1 };

#define PLACE_TEMPORARY "tmp-" /* in `indexes`: being written, and locked so long */

struct place {
	char folder[PARAM_TEXT_MAX + 64]; /* holds the socket and the locks */
	char socket[PARAM_TEXT_MAX + 128];
	char indexes[PARAM_TEXT_MAX + 128];
	char stores[PARAM_TEXT_MAX + 128]; /* of what is kept, one a domain: disk_cache.c */
	char plans[PARAM_TEXT_MAX + 128];  /* where groups' logs are kept: group_keep.c */
	char buckets[PARAM_TEXT_MAX +
		     128]; /* where users have folders of access-bucket; "": nowhere */
	int plans_fd;      /* -1: they are not kept */
	int pid_fd;        /* locked for this process's life: the only accessd of this folder */
	int listen_fd;     /* SOCK_SEQPACKET, non-blocking */
	bool is_private;
	/* A service manager made the socket, listens there without us, and removes it */
	bool is_given;
};

/* Makes folders, takes the lock, replaces a stale socket, listens, removes what a killed accessd left in
 * `indexes`. folder: NULL for the usual one. given_fd: a listening socket that is used in place of one's own (taken, also on
 * failure), or -1. 0, PLACE_E_REFUSED (diag: who else, what, how to mend), negative errno (diag too). */
int place_open(struct place *place, const struct param *param, bool is_private, const char *folder,
	       int given_fd, struct diag *diag);
/* For a system accessd that root started and that will be `owner`: makes its folders, his from then
 * on. 0, or PLACE_E_REFUSED with diag. */
int place_hand_over(const struct param *param, const char *folder, const struct identity *owner,
		    struct diag *diag);
/* Idle exit under the election lock: true when nobody can be connecting any more (the socket is
 * gone). */
bool place_try_leave(struct place *place);
void place_close(struct place *place); /* removes the socket */
/* The usual private folder: $XDG_RUNTIME_DIR/oneaccess, else /tmp/oneaccess-UID. */
void place_private_folder(char *ret, size_t size);

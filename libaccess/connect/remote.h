/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A data set with a URL: access-bucket (shmring/bucket.h) is started for it, or found, and held as long as it is used. */

#include "base/base.h"
#include "base/url.h"
#include "libaccess/connect/spawn.h"
#include "shmring/bucket.h"

struct dial_route;
struct oa_options;

#define REMOTE_LOSSES 5 /* within a minute: then something is wrong with access-bucket */

enum remote_state { REMOTE_IDLE, REMOTE_STARTING, REMOTE_LISTING, REMOTE_READY };

struct remote {         /* of one thread at a time */
	struct url url; /* text NULL: it is no URL, and nothing is held */
	char *folder;   /* owned; access-bucket's, as this process sees it */
	char *path;     /* owned; the data set as accessd is told it, once it is open */
	enum remote_state state;
	bool is_open;    /* it was ready once: whoever serves it then is good enough */
	bool is_moved;   /* to another access-bucket, which has not listed yet */
	bool is_waiting; /* to start one of its own: for its turn */
	bool has_tried;  /* that, since it was last ready: what is refused now is the end */
	int sock;        /* owned; to access-bucket, -1: none */
	struct spawn spawn;
	uint64_t wake_ns;
	uint64_t lost_ns
	    [REMOTE_LOSSES]; /* when access-bucket ended; the oldest one at n_lost % REMOTE_LOSSES */
	uint64_t n_lost;
	uint64_t objects; /* listed so far */
	struct diag last; /* what access-bucket refused; "" */
};

void remote_init(struct remote *remote);
void remote_fini(struct remote *remote);
/*
 * Of a URL: waits until access-bucket has listed it; remote->path is set then. Tells options->progress, if there are
 * options. Of a path: it is remote->path, absolute. 0, OA_E_... or a negative errno with diag.
 */
int remote_open(struct remote *remote, const struct dial_route *route, const char *dataset,
		uint64_t deadline, const struct oa_options *options, struct diag *diag);
/* The same of a URL, for a program that needs no accessd: its folder is in that of a private one. progress as oa_options has it. */
int remote_open_alone(struct remote *remote, const char *dataset,
		      void (*progress)(void *arg, const char *text, uint64_t done, uint64_t total),
		      void *arg, struct diag *diag);
/* Of what was opened: has access-bucket ended? Then it is started again, a step with each call: the next one at remote->wake_ns
 * (UINT64_MAX: there is nothing to look at). 0, also while that goes on; else it will not come back, and diag says why. */
int remote_look(struct remote *remote, struct diag *diag);
/* What it waits for, for a person; NULL: for nothing. */
const char *remote_describe(const struct remote *remote, char *ret, size_t size);

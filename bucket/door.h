/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* FOLDER/socket: who comes there, what they ask, and for how long there is reason to stay. The loop. */

#include "bucket/errand.h"

struct door;
struct door_place {
	const struct bucket_url *url;
	void *provider;
	struct errand *errand;
	int listen_fd, log_fd;
	int commit_fd;    /* is as new as its jobs; -1: none */
	uint64_t keep_ns; /* after the last job went */
	/* They may be others now; a list was given for them, or refused. */
	void (*keys)(bool are_new, bool are_good);
};

/* listen_fd is the door's. 0, negative errno. */
int door_new(const struct door_place *place, struct door **ret);
/* Until there is no reason to stay. Have all jobs gone, or is what was opened no longer there? Then nobody goes on with it. */
bool door_serve(struct door *door);
void door_free(struct door *door);

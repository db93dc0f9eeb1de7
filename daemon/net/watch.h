/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Watchers of the status: they read it from a memory, which is renewed while somebody has one. */

#include <sys/queue.h>
#include "base/base.h"

struct loop;
struct loop_watch;
struct watch_view;

struct watch_who { /* whose status it is */
	uid_t uid;
	bool sees_all;
	uint64_t named; /* named data sets that he may use, a bit each (rights_named()) */
};

/* The status as he may see it: 0 and a text, which the caller frees, or negative errno. */
typedef int (*watch_render_fn)(void *arg, const struct watch_who *who, char **ret,
			       size_t *ret_size);

struct watching {
	LIST_HEAD(watch_views, watch_view) views;
	struct loop_watch *timer;
	watch_render_fn render;
	void *arg;
	uint64_t rests_until_ns;
	unsigned n;                /* watchers */
	uint64_t renewals, cpu_ns; /* all that was renewed, and what it took */
};

struct watcher { /* zeroed: it watches nothing */
	LIST_ENTRY(watcher) link;
	struct watch_view *view;
	uint64_t period_ms;
};

int watch_init(struct watching *watching, struct loop *loop, watch_render_fn render, void *arg);
void watch_fini(struct watching *watching);
/* From now on it watches what he may see, in the place of what it watched before; *ret_fd, borrowed until the next turn,
 * is to be given to it. period_ms: as often as it wishes, 0: as usual. 0 or negative errno: watch_leave() is to follow. */
int watch_enter(struct watching *watching, struct watcher *watcher, const struct watch_who *who,
		uint64_t period_ms, int *ret_fd);
/* Who may see what has changed: all watchers are to ask anew. */
void watch_turn_out(struct watching *watching);
void watch_leave(struct watching *watching, struct watcher *watcher);

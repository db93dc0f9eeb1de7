/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching the status without asking.
 *
 * A view is what a user may see, as the status would show it to him; who may see all have one together, as far as the same named
 * data sets are theirs to use. Each view in use has a
 * pane (shmring/pane.h), which is renewed as often as the quickest of its watchers wishes, PERIOD_LEAST_MS at least apart: once
 * for all of them, however many there are and however often they look. A renewal is a turn of its own of the loop, and after one
 * nobody's is renewed before REST times the CPU time that it took, so that watchers together never take more than 1 / REST of a
 * processor.
 *
 * A text that has outgrown its pane ends it; its watchers find that and ask for the next one. A private accessd whose clients
 * all watch is as idle as one without any.
 */
#include "daemon/net/watch.h"

#include "daemon/loop.h"
#include "shmring/pane.h"

#define PERIOD_LEAST_MS UINT64_C(100)
#define PERIOD_MOST_MS UINT64_C(10000)
#define PERIOD_USUAL_MS UINT64_C(1000)
#define REST 100

struct watch_view {
	LIST_ENTRY(watch_view) link;
	LIST_HEAD(view_watchers, watcher) watchers;
	struct watch_who who;
	struct pane pane;
	uint64_t renewed_ns;
};

static uint64_t period_ns(const struct watch_view *view)
{
	uint64_t least_ms = PERIOD_MOST_MS;

	BASE_EACH(watcher, &view->watchers, link)
		least_ms = BASE_MIN(least_ms, watcher->period_ms);
	return least_ms * 1000000;
}

/* A pane of twice the text's size. */
static int widen(struct watch_view *view, size_t size)
{
	struct pane wider;
	int r = size > PANE_MAX / 2 ? -EFBIG : pane_new(2 * size, &wider);

	if (r)
		return r;
	pane_end(&view->pane);
	view->pane = wider;
	return 0;
}

/* 0 or negative errno: the text before stays. */
static int renew(struct watching *watching, struct watch_view *view)
{
	_cleanup_free_ char *text = NULL;
	uint64_t begun_ns = base_cpu_ns();
	size_t size = 0;
	int r = watching->render(watching->arg, &view->who, &text, &size);

	view->renewed_ns = base_now_ns();
	if (r == 0 && (!view->pane.map || size > view->pane.room))
		r = widen(view, size);
	if (r == 0)
		pane_write(&view->pane, text, size); /* it has the room */
	watching->renewals++;
	watching->cpu_ns += base_cpu_ns() - begun_ns;
	return r;
}

/* Of several that are overdue, who waits longest. *ret_ns: in so long it is due. NULL: there is none. */
static struct watch_view *next_due(const struct watching *watching, uint64_t now_ns,
				   uint64_t *ret_ns)
{
	struct watch_view *next = NULL;
	uint64_t first_ns = UINT64_MAX;

	BASE_EACH(view, &watching->views, link) {
		uint64_t due_ns = view->renewed_ns + period_ns(view);

		if (due_ns < first_ns) {
			first_ns = due_ns;
			next = view;
		}
	}
	*ret_ns = !next ? UINT64_MAX : first_ns > now_ns ? first_ns - now_ns : 0;
	return next;
}

static void on_timer(void *arg)
{
	struct watching *watching = arg;
	uint64_t now_ns = base_now_ns(), begun_ns = base_cpu_ns(), in_ns;
	struct watch_view *view = next_due(watching, now_ns, &in_ns);

	if (!view)
		return;
	if (now_ns < watching->rests_until_ns)
		in_ns = BASE_MAX(in_ns, watching->rests_until_ns - now_ns);
	if (in_ns == 0) {
		renew(watching, view);
		now_ns = base_now_ns();
		watching->rests_until_ns = now_ns + (base_cpu_ns() - begun_ns) * REST;
		next_due(watching, now_ns, &in_ns);
		in_ns = BASE_MAX(in_ns, watching->rests_until_ns - now_ns);
	}
	loop_timer_set(watching->timer, in_ns);
}

/* ---- watchers ---- */

void watch_leave(struct watching *watching, struct watcher *watcher)
{
	struct watch_view *view = watcher->view;

	if (!view)
		return;
	LIST_REMOVE(watcher, link);
	watcher->view = NULL;
	watching->n--;
	if (!LIST_EMPTY(&view->watchers))
		return;
	pane_end(&view->pane);
	LIST_REMOVE(view, link);
	free(view);
}

static bool is_same(const struct watch_who *one, const struct watch_who *other)
{
	return one->sees_all == other->sees_all && one->named == other->named &&
	       (one->sees_all || one->uid == other->uid);
}

static struct watch_view *view_of(struct watching *watching, const struct watch_who *who)
{
	struct watch_view *view;

	LIST_FOREACH(view, &watching->views, link)
		if (is_same(&view->who, who))
			return view;
	view = calloc(1, sizeof(*view));
	if (!view)
		return NULL;
	view->who = *who;
	view->pane.fd = -1;
	LIST_INIT(&view->watchers);
	LIST_INSERT_HEAD(&watching->views, view, link);
	return view;
}

int watch_enter(struct watching *watching, struct watcher *watcher, const struct watch_who *who,
		uint64_t period_ms, int *ret_fd)
{
	struct watch_view *view;
	int r;

	if (!watcher->view || !is_same(&watcher->view->who, who)) {
		watch_leave(watching, watcher);
		view = view_of(watching, who);
		if (!view)
			return -ENOMEM;
		LIST_INSERT_HEAD(&view->watchers, watcher, link);
		watcher->view = view;
		watching->n++;
	}
	view = watcher->view;
	watcher->period_ms = BASE_MIN(BASE_MAX(period_ms, PERIOD_LEAST_MS), PERIOD_MOST_MS);
	if (period_ms == 0)
		watcher->period_ms = PERIOD_USUAL_MS;
	r = view->pane.map ? 0 : renew(watching, view);
	if (r)
		return r;
	loop_timer_set(watching->timer, 0); /* its period may be shorter than the others' */
	*ret_fd = view->pane.fd;
	return 0;
}

void watch_turn_out(struct watching *watching)
{
	BASE_EACH(view, &watching->views, link)
		pane_end(&view->pane);
}

int watch_init(struct watching *watching, struct loop *loop, watch_render_fn render, void *arg)
{
	LIST_INIT(&watching->views);
	watching->render = render;
	watching->arg = arg;
	return loop_timer_new(loop, on_timer, watching, &watching->timer);
}

void watch_fini(struct watching *watching)
{
	loop_unwatch(&watching->timer);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* The mutex covers the state and the wishes; none is held while the thread asks somebody. The thread ends with the process. */

#include "bucket/errand.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/hold.h"
#include "base/log.h"

#define ERRAND_SAY_NS UINT64_C(1000000000)
#define ERRAND_SAY_EACH 256 /* the clock is asked once in so many objects */
#define ERRAND_AGAIN_S 30   /* after a renewal that failed */

struct errand {
	struct lister *lister; /* the thread's */
	struct tree *tree;
	uint64_t said_ns;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	struct errand_state state;
	unsigned wants_lists;
	bool has_refused;
	struct http_answer refused;
	char name[2048];
	uint64_t renew_ns; /* UINT64_MAX: never */
	int event_fd;
};

static void say(struct errand *errand)
{
	const uint64_t one = 1;

	if (write(errand->event_fd, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}

/* ---- listing ---- */

/* Known from the first object on. */
static void say_folder(struct errand *errand)
{
	const struct key_scope *scope = &errand->lister->scope;
	BASE_HOLD(&errand->mutex);

	snprintf(errand->state.folder, sizeof(errand->state.folder), "%.*s", (int)scope->folder,
		 scope->prefix);
	errand->state.has_folder = true;
	say(errand);
}

static int on_object(void *arg, const struct lister_object *object, struct diag *diag)
{
	struct errand *errand = arg;
	const struct tree_counts *counts = tree_counts(errand->tree);
	const int r = tree_put(errand->tree, object->name, object->size, object->mtime_ns, diag);

	if (counts->objects == 1)
		say_folder(errand);
	if (counts->objects % ERRAND_SAY_EACH == 0 &&
	    base_now_ns() - errand->said_ns >= ERRAND_SAY_NS) {
		BASE_HOLD(&errand->mutex);
		errand->state.objects = counts->objects;
		errand->state.bytes = counts->bytes;
		errand->said_ns = base_now_ns();
		say(errand);
	}
	return r;
}

static int list_all(struct errand *errand, struct diag *diag)
{
	const struct lister_sink sink = {on_object, errand};
	int r = tree_begin(errand->tree);

	if (r)
		return diag_fail(diag, r, "the folder cannot be used: %s", strerror(-r));
	r = lister_run(errand->lister, &sink, diag);
	return r ? r : tree_end(errand->tree, diag);
}

static void list(struct errand *errand)
{
	const struct tree_counts *counts = tree_counts(errand->tree);
	const uint64_t began_ns = base_now_ns();
	struct diag diag = {""};
	int r;

	errand->said_ns = began_ns;
	r = list_all(errand, &diag);
	if (!r && counts->objects == 0) {
		diag_set(&diag, "none of the %llu names can be a file's, such as \"%s\": %s",
			 (unsigned long long)counts->skipped, counts->example,
			 counts->why ? counts->why : "");
		r = -ENOENT;
	}
	if (counts->skipped)
		log_line(LOG_LEVEL_WARN, "names-skipped", "count=%llu example=\"%s\" why=\"%s\"",
			 (unsigned long long)counts->skipped, counts->example, counts->why);
	if (r)
		log_line(LOG_LEVEL_ERROR, "listing-failed", "why=\"%s\"", diag.text);
	else
		log_line(LOG_LEVEL_INFO, "listed",
			 "objects=%llu bytes=%llu made=%llu removed=%llu ms=%llu",
			 (unsigned long long)counts->objects, (unsigned long long)counts->bytes,
			 (unsigned long long)counts->made, (unsigned long long)counts->removed,
			 (unsigned long long)((base_now_ns() - began_ns) / 1000000));
	BASE_HOLD(&errand->mutex);
	errand->state.is_listing = false;
	errand->state.objects = counts->objects;
	errand->state.bytes = counts->bytes;
	errand->state.began_ns = began_ns;
	errand->state.listings++;
	errand->state.error = r;
	errand->state.diag = diag;
	say(errand);
}

/* ---- credentials ---- */

static void renew(struct errand *errand)
{
	const struct lister *lister = errand->lister;
	const struct provider_ops *ops = lister->url->ops;
	struct diag diag = {""};
	unsigned seconds = ops->renew ? ops->renew(lister->provider, lister->http, &diag) : 0;

	if (*diag.text) {
		log_line(LOG_LEVEL_WARN, "credentials", "why=\"%s\"", diag.text);
		seconds = seconds ? seconds : ERRAND_AGAIN_S;
	}
	BASE_HOLD(&errand->mutex);
	if (ops->renew && !*diag.text) {
		errand->state.renewals++;
		say(errand);
	}
	errand->renew_ns = seconds ? base_now_ns() + (uint64_t)seconds * 1000000000 : UINT64_MAX;
}

static void mend(struct errand *errand)
{
	const struct lister *lister = errand->lister;
	struct diag diag = {""};
	const int r = lister->url->ops->refused(lister->provider, lister->http, &errand->refused,
						errand->name, &diag);

	if (r <= 0)
		log_line(LOG_LEVEL_ERROR, "refused", "why=\"%s\"", diag.text);
	http_answer_free(&errand->refused);
	BASE_HOLD(&errand->mutex);
	errand->has_refused = false;
	errand->state.mends++;
	errand->state.mended = r > 0;
	errand->state.renewals += r > 0;
	errand->state.mend_diag = diag;
	say(errand);
}

/* ---- the thread ---- */

enum wish { WISH_NONE, WISH_LIST, WISH_MEND, WISH_RENEW };

/* With the mutex: what no list may keep waiting. */
static enum wish urgent(const struct errand *errand)
{
	if (errand->has_refused)
		return WISH_MEND;
	return errand->renew_ns <= base_now_ns() ? WISH_RENEW : WISH_NONE;
}

static enum wish wait_for_wish(struct errand *errand)
{
	BASE_HOLD(&errand->mutex);

	for (;;) {
		struct timespec until = {0};
		const enum wish wish = urgent(errand);

		if (wish != WISH_NONE)
			return wish;
		if (errand->wants_lists) {
			errand->wants_lists = 0;
			errand->state.is_listing = true;
			errand->state.objects = errand->state.bytes = 0;
			return WISH_LIST;
		}
		if (errand->renew_ns == UINT64_MAX) {
			pthread_cond_wait(&errand->cond, &errand->mutex);
			continue;
		}
		until.tv_sec = (time_t)(errand->renew_ns / 1000000000) + 1;
		pthread_cond_timedwait(&errand->cond, &errand->mutex, &until);
	}
}

static void fulfil(struct errand *errand, enum wish wish)
{
	if (wish == WISH_LIST)
		list(errand);
	else if (wish == WISH_MEND)
		mend(errand);
	else if (wish == WISH_RENEW)
		renew(errand);
}

/* A list may take minutes, and who reads meanwhile needs its credentials. */
static void before_page(void *arg)
{
	struct errand *errand = arg;
	enum wish wish;

	{
		BASE_HOLD(&errand->mutex);
		wish = urgent(errand);
	}
	fulfil(errand, wish);
}

static void *run(void *arg)
{
	struct errand *errand = arg;

	pthread_setname_np(pthread_self(), "errands");
	renew(errand);
	for (;;)
		fulfil(errand, wait_for_wish(errand));
	return NULL;
}

int errand_start(struct lister *lister, struct tree *tree, struct errand **ret)
{
	struct errand *errand = calloc(1, sizeof(*errand));
	pthread_condattr_t attr;
	pthread_t thread;
	int r;

	if (!errand)
		return -ENOMEM;
	errand->lister = lister;
	lister->before_page = before_page;
	lister->arg = errand;
	errand->tree = tree;
	errand->renew_ns = UINT64_MAX;
	errand->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&errand->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&errand->cond, &attr);
	pthread_condattr_destroy(&attr);
	r = errand->event_fd < 0 ? -errno : -pthread_create(&thread, NULL, run, errand);
	if (r) {
		base_close(&errand->event_fd);
		pthread_cond_destroy(&errand->cond);
		pthread_mutex_destroy(&errand->mutex);
		free(errand);
		return r;
	}
	pthread_detach(thread);
	*ret = errand;
	return 0;
}

int errand_fd(const struct errand *errand)
{
	return errand->event_fd;
}

void errand_take(struct errand *errand, struct errand_state *ret)
{
	uint64_t count;

	if (read(errand->event_fd, &count, sizeof(count)) < 0)
		count = 0; /* nobody said anything; the state is as good */
	BASE_HOLD(&errand->mutex);
	*ret = errand->state;
}

void errand_list(struct errand *errand)
{
	BASE_HOLD(&errand->mutex);
	errand->wants_lists++;
	pthread_cond_signal(&errand->cond);
}

void errand_refused(struct errand *errand, struct http_answer *answer, const char *name)
{
	BASE_HOLD(&errand->mutex);
	errand->refused = *answer;
	answer->body = NULL;
	snprintf(errand->name, sizeof(errand->name), "%s", name);
	errand->has_refused = true;
	pthread_cond_signal(&errand->cond);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What people ask of the store through accessd: lists, pins, drops, checks. One thread does one after the
 * other, so that a check of everything, which reads for minutes, holds up neither reading threads nor
 * the keeper; it starts with the first chore. Nor does it hold up other chores: those are done between two
 * of its values.
 *
 * The store is the keeper's: it says when it has one and takes it back before it closes it. Chores that
 * come before it was opened wait for that. A chore that is cancelled ends at its next value and answers
 * all the same.
 */

#include "storage/reader_parts.h"

#include "base/json.h"

#include <stdio.h>

#define CHORES_MOST 64 /* that wait; accessd has fewer */

struct chore {
	struct chore *next;
	uint64_t id;
	enum reader_verb verb;
	struct hash_id group;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	struct chore *first, **last;
	unsigned waiting;
	struct store *store; /* borrowed from the keeper */
	bool is_known, is_ending, is_busy;
	uint64_t busy_id;
	bool is_cancelled; /* the one that is busy */

	bool is_started; /* main thread; when that ends, whoever ends the chores */
	pthread_t thread;
} chores = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- asking, by the main thread ---- */

static void *chores_thread(void *unused);

static bool chores_start(void)
{
	if (!chores.is_started && pthread_create(&chores.thread, NULL, chores_thread, NULL) == 0)
		chores.is_started = true;
	return chores.is_started;
}

static bool chores_put(struct chore *chore)
{
	bool takes;

	BASE_HOLD(&chores.lock);
	takes = chores.waiting < CHORES_MOST;
	if (takes) {
		if (!chores.first)
			chores.last = &chores.first;
		*chores.last = chore;
		chores.last = &chore->next;
		chores.waiting++;
		pthread_cond_broadcast(&chores.changed);
	}
	return takes;
}

bool reader_chores_ask(uint64_t id, unsigned verb, const struct hash_id *group)
{
	struct chore *chore;

	if (verb >= READER_VERBS)
		return false;
	chore = chores_start() ? calloc(1, sizeof(*chore)) : NULL;
	if (chore)
		*chore = (struct chore){.id = id, .verb = (enum reader_verb)verb, .group = *group};
	if (!chore || !chores_put(chore)) {
		free(chore);
		reader_say_chore(id, -EAGAIN, "the reader has too much to do", -1);
	}
	return true;
}

/* Under lock: what *at is, which waits no longer. */
static struct chore *chores_unlink(struct chore **at)
{
	struct chore *chore = *at;

	*at = chore->next;
	chores.waiting--;
	if (!*at)
		chores.last = at;
	return chore;
}

static void chores_forget(uint64_t id)
{
	struct chore **at = &chores.first;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	if (*at)
		free(chores_unlink(at));
}

void reader_chores_cancel(uint64_t id)
{
	BASE_HOLD(&chores.lock);
	if (chores.is_busy && chores.busy_id == id)
		chores.is_cancelled = true;
	else
		chores_forget(id);
}

/* ---- from the keeper ---- */

void reader_chores_store(struct store *store)
{
	BASE_HOLD(&chores.lock);
	chores.store = store;
	chores.is_known = true;
	pthread_cond_broadcast(&chores.changed);
}

void reader_chores_end(void)
{
	pthread_mutex_lock(&chores.lock);
	chores.is_ending = true;
	chores.store = NULL;
	pthread_cond_broadcast(&chores.changed);
	pthread_mutex_unlock(&chores.lock);
	if (chores.is_started)
		pthread_join(chores.thread, NULL);
}

/* ---- a list ---- */

static void list_group(void *arg, const struct store_listing *listing)
{
	struct json_out *out = arg;
	char hex[65];

	json_out_object_begin(out);
	json_out_member_string(out, "id", hash_hex(&listing->id, hex));
	json_out_member_string(out, "note", listing->note);
	json_out_member_u64(out, "samples", listing->n_samples);
	JSON_OUT_MEMBERS(out, listing, values, bytes, last_use_s, us_per_mib);
	json_out_member_bool(out, "pinned", listing->is_pinned);
	json_out_member_bool(out, "used", listing->is_used);
	json_out_member_bool(out, "superseded", listing->is_superseded);
	json_out_object_end(out);
}

static void list_state(struct store *store, struct json_out *out)
{
	struct reader_state memory = {0};
	struct store_state state;

	store_state(store, &state);
	reader_resident_state(&memory);
	JSON_OUT_MEMBERS(out, &memory, memory_used, memory_values);
	JSON_OUT_MEMBERS(out, &state, limit, bytes_used, bytes_file, values, damaged, evicted,
			 set_aside);
}

/* A descriptor, which the caller owns, or negative errno. */
static int list(struct store *store)
{
	_cleanup_free_ char *text = NULL;
	struct json_out out;
	size_t size = 0;
	int r;

	json_out_init(&out, false);
	json_out_object_begin(&out);
	list_state(store, &out);
	json_out_member_array(&out, "groups");
	r = store_list(store, list_group, &out);
	json_out_array_end(&out);
	json_out_object_end(&out);
	if (!r)
		r = json_out_take(&out, &text, &size);
	json_out_fini(&out);
	return r ? r : base_memfd_of("access-cache-list", text, size);
}

/* ---- doing ---- */

static const char *chores_error(int r)
{
	switch (r) {
	case -ENOENT:
		return "there is no such group: access-ctl cache ls has them";
	case -EBUSY:
		return "it is pinned: access-ctl cache unpin, then drop it";
	case -ECANCELED:
		return "was cancelled";
	default:
		return strerror(-r);
	}
}

/* 0 or as store_drop(), and what is left to be told. Where there is no such group, bytes of it may be left by values that
 * were pushed out, or by a drop whose wipe failed or was cut short. */
static int drop(struct store *store, const struct hash_id *group, char *ret_text, size_t size)
{
	static const struct hash_id none;
	int r, wiped;

	if (memcmp(group, &none, sizeof(none)) == 0)
		store_flush(store); /* who forgets a data set asks for this, then for the list */
	r = store_drop(store, group);
	if (r && r != -ENOENT)
		return r;
	if (!r)
		reader_resident_drop(group);
	wiped = store_wipe(store);
	if (wiped == -EBUSY)
		snprintf(ret_text, size,
			 "bytes of what is dropped stay in cache.mdb, which another program reads: "
			 "when that has ended, run access-ctl cache forget DATASET");
	else if (wiped)
		snprintf(ret_text, size,
			 "bytes of what is dropped stay in cache.mdb: %s: when that is mended, run "
			 "access-ctl cache forget DATASET",
			 strerror(-wiped));
	return r;
}

static void do_short(struct store *store, const struct chore *chore)
{
	_cleanup_close_ int fd = -1;
	char text[256] = "";
	int r;

	switch (chore->verb) {
	case READER_VERB_LIST:
		fd = list(store);
		r = BASE_MIN(fd, 0);
		break;
	case READER_VERB_DROP:
		r = drop(store, &chore->group, text, sizeof(text));
		break;
	default:
		r = store_pin(store, &chore->group, chore->verb == READER_VERB_PIN);
	}
	reader_say_chore(chore->id, r, r && !*text ? chores_error(r) : text, fd);
}

struct checking {
	struct store *store;
	uint64_t id;
};

static void tell(void *arg, uint64_t done, uint64_t total)
{
	reader_say_chore_progress(((const struct checking *)arg)->id, done, total);
}

/* Under lock. NULL: there is none. */
static struct chore *chores_take_short(void)
{
	struct chore **at = &chores.first;

	while (*at && (*at)->verb == READER_VERB_VERIFY)
		at = &(*at)->next;
	return *at ? chores_unlink(at) : NULL;
}

/* Asked between two values, when it is others' turn. */
static bool is_cancelled(void *arg)
{
	const struct checking *checking = arg;
	_cleanup_free_ struct chore *other = NULL;
	bool is;

	pthread_mutex_lock(&chores.lock);
	is = chores.is_cancelled || chores.is_ending;
	if (!is)
		other = chores_take_short();
	pthread_mutex_unlock(&chores.lock);
	if (other)
		do_short(checking->store, other);
	return is;
}

static void verify(struct store *store, const struct chore *chore)
{
	struct checking checking = {.store = store, .id = chore->id};
	const struct store_progress progress = {
	    .tell = tell, .cancelled = is_cancelled, .arg = &checking};
	struct store_checked checked = {0};
	int r = store_verify(store, &progress, &checked);
	char text[256];

	snprintf(text, sizeof(text),
		 "%llu values of %llu groups are sound (%s); %llu damaged ones were dropped",
		 (unsigned long long)checked.values, (unsigned long long)checked.groups,
		 BASE_BYTES(checked.bytes), (unsigned long long)checked.damaged);
	reader_say_chore(chore->id, r, r ? chores_error(r) : text, -1);
}

/* The next chore, once it is known whether there is a store; NULL: time to end. */
static struct chore *chores_take(struct store **ret_store)
{
	struct chore *chore = NULL;

	BASE_HOLD(&chores.lock);
	while (!chores.is_ending && (!chores.first || !chores.is_known))
		pthread_cond_wait(&chores.changed, &chores.lock);
	if (!chores.is_ending) {
		chore = chores_unlink(&chores.first);
		chores.is_busy = true;
		chores.is_cancelled = false;
		chores.busy_id = chore->id;
		*ret_store = chores.store;
	}
	return chore;
}

static void *chores_thread(void *unused)
{
	struct store *store = NULL;
	struct chore *chore;

	pthread_setname_np(pthread_self(), "chores");
	while ((chore = chores_take(&store))) {
		if (!store)
			reader_say_chore(chore->id, -ENODEV,
					 "nothing is kept on a disk: the store is off", -1);
		else if (chore->verb == READER_VERB_VERIFY)
			verify(store, chore);
		else
			do_short(store, chore);
		free(chore);
		pthread_mutex_lock(&chores.lock);
		chores.is_busy = false;
		pthread_cond_broadcast(&chores.changed);
		pthread_mutex_unlock(&chores.lock);
	}
	return unused;
}

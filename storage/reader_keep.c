/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is kept: the store, and the thread that feeds it (the keeper).
 *
 * Reading threads get values themselves. All else is the keeper's: it opens the store, which may take its
 * time, opens groups for queues, and empties the write-back ring, in which workers put the forms that they made.
 *
 * Workers decode hostile bytes, so what one of them says is taken for what it may be: a form, of a sample
 * whose file was handed to the workers of this queue, to be kept, and that has not come yet. So a captured
 * worker can spoil what is kept of the samples that pass through it, as it can spoil their pixels, and
 * nothing else. What it put there is looked at by sandboxed workers only, whenever it comes back.
 *
 * A queue's groups are set once and live as long as the queue.
 */

#include "storage/reader_parts.h"

#include "base/log.h"
#include "base/owner.h"

#include <stdio.h>

#define KEEP_LOOK_NS UINT64_C(250000000)  /* between reports of the store's state, ... */
#define KEEP_REST_NS UINT64_C(1000000000) /* ... where nothing came or changed for a while */
#define KEEP_WHILE_NS UINT64_C(3000000000)
#define KEEP_TRIES 30 /* a store that another process still has, a try each look */

struct keep_wish { /* READER_FORM or READER_SPREAD, on its way to the keeper */
	struct keep_wish *next;
	uint64_t queue;
	unsigned form; /* 0: of a SPREAD */
	uint32_t number, nodes;
	bool is_shared;
	struct hash_id group;
	char note[];
};

static struct {
	bool is_started; /* main thread */
	struct rings rings;
	int folder_fd; /* owned; -1: no store was asked for yet, or it is open or not to be had */
	struct store_settings settings;
	unsigned tries;

	pthread_mutex_t lock;
	/* under the lock */
	struct keep_wish *first, **last;
	bool is_ending;

	struct store *store; /* the keeper's, which alone opens and closes it */
	bool is_memory;      /* there is none, and what is kept lies in memory alone */
	uint64_t puts, puts_later, puts_full; /* of that: kept, not taken, for want of room */
	char why[256];                        /* there is no folder, or store */
	struct reader_state said;
	pthread_t thread;
} keep = {.folder_fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- what is asked for, by the main thread ---- */

int reader_keep_init(int rings_fd)
{
	int r = rings_attach(rings_fd, &keep.rings);

	keep.last = &keep.first;
	return r;
}

static void *keep_thread(void *unused);

bool reader_keep_store(int folder_fd, uint64_t limit, bool force, bool suspect, const char *why)
{
	if (!keep.rings.head || keep.is_started)
		return false;
	keep.folder_fd = folder_fd;
	snprintf(keep.why, sizeof(keep.why), "%s", why);
	keep.settings = (struct store_settings){
	    .folder_fd = folder_fd, .limit = limit, .force = force, .suspect = suspect};
	if (pthread_create(&keep.thread, NULL, keep_thread, NULL))
		reader_say_fatal("threads",
				 "no thread that keeps can be started: raise TasksMax or "
				 "ulimit -u");
	keep.is_started = true;
	return true;
}

static void keep_add(const struct keep_wish *of, const char *note)
{
	struct keep_wish *wish = malloc(sizeof(*wish) + strlen(note) + 1);

	if (!wish)
		reader_say_fatal("memory", "not enough memory to keep anything");
	*wish = *of;
	strcpy(wish->note, note);
	pthread_mutex_lock(&keep.lock);
	*keep.last = wish;
	keep.last = &wish->next;
	pthread_mutex_unlock(&keep.lock);
	rings_wake(&keep.rings);
}

bool reader_keep_form(uint64_t queue, unsigned form, const struct hash_id *group, const char *note,
		      bool is_shared)
{
	const struct keep_wish wish = {
	    .queue = queue, .form = form, .is_shared = is_shared, .group = *group};

	if (!keep.is_started || form < 1 || form >= LAYOUT_FORMS)
		return false;
	keep_add(&wish, note);
	return true;
}

bool reader_keep_spread(uint64_t queue, uint32_t number, uint32_t nodes)
{
	const struct keep_wish wish = {.queue = queue, .number = number, .nodes = nodes};

	if (!keep.is_started || nodes > OWNER_SPREAD || number >= nodes)
		return false;
	keep_add(&wish, "");
	return true;
}

void reader_keep_end(void)
{
	if (!keep.is_started) {
		reader_chores_end();
		return;
	}
	pthread_mutex_lock(&keep.lock);
	keep.is_ending = true;
	pthread_mutex_unlock(&keep.lock);
	rings_wake(&keep.rings);
	pthread_join(keep.thread, NULL);
}

/* ---- the store ---- */

static struct reader_state state_of(const struct store_state *store)
{
	return (struct reader_state){
	    .mode = store->mode,
	    .limit = store->limit,
	    .used = store->bytes_used,
	    .file = store->bytes_file,
	    .groups = store->groups,
	    .values = store->values,
	    .hits = store->hits,
	    .misses = store->misses,
	    .kept = store->puts,
	    .not_taken = store->puts_not_taken,
	    .full = store->puts_full,
	    .damaged = store->damaged,
	    .evicted = store->evicted,
	    .set_aside = store->set_aside,
	    .write_errors = store->write_errors,
	    .write_ns = store->write_ns,
	    .write_cpu_ns = store->write_cpu_ns,
	    .write_bytes = store->write_bytes,
	};
}

static struct reader_state state_of_memory(void)
{
	return (struct reader_state){
	    .mode = READER_MODE_MEMORY,
	    .kept = keep.puts,
	    .not_taken = keep.puts_later + keep.puts_full,
	    .full = keep.puts_full,
	};
}

/* true: it had changed. */
static bool say_state(void)
{
	struct reader_state state;
	struct store_state store = {.why = ""};

	if (keep.store)
		store_state(keep.store, &store);
	state = keep.store ? state_of(&store) : state_of_memory();
	reader_resident_state(&state);
	reader_checks_state(&state);
	state.hits += state.memory_hits;
	if (memcmp(&state, &keep.said, sizeof(state)) == 0)
		return false;
	keep.said = state;
	reader_say_state(&state, keep.store ? store.why : keep.why);
	return true;
}

static void say_off(void)
{
	const struct reader_state state = {.mode = STORE_OFF, .limit = keep.settings.limit};

	log_line(LOG_LEVEL_WARN, "store-off", "reason=\"%s\"", keep.why);
	reader_say_state(&state, keep.why);
}

static void do_without(void)
{
	keep.is_memory = reader_resident_stand_alone();
	if (!keep.is_memory) {
		say_off();
		return;
	}
	log_line(LOG_LEVEL_INFO, "store-in-memory", "reason=\"%s\"", keep.why);
	say_state();
}

/* The process before this one may need a moment to end. */
static void open_store(void)
{
	struct diag diag = {""};
	int r = store_open(&keep.settings, &keep.store, &diag);

	if (r == -EBUSY && ++keep.tries < KEEP_TRIES)
		return;
	base_close(&keep.folder_fd);
	snprintf(keep.why, sizeof(keep.why), "%s", diag.text);
	if (r)
		do_without();
	else
		say_state();
	reader_chores_store(keep.store);
	reader_peers_store(keep.store);
}

/* ---- groups of queues ---- */

static int open_kept(const struct keep_wish *wish, uint64_t samples, struct reader_kept *ret)
{
	int r = 0;

	*ret = (struct reader_kept){.group = NULL};
	reader_guests_claim(&wish->group, samples, wish->form, wish->note);
	if (keep.store)
		r = store_group_open(keep.store, &wish->group, wish->note, samples, &ret->group);
	if (wish->form ==
	    LAYOUT_FORM_AUGMENTED) /* which is another one in some epochs: on the disk alone */
		return keep.store ? r : -EOPNOTSUPP;
	if (!r)
		ret->resident = reader_resident_open(&wish->group, samples);
	if (!r && !ret->resident) { /* there may be some of a peer that gave it another size */
		reader_resident_drop(&wish->group);
		ret->resident = reader_resident_open(&wish->group, samples);
	}
	if (!r && wish->is_shared) /* without memory for it, it is this node's alone */
		ret->shared = reader_peers_share(&wish->group, samples, wish->form, wish->note);
	return !r && !ret->group && !ret->resident ? -ENOMEM : r;
}

static int table_of(const struct reader_kept *kept)
{
	return kept->group ? store_group_table(kept->group) : reader_resident_table(kept->resident);
}

static void spread_form(struct reader_queue *queue, unsigned form)
{
	const struct reader_kept *kept = reader_queue_kept(queue, form);

	if (kept && kept->shared && queue->nodes)
		reader_spread_take(kept->shared, reader_queue_key(queue), queue->place,
				   queue->nodes);
}

static void take_spread(const struct keep_wish *wish)
{
	struct reader_queue *queue = reader_queue_hold(wish->queue);

	if (!queue)
		return;
	queue->place = wish->number;
	queue->nodes = wish->nodes;
	for (unsigned form = 0; form < LAYOUT_FORMS; form++)
		spread_form(queue, form);
	reader_queue_put(queue);
}

/* It may have that form already: jobs came for which it is none, and went. */
static void open_group(const struct keep_wish *wish)
{
	struct reader_queue *queue = reader_queue_hold(wish->queue);
	const struct reader_kept *kept;
	int r = 0;

	if (!queue) /* let go meanwhile */
		return;
	if (reader_queue_is_made(queue)) {
		reader_say_formed(wish->queue, wish->form, -1, "nothing is kept of wrapped data");
		reader_queue_put(queue);
		return;
	}
	kept = reader_queue_kept(queue, wish->form);
	if (!kept) {
		struct reader_kept new;

		r = open_kept(wish, reader_queue_samples(queue), &new);
		if (!r)
			kept = reader_queue_take(queue, wish->form, &new);
		spread_form(queue, wish->form);
	}
	reader_say_formed(wish->queue, wish->form, kept ? table_of(kept) : -1, strerror(-r));
	reader_queue_put(queue);
}

static struct keep_wish *next_wish(bool *ret_ending)
{
	struct keep_wish *wish;

	BASE_HOLD(&keep.lock);
	wish = keep.first;
	if (wish) {
		keep.first = wish->next;
		if (!keep.first)
			keep.last = &keep.first;
	}
	*ret_ending = keep.is_ending;
	return wish;
}

/* false: it is time to end. A store that is not open yet lets them wait; without one they get no answer. */
static bool serve_wishes(void)
{
	struct keep_wish *wish;
	bool is_ending;

	if (keep.folder_fd >= 0)
		open_store();
	if (keep.folder_fd >= 0) {
		pthread_mutex_lock(&keep.lock);
		is_ending = keep.is_ending;
		pthread_mutex_unlock(&keep.lock);
		return !is_ending;
	}
	while ((wish = next_wish(&is_ending))) {
		if (!wish->form)
			take_spread(wish);
		else if (keep.store || keep.is_memory)
			open_group(wish);
		else
			reader_say_formed(wish->queue, wish->form, -1, keep.why);
		free(wish);
	}
	return !is_ending;
}

/* ---- the write-back ring ---- */

static void put_in_memory(const struct reader_kept *kept, const struct rings_item *item)
{
	const enum reader_resident_answer answer =
	    reader_resident_keep(kept->resident, item->sample, item->data, item->bytes);

	keep.puts += answer == RESIDENT_KEEPS;
	keep.puts_later += answer == RESIDENT_LATER;
	keep.puts_full += answer == RESIDENT_FULL;
}

/* The sample has no such form, or is bad: whoever waits for it waits in vain. */
static void take_none(const struct reader_kept *kept, uint64_t sample)
{
	if (kept->shared)
		reader_peers_not_made(kept->shared, sample);
}

static void take_item(const struct rings_item *item)
{
	struct reader_queue *queue = reader_queue_hold(item->queue);
	const struct reader_kept *kept = queue ? reader_queue_expect(queue, item) : NULL;

	if (kept && item->bytes == 0)
		take_none(kept, item->sample);
	else if (kept && item->form == LAYOUT_FORM_AUGMENTED)
		store_replace(kept->group, item->sample, item->data, item->bytes);
	else if (kept && kept->shared && reader_peers_made(kept->shared, item))
		reader_resident_keep(kept->resident, item->sample, item->data, item->bytes);
	else if (kept && !kept->group)
		put_in_memory(kept, item);
	else if (kept && (store_put(kept->group, item->sample, item->data, item->bytes) ||
			  reader_peers_is_on())) /* others may ask, while the disk is behind */
		reader_resident_keep(kept->resident, item->sample, item->data, item->bytes);
	if (queue)
		reader_queue_put(queue);
}

/* true: something came. */
static bool empty_rings(void)
{
	bool any = false;

	for (uint32_t ring = 0; ring < keep.rings.n_rings; ring++) {
		struct rings_item item;
		bool bad;

		while (rings_look(&keep.rings, ring, &item, &bad)) {
			take_item(&item);
			rings_pass(&keep.rings, ring, &item);
			any = true;
			if (reader_resident_has_grown(keep.said.memory_used))
				say_state();
		}
		if (bad)
			log_line(LOG_LEVEL_ERROR, "ring-bad", "ring=%u", ring);
	}
	return any;
}

static void *keep_thread(void *unused)
{
	uint64_t said_ns = base_now_ns(), moved_ns = said_ns;

	pthread_setname_np(pthread_self(), "keeper");
	if (keep.folder_fd < 0) {
		do_without();
		reader_chores_store(NULL);
	}
	for (;;) {
		const uint32_t seen = rings_seq(&keep.rings);
		uint64_t now_ns, look_ns;

		if (!serve_wishes())
			break;
		if (empty_rings())
			moved_ns = base_now_ns();
		now_ns = base_now_ns();
		look_ns = now_ns - moved_ns < KEEP_WHILE_NS ? KEEP_LOOK_NS : KEEP_REST_NS;
		if ((keep.store || keep.is_memory) && now_ns - said_ns >= look_ns) {
			said_ns = now_ns;
			if (say_state())
				moved_ns = now_ns;
		}
		rings_sleep(&keep.rings, seen, look_ns);
	}
	reader_chores_end();
	reader_peers_end();
	store_close(keep.store);
	return unused;
}

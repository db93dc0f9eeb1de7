/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task is to do about stored forms, and what is learned from it.
 *
 * Most tasks say no more than: bring what is kept (of the best form of it), or make what is not. A few are
 * trials: a form is made beside the outputs and the outputs are made once more from it, so that what
 * it would cost is measured and not thought; how many, point_trials() says.
 */
#include <math.h>

#include "daemon/cache/cache.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"

#define CACHE_TRIAL_EVERY 2   /* tasks */
#define CACHE_VAIN_MOST 16    /* trials of samples that have no such form */
#define CACHE_SERVED_EVERY 16 /* samples, of which none tells much */
#define CACHE_TIMED_EVERY 16  /* tasks, of which readers clock one: two system calls */
#define CACHE_ROOM_SHARE 8    /* of the arena, so much a value may have of which no size is known */
#define CACHE_CELL_HAS 0.9    /* of the samples: then little is made, so little is promised */
#define CACHE_OUT_MOST 4096   /* samples under way, where some of them were bad */

/* Bytes of the sample's value; 0: it is not kept. */
static uint32_t kept_bytes(const struct cache_point *point, uint64_t sample)
{
	if (point->state != CACHE_READY)
		return 0;
	return counter_cell_get(&point->table[sample]);
}

static bool is_unfit(const struct cache_point *point, uint64_t sample)
{
	return point->unfit && (point->unfit[sample / 8] >> sample % 8 & 1);
}

static void set_unfit(struct cache_point *point, uint64_t sample, uint64_t n_samples)
{
	if (!point->unfit)
		point->unfit = calloc(1, n_samples / 8 + 1);
	if (!point->unfit || is_unfit(point, sample))
		return;
	point->unfit[sample / 8] |= (uint8_t)(1 << sample % 8);
	point->n_unfit++;
}

uint64_t cache_room_for(const struct stream *stream, const struct cache_point *point,
			uint64_t sample, uint32_t file_bytes)
{
	uint64_t bytes = kept_bytes(point, sample);

	if (bytes && point->form == LAYOUT_FORM_INDEXED)
		bytes += file_bytes;
	return bytes <= BASE_MIN(stream->shared.arena.bytes, (uint64_t)UINT32_MAX) ? bytes : 0;
}

/* ---- trials ---- */

/* Of point 0: is the file worth bringing though the sample is kept? Else it comes as that anyway. */
static bool may_try(const struct cache *cache, unsigned p, uint64_t sample)
{
	if (p == 0 &&
	    (cache->choice.point == 0 || !kept_bytes(&cache->point[cache->choice.point], sample)))
		return false;
	return !is_unfit(&cache->point[p], sample) && cache_wants_trials(cache, p);
}

/* The point that is to be tried with this sample, each in its turn that has trials left; -1: none. */
static int trial_of(const struct cache *cache, const struct fill_task *task)
{
	const unsigned first = (unsigned)(cache->figures.fed / CACHE_TRIAL_EVERY % cache->n);

	if (cache->figures.fed % CACHE_TRIAL_EVERY || cache->forced >= 0 || task->is_again)
		return -1;
	for (unsigned i = 0; i < cache->n; i++) {
		unsigned p = (first + i) % cache->n;

		if (may_try(cache, p, task->source))
			return (int)p;
	}
	return -1;
}

bool cache_is_learning(const struct stream *stream)
{
	const struct cache *cache = &stream->cache;

	return cache->is_on && cache->forced < 0 && cache->chosen_ns == 0 &&
	       disk_cache_gives(&stream->domain->disk_cache) &&
	       (cache_is_trying(cache) || cache_has_trials_out(cache));
}

bool cache_is_promising(const struct stream *stream)
{
	const struct cache *cache = &stream->cache;
	const struct cache_point *point = &cache->point[cache->choice.point];

	return cache->is_on && stream->domain->reading.peers > 0 && point->state == CACHE_READY &&
	       point->form && cache_is_shared(stream, point) &&
	       cache->input.cached[cache->choice.point] < CACHE_CELL_HAS;
}

/* ---- plans ---- */

/* The form that is brought: the chosen one, else the best that is kept, or the deepest of those of which nothing is
 * known, while that is so of all; NULL: the file. */
static const struct cache_point *wanted(const struct stream *stream, uint64_t sample,
					uint32_t file_bytes)
{
	const struct cache *cache = &stream->cache;
	const struct point_choice *choice = &cache->choice;
	const struct cache_point *best = &cache->point[choice->point];
	double least_us = choice->whole_us[0];

	if (choice->point && best->form != LAYOUT_FORM_AUGMENTED &&
	    cache_room_for(stream, best, sample, file_bytes))
		return best;
	best = NULL;
	for (unsigned p = 1; p < cache->n; p++) {
		const bool is_unknown =
		    choice->reason == POINT_UNMEASURED && !isfinite(choice->whole_us[p]);

		if ((choice->whole_us[p] >= least_us && !is_unknown) ||
		    cache->point[p].form == LAYOUT_FORM_AUGMENTED ||
		    !cache_room_for(stream, &cache->point[p], sample, file_bytes))
			continue;
		best = &cache->point[p];
		least_us = choice->whole_us[p];
	}
	return best;
}

/* Readers look at their clocks for all that is compared, and then now and then, at no task that could be a trial. */
static enum layout_timed times(const struct cache *cache, const struct queue_keep *keep)
{
	const bool is_compared = cache->forced < 0 && cache->choice.reason == POINT_UNMEASURED;

	return is_compared || keep->make || keep->probe ||
		       cache->figures.fed % CACHE_TIMED_EVERY == CACHE_TRIAL_EVERY - 1
		   ? LAYOUT_TIMED_ALL
		   : LAYOUT_TIMED_WORK;
}

/* Of an instance that is made there is nothing, whatever is kept of another one. */
static bool is_missing(const struct cache_point *point, const struct fill_task *task)
{
	if (point->form == LAYOUT_FORM_AUGMENTED)
		return task->may_keep && !task->attempt;
	return !kept_bytes(point, task->source);
}

/* Where there are peers, it is another node's disk that takes most of it, and what is missing here may be there. */
static bool is_to_be_made(const struct stream *stream, const struct fill_task *task)
{
	const struct cache *cache = &stream->cache;
	const struct cache_point *point = &cache->point[cache->choice.point];

	if (!cache->choice.point || point->state != CACHE_READY || !is_missing(point, task) ||
	    is_unfit(point, task->source))
		return false;
	if (stream->domain->reading.peers > 0 && cache_is_shared(stream, point))
		return true;
	return cache->choice.makes && disk_cache_takes(&stream->domain->disk_cache, base_now_ns());
}

/* What is to be made may be in this node's memory, or at a peer's: room for that, by what such values have; 0: it is
 * not to be looked for. */
static uint64_t room_to_ask(const struct stream *stream, const struct fill_task *task,
			    uint32_t file_bytes)
{
	const struct cache *cache = &stream->cache;
	const struct cache_point *point = &cache->point[cache->choice.point];
	const struct point_cost *file = &cache->input.cost[0];
	const struct point_cost *form = &cache->input.cost[cache->choice.point];
	uint64_t room;

	if (stream->domain->reading.peers == 0 || task->attempt ||
	    !cache_is_shared(stream, point) || !peering_asks(&cache->peers, cache->figures.fed))
		return 0;
	room =
	    peering_room(form->made ? form->bytes : 0, file->samples ? file->bytes : 0, file_bytes);
	if (point->form == LAYOUT_FORM_INDEXED)
		room += file_bytes;
	room = BASE_MAX(room, (uint64_t)file_bytes);
	return room <= BASE_MIN(stream->shared.arena.bytes / CACHE_ROOM_SHARE, (uint64_t)UINT32_MAX)
		   ? room
		   : 0;
}

/* What is kept of the task's instance; NULL: nothing any more. Of substitutes nothing ever was. */
static const struct cache_point *again(const struct stream *stream, const struct fill_task *task,
				       uint32_t file_bytes)
{
	const struct cache_point *point = cache_augmented(&stream->cache);

	if (!point || task->attempt || !cache_room_for(stream, point, task->source, file_bytes))
		return NULL;
	return point;
}

/* What it is to do; the bytes of the arena. */
static uint64_t plan(const struct stream *stream, const struct fill_task *task, uint32_t file_bytes,
		     struct queue_keep *ret)
{
	const struct cache *cache = &stream->cache;
	const struct cache_point *point;
	uint64_t bytes = file_bytes;
	int trial;

	*ret = (struct queue_keep){.room = file_bytes};
	if (!cache->is_on || task->is_plain || !disk_cache_gives(&stream->domain->disk_cache))
		return bytes;
	trial = trial_of(cache, task);
	if (trial >= 0) {
		ret->probe = cache->point[trial].form;
		return bytes;
	}
	if (is_to_be_made(stream, task)) {
		ret->make = cache->point[cache->choice.point].form;
		bytes = room_to_ask(stream, task, file_bytes);
		if (!bytes)
			return file_bytes;
		ret->want = ret->make;
		ret->room = (uint32_t)bytes;
		return bytes;
	}
	point = task->is_again ? again(stream, task, file_bytes)
			       : wanted(stream, task->source, file_bytes);
	if (point) {
		ret->want = point->form;
		bytes = BASE_MAX(bytes, cache_room_for(stream, point, task->source, file_bytes));
		ret->room = (uint32_t)bytes;
	}
	return bytes;
}

uint64_t cache_plan(struct stream *stream, const struct fill_task *task, uint32_t file_bytes,
		    struct queue_keep *ret)
{
	const struct cache *cache = &stream->cache;
	const uint64_t bytes = plan(stream, task, file_bytes, ret);

	ret->timed = cache->is_on ? times(cache, ret) : LAYOUT_TIMED_NOT;
	return bytes;
}

void cache_fed(struct stream *stream, const struct fill_task *task)
{
	struct cache *cache = &stream->cache;
	int trial;

	if (!cache->is_on || task->is_plain || !disk_cache_gives(&stream->domain->disk_cache))
		return;
	trial = trial_of(cache, task);
	if (trial >= 0)
		cache->point[trial].trials++;
	cache->figures.fed++;
}

/* ---- what is learned ---- */

static unsigned number_of(const struct cache *cache, uint8_t form)
{
	unsigned p = 0;

	while (p < cache->n && cache->point[p].form != form)
		p++;
	return p;
}

static struct point_cost making(const struct queue_kept *kept)
{
	return (struct point_cost){.work_us = -1,
				   .read_us = -1,
				   .read_cpu_us = -1,
				   .make_us = kept->make_us,
				   .bytes = kept->form_bytes};
}

/* How long a form takes to be brought is known when it was: the file's disk says nothing of the store's, which
 * is a local one that was just written. So that counts for nothing until then, and it is decided anew with
 * what it really takes. */
static void note_trial(struct stream *stream, unsigned p, const struct queue_kept *kept)
{
	struct cache *cache = &stream->cache;
	struct point_cost cost = making(kept);

	cost.work_us = kept->form_us;
	point_form_tried(&cache->point[p].figures, &cost, kept->work_us);
	cache_cost(stream, p);
	cache_count_trials(cache);
}

static void note_made(struct stream *stream, unsigned p, const struct queue_kept *kept)
{
	const struct point_cost cost = making(kept);

	point_form_made(&stream->cache.point[p].figures, &cost);
}

/* What a peer's value took says nothing of what is kept here. */
static void note_peer(struct cache *cache, const struct queue_kept *kept, double read_cpu_us)
{
	const uint64_t ended = cache->figures.hits + cache->figures.misses;
	const uint64_t out = cache->figures.fed > ended ? cache->figures.fed - ended : 1;

	/* without a time it was waited for until it was made, somewhere */
	peering_came(&cache->peering, kept->read_us ? kept->read_us : -1., read_cpu_us, kept->came,
		     BASE_MIN(out, (uint64_t)CACHE_OUT_MOST));
}

/* Work from a form that was just made is nobody's: it is the form's, with all of it in the processor's caches. */
static void note_served(struct stream *stream, unsigned p, const struct queue_kept *kept,
			double read_cpu_us, bool is_made, uint32_t file_bytes)
{
	struct cache *cache = &stream->cache;
	const bool is_peers = kept->from == LAYOUT_FROM_PEER;
	const struct point_cost cost = {.work_us = is_made ? -1 : (double)kept->work_us,
					.read_us = is_peers ? -1 : (double)kept->read_us,
					.read_cpu_us = is_peers ? -1 : read_cpu_us,
					.make_us = -1,
					.bytes = p == 0 ? (double)file_bytes : -1};

	point_form_served(&cache->point[p].figures, &cost);
	if (cache->choice.reason != POINT_UNMEASURED || cache->forced >= 0 ||
	    ++cache->served % CACHE_SERVED_EVERY)
		return;
	for (p = 0; p < cache->n; p++)
		cache_cost(stream, p);
	cache_count_trials(cache); /* their prices depend on it */
}

/* Does a sample that came as its file stand for all? Those that have no form are a kind of their own, and when
 * all others are kept they are the only ones that come so. */
static bool is_typical(const struct cache *cache, uint64_t sample, enum layout_made made)
{
	if (cache->choice.point == 0 || made == LAYOUT_MADE_YES || made == LAYOUT_MADE_FULL)
		return true;
	return made != LAYOUT_MADE_UNFIT && made != LAYOUT_MADE_FILE &&
	       kept_bytes(&cache->point[cache->choice.point], sample);
}

/* What became of the form that was to be made. */
static void note_form(struct stream *stream, const struct fill_task *task, bool is_trial,
		      unsigned p, const struct queue_kept *kept)
{
	struct cache *cache = &stream->cache;

	if (kept->made == LAYOUT_MADE_UNFIT)
		set_unfit(&cache->point[p], task->source, stream->geometry.n_samples);
	else if (kept->made == LAYOUT_MADE_YES && is_trial)
		note_trial(stream, p, kept);
	else if (kept->made == LAYOUT_MADE_YES)
		note_made(stream, p, kept);
}

/* With the last of them the forms can be compared: at once, as until then all comes as files. A sample that
 * turned out to be bad ends no trial, and then the next look at the measurements compares. */
static void end_trial(struct cache *cache, unsigned p, bool is_measured)
{
	struct cache_point *point = &cache->point[p];

	/* Those that were asked for before the points were listed anew are not among trials. */
	if (is_measured || point->vain == CACHE_VAIN_MOST || point->tried >= point->trials) {
		point->tried++;
	} else { /* another sample's instead */
		point->vain++;
		point->trials--;
	}
	if (!cache_has_trials_out(cache) && !cache_is_trying(cache))
		cache->looked_ns = 0;
}

void cache_note(struct stream *stream, const struct fill_task *task,
		const struct queue_keep *planned, const struct queue_kept *kept,
		uint32_t file_bytes)
{
	struct cache *cache = &stream->cache;
	const uint8_t asked = planned->make ? planned->make : planned->probe;
	const bool is_made =
	    planned->make && (kept->made == LAYOUT_MADE_YES || kept->made == LAYOUT_MADE_FULL);
	const double read_cpu_us = planned->timed == LAYOUT_TIMED_ALL ? kept->read_cpu_us : -1.;
	unsigned p = number_of(cache, kept->form);

	if (!cache->is_on || !planned->timed || p >= cache->n ||
	    (kept->form && kept->form != planned->want))
		return; /* or it was planned before there was anything to be chosen */
	cache->figures.from[kept->from].samples++;
	cache->figures.from[kept->from].bytes += kept->came;
	if (kept->from == LAYOUT_FROM_PEER)
		note_peer(cache, kept, read_cpu_us);
	if (kept->form || is_typical(cache, task->source, kept->made))
		note_served(stream, p, kept, read_cpu_us, is_made, file_bytes);
	if (kept->form) {
		cache->figures.hits++;
		cache->figures.bytes_hit += kept->came;
	} else {
		cache->figures.misses++;
	}
	p = number_of(cache, asked);
	if (!asked || p >= cache->n)
		return;
	if (!kept->form)
		note_form(stream, task, planned->probe != 0, p, kept);
	if (planned->probe)
		end_trial(cache, p, !kept->form && kept->made == LAYOUT_MADE_YES);
}

/* ---- ahead of need ---- */

void cache_look_ahead(const struct stream *stream, uint64_t now_ns, struct ahead_look *ret)
{
	const struct cache *cache = &stream->cache;
	const struct disk_cache *disk_cache = &stream->domain->disk_cache;
	const unsigned peers = stream->domain->reading.peers;
	const struct cache_point *point = &cache->point[cache->choice.point];

	ret->has_peers = peers > 0 && cache_is_shared(stream, point);
	ret->is_worth = cache->is_on && cache->choice.point && cache->choice.makes &&
			point->form != LAYOUT_FORM_AUGMENTED && point->state == CACHE_READY;
	ret->has_room = disk_cache_takes(disk_cache, now_ns);
	ret->of = (uint64_t)peers << 32 | point->form;
}

bool cache_plan_ahead(const struct stream *stream, uint64_t sample, uint32_t file_bytes,
		      struct queue_keep *ret)
{
	const struct cache_point *point = &stream->cache.point[stream->cache.choice.point];

	if (kept_bytes(point, sample) || is_unfit(point, sample))
		return false;
	*ret = (struct queue_keep){.room = file_bytes,
				   .want = point->form,
				   .make = point->form,
				   .timed = LAYOUT_TIMED_ALL};
	return true;
}

bool cache_note_ahead(struct stream *stream, const struct fill_task *task,
		      const struct queue_kept *kept)
{
	const unsigned p = number_of(&stream->cache, task->keep.make);

	if (p < stream->cache.n && !kept->form)
		note_form(stream, task, false, p, kept);
	return kept->made == LAYOUT_MADE_YES || kept->made == LAYOUT_MADE_FILE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points of a stream: which forms there are, and what is kept of them.
 *
 * The variants of a stream decode the same, so forms of the file serve them all; a picture behind
 * further ops serves them only if all of them begin with these ops. Variants come and go, but a queue's forms
 * are named to its reader once: a form that would mean something else by now is not offered any more.
 *
 * A table comes from the reader, so each number in it is taken for what it may be, and copied once: it
 * decides how much of the arena a task gets, and no more than there is.
 */
#include "daemon/cache/cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/log.h"
#include "daemon/map_end.h"
#include "daemon/node.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/domain.h"
#include "libaccess/libaccess.h"
#include "pipeline/formats/decode_libraries.h"
#include "pipeline/pipeline.h"
#include "plan/ranks/spread.h"

#define CACHE_MOST_SAMPLES (UINT64_C(1) << 27) /* a table has four bytes for each */
#define CACHE_CUT_DIGITS 16
#define CACHE_AWAIT_NS UINT64_C(100000000)
#define CACHE_NAME "oneaccess kept form 3"

/* ---- tables ---- */

static uint64_t table_bytes(uint64_t n_samples)
{
	return base_align_up(n_samples * sizeof(uint32_t), base_page_size());
}

static void drop_table(struct stream *stream, struct cache_point *point)
{
	void *table = (void *)(uintptr_t)base_take_ptr(point->table);

	map_end(&stream->node->endings, table, table_bytes(stream->geometry.n_samples));
	point->state = CACHE_UNASKED;
	point->worth = 0;
	point->yields = false;
}

static bool is_table(int fd, uint64_t n_samples)
{
	struct stat status;

	return base_is_sealed(fd, F_SEAL_SHRINK) && fstat(fd, &status) == 0 &&
	       (uint64_t)status.st_size >= n_samples * sizeof(uint32_t);
}

static struct cache_point *point_of_form(struct cache *cache, uint64_t form)
{
	for (unsigned p = 1; p < cache->listed; p++)
		if (cache->point[p].form == form)
			return &cache->point[p];
	return NULL;
}

/* Without any form nothing is tried, either. */
static void refuse_point(struct stream *stream, uint64_t form, const char *why)
{
	struct cache *cache = &stream->cache;

	log_line(LOG_LEVEL_INFO, "form-refused", "queue=%u form=%llu reason=\"%.200s\"",
		 stream->shared.queue.number, (unsigned long long)form, why);
	for (unsigned p = 1; p < cache->n; p++)
		if (cache->point[p].state != CACHE_REFUSED)
			return;
	cache->is_on = false;
	snprintf(cache->why, sizeof(cache->why), "%s", why);
}

void cache_formed(struct stream *stream, uint64_t form, int table_fd, const char *why)
{
	const uint64_t n_samples = stream->geometry.n_samples;
	struct cache_point *point = point_of_form(&stream->cache, form);
	void *map;

	if (!point || point->state != CACHE_ASKED)
		return;
	point->state = CACHE_REFUSED;
	stream_turn_soon(stream); /* samples may wait for it */
	if (table_fd < 0) {
		refuse_point(stream, form, why);
		return;
	}
	if (!is_table(table_fd, n_samples)) {
		log_line(LOG_LEVEL_ERROR, "table-bad", "queue=%u form=%llu",
			 stream->shared.queue.number, (unsigned long long)form);
		return;
	}
	map = mmap(NULL, table_bytes(n_samples), PROT_READ, MAP_SHARED, table_fd, 0);
	if (map == MAP_FAILED)
		return;
	point->table = map;
	point->state = CACHE_READY;
	stream->cache.looked_ns = 0; /* what is kept is used at once */
	cache_tick(stream, base_now_ns());
}

void cache_reader_died(struct stream *stream)
{
	struct cache *cache = &stream->cache;

	for (unsigned p = 1; p < cache->listed; p++)
		drop_table(stream, &cache->point[p]);
	memset(cache->told.has_group, 0, sizeof(cache->told.has_group));
	cache->told.is_spread_told = false;
}

void cache_dropped(struct stream *stream, const struct hash_id *group)
{
	struct cache *cache = &stream->cache;

	for (unsigned p = 1; p < cache->listed; p++) {
		if (memcmp(&cache->point[p].group, group, sizeof(*group)) != 0)
			continue;
		drop_table(stream, &cache->point[p]);
		cache->point[p].state = CACHE_REFUSED; /* a dropped group takes no more */
	}
	for (unsigned form = 0; form < LAYOUT_FORMS; form++) /* nor is it asked for again */
		if (memcmp(&cache->told.group[form], group, sizeof(*group)) == 0)
			memset(&cache->told.group[form], 0, sizeof(cache->told.group[form]));
}

/* ---- which points there are ---- */

void cache_fini(struct stream *stream)
{
	struct cache *cache = &stream->cache;

	for (unsigned p = 0; p < cache->listed; p++) {
		drop_table(stream, &cache->point[p]);
		free(cache->point[p].unfit);
	}
	cache->n = cache->listed = 0;
	instance_fini(&cache->book);
}

/* Is the picture behind `cut` ops the same for all of them? */
static bool is_common(const struct stream *stream, uint32_t variants, unsigned cut,
		      const struct hash_id *id)
{
	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++) {
		struct hash_id other; /* zeros where it has no such cut */

		if (!(variants >> v & 1))
			continue;
		pipeline_hash_cut(stream->variant[v]->pipeline, cut, &other);
		if (memcmp(&other, id, sizeof(*id)) != 0)
			return false;
	}
	return true;
}

bool cache_is_shared(const struct stream *stream, const struct cache_point *point)
{
	return point->form != LAYOUT_FORM_AUGMENTED &&
	       (!domain_is_shared(stream->domain) || stream->source->root.is_everywhere);
}

/* A form of these samples, made by these ops; pixels by these decoders and this arithmetic. Where users share, it is of this very folder or file, too:
 * another's may have been made to look like it. What is open to all and lies below cluster_paths is of its place, not its device, and of its inode: other
 * nodes have it so, too. So where samples lie in shards, of whose bytes the version knows
 * nothing; but where there are peers, among a user's own the inode will do: it is the same on all nodes that mount a file system, where the
 * device is not, and who has two copies that have names, sizes, times and the inode in common made them so. */
static void group_of(const struct stream *stream, unsigned form, const struct hash_id *cut,
		     struct hash_id *ret)
{
	const struct source_root *root = &stream->source->root;
	struct {
		char name[sizeof(CACHE_NAME)];
		uint8_t form;
		uint8_t version[sizeof(struct hash_id)];
		struct hash_id cut, libraries;
		uint64_t device, inode, arithmetic;
	} all;

	memset(&all, 0, sizeof(all));
	memcpy(all.name, CACHE_NAME, sizeof(all.name));
	all.form = (uint8_t)form;
	all.cut = *cut;
	memcpy(all.version, dataset_version(stream->source->dataset), sizeof(all.version));
	if (form > LAYOUT_FORM_PACKED) {
		decode_libraries(&all.libraries);
		all.arithmetic = stream->node->machine.arithmetic;
	}
	if (!root->is_everywhere &&
	    (domain_is_shared(stream->domain) ||
	     (source_has_shards(stream->source) && !gating_is_on(&stream->domain->node->gating))))
		all.device = root->device;
	if (domain_is_shared(stream->domain) || source_has_shards(stream->source))
		all.inode = root->inode;
	hash_of(&all, sizeof(all), ret);
	if (root->is_everywhere) {
		struct hash_id both[2] = {*ret, root->way};

		/* Two folders of different file systems may have an inode in common, but not their place. */
		hash_of(both, sizeof(both), ret);
	}
}

static void add_point(const struct stream *stream, struct cache *cache, unsigned form,
		      const struct hash_id *cut)
{
	struct cache_point *point = &cache->point[cache->listed];
	struct hash_id own = *cut;

	if (cache->listed == POINT_MAX || form >= LAYOUT_FORMS)
		return;
	*point = (struct cache_point){.form = (uint8_t)form};
	point->cut = *cut;
	if (form) {
		if (form == LAYOUT_FORM_AUGMENTED)
			cache_own_cut(stream, cut, &own);
		group_of(stream, form, &own, &point->group);
		if (stream->cache.told.has_group[form] &&
		    memcmp(&stream->cache.told.group[form], &point->group, sizeof(point->group)) !=
			0)
			return; /* the queue's reader means another by it */
	}
	point_form_init(&point->figures);
	point->figures.needs_file = form == LAYOUT_FORM_INDEXED;
	cache->listed++;
}

static void list_points(const struct stream *stream, uint32_t variants, struct cache *cache)
{
	const struct pipeline *first = stream->variant[__builtin_ctz(variants)]->pipeline;
	unsigned cuts[PIPELINE_MAX_OPS], n = pipeline_cuts(first, cuts);
	const struct hash_id none = {{0}};
	struct hash_id id;

	if (n == 0) {
		snprintf(cache->why, sizeof(cache->why),
			 "its samples are no pictures that a form could be kept of");
		return;
	}
	pipeline_hash_cut(first, 0, &id);
	add_point(stream, cache, 0, &id);
	add_point(stream, cache, LAYOUT_FORM_INDEXED, &id);
	add_point(stream, cache, LAYOUT_FORM_PACKED, &id);
	for (unsigned i = 0; i < n; i++) {
		pipeline_hash_cut(first, cuts[i], &id);
		if (is_common(stream, variants, cuts[i], &id))
			add_point(stream, cache, LAYOUT_FORM_PIXELS + cuts[i], &id);
	}
	pipeline_hash_cut(first, PIPELINE_CUT_AUGMENTED, &id);
	if (memcmp(&id, &none, sizeof(id)) != 0 &&
	    is_common(stream, variants, PIPELINE_CUT_AUGMENTED, &id))
		add_point(stream, cache, LAYOUT_FORM_AUGMENTED, &id);
	cache_open(cache);
	cache->is_on = cache->n > 1;
}

static uint32_t open_variants(const struct stream *stream)
{
	uint32_t variants = 0;

	VARIANT_EACH_OPEN(variant, stream)
		variants |= UINT32_C(1) << variant->number;
	return variants;
}

/* What is known of a point stays; what it costs does not, as that is of these variants. */
static void take_over(struct cache *from, struct cache *to)
{
	cache_take_book(from, to);
	for (unsigned p = 1; p < to->listed; p++) {
		struct cache_point *old = point_of_form(from, to->point[p].form);

		if (!old || memcmp(&old->group, &to->point[p].group, sizeof(old->group)) != 0)
			continue;
		to->point[p].state = old->state;
		to->point[p].table = old->table;
		to->point[p].yields = old->yields;
		to->point[p].unfit = old->unfit;
		to->point[p].n_unfit = old->n_unfit;
		to->point[p].is_found = old->is_found;
		to->point[p].found = old->found;
		old->table = NULL;
		old->unfit = NULL;
	}
	to->told = from->told;
	to->await_until_ns = from->await_until_ns;
	to->figures = from->figures;
	to->peering = from->peering;
}

/* The point that the configuration asks for; 0, where the stream has none such. */
static int forced_point(const struct cache *cache, const char *name)
{
	char text[24];

	if (strcmp(name, "auto") == 0)
		return -1;
	if (strcmp(name, "deepest") == 0)
		return (int)(cache->listed - (cache_augmented(cache) != NULL)) - 1;
	for (unsigned p = 1; p < cache->listed; p++)
		if (strcmp(cache_name(cache->point[p].form, text), name) == 0)
			return (int)p;
	return 0;
}

/* By a job, and by name. */
static bool is_asked(const struct stream *stream)
{
	return stream->asked.keep[0] && strcmp(stream->asked.keep, "auto") != 0;
}

static void list_anew(struct stream *stream, uint32_t variants)
{
	const struct disk_cache *disk_cache = &stream->domain->disk_cache;
	struct cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return;
	cache_init(cache);
	cache->variants = variants;
	cache->begun = stream->figures.samples_done;
	cache->allows = stream->cache.allows;
	if (disk_cache->rings_fd < 0)
		snprintf(cache->why, sizeof(cache->why), "%s", disk_cache->why);
	else if (stream->geometry.n_samples > CACHE_MOST_SAMPLES)
		snprintf(cache->why, sizeof(cache->why), "the dataset has more than %llu samples",
			 (unsigned long long)CACHE_MOST_SAMPLES);
	else
		list_points(stream, variants, cache);
	take_over(&stream->cache, cache);
	cache_fini(stream);
	if (cache->is_on)
		cache->forced = forced_point(
		    cache, is_asked(stream) ? stream->asked.keep : stream->node->param.cache_point);
	stream->cache = *cache;
	free(cache);
}

/* ---- streams that are to be kept ---- */

static int check_form(const struct stream *stream, const char *name, struct diag *diag)
{
	const struct cache *cache = &stream->cache;
	char names[PARAM_TEXT_MAX] = "", one[24];
	int p = forced_point(cache, name);
	size_t at = 0;

	if (p != 0 && (p < 0 || cache->point[p].form != LAYOUT_FORM_AUGMENTED))
		return 0;
	for (p = 1; p < (int)cache->n && at < sizeof(names) - sizeof(one) - 2; p++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", p > 1 ? ", " : "",
				       cache_name(cache->point[p].form, one));
	return diag_fail(diag, OA_E_REFUSED,
			 "there is no form \"%s\" of what this pipeline has before its first "
			 "random op; there are %s",
			 name, names);
}

int cache_check(const struct stream *stream, struct diag *diag)
{
	const struct cache *cache = &stream->cache;
	const struct disk_cache *disk_cache = &stream->domain->disk_cache;
	const char *forced = stream->node->param.cache_point;
	int r;

	if (!stream->asked.keep[0])
		return 0;
	if (!cache->is_on || (!disk_cache_gives(disk_cache) && disk_cache->why[0] &&
			      (disk_cache->is_known || !disk_cache->is_told)))
		return diag_fail(diag, OA_E_REFUSED, "nothing is kept: %s",
				 cache->is_on ? disk_cache->why : cache->why);
	r = check_form(stream, forced, diag);
	if (!r && is_asked(stream))
		r = check_form(stream, stream->asked.keep, diag);
	if (r || !is_asked(stream) || strcmp(forced, "auto") == 0 ||
	    forced_point(cache, forced) == cache->forced)
		return r;
	return diag_fail(diag, OA_E_REFUSED,
			 "this accessd keeps %s alone (cache_point of accessd.conf(5)): ask for "
			 "that, or for no form",
			 forced);
}

static bool are_tables_coming(const struct stream *stream)
{
	const struct cache *cache = &stream->cache;
	const enum disk_cache_share share = stream->domain->disk_cache.share;

	if (!cache->is_on)
		return false;
	if (share == DISK_CACHE_ASKS || share == DISK_CACHE_LOOKS)
		return true;
	for (unsigned p = 1; p < cache->n; p++)
		if (cache->point[p].state == CACHE_ASKED)
			return true;
	return false;
}

bool cache_is_awaited(struct stream *stream, uint64_t now_ns, uint64_t *ret_until_ns)
{
	struct cache *cache = &stream->cache;

	*ret_until_ns = 0;
	if (!cache->await_until_ns)
		cache->await_until_ns = now_ns + CACHE_AWAIT_NS;
	if (!are_tables_coming(stream))
		return false;
	if (stream->asked.keep[0])
		return true;
	*ret_until_ns = cache->await_until_ns;
	return now_ns < cache->await_until_ns;
}

/* ---- asking the reader ---- */

/* For people who look at what is kept. */
static char *note_of(const struct stream *stream, const struct cache_point *point)
{
	struct json_out out;
	char name[24], hex[65], *text; /* no version: a newer one of the same is to supersede it */

	json_out_init(&out, false);
	json_out_object_begin(&out);
	json_out_member_string(&out, "dataset", source_shown(stream->source));
	json_out_member_string(&out, "form", cache_name(point->form, name));
	hash_hex(&point->cut, hex)[CACHE_CUT_DIGITS] = '\0';
	json_out_member_string(&out, "begins", hex);
	json_out_object_end(&out);
	return json_out_take(&out, &text, NULL) ? NULL : text;
}

static void ask_for(struct stream *stream, struct cache_point *point)
{
	_cleanup_free_ char *note = note_of(stream, point);

	if (!note)
		return;
	/* It had it, until jobs came for which it is none, and may have said that it yields. */
	if (stream->cache.told.has_group[point->form])
		reading_yield(&stream->domain->reading, stream->shared.queue.number, point->form,
			      false);
	stream->cache.told.group[point->form] = point->group;
	stream->cache.told.has_group[point->form] = true;
	point->state = CACHE_ASKED;
	reading_form(&stream->domain->reading, stream->shared.queue.number, point->form,
		     &point->group, note, cache_is_shared(stream, point));
}

/* Before the forms, of which it is, or behind them. */
static void tell_spread(struct stream *stream)
{
	struct cache *cache = &stream->cache;

	if (!cache->is_on || cache->told.is_spread_told || !cache->told.spread_nodes ||
	    !stream->domain->disk_cache.is_told || !stream->shared.is_attached)
		return;
	cache->told.is_spread_told = true;
	reading_spread(&stream->domain->reading, stream->shared.queue.number,
		       cache->told.spread_number, cache->told.spread_nodes);
}

void cache_spread(struct stream *stream, const struct slice *slice)
{
	struct cache *cache = &stream->cache;
	uint32_t number, nodes;

	if (!spread_place(slice, &number, &nodes) ||
	    (cache->told.spread_number == number && cache->told.spread_nodes == nodes))
		return;
	cache->told.spread_number = number;
	cache->told.spread_nodes = nodes;
	cache->told.is_spread_told = false;
	tell_spread(stream);
}

void cache_settle(struct stream *stream)
{
	struct cache *cache = &stream->cache;
	uint32_t variants = open_variants(stream);

	if (!variants || stream->state > STREAM_RUNS)
		return;
	if (cache->variants != variants)
		list_anew(stream, variants);
	tell_spread(stream);
	for (unsigned p = 1; p < cache->n; p++)
		if (cache->is_on && stream->domain->disk_cache.is_told &&
		    stream->shared.is_attached && cache->point[p].state == CACHE_UNASKED)
			ask_for(stream, &cache->point[p]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When it is decided what to cache, and from what. The decision itself is arithmetic: sched/point.c.
 */
#include <math.h>

#include "base/json.h"
#include "base/log.h"
#include "daemon/cache/ram_cache.h"
#include "daemon/tenant/domain.h"
#include "daemon/serve/job.h"
#include "daemon/serve/source.h"
#include "daemon/cache/cache.h"
#include "daemon/cache/cache_count.h"
#include "daemon/node.h"
#include "daemon/serve/stream.h"
#include "shmring/resident.h"

#define CACHE_LOOK_NS UINT64_C(250000000)   /* between looks at the measurements */
#define CACHE_AGAIN_NS UINT64_C(5000000000) /* between decisions though nothing moved */
#define CACHE_AWAITED_MOST 16               /* looks at trials under way */
#define CACHE_MIB 1048576.0
#define CACHE_WORTH_BAND 0.2 /* of what was told last */
#define CACHE_USES_MANY 1000.0
#define CACHE_HEADROOM 0.97 /* of the store's limit, as its pages are never full */

/* ---- what is kept ---- */

static void count_kept(struct cache_point *point, uint64_t n_samples)
{
	point->kept_samples = point->kept_bytes = 0;
	if (point->state == CACHE_READY)
		cache_count(point->table, n_samples, &point->kept_samples, &point->kept_bytes);
	if (point->state == CACHE_READY && !point->is_found)
		point->found = point->kept_samples;
	point->is_found |= point->state == CACHE_READY;
}

static bool is_same_group(const struct cache_point *a, const struct cache_point *b)
{
	return memcmp(&a->group, &b->group, sizeof(a->group)) == 0;
}

/* Bytes of the domain's store that the stream would find in use, were it to keep that point: what other streams bring.
 * Its own other forms would make room, and all else can be pushed out. */
static uint64_t bytes_in_use(const struct stream *stream, const struct cache_point *point)
{
	uint64_t bytes = 0;

	BASE_EACH(other, &stream->domain->streams, link)
		for (unsigned p = 1; other != stream && p < other->cache.n; p++) {
			const struct cache_point *theirs = &other->cache.point[p];

			if (!theirs->yields && !is_same_group(theirs, point))
				bytes += theirs->kept_bytes;
		}
	return bytes;
}

/* ---- the inputs of a decision ---- */

static double uses_of(const struct stream *stream, uint64_t now_ns)
{
	double left = 0;
	bool is_known = stream->users.n_jobs > 0;

	if (stream->asked.keep[0])
		return CACHE_USES_MANY; /* those of jobs to come */
	for (unsigned i = 0; i < CAROUSEL_MAX_JOBS; i++) {
		const struct job *job = stream->users.job[i];
		struct carousel_job_view view;

		if (!job || !job->active)
			continue;
		carousel_job(stream->carousel, job->number, now_ns, &view);
		is_known &= job->epochs > 0;
		if (job->epochs > view.epoch)
			left = BASE_MAX(left, (double)(job->epochs - view.epoch));
	}
	return point_uses(is_known, left,
			  (double)stream->figures.samples_done /
			      (double)stream->geometry.n_samples);
}

/* Will all samples' values of that size lie in the domain's memory? */
static bool is_at_hand(const struct stream *stream, const struct cache_point *point, double bytes)
{
	const struct domain *domain = stream->domain;
	const double most = (double)ram_cache_most(domain);
	const double others =
	    (double)domain->disk_cache.state.memory_used - (double)point->kept_bytes;

	return point->form != LAYOUT_FORM_AUGMENTED && bytes <= RESIDENT_VALUE_MOST &&
	       bytes * (double)stream->geometry.n_samples + BASE_MAX(others, 0.0) <= most;
}

/* What the store's writer takes for a value of that size is known when it has written some, of whatever form: so
 * forms that were only tried are compared with one that is being kept. */
static void add_writing(const struct stream *stream, struct point_cost *cost)
{
	double write_us, cpu_us;

	if (cost->made == 0 || !disk_cache_write_us(&stream->domain->disk_cache,
						    (uint64_t)cost->bytes, &write_us, &cpu_us))
		return;
	cost->write_us = write_us;
	cost->make_us += cpu_us;
}

void cache_cost(struct stream *stream, unsigned p)
{
	struct cache *cache = &stream->cache;
	struct cache_point *point = &cache->point[p];
	struct point_cost *cost = &cache->input.cost[p];

	point_form_cost(&point->figures, &cache->point[0].figures, cost);
	if (p == 0)
		return;
	if (point->figures.is_at_hand != is_at_hand(stream, point, cost->bytes)) {
		point->figures.is_at_hand = !point->figures.is_at_hand;
		point_form_cost(&point->figures, &cache->point[0].figures, cost);
	}
	add_writing(stream, cost);
}

/* Bytes that values may have, where they are kept. */
static uint64_t room_of(const struct domain *domain)
{
	const struct disk_cache *disk_cache = &domain->disk_cache;

	return disk_cache_is_memory(disk_cache) ? ram_cache_most(domain) : disk_cache->state.limit;
}

static void look(struct stream *stream, uint64_t now_ns)
{
	const uint64_t n_samples = stream->geometry.n_samples;
	const double limit = CACHE_HEADROOM * (double)room_of(stream->domain);
	struct cache *cache = &stream->cache;
	struct point_input *in = &cache->input;
	const bool is_memory = disk_cache_is_memory(&stream->domain->disk_cache);

	for (unsigned p = 1; p < cache->n; p++)
		count_kept(&cache->point[p], n_samples);
	for (unsigned p = 0; cache->passed_ns && p < cache->n; p++)
		point_form_passed(&cache->point[p].figures,
				  (double)(now_ns - cache->passed_ns) / 1e9);
	cache->passed_ns = now_ns;
	*in = (struct point_input){.n = cache->n,
				   .cores = stream->node->machine.workers,
				   .reader_threads = (double)stream->node->param.readers,
				   .n_samples = n_samples,
				   .uses = uses_of(stream, now_ns),
				   .past = (double)(stream->figures.samples_done - cache->begun) /
					   (double)n_samples,
				   .current = cache->choice.point};
	in->is_new = point_form_is_new(&cache->point[in->current].figures);
	for (unsigned p = 0; p < cache->n; p++) {
		struct cache_point *point = &cache->point[p];
		const double nodes =
		    cache_is_shared(stream, point) ? 1 + stream->domain->reading.peers : 1;
		double room = limit - (double)bytes_in_use(stream, point);

		cache_cost(stream, p);
		if (is_memory && in->cost[p].bytes > RESIDENT_VALUE_MOST)
			room = 0;
		room *= nodes; /* who share, keep a part each */
		in->room[p] = room > 0 ? (uint64_t)room : 0;
		in->cached[p] =
		    BASE_MIN(nodes * (double)point->kept_samples / (double)n_samples, 1.0);
		if (point->form == LAYOUT_FORM_AUGMENTED) { /* it will be another instance's */
			in->cached[p] = 0;
			in->most_uses[p] = cache->allows;
		}
	}
	for (unsigned p = 1; in->current > 0 && p < cache->n; p++)
		if (p != in->current)
			point_form_read_like(&cache->point[p].figures,
					     &cache->point[in->current].figures,
					     &in->cost[in->current], &in->cost[p]);
	cache_count_trials(cache);
}

/* Is what others may have sooner fetched than made? */
static void look_at_peers(struct stream *stream)
{
	struct cache *cache = &stream->cache;
	const struct point_input *in = &cache->input;

	peering_choose(&cache->peering, &stream->domain->carrying.carry, &in->cost[0],
		       &in->cost[cache->choice.point], in->cores, in->reader_threads,
		       &cache->peers);
}

/* ---- deciding ---- */

static bool has_moved(const struct cache *cache)
{
	for (unsigned p = 0; p < cache->n; p++)
		if (point_form_moved(&cache->point[p].figures))
			return true;
	return false;
}

/* What each form saves, for the store: who may push out whom. Told when it is another by much. */
static void tell_worth(struct stream *stream)
{
	struct cache *cache = &stream->cache;

	for (unsigned p = 1; p < cache->n; p++) {
		struct cache_point *point = &cache->point[p];
		double saved = cache->choice.whole_us[0] - cache->choice.whole_us[p];
		double worth = saved * cache->input.cores * CACHE_MIB / cache->input.cost[p].bytes;

		if (point->state != CACHE_READY || !isfinite(worth) || worth < 0 || worth > 1e12 ||
		    fabs(worth - point->worth) <= CACHE_WORTH_BAND * point->worth)
			continue;
		point->worth = worth;
		reading_worth(&stream->domain->reading, stream->shared.queue.number, point->form,
			      worth);
	}
}

/* A form that another one has taken the place of: what is made, or all that there is, comes from that. */
static bool must_yield(const struct cache *cache, unsigned p)
{
	const unsigned chosen = cache->choice.point;

	return chosen && p != chosen && (cache->choice.makes || cache->input.cached[chosen] >= 1);
}

/* Forms are compared when all have been tried, so that not the one that was tried first is made; but what an earlier
 * run kept is used at once. One whose sample turned out to be bad never ends, and is not waited for for long. */
static bool is_early(struct cache *cache)
{
	for (unsigned p = 1; p < cache->n; p++)
		if (cache->point[p].kept_samples)
			return false;
	if (cache->forced >= 0 || cache->choice.point != 0)
		return false;
	if (cache_is_trying(cache))
		return true;
	return cache->chosen_ns == 0 && cache_has_trials_out(cache) &&
	       cache->awaited++ < CACHE_AWAITED_MOST;
}

static void choose(struct stream *stream, uint64_t now_ns)
{
	struct cache *cache = &stream->cache;
	const unsigned before = cache->choice.point;
	char from[24], to[24];

	point_choose(&cache->input, &cache->choice);
	if (cache->forced >= 0) {
		cache->choice.point =
		    (unsigned)cache->forced < cache->n ? (unsigned)cache->forced : 0;
		cache->choice.makes = cache->choice.point > 0;
	}
	cache->chosen_ns = now_ns;
	tell_worth(stream);
	for (unsigned p = 0; p < cache->n; p++)
		point_form_settle(&cache->point[p].figures);
	if (cache->choice.point != before)
		log_line(LOG_LEVEL_INFO, "keep", "queue=%u from=%s to=%s reason=%s makes=%d",
			 stream->shared.queue.number, cache_name(cache->point[before].form, from),
			 cache_name(cache->point[cache->choice.point].form, to),
			 cache->forced >= 0 ? "forced" : point_reason_name(cache->choice.reason),
			 cache->choice.makes);
}

void cache_tick(struct stream *stream, uint64_t now_ns)
{
	struct cache *cache = &stream->cache;

	/* who comes may stay for one epoch, in which nothing is to be found out */
	if (!cache->is_on ||
	    (cache->jobs == stream->users.n_jobs && now_ns - cache->looked_ns < CACHE_LOOK_NS))
		return;
	cache->looked_ns = now_ns;
	cache->jobs = stream->users.n_jobs;
	look(stream, now_ns);
	look_at_peers(stream);
	if (is_early(cache))
		return;
	if (cache->choice.reason == POINT_UNMEASURED || has_moved(cache) ||
	    now_ns - cache->chosen_ns >= CACHE_AGAIN_NS)
		choose(stream, now_ns);
	/* So the values of a form that was chosen before make room for those of the one that is chosen now. */
	for (unsigned p = 1; p < cache->listed; p++) {
		struct cache_point *point = &cache->point[p];
		const bool yields = must_yield(cache, p);

		if (point->state != CACHE_READY || point->yields == yields)
			continue;
		point->yields = yields;
		reading_yield(&stream->domain->reading, stream->shared.queue.number, point->form,
			      yields);
		if (yields && point->kept_samples)
			disk_cache_has_room(&stream->domain->disk_cache);
	}
}

/* ---- for people ---- */

static void describe_point(const struct cache *cache, unsigned p, struct json_out *out)
{
	const struct point_cost *cost = &cache->input.cost[p];
	char name[24];

	json_out_object_begin(out);
	json_out_member_string(out, "name", cache_name(cache->point[p].form, name));
	JSON_OUT_MEMBERS(out, cost, samples, made, work_us, read_us, read_cpu_us, make_us, write_us,
			 bytes);
	json_out_member_double(out, "whole_us", cache->choice.whole_us[p]);
	json_out_member_double(out, "serve_us", cache->choice.serve_us[p]);
	json_out_member_double(out, "total_us", cache->choice.total_us[p]);
	json_out_member_double(out, "fits", cache->choice.fits[p]);
	json_out_member_double(out, "cached", cache->input.cached[p]);
	json_out_member_u64(out, "unfit", cache->point[p].n_unfit);
	JSON_OUT_MEMBERS(out, &cache->point[p], found, kept_samples, kept_bytes);
	json_out_object_end(out);
}

static void describe_origin(const struct cache *cache, struct json_out *out)
{
	static const char *const names[] = {"source", "memory", "store", "peers"};

	json_out_member_object(out, "from");
	for (unsigned i = 0; i < BASE_ARRAY_LEN(names); i++) {
		json_out_member_object(out, names[i]);
		JSON_OUT_MEMBERS(out, &cache->figures.from[i], samples, bytes);
		json_out_object_end(out);
	}
	json_out_object_end(out);
}

/* Where there are other nodes, and they will never have it. */
static const char *why_not_shared(const struct stream *stream)
{
	const struct node *node = stream->domain->node;

	if (!gating_is_on(&node->gating) || !domain_is_shared(stream->domain) ||
	    stream->source->root.is_everywhere)
		return "";
	if (stream->domain->kind == DOMAIN_NAMED)
		return "it has a name here (accessd.conf), and such data stay on their node";
	if (!*node->param.cluster_paths)
		return "it is open to everybody, and such data are shared below cluster_paths "
		       "alone, which is empty (accessd.conf)";
	return "it is open to everybody, and lies, links followed, below none of cluster_paths "
	       "(accessd.conf)";
}

static void describe_peers(const struct stream *stream, struct json_out *out)
{
	const struct cache *cache = &stream->cache;

	json_out_member_object(out, "peers");
	json_out_member_u64(out, "connected", stream->domain->reading.peers);
	json_out_member_string(out, "why_not", why_not_shared(stream));
	json_out_member_bool(out, "worth", cache->peers.is_worth);
	JSON_OUT_MEMBERS(out, &cache->peers, make_us, fetch_us, carry_us);
	json_out_member_bool(out, "carry_measured", stream->domain->carrying.carry.us_per_mib > 0);
	json_out_member_string(out, "ahead", ahead_name(stream->ahead.state));
	json_out_member_u64(out, "made_ahead", stream->figures.made_ahead);
	json_out_object_end(out);
}

void cache_describe(const struct stream *stream, struct json_out *out)
{
	const struct cache *cache = &stream->cache;
	const struct disk_cache *disk_cache = &stream->domain->disk_cache;
	char name[24];

	json_out_member_object(out, "cache");
	json_out_member_bool(out, "on", cache->is_on && disk_cache_gives(disk_cache));
	json_out_member_string(out, "why", cache->is_on ? disk_cache->why : cache->why);
	json_out_member_bool(out, "memory_only", cache->is_on && disk_cache_is_memory(disk_cache));
	json_out_member_string(
	    out, "point",
	    cache->is_on ? cache_name(cache->point[cache->choice.point].form, name) : "none");
	json_out_member_bool(out, "forced", cache->forced >= 0);
	json_out_member_string(out, "asked", stream->asked.keep);
	json_out_member_bool(out, "makes", cache->choice.makes);
	json_out_member_string(out, "reason", point_reason_name(cache->choice.reason));
	json_out_member_string(
	    out, "rival",
	    cache->is_on ? cache_name(cache->point[cache->choice.rival].form, name) : "");
	json_out_member_double(out, "uses", cache->input.uses);
	json_out_member_u64(out, "reuse", cache->allows);
	JSON_OUT_MEMBERS(out, &cache->figures, hits, misses);
	json_out_member_u64(out, "bytes", cache->figures.bytes_hit);
	json_out_member_u64(out, "peer_hits", cache->figures.from[LAYOUT_FROM_PEER].samples);
	json_out_member_u64(out, "wrong", cache->figures.wrong);
	describe_origin(cache, out);
	describe_peers(stream, out);
	json_out_member_array(out, "points");
	for (unsigned p = 0; p < cache->n; p++)
		describe_point(cache, p, out);
	json_out_array_end(out);
	json_out_object_end(out);
}

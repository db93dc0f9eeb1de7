/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: made for the first job that asks, shared by all who ask for the same, and by those who ask
 * for other pipelines over the same samples, as further variants.
 *
 * The key is the hash of path, dataset version, root where a source keeps it, and policy, a variant's also of the pipeline (canonical
 * text and pixel version): jobs with the same variant read the same bytes. A variant's slots are mapped
 * writable by the worker parent first and sealed only then (FUTURE_WRITE), so the order of steps is
 * fixed: ADD, ADDED, seal, GO. From the seal on nobody can map them writable, not even this process.
 * How a stream ends: stream_end.c; how much memory it may have: stream_room.c.
 */
#include "daemon/serve/streams.h"

#include <stdio.h>

#include "base/log.h"
#include "daemon/cache/cache.h"
#include "daemon/net/conn.h"
#include "daemon/net/prepare.h"
#include "daemon/node.h"
#include "daemon/proc/reserve.h"
#include "daemon/serve/fill.h"
#include "daemon/serve/pump.h"
#include "daemon/serve/revisit.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/stream_fail.h"
#include "daemon/serve/variant.h"
#include "daemon/serve/variant_life.h"
#include "daemon/serve/variant_make.h"
#include "daemon/tenant/admit.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"
#include "libaccess/libaccess.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/compare.h"
#include "storage/source/scan/scan_option.h"

#define COLUMNS_MOST 2048

_Static_assert((int)PIPELINE_U8 == (int)LAYOUT_U8 && (int)PIPELINE_I64 == (int)LAYOUT_I64 &&
		   (int)PIPELINE_BF16 == (int)LAYOUT_BF16 && (int)PIPELINE_BOOL == (int)LAYOUT_BOOL,
	       "one numbering of dtypes");
_Static_assert((int)PIPELINE_TEXT == (int)LAYOUT_TEXT &&
		   PIPELINE_MAX_FIELDS + 1 == LAYOUT_MAX_FIELDS,
	       "one numbering of kinds, and a field for the ids");
_Static_assert((int)PIPELINE_FAIL_FILTERED == (int)LAYOUT_FAIL_FILTERED,
	       "one numbering of failures");

/* Of the stream, and of its variant. */
static void make_keys(const struct request *request, const struct source *source,
		      struct hash_id *ret_stream, struct hash_id *ret_variant)
{
	struct hash_id both[2];
	struct hash *hash;

	memset(ret_stream, 0, sizeof(*ret_stream));
	memset(ret_variant, 0, sizeof(*ret_variant));
	if (hash_new(&hash))
		return;
	hash_add(hash, source->path, strlen(source->path) + 1);
	hash_add(hash, dataset_version(source->dataset), sizeof(struct hash_id));
	if (source_keeps_root(source)) {
		hash_add_u64(hash, source->root.device);
		hash_add_u64(hash, source->root.inode);
		hash_add_u64(hash, source->root.stamp);
	}
	hash_add_u64(hash, request->policy);
	if (request->keep[0]) {
		pipeline_hash(request->pipeline, &both[1]);
		hash_add(hash, &both[1], sizeof(both[1]));
		hash_add(hash, request->keep, strlen(request->keep) + 1);
	}
	hash_finish(hash, ret_stream);
	hash_free(hash);
	both[0] = *ret_stream;
	pipeline_hash(request->pipeline, &both[1]);
	hash_of(both, sizeof(both), ret_variant);
}

/* ---- a new stream ---- */

static uint64_t draw_seed(const struct node *node)
{
	uint64_t seed = node->param.seed;

	if (!seed)
		base_random(&seed, sizeof(seed));
	return seed ? seed : 1;
}

static uint64_t draw_first_nonce(void)
{
	uint32_t start = 0;

	base_random(&start, sizeof(start));
	return (uint64_t)start << 32;
}

/* What his share is used for, and who can mend that. */
static void tell_use(const struct conn *conn, struct diag *diag)
{
	const struct domain *domain = conn->domain;
	const size_t length = strlen(diag->text);
	char jobs[320];

	snprintf(diag->text + length, sizeof(diag->text) - length,
		 ". Of your share %s are used, by %s; who runs accessd can raise tenant_memory or "
		 "tenant.%u.memory",
		 BASE_BYTES(tenant_memory(domain).used),
		 tenant_tell_jobs(domain, jobs, sizeof(jobs)), (unsigned)domain->tenant);
}

static int plan_memory(const struct conn *conn, struct slot_geometry *geometry,
		       struct admit_plan *plan, struct diag *diag)
{
	struct node *node = conn->node;
	const struct request *request = &conn->request;
	const struct dataset *dataset = conn->source->dataset;
	uint64_t n = dataset_count(dataset);
	struct admit_ask ask = {
	    .batch = request->batch,
	    .chunk = request->chunk ? request->chunk : (uint32_t)node->param.chunk,
	    .slots = (uint32_t)node->param.slots,
	    .producing = (uint32_t)node->param.producing,
	    .rows = fill_rows(node),
	    .arena = node->param.arena,
	    .mean_bytes = dataset_head(dataset)->sum_bytes / n,
	    .largest_bytes = dataset_head(dataset)->largest_bytes,
	    .workers = node->machine.workers,
	};
	int r;

	geometry->n_samples = n;
	geometry->block = permutation_block_of(n);
	geometry->seed = draw_seed(node);
	memcpy(geometry->dataset, dataset_version(dataset), sizeof(geometry->dataset));
	variant_describe_fields(request->pipeline, geometry);
	do {
		ask.available = tenant_free_bytes(conn->domain);
		ask.budget = tenant_limit_of(conn->domain, &ask.source);
		r = admit_stream(&ask, geometry, plan, diag);
	} while (r == ADMIT_E_MEMORY && tenant_make_room(conn->domain));
	if (r == ADMIT_E_MEMORY && tenant_is_bound(conn->domain))
		tell_use(conn, diag);
	return r;
}

/* Unique among all domains: people know a stream by it. */
static uint16_t free_queue_number(struct node *node)
{
	bool is_used;

	do {
		node->next.queue++;
		is_used = false;
		BASE_EACH(domain, &node->domains, link)
			is_used |= stream_of_queue(domain, node->next.queue) != NULL;
	} while (is_used);
	return node->next.queue;
}

static int make_carousel(struct stream *stream)
{
	const struct slot_geometry *geometry = &stream->geometry;
	struct carousel_config config = {
	    .n = geometry->n_samples,
	    .chunk = geometry->chunk,
	    .slots = stream->slots,
	    .max_slots = geometry->max_slots,
	    .producing = (uint32_t)stream->node->param.producing,
	    .overtaken = admit_spare_rows((uint32_t)stream->node->param.producing),
	    .seed = geometry->seed,
	    .first_nonce = stream->made.first_nonce = draw_first_nonce(),
	};

	memcpy(config.version, geometry->dataset, sizeof(config.version));
	return carousel_new(&config, &stream->carousel);
}

void stream_turn(struct stream *stream)
{
	pump_turn(stream);
	if (stream->state == STREAM_RUNS)
		stream_grow(stream);
}

static void on_pump(void *arg)
{
	stream_turn(arg);
}

static void on_linger(void *arg)
{
	struct stream *stream = arg;

	if (!stream->users.n_conns)
		stream_free(stream);
}

static int make_memory(struct stream *stream, const struct admit_plan *plan)
{
	struct node *node = stream->node;
	int r = queue_new(free_queue_number(node), fill_rows(node), stream->geometry.chunk,
			  plan->arena_bytes, &stream->shared.queue, &stream->shared.queue_fd,
			  &stream->shared.arena_fd);

	if (!r)
		numa_prefer(&node->machine.numa, stream->shared.arena_fd, plan->arena_bytes,
			    stream->shared.numa_node);
	if (!r)
		r = arena_init(&stream->shared.arena, plan->arena_bytes,
			       fill_rows(node) * stream->geometry.chunk + 1,
			       dataset_is_placed(stream->source->dataset) ? DATASET_PLACE
									  : ARENA_ALIGN);
	if (r)
		return r;
	stream->bytes.fixed = plan->fixed_bytes - stream->geometry.table_bytes;
	stream_account(stream, stream->payer, (int64_t)stream->bytes.fixed);
	return 0;
}

static int stream_build(struct stream *stream, const struct admit_plan *plan)
{
	int r = make_memory(stream, plan);

	r = r ? r : fill_init(stream);
	r = r ? r : make_carousel(stream);
	r = r ? r : revisit_init(stream);
	r = r ? r : loop_timer_new(stream->node->loop, on_pump, stream, &stream->pump_timer);
	r = r ? r : loop_timer_new(stream->node->loop, on_linger, stream, &stream->linger_timer);
	return r;
}

static void give_to_workers(const struct variant *variant)
{
	const struct stream *stream = variant->stream;
	const struct workers_variant given = {.queue = stream->shared.queue.number,
					      .number = variant->number,
					      .pipeline = variant->pipeline,
					      .geometry = &variant->table.geometry,
					      .slots_fd = variant->slots_fd,
					      .queue_fd = stream->shared.queue_fd,
					      .arena_fd = stream->shared.arena_fd};

	workers_add(&stream->domain->workers, &given);
}

/* conn's pipeline becomes a variant with so many slots at first. */
static int add_variant(struct stream *stream, struct conn *conn, const struct hash_id *key,
		       const struct slot_geometry *geometry, uint32_t slots)
{
	struct variant *variant;
	int r = variant_new(stream, conn->request.pipeline, key, geometry, conn->domain, &variant);

	if (r)
		return r;
	r = variant_begin(variant);
	r = r ? r : reserve_begin(variant, slots);
	if (r) {
		variant->pipeline = NULL; /* still conn's */
		variant_free(variant);
		return r;
	}
	conn->request.pipeline = NULL;
	conn->variant = variant;
	give_to_workers(variant);
	return 0;
}

static struct stream *stream_make(struct conn *conn, const struct hash_id *key,
				  const struct slot_geometry *geometry)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->domain = conn->source->domain;
	stream->payer = domain_ref(conn->domain);
	stream->node = conn->node;
	stream->number = ++conn->node->next.id;
	stream->shared.queue_fd = stream->shared.arena_fd = -1;
	stream->shared.numa_node = numa_node_of(&conn->node->machine.numa, conn->pid);
	stream->asked.key = *key;
	stream->geometry = *geometry;
	stream->asked.policy = conn->request.policy;
	memcpy(stream->asked.keep, conn->request.keep, sizeof(stream->asked.keep));
	stream->source = conn->source;
	stream->source->users++;
	cache_init(&stream->cache);
	LIST_INSERT_HEAD(&stream->domain->streams, stream, link);
	return stream;
}

static struct stream *stream_new(struct conn *conn, const struct hash_id *key,
				 const struct hash_id *variant_key)
{
	struct slot_geometry geometry = {0};
	struct admit_plan plan;
	struct diag diag = {"out of memory"};
	struct stream *stream;
	int r = plan_memory(conn, &geometry, &plan, &diag);

	if (r || !(stream = stream_make(conn, key, &geometry))) {
		conn_refuse(conn, r == ADMIT_E_BAD ? OA_E_REFUSED : OA_E_MEMORY, "%s", diag.text);
		return NULL;
	}
	r = stream_build(stream, &plan);
	r = r ? r : add_variant(stream, conn, variant_key, &geometry, plan.slots);
	if (r) {
		diag_set(&diag, "cannot make the stream's memory: %s",
			 strerror(r < 0 ? -r : EINVAL));
		stream_free(stream);
		conn_refuse(conn, OA_E_MEMORY, "%s", diag.text);
		return NULL;
	}
	log_line(LOG_LEVEL_INFO, "stream-open",
		 "queue=%u chunk=%u slots=%u memory=%llu samples=%llu", stream->shared.queue.number,
		 geometry.chunk, plan.slots, (unsigned long long)stream->bytes.all,
		 (unsigned long long)geometry.n_samples);
	reading_attach(&stream->domain->reading, stream->source->id, stream->shared.queue.number,
		       stream->shared.queue_fd, stream->shared.arena_fd);
	return stream;
}

/* He may have lingering streams that nobody would miss. */
static bool may_have_another(struct conn *conn)
{
	uint64_t most = tenant_streams_most(conn->domain);
	char jobs[320];

	while (tenant_streams(conn->domain) >= most && stream_free_idle_of(conn->domain))
		continue;
	if (tenant_streams(conn->domain) < most)
		return true;
	conn_refuse(
	    conn, OA_E_REFUSED,
	    "you have %u streams open, the most that you may have (tenant_streams), for %s: close "
	    "one of them, or ask who runs accessd to raise tenant_streams or tenant.%u.streams",
	    tenant_streams(conn->domain), tenant_tell_jobs(conn->domain, jobs, sizeof(jobs)),
	    (unsigned)conn->domain->tenant);
	return false;
}

/* ---- an existing one ---- */

static bool is_open(const struct stream *stream, const struct hash_id *key)
{
	return stream->state <= STREAM_RUNS && !stream->shared.is_leaving &&
	       memcmp(&stream->asked.key, key, sizeof(*key)) == 0;
}

static struct variant *find_variant(const struct conn *conn, const struct hash_id *stream_key,
				    const struct hash_id *key)
{
	BASE_EACH(stream, &conn->source->domain->streams, link)
		VARIANT_EACH_OPEN(variant, stream)
			if (is_open(stream, stream_key) &&
			    memcmp(&variant->key, key, sizeof(*key)) == 0)
				return variant;
	return NULL;
}

/* Any variant will do for the comparison: those of a stream decode alike. */
static bool decodes_alike(const struct stream *stream, const struct pipeline *pipeline)
{
	const struct variant *any = variant_open_from(stream, 0);

	return any && compare_can_meet(any->pipeline, pipeline);
}

/* A stream that decodes the same and may have another variant. */
static struct stream *find_kin(struct conn *conn, const struct hash_id *key)
{
	const unsigned most = (unsigned)conn->node->param.variants;

	BASE_EACH(stream, &conn->source->domain->streams, link) {
		if (most == 1 || !is_open(stream, key) ||
		    !decodes_alike(stream, conn->request.pipeline))
			continue;
		if (variant_numbers(stream) < most)
			return stream;
		snprintf(conn->apart, sizeof(conn->apart),
			 ": the one that decodes the same has its most pipelines, %u", most);
	}
	return NULL;
}

/* A variant more of the stream. false: there is no room, and why in conn->apart. */
static bool join_kin(struct conn *conn, struct stream *stream, const struct hash_id *key)
{
	struct slot_geometry geometry;
	char why[160] = "is not possible";
	uint32_t slots = 0;
	bool fits;

	stream->users.n_conns++; /* kept while others are freed to make room */
	fits = variant_plan(stream, conn->request.pipeline, &geometry) == 0 &&
	       stream_make_room_for(stream, &geometry, conn->domain, &slots, why, sizeof(why)) &&
	       add_variant(stream, conn, key, &geometry, slots) == 0;
	stream->users.n_conns--;
	if (!fits) {
		snprintf(conn->apart, sizeof(conn->apart), ": to share decode %s", why);
		return false;
	}
	conn->apart[0] = '\0';
	log_line(LOG_LEVEL_INFO, "variant-open", "queue=%u variant=%u slots=%u memory=%llu",
		 stream->shared.queue.number, conn->variant->number, slots,
		 (unsigned long long)stream->bytes.all);
	return true;
}

/* Samples of MDS do not say which columns they have: the data set's option does, which its shards were held against, and the pipeline. */
static bool columns_are_the_same(struct conn *conn)
{
	const char *ours = pipeline_columns(conn->request.pipeline);
	const char *options = strrchr(conn->source->path, '?');
	char theirs[COLUMNS_MOST];

	if (!scan_option(options ? options + 1 : "", "columns", theirs, sizeof(theirs)) ||
	    strcmp(theirs, ours ? ours : "") == 0)
		return true;
	if (*theirs)
		conn_refuse(conn, OA_E_PIPELINE,
			    "pipeline: its \"columns\" are %.150s, and the data set's are %.200s "
			    "(?columns=): give the first op \"members\" and these as \"columns\"",
			    ours ? ours : "none", theirs);
	else
		conn_refuse(conn, OA_E_PIPELINE,
			    "pipeline: its members are columns of MDS shards: open these with "
			    "?columns=%.300s",
			    ours);
	return false;
}

/* Sets conn->variant; false: refused. */
static bool find_or_make(struct conn *conn)
{
	struct hash_id key, variant_key;
	struct stream *kin;

	make_keys(&conn->request, conn->source, &key, &variant_key);
	conn->variant = find_variant(conn, &key, &variant_key);
	if (conn->variant)
		return true;
	kin = find_kin(conn, &key);
	if (kin && join_kin(conn, kin, &variant_key))
		return true;
	return may_have_another(conn) && stream_new(conn, &key, &variant_key);
}

void stream_request(struct conn *conn)
{
	struct stream *stream;

	conn->apart[0] = '\0';
	if (!columns_are_the_same(conn) || !find_or_make(conn))
		return;
	stream = conn->variant->stream;
	loop_timer_stop(stream->linger_timer);
	variant_ref(conn->variant);
	stream->users.n_conns++;
	conn->stream = stream;
	conn->state = CONN_WAITS_STREAM;
	if (stream->state == STREAM_RUNS && conn->variant->state == VARIANT_RUNS)
		conn_stream_ready(conn);
}

/* ---- starting ---- */

/* Lets every connection that waits for the stream try, in a turn of its own; some may go on waiting. */
static void tell_waiting(struct stream *stream)
{
	BASE_EACH(conn, &stream->node->clients.list, link)
		if (conn->stream == stream && conn->state == CONN_WAITS_STREAM &&
		    conn->variant->state == VARIANT_RUNS)
			prepare_soon(conn);
}

void stream_settle(struct stream *stream)
{
	variant_settle(stream);
	cache_settle(stream);
	if (stream->state == STREAM_OPENING && stream->shared.is_attached && stream->slots)
		stream->state = STREAM_RUNS;
	if (stream->state != STREAM_RUNS)
		return;
	tell_waiting(stream);
	stream_turn_soon(stream);
}

void stream_workers_added(struct domain *domain, uint32_t queue, uint64_t number)
{
	struct stream *stream = stream_of_queue(domain, queue);
	struct variant *variant = stream ? variant_of(stream, number) : NULL;

	if (!variant || variant->is_mapped || variant->state != VARIANT_OPENING ||
	    stream->state > STREAM_RUNS)
		return;
	if (slots_seal(variant->slots_fd)) {
		variant_fail(variant, OA_E_REFUSED, "the kernel refuses to seal the slots' memory");
		return;
	}
	variant->is_mapped = true;
	workers_go(&domain->workers, queue);
	stream_settle(stream);
}

void stream_variant_removed(struct domain *domain, uint32_t queue, uint64_t number)
{
	struct stream *stream = stream_of_queue(domain, queue);
	struct variant *variant = stream ? variant_of(stream, number) : NULL;

	if (variant)
		variant_removed(variant);
}

void stream_queue_attached(struct domain *domain, uint32_t queue)
{
	struct stream *stream = stream_of_queue(domain, queue);

	if (!stream)
		return;
	stream->shared.is_attached = true;
	if (stream->state == STREAM_RUNS)
		doorbell_ring_all(domain->doorbell);
	stream_settle(stream);
}

void stream_read_failed(struct domain *domain, uint32_t queue, uint64_t row, uint64_t task,
			uint64_t sample)
{
	struct stream *stream = stream_of_queue(domain, queue);

	if (!stream || stream->state != STREAM_RUNS)
		return;
	fill_read_failed(stream, row, task, sample);
	stream_turn_soon(stream);
}

void stream_queue_refused(struct domain *domain, uint32_t queue, const char *text)
{
	struct stream *stream = stream_of_queue(domain, queue);

	if (stream)
		stream_fail(stream, OA_E_REFUSED, text);
}

void stream_variant_refused(struct domain *domain, uint32_t queue, uint64_t number,
			    const char *text)
{
	struct stream *stream = stream_of_queue(domain, queue);
	struct variant *variant = stream ? variant_of(stream, number) : NULL;

	if (variant_is_open(variant))
		variant_fail(variant, OA_E_REFUSED, text);
}

/* ---- its processes begin again ---- */

/* What was asked for while there was no parent. */
void stream_workers_started(struct domain *domain)
{
	BASE_EACH(stream, &domain->streams, link)
		VARIANT_EACH_OPEN(variant, stream)
			if (stream->state == STREAM_OPENING && !variant->is_mapped)
				give_to_workers(variant);
}

static void source_reopened(struct source *source)
{
	BASE_EACH(stream, &source->domain->streams, link)
		if (stream->source == source && stream->state <= STREAM_RUNS &&
		    !stream->shared.is_leaving)
			reading_attach(&source->domain->reading, source->id,
				       stream->shared.queue.number, stream->shared.queue_fd,
				       stream->shared.arena_fd);
}

static void source_failed(struct source *source, const char *text)
{
	BASE_EACH_LEAVING(stream, &source->domain->streams, link)
		if (stream->source == source)
			stream_fail(stream, OA_E_DATASET, text);
}

const struct source_calls streams_source_calls = {.reopened = source_reopened,
						  .failed = source_failed};

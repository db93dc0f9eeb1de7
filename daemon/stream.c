/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: made for the first job that asks, shared by all who ask for the same.
 *
 * The key is the hash of path, dataset version, pipeline (canonical text and pixel version) and
 * policy: jobs with the same key read the same bytes. A new stream's slots are mapped writable by
 * the worker parent first and sealed only then (FUTURE_WRITE), so the order of steps is fixed: ADD,
 * ADDED, seal, GO. From the seal on nobody can map them writable, not even this process. How it ends:
 * stream_end.c.
 */
#include "daemon/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/admit.h"
#include "daemon/conn.h"
#include "daemon/job.h"
#include "daemon/node.h"
#include "daemon/pump.h"
#include "daemon/source.h"
#include "libaccess/libaccess.h"
#include "pipeline/pipeline.h"

_Static_assert((int)PIPELINE_U8 == (int)LAYOUT_U8 && (int)PIPELINE_I64 == (int)LAYOUT_I64 &&
		   (int)PIPELINE_BF16 == (int)LAYOUT_BF16,
	       "one numbering of dtypes");
_Static_assert((int)PIPELINE_FAIL_OP == (int)LAYOUT_FAIL_OP, "one numbering of failures");

struct stream *stream_of_lane(struct domain *domain, uint32_t lane)
{
	struct stream *stream;

	LIST_FOREACH(stream, &domain->streams, link)
	if (stream->lane.number == lane && !stream->removing)
		return stream;
	return NULL;
}

static void make_key(const struct request *request, const struct source *source,
		     struct hash_id *ret)
{
	struct hash_id pipeline;
	struct hash *hash;

	if (hash_new(&hash)) {
		memset(ret, 0, sizeof(*ret));
		return;
	}
	pipeline_hash(request->pipeline, &pipeline);
	hash_add(hash, source->path, strlen(source->path) + 1);
	hash_add(hash, dataset_version(source->dataset), sizeof(struct hash_id));
	hash_add(hash, &pipeline, sizeof(pipeline));
	hash_add_u64(hash, request->policy);
	hash_finish(hash, ret);
	hash_free(hash);
}

/* ---- a new stream ---- */

static uint64_t left_of(uint64_t budget, uint64_t used)
{
	return budget - BASE_MIN(used, budget);
}

/* What is left to the tenant: of the node's budget, and of his share of it. */
static uint64_t free_bytes(const struct domain *payer)
{
	const struct node *node = payer->node;
	uint64_t of_share = left_of(tenant_memory_most(node), tenant_memory(payer));

	return BASE_MIN(left_of(node->memory_budget, node->memory_used), of_share);
}

/* The limit that leaves him so little, and its name. */
static uint64_t limit_of(const struct domain *payer, const char **ret_name)
{
	const struct node *node = payer->node;
	bool is_bound = tenant_is_bound(payer);

	*ret_name = is_bound ? "a user's share, parameter `tenant_memory`" : node->memory_source;
	return is_bound ? tenant_memory_most(node) : node->memory_budget;
}

void stream_account(struct stream *stream, int64_t bytes)
{
	stream->memory = (uint64_t)((int64_t)stream->memory + bytes);
	stream->node->memory_used = (uint64_t)((int64_t)stream->node->memory_used + bytes);
	stream->payer->memory = (uint64_t)((int64_t)stream->payer->memory + bytes);
}

static void describe_fields(const struct pipeline *pipeline, struct board_geometry *geometry)
{
	const struct pipeline_field *from;
	unsigned n = pipeline_fields(pipeline, &from);
	struct layout_field *index = &geometry->field[n];

	for (unsigned i = 0; i < n; i++) {
		struct layout_field *field = &geometry->field[i];

		memcpy(field->name, from[i].name, sizeof(field->name));
		field->dtype = from[i].dtype;
		field->where = LAYOUT_IN_SLOT;
		field->ndim = from[i].ndim;
		memcpy(field->shape, from[i].shape, sizeof(field->shape));
		field->sample_bytes = from[i].bytes;
	}
	strcpy(index->name, "index");
	index->dtype = LAYOUT_I64;
	index->where = LAYOUT_IN_BOARD;
	index->sample_bytes = sizeof(int64_t);
	geometry->n_fields = n + 1;
}

static uint64_t draw_seed(const struct node *node)
{
	uint64_t seed = node->param.seed;

	if (!seed)
		base_random(&seed, sizeof(seed));
	return seed ? seed : 1;
}

static uint64_t draw_first_lap(void)
{
	uint32_t start = 0;

	base_random(&start, sizeof(start));
	return (uint64_t)start << 32;
}

static int plan_memory(const struct conn *conn, struct board_geometry *geometry,
		       struct admit_plan *plan, struct diag *diag)
{
	struct node *node = conn->node;
	const struct request *request = &conn->request;
	const struct dataset *dataset = conn->source->dataset;
	uint64_t n = dataset_count(dataset);
	struct admit_ask ask = {
	    .batch = request->batch,
	    .hand = request->hand ? request->hand : (uint32_t)node->param.hand,
	    .slots = (uint32_t)node->param.slots,
	    .producing = (uint32_t)node->param.producing,
	    .arena = node->param.arena,
	    .mean_bytes = dataset_bytes(dataset) / n,
	    .largest_bytes = dataset_largest(dataset),
	};
	int r;

	geometry->n_samples = n;
	geometry->grain = deal_grain_of(n);
	geometry->seed = draw_seed(node);
	memcpy(geometry->dataset, dataset_version(dataset), sizeof(geometry->dataset));
	describe_fields(request->pipeline, geometry);
	do {
		ask.available = free_bytes(conn->domain);
		ask.budget = limit_of(conn->domain, &ask.source);
		r = admit_stream(&ask, geometry, plan, diag);
	} while (r == ADMIT_E_MEMORY && stream_free_idle(conn->domain));
	return r;
}

/* Unique among all domains: people know a stream by it. */
static uint16_t free_lane_number(struct node *node)
{
	struct domain *domain;
	bool is_used;

	do {
		node->next_lane++;
		is_used = false;
		LIST_FOREACH(domain, &node->domains, link)
		is_used |= stream_of_lane(domain, node->next_lane) != NULL;
	} while (is_used);
	return node->next_lane;
}

static int make_carousel(struct stream *stream)
{
	const struct board_geometry *geometry = &stream->board.geometry;
	struct carousel_config config = {
	    .n = geometry->n_samples,
	    .hand = geometry->hand,
	    .slots = stream->slots,
	    .max_slots = geometry->max_slots,
	    .producing = (uint32_t)stream->node->param.producing,
	    .seed = geometry->seed,
	    .first_lap = draw_first_lap(),
	    .usable_again = !pipeline_is_random(stream->pipeline),
	};

	memcpy(config.version, geometry->dataset, sizeof(config.version));
	return carousel_new(&config, &stream->carousel);
}

static void on_pump(void *arg)
{
	pump_turn(arg);
}

static void on_linger(void *arg)
{
	struct stream *stream = arg;

	if (!stream->n_conns)
		stream_free(stream);
}

/* Jobs get a descriptor that cannot even reserve memory. */
static int reopen_for_reading(int fd, int *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*ret = open(path, O_RDONLY | O_CLOEXEC);
	return *ret < 0 ? -errno : 0;
}

static int make_memory(struct stream *stream, struct board_geometry *geometry,
		       const struct admit_plan *plan)
{
	struct node *node = stream->node;
	int r = board_new(geometry, &stream->board, &stream->board_fd);

	if (!r)
		r = board_slots_new(geometry, &stream->slots_fd);
	if (!r)
		r = reopen_for_reading(stream->slots_fd, &stream->slots_read_fd);
	if (!r)
		r = lane_new(free_lane_number(node), (uint32_t)node->param.producing,
			     geometry->hand, plan->arena_bytes, &stream->lane, &stream->lane_fd,
			     &stream->arena_fd);
	if (!r)
		r = arena_init(&stream->arena, plan->arena_bytes,
			       (uint32_t)node->param.producing * geometry->hand + 1);
	if (r)
		return r;
	stream->fixed_bytes = plan->fixed_bytes;
	stream_account(stream, (int64_t)plan->fixed_bytes);
	return reserve_begin(stream, plan->slots);
}

static int stream_build(struct stream *stream, struct board_geometry *geometry,
			const struct admit_plan *plan)
{
	int r = make_memory(stream, geometry, plan);

	if (!r)
		r = fill_init(stream);
	if (!r)
		r = make_carousel(stream);
	if (!r)
		r = loop_timer_new(stream->node->loop, on_pump, stream, &stream->pump_timer);
	if (!r)
		r = loop_timer_new(stream->node->loop, on_linger, stream, &stream->linger_timer);
	return r;
}

static struct stream *stream_new(struct conn *conn, const struct hash_id *key)
{
	struct board_geometry geometry = {0};
	struct admit_plan plan;
	struct diag diag = {"out of memory"};
	struct stream *stream;
	int r = plan_memory(conn, &geometry, &plan, &diag);

	if (r || !(stream = calloc(1, sizeof(*stream)))) {
		conn_refuse(conn, r == ADMIT_E_BAD ? OA_E_REFUSED : OA_E_MEMORY, diag.text);
		return NULL;
	}
	stream->domain = conn->source->domain;
	stream->payer = domain_ref(conn->domain);
	stream->node = conn->node;
	stream->number = ++conn->node->next_id;
	stream->slots_fd = stream->slots_read_fd = stream->board_fd = stream->lane_fd =
	    stream->arena_fd = -1;
	stream->key = *key;
	memcpy(geometry.stream, key, sizeof(geometry.stream));
	stream->policy = conn->request.policy;
	stream->pipeline = base_take_ptr(conn->request.pipeline);
	stream->source = conn->source;
	stream->source->users++;
	stream->median_us = 1000;
	LIST_INSERT_HEAD(&stream->domain->streams, stream, link);
	r = stream_build(stream, &geometry, &plan);
	if (r) {
		diag_set(&diag, "cannot make the stream's memory: %s",
			 strerror(r < 0 ? -r : EINVAL));
		stream_free(stream);
		conn_refuse(conn, OA_E_MEMORY, diag.text);
		return NULL;
	}
	log_line(LOG_LEVEL_INFO, "stream-open", "lane=%u hand=%u slots=%u memory=%llu samples=%llu",
		 stream->lane.number, geometry.hand, plan.slots, (unsigned long long)stream->memory,
		 (unsigned long long)geometry.n_samples);
	workers_add(&stream->domain->workers, stream);
	reading_attach(&stream->domain->reading, stream->source->id, stream->lane.number,
		       stream->lane_fd, stream->arena_fd);
	return stream;
}

/* He may have lingering streams that nobody would miss. */
static bool may_have_another(struct conn *conn)
{
	uint64_t most = tenant_streams_most(conn->node);
	char text[160];

	while (tenant_streams(conn->domain) >= most && stream_free_idle_of(conn->domain))
		continue;
	if (tenant_streams(conn->domain) < most)
		return true;
	snprintf(text, sizeof(text),
		 "you have %u streams open, the most that a user may have: close one of them, or "
		 "raise tenant_streams of accessd",
		 tenant_streams(conn->domain));
	conn_refuse(conn, OA_E_REFUSED, text);
	return false;
}

void stream_request(struct conn *conn)
{
	struct stream *stream;
	struct hash_id key;

	make_key(&conn->request, conn->source, &key);
	LIST_FOREACH(stream, &conn->source->domain->streams, link)
	if (stream->state <= STREAM_RUNS && !stream->removing &&
	    memcmp(&stream->key, &key, sizeof(key)) == 0)
		break;
	if (!stream && may_have_another(conn))
		stream = stream_new(conn, &key);
	if (!stream)
		return;
	loop_timer_stop(stream->linger_timer);
	stream->n_conns++;
	conn->stream = stream;
	conn->state = CONN_WAITS_STREAM;
	if (stream->state == STREAM_RUNS)
		conn_stream_ready(conn);
}

/* ---- starting ---- */

/* Lets every connection that waits for the stream try; some may go on waiting. */
static void tell_waiting(struct stream *stream)
{
	struct conn *conn, *next;

	for (conn = LIST_FIRST(&stream->node->conns); conn; conn = next) {
		next = LIST_NEXT(conn, link);
		if (conn->stream == stream && conn->state == CONN_WAITS_STREAM)
			conn_stream_ready(conn);
	}
}

static void start_when_ready(struct stream *stream)
{
	if (stream->state != STREAM_OPENING || !stream->workers_ready || !stream->reader_ready ||
	    !stream->slots)
		return;
	stream->state = STREAM_RUNS;
	tell_waiting(stream);
}

void stream_workers_added(struct domain *domain, uint32_t lane)
{
	struct stream *stream = stream_of_lane(domain, lane);
	int r;

	if (!stream || stream->workers_ready || stream->state != STREAM_OPENING)
		return;
	r = board_slots_seal(stream->slots_fd);
	if (r) {
		stream_fail(stream, OA_E_REFUSED, "the kernel refuses to seal the slots' memory");
		return;
	}
	stream->workers_ready = true;
	workers_go(&domain->workers, lane);
	start_when_ready(stream);
}

void stream_lane_attached(struct domain *domain, uint32_t lane)
{
	struct stream *stream = stream_of_lane(domain, lane);

	if (!stream)
		return;
	stream->reader_ready = true;
	if (stream->state == STREAM_RUNS)
		bell_ring_all(domain->bell);
	start_when_ready(stream);
}

void stream_read_failed(struct domain *domain, uint32_t lane, uint64_t block, uint64_t task,
			uint64_t sample)
{
	struct stream *stream = stream_of_lane(domain, lane);

	if (!stream || stream->state != STREAM_RUNS)
		return;
	fill_read_failed(stream, block, task, sample);
	pump_soon(stream);
}

void stream_lane_refused(struct domain *domain, uint32_t lane, const char *text)
{
	struct stream *stream = stream_of_lane(domain, lane);

	if (stream)
		stream_fail(stream, OA_E_REFUSED, text);
}

static int refuse_job(const struct stream *stream, unsigned ranks, struct diag *diag)
{
	const struct board_geometry *geometry = &stream->board.geometry;
	char slot[32], left[32], budget[32];
	const char *name;
	uint64_t most = limit_of(stream->payer, &name);

	base_format_bytes(geometry->slot_stride, slot, sizeof(slot));
	base_format_bytes(free_bytes(stream->payer), left, sizeof(left));
	base_format_bytes(most, budget, sizeof(budget));
	diag_set(
	    diag,
	    "job number %u of this stream needs %u slots of %s each; it has %u and may have %u, "
	    "and %s of the budget of %s (%s) is free: raise `memory` or `slots`",
	    ranks, admit_least_slots(ranks), slot, stream->slots, geometry->max_slots, left, budget,
	    name);
	return STREAM_E_MEMORY;
}

int stream_make_room(struct stream *stream, struct diag *diag)
{
	struct node *node = stream->node;
	const struct board_geometry *geometry = &stream->board.geometry;
	unsigned ranks = stream->n_jobs + 1;
	uint32_t wanted =
	    BASE_MIN(admit_wanted_slots(ranks, (uint32_t)node->param.slots), geometry->max_slots);
	uint32_t least = admit_least_slots(ranks);
	uint32_t paid = stream->reserve.pid ? stream->reserve.to : stream->slots;
	uint64_t affordable;

	do
		affordable = paid + free_bytes(stream->payer) / geometry->slot_stride;
	while (affordable < least && least <= geometry->max_slots &&
	       stream_free_idle(stream->payer));
	wanted = (uint32_t)BASE_MIN((uint64_t)wanted, affordable);
	if (!stream->full && reserve_begin(stream, wanted))
		return refuse_job(stream, ranks, diag);
	if (stream->slots >= least)
		return 0;
	stream->full = false; /* the next job may ask the kernel again */
	return stream->reserve.pid ? STREAM_E_LATER : refuse_job(stream, ranks, diag);
}

void stream_reserved(struct stream *stream, uint32_t slots, bool all_of_them)
{
	stream->full = !all_of_them;
	if (stream->state > STREAM_RUNS)
		return;
	stream->slots += slots;
	if (!stream->slots || carousel_add_slots(stream->carousel, slots)) {
		stream_fail(stream, OA_E_MEMORY,
			    "the kernel has no memory for the stream's slots: "
			    "lower `memory`, or raise the cgroup's limit");
		return;
	}
	start_when_ready(stream);
	if (stream->state == STREAM_RUNS) {
		tell_waiting(stream);
		pump_soon(stream);
	}
}

/* ---- its processes begin again ---- */

/* What was asked for while there was no parent. */
void stream_workers_started(struct domain *domain)
{
	struct stream *stream;

	LIST_FOREACH(stream, &domain->streams, link)
	if (stream->state == STREAM_OPENING && !stream->workers_ready)
		workers_add(&domain->workers, stream);
}

void stream_source_reopened(struct source *source)
{
	struct stream *stream;

	LIST_FOREACH(stream, &source->domain->streams, link)
	if (stream->source == source && stream->state <= STREAM_RUNS && !stream->removing)
		reading_attach(&source->domain->reading, source->id, stream->lane.number,
			       stream->lane_fd, stream->arena_fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/net/status_stream.h"

#include <stdio.h>

#include "base/json.h"
#include "daemon/cache/cache.h"
#include "daemon/net/conn.h"
#include "daemon/proc/reserve.h"
#include "daemon/serve/job.h"
#include "daemon/serve/pump.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/domain.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/compare.h"
#include "shmring/inbox.h"

static const char *const stages[] = {
    [LAYOUT_STAGE_NONE] = "none",         [LAYOUT_STAGE_SCAN] = "scan",
    [LAYOUT_STAGE_READ] = "read",         [LAYOUT_STAGE_DECODE] = "decode",
    [LAYOUT_STAGE_SLOT] = "slot",         [LAYOUT_STAGE_WORKERS] = "workers",
    [LAYOUT_STAGE_SCHEDULE] = "schedule", [LAYOUT_STAGE_DRAIN] = "drain",
};
static const char *const policies[] = {"error", "skip", "substitute"};
static const char *const states[] = {"opening", "running", "lost", "failed"};
static const char *const variant_states[] = {"opening", "running", "leaving"};

const char *status_stream_stage(enum layout_stage stage)
{
	return stages[stage];
}

/* ---- a stream ---- */

static const char *stream_waits_on(const struct stream *stream)
{
	for (unsigned i = 0; i < CAROUSEL_MAX_JOBS; i++)
		if (stream->users.job[i] && grant_is_waiting(&stream->users.job[i]->grants))
			return stages[pump_stage_of(stream->users.job[i])];
	return stages[LAYOUT_STAGE_NONE];
}

/* What a variant shares with the stream's first one, and what it does not. */
static void put_difference(struct json_out *out, const struct variant *first,
			   const struct variant *variant)
{
	char shared[96] = "", words[160] = "";

	if (variant != first) {
		compare_shared(variant->pipeline, first->pipeline, shared, sizeof(shared));
		compare_words(variant->pipeline, first->pipeline, words, sizeof(words));
	}
	json_out_member_string(out, "shares", shared);
	json_out_member_string(out, "differs", words);
}

static void put_variants(struct json_out *out, const struct stream *stream)
{
	const struct variant *first = NULL;

	json_out_member_array(out, "variants");
	VARIANT_EACH(variant, stream) {
		if (variant->state == VARIANT_GONE)
			continue;
		first = first ? first : variant;
		json_out_object_begin(out);
		json_out_member_u64(out, "number", variant->number);
		json_out_member_string(out, "state", variant_states[variant->state]);
		json_out_member_string(out, "pipeline", pipeline_canonical(variant->pipeline));
		put_difference(out, first, variant);
		json_out_member_u64(out, "jobs", variant->n_jobs);
		json_out_member_u64(out, "slots", variant->slots);
		json_out_member_bool(out, "huge_pages", reserve_is_huge(variant));
		json_out_member_u64(out, "slot_bytes", variant->table.geometry.slot_stride);
		json_out_member_u64(out, "memory", variant->memory);
		json_out_object_end(out);
	}
	json_out_array_end(out);
}

/* Of the first variant that is there; slot: of all of them. */
static const char *pipeline_of(const struct stream *stream, uint64_t *ret_slot_bytes)
{
	const char *text = NULL;

	*ret_slot_bytes = 0;
	VARIANT_EACH(variant, stream) {
		if (variant->state == VARIANT_GONE)
			continue;
		text = text ? text : pipeline_canonical(variant->pipeline);
		*ret_slot_bytes += variant->table.geometry.slot_stride;
	}
	return text ? text : "";
}

/* As its jobs have opened it: where a named one lies is not what they know it by. */
static void put_dataset(struct json_out *out, const struct stream *stream)
{
	char name[NAMED_NAME_MAX + sizeof(PROTO_NAMED)];

	snprintf(name, sizeof(name), PROTO_NAMED "%s", stream->domain->name);
	json_out_member_string(out, "dataset",
			       stream->domain->kind == DOMAIN_NAMED ? name
								    : source_shown(stream->source));
	json_out_member_string(out, "named", stream->domain->name);
}

void status_stream_put(struct json_out *out, const struct stream *stream)
{
	uint64_t slot_bytes;
	const char *pipeline = pipeline_of(stream, &slot_bytes);
	const struct slot_geometry *g = &stream->geometry;
	struct carousel_totals totals;

	carousel_totals(stream->carousel, &totals);
	json_out_object_begin(out);
	json_out_member_u64(out, "id", stream->shared.queue.number);
	json_out_member_string(out, "state", states[stream->state]);
	put_dataset(out, stream);
	json_out_member_bool(out, "public", stream->domain->kind == DOMAIN_PUBLIC);
	json_out_member_string(out, "pipeline", pipeline);
	json_out_member_string(out, "policy", policies[stream->asked.policy]);
	json_out_member_double(out, "numa_node", stream->shared.numa_node);
	json_out_member_u64(out, "samples", g->n_samples);
	JSON_OUT_MEMBERS(out, g, chunk, block);
	json_out_member_u64(out, "slots", stream->slots);
	json_out_member_u64(out, "slots_max", g->max_slots);
	json_out_member_u64(out, "slot_bytes", slot_bytes);
	json_out_member_u64(out, "memory", stream->bytes.all);
	JSON_OUT_MEMBERS(out, &totals, resident, pinned);
	json_out_member_u64(out, "producing", fill_active(stream->fill));
	json_out_member_u64(out, "jobs", stream->users.n_jobs);
	json_out_member_u64(out, "productions", totals.productions);
	JSON_OUT_MEMBERS(out, &stream->share, held, read_held);
	JSON_OUT_MEMBERS(out, &totals, outputs, reference);
	json_out_member_u64(out, "samples_read", stream->figures.samples_read);
	json_out_member_u64(out, "chunks_per_epoch", (g->n_samples + g->chunk - 1) / g->chunk);
	json_out_member_u64(out, "bad_samples", stream->bad.count);
	json_out_member_u64(out, "samples_filtered", stream->figures.samples_filtered);
	json_out_member_double(out, "median_us", stream->made.median_us[stream->made.variants]);
	json_out_member_string(out, "waiting_on", stream_waits_on(stream));
	put_variants(out, stream);
	cache_describe(stream, out);
	json_out_object_end(out);
}

/* ---- a job ---- */

static void put_place_in_plan(struct json_out *out, const struct job *job)
{
	struct carousel_job_view view;

	carousel_job(job->stream->carousel, job->number, base_now_ns(), &view);
	JSON_OUT_MEMBERS(out, &view, epoch, population, taken, need);
	json_out_member_u64(out, "untaken", view.coming);
	JSON_OUT_MEMBERS(out, &view, pins, lives, hungry);
}

static void put_stages(struct json_out *out, const uint64_t *by_stage_ns)
{
	for (unsigned i = LAYOUT_STAGE_SCAN; i < WAITS_STAGES; i++)
		json_out_member_double(out, stages[i], (double)by_stage_ns[i] / 1e9);
}

/* The sample that keeps it waiting though what lies behind is there. */
static void put_late(struct json_out *out, const struct job *job)
{
	uint64_t sample;

	if (!job->waits.is_late || !pump_is_late(job->stream, job, &sample))
		return;
	json_out_member_object(out, "late");
	json_out_member_u64(out, "sample", sample);
	json_out_member_string(out, "name", dataset_name_of(job->stream->source->dataset, sample));
	json_out_object_end(out);
}

/* Lately, and since it is there. */
static void put_waits(struct json_out *out, const struct job *job)
{
	struct waits_view view;

	waits_look(&job->waits, base_now_ns(), &view);
	json_out_member_double(out, "waiting_seconds", (double)view.waiting_ns / 1e9);
	json_out_member_object(out, "waits");
	json_out_member_double(out, "window_seconds", (double)view.window_ns / 1e9);
	put_stages(out, view.by_stage);
	json_out_object_end(out);
	json_out_member_object(out, "waited");
	put_stages(out, view.all_ns);
	json_out_object_end(out);
	json_out_member_double(out, "late_seconds", (double)view.late_ns / 1e9);
	put_late(out, job);
}

/* Its part of what was done, and what it would have been alone beyond that. */
void status_stream_account(struct json_out *out, const struct fair_account *account)
{
	json_out_member_double(out, "cpu_seconds_used", account->cpu_ns / 1e9);
	json_out_member_u64(out, "bytes_used", (uint64_t)account->bytes);
	json_out_member_double(out, "cpu_seconds_saved",
			       fair_saved(account->alone_cpu_ns, account->cpu_ns) / 1e9);
	json_out_member_u64(out, "bytes_saved",
			    (uint64_t)fair_saved(account->alone_bytes, account->bytes));
}

void status_stream_job(struct json_out *out, const struct job *job)
{
	const uint64_t now_ns = base_now_ns();
	struct inbox_figures figures;

	inbox_read_figures(job->grants.outbox, &figures);
	json_out_object_begin(out);
	JSON_OUT_MEMBERS(out, job, id, name);
	json_out_member_u64(out, "pid", (uint64_t)job->conn->pid);
	json_out_member_u64(out, "uid", job->conn->uid);
	json_out_member_u64(out, "stream", job->stream->shared.queue.number);
	json_out_member_u64(out, "variant", job->conn->variant->number);
	JSON_OUT_MEMBERS(out, &job->conn->request, rank, ranks);
	json_out_member_u64(out, "batch", job->batch);
	json_out_member_string(out, "order", plan_name(job->order));
	json_out_member_u64(out, "epochs", job->epochs);
	if (job->active)
		put_place_in_plan(out, job);
	json_out_member_bool(out, "active", job->active);
	json_out_member_u64(out, "delivered", figures.samples);
	json_out_member_bool(out, "waiting", grant_is_waiting(&job->grants));
	json_out_member_string(out, "stage", stages[pump_stage_of(job)]);
	json_out_member_double(
	    out, "rate",
	    pace_rate(&job->pace, job->stream->geometry.chunk, figures.samples, now_ns));
	json_out_member_double(out, "idle_seconds", (double)pace_idle_ns(&job->pace, now_ns) / 1e9);
	json_out_member_double(out, "wait_seconds", (double)figures.wait_ns / 1e9);
	put_waits(out, job);
	status_stream_account(out, &job->had.account);
	json_out_object_end(out);
}

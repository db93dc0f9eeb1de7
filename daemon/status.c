/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status: everything that access-ctl, access-bench and access-top show, as one JSON text. It
 * goes to the client in a sealed memfd, so that its size is bounded by memory, not by a message.
 */
#include "daemon/status.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json.h"
#include "daemon/conn.h"
#include "daemon/job.h"
#include "daemon/limits.h"
#include "daemon/node.h"
#include "daemon/pump.h"
#include "daemon/source.h"
#include "daemon/stream.h"
#include "pipeline/pipeline.h"
#include "shmring/inbox.h"

static const char *const stages[] = {
    [LAYOUT_STAGE_NONE] = "none",         [LAYOUT_STAGE_SCAN] = "scan",
    [LAYOUT_STAGE_READ] = "read",         [LAYOUT_STAGE_DECODE] = "decode",
    [LAYOUT_STAGE_SLOT] = "slot",         [LAYOUT_STAGE_WORKERS] = "workers",
    [LAYOUT_STAGE_SCHEDULE] = "schedule", [LAYOUT_STAGE_DRAIN] = "drain",
};
static const char *const policies[] = {"error", "skip", "substitute"};
static const char *const states[] = {"opening", "running", "lost", "failed"};

struct sums {
	uint64_t reference, waits_on_dead;
};

static void add_stream(const struct stream *stream, struct sums *sums)
{
	struct carousel_totals totals;

	carousel_totals(stream->carousel, &totals);
	sums->reference += totals.reference;
	sums->waits_on_dead += totals.waits_on_dead;
}

static void put_node(struct json_out *out, const struct node *node)
{
	const struct node_counters *c = &node->counters;
	struct sums sums = {c->reference, c->waits_on_dead};
	const struct stream *stream;

	LIST_FOREACH(stream, &node->own->streams, link)
	add_stream(stream, &sums);
	json_out_key(out, "node");
	json_out_object_begin(out);
	json_out_member_u64(out, "samples_read", c->samples_read);
	json_out_member_u64(out, "bytes_read", c->bytes_read);
	json_out_member_u64(out, "samples_preprocessed", c->samples_preprocessed);
	json_out_member_u64(out, "hands", c->hands);
	json_out_member_u64(out, "reference", sums.reference);
	json_out_member_u64(out, "waits_on_dead", sums.waits_on_dead);
	json_out_member_u64(out, "bad_samples", c->bad_samples);
	json_out_member_u64(out, "nonsense", c->nonsense);
	json_out_member_double(out, "worker_cpu_seconds",
			       (double)workers_cpu_ns(&node->own->workers) / 1e9);
	json_out_member_double(out, "reader_cpu_seconds",
			       (double)reading_cpu_ns(&node->own->reading) / 1e9);
	json_out_member_double(out, "loop_cpu_seconds", (double)limits_own_cpu_ns() / 1e9);
	json_out_member_u64(out, "rss_bytes", limits_own_rss());
	json_out_member_u64(out, "memory_budget", node->memory_budget);
	json_out_member_string(out, "memory_source", node->memory_source);
	json_out_member_u64(out, "memory_used", node->memory_used);
	json_out_member_u64(out, "workers", node->own->workers.size);
	json_out_member_u64(out, "workers_alive", node->own->workers.alive);
	json_out_member_u64(out, "worker_restarts", c->worker_restarts);
	json_out_member_u64(out, "reader_restarts", c->reader_restarts);
	json_out_member_u64(out, "parent_restarts", c->parent_restarts);
	json_out_member_u64(out, "reader_pid", (uint64_t)node->own->reading.child.pid);
	json_out_member_u64(out, "parent_pid", (uint64_t)node->own->workers.child.pid);
	json_out_member_u64(out, "clients", node->n_conns);
	json_out_member_u64(out, "opens", c->opens);
	json_out_member_u64(out, "refused", c->refused);
	json_out_object_end(out);
}

static const char *stream_waits_on(const struct stream *stream)
{
	for (unsigned i = 0; i < CAROUSEL_MAX_JOBS; i++)
		if (stream->job[i] && grant_is_waiting(&stream->job[i]->grants))
			return stages[pump_stage_of(stream, stream->job[i])];
	return stages[LAYOUT_STAGE_NONE];
}

static void put_stream(struct json_out *out, const struct stream *stream)
{
	const struct board_geometry *g = &stream->board.geometry;
	struct carousel_totals totals;

	carousel_totals(stream->carousel, &totals);
	json_out_object_begin(out);
	json_out_member_u64(out, "id", stream->lane.number);
	json_out_member_string(out, "state", states[stream->state]);
	json_out_member_string(out, "dataset", stream->source->path);
	json_out_member_string(out, "pipeline", pipeline_canonical(stream->pipeline));
	json_out_member_string(out, "policy", policies[stream->policy]);
	json_out_member_u64(out, "samples", g->n_samples);
	json_out_member_u64(out, "hand", g->hand);
	json_out_member_u64(out, "grain", g->grain);
	json_out_member_u64(out, "slots", stream->slots);
	json_out_member_u64(out, "slots_max", g->max_slots);
	json_out_member_u64(out, "slot_bytes", g->slot_stride);
	json_out_member_u64(out, "memory", stream->memory);
	json_out_member_u64(out, "resident", totals.resident);
	json_out_member_u64(out, "pinned", totals.pinned);
	json_out_member_u64(out, "producing", fill_active(stream));
	json_out_member_u64(out, "jobs", stream->n_jobs);
	json_out_member_u64(out, "productions", totals.productions);
	json_out_member_u64(out, "reference", totals.reference);
	json_out_member_u64(out, "samples_read", stream->samples_read);
	json_out_member_u64(out, "hands_per_epoch", (g->n_samples + g->hand - 1) / g->hand);
	json_out_member_u64(out, "bad_samples", stream->bad.count);
	json_out_member_double(out, "median_us", stream->median_us);
	json_out_member_string(out, "waiting_on", stream_waits_on(stream));
	json_out_object_end(out);
}

static void put_place_in_plan(struct json_out *out, const struct job *job)
{
	struct carousel_job_view view;

	carousel_job(job->stream->carousel, job->number, base_now_ns(), &view);
	json_out_member_u64(out, "epoch", view.epoch);
	json_out_member_u64(out, "population", view.population);
	json_out_member_u64(out, "taken", view.taken);
	json_out_member_u64(out, "need", view.need);
	json_out_member_u64(out, "untaken", view.coming);
	json_out_member_u64(out, "pins", view.pins);
	json_out_member_bool(out, "lives", view.lives);
	json_out_member_bool(out, "hungry", view.hungry);
}

static void put_job(struct json_out *out, const struct job *job)
{
	struct inbox_figures figures;

	inbox_read_figures(job->outbox, &figures);
	json_out_object_begin(out);
	json_out_member_u64(out, "id", job->id);
	json_out_member_string(out, "name", job->name);
	json_out_member_u64(out, "pid", (uint64_t)job->conn->pid);
	json_out_member_u64(out, "uid", job->conn->uid);
	json_out_member_u64(out, "stream", job->stream->lane.number);
	json_out_member_u64(out, "batch", job->batch);
	json_out_member_string(out, "order", plan_name(job->order));
	json_out_member_u64(out, "epochs", job->epochs);
	if (job->active)
		put_place_in_plan(out, job);
	json_out_member_bool(out, "active", job->active);
	json_out_member_u64(out, "delivered", figures.samples);
	json_out_member_bool(out, "waiting", grant_is_waiting(&job->grants));
	json_out_member_string(out, "stage", stages[pump_stage_of(job->stream, job)]);
	json_out_member_double(out, "rate", job_rate(job, base_now_ns()));
	json_out_member_double(out, "idle_seconds", (double)job_idle_ns(job, base_now_ns()) / 1e9);
	json_out_member_double(out, "wait_seconds", (double)figures.wait_ns / 1e9);
	json_out_object_end(out);
}

static void put_worker(struct json_out *out, const struct node *node, uint32_t index)
{
	struct inbox_work work;
	bool busy = inbox_work_of(node->own->bell, index, &work);

	json_out_object_begin(out);
	json_out_member_u64(out, "index", index);
	json_out_member_u64(out, "pid", (uint64_t)node->own->workers.worker[index].pid);
	json_out_member_bool(out, "busy", busy);
	json_out_member_u64(out, "stream", busy ? work.lane : 0);
	json_out_member_u64(out, "done", work.done);
	json_out_member_double(out, "busy_seconds", (double)work.busy_ns / 1e9);
	json_out_object_end(out);
}

static void put_all(struct json_out *out, const struct node *node)
{
	const struct stream *stream;
	const struct conn *conn;

	json_out_object_begin(out);
	json_out_member_string(out, "version", PACKAGE_VERSION);
	json_out_member_u64(out, "pid", (uint64_t)getpid());
	json_out_member_double(out, "uptime_s", (double)(base_now_ns() - node->started_ns) / 1e9);
	json_out_member_bool(out, "draining", node->draining);
	put_node(out, node);
	json_out_key(out, "streams");
	json_out_array_begin(out);
	LIST_FOREACH(stream, &node->own->streams, link)
	put_stream(out, stream);
	json_out_array_end(out);
	json_out_key(out, "jobs");
	json_out_array_begin(out);
	LIST_FOREACH(conn, &node->conns, link)
	if (conn->job)
		put_job(out, conn->job);
	json_out_array_end(out);
	json_out_key(out, "workers");
	json_out_array_begin(out);
	for (uint32_t i = 0; i < LAYOUT_MAX_WORKERS; i++)
		if (node->own->workers.worker[i].pid)
			put_worker(out, node, i);
	json_out_array_end(out);
	json_out_object_end(out);
}

static int text_memfd(const char *text, size_t size)
{
	_cleanup_close_ int fd = memfd_create("access-status", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	for (size_t done = 0; fd >= 0 && done < size;) {
		ssize_t n = write(fd, text + done, size - done);

		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	if (fd < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		return -1;
	return base_take_fd(&fd);
}

int status_new(struct node *node)
{
	struct json_out out;
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int fd = -1;

	json_out_init(&out, false);
	put_all(&out, node);
	if (json_out_take(&out, &text, &size) == 0)
		fd = text_memfd(text, size);
	json_out_fini(&out);
	return fd;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status: everything that access-ctl, access-bench and access-top show, as one JSON text. It
 * goes to the client in a sealed memfd, so that its size is bounded by memory, not by a message.
 */
#include "daemon/net/status.h"

#include <unistd.h>

#include "base/json.h"
#include "daemon/cache/stores.h"
#include "daemon/limits.h"
#include "daemon/net/conn.h"
#include "daemon/net/status_stream.h"
#include "daemon/node.h"
#include "daemon/serve/job.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/rights.h"
#include "daemon/tenant/tenant.h"
#include "shmring/inbox.h"

struct sums {
	uint64_t reference, waits_on_dead, reader_ns, worker_ns, delivered;
	unsigned workers, alive;
	pid_t reader, parent; /* of the viewer's domain, 0: none, or several */
};

struct view {
	const struct node *node;
	uid_t uid;
	bool sees_all;
	uint64_t named; /* data sets that are his to use, as rights_named() says */
	uint64_t mark;  /* of streams and domains that a connection of his has */
};

/* ---- who may see what ---- */

static bool shows_domain(const struct view *view, const struct domain *domain)
{
	return view->sees_all || (domain->kind != DOMAIN_PUBLIC && domain->who.uid == view->uid);
}

static bool shows_conn(const struct view *view, const struct conn *conn)
{
	return view->sees_all || conn->uid == view->uid;
}

/* One look at the connections, and none for each stream and worker. */
static void mark_his(struct view *view)
{
	static uint64_t marks;

	view->mark = ++marks;
	BASE_EACH(conn, &view->node->clients.list, link) {
		if (!conn->stream || !shows_conn(view, conn))
			continue;
		conn->stream->domain->mark = view->mark;
		if (conn->job)
			conn->stream->users.mark = view->mark;
	}
}

/* Processes that work for him: his own, and those of shared data that a job of his has. */
static bool shows_processes(const struct view *view, const struct domain *domain)
{
	return domain->mark == view->mark || shows_domain(view, domain);
}

/* One that he shares with others is shown to him, too. */
static bool shows_stream(const struct view *view, const struct stream *stream)
{
	return stream->users.mark == view->mark || shows_domain(view, stream->domain);
}

/* ---- the node ---- */

static void add_stream(const struct stream *stream, struct sums *sums)
{
	struct carousel_totals totals;

	carousel_totals(stream->carousel, &totals);
	sums->reference += totals.reference;
	sums->waits_on_dead += totals.waits_on_dead;
}

static void add_domain(const struct view *view, const struct domain *domain, struct sums *sums)
{
	bool is_first = !sums->workers;

	BASE_EACH(stream, &domain->streams, link)
		add_stream(stream, sums);
	sums->reader_ns += reading_cpu_ns(&domain->reading);
	sums->worker_ns += workers_cpu_ns(&domain->workers);
	if (!shows_processes(view, domain))
		return;
	sums->workers += domain->workers.size;
	sums->alive += domain->workers.alive;
	sums->reader = is_first ? domain->reading.keeper.child.pid : 0;
	sums->parent = is_first ? domain->workers.keeper.child.pid : 0;
}

/* To all jobs, or to those of a domain's user. */
static uint64_t delivered_to(const struct node *node, const struct domain *domain)
{
	uint64_t samples = domain ? domain->had.samples : node->counters.samples_delivered;

	BASE_EACH(conn, &node->clients.list, link)
		if (conn->job && (!domain || conn->domain == domain))
			samples += job_taken(conn->job);
	return samples;
}

/* What jobs had and nobody had to make for them, by what a sample costs here. */
struct saved {
	uint64_t samples;
	double bytes, cpu_s;
};

static struct saved saved_of(const struct node *node, const struct sums *sums)
{
	const struct node_counters *c = &node->counters;
	struct saved saved = {.samples = 0};

	if (sums->delivered <= c->samples_preprocessed || !c->samples_preprocessed)
		return saved;
	saved.samples = sums->delivered - c->samples_preprocessed;
	saved.cpu_s = (double)saved.samples * (double)(sums->worker_ns + sums->reader_ns) / 1e9 /
		      (double)c->samples_preprocessed;
	if (c->samples_read)
		saved.bytes =
		    (double)saved.samples * (double)c->bytes_read / (double)c->samples_read;
	return saved;
}

static struct sums sums_of(const struct view *view)
{
	const struct node *node = view->node;
	struct sums sums = {
	    .reference = node->counters.reference,
	    .waits_on_dead = node->counters.waits_on_dead,
	    .reader_ns = node->counters.ended_reader_ns,
	    .worker_ns = node->counters.ended_worker_ns,
	};

	BASE_EACH(domain, &node->domains, link)
		add_domain(view, domain, &sums);
	sums.delivered = delivered_to(node, NULL);
	return sums;
}

/* Who asks makes the turn that he is answered in: it is not among them yet. */
static void put_loop(struct json_out *out, const struct loop_turns *turns)
{
	json_out_member_object(out, "loop");
	json_out_member_u64(out, "longest_turn_us", turns->wall.ns / 1000);
	json_out_member_string(out, "longest_turn_what", turns->wall.what);
	json_out_member_u64(out, "longest_turn_cpu_us", turns->cpu.ns / 1000);
	json_out_member_string(out, "longest_turn_cpu_what", turns->cpu.what);
	json_out_member_u64(out, "long_turns", turns->n_long);
	json_out_member_u64(out, "long_turns_cpu", turns->n_long_cpu);
	json_out_object_end(out);
}

static void put_node(struct json_out *out, const struct view *view, const struct sums *sums)
{
	const struct node *node = view->node;
	const struct node_counters *c = &node->counters;
	const struct saved saved = saved_of(node, sums);

	json_out_member_object(out, "node");
	json_out_member_u64(out, "samples_delivered", sums->delivered);
	json_out_member_u64(out, "samples_saved", saved.samples);
	json_out_member_u64(out, "bytes_saved", (uint64_t)saved.bytes);
	json_out_member_double(out, "cpu_seconds_saved", saved.cpu_s);
	JSON_OUT_MEMBERS(out, c, samples_read, bytes_read, samples_preprocessed, outputs, chunks,
			 samples_revisited);
	JSON_OUT_MEMBERS(out, sums, reference, waits_on_dead);
	JSON_OUT_MEMBERS(out, c, bad_samples, nonsense);
	json_out_member_double(out, "worker_cpu_seconds", (double)sums->worker_ns / 1e9);
	json_out_member_double(out, "reader_cpu_seconds", (double)sums->reader_ns / 1e9);
	json_out_member_double(out, "loop_cpu_seconds", (double)limits_own_cpu_ns() / 1e9);
	put_loop(out, loop_turns(node->loop));
	machine_describe(&node->machine, out);
	json_out_member_u64(out, "rss_bytes", limits_own_rss());
	memory_describe(&node->memory, out);
	JSON_OUT_MEMBERS(out, c, catalogs, catalogs_apart);
	stores_describe(node, out);
	json_out_member_u64(out, "readers", node->param.readers);
	json_out_member_u64(out, "workers", sums->workers);
	json_out_member_u64(out, "workers_alive", sums->alive);
	json_out_member_u64(out, "worker_restarts", c->restarts.worker);
	json_out_member_u64(out, "reader_restarts", c->restarts.reader);
	json_out_member_u64(out, "parent_restarts", c->restarts.parent);
	json_out_member_u64(out, "reader_pid", (uint64_t)sums->reader);
	json_out_member_u64(out, "parent_pid", (uint64_t)sums->parent);
	json_out_member_u64(out, "clients", node->clients.n);
	json_out_member_u64(out, "watchers", node->watching.n);
	json_out_member_u64(out, "watch_renewals", node->watching.renewals);
	json_out_member_double(out, "watch_cpu_seconds", (double)node->watching.cpu_ns / 1e9);
	JSON_OUT_MEMBERS(out, c, opens, refused);
	json_out_object_end(out);
}

/* What a worker of shared data does for others is not said. */
static bool shows_queue(const struct view *view, struct domain *domain, uint32_t queue)
{
	const struct stream *stream = stream_of_queue(domain, queue);

	return stream && shows_stream(view, stream);
}

static void put_worker(struct json_out *out, const struct view *view, struct domain *domain,
		       uint32_t index)
{
	struct inbox_work work;
	bool busy = inbox_work_of(domain->doorbell, index, &work);
	bool is_shown = busy && shows_queue(view, domain, work.queue);

	json_out_object_begin(out);
	json_out_member_u64(out, "index", index);
	json_out_member_u64(out, "pid", (uint64_t)domain->workers.worker[index].pid);
	json_out_member_u64(out, "uid", domain->who.uid);
	json_out_member_bool(out, "public", domain->kind == DOMAIN_PUBLIC);
	json_out_member_bool(out, "busy", busy);
	json_out_member_u64(out, "stream", is_shown ? work.queue : 0);
	json_out_member_u64(out, "done", work.done);
	json_out_member_double(out, "busy_seconds", (double)work.busy_ns / 1e9);
	json_out_member_u64(out, "gid", domain->who.gid);
	json_out_member_string(out, "named", domain->name);
	json_out_object_end(out);
}

/* ---- tenants ---- */

static unsigned jobs_of(const struct domain *domain, bool *ret_any_public)
{
	unsigned n = 0;

	BASE_EACH(conn, &domain->node->clients.list, link)
		if (conn->job && conn->domain == domain) {
			n++;
			*ret_any_public |= conn->stream->domain->kind == DOMAIN_PUBLIC;
		}
	return n;
}

/* The domain of shared data has no share: the tenants who open its streams pay for them. */
static void put_share(struct json_out *out, const struct domain *domain)
{
	bool is_public = false;

	json_out_member_u64(out, "jobs", jobs_of(domain, &is_public));
	json_out_member_bool(out, "shares_public", is_public);
	json_out_member_u64(out, "clients", tenant_conns(domain->node, domain->who.uid));
	json_out_member_u64(out, "streams", tenant_streams(domain));
	json_out_member_u64(out, "streams_most", tenant_streams_most(domain));
	json_out_member_u64(out, "memory", tenant_memory(domain).used);
	json_out_member_u64(out, "memory_most", tenant_memory_most(domain));
	if (tenant_jobs_most(domain) != UINT64_MAX)
		json_out_member_u64(out, "jobs_most", tenant_jobs_most(domain));
	json_out_member_u64(out, "share", tenant_share(domain));
	if (tenant_read_most(domain))
		json_out_member_u64(out, "read_bandwidth", tenant_read_most(domain));
}

/* Of samples that are saved, he has as much as he has of those that are delivered. */
static void put_delivered(struct json_out *out, const struct domain *domain,
			  const struct sums *sums)
{
	const struct saved saved = saved_of(domain->node, sums);
	const uint64_t delivered = delivered_to(domain->node, domain);
	const double part = sums->delivered ? (double)delivered / (double)sums->delivered : 0;

	json_out_member_u64(out, "samples_delivered", delivered);
	json_out_member_u64(out, "samples_saved", (uint64_t)(part * (double)saved.samples));
}

static void put_tenant(struct json_out *out, const struct domain *domain, const struct sums *sums)
{
	json_out_object_begin(out);
	JSON_OUT_MEMBERS(out, &domain->who, uid, gid);
	json_out_member_bool(out, "public", domain->kind == DOMAIN_PUBLIC);
	json_out_member_string(out, "named", domain->name);
	if (!domain_is_shared(domain)) {
		put_share(out, domain);
		put_delivered(out, domain, sums);
		status_stream_account(out, &domain->had.account);
	}
	json_out_member_double(out, "reader_cpu_seconds",
			       (double)reading_cpu_ns(&domain->reading) / 1e9);
	json_out_member_double(out, "worker_cpu_seconds",
			       (double)workers_cpu_ns(&domain->workers) / 1e9);
	json_out_member_u64(out, "reader_pid", (uint64_t)domain->reading.keeper.child.pid);
	json_out_member_u64(out, "parent_pid", (uint64_t)domain->workers.keeper.child.pid);
	json_out_member_u64(out, "workers_alive", domain->workers.alive);
	json_out_member_u64(out, "reader_restarts", domain->restarts.reader);
	json_out_member_u64(out, "parent_restarts", domain->restarts.parent);
	json_out_member_u64(out, "worker_restarts", domain->restarts.worker);
	json_out_object_end(out);
}

/* What each domain keeps on the disk. */
static void put_caches(struct json_out *out, const struct view *view)
{
	json_out_member_array(out, "caches");
	BASE_EACH(domain, &view->node->domains, link)
		if (shows_domain(view, domain))
			stores_describe_one(domain, out);
	json_out_array_end(out);
}

/* Where there are to be other nodes. */
static void put_cluster(struct json_out *out, const struct view *view)
{
	static const struct {
		const char *key;
		void (*describe)(const struct carrying *carrying, struct json_out *out);
	} lists[] = {{"channels", carrying_describe},
		     {"refused", carrying_describe_refused},
		     {"lost", carrying_describe_lost}};

	if (!gating_is_on(&view->node->gating))
		return;
	json_out_member_object(out, "cluster");
	gating_describe(&view->node->gating, out);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(lists); i++) {
		json_out_member_array(out, lists[i].key);
		BASE_EACH(domain, &view->node->domains, link)
			if (shows_domain(view, domain))
				lists[i].describe(&domain->carrying, out);
		json_out_array_end(out);
	}
	json_out_object_end(out);
}

/* ---- all of it ---- */

static void put_streams(struct json_out *out, const struct view *view)
{
	json_out_member_array(out, "streams");
	BASE_EACH(domain, &view->node->domains, link)
		BASE_EACH(stream, &domain->streams, link)
			if (shows_stream(view, stream))
				status_stream_put(out, stream);
	json_out_array_end(out);
}

static void put_jobs(struct json_out *out, const struct view *view)
{
	json_out_member_array(out, "jobs");
	BASE_EACH(conn, &view->node->clients.list, link)
		if (conn->job && shows_conn(view, conn))
			status_stream_job(out, conn->job);
	json_out_array_end(out);
}

/* Who has asked for a job and is not served yet; "scan": the dataset is being listed, "slot": its memory
 * is being made. */
static void put_opening(struct json_out *out, const struct view *view)
{
	json_out_member_array(out, "opening");
	BASE_EACH(conn, &view->node->clients.list, link) {
		bool waits_stream = conn->state == CONN_WAITS_STREAM;

		if (conn->job || conn->describes || !conn->request.job || !shows_conn(view, conn) ||
		    (conn->state != CONN_WAITS_SOURCE && !waits_stream))
			continue;
		json_out_object_begin(out);
		json_out_member_string(out, "name", conn->request.job);
		json_out_member_u64(out, "pid", (uint64_t)conn->pid);
		json_out_member_u64(out, "uid", conn->uid);
		json_out_member_string(out, "dataset", conn->request.dataset);
		json_out_member_string(
		    out, "stage",
		    status_stream_stage(waits_stream ? LAYOUT_STAGE_SLOT : LAYOUT_STAGE_SCAN));
		if (conn->state == CONN_WAITS_SOURCE && conn->source && conn->source->folders)
			json_out_member_u64(out, "samples", conn->source->files);
		json_out_object_end(out);
	}
	json_out_array_end(out);
}

static void put_workers(struct json_out *out, const struct view *view)
{
	json_out_member_array(out, "workers");
	BASE_EACH(domain, &view->node->domains, link)
		for (uint32_t i = 0; i < LAYOUT_MAX_WORKERS; i++)
			if (domain->workers.worker[i].pid && shows_processes(view, domain))
				put_worker(out, view, domain, i);
	json_out_array_end(out);
}

static void put_tenants(struct json_out *out, const struct view *view, const struct sums *sums)
{
	json_out_member_array(out, "tenants");
	BASE_EACH(domain, &view->node->domains, link)
		if (domain->kind != DOMAIN_OWN && shows_processes(view, domain))
			put_tenant(out, domain, sums);
	json_out_array_end(out);
}

static unsigned jobs_of_named(const struct node *node, const char *name)
{
	unsigned n = 0;

	BASE_EACH(conn, &node->clients.list, link)
		n += conn->job && strcmp(conn->stream->domain->name, name) == 0;
	return n;
}

/* Those that he may use. */
static void put_datasets(struct json_out *out, const struct view *view)
{
	const struct named_sets *sets = &view->node->param.named;

	json_out_member_array(out, "datasets");
	for (unsigned i = 0; i < sets->n; i++) {
		const bool is_allowed = view->named >> i & 1;

		if (is_allowed || view->sees_all)
			named_describe(&sets->set[i], is_allowed,
				       jobs_of_named(view->node, sets->set[i].name), out);
	}
	json_out_array_end(out);
}

static void put_parameter(void *arg, const char *name, const char *text, uint64_t number)
{
	struct json_out *out = arg;

	if (text)
		json_out_member_string(out, name, text);
	else
		json_out_member_u64(out, name, number);
}

/* A private daemon's, whose user may want others. */
static void put_parameters(struct json_out *out, const struct node *node)
{
	if (!node->place.is_private)
		return;
	json_out_member_object(out, "parameters");
	param_show(&node->param, put_parameter, out);
	json_out_object_end(out);
}

static void put_all(struct json_out *out, const struct view *view)
{
	const struct node *node = view->node;
	const struct sums sums = sums_of(view); /* asks each domain's processes: once */

	json_out_object_begin(out);
	json_out_member_string(out, "version", PACKAGE_VERSION);
	json_out_member_u64(out, "pid", (uint64_t)getpid());
	json_out_member_u64(out, "uid", (uint64_t)geteuid());
	json_out_member_double(out, "uptime_s",
			       (double)(base_now_ns() - node->counters.started_ns) / 1e9);
	json_out_member_bool(out, "draining", node->draining);
	json_out_member_bool(out, "serves_all", node->tenants.serves_all);
	json_out_member_bool(out, "sees_all", view->sees_all);
	json_out_member_bool(out, "share_public", node->tenants.shares);
	json_out_member_string(out, "share_public_why", node->tenants.why_not);
	put_parameters(out, node);
	put_node(out, view, &sums);
	put_streams(out, view);
	put_jobs(out, view);
	put_opening(out, view);
	put_workers(out, view);
	put_tenants(out, view, &sums);
	put_caches(out, view);
	put_cluster(out, view);
	put_datasets(out, view);
	json_out_object_end(out);
}

static int render(struct view *view, char **ret, size_t *ret_size)
{
	struct json_out out;

	mark_his(view);
	json_out_init(&out, false);
	put_all(&out, view);
	return json_out_take(&out, ret, ret_size);
}

int status_render(void *node, const struct watch_who *who, char **ret, size_t *ret_size)
{
	struct view view = {node, who->uid, who->sees_all, who->named, 0};

	return render(&view, ret, ret_size);
}

int status_new(const struct conn *viewer)
{
	struct view view = {viewer->node, viewer->uid, rights_is_admin(viewer),
			    rights_named(viewer), 0};
	_cleanup_free_ char *text = NULL;
	size_t size = 0;

	if (render(&view, &text, &size))
		return -1;
	return base_memfd_of("access-status", text, size);
}

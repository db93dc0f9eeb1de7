/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fairness between streams (sched/fair.h), where their work is begun: in fill_feed(). Each tenant's share
 * of the CPU time goes in equal parts to the streams in production that he has jobs in, and a stream weighs what its tenants' parts
 * add up to. So a tenant gets no more by more streams, jobs or groups, and one that several use
 * is not slowed down by the one of them who has most.
 *
 * What work took is what the kernel's clocks say of a domain's processes. How much of it was for which of the domain's
 * streams, workers say; they can deceive no other domain by that. The same figures, in the same
 * steps, are what each job and tenant is accounted for: a stream's work in equal parts to its jobs.
 *
 * A task that is READY waits for a processor where workers run, or are ready to (one is looked at each time, in turn). A user may
 * stop or slow down his own, and then as large a part of them holds nobody back. Neither does who waits for a
 * disk or for a trainer.
 */
#include "daemon/serve/fill_parts.h"

#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/serve/fill.h"
#include "daemon/serve/job.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"

#define WEIGH_NS UINT64_C(50000000) /* shares are reckoned anew after that */
#define LOOK_NS UINT64_C(5000000)   /* a look at a stream's tasks is good for that long */
#define LOOK_TASKS 128
#define LEAST_DEPTH 16 /* tasks, beside those in work */
#define RETRY_NS UINT64_C(10000000)
#define LEAST_CPUS 0.1
#define CPUS_KEPT 0.98 /* of the most that was had, a tick later */

/* ---- shares ---- */

bool fill_is_busy(const struct stream *stream)
{
	return stream->state == STREAM_RUNS && fill_active(stream->fill) > 0;
}

/* The n-th job's tenant; NULL: there is no such job. */
static struct domain *tenant_of_job(const struct stream *stream, unsigned n)
{
	const struct job *job = stream->users.job[n];

	return job && job->active && job->conn->domain ? tenant_first(job->conn->domain) : NULL;
}

unsigned fill_tenants_of(const struct stream *stream, struct domain *ret[])
{
	unsigned count = 0;

	for (unsigned i = 0; i < CAROUSEL_MAX_JOBS && stream->users.n_jobs; i++) {
		struct domain *tenant = tenant_of_job(stream, i);
		unsigned known = 0;

		while (tenant && known < count && ret[known] != tenant)
			known++;
		if (tenant && known == count)
			ret[count++] = tenant;
	}
	if (!count)
		ret[count++] = tenant_first(stream->payer);
	return count;
}

void fill_count_none(struct node *node)
{
	BASE_EACH(domain, &node->domains, link)
		domain->share.busy = 0;
}

void fill_count(const struct stream *stream)
{
	struct domain *tenants[CAROUSEL_MAX_JOBS];

	for (unsigned n = fill_tenants_of(stream, tenants); n > 0; n--)
		tenants[n - 1]->share.busy++;
}

double fill_weight(const struct stream *stream)
{
	struct domain *tenants[CAROUSEL_MAX_JOBS];
	double weight = 0;

	for (unsigned n = fill_tenants_of(stream, tenants); n > 0; n--)
		weight += (double)tenant_share(tenants[n - 1]) / tenants[n - 1]->share.busy;
	return weight;
}

static void count_busy(struct node *node)
{
	fill_count_none(node);
	node->shares.n_busy = 0;
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link) {
			if (!fill_is_busy(stream))
				continue;
			node->shares.n_busy++;
			fill_count(stream);
		}
}

static void weigh(struct node *node, uint64_t now_ns)
{
	count_busy(node);
	node->shares.weighed_ns = now_ns;
	node->shares.fair.weight = 0;
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link) {
			if (!fill_is_busy(stream))
				continue;
			stream->share.fair.weight = fill_weight(stream);
			node->shares.fair.weight += stream->share.fair.weight;
		}
	fill_disk_weigh(node, now_ns);
}

/* ---- what its processes took, and for whom ---- */

static uint64_t cpu_ns_of(const struct domain *domain)
{
	return workers_cpu_ns(&domain->workers) + reading_cpu_ns(&domain->reading);
}

/* By what its streams' parts of it are told apart: what workers say; where they have finished nothing, the tasks that are under
 * way. */
static double part_of(const struct stream *stream, bool has_worked)
{
	return has_worked ? (double)stream->share.work_us : fill_under_way(stream->fill);
}

static double parts_of(const struct domain *domain, bool has_worked)
{
	double parts = 0;

	BASE_EACH(stream, &domain->streams, link)
		parts += part_of(stream, has_worked);
	return parts;
}

/* What they took when no stream had work (listing, packing) is charged to none. */
static void forget_idle(struct domain *domain, uint64_t now_ns)
{
	if (parts_of(domain, true) > 0 || parts_of(domain, false) > 0)
		return;
	domain->share.settled_ns = BASE_MAX(domain->share.settled_ns, cpu_ns_of(domain));
	domain->share.settled_at_ns = now_ns;
}

void fill_enter(struct stream *stream)
{
	struct node *node = stream->node;
	const uint64_t now_ns = base_now_ns();
	double least_ns = -1;

	forget_idle(stream->domain, now_ns);
	weigh(node, now_ns);
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(other, &domain->streams, link) {
			const double reached_ns =
			    fair_reached(&other->share.fair, fill_under_way(other->fill));

			if (other != stream && fill_is_busy(other) &&
			    (least_ns < 0 || reached_ns < least_ns))
				least_ns = reached_ns;
		}
	fair_enter(&stream->share.fair, least_ns);
	fill_disk_enter(stream);
}

/* ---- what may be begun ---- */

/* Of the first of its tasks that are under way. */
static void look_at_tasks(struct stream *stream, uint64_t now_ns)
{
	uint32_t unread = 0, ready = 0, looks = LOOK_TASKS;

	for (unsigned n = 0; n < LAYOUT_MAX_ROWS; n++) {
		const struct fill *fill = &stream->fill[n];

		for (uint32_t i = fill->watermark;
		     fill->used && !fill->is_ahead && i < fill->fed && looks > 0; i++, looks--) {
			const enum layout_task_state state =
			    queue_task_state(&stream->shared.queue, fill->row, i, NULL);

			ready += state == LAYOUT_TASK_READY;
			unread += !fill->task[i].keep.want &&
				  (state == LAYOUT_TASK_QUEUED || state == LAYOUT_TASK_READING);
		}
	}
	stream->share.waits = ready > 0;
	fair_read_look(&stream->share.reading, unread, ready, now_ns);
}

void fill_look(struct stream *stream, uint64_t now_ns)
{
	if (now_ns - stream->share.looked_ns < LOOK_NS)
		return;
	stream->share.looked_ns = now_ns;
	look_at_tasks(stream, now_ns);
}

static bool competes(struct domain *domain, uint64_t now_ns)
{
	if (now_ns - domain->share.looked_ns >= LOOK_NS) {
		domain->share.looked_ns = now_ns;
		domain->share.competes = workers_compete(&domain->workers);
	}
	return domain->share.competes;
}

static bool waits(struct stream *stream, uint64_t now_ns)
{
	fill_look(stream, now_ns);
	return stream->share.waits && competes(stream->domain, now_ns);
}

/* Enough for reader and workers to be busy until this is asked again, whatever its share. */
static uint32_t depth_left(const struct stream *stream)
{
	const struct node *node = stream->node;
	const uint32_t least =
	    LEAST_DEPTH + 2 * node->machine.workers + (uint32_t)node->param.readers;
	const uint32_t most = BASE_MAX(fair_depth(&stream->share.fair, &node->shares.fair), least);

	return most - BASE_MIN(most, fill_under_way(stream->fill));
}

uint32_t fill_share(struct stream *stream, uint64_t now_ns, uint64_t *ret_until_ns)
{
	struct node *node = stream->node;
	double least_ns = -1;
	uint32_t room;

	if (now_ns - node->shares.weighed_ns >= WEIGH_NS)
		weigh(node, now_ns);
	if (node->shares.n_busy < 2)
		return FAIR_ALL;
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(other, &domain->streams, link) {
			if (other != stream && fill_is_busy(other) && waits(other, now_ns))
				fair_look(&other->share.fair, &least_ns);
		}
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(other, &domain->streams, link)
			if (other != stream && fill_is_busy(other))
				fair_pass(&other->share.fair, &stream->share.fair,
					  &node->shares.fair, least_ns);
	room = fair_room(&stream->share.fair, &node->shares.fair, least_ns);
	stream->share.held += room == 0;
	*ret_until_ns = now_ns + RETRY_NS;
	return BASE_MIN(room, depth_left(stream));
}

/* ---- what it took ---- */

static unsigned jobs_of(const struct stream *stream)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CAROUSEL_MAX_JOBS; i++)
		n += stream->users.job[i] && stream->users.job[i]->conn->domain;
	return n;
}

/* To the stream's jobs, in equal parts, and to their users; who pays has what was made for nobody. */
static void account(struct stream *stream, double cpu_ns, double bytes)
{
	const unsigned n = BASE_MAX(jobs_of(stream), 1u);
	const struct fair_account part = {.cpu_ns = cpu_ns / n, .bytes = bytes / n};
	bool is_shared = false;

	for (unsigned i = 0; i < CAROUSEL_MAX_JOBS; i++) {
		struct job *job = stream->users.job[i];

		if (!job || !job->conn->domain)
			continue;
		is_shared = true;
		job_account(job, part);
	}
	if (!is_shared)
		fair_account_add(&stream->payer->had.account, &part);
}

static void settle_stream(struct stream *stream, double cpu_ns)
{
	const uint64_t bytes = stream->figures.bytes_read - stream->share.settled_bytes;

	fair_settle(&stream->share.fair, fill_samples(stream) - stream->share.settled_samples,
		    fill_under_way(stream->fill), cpu_ns);
	account(stream, cpu_ns, (double)bytes);
	stream->share.settled_samples = fill_samples(stream);
	stream->share.settled_bytes = stream->figures.bytes_read;
	stream->share.work_us = 0;
}

/* CPU time of its processes since it was settled last; where nobody has any work, there is nothing to ask for. It was not more
 * than the processors had, and is left for the next time where a worker that ended is not counted yet. */
static double settle_domain(struct domain *domain, uint64_t now_ns)
{
	const double work_us = parts_of(domain, true);
	const bool has_worked = work_us > 0;
	const double parts = has_worked ? work_us : parts_of(domain, false);
	uint64_t cpu_ns;
	double more_ns;

	if (parts <= 0)
		return 0;
	cpu_ns = cpu_ns_of(domain);
	if (cpu_ns <= domain->share.settled_ns)
		return 0;
	more_ns = BASE_MIN((double)(cpu_ns - domain->share.settled_ns),
			   (double)(now_ns - domain->share.settled_at_ns) *
			       domain->node->machine.limits.mask);
	domain->share.settled_ns = cpu_ns;
	domain->share.settled_at_ns = now_ns;
	BASE_EACH(stream, &domain->streams, link)
		if (part_of(stream, has_worked) > 0)
			settle_stream(stream, more_ns * part_of(stream, has_worked) / parts);
	return more_ns;
}

void fill_settle(struct node *node, uint64_t now_ns)
{
	const double passed_ns = (double)(now_ns - node->shares.settled_ns);
	double cpu_ns = 0, cpus;

	BASE_EACH(domain, &node->domains, link)
		cpu_ns += settle_domain(domain, now_ns);
	cpus =
	    node->shares.settled_ns && passed_ns > 0 ? cpu_ns / passed_ns : node->machine.workers;
	cpus = BASE_MAX(BASE_MIN(cpus, (double)node->machine.workers),
			CPUS_KEPT * node->shares.fair.rate);
	node->shares.fair.rate = BASE_MAX(cpus, LEAST_CPUS);
	if (node->shares.settled_ns)
		fill_disk_tick(node, passed_ns);
	node->shares.settled_ns = now_ns;
}

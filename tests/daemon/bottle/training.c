/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Training runs. Each is a program as one would write it, on libaccess as it is, with a model of what it must be given
 * (model.c). One that is killed goes on from its last token, and its model, too. Ranks of a job go in step.
 */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "daemon/net/conn.h"
#include "daemon/serve/group.h"
#include "daemon/serve/job.h"
#include "tests/daemon/bottle/bottle.h"

#define NEXT_MS 20000
#define HELD 3
#define FORGOTTEN_NS (50 * SECOND) /* accessd keeps a plan that nobody comes back to for a minute */
#define OWED_TURNS 8
#define OWED_NS (20 * MS)

/* ---- sleeping and waking ---- */

static struct training *running; /* whose fiber runs */

static void go(struct training *job)
{
	bool has_ended;

	running = job;
	has_ended = fiber_go(job->fiber);
	running = NULL;
	if (has_ended) {
		fiber_free(job->fiber);
		job->fiber = NULL;
	}
	loop_poke();
}

static void on_wake(void *arg, uint64_t nap, uint64_t unused)
{
	struct training *job = arg;

	(void)unused;
	if (!job->fiber || !job->waits || job->naps != nap)
		return;
	if (job->bottle->clock.now_ns < job->stopped_ns) {
		clock_at(&job->bottle->clock, job->stopped_ns, on_wake, job, nap, 0);
		return;
	}
	job->waits = false;
	go(job);
}

int training_wait(int fd, uint64_t until_ns)
{
	struct training *job = running;

	if (job->is_killed)
		return OA_E_INTERRUPTED;
	job->waits = true;
	job->is_due = false;
	job->fd = fd;
	job->naps++;
	clock_at(&job->bottle->clock, until_ns, on_wake, job, job->naps, 0);
	fiber_wait();
	return job->is_killed ? OA_E_INTERRUPTED : 0;
}

static void nap(uint64_t ns)
{
	training_wait(-1, running->bottle->clock.now_ns + ns);
}

/* It is not the only one that has a processor. */
void training_pause(void)
{
	if (running && bottle_now()->is_wild && bottle_chance(100))
		nap(bottle_chance(2) ? bottle_below(MS) : bottle_below(300 * MS));
}

void training_wake(void)
{
	struct bottle *bottle = bottle_now();
	struct pollfd fds[BOTTLE_JOBS + 2];
	struct training *waits[BOTTLE_JOBS];
	nfds_t n = 0;

	for (unsigned i = 0; i < BOTTLE_JOBS; i++) {
		struct training *job = &bottle->job[i];

		if (!job->fiber || !job->waits || job->fd < 0 || job->is_due)
			continue;
		waits[n] = job;
		fds[n++] = (struct pollfd){.fd = job->fd, .events = POLLIN};
	}
	fds[n] =
	    (struct pollfd){.fd = bottle->reader.pid ? bottle->reader.sock : -1, .events = POLLIN};
	fds[n + 1] =
	    (struct pollfd){.fd = bottle->parent.pid ? bottle->parent.sock : -1, .events = POLLIN};
	if (poll(fds, n + 2, 0) <= 0)
		return;
	if (fds[n].revents)
		reader_call();
	if (fds[n + 1].revents)
		parent_call();
	while (n-- > 0)
		if (fds[n].revents) {
			waits[n]->is_due = true;
			bottle_after(bottle_between(5 * US, 200 * US), on_wake, waits[n],
				     waits[n]->naps, 0);
		}
}

/* ---- beginning anew ---- */

/* What accessd knows of who was where ends with it, and with a stream that is lost. */
static uint64_t era_of(const struct bottle *bottle)
{
	return (uint64_t)bottle->life << 32 | bottle->node->counters.restarts.parent;
}

/* Is it of a job of several ranks, one that is there now? *ret: where that begins. */
static bool is_of_ranks(const struct bottle *bottle, const struct conn *conn, unsigned *ret)
{
	unsigned serial;

	return conn->job && conn->request.ranks > 1 &&
	       sscanf(conn->request.job, "job %u.%u", ret, &serial) == 2 &&
	       bottle->job[*ret].plan.serial == serial && bottle->job[*ret].plan.ranks > 1;
}

static bool has_ranks(const struct bottle *bottle, unsigned leader)
{
	const struct conn *conn;
	unsigned its;
	bool has_one = false;

	LIST_FOREACH(conn, &bottle->node->clients.list, link)
		has_one |= is_of_ranks(bottle, conn, &its) && its == leader;
	return has_one;
}

void troop_begin(struct bottle *bottle, unsigned leader, unsigned ranks)
{
	struct troop *troop = &bottle->troop[leader];
	const bool is_over = bottle->node && troop->is_whole && troop->era == era_of(bottle) &&
			     !has_ranks(bottle, leader);
	const uint64_t over = is_over ? troop->plan : 0;

	for (unsigned i = 0; i < ranks; i++)
		bottle->job[leader + i].life = 0;
	memset(troop, 0, sizeof(*troop));
	troop->over = over;
	troop->with_ns = bottle->clock.now_ns;
}

/* All of a job begin anew, without tokens: those that run are ended. */
static void on_anew(void *arg, uint64_t leader, uint64_t unused)
{
	struct bottle *bottle = arg;
	struct training *first = &bottle->job[leader];

	(void)unused;
	troop_begin(bottle, (unsigned)leader, first->plan.ranks);
	for (unsigned i = 0; i < first->plan.ranks; i++) {
		first[i].token_bytes = 0;
		memset(&first[i].saved, 0, sizeof(first[i].saved));
		if (!first[i].fiber) /* else it does so where it ends */
			first[i].model = first[i].saved;
		fault_kill_rank(&first[i]);
	}
}

/* Ranks that different accessds had last have logs of different lengths. */
static bool has_one_log(const struct training *first)
{
	unsigned life = 0;
	bool is_one = true;

	for (unsigned i = 0; i < first->plan.ranks; i++) {
		if (first[i].is_done || !first[i].life)
			continue;
		is_one &= !life || life == first[i].life;
		life = first[i].life;
	}
	return is_one;
}

/* accessd has had nobody of the job for so long that it may have forgotten the plan: each rank's token would then be the
 * beginning of another one (accessd(8)). It is kept for tokens where ranks may have less of it. */
static bool is_forgotten(const struct training *job)
{
	const struct bottle *bottle = job->bottle;
	const struct training *first = &bottle->job[job->plan.leader];

	return job->plan.ranks > 1 && (!job->token_bytes || has_one_log(first)) &&
	       bottle->clock.now_ns > bottle->troop[job->plan.leader].with_ns + FORGOTTEN_NS;
}

static void look_at_plan(struct bottle *bottle, unsigned leader, const struct conn *conn)
{
	const struct group *group = conn->job->group;
	struct troop *troop = &bottle->troop[leader];
	struct training *first = &bottle->job[leader];

	first[conn->request.rank].life = bottle->life;
	troop->with_ns = bottle->clock.now_ns;
	if (!group)
		return;
	model_join(&first[conn->request.rank], group->plan_log.id);
	memcpy(&troop->plan, group->plan_log.id, sizeof(troop->plan));
	troop->is_whole = bits_count(group->begun, group->ranks) == group->ranks;
	troop->era = era_of(bottle);
	if (troop->over == troop->plan)
		bottle_break("job %u: it began anew, and has the plan of the run before", leader);
}

/* Of jobs of several ranks: whose plan accessd has. */
static void look_who_is_there(struct bottle *bottle)
{
	const struct conn *conn;
	unsigned leader;

	if (!bottle->node)
		return;
	LIST_FOREACH(conn, &bottle->node->clients.list, link)
		if (is_of_ranks(bottle, conn, &leader))
			look_at_plan(bottle, leader, conn);
}

/* accessd has had some turns: who sleeps though a chunk is finished for him was woken. */
void training_check(void)
{
	struct bottle *bottle = bottle_now();

	look_who_is_there(bottle);
	for (unsigned i = 0; i < BOTTLE_JOBS; i++) {
		struct training *job = &bottle->job[i];
		const bool is_owed = job->fiber && job->waits && job->fd >= 0 && !job->is_due &&
				     !job->is_killed && job->stream &&
				     bottle->client->is_owed(job->stream);

		job->owed_turns = is_owed ? job->owed_turns + 1 : 0;
		if (job->owed_turns == 1)
			job->owed_ns = bottle->clock.now_ns;
		if (job->owed_turns > OWED_TURNS && bottle->clock.now_ns > job->owed_ns + OWED_NS)
			bottle_break("job %u sleeps, and nobody has woken it", i);
	}
}

/* ---- a run ---- */

/* It is told that the plan has parted. */
static void heed_refusal(struct training *job, int r)
{
	if (r != OA_E_TOKEN || !job->bottle->may_part)
		return;
	job->bottle->may_part = false;
	bottle_after(0, on_anew, job->bottle, job->plan.leader, 0);
}

static bool open_stream(struct training *job)
{
	const struct job_plan *plan = &job->plan;
	const struct client_calls *client = job->bottle->client;
	struct oa_error error = {.size = sizeof(error)};
	char socket[96], name[32];
	const struct oa_sampler sampler = {
	    .size = sizeof(sampler),
	    .ids = plan->picked.has_weights ? NULL : plan->picked.ids,
	    .n_ids = plan->picked.has_weights ? 0 : plan->picked.n,
	    .weights = plan->picked.has_weights ? plan->picked.weight : NULL,
	    .n_weights = plan->picked.has_weights ? plan->picked.n : 0,
	    .samples = plan->picked.has_weights ? plan->picked.total : 0,
	    .flags = plan->picked.repeats ? OA_REPLACEMENT : 0};
	const struct oa_options options = {.size = sizeof(options),
					   .dataset = "/data",
					   .pipeline = plan->pipeline,
					   .batch = plan->batch,
					   .chunk = plan->chunk,
					   .flags = plan->flags,
					   .epochs = plan->epochs,
					   .job = name,
					   .bad = plan->bad,
					   .bad_budget = 1 << 30,
					   .token = job->token_bytes ? job->token : NULL,
					   .token_size = job->token_bytes,
					   .timeout_ms = NEXT_MS,
					   .order = plan->order,
					   .seed = plan->seed,
					   .reuse = plan->reuse,
					   .ranks = plan->alone_of ? plan->alone_of : plan->ranks,
					   .rank = plan->alone_of ? plan->alone_of - 1 : plan->rank,
					   .sampler = plan->picked.n ? &sampler : NULL};
	int r;

	snprintf(socket, sizeof(socket), "%s/socket", job->bottle->folder);
	snprintf(name, sizeof(name), "job %u.%u", plan->leader, plan->serial);
	r = job->client ? 0 : client->connect(socket, &job->client, &error);
	if (!r)
		r = client->open(job->client, &options, &job->stream, &error);
	bottle_note('o', job->number, (uint64_t)r);
	if (r && job->bottle->is_traced)
		printf("job %u: %s\n", job->number, error.text);
	if (r && !job->plan.saves && strstr(error.text, "comes too late"))
		bottle_after(0, on_anew, job->bottle, job->plan.leader, 0);
	heed_refusal(job, r);
	if (r && !job->is_killed && !job->bottle->is_wild &&
	    job->bottle->clock.now_ns > job->bottle->calm_ns + 20 * SECOND)
		bottle_break("job %u: cannot open: %s", job->number, error.text);
	return r == 0;
}

static void save(struct training *job)
{
	size_t size = sizeof(job->token);

	if (job->bottle->client->state(job->stream, job->token, &size))
		bottle_break("job %u: there is no token", job->number);
	job->token_bytes = size;
	job->saved = job->model;
}

/* What waits for longer than that, where all is well, starves. */
static void check_wait(const struct training *job)
{
	const struct bottle *bottle = job->bottle;
	const uint64_t since_ns = BASE_MAX(job->since_ns, bottle->calm_ns);

	if (!bottle->is_wild && bottle->clock.now_ns > since_ns + 30 * SECOND)
		bottle_break("job %u starves: %s", job->number,
			     bottle->client->error_text(job->stream));
}

/* Gradients are exchanged after each step. */
static void keep_step(struct training *job)
{
	const struct training *first = &job->bottle->job[job->plan.leader];

	for (unsigned i = 0; i < job->plan.ranks; i++)
		while (!job->is_killed && !first[i].is_done &&
		       first[i].model.steps + job->plan.ahead < job->model.steps)
			nap(bottle_between(10 * MS, 100 * MS));
}

/* Until all is delivered, or it is killed. */
static void train(struct training *job)
{
	const struct client_calls *client = job->bottle->client;
	struct oa_batch *held[HELD] = {NULL};
	unsigned at = 0;
	int r;

	for (;;) {
		struct oa_batch *batch;

		job->since_ns = job->bottle->clock.now_ns;
		do {
			r = client->next(job->stream, NEXT_MS, &batch);
			check_wait(job);
		} while (r == OA_E_TIMEOUT && !job->is_killed);
		if (r)
			break;
		model_take(job, batch);
		job->batches++;
		client->release(held[at]);
		held[at] = batch;
		at = (at + 1) % job->plan.holds;
		nap(job->plan.pace_ns / 2 + bottle_below(job->plan.pace_ns + 1));
		keep_step(job);
		if (job->is_killed)
			break;
		if (job->plan.saves && job->model.steps % job->plan.saves == 0)
			save(job);
	}
	heed_refusal(job, r);
	if (r == OA_E_END && !job->is_killed)
		model_end_epoch(job);
	if (r == OA_E_END && !job->is_killed && job->model.epoch + 1 != job->plan.epochs &&
	    !model_may_be_empty(job))
		bottle_break("job %u: the end in epoch %llu", job->number,
			     (unsigned long long)job->model.epoch);
	job->is_done = !job->is_killed &&
		       (r == OA_E_END ||
			(r == OA_E_SAMPLE && (model_may_fail(job) || model_may_be_empty(job))));
	if (r && !job->is_killed && !job->is_done && !job->bottle->is_wild)
		bottle_break("job %u: %d, %s", job->number, r, client->error_text(job->stream));
	for (unsigned i = 0; i < HELD; i++)
		client->release(held[i]);
}

/* Its other ranks never come, and it goes again. */
static void visit(struct training *job)
{
	nap(bottle_between(100 * MS, 20 * SECOND));
	job->is_done = !job->is_killed;
}

/* May it be started again? Where all of a job was killed, the ranks that have a token come first; where nobody has one, that
 * is another run, with another plan. */
static bool may_come(struct training *job)
{
	const struct training *first = &job->bottle->job[job->plan.leader];
	bool has_token = false;

	if (is_forgotten(job)) {
		bottle_after(0, on_anew, job->bottle, job->plan.leader, 0);
		return false;
	}
	if (job->plan.ranks == 1 || job->token_bytes || !job->deaths)
		return true;
	for (unsigned i = 0; i < job->plan.ranks; i++) {
		if (first[i].stream && !first[i].is_killed)
			return true;
		has_token |= first[i].token_bytes && !first[i].is_done;
	}
	if (!has_token)
		troop_begin(job->bottle, job->plan.leader, job->plan.ranks);
	return !has_token;
}

static void run(void *arg)
{
	struct training *job = arg;
	const struct client_calls *client = job->bottle->client;

	if (!job->deaths)
		nap(job->plan.late_ns);
	while (!job->is_killed && !job->is_done) {
		if (may_come(job) && open_stream(job)) {
			if (job->plan.alone_of)
				visit(job);
			else
				train(job);
			client->close(job->stream);
			job->stream = NULL;
		} else {
			nap(bottle_between(MS, SECOND));
		}
		if (!job->is_done)
			job->model = job->saved;
	}
	client->disconnect(job->client);
	job->client = NULL;
	bottle_note('e', job->number, job->is_done);
}

static void on_begin(void *arg, uint64_t a, uint64_t b)
{
	struct training *job = arg;

	(void)a;
	(void)b;
	if (job->is_done)
		return;
	if (job->fiber) { /* it is not buried yet */
		bottle_after(10 * MS, on_begin, job, 0, 0);
		return;
	}
	job->is_killed = false;
	job->fiber = fiber_new(run, job);
	go(job);
}

void training_begin(struct training *job, const struct job_plan *plan)
{
	if (plan)
		*job = (struct training){
		    .bottle = job->bottle, .number = job->number, .plan = *plan, .naps = job->naps};
	on_begin(job, 0, 0);
}

/* Its process is gone: it hangs up, and whatever it held lies as it is until accessd has seen that. */
static void on_buried(void *arg, uint64_t a, uint64_t b)
{
	struct training *job = arg;

	(void)a;
	(void)b;
	if (!job->fiber)
		return;
	go(job);
	if (job->fiber)
		abort(); /* it has slept */
}

void training_kill(struct training *job)
{
	const bool is_over = !job->bottle->node || job->bottle->broken[0];

	if (!job->fiber || job->is_killed)
		return;
	job->is_killed = true;
	job->deaths++;
	job->waits = false; /* its end of the socket wakes it no more */
	if (job->stream)
		job->bottle->client->hang_up(job->stream);
	loop_poke();
	if (is_over)
		on_buried(job, 0, 0);
	else
		clock_at(&job->bottle->clock,
			 BASE_MAX(job->bottle->until_ns, job->bottle->clock.now_ns) + 5 * MS,
			 on_buried, job, 0, 0);
}

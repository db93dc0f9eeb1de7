/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Training runs. Each is a program as one would write it, on libaccess as it is, with a model of what it must be given: each
 * sample of an epoch once, its own bytes, in its order, never one instance twice. One that is killed goes on from its last
 * token, and its model, too.
 */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/daemon/bottle/bottle.h"

#define NEXT_MS 20000
#define HELD 3

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

/* ---- what it must be given ---- */

static bool may_miss(const struct training *job, uint64_t sample)
{
	return job->bottle->is_bad[sample] || job->bottle->is_excused[sample];
}

static void begin_epoch(struct model *model, uint64_t epoch)
{
	model->epoch = epoch;
	model->count = 0;
	model->steps = 0;
	memset(model->has, 0, sizeof(model->has));
}

static void check_epoch(struct training *job)
{
	const struct model *model = &job->model;
	unsigned lost = 0;

	for (unsigned i = 0; i < job->bottle->samples; i++)
		if (!model->has[i] && (job->plan.bad != OA_BAD_SKIP || !may_miss(job, i)))
			lost++;
	if (lost && !(job->plan.flags & OA_DROP_LAST && lost < job->plan.batch))
		bottle_break("job %u: %u samples of epoch %llu never came", job->number, lost,
			     (unsigned long long)model->epoch);
}

static void check_sample(struct training *job, int64_t id, const uint8_t *image, uint64_t label,
			 unsigned *substituted)
{
	const struct bottle *bottle = job->bottle;
	struct model *model = &job->model;
	uint64_t mark[2];

	memcpy(mark, image, sizeof(mark));
	if (id < 0 || (uint64_t)id >= bottle->samples) {
		bottle_break("job %u: there is no sample %lld", job->number, (long long)id);
		return;
	}
	if (model->has[id])
		bottle_break("job %u: sample %lld twice in epoch %llu", job->number, (long long)id,
			     (unsigned long long)model->epoch);
	if (mark[0] != (uint64_t)id &&
	    !(job->plan.bad == OA_BAD_SUBSTITUTE && may_miss(job, (uint64_t)id)))
		bottle_break("job %u: sample %lld has the picture of %llu", job->number,
			     (long long)id, (unsigned long long)mark[0]);
	if (label != (mark[0] >= bottle->samples / 2))
		bottle_break("job %u: sample %lld has label %llu", job->number, (long long)id,
			     (unsigned long long)label);
	model->seen[id] = model->mark[id] == mark[1] ? (uint8_t)(model->seen[id] + 1) : 1;
	if (job->plan.order == OA_ORDER_CAROUSEL && model->seen[id] > job->plan.reuse)
		bottle_break("job %u: sample %lld as it was in %u epochs before", job->number,
			     (long long)id, job->plan.reuse);
	*substituted += mark[0] != (uint64_t)id;
	model->has[id] = true;
	model->mark[id] = mark[1];
	model->count++;
}

/* Behind each sample of a sequence come those behind it, or bad ones were left out. */
static void check_order(struct training *job, const struct oa_batch_info *info, int64_t from)
{
	for (uint32_t i = 0; i < info->count; i++) {
		for (; from < info->ids[i]; from++)
			if (job->plan.bad != OA_BAD_SKIP || !may_miss(job, (uint64_t)from))
				bottle_break("job %u: %lld comes before %lld", job->number,
					     (long long)info->ids[i], (long long)from);
		from = info->ids[i] + 1;
	}
}

static int64_t highest(const struct model *model)
{
	int64_t n = BOTTLE_SAMPLES;

	while (n > 0 && !model->has[n - 1])
		n--;
	return n;
}

static void check_batch(struct training *job, const struct oa_batch *batch)
{
	const struct client_calls *client = job->bottle->client;
	struct oa_field image = {.size = sizeof(image)}, label = {.size = sizeof(label)};
	struct oa_batch_info info = {.size = sizeof(info)};
	unsigned substituted = 0;

	client->info(batch, &info);
	client->field(batch, 0, &image);
	client->field(batch, 1, &label);
	if (info.epoch == job->model.epoch + 1) {
		check_epoch(job);
		begin_epoch(&job->model, info.epoch);
	}
	if (info.epoch != job->model.epoch)
		bottle_break("job %u: a batch of epoch %llu in epoch %llu", job->number,
			     (unsigned long long)info.epoch, (unsigned long long)job->model.epoch);
	if (info.count == 0 || info.count > job->plan.batch ||
	    (info.count < job->plan.batch && (!info.is_last || job->plan.flags & OA_DROP_LAST)))
		bottle_break("job %u: a batch of %u samples", job->number, info.count);
	if (job->plan.order == OA_ORDER_SEQUENTIAL)
		check_order(job, &info, highest(&job->model));
	for (uint32_t i = 0; i < info.count && !job->bottle->broken[0]; i++) {
		int64_t its;

		memcpy(&its, (const uint8_t *)label.data + i * (size_t)label.strides[0],
		       sizeof(its));
		check_sample(job, info.ids[i],
			     (const uint8_t *)image.data + i * (size_t)image.strides[0],
			     (uint64_t)its, &substituted);
	}
	if (substituted > info.substituted)
		bottle_break("job %u: %u samples are others, and %u are said to be", job->number,
			     substituted, info.substituted);
	bottle_note('b', job->number, (uint64_t)info.ids[0] << 16 | info.count);
}

/* ---- a run ---- */

static bool open_stream(struct training *job)
{
	const struct job_plan *plan = &job->plan;
	const struct client_calls *client = job->bottle->client;
	struct oa_error error = {.size = sizeof(error)};
	char socket[96], name[16];
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
					   .reuse = plan->reuse};
	int r;

	snprintf(socket, sizeof(socket), "%s/socket", job->bottle->folder);
	snprintf(name, sizeof(name), "job %u", job->number);
	r = job->client ? 0 : client->connect(socket, &job->client, &error);
	if (!r)
		r = client->open(job->client, &options, &job->stream, &error);
	bottle_note('o', job->number, (uint64_t)r);
	if (r && getenv("BOTTLE_TRACE"))
		printf("job %u: %s\n", job->number, error.text);
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

static bool may_fail(const struct training *job, int r)
{
	bool is_any = false;

	for (unsigned i = 0; i < job->bottle->samples; i++)
		is_any |= may_miss(job, i);
	return r == OA_E_SAMPLE && is_any && job->plan.bad == OA_BAD_ERROR;
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
		check_batch(job, batch);
		job->batches++;
		client->release(held[at]);
		held[at] = batch;
		at = (at + 1) % job->plan.holds;
		nap(job->plan.pace_ns / 2 + bottle_below(job->plan.pace_ns + 1));
		if (job->is_killed)
			break;
		if (job->plan.saves && ++job->model.steps % job->plan.saves == 0)
			save(job);
	}
	if (r == OA_E_END && !job->is_killed)
		check_epoch(job);
	if (r == OA_E_END && !job->is_killed && job->model.epoch + 1 != job->plan.epochs)
		bottle_break("job %u: the end in epoch %llu", job->number,
			     (unsigned long long)job->model.epoch);
	job->is_done = !job->is_killed && (r == OA_E_END || may_fail(job, r));
	if (r && !job->is_killed && !job->is_done && !job->bottle->is_wild)
		bottle_break("job %u: %d, %s", job->number, r, client->error_text(job->stream));
	for (unsigned i = 0; i < HELD; i++)
		client->release(held[i]);
}

static void run(void *arg)
{
	struct training *job = arg;
	const struct client_calls *client = job->bottle->client;

	while (!job->is_killed && !job->is_done) {
		if (open_stream(job)) {
			train(job);
			client->close(job->stream);
			job->stream = NULL;
		} else {
			nap(bottle_between(MS, SECOND));
		}
		if (!job->is_done) {
			job->model = job->saved;
		}
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
	job->waits = false;
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
	job->naps++;
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

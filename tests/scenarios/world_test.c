/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ranks of a job under the carousel, against a real accessd. All of them together get each sample of
 * each epoch once, in equally many batches, and what a rank is given at a step is what the job's
 * plan has there, however ranks come, go and come back.
 */

#include "tests/scenarios/trainee.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLES 203
#define CLASSES 4
#define EPOCHS 2
#define MOST_RANKS 8
#define MOST_STEPS 256

static char dataset[PATH_MAX];

struct rank {
	struct oa_stream *stream;
	bool ended;
	unsigned steps;
};

struct world {
	struct oa_client *client;
	struct oa_options options;
	struct rank rank[MOST_RANKS];
	uint32_t count[EPOCHS][SAMPLES];
};

static struct oa_options options_of(uint32_t ranks, uint32_t batch, bool is_random)
{
	struct oa_options options = trainee_options(dataset, batch, EPOCHS);

	options.pipeline = is_random ? "imagenet-train-u8" : "imagenet-eval-u8";
	options.job = "world";
	options.ranks = ranks;
	return options;
}

static void open_rank(struct world *world, uint32_t rank, const void *token, size_t size)
{
	struct oa_options options = world->options;

	options.dataset = dataset;
	options.rank = rank;
	options.token = token;
	options.token_size = size;
	world->rank[rank].stream = rig_open(world->client, &options);
}

static void world_open(struct world *world, const struct oa_options *options, const void *token,
		       size_t size)
{
	world->client = rig_connect();
	world->options = *options;
	memset(world->rank, 0, sizeof(world->rank));
	for (uint32_t rank = 0; rank < options->ranks; rank++)
		open_rank(world, rank, token, size);
}

static void world_close(struct world *world)
{
	for (uint32_t rank = 0; rank < world->options.ranks; rank++)
		oa_close(world->rank[rank].stream);
	oa_disconnect(world->client);
}

static void see(struct world *world, const struct oa_batch *batch)
{
	struct oa_batch_info info = trainee_info(batch);

	ck_assert_uint_lt(info.epoch, EPOCHS);
	if (info.count)
		ck_assert_uint_eq(trainee_count_wrong(batch, SAMPLES, CLASSES), 0);
	for (uint32_t i = 0; i < info.count; i++) {
		ck_assert_int_ge(info.ids[i], 0);
		ck_assert_int_lt(info.ids[i], SAMPLES);
		world->count[info.epoch][info.ids[i]]++;
	}
}

/* One batch of the rank. */
static void step(struct world *world, uint32_t number)
{
	struct rank *rank = &world->rank[number];
	struct oa_batch *batch = rank->ended ? NULL : trainee_next(rank->stream);

	rank->ended = !batch;
	if (!batch)
		return;
	rank->steps++;
	see(world, batch);
	oa_release(batch);
}

/* So many steps of all ranks, or to the end. true: all have ended. */
static bool drive(struct world *world, unsigned steps)
{
	uint32_t ended = 0;

	for (unsigned i = 0; i < steps && ended < world->options.ranks; i++) {
		ended = 0;
		for (uint32_t rank = 0; rank < world->options.ranks; rank++) {
			step(world, rank);
			ended += world->rank[rank].ended;
		}
	}
	return ended == world->options.ranks;
}

static void assert_all_once(const struct world *world)
{
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		for (unsigned i = 0; i < SAMPLES; i++)
			ck_assert_msg(world->count[epoch][i] == 1,
				      "sample %u came %u times in epoch %u", i,
				      world->count[epoch][i], epoch);
}

static void assert_equal_steps(const struct world *world)
{
	for (uint32_t rank = 1; rank < world->options.ranks; rank++)
		ck_assert_uint_eq(world->rank[rank].steps, world->rank[0].steps);
}

static void *token_of(struct oa_stream *stream, size_t *size)
{
	void *token;

	*size = 0;
	oa_state(stream, NULL, size);
	token = malloc(*size);
	ck_assert_int_eq(oa_state(stream, token, size), 0);
	return token;
}

static void begin_with(const char *name, const char *setting)
{
	snprintf(dataset, sizeof(dataset), "%s", rig_pictures(name, SAMPLES, CLASSES, 16));
	rig_start("workers=2", "chunk=16", setting, NULL);
}

static void begin(const char *name)
{
	begin_with(name, NULL);
}

/* ---- together ---- */

START_TEST(all_ranks_together_get_each_sample_once)
{
	static const uint32_t ranks[] = {2, 3, 4, 8};
	static const uint32_t batches[] = {3, 4, 16, 30};

	begin("together");
	for (size_t i = 0; i < BASE_ARRAY_LEN(ranks); i++) {
		struct oa_options options = options_of(ranks[i], batches[i], i % 2);
		struct world world = {.client = NULL};

		world_open(&world, &options, NULL, 0);
		ck_assert(drive(&world, MOST_STEPS));
		assert_all_once(&world);
		assert_equal_steps(&world);
		world_close(&world);
	}
	rig_end();
}
END_TEST

START_TEST(the_last_is_dropped)
{
	struct oa_options options = options_of(3, 8, true);
	struct world world = {.client = NULL};
	unsigned all = 0;

	begin("drop");
	options.flags = OA_DROP_LAST;
	world_open(&world, &options, NULL, 0);
	ck_assert(drive(&world, MOST_STEPS));
	assert_equal_steps(&world);
	ck_assert_uint_eq(world.rank[0].steps, EPOCHS * (SAMPLES / 24));
	for (unsigned i = 0; i < SAMPLES; i++) {
		ck_assert_uint_le(world.count[0][i], 1);
		all += world.count[0][i];
	}
	ck_assert_uint_eq(all, SAMPLES / 24 * 24);
	world_close(&world);
	rig_end();
}
END_TEST

/* Nothing is delivered before the first step, and there is none: another job has all of it to do. */
START_TEST(a_step_is_larger_than_the_epoch)
{
	struct oa_options options = options_of(2, SAMPLES, true);
	struct world world = {.client = NULL};
	void *token;
	size_t size;

	begin("larger");
	options.flags = OA_DROP_LAST;
	world_open(&world, &options, NULL, 0);
	token = token_of(world.rank[1].stream, &size);
	ck_assert(drive(&world, 1));
	world_close(&world);
	options = options_of(1, 7, true);
	world_open(&world, &options, token, size);
	ck_assert(drive(&world, MOST_STEPS));
	assert_all_once(&world);
	world_close(&world);
	free(token);
	rig_end();
}
END_TEST

/* ---- come and go ---- */

/* Rank 2 opens when the others have done an epoch and more; rank 1 has long ended by then. */
START_TEST(a_rank_comes_late)
{
	struct oa_options options = options_of(3, 5, true);
	struct world world = {.client = NULL};

	begin("late");
	world.client = rig_connect();
	world.options = options;
	open_rank(&world, 1, NULL, 0);
	while (!world.rank[1].ended)
		step(&world, 1);
	oa_close(world.rank[1].stream);
	world.rank[1].stream = NULL;
	open_rank(&world, 0, NULL, 0);
	for (int i = 0; i < 20; i++)
		step(&world, 0);
	open_rank(&world, 2, NULL, 0);
	ck_assert(drive(&world, MOST_STEPS));
	assert_all_once(&world);
	assert_equal_steps(&world);
	world_close(&world);
	rig_end();
}
END_TEST

/* What a rank is told over a pipe by one that is killed: the ids of each step. */
struct told {
	uint64_t epoch, step;
	uint32_t count;
	int64_t ids[16];
};

static void tell(int fd, const struct oa_batch *batch)
{
	struct oa_batch_info info = {.size = sizeof(info)};
	struct told told;

	oa_batch_info(batch, &info);
	told = (struct told){.epoch = info.epoch, .step = info.step, .count = info.count};
	memcpy(told.ids, info.ids, info.count * sizeof(told.ids[0]));
	if (write(fd, &told, sizeof(told)) != sizeof(told))
		_exit(9);
}

/* Rank 1 as a process: tells `steps` batches, then holds the next one until it is killed. */
static int start_victim(const struct oa_options *usual, unsigned steps, int fd)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = *usual;
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;
	int pid = fork();

	if (pid)
		return pid;
	options.rank = 1;
	if (oa_connect(rig_host.socket, &client, &error) ||
	    oa_open(client, &options, &stream, &error))
		_exit(8);
	for (unsigned i = 0; oa_next(stream, PATIENCE_MS, &batch) == 0; i++) {
		if (i == steps)
			pause();
		tell(fd, batch);
		oa_release(batch);
	}
	_exit(7);
}

/* It is killed, and begins again without a token: the same batches once more, then the rest. */
START_TEST(a_killed_rank_returns)
{
	struct oa_options options = options_of(2, 8, true);
	struct world world = {.client = NULL};
	struct told told[6];
	int fds[2], pid;

	begin("killed");
	ck_assert_int_eq(pipe(fds), 0);
	pid = start_victim(&options, BASE_ARRAY_LEN(told), fds[1]);
	world.client = rig_connect();
	world.options = options;
	open_rank(&world, 0, NULL, 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(told); i++) {
		ck_assert_int_eq(read(fds[0], &told[i], sizeof(told[i])), sizeof(told[i]));
		step(&world, 0);
	}
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 3; i++)
		step(&world, 0); /* nobody waits for it */
	open_rank(&world, 1, NULL, 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(told); i++) {
		struct oa_batch *batch = trainee_next(world.rank[1].stream);
		struct oa_batch_info info = trainee_info(batch);

		ck_assert_uint_eq(info.epoch, told[i].epoch);
		ck_assert_uint_eq(info.step, told[i].step);
		ck_assert_uint_eq(info.count, told[i].count);
		ck_assert_mem_eq(info.ids, told[i].ids, info.count * sizeof(int64_t));
		world.rank[1].steps++;
		see(&world, batch);
		oa_release(batch);
	}
	ck_assert(drive(&world, MOST_STEPS));
	assert_all_once(&world);
	assert_equal_steps(&world);
	world_close(&world);
	close(fds[0]);
	close(fds[1]);
	rig_end();
}
END_TEST

/* From its own token, with a step of the others between. */
START_TEST(a_rank_returns_with_its_token)
{
	struct oa_options options = options_of(4, 6, true);
	struct world world = {.client = NULL};

	begin("returns");
	world_open(&world, &options, NULL, 0);
	for (unsigned i = 0; i < 7; i++) {
		uint32_t number = i % 4;
		size_t size;
		void *token;

		drive(&world, 2);
		if (i % 2)
			step(&world, number);
		token = token_of(world.rank[number].stream, &size);
		oa_close(world.rank[number].stream);
		for (uint32_t other = 0; other < 4; other++)
			if (other != number && world.rank[other].steps <= world.rank[number].steps)
				step(&world, other);
		open_rank(&world, number, token, size);
		free(token);
	}
	ck_assert(drive(&world, MOST_STEPS));
	assert_all_once(&world);
	world_close(&world);
	rig_end();
}
END_TEST

/* Nobody is left for a moment, and the stream ends with the last rank. From their own tokens they go on with their plan, in any
 * order; without any they are another run. */
START_TEST(all_ranks_are_started_again)
{
	struct oa_options options = options_of(3, 6, true);
	struct world world = {.client = NULL};
	uint32_t plan[SAMPLES];
	size_t size[3] = {0};
	void *token[3] = {NULL};

	begin_with("again", "linger_s=0");
	world_open(&world, &options, NULL, 0);
	drive(&world, 5);
	memcpy(plan, world.count[0], sizeof(plan));
	step(&world, 1);
	for (uint32_t rank = 0; rank < 3 && _i; rank++)
		token[rank] = token_of(world.rank[rank].stream, &size[rank]);
	if (!_i)
		memset(world.count, 0, sizeof(world.count));
	world_close(&world);
	ck_assert(rig_wait_status("streams.0.id", -1, -1));
	world.client = rig_connect();
	memset(world.rank, 0, sizeof(world.rank));
	for (uint32_t rank = 3; rank-- > 0;) {
		open_rank(&world, rank, token[rank], size[rank]);
		free(token[rank]);
	}
	drive(&world, 5);
	ck_assert(_i || memcmp(plan, world.count[0], sizeof(plan)) != 0);
	ck_assert(drive(&world, MOST_STEPS));
	assert_all_once(&world);
	world_close(&world);
	rig_end();
}
END_TEST

/* ---- resumes ---- */

/* An epoch that was delivered before the token is none that ends now. */
START_TEST(epochs_are_counted_from_the_opening_on)
{
	struct oa_options options = options_of(2, 30, true);
	struct world world = {.client = NULL};
	struct oa_stats stats = {.size = sizeof(stats)};
	size_t size;
	void *token;

	begin("counted");
	world_open(&world, &options, NULL, 0);
	drive(&world, 4); /* all of the first epoch */
	token = token_of(world.rank[0].stream, &size);
	world_close(&world);
	world_open(&world, &options, token, size);
	free(token);
	oa_stream_stats(world.rank[0].stream, &stats);
	ck_assert_uint_eq(stats.epochs, 0);
	ck_assert(drive(&world, MOST_STEPS));
	oa_stream_stats(world.rank[0].stream, &stats);
	ck_assert_uint_eq(stats.epochs, 1);
	assert_all_once(&world);
	world_close(&world);
	rig_end();
}
END_TEST

/* Any rank's token after the same step, with any R and B, three times and more an epoch. */
START_TEST(a_job_resumes_with_other_ranks_and_batches)
{
	static const struct {
		uint32_t ranks, batch;
		unsigned steps;
	} lives[] = {{2, 8, 3},  {4, 5, 2}, {1, 7, 4}, {8, 3, 2},  {3, 10, 1},
		     {1, 64, 1}, {2, 5, 9}, {4, 4, 3}, {8, 16, 1}, {2, 9, MOST_STEPS}};
	struct world world = {.client = NULL};
	void *token = NULL;
	size_t size = 0;

	begin("resume");
	for (size_t i = 0; i < BASE_ARRAY_LEN(lives); i++) {
		struct oa_options options = options_of(lives[i].ranks, lives[i].batch, true);
		void *old = token;
		bool ended;

		world_open(&world, &options, token, size);
		ended = drive(&world, lives[i].steps);
		ck_assert(ended == (i + 1 == BASE_ARRAY_LEN(lives)));
		assert_equal_steps(&world);
		token = token_of(world.rank[i % lives[i].ranks].stream, &size);
		free(old);
		world_close(&world);
	}
	free(token);
	assert_all_once(&world);
	rig_end();
}
END_TEST

/* accessd is killed while the ranks are at different steps, some holding a batch. Afterwards its
 * chunks are larger or smaller than those of the plan. */
START_TEST(ranks_outlive_accessd)
{
	static const char *const chunks[] = {"chunk=16", "chunk=5", "chunk=24"};
	struct oa_options options = options_of(4, 6, true);
	struct world world = {.client = NULL};
	struct oa_batch *held;

	begin("outlive");
	world_open(&world, &options, NULL, 0);
	for (unsigned life = 0; life < BASE_ARRAY_LEN(chunks); life++) {
		drive(&world, 3);
		step(&world, 1);
		step(&world, 1);
		step(&world, 3);
		held = trainee_next(world.rank[0].stream);
		ck_assert_ptr_nonnull(held);
		world.rank[0].steps++;
		rig_restart("workers=2", chunks[life], NULL);
		see(&world, held);
		oa_release(held);
		for (uint32_t rank = 4; rank-- > 0;) /* the last first */
			while (world.rank[rank].steps < world.rank[1].steps)
				step(&world, rank);
	}
	ck_assert(drive(&world, MOST_STEPS));
	assert_all_once(&world);
	assert_equal_steps(&world);
	world_close(&world);
	rig_end();
}
END_TEST

/* It finds the plan of the others, though it has no token, or one of before that plan, whether they
 * came back before it or not. */
START_TEST(a_rank_begins_after_a_restart)
{
	struct oa_options options = options_of(2, 6, true), before = options_of(3, 4, true);
	struct world world = {.client = NULL};
	bool comes_first = _i % 2, has_token = _i / 2;
	void *token = NULL;
	size_t size = 0;

	begin("begins");
	if (has_token) {
		world_open(&world, &before, NULL, 0);
		drive(&world, 2);
		token = token_of(world.rank[1].stream, &size);
		world_close(&world);
		memset(world.rank, 0, sizeof(world.rank));
	}
	world.client = rig_connect();
	world.options = options;
	open_rank(&world, 0, token, size);
	for (int i = 0; i < 3; i++)
		step(&world, 0);
	rig_restart("workers=2", "chunk=16", NULL);
	if (!comes_first)
		step(&world, 0);
	open_rank(&world, 1, token, size);
	free(token);
	if (comes_first)
		step(&world, 1);
	ck_assert(drive(&world, MOST_STEPS));
	assert_all_once(&world);
	assert_equal_steps(&world);
	world_close(&world);
	rig_end();
}
END_TEST

/* ---- parts ---- */

/* Two jobs of ranks, one of a random four fifths, one of the rest: together they have all. */
START_TEST(ranks_train_on_a_part_and_validate_on_the_rest)
{
	static struct world both[2];
	struct oa_sampler sampler[2];
	unsigned left = 2;

	begin("parts");
	for (int i = 0; i < 2; i++) {
		struct oa_options options = options_of(i ? 2 : 3, i ? 5 : 6, _i);

		sampler[i] = (struct oa_sampler){
		    .size = sizeof(sampler[i]), .from = i ? 0.8 : 0, .to = i ? 1 : 0.8};
		options.sampler = &sampler[i];
		memset(&both[i], 0, sizeof(both[i]));
		world_open(&both[i], &options, NULL, 0);
	}
	while (left) {
		left = 2;
		for (int i = 0; i < 2; i++)
			left -= drive(&both[i], 1);
	}
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		for (unsigned i = 0; i < SAMPLES; i++)
			both[0].count[epoch][i] += both[1].count[epoch][i];
	assert_all_once(&both[0]);
	ck_assert_uint_le(both[1].rank[0].steps, 2 * 5);
	for (int i = 0; i < 2; i++) {
		assert_equal_steps(&both[i]);
		world_close(&both[i]);
	}
	rig_end();
}
END_TEST

/* Classes, beside a job of the whole: other ranks and batches go on with the token, and accessd is
 * killed in between. */
START_TEST(ranks_of_some_classes_resume)
{
	static const char *const classes[] = {"class_0001", "class_0003"};
	static const struct {
		uint32_t ranks, batch;
		unsigned steps;
	} lives[] = {{2, 8, 3}, {4, 5, 2}, {3, 7, 2}, {8, 3, 2}, {2, 9, MOST_STEPS}};
	struct oa_sampler sampler = {
	    .size = sizeof(sampler), .classes = classes, .n_classes = BASE_ARRAY_LEN(classes)};
	struct oa_options whole = trainee_options(NULL, 10, EPOCHS);
	struct world world = {.client = NULL};
	struct oa_client *client;
	struct oa_stream *other;
	struct trainee_seen seen = {.count = {0}};
	void *token = NULL;
	size_t size = 0;

	begin("classes");
	client = rig_connect();
	whole.dataset = dataset;
	other = rig_open(client, &whole);
	for (size_t i = 0; i < BASE_ARRAY_LEN(lives); i++) {
		struct oa_options options = options_of(lives[i].ranks, lives[i].batch, true);
		void *old = token;

		options.sampler = &sampler;
		world_open(&world, &options, token, size);
		drive(&world, lives[i].steps);
		if (i % 2) {
			rig_restart("workers=2", "chunk=16", NULL);
			drive(&world, 1);
		}
		trainee_train(other, 3, &seen);
		assert_equal_steps(&world);
		token = token_of(world.rank[i % lives[i].ranks].stream, &size);
		free(old);
		world_close(&world);
	}
	world_open(&world, &world.options, token, size); /* after the end */
	ck_assert(drive(&world, 1));
	free(token);
	token = token_of(world.rank[0].stream, &size);
	world_close(&world);
	world_open(&world, &world.options, token, size);
	ck_assert(drive(&world, 1));
	world_close(&world);
	free(token);
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		for (unsigned i = 0; i < SAMPLES; i++)
			ck_assert_uint_eq(world.count[epoch][i], i * CLASSES / SAMPLES % 2);
	trainee_train(other, 0, &seen);
	ck_assert(trainee_saw_all(&seen, SAMPLES, EPOCHS));
	oa_close(other);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- others ---- */

START_TEST(ranks_with_one_number_see_the_same)
{
	struct oa_options options = options_of(2, 7, true);
	struct oa_client *client;
	struct oa_stream *stream[4];
	struct oa_batch *batch[4];
	unsigned steps = 0;

	begin("tensor");
	client = rig_connect();
	for (uint32_t i = 0; i < 4; i++) {
		options.rank = i % 2;
		stream[i] = rig_open(client, &options);
	}
	while ((batch[0] = trainee_next(stream[0]))) {
		for (uint32_t i = 1; i < 4; i++)
			ck_assert_ptr_nonnull(batch[i] = trainee_next(stream[i]));
		for (uint32_t i = 0; i < 2; i++) {
			struct oa_batch_info a = trainee_info(batch[i]);
			struct oa_batch_info b = trainee_info(batch[i + 2]);

			ck_assert_uint_eq(a.count, b.count);
			ck_assert_mem_eq(a.ids, b.ids, a.count * sizeof(int64_t));
		}
		for (uint32_t i = 0; i < 4; i++)
			oa_release(batch[i]);
		steps++;
	}
	ck_assert_uint_eq(steps, EPOCHS * ((SAMPLES + 13) / 14));
	for (uint32_t i = 0; i < 4; i++)
		oa_close(stream[i]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* In step with a job of one rank: what is made serves both. */
START_TEST(ranks_share_with_others)
{
	struct oa_options options = options_of(2, 8, true), alone = options_of(1, 16, true);
	struct world world = {.client = NULL};
	struct trainee_seen seen = {.count = {0}};
	struct oa_stream *other;
	unsigned left = 1;

	begin("share");
	alone.job = "alone";
	world_open(&world, &options, NULL, 0);
	other = rig_open(world.client, &alone);
	while (left) {
		left = trainee_train(other, 1, &seen);
		drive(&world, 1);
	}
	ck_assert(drive(&world, MOST_STEPS));
	assert_all_once(&world);
	ck_assert(trainee_saw_all(&seen, SAMPLES, EPOCHS));
	ck_assert_double_le(rig_status("node.samples_read"), 1.25 * EPOCHS * SAMPLES);
	oa_close(other);
	world_close(&world);
	rig_end();
}
END_TEST

static void refused(struct oa_client *client, const struct oa_options *options, int code,
		    const char *why)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_stream *stream;

	ck_assert_int_eq(oa_open(client, options, &stream, &error), code);
	ck_assert_msg(strstr(error.text, why) != NULL, "%s", error.text);
}

START_TEST(what_cannot_be_is_refused)
{
	struct oa_options options = options_of(2, 8, true);
	struct world world = {.client = NULL};
	size_t size;
	void *token;

	begin("refused");
	world_open(&world, &options, NULL, 0);
	drive(&world, 2);
	token = token_of(world.rank[0].stream, &size);
	options.job = NULL;
	refused(world.client, &options, OA_E_INVALID, "options.job");
	world_close(&world);

	options.job = "world"; /* from the token, while others of the job begin anew */
	world.options = options;
	world_open(&world, &options, NULL, 0);
	options.token = token;
	options.token_size = size;
	refused(world.client, &options, OA_E_TOKEN, "another token");
	free(token);
	world_close(&world);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, all_ranks_together_get_each_sample_once);
	tcase_add_test(tcase, the_last_is_dropped);
	tcase_add_test(tcase, a_step_is_larger_than_the_epoch);
	tcase_add_test(tcase, a_rank_comes_late);
	tcase_add_test(tcase, a_killed_rank_returns);
	tcase_add_test(tcase, a_rank_returns_with_its_token);
	tcase_add_loop_test(tcase, all_ranks_are_started_again, 0, 2);
	tcase_add_test(tcase, epochs_are_counted_from_the_opening_on);
	tcase_add_test(tcase, a_job_resumes_with_other_ranks_and_batches);
	tcase_add_test(tcase, ranks_outlive_accessd);
	tcase_add_loop_test(tcase, a_rank_begins_after_a_restart, 0, 4);
	tcase_add_loop_test(tcase, ranks_train_on_a_part_and_validate_on_the_rest, 0, 2);
	tcase_add_test(tcase, ranks_of_some_classes_resume);
	tcase_add_test(tcase, ranks_with_one_number_see_the_same);
	tcase_add_test(tcase, ranks_share_with_others);
	tcase_add_test(tcase, what_cannot_be_is_refused);
}

int main(void)
{
	return rig_main("world", add);
}

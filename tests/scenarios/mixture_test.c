/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Random mixtures of jobs against real accessds (mixture.h). Each job is a thread, each of its ranks
 * another; where a life ends all ranks stop, the token of one of them goes to all of the next. The
 * seed is always the same but for
 *
 *   ACCESS_TEST_SEED   another seed
 *   ACCESS_TEST_CASE   this case alone, as a failure prints it
 *
 * Threads have no assertions of Check: they leave what they find in a diag.
 */

#include "tests/scenarios/mixture.h"
#include "tests/scenarios/rig.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/token.h"

#define SEED 20260
#define CASES 27 /* with each accessd */
#define RANDOM_SPEC                                                                     \
	"[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":[4,4]},{\"op\":" \
	"\"hflip\"},"                                                                   \
	"{\"op\":\"cast\",\"dtype\":\"u8\"}]"
#define EVAL_SPEC                                                                             \
	"[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[4,4]},{\"op\":\"cast\",\"dtype\":" \
	"\"u8\"}]"

/* Much room and little, streams that stay and streams that go with their jobs. */
static const struct daemon {
	const char *settings[6]; /* the last ones are NULL */
	unsigned most_ranks; /* at once: each has two pins, and its last life may not be gone yet */
} daemons[] = {
    {{"workers=2", "log_level=warn", "slots=96", "linger_s=0"}, 24},
    {{"workers=1", "log_level=warn", "slots=16", "linger_s=10"}, 4},
    {{"workers=2", "log_level=warn", "slots=64", "linger_s=10", "producing=4"}, 16},
    {{"workers=1", "log_level=warn", "slots=32", "linger_s=0", "producing=1"}, 8},
    {{"workers=2", "log_level=warn", "slots=128", "linger_s=10", "chunk=5"}, 32},
    {{"workers=1", "log_level=warn", "slots=16", "linger_s=0", "producing=3"}, 4},
    {{"workers=2", "log_level=warn", "slots=64", "linger_s=0", "chunk=64"}, 16},
    {{"workers=1", "log_level=warn", "slots=128", "linger_s=10"}, 32},
};

struct job {
	const struct mixture_job *is;
	struct oa_client *client; /* borrowed */
	const char *dataset;      /* borrowed */
	char name[32];            /* by which accessd knows that ranks are of one job */
	struct mixture_ledger ledger;
	void *token;
	size_t token_size;
	struct mixture_place place;
	struct diag failure;
};

struct rank {
	struct job *job;
	const struct mixture_life *life;
	uint32_t number;
	struct oa_stream *stream;
	struct mixture_given given;
	struct diag failure;
};

static atomic_uint batches; /* of all jobs of the case */
static atomic_uint jobs_left;

/* ---- a rank ---- */

/* While accessd is being replaced an opening may find nobody. */
static int open_patiently(struct rank *rank, const struct oa_options *options)
{
	struct oa_error error = {.size = sizeof(error)};
	uint64_t end = base_now_ns() + PATIENCE_NS;
	int r;

	do {
		r = oa_open(rank->job->client, options, &rank->stream, &error);
		if (r == OA_E_UNREACHABLE)
			rig_sleep_ms(20);
	} while (r == OA_E_UNREACHABLE && base_now_ns() < end);
	if (r)
		diag_set(&rank->failure, "oa_open: %s: %s", oa_error_name(r), error.text);
	return r;
}

static int open_rank(struct rank *rank)
{
	const struct mixture_job *job = rank->job->is;
	const struct mixture_life *life = rank->life;
	struct oa_options options = {
	    .size = sizeof(options),
	    .dataset = rank->job->dataset,
	    .pipeline = job->is_random ? RANDOM_SPEC : EVAL_SPEC,
	    .batch = life->batch,
	    .flags =
		(life->copies ? OA_COPY : 0) | (life->drops_last ? OA_DROP_LAST : 0) | OA_POISON,
	    .epochs = job->epochs,
	    .job = rank->job->name,
	    .ranks = life->ranks,
	    .rank = rank->number,
	    .token = rank->job->token,
	    .token_size = rank->job->token_size,
	    .chunk = job->chunk,
	    .order = life->is_brief ? OA_ORDER_USUAL : job->order,
	    .seed = life->is_brief ? 0 : job->seed,
	    .sampler = job->is_half ? &mixture_half : NULL,
	};

	return open_patiently(rank, &options);
}

/* All pixels of a picture have the colour that is its number. */
static bool shows(const struct oa_field *image, uint32_t at, int64_t id)
{
	const uint8_t *pixel = (const uint8_t *)image->data + at * (uint64_t)image->strides[0];
	int64_t channel = image->strides[image->shape[1] == 3 ? 1 : 3];
	uint8_t rgb[3];

	for (int c = 0; c < 3; c++)
		rgb[c] = pixel[c * channel];
	return rig_number_of(rgb) == id;
}

static bool note_batch(struct rank *rank, const struct oa_batch *batch)
{
	struct oa_batch_info info = {.size = sizeof(info)};
	struct oa_field image = {.size = sizeof(image)};

	oa_batch_info(batch, &info);
	if (oa_batch_field(batch, 0, &image) || strcmp(image.name, "image") != 0)
		diag_set(&rank->failure, "the first field is not the image");
	for (uint32_t i = 0; i < info.count && !rank->failure.text[0]; i++)
		if (!shows(&image, i, info.ids[i]))
			diag_set(&rank->failure,
				 "epoch %" PRIu64 " step %" PRIu64 ": not the picture of %" PRId64,
				 info.epoch, info.step, info.ids[i]);
	if (mixture_given_add(&rank->given, &info))
		diag_set(&rank->failure, "out of memory");
	atomic_fetch_add(&batches, 1);
	return !rank->failure.text[0];
}

/* One batch is kept while the next one is taken. */
static void *be_rank(void *arg)
{
	struct rank *rank = arg;
	struct oa_batch *kept = NULL;

	if (open_rank(rank))
		return NULL;
	for (uint32_t step = 0; step < rank->life->steps; step++) {
		struct oa_batch *batch = NULL;
		int r = oa_next(rank->stream, PATIENCE_MS, &batch);

		rank->given.has_ended = r == OA_E_END;
		if (r && r != OA_E_END)
			diag_set(&rank->failure, "oa_next: %s: %s", oa_error_name(r),
				 oa_error_text(rank->stream));
		if (r || !note_batch(rank, batch)) {
			oa_release(batch);
			break;
		}
		oa_release(kept);
		kept = batch;
	}
	oa_release(kept);
	return NULL;
}

/* ---- a job ---- */

static bool take_token(struct job *job, struct oa_stream *stream)
{
	struct token token = {0};
	size_t size = 0;

	oa_state(stream, NULL, &size);
	free(job->token);
	job->token = malloc(size);
	job->token_size = size;
	if (!job->token || oa_state(stream, job->token, &size)) {
		diag_set(&job->failure, "oa_state: %s", oa_error_text(stream));
		return false;
	}
	if (token_parse(job->token, size, &token, &job->failure))
		return false;
	if (plan_is_fixed(job->is->order) && token.seed != job->is->seed) {
		diag_set(&job->failure, "the token has seed %" PRIu64, token.seed);
		return false;
	}
	job->place = (struct mixture_place){token.epoch, token.delivered};
	memcpy(job->ledger.version, token.dataset, sizeof(token.dataset));
	token_fini(&token);
	return true;
}

/* With a fixed plan all ranks that have done the same steps say the same. */
static bool tokens_agree(struct job *job, const struct rank *ranks, uint32_t n)
{
	for (uint32_t r = 0; r < n && plan_is_fixed(job->is->order); r++) {
		uint8_t token[256];
		size_t size = sizeof(token);

		if (oa_state(ranks[r].stream, token, &size) || size != job->token_size ||
		    memcmp(token, job->token, size) != 0) {
			diag_set(&job->failure, "the token of rank %" PRIu32 " is another one", r);
			return false;
		}
	}
	return true;
}

static bool settle_life(struct job *job, const struct mixture_life *life, struct rank *ranks)
{
	struct mixture_given given[MIXTURE_RANKS];
	struct mixture_place from = job->place;

	for (uint32_t r = 0; r < life->ranks; r++) {
		given[r] = ranks[r].given;
		if (ranks[r].failure.text[0]) {
			diag_set(&job->failure, "rank %" PRIu32 ": %.400s", r,
				 ranks[r].failure.text);
			return false;
		}
	}
	return take_token(job, ranks[life->teller].stream) &&
	       tokens_agree(job, ranks, life->ranks) &&
	       mixture_add(&job->ledger, life, given, from, job->place, &job->failure);
}

static bool live(struct job *job, const struct mixture_life *life)
{
	struct rank ranks[MIXTURE_RANKS] = {{.job = NULL}};
	pthread_t threads[MIXTURE_RANKS];
	bool ok;

	for (uint32_t r = 0; r < life->ranks; r++) {
		ranks[r] = (struct rank){.job = job, .life = life, .number = r};
		if (pthread_create(&threads[r], NULL, be_rank, &ranks[r]))
			abort();
	}
	for (uint32_t r = 0; r < life->ranks; r++)
		pthread_join(threads[r], NULL);
	ok = settle_life(job, life, ranks);
	for (uint32_t r = 0; r < life->ranks; r++) {
		oa_close(ranks[r].stream);
		mixture_given_fini(&ranks[r].given);
	}
	return ok;
}

static void *be_job(void *arg)
{
	struct job *job = arg;
	bool ok = true;

	for (unsigned i = 0; i < job->is->n_lives && ok; i++) {
		ok = live(job, &job->is->life[i]);
		if (!ok) {
			struct diag why = job->failure;

			diag_set(&job->failure, "life %u: %.480s", i, why.text);
		}
	}
	if (ok)
		mixture_is_whole(&job->ledger, &job->failure);
	free(job->token);
	atomic_fetch_sub(&jobs_left, 1);
	return NULL;
}

/* ---- a case ---- */

static const char *dataset_path(unsigned i)
{
	const char *path = rig_path("mixture-%u", mixture_samples[i]);

	if (access(path, F_OK) != 0)
		ck_assert_int_eq(rig_write_pictures(path, mixture_samples[i], 1, 8), 0);
	return path;
}

/* The version of a dataset without samples taken of it: of the token of a job that only opens. */
static void learn_versions(struct oa_client *client, const char *const *datasets,
			   uint8_t (*ret)[32])
{
	for (unsigned i = 0; i < MIXTURE_DATASETS; i++) {
		struct oa_options options = {.size = sizeof(options),
					     .dataset = datasets[i],
					     .pipeline = EVAL_SPEC,
					     .batch = 1,
					     .epochs = 1,
					     .order = OA_ORDER_SEQUENTIAL};
		struct oa_stream *stream = rig_open(client, &options);
		struct token token = {0};
		struct diag diag;
		uint8_t data[256];
		size_t size = sizeof(data);

		ck_assert_int_eq(oa_state(stream, data, &size), 0);
		ck_assert_int_eq(token_parse(data, size, &token, &diag), 0);
		memcpy(ret[i], token.dataset, sizeof(token.dataset));
		token_fini(&token);
		oa_close(stream);
	}
}

static void kill_in_the_middle(const struct mixture *mixture, const struct daemon *daemon)
{
	while (atomic_load(&jobs_left) > 0 && atomic_load(&batches) < mixture->kill_after)
		rig_sleep_ms(1);
	rig_restart(daemon->settings[0], daemon->settings[1], daemon->settings[2],
		    daemon->settings[3], daemon->settings[4], NULL);
}

static void run_case(const struct mixture *mixture, const struct daemon *daemon,
		     struct oa_client *client, const char *const *datasets,
		     const uint8_t (*versions)[32])
{
	pthread_t threads[MIXTURE_JOBS];
	static struct job jobs[MIXTURE_JOBS];
	bool failed = false;

	atomic_store(&batches, 0);
	atomic_store(&jobs_left, mixture->n_jobs);
	for (unsigned i = 0; i < mixture->n_jobs; i++) {
		const struct mixture_job *is = &mixture->job[i];

		jobs[i] =
		    (struct job){.is = is, .client = client, .dataset = datasets[is->dataset]};
		jobs[i].ledger.job = is;
		snprintf(jobs[i].name, sizeof(jobs[i].name), "case %" PRIu64 " job %u",
			 mixture->number, i);
		memcpy(jobs[i].ledger.version, versions[is->dataset], 32);
		mixture_begin(&jobs[i].ledger);
		ck_assert_int_eq(pthread_create(&threads[i], NULL, be_job, &jobs[i]), 0);
	}
	if (mixture->kill_after)
		kill_in_the_middle(mixture, daemon);
	for (unsigned i = 0; i < mixture->n_jobs; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < mixture->n_jobs; i++) {
		if (jobs[i].failure.text[0])
			fprintf(stderr, "job %u: %s\n", i, jobs[i].failure.text);
		failed |= jobs[i].failure.text[0];
	}
	if (failed)
		mixture_print(mixture, stderr);
	ck_assert(!failed);
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

START_TEST(any_mixture_gives_each_its_own)
{
	const struct daemon *daemon = &daemons[_i];
	uint64_t seed = number_of("ACCESS_TEST_SEED", SEED);
	uint64_t only = number_of("ACCESS_TEST_CASE", UINT64_MAX);
	uint8_t versions[MIXTURE_DATASETS][32];
	char paths[MIXTURE_DATASETS][PATH_MAX];
	const char *datasets[MIXTURE_DATASETS];
	struct oa_client *client;
	struct mixture mixture;

	if (only != UINT64_MAX && only / CASES != (uint64_t)_i)
		return;
	for (unsigned i = 0; i < MIXTURE_DATASETS; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s", dataset_path(i));
		datasets[i] = paths[i];
	}
	rig_start(daemon->settings[0], daemon->settings[1], daemon->settings[2],
		  daemon->settings[3], daemon->settings[4], NULL);
	client = rig_connect();
	learn_versions(client, datasets, versions);
	for (uint64_t i = 0; i < CASES; i++) {
		mixture_draw(&mixture, seed, (uint64_t)_i * CASES + i, daemon->most_ranks);
		if (only == UINT64_MAX || only == mixture.number)
			run_case(&mixture, daemon, client, datasets,
				 (const uint8_t(*)[32])versions);
	}
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, any_mixture_gives_each_its_own, 0, (int)BASE_ARRAY_LEN(daemons));
}

int main(void)
{
	printf("seed %" PRIu64 ", %zu cases\n", number_of("ACCESS_TEST_SEED", SEED),
	       BASE_ARRAY_LEN(daemons) * CASES);
	fflush(stdout);
	return rig_main("mixture", add);
}

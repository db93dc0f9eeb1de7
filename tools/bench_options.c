/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command line of access-bench, one row an option. What is not said is filled in afterwards:
 * first by --quickstart, then by the defaults, so that an explicit option always wins.
 */

#include "tools/bench.h"

#include "libaccess/libaccess.h"
#include "shmring/proto.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define BENCH_MAX_PIPELINE 16384
#define BENCH_AT(member) offsetof(struct bench_config, member)

static const struct option bench_table[] = {
#define OPTION(name, kind, member, least, most, choices, arg, help) \
	{name, kind, BENCH_AT(member), least, most, choices, arg, help, 0},
#include "tools/bench_options_tbl.h"
#undef OPTION
};

void bench_options_help(FILE *out)
{
	fputs(
	    "Usage: access-bench --dataset DIR [OPTION]...\n"
	    "Runs simulated training jobs against accessd, measures them and checks that each gets "
	    "every\n"
	    "sample of every epoch exactly once. Job i takes value i of a list, which repeats.\n\n",
	    out);
	option_print(bench_table, BASE_ARRAY_LEN(bench_table), out);
	fputs("\nThe exit status is 0 only when every job got every sample exactly once.\n", out);
}

static void bench_list(struct option_list *list, unsigned n, const double *value)
{
	if (list->n > 0)
		return;
	list->n = n;
	memcpy(list->value, value, n * sizeof(*value));
}

/* Four jobs that differ in speed and start, small enough for any machine. */
static void bench_options_quickstart(struct bench_config *config)
{
	static const double step_ms[] = {80, 120, 160, 240}, start_s[] = {0, 1, 2, 3},
			    batch[] = {64};

	if (!config->quickstart)
		return;
	config->private = config->private || !config->socket;
	config->verify = true;
	if (config->jobs == 0)
		config->jobs = 4;
	if (config->epochs == 0)
		config->epochs = 2;
	if (!config->dealt.pipeline.n)
		config->dealt.pipeline =
		    (struct option_texts){.n = 1, .text = {"imagenet-train-u8"}};
	bench_list(&config->dealt.batch, 1, batch);
	bench_list(&config->dealt.step_ms, BASE_ARRAY_LEN(step_ms), step_ms);
	bench_list(&config->dealt.start_s, BASE_ARRAY_LEN(start_s), start_s);
}

/* Such a data set may have a usual pipeline. */
static bool bench_is_named(const char *dataset)
{
	return dataset && proto_is_named(dataset);
}

static void bench_options_default(struct bench_config *config)
{
	static const double batch[] = {256};

	if (config->jobs == 0)
		config->jobs = 1;
	if (config->epochs == 0)
		config->epochs = 1;
	if (config->timeout_s == 0)
		config->timeout_s = 120;
	if (!config->dealt.pipeline.n && !bench_is_named(config->dataset))
		config->dealt.pipeline = (struct option_texts){.n = 1, .text = {"imagenet-train"}};
	bench_list(&config->dealt.batch, 1, batch);
}

/* --pipeline: a file's text, which is kept to the end, if there is such a file, else a name or JSON as
 * it stands. */
static int bench_options_pipeline(const char **pipeline, struct diag *diag)
{
	_cleanup_close_ int fd = open(*pipeline, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t size;
	char *text;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		if (!strchr(*pipeline, '/') || strpbrk(*pipeline, "{["))
			return 0;
		return diag_fail(diag, OPTION_E_BAD, "--pipeline %s: %s", *pipeline,
				 fd < 0 ? strerror(errno) : "no ordinary file");
	}
	text = malloc(BENCH_MAX_PIPELINE + 1);
	size = text ? read(fd, text, BENCH_MAX_PIPELINE + 1) : -1;
	if (size < 0 || size > BENCH_MAX_PIPELINE) {
		diag_set(diag, "--pipeline %s: %s", *pipeline,
			 size < 0 ? strerror(errno) : "has more than 16384 bytes");
		free(text);
		return OPTION_E_BAD;
	}
	text[size] = '\0';
	*pipeline = text;
	return 0;
}

static int bench_options_pipelines(struct bench_config *config, struct diag *diag)
{
	int r = 0;

	for (unsigned i = 0; i < config->dealt.pipeline.n && !r; i++)
		r = bench_options_pipeline(&config->dealt.pipeline.text[i], diag);
	return r;
}

static bool bench_has_plan(const struct bench_config *config)
{
	return config->order == OA_ORDER_SEEDED || config->order == OA_ORDER_SEQUENTIAL;
}

static bool bench_are_whole(const struct option_list *list)
{
	for (unsigned i = 0; i < list->n; i++)
		if (list->value[i] != (double)(uint64_t)list->value[i])
			return false;
	return true;
}

bool bench_keeps(const struct bench_config *config)
{
	return config->own.cache_dir || config->own.cache_point ||
	       config->own.cache_size != UINT64_MAX;
}

static bool bench_configures(const struct bench_config *config)
{
	return config->own.workers || config->own.readers || config->own.memory ||
	       config->own.slots || config->own.set.n || bench_keeps(config);
}

static int bench_options_check(const struct bench_config *config, struct diag *diag)
{
	const char *wrong = NULL;

	if (!config->dataset)
		wrong = "--dataset DIR is missing: a folder with pictures";
	else if (config->private && config->socket)
		wrong = "--private starts an accessd of its own: leave out --socket";
	else if (!config->private && bench_configures(config))
		wrong = "--workers, --readers, --memory, --slots, --cache-dir, --cache-size, "
			"--cache-point and --set configure the accessd that --private starts: add "
			"--private";
	else if (config->dealt.plan_seed.n && !bench_has_plan(config))
		wrong = "--plan-seed is of orders that jobs fix: add --order seeded or sequential "
			"(--seed is that of the others, with --private)";
	else if (config->reuse > 1 && bench_has_plan(config))
		wrong = "--reuse is of orders that accessd deals: leave out --order";
	else if ((config->order == OA_ORDER_REPLAY) != (config->replay != NULL))
		wrong = "--order replay and --replay FILE go together";
	else if (!bench_are_whole(&config->dealt.plan_seed))
		wrong = "--plan-seed: expected whole numbers";
	if (wrong)
		diag_set(diag, "%s", wrong);
	return wrong || !bench_part_check(config, diag) ? OPTION_E_BAD : 0;
}

int bench_options(int argc, char **argv, struct bench_config *ret, struct diag *diag)
{
	_cleanup_free_ char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	unsigned n_rest = 0;
	int r;

	*ret = (struct bench_config){.bad_budget = UINT64_MAX, .own.cache_size = UINT64_MAX};
	if (!rest)
		return -ENOMEM;
	r = option_parse(bench_table, BASE_ARRAY_LEN(bench_table), argc, argv, ret, rest, &n_rest,
			 diag);
	if (r || ret->help || ret->version)
		return r;
	if (n_rest > 0)
		return diag_fail(diag, OPTION_E_BAD,
				 "what is \"%s\"? every argument is an option; --help lists them",
				 rest[0]);
	bench_options_quickstart(ret);
	bench_options_default(ret);
	r = bench_options_check(ret, diag);
	return r ? r : bench_options_pipelines(ret, diag);
}

uint64_t bench_epochs_of(const struct bench_config *config, unsigned job)
{
	return (uint64_t)option_dealt(&config->dealt.job_epochs, job, (double)config->epochs);
}

uint32_t bench_batch_of(const struct bench_config *config, unsigned job)
{
	return (uint32_t)option_dealt(&config->dealt.batch, job, 256);
}

double bench_step_ms_of(const struct bench_config *config, unsigned job)
{
	return option_dealt(&config->dealt.step_ms, job, 0);
}

double bench_start_s_of(const struct bench_config *config, unsigned job)
{
	return option_dealt(&config->dealt.start_s, job, 0);
}

uint64_t bench_plan_seed_of(const struct bench_config *config, unsigned job)
{
	return (uint64_t)option_dealt(&config->dealt.plan_seed, job, 0);
}

const char *bench_pipeline_of(const struct bench_config *config, unsigned job)
{
	return config->dealt.pipeline.n
		   ? config->dealt.pipeline.text[job % config->dealt.pipeline.n]
		   : "";
}

const char *bench_order_name(const struct bench_config *config)
{
	static const char *const names[] = {
	    [OA_ORDER_USUAL] = "usual",
	    [OA_ORDER_CAROUSEL] = "carousel",
	    [OA_ORDER_ANY] = "any",
	    [OA_ORDER_SEEDED] = "seeded",
	    [OA_ORDER_SEQUENTIAL] = "sequential",
	    [OA_ORDER_REPLAY] = "replay",
	};

	return names[config->order];
}

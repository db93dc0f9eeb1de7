/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-bench: parse, start, tend, end, judge, report; each step is a file of its own (bench.h).
 *
 * Exit status: 0 when every job got every sample of every epoch exactly once, 1 when not or when
 * something failed, 2 for a wrong command line, 128 + signal when interrupted.
 */

#include "tools/bench.h"

#include "libaccess/libaccess.h"
#include "tools/ctl.h"
#include "tools/ctl_ask.h"
#include "tools/host.h"

#include <signal.h>

#define BENCH_TICK_MS 20
#define BENCH_STATUS_NS UINT64_C(20000000000)

static volatile sig_atomic_t bench_signal;

static void bench_on_signal(int number)
{
	bench_signal = number;
}

static void bench_catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = bench_on_signal};

	for (size_t i = 0; i < BASE_ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* One "key=value" more, which lives as long as the process. */
static void bench_setting(const char **ret, unsigned *n, const char *key, const char *value)
{
	char *text;

	if (asprintf(&text, "%s=%s", key, value) >= 0)
		ret[(*n)++] = text;
}

/* Who says where or what is kept wants it kept: then its size is accessd's usual one. */
static void bench_settings_cache(const struct bench_config *config, const char **ret, unsigned *n)
{
	char bytes[24] = BENCH_USUAL_CACHE;
	const char *folder = config->own.cache_dir;
	_cleanup_free_ char *whole = folder ? base_absolute(folder) : NULL;

	if (config->own.cache_size != UINT64_MAX)
		snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)config->own.cache_size);
	if (folder)
		bench_setting(ret, n, "cache_dir", whole ? whole : folder);
	if (bench_keeps(config))
		bench_setting(ret, n, "cache_size", bytes);
	if (config->own.cache_point)
		bench_setting(ret, n, "cache_point", config->own.cache_point);
}

/* What is said with --private, as "key=value" for accessd; in text, which lives as long as argv. */
static unsigned bench_settings(const struct bench_config *config, const char **ret)
{
	static char text[7][64];
	const struct {
		const char *key;
		uint64_t value;
	} keys[] = {
	    {"workers", config->own.workers}, {"readers", config->own.readers},
	    {"memory", config->own.memory},   {"slots", config->own.slots},
	    {"chunk", config->chunk},         {"seed", config->seed},
	};
	unsigned n = 0;

	ret[n++] =
	    "log_level=warn"; /* its news would tear the progress; --set comes later and wins */
	for (size_t i = 0; i < BASE_ARRAY_LEN(keys); i++) {
		if (keys[i].value == 0)
			continue;
		snprintf(text[i], sizeof(text[i]), "%s=%llu", keys[i].key,
			 (unsigned long long)keys[i].value);
		ret[n++] = text[i];
	}
	bench_settings_cache(config, ret, &n);
	for (unsigned i = 0; i < config->own.set.n; i++)
		ret[n++] = config->own.set.text[i];
	return n;
}

static int bench_write_json(const struct bench_config *config, const struct bench_result *result)
{
	bool to_stdout = strcmp(config->json, "-") == 0;
	_cleanup_free_ char *text = NULL;
	FILE *file;
	int r = bench_result_json(config, result, &text);

	if (r) {
		fprintf(stderr, "access-bench: no JSON: %s\n", strerror(-r));
		return 1;
	}
	file = to_stdout ? stdout : fopen(config->json, "w");
	if (!file || fprintf(file, "%s\n", text) < 0 ||
	    (to_stdout ? fflush(file) : fclose(file)) != 0) {
		fprintf(stderr, "access-bench: cannot write %s: %s\n", config->json,
			strerror(errno));
		return 1;
	}
	return 0;
}

/* Tends the jobs until all are over or a signal comes. */
static void bench_run_jobs(struct bench_crew *crew, bool quiet)
{
	static struct bench_progress progress;
	struct timespec tick = {0, BENCH_TICK_MS * 1000000};

	bench_progress_init(&progress, (unsigned)crew->config->jobs, quiet ? NULL : stderr);
	while (bench_signal == 0 && bench_crew_tend(crew, base_now_ns()) > 0) {
		bench_progress_tick(&progress, crew, base_now_ns());
		nanosleep(&tick, NULL);
	}
	bench_progress_end(&progress, crew);
}

static int bench_judge(const struct bench_config *config, const struct bench_crew *crew,
		       bool interrupted, const char *before, const char *after)
{
	static struct bench_result result;
	bool json_on_stdout = config->json && strcmp(config->json, "-") == 0;
	int failed = 0;

	bench_result_collect(crew, interrupted, before, after, &result);
	if (!config->quiet)
		bench_report(config, &result, json_on_stdout ? stderr : stdout);
	if (config->json)
		failed = bench_write_json(config, &result);
	return failed || !result.all_exactly_once ? 1 : 0;
}

/* Where accessd is; as of a job, it is started where a user's own is meant. */
static int bench_reach(const char *socket, char *ret, size_t size, struct diag *diag)
{
	struct oa_client *client;
	struct oa_error error = {.size = sizeof(error)};

	if (!ctl_find(socket, ret, size, diag))
		return 0;
	if (oa_connect(socket, &client, &error))
		return diag_fail(diag, 1, "%s", error.text);
	oa_disconnect(client);
	return ctl_find(socket, ret, size, diag);
}

static int bench_with_shared(const struct bench_config *config, const char *socket,
			     struct bench_shared *shared)
{
	static struct bench_crew crew;
	_cleanup_free_ char *before = NULL, *after = NULL;
	char found[256];
	struct diag diag;
	int r, stopped_by;

	if (bench_reach(socket, found, sizeof(found), &diag) ||
	    ctl_status(found, base_now_ns() + BENCH_STATUS_NS, &before, &diag)) {
		fprintf(stderr, "access-bench: %s\n", diag.text);
		return 1;
	}
	r = bench_crew_start(&crew, config, socket, shared);
	if (r < 0) {
		fprintf(stderr, "access-bench: cannot start the jobs: %s\n", strerror(-r));
	} else {
		bench_run_jobs(&crew, config->quiet);
		stopped_by = bench_signal;
		bench_crew_kill(&crew); /* when interrupted there are some */
		if (ctl_status(found, base_now_ns() + BENCH_STATUS_NS, &after, &diag))
			fprintf(stderr, "access-bench: %s\n", diag.text);
		r = bench_judge(config, &crew, stopped_by != 0, before, after);
		if (stopped_by)
			r = 128 + stopped_by;
	}
	bench_crew_end(&crew);
	return r < 0 ? 1 : r;
}

static int bench_run(const struct bench_config *config)
{
	struct bench_shared *shared = bench_shared_new((uint32_t)config->jobs);
	const char *settings[OPTION_LIST_MAX + 24];
	struct host host = {.pid = 0};
	struct diag diag;
	int r;

	if (!shared) {
		fprintf(stderr, "access-bench: no memory for %u jobs: %s\n", (unsigned)config->jobs,
			strerror(errno));
		return 1;
	}
	if (config->private &&
	    host_start(settings, bench_settings(config, settings), &host, &diag)) {
		fprintf(stderr, "access-bench: %s\n", diag.text);
		r = 1;
	} else {
		r = bench_with_shared(config, config->private ? host.socket : config->socket,
				      shared);
	}
	host_end(&host);
	bench_shared_free(shared);
	return r;
}

int main(int argc, char **argv)
{
	static struct bench_config config;
	struct diag diag = {.text = "out of memory"};

	if (bench_options(argc, argv, &config, &diag)) {
		fprintf(stderr, "access-bench: %s\n", diag.text);
		return 2;
	}
	if (config.help) {
		bench_options_help(stdout);
		return 0;
	}
	if (config.version) {
		printf("access-bench %s, libaccess %s\n", PACKAGE_VERSION, oa_version());
		return 0;
	}
	bench_catch_signals();
	return bench_run(&config);
}

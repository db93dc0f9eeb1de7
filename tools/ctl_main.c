/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-ctl: one question to a running accessd, one answer. Commands are a table; plan and convert, which
 * ask nobody, stand beside it.
 *
 * Exit status: 0 answered, 1 no answer, 2 wrong command line.
 */

#include "tools/ctl.h"
#include "tools/ctl_bad.h"
#include "tools/ctl_cache.h"
#include "tools/ctl_value.h"
#include "tools/ctl_waits.h"
#include "tools/ctl_warm.h"

#include "libaccess/libaccess.h"
#include "tools/host.h"
#include "tools/option.h"

#define CTL_MAX_STATUS (16u << 20)

struct ctl_config {
	const char *socket;
	uint64_t timeout_s;
	bool json, help, version;
	struct ctl_plan plan;
	struct ctl_convert convert;
	struct ctl_cache cache;
	struct ctl_warm warm;
	unsigned form;
};

/* Of --form. */
static const char *const ctl_forms[] = {"auto", "packed", "indexed", "file", "decoded", "deepest"};

static const struct option ctl_options[] = {
#define OPTION(name, kind, member, least, most, choices, arg, help) \
	{name, kind, offsetof(struct ctl_config, member), least, most, choices, arg, help, 0},
#include "tools/ctl_options_tbl.h"
#undef OPTION
};

static void ctl_show_status(const struct json_in *status)
{
	ctl_draw_state(status, stdout);
	putchar('\n');
	ctl_draw_waits(status, stdout);
	putchar('\n');
	ctl_draw_stream_list(status, stdout);
	putchar('\n');
	ctl_draw_node(status, stdout);
	if (!ctl_is(status, "serves_all"))
		return;
	putchar('\n');
	ctl_draw_tenants(status, stdout);
}

static void ctl_show_ping(const struct json_in *status)
{
	char version[64];

	base_quote(ctl_string(status, "version"), version, sizeof(version));
	printf("accessd %s, pid %llu, answers\n", version,
	       (unsigned long long)ctl_u64(status, "pid"));
}

static void ctl_show_jobs(const struct json_in *status)
{
	ctl_draw_jobs(status, stdout);
}

static void ctl_show_streams(const struct json_in *status)
{
	ctl_draw_streams(status, stdout);
}

static void ctl_show_tenants(const struct json_in *status)
{
	ctl_draw_tenants(status, stdout);
}

static void ctl_show_workers(const struct json_in *status)
{
	ctl_draw_workers(status, stdout);
}

static void ctl_show_datasets(const struct json_in *status)
{
	ctl_draw_datasets(status, stdout);
}

static void ctl_show_peers(const struct json_in *status)
{
	ctl_draw_peers(status, stdout);
}

static const struct ctl_command {
	const char *name, *help;
	void (*show)(const struct json_in *status);
	/* Or, with an operand: 0, or 1 with diag. */
	int (*tell)(const struct json_in *status, const char *operand, FILE *out,
		    struct diag *diag);
	/* As JSON; NULL: the whole status. */
	int (*json)(const struct json_in *status, const char *operand, FILE *out,
		    struct diag *diag);
	const char *operand;
} ctl_commands[] = {
    {"status", "the state of the node, who waits for what, streams", ctl_show_status, NULL, NULL,
     NULL},
    {"ping", "does accessd answer?", ctl_show_ping, NULL, NULL, NULL},
    {"jobs", "the jobs: rates, what each waits for, how far it is", ctl_show_jobs, NULL, NULL,
     NULL},
    {"streams", "the streams and their slots", ctl_show_streams, NULL, NULL, NULL},
    {"tenants", "the users who are served: what each has of what", ctl_show_tenants, NULL, NULL,
     NULL},
    {"datasets", "data sets that have a name here, for whom", ctl_show_datasets, NULL,
     ctl_datasets_json, NULL},
    {"workers", "the worker processes", ctl_show_workers, NULL, NULL, NULL},
    {"peers", "the other nodes, and what comes from them", ctl_show_peers, NULL, NULL, NULL},
    {"explain", "what limits a job, what would help; what is kept", NULL, ctl_explain,
     ctl_explain_json, "JOB|DATASET"},
};

static void ctl_help(void)
{
	puts("Usage: access-ctl [OPTION]... COMMAND\n"
	     "Asks the accessd that runs for this user; never starts one.\n\nCommands:");
	for (size_t i = 0; i < BASE_ARRAY_LEN(ctl_commands); i++) {
		const char *operand = ctl_commands[i].operand;
		char words[32];

		snprintf(words, sizeof(words), "%s%s%s", ctl_commands[i].name, operand ? " " : "",
			 operand ? operand : "");
		printf("  %-24s%s\n", words, ctl_commands[i].help);
	}
	printf("  %-24s%s\n", "bad JOB", "the samples of a job's stream that are bad, and why");
	printf("  %-24s%s\n", "cache ls", "what is kept of which dataset, in groups");
	printf("  %-24s%s\n", "cache pin|unpin GROUP", "keep a group, whatever else wants room");
	printf("  %-24s%s\n", "cache drop GROUP", "throw a group away");
	printf("  %-24s%s\n", "cache forget DATASET", "throw away all that was made of a data set");
	printf("  %-24s%s\n", "cache verify", "read all of it and drop what is damaged");
	printf("  %-24s%s\n", "cache warm DATASET",
	       "make what can be kept of it, before a job needs it");
	printf("  %-24s%s\n", "cache lend DATASET",
	       "make what this node owns of it, for other nodes' jobs");
	printf("  %-24s%s\n", "plan show FILE", "what a recorded plan holds (asks no accessd)");
	printf("  %-24s%s\n", "plan export FILE...",
	       "the plan of one file, or of the files of all ranks");
	printf("  %-24s%s\n", "convert SOURCE TARGET",
	       "pictures into one quicker file (asks no accessd)");
	printf("  %-24s%s\n", "convert --check TARGET", "is every byte of it as it was written?");
	puts(
	    "\nWhat a job waits for, in status, jobs and explain (\"waits\": of its time lately):");
	ctl_waits_help(stdout);
	puts("\nOptions:");
	option_print(ctl_options, BASE_ARRAY_LEN(ctl_options), stdout);
}

static int ctl_fail(const char *text, int status)
{
	fprintf(stderr, "access-ctl: %s\n", text);
	return status;
}

/* Another conversation than the one question. */
static int ctl_run_cache(const struct ctl_config *config, char **words, unsigned n,
			 struct diag *diag)
{
	uint64_t timeout_ms = (config->timeout_s > 0 ? config->timeout_s : 10) * 1000;
	struct ctl_cache cache = config->cache;
	char socket[256];
	int status;

	cache.json = config->json;
	if (ctl_find(config->socket, socket, sizeof(socket), diag))
		return ctl_fail(diag->text, 1);
	status = ctl_cache_run(&cache, socket, (int)timeout_ms, words, n, diag);
	return status ? ctl_fail(diag->text, status) : 0;
}

static int ctl_run_bad(const struct ctl_config *config, char **words, unsigned n, struct diag *diag)
{
	uint64_t timeout_ms = (config->timeout_s > 0 ? config->timeout_s : 10) * 1000;
	char socket[256];
	int status;

	if (n != 1)
		return ctl_fail("bad needs one operand: bad JOB", 2);
	if (ctl_find(config->socket, socket, sizeof(socket), diag))
		return ctl_fail(diag->text, 1);
	status = ctl_bad_run(socket, (int)timeout_ms, words[0], config->json, diag);
	return status ? ctl_fail(diag->text, status) : 0;
}

/* A job of its own. */
static int ctl_run_warm(const struct ctl_config *config, char **words, unsigned n,
			struct diag *diag)
{
	struct ctl_warm warm = config->warm;
	char socket[256];
	int status;

	warm.form = ctl_forms[config->form];
	warm.lends = strcmp(words[0], "lend") == 0;
	if (n != 2)
		diag_set(diag, "cache %s needs one DATASET", words[0]);
	else if (config->cache.user || config->json || strcmp(warm.form, "file") == 0)
		diag_set(diag, "cache %s has no --user, no --json and no --form file", words[0]);
	else
		diag->text[0] = '\0';
	if (diag->text[0])
		return ctl_fail(diag->text, 2);
	warm.dataset = words[1];
	if (ctl_find(config->socket, socket, sizeof(socket), diag))
		return ctl_fail(diag->text, 1);
	diag->text[0] = '\0';
	status = ctl_warm_run(&warm, socket, diag);
	return status && diag->text[0] ? ctl_fail(diag->text, status) : status;
}

/* Prose in lines of 80 columns; tables, whose lines begin with a blank, as they are. */
static void ctl_print_wrapped(char *text)
{
	for (char *end; *text; text = end + 1) {
		end = text + strcspn(text, "\n");
		if (*end == '\0')
			return;
		*end = '\0';
		if (*text == ' ')
			puts(text);
		else
			option_wrap(text, 0, 80, stdout);
	}
}

static int ctl_tell(const struct ctl_command *command, const struct json_in *status,
		    const char *operand, struct diag *diag)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	int r;

	if (!memory)
		return 1;
	r = command->tell(status, operand, memory, diag);
	if (fclose(memory) == 0)
		ctl_print_wrapped(text);
	return r;
}

static int ctl_show(const struct ctl_command *command, const struct json_in *status,
		    const char *operand, struct diag *diag)
{
	if (command->tell)
		return ctl_tell(command, status, operand, diag);
	command->show(status);
	return 0;
}

static int ctl_run(const struct ctl_config *config, const struct ctl_command *command,
		   const char *operand)
{
	uint64_t timeout_ms = (config->timeout_s > 0 ? config->timeout_s : 10) * 1000;
	_cleanup_free_ char *text = NULL;
	struct json_in *status = NULL;
	char socket[256];
	struct diag diag = {.text = "out of memory"};
	int r = 0;

	if (ctl_find(config->socket, socket, sizeof(socket), &diag))
		return ctl_fail(diag.text, 1);
	if (host_status(socket, (int)timeout_ms, &text, &diag))
		return ctl_fail(diag.text, 1);
	if (json_in_parse(text, strlen(text), CTL_MAX_STATUS, &status, &diag))
		return ctl_fail(diag.text, 1);
	if (config->json && command->json)
		r = command->json(status, operand, stdout, &diag);
	else if (config->json)
		puts(text);
	else
		r = ctl_show(command, status, operand, &diag);
	json_in_free(status);
	if (r)
		return ctl_fail(diag.text, 1);
	return fflush(stdout) == 0 ? 0 : ctl_fail(strerror(errno), 1);
}

static int ctl_command(const struct ctl_config *config, char **rest, unsigned n, struct diag *diag)
{
	const struct ctl_command *command = NULL;

	if (n == 0)
		return ctl_fail("one command is needed, such as status; --help lists them", 2);
	for (size_t i = 0; i < BASE_ARRAY_LEN(ctl_commands); i++)
		if (strcmp(rest[0], ctl_commands[i].name) == 0)
			command = &ctl_commands[i];
	if (!command)
		diag_set(diag, "there is no command \"%s\"; --help lists them", rest[0]);
	else if (n > 1 && !command->operand)
		diag_set(diag, "%s takes no operand", command->name);
	else if (n != 2 && command->operand)
		diag_set(diag, "%s needs one operand: %s %s", command->name, command->name,
			 command->operand);
	else
		return ctl_run(config, command, rest[n - 1]);
	return ctl_fail(diag->text, 2);
}

int main(int argc, char **argv)
{
	_cleanup_free_ char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct ctl_config config = {.socket = NULL};
	struct diag diag = {.text = "out of memory"};
	unsigned n_rest = 0;

	if (!rest || option_parse(ctl_options, BASE_ARRAY_LEN(ctl_options), argc, argv, &config,
				  rest, &n_rest, &diag))
		return ctl_fail(diag.text, 2);
	if (config.help) {
		ctl_help();
		return 0;
	}
	if (config.version) {
		printf("access-ctl %s, libaccess %s\n", PACKAGE_VERSION, oa_version());
		return 0;
	}
	config.convert.form = config.form;
	if (n_rest > 1 && strcmp(rest[0], "cache") == 0 &&
	    (strcmp(rest[1], "warm") == 0 || strcmp(rest[1], "lend") == 0))
		return ctl_run_warm(&config, rest + 1, n_rest - 1, &diag);
	if (n_rest > 0 && strcmp(rest[0], "bad") == 0)
		return ctl_run_bad(&config, rest + 1, n_rest - 1, &diag);
	if (n_rest > 0 && strcmp(rest[0], "cache") == 0)
		return ctl_run_cache(&config, rest + 1, n_rest - 1, &diag);
	if (n_rest > 0 && strcmp(rest[0], "plan") == 0) {
		int status = ctl_plan_run(&config.plan, rest + 1, n_rest - 1, &diag);

		return status ? ctl_fail(diag.text, status) : 0;
	}
	if (n_rest > 0 && strcmp(rest[0], "convert") == 0) {
		int status = ctl_convert_run(&config.convert, rest + 1, n_rest - 1, &diag);

		return ctl_fail(diag.text, status);
	}
	return ctl_command(&config, rest, n_rest, &diag);
}

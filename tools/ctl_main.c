/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-ctl: one question to a running accessd, one answer. Commands are a table.
 *
 * Exit status: 0 answered, 1 no answer, 2 wrong command line.
 */

#include "tools/ctl.h"
#include "tools/ctl_ask.h"
#include "tools/ctl_bad.h"
#include "tools/ctl_cache.h"
#include "tools/ctl_value.h"
#include "tools/ctl_waits.h"
#include "tools/ctl_warm.h"

#include "libaccess/libaccess.h"
#include "tools/option.h"

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

static void ctl_draw_status(const struct json_in *status, FILE *out)
{
	ctl_draw_state(status, out);
	fputc('\n', out);
	ctl_draw_waits(status, out);
	fputc('\n', out);
	ctl_draw_stream_list(status, out);
	fputc('\n', out);
	ctl_draw_node(status, out);
	if (!ctl_is(status, "serves_all"))
		return;
	fputc('\n', out);
	ctl_draw_tenants(status, out);
}

static void ctl_draw_ping(const struct json_in *status, FILE *out)
{
	fprintf(out, "accessd %s, pid %llu, answers\n",
		BASE_QUOTED(ctl_string(status, "version"), 64), ctl_u64(status, "pid"));
}

static int ctl_fail(const char *text, int status)
{
	fprintf(stderr, "access-ctl: %s\n", text);
	return status;
}

/* Of the whole command. */
static uint64_t ctl_until_ns(const struct ctl_config *config)
{
	return base_now_ns() + (config->timeout_s > 0 ? config->timeout_s : 10) * 1000000000;
}

/* ---- commands that ask more than the status, or nobody: the exit status, diag when not 0 ---- */

/* A job of its own. */
static int ctl_run_warm(const struct ctl_config *config, char **words, unsigned n,
			struct diag *diag)
{
	struct ctl_warm warm = config->warm;
	char socket[256];

	warm.form = ctl_forms[config->form];
	warm.lends = strcmp(words[0], "lend") == 0;
	if (n != 2)
		diag_set(diag, "cache %s needs one DATASET", words[0]);
	else if (config->cache.user || config->json || strcmp(warm.form, "file") == 0)
		diag_set(diag, "cache %s has no --user, no --json and no --form file", words[0]);
	else
		diag->text[0] = '\0';
	if (diag->text[0])
		return 2;
	warm.dataset = words[1];
	if (ctl_find(config->socket, socket, sizeof(socket), diag))
		return 1;
	diag->text[0] = '\0';
	return ctl_warm_run(&warm, socket, diag);
}

static int ctl_run_cache(const struct ctl_config *config, char **words, unsigned n,
			 struct diag *diag)
{
	struct ctl_cache cache = config->cache;
	char socket[256];

	if (n > 0 && (strcmp(words[0], "warm") == 0 || strcmp(words[0], "lend") == 0))
		return ctl_run_warm(config, words, n, diag);
	cache.json = config->json;
	if (ctl_find(config->socket, socket, sizeof(socket), diag))
		return 1;
	return ctl_cache_run(&cache, socket, ctl_until_ns(config), words, n, diag);
}

static int ctl_run_bad(const struct ctl_config *config, char **words, unsigned n, struct diag *diag)
{
	char socket[256];

	if (n != 1)
		return diag_fail(diag, 2, "bad needs one operand: bad JOB");
	if (ctl_find(config->socket, socket, sizeof(socket), diag))
		return 1;
	return ctl_bad_run(socket, ctl_until_ns(config), words[0], config->json, diag);
}

static int ctl_run_plan(const struct ctl_config *config, char **words, unsigned n,
			struct diag *diag)
{
	return ctl_plan_run(&config->plan, words, n, diag);
}

static int ctl_run_convert(const struct ctl_config *config, char **words, unsigned n,
			   struct diag *diag)
{
	struct ctl_convert convert = config->convert;

	convert.form = config->form;
	return ctl_convert_run(&convert, words, n, diag);
}

/* ---- the table ---- */

/* Each has one of draw, tell and run; rows of one name are for --help. */
static const struct ctl_command {
	const char *name, *operand, *help;
	void (*draw)(const struct json_in *status, FILE *out);
	/* Of an operand: 0, or 1 with diag. */
	int (*tell)(const struct json_in *status, const char *operand, FILE *out,
		    struct diag *diag);
	/* As JSON; NULL: the whole status. */
	int (*json)(const struct json_in *status, const char *operand, FILE *out,
		    struct diag *diag);
	int (*run)(const struct ctl_config *config, char **words, unsigned n, struct diag *diag);
} ctl_commands[] = {
    /* clang-format off */
    {"status", NULL, "node state, what each job waits for, streams", .draw = ctl_draw_status},
    {"ping", NULL, "check that accessd answers", .draw = ctl_draw_ping},
    {"jobs", NULL, "jobs: rate, what each waits for, progress", .draw = ctl_draw_jobs},
    {"streams", NULL, "streams and their slots", .draw = ctl_draw_streams},
    {"tenants", NULL, "users, and the resources of each", .draw = ctl_draw_tenants},
    {"datasets", NULL, "named data sets, and who may use them", .draw = ctl_draw_datasets, .json = ctl_datasets_json},
    {"workers", NULL, "worker processes", .draw = ctl_draw_workers},
    {"peers", NULL, "other nodes, and the samples that they send", .draw = ctl_draw_peers},
    {"explain", "JOB|DATASET", "what limits a job, what would help, what is cached", .tell = ctl_explain, .json = ctl_explain_json},
    {"bad", "JOB", "bad samples of a job's stream, and why they are bad", .run = ctl_run_bad},
    {"cache", "ls", "cached groups: data set, form, size", .run = ctl_run_cache},
    {"cache", "pin|unpin GROUP", "pin: never evict a group; unpin: allow it again", .run = ctl_run_cache},
    {"cache", "drop GROUP", "remove a group", .run = ctl_run_cache},
    {"cache", "forget DATASET", "throw away all that was made of a data set", .run = ctl_run_cache},
    {"cache", "verify", "read the whole cache and remove damaged samples", .run = ctl_run_cache},
    {"cache", "warm DATASET", "fill the cache before a job needs it", .run = ctl_run_cache},
    {"cache", "lend DATASET", "make this node's share, for jobs of other nodes", .run = ctl_run_cache},
    {"plan", "show FILE", "contents of a recorded plan (needs no accessd)", .run = ctl_run_plan},
    {"plan", "export FILE...", "write the plan of one file, or of all ranks' files", .run = ctl_run_plan},
    {"convert", "SOURCE TARGET", "write pictures into one file (needs no accessd)", .run = ctl_run_convert},
    {"convert", "--check TARGET", "verify every byte of TARGET", .run = ctl_run_convert},
    /* clang-format on */
};

static void ctl_help(void)
{
	puts("Usage: access-ctl [OPTION]... COMMAND\n"
	     "Queries this user's running accessd; never starts one.\n\nCommands:");
	for (size_t i = 0; i < BASE_ARRAY_LEN(ctl_commands); i++) {
		const char *operand = ctl_commands[i].operand;
		char words[32];

		snprintf(words, sizeof(words), "%s%s%s", ctl_commands[i].name, operand ? " " : "",
			 operand ? operand : "");
		printf("  %-24s%s\n", words, ctl_commands[i].help);
	}
	puts(
	    "\nWhat a job waits for, in status, jobs and explain (\"waits\": of its time lately):");
	ctl_waits_help(stdout);
	puts("\nOptions:");
	option_print(ctl_options, BASE_ARRAY_LEN(ctl_options), stdout);
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
			option_wrap(stdout, 0, 80, "%s", text);
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

static int ctl_run(const struct ctl_config *config, const struct ctl_command *command,
		   const char *operand)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ struct json_in *status = NULL;
	char socket[256];
	struct diag diag = {.text = "out of memory"};
	int r = 0;

	if (ctl_find(config->socket, socket, sizeof(socket), &diag))
		return ctl_fail(diag.text, 1);
	if (ctl_status(socket, ctl_until_ns(config), &text, &diag))
		return ctl_fail(diag.text, 1);
	if (json_in_parse(text, strlen(text), CTL_ASK_MOST, &status, &diag))
		return ctl_fail(diag.text, 1);
	if (config->json && command->json)
		r = command->json(status, operand, stdout, &diag);
	else if (config->json)
		puts(text);
	else if (command->tell)
		r = ctl_tell(command, status, operand, &diag);
	else
		command->draw(status, stdout);
	if (r)
		return ctl_fail(diag.text, 1);
	return fflush(stdout) == 0 ? 0 : ctl_fail(strerror(errno), 1);
}

static int ctl_command(const struct ctl_config *config, char **rest, unsigned n, struct diag *diag)
{
	const struct ctl_command *command = NULL;

	if (n == 0)
		return ctl_fail("one command is needed, such as status; --help lists them", 2);
	for (size_t i = 0; i < BASE_ARRAY_LEN(ctl_commands) && !command; i++)
		if (strcmp(rest[0], ctl_commands[i].name) == 0)
			command = &ctl_commands[i];
	if (command && command->run) {
		int status = command->run(config, rest + 1, n - 1, diag);

		return status && diag->text[0] ? ctl_fail(diag->text, status) : status;
	}
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
	return ctl_command(&config, rest, n_rest, &diag);
}

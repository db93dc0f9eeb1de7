/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-worker: reads its options and becomes the worker parent. accessd starts it, with its end
 * of the control socket as descriptor 3; people do not.
 */

#include <stdio.h>
#include <sys/socket.h>

#include "base/log.h"
#include "worker/parent.h"
#include "worker/pool.h"

#define MAIN_LEAST_MEMORY (UINT64_C(16) << 20)
#define MAIN_EXIT_USAGE 2

struct main_option {
	const char *name, *value, *help;
	const char *(*parse)(const char *text, struct pool_settings *settings); /* NULL: fine */
};

static const char *main_parse_number(const char *text, uint64_t most, uint64_t *ret)
{
	return base_parse_number(&text, most, ret) && !*text ? NULL : "is out of range";
}

static const char *main_parse_workers(const char *text, struct pool_settings *settings)
{
	uint64_t number;
	const char *wrong = main_parse_number(text, LAYOUT_MAX_WORKERS, &number);

	if (wrong == NULL && number == 0)
		wrong = "must be at least 1";
	if (wrong == NULL)
		settings->n_workers = (unsigned)number;
	return wrong;
}

static const char *main_parse_memory(const char *text, struct pool_settings *settings)
{
	uint64_t bytes;

	if (base_parse_bytes(text, &bytes) < 0)
		return "is no size: write it as 536870912 or 512M";
	if (bytes < MAIN_LEAST_MEMORY)
		return "is less than a decoder needs (16M)";
	settings->memory = bytes;
	return NULL;
}

static const char *main_parse_nice(const char *text, struct pool_settings *settings)
{
	uint64_t number;
	const char *wrong = main_parse_number(text, 19, &number);

	if (wrong == NULL)
		settings->nice = (int)number;
	return wrong;
}

static const char *main_parse_identity(const char *text, struct pool_settings *settings)
{
	static struct identity identity;

	if (identity_parse(text, &identity) < 0)
		return "is no identity: write it as UID:GID";
	settings->as = &identity;
	return NULL;
}

static const struct main_option main_options[] = {
    {"--workers", "N", "processes to keep alive", main_parse_workers},
    {"--memory", "BYTES", "heap that a worker may have", main_parse_memory},
    {"--nice", "N", "niceness of the workers, added to the caller's (1)", main_parse_nice},
    {"--as", "UID:GID", "become that user first", main_parse_identity},
};

static void main_usage(FILE *out)
{
	fprintf(out, "Usage: access-worker --workers N --memory BYTES [OPTION]...\n"
		     "Started by accessd, with a control socket as descriptor 3.\n\n");
	for (size_t i = 0; i < BASE_ARRAY_LEN(main_options); i++)
		fprintf(out, "  %-9s %-6s  %s\n", main_options[i].name, main_options[i].value,
			main_options[i].help);
}

static int main_refuse(const char *option, const char *value, const char *what)
{
	fprintf(stderr, "access-worker: %s%s%s %s; see access-worker --help\n", option,
		value[0] != '\0' ? " " : "", value, what);
	return -EINVAL;
}

static int main_parse_pair(const char *name, const char *value, struct pool_settings *settings)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(main_options); i++) {
		const char *wrong;

		if (strcmp(main_options[i].name, name) != 0)
			continue;
		if (value == NULL)
			return main_refuse(name, "", "needs a value");
		wrong = main_options[i].parse(value, settings);
		return wrong == NULL ? 0 : main_refuse(name, value, wrong);
	}
	return main_refuse(name, "", "is unknown");
}

static int main_parse(int argc, char *argv[], struct pool_settings *settings)
{
	for (int i = 1; i < argc; i += 2) {
		int rc = main_parse_pair(argv[i], i + 1 < argc ? argv[i + 1] : NULL, settings);

		if (rc < 0)
			return rc;
	}
	if (settings->n_workers == 0)
		return main_refuse("--workers", "", "is missing");
	if (settings->memory == 0)
		return main_refuse("--memory", "", "is missing");
	return 0;
}

static bool main_has_control(void)
{
	int type = 0;
	socklen_t size = sizeof(type);

	return getsockopt(PARENT_CONTROL_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
	       type == SOCK_SEQPACKET;
}

int main(int argc, char *argv[])
{
	struct pool_settings settings = {.nice = 1, .oom_fd = -1};

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		main_usage(stdout);
		return EXIT_SUCCESS;
	}
	if (main_parse(argc, argv, &settings) < 0)
		return MAIN_EXIT_USAGE;
	if (!main_has_control()) {
		fprintf(stderr, "access-worker: descriptor 3 is no control socket; accessd starts "
				"this program, people do not\n");
		return MAIN_EXIT_USAGE;
	}
	log_init("access-worker", LOG_LEVEL_INFO);
	return parent_run(&settings);
}

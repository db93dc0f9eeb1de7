/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-worker: reads its options and becomes the worker parent. accessd starts it, with its end
 * of the control socket as descriptor 3; people do not.
 */

#include <getopt.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/log.h"
#include "worker/parent.h"
#include "worker/pool.h"

#define MAIN_LEAST_MEMORY (UINT64_C(16) << 20)
#define MAIN_EXIT_USAGE 2

static const char main_usage[] =
    "Usage: access-worker --workers N --memory BYTES [OPTION]...\n"
    "Started by accessd, with a control socket as descriptor 3.\n\n"
    "  --workers N        processes to keep alive\n"
    "  --memory BYTES     heap that a worker may have\n"
    "  --nice N           niceness of the workers, added to the caller's (1)\n"
    "  --as UID:GID       become that user first\n";

static _Noreturn void main_refuse(const char *option, const char *value, const char *what)
{
	fprintf(stderr, "access-worker: %s%s%s %s; see access-worker --help\n", option,
		value[0] != '\0' ? " " : "", value, what);
	exit(MAIN_EXIT_USAGE);
}

static uint64_t main_number(const char *option, const char *text, uint64_t most)
{
	const char *end = text;
	uint64_t number;

	if (!base_parse_number(&end, most, &number) || *end)
		main_refuse(option, text, "is out of range");
	return number;
}

static void main_take(int option, const char *value, struct pool_settings *settings)
{
	static struct identity identity;

	switch (option) {
	case 'w':
		settings->n_workers = (unsigned)main_number("--workers", value, LAYOUT_MAX_WORKERS);
		if (settings->n_workers == 0)
			main_refuse("--workers", value, "must be at least 1");
		break;
	case 'm':
		if (base_parse_bytes(value, &settings->memory) < 0)
			main_refuse("--memory", value, "is no size: write it as 536870912 or 512M");
		if (settings->memory < MAIN_LEAST_MEMORY)
			main_refuse("--memory", value, "is less than a decoder needs (16M)");
		break;
	case 'n':
		settings->nice = (int)main_number("--nice", value, 19);
		break;
	default:
		if (identity_parse(value, &identity) < 0)
			main_refuse("--as", value, "is no identity: write it as UID:GID");
		settings->as = &identity;
	}
}

static void main_parse(int argc, char *argv[], struct pool_settings *settings)
{
	static const struct option options[] = {
	    {"workers", required_argument, NULL, 'w'}, {"memory", required_argument, NULL, 'm'},
	    {"nice", required_argument, NULL, 'n'},    {"as", required_argument, NULL, 'a'},
	    {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
	int option;

	while ((option = getopt_long(argc, argv, ":", options, NULL)) >= 0) {
		if (option == 'h') {
			fputs(main_usage, stdout);
			exit(EXIT_SUCCESS);
		}
		if (option == ':')
			main_refuse(argv[optind - 1], "", "needs a value");
		if (option == '?')
			main_refuse(argv[optind - 1], "", "is unknown");
		main_take(option, optarg, settings);
	}
	if (optind < argc)
		main_refuse(argv[optind], "", "is unknown");
	if (settings->n_workers == 0)
		main_refuse("--workers", "", "is missing");
	if (settings->memory == 0)
		main_refuse("--memory", "", "is missing");
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

	main_parse(argc, argv, &settings);
	if (!main_has_control()) {
		fprintf(stderr, "access-worker: descriptor 3 is no control socket; accessd starts "
				"this program, people do not\n");
		return MAIN_EXIT_USAGE;
	}
	log_init("access-worker", LOG_LEVEL_INFO);
	return parent_run(&settings);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "base/started.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/identity.h"
#include "base/log.h"

static void started_become(const char *program, const char *text)
{
	struct identity identity;
	int r;

	if (identity_parse(text, &identity)) {
		fprintf(stderr, "%s: --as %s: must be UID:GID or UID:GID:groups\n", program, text);
		exit(2);
	}
	r = identity_become(&identity);
	if (!r)
		return;
	fprintf(stderr, "%s: cannot become user %u, group %u: %s\n", program,
		(unsigned)identity.uid, (unsigned)identity.gid, strerror(-r));
	exit(1);
}

void started_options(const char *program, int argc, char **argv, const char *usage,
		     const char *name, void (*take)(const char *value))
{
	const struct option options[] = {
	    {"as", required_argument, NULL, 'a'},
	    {"help", no_argument, NULL, 'h'},
	    {name, required_argument, NULL, 'n'},
	    {NULL, 0, NULL, 0},
	};
	const char *as = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) == 'a' || option == 'n') {
		if (option == 'a')
			as = optarg;
		else
			take(optarg);
	}
	if (option >= 0 || optind < argc) {
		fputs(usage, option == 'h' ? stdout : stderr);
		exit(option == 'h' ? 0 : 2);
	}
	if (as)
		started_become(program, as);
}

void started_confine(const char *program)
{
	static const int ignored[] = {SIGPIPE, SIGHUP,
				      SIGINT /* of the terminal; accessd decides when to end */};

	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_NAME, program);
	umask(077);
	close_range(STARTED_CONTROL_FD + 1, ~0U, 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	log_init(program, LOG_LEVEL_INFO);
}

void started_follow(const char *program)
{
	struct ucred maker;
	socklen_t size = sizeof(maker);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getsockopt(STARTED_CONTROL_FD, SOL_SOCKET, SO_PEERCRED, &maker, &size) < 0) {
		log_line(LOG_LEVEL_ERROR, "control",
			 "text=\"descriptor 3 is no control socket: %s is started by accessd, not "
			 "by hand\"",
			 program);
		_exit(1);
	}
	if (maker.pid != 0 && maker.pid != getppid())
		_exit(0);
}

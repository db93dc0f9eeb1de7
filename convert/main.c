/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-convert: reads its options. People meet it as access-ctl convert, which finds and becomes it: the
 * libraries that pictures need are no business of a tool that asks questions.
 */

#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "convert/convert.h"
#include "libaccess/connect/remote.h"
#include "pipeline/forms/form.h"
#include "storage/source/source_indexer.h"

#define MAIN_LOOK_NS UINT64_C(1000000000)
#define MAIN_TELL_NS UINT64_C(10000000000)

static const char usage[] =
    "Usage: access-convert [--form file|indexed|packed] [--jobs N] [--force] SOURCE TARGET\n"
    "       access-convert [--shard-size BYTES] [--jobs N] [--force] SOURCE TARGET.tar\n"
    "       access-convert --check TARGET\n"
    "The program behind access-ctl convert; see access-ctl(1).\n";

static int refuse(const char *what, const char *value)
{
	fprintf(stderr, "access-ctl convert: %s %s; see access-ctl --help\n", what, value);
	return CONVERT_USAGE;
}

static int parse_form(const char *text, unsigned *ret)
{
	static const char *const names[] = {"file", "indexed", "packed"};

	_Static_assert(FORM_INDEXED == 1 && FORM_PACKED == 2, "numbers of oads_head.form");
	for (unsigned i = 0; i < BASE_ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = i;
			return 0;
		}
	}
	return refuse("--form must be file, indexed or packed, not", text);
}

static int parse_jobs(const char *text, unsigned *ret)
{
	const char *end = text;
	uint64_t value;

	if (!base_parse_number(&end, CONVERT_MAX_JOBS, &value) || *end || value < 1)
		return refuse("--jobs must be 1 to 256, not", text);
	*ret = (unsigned)value;
	return 0;
}

static int parse_shard(const char *text, uint64_t *ret)
{
	if (base_parse_bytes(text, ret) || !*ret)
		return refuse("--shard-size must be bytes, as 1G or 300M, not", text);
	return 0;
}

static int parse_option(int option, struct convert_options *options)
{
	switch (option) {
	case 'o':
		return parse_form(optarg, &options->form);
	case 'j':
		return parse_jobs(optarg, &options->jobs);
	case 's':
		return parse_shard(optarg, &options->shard_bytes);
	case 'f':
		options->force = true;
		return 0;
	case 'c':
		options->check = true;
		return 0;
	case 'h':
		fputs(usage, stdout);
		exit(0);
	default:
		fputs(usage, stderr);
		return CONVERT_USAGE;
	}
}

static int parse_options(int argc, char **argv, struct convert_options *ret)
{
	static const struct option table[] = {
	    {"form", required_argument, NULL, 'o'},
	    {"jobs", required_argument, NULL, 'j'},
	    {"force", no_argument, NULL, 'f'},
	    {"check", no_argument, NULL, 'c'},
	    {"help", no_argument, NULL, 'h'},
	    {"shard-size", required_argument, NULL, 's'},
	    {NULL, 0, NULL, 0},
	};
	int option, r = 0;

	while (!r && (option = getopt_long(argc, argv, "", table, NULL)) >= 0)
		r = parse_option(option, ret);
	if (r)
		return r;
	if (argc - optind != (ret->check ? 1 : 2)) {
		fputs(usage, stderr);
		return CONVERT_USAGE;
	}
	ret->source = argv[optind];
	ret->target = ret->check ? NULL : argv[optind + 1];
	return 0;
}

/* What a signal that was dealt with would have done. */
static int die_of(int number)
{
	sigset_t set;

	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return 128 + number;
}

static void tell_listing(void *arg, const char *text, uint64_t done, uint64_t total)
{
	uint64_t *next_ns = arg;

	(void)total;
	if (base_now_ns() < *next_ns)
		return;
	*next_ns = base_now_ns() + MAIN_TELL_NS;
	fprintf(stderr, "access-ctl convert: %s: %llu objects\n", text, (unsigned long long)done);
}

static _Noreturn void keeper_fail(const struct diag *diag)
{
	fprintf(stderr, "access-ctl convert: %s\n", diag->text);
	_exit(CONVERT_FAILED);
}

/* Has access-bucket list the URL, says where, and starts another one when that has ended. Ends with the conversion. */
static _Noreturn void keep(const char *url, int say_fd, pid_t parent)
{
	uint64_t next_ns = base_now_ns() + MAIN_TELL_NS;
	struct remote remote;
	struct diag diag;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN); /* the terminal's, for the conversion, which ends this one */
	if (getppid() != parent)
		_exit(CONVERT_FAILED);
	remote_init(&remote);
	if (remote_open_alone(&remote, url, tell_listing, &next_ns, &diag))
		keeper_fail(&diag);
	if (base_write_all(say_fd, remote.path, strlen(remote.path) + 1))
		_exit(CONVERT_FAILED);
	while (!remote_look(&remote, &diag)) {
		const uint64_t now_ns = base_now_ns();
		const uint64_t due_ns = BASE_MIN(remote.wake_ns, now_ns + MAIN_LOOK_NS);

		poll(NULL, 0, due_ns > now_ns ? (int)((due_ns - now_ns) / 1000000) + 1 : 1);
	}
	kill(parent, SIGTERM); /* no more of its bytes will come */
	keeper_fail(&diag);
}

/* Of a URL: its folder, which is there as long as a process beside this one has it open. */
static int convert_remote(struct convert_options *options)
{
	_cleanup_close_ int read_end = -1;
	const pid_t self = getpid();
	char path[PATH_MAX];
	size_t n = 0;
	int ends[2], r = CONVERT_FAILED;
	ssize_t got;
	pid_t keeper;

	if (pipe2(ends, O_CLOEXEC) < 0 || (keeper = fork()) < 0) {
		perror("access-ctl convert");
		return CONVERT_FAILED;
	}
	if (keeper == 0)
		keep(options->source, ends[1], self);
	close(ends[1]);
	read_end = ends[0];
	while (n < sizeof(path) && (got = read(read_end, path + n, sizeof(path) - n)) != 0) {
		if (got < 0 && errno != EINTR)
			break;
		n += got > 0 ? (size_t)got : 0;
		if (n && !path[n - 1])
			break;
	}
	if (n && !path[n - 1]) {
		options->source = path;
		r = convert_run(options);
	} /* else it has said why */
	base_kill(&keeper);
	return r;
}

int main(int argc, char **argv)
{
	struct convert_options options = {.form = CONVERT_USUAL_FORM};
	/* what scans a shard, and what unpacks one, are processes of this program */
	int r = source_indexing_main(argc, argv);

	if (r >= 0)
		return r;
	if (argc == 5 && strcmp(argv[1], UNPACK_OPTION) == 0)
		return convert_unpacking_main(argv[2], argv[3], argv[4]);
	r = parse_options(argc, argv, &options);
	if (r)
		return r;
	if (options.check)
		r = convert_verify(&options);
	else
		r = url_is(options.source) ? convert_remote(&options) : convert_run(&options);
	return r < 0 ? die_of(-r) : r;
}

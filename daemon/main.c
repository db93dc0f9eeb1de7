/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accessd: reads the command line and the configuration, takes its place, runs the node.
 *
 * --background is for libaccess, which starts a private daemon when a user has none: the first
 * process waits until the second one listens (or says why it cannot) and then exits, so that
 * whoever started it knows the outcome; the second one is the leader of its own session and logs to
 * a file in its folder.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/cache/cache_state.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/node_life.h"
#include "daemon/operate.h"

#define LOG_MOST (1 << 20) /* bytes of a private daemon's log before it starts anew */

struct command {
	int argc;
	char **argv;
	bool is_private, background, is_check;
	const char *folder, *config;
	struct operate operate;
	int ready_fd; /* background: where the outcome is told, -1: nowhere */
};

static void usage(FILE *out)
{
	fputs("usage: accessd [--config FILE] [--set NAME=VALUE]... [--dir DIR]\n"
	      "               [--private [--background]] [--check]\n"
	      "  -c, --config FILE     read parameters from FILE (default: " SYSCONFDIR
	      "/accessd.conf, if it is there;\n"
	      "                        with --private ~/.config/oneaccess/accessd.conf and the\n"
	      "                        environment's ACCESSD_NAME=VALUE)\n"
	      "  -s, --set NAME=VALUE  set a parameter\n"
	      "  -p, --private         serve this user alone, exit when idle\n"
	      "  -d, --dir DIR         folder of the socket and the locks\n"
	      "  -b, --background      return when it is ready\n"
	      "  -C, --check           read the configuration, say what is wrong in it, and exit\n"
	      "  -h, --help, -V, --version\n"
	      "parameters (name, default, meaning):\n",
	      out);
	param_print(out);
}

static int fail(const struct command *command, const char *text)
{
	fprintf(stderr, "accessd: %s\n", text);
	if (command->ready_fd >= 0 && write(command->ready_fd, text, strlen(text)) < 0)
		return 2;
	return 1;
}

/* A default configuration file that is not there is no error. A private daemon has its user's. */
static int read_config(const struct command *command, struct param *param, struct diag *diag)
{
	if (command->config)
		return param_read(param, command->config, diag);
	if (command->is_private)
		return param_read_users(param, diag);
	if (access(SYSCONFDIR "/accessd.conf", F_OK))
		return 0;
	return param_read(param, SYSCONFDIR "/accessd.conf", diag);
}

#define LETTERS "c:s:pd:bChV"

static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"set", required_argument, NULL, 's'},
    {"private", no_argument, NULL, 'p'},
    {"dir", required_argument, NULL, 'd'},
    {"background", no_argument, NULL, 'b'},
    {"check", no_argument, NULL, 'C'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* First pass: everything but --set, which comes after the file. -1: go on, else the exit status. */
static int parse_command(int argc, char **argv, struct command *command)
{
	int option;

	while ((option = getopt_long(argc, argv, LETTERS, options, NULL)) >= 0) {
		switch (option) {
		case 'c':
			command->config = optarg;
			break;
		case 'p':
			command->is_private = true;
			break;
		case 'd':
			command->folder = optarg;
			break;
		case 'b':
			command->background = true;
			break;
		case 'C':
			command->is_check = true;
			break;
		case 's':
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			puts("accessd " PACKAGE_VERSION);
			return 0;
		default:
			return 2;
		}
	}
	if (optind == argc)
		return -1;
	fprintf(stderr, "accessd: \"%s\" is no option; `accessd --help` lists them\n",
		argv[optind]);
	return 2;
}

static int set_params(const struct command *command, struct param *param, struct diag *diag)
{
	int option;

	optind = 1;
	while ((option = getopt_long(command->argc, command->argv, LETTERS, options, NULL)) >= 0)
		if (option == 's' && param_set(param, optarg, diag))
			return PARAM_E_BAD;
	return 0;
}

/* What follows is for access-gate to say, which knows it. */
static bool is_way_to_peers(const char *peers)
{
	static const char *const ways[] = {"", "static", "dns", "slurm", "etcd"};
	const size_t length = strcspn(peers, ":");
	bool is_way = false;

	for (size_t i = 0; i < BASE_ARRAY_LEN(ways); i++)
		is_way |= strlen(ways[i]) == length && strncmp(peers, ways[i], length) == 0;
	return is_way;
}

/* Defaults, the file, the environment, the command line. 0, or not, with diag. */
static int read_params(void *arg, struct param *param, struct diag *diag)
{
	const struct command *command = arg;
	enum log_level level;
	int r;

	param_init(param);
	if (command->operate.node) /* it serves already */
		param->known = &command->operate.node->param;
	r = read_config(command, param, diag);
	r = r ? r : set_params(command, param, diag);
	if (r)
		return r;
	if (log_parse_level(param->log_level, &level))
		diag_set(diag, "parameter log_level: write error, warn, info or debug");
	else if (!cache_is_choice(param->cache_point))
		diag_set(diag, "parameter cache_point: write auto, none, indexed, packed, decoded, "
			       "augmented or deepest");
	else if (!is_way_to_peers(param->peers))
		diag_set(diag, "parameter peers: write static:HOST[:PORT],..., dns:NAME[:PORT], "
			       "slurm or etcd:URL");
	else
		return named_check(&param->named, diag) ? PARAM_E_BAD : 0;
	return PARAM_E_BAD;
}

/* The parent's part: waits for the word of the child. Returns the exit status. */
static int wait_until_ready(int fd)
{
	char text[1024];
	size_t size = 0;
	ssize_t n;

	while (size < sizeof(text) - 1 && (n = read(fd, text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)n;
	text[size] = '\0';
	if (strcmp(text, "ready") == 0)
		return 0;
	fprintf(stderr, "accessd: %s\n", *text ? text : "ended before it was ready");
	return 1;
}

/* Forks; returns in the child alone, with stderr going to the log file of the folder. */
static int go_to_background(struct command *command)
{
	int pipe_fds[2], null_fd;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		close(pipe_fds[1]);
		_exit(wait_until_ready(pipe_fds[0]));
	}
	close(pipe_fds[0]);
	command->ready_fd = pipe_fds[1];
	setsid();
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null_fd, 0);
	dup2(null_fd, 1);
	close(null_fd);
	return 0;
}

static void log_to_file(const char *folder)
{
	char path[PARAM_TEXT_MAX + 128];
	struct stat status;
	int fd;

	snprintf(path, sizeof(path), "%s/accessd.log", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && status.st_size > LOG_MOST && ftruncate(fd, 0))
		log_line(LOG_LEVEL_WARN, "log-not-emptied", "path=\"%s\"", path);
	dup2(fd, 2);
	close(fd);
	log_set_file(path);
}

/* A system accessd that root started goes on as a user of its own, with the three capabilities by
 * which it serves others. A root that lacks them, as in some containers, is served alone. 0,
 * or not, with diag. */
static int leave_root(const struct command *command, const struct param *param, struct diag *diag)
{
	struct identity user;
	int r;

	if (command->is_private || geteuid() != 0 || !identity_can_switch())
		return 0;
	r = identity_of_user(param->user, &user);
	if (r)
		return diag_fail(diag, r,
				 "there is no user \"%s\" for accessd to be: make it (useradd "
				 "--system accessd), or name another one by the parameter `user`",
				 param->user);
	r = place_hand_over(param, command->folder, &user, diag);
	if (r)
		return r;
	r = identity_keep_switching(&user);
	if (r)
		diag_set(diag,
			 "cannot become user %u with the capabilities SETUID, SETGID and KILL: %s",
			 (unsigned)user.uid, strerror(-r));
	return r;
}

/* One that a job starts is no service of the manager that started the job. */
static int begin(struct command *command, struct node *node, struct diag *diag)
{
	const bool is_service = !command->background;
	struct notify notify;
	int given_fd, r;

	command->operate = (struct operate){.node = node, .reread = read_params, .arg = command};
	notify_open(&notify, is_service);
	given_fd = notify_take_socket(is_service, diag);
	if (given_fd < 0 && *diag->text)
		return -EINVAL;
	r = place_open(&node->place, &node->param, command->is_private, command->folder, given_fd,
		       diag);
	if (r)
		return r;
	if (command->background)
		log_to_file(node->place.folder);
	node->porters.program = "/proc/self/exe";
	r = node_init(node, diag);
	r = r ? r : operate_begin(&command->operate, &notify);
	if (r)
		node_fini(node);
	notify_close(&notify);
	return r;
}

static int serve(struct command *command, struct node *node)
{
	struct diag diag = {""};
	int r = begin(command, node, &diag);

	if (r)
		return fail(command, diag.text);
	log_line(LOG_LEVEL_INFO, "ready",
		 "version=%s socket=\"%s\" serves=%s workers=%u memory=\"%s\" (%s)",
		 PACKAGE_VERSION, node->place.socket, node->tenants.serves_all ? "all" : "own-user",
		 node->machine.workers, BASE_BYTES(node->memory.budget), node->memory.source);
	if (command->ready_fd >= 0 && write(command->ready_fd, "ready", 5) == 5)
		base_close(&command->ready_fd);
	r = loop_run(node->loop);
	node_fini(node);
	log_line(LOG_LEVEL_INFO, "end", "result=%d", r);
	return r ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct node node;
	static struct command command;
	enum log_level level;
	struct diag diag = {""};
	int status;

	if (argc == 1 && strcmp(argv[0], PORTER_NAME) == 0)
		return porter_main();
	command = (struct command){.argc = argc, .argv = argv, .ready_fd = -1};
	status = parse_command(argc, argv, &command);
	if (status >= 0)
		return status;
	if (read_params(&command, &node.param, &diag) ||
	    log_parse_level(node.param.log_level, &level))
		return fail(&command, diag.text);
	if (!command.is_private && command.background)
		return fail(&command, "--background goes with --private");
	if (command.is_check)
		return 0;
	umask(077);
	if (leave_root(&command, &node.param, &diag))
		return fail(&command, diag.text);
	prctl(PR_SET_DUMPABLE, 0);
	if (command.background && go_to_background(&command))
		return fail(&command, "cannot go to the background");
	log_init("accessd", level);
	log_set_hint("bad-sample", "access-ctl bad JOB lists them all");
	return serve(&command, &node);
}

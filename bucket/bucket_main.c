/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-bucket: shows what lies in an object store as a folder of placeholders, and brings access-reader the bytes.
 *
 * A job starts it, through libaccess, as its own child: with its credentials, proxy, container and network. All that is
 * hopeless is said on stderr before it listens; then the parent exits, and the child goes on in the background, for all jobs
 * of the user that open the same URL, until the last one has gone. It is not dumpable, for its memory has
 * credentials, and logs to FOLDER/log, which is also what one access-bucket a folder holds a lock on.
 */

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/url.h"
#include "bucket/door.h"
#include "shmring/bucket.h"

#define MAIN_KEEP_S 30
#define MAIN_MOST_KEEP_S 86400
#define MAIN_MOST_OPTIONS 64
#define MAIN_NEW "note.new"
#define MAIN_LOG "log"

static const char main_usage[] =
    "access-bucket [--keep SECONDS] FOLDER URL [KEY=VALUE ...]\n"
    "    makes FOLDER a folder of placeholders of what is below URL, and serves its bytes to\n"
    "    access-reader, in the background, until SECONDS (30) after the last job has gone\n"
    "access-bucket --list URL [KEY=VALUE ...]\n"
    "    prints size, date and name of what is below URL\n"
    "Jobs start it by themselves where a data set is a URL: access-bucket(8)\n";

struct arguments {
	bool is_list;
	uint64_t keep_s;
	const char *folder, *url;
	struct bucket_option option[MAIN_MOST_OPTIONS + 1];
	struct bucket_options options;
};

static struct main_state {
	struct arguments arguments;
	struct bucket_url url;
	struct lister lister;
	struct hash_id keys;
	int folder_fd, log_fd, listen_fd;
	int parent_fd; /* where the parent is told how it went */
} bucket = {.folder_fd = -1, .log_fd = -1, .listen_fd = -1, .parent_fd = -1};

/* To the terminal, or by the parent. */
static _Noreturn void fatal(const struct diag *diag)
{
	if (bucket.parent_fd < 0)
		fprintf(stderr, "access-bucket: %s\n", diag->text);
	else if (base_write_all(bucket.parent_fd, diag->text, strlen(diag->text) + 1))
		log_line(LOG_LEVEL_ERROR, "hopeless", "why=\"%s\"", diag->text);
	exit(1);
}

static void say_good(void)
{
	if (base_write_all(bucket.parent_fd, "\n", 1))
		log_line(LOG_LEVEL_WARN, "parent", "why=\"it is gone\"");
	base_close(&bucket.parent_fd);
}

#define main_fail(...)                         \
	do {                                   \
		struct diag said_;             \
		diag_set(&said_, __VA_ARGS__); \
		fatal(&said_);                 \
	} while (0)

/* ---- arguments ---- */

static _Noreturn void usage(int status)
{
	fputs(main_usage, status ? stderr : stdout);
	exit(status);
}

static void parse_options(int n, char **text, struct arguments *ret)
{
	for (int i = 0; i < n; i++) {
		char *equals = strchr(text[i], '=');

		if (!equals || equals == text[i] || ret->options.n == MAIN_MOST_OPTIONS)
			usage(2);
		*equals = '\0';
		ret->option[ret->options.n++] = (struct bucket_option){text[i], equals + 1};
	}
	ret->options.option = ret->option;
}

/* What stands behind "?" may be a signature, and all of the machine see arguments. */
static const char *take_url(char *text)
{
	char *url = strdup(text), *query = strchr(text, '?');

	if (!url)
		main_fail("there is no memory");
	if (query)
		explicit_bzero(query, strlen(query));
	return url;
}

static void parse(int argc, char **argv, struct arguments *ret)
{
	static const struct option options[] = {
	    {"help", no_argument, NULL, 'h'},
	    {"keep", required_argument, NULL, 'k'},
	    {"list", no_argument, NULL, 'l'},
	    {NULL, 0, NULL, 0},
	};
	int letter;

	ret->keep_s = MAIN_KEEP_S;
	while ((letter = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		const char *text = optarg;

		if (letter == 'h')
			usage(0);
		else if (letter == 'l')
			ret->is_list = true;
		else if (letter != 'k' ||
			 !base_parse_number(&text, MAIN_MOST_KEEP_S, &ret->keep_s) || *text)
			usage(2);
	}
	if (argc - optind < (ret->is_list ? 1 : 2))
		usage(2);
	if (!ret->is_list)
		ret->folder = argv[optind++];
	ret->url = take_url(argv[optind++]);
	parse_options(argc - optind, argv + optind, ret);
}

/* ---- what both ways begin with ---- */

/* Jobs that run shall go on with what they were opened with, whoever comes first when the one before has been killed. Had
 * that one jobs until then, its file is new; one that was left by chance binds nobody. */
static void keep_commit(struct bucket_options *options)
{
	static char commit[80];
	_cleanup_close_ int fd =
	    openat(bucket.folder_fd, BUCKET_COMMIT, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat stat;

	if (fd >= 0 && fstat(fd, &stat) == 0 && time(NULL) - stat.st_mtime < BUCKET_COMMIT_S &&
	    read(fd, commit, sizeof(commit) - 1) > 0)
		bucket.arguments.option[options->n++] = (struct bucket_option){"commit", commit};
}

static void open_place(void)
{
	struct diag diag = {""};
	const struct arguments *arguments = &bucket.arguments;
	struct lister *lister = &bucket.lister;

	if (bucket_url_parse(arguments->url, &bucket.url, &diag) ||
	    bucket_options_check(&arguments->options, bucket.url.ops, &diag) ||
	    key_scope_of(bucket.url.path, &lister->scope, &diag) || http_prepare(&diag))
		fatal(&diag);
	if (!arguments->is_list)
		keep_commit(&bucket.arguments.options);
	lister->url = &bucket.url;
	if (http_new(&lister->http))
		main_fail("there is no memory");
	if (bucket.url.ops->open(&bucket.url, &arguments->options, lister->http, &lister->provider,
				 &diag))
		fatal(&diag);
}

/* ---- --list ---- */

static int print(void *arg, const struct lister_object *object, struct diag *diag)
{
	char date[32] = "-";
	const time_t at = (time_t)object->last_modified;
	struct tm tm;

	(void)arg;
	if (object->last_modified != INT64_MIN && gmtime_r(&at, &tm))
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (printf("%14llu  %-20s  %s\n", (unsigned long long)object->size, date,
		   BASE_QUOTED(object->name, 4 * BUCKET_MOST_NAME + 8)) < 0)
		return diag_fail(diag, -EPIPE, "the list cannot be written");
	return 0;
}

static void print_list(void)
{
	static const struct lister_sink sink = {print, NULL};
	struct diag diag = {""};

	if (lister_run(&bucket.lister, &sink, &diag))
		fatal(&diag);
	exit(fflush(stdout) ? 1 : 0);
}

/* ---- the folder ---- */

static int folder_error(const char *what)
{
	main_fail("%s: %s: %s", BASE_QUOTED(bucket.arguments.folder, 300), what, strerror(errno));
}

static void open_folder(void)
{
	const char *folder = bucket.arguments.folder;
	struct stat stat;

	if (mkdir(folder, 0700) && errno != EEXIST)
		folder_error("it cannot be made");
	bucket.folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (bucket.folder_fd < 0 || fstat(bucket.folder_fd, &stat))
		folder_error("it cannot be opened");
	if (stat.st_uid != geteuid() || (stat.st_mode & 022))
		main_fail("%s: it must be your own, and nobody else may write to it",
			  BASE_QUOTED(folder, 300));
}

static struct sockaddr_un address_of(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	/* Not by its name, which may be longer than an address. */
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s",
		 bucket.folder_fd, BUCKET_SOCKET);
	return address;
}

/* To the access-bucket that serves it; -1: none does. */
static int connect_there(void)
{
	const struct sockaddr_un address = address_of();
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0
		   ? base_take_fd(&fd)
		   : -1;
}

static void find_keys(void)
{
	const struct bucket_options *options = &bucket.arguments.options;
	const char *file = bucket_option(options, "token_file");
	const char *anonymous = bucket_option(options, "anonymous");

	if (url_keys(bucket.arguments.url, file ? file : bucket_option(options, "credentials"),
		     anonymous && strcmp(anonymous, "1") == 0, &bucket.keys))
		main_fail("there is no memory");
}

static const struct hash_id nobody;

/* Does that one have these credentials? */
static bool has_keys(const struct hash_id *wanted)
{
	_cleanup_close_ int fd =
	    openat(bucket.folder_fd, BUCKET_KEYS, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct hash_id keys;

	return fd >= 0 && base_read_at(fd, &keys, sizeof(keys), 0) == 0 &&
	       memcmp(&keys, wanted, sizeof(keys)) == 0;
}

static int pass(void *arg, const struct lister_object *object, struct diag *diag)
{
	(void)arg;
	(void)object;
	(void)diag;
	return 0;
}

/* May we list? Where the one that serves was refused, whose jobs may read on with what it listed before, all of it. */
static int try_all(struct diag *diag)
{
	static const struct lister_sink sink = {pass, NULL};

	return has_keys(&nobody) ? lister_run(&bucket.lister, &sink, diag)
				 : lister_try(&bucket.lister, diag);
}

/* It goes on serving whom it serves, unless ours are good for something. */
static void supplant(int fd)
{
	const struct bucket_head yield = {.magic = BUCKET_MAGIC, .kind = BUCKET_YIELD};
	struct pollfd gone = {.fd = fd};
	struct bucket_news news;
	struct diag diag = {""};
	ssize_t n;

	open_place();
	if (try_all(&diag))
		fatal(&diag);
	(void)!send(fd, &yield, sizeof(yield), MSG_NOSIGNAL); /* if not, it has hung up */
	/* It hangs up behind its listing, however long that is: the job waits no longer than it wants to. */
	while (poll(&gone, 1, -1) < 0 && errno == EINTR)
		;
	n = recv(fd, &news, sizeof(news), MSG_DONTWAIT);
	if (n < 0 && errno == ECONNRESET) /* before it read us: it may have said why */
		n = recv(fd, &news, sizeof(news), MSG_DONTWAIT);
	if (n == sizeof(news) && news.magic == BUCKET_MAGIC && news.what == BUCKET_REFUSED)
		main_fail("%.*s", (int)sizeof(news.text) - 1, news.text);
}

/* The lock of the folder. Another access-bucket that serves it with our credentials is as good; one that begins or ends is
 * waited for. */
static void lock_folder(void)
{
	int fd = -1;

	bucket.log_fd = openat(bucket.folder_fd, MAIN_LOG,
			       O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (bucket.log_fd < 0)
		folder_error("its log cannot be opened");
	for (unsigned i = 0; flock(bucket.log_fd, LOCK_EX | LOCK_NB); i++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			folder_error("it cannot be locked");
		fd = connect_there();
		if (fd >= 0 && has_keys(&bucket.keys)) {
			say_good();
			exit(0);
		}
		if (fd >= 0 && !bucket.url.ops) {
			supplant(fd);
			i = 0;
		}
		base_close(&fd);
		if (i == 200)
			main_fail("%s: another access-bucket holds it, and does not answer",
				  BASE_QUOTED(bucket.arguments.folder, 300));
		usleep(50000);
	}
}

/* As a whole or not at all. */
static bool put_file(const char *name, const void *head, size_t head_bytes, const char *text)
{
	_cleanup_close_ int fd =
	    openat(bucket.folder_fd, MAIN_NEW,
		   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd >= 0 && base_write_at(fd, head, head_bytes, 0) == 0 &&
	       base_write_at(fd, text, strlen(text), head_bytes) == 0 &&
	       renameat(bucket.folder_fd, MAIN_NEW, bucket.folder_fd, name) == 0;
}

static void write_notes(void)
{
	const struct bucket_note note = {.magic = BUCKET_MAGIC,
					 .url_bytes = (uint32_t)strlen(bucket.url.text)};
	const struct provider_ops *ops = bucket.url.ops;

	if (!put_file(BUCKET_KEYS, &bucket.keys, sizeof(bucket.keys), "") ||
	    (ops->commit && !put_file(BUCKET_COMMIT, "", 0, ops->commit(bucket.lister.provider))) ||
	    !put_file(BUCKET_NOTE, &note, sizeof(note), bucket.url.text))
		folder_error("its notes cannot be written");
}

/* The files that they are in may have others by now: a job that has those as well is alike. Nobody is like one that is refused:
 * who comes tries his own. */
static void say_keys(bool are_new, bool are_good)
{
	if (are_new)
		find_keys();
	if (!put_file(BUCKET_KEYS, are_good ? &bucket.keys : &nobody, sizeof(nobody), ""))
		log_line(LOG_LEVEL_WARN, "keys", "why=\"%s\"", strerror(errno));
}

static void listen_there(void)
{
	const struct sockaddr_un address = address_of();

	if (unlinkat(bucket.folder_fd, BUCKET_SOCKET, 0) && errno != ENOENT)
		folder_error("an old socket cannot be removed");
	bucket.listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bucket.listen_fd < 0 ||
	    bind(bucket.listen_fd, (const struct sockaddr *)&address, sizeof(address)) ||
	    listen(bucket.listen_fd, 64))
		folder_error("its socket cannot be made");
}

/* ---- the background ---- */

/* Prints what the child says, if it does; and ends as it began. */
static _Noreturn void follow(int fd)
{
	char text[sizeof(struct diag)];
	size_t n = 0;
	ssize_t r;

	while (n < sizeof(text) - 1 && (r = read(fd, text + n, sizeof(text) - 1 - n)) != 0)
		if (r > 0)
			n += (size_t)r;
		else if (errno != EINTR)
			break;
	text[n] = '\0';
	if (n == 1 && *text == '\n')
		_exit(0);
	fprintf(stderr, "access-bucket: %s\n",
		n ? text : "it ended before it could say why: see `log` in its folder");
	_exit(1);
}

static void go_to_background(void)
{
	int fds[2];
	pid_t child;

	if (pipe2(fds, O_CLOEXEC))
		main_fail("pipe: %s", strerror(errno));
	child = fork();
	if (child < 0)
		main_fail("fork: %s", strerror(errno));
	close(fds[child ? 1 : 0]);
	if (child)
		follow(fds[0]);
	bucket.parent_fd = fds[1];
	setsid();
}

static void leave_terminal(void)
{
	const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0 ||
	    dup2(bucket.log_fd, 2) < 0)
		main_fail("/dev/null: %s", strerror(errno));
	if (null_fd > 2)
		close(null_fd);
	/* To what stderr is now: it would hold the job's pipe. */
	log_init("access-bucket", LOG_LEVEL_INFO);
}

static void serve(void)
{
	struct door_place place = {.url = &bucket.url};
	struct tree *tree = NULL;
	struct diag diag = {""};
	struct door *door = NULL;
	bool is_over;
	int r;

	if (tree_open(bucket.folder_fd, &tree, &diag))
		fatal(&diag);
	write_notes();
	listen_there();
	place.provider = bucket.lister.provider;
	place.listen_fd = bucket.listen_fd;
	place.log_fd = bucket.log_fd;
	place.commit_fd =
	    openat(bucket.folder_fd, BUCKET_COMMIT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	place.keys = say_keys;
	place.keep_ns = bucket.arguments.keep_s * 1000000000;
	r = errand_start(&bucket.lister, tree, &place.errand);
	r = r ? r : door_new(&place, &door);
	if (r)
		main_fail("it cannot begin: %s", strerror(-r));
	leave_terminal();
	log_line(LOG_LEVEL_INFO, "serves", "url=\"%s\"", BASE_QUOTED(bucket.url.place, 256));
	say_good();
	is_over = door_serve(door);
	/* The note stays: what is in data has no bytes, whoever looks. */
	unlinkat(bucket.folder_fd, BUCKET_KEYS, 0);
	if (is_over)
		unlinkat(bucket.folder_fd, BUCKET_COMMIT, 0);
	unlinkat(bucket.folder_fd, BUCKET_SOCKET, 0);
	door_free(door);
	log_line(LOG_LEVEL_INFO, "ends", "url=\"%s\"", BASE_QUOTED(bucket.url.place, 256));
}

/* ---- the process ---- */

static void confine(void)
{
	struct rlimit limit;
	sigset_t signals;

	prctl(PR_SET_DUMPABLE, 0);
	umask(077);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL); /* the loop has it by a descriptor */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	prctl(PR_SET_NAME, "access-bucket");
}

int main(int argc, char **argv)
{
	parse(argc, argv, &bucket.arguments);
	tzset();
	if (bucket.arguments.is_list) {
		prctl(PR_SET_DUMPABLE, 0);
		log_init("access-bucket", LOG_LEVEL_ERROR);
		open_place();
		print_list();
	}
	close_range(3, ~0U, 0); /* the job's */
	confine();
	go_to_background();
	open_folder();
	find_keys();
	lock_folder();
	if (!bucket.url.ops)
		open_place();
	serve();
	_exit(0); /* with the other thread, wherever that is */
}

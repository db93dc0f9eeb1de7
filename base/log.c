/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Log lines that cannot hurt the program that writes them.
 *
 * A pipe or socket behind stderr may be full because its reader sleeps. It is written without
 * blocking: a socket by MSG_DONTWAIT, a pipe by a description of our own (opened again through
 * /proc, so that O_NONBLOCK does not reach others who share stderr) or, where that is not allowed,
 * only when poll() says that there is room. A line that finds none is lost and counted; the first
 * line that gets through again is followed by one that tells the count.
 *
 * An event's name has LOG_PER_SECOND lines a second. What is above is counted by name and told by
 * the next line of any name after that second. The table of names is small: a name that finds no
 * free place takes that of the name used longest ago, so a flood of names costs exactness only.
 *
 * One mutex covers it all (any thread may log); nothing is called under it but write and poll. A
 * fork must not happen while another thread logs; our programs fork before they make threads.
 */

#include "base/log.h"
#include "base/hold.h"
#include "base/log_keys.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_PER_SECOND = 20, LOG_EVENTS = 32, LOG_LINE_MAX = 2048, LOG_NAME_MAX = 48 };

enum log_sink { LOG_SINK_PLAIN, LOG_SINK_PIPE, LOG_SINK_SOCKET };

struct log_rate {
	char event[LOG_NAME_MAX];
	enum log_level level;
	uint64_t since_ns;
	unsigned lines;
	uint64_t left_out;
};

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char program[LOG_NAME_MAX];
	enum log_level least;
	bool to_journal;
	enum log_sink sink;
	int fd;
	uint64_t lost, lost_told;
	char place[LOG_PLACE_MAX]; /* empty: not a file that was told */
	const char *hinted, *hint; /* of one event; NULL: there is none */
	struct log_rate rates[LOG_EVENTS];
} log_state = {.program = "-", .least = LOG_LEVEL_INFO, .fd = STDERR_FILENO};

static const struct {
	enum log_level level;
	const char *name;
} log_levels[] = {
    {LOG_LEVEL_ERROR, "error"},
    {LOG_LEVEL_WARN, "warn"},
    {LOG_LEVEL_INFO, "info"},
    {LOG_LEVEL_DEBUG, "debug"},
};

void log_set_file(const char *path)
{
	BASE_HOLD(&log_mutex);
	snprintf(log_state.place, sizeof(log_state.place), "%s", path);
}

const char *log_place(void)
{
	if (log_state.place[0])
		return log_state.place;
	return log_state.to_journal ? "journalctl -u accessd" : "its stderr";
}

int log_parse_level(const char *text, enum log_level *ret)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(log_levels); i++) {
		if (strcmp(text, log_levels[i].name) == 0) {
			*ret = log_levels[i].level;
			return 0;
		}
	}
	return -EINVAL;
}

static const char *log_level_name(enum log_level level)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(log_levels); i++)
		if (log_levels[i].level == level)
			return log_levels[i].name;
	return "info";
}

/* systemd names the socket it gave us; a program that was redirected since then has another. */
static bool log_is_journal(const struct stat *status)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       device == status->st_dev && inode == status->st_ino;
}

static void log_choose_sink(void)
{
	struct stat status = {0};

	if (log_state.fd != STDERR_FILENO)
		base_close(&log_state.fd);
	log_state.fd = STDERR_FILENO;
	log_state.sink = LOG_SINK_PLAIN;
	if (fstat(STDERR_FILENO, &status) < 0)
		return;
	log_state.to_journal = log_is_journal(&status);
	if (S_ISSOCK(status.st_mode)) {
		log_state.sink = LOG_SINK_SOCKET;
	} else if (S_ISFIFO(status.st_mode)) {
		int own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC);

		log_state.sink = LOG_SINK_PIPE;
		if (own >= 0)
			log_state.fd = own;
	}
}

void log_init(const char *program, enum log_level least)
{
	signal(SIGPIPE, SIG_IGN);
	BASE_HOLD(&log_mutex);
	snprintf(log_state.program, sizeof(log_state.program), "%s", program);
	log_state.least = least;
	log_state.to_journal = false;
	log_choose_sink();
}

static ssize_t log_write(const char *line, size_t size)
{
	if (log_state.sink == LOG_SINK_SOCKET)
		return send(log_state.fd, line, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (log_state.sink == LOG_SINK_PIPE) {
		struct pollfd room = {.fd = log_state.fd, .events = POLLOUT};

		/* POLLOUT of a pipe: PIPE_BUF bytes fit, and a line is shorter. */
		if (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT)) {
			errno = EAGAIN;
			return -1;
		}
	}
	return write(log_state.fd, line, size);
}

static bool log_emit(const char *line, size_t size)
{
	ssize_t written;

	do
		written = log_write(line, size);
	while (written < 0 && errno == EINTR);
	if (written == (ssize_t)size)
		return true;
	log_state.lost++;
	return false;
}

/* Writes what stands before the keys into line (LOG_LINE_MAX bytes) and returns its length. */
static size_t log_head(char *line, enum log_level level, const char *event)
{
	struct timespec now;
	struct tm utc;
	char stamp[32];

	if (log_state.to_journal)
		return (size_t)snprintf(line, LOG_LINE_MAX, "<%d>%s %.*s by=%s", (int)level,
					log_level_name(level), LOG_NAME_MAX, event,
					log_state.program);
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
	return (size_t)snprintf(line, LOG_LINE_MAX, "%s.%03ldZ %s %.*s by=%s", stamp,
				now.tv_nsec / 1000000, log_level_name(level), LOG_NAME_MAX, event,
				log_state.program);
}

/* more: NULL: nothing, else what is to be read instead. */
static bool log_emit_count(enum log_level level, const char *event, const char *key,
			   const char *name, uint64_t count, const char *more)
{
	char line[LOG_LINE_MAX];
	size_t used = log_head(line, level, event);

	used += (size_t)snprintf(line + used, sizeof(line) - used, " %s=%s lines=%llu%s%s%s\n", key,
				 name, (unsigned long long)count, more ? " hint=\"" : "",
				 more ? more : "", more ? "\"" : "");
	return log_emit(line, used);
}

static const char *log_hint_of(const char *event)
{
	if (log_state.hinted && strcmp(log_state.hinted, event) == 0)
		return log_state.hint;
	return NULL;
}

static void log_tell_left_out(uint64_t now_ns)
{
	for (size_t i = 0; i < LOG_EVENTS; i++) {
		struct log_rate *rate = &log_state.rates[i];

		if (rate->left_out == 0 || now_ns - rate->since_ns < 1000000000)
			continue;
		if (log_emit_count(rate->level, "log-left-out", "event", rate->event,
				   rate->left_out, log_hint_of(rate->event)))
			rate->left_out = 0;
	}
}

static struct log_rate *log_find_rate(const char *event)
{
	struct log_rate *oldest = &log_state.rates[0];

	for (size_t i = 0; i < LOG_EVENTS; i++) {
		struct log_rate *rate = &log_state.rates[i];

		if (strncmp(rate->event, event, LOG_NAME_MAX - 1) == 0)
			return rate;
		if (rate->since_ns < oldest->since_ns)
			oldest = rate;
	}
	*oldest = (struct log_rate){0};
	snprintf(oldest->event, sizeof(oldest->event), "%s", event);
	return oldest;
}

/* Counts a line of this event; true: it may be written. */
static bool log_try_admit(const char *event, enum log_level level, uint64_t now_ns)
{
	struct log_rate *rate = log_find_rate(event);

	rate->level = level;
	if (rate->since_ns == 0 || now_ns - rate->since_ns >= 1000000000) {
		rate->since_ns = now_ns;
		rate->lines = 0;
	}
	if (rate->lines == LOG_PER_SECOND) {
		rate->left_out++;
		return false;
	}
	rate->lines++;
	return true;
}

/* Keeps one event in one line: what a name brought in is shown, not obeyed. */
static size_t log_finish_line(char *line, size_t used)
{
	for (size_t i = 0; i < used; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[used] = '\n';
	return used + 1;
}

static void log_emit_event(enum log_level level, const char *event, const char *keys)
{
	char line[LOG_LINE_MAX];
	size_t used = log_head(line, level, event);
	int added = snprintf(line + used, sizeof(line) - 1 - used, "%s%s", *keys ? " " : "", keys);

	used = BASE_MIN(used + (size_t)BASE_MAX(added, 0), sizeof(line) - 2);
	if (!log_emit(line, log_finish_line(line, used)))
		return;
	if (log_state.lost > log_state.lost_told &&
	    log_emit_count(LOG_LEVEL_WARN, "log-lost", "reason", "blocked",
			   log_state.lost - log_state.lost_told, NULL))
		log_state.lost_told = log_state.lost;
}

void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
	char keys[LOG_LINE_MAX];
	uint64_t now_ns = base_now_ns();
	int saved = errno;
	va_list args;

	va_start(args, fmt);
	log_keys_format(keys, sizeof(keys), fmt, args);
	va_end(args);
	pthread_mutex_lock(&log_mutex);
	if (level <= log_state.least) {
		log_tell_left_out(now_ns);
		if (log_try_admit(event, level, now_ns))
			log_emit_event(level, event, keys);
	}
	pthread_mutex_unlock(&log_mutex);
	errno = saved;
}

void log_set_hint(const char *event, const char *hint)
{
	BASE_HOLD(&log_mutex);
	log_state.hinted = event;
	log_state.hint = hint;
}

uint64_t log_lost(void)
{
	BASE_HOLD(&log_mutex);
	return log_state.lost;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * far PORT: a server of the loopback from further away, for bench/buckets. It prints a port of its own, and passes all that
 * comes there on to PORT and back; each question (the first bytes behind an answer, as in HTTP/1.1) arrives some time later. It
 * counts. It is told by lines, and answers each:
 *
 *	latency MS          each question from now on; "ok"
 *	late EACH MS        each EACH-th is so much later than that; 0: none; "ok"
 *	counts              "QUESTIONS CONNECTIONS BYTES MOST": since the last line of this kind; bytes of answers, and most
 *	                    questions at once of whose answers no byte had come
 *
 * and ends with its standard input. Answers are not copied into its memory: splice() through pipes.
 */

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"

#define QUESTION_BYTES (64 << 10)
#define PIPE_BYTES (256 << 10)
#define MS UINT64_C(1000000)

struct line;
struct end { /* what epoll knows */
	struct line *line;
	int fd;
	uint32_t events;
};
struct line { /* a connection, and the one behind it */
	struct end client, server;
	int pipe[2];
	size_t piped;
	bool is_asking, is_ended, is_broken;
	uint64_t due_ns;
	size_t held; /* of the question, which is not passed on yet */
	TAILQ_ENTRY(line) due;
	LIST_ENTRY(line) link;
	uint8_t question[QUESTION_BYTES];
};
TAILQ_HEAD(dues, line);
LIST_HEAD(lines, line);

static struct dues dues = TAILQ_HEAD_INITIALIZER(dues); /* the first one first */
static struct lines lines = LIST_HEAD_INITIALIZER(lines);
static int epoll_fd, listen_fd;
static struct sockaddr_in behind = {.sin_family = AF_INET};
static uint64_t latency_ns, late_each, late_ns;
static uint64_t questions, connections, bytes;
static unsigned asking, most;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "far: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void watch(struct end *end, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = end};

	if (end->events != events && epoll_ctl(epoll_fd, EPOLL_CTL_MOD, end->fd, &event))
		fail("epoll_ctl");
	end->events = events;
}

static void begin_watching(struct line *line, struct end *end)
{
	const int yes = 1;
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = end};

	end->line = line;
	end->events = EPOLLIN;
	setsockopt(end->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, end->fd, &event))
		fail("epoll_ctl");
}

static void on_connection(void)
{
	const int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct line *line = fd < 0 ? NULL : calloc(1, sizeof(*line));

	if (!line)
		fail("accept");
	line->client.fd = fd;
	line->server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (line->server.fd < 0 ||
	    connect(line->server.fd, (struct sockaddr *)&behind, sizeof(behind)) ||
	    fcntl(line->server.fd, F_SETFL, O_NONBLOCK) ||
	    pipe2(line->pipe, O_CLOEXEC | O_NONBLOCK))
		fail("connect");
	fcntl(line->pipe[0], F_SETPIPE_SZ, PIPE_BYTES);
	begin_watching(line, &line->client);
	begin_watching(line, &line->server);
	LIST_INSERT_HEAD(&lines, line, link);
	connections++;
}

/* Those that end later come behind it. */
static void wait_for(struct line *line)
{
	struct line *before;

	for (before = TAILQ_LAST(&dues, dues); before && before->due_ns > line->due_ns;)
		before = TAILQ_PREV(before, dues, due);
	if (before)
		TAILQ_INSERT_AFTER(&dues, before, line, due);
	else
		TAILQ_INSERT_HEAD(&dues, line, due);
}

static void on_question(struct line *line)
{
	const ssize_t n =
	    read(line->client.fd, line->question + line->held, sizeof(line->question) - line->held);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		line->is_broken = true;
		return;
	}
	if (!line->held) {
		line->due_ns = base_now_ns();
		if (!line->is_asking) {
			questions++;
			line->due_ns += latency_ns;
			if (late_each && questions % late_each == 0)
				line->due_ns += late_ns;
			line->is_asking = true;
			most = BASE_MAX(most, asking + 1);
			asking++;
		}
		wait_for(line);
	}
	line->held += (size_t)n;
	if (line->held == sizeof(line->question))
		watch(&line->client, 0);
}

static void pass_on(struct line *line)
{
	TAILQ_REMOVE(&dues, line, due);
	/* It is far smaller than what the socket takes. */
	if (write(line->server.fd, line->question, line->held) != (ssize_t)line->held)
		line->is_broken = true;
	line->held = 0;
	watch(&line->client, EPOLLIN | (line->client.events & EPOLLOUT));
}

static void on_answer(struct line *line)
{
	for (;;) {
		ssize_t n = splice(line->server.fd, NULL, line->pipe[1], NULL, PIPE_BYTES,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		line->is_ended |= n == 0;
		line->is_broken |= n < 0 && errno != EAGAIN;
		if (n > 0) {
			line->piped += (size_t)n;
			bytes += (uint64_t)n;
			asking -= line->is_asking;
			line->is_asking = false;
		}
		if (!line->piped)
			break;
		n = splice(line->pipe[0], NULL, line->client.fd, NULL, line->piped,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		line->is_broken |= n < 0 && errno != EAGAIN;
		if (n <= 0)
			break;
		line->piped -= (size_t)n;
	}
	line->is_broken |= line->is_ended && !line->piped;
	watch(&line->server, line->piped ? 0 : EPOLLIN);
	watch(&line->client,
	      (line->held < sizeof(line->question) ? EPOLLIN : 0u) | (line->piped ? EPOLLOUT : 0u));
}

static void free_broken(void)
{
	BASE_EACH_LEAVING(line, &lines, link) {
		if (!line->is_broken)
			continue;
		if (line->held)
			TAILQ_REMOVE(&dues, line, due);
		asking -= line->is_asking;
		LIST_REMOVE(line, link);
		close(line->client.fd);
		close(line->server.fd);
		close(line->pipe[0]);
		close(line->pipe[1]);
		free(line);
	}
}

/* false: the end. */
static bool on_line(void)
{
	char text[128];
	unsigned long long a, b;
	const ssize_t n = read(STDIN_FILENO, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "latency %llu", &a) == 1) {
		latency_ns = a * MS;
		puts("ok");
	} else if (sscanf(text, "late %llu %llu", &a, &b) == 2) {
		late_each = a;
		late_ns = b * MS;
		puts("ok");
	} else {
		printf("%llu %llu %llu %u\n", (unsigned long long)questions,
		       (unsigned long long)connections, (unsigned long long)bytes, most);
		questions = connections = bytes = 0;
		most = asking;
	}
	fflush(stdout);
	return true;
}

static int timeout_ms(void)
{
	const struct line *first = TAILQ_FIRST(&dues);
	const uint64_t now_ns = base_now_ns();

	return !first                    ? -1
	       : first->due_ns <= now_ns ? 0
					 : (int)((first->due_ns - now_ns + MS - 1) / MS);
}

static void on_event(const struct epoll_event *event)
{
	struct end *end = event->data.ptr;
	struct line *line = end->line;

	if (line->is_broken)
		return;
	if (end == &line->server || event->events & EPOLLOUT)
		on_answer(line);
	if (end == &line->client && event->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		on_question(line);
}

static void serve(void)
{
	struct epoll_event event[64];
	struct line *line;

	for (;;) {
		const int n = epoll_wait(epoll_fd, event, BASE_ARRAY_LEN(event), timeout_ms());

		for (int i = 0; i < n; i++) {
			if (event[i].data.ptr == &listen_fd)
				on_connection();
			else if (event[i].data.ptr != NULL)
				on_event(&event[i]);
			else if (!on_line())
				return;
		}
		while ((line = TAILQ_FIRST(&dues)) && line->due_ns <= base_now_ns())
			pass_on(line);
		free_broken();
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event event = {.events = EPOLLIN};
	socklen_t size = sizeof(own);
	struct rlimit files;

	if (argc != 2) {
		fprintf(stderr, "usage: far PORT\n");
		return 2;
	}
	behind.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	behind.sin_port = htons((uint16_t)atoi(argv[1]));
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	signal(SIGPIPE, SIG_IGN);
	listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listen_fd < 0 || bind(listen_fd, (struct sockaddr *)&own, sizeof(own)) ||
	    listen(listen_fd, 1024) || getsockname(listen_fd, (struct sockaddr *)&own, &size))
		fail("listen");
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, STDIN_FILENO, &event))
		fail("epoll");
	event.data.ptr = &listen_fd;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &event))
		fail("epoll");
	printf("%u\n", ntohs(own.sin_port));
	fflush(stdout);
	serve();
	return 0;
}

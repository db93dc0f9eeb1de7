/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libevent's HTTP behind limits: GET alone, small heads, no bodies, one request a connection. accessd is asked once for all who
 * ask meanwhile, by a child (ask.h), and its answer serves whoever asks within FRESH_NS; so a crowd of scrapes is one
 * question, and one that hangs makes nobody wait longer than the child lives.
 *
 * Connections are as many as descriptors allow; when these are spent, nobody is accepted for a moment. Who is slow is cut off:
 * one that says nothing after TIMEOUT_S by libevent, and one that says a byte now and then by sweep(), which looks how
 * long each socket has been here. Descriptors for the question are beyond those for connections, so that nobody who
 * asks keeps others from being answered.
 */
#include "exporter/serve.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "exporter/ask.h"
#include "exporter/metric.h"

#define FILES 64        /* descriptors in all while nobody is asked */
#define FILES_TO_ASK 16 /* more, for a question */
#define TIMEOUT_S 10
#define OLD_NS UINT64_C(20000000000) /* of a connection */
#define FRESH_NS UINT64_C(500000000)
#define HEAD_MOST 8192
#define PAUSE_MS 200
#define SWEEP_S 1

struct waiter {
	LIST_ENTRY(waiter) link;
	struct serve *serve;
	struct evhttp_request *request;
	bool wants_page;
};

struct serve {
	const char *socket;
	struct event_base *base;
	struct evhttp *http;
	struct evconnlistener *listener;
	struct event *resume, *sweep, *term, *interrupt, *heard;
	LIST_HEAD(serve_waiters, waiter) waiters;

	pid_t child; /* that asks; 0: none */
	int child_fd;
	struct evbuffer *answer; /* as far as it came */

	struct json_in *status; /* the last one; NULL: there was none, and why */
	struct diag why;
	uint64_t status_ns; /* when; 0: never */

	struct seen {
		ino_t inode;
		uint64_t since_ns;
	} seen[FILES + FILES_TO_ASK]; /* by descriptor */
};

static void allow_files(rlim_t files)
{
	struct rlimit limit = {.rlim_cur = files, .rlim_max = FILES + FILES_TO_ASK};

	setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- answers ---- */

static void reply(struct evhttp_request *request, int code, const char *reason, const char *type,
		  const char *text, size_t size)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	struct evbuffer *body = evbuffer_new();

	evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
	evhttp_add_header(headers, "Connection", "close");
	evhttp_add_header(headers, "Content-Type", type);
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	evhttp_add_header(headers, "Content-Security-Policy",
			  "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
	if (body)
		evbuffer_add(body, text, size);
	evhttp_send_reply(request, body ? code : HTTP_INTERNAL, reason, body);
	if (body)
		evbuffer_free(body);
}

static void reply_text(struct evhttp_request *request, int code, const char *reason,
		       const char *text)
{
	reply(request, code, reason, "text/plain; charset=utf-8", text, strlen(text));
}

static void write_answer(const struct serve *serve, const struct waiter *waiter,
			 enum metric_format format, FILE *out)
{
	if (waiter->wants_page)
		page_write(serve->status, serve->why.text, out);
	else
		metric_page(serve->status, format, out);
}

static void serve_waiter(const struct serve *serve, const struct waiter *waiter)
{
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(waiter->request);
	const enum metric_format format = metric_format_of(evhttp_find_header(headers, "Accept"));
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (out)
		write_answer(serve, waiter, format, out);
	if (!out || fclose(out))
		reply_text(waiter->request, HTTP_INTERNAL, "Internal Error", "out of memory\n");
	else
		reply(waiter->request, HTTP_OK, "OK",
		      waiter->wants_page ? "text/html; charset=utf-8" : metric_content_type(format),
		      text, size);
}

static void serve_all(struct serve *serve)
{
	struct waiter *waiter;

	while ((waiter = LIST_FIRST(&serve->waiters))) {
		LIST_REMOVE(waiter, link);
		serve_waiter(serve, waiter);
		free(waiter);
	}
}

/* ---- the question ---- */

static void take_answer(struct serve *serve)
{
	const size_t size = evbuffer_get_length(serve->answer);
	const char *text = (const char *)evbuffer_pullup(serve->answer, -1);

	json_in_free(serve->status);
	serve->status = NULL;
	serve->status_ns = base_now_ns();
	if (!size || !text)
		diag_set(&serve->why, "it says nothing for %d s", ASK_TIMEOUT_S);
	else if (text[0] != ASK_GOOD)
		diag_set(&serve->why, "%.*s", (int)BASE_MIN(size - 1, (size_t)500), text + 1);
	else if (json_in_parse(text + 1, size - 1, ASK_MOST, &serve->status, &serve->why))
		serve->status = NULL;
}

static void stop_asking(struct serve *serve)
{
	if (serve->heard)
		event_free(serve->heard);
	serve->heard = NULL;
	base_close(&serve->child_fd);
	base_kill(&serve->child);
	allow_files(FILES);
}

static void on_heard(evutil_socket_t fd, short what, void *arg)
{
	struct serve *serve = arg;
	int n = evbuffer_read(serve->answer, fd, 1 << 20);

	(void)what;
	if (n > 0 && evbuffer_get_length(serve->answer) <= ASK_MOST)
		return;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	stop_asking(serve);
	take_answer(serve);
	serve_all(serve);
}

/* false: serve->why says why not. */
static bool ask(struct serve *serve)
{
	int r;

	allow_files(FILES + FILES_TO_ASK);
	r = ask_begin(serve->socket, &serve->child, &serve->child_fd);
	if (r == 0) {
		evbuffer_drain(serve->answer, evbuffer_get_length(serve->answer));
		serve->heard =
		    event_new(serve->base, serve->child_fd, EV_READ | EV_PERSIST, on_heard, serve);
		if (serve->heard && event_add(serve->heard, NULL) == 0)
			return true;
		stop_asking(serve);
		r = -ENOMEM;
	}
	allow_files(FILES);
	json_in_free(serve->status);
	serve->status = NULL;
	diag_set(&serve->why, "cannot ask it: %s", strerror(-r));
	return false;
}

/* ---- requests ---- */

static void on_gone(struct evhttp_connection *connection, void *arg)
{
	struct waiter *waiter = arg;

	(void)connection;
	LIST_REMOVE(waiter, link);
	free(waiter);
}

static void wait_for_status(struct serve *serve, struct evhttp_request *request, bool wants_page)
{
	struct waiter *waiter = calloc(1, sizeof(*waiter));

	if (!waiter) {
		reply_text(request, HTTP_INTERNAL, "Internal Error", "out of memory\n");
		return;
	}
	waiter->serve = serve;
	waiter->request = request;
	waiter->wants_page = wants_page;
	LIST_INSERT_HEAD(&serve->waiters, waiter, link);
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_gone, waiter);
	if (serve->child)
		return;
	if ((serve->status_ns && base_now_ns() - serve->status_ns < FRESH_NS) || !ask(serve))
		serve_all(serve);
}

static void on_request(struct evhttp_request *request, void *arg)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;

	path = path ? path : "";
	if (evhttp_request_get_command(request) != EVHTTP_REQ_GET)
		reply_text(request, HTTP_BADMETHOD, "Method Not Allowed", "GET alone\n");
	else if (strcmp(path, "/metrics") == 0)
		wait_for_status(arg, request, false);
	else if (strcmp(path, "/") == 0)
		wait_for_status(arg, request, true);
	else if (strcmp(path, "/healthz") == 0)
		reply_text(request, HTTP_OK, "OK", "ok\n");
	else
		reply_text(request, HTTP_NOTFOUND, "Not Found",
			   "there are /, /metrics and /healthz\n");
}

/* ---- connections ---- */

/* The listener's argument is HTTP's, which has none for us: there is one listener. */
static struct event *resume_accepting;

static void on_accept_error(struct evconnlistener *listener, void *http)
{
	const struct timeval pause = {.tv_usec = PAUSE_MS * 1000};

	(void)http;
	evconnlistener_disable(listener);
	event_add(resume_accepting, &pause);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct serve *serve = arg;

	(void)fd;
	(void)what;
	evconnlistener_enable(serve->listener);
}

static bool is_connection(const struct serve *serve, int fd, ino_t *ret_inode)
{
	struct stat status;
	int listens = 0;
	socklen_t size = sizeof(listens);

	if (fd == evconnlistener_get_fd(serve->listener) || fstat(fd, &status) ||
	    !S_ISSOCK(status.st_mode) ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) || fd <= STDERR_FILENO)
		return false;
	*ret_inode = status.st_ino;
	return true;
}

/* libevent's own pair for signals, too, is a socket, but has no peer. */
static bool has_peer(int fd)
{
	struct sockaddr_storage local;
	socklen_t size = sizeof(local);

	if (getsockname(fd, (struct sockaddr *)&local, &size))
		return false;
	return local.ss_family != AF_UNIX || size > offsetof(struct sockaddr_un, sun_path);
}

static void on_sweep(evutil_socket_t unused, short what, void *arg)
{
	struct serve *serve = arg;
	const uint64_t now_ns = base_now_ns();

	(void)unused;
	(void)what;
	for (int fd = 0; fd < FILES + FILES_TO_ASK; fd++) {
		struct seen *seen = &serve->seen[fd];
		ino_t inode = 0;

		if (!is_connection(serve, fd, &inode) || !has_peer(fd) || inode != seen->inode)
			*seen = (struct seen){.inode = inode, .since_ns = now_ns};
		else if (now_ns - seen->since_ns > OLD_NS)
			shutdown(fd, SHUT_RDWR);
	}
}

/* ---- listening ---- */

static int parse_listen(const char *listen, char *ret_address, size_t size, uint16_t *ret_port,
			struct diag *diag)
{
	const char *colon = strrchr(listen, ':'), *digits = colon ? colon + 1 : "";
	bool in_brackets = listen[0] == '[' && colon && colon[-1] == ']';
	size_t length = colon ? (size_t)(colon - listen) - 2 * in_brackets : 0;
	uint64_t port = 0;

	if (!colon || !*digits || !base_parse_number(&digits, 65535, &port) || *digits ||
	    length < 1 || length >= size || (memchr(listen, ':', length) && !in_brackets))
		return diag_fail(
		    diag, SERVE_E_BAD,
		    "--listen %s: write ADDRESS:PORT, [ADDRESS]:PORT, or the path of a "
		    "socket from / on",
		    listen);
	snprintf(ret_address, size, "%.*s", (int)length, listen + in_brackets);
	*ret_port = (uint16_t)port;
	return 0;
}

/* One that nobody listens at any more is replaced. */
static int listen_at_path(const char *path, struct diag *diag)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat status;

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		return diag_fail(diag, -1, "--listen %s: %s", path,
				 strerror(fd < 0 ? errno : ENAMETOOLONG));
	strcpy(address.sun_path, path);
	if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode) &&
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno == ECONNREFUSED)
		unlink(path);
	base_close(&fd);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)))
		return diag_fail(diag, -1, "cannot listen at %s: %s", path, strerror(errno));
	return base_take_fd(&fd);
}

/* Numbers alone: names are the resolver's business. */
static socklen_t address_of(const char *host, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *four = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;

	*ret = (struct sockaddr_storage){.ss_family = AF_INET};
	four->sin_port = htons(port);
	if (evutil_inet_pton(AF_INET, host, &four->sin_addr) == 1)
		return sizeof(*four);
	*ret = (struct sockaddr_storage){.ss_family = AF_INET6};
	six->sin6_port = htons(port);
	return evutil_inet_pton(AF_INET6, host, &six->sin6_addr) == 1 ? sizeof(*six) : 0;
}

static int listen_at_port(const char *listen, struct diag *diag)
{
	struct sockaddr_storage address;
	_cleanup_close_ int fd = -1;
	socklen_t size;
	char host[64];
	uint16_t port;
	int one = 1;

	if (parse_listen(listen, host, sizeof(host), &port, diag))
		return -1;
	size = address_of(host, port, &address);
	if (!size)
		return diag_fail(diag, -1,
				 "--listen %s: the address must be a number, such as 127.0.0.1",
				 listen);
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&address, size))
		return diag_fail(diag, -1, "cannot listen at %s: %s", listen, strerror(errno));
	return base_take_fd(&fd);
}

static int start_listening(struct serve *serve, const char *listen, struct diag *diag)
{
	int fd = *listen == '/' ? listen_at_path(listen, diag) : listen_at_port(listen, diag);

	if (fd < 0)
		return SERVE_E_BAD;
	serve->listener = evconnlistener_new(serve->base, NULL, NULL,
					     LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 32, fd);
	if (!serve->listener) {
		diag_set(diag, "cannot listen at %s: %s", listen, strerror(errno));
		close(fd);
		return SERVE_E_BAD;
	}
	evconnlistener_set_error_cb(serve->listener, on_accept_error);
	return evhttp_bind_listener(serve->http, serve->listener) ? 0 : SERVE_E_BAD;
}

/* What was chosen, for port 0. */
static void tell_ready(const struct serve *serve, const char *listen)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	uint16_t port = 0;

	if (getsockname(evconnlistener_get_fd(serve->listener), (struct sockaddr *)&address,
			&size) == 0) {
		if (address.ss_family == AF_INET)
			port = ntohs(((struct sockaddr_in *)&address)->sin_port);
		else if (address.ss_family == AF_INET6)
			port = ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
	}
	log_line(LOG_LEVEL_INFO, "ready", "listen=\"%s\" port=%u", listen, port);
}

/* ---- all of it ---- */

static void on_signal(evutil_socket_t signo, short what, void *arg)
{
	struct serve *serve = arg;

	(void)signo;
	(void)what;
	event_base_loopbreak(serve->base);
}

static int set_up(struct serve *serve)
{
	const struct timeval second = {.tv_sec = SWEEP_S};

	serve->base = event_base_new();
	serve->answer = evbuffer_new();
	serve->http = serve->base ? evhttp_new(serve->base) : NULL;
	if (!serve->http || !serve->answer)
		return -ENOMEM;
	evhttp_set_allowed_methods(serve->http, EVHTTP_REQ_GET);
	evhttp_set_max_headers_size(serve->http, HEAD_MOST);
	evhttp_set_max_body_size(serve->http, 0);
	evhttp_set_timeout(serve->http, TIMEOUT_S);
	evhttp_set_gencb(serve->http, on_request, serve);
	serve->resume = event_new(serve->base, -1, 0, on_resume, serve);
	serve->sweep = event_new(serve->base, -1, EV_PERSIST, on_sweep, serve);
	serve->term = evsignal_new(serve->base, SIGTERM, on_signal, serve);
	serve->interrupt = evsignal_new(serve->base, SIGINT, on_signal, serve);
	resume_accepting = serve->resume;
	if (!serve->resume || !serve->sweep || !serve->term || !serve->interrupt)
		return -ENOMEM;
	return event_add(serve->sweep, &second) || event_add(serve->term, NULL) ||
		       event_add(serve->interrupt, NULL)
		   ? -ENOMEM
		   : 0;
}

static void tear_down(struct serve *serve, const char *listen)
{
	struct event *events[] = {serve->resume, serve->sweep, serve->term, serve->interrupt};
	struct waiter *waiter;

	while ((waiter = LIST_FIRST(&serve->waiters))) {
		LIST_REMOVE(waiter, link);
		reply_text(waiter->request, HTTP_SERVUNAVAIL, "Service Unavailable", "it ends\n");
		free(waiter);
	}
	if (serve->child)
		stop_asking(serve);
	if (serve->listener && *listen == '/')
		unlink(listen);
	for (size_t i = 0; i < BASE_ARRAY_LEN(events); i++)
		if (events[i])
			event_free(events[i]);
	if (serve->http)
		evhttp_free(serve->http); /* and the listener */
	if (serve->answer)
		evbuffer_free(serve->answer);
	if (serve->base)
		event_base_free(serve->base);
	json_in_free(serve->status);
}

int serve_run(const struct serve_config *config, struct diag *diag)
{
	struct serve serve = {.socket = config->socket, .child_fd = -1};
	int r;

	LIST_INIT(&serve.waiters);
	signal(SIGPIPE, SIG_IGN);
	diag_set(diag, "cannot set up: out of memory");
	r = set_up(&serve) ? SERVE_E_BAD : start_listening(&serve, config->listen, diag);
	if (r == 0) {
		allow_files(FILES);
		tell_ready(&serve, config->listen);
		event_base_dispatch(serve.base);
	}
	tear_down(&serve, config->listen);
	return r;
}

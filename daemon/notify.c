/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manager's side is a datagram socket: a path, or an abstract name that begins with '@'. It is found anew for each
 * datagram, as a manager that was started again listens on another socket of that name. A full queue, like every other
 * hindrance, loses the datagram; the watchdog's come more often than they must, and service.c says the others again.
 */
#include "daemon/notify.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"

#define FIRST_FD 3 /* of those that a manager opened */

/* A number of the environment, in all digits; false: it is not there, or none. */
static bool read_number(const char *name, uint64_t *ret)
{
	const char *text = getenv(name);

	return text && base_parse_number(&text, UINT64_MAX, ret) && !*text;
}

/* *ret_size: of the address. 0, or -EINVAL. */
static int parse_address(const char *text, struct sockaddr_un *ret, socklen_t *ret_size)
{
	const size_t length = strlen(text);
	const bool is_abstract = text[0] == '@';

	if ((!is_abstract && text[0] != '/') || length < 2 || length >= sizeof(ret->sun_path))
		return -EINVAL;
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret->sun_path, text, length);
	if (is_abstract)
		ret->sun_path[0] = '\0';
	*ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + !is_abstract);
	return 0;
}

static void open_socket(struct notify *notify, const char *text)
{
	int r = parse_address(text, &notify->address, &notify->size), fd;

	if (r) {
		log_line(LOG_LEVEL_WARN, "notify-off",
			 "NOTIFY_SOCKET=%s text=\"neither a path from / on nor a name after @, or "
			 "too long: whoever started accessd is told nothing\"",
			 BASE_QUOTED(text, 256));
		return;
	}
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		log_line(LOG_LEVEL_WARN, "notify-off", "error=\"%s\"", strerror(errno));
	else
		notify->fd = fd;
}

/* Of this process: the variable says its number, or nothing does. */
static bool is_for_us(const char *name)
{
	uint64_t pid;

	return !getenv(name) || (read_number(name, &pid) && pid == (uint64_t)getpid());
}

void notify_open(struct notify *notify, bool listens)
{
	const char *text = getenv("NOTIFY_SOCKET");
	uint64_t usec = 0;

	*notify = (struct notify){.fd = 0};
	if (listens && text && *text)
		open_socket(notify, text);
	if (notify->fd && is_for_us("WATCHDOG_PID") && read_number("WATCHDOG_USEC", &usec) &&
	    usec <= UINT64_MAX / 1000)
		notify->watchdog_ns = usec * 1000;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
}

bool notify_say(struct notify *notify, const char *lines)
{
	ssize_t sent;

	if (!notify->fd)
		return true;
	do
		sent = sendto(notify->fd, lines, strlen(lines), MSG_DONTWAIT | MSG_NOSIGNAL,
			      (const struct sockaddr *)&notify->address, notify->size);
	while (sent < 0 && errno == EINTR);
	return sent >= 0;
}

void notify_close(struct notify *notify)
{
	if (notify->fd)
		close(notify->fd);
	*notify = (struct notify){.fd = 0};
}

/* ---- the socket that was opened for us ---- */

static bool has_option(int fd, int option, int value)
{
	int found = 0;
	socklen_t size = sizeof(found);

	return getsockopt(fd, SOL_SOCKET, option, &found, &size) == 0 && found == value;
}

static int use_socket(int fd, struct diag *diag)
{
	if (!has_option(fd, SO_DOMAIN, AF_UNIX) || !has_option(fd, SO_TYPE, SOCK_SEQPACKET) ||
	    !has_option(fd, SO_ACCEPTCONN, 1))
		return diag_fail(diag, -1,
				 "the socket that the service manager opened must be of "
				 "ListenSequentialPacket=, with a path: see accessd.socket");
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return diag_fail(diag, -1, "the socket that the service manager opened: %s",
				 strerror(errno));
	return fd;
}

int notify_take_socket(bool listens, struct diag *diag)
{
	uint64_t n = 0;
	int fd = -1;

	if (listens && getenv("LISTEN_PID") && is_for_us("LISTEN_PID") &&
	    read_number("LISTEN_FDS", &n) && n == 1)
		fd = use_socket(FIRST_FD, diag);
	else if (n > 1)
		diag_set(diag,
			 "the service manager opened %llu sockets: accessd listens on one alone, "
			 "its control socket",
			 (unsigned long long)n);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return fd;
}

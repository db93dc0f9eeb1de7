/* SPDX-License-Identifier: Apache-2.0 */

/* Connected stream sockets: TCP, and for tests those of a pair. */

#include "cluster/transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/base.h"

struct tcp {
	struct transport transport; /* first */
	int fd;
	uint32_t events; /* that epoll looks for; 0: it does not know the socket */
};

static struct tcp *tcp_of(struct transport *transport)
{
	return (struct tcp *)transport;
}

static ssize_t tcp_send(struct transport *transport, const struct iovec *parts, unsigned n)
{
	const struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = n};
	ssize_t bytes;

	do
		bytes = sendmsg(tcp_of(transport)->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (bytes < 0 && errno == EINTR);
	return bytes < 0 ? -errno : bytes;
}

static ssize_t tcp_receive(struct transport *transport, const struct iovec *parts, unsigned n)
{
	struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = n};
	ssize_t bytes;

	do
		bytes = recvmsg(tcp_of(transport)->fd, &message, MSG_DONTWAIT);
	while (bytes < 0 && errno == EINTR);
	return bytes < 0 ? -errno : bytes;
}

static int tcp_wait(struct transport *transport, int epoll_fd, uint64_t tag, bool receives,
		    bool sends)
{
	struct tcp *tcp = tcp_of(transport);
	struct epoll_event event = {
	    .events = (receives ? EPOLLIN : 0U) | (sends ? EPOLLOUT : 0U),
	    .data.u64 = tag,
	};

	int op = EPOLL_CTL_MOD;

	if (tcp->events == event.events)
		return 0;
	if (tcp->events == 0)
		op = EPOLL_CTL_ADD;
	else if (event.events == 0)
		op = EPOLL_CTL_DEL; /* or a hangup, which is always told, would wake for ever */
	if (epoll_ctl(epoll_fd, op, tcp->fd, &event) < 0)
		return -errno;
	tcp->events = event.events;
	return 0;
}

static void tcp_woke(struct transport *transport, uint32_t events, bool *ret_receives,
		     bool *ret_sends)
{
	(void)transport;
	*ret_sends = events & (EPOLLOUT | EPOLLERR | EPOLLHUP);
	*ret_receives = events & (EPOLLIN | EPOLLERR | EPOLLHUP);
}

static const char *tcp_why(const struct transport *transport)
{
	(void)transport;
	return NULL;
}

static void tcp_close(struct transport *transport)
{
	struct tcp *tcp = tcp_of(transport);

	base_close(&tcp->fd);
	free(tcp);
}

static const struct transport_ops tcp_ops = {
    .name = "tcp",
    .send = tcp_send,
    .receive = tcp_receive,
    .wait = tcp_wait,
    .woke = tcp_woke,
    .why = tcp_why,
    .close = tcp_close,
};

int transport_tcp_new(int fd, struct transport **ret)
{
	_cleanup_close_ int owned = fd;
	const int yes = 1;
	int type = 0;
	socklen_t size = sizeof(type);
	struct tcp *tcp;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
		return -errno;
	if (type != SOCK_STREAM)
		return -EPROTOTYPE;
	tcp = calloc(1, sizeof(*tcp));
	if (!tcp)
		return -ENOMEM;
	/* No harm where it is another kind of stream. Messages are batched here. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	*tcp = (struct tcp){.transport.ops = &tcp_ops, .fd = base_take_fd(&owned)};
	*ret = &tcp->transport;
	return 0;
}

int transport_tcp_take(struct transport *transport)
{
	struct tcp *tcp = tcp_of(transport);
	const int fd = tcp->fd;

	free(tcp);
	return fd;
}

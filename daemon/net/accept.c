/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepting.
 *
 * Anybody who can reach the socket can connect, so connections alone must cost nobody anything: a
 * client that comes when there are the most already takes the place of the one that has been there
 * longest without a job and without asking for one. Only when all of them have or want jobs is he
 * turned away. Among tenants one user has a share of the connections, and in that he makes room for
 * himself: whoever floods us so meets his own limit, and takes nobody else's place.
 *
 * A connection takes two descriptors, its socket and its process. When descriptors or memory are
 * spent all the same, the listening socket stays readable and accept() fails: then nobody is
 * accepted for a moment, instead of trying again and again.
 */
#include "daemon/net/accept.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/net/client.h"
#include "daemon/net/conn.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/tenant/tenant.h"
#include "libaccess/libaccess.h"

#define AT_ONCE 16 /* clients a turn of the loop */
#define PAUSE_NS UINT64_C(200000000)
#define OWN_FILES 128 /* descriptors for everything that is no client's */

struct accept {
	struct node *node;
	struct loop_watch *watch, *pause;
	uint64_t most; /* connections at once */
	bool is_paused;
};

/* The oldest connection that nothing depends on (of the newest's user), or NULL. New ones are at the head of the list. */
static struct conn *find_spare(struct node *node, const struct conn *newest, bool of_same_user)
{
	struct conn *spare = NULL;

	BASE_EACH(conn, &node->clients.list, link)
		if (conn != newest && client_is_spare(conn) &&
		    (!of_same_user || conn->uid == newest->uid))
			spare = conn;
	return spare;
}

static void make_room(struct accept *accept, struct conn *newest, bool of_same_user)
{
	struct conn *spare = find_spare(accept->node, newest, of_same_user);
	uint64_t most = accept->most;

	if (spare) {
		client_free(spare);
		return;
	}
	if (of_same_user)
		conn_refuse(
		    newest, OA_E_REFUSED,
		    "user %u has %llu clients of accessd already, the most that one may have: end "
		    "some, or ask who runs accessd to raise tenant_clients or tenant.%u.clients",
		    (unsigned)newest->uid,
		    (unsigned long long)tenant_conns_most(accept->node, newest->uid, most),
		    (unsigned)tenant_of(accept->node, newest->uid));
	else
		conn_refuse(
		    newest, OA_E_REFUSED,
		    "accessd serves %llu clients already, its most: raise max_clients or the "
		    "limit of open files",
		    (unsigned long long)most);
	client_free(newest);
}

static void take_in(struct accept *accept, int fd)
{
	struct node *node = accept->node;
	struct conn *conn = client_new(node, fd);

	if (!conn)
		return;
	if (tenant_conns(node, conn->uid) > tenant_conns_most(node, conn->uid, accept->most))
		make_room(accept, conn, true);
	else if (node->clients.n > accept->most)
		make_room(accept, conn, false);
}

static int watch(struct accept *accept);

static void on_pause_end(void *arg)
{
	struct accept *accept = arg;

	if (watch(accept))
		loop_timer_set(accept->pause, PAUSE_NS);
}

static void pause_for(struct accept *accept, int error)
{
	if (!accept->is_paused)
		log_line(LOG_LEVEL_ERROR, "accept-paused",
			 "error=\"%s\" clients=%u text=\"raise the limit of open files "
			 "(LimitNOFILE), or lower max_clients\"",
			 strerror(error), accept->node->clients.n);
	accept->is_paused = true;
	loop_unwatch(&accept->watch);
	loop_timer_set(accept->pause, PAUSE_NS);
}

static void on_connect(void *arg)
{
	struct accept *accept = arg;

	for (int i = 0; i < AT_ONCE; i++) {
		int fd = accept4(accept->node->place.listen_fd, NULL, NULL,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			accept->is_paused = false;
			take_in(accept, fd);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			pause_for(accept, errno);
			return;
		}
	}
}

static int watch(struct accept *accept)
{
	return loop_watch_fd(accept->node->loop, accept->node->place.listen_fd, on_connect, accept,
			     &accept->watch);
}

static void limit(struct accept *accept, uint64_t files)
{
	uint64_t most = files > 2 * OWN_FILES ? (files - OWN_FILES) / 2 : OWN_FILES / 2;

	accept->most = accept->node->param.max_clients;
	if (most >= accept->most)
		return;
	log_line(LOG_LEVEL_WARN, "few-files",
		 "files=%llu max_clients=%llu lowered to %llu text=\"raise the limit of open files "
		 "(LimitNOFILE)\"",
		 (unsigned long long)files, (unsigned long long)accept->most,
		 (unsigned long long)most);
	accept->most = most;
}

void accept_limit(struct node *node, uint64_t files)
{
	if (node->clients.accept)
		limit(node->clients.accept, files);
}

int accept_begin(struct node *node, uint64_t files)
{
	struct accept *accept = calloc(1, sizeof(*accept));
	int r;

	if (!accept)
		return -ENOMEM;
	accept->node = node;
	node->clients.accept = accept;
	limit(accept, files);
	r = loop_timer_new(node->loop, on_pause_end, accept, &accept->pause);
	return r ? r : watch(accept);
}

/* Who has come, but not in: what they sent may not end with the listening socket. */
static void turn_away(struct node *node)
{
	int fd;

	shutdown(node->place.listen_fd, SHUT_RDWR); /* nobody comes any more */
	while ((fd = accept4(node->place.listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		porter_close(&node->porters, geteuid(), &fd);
}

void accept_end(struct node *node)
{
	struct accept *accept = base_take_ptr(node->clients.accept);

	if (!accept)
		return;
	if (accept->pause && !node->place.is_given) /* else they wait for the next accessd */
		turn_away(node);
	loop_unwatch(&accept->watch);
	loop_unwatch(&accept->pause);
	free(accept);
}

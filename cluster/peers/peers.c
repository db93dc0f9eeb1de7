/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The thread that looks who is there, and the list that it leaves for the gate. The mutex covers the list alone; nothing
 * is waited for under it. An eventfd says that the list has changed, another one that the thread is to end.
 */

#include "cluster/peers/peers.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/hold.h"
#include "cluster/peers/peers_kind.h"

#define CELL (GATE_MOST_MEMBERS + 1)

struct peers {
	struct peers_look look; /* of the thread */
	const struct peers_kind *kind;
	char spec[PEERS_SPEC + 1];
	struct peers_self self;
	pthread_t thread;
	int fd, stop_fd;
	pthread_mutex_t mutex; /* list */
	struct peers_list list;
	bool was_cut; /* of the thread: said in the log */
};

static const struct peers_kind *const kinds[] = {&peers_static, &peers_dns, &peers_slurm,
						 &peers_etcd};

/* ---- what kinds use ---- */

bool peers_wait(const struct peers_look *look, int ms)
{
	struct pollfd pollfd = {look->stop_fd, POLLIN, 0};

	return poll(&pollfd, 1, ms) > 0;
}

bool peers_add(struct peers_found *found, const struct peers_entry *entry)
{
	if (found->n == PEERS_MOST ||
	    !base_grow(&found->entries, &found->room, found->n + 1, sizeof(*entry)))
		return false;
	found->entries[found->n++] = *entry;
	return true;
}

static int by_text(const void *one, const void *other)
{
	const struct peers_entry *a = one, *b = other;

	return memcmp(a, b, sizeof(*a));
}

/* For the gate; NULL: as it is. */
static void leave(struct peers *peers, const struct peers_list *found, const char *trouble)
{
	const uint64_t one = 1;
	struct peers_list list;
	bool is_new;

	pthread_mutex_lock(&peers->mutex);
	list = found ? *found : peers->list;
	memset(list.trouble, 0, sizeof(list.trouble));
	snprintf(list.trouble, sizeof(list.trouble), "%s", trouble ? trouble : peers->list.trouble);
	is_new = memcmp(&peers->list, &list, sizeof(list)) != 0;
	peers->list = list;
	pthread_mutex_unlock(&peers->mutex);
	if (is_new && write(peers->fd, &one, sizeof(one)) < 0)
		log_line(LOG_LEVEL_WARN, "peers", "why=\"%s\"", strerror(errno));
}

static void publish(struct peers_look *look, const struct peers_found *found)
{
	struct peers *peers = (struct peers *)(void *)look;
	struct peers_found copy = {NULL, 0, 0};
	struct peers_list list;

	for (size_t i = 0; i < found->n; i++)
		if (found->entries[i].address.sock.ss_family != AF_UNSPEC)
			peers_add(&copy, &found->entries[i]);
	if (copy.n >= CELL && !peers->was_cut)
		log_line(LOG_LEVEL_INFO, "cell",
			 "nodes=%zu why=\"they are cut into cells of at most %d, by the "
			 "order of their names' hashes\"",
			 copy.n, CELL);
	peers->was_cut = copy.n >= CELL;
	memset(&list, 0, sizeof(list));
	peers_cut(look->self, &copy, &list);
	free(copy.entries);
	qsort(list.entries, list.n, sizeof(*list.entries), by_text);
	leave(peers, &list, NULL);
}

void peers_tell(struct peers_look *look, const char *why)
{
	leave((struct peers *)(void *)look, NULL, why);
}

/* ---- the gate's side ---- */

static void *thread_main(void *arg)
{
	struct peers *peers = arg;

	pthread_setname_np(pthread_self(), "peers");
	peers->kind->run(&peers->look);
	return NULL;
}

/* What is behind "KIND:", or behind KIND. */
static const struct peers_kind *find_kind(const char *text, const char **ret_spec)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		const size_t length = strlen(kinds[i]->name);

		if (strncmp(text, kinds[i]->name, length) != 0 ||
		    (text[length] != ':' && text[length] != '\0'))
			continue;
		*ret_spec = text + length + (text[length] == ':');
		return kinds[i];
	}
	return NULL;
}

static int begin(struct peers *peers)
{
	int r;

	peers->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	peers->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (peers->fd < 0 || peers->stop_fd < 0)
		return -errno;
	peers->look = (struct peers_look){peers->spec, &peers->self, peers->stop_fd, publish};
	r = pthread_mutex_init(&peers->mutex, NULL);
	r = r ? r : pthread_create(&peers->thread, NULL, thread_main, peers);
	return -r;
}

int peers_start(const char *text, const struct peers_self *self, struct peers **ret,
		struct diag *diag)
{
	const char *spec;
	const struct peers_kind *kind = find_kind(text, &spec);
	struct peers *peers;
	int r;

	if (!kind)
		return diag_fail(
		    diag, -EINVAL,
		    "peers = %s: must be static:HOST[:PORT],..., dns:NAME[:PORT], slurm "
		    "or etcd:http[s]://HOST:PORT[,...] (access-cluster(7))",
		    text);
	r = kind->check(spec, diag);
	if (r)
		return r;
	peers = calloc(1, sizeof(*peers));
	if (peers) {
		snprintf(peers->spec, sizeof(peers->spec), "%s", spec);
		peers->self = *self;
		peers->kind = kind;
		r = begin(peers);
	}
	if (!peers || r) {
		diag_set(diag, "cannot begin to look for peers: %s", strerror(peers ? -r : ENOMEM));
		free(peers);
		return peers ? r : -ENOMEM;
	}
	*ret = peers;
	return 0;
}

void peers_stop(struct peers *peers)
{
	const uint64_t one = 1;

	if (!peers)
		return;
	if (write(peers->stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(peers->thread, NULL);
	close(peers->fd);
	close(peers->stop_fd);
	pthread_mutex_destroy(&peers->mutex);
	free(peers);
}

int peers_fd(const struct peers *peers)
{
	return peers->fd;
}

void peers_take(struct peers *peers, struct peers_list *ret)
{
	uint64_t count;

	if (read(peers->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_line(LOG_LEVEL_WARN, "peers", "why=\"%s\"", strerror(errno));
	BASE_HOLD(&peers->mutex);
	*ret = peers->list;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Porters.
 *
 * What a descriptor is, its maker says, and to close one may take as long as he likes: a file of a
 * file system in user space waits for its answer (for ever, and not even SIGKILL helps), a TCP socket
 * with SO_LINGER for its peer. That goes for a descriptor that was received, for one in a message that
 * nobody read, when its socket is closed, for one that the kernel drops as it found no room, and for
 * every copy: a child closes it, too, when it is forked or executes a program, and a process that ends.
 *
 * So such a descriptor must not come into accessd at all. The loop looks at a message before it takes
 * it (wire_recv_bare()). One that has descriptors stays in the socket's queue, and a process takes it
 * out: it gets a copy of the socket, keeps all descriptors of the message, answers with the message
 * and with those that are memory (a memfd or a file of a tmpfs, whose close() only gives pages back), and
 * closes them all. All that our protocols send is memory. A socket in whose queue something is left is
 * closed in the same way: nothing new can come into it any more, the process takes out what is
 * there, and whoever drops the last copy of an empty socket waits for nobody. Large memory goes there, too, when accessd is
 * through with it: all others who had it may have let go of it, and the last one gives back its pages. What accessd
 * made itself has a porter of its own (PORTER_OWN): a user who makes his porter hang keeps no memory of ours with it.
 *
 * Each uid has its own, made when it is needed, so who makes one hang waits for himself: his next message
 * with descriptors is not fetched, and what is not closed counts as connections of his
 * (tenant_conns()). A hung one is no thread of ours: accessd forks, ends and is begun anew without it.
 * Rejected: threads that close. They have our descriptors, so while one hangs, accessd cannot
 * end, not by SIGKILL either, and its clients do not see that it is gone; and what waits for
 * its turn to be closed is inherited by every child, which then hangs in its exec.
 * It is accessd's own program, executed anew: a copy of accessd would hold the memory of all streams.
 *
 * Orders and answers are datagrams: a note, and what it brings. Each order is answered when all
 * is done (NOTE_DONE), a fetched message before that.
 *
 * Before Linux 6.9 whoever closes a Unix socket, or sends through one while 16,000 are on their way, also
 * collects what sockets in a circle held, of all users. That is the kernel's to mend.
 */
#include "daemon/net/porter.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/identity.h"
#include "base/log.h"
#include "base/wire.h"
#include "daemon/loop.h"
#include "daemon/proc/child.h"
#include "daemon/proc/reaper.h"

#define MOST_FDS 253                    /* of a message, by the kernel (SCM_MAX_FD) */
#define MOST_BYTES (UINT64_C(20) << 30) /* more than any memory that is sent to us */
#define MOST_PORTERS 64                 /* and our own */
#define IDLE_NS UINT64_C(10000000000)
#define RETRY_NS UINT64_C(50000000)
#define SMALL (1 << 20) /* bytes of memory that are given back at once */

enum note_kind { NOTE_FETCH = 1, NOTE_CLOSE, NOTE_MESSAGE, NOTE_DONE };

struct note {
	uint64_t id;
	uint32_t kind;
	int32_t outcome; /* of NOTE_DONE: the order's kind */
	uint32_t n_fds;  /* descriptors that the message had */
	uint32_t memory; /* a bit for each that comes with it */
};

struct bundle { /* descriptors of a message */
	int fd[MOST_FDS];
	unsigned n;
	bool is_cut; /* the message was longer than the room for it */
};

union control {
	struct cmsghdr align;
	char space[CMSG_SPACE(MOST_FDS * sizeof(int))];
};

struct porter {
	LIST_ENTRY(porter) link;
	struct porters *porters;
	uid_t uid;
	struct child child;
	struct loop_watch *watch, *idle;
	LIST_HEAD(porter_errands, errand) errands;
	unsigned owed, closing; /* orders that are not done, and those of them that close */
};

struct errand {
	LIST_ENTRY(errand) link;
	uint64_t id;
	porter_fn fn;
	void *arg;
};

struct parting { /* what could not be handed over yet */
	LIST_ENTRY(parting) link;
	uid_t uid;
	int fd;
};

/* ---- datagrams ---- */

static ssize_t bundle_recv(int sock, struct iovec *parts, size_t n_parts, int flags,
			   struct bundle *ret)
{
	union control control;
	struct msghdr message = {.msg_iov = parts,
				 .msg_iovlen = n_parts,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t got;

	ret->n = 0;
	do
		got = recvmsg(sock, &message, flags | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = BASE_MIN(n, (size_t)MOST_FDS - ret->n);
		memcpy(ret->fd + ret->n, CMSG_DATA(c), n * sizeof(int));
		ret->n += (unsigned)n;
	}
	ret->is_cut = message.msg_flags & MSG_TRUNC;
	return got;
}

static int bundle_send(int sock, struct iovec *parts, size_t n_parts, int flags, const int *fds,
		       unsigned n_fds)
{
	union control control = {.align = {.cmsg_level = SOL_SOCKET,
					   .cmsg_type = SCM_RIGHTS,
					   .cmsg_len = CMSG_LEN(n_fds * sizeof(int))}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = n_parts};

	if (n_fds) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, n_fds * sizeof(int));
	}
	while (sendmsg(sock, &message, flags | MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int note_send(int sock, const struct note *note, int flags, const int *fds, unsigned n_fds)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)note, .iov_len = sizeof(*note)};

	return bundle_send(sock, &part, 1, flags, fds, n_fds);
}

/* ---- in the porter ---- */

/* What comes first asks for seals, and cannot block, whatever fd is; the rest is asked of memory only. */
static bool is_memory(int fd)
{
	struct stat st;

	return base_is_sealed(fd, 0) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_blocks <= MOST_BYTES / 512;
}

static void fetch(int loop, uint64_t id, int sock)
{
	static uint8_t buffer[WIRE_MAX];
	struct note note = {.id = id, .kind = NOTE_MESSAGE};
	struct iovec parts[2] = {{.iov_base = &note, .iov_len = sizeof(note)},
				 {.iov_base = buffer, .iov_len = sizeof(buffer)}};
	struct bundle bundle;
	int memory[WIRE_MAX_FDS];
	unsigned n = 0;
	ssize_t got = bundle_recv(sock, &parts[1], 1, MSG_DONTWAIT, &bundle);

	if (got <= 0 || bundle.is_cut)
		note.outcome = got < 0 ? (int)got : WIRE_E_BAD;
	note.n_fds = bundle.n;
	for (unsigned i = 0; i < BASE_MIN(bundle.n, (unsigned)WIRE_MAX_FDS); i++)
		if (is_memory(bundle.fd[i])) {
			note.memory |= 1u << i;
			memory[n++] = bundle.fd[i];
		}
	parts[1].iov_len = (size_t)BASE_MAX(got, 0);
	if (bundle_send(loop, parts, 2, 0, memory, n))
		_exit(1);
	while (bundle.n)
		base_close(&bundle.fd[--bundle.n]);
}

/* Takes the next message out, and its descriptors end. With SO_PASSCRED the kernel would have something
 * to tell of each message, and finds no room for it. */
static bool drop_message(int sock, int flags)
{
	struct msghdr message = {.msg_iov = NULL};

	return recvmsg(sock, &message, flags | MSG_DONTWAIT) >= 0 &&
	       (message.msg_flags & MSG_CTRUNC);
}

/* Until accessd hangs up. */
static void work(int loop)
{
	struct note note;
	struct iovec part = {.iov_base = &note, .iov_len = sizeof(note)};
	struct bundle order;

	while (bundle_recv(loop, &part, 1, 0, &order) == (ssize_t)sizeof(note) && order.n == 1) {
		if (note.kind == NOTE_FETCH)
			fetch(loop, note.id, order.fd[0]);
		else
			while (drop_message(order.fd[0], 0))
				continue;
		base_close(&order.fd[0]);
		note.outcome = (int32_t)note.kind;
		note.kind = NOTE_DONE;
		if (note_send(loop, &note, 0, NULL, 0))
			return;
	}
}

int porter_main(void)
{
	identity_drop_switching();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NAME, PORTER_NAME);
	close_range(0, 1, 0);
	work(CHILD_SOCK);
	return 0;
}

/* ---- porters, seen from the loop ---- */

/* It does what it was told, and ends then. */
static void porter_free(struct porter *porter)
{
	struct errand *errand;

	LIST_REMOVE(porter, link);
	porter->porters->n--;
	loop_unwatch(&porter->watch);
	loop_unwatch(&porter->idle);
	base_close(&porter->child.sock);
	reaper_take(porter->porters->reaper, porter->child.pid);
	while ((errand = LIST_FIRST(&porter->errands))) {
		porter_fn fn = errand->fn;
		void *arg = errand->arg;
		struct wire_in none;

		wire_in_init(&none);
		LIST_REMOVE(errand, link);
		free(errand);
		fn(arg, WIRE_E_CLOSED, &none);
	}
	free(porter);
}

static void on_idle(void *arg)
{
	struct porter *porter = arg;

	if (!porter->owed)
		porter_free(porter);
}

static void understand(const struct note *note, const uint8_t *data, size_t size,
		       const struct bundle *bundle, struct wire_in *in, int *ret)
{
	unsigned at = 0;

	*ret = note->outcome ? note->outcome : wire_in_parse(in, data, size);
	for (unsigned i = 0; i < WIRE_MAX_FDS; i++)
		in->fds[i] = note->memory & 1u << i && at < bundle->n ? bundle->fd[at++] : -1;
	in->n_fds = BASE_MIN(note->n_fds, (uint32_t)WIRE_MAX_FDS);
}

static void on_message(struct porter *porter, const struct note *note, const uint8_t *data,
		       size_t size, const struct bundle *bundle)
{
	struct wire_in in;
	int r;

	wire_in_init(&in);
	understand(note, data, size, bundle, &in, &r);
	BASE_EACH(errand, &porter->errands, link)
		if (errand->id == note->id) {
			LIST_REMOVE(errand, link);
			errand->fn(errand->arg, r, &in);
			free(errand);
			break;
		}
	for (unsigned i = 0; i < in.n_fds; i++) /* nobody took it */
		porter_close(porter->porters, porter->uid, &in.fds[i]);
	wire_in_fini(&in);
}

static void on_readable(void *arg)
{
	static uint8_t buffer[WIRE_MAX];
	struct porter *porter = arg;
	struct note note;
	struct iovec parts[2] = {{.iov_base = &note, .iov_len = sizeof(note)},
				 {.iov_base = buffer, .iov_len = sizeof(buffer)}};
	struct bundle bundle;
	ssize_t got = bundle_recv(porter->child.sock, parts, 2, MSG_DONTWAIT, &bundle);

	if (got == -EAGAIN)
		return;
	if (got < (ssize_t)sizeof(note)) {
		log_line(LOG_LEVEL_WARN, "porter-died", "pid=%ld uid=%u", (long)porter->child.pid,
			 (unsigned)porter->uid);
		porter_free(porter);
	} else if (note.kind == NOTE_MESSAGE) {
		on_message(porter, &note, buffer, (size_t)got - sizeof(note), &bundle);
	} else {
		porter->owed--;
		porter->closing -= note.outcome == NOTE_CLOSE;
		loop_timer_set(porter->idle, IDLE_NS);
	}
}

static int start(struct porter *porter)
{
	char *argv[] = {(char *)PORTER_NAME, NULL};
	struct loop *loop = porter->porters->loop;
	const char *program = porter->porters->program;
	int r = program ? child_start(program, argv, CPU_PRIORITY_NORMAL, &porter->child) : -ENOENT;

	r = r ? r : loop_watch_fd(loop, porter->child.sock, on_readable, porter, &porter->watch);
	return r ? r : loop_timer_new(loop, on_idle, porter, &porter->idle);
}

static void end_idle_one(struct porters *porters)
{
	BASE_EACH(porter, &porters->list, link)
		if (!porter->owed) {
			porter_free(porter);
			return;
		}
}

static struct porter *find(const struct porters *porters, uid_t uid)
{
	BASE_EACH(porter, &porters->list, link)
		if (porter->uid == uid)
			return porter;
	return NULL;
}

static struct porter *porter_of(struct porters *porters, uid_t uid)
{
	const unsigned most = MOST_PORTERS + (uid == PORTER_OWN);
	struct porter *porter = find(porters, uid);

	if (porter)
		return porter;
	if (porters->n >= most)
		end_idle_one(porters);
	if (porters->n >= most || !(porter = calloc(1, sizeof(*porter))))
		return NULL;
	porter->porters = porters;
	porter->uid = uid;
	porter->child.sock = -1;
	LIST_INIT(&porter->errands);
	LIST_INSERT_HEAD(&porters->list, porter, link);
	porters->n++;
	if (start(porter)) {
		porter_free(porter);
		return NULL;
	}
	return porter;
}

/* The socket is the caller's, the porter gets a copy. */
static int give_order(struct porters *porters, uid_t uid, enum note_kind kind, int sock,
		      struct porter **ret)
{
	const struct note note = {.id = ++porters->next_id, .kind = kind};
	struct porter *porter = porter_of(porters, uid);
	int r = porter ? note_send(porter->child.sock, &note, MSG_DONTWAIT, &sock, 1) : -EAGAIN;

	if (r)
		return r;
	porter->owed++;
	porter->closing += kind == NOTE_CLOSE;
	*ret = porter;
	return 0;
}

int porter_fetch(struct porters *porters, uid_t uid, int sock, porter_fn fn, void *arg,
		 struct errand **ret)
{
	struct errand *errand = calloc(1, sizeof(*errand));
	struct porter *porter;
	int r = errand ? give_order(porters, uid, NOTE_FETCH, sock, &porter) : -ENOMEM;

	if (r) {
		free(errand);
		return r;
	}
	errand->id = porters->next_id;
	errand->fn = fn;
	errand->arg = arg;
	LIST_INSERT_HEAD(&porter->errands, errand, link);
	*ret = errand;
	return 0;
}

void porter_cancel(struct errand **errand)
{
	if (!*errand)
		return;
	LIST_REMOVE(*errand, link);
	free(*errand);
	*errand = NULL;
}

/* ---- closing ---- */

/* To be closed by whoever has it last. */
static bool is_harmless(int fd)
{
	struct stat st;

	if (fcntl(fd, F_GET_SEALS) < 0)
		return !drop_message(fd, MSG_PEEK);
	return fstat(fd, &st) == 0 && st.st_blocks <= SMALL / 512;
}

/* Memory goes into the queue of a socket, and that takes its place. Nobody is the last to have it then but who takes
 * it out: a porter that got the memory itself may have closed its copy before we have closed ours. */
static void wrap(int *fd)
{
	uint8_t none = 0;
	struct iovec part = {.iov_base = &none, .iov_len = sizeof(none)};
	int pair[2];

	if (fcntl(*fd, F_GET_SEALS) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return;
	if (bundle_send(pair[0], &part, 1, MSG_DONTWAIT, fd, 1) == 0) {
		base_close(fd);
		*fd = base_take_fd(&pair[1]);
	}
	base_close(&pair[0]);
	base_close(&pair[1]);
}

static bool try_close(struct porters *porters, uid_t uid, int *fd)
{
	struct porter *porter;

	if (porters->program && !is_harmless(*fd)) {
		wrap(fd);
		if (give_order(porters, uid, NOTE_CLOSE, *fd, &porter))
			return false;
	}
	base_close(fd);
	return true;
}

static void on_retry(void *arg)
{
	struct porters *porters = arg;

	BASE_EACH_LEAVING(parting, &porters->partings, link) {
		if (!try_close(porters, parting->uid, &parting->fd))
			continue;
		LIST_REMOVE(parting, link);
		free(parting);
	}
	if (!LIST_EMPTY(&porters->partings))
		loop_timer_set(porters->retry, RETRY_NS);
}

/* Without memory for this it stays open: to close it might take for ever. */
static void close_later(struct porters *porters, uid_t uid, int fd)
{
	struct parting *parting = calloc(1, sizeof(*parting));
	int r = parting ? 0 : -ENOMEM;

	if (!r && !porters->retry)
		r = loop_timer_new(porters->loop, on_retry, porters, &porters->retry);
	if (r) {
		log_line(LOG_LEVEL_WARN, "descriptor-left-open", "uid=%u error=%d", (unsigned)uid,
			 r);
		free(parting);
		return;
	}
	*parting = (struct parting){.uid = uid, .fd = fd};
	LIST_INSERT_HEAD(&porters->partings, parting, link);
	loop_timer_set(porters->retry, RETRY_NS);
}

void porter_close(struct porters *porters, uid_t uid, int *fd)
{
	const int on = 1;
	int taken = base_take_fd(fd);

	if (taken < 0)
		return;
	shutdown(taken, SHUT_RDWR); /* of a socket: the last message is in its queue */
	setsockopt(taken, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	if (!try_close(porters, uid, &taken))
		close_later(porters, uid, taken);
}

unsigned porter_closes(const struct porters *porters, uid_t uid)
{
	const struct porter *porter = find(porters, uid);
	unsigned n = porter ? porter->closing : 0;

	BASE_EACH(parting, &porters->partings, link)
		n += parting->uid == uid;
	return n;
}

void porter_fini(struct porters *porters)
{
	struct parting *parting;

	while (!LIST_EMPTY(&porters->list))
		porter_free(LIST_FIRST(&porters->list));
	while ((parting = LIST_FIRST(&porters->partings))) {
		LIST_REMOVE(parting, link);
		free(parting); /* the kernel closes it when we have ended, and lingers for no one */
	}
	loop_unwatch(&porters->retry);
}

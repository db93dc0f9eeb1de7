/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples of a wrapped data set: a thread's connection to the pool, and one sample at a time over it.
 *
 * The pool consists of the user's own processes, outside of accessd's reach, started by his jobs; it can
 * do nothing to this one but answer or not. Its record is made in memory of the connection's, a memfd
 * sealed against shrinking, so that no read of it ends in SIGBUS, and copied to the arena, where the pool
 * cannot change it any more. What it says about that is a worker's to check.
 *
 * A process of the pool that dies is not yet the sample's fault: the sample is asked for once more, of
 * another process. When the pool itself is gone, a job of the user's starts a new one, and a thread
 * waits for that: LINK_WAIT_NS, or until its lane leaves.
 *
 * The pool ends what takes too long; a pool that does not even do that is waited for LINK_GRACE_MS more.
 */

#include "storage/reader_parts.h"
#include "storage/source/source_kind.h"
#include "storage/wrapped.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LINK_WAIT_NS UINT64_C(180000000000) /* to import torch, on a busy machine */
#define LINK_PAUSE_MS 50
#define LINK_GRACE_MS 15000
#define LINK_TRIES 2 /* deaths over one sample */
#define LINK_LOST 5  /* pools that went away over one sample */

enum { LINK_E_GONE = 1 }; /* the other end */

struct link_call { /* one sample */
	struct reader_link *link;
	const struct reader_dataset *dataset;
	const struct wrapped_note *note;
	const struct source_making *making;
	struct wrapped_ask ask;
	struct reader_outcome *outcome;
};

static void link_fail(const struct link_call *call, const char *text)
{
	struct reader_outcome *outcome = call->outcome;

	*outcome = (struct reader_outcome){.stage = LAYOUT_FAIL_READ, .code = EREMOTEIO};
	snprintf(outcome->text, sizeof(outcome->text), "%.47s", text);
}

/* ---- the connection ---- */

void reader_wrapped_close(struct reader_link *link)
{
	if (link->memory)
		munmap(link->memory, link->room);
	if (link->is_open)
		close(link->fd);
	*link = (struct reader_link){.is_open = false};
}

static bool link_is_of(const struct reader_link *link, const struct wrapped_note *note)
{
	return link->is_open && link->room == note->room &&
	       memcmp(&link->id, &note->id, sizeof(link->id)) == 0;
}

static bool link_peer_is_own(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

/* Below the folder that has the path now: whoever wrapped the data set again may have made it anew. The
 * address of a socket is short, that of a folder is not. */
static int link_connect(const char *path)
{
	_cleanup_close_ int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;

	if (root < 0 || fd < 0 || fstat(root, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" WRAPPED_SOCKET,
		 root);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return link_peer_is_own(fd) ? base_take_fd(&fd) : -EPERM;
}

static int link_memory(struct reader_link *link, uint32_t room, int *ret_fd)
{
	_cleanup_close_ int fd = base_memfd("access-wrapped", room);
	void *memory;

	if (fd < 0)
		return fd;
	if (fallocate(fd, 0, 0, room) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	memory = mmap(NULL, room, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	link->memory = memory;
	link->room = room;
	*ret_fd = base_take_fd(&fd);
	return 0;
}

/* 0, or negative errno. */
static int link_send(int fd, const struct wrapped_ask *ask, int pass)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {.bytes = ""};
	struct iovec iov = {(void *)(uintptr_t)ask, sizeof(*ask)};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *head;

	if (pass >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &pass, sizeof(int));
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static int link_open_once(const struct link_call *call)
{
	const struct wrapped_ask hello = {
	    .magic = WRAPPED_MAGIC, .kind = WRAPPED_HELLO, .room = call->note->room};
	struct reader_link *link = call->link;
	_cleanup_close_ int memory_fd = -1;
	int fd = link_connect(call->dataset->path), r;

	if (fd < 0)
		return fd;
	link->fd = fd;
	link->is_open = true;
	link->id = call->note->id;
	r = link_memory(link, call->note->room, &memory_fd);
	if (!r)
		r = link_send(fd, &hello, memory_fd);
	if (r)
		reader_wrapped_close(link);
	return r;
}

/* Is it worth waiting for? */
static bool link_may_come(int error)
{
	return error == -ENOENT || error == -ECONNREFUSED || error == -EAGAIN || error == -EPIPE ||
	       error == -ECONNRESET;
}

/* 0, or negative errno and the outcome. */
static int link_need(const struct link_call *call)
{
	const uint64_t end_ns = base_now_ns() + LINK_WAIT_NS;
	char text[64];
	int r;

	if (link_is_of(call->link, call->note))
		return 0;
	reader_wrapped_close(call->link);
	while ((r = link_open_once(call)) && link_may_come(r) && base_now_ns() < end_ns &&
	       !call->making->is_leaving(call->making->arg))
		poll(NULL, 0, LINK_PAUSE_MS);
	if (!r)
		return 0;
	snprintf(text, sizeof(text), "no pool of processes answers: %s", strerror(-r));
	link_fail(call, link_may_come(r) ? "its pool of processes is gone" : text);
	return r;
}

/* ---- a sample ---- */

/* LINK_E_GONE; -ETIMEDOUT: not even the pool's own limit ended it. */
static int link_receive(const struct link_call *call, struct wrapped_answer *ret)
{
	const int limit_ms = (int)call->note->seconds * 1000 + LINK_GRACE_MS;
	struct pollfd ready = {.fd = call->link->fd, .events = POLLIN};
	ssize_t got;
	int r;

	do
		r = poll(&ready, 1, limit_ms);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return -ETIMEDOUT;
	got = recv(call->link->fd, ret, sizeof(*ret), MSG_DONTWAIT | MSG_TRUNC);
	return got == sizeof(*ret) ? 0 : LINK_E_GONE;
}

/* The sample's outcome is known. */
static bool link_settle(const struct link_call *call, const struct wrapped_answer *answer,
			unsigned tries)
{
	char text[sizeof(answer->text) + 1] = "";

	memcpy(text, answer->text, sizeof(answer->text));
	if (answer->status == WRAPPED_GOOD && answer->bytes <= call->link->room) {
		memcpy(call->making->buffer, call->link->memory, answer->bytes);
		call->outcome->stage = LAYOUT_FAIL_NONE;
		return true;
	}
	link_fail(call, answer->status == WRAPPED_GOOD ? "a record larger than its room" : text);
	if (answer->status == WRAPPED_DIED)
		return tries >= LINK_TRIES;
	return true;
}

/* One question. true: the outcome is known. */
static bool link_ask(const struct link_call *call, unsigned *tries, unsigned *lost)
{
	struct wrapped_answer answer;
	int r = link_send(call->link->fd, &call->ask, -1);

	if (!r)
		r = link_receive(call, &answer);
	if (r) {
		reader_wrapped_close(call->link);
		link_fail(call, r == -ETIMEDOUT ? "its pool of processes does not answer"
						: "its pool of processes is gone");
		return r == -ETIMEDOUT || ++*lost >= LINK_LOST ||
		       call->making->is_leaving(call->making->arg);
	}
	*tries += answer.status == WRAPPED_DIED;
	if (!link_settle(call, &answer, *tries)) {
		reader_wrapped_close(call->link);
		return false;
	}
	if (answer.status != WRAPPED_GOOD && answer.status != WRAPPED_FAILED)
		reader_wrapped_close(call->link);
	return true;
}

void reader_wrapped_make(const struct reader_dataset *dataset, const struct source_making *making,
			 struct reader_outcome *ret)
{
	const struct lane_task *task = making->task;
	const struct link_call call = {.dataset = dataset,
				       .note = source_wrapped_note(dataset),
				       .making = making,
				       .link = making->link,
				       .ask = {.magic = WRAPPED_MAGIC,
					       .kind = WRAPPED_READ,
					       .sample = task->sample,
					       .random_id = task->random_id,
					       .seed = task->seed,
					       .lap = task->lap},
				       .outcome = ret};
	unsigned tries = 0, lost = 0;

	while (link_need(&call) == 0 && !link_ask(&call, &tries, &lost))
		continue;
}

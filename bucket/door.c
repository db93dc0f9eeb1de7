/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One loop: a socket that listens, guests, transfers (fetch.h) and the other thread (errand.h). Guests are processes of this user, and no
 * more believed than others: a message that makes no sense ends the connection (question.h), and who does not take answers, or asks
 * for too much, is not read from until it has.
 */

#include "bucket/door.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "bucket/fetch.h"

#define DOOR_MOST_GUESTS 512
#define DOOR_MOST_TURNED 64  /* beyond these, who may want to take the place over */
#define DOOR_MOST_ASKED 8192 /* of a guest, unanswered */
#define DOOR_MOST_LOG (1 << 20)
#define DOOR_LOG_NS (UINT64_C(60) * 1000000000)
#define DOOR_FRESH_NS ((uint64_t)BUCKET_FRESH_S * 1000000000)

static const char door_is_full[] = "too many processes of this user read this URL on this machine: "
				   "access-bucket serves 512 jobs and readers at a time";

enum guest_kind { GUEST_NEW, GUEST_JOB, GUEST_READER, GUEST_GONE };
struct guest {
	LIST_ENTRY(guest) link;
	struct door *door;
	enum guest_kind kind;
	int fd;
	uint32_t events;
	uint64_t since_ns;
	bool is_turned; /* away: there are too many */
	bool is_told;   /* a job: how the listing went that it came for */
	uint8_t *memory;
	uint64_t bytes;               /* of it */
	unsigned unanswered;          /* asks */
	struct bucket_answer *answer; /* to be sent */
	size_t n_answers, room;
};

struct door {
	struct door_place place;
	struct fetch *fetch;
	struct fetch_sink sink;
	int epoll_fd, signal_fd;
	LIST_HEAD(, guest) guests;
	unsigned n_guests;
	bool is_ending;
	bool is_over;     /* nobody goes on with what was opened */
	bool is_yielding; /* to another access-bucket, when no listing is under way */
	bool is_wanted;   /* a listing was asked for, and has not ended */
	bool is_refused;  /* its credentials, by the last listing that says anything of them */
	struct errand_state state;
	uint64_t changed_ns;      /* when an object last was not what was listed */
	uint64_t idle_ns, log_ns; /* since when there is no job; when the log was looked at */
	uint8_t message[BUCKET_MOST_MESSAGE + 1];
};

/* ---- guests ---- */

static void watch(struct guest *guest, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = guest};

	if (events != guest->events)
		epoll_ctl(guest->door->epoll_fd, EPOLL_CTL_MOD, guest->fd, &event);
	guest->events = events;
}

/* It is freed at the end of the turn: the turn may have more events of it. */
static void leave(struct guest *guest)
{
	if (guest->kind == GUEST_GONE)
		return;
	fetch_leave(guest->door->fetch, guest);
	if (guest->memory)
		munmap(guest->memory, guest->bytes);
	guest->memory = NULL;
	base_close(&guest->fd);
	guest->kind = GUEST_GONE;
}

static void guest_free(struct guest *guest)
{
	LIST_REMOVE(guest, link);
	guest->door->n_guests--;
	free(guest->answer);
	free(guest);
}

static bool is_own(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static bool say(const struct door *door, int fd, enum bucket_what what, const char *text)
{
	struct bucket_news news = {
	    .magic = BUCKET_MAGIC,
	    .what = (uint32_t)what,
	    .is_denied = what == BUCKET_REFUSED && door->state.error == -EKEYREJECTED,
	    .objects = door->state.objects,
	    .bytes = door->state.bytes,
	};

	snprintf(news.text, sizeof(news.text), "%s", text);
	return send(fd, &news, sizeof(news), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static void on_listen(struct door *door)
{
	_cleanup_close_ int fd =
	    accept4(door->place.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct epoll_event event = {.events = EPOLLIN};
	struct guest *guest;

	if (fd < 0 || !is_own(fd))
		return;
	if (door->n_guests >= DOOR_MOST_GUESTS + DOOR_MOST_TURNED) { /* a job reads that */
		say(door, fd, BUCKET_REFUSED, door_is_full);
		return;
	}
	guest = calloc(1, sizeof(*guest));
	event.data.ptr = guest;
	if (!guest || epoll_ctl(door->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
		free(guest);
		return;
	}
	guest->door = door;
	guest->events = EPOLLIN;
	guest->since_ns = base_now_ns();
	guest->is_turned = door->n_guests >= DOOR_MOST_GUESTS;
	guest->fd = base_take_fd(&fd);
	LIST_INSERT_HEAD(&door->guests, guest, link);
	door->n_guests++;
}

/* ---- answers ---- */

static void on_answer(void *arg, uint64_t id, enum bucket_status status, int code, const char *text)
{
	struct guest *guest = arg;
	struct bucket_answer answer = {.id = id, .status = (uint32_t)status, .code = code};

	if (guest->unanswered > 0)
		guest->unanswered--;
	if (status == BUCKET_CHANGED)
		guest->door->changed_ns = base_now_ns();
	memcpy(answer.text, text, strnlen(text, sizeof(answer.text) - 1));
	/* Room was made when it asked. */
	guest->answer[guest->n_answers++] = answer;
}

static void flush(struct guest *guest)
{
	size_t sent = 0;
	bool may_ask;

	while (sent < guest->n_answers) {
		const size_t n = BASE_MIN(guest->n_answers - sent, (size_t)BUCKET_MOST_ASKS);

		if (send(guest->fd, guest->answer + sent, n * sizeof(*guest->answer),
			 MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
			if (errno == EAGAIN || errno == EINTR)
				break;
			leave(guest);
			return;
		}
		sent += n;
	}
	guest->n_answers -= sent;
	if (sent)
		memmove(guest->answer, guest->answer + sent,
			guest->n_answers * sizeof(*guest->answer));
	may_ask =
	    guest->door->state.has_folder && guest->unanswered + guest->n_answers < DOOR_MOST_ASKED;
	watch(guest, (may_ask ? EPOLLIN : 0u) | (guest->n_answers ? EPOLLOUT : 0u));
}

/* ---- jobs ---- */

static void tell(struct guest *guest, enum bucket_what what, const char *text)
{
	guest->is_told = what != BUCKET_LISTING;
	/* Who does not read how far it is misses that; who does not read the end is gone. */
	if (!say(guest->door, guest->fd, what, text) && (guest->is_told || errno != EAGAIN))
		leave(guest);
}

/* Has a listing ended that is new enough for it? */
static bool is_answered(const struct guest *guest)
{
	const struct errand_state *state = &guest->door->state;

	return state->listings > 0 && (state->began_ns >= guest->since_ns ||
				       (state->began_ns + DOOR_FRESH_NS >= guest->since_ns &&
					state->began_ns >= guest->door->changed_ns));
}

static void tell_all(struct door *door)
{
	bool is_asked = false, has_jobs = false, was_refused = false;

	BASE_EACH(guest, &door->guests, link) {
		if (guest->kind != GUEST_JOB)
			continue;
		if (guest->is_told) {
			has_jobs = true;
		} else if (!is_answered(guest)) {
			is_asked = true;
			if (door->is_wanted)
				tell(guest, BUCKET_LISTING, "");
		} else if (door->state.error) {
			tell(guest, BUCKET_REFUSED, door->state.diag.text);
			leave(guest);
			was_refused = true;
		} else {
			tell(guest, BUCKET_READY, "");
			has_jobs = true;
		}
	}
	if (door->is_yielding && !door->is_wanted) {
		door->is_ending = true;
		return;
	}
	if (is_asked && !door->is_wanted) {
		door->is_wanted = true;
		errand_list(door->place.errand);
	}
	/* With other credentials, or another URL, it is another's turn. */
	if (was_refused && !is_asked && !has_jobs) {
		door->is_ending = true;
		door->is_over = door->state.error == -EACCES || door->state.error == -ENOENT;
	}
}

static void on_errand(struct door *door)
{
	const unsigned listings = door->state.listings, mends = door->state.mends;
	const unsigned renewals = door->state.renewals;
	const bool was_refused = door->is_refused;

	errand_take(door->place.errand, &door->state);
	if (door->state.listings != listings && !door->state.error)
		door->is_refused = false;
	else if (door->state.listings != listings && door->state.error == -EKEYREJECTED)
		door->is_refused = true;
	if (door->state.renewals != renewals || door->is_refused != was_refused)
		door->place.keys(door->state.renewals != renewals, !door->is_refused);
	if (door->state.mends != mends)
		fetch_mended(door->fetch, door->state.mended, door->state.mend_diag.text);
	if (door->state.listings != listings)
		door->is_wanted = false;
	tell_all(door);
}

static void on_refused(void *owner, struct http_answer *answer, const char *key)
{
	const struct door *door = owner;

	errand_refused(door->place.errand, answer, key);
}

/* ---- questions ---- */

static int map(struct guest *guest, int fd, uint64_t bytes)
{
	struct stat stat;
	void *memory;

	if (fd < 0 || !base_is_sealed(fd, F_SEAL_SHRINK) || fstat(fd, &stat) ||
	    (uint64_t)stat.st_size < bytes)
		return -EBADMSG;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	guest->memory = memory;
	guest->bytes = bytes;
	return 0;
}

static int make_room(struct guest *guest, unsigned n)
{
	const size_t needed = guest->n_answers + guest->unanswered + n;

	if (!base_grow(&guest->answer, &guest->room, needed, sizeof(*guest->answer)))
		return -ENOMEM;
	guest->unanswered += n;
	return 0;
}

static int on_message(struct guest *guest, size_t bytes, int fd)
{
	struct door *door = guest->door;
	struct question question;
	int r = question_read(door->message, bytes, guest->memory ? guest->bytes : 0, &question);

	if (r)
		return r;
	if (question.kind == BUCKET_READ) {
		if (guest->kind != GUEST_READER || fd >= 0)
			return -EBADMSG;
		r = make_room(guest, question.n);
		if (!r)
			fetch_add(door->fetch, guest, guest->memory, door->state.folder, &question);
		return r;
	}
	if (guest->kind != GUEST_NEW)
		return -EBADMSG;
	if (question.kind == BUCKET_YIELD) {
		log_line(LOG_LEVEL_INFO, "yields", "why=\"a job has other credentials\"");
		door->is_yielding = true;
		tell_all(door);
		return fd < 0 ? 0 : -EBADMSG;
	}
	if (guest->is_turned) {
		if (question.kind == BUCKET_WATCH)
			tell(guest, BUCKET_REFUSED, door_is_full);
		return -EUSERS;
	}
	if (question.kind == BUCKET_HELLO) {
		guest->kind = GUEST_READER;
		return map(guest, fd, question.memory);
	}
	guest->kind = GUEST_JOB;
	tell_all(door);
	return fd < 0 ? 0 : -EBADMSG;
}

/* Returns its bytes; 0: the end; negative errno. *ret_fd: of one that came along, the caller's. */
static ssize_t receive(struct door *door, int fd, int *ret_fd)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int) * 4)];
	} control;
	struct iovec part = {door->message, sizeof(door->message)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	unsigned fds = 0;

	if (n < 0)
		return -errno;
	for (struct cmsghdr *item = CMSG_FIRSTHDR(&message); item;
	     item = CMSG_NXTHDR(&message, item)) {
		if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= item->cmsg_len; i++, fds++) {
			int one;

			memcpy(&one, CMSG_DATA(item) + i * sizeof(int), sizeof(one));
			if (fds == 0)
				*ret_fd = one;
			else
				close(one);
		}
	}
	return fds > 1 || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EBADMSG : n;
}

static void on_guest(struct guest *guest)
{
	_cleanup_close_ int fd = -1;
	const ssize_t n = receive(guest->door, guest->fd, &fd);
	int r;

	if (n == -EAGAIN || n == -EINTR)
		return;
	r = n <= 0 ? (int)n : on_message(guest, (size_t)n, fd);
	if (r < 0)
		log_line(LOG_LEVEL_WARN, "guest-refused", "why=\"%s\"", strerror(-r));
	if (n == 0 || r < 0)
		leave(guest);
}

/* ---- the loop ---- */

static int timeout_ms(const struct door *door)
{
	const uint64_t now_ns = base_now_ns();
	uint64_t due_ns = BASE_MIN(fetch_due_ns(door->fetch), door->log_ns + DOOR_LOG_NS);

	if (door->idle_ns)
		due_ns = BASE_MIN(due_ns, door->idle_ns + door->place.keep_ns);
	return due_ns <= now_ns
		   ? 0
		   : (int)BASE_MIN((due_ns - now_ns + 999999) / 1000000, UINT64_C(60000));
}

/* Since when there is no job; the end. */
static void look_around(struct door *door)
{
	bool has_jobs = false;
	const uint64_t now_ns = base_now_ns();
	struct stat stat;

	BASE_EACH(guest, &door->guests, link)
		has_jobs |= guest->kind == GUEST_JOB;
	if (has_jobs)
		door->idle_ns = 0;
	else if (!door->idle_ns)
		door->idle_ns = now_ns;
	else if (now_ns - door->idle_ns >= door->place.keep_ns)
		door->is_ending = door->is_over = true;
	if (now_ns - door->log_ns >= DOOR_LOG_NS) {
		door->log_ns = now_ns;
		if (has_jobs && door->place.commit_fd >= 0)
			(void)!futimens(door->place.commit_fd, NULL);
		if (fstat(door->place.log_fd, &stat) == 0 && stat.st_size > DOOR_MOST_LOG &&
		    ftruncate(door->place.log_fd, 0))
			door->is_ending = true;
	}
}

static void on_event(struct door *door, const struct epoll_event *event)
{
	struct guest *guest = event->data.ptr;

	if (event->data.ptr == &door->place.listen_fd) {
		on_listen(door);
	} else if (event->data.ptr == &door->place.errand) {
		on_errand(door);
	} else if (event->data.ptr == &door->signal_fd) {
		door->is_ending = true;
	} else if (event->data.ptr != &door->fetch && guest->kind != GUEST_GONE) {
		if (event->events & EPOLLIN)
			on_guest(guest);
		else if (event->events & (EPOLLHUP | EPOLLERR))
			leave(guest);
	}
}

bool door_serve(struct door *door)
{
	struct epoll_event event[64];
	struct fetch_counts counts;
	bool has_jobs = false;

	while (!door->is_ending) {
		const int n =
		    epoll_wait(door->epoll_fd, event, BASE_ARRAY_LEN(event), timeout_ms(door));

		for (int i = 0; i < n; i++)
			on_event(door, &event[i]);
		fetch_turn(door->fetch);
		BASE_EACH(guest, &door->guests, link)
			if (guest->kind == GUEST_READER)
				flush(guest);
		BASE_EACH_LEAVING(guest, &door->guests, link)
			if (guest->kind == GUEST_GONE)
				guest_free(guest);
		look_around(door);
	}
	BASE_EACH(guest, &door->guests, link) {
		has_jobs |= guest->kind == GUEST_JOB;
		if (door->is_yielding && guest->kind == GUEST_JOB)
			tell(guest, BUCKET_MOVED, "");
	}
	fetch_count(door->fetch, &counts);
	log_line(LOG_LEVEL_INFO, "served",
		 "requests=%llu bytes=%llu dropped=%llu again=%llu slow=%llu hastened=%llu "
		 "changed=%llu failed=%llu limit=%u",
		 (unsigned long long)counts.requests, (unsigned long long)counts.bytes,
		 (unsigned long long)counts.dropped, (unsigned long long)counts.again,
		 (unsigned long long)counts.slow, (unsigned long long)counts.hastened,
		 (unsigned long long)counts.changed, (unsigned long long)counts.failed,
		 counts.limit);
	return !door->is_yielding && (door->is_over || !has_jobs);
}

static int add(struct door *door, int fd, void *tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = tag};

	return fd < 0 || epoll_ctl(door->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int door_new(const struct door_place *place, struct door **ret)
{
	struct door *door = calloc(1, sizeof(*door));
	sigset_t signals;
	int r;

	if (!door)
		return -ENOMEM;
	door->place = *place;
	door->sink = (struct fetch_sink){on_answer, on_refused, door};
	door->idle_ns = door->log_ns = base_now_ns();
	LIST_INIT(&door->guests);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	door->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	door->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r = fetch_new(place->url->ops, place->provider, &door->sink, &door->fetch);
	r = r ? r : add(door, door->place.listen_fd, &door->place.listen_fd);
	r = r ? r : add(door, errand_fd(place->errand), &door->place.errand);
	r = r ? r : add(door, door->signal_fd, &door->signal_fd);
	r = r ? r : add(door, fetch_fd(door->fetch), &door->fetch);
	if (r) {
		door_free(door);
		return r;
	}
	/* Who started it will ask for that. */
	door->is_wanted = true;
	errand_list(place->errand);
	*ret = door;
	return 0;
}

void door_free(struct door *door)
{
	BASE_EACH(guest, &door->guests, link)
		leave(guest);
	BASE_EACH_LEAVING(guest, &door->guests, link)
		guest_free(guest);
	if (door->fetch)
		fetch_free(door->fetch);
	base_close(&door->place.listen_fd);
	base_close(&door->signal_fd);
	base_close(&door->epoll_fd);
	free(door);
}

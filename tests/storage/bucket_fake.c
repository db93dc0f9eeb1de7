/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/storage/bucket_fake.h"

#include "base/base.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- the folder ---- */

void fake_tree(const struct tree *tree)
{
	const struct bucket_note note = {.magic = BUCKET_MAGIC, .url_bytes = strlen(FAKE_URL)};
	int fd = openat(tree->fd, BUCKET_NOTE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_eq(base_write_at(fd, &note, sizeof(note), 0), 0);
	ck_assert_int_eq(base_write_at(fd, FAKE_URL, note.url_bytes, sizeof(note)), 0);
	close(fd);
	ck_assert_int_eq(fchmod(tree->fd, 0700), 0);
	ck_assert(mkdirat(tree->fd, "real", 0700) == 0 || errno == EEXIST);
	ck_assert(mkdirat(tree->fd, BUCKET_DATA, 0700) == 0 || errno == EEXIST);
}

static const struct tree *listed; /* nftw() has no argument */

static int list_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	const char *below = path + strlen(listed->path) + strlen("/real");
	const struct timespec times[2] = {st->st_mtim, st->st_mtim};
	char name[4200], new[4210];
	int fd;

	(void)where;
	snprintf(name, sizeof(name), BUCKET_DATA "%s", below);
	snprintf(new, sizeof(new), "%s.new", name);
	if (kind == FTW_D) {
		ck_assert(mkdirat(listed->fd, name, 0700) == 0 || errno == EEXIST);
		return 0;
	}
	fd = openat(listed->fd, new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, st->st_size), 0);
	ck_assert_int_eq(futimens(fd, times), 0);
	close(fd);
	ck_assert_int_eq(renameat(listed->fd, new, listed->fd, name), 0);
	return 0;
}

void fake_list(const struct tree *tree)
{
	char real[4200];

	listed = tree;
	snprintf(real, sizeof(real), "%s/real", tree->path);
	ck_assert_int_eq(nftw(real, list_one, 16, FTW_PHYS), 0);
}

/* ---- answers ---- */

struct serving { /* one connection */
	struct fake *fake;
	int fd;
	uint8_t *memory;
	uint64_t memory_bytes;
};

static struct bucket_answer answer_of(const struct serving *serving, const struct bucket_ask *ask,
				      const char *name)
{
	struct bucket_answer answer = {.id = ask->id};
	char path[BUCKET_MOST_NAME + 8];
	struct stat st;
	int fd;

	ck_assert(ask->bytes >= 1 && ask->place <= serving->memory_bytes &&
		  ask->bytes <= serving->memory_bytes - ask->place);
	snprintf(path, sizeof(path), "real/%.*s", (int)ask->name_bytes, name);
	fd = openat(serving->fake->tree->fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size != ask->size ||
	    st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec != ask->mtime_ns)
		answer.status = BUCKET_CHANGED;
	else
		ck_assert_int_eq(
		    base_read_at(fd, serving->memory + ask->place, ask->bytes, ask->at), 0);
	base_close(&fd);
	return answer;
}

static void count(struct fake *fake, const struct bucket_ask *ask, unsigned n)
{
	pthread_mutex_lock(&fake->lock);
	fake->messages++;
	fake->asks += n;
	fake->most = BASE_MAX(fake->most, n);
	for (unsigned i = 0; i < n; i++) {
		fake->bytes += ask[i].bytes;
		fake->longest = BASE_MAX(fake->longest, ask[i].bytes);
		fake->shortest =
		    fake->shortest ? BASE_MIN(fake->shortest, ask[i].bytes) : ask[i].bytes;
	}
	pthread_mutex_unlock(&fake->lock);
}

static enum fake_act act_of(struct fake *fake)
{
	enum fake_act act;

	pthread_mutex_lock(&fake->lock);
	act = fake->act;
	if (act > FAKE_BACKWARDS && act < FAKE_ONCE && fake->acted++)
		act = FAKE_GOOD;
	pthread_mutex_unlock(&fake->lock);
	return act;
}

static void say(const struct serving *serving, const void *answer, size_t size)
{
	send(serving->fd, answer, size, MSG_NOSIGNAL); /* who asked may be gone */
}

/* false: hang up. */
static bool act_wrong(const struct serving *serving, enum fake_act act,
		      struct bucket_answer answer[], unsigned n)
{
	struct bucket_answer none = {.id = 12345678 * UINT64_C(64)};

	if (act == FAKE_WRONG_ID || act == FAKE_WRONG_ALWAYS)
		say(serving, &none, sizeof(none));
	else if (act == FAKE_WRONG_STATUS)
		answer[0].status = BUCKET_FAILED + 1;
	else if (act == FAKE_TWICE)
		say(serving, answer, sizeof(*answer));
	else if (act == FAKE_SHORT)
		say(serving, answer, n * sizeof(*answer) - 1);
	else if (act == FAKE_HALF_CLOSE)
		say(serving, answer, (n + 1) / 2 * sizeof(*answer));
	if (act == FAKE_CLOSE || act == FAKE_CLOSE_ALWAYS || act == FAKE_HALF_CLOSE ||
	    act == FAKE_SHORT)
		return false;
	return true;
}

/* Of the named object. */
static void act_bad(const struct fake *fake, enum fake_act act, const char *name, size_t bytes,
		    struct bucket_answer *ret)
{
	if (act < FAKE_CHANGED || act > FAKE_FAILED || strlen(fake->name) != bytes ||
	    memcmp(fake->name, name, bytes) != 0)
		return;
	ret->status = act == FAKE_CHANGED  ? BUCKET_CHANGED
		      : act == FAKE_DENIED ? BUCKET_DENIED
					   : BUCKET_FAILED;
	ret->code = act == FAKE_FAILED ? 503 : 403;
	if (act == FAKE_DENIED)
		memcpy(ret->text, FAKE_TEXT "?", sizeof(ret->text)); /* without an end */
}

/* false: hang up. */
static bool reply(const struct serving *serving, const uint8_t *message, size_t size)
{
	struct bucket_ask ask[BUCKET_MOST_ASKS];
	struct bucket_answer answer[BUCKET_MOST_ASKS];
	const enum fake_act act = act_of(serving->fake);
	struct bucket_head head;
	const char *name;
	unsigned n;

	ck_assert_uint_ge(size, sizeof(head));
	memcpy(&head, message, sizeof(head));
	n = head.count;
	ck_assert_uint_eq(head.magic, BUCKET_MAGIC);
	ck_assert_uint_eq(head.kind, BUCKET_READ);
	ck_assert(n >= 1 && n <= BUCKET_MOST_ASKS && size >= sizeof(head) + n * sizeof(*ask));
	memcpy(ask, message + sizeof(head), n * sizeof(*ask));
	name = (const char *)message + sizeof(head) + n * sizeof(*ask);
	count(serving->fake, ask, n);
	for (unsigned i = 0; i < n; name += ask[i++].name_bytes) {
		ck_assert_ptr_null(memchr(name, 0, ask[i].name_bytes));
		answer[i] = answer_of(serving, &ask[i], name);
		act_bad(serving->fake, act, name, ask[i].name_bytes, &answer[i]);
	}
	ck_assert_ptr_eq(name, (const char *)message + size);
	if (act == FAKE_NEVER)
		return true;
	if (!act_wrong(serving, act, answer, n))
		return false;
	if (act != FAKE_BACKWARDS)
		say(serving, answer, n * sizeof(*answer));
	for (unsigned i = n; act == FAKE_BACKWARDS && i-- > 0;)
		say(serving, &answer[i], sizeof(*answer));
	return true;
}

/* false: nobody is there any more. */
static bool take_memory(struct serving *serving)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct bucket_head hello;
	struct iovec iov = {&hello, sizeof(hello)};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int memory_fd;

	if (recvmsg(serving->fd, &message, 0) <= 0)
		return false;
	ck_assert_uint_eq(hello.magic, BUCKET_MAGIC);
	ck_assert_uint_eq(hello.kind, BUCKET_HELLO);
	ck_assert_uint_le(hello.memory, BUCKET_MOST_MEMORY);
	memcpy(&memory_fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	ck_assert_int_lt(ftruncate(memory_fd, 0), 0); /* or the reader would die of SIGBUS */
	serving->memory_bytes = hello.memory;
	serving->memory =
	    mmap(NULL, hello.memory, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
	ck_assert(serving->memory != MAP_FAILED);
	close(memory_fd);
	return true;
}

static void *serve(void *arg)
{
	struct serving *serving = arg;
	uint8_t *message = malloc(BUCKET_MOST_MESSAGE + 1);
	ssize_t got;

	if (take_memory(serving)) {
		while ((got = recv(serving->fd, message, BUCKET_MOST_MESSAGE + 1, 0)) > 0)
			if (!reply(serving, message, (size_t)got))
				break;
		munmap(serving->memory, serving->memory_bytes);
	}
	close(serving->fd);
	free(message);
	free(serving);
	return NULL;
}

static void *take(void *arg)
{
	struct fake *fake = arg;
	pthread_t thread;
	int fd;

	while ((fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct serving *serving = calloc(1, sizeof(*serving));

		*serving = (struct serving){.fake = fake, .fd = fd};
		pthread_mutex_lock(&fake->lock);
		fake->connections++;
		pthread_mutex_unlock(&fake->lock);
		ck_assert_int_eq(pthread_create(&thread, NULL, serve, serving), 0);
		pthread_detach(thread);
	}
	return NULL;
}

void fake_start(struct fake *fake, const struct tree *tree)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	unlinkat(tree->fd, BUCKET_SOCKET, 0);
	if (!fake->tree)
		*fake = (struct fake){.tree = tree, .lock = PTHREAD_MUTEX_INITIALIZER};
	/* Connections of before may still be served. */
	pthread_mutex_lock(&fake->lock);
	fake->act = 0;
	fake->name[0] = '\0';
	fake->acted = fake->connections = fake->messages = fake->asks = fake->most = 0;
	fake->bytes = fake->shortest = 0;
	fake->longest = 0;
	pthread_mutex_unlock(&fake->lock);
	fake->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" BUCKET_SOCKET,
		 tree->fd);
	ck_assert_int_eq(bind(fake->listener, (const struct sockaddr *)&address, sizeof(address)),
			 0);
	ck_assert_int_eq(listen(fake->listener, 64), 0);
	ck_assert_int_eq(pthread_create(&fake->thread, NULL, take, fake), 0);
}

void fake_stop(struct fake *fake)
{
	shutdown(fake->listener, SHUT_RDWR);
	pthread_join(fake->thread, NULL);
	close(fake->listener);
}

void fake_says(struct fake *fake, enum fake_act act, const char *name)
{
	pthread_mutex_lock(&fake->lock);
	fake->act = act;
	fake->acted = 0;
	snprintf(fake->name, sizeof(fake->name), "%s", name);
	pthread_mutex_unlock(&fake->lock);
}

struct fake fake_counts(struct fake *fake)
{
	struct fake copy;

	pthread_mutex_lock(&fake->lock);
	copy = *fake;
	pthread_mutex_unlock(&fake->lock);
	return copy;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makers: the only processes here that look at what is in a file. A file may have been made to break a
 * decoder, so a maker is what a worker is (base/sandbox.h): it has its heap, files that it can only
 * read, and a pipe that it can only write to. A lane has one, and starts another when it died.
 *
 * The answer comes through the pipe and not through shared memory: so the lane has a copy that nobody
 * changes while it is looked at, its end says that the maker died, and no memory has to be set
 * apart for forms whose size nobody knows before.
 *
 * A maker that takes more than a hundred times as long as such a file takes is ended, by its
 * CPU time, or, if it sleeps over a file, by the lane's seconds of waiting: both stand still while
 * somebody has stopped us. The file then stays as it is, and so it is told.
 */

#include "convert/convert.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "pipeline/forms/form.h"
#include "base/sandbox.h"

#define MAKER_MEMORY (UINT64_C(1) << 30)
#define MAKER_LIMIT_NS UINT64_C(5000000000)
#define MAKER_LIMIT_BYTE_NS 1000
#define MAKER_SLEEPS 10 /* times the limit that it may sleep */

enum { MAKER_HAS = 0, MAKER_HAS_NONE = 1, MAKER_IS_THERE = 2 };

static int map_shared(uint64_t bytes, void *ret)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return -errno;
	memcpy(ret, &map, sizeof(map));
	return 0;
}

int convert_maker_init(struct convert_maker *maker, uint64_t room_bytes, unsigned form)
{
	int r;

	*maker = (struct convert_maker){
	    .room_bytes = BASE_MAX(room_bytes, UINT64_C(1)),
	    .form = form,
	    .fd = -1,
	};
	r = map_shared(sizeof(*maker->desk), &maker->desk);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(maker->room) && !r; i++)
		r = map_shared(maker->room_bytes, &maker->room[i]);
	return r;
}

/* ---- the maker ---- */

static void maker_say(int fd, const void *data, size_t size)
{
	if (base_write_all(fd, data, size))
		_exit(1);
}

static void maker_answer(int fd, uint32_t status, uint64_t size)
{
	const struct convert_answer answer = {.status = status, .size = size};

	maker_say(fd, &answer, sizeof(answer));
}

static void maker_serve(const struct convert_maker *maker, struct form_maker *former, unsigned room,
			int fd)
{
	const uint32_t size = maker->desk->size;
	_cleanup_free_ uint8_t *form = NULL;
	size_t form_size = 0;

	if (form_make(former, (enum form_kind)maker->form, maker->room[room], size, &form,
		      &form_size)) {
		maker_answer(fd, MAKER_HAS_NONE, 0);
		return;
	}
	if (maker->form == FORM_INDEXED) /* the file, which stands behind it, is not told twice */
		form_size -= size;
	maker_answer(fd, MAKER_HAS, form_size);
	maker_say(fd, form, form_size);
}

static bool maker_settle(const struct convert_maker *maker, pid_t lane, int fd)
{
	const struct sandbox_limits limits = {.memory = MAKER_MEMORY, .event_fd = fd};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != lane ||
	    mprotect(maker->desk, sizeof(*maker->desk), PROT_READ) < 0)
		return false;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(maker->room); i++)
		if (mprotect(maker->room[i], maker->room_bytes, PROT_READ) < 0)
			return false;
	prctl(PR_SET_NAME, "convert-maker");
	return sandbox_enter(&limits) == 0;
}

static _Noreturn void maker_live(const struct convert_maker *maker, pid_t lane, int fd)
{
	uint32_t seen = baton_look(&maker->desk->baton);
	struct form_maker *former;

	if (form_maker_new(&former) || !maker_settle(maker, lane, fd))
		_exit(1);
	maker_answer(fd, MAKER_IS_THERE, 0);
	for (;;) {
		seen = baton_wait(&maker->desk->baton, seen);
		maker_serve(maker, former, seen & 1, fd);
	}
}

/* ---- its lane ---- */

void convert_maker_end(struct convert_maker *maker)
{
	base_close(&maker->fd);
	base_kill(&maker->pid);
}

static uint64_t maker_cpu_ns(const struct convert_maker *maker)
{
	clockid_t clock;

	return clock_getcpuclockid(maker->pid, &clock) ? 0 : base_clock_ns(clock);
}

/* Waits until it says something. false: it has used up its time. */
static bool maker_wait(const struct convert_maker *maker, uint64_t limit_ns)
{
	const uint64_t begin_ns = maker_cpu_ns(maker);
	struct pollfd poll_fd = {.fd = maker->fd, .events = POLLIN};

	for (uint64_t waited = 0; waited < MAKER_SLEEPS * limit_ns; waited += 1000000000) {
		int r;

		do
			r = poll(&poll_fd, 1, 1000);
		while (r < 0 && errno == EINTR);
		if (r != 0)
			return true;
		if (maker_cpu_ns(maker) - begin_ns > limit_ns)
			return false;
	}
	return false;
}

/* false: it died, or time is up, before there were so many bytes. */
static bool maker_hear(const struct convert_maker *maker, void *ret, uint64_t bytes,
		       uint64_t limit_ns)
{
	for (uint64_t got = 0; got < bytes;) {
		ssize_t r;

		if (!maker_wait(maker, limit_ns))
			return false;
		r = read(maker->fd, (uint8_t *)ret + got, bytes - got);
		if (r == 0 || (r < 0 && errno != EINTR))
			return false;
		got += r > 0 ? (uint64_t)r : 0;
	}
	return true;
}

static int maker_start(struct convert_maker *maker)
{
	const pid_t lane = getpid();
	struct convert_answer answer;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	maker->pid = fork();
	if (maker->pid == 0) {
		base_close(&ends[0]);
		maker_live(maker, lane, ends[1]);
	}
	base_close(&ends[1]);
	maker->fd = ends[0];
	if (maker->pid < 0) {
		maker->pid = 0;
		convert_maker_end(maker);
		return -EAGAIN;
	}
	if (maker_hear(maker, &answer, sizeof(answer), MAKER_LIMIT_NS) &&
	    answer.status == MAKER_IS_THERE)
		return 0;
	convert_maker_end(maker);
	return -ECHILD;
}

int convert_maker_ask(struct convert_maker *maker, unsigned which, uint32_t size)
{
	int r = maker->pid > 0 ? 0 : maker_start(maker);

	if (r)
		return r;
	maker->desk->size = size;
	baton_pass(&maker->desk->baton, which);
	return 0;
}

int convert_maker_take(struct convert_maker *maker, uint32_t size, uint8_t **ret_form,
		       uint64_t *ret_size, bool *ret_is_lost)
{
	const uint64_t limit_ns = MAKER_LIMIT_NS + (uint64_t)size * MAKER_LIMIT_BYTE_NS;
	_cleanup_free_ uint8_t *form = NULL;
	struct convert_answer answer;

	*ret_form = NULL;
	*ret_is_lost = true;
	if (!maker_hear(maker, &answer, sizeof(answer), limit_ns) ||
	    answer.status > MAKER_HAS_NONE ||
	    answer.size > form_bound((enum form_kind)maker->form, size)) {
		convert_maker_end(maker);
		return 0;
	}
	if (answer.status == MAKER_HAS) {
		form = malloc(BASE_MAX(answer.size, UINT64_C(1)));
		if (!form)
			return -ENOMEM;
		if (!maker_hear(maker, form, answer.size, limit_ns)) {
			convert_maker_end(maker);
			return 0;
		}
	}
	*ret_is_lost = false;
	*ret_size = answer.size;
	*ret_form = base_take_ptr(form);
	return 0;
}

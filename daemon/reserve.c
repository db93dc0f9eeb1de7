/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserving beside the loop. The child of a fork() of this single-threaded process makes few kinds
 * of system call: fallocate(), those that put a slot into huge pages, and exit. It ends with the
 * number of slots it reserved (at most 250 a child, a larger growth goes in steps). Whatever it
 * could not reserve is given back to the budget.
 *
 * Huge pages are taken now or never: later, workers would write to the small ones first, and pay for
 * each. Where the kernel has none left, the first refusal is the last question.
 */
#include "daemon/reserve.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/node.h"
#include "daemon/stream.h"

#define MOST_AT_ONCE 250

static void reserve_in_child(const struct stream *stream, pid_t accessd, uint32_t from, uint32_t to)
{
	bool huge = true;
	uint32_t done = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != accessd)
		_exit(0); /* it died before that; its locks must not live on in us */
	for (; from + done < to; done++) {
		if (board_slots_reserve(stream->slots_fd, &stream->board.geometry, from + done))
			break;
		huge = huge && board_slots_gather(stream->slots_fd, &stream->board.geometry,
						  from + done) == 0;
	}
	_exit((int)done);
}

static void account(struct stream *stream, int64_t slots)
{
	int64_t bytes = slots * (int64_t)stream->board.geometry.slot_stride;

	stream->memory = (uint64_t)((int64_t)stream->memory + bytes);
	stream->node->memory_used = (uint64_t)((int64_t)stream->node->memory_used + bytes);
}

int reserve_begin(struct stream *stream, uint32_t to)
{
	struct reserve *reserve = &stream->reserve;
	pid_t accessd = getpid(), pid;

	to = BASE_MIN(to, stream->slots + MOST_AT_ONCE);
	if (reserve->pid || to <= stream->slots)
		return 0;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		reserve_in_child(stream, accessd, stream->slots, to);
	*reserve = (struct reserve){.pid = pid, .from = stream->slots, .to = to};
	account(stream, to - stream->slots);
	return 0;
}

static void finish(struct stream *stream, int status)
{
	struct reserve done = stream->reserve;
	uint32_t asked = done.to - done.from;
	uint32_t got = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0;

	got = BASE_MIN(got, asked);
	stream->reserve = (struct reserve){0};
	account(stream, (int64_t)got - (int64_t)asked);
	if (got < asked)
		log_line(LOG_LEVEL_WARN, "slots-not-reserved", "lane=%u asked=%u got=%u",
			 stream->lane.number, asked, got);
	stream_reserved(stream, got, got == asked);
}

bool reserve_ended(struct node *node, pid_t pid, int status)
{
	struct stream *stream;

	LIST_FOREACH(stream, &node->streams, link)
	{
		if (stream->reserve.pid != pid)
			continue;
		finish(stream, status);
		return true;
	}
	return false;
}

void reserve_cancel(struct stream *stream)
{
	if (!stream->reserve.pid)
		return;
	kill(stream->reserve.pid, SIGKILL);
	while (waitpid(stream->reserve.pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	stream->reserve = (struct reserve){0};
}

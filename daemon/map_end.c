/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What large shared memory takes to be let go of: each of its pages that was looked at is taken out of our tables, and
 * whoever is the last to have it gives all pages back to the kernel, a tenth of a second for a few hundred
 * megabytes. The first goes in steps, one a turn of the loop; nothing makes steps of the second, since such memory is
 * sealed. So a child has it, too, which waits until we are done with it and then ends. Usually the reader is
 * the last, who is told after us; but he may have died, and his user may have seen to it.
 *
 * The child waits for the end of a pipe, of which we have the other one.
 */
#include "daemon/map_end.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <sys/mman.h>

#include "daemon/ending.h"
#include "daemon/proc/child.h"

#define STEP (UINT64_C(4) << 20) /* bytes a turn: a thousand pages */

struct map_ending {
	uint8_t *map;
	uint64_t bytes; /* left, from the first on; whole pages but for the last */
	int pipe_fd;    /* owned; -1: no child could be had */
};

static void wait_in_child(int fd, pid_t accessd)
{
	struct pollfd hung_up = {.fd = fd};

	child_settle(accessd, fd);
	while (poll(&hung_up, 1, -1) < 0 && errno == EINTR)
		continue;
	_exit(0);
}

/* A child that has whatever we have mapped, until the descriptor is closed. */
static int begin_child(void)
{
	pid_t accessd = getpid(), pid;
	int pair[2];

	if (pipe2(pair, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid == 0)
		wait_in_child(pair[0], accessd);
	close(pair[0]);
	if (pid < 0)
		base_close(&pair[1]);
	return pair[1];
}

static void end_all(void *thing)
{
	struct map_ending *ending = thing;

	munmap(ending->map, ending->bytes);
	base_close(&ending->pipe_fd);
	free(ending);
}

static bool end_some(void *thing)
{
	struct map_ending *ending = thing;
	const uint64_t left = (ending->bytes - 1) / STEP * STEP;

	if (!left) {
		end_all(ending);
		return false;
	}
	munmap(ending->map + left, ending->bytes - left);
	ending->bytes = left;
	return true;
}

void map_end(struct endings *endings, void *map, uint64_t bytes)
{
	struct map_ending *ending = map && bytes > STEP ? calloc(1, sizeof(*ending)) : NULL;

	if (ending) {
		*ending = (struct map_ending){map, bytes, begin_child()};
		ending_begin(endings, end_some, end_all, ending);
	} else if (map) {
		munmap(map, bytes);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a large index takes to be let go of: each of its pages that was looked at is taken out of our tables, and
 * whoever is the last to have its memory gives all pages back to the kernel, a tenth of a second for a few hundred
 * megabytes. The first goes in steps, one a turn of the loop; nothing makes steps of the second, since such memory is
 * sealed. So a child has it, too, which waits until we are done with it and then ends. Usually the reader is
 * the last, who is told after us; but he may have died, and his user may have seen to it.
 *
 * The child waits for the end of a pipe, of which we have the other one.
 */
#include "daemon/serve/index_end.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/ending.h"
#include "daemon/proc/child.h"
#include "storage/dataset.h"

#define STEP (UINT64_C(4) << 20) /* bytes a turn: a thousand pages */

struct index_ending {
	struct dataset *dataset;
	int pipe_fd; /* owned; -1: no child could be had */
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
	struct index_ending *ending = thing;

	dataset_unmap(ending->dataset);
	base_close(&ending->pipe_fd);
	free(ending);
}

static bool end_some(void *thing)
{
	struct index_ending *ending = thing;

	if (dataset_unmap_some(&ending->dataset, STEP))
		return true;
	end_all(ending);
	return false;
}

void index_end(struct endings *endings, struct dataset *dataset, int fd)
{
	const bool is_small = !dataset || dataset_index_bytes(dataset) <= STEP;
	struct index_ending *ending = is_small ? NULL : calloc(1, sizeof(*ending));

	if (ending) {
		*ending = (struct index_ending){.dataset = dataset, .pipe_fd = begin_child()};
		ending_begin(endings, end_some, end_all, ending);
	} else {
		dataset_unmap(dataset);
	}
	base_close(&fd);
}

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

#include "daemon/loop.h"
#include "daemon/node.h"
#include "daemon/proc/child.h"
#include "storage/dataset.h"

#define STEP (UINT64_C(4) << 20) /* bytes a turn: a thousand pages */

struct index_ending {
	LIST_ENTRY(index_ending) link;
	struct dataset *dataset;
	struct loop_watch *timer;
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

static void ending_free(struct index_ending *ending)
{
	LIST_REMOVE(ending, link);
	loop_unwatch(&ending->timer);
	dataset_unmap(ending->dataset);
	base_close(&ending->pipe_fd);
	free(ending);
}

static void on_step(void *arg)
{
	struct index_ending *ending = arg;

	if (dataset_unmap_some(&ending->dataset, STEP))
		loop_timer_set(ending->timer, 0);
	else
		ending_free(ending);
}

/* false: there is no memory for it. */
static bool begin(struct node *node, struct dataset *dataset)
{
	struct index_ending *ending = calloc(1, sizeof(*ending));

	if (!ending || loop_timer_new(node->loop, on_step, ending, &ending->timer)) {
		free(ending);
		return false;
	}
	ending->dataset = dataset;
	ending->pipe_fd = begin_child();
	LIST_INSERT_HEAD(&node->index_endings, ending, link);
	loop_timer_set(ending->timer, 0);
	return true;
}

void index_end(struct node *node, struct dataset *dataset, int fd)
{
	bool is_small = !dataset || dataset_index_bytes(dataset) <= STEP;

	if (is_small || !begin(node, dataset))
		dataset_unmap(dataset);
	base_close(&fd);
}

void index_end_fini(struct node *node)
{
	while (!LIST_EMPTY(&node->index_endings))
		ending_free(LIST_FIRST(&node->index_endings));
}

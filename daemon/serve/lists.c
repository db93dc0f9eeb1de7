/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists from clients are hostile. Their memory cannot change nor go away (listing_memory.c), their
 * head is checked here, each entry by the carousel when it makes a chunk of it. They cost accessd
 * address space; the pages are the client's.
 */
#include "daemon/serve/lists.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/net/conn.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/serve/job.h"
#include "daemon/serve/pump.h"
#include "daemon/serve/stream.h"
#include "libaccess/libaccess.h"
#include "shmring/listing_memory.h"
#include "shmring/proto.h"

#define LISTS_MOST_BYTES                                        \
	(LISTING_HEAD + LISTING_MAX_PLACES * sizeof(uint64_t) + \
	 (uint64_t)LISTING_MAX_KEYS * sizeof(struct listing_key))

#define LISTS_SMALL (UINT64_C(1) << 20) /* bytes: given back as soon as it is unmapped */

static int attach(int fd, void **map, uint64_t *bytes, struct listing *ret, struct diag *diag)
{
	int r = listing_memory_attach(fd, LISTS_MOST_BYTES, map, bytes);

	if (r) {
		diag_set(diag, "the list of an epoch: it came without memory that is sealed "
			       "against change, or could not be mapped");
		return r;
	}
	r = listing_attach(*map, *bytes, ret, diag);
	if (r)
		listing_memory_detach(*map, *bytes);
	return r;
}

/* Also of a list that was not entered: its memory may be the last copy. */
static void let_go(const struct job *job, int *fd)
{
	porter_close(&job->stream->node->porters, job->conn->uid, fd);
}

/* Takes *fd where it is entered. */
static int enter(struct job *job, uint64_t epoch, int *fd, struct diag *diag)
{
	struct lists *lists = &job->lists;
	struct listing listing;
	uint64_t bytes;
	void *map;
	int r;

	if (lists->n == CAROUSEL_MAX_LISTS) {
		diag_set(diag, "the list of epoch %llu: it comes too early",
			 (unsigned long long)epoch);
		return CAROUSEL_E_FULL;
	}
	r = attach(*fd, &map, &bytes, &listing, diag);
	if (r)
		return r;
	r = carousel_list(job->stream->carousel, job->number, epoch, &listing);
	if (r) {
		diag_set(diag,
			 "the list of epoch %llu: the job is not there, has it already, or was "
			 "resumed at a place that it does not have",
			 (unsigned long long)epoch);
		listing_memory_detach(map, bytes);
		return r;
	}
	lists->list[lists->n].epoch = epoch;
	lists->list[lists->n].bytes = bytes;
	lists->list[lists->n].fd = bytes > LISTS_SMALL ? base_take_fd(fd) : -1;
	lists->list[lists->n++].map = map;
	return 0;
}

void lists_take(struct job *job, const struct message_plan *plan, struct wire_in *in)
{
	struct diag diag;
	int fd;

	if (!job->active)
		return; /* it failed, and does not know it yet */
	lists_let_go(job);
	fd = wire_take_fd(in, plan->epoch_fd);
	if (enter(job, plan->epoch, &fd, &diag))
		job_fail(job, OA_E_INVALID, diag.text);
	else
		pump_soon(job->stream);
	let_go(job, &fd);
}

static void drop(struct job *job, unsigned i)
{
	listing_memory_detach(job->lists.list[i].map, job->lists.list[i].bytes);
	let_go(job, &job->lists.list[i].fd);
}

void lists_let_go(struct job *job)
{
	struct lists *lists = &job->lists;
	uint64_t first;
	unsigned kept = 0;

	if (!lists->n)
		return;
	first = carousel_lists_over(job->stream->carousel, job->number);
	for (unsigned i = 0; i < lists->n; i++)
		if (lists->list[i].epoch >= first)
			lists->list[kept++] = lists->list[i];
		else
			drop(job, i);
	lists->n = kept;
}

void lists_fini(struct job *job)
{
	while (job->lists.n)
		drop(job, --job->lists.n);
}

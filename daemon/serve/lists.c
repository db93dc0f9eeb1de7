/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists from clients are hostile. Their memory cannot change nor go away (shmring/region.h), their
 * head is checked here, each entry by the carousel when it makes a chunk of it. They cost accessd
 * address space; the pages are the client's.
 */
#include "daemon/serve/lists.h"

#include "daemon/map_end.h"
#include "daemon/net/porter.h"
#include "shmring/region.h"

#define LISTS_MOST_BYTES                                        \
	(LISTING_HEAD + LISTING_MAX_PLACES * sizeof(uint64_t) + \
	 (uint64_t)LISTING_MAX_KEYS * sizeof(struct listing_key))

#define LISTS_SMALL (UINT64_C(1) << 20) /* bytes: given back as soon as it is unmapped */

static int attach(int fd, void **map, uint64_t *bytes, struct listing *ret, struct diag *diag)
{
	int r = region_attach_foreign(fd, REGION_IMMUTABLE, 1, LISTS_MOST_BYTES, map, bytes);

	if (r)
		return diag_fail(diag, r,
				 "the list of an epoch: it came without memory that is sealed "
				 "against change, or could not be mapped");
	r = listing_attach(*map, *bytes, ret, diag);
	if (r)
		region_unmap(*map, *bytes);
	return r;
}

/* Also of a list that was not entered: its memory may be the last copy. */
static void let_go(const struct lists *lists, int *fd)
{
	porter_close(lists->porters, lists->uid, fd);
}

void lists_init(struct lists *lists, struct porters *porters, struct endings *endings, uid_t uid)
{
	*lists = (struct lists){.porters = porters, .endings = endings, .uid = uid};
}

/* Takes *fd where it is entered. */
static int enter(struct lists *lists, const struct lists_job *job, uint64_t epoch, int *fd,
		 struct diag *diag)
{
	struct listing listing;
	uint64_t bytes;
	void *map;
	int r;

	if (lists->n == CAROUSEL_MAX_LISTS)
		return diag_fail(diag, CAROUSEL_E_FULL,
				 "the list of epoch %llu: it comes too early",
				 (unsigned long long)epoch);
	r = attach(*fd, &map, &bytes, &listing, diag);
	if (r)
		return r;
	r = carousel_list(job->carousel, job->number, epoch, &listing);
	if (r) {
		diag_set(diag,
			 "the list of epoch %llu: the job is not there, has it already, or was "
			 "resumed at a place that it does not have",
			 (unsigned long long)epoch);
		region_unmap(map, bytes);
		return r;
	}
	lists->list[lists->n].epoch = epoch;
	lists->list[lists->n].bytes = bytes;
	lists->list[lists->n].fd = bytes > LISTS_SMALL ? base_take_fd(fd) : -1;
	lists->list[lists->n++].map = map;
	return 0;
}

int lists_take(struct lists *lists, const struct lists_job *job, uint64_t epoch, int fd,
	       struct diag *diag)
{
	int r;

	lists_let_go(lists, job);
	r = enter(lists, job, epoch, &fd, diag);
	let_go(lists, &fd);
	return r;
}

static void drop(struct lists *lists, unsigned i)
{
	map_end(lists->endings, lists->list[i].map, lists->list[i].bytes);
	let_go(lists, &lists->list[i].fd);
}

void lists_let_go(struct lists *lists, const struct lists_job *job)
{
	uint64_t first;
	unsigned kept = 0;

	if (!lists->n)
		return;
	first = carousel_lists_over(job->carousel, job->number);
	for (unsigned i = 0; i < lists->n; i++)
		if (lists->list[i].epoch >= first)
			lists->list[kept++] = lists->list[i];
		else
			drop(lists, i);
	lists->n = kept;
}

void lists_fini(struct lists *lists)
{
	while (lists->n)
		drop(lists, --lists->n);
}

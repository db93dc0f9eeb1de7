/* SPDX-License-Identifier: Apache-2.0 */

#include "sched/instance.h"

#include <errno.h>
#include <stdlib.h>

int instance_init(struct instance_book *book, uint64_t n, uint64_t first_lap)
{
	*book = (struct instance_book){.n = n, .first_lap = first_lap};
	book->age = calloc(n + 1, sizeof(*book->age));
	book->number = calloc(n + 1, sizeof(*book->number));
	if (book->age && book->number)
		return 0;
	instance_fini(book);
	return -ENOMEM;
}

void instance_fini(struct instance_book *book)
{
	free(book->age);
	free(book->number);
	*book = (struct instance_book){.n = 0};
}

unsigned instance_bring(struct instance_book *book, uint64_t sample, unsigned most,
			uint64_t *ret_lap)
{
	if (sample >= book->n || book->number[sample] == 0 || book->number[sample] >= most ||
	    book->number[sample] == INSTANCE_MOST)
		return 0;
	*ret_lap = book->first_lap + book->age[sample];
	return ++book->number[sample];
}

void instance_made(struct instance_book *book, uint64_t sample, uint64_t lap)
{
	const uint64_t age = lap - book->first_lap;

	if (sample >= book->n)
		return;
	book->number[sample] = age <= UINT32_MAX;
	book->age[sample] = (uint32_t)age;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "sched/instance.h"

#include <errno.h>
#include <stdlib.h>

int instance_init(struct instance_book *book, uint64_t n, uint64_t first_nonce)
{
	*book = (struct instance_book){.n = n, .first_nonce = first_nonce};
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
			uint64_t *ret_nonce)
{
	if (sample >= book->n || book->number[sample] == 0 || book->number[sample] >= most ||
	    book->number[sample] == INSTANCE_MOST)
		return 0;
	*ret_nonce = book->first_nonce + book->age[sample];
	return ++book->number[sample];
}

void instance_made(struct instance_book *book, uint64_t sample, uint64_t nonce)
{
	const uint64_t age = nonce - book->first_nonce;

	if (sample >= book->n)
		return;
	book->number[sample] = age <= UINT32_MAX;
	book->age[sample] = (uint32_t)age;
}

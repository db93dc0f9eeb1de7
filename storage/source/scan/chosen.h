/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which column, or leaf, of a sample is its picture, and which its label: the only one of those that fit best. */

#include <string.h>

struct chosen {
	unsigned n, rank, column; /* n columns of that rank; the last of them */
};

/* rank 0: it does not fit. */
static inline void chosen_add(struct chosen *chosen, unsigned rank, unsigned column)
{
	if (rank < chosen->rank || rank == 0)
		return;
	chosen->n = rank > chosen->rank ? 1 : chosen->n + 1;
	chosen->rank = rank;
	chosen->column = column;
}

/* Of one of whole numbers. named: what the user calls the label, or NULL. */
static inline unsigned chosen_label_rank(const char *name, const char *named)
{
	static const char *const usual[] = {"y", "class", "label"};
	const char *last = strrchr(name, '.');

	if (named)
		return strcmp(name, named) == 0;
	for (unsigned i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (strcmp(last ? last + 1 : name, usual[i]) == 0)
			return 2 + i;
	return 1;
}

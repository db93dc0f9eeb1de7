/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * FOLDER/data: a placeholder for each object of a listing (shmring/bucket.h). For one thread.
 */

#include "base/base.h"

#define TREE_MOST_OBJECTS UINT64_C(4000000)

struct tree;
struct tree_counts {
	uint64_t objects, bytes; /* that were put */
	uint64_t made, removed; /* placeholders that were not there, or another; that are no more */
	uint64_t skipped;       /* names that no file can have; */
	char example[128];      /* one of them, to be shown, */
	const char *why;        /* and why not */
};

/* Makes "data" and what it needs besides in the folder, if they are not there. folder_fd: of the caller, who keeps it as long.
 * 0; negative errno with diag. */
int tree_open(int folder_fd, struct tree **ret, struct diag *diag);
void tree_close(struct tree *tree);
/* A listing: begin, a put for each object, end. One that is not ended leaves what was there before, and some of the new. */
int tree_begin(struct tree *tree);
/* 0, also if the name was skipped; -EEXIST: the name is a folder's, too; -E2BIG; other errno. With diag. */
int tree_put(struct tree *tree, const char *name, uint64_t size, int64_t mtime_ns,
	     struct diag *diag);
/* Removes what was not put. */
int tree_end(struct tree *tree, struct diag *diag);
const struct tree_counts *tree_counts(const struct tree *tree);

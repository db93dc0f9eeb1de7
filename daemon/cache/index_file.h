/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The file of a source's index. */

#include "base/identity.h"
#include "daemon/param.h"

#define INDEX_FILE_PATH_MAX (PARAM_TEXT_MAX + 512)

struct index_file {
	const char *folder;
	char owner[IDENTITY_TEXT_MAX]; /* domain_key() */
	const char *dataset;           /* its path */
	uint64_t id;                   /* of the source: names what is not finished */
	uint64_t size; /* of all indexes in the folder; 0: a part of the file system */
	bool is_own;   /* our own user may have all of that */
};

/* For use: it is not deleted as long as the descriptor is open, also in other processes. -1: there is none. */
int index_file_open(const struct index_file *file);
/* That one is used now. */
void index_file_touch(int fd);
/* It is no index any more; somebody may still use it. 0 or negative errno. */
int index_file_set_aside(const struct index_file *file);
/* The name that a file has while it is written. */
void index_file_temporary(const struct index_file *file, char ret[INDEX_FILE_PATH_MAX]);
/* In a child, as it waits for the disk: makes room and stores the index in `from`. 0, -ENOSPC or another negative
 * errno. */
int index_file_store(const struct index_file *file, int from, const char *temporary);

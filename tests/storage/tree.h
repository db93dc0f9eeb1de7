/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A folder of test files under the current one, and what the storage tests do with it. */

#include "storage/dataset.h"

#include <stddef.h>
#include <stdint.h>

struct tree {
	char path[4096]; /* absolute */
	int fd;
};
void tree_new(struct tree *tree);
void tree_remove(struct tree *tree); /* the whole folder */
/* Makes the folders on the way, and a file of size bytes that its path determines. */
void tree_file(struct tree *tree, const char *path, size_t size);
void tree_folder(struct tree *tree, const char *path);
void tree_link(struct tree *tree, const char *target, const char *path);
/* Sets mtime of a file or folder: seconds and nanoseconds. */
void tree_mtime(struct tree *tree, const char *path, int64_t seconds, long nanoseconds);
/* Byte number at of tree_file(path). */
uint8_t tree_byte(const char *path, uint64_t at);

/* scan_build() and dataset_map() that must succeed, with threads threads. */
struct dataset *tree_scan(struct tree *tree, unsigned threads);
/* scan_build() that must not: its result, the text in diag. */
int tree_scan_fails(struct tree *tree, struct diag *diag);

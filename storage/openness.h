/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Is it open to everybody on this machine? Asked by a reader that is nobody in particular. When in
 * doubt the answer is no. */

#include <sys/stat.h>
#include "storage/dataset.h"

/* A folder, by descriptor (readable) and what fstat() said of it. */
bool openness_of_folder(int fd, const struct stat *st);
/* A file in a folder; st: as fstatat() said without following a symbolic link. */
bool openness_of_file(int folder_fd, const char *name, const struct stat *st);
/* Of a file with samples in it: one of which little is there costs who made it nothing, and us what its numbers say. */
bool openness_is_there(const struct stat *st);
/* Every folder from the root of the file system down to this one, or to this file and the file itself. */
bool openness_of_way(int fd);
/* The folders of an index that checked out, below root_fd. Files show it when they are read. */
bool openness_of_index(int root_fd, const struct dataset *dataset);

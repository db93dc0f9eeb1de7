/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVE_INDEX_FILE_H
#define DAEMON_SERVE_INDEX_FILE_H

/* The file of a source's index. */

#include "base/base.h"
#include "daemon/param.h"

#define INDEX_FILE_PATH_MAX (PARAM_TEXT_MAX + 512)

struct source;

/* For use: it is not deleted as long as the descriptor is open, also in other processes. -1: there is none. */
int index_file_open(const struct source *source);
/* That one is used now. */
void index_file_touch(int fd);
/* It is no index any more; somebody may still use it. 0 or negative errno. */
int index_file_set_aside(const struct source *source);
/* The name that a file has while it is written. */
void index_file_temporary(const struct source *source, char ret[INDEX_FILE_PATH_MAX]);
/* In a child, as it waits for the disk: makes room and stores the index in `from`. 0, -ENOSPC or another negative
 * errno. */
int index_file_store(const struct source *source, int from, const char *temporary);

#endif

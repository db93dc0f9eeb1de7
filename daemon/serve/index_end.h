/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVE_INDEX_END_H
#define DAEMON_SERVE_INDEX_END_H

/* Letting go of an index, a little at a time. */

#include "base/base.h"

struct dataset;
struct endings;

/* Owns both from now on; NULL and -1 are fine. */
void index_end(struct endings *endings, struct dataset *dataset, int fd);

#endif

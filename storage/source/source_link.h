/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What connections to processes of the user's have in common, that bring samples: a socket in a folder of his, and memory in which
 * bytes come. The other end may be anything: neither it nor the memory can do more than give wrong bytes.
 */

#include "base/base.h"

struct iovec;

/* To the socket of that name in the folder, which belongs to this user, as does who listens. *ret_folder: the folder, the
 * caller's. The descriptor, or negative errno. */
int source_link_connect(const char *folder, const char *name, int *ret_folder);
/* Is it worth waiting for who listens, after that error? */
bool source_link_may_come(int error);
/* Memory of so many bytes, to be read here, that cannot become less; is_whole: all of it is there at once. *ret: a mapping. The
 * descriptor, or negative errno. */
int source_link_memory(const char *name, uint64_t bytes, bool is_whole, uint8_t **ret);
/* One message; pass: a descriptor beside it, -1: none. Waits for nobody. 0, or negative errno. */
int source_link_send(int fd, const struct iovec *part, unsigned n, int pass);

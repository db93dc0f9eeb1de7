/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_SOURCE_SOURCE_PACKED_H
#define STORAGE_SOURCE_SOURCE_PACKED_H

/* Rows that are documents of tokens, packed (source_rows.c has all else of them). */

#include "storage/dataset.h"
#include "storage/source/npy.h"

#define PACKED_ROWS 4 /* rows of numbers that a sample has, of one length each */

struct packed;
/* Owns idx_fd. length: of a sequence. 0, -EBADMSG: the .idx does not say where documents lie in the .bin; negative errno, of which
 * -ECANCELED is the progress'. */
int source_packed_open(int idx_fd, const struct megatron *megatron, uint64_t bin_bytes,
		       uint32_t length, int64_t pad, const struct scan_progress *progress,
		       struct packed **ret);
void source_packed_free(struct packed *packed); /* NULL is fine */
uint64_t source_packed_count(const struct packed *packed);
int64_t source_packed_stamp(const struct packed *packed); /* the .idx' time of change */
/* A sample's rows: PACKED_ROWS times length i64. Any thread. 0, -EBADMSG, or negative errno. */
int source_packed_read(struct packed *packed, int bin_fd, uint64_t sample, uint8_t *ret);
bool source_packed_is_same(const struct packed *packed);

#endif

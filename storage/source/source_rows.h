/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files whose samples are rows of numbers, all of one size: which they are. */

#include "base/base.h"
#include "storage/dataset.h"
#include "storage/source/scan/megatron.h"
#include "base/number.h"

struct packed;
struct reader_dataset;

struct rows { /* dataset->source of one */
	uint64_t file_bytes;
	int64_t mtime_ns;
	enum number number;
	uint64_t at;        /* where the first row begins */
	uint64_t n, stride; /* rows; bytes from one to the next */
	uint64_t values;    /* of a row */
	unsigned ndim;
	uint64_t shape[4];
	struct packed *packed; /* owned; NULL: the rows lie one behind the other */
};

/* ---- source_rows_open.c ---- */

/* ret has file_bytes. 0, or as a kind's probe(). */
int source_rows_open(const struct reader_dataset *dataset, const struct scan_progress *progress,
		     struct rows *ret, struct diag *diag);

/* ---- source_packed.c: rows that are documents of tokens, packed ---- */

#define PACKED_ROWS 4 /* rows of numbers that a sample has, of one length each */

/* Owns idx_fd, of which all bytes are there. length: of a sequence. 0, -EBADMSG: the .idx does not say where documents lie in the .bin; negative errno, of which
 * -ECANCELED is the progress'. */
int source_packed_open(int idx_fd, const struct megatron *megatron, uint64_t bin_bytes,
		       uint32_t length, int64_t pad, const struct scan_progress *progress,
		       struct packed **ret);
void source_packed_free(struct packed *packed); /* NULL is fine */
uint64_t source_packed_count(const struct packed *packed);
int64_t source_packed_stamp(const struct packed *packed); /* the .idx' time of change */
/* A sample's rows: PACKED_ROWS times length i64. Any thread. 0, -EBADMSG, or negative errno. */
int source_packed_read(struct packed *packed, const struct reader_dataset *dataset, uint64_t sample,
		       uint8_t *ret);
bool source_packed_is_same(const struct packed *packed);

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_SOURCE_SOURCE_ROWS_H
#define STORAGE_SOURCE_SOURCE_ROWS_H

/* Files whose samples are rows of numbers, all of one size: which they are. */

#include "base/base.h"
#include "storage/source/number.h"

struct packed;
struct reader_dataset;
struct scan_progress;

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

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files whose samples are rows of numbers, all of one size: which they are. */

#include "base/base.h"
#include "storage/dataset.h"
#include "storage/source/scan/megatron.h"
#include "base/number.h"

struct loss;
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
	struct loss *loss;     /* owned; NULL: all tokens count */
};

/* ---- source_rows_open.c ---- */

/* ret has file_bytes. 0, or as a kind's probe(). */
int source_rows_open(const struct reader_dataset *dataset, const struct scan_progress *progress,
		     struct rows *ret, struct diag *diag);

/* ---- source_loss.c: which tokens count for the loss, a byte of each in a file beside the .bin ---- */

#define LOSS_IGNORED INT64_C(-100) /* the label where the next token does not count */
#define LOSS_ROWS 2                /* rows of numbers that a window has with it */

struct source_piece;

/* Of a .bin of so many tokens. 0; DATASET_E_REFUSED, and why; -ENOMEM. */
int source_loss_open(const struct reader_dataset *dataset, uint64_t tokens, struct loss **ret,
		     struct diag *why);
void source_loss_free(struct loss *loss);           /* NULL is fine */
int64_t source_loss_stamp(const struct loss *loss); /* the file's time of change */
/* Pieces of it, whose bytes are not 0 where a token counts. Any thread. 0 or negative errno. */
int source_loss_fetch(const struct loss *loss, const struct reader_dataset *dataset,
		      const struct source_piece *piece, unsigned n);
/* Of tokens one behind the other the labels: each the next one, if that counts. Of n labels n + 1 counts. */
void source_loss_mark(const uint8_t *counts, uint64_t n, uint8_t *labels);
/* A window: LOSS_ROWS times length i64, its tokens and the next ones. As source_packed_read(). */
int source_loss_read(const struct rows *rows, const struct reader_dataset *dataset, uint64_t sample,
		     uint8_t *ret);
bool source_loss_is_same(const struct loss *loss);

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
/* A sample's rows: PACKED_ROWS times length i64. loss: NULL: all tokens count. Any thread. 0, -EBADMSG, or negative errno. */
int source_packed_read(struct packed *packed, const struct loss *loss,
		       const struct reader_dataset *dataset, uint64_t sample, uint8_t *ret);
bool source_packed_is_same(const struct packed *packed);

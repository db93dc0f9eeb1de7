/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files whose samples are rows of numbers, all of one size: which they are. */

#include "base/base.h"
#include "storage/dataset.h"
#include "storage/source/scan/megatron.h"
#include "base/number.h"

struct hash_id;
struct loss;
struct npy;
struct packed;
struct reader_dataset;
struct series;

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
	struct series *series; /* owned; NULL: the file is one of them */
};

/* ---- source_rows_open.c ---- */

/* ret has file_bytes. 0, or as a kind's probe(). */
int source_rows_open(const struct reader_dataset *dataset, const struct scan_progress *progress,
		     struct rows *ret, struct diag *diag);
/* The rows of such a file. */
void source_rows_of_npy(const struct npy *npy, struct rows *ret);

/* ---- source_series.c: windows of rows, of several series ---- */

struct series_windows {          /* which are wanted */
	uint64_t length, stride; /* rows of one, and from one to the next; from 1 on */
	const char *starts; /* the .npy beside it that has where each begins; "": there is none */
};
struct series_place {     /* of a window */
	const char *name; /* of its file, below the root; NULL: the root is that */
	uint64_t size;    /* of the file */
	int64_t mtime_ns;
	uint64_t at;
};
/* How many windows so many rows have. */
uint64_t source_series_windows(uint64_t rows, const struct series_windows *windows);
/* Of a folder or a list of .npy files, or of the one file whose rows are in rows, as it has starts. rows gets what the rows are, n
 * windows and series. 0, SOURCE_E_NONE: there is no such file; DATASET_E_REFUSED, and why, without the data set's name; or as
 * probe(). */
int source_series_open(const struct reader_dataset *dataset, const struct scan_progress *progress,
		       const struct series_windows *windows, struct rows *rows, struct diag *why);
void source_series_free(struct series *series); /* NULL is fine */
/* What tells it from others: the files, and where series begin. */
const struct hash_id *source_series_id(const struct series *series);
/* sample: below rows->n. Any thread. */
void source_series_place(const struct rows *rows, uint64_t sample, struct series_place *ret);
/* Bytes of a window whose file has a name; to NULL: the check alone. 0, -ESTALE: the file is another one; negative errno. */
int source_series_read(const struct reader_dataset *dataset, int root_fd,
		       const struct series_place *place, uint8_t *to, uint64_t bytes);

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

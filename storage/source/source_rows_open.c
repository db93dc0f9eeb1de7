/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What rows a file has.
 *
 * A .npy says so itself. Of other files the options of the source say it:
 *
 *	record=BYTES			records of so many bytes, one behind the other
 *	seq_len=S,dtype=uint16		a row of tokens: sample i is the tokens from i * S on, S + 1 of them, so that each
 *					token is once an input and once what is to be predicted
 *
 *	seq_len=S,pack=1,pad=T		documents of tokens, packed into sequences of S (source_packed.c), filled up with T
 *	loss=1				of either, which tokens count is said by a .loss beside it (source_loss.c)
 *
 * Of a .npy, or of a folder or a list of them, samples are also windows of rows:
 *
 *	window=W,stride=N		sample i is the rows from i * N on, W of them; N is 1 if it is left out
 *	starts=NAME			the .npy NAME beside it has the rows with which series begin (source_series.c)
 *
 * The dtype of tokens is known where the file is a .npy or has an .idx of Megatron-LM beside it, which is checked
 * then. Documents that this lists are heeded by pack alone: a window may hold parts of several.
 */

#include "base/little.h"
#include "storage/source/source_bytes.h"
#include "base/npy.h"
#include "storage/source/scan/megatron.h"
#include "storage/source/scan/scan_option.h"
#include "storage/source/scan/packing.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_rows.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS_MOST_VALUES (UINT64_C(1) << 27) /* of a row: 1 GiB of int64 */
#define ROWS_OPTION 32

struct opening {
	const struct reader_dataset *dataset;
	struct rows *rows;
	struct diag *diag;
	uint8_t *head; /* the file's first bytes */
	size_t head_bytes;
	char record[ROWS_OPTION], seq_len[ROWS_OPTION], dtype[ROWS_OPTION];
	char pack[ROWS_OPTION], pad[ROWS_OPTION], loss[ROWS_OPTION];
	char window[ROWS_OPTION], stride[ROWS_OPTION], starts[NAME_MAX + 1];
	const struct scan_progress *progress;
	int idx_fd; /* owned: the .idx beside it; -1: there is none */
	struct megatron megatron;
};

BASE_PRINTF(2, 3) static int refuse(const struct opening *opening, const char *fmt, ...)
{
	char text[sizeof(opening->diag->text)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return diag_fail(opening->diag, DATASET_E_REFUSED, "dataset \"%s\" is refused: %s",
			 BASE_QUOTED(opening->dataset->shown, 300), text);
}

static bool number_option(const char *text, uint64_t *ret)
{
	return base_parse_number(&text, ROWS_MOST_VALUES, ret) && *text == '\0' && *ret > 0;
}

/* ---- records ---- */

static int open_records(struct opening *opening)
{
	struct rows *rows = opening->rows;
	uint64_t bytes;

	if (!number_option(opening->record, &bytes))
		return refuse(opening, "record=%s is no number of bytes", opening->record);
	if (rows->file_bytes == 0 || rows->file_bytes % bytes != 0)
		return refuse(opening, "its %llu bytes are no whole number of records of %llu",
			      (unsigned long long)rows->file_bytes, (unsigned long long)bytes);
	rows->number = NUMBER_U8;
	rows->n = rows->file_bytes / bytes;
	rows->stride = rows->values = bytes;
	rows->ndim = 1;
	rows->shape[0] = bytes;
	return 0;
}

/* ---- tokens ---- */

/* For documents that are packed: as it is, or a copy in memory of an object. As open_idx(). */
static int keep_idx(struct opening *opening, struct source_from *from, int *fd, uint64_t bytes)
{
	int copy;

	if (!opening->dataset->bucket || !opening->pack[0]) {
		opening->idx_fd = base_take_fd(fd);
		return 1;
	}
	if (!scan_takes(opening->progress, bytes))
		return DATASET_E_ROOM;
	copy = source_read_all(from);
	if (copy < 0)
		return source_read_failed(from, copy, opening->diag);
	opening->idx_fd = copy;
	return 1;
}

/* The .idx beside a .bin. 0: there is none; 1: read, and good. Or as probe(). */
static int open_idx(struct opening *opening)
{
	const char *path = opening->dataset->name;
	const size_t stem = strlen(path) - BASE_MIN(strlen(path), strlen(".bin"));
	uint8_t head[MEGATRON_HEAD], last[8];
	_cleanup_close_ int fd = -1;
	struct megatron megatron;
	struct source_from from = {.dataset = opening->dataset};
	struct diag why = {.text = ""};
	char idx[PATH_MAX];
	struct stat st;
	uint64_t size, start;
	ssize_t got;

	if (strcmp(path + stem, ".bin") != 0 ||
	    snprintf(idx, sizeof(idx), "%.*s.idx", (int)stem, path) >= (int)sizeof(idx))
		return 0;
	from.fd = fd = source_open_file(opening->dataset, AT_FDCWD, idx);
	from.name = strrchr(idx, '/') + 1;
	if (fd < 0)
		return fd == -ENOENT ? 0 : refuse(opening, "its .idx: %s", strerror(-fd));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return refuse(opening, "its .idx is no regular file");
	got = source_read_begin(&from, head, sizeof(head));
	if (got < 0)
		return source_read_failed(&from, (int)got, opening->diag);
	if (got != sizeof(head))
		return refuse(opening, "its .idx is damaged: make both files anew");
	switch (megatron_parse(head, (uint64_t)st.st_size, &megatron, &why)) {
	case 0:
		break;
	case NPY_E_NONE:
		return 0; /* somebody else's */
	default:
		return refuse(opening, "%s", why.text);
	}
	opening->rows->number = megatron.number;
	if (megatron.sequences == 0)
		return refuse(opening, "its .idx lists no sequence");
	if (source_read(&from, last, 4, megatron.sizes_at + 4 * (megatron.sequences - 1)))
		return refuse(opening, "its .idx is cut off: make both files anew");
	size = little_32(last) * (uint64_t)number_bytes(megatron.number);
	if (source_read(&from, last, 8, megatron.starts_at + 8 * (megatron.sequences - 1)))
		return refuse(opening, "its .idx is cut off: make both files anew");
	start = little_64(last);
	if (start > opening->rows->file_bytes || size != opening->rows->file_bytes - start)
		return refuse(
		    opening,
		    "its .idx lists tokens up to byte %llu, and it has %llu bytes: they do "
		    "not belong together, or one is cut off",
		    (unsigned long long)(start + size),
		    (unsigned long long)opening->rows->file_bytes);
	opening->megatron = megatron;
	return keep_idx(opening, &from, &fd, (uint64_t)st.st_size);
}

static int token_type(struct opening *opening)
{
	const enum number named = number_of_name(opening->dtype);
	int r = opening->rows->number ? 1 : open_idx(opening);

	if (r > 1 || r < 0)
		return r;
	if (r == 0)
		opening->rows->number = named;
	if (!opening->rows->number && !opening->dtype[0])
		return refuse(opening,
			      "what its tokens are is not known: give the dtype, as dtype=uint16");
	if (opening->dtype[0] && (!named || opening->rows->number != named))
		return refuse(
		    opening,
		    "its tokens are not of dtype %s; uint16, uint32, int32 and int64 are usual",
		    opening->dtype);
	if (number_batch_dtype(opening->rows->number) != number_batch_dtype(NUMBER_I64))
		return refuse(opening, "tokens are whole numbers of 16 bits or more");
	return 0;
}

static int open_packed(struct opening *opening, uint64_t length)
{
	struct rows *rows = opening->rows;
	const char *end = opening->pad;
	uint64_t pad = 0;
	int r;

	if (strcmp(opening->pack, "1") != 0)
		return refuse(opening, "pack=%s: it is 1, or left out", opening->pack);
	if (*end && (!base_parse_number(&end, INT64_MAX, &pad) || *end))
		return refuse(opening, "pad=%s is no token", opening->pad);
	if (length > PACKING_MOST_LENGTH)
		return refuse(opening, "sequences have at most %u tokens", PACKING_MOST_LENGTH);
	if (opening->idx_fd < 0)
		return refuse(opening, "documents are packed as the .idx of Megatron-LM beside a "
				       ".bin lists them, and there is none");
	r = source_packed_open(base_take_fd(&opening->idx_fd), &opening->megatron, rows->file_bytes,
			       (uint32_t)length, (int64_t)pad, opening->progress, &rows->packed);
	if (r == -ECANCELED)
		return DATASET_E_CANCELLED;
	if (r)
		return refuse(opening,
			      "its .idx does not say where each document lies, one behind "
			      "the other: %s; make both files anew",
			      strerror(-r));
	rows->n = source_packed_count(rows->packed);
	rows->values = PACKED_ROWS * length;
	rows->ndim = 2;
	rows->shape[0] = PACKED_ROWS;
	rows->shape[1] = length;
	return rows->n ? 0 : refuse(opening, "its documents have no token");
}

static int open_loss(struct opening *opening)
{
	struct rows *rows = opening->rows;
	struct diag why = {.text = ""};
	int r;

	if (!opening->loss[0])
		return 0;
	if (strcmp(opening->loss, "1") != 0)
		return refuse(opening, "loss=%s: it is 1, or left out", opening->loss);
	r = source_loss_open(opening->dataset, rows->file_bytes / number_bytes(rows->number),
			     &rows->loss, &why);
	return r == DATASET_E_REFUSED ? refuse(opening, "%s", why.text) : r;
}

static int open_tokens(struct opening *opening)
{
	struct rows *rows = opening->rows;
	uint64_t length, tokens, bytes;
	int r = token_type(opening);

	if (r)
		return r;
	if (!number_option(opening->seq_len, &length) || length == ROWS_MOST_VALUES)
		return refuse(opening, "seq_len=%s is no length of a window", opening->seq_len);
	r = open_loss(opening);
	if (r)
		return r;
	if (opening->pack[0])
		return open_packed(opening, length);
	bytes = number_bytes(rows->number);
	if ((rows->file_bytes - rows->at) % bytes != 0)
		return refuse(opening,
			      "its bytes are no whole number of tokens of %llu bytes; is its dtype "
			      "another one?",
			      (unsigned long long)bytes);
	tokens = (rows->file_bytes - rows->at) / bytes;
	if (tokens < length + 1)
		return refuse(opening,
			      "it has %llu tokens, and a window of seq_len=%llu takes %llu",
			      (unsigned long long)tokens, (unsigned long long)length,
			      (unsigned long long)length + 1);
	rows->n = (tokens - 1) / length;
	rows->stride = length * bytes;
	rows->values = length + 1;
	rows->ndim = 1;
	rows->shape[0] = length + 1;
	if (rows->loss) {
		rows->values = LOSS_ROWS * length;
		rows->ndim = 2;
		rows->shape[0] = LOSS_ROWS;
		rows->shape[1] = length;
	}
	return 0;
}

/* ---- windows of rows ---- */

/* From rows to windows of them. */
static int widen_rows(struct opening *opening, const struct series_windows *windows)
{
	struct rows *rows = opening->rows;

	if (rows->ndim == BASE_ARRAY_LEN(rows->shape))
		return refuse(opening, "windows are of arrays of up to 4 dimensions");
	if (rows->values > ROWS_MOST_VALUES / windows->length)
		return refuse(opening, "a window has more than 2^27 numbers");
	memmove(rows->shape + 1, rows->shape, rows->ndim * sizeof(rows->shape[0]));
	rows->shape[0] = windows->length;
	rows->ndim++;
	rows->values *= windows->length;
	rows->stride *= windows->stride;
	return rows->n ? 0
		       : refuse(opening, "none of its series has the %llu rows of a window",
				(unsigned long long)windows->length);
}

/* Of rows that are there, if it is a file. */
static int open_windows(struct opening *opening)
{
	struct series_windows windows = {.stride = 1, .starts = opening->starts};
	struct rows *rows = opening->rows;
	struct diag why = {.text = ""};
	int r;

	if (!number_option(opening->window, &windows.length) ||
	    (opening->stride[0] && !number_option(opening->stride, &windows.stride)))
		return refuse(opening, "window=%s,stride=%s are no numbers of rows",
			      opening->window, opening->stride);
	if (strchr(opening->starts, '/') || (opening->starts[0] && opening->dataset->is_folder))
		return refuse(opening,
			      "starts is the name of a .npy beside one file, and no path; of "
			      "several files each is a series");
	if (opening->dataset->bucket && (opening->starts[0] || opening->dataset->is_folder))
		return refuse(opening,
			      "of an object store one file is read that is one series: copy "
			      "the files, or mount the store");
	if (!opening->starts[0] && !opening->dataset->is_folder) {
		rows->n = source_series_windows(rows->n, &windows);
		return widen_rows(opening, &windows);
	}
	r = source_series_open(opening->dataset, opening->progress, &windows, rows, &why);
	if (r == DATASET_E_REFUSED)
		return refuse(opening, "%s", why.text);
	if (r)
		*opening->diag = why;
	return r ? r : widen_rows(opening, &windows);
}

/* Of no file alone are rows samples. */
static int open_files(struct opening *opening)
{
	const char *name = opening->dataset->pattern;
	const size_t length = name ? strlen(name) : 0;

	if (!opening->window[0] || (name && (length < 5 || strcmp(name + length - 4, ".npy") != 0)))
		return SOURCE_E_NONE;
	return open_windows(opening);
}

/* ---- .npy ---- */

void source_rows_of_npy(const struct npy *npy, struct rows *ret)
{
	ret->number = npy->number;
	ret->at = npy->data_at;
	ret->n = npy->shape[0];
	ret->values = npy->row_values;
	ret->stride = npy->row_values * number_bytes(npy->number);
	ret->ndim = npy->ndim - 1;
	memcpy(ret->shape, npy->shape + 1, ret->ndim * sizeof(ret->shape[0]));
}

static int open_npy(struct opening *opening)
{
	struct rows *rows = opening->rows;
	struct diag why = {.text = ""};
	struct npy npy;
	int r = npy_parse(opening->head, opening->head_bytes, rows->file_bytes, &npy, &why);

	if (r)
		return r == NPY_E_NONE ? SOURCE_E_NONE : refuse(opening, "%s", why.text);
	source_rows_of_npy(&npy, rows);
	if (opening->window[0])
		return opening->seq_len[0] ? refuse(opening, "it has windows of rows or of tokens: "
							     "leave window or seq_len out")
					   : open_windows(opening);
	if (!opening->seq_len[0])
		return 0;
	return rows->ndim == 0 ? open_tokens(opening)
			       : refuse(opening, "a window of tokens is of one dimension");
}

/* ---- which it is ---- */

static int open_by_options(struct opening *opening)
{
	const char *path = opening->dataset->name;
	const size_t length = strlen(path);
	int r = open_npy(opening);

	if (!opening->window[0] && (opening->stride[0] || opening->starts[0]))
		return refuse(opening,
			      "stride and starts are of windows: give window, a number of rows");
	if (opening->pad[0] && !opening->pack[0])
		return refuse(opening, "pad is of packed documents: give pack=1, or leave pad out");
	if (opening->record[0] && opening->seq_len[0])
		return refuse(opening, "it has records or tokens: leave record or seq_len out");
	if (!r && opening->record[0])
		return refuse(opening, "a .npy says itself what its rows are: leave record out");
	if (r != SOURCE_E_NONE)
		return r;
	if (opening->window[0])
		return refuse(opening, "windows are of rows of a .npy, and it is none");
	if (opening->record[0])
		return open_records(opening);
	if (!opening->seq_len[0] && opening->pack[0])
		return refuse(opening, "pack is of tokens: give seq_len, the length of a sequence");
	if (!opening->seq_len[0] && opening->loss[0])
		return refuse(opening, "loss is of tokens: give seq_len, the length of a sequence");
	if (opening->seq_len[0])
		return open_tokens(opening);
	if (length > 4 && strcmp(path + length - 4, ".bin") == 0)
		return refuse(opening,
			      "a .bin has tokens, or records, and does not say so: seq_len=S of a "
			      "window's length, or record=BYTES, stands behind its path and a "
			      "question mark (Python: oneaccess.tokens(), source={...})");
	return SOURCE_E_NONE;
}

static bool take_options(struct opening *opening)
{
	const char *options = opening->dataset->options;

	return scan_option(options, "record", opening->record, ROWS_OPTION) &&
	       scan_option(options, "seq_len", opening->seq_len, ROWS_OPTION) &&
	       scan_option(options, "dtype", opening->dtype, ROWS_OPTION) &&
	       scan_option(options, "pack", opening->pack, ROWS_OPTION) &&
	       scan_option(options, "pad", opening->pad, ROWS_OPTION) &&
	       scan_option(options, "loss", opening->loss, ROWS_OPTION) &&
	       scan_option(options, "window", opening->window, ROWS_OPTION) &&
	       scan_option(options, "stride", opening->stride, ROWS_OPTION) &&
	       scan_option(options, "starts", opening->starts, sizeof(opening->starts));
}

int source_rows_open(const struct reader_dataset *dataset, const struct scan_progress *progress,
		     struct rows *ret, struct diag *diag)
{
	_cleanup_free_ uint8_t *head = malloc(NPY_MOST_HEAD);
	struct opening opening = {.dataset = dataset,
				  .progress = progress,
				  .rows = ret,
				  .diag = diag,
				  .head = head,
				  .idx_fd = -1};
	struct source_from from = {.dataset = dataset, .fd = dataset->root_fd};
	ssize_t got;
	int r;

	if (!head)
		return -ENOMEM;
	if (dataset->is_folder)
		return take_options(&opening) ? open_files(&opening) : SOURCE_E_NONE;
	got = source_read_begin(&from, head, NPY_MOST_HEAD);
	if (got < 0)
		return source_read_failed(&from, (int)got, diag);
	opening.head_bytes = (size_t)got;
	if (!take_options(&opening))
		return refuse(&opening, "an option of it is longer than any that there is");
	r = open_by_options(&opening);
	base_close(&opening.idx_fd);
	return r;
}

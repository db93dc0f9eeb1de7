/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files of points: a table of formats, each of which finds out where in the bytes the columns are. Reading them is
 * cloud_read.c's. Inside cloud/ only.
 */

#include "pipeline/cloud/cloud.h"
#include "pipeline/formats/decode.h"

struct cloud_column {
	char name[32]; /* "": it has none */
	enum pipeline_dtype dtype;
	size_t at,
	    stride; /* of the first point, from the file's `rows` on; and from point to point */
};

struct cloud_file { /* checked: every column lies within the bytes */
	uint64_t points;
	unsigned columns;
	struct cloud_column column[CLOUD_MOST_COLUMNS];
	const uint8_t *rows;
	bool is_swapped;    /* the other byte order */
	const uint8_t *end; /* of rows of text, in place of columns' places; NULL: they are bytes */
};

struct cloud_source { /* of a format */
	const uint8_t *data;
	size_t size;
	unsigned raw;
	struct picture_buffer *room; /* for what has to be unpacked */
};

struct cloud_format {
	const char *name;
	bool (*probe)(const struct cloud_source *source);
	int (*open)(const struct cloud_source *source, struct cloud_file *ret,
		    struct pipeline_error *ret_error);
};

extern const struct cloud_format cloud_ply, cloud_pcd, cloud_npy, cloud_text, cloud_raw;

/* One more column, at that place in rows that are `stride` apart. 0, or PIPELINE_E_BAD with *ret_error. */
int cloud_add_column(struct cloud_file *file, const char *name, enum pipeline_dtype dtype,
		     size_t at, size_t stride, struct pipeline_error *ret_error);

/* ---- cloud_text.c: lines and numbers ---- */

#define CLOUD_LINE 512
/* The next line, without its end, from *at on; false: there is none, or it has more bytes, or a NUL. */
bool cloud_line(const uint8_t **at, const uint8_t *end, char ret[CLOUD_LINE]);
/* Behind the next line, whatever it is. */
const uint8_t *cloud_skip_line(const uint8_t *at, const uint8_t *end);
/* The next line's first `n` numbers; lines of blanks are left out. false: it has fewer, or something else. */
bool cloud_numbers(const uint8_t **at, const uint8_t *end, unsigned n, double *ret);
/* A whole number of a head's word. */
bool cloud_whole(const char *word, uint64_t most, uint64_t *ret);

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
	double scale, offset,
	    origin;          /* scale not 0: a number means number * scale + offset - origin */
	uint8_t shift, mask; /* mask not 0: a number of 8 bits of which some are meant */
};

struct cloud_file { /* checked: every column lies within the bytes */
	uint64_t points;
	unsigned columns;
	struct cloud_column column[CLOUD_MOST_COLUMNS];
	const uint8_t *rows;
	bool is_swapped;    /* the other byte order */
	const uint8_t *end; /* of rows of text, in place of columns' places; NULL: they are bytes */
	const uint8_t *behind; /* where the format's `faces` goes on, and how many it takes there */
	uint64_t faces;
};

struct cloud_triangle {
	uint32_t corner[3]; /* numbers of points, below what the file has */
};
struct cloud_mesh {                      /* of a room, kept from mesh to mesh */
	struct cloud_triangle *triangle; /* owned; n of them */
	double *sums;                    /* owned; of twice the areas, up to each */
	size_t n, room;
};
struct cloud_face { /* that is being read */
	uint32_t first, last;
	unsigned n; /* corners so far, up to 2 */
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
	/* Of the file that open has read. NULL: it has points alone. */
	int (*faces)(const struct cloud_source *source, const struct cloud_file *file,
		     struct cloud_mesh *mesh, struct pipeline_error *ret_error);
};

extern const struct cloud_format cloud_ply, cloud_pcd, cloud_las, cloud_npy, cloud_off, cloud_obj,
    cloud_text, cloud_raw;

/* One more column, at that place in rows that are `stride` apart. 0, or PIPELINE_E_BAD with *ret_error. */
int cloud_add_column(struct cloud_file *file, const char *name, enum pipeline_dtype dtype,
		     size_t at, size_t stride, struct pipeline_error *ret_error);

/* ---- cloud_mesh.c. 0, or PIPELINE_E_BAD with *ret_error ---- */

void cloud_mesh_begin(struct cloud_mesh *mesh);
void cloud_mesh_fini(struct cloud_mesh *mesh);
/* The face's next corner; from the third on each makes a triangle. points: how many there are. */
int cloud_mesh_add(struct cloud_mesh *mesh, struct cloud_face *face, uint64_t corner,
		   uint64_t points, struct pipeline_error *ret_error);
/* The areas, once all faces are there. points: rows of x, y and z. */
int cloud_mesh_measure(struct cloud_mesh *mesh, const float *points,
		       struct pipeline_error *ret_error);
/* cloud->points rows of cloud->channels. */
void cloud_mesh_draw(const struct cloud_mesh *mesh, const struct cloud *cloud, const float *points,
		     struct philox_seq *seq, float *to);

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

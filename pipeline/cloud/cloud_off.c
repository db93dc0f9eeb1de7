/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meshes as text, OFF and OBJ. Vertices are x, y and z; what else stands in their lines (colours, normals), and OBJ's textures, groups and
 * materials, is gone over.
 *
 * OFF: a word, how many vertices and faces there are, the vertices, and the faces with the number of their corners. In many of ModelNet's
 * files the counts stand behind the word without a blank, "OFF490 518 0". OBJ: a line for each, "v" and "f", in any order; corners
 * count from 1, or back from the vertex before them, "f -3 -2 -1".
 */

#include "pipeline/cloud/cloud_file.h"

#include <stdio.h>

static const char off_blanks[] = " \t\r\n";

static bool off_is_blank(uint8_t byte)
{
	return byte != '\0' && strchr(off_blanks, byte) != NULL;
}

/* To the next line with something in it, which is no comment. */
static const uint8_t *off_next(const uint8_t *at, const uint8_t *end)
{
	while (at < end && (off_is_blank(*at) || *at == '#'))
		at = *at == '#' ? cloud_skip_line(at, end) : at + 1;
	return at;
}

/* Behind these letters, if the bytes begin with them. */
static const uint8_t *off_behind(const uint8_t *at, const uint8_t *end, const char *word)
{
	const size_t size = strlen(word);

	return (size_t)(end - at) >= size && memcmp(at, word, size) == 0 ? at + size : NULL;
}

/* A number, as the line's next word; 0: the line has none any more, -1: it is no whole number. */
static int off_whole(const uint8_t **at, const uint8_t *end, int64_t *ret)
{
	const uint8_t *word = *at;
	bool is_negative;
	int64_t value = 0;

	while (word < end && off_is_blank(*word) && *word != '\n')
		word++;
	if (word == end || *word == '\n' || *word == '#')
		return 0;
	is_negative = *word == '-';
	word += is_negative;
	if (word == end || *word < '0' || *word > '9')
		return -1;
	for (; word < end && *word >= '0' && *word <= '9'; word++) {
		if (value > INT32_MAX)
			return -1;
		value = 10 * value + (*word - '0');
	}
	*ret = is_negative ? -value : value;
	*at = word;
	return 1;
}

static int off_bad(struct pipeline_error *ret_error, const char *format, const char *what)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "%s: %s", format, what);
}

/* Room for x, y and z of so many, each of which takes some bytes of the file. */
static int off_make(const struct cloud_source *source, uint64_t points, const char *format,
		    float **ret_at, struct cloud_file *ret, struct pipeline_error *ret_error)
{
	int r = 0;

	if (points > source->size / 3)
		return off_bad(ret_error, format, "the file is cut off");
	if (points > CLOUD_MOST_READ / 3)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "%s: %ju points are too many", format, (uintmax_t)points);
	*ret_at = picture_bytes(source->room, 3 * sizeof(float) * BASE_MAX(points, 1));
	if (!*ret_at)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for the points");
	ret->points = points;
	ret->rows = (const uint8_t *)*ret_at;
	for (unsigned k = 0; r == 0 && k < 3; k++)
		r = cloud_add_column(ret, (const char[2]){"xyz"[k], '\0'}, PIPELINE_F32,
				     k * sizeof(float), 3 * sizeof(float), ret_error);
	return r;
}

/* The line's first three numbers. */
static bool off_take(const uint8_t **at, const uint8_t *end, float **to)
{
	double row[3];

	if (!cloud_numbers(at, end, 3, row))
		return false;
	for (unsigned k = 0; k < 3; k++)
		*(*to)++ = (float)row[k];
	return true;
}

/* ---- OFF ---- */

/* Behind its first word, which may say what else vertices have. */
static const uint8_t *off_begin(const struct cloud_source *source)
{
	static const char *const words[] = {"OFF", "COFF", "NOFF", "CNOFF", "STOFF", "STCNOFF"};
	const uint8_t *behind = NULL;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(words) && !behind; i++)
		behind = off_behind(source->data, source->data + source->size, words[i]);
	return behind;
}

static bool off_probe(const struct cloud_source *source)
{
	return off_begin(source) != NULL;
}

static int off_open(const struct cloud_source *source, struct cloud_file *ret,
		    struct pipeline_error *ret_error)
{
	const uint8_t *end = source->data + source->size, *at = off_next(off_begin(source), end);
	int64_t points = -1, faces = -1;
	float *to;
	int r;

	if (off_behind(at, end, "BINARY"))
		return off_bad(ret_error, "OFF", "binary; write it as text");
	if (off_whole(&at, end, &points) <= 0 || off_whole(&at, end, &faces) <= 0 || points < 0 ||
	    faces < 0)
		return off_bad(ret_error, "OFF", "no counts of vertices and faces");
	at = cloud_skip_line(at, end);
	r = off_make(source, (uint64_t)points, "OFF", &to, ret, ret_error);
	for (int64_t i = 0; r == 0 && i < points; i++) {
		at = off_next(at, end);
		if (!off_take(&at, end, &to))
			r = decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
					"OFF: vertex %jd: not 3 numbers", (intmax_t)i + 1);
	}
	ret->behind = at;
	ret->faces = (uint64_t)faces;
	return r;
}

static int off_face(const uint8_t **at, const uint8_t *end, uint64_t points,
		    struct cloud_mesh *mesh, struct pipeline_error *ret_error)
{
	struct cloud_face face = {.n = 0};
	int64_t corners = 0, corner = 0;
	int r = 0;

	if (off_whole(at, end, &corners) <= 0 || corners < 0)
		return off_bad(ret_error, "OFF", "a face has no number of corners");
	for (int64_t i = 0; r == 0 && i < corners; i++) {
		if (off_whole(at, end, &corner) <= 0)
			return off_bad(ret_error, "OFF", "a face has fewer corners than it says");
		r = cloud_mesh_add(mesh, &face, (uint64_t)corner, points, ret_error);
	}
	*at = cloud_skip_line(*at, end);
	return r;
}

static int off_faces(const struct cloud_source *source, const struct cloud_file *file,
		     struct cloud_mesh *mesh, struct pipeline_error *ret_error)
{
	const uint8_t *end = source->data + source->size, *at = file->behind;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < file->faces; i++) {
		at = off_next(at, end);
		r = at == end ? off_bad(ret_error, "OFF", "the file is cut off")
			      : off_face(&at, end, file->points, mesh, ret_error);
	}
	return r;
}

const struct cloud_format cloud_off = {"OFF", off_probe, off_open, off_faces};

/* ---- OBJ ---- */

/* The line's first word, if it is that one. */
static const uint8_t *obj_is(const uint8_t *at, const uint8_t *end, const char *word)
{
	const uint8_t *behind = off_behind(at, end, word);

	return behind && behind < end && (*behind == ' ' || *behind == '\t') ? behind : NULL;
}

static bool obj_probe(const struct cloud_source *source)
{
	static const char *const words[] = {"v", "vn", "vt", "o", "g", "mtllib", "usemtl"};
	const uint8_t *end = source->data + source->size, *at = off_next(source->data, end);

	for (unsigned i = 0; i < BASE_ARRAY_LEN(words); i++)
		if (obj_is(at, end, words[i]))
			return true;
	return false;
}

static int obj_open(const struct cloud_source *source, struct cloud_file *ret,
		    struct pipeline_error *ret_error)
{
	const uint8_t *end = source->data + source->size, *line;
	uint64_t points = 0, done = 0;
	float *to;
	int r;

	for (line = off_next(source->data, end); line < end;
	     line = off_next(cloud_skip_line(line, end), end))
		points += obj_is(line, end, "v") != NULL;
	r = off_make(source, points, "OBJ", &to, ret, ret_error);
	for (line = off_next(source->data, end); r == 0 && line < end;
	     line = off_next(cloud_skip_line(line, end), end)) {
		const uint8_t *at = obj_is(line, end, "v");

		if (at && !off_take(&at, end, &to))
			return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
					   "OBJ: vertex %ju: not 3 numbers", (uintmax_t)done + 1);
		done += at != NULL;
	}
	return r;
}

/* `before`: vertices that stand before it. */
static int obj_face(const uint8_t *at, const uint8_t *end, int64_t before, uint64_t points,
		    struct cloud_mesh *mesh, struct pipeline_error *ret_error)
{
	struct cloud_face face = {.n = 0};
	int64_t corner = 0;
	int r = 0, found;

	while (r == 0 && (found = off_whole(&at, end, &corner)) > 0) {
		corner = corner < 0 ? before + corner : corner - 1;
		r = cloud_mesh_add(mesh, &face, (uint64_t)corner, points, ret_error);
		while (at < end && !off_is_blank(*at)) /* of textures and normals */
			at++;
	}
	return r == 0 && found < 0
		   ? off_bad(ret_error, "OBJ", "a face has a corner that is no number")
		   : r;
}

static int obj_faces(const struct cloud_source *source, const struct cloud_file *file,
		     struct cloud_mesh *mesh, struct pipeline_error *ret_error)
{
	const uint8_t *end = source->data + source->size, *line;
	int64_t before = 0;
	int r = 0;

	for (line = off_next(source->data, end); r == 0 && line < end;
	     line = off_next(cloud_skip_line(line, end), end)) {
		const uint8_t *at = obj_is(line, end, "f");

		before += obj_is(line, end, "v") != NULL;
		if (at)
			r = obj_face(at, end, before, file->points, mesh, ret_error);
	}
	return r;
}

const struct cloud_format cloud_obj = {"OBJ", obj_probe, obj_open, obj_faces};

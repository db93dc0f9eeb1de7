/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PLY: a head of lines, then the rows of each element in turn. The columns are the element "vertex"; elements before it are
 * gone over, lists too, and what is behind it is not looked at.
 */

#include "pipeline/cloud/cloud_file.h"

#include <stdio.h>

#define PLY_MOST_HEAD 65536
#define PLY_MOST_ELEMENTS 32 /* before the points */

enum ply_coding { PLY_TEXT, PLY_LITTLE, PLY_BIG };

struct ply_property {
	char name[32];
	enum pipeline_dtype dtype, count; /* count: of a list's length; 0: no list */
};

struct ply_element {
	bool is_vertex, is_face;
	uint64_t rows;
	unsigned n;
	struct ply_property property[CLOUD_MOST_COLUMNS];
};

struct ply {
	const uint8_t *at, *end;
	enum ply_coding coding;
	struct ply_element element; /* the one under way */
};

static int ply_bad(struct pipeline_error *ret_error, const char *what)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "PLY: %s", what);
}

static enum pipeline_dtype ply_dtype(const char *name)
{
	static const struct {
		const char *name;
		enum pipeline_dtype dtype;
	} types[] = {{"char", PIPELINE_I8},    {"int8", PIPELINE_I8},     {"uchar", PIPELINE_U8},
		     {"uint8", PIPELINE_U8},   {"short", PIPELINE_I16},   {"int16", PIPELINE_I16},
		     {"ushort", PIPELINE_U16}, {"uint16", PIPELINE_U16},  {"int", PIPELINE_I32},
		     {"int32", PIPELINE_I32},  {"uint", PIPELINE_U32},    {"uint32", PIPELINE_U32},
		     {"float", PIPELINE_F32},  {"float32", PIPELINE_F32}, {"double", PIPELINE_F64},
		     {"float64", PIPELINE_F64}};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(types); i++)
		if (strcmp(types[i].name, name) == 0)
			return types[i].dtype;
	return 0;
}

/* ---- elements before the points ---- */

static bool ply_count(const struct ply *ply, enum pipeline_dtype dtype, uint64_t *ret)
{
	const size_t bytes = decode_numbers_bytes(dtype);

	if ((size_t)(ply->end - ply->at) < bytes || dtype == PIPELINE_F32 || dtype == PIPELINE_F64)
		return false;
	*ret = 0;
	for (size_t i = 0; i < bytes; i++)
		*ret |= (uint64_t)ply->at[ply->coding == PLY_BIG ? bytes - 1 - i : i] << (8 * i);
	return true;
}

static bool ply_skip_row(struct ply *ply)
{
	for (unsigned i = 0; i < ply->element.n; i++) {
		const struct ply_property *property = &ply->element.property[i];
		uint64_t bytes = decode_numbers_bytes(property->dtype), count = 1;

		if (property->count && !ply_count(ply, property->count, &count))
			return false;
		ply->at += property->count ? decode_numbers_bytes(property->count) : 0;
		if (count > (uint64_t)(ply->end - ply->at) / bytes)
			return false;
		ply->at += count * bytes;
	}
	return true;
}

/* Each row takes a byte at least, so this ends where the file does. */
static bool ply_skip_element(struct ply *ply)
{
	for (uint64_t row = 0; ply->element.n > 0 && row < ply->element.rows; row++) {
		if (ply->at == ply->end)
			return false;
		if (ply->coding == PLY_TEXT)
			ply->at = cloud_skip_line(ply->at, ply->end);
		else if (!ply_skip_row(ply))
			return false;
	}
	return true;
}

/* ---- the head ---- */

static bool ply_add_property(struct ply_element *element, const char *text)
{
	struct ply_property property = {.count = 0};
	char type[16], count[16];

	if (sscanf(text, "property list %15s %15s %31s", count, type, property.name) == 3)
		property.count = ply_dtype(count);
	else if (sscanf(text, "property %15s %31s", type, property.name) != 2)
		return false;
	property.dtype = ply_dtype(type);
	if (element->n == CLOUD_MOST_COLUMNS || property.dtype == 0 ||
	    (strncmp(text, "property list", 13) == 0 && property.count == 0))
		return false;
	element->property[element->n++] = property;
	return true;
}

static bool ply_begin_element(struct ply_element *element, const char *text)
{
	char name[32], rows[24];

	*element = (struct ply_element){.n = 0};
	if (sscanf(text, "element %31s %23s", name, rows) != 2 ||
	    !cloud_whole(rows, UINT32_MAX, &element->rows))
		return false;
	element->is_vertex = strcmp(name, "vertex") == 0;
	element->is_face = strcmp(name, "face") == 0;
	return true;
}

static bool ply_set_coding(struct ply *ply, const char *text)
{
	static const char *const codings[] = {[PLY_TEXT] = "format ascii 1.0",
					      [PLY_LITTLE] = "format binary_little_endian 1.0",
					      [PLY_BIG] = "format binary_big_endian 1.0"};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(codings); i++) {
		ply->coding = (enum ply_coding)i;
		if (strncmp(text, codings[i], strlen(codings[i])) == 0)
			return true;
	}
	return false;
}

/* From the head's lines the element of that number, from 0; what the lines say of its coding, too. */
static int ply_read_head(struct ply *ply, const struct cloud_source *source, unsigned number,
			 struct pipeline_error *ret_error)
{
	const uint8_t *end = source->data + BASE_MIN(source->size, (size_t)PLY_MOST_HEAD);
	const uint8_t *at = cloud_skip_line(source->data, end);
	unsigned elements = 0;
	bool has_coding = false, is_good = true;
	char text[CLOUD_LINE];

	ply->element.n = 0;
	while (is_good && cloud_line(&at, end, text)) {
		if (strncmp(text, "end_header", 10) == 0) {
			ply->at = number == 0 ? at : ply->at;
			if (!has_coding || elements <= number)
				return ply_bad(ret_error, has_coding ? "no element vertex"
								     : "no format 1.0 in its head");
			return 0;
		}
		if (strncmp(text, "format", 6) == 0)
			has_coding = is_good = ply_set_coding(ply, text);
		else if (strncmp(text, "element ", 8) == 0 && elements++ == number)
			is_good = ply_begin_element(&ply->element, text);
		else if (strncmp(text, "property", 8) == 0 && elements == number + 1)
			is_good = ply_add_property(&ply->element, text);
	}
	return ply_bad(ret_error,
		       is_good ? "its head has no end" : "a line of its head cannot be read");
}

static bool ply_probe(const struct cloud_source *source)
{
	return source->size >= 5 &&
	       (memcmp(source->data, "ply\n", 4) == 0 || memcmp(source->data, "ply\r\n", 5) == 0);
}

/* The element vertex is next. */
static int ply_set_columns(const struct ply *ply, struct cloud_file *ret,
			   struct pipeline_error *ret_error)
{
	size_t stride = 0, before = 0;
	int r = 0;

	for (unsigned i = 0; i < ply->element.n; i++) {
		if (ply->element.property[i].count)
			return ply_bad(ret_error, "a point has a list");
		stride += decode_numbers_bytes(ply->element.property[i].dtype);
	}
	ret->points = ply->element.rows;
	ret->rows = ply->at;
	ret->is_swapped = ply->coding == PLY_BIG;
	if (ply->coding == PLY_TEXT)
		ret->end = ply->end;
	else if (stride > 0 && ret->points > (size_t)(ply->end - ply->at) / stride)
		return ply_bad(ret_error, "the file is cut off");
	for (unsigned i = 0; r == 0 && i < ply->element.n; i++) {
		const struct ply_property *property = &ply->element.property[i];

		r = cloud_add_column(ret, property->name, property->dtype, before, stride,
				     ret_error);
		before += decode_numbers_bytes(property->dtype);
	}
	return r;
}

static int ply_open(const struct cloud_source *source, struct cloud_file *ret,
		    struct pipeline_error *ret_error)
{
	struct ply ply = {.end = source->data + source->size};
	int r;

	for (unsigned number = 0; number < PLY_MOST_ELEMENTS; number++) {
		r = ply_read_head(&ply, source, number, ret_error);
		if (r != 0)
			return r;
		if (ply.element.is_vertex)
			return ply_set_columns(&ply, ret, ret_error);
		if (!ply_skip_element(&ply))
			return ply_bad(ret_error, "the file is cut off");
	}
	return ply_bad(ret_error, "32 elements before the vertices");
}

/* ---- faces ---- */

static bool ply_is_corners(const struct ply_property *property)
{
	return property->count && (strcmp(property->name, "vertex_indices") == 0 ||
				   strcmp(property->name, "vertex_index") == 0);
}

/* The next word of a line of text; UINT64_MAX: one that is no whole number, or none below 2^32. */
static bool ply_word(struct ply *ply, uint64_t *ret)
{
	char word[24];
	size_t n = 0;

	while (ply->at < ply->end && (*ply->at == ' ' || *ply->at == '\t'))
		ply->at++;
	for (; ply->at<ply->end && * ply->at> ' ' && n < sizeof(word) - 1; ply->at++)
		word[n++] = (char)*ply->at;
	word[n] = '\0';
	if (!cloud_whole(word, UINT32_MAX, ret))
		*ret = UINT64_MAX;
	return n > 0;
}

/* The next value: as a whole number, or UINT64_MAX. */
static bool ply_take(struct ply *ply, enum pipeline_dtype dtype, uint64_t *ret)
{
	const size_t bytes = decode_numbers_bytes(dtype);

	if (ply->coding == PLY_TEXT)
		return ply_word(ply, ret);
	if ((size_t)(ply->end - ply->at) < bytes)
		return false;
	if (!ply_count(ply, dtype, ret))
		*ret = UINT64_MAX;
	ply->at += bytes;
	return true;
}

static int ply_face(struct ply *ply, uint64_t points, struct cloud_mesh *mesh,
		    struct pipeline_error *ret_error)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < ply->element.n; i++) {
		const struct ply_property *property = &ply->element.property[i];
		struct cloud_face face = {.n = 0};
		uint64_t count = 1, number;

		if (property->count && !ply_take(ply, property->count, &count))
			return ply_bad(ret_error, "the file is cut off");
		for (; r == 0 && count > 0; count--) {
			if (!ply_take(ply, property->dtype, &number))
				return ply_bad(ret_error, "the file is cut off");
			if (ply_is_corners(property))
				r = cloud_mesh_add(mesh, &face, number, points, ret_error);
		}
	}
	if (ply->coding == PLY_TEXT)
		ply->at = cloud_skip_line(ply->at, ply->end);
	return r;
}

static int ply_faces(const struct cloud_source *source, const struct cloud_file *file,
		     struct cloud_mesh *mesh, struct pipeline_error *ret_error)
{
	struct ply ply = {.end = source->data + source->size};
	int r = 0;

	for (unsigned number = 0; number < PLY_MOST_ELEMENTS; number++) {
		if (ply_read_head(&ply, source, number, ret_error) != 0)
			return ply_bad(ret_error, "no element face");
		if (ply.element.is_face)
			break;
		if (!ply_skip_element(&ply))
			return ply_bad(ret_error, "the file is cut off");
	}
	if (!ply.element.is_face || ply.element.n == 0)
		return ply_bad(ret_error, "no element face");
	for (uint64_t row = 0; r == 0 && row < ply.element.rows; row++)
		r = ply.at == ply.end ? ply_bad(ret_error, "the file is cut off")
				      : ply_face(&ply, file->points, mesh, ret_error);
	return r;
}

const struct cloud_format cloud_ply = {"PLY", ply_probe, ply_open, ply_faces};

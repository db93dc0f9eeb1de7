/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCD, the Point Cloud Library's: a head of lines, then text, rows of bytes, or LZF-compressed columns, one behind the
 * other. The colours that a field "rgb" or "rgba" packs into four bytes are three columns, red, green and blue, but in text.
 */

#include "pipeline/cloud/cloud_file.h"

#include <stdio.h>

#define PCD_MOST_HEAD 65536

struct pcd_field {
	char name[32], type;
	uint64_t size, count;
};

struct pcd {
	unsigned n;
	struct pcd_field field[CLOUD_MOST_COLUMNS];
	uint64_t points;
	char data[24];
};

static int pcd_bad(struct pipeline_error *ret_error, const char *what)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "PCD: %s", what);
}

/* ---- the head ---- */

static bool pcd_set(struct pcd_field *field, const char *key, const char *word)
{
	if (strcmp(key, "SIZE") == 0)
		return cloud_whole(word, 8, &field->size);
	if (strcmp(key, "COUNT") == 0)
		return cloud_whole(word, 65536, &field->count) && field->count > 0;
	if (strcmp(key, "TYPE") == 0) {
		field->type = *word;
		return word[1] == '\0';
	}
	if (strlen(word) >= sizeof(field->name))
		return false;
	strcpy(field->name, word);
	field->count = 1;
	return true;
}

/* A line's words, one for each field. */
static bool pcd_set_each(struct pcd *pcd, const char *key, char *words)
{
	char *word;
	unsigned n = 0;

	while ((word = strsep(&words, " \t"))) {
		if (!*word)
			continue;
		if (n == CLOUD_MOST_COLUMNS || !pcd_set(&pcd->field[n], key, word))
			return false;
		n++;
	}
	if (strcmp(key, "FIELDS") == 0)
		pcd->n = n;
	return n == pcd->n;
}

static bool pcd_set_line(struct pcd *pcd, char *line)
{
	char *words = line;
	const char *key = strsep(&words, " \t");

	if (!words)
		return true;
	if (strcmp(key, "FIELDS") == 0 || strcmp(key, "SIZE") == 0 || strcmp(key, "TYPE") == 0 ||
	    strcmp(key, "COUNT") == 0)
		return pcd_set_each(pcd, key, words);
	if (strcmp(key, "POINTS") == 0)
		return cloud_whole(strsep(&words, " \t"), UINT32_MAX, &pcd->points);
	if (strcmp(key, "DATA") == 0)
		snprintf(pcd->data, sizeof(pcd->data), "%s", words);
	return true;
}

static int pcd_read_head(const struct cloud_source *source, struct pcd *pcd, const uint8_t **ret_at,
			 struct pipeline_error *ret_error)
{
	const uint8_t *at = source->data, *end = at + BASE_MIN(source->size, (size_t)PCD_MOST_HEAD);
	char line[CLOUD_LINE];

	while (!*pcd->data && cloud_line(&at, end, line))
		if (!pcd_set_line(pcd, line))
			return pcd_bad(ret_error, "a line of its head cannot be read");
	if (!*pcd->data || pcd->points == UINT64_MAX)
		return pcd_bad(ret_error, "its head has no DATA or no POINTS");
	*ret_at = at;
	return 0;
}

/* ---- LZF ---- */

/* A part of what is there already, which may reach into what it makes; *at and *to go on. */
static bool pcd_lzf_repeat(const uint8_t **at, const uint8_t *end, const uint8_t *begin,
			   uint8_t **to, const uint8_t *stop)
{
	const unsigned first = *(*at)++;
	size_t length = first >> 5, back;

	if (length == 7 && *at < end)
		length += *(*at)++;
	if (*at == end)
		return false;
	back = ((size_t)(first & 31) << 8 | *(*at)++) + 1;
	length += 2;
	if (back > (size_t)(*to - begin) || length > (size_t)(stop - *to))
		return false;
	for (; length > 0; length--, (*to)++)
		**to = *(*to - back);
	return true;
}

/* `size` bytes (hostile) to just `wanted`. */
static bool pcd_lzf(const uint8_t *at, size_t size, uint8_t *to, size_t wanted)
{
	const uint8_t *end = at + size, *begin = to, *stop = to + wanted;

	while (at < end) {
		const size_t length = (size_t)*at + 1;

		if (*at >= 32) {
			if (!pcd_lzf_repeat(&at, end, begin, &to, stop))
				return false;
			continue;
		}
		at++;
		if (length > (size_t)(end - at) || length > (size_t)(stop - to))
			return false;
		memcpy(to, at, length);
		at += length;
		to += length;
	}
	return to == stop;
}

/* ---- columns ---- */

static enum pipeline_dtype pcd_dtype(const struct pcd_field *field)
{
	static const struct {
		char type;
		uint8_t size;
		enum pipeline_dtype dtype;
	} types[] = {{'F', 4, PIPELINE_F32}, {'F', 8, PIPELINE_F64}, {'I', 1, PIPELINE_I8},
		     {'I', 2, PIPELINE_I16}, {'I', 4, PIPELINE_I32}, {'I', 8, PIPELINE_I64},
		     {'U', 1, PIPELINE_U8},  {'U', 2, PIPELINE_U16}, {'U', 4, PIPELINE_U32},
		     {'U', 8, PIPELINE_U64}};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(types); i++)
		if (types[i].type == field->type && types[i].size == field->size)
			return types[i].dtype;
	return 0;
}

static bool pcd_is_packed(const struct pcd_field *field)
{
	return (strcmp(field->name, "rgb") == 0 || strcmp(field->name, "rgba") == 0) &&
	       field->size == 4 && field->count == 1;
}

/* A field's columns, the first of its numbers at `at`. */
static int pcd_add(const struct pcd_field *field, size_t at, size_t stride, bool is_text,
		   struct cloud_file *ret, struct pipeline_error *ret_error)
{
	static const char *const colors[] = {"red", "green", "blue"};
	const enum pipeline_dtype dtype = pcd_dtype(field);
	int r = 0;

	if (strcmp(field->name, "_") == 0 && !is_text)
		return 0;
	if (dtype == 0)
		return pcd_bad(ret_error, "a field's TYPE and SIZE are none");
	if (pcd_is_packed(field) && !is_text) {
		for (unsigned c = 0; r == 0 && c < 3; c++)
			r = cloud_add_column(ret, colors[c], PIPELINE_U8, at + 2 - c, stride,
					     ret_error);
		return r;
	}
	for (uint64_t k = 0; r == 0 && k < field->count; k++)
		r = cloud_add_column(ret, field->name, dtype, at + k * field->size, stride,
				     ret_error);
	return r;
}

/* Of rows, or of columns behind each other. */
static int pcd_set_columns(const struct pcd *pcd, size_t row, bool are_columns,
			   struct cloud_file *ret, struct pipeline_error *ret_error)
{
	size_t at = 0;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < pcd->n; i++) {
		const size_t bytes = pcd->field[i].size * pcd->field[i].count;

		r = pcd_add(&pcd->field[i], at, are_columns ? bytes : row, ret->end != NULL, ret,
			    ret_error);
		at += are_columns ? bytes * pcd->points : bytes;
	}
	return r;
}

static int pcd_unpack(const struct cloud_source *source, const uint8_t *at, size_t wanted,
		      const uint8_t **ret, struct pipeline_error *ret_error)
{
	const size_t left = (size_t)(source->data + source->size - at);
	uint32_t size[2];
	uint8_t *to;

	if (left < sizeof(size))
		return pcd_bad(ret_error, "the file is cut off");
	memcpy(size, at, sizeof(size));
	if (size[0] > left - sizeof(size) || size[1] != wanted)
		return pcd_bad(ret_error, "its compressed part has another size");
	to = picture_bytes(source->room, BASE_MAX(wanted, (size_t)1));
	if (!to)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for the points");
	if (!pcd_lzf(at + sizeof(size), size[0], to, wanted))
		return pcd_bad(ret_error, "its compressed part is damaged");
	*ret = to;
	return 0;
}

static bool pcd_probe(const struct cloud_source *source)
{
	return source->size >= 8 &&
	       (memcmp(source->data, "# .PCD", 6) == 0 || memcmp(source->data, "VERSION ", 8) == 0);
}

static int pcd_open(const struct cloud_source *source, struct cloud_file *ret,
		    struct pipeline_error *ret_error)
{
	const uint8_t *end = source->data + source->size, *at = end;
	struct pcd pcd = {.n = 0, .points = UINT64_MAX};
	bool are_columns;
	size_t row = 0;
	int r = pcd_read_head(source, &pcd, &at, ret_error);

	for (unsigned i = 0; i < pcd.n; i++)
		row += pcd.field[i].size * pcd.field[i].count;
	if (r != 0)
		return r;
	are_columns = strcmp(pcd.data, "binary_compressed") == 0;
	ret->points = pcd.points;
	if (strcmp(pcd.data, "ascii") == 0)
		ret->end = end;
	else if (pcd.points > CLOUD_MOST_READ * sizeof(float) / BASE_MAX(row, (size_t)1))
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "PCD: %ju points are too many", (uintmax_t)pcd.points);
	else if (are_columns)
		r = pcd_unpack(source, at, row * pcd.points, &at, ret_error);
	else if (strcmp(pcd.data, "binary") != 0)
		r = pcd_bad(ret_error, "its DATA is none");
	else if (row * pcd.points > (size_t)(end - at))
		r = pcd_bad(ret_error, "the file is cut off");
	ret->rows = at;
	return r ? r : pcd_set_columns(&pcd, row, are_columns, ret, ret_error);
}

const struct cloud_format cloud_pcd = {"PCD", pcd_probe, pcd_open, NULL};

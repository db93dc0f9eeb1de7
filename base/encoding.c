/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names to kinds, and the heads of arrays: a byte for the type and a byte for the dimensions, each where the name does not say it,
 * then the shape, in numbers of 1 to 8 bytes.
 */

#include "base/encoding.h"

#include "base/base.h"
#include "base/little.h"

static const struct type { /* of NumPy's types */
	const char *name;
	uint8_t dtype, bytes, code; /* code: of a byte before an array */
} types[] = {
    {"uint8", 1, 1, 8},    {"float16", 2, 2, 18}, {"float32", 3, 4, 34},  {"int64", 4, 8, 65},
    {"int8", 6, 1, 9},     {"int16", 7, 2, 17},   {"int32", 8, 4, 33},    {"uint16", 9, 2, 16},
    {"uint32", 10, 4, 32}, {"uint64", 11, 8, 64}, {"float64", 12, 8, 66},
};

static const struct {
	const char *name;
	enum encoding_kind kind;
} words[] = {
    {"jpeg", ENCODING_PICTURE}, {"png", ENCODING_PICTURE}, {"bytes", ENCODING_BYTES},
    {"str", ENCODING_TEXT},     {"json", ENCODING_JSON},
};

static const struct type *type_called(const char *name, size_t size)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(types); i++)
		if (strlen(types[i].name) == size && memcmp(types[i].name, name, size) == 0)
			return &types[i];
	return NULL;
}

static const struct type *type_of_dtype(unsigned dtype)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(types); i++)
		if (types[i].dtype == dtype)
			return &types[i];
	return NULL;
}

/* All dimensions and the type make so many bytes, at most UINT32_MAX; 0: they do not. */
static uint32_t bytes_of(unsigned bytes, unsigned ndim, const uint64_t *shape)
{
	uint64_t all = bytes;

	for (unsigned i = 0; i < ndim; i++) {
		if (shape[i] == 0 || shape[i] > UINT32_MAX / all)
			return 0;
		all *= shape[i];
	}
	return (uint32_t)all;
}

/* "2,3" or "2x3" */
static bool shape_of(const char *text, struct encoding *ret)
{
	for (const char *at = text;; at++) {
		if (ret->ndim == ENCODING_MOST_DIMS ||
		    !base_parse_number(&at, UINT32_MAX, &ret->shape[ret->ndim++]))
			return false;
		if (*at == '\0')
			return true;
		if (*at != ',' && *at != 'x')
			return false;
	}
}

/* Behind "ndarray": nothing, ":float32", ":float32:2,3". */
static struct encoding array_of(const char *text)
{
	struct encoding array = {.kind = ENCODING_ARRAY}, other = {.kind = ENCODING_OTHER};
	const size_t size = *text ? strcspn(text + 1, ":") : 0;
	const struct type *type;

	if (!*text)
		return array;
	type = type_called(text + 1, size);
	if (!type)
		return other;
	array.dtype = type->dtype;
	text += 1 + size;
	if (!*text)
		return array;
	if (!shape_of(text + 1, &array))
		return other;
	array.bytes = bytes_of(type->bytes, array.ndim, array.shape);
	return array.bytes ? array : other;
}

struct encoding encoding_of(const char *name)
{
	const struct type *type =
	    strcmp(name, "int") == 0 ? type_called("int64", 5) : type_called(name, strlen(name));

	if (type)
		return (struct encoding){
		    .kind = ENCODING_NUMBER, .dtype = type->dtype, .bytes = type->bytes};
	for (size_t i = 0; i < BASE_ARRAY_LEN(words); i++)
		if (strcmp(words[i].name, name) == 0)
			return (struct encoding){.kind = words[i].kind};
	if (strncmp(name, "ndarray", 7) == 0 && (name[7] == '\0' || name[7] == ':'))
		return array_of(name + 7);
	return (struct encoding){.kind = ENCODING_OTHER};
}

bool encoding_is_whole(const struct encoding *encoding)
{
	return encoding->kind == ENCODING_NUMBER && encoding->dtype != 2 && encoding->dtype != 3 &&
	       encoding->dtype != 12;
}

bool encoding_is_signed(const struct encoding *encoding)
{
	return encoding_is_whole(encoding) &&
	       (encoding->dtype == 4 || (encoding->dtype >= 6 && encoding->dtype <= 8));
}

/* ---- an array's bytes ---- */

static bool take_dtype(const uint8_t *bytes, size_t size, struct encoding_array *array)
{
	for (size_t i = 0; size > 0 && i < BASE_ARRAY_LEN(types); i++)
		if (types[i].code == bytes[0])
			array->dtype = types[i].dtype;
	array->at = 1;
	return array->dtype != 0;
}

static bool take_shape(const uint8_t *bytes, size_t size, struct encoding_array *array)
{
	const unsigned each = size > array->at ? 1u << (bytes[array->at] & 3) : 0;

	if (each == 0)
		return false;
	array->ndim = bytes[array->at++] >> 2;
	if (array->ndim < 1 || array->ndim > ENCODING_MOST_DIMS ||
	    size - array->at < (size_t)each * array->ndim)
		return false;
	for (unsigned i = 0; i < array->ndim; i++, array->at += each)
		array->shape[i] = little_get(bytes + array->at, each);
	return true;
}

bool encoding_array(const struct encoding *encoding, const uint8_t *bytes, size_t size,
		    struct encoding_array *ret)
{
	struct encoding_array array = {.dtype = encoding->dtype, .ndim = encoding->ndim};
	uint32_t values;

	memcpy(array.shape, encoding->shape, sizeof(array.shape));
	if (array.dtype == 0 && !take_dtype(bytes, size, &array))
		return false;
	if (array.ndim == 0 && !take_shape(bytes, size, &array))
		return false;
	values = bytes_of(type_of_dtype(array.dtype)->bytes, array.ndim, array.shape);
	if (values == 0 || values != size - array.at)
		return false;
	*ret = array;
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Numbers and lists of JSON as a field's values. A field says its type and shape; what is in the text must be of that
 * shape, but for the first dimension of a ragged one, and each number must be one that the type has: none is cut off
 * or rounded, but to the nearest of floats.
 */

#include "pipeline/forms/json_field.h"

#include "base/little.h"
#include "pipeline/forms/packed.h"

bool json_field_put_whole(enum pipeline_dtype dtype, int64_t value, uint8_t *to)
{
	static const struct {
		int64_t least, most;
	} range[] = {
	    [PIPELINE_U8] = {0, UINT8_MAX},
	    [PIPELINE_I8] = {INT8_MIN, INT8_MAX},
	    [PIPELINE_U16] = {0, UINT16_MAX},
	    [PIPELINE_I16] = {INT16_MIN, INT16_MAX},
	    [PIPELINE_U32] = {0, UINT32_MAX},
	    [PIPELINE_I32] = {INT32_MIN, INT32_MAX},
	    [PIPELINE_I64] = {INT64_MIN, INT64_MAX},
	    [PIPELINE_U64] = {0, INT64_MAX},
	    [PIPELINE_BOOL] = {0, 1},
	};
	const uint64_t bits = (uint64_t)value;

	if (value < range[dtype].least || value > range[dtype].most)
		return false;
	little_put(to, bits, (unsigned)packed_dtype_bytes(dtype));
	return true;
}

static bool put_real(enum pipeline_dtype dtype, double value, uint8_t *to)
{
	const float narrow = (float)value;

	if (dtype == PIPELINE_F64)
		memcpy(to, &value, sizeof(value));
	else
		memcpy(to, &narrow, sizeof(narrow));
	return true;
}

static bool put_number(const struct json_in *value, enum pipeline_dtype dtype, uint8_t *to)
{
	const enum json_in_kind kind = json_in_kind_of(value);

	if (dtype == PIPELINE_F16 || dtype == PIPELINE_BF16)
		return false;
	if (dtype == PIPELINE_F32 || dtype == PIPELINE_F64)
		return (kind == JSON_IN_REAL || kind == JSON_IN_INTEGER) &&
		       put_real(dtype, json_in_double(value, 0), to);
	if (kind == JSON_IN_BOOL && (dtype == PIPELINE_BOOL || dtype == PIPELINE_U8))
		return json_field_put_whole(dtype, json_in_bool(value, false), to);
	return kind == JSON_IN_INTEGER && json_field_put_whole(dtype, json_in_i64(value, 0), to);
}

/* The dimensions from `dim` on. */
static bool put_numbers(const struct json_in *value, const struct pipeline_field *field,
			unsigned dim, uint8_t **to)
{
	const uint64_t most = dim < field->ndim ? field->shape[dim] : 0;
	const size_t n = json_in_count(value);

	if (dim == field->ndim) {
		const bool is_put = put_number(value, field->dtype, *to);

		*to += packed_dtype_bytes(field->dtype);
		return is_put;
	}
	if (json_in_kind_of(value) != JSON_IN_ARRAY || n > most ||
	    (n < most && (dim > 0 || field->kind == PIPELINE_DENSE)))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!put_numbers(json_in_item(value, i), field, dim + 1, to))
			return false;
	return true;
}

bool json_field_put(const struct json_in *value, const struct pipeline_field *field, uint8_t *to)
{
	return put_numbers(value, field, 0, &to);
}

/* ---- places ---- */

/* The part of a path that is at *path, which goes behind it. */
static const struct json_in *json_step(const struct json_in *value, const char **path)
{
	const size_t length = strcspn(*path, "/");
	char key[JSON_FIELD_PATH];
	const char *digits = key;
	uint64_t index;

	memcpy(key, *path, length);
	key[length] = '\0';
	*path += length + ((*path)[length] == '/');
	if (length == 0)
		return value;
	if (json_in_kind_of(value) != JSON_IN_ARRAY)
		return json_in_member(value, key);
	return base_parse_number(&digits, UINT32_MAX, &index) && !*digits
		   ? json_in_item(value, index)
		   : NULL;
}

const struct json_in *json_field_at(const struct json_in *value, const char *path)
{
	while (value && *path)
		value = json_step(value, &path);
	return value;
}

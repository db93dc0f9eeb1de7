/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What was found of a member, to a field. Bytes of pictures, masks, texts and numbers stay where they are; texts and numbers of JSON,
 * and numbers whose type is widened, are put into the room, which has a place for each field as large as the longest one that was
 * announced. Bytes that a field of texts is made of are UTF-8. JSON is read by jansson, once a file.
 */

#include "pipeline/forms/picked_inner.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/little.h"
#include "base/npy.h"
#include "pipeline/formats/decode.h"

#define PICKED_MOST_JSON ((size_t)16 << 20) /* bytes of a text */

/* Those of COCO have a width and a height where these have the other corner. */
static bool boxes_are_right(const uint8_t *bytes, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		float box[4];

		memcpy(box, bytes + sizeof(box) * i, sizeof(box));
		if (!(box[0] <= box[2] && box[1] <= box[3]))
			return false;
	}
	return true;
}

int picked_value_bad(const struct taking *taking, const char *fmt, ...)
{
	char text[48];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return decode_fail(taking->error, PIPELINE_FAIL_REFUSED, 0, "%.20s: %s",
			   taking->member->text, text);
}

uint8_t *picked_value_room(const struct taking *taking)
{
	return taking->room->bytes + taking->member->place;
}

/* Of so many values along the first dimension, at `from`. */
static int picked_value_made(const struct taking *taking, uint64_t n, const uint8_t *from)
{
	const struct pipeline_field *field = taking->member->field;
	struct packed_place *place = taking->place;

	place->dtype = (uint32_t)field->dtype;
	place->ndim = field->ndim;
	memcpy(place->shape, field->shape, sizeof(place->shape));
	place->bytes = field->bytes;
	if (field->ndim > 0) {
		place->shape[0] = n;
		place->bytes = field->bytes / field->shape[0] * n;
	}
	*taking->value = from;
	if (field->role == PIPELINE_BOXES && !boxes_are_right(*taking->value, n))
		return picked_value_bad(taking, "a box ends before it begins");
	return 0;
}

static int take_bytes(const struct taking *taking, const uint8_t *bytes, uint64_t size)
{
	*taking->place =
	    (struct packed_place){.dtype = PIPELINE_U8, .ndim = 1, .shape = {size}, .bytes = size};
	*taking->value = bytes;
	return 0;
}

/* Bytes that a batch shows as text. */
static int take_text(const struct taking *taking, const uint8_t *bytes, uint64_t size)
{
	for (uint64_t at = 0, length = 1; at < size; at += length) {
		uint8_t unit[5] = "";

		memcpy(unit, bytes + at, BASE_MIN(size - at, (uint64_t)4));
		length = *unit < 0x80 ? 1 : base_utf8(unit);
		if (*unit == 0xc2 && (unit[1] & 0xe0) == 0x80)
			length = 2; /* controls, which are text nevertheless */
		if (length == 0)
			return picked_value_bad(taking, "no UTF-8 at byte %llu",
						(unsigned long long)at);
	}
	return take_bytes(taking, bytes, size);
}

/* A copy: the next member may be of another file. */
static int take_string(const struct taking *taking, const char *text)
{
	const size_t size = strlen(text);
	uint8_t *to = picked_value_room(taking);

	if (size > taking->member->field->bytes)
		return picked_value_bad(taking, "%zu, at most %llu", size,
					(unsigned long long)taking->member->field->bytes);
	memcpy(to, text, size);
	return take_bytes(taking, to, size);
}

static int take_cls(const struct taking *taking)
{
	char text[24] = "", *end;
	long long number;

	if (taking->found->size >= sizeof(text))
		return picked_value_bad(taking, "it is no whole number");
	memcpy(text, taking->found->bytes, taking->found->size);
	errno = 0;
	number = strtoll(text, &end, 10);
	end += strspn(end, " \t\r\n");
	if (end == text || *end || errno)
		return picked_value_bad(taking, "it is no whole number");
	if (taking->member->field->ndim > 0 || taking->member->field->dtype != PIPELINE_I64)
		return picked_value_bad(taking, "its field is [4], one int64");
	little_put(picked_value_room(taking), (uint64_t)number, 8);
	return picked_value_made(taking, 1, picked_value_room(taking));
}

static bool shape_fits(unsigned ndim, const uint64_t *shape, const struct pipeline_field *field)
{
	if (ndim != field->ndim || (ndim > 0 && shape[0] > field->shape[0]))
		return false;
	for (unsigned i = 1; i < ndim; i++)
		if (shape[i] != field->shape[i])
			return false;
	return ndim == 0 || shape[0] == field->shape[0] || field->kind != PIPELINE_DENSE;
}

static int take_npy(const struct taking *taking)
{
	const struct pipeline_field *field = taking->member->field;
	const uint64_t bytes = taking->found->size;
	struct npy npy;
	struct diag diag = {.text = "it is no .npy file"};
	uint8_t *to = picked_value_room(taking);

	if (npy_read(taking->found->bytes, BASE_MIN(bytes, (uint64_t)NPY_MOST_HEAD), bytes, &npy,
		     &diag))
		return picked_value_bad(taking, "%s", diag.text);
	if (!shape_fits(npy.ndim, npy.shape, field))
		return picked_value_bad(taking, "of another shape");
	if (number_batch_dtype(npy.number) != (unsigned)field->dtype)
		return picked_value_bad(taking, "of another type; it becomes [%u]",
					number_batch_dtype(npy.number));
	number_widen(npy.number, taking->found->bytes + npy.data_at, npy.shape[0] * npy.row_values,
		     to);
	return picked_value_made(taking, npy.shape[0], to);
}

static int json_root(const struct taking *taking)
{
	struct diag diag;
	int r;

	if (taking->room->root && taking->room->json_of == taking->found->bytes &&
	    taking->room->json_size == taking->found->size)
		return 0;
	json_in_free(taking->room->root);
	taking->room->root = NULL;
	r = json_in_parse((const char *)taking->found->bytes, taking->found->size, PICKED_MOST_JSON,
			  &taking->room->root, &diag);
	taking->room->json_of = taking->found->bytes;
	taking->room->json_size = taking->found->size;
	return r == 0 ? 0 : picked_value_bad(taking, "%s", r < 0 ? strerror(-r) : "it is no JSON");
}

static int take_json(const struct taking *taking)
{
	const struct pipeline_field *field = taking->member->field;
	const char *path = taking->member->path ? taking->member->path : "", *text;
	uint8_t *to = picked_value_room(taking);
	const struct json_in *value;
	int r;

	if (!*path && field->kind == PIPELINE_TEXT) /* the file's text itself */
		return take_text(taking, taking->found->bytes, taking->found->size);
	r = json_root(taking);
	if (r != 0)
		return r;
	value = json_field_at(taking->room->root, path);
	text = json_in_string(value, NULL);
	if (!value)
		return picked_value_bad(taking, "nothing is there");
	if (field->kind == PIPELINE_TEXT)
		return text ? take_string(taking, text) : picked_value_bad(taking, "it is no text");
	if (field->kind != PIPELINE_DENSE && json_in_count(value) > field->shape[0])
		return picked_value_bad(taking, "%zu, at most %llu", json_in_count(value),
					(unsigned long long)field->shape[0]);
	if (!json_field_put(value, field, to))
		return picked_value_bad(taking, "of other shape or type");
	return picked_value_made(taking, json_in_count(value), to);
}

/* ---- values of columns and features ---- */

int picked_value_rows(const struct taking *taking, uint64_t values, const uint8_t *from)
{
	const struct pipeline_field *field = taking->member->field;
	const uint64_t most = field->bytes / packed_dtype_bytes(field->dtype);
	const uint64_t row = field->ndim > 0 ? most / field->shape[0] : most;

	if (values > most || (values < most && field->kind == PIPELINE_DENSE))
		return picked_value_bad(taking, "%llu values, %s %llu", (unsigned long long)values,
					field->kind == PIPELINE_DENSE ? "not" : "at most",
					(unsigned long long)most);
	if (values % row)
		return picked_value_bad(taking, "%llu values, no rows of %llu",
					(unsigned long long)values, (unsigned long long)row);
	return picked_value_made(taking, values / row, from);
}

/* Bytes are the field's numbers, as they lie in memory. */
static int take_raw(const struct taking *taking)
{
	const struct pipeline_field *field = taking->member->field;
	const struct found *found = taking->found;
	const uint64_t each = packed_dtype_bytes(field->dtype);

	if (found->values != 1 && (found->values > 0 || field->kind == PIPELINE_DENSE))
		return picked_value_bad(taking, "%llu values of bytes, not one",
					(unsigned long long)found->values);
	if (found->values == 0)
		return picked_value_made(taking, 0, picked_value_room(taking));
	if (field->kind == PIPELINE_TEXT)
		return take_text(taking, found->bytes, found->size);
	if (found->size % each)
		return picked_value_bad(taking, "%llu bytes, no numbers of %llu",
					(unsigned long long)found->size, (unsigned long long)each);
	return picked_value_rows(taking, found->size / each, found->bytes);
}

/* Whole numbers of fewer bits may become int64. */
static enum number narrower(unsigned dtype)
{
	static const enum number of[] = {
	    [PIPELINE_I8] = NUMBER_I8,   [PIPELINE_I16] = NUMBER_I16, [PIPELINE_I32] = NUMBER_I32,
	    [PIPELINE_U16] = NUMBER_U16, [PIPELINE_U32] = NUMBER_U32,
	};

	return dtype < BASE_ARRAY_LEN(of) ? of[dtype] : (enum number)0;
}

static int take_array(const struct taking *taking)
{
	const struct encoding_array *array = &taking->found->array;
	const struct pipeline_field *field = taking->member->field;
	const uint8_t *from = taking->found->bytes + array->at;
	const enum number number = narrower(array->dtype);
	const uint64_t values = (taking->found->size - array->at) /
				packed_dtype_bytes((enum pipeline_dtype)array->dtype);

	if (field->kind == PIPELINE_TEXT || !shape_fits(array->ndim, array->shape, field))
		return picked_value_bad(taking, "of another shape");
	if (array->dtype == (unsigned)field->dtype)
		return picked_value_rows(taking, values, from);
	if (!number || field->dtype != PIPELINE_I64)
		return picked_value_bad(taking, "of another type; it is [%u]", array->dtype);
	number_widen(number, from, values, picked_value_room(taking));
	return picked_value_rows(taking, values, picked_value_room(taking));
}

/* ---- a member ---- */

int picked_value_take(const struct taking *taking)
{
	const struct pipeline_field *field = taking->member->field;
	const struct found *found = taking->found;
	const bool is_one = found->kind == FOUND_RAW && found->values == 1;

	if (!field || packed_is_file(field)) {
		/* A picture's, or a mask's. */
		if (found->kind == FOUND_ARRAY || found->kind == FOUND_FLOATS ||
		    found->kind == FOUND_INTS || (found->kind == FOUND_RAW && found->values != 1))
			return picked_value_bad(taking, "it is no picture's bytes");
		return take_bytes(taking, found->bytes, found->size);
	}
	if (taking->member->path && !is_one && found->kind != FOUND_TEXT &&
	    found->kind != FOUND_JSON)
		return picked_value_bad(taking, "a key (behind a colon) is of JSON");
	if (taking->member->path)
		return take_json(taking);
	switch (found->kind) {
	case FOUND_JSON:
		return take_json(taking);
	case FOUND_NPY:
		return take_npy(taking);
	case FOUND_CLS:
		return take_cls(taking);
	case FOUND_ARRAY:
		return take_array(taking);
	case FOUND_RAW:
		return take_raw(taking);
	case FOUND_FLOATS:
	case FOUND_INTS:
		return picked_example_take(taking);
	case FOUND_NOTHING:
	case FOUND_FILE:
	case FOUND_TEXT:
		break;
	}
	return field->kind == PIPELINE_TEXT ? take_text(taking, found->bytes, found->size)
					    : take_bytes(taking, found->bytes, found->size);
}

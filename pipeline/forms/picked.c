/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sample's files, as they lie in its shard, to fields. Bytes of pictures, masks, texts and arrays stay where they
 * are; texts and numbers of JSON, and arrays whose type is widened, are put into the room, which has a place for each
 * field as large as the longest one that was announced.
 *
 * What a file is says the last part of its suffix, as for oneaccess.from_tar() in Python: json, npy, cls (a whole
 * number); all else is bytes, which a field of texts wants to be UTF-8. JSON is read by jansson, once a file.
 */

#include "pipeline/forms/picked.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/little.h"
#include "base/npy.h"
#include "base/tar.h"
#include "pipeline/formats/decode.h"
#include "pipeline/forms/json_field.h"

#define PICKED_MOST_JSON ((size_t)16 << 20) /* bytes of a text */

_Static_assert(JSON_FIELD_PATH == OP_MAX_TEXT + 1, "a key is a part of a text");

struct member {
	char text[OP_MAX_TEXT + 1];         /* as it was given */
	char suffixes[OP_MAX_TEXT + 2];     /* "jpg\0png\0" */
	const char *path;                   /* in JSON: behind the colon; NULL: there is none */
	const struct pipeline_field *field; /* borrowed; NULL: the picture */
	uint64_t place;                     /* in the room */
};

struct picked {
	unsigned n;
	struct member member[PIPELINE_MAX_FIELDS];
	uint64_t bytes; /* of the room */
};

struct picked_room {
	uint64_t json_at;     /* of the file that root is of */
	struct json_in *root; /* owned; NULL: of none */
	uint8_t bytes[];
};

/* ---- what is asked for ---- */

static const char *member_kind(const char *suffix)
{
	const char *dot = strrchr(suffix, '.');

	return dot ? dot + 1 : suffix;
}

static const char *member_parse(const int32_t *item, struct member *ret)
{
	size_t n = 0;

	for (int32_t i = 0; i < *item; i++)
		ret->text[i] = (char)item[1 + i];
	ret->path = strchr(ret->text, ':');
	for (const char *from = ret->text; *from && *from != ':'; from++)
		ret->suffixes[n++] = *from == ';' ? '\0' : (char)tolower((unsigned char)*from);
	for (const char *at = ret->suffixes; at <= ret->suffixes + n; at += strlen(at) + 1)
		if (!*at)
			return "a member is suffixes (\"jpg;png\"), none of them empty, or "
			       "\"json:key\"";
	if (!ret->path)
		return NULL;
	if (strlen(ret->suffixes) < n || strcmp(member_kind(ret->suffixes), "json") != 0)
		return "a key (behind a colon) is one of a JSON file: \"json:key\"";
	ret->path++;
	return NULL;
}

static const char *picked_read(const struct op_list *ops, unsigned param, unsigned first,
			       const struct pipeline_field *fields, unsigned n_fields,
			       struct picked *members)
{
	const int32_t *item = op_items(ops, &ops->op[0], param);
	const int32_t *end = item + ops->op[0].value[param].count;
	const char *wrong = NULL;

	for (; !wrong && item < end; item += 1 + *item) {
		struct member *member = &members->member[members->n];

		if (members->n == first + n_fields)
			return "there are more members than fields";
		wrong = member_parse(item, member);
		member->field = members->n < first ? NULL : &fields[members->n - first];
		member->place = members->bytes;
		if (member->field)
			members->bytes += base_align_up(member->field->bytes, PACKED_ALIGN);
		members->n++;
	}
	if (!wrong && members->n < first + n_fields)
		return first > 0 ? "there are not as many members as fields and one more before "
				   "them, the picture's"
				 : "there are not as many members as fields";
	return wrong;
}

const char *picked_new(const struct op_list *ops, bool has_picture,
		       const struct pipeline_field *fields, const struct packed_fields *announced,
		       struct picked **ret)
{
	const unsigned param = has_picture ? OP_DECODE_MEMBERS : OP_RECORD_MEMBERS;
	const char *wrong;

	if (op_is_null(&ops->op[0], param))
		return NULL;
	if (has_picture + announced->n > PIPELINE_MAX_FIELDS)
		return "there are more members than 23";
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return "there is not enough memory";
	wrong = picked_read(ops, param, has_picture, fields + announced->first, announced->n, *ret);
	if (!wrong)
		return NULL;
	free(*ret);
	*ret = NULL;
	return wrong;
}

void picked_free(struct picked *members)
{
	free(members);
}

int picked_room_new(const struct picked *members, struct picked_room **ret)
{
	*ret = calloc(1, sizeof(**ret) + members->bytes);
	return *ret ? 0 : -ENOMEM;
}

static void room_forget(struct picked_room *room)
{
	json_in_free(room->root);
	room->root = NULL;
}

void picked_room_free(struct picked_room *room)
{
	if (!room)
		return;
	room_forget(room);
	free(room);
}

/* ---- which files ---- */

struct found {
	uint64_t at, bytes;
	const char *suffix; /* the one of the member's that it has; NULL: there is none yet */
};

static void found_look(const struct member *member, const struct tar_file *file, const char *suffix,
		       struct found *found)
{
	for (const char *at = member->suffixes; *at; at += strlen(at) + 1) {
		if (at == found->suffix)
			return;
		if (strcasecmp(at, suffix) != 0)
			continue;
		*found = (struct found){file->at, file->bytes, at};
		return;
	}
}

static int picked_find(const struct picked *members, const uint8_t *data, size_t size,
		       struct found *found, struct pipeline_error *ret_error)
{
	struct tar_file file;
	struct tar tar;
	uint64_t at;
	uint32_t bytes;
	int r = 0;

	tar_begin(&tar, size);
	while ((r == 0 || r == TAR_E_FILE) && tar_next(&tar, &at, &bytes) == 0) {
		const char *suffix;

		r = tar_feed(&tar, data + at, (uint32_t)BASE_MIN((uint64_t)bytes, size - at),
			     &file);
		suffix = r == TAR_E_FILE ? tar_field(file.path) : NULL;
		for (unsigned m = 0; suffix && m < members->n; m++)
			found_look(&members->member[m], &file, suffix, &found[m]);
	}
	if (r == TAR_E_BAD && tar.header == 0)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "no files: open the shards with ?members=all");
	if (r == TAR_E_BAD)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "%s", tar.why);
	for (unsigned m = 0; m < members->n; m++)
		if (!found[m].suffix)
			return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "no file for %s",
					   members->member[m].text);
	return 0;
}

/* ---- values ---- */

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

struct taking { /* of one member */
	const struct member *member;
	struct picked_room *room;
	const uint8_t *bytes; /* the file's */
	const struct found *found;
	struct packed_place *place; /* what is to be told */
	const uint8_t **value;
	struct pipeline_error *error;
};

BASE_PRINTF(2, 3) static int take_bad(const struct taking *taking, const char *fmt, ...)
{
	char text[48];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return decode_fail(taking->error, PIPELINE_FAIL_REFUSED, 0, "%.20s: %s",
			   taking->member->text, text);
}

/* Of so many values along the first dimension, at a place in the room. */
static int take_made(const struct taking *taking, uint64_t n)
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
	*taking->value = taking->room->bytes + taking->member->place;
	if (field->role == PIPELINE_BOXES && !boxes_are_right(*taking->value, n))
		return take_bad(taking, "a box ends before it begins");
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
			return take_bad(taking, "no UTF-8 at byte %llu", (unsigned long long)at);
	}
	return take_bytes(taking, bytes, size);
}

/* A copy: the next member may be of another file. */
static int take_string(const struct taking *taking, const char *text)
{
	const size_t size = strlen(text);
	uint8_t *to = taking->room->bytes + taking->member->place;

	if (size > taking->member->field->bytes)
		return take_bad(taking, "%zu, at most %llu", size,
				(unsigned long long)taking->member->field->bytes);
	memcpy(to, text, size);
	return take_bytes(taking, to, size);
}

static int take_cls(const struct taking *taking)
{
	char text[24] = "", *end;
	long long number;

	if (taking->found->bytes >= sizeof(text))
		return take_bad(taking, "it is no whole number");
	memcpy(text, taking->bytes, taking->found->bytes);
	errno = 0;
	number = strtoll(text, &end, 10);
	end += strspn(end, " \t\r\n");
	if (end == text || *end || errno)
		return take_bad(taking, "it is no whole number");
	if (taking->member->field->ndim > 0 || taking->member->field->dtype != PIPELINE_I64)
		return take_bad(taking, "its field is [4], one int64");
	little_put(taking->room->bytes + taking->member->place, (uint64_t)number, 8);
	return take_made(taking, 1);
}

static bool npy_fits(const struct npy *npy, const struct pipeline_field *field)
{
	if (npy->ndim != field->ndim || npy->shape[0] > field->shape[0])
		return false;
	for (unsigned i = 1; i < npy->ndim; i++)
		if (npy->shape[i] != field->shape[i])
			return false;
	return npy->shape[0] == field->shape[0] || field->kind != PIPELINE_DENSE;
}

static int take_npy(const struct taking *taking)
{
	const struct pipeline_field *field = taking->member->field;
	const uint64_t bytes = taking->found->bytes;
	struct npy npy;
	struct diag diag = {.text = "it is no .npy file"};
	uint8_t *to = taking->room->bytes + taking->member->place;

	if (npy_read(taking->bytes, BASE_MIN(bytes, (uint64_t)NPY_MOST_HEAD), bytes, &npy, &diag))
		return take_bad(taking, "%s", diag.text);
	if (!npy_fits(&npy, field))
		return take_bad(taking, "of another shape");
	if (number_batch_dtype(npy.number) != (unsigned)field->dtype)
		return take_bad(taking, "of another type; it becomes [%u]",
				number_batch_dtype(npy.number));
	number_widen(npy.number, taking->bytes + npy.data_at, npy.shape[0] * npy.row_values, to);
	return take_made(taking, npy.shape[0]);
}

static int json_root(const struct taking *taking)
{
	struct diag diag;
	int r;

	if (taking->room->root && taking->room->json_at == taking->found->at)
		return 0;
	room_forget(taking->room);
	r = json_in_parse((const char *)taking->bytes, taking->found->bytes, PICKED_MOST_JSON,
			  &taking->room->root, &diag);
	taking->room->json_at = taking->found->at;
	return r == 0 ? 0 : take_bad(taking, "%s", r < 0 ? strerror(-r) : "it is no JSON");
}

static int take_json(const struct taking *taking)
{
	const struct pipeline_field *field = taking->member->field;
	const char *path = taking->member->path ? taking->member->path : "", *text;
	uint8_t *to = taking->room->bytes + taking->member->place;
	const struct json_in *value;
	int r;

	if (!*path && field->kind == PIPELINE_TEXT) /* the file's text itself */
		return take_text(taking, taking->bytes, taking->found->bytes);
	r = json_root(taking);
	if (r != 0)
		return r;
	value = json_field_at(taking->room->root, path);
	text = json_in_string(value, NULL);
	if (!value)
		return take_bad(taking, "nothing is there");
	if (field->kind == PIPELINE_TEXT)
		return text ? take_string(taking, text) : take_bad(taking, "it is no text");
	if (field->kind != PIPELINE_DENSE && json_in_count(value) > field->shape[0])
		return take_bad(taking, "%zu, at most %llu", json_in_count(value),
				(unsigned long long)field->shape[0]);
	if (!json_field_put(value, field, to))
		return take_bad(taking, "of other shape or type");
	return take_made(taking, json_in_count(value));
}

static int take_member(const struct taking *taking)
{
	const char *kind = member_kind(taking->found->suffix);
	const struct pipeline_field *field = taking->member->field;

	if (!field || field->role == PIPELINE_MASK) /* a picture's */
		return take_bytes(taking, taking->bytes, taking->found->bytes);
	if (strcmp(kind, "json") == 0)
		return take_json(taking);
	if (strcmp(kind, "npy") == 0)
		return take_npy(taking);
	if (strcmp(kind, "cls") == 0)
		return take_cls(taking);
	if (field->kind == PIPELINE_TEXT)
		return take_text(taking, taking->bytes, taking->found->bytes);
	return take_bytes(taking, taking->bytes, taking->found->bytes);
}

int picked_take(const struct picked *members, struct picked_room *room, const uint8_t *data,
		size_t size, struct packed *ret, struct pipeline_error *ret_error)
{
	struct found found[PIPELINE_MAX_FIELDS] = {{0, 0, NULL}};
	int r = picked_find(members, data, size, found, ret_error);

	room_forget(room);
	ret->n = members->n;
	for (unsigned m = 0; r == 0 && m < members->n; m++) {
		const struct taking taking = {
		    .member = &members->member[m],
		    .room = room,
		    .bytes = data + found[m].at,
		    .found = &found[m],
		    .place = &ret->field[m],
		    .value = &ret->value[m],
		    .error = ret_error,
		};

		r = take_member(&taking);
	}
	return r;
}

int picked_refuse(const uint8_t *data, size_t size, struct pipeline_error *ret_error)
{
	const size_t at = offsetof(struct tar_header, magic);

	if (size < TAR_BLOCK || memcmp(data + at, "ustar", 5) != 0 || !tar_is_archive(data, size))
		return 0;
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
			   "files of a tar shard: decode needs \"members\"");
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What members are, and where a sample has them. A sample is an archive of files, a tf.Example (picked_example.c), or columns of MDS,
 * which the op names, for the sample does not (picked_columns.c).
 *
 * What a file is says the last part of its suffix, as for oneaccess.from_tar() in Python: json, npy, cls (a whole
 * number); all else is bytes.
 */

#include "pipeline/forms/picked_inner.h"

#include <strings.h>

#include "base/tar.h"
#include "pipeline/formats/decode.h"

/* ---- what is asked for ---- */

static const char *member_parse(const int32_t *item, struct member *ret)
{
	size_t n = 0;

	for (int32_t i = 0; i < *item; i++)
		ret->text[i] = (char)item[1 + i];
	ret->path = strchr(ret->text, ':');
	for (const char *from = ret->text; *from && *from != ':'; from++)
		ret->names[n++] = *from == ';' ? '\0' : *from;
	for (const char *at = ret->names; at <= ret->names + n; at += strlen(at) + 1)
		if (!*at)
			return "a member is suffixes (\"jpg;png\"), a column or a feature, none of "
			       "them empty, or a key of its JSON (\"json:key\")";
	if (ret->path)
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
				   "them, the picture's or video's"
				 : "there are not as many members as fields";
	return wrong;
}

const char *picked_new(const struct op_list *ops, bool has_picture,
		       const struct pipeline_field *fields, const struct packed_fields *announced,
		       struct picked **ret)
{
	const struct op_intake *intake = op_intake(ops->op[0].id);
	const unsigned param = intake->members, columns = intake->columns;
	const char *wrong = NULL;

	if (op_is_null(&ops->op[0], param))
		return op_is_null(&ops->op[0], columns)
			   ? NULL
			   : "columns are about members: give these, too";
	if (has_picture + announced->n > PIPELINE_MAX_FIELDS)
		return "there are more members than 23";
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return "there is not enough memory";
	wrong = picked_read(ops, param, has_picture, fields + announced->first, announced->n, *ret);
	if (!wrong && !op_is_null(&ops->op[0], columns))
		wrong = picked_columns_read(ops, columns, *ret);
	if (!wrong)
		return NULL;
	picked_free(*ret);
	*ret = NULL;
	return wrong;
}

void picked_free(struct picked *members)
{
	if (members)
		free(members->column);
	free(members);
}

const char *picked_columns(const struct picked *members)
{
	return members->n_columns > 0 ? members->columns : NULL;
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

bool picked_is_next(const struct member *member, const char *name, size_t size, bool any_case,
		    struct found *found)
{
	for (const char *at = member->names; *at; at += strlen(at) + 1) {
		if (strlen(at) == size &&
		    (any_case ? strncasecmp(at, name, size) == 0 : memcmp(at, name, size) == 0)) {
			*found = (struct found){.name = at};
			return true;
		}
		if (at == found->name)
			return false;
	}
	return false;
}

static enum found_kind kind_of_file(const char *suffix)
{
	const char *dot = strrchr(suffix, '.');

	suffix = dot ? dot + 1 : suffix;
	if (strcasecmp(suffix, "json") == 0)
		return FOUND_JSON;
	if (strcasecmp(suffix, "npy") == 0)
		return FOUND_NPY;
	return strcasecmp(suffix, "cls") == 0 ? FOUND_CLS : FOUND_FILE;
}

static void look_at_file(const struct picked *members, const uint8_t *data,
			 const struct tar_file *file, struct found *found)
{
	const char *suffix = tar_field(file->path);

	for (unsigned m = 0; suffix && m < members->n; m++) {
		if (!picked_is_next(&members->member[m], suffix, strlen(suffix), true, &found[m]))
			continue;
		found[m].kind = kind_of_file(suffix);
		found[m].bytes = data + file->at;
		found[m].size = file->bytes;
	}
}

static int find_files(const struct picked *members, const uint8_t *data, size_t size,
		      struct found *found, struct pipeline_error *ret_error)
{
	struct tar_file file;
	struct tar tar;
	uint64_t at;
	uint32_t bytes;
	int r = 0;

	tar_begin(&tar, size);
	while ((r == 0 || r == TAR_E_FILE) && tar_next(&tar, &at, &bytes) == 0) {
		r = tar_feed(&tar, data + at, (uint32_t)BASE_MIN((uint64_t)bytes, size - at),
			     &file);
		if (r == TAR_E_FILE)
			look_at_file(members, data, &file, found);
	}
	return r == TAR_E_BAD ? decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "%s", tar.why) : 0;
}

static int picked_find(const struct picked *members, const uint8_t *data, size_t size,
		       struct found *found, struct pipeline_error *ret_error)
{
	const char *what = "file for";
	int r;

	if (members->n_columns > 0)
		return picked_columns_find(members, data, size, found, ret_error);
	if (tar_is_archive(data, size)) {
		r = find_files(members, data, size, found, ret_error);
	} else {
		what = "feature";
		r = picked_example_find(members, data, size, found, ret_error);
	}
	for (unsigned m = 0; r == 0 && m < members->n; m++)
		if (!found[m].name)
			return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "no %s %s", what,
					   members->member[m].text);
	return r;
}

int picked_take(const struct picked *members, struct picked_room *room, const uint8_t *data,
		size_t size, struct packed *ret, struct pipeline_error *ret_error)
{
	struct found found[PIPELINE_MAX_FIELDS] = {{.kind = FOUND_NOTHING}};
	int r = picked_find(members, data, size, found, ret_error);

	room_forget(room);
	ret->n = members->n;
	ret->part = (struct pipeline_part){.is_there = false};
	for (unsigned m = 0; r == 0 && m < members->n; m++) {
		const struct taking taking = {
		    .member = &members->member[m],
		    .room = room,
		    .found = &found[m],
		    .place = &ret->field[m],
		    .value = &ret->value[m],
		    .error = ret_error,
		};

		r = picked_value_take(&taking);
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

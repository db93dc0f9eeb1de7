/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Columns of MDS. A sample is the sizes of those that vary, then all columns' bytes, in the order of the shard's head, which is not
 * in the sample: the op has their names and encodings, and the data set's option of the same name is held against each head
 * (storage/source/scan/mds.c). What the sizes say fills the sample exactly, or the sample is bad.
 */

#include "pipeline/forms/picked_inner.h"

#include "base/little.h"
#include "pipeline/formats/decode.h"

/* "NAME:ENCODING" at text, of so many bytes; the encoding's text, or NULL. */
static const char *columns_split(const char *text, size_t *ret_name)
{
	const char *colon = strchr(text, ':');

	*ret_name = colon ? (size_t)(colon - text) : 0;
	return *ret_name > 0 && colon[1] ? colon + 1 : NULL;
}

static const char *columns_add(struct picked *members, const int32_t *item,
			       struct found found[PIPELINE_MAX_FIELDS])
{
	char text[OP_MAX_TEXT + 1] = "", *to = members->columns + strlen(members->columns);
	const char *encoding;
	size_t name;

	for (int32_t i = 0; i < *item; i++)
		text[i] = (char)item[1 + i];
	encoding = columns_split(text, &name);
	if (!encoding || strchr(text, ';'))
		return "a column is \"NAME:ENCODING\", as the shards' index.json has them";
	if (members->n_columns == PICKED_MOST_COLUMNS)
		return "there are more columns than 64";
	/* Members that are called so have this column. */
	for (unsigned m = 0; m < members->n; m++)
		if (picked_is_next(&members->member[m], text, name, false, &found[m]))
			members->member[m].column = members->n_columns;
	members->column[members->n_columns++] = encoding_of(encoding);
	if (to > members->columns)
		*to++ = ';';
	strcpy(to, text);
	for (to = strchr(to, ':'); (to = strchr(to, ',')) != NULL;)
		*to = 'x';
	return NULL;
}

const char *picked_columns_read(const struct op_list *ops, unsigned param, struct picked *members)
{
	const int32_t *item = op_items(ops, &ops->op[0], param);
	const int32_t *end = item + ops->op[0].value[param].count;
	struct found found[PIPELINE_MAX_FIELDS] = {{.kind = FOUND_NOTHING}};
	const char *wrong = NULL;

	members->column = calloc(PICKED_MOST_COLUMNS, sizeof(*members->column));
	if (!members->column)
		return "there is not enough memory";
	for (; !wrong && item < end; item += 1 + *item)
		wrong = columns_add(members, item, found);
	for (unsigned m = 0; !wrong && m < members->n; m++)
		if (!found[m].name)
			wrong = "a member is none of the columns";
		else if (members->column[members->member[m].column].kind == ENCODING_OTHER)
			wrong = "a member is a column of an encoding that has no place in a batch";
	return wrong;
}

/* ---- a sample ---- */

static bool columns_take(const struct encoding *encoding, const uint8_t *bytes, uint64_t size,
			 struct found *found)
{
	static const enum found_kind kinds[] = {
	    [ENCODING_PICTURE] = FOUND_RAW,  [ENCODING_BYTES] = FOUND_RAW,
	    [ENCODING_TEXT] = FOUND_TEXT,    [ENCODING_JSON] = FOUND_JSON,
	    [ENCODING_NUMBER] = FOUND_ARRAY, [ENCODING_ARRAY] = FOUND_ARRAY,
	};

	found->kind = kinds[encoding->kind];
	found->bytes = bytes;
	found->size = size;
	found->values = 1;
	if (encoding->kind == ENCODING_NUMBER)
		found->array.dtype = encoding->dtype;
	return encoding->kind != ENCODING_ARRAY ||
	       encoding_array(encoding, bytes, size, &found->array);
}

/* Where columns are. false: they do not fill the sample. */
static bool columns_place(const struct picked *members, const uint8_t *data, size_t size,
			  uint64_t place[PICKED_MOST_COLUMNS + 1])
{
	uint64_t at = 0;

	for (unsigned i = 0; i < members->n_columns; i++)
		at += members->column[i].bytes ? 0 : 4;
	if (at > size)
		return false;
	for (unsigned i = 0; i < members->n_columns; i++) {
		uint32_t bytes = members->column[i].bytes;

		if (!bytes) {
			bytes = little_32(data);
			data += 4;
		}
		place[i] = at;
		if (bytes > size - at)
			return false;
		at += bytes;
	}
	place[members->n_columns] = at;
	return at == size;
}

int picked_columns_find(const struct picked *members, const uint8_t *data, size_t size,
			struct found *found, struct pipeline_error *ret_error)
{
	uint64_t place[PICKED_MOST_COLUMNS + 1];

	if (!columns_place(members, data, size, place))
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "the columns do not fill the sample");
	for (unsigned m = 0; m < members->n; m++) {
		const unsigned column = members->member[m].column;

		found[m].name = members->member[m].names;
		if (!columns_take(&members->column[column], data + place[column],
				  place[column + 1] - place[column], &found[m]))
			return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
					   "%.40s: it is no array", members->member[m].text);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * MDS, checked. What a shard's head says of its samples fills the shard exactly, and what a sample's sizes say fills
 * the sample, so nothing lies outside of either, and two samples share no byte.
 *
 * What encodings are says base/encoding.h. Compressed shards are refused here, when the data set is opened:
 * their samples cannot be read without reading what lies before them.
 */

#include "storage/source/scan/mds.h"

#include <stdio.h>

#include "base/encoding.h"
#include "base/json.h"
#include "base/little.h"
#include "storage/source/scan/chosen.h"

static int mds_refuse(struct diag *diag, const char *what, const char *mend)
{
	return diag_fail(diag, INDEX_JSON_E_BAD, "%s; %s", what, mend);
}

#define MDS_MEND "write the data set anew with MDSWriter of mosaicml-streaming"

/* ---- index.json ---- */

static bool is_compressed(const struct json_in *shard)
{
	return json_in_kind_of(json_in_member(shard, "compression")) == JSON_IN_STRING ||
	       json_in_kind_of(json_in_member(shard, "zip_data")) == JSON_IN_OBJECT;
}

static int index_shard(const struct json_in *shard, struct index_json_shard *ret, struct diag *diag)
{
	const struct json_in *raw = json_in_member(shard, "raw_data");
	const char *format = json_in_string(json_in_member(shard, "format"), "");

	if (strcmp(format, "mds") != 0)
		return mds_refuse(diag, "its shards are not of the format mds",
				  "CSV and JSON shards of mosaicml-streaming are read by "
				  "oneaccess.wrap() of a StreamingDataset");
	if (is_compressed(shard))
		return mds_refuse(
		    diag, "its shards are compressed, so that no sample can be read by itself",
		    "write it without compression (MDSWriter(compression=None)); pictures are "
		    "compressed already");
	if (!index_json_shard(json_in_string(json_in_member(raw, "basename"), NULL),
			      json_in_u64(json_in_member(raw, "bytes"), 0),
			      json_in_u64(json_in_member(shard, "samples"), 0), ret))
		return mds_refuse(diag, "its " INDEX_JSON " names a shard without name or size",
				  MDS_MEND);
	return ret->name ? 0 : -ENOMEM;
}

int mds_index_parse(const char *text, size_t size, struct index_json *ret, struct diag *diag)
{
	struct index_json index = {.n = 0};
	const struct json_in *shards;
	_cleanup_json_ struct json_in *root = NULL;
	int r = json_in_parse(text, size, INDEX_JSON_MOST_TEXT, &root, diag);

	if (r)
		return r < 0 ? r : INDEX_JSON_E_NONE;
	shards = json_in_member(root, "shards");
	if (json_in_kind_of(shards) != JSON_IN_ARRAY)
		r = INDEX_JSON_E_NONE;
	else if (json_in_u64(json_in_member(root, "version"), 0) != 2)
		r = mds_refuse(diag, "its " INDEX_JSON " is not of version 2", MDS_MEND);
	else if (json_in_count(shards) == 0)
		r = mds_refuse(diag, "its " INDEX_JSON " has no shard", MDS_MEND);
	else
		r = index_json_list(shards, index_shard, &index, diag);
	if (r)
		index_json_fini(&index);
	else
		*ret = index;
	return r;
}

/* ---- columns ---- */

#define MDS_MOST_SHOWN 200 /* bytes of their names */

static unsigned picture_rank(const struct encoding *encoding, const char *name, const char *named)
{
	if (encoding->kind != ENCODING_PICTURE && encoding->kind != ENCODING_BYTES)
		return 0;
	if (named)
		return strcmp(name, named) == 0;
	return encoding->kind == ENCODING_PICTURE ? 2 : 1;
}

/* Of a whole sample the only number need be no class. */
static unsigned label_rank(const struct encoding *encoding, const char *name,
			   const struct mds_names *names)
{
	const unsigned rank =
	    encoding_is_whole(encoding) ? chosen_label_rank(name, names->label) : 0;

	return rank == 1 && names->columns && !names->label ? 0 : rank;
}

static int columns_judge(const struct mds_names *names, const struct chosen *picture,
			 const struct chosen *label, struct mds_columns *ret, struct diag *diag)
{
	if (picture->n != 1 && !names->columns)
		return mds_refuse(diag,
				  picture->n ? "several of its columns may be the picture"
					     : "none of its columns is a picture",
				  "a picture's column has the encoding jpeg, png or bytes; name it "
				  "where there are several");
	if (names->label && label->n != 1)
		return mds_refuse(diag, "no column of whole numbers has the label's name",
				  "name one of encoding int, int8 to int64 or uint8 to uint64");
	ret->picture = picture->column;
	ret->has_label = label->n == 1;
	ret->label = label->column;
	return 0;
}

/* Commas of the encoding, which are between options, as x. NULL, or why the option columns cannot have it. */
static const char *tell_column(const char *name, const char *encoding, unsigned number,
			       char ret[MDS_MOST_NAMES])
{
	const size_t used = strlen(ret), left = MDS_MOST_NAMES - used;
	const int size = snprintf(ret + used, left, "%s%s:%s", number ? ";" : "", name, encoding);

	if (!*name || strpbrk(name, ":;,") || strchr(encoding, ';'))
		return "a column's name has a colon, a semicolon or a comma, which are between "
		       "columns, or nothing";
	if (size < 0 || (size_t)size >= left)
		return "the names of its columns have more than 2047 bytes";
	for (char *at = ret + used + strlen(name); (at = strchr(at, ',')); at++)
		*at = 'x';
	return NULL;
}

/* The column of that number, quoted; nothing: there are fewer. */
static const char *quote_column(const char *columns, unsigned number, char *ret, size_t size)
{
	char column[MDS_MOST_NAMES];
	size_t length;

	while (number-- > 0 && *columns)
		columns += strcspn(columns, ";") + (columns[strcspn(columns, ";")] == ';');
	length = BASE_MIN(strcspn(columns, ";"), sizeof(column) - 1);
	memcpy(column, columns, length);
	column[length] = '\0';
	return base_quote(column, ret, size);
}

/* The number of the first column that differs. */
static unsigned differs_at(const char *theirs, const char *wanted)
{
	unsigned number = 0;
	size_t i = 0;

	for (; theirs[i] && theirs[i] == wanted[i]; i++)
		number += theirs[i] == ';';
	return number + ((theirs[i] == ';' && !wanted[i]) || (!theirs[i] && wanted[i] == ';'));
}

/* The columns that the user has said: all of them, in this order. All are told where they are short, else the first that differs: what
 * tells it has 255 bytes. */
static int columns_compare(const char *theirs, const char *wanted, struct diag *diag)
{
	const unsigned number = differs_at(theirs, wanted);
	char is[48], said[48];

	if (strcmp(theirs, wanted) == 0)
		return 0;
	if (strlen(theirs) <= MDS_MOST_SHOWN)
		diag_set(diag, "its columns are not those of the option: columns=%s", theirs);
	else
		diag_set(diag,
			 "its columns are not those of the option: number %u is \"%s\", and \"%s\" "
			 "in the option; " INDEX_JSON " names all of them",
			 number + 1, quote_column(theirs, number, is, sizeof(is)),
			 quote_column(wanted, number, said, sizeof(said)));
	return INDEX_JSON_E_BAD;
}

static int columns_read(const struct json_in *root, const struct mds_names *names,
			struct mds_columns *ret, struct diag *diag)
{
	const struct json_in *name = json_in_member(root, "column_names");
	const struct json_in *encoding = json_in_member(root, "column_encodings");
	const struct json_in *size = json_in_member(root, "column_sizes");
	struct chosen picture = {.n = 0}, label = {.n = 0};
	char theirs[MDS_MOST_NAMES] = "";
	bool is_signed[MDS_MOST_COLUMNS];
	const char *untold = NULL;

	ret->n = (unsigned)BASE_MIN(json_in_count(name), (size_t)MDS_MOST_COLUMNS + 1);
	if (ret->n < 1 || ret->n > MDS_MOST_COLUMNS || json_in_count(encoding) != ret->n ||
	    json_in_count(size) != ret->n)
		return mds_refuse(diag, "its columns are none, more than 64, or damaged", MDS_MEND);
	for (unsigned i = 0; i < ret->n; i++) {
		const char *called = json_in_string(json_in_item(name, i), "");
		const char *text = json_in_string(json_in_item(encoding, i), "");
		const struct encoding of = encoding_of(text);
		const uint64_t bytes = json_in_u64(json_in_item(size, i), 0);

		if (bytes > UINT32_MAX ||
		    ((of.kind != ENCODING_OTHER || names->columns) && bytes != of.bytes))
			return mds_refuse(diag,
					  "a column's size is damaged, or its encoding not known",
					  MDS_MEND);
		ret->size[i] = (uint32_t)bytes;
		is_signed[i] = encoding_is_signed(&of);
		untold = untold ? untold : tell_column(called, text, i, theirs);
		chosen_add(&picture, picture_rank(&of, called, names->picture), i);
		chosen_add(&label, label_rank(&of, called, names), i);
	}
	if (names->columns && untold)
		return mds_refuse(diag, untold, MDS_MEND);
	ret->is_signed = is_signed[label.column];
	if (names->columns && columns_compare(theirs, names->columns, diag) != 0)
		return INDEX_JSON_E_BAD;
	return columns_judge(names, &picture, &label, ret, diag);
}

int mds_columns_parse(const char *text, size_t size, const struct mds_names *names,
		      struct mds_columns *ret, struct diag *diag)
{
	static const struct mds_names usual;
	struct mds_columns columns = {.n = 0};
	_cleanup_json_ struct json_in *root = NULL;
	int r = json_in_parse(text, size, INDEX_JSON_MOST_TEXT, &root, diag);

	if (r)
		return r < 0 ? r : INDEX_JSON_E_BAD;
	r = columns_read(root, names ? names : &usual, &columns, diag);
	if (!r)
		*ret = columns;
	return r;
}

/* ---- a shard ---- */

bool mds_head(const uint8_t *bytes, uint64_t shard_bytes, struct mds_head *ret)
{
	const uint64_t samples = little_32(bytes), first = little_32(bytes + 4);
	const uint64_t columns_at = 4 + 4 * (samples + 1);

	if (samples == 0 || first < columns_at || first > shard_bytes)
		return false;
	*ret = (struct mds_head){samples, columns_at, first - columns_at};
	return true;
}

size_t mds_sizes_bytes(const struct mds_columns *columns)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < columns->n; i++)
		bytes += columns->size[i] ? 0 : 4;
	return bytes;
}

bool mds_sample(const struct mds_columns *columns, const uint8_t *sizes, uint64_t bytes,
		struct mds_sample *ret)
{
	struct mds_sample sample = {.label_at = 0};
	uint64_t at = mds_sizes_bytes(columns);

	for (unsigned i = 0; i < columns->n; i++) {
		uint32_t size = columns->size[i];

		if (!size) {
			size = little_32(sizes);
			sizes += 4;
		}
		if (at > bytes || size > bytes - at)
			return false;
		if (i == columns->picture) { /* or, where there is none, of no use */
			sample.picture_at = (uint32_t)at;
			sample.picture_bytes = size;
		} else if (columns->has_label && i == columns->label) {
			sample.label_at = (uint32_t)at;
			sample.label_bytes = size;
		}
		at += size;
	}
	if (at != bytes || bytes > UINT32_MAX)
		return false;
	*ret = sample;
	return true;
}

int64_t mds_label(const struct mds_columns *columns, const uint8_t *label, unsigned bytes)
{
	const uint64_t value = little_get(label, bytes);
	const unsigned unused = 64 - 8 * bytes;

	if (!columns->is_signed || unused == 0)
		return (int64_t)value;
	return (int64_t)(value << unused) >> unused;
}

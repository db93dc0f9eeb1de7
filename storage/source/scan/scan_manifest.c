/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scan of a manifest: CSV, TSV, JSON lines, or a dataset.json of pairs. Of each row two columns count, the path of a picture, sound or video and its
 * label; they are those that the options name, else the first of the usual names that is there.
 *
 * The first row of a CSV names the columns. Where something is wrong is told as a line, not as a byte.
 *
 * Rows are looked at in a window that begins with the first one not yet seen; where that has no end in it, the next
 * window is twice as large.
 */

#include "storage/source/scan/scan_manifest.h"

#include <stdio.h>
#include <strings.h>

#include "base/base.h"
#include "base/json.h"
#include "storage/source/scan/csv.h"
#include "storage/source/scan/pairs.h"
#include "storage/source/scan/scan_option.h"

#define MANIFEST_WINDOW 65536
#define MANIFEST_NAME 256 /* bytes of a column's, with its NUL */

enum { MANIFEST_E_MORE = 3 }; /* beside SCAN_E_...: the row does not end in the window */
enum column { COLUMN_PATH, COLUMN_LABEL, COLUMNS };

static const char *const usual[COLUMNS] = {
    "file_name\0path\0image_path\0image\0filename\0filepath\0"
    "audio_filepath\0audio_path\0audio\0"
    "video_path\0video_filepath\0video\0",
    "label\0class\0y\0",
};

struct manifest {
	const struct form *form;
	enum pairs_place place; /* of pairs */
	uint64_t file_bytes;
	uint64_t line;                       /* of the next row */
	uint32_t wanted;                     /* bytes of the window */
	char name[COLUMNS][MANIFEST_NAME];   /* that options say, else ""; then what was found */
	bool has_columns, has[COLUMNS];      /* of CSV: the first row was seen; what is in it */
	unsigned column[COLUMNS], n_columns; /* of CSV */
	unsigned offset; /* of CSV: which column has this name, from 1 on; 0: none */
	char path[SCAN_MOST_KEY], label[SCAN_MOST_WORD];
	struct csv_row row;
};

static int bad_column(const struct manifest *manifest, struct scan_sink *sink, enum column column,
		      const char *what)
{
	return scan_bad(sink, manifest->line, "(%s) %s", BASE_QUOTED(manifest->name[column], 80),
			what);
}

/* ---- a row's two values ---- */

/* at, bytes: of the row. */
static int give_row(const struct manifest *manifest, uint64_t at, size_t bytes,
		    struct scan_sink *sink)
{
	struct scan_record record = {.at = at, .bytes = (uint32_t)bytes, .key = manifest->path};
	const char *why;

	if (!*manifest->path)
		return bad_column(manifest, sink, COLUMN_PATH,
				  "is empty: each row names a picture");
	if (!manifest_is_text(manifest->path))
		return bad_column(manifest, sink, COLUMN_PATH,
				  "is no UTF-8: save the file in that encoding");
	why = manifest_label(manifest->label, &record.label, &record.word);
	return why ? bad_column(manifest, sink, COLUMN_LABEL, why)
		   : sink->record(sink->arg, &record);
}

/* ---- CSV ---- */

static const char *find_usual(enum column column, const char *name)
{
	for (const char *word = usual[column]; *word; word += strlen(word) + 1)
		if (strcmp(word, name) == 0)
			return word;
	return NULL;
}

/* Which of two usual names counts: the one that stands before the other in their list. */
static bool is_better(const struct manifest *manifest, enum column column, const char *name)
{
	const char *word = find_usual(column, name);

	return word &&
	       (!manifest->has[column] || word < find_usual(column, manifest->name[column]));
}

static int take_name(struct manifest *manifest, enum column column, bool is_named, const char *name,
		     unsigned number, struct scan_sink *sink)
{
	const bool is_this = strcmp(manifest->name[column], name) == 0;

	if (is_this && manifest->has[column])
		return bad_column(manifest, sink, column, "two columns have this name");
	if (!(is_named ? is_this : is_better(manifest, column, name)))
		return 0;
	snprintf(manifest->name[column], MANIFEST_NAME, "%s", name);
	manifest->has[column] = true;
	manifest->column[column] = number;
	return 0;
}

/* A column's name, without the blanks around one that has no quotes: "file_name, label". false: it is too long. */
static bool name_of(const uint8_t *row, const struct csv_field *field, char *ret, size_t room)
{
	struct csv_field name = *field;

	while (name.bytes && row[name.at + name.bytes - 1] == ' ')
		name.bytes--;
	while (name.bytes && row[name.at] == ' ') {
		name.at++;
		name.bytes--;
	}
	return csv_text(row, name.bytes && row[name.at] == '"' ? field : &name, ret, room);
}

static int refuse_columns(struct manifest *manifest, const uint8_t *row, enum column column,
			  bool is_named, struct scan_sink *sink)
{
	char found[150] = "", text[60];
	size_t used = 0;

	for (unsigned i = 0; i < manifest->n_columns && used < sizeof(found) - 1; i++) {
		if (!name_of(row, &manifest->row.field[i], text, sizeof(text)))
			strcpy(text, "...");
		used += (size_t)snprintf(found + used, sizeof(found) - used, "%s%s", i ? ", " : "",
					 BASE_QUOTED(text, 60));
	}
	if (is_named)
		return scan_bad(sink, manifest->line, "no column is called %s; there are: %s",
				BASE_QUOTED(manifest->name[column], 80), found);
	return scan_bad(sink, manifest->line,
			"no column is called file_name or path: name the pictures' by "
			"?path=COLUMN, or read rows without by oneaccess.from_csv(); there are: %s",
			found);
}

/* The first row. */
static int take_columns(struct manifest *manifest, const uint8_t *row, struct scan_sink *sink)
{
	const bool is_named[COLUMNS] = {*manifest->name[COLUMN_PATH] != '\0',
					*manifest->name[COLUMN_LABEL] != '\0'};
	char name[MANIFEST_NAME];
	int r = 0;

	manifest->n_columns = manifest->row.n;
	for (unsigned i = 0; i < manifest->n_columns; i++) {
		if (!name_of(row, &manifest->row.field[i], name, sizeof(name)))
			continue; /* longer than any that is asked for */
		if (strcmp(name, "offset") == 0)
			manifest->offset = i + 1;
		for (unsigned column = 0; column < COLUMNS && !r; column++)
			r = take_name(manifest, column, is_named[column], name, i, sink);
	}
	for (unsigned column = 0; column < COLUMNS && !r; column++)
		if (!manifest->has[column] && (column == COLUMN_PATH || is_named[column]))
			r = refuse_columns(manifest, row, column, is_named[column], sink);
	manifest->has_columns = true;
	return r;
}

static int take_field(const struct manifest *manifest, const uint8_t *row, enum column column,
		      char *ret, size_t room, struct scan_sink *sink)
{
	ret[0] = '\0';
	if (manifest->has[column] &&
	    !csv_text(row, &manifest->row.field[manifest->column[column]], ret, room))
		return bad_column(manifest, sink, column,
				  column == COLUMN_PATH ? "is longer than 4095 bytes"
							: "is longer than 255 bytes; is it the "
							  "column of classes?");
	return 0;
}

/* NeMo's rows may be parts of files, and a sample here is a whole one. */
static int refuse_part(const struct manifest *manifest, const char *how, struct scan_sink *sink)
{
	return scan_bad(sink, manifest->line,
			"it has an offset, and files are read whole here: parts of them come by "
			"oneaccess.%s",
			how);
}

static int take_offset(const struct manifest *manifest, const uint8_t *row, struct scan_sink *sink)
{
	char text[64], *end = text;

	if (!manifest->offset || strcmp(manifest->name[COLUMN_PATH], "audio_filepath") != 0)
		return 0;
	if (csv_text(row, &manifest->row.field[manifest->offset - 1], text, sizeof(text)) &&
	    (!*text || (strtod(text, &end) == 0 && end != text && !*end)))
		return 0;
	return refuse_part(manifest, "from_csv(..., files=\"audio_filepath\", start=\"offset\")",
			   sink);
}

static int take_csv(struct manifest *manifest, const uint8_t *row, uint64_t at,
		    struct scan_sink *sink)
{
	int r;

	if (manifest->row.n == 0)
		return 0;
	if (memchr(row, 0, manifest->row.bytes))
		return scan_bad(sink, manifest->line,
				"there is a zero byte: save the file as UTF-8");
	if (!manifest->has_columns)
		return take_columns(manifest, row, sink);
	if (manifest->row.n != manifest->n_columns)
		return scan_bad(sink, manifest->line,
				"it has %u fields, and the first row names %u columns",
				manifest->row.n, manifest->n_columns);
	r = take_field(manifest, row, COLUMN_PATH, manifest->path, sizeof(manifest->path), sink);
	if (!r)
		r = take_field(manifest, row, COLUMN_LABEL, manifest->label,
			       sizeof(manifest->label), sink);
	if (!r)
		r = take_offset(manifest, row, sink);
	return r ? r : give_row(manifest, at, manifest->row.bytes, sink);
}

/* What comes next; *ret: its bytes. 0, MANIFEST_E_MORE, or as scan_bad(). */
typedef int (*step_fn)(struct manifest *manifest, const uint8_t *bytes, size_t size, bool is_last,
		       uint64_t at, struct scan_sink *sink, size_t *ret);
struct form { /* of a manifest, by its suffix */
	const char *suffix;
	step_fn step;
	char separator;
};

static int step_csv(struct manifest *manifest, const uint8_t *bytes, size_t size, bool is_last,
		    uint64_t at, struct scan_sink *sink, size_t *ret)
{
	int r = csv_row(bytes, size, is_last, manifest->form->separator, &manifest->row);

	if (r == CSV_E_MORE)
		return MANIFEST_E_MORE;
	r = r ? scan_bad(sink, manifest->line, "%s", manifest->row.why)
	      : take_csv(manifest, bytes, at, sink);
	manifest->line += manifest->row.lines;
	*ret = manifest->row.bytes;
	return r;
}

/* ---- JSON lines ---- */

static const struct json_in *find_member(struct manifest *manifest, const struct json_in *object,
					 enum column column, bool is_named)
{
	const struct json_in *found = NULL;

	if (is_named)
		return json_in_member(object, manifest->name[column]);
	for (const char *word = usual[column]; *word && !found; word += strlen(word) + 1) {
		found = json_in_member(object, word);
		if (found)
			snprintf(manifest->name[column], MANIFEST_NAME, "%s", word);
	}
	return found;
}

static int take_path(struct manifest *manifest, const struct json_in *value, struct scan_sink *sink)
{
	const char *text = json_in_string(value, "");

	if (!value && !*manifest->name[COLUMN_PATH])
		return scan_bad(sink, manifest->line,
				"no member is called file_name or path: name the pictures' by "
				"?path=MEMBER, or read rows without by oneaccess.from_jsonl()");
	if (strlen(text) >= sizeof(manifest->path))
		return bad_column(manifest, sink, COLUMN_PATH, "is longer than 4095 bytes");
	strcpy(manifest->path, text);
	return 0;
}

static int take_value(struct manifest *manifest, const struct json_in *value,
		      struct scan_sink *sink)
{
	const char *text;

	manifest->label[0] = '\0';
	switch (json_in_kind_of(value)) {
	case JSON_IN_NULL:
		return 0;
	case JSON_IN_INTEGER:
		snprintf(manifest->label, sizeof(manifest->label), "%lld",
			 (long long)json_in_i64(value, 0));
		return 0;
	case JSON_IN_STRING:
		text = json_in_string(value, "");
		if (strlen(text) >= sizeof(manifest->label))
			return bad_column(manifest, sink, COLUMN_LABEL,
					  "is longer than 255 bytes; is it the member of classes?");
		strcpy(manifest->label, text);
		return 0;
	default:
		return bad_column(manifest, sink, COLUMN_LABEL, MANIFEST_NO_CLASS);
	}
}

static int take_offset_of(const struct manifest *manifest, const struct json_in *object,
			  struct scan_sink *sink)
{
	const struct json_in *offset = json_in_member(object, "offset");

	if (strcmp(manifest->name[COLUMN_PATH], "audio_filepath") != 0 ||
	    json_in_kind_of(offset) == JSON_IN_NULL || json_in_double(offset, 1) == 0)
		return 0;
	return refuse_part(manifest, "from_jsonl(..., files=\"audio_filepath\")", sink);
}

static int take_object(struct manifest *manifest, const struct json_in *object, uint64_t at,
		       size_t bytes, struct scan_sink *sink)
{
	const bool is_named = manifest->has[COLUMN_PATH], is_labelled = manifest->has[COLUMN_LABEL];
	int r;

	if (json_in_kind_of(object) != JSON_IN_OBJECT)
		return scan_bad(sink, manifest->line,
				"it is no JSON object: a row is {\"file_name\": ..., ...}");
	r = take_path(manifest, find_member(manifest, object, COLUMN_PATH, is_named), sink);
	if (!r)
		r = take_offset_of(manifest, object, sink);
	if (!r)
		r = take_value(manifest, find_member(manifest, object, COLUMN_LABEL, is_labelled),
			       sink);
	return r ? r : give_row(manifest, at, bytes, sink);
}

static int step_json(struct manifest *manifest, const uint8_t *bytes, size_t size, bool is_last,
		     uint64_t at, struct scan_sink *sink, size_t *ret)
{
	const uint8_t *end = memchr(bytes, '\n', size);
	const size_t row = end ? (size_t)(end - bytes) : size;
	_cleanup_json_ struct json_in *object = NULL;
	struct diag diag;
	int r = 0;

	if (!end && !is_last)
		return MANIFEST_E_MORE;
	for (size_t i = 0; i < row && !r; i++)
		r = bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r';
	*ret = row + (end != NULL);
	if (r) {
		r = json_in_parse((const char *)bytes, row, SCAN_MOST_WANT, &object, &diag);
		if (r)
			return scan_bad(sink, manifest->line, "%s",
					r < 0 ? "there is not enough memory" : diag.text);
		r = take_object(manifest, object, at, *ret, sink);
	}
	manifest->line += end != NULL;
	return r;
}

/* ---- pairs ---- */

static int take_two(struct manifest *manifest, const struct json_in *pair, uint64_t at,
		    size_t bytes, struct scan_sink *sink)
{
	const struct json_in *file = json_in_item(pair, 0);
	int r;

	if (json_in_count(pair) != 2 || json_in_kind_of(file) != JSON_IN_STRING)
		return scan_bad(sink, manifest->line,
				"it is no pair of a file and its class: [\"00000/a.png\", 6]");
	r = take_path(manifest, file, sink);
	if (!r)
		r = take_value(manifest, json_in_item(pair, 1), sink);
	return r ? r : give_row(manifest, at, bytes, sink);
}

static int step_pairs(struct manifest *manifest, const uint8_t *bytes, size_t size, bool is_last,
		      uint64_t at, struct scan_sink *sink, size_t *ret)
{
	_cleanup_json_ struct json_in *pair = NULL;
	const bool is_begin = manifest->place == PAIRS_BEGIN;
	struct pairs_step step;
	struct diag diag;
	int r = pairs_step(&manifest->place, bytes, size, is_last, &step);

	if (r == PAIRS_E_MORE)
		return MANIFEST_E_MORE;
	if (r && is_begin)
		return scan_bad(
		    sink, manifest->line,
		    "it does not begin with {\"labels\": [[FILE, CLASS], as StyleGAN's "
		    "dataset.json: other tables of JSON have a row a line (.jsonl), and COCO's "
		    "annotations come by oneaccess.from_coco()");
	if (r)
		return scan_bad(
		    sink, manifest->line,
		    "it is cut off, or has more than {\"labels\": [[FILE, CLASS], ...]}");
	*ret = step.bytes;
	if (step.pair) {
		r = json_in_parse((const char *)bytes + step.at, step.pair, SCAN_MOST_WANT, &pair,
				  &diag);
		if (r)
			return scan_bad(sink, manifest->line, "%s",
					r < 0 ? "there is not enough memory" : diag.text);
		r = take_two(manifest, pair, at + step.at, step.pair, sink);
	}
	for (size_t i = 0; i < step.bytes; i++)
		manifest->line += bytes[i] == '\n';
	return r;
}

/* ---- the scan ---- */

static const struct form forms[] = {
    {".csv", step_csv, ','},   {".tsv", step_csv, '\t'}, {".jsonl", step_json, 0},
    {".ndjson", step_json, 0}, {".json", step_pairs, 0},
};

/* Behind a byte order mark. */
static size_t begin_of(const uint8_t *bytes, size_t size)
{
	return size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static int want(struct manifest *manifest, uint64_t at, bool is_cut, struct scan_sink *sink,
		struct scan_want *ret)
{
	if (at == manifest->file_bytes)
		return SCAN_E_END;
	if (is_cut && manifest->wanted == SCAN_MOST_WANT)
		return scan_bad(sink, manifest->line, "the row has more than 1 MiB%s",
				manifest->form->separator ? "; is a quote of it never closed?"
							  : "");
	if (is_cut)
		manifest->wanted *= 2;
	return scan_wants(at, BASE_MIN((uint64_t)manifest->wanted, manifest->file_bytes - at), ret);
}

static int manifest_feed(void *state, uint64_t at, const uint8_t *bytes, uint32_t size,
			 struct scan_sink *sink, struct scan_want *ret)
{
	struct manifest *manifest = state;
	const bool is_last = at + size >= manifest->file_bytes;
	size_t used = at == 0 ? begin_of(bytes, size) : 0, step = 0;
	const size_t begin = used;
	int r = 0;

	if (at == 0 && size >= 2 && bytes[0] >= 0xfe && bytes[1] >= 0xfe)
		return scan_bad(sink, manifest->line, "it is UTF-16: save it as UTF-8");
	while (used < size && !r) {
		r = manifest->form->step(manifest, bytes + used, size - used, is_last, at + used,
					 sink, &step);
		used += r ? 0 : step;
	}
	if (r && r != MANIFEST_E_MORE)
		return r;
	return want(manifest, at + used, r && used == begin, sink, ret);
}

static bool has_suffix(const char *name, const char *suffix)
{
	const size_t length = strlen(name), size = strlen(suffix);

	return length > size && strcasecmp(name + length - size, suffix) == 0;
}

static int manifest_begin(void *state, const struct scan_shard *shard, struct scan_sink *sink,
			  struct scan_want *ret)
{
	struct manifest *manifest = state;

	memset(manifest, 0, sizeof(*manifest));
	manifest->form = &forms[0];
	for (size_t i = 0; i < BASE_ARRAY_LEN(forms); i++)
		if (has_suffix(shard->name, forms[i].suffix))
			manifest->form = &forms[i];
	manifest->file_bytes = shard->bytes;
	manifest->line = 1;
	manifest->wanted = MANIFEST_WINDOW;
	if (!scan_option(shard->options, "path", manifest->name[COLUMN_PATH], MANIFEST_NAME) ||
	    !scan_option(shard->options, "label", manifest->name[COLUMN_LABEL], MANIFEST_NAME))
		return scan_bad(sink, manifest->line,
				"the name of a column has more than 255 bytes");
	for (unsigned i = 0; i < COLUMNS && !manifest->form->separator; i++)
		manifest->has[i] = *manifest->name[i] != '\0';
	if (manifest->form->step != step_pairs)
		return want(manifest, 0, false, sink, ret);
	if (manifest->has[COLUMN_PATH] || manifest->has[COLUMN_LABEL])
		return scan_bad(sink, manifest->line,
				"it has pairs and no columns: leave out path= and label=");
	strcpy(manifest->name[COLUMN_PATH], "file");
	strcpy(manifest->name[COLUMN_LABEL], "class");
	return want(manifest, 0, false, sink, ret);
}

const struct source_scan scan_manifest = {
    .name = "manifest",
    .state_bytes = sizeof(struct manifest),
    .begin = manifest_begin,
    .feed = manifest_feed,
};

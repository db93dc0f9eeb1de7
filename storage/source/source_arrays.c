/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples whose fields lie in arrays beside each other (source_arrays.h). Where a sample's values are follows from its number, or, of a
 * ragged field, from the two numbers of it in NAME.places.npy, which are looked up with each sample and held against the file: any
 * numbers may stand there. Workers get a record of the second version (pipeline/forms/packed.h), as of a wrapped data set.
 *
 * Files stay open. They are compared with their sizes and times behind each read, so who goes on writing to them while jobs read ends those
 * jobs with "dataset changed". Which samples were written is read once, when they are opened, a bit of memory for each.
 */

#include "storage/source/source_arrays.h"

#include "base/hash.h"
#include "base/little.h"
#include "storage/source/numbered.h"
#include "storage/source/scan/scan_option.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_npy.h"
#include "storage/walk.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define ARRAYS_WRITTEN "written.npy"
#define ARRAYS_TEXT 1024
#define ARRAYS_NAME 64
#define ARRAYS_DIMS 4 /* of a field */
#define ARRAYS_AT_ONCE \
	65536 /* bytes of written.npy; and of samples that a thread asks for together */
#define RECORD_MAGIC UINT64_C(0x3244524352214f41) /* PACKED_WIDE_MAGIC */

struct field {
	char file[ARRAYS_NAME + 16], places_file[ARRAYS_NAME + 16];
	struct source_npy values, places; /* of places fd -1: not ragged */
	uint64_t most;                    /* rows; of one that is not ragged 1 */
};

struct arrays {
	struct field field[ARRAYS_MOST];
	unsigned n;
	uint64_t count;
	struct source_npy written; /* fd -1: there is none, and all are */
	uint8_t *bits;             /* owned; NULL: all are written */
	struct hash_id id;
};

static bool is_ragged(const struct field *field)
{
	return field->places.from.fd >= 0;
}

/* Values of a row. */
static uint64_t row_of(const struct field *field)
{
	return field->values.npy.row_values;
}

void arrays_free(struct arrays *arrays)
{
	if (!arrays)
		return;
	for (unsigned i = 0; i < arrays->n; i++) {
		source_npy_close(&arrays->field[i].values);
		source_npy_close(&arrays->field[i].places);
	}
	source_npy_close(&arrays->written);
	free(arrays->bits);
	free(arrays);
}

uint64_t arrays_count(const struct arrays *arrays)
{
	return arrays->count;
}

unsigned arrays_fields(const struct arrays *arrays)
{
	return arrays->n;
}

const struct hash_id *arrays_id(const struct arrays *arrays)
{
	return &arrays->id;
}

static uint64_t room_of(const struct field *field)
{
	return field->most * row_of(field) * number_batch_bytes(field->values.npy.number);
}

uint64_t arrays_room(const struct arrays *arrays)
{
	uint64_t room = 0;

	for (unsigned i = 0; i < arrays->n; i++)
		room += arrays_up(room_of(&arrays->field[i]));
	return room;
}

/* ---- opening ---- */

struct opening {
	const struct reader_dataset *dataset;
	const struct scan_progress *progress;
	int folder_fd;
	struct arrays *arrays;
	struct diag *why;
};

/* As many samples as the others? */
static int count_samples(struct opening *opening, const struct source_npy *npy)
{
	struct arrays *arrays = opening->arrays;

	if (!arrays->count)
		arrays->count = npy->npy.shape[0];
	if (!npy->npy.shape[0] || arrays->count != npy->npy.shape[0])
		return diag_fail(opening->why, DATASET_E_REFUSED,
				 "\"%s\" has %llu samples, and \"%s\" %llu: they are not of one "
				 "data set",
				 BASE_QUOTED(npy->from.name, 100),
				 (unsigned long long)npy->npy.shape[0],
				 BASE_QUOTED(arrays->field[0].values.from.name, 100),
				 (unsigned long long)arrays->count);
	if (arrays->count > INDEX_MAX_SAMPLES)
		return diag_fail(
		    opening->why, DATASET_E_REFUSED, "\"%s\" has %llu samples, more than 2^32",
		    BASE_QUOTED(npy->from.name, 100), (unsigned long long)arrays->count);
	return 0;
}

static int open_npy(const struct opening *opening, const char *name, struct source_npy *ret)
{
	return source_npy_open(opening->dataset, opening->progress, opening->folder_fd, name, ret,
			       opening->why);
}

static int open_places(struct opening *opening, struct field *field)
{
	const struct npy *npy = &field->places.npy;
	int r = open_npy(opening, field->places_file, &field->places);

	if (!r && (npy->number != NUMBER_I64 || npy->ndim != 2 || npy->shape[1] != 2))
		r = diag_fail(opening->why, DATASET_E_REFUSED,
			      "\"%s\" is no array int64 [samples, 2]: where each sample's rows "
			      "begin, and how many they are",
			      BASE_QUOTED(field->places_file, 100));
	return r ? r : count_samples(opening, &field->places);
}

/* "latent", "text:77"; its file's name is in it. */
static int open_field(struct opening *opening, struct field *field)
{
	const struct npy *npy = &field->values.npy;
	unsigned ndim;
	int r = open_npy(opening, field->file, &field->values);

	if (!r && field->most)
		r = open_places(opening, field);
	else if (!r)
		r = count_samples(opening, &field->values);
	if (r)
		return r;
	ndim = is_ragged(field) ? npy->ndim : npy->ndim - 1;
	field->most = is_ragged(field) ? field->most : 1;
	if (ndim > ARRAYS_DIMS)
		return diag_fail(opening->why, DATASET_E_REFUSED,
				 "the samples of \"%s\" have more than four dimensions",
				 BASE_QUOTED(field->file, 100));
	if (field->most > UINT32_MAX / (row_of(field) * number_batch_bytes(npy->number)))
		return diag_fail(opening->why, DATASET_E_REFUSED,
				 "%llu rows of \"%s\" have more than 4 GiB",
				 (unsigned long long)field->most, BASE_QUOTED(field->file, 100));
	return 0;
}

static int refuse_fields(const struct opening *opening)
{
	return diag_fail(opening->why, DATASET_E_REFUSED,
			 "fields is a list of names of letters, digits and _, at most %u of them, "
			 "of ragged ones with the most rows: fields=latent;text:77",
			 ARRAYS_MOST);
}

/* One of the list, from *text on, which goes behind it. */
static int add_field(struct opening *opening, const char **text)
{
	static const char letters[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
	const size_t length = strspn(*text, letters);
	struct arrays *arrays = opening->arrays;
	struct field *field;

	if (!length || length > ARRAYS_NAME || arrays->n == ARRAYS_MOST)
		return refuse_fields(opening);
	field = &arrays->field[arrays->n++];
	field->values.from.fd = field->places.from.fd = -1;
	snprintf(field->file, sizeof(field->file), "%.*s.npy", (int)length, *text);
	snprintf(field->places_file, sizeof(field->places_file), "%.*s.places.npy", (int)length,
		 *text);
	*text += length;
	if (**text == ':') {
		++*text;
		if (!base_parse_number(text, UINT32_MAX, &field->most) || !field->most)
			return refuse_fields(opening);
	}
	return open_field(opening, field);
}

/* ---- which are written ---- */

static int read_bits(struct opening *opening, uint8_t *bytes)
{
	struct arrays *arrays = opening->arrays;
	struct source_npy *written = &arrays->written;

	for (uint64_t done = 0; done < arrays->count; done += ARRAYS_AT_ONCE) {
		const uint64_t n = BASE_MIN(arrays->count - done, (uint64_t)ARRAYS_AT_ONCE);
		const int r = source_read(&written->from, bytes, n, written->npy.data_at + done);

		if (r)
			return source_read_failed(&written->from, r, opening->why);
		for (uint64_t i = 0; i < n; i++)
			if (bytes[i])
				arrays->bits[(done + i) / 8] |= (uint8_t)(1u << (i % 8));
	}
	return 0;
}

static int open_written(struct opening *opening)
{
	struct arrays *arrays = opening->arrays;
	const struct npy *npy = &arrays->written.npy;
	_cleanup_free_ uint8_t *bytes = NULL;
	struct stat st;
	int r;

	if (fstatat(opening->folder_fd, ARRAYS_WRITTEN, &st, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	r = open_npy(opening, ARRAYS_WRITTEN, &arrays->written);
	if (!r && (npy->number != NUMBER_U8 || npy->ndim != 1))
		r = diag_fail(opening->why, DATASET_E_REFUSED,
			      "\"" ARRAYS_WRITTEN "\" is no array uint8 [samples]");
	r = r ? r : count_samples(opening, &arrays->written);
	if (r)
		return r;
	if (!scan_takes(opening->progress, arrays->count / 8 + ARRAYS_AT_ONCE))
		return DATASET_E_ROOM;
	bytes = malloc(ARRAYS_AT_ONCE);
	arrays->bits = calloc(arrays->count / 8 + 1, 1);
	return bytes && arrays->bits ? read_bits(opening, bytes) : -ENOMEM;
}

/* ---- all of it ---- */

static void name_file(struct hash *hash, const struct source_npy *npy)
{
	if (npy->from.fd < 0)
		return;
	hash_add(hash, npy->from.name, strlen(npy->from.name) + 1);
	hash_add_u64(hash, npy->bytes);
	hash_add_u64(hash, (uint64_t)npy->mtime_ns);
}

static int name_it(struct arrays *arrays)
{
	struct hash *hash;
	int r = hash_new(&hash);

	if (r)
		return r;
	for (unsigned i = 0; i < arrays->n; i++) {
		name_file(hash, &arrays->field[i].values);
		name_file(hash, &arrays->field[i].places);
	}
	name_file(hash, &arrays->written);
	hash_finish(hash, &arrays->id);
	hash_free(hash);
	return 0;
}

int arrays_open(const struct reader_dataset *dataset, const struct scan_progress *progress,
		int folder_fd, const char *fields, struct arrays **ret, struct diag *why)
{
	struct opening opening = {.dataset = dataset,
				  .progress = progress,
				  .folder_fd = folder_fd,
				  .arrays = calloc(1, sizeof(struct arrays)),
				  .why = why};
	int r;

	if (!opening.arrays)
		return -ENOMEM;
	opening.arrays->written.from.fd = -1;
	do
		r = add_field(&opening, &fields);
	while (!r && *fields++ == ';');
	if (!r && fields[-1])
		r = refuse_fields(&opening);
	r = r ? r : open_written(&opening);
	r = r ? r : name_it(opening.arrays);
	if (r)
		arrays_free(opening.arrays);
	else
		*ret = opening.arrays;
	return r;
}

/* ---- a record ---- */

void arrays_put_head(uint8_t *record, unsigned n_fields, uint64_t bytes)
{
	memset(record, 0, ARRAYS_PLACE);
	little_put_64(record, RECORD_MAGIC);
	little_put_64(record + 8, bytes);
	little_put_32(record + 16, n_fields);
}

uint64_t arrays_put_place(uint8_t *record, unsigned field, const struct arrays_place *place)
{
	uint8_t *at = record + (uint64_t)ARRAYS_PLACE * (1 + field);
	const uint64_t end = place->at + place->bytes;

	memset(at, 0, ARRAYS_PLACE);
	little_put_32(at, place->dtype);
	little_put_32(at + 4, place->ndim);
	for (unsigned i = 0; i < place->ndim; i++)
		little_put_64(at + 8 + 8 * i, place->shape[i]);
	little_put_64(at + 40, place->at);
	little_put_64(at + 48, place->bytes);
	memset(record + end, 0, arrays_up(end) - end);
	return arrays_up(end);
}

/* Rows of the field's file, into their place; widened from its end to its begin, as rows are (source_rows.c). */
static int read_rows(const struct field *field, uint64_t from, uint64_t rows, uint8_t *to)
{
	const enum number number = field->values.npy.number;
	const uint64_t row = row_of(field), raw = row * number_bytes(number);
	const uint64_t more = rows * row * (number_batch_bytes(number) - number_bytes(number));
	struct source_from file = field->values.from;
	const int r =
	    source_read(&file, to + more, rows * raw, field->values.npy.data_at + from * raw);

	if (!r && more)
		number_widen(number, to + more, rows * row, to);
	return r;
}

/* Where a sample's rows begin, and how many they are. */
static int look_up(const struct field *field, uint64_t sample, uint64_t *ret_from,
		   uint64_t *ret_rows)
{
	const uint64_t all = field->values.npy.shape[0];
	struct source_from file = field->places.from;
	uint8_t raw[16];
	int r;

	*ret_from = sample;
	*ret_rows = 1;
	if (!is_ragged(field))
		return 0;
	r = source_read(&file, raw, sizeof(raw), field->places.npy.data_at + sample * sizeof(raw));
	*ret_from = little_64(raw);
	*ret_rows = little_64(raw + 8);
	if (!r && (*ret_rows > all || *ret_from > all - *ret_rows))
		r = ARRAYS_E_BAD;
	if (!r && *ret_rows > field->most)
		r = ARRAYS_E_LONG;
	return r;
}

static int read_field(const struct field *field, uint64_t sample, uint8_t *record, unsigned number,
		      uint64_t *at)
{
	const struct npy *npy = &field->values.npy;
	struct arrays_place place = {.dtype = number_batch_dtype(npy->number), .at = *at};
	uint64_t from, rows;
	int r = look_up(field, sample, &from, &rows);

	if (r)
		return r;
	place.bytes = rows * row_of(field) * number_batch_bytes(npy->number);
	if (is_ragged(field))
		place.shape[place.ndim++] = rows;
	for (unsigned i = 1; i < npy->ndim; i++)
		place.shape[place.ndim++] = npy->shape[i];
	r = read_rows(field, from, rows, record + place.at);
	if (!r)
		*at = arrays_put_place(record, number, &place);
	return r;
}

int arrays_read(const struct arrays *arrays, uint64_t sample, uint8_t *record, unsigned first,
		uint64_t *at)
{
	int r = 0;

	if (arrays->bits && !(arrays->bits[sample / 8] & 1u << (sample % 8)))
		return ARRAYS_E_NONE;
	for (unsigned i = 0; i < arrays->n && !r; i++)
		r = read_field(&arrays->field[i], sample, record, first + i, at);
	return r;
}

static bool is_same(const struct source_npy *npy)
{
	struct stat st;

	return npy->from.fd < 0 ||
	       (fstat(npy->from.fd, &st) == 0 && walk_is_same(&st, npy->bytes, npy->mtime_ns));
}

/* ---- the kind ---- */

static uint64_t record_bytes(const struct arrays *arrays)
{
	return (uint64_t)ARRAYS_PLACE * (1 + arrays->n) + arrays_room(arrays);
}

static int arrays_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
			struct diag *diag)
{
	char fields[ARRAYS_TEXT];
	struct diag why = {.text = ""};
	struct arrays *arrays;
	int r;

	if (!dataset->is_folder || dataset->pattern)
		return SOURCE_E_NONE;
	if (!scan_option(dataset->options, "fields", fields, sizeof(fields)))
		return diag_fail(diag, DATASET_E_REFUSED,
				 "the option fields of dataset \"%s\" is too long",
				 BASE_QUOTED(dataset->shown, 300));
	if (!*fields)
		return SOURCE_E_NONE;
	if (dataset->bucket)
		return diag_fail(diag, DATASET_E_REFUSED,
				 "dataset \"%s\" is refused: arrays beside each other are read "
				 "from files of this machine: copy them, or mount the store",
				 BASE_QUOTED(dataset->shown, 300));
	r = arrays_open(dataset, progress, dataset->root_fd, fields, &arrays, &why);
	if (!r)
		dataset->source = arrays;
	if (!r && record_bytes(arrays) > UINT32_MAX)
		r = diag_fail(&why, DATASET_E_REFUSED, "it has samples of more than 4 GiB");
	if (r == DATASET_E_REFUSED)
		diag_set(diag, "dataset \"%s\" is refused: %s", BASE_QUOTED(dataset->shown, 300),
			 why.text);
	else if (r)
		*diag = why;
	return r;
}

static int arrays_index(struct reader_dataset *dataset, unsigned threads,
			const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	const struct arrays *arrays = dataset->source;
	const struct index_record record = {.mtime_ns = arrays->field[0].values.mtime_ns,
					    .size = (uint32_t)record_bytes(arrays)};
	_cleanup_free_ char *options = NULL;
	char id[65];
	int r;

	(void)threads;
	options = base_format("%s,arrays=%s", dataset->options, hash_hex(&arrays->id, id));
	if (!options)
		return -ENOMEM;
	r = numbered_index(arrays->count, &record, options, progress, ret_fd);
	if (r < 0)
		diag_set(diag, "cannot make the index of %llu samples: %s",
			 (unsigned long long)arrays->count, strerror(-r));
	return r ? r : source_map_new(dataset, ret_fd, diag);
}

void arrays_outcome(int r, struct reader_outcome *ret)
{
	static const char *const texts[] = {
	    [ARRAYS_E_NONE] = "nothing was written of this sample",
	    [ARRAYS_E_LONG] = "a field has more rows than the most that was said",
	    [ARRAYS_E_BAD] = "its rows are not in the file: it is damaged",
	};

	if (r == 0)
		ret->stage = LAYOUT_FAIL_NONE;
	else
		reader_outcome_set(ret, LAYOUT_FAIL_READ, r > 0 ? ENODATA : -r,
				   r > 0 ? texts[r] : strerror(-r));
}

static int read_record(const struct arrays *arrays, uint64_t sample, uint8_t *buffer)
{
	uint64_t at = (uint64_t)ARRAYS_PLACE * (1 + arrays->n);
	const int r =
	    sample < arrays->count ? arrays_read(arrays, sample, buffer, 0, &at) : -EINVAL;

	if (!r)
		arrays_put_head(buffer, arrays->n, at);
	return r;
}

bool arrays_check(const struct arrays *arrays, struct reader_outcome *ret)
{
	bool are = is_same(&arrays->written);

	for (unsigned i = 0; i < arrays->n && are; i++)
		are = is_same(&arrays->field[i].values) && is_same(&arrays->field[i].places);
	if (!are)
		reader_outcome_set(ret, LAYOUT_FAIL_CHANGED, LAYOUT_CHANGED_ALL,
				   "a file was written to since it was opened");
	return are;
}

static void arrays_read_sample(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			       uint8_t *buffer, struct reader_outcome *ret)
{
	const struct arrays *arrays = dataset->source;
	const int r = buffer ? read_record(arrays, sample, buffer) : 0;

	(void)root_fd;
	arrays_outcome(r, ret);
	arrays_check(arrays, ret);
}

static unsigned arrays_most(const struct reader_dataset *dataset, const struct reader_link *link)
{
	const uint64_t bytes = record_bytes(dataset->source);

	(void)link;
	return (unsigned)BASE_MAX(BASE_MIN(ARRAYS_AT_ONCE / bytes, (uint64_t)SOURCE_MOST_MADE), 1);
}

/* Files are compared once behind all of them. */
static void arrays_many(const struct reader_dataset *dataset, struct reader_many *many)
{
	const struct arrays *arrays = dataset->source;
	struct reader_outcome outcome;

	for (unsigned i = 0; i < many->n; i++) {
		struct reader_wanted *wanted = &many->wanted[i];

		arrays_outcome(read_record(arrays, wanted->task->sample, wanted->buffer),
			       &wanted->outcome);
	}
	if (!arrays_check(arrays, &outcome))
		return;
	for (unsigned i = 0; i < many->n; i++)
		many->wanted[i].is_settled = true;
}

static void arrays_close(struct reader_dataset *dataset)
{
	arrays_free(dataset->source);
}

const struct source_ops source_arrays = {
    .name = "arrays",
    .is_fleeting = true,
    .unconverted = "has arrays of numbers, no pictures: each is read where it lies, and there is "
		   "nothing to convert",
    .options = "fields\0",
    .probe = arrays_probe,
    .index = arrays_index,
    .read = arrays_read_sample,
    .most = arrays_most,
    .many = arrays_many,
    .close = arrays_close,
};

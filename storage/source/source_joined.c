/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A data set of pictures, of whatever kind, with fields beside it that were computed of its samples (access-outputs(5)): options of
 * its path,
 *
 *	beside=FOLDER,fields=latent;text:77	arrays in that folder (source_arrays.h), whose row i is sample i's
 *	of=VERSION				the data set's version of which they are; another one is refused
 *
 * It has the data set in it, opened as it is without these options, and asks that one's kind for the bytes of a picture. Around them it
 * makes a record (pipeline/forms/packed.h) of the picture's file, its label and the fields. Names, labels and the order of the samples are the
 * data set's, so ids are. Its index is made of that one's, and not stored.
 */

#include "storage/source/source_arrays.h"

#include "base/hash.h"
#include "base/little.h"
#include "base/number.h"
#include "storage/index.h"
#include "storage/openness.h"
#include "storage/reader_parts.h"
#include "storage/source/scan/scan_option.h"
#include "storage/source/source_kind.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#define JOINED_TEXT 1024
#define JOINED_FIRST 2 /* fields of a record before those beside: picture and label */
#define JOINED_LABEL 8 /* bytes */

struct joined {                     /* dataset->source of one */
	struct reader_dataset base; /* with a root of its own; its texts are the data set's */
	char *options, *own;        /* owned: the base's, and these */
	char folder[PATH_MAX], fields[JOINED_TEXT], of[65];
	int folder_fd;         /* owned */
	struct arrays *arrays; /* owned */
};

static void joined_free(struct joined *joined)
{
	if (joined->base.ops && joined->base.ops->close && joined->base.source)
		joined->base.ops->close(&joined->base);
	source_unmap(&joined->base);
	arrays_free(joined->arrays);
	base_close(&joined->base.root_fd);
	base_close(&joined->folder_fd);
	free(joined->options);
	free(joined->own);
	free(joined);
}

static uint64_t head_bytes(const struct joined *joined)
{
	return (uint64_t)ARRAYS_PLACE * (1 + JOINED_FIRST + arrays_fields(joined->arrays));
}

/* Of a record, beside the picture's bytes. */
static uint64_t more_bytes(const struct joined *joined)
{
	return head_bytes(joined) + arrays_up(JOINED_LABEL) + arrays_room(joined->arrays);
}

/* ---- opening ---- */

BASE_PRINTF(3, 4)
static int refuse(const struct reader_dataset *dataset, struct diag *diag, const char *fmt, ...)
{
	char text[sizeof(diag->text)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return diag_fail(diag, DATASET_E_REFUSED, "what is beside dataset \"%s\" is refused: %s",
			 BASE_QUOTED(dataset->shown, 300), text);
}

static bool is_own(const struct scan_option *option)
{
	static const char *const words[] = {"beside", "fields", "of"};

	for (size_t i = 0; i < BASE_ARRAY_LEN(words); i++)
		if (option->key_bytes == strlen(words[i]) &&
		    memcmp(option->key, words[i], option->key_bytes) == 0)
			return true;
	return false;
}

/* false: there is no memory. */
static bool part_options(const char *options, struct joined *joined)
{
	const size_t size = strlen(options) + 2;
	struct scan_option option;

	joined->options = calloc(1, size);
	joined->own = calloc(1, size);
	if (!joined->options || !joined->own)
		return false;
	for (const char *at = options, *before = at; scan_option_next(&at, &option); before = at) {
		char *to = is_own(&option) ? joined->own : joined->options;
		const size_t length = (size_t)(at - before);
		const bool has_comma = length && before[length - 1] == ',';

		if (*to)
			strcat(to, ",");
		strncat(to, before, length - has_comma);
	}
	return true;
}

/* The data set without what is beside it. As probe(). */
static int open_base(const struct reader_dataset *dataset, struct joined *joined,
		     const struct scan_progress *progress, struct diag *diag)
{
	struct reader_dataset *base = &joined->base;
	int r;

	*base = (struct reader_dataset){
	    .root_fd = fcntl(dataset->root_fd, F_DUPFD_CLOEXEC, 3),
	    .root = dataset->root,
	    .no_atime = dataset->no_atime,
	    .is_folder = dataset->is_folder,
	    .path = dataset->path,
	    .shown = dataset->shown,
	    .name = dataset->name,
	    .options = joined->options,
	    .root_path = dataset->root_path,
	    .pattern = dataset->pattern,
	    .how = dataset->how,
	    .stored_fd = -1,
	};
	if (base->root_fd < 0)
		return -errno;
	r = source_probe(base, progress, diag);
	if (!r && (base->ops->make || base->ops == &source_rows || base->ops == &source_arrays))
		return refuse(dataset, diag,
			      "the data set has no pictures; open what is beside it alone");
	return r;
}

static int open_beside(const struct reader_dataset *dataset, struct joined *joined,
		       const struct scan_progress *progress, struct diag *diag)
{
	struct diag why = {.text = ""};
	int r;

	if (joined->folder[0] != '/')
		return refuse(dataset, diag, "beside is the path of a folder, an absolute one");
	joined->folder_fd = open(joined->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (joined->folder_fd < 0)
		return refuse(dataset, diag, "\"%s\": %s", BASE_QUOTED(joined->folder, 200),
			      strerror(errno));
	if (progress->open_only && !openness_of_way(joined->folder_fd))
		return diag_fail(diag, DATASET_E_CLOSED,
				 "the way to what is beside it is not open to everybody");
	r = arrays_open(&joined->base, progress, joined->folder_fd, joined->fields, &joined->arrays,
			&why);
	if (r == DATASET_E_REFUSED)
		return refuse(dataset, diag, "%s", why.text);
	if (r)
		*diag = why;
	return r;
}

static int joined_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
			struct diag *diag)
{
	struct joined *joined = calloc(1, sizeof(*joined));
	const char *options = dataset->options;
	int r = 0;

	if (!joined)
		return -ENOMEM;
	joined->folder_fd = joined->base.root_fd = -1;
	if (!scan_option(options, "beside", joined->folder, sizeof(joined->folder)) ||
	    !scan_option(options, "fields", joined->fields, sizeof(joined->fields)) ||
	    !scan_option(options, "of", joined->of, sizeof(joined->of)))
		r = refuse(dataset, diag, "one of the options beside, fields and of is too long");
	else if (!joined->folder[0])
		r = SOURCE_E_NONE;
	else if (dataset->bucket)
		r = refuse(dataset, diag,
			   "the data set is to be files of this machine: copy it, or mount the "
			   "store");
	else if (!part_options(options, joined))
		r = -ENOMEM;
	r = r ? r : open_base(dataset, joined, progress, diag);
	r = r ? r : open_beside(dataset, joined, progress, diag);
	if (r) {
		joined_free(joined);
		return r;
	}
	dataset->options = joined->own;
	dataset->source = joined;
	return 0;
}

/* ---- the index ---- */

/* Are these of this data set, of this version? */
static int check_base(const struct reader_dataset *dataset, const struct joined *joined,
		      struct diag *diag)
{
	const struct dataset *base = joined->base.index;
	const uint64_t count = dataset_count(base), beside = arrays_count(joined->arrays);
	char version[65];

	hash_hex(dataset_version(base), version);
	if (count != beside)
		return refuse(dataset, diag,
			      "\"%s\" has %llu samples, and the data set %llu: it is of another "
			      "data set, or of another version",
			      BASE_QUOTED(joined->folder, 200), (unsigned long long)beside,
			      (unsigned long long)count);
	if (joined->of[0] && strcmp(joined->of, version) != 0)
		return refuse(dataset, diag,
			      "\"%s\" is of version %.16s, and the data set has version %.16s now: "
			      "files were added, removed or written anew since; compute it again",
			      BASE_QUOTED(joined->folder, 200), joined->of, version);
	return 0;
}

/* Files that a list names have any names, and what names them is in the place of folders. */
static bool is_list(const struct dataset *base)
{
	return dataset_kind(base) == INDEX_OF_MANIFEST;
}

static void fill_head(const struct dataset *base, struct index_head *ret)
{
	const bool has_classes = dataset_classes(base) > 0;

	*ret = (struct index_head){.n_samples = dataset_count(base),
				   .n_classes = dataset_classes(base),
				   .n_folders = 1,
				   .folders_bytes = 1};
	if (has_classes)
		ret->label_rule = is_list(base) ? INDEX_LABELS_OWN : INDEX_LABELS_FOLDERS;
	for (uint64_t i = 0; i < ret->n_samples; i++)
		ret->names_bytes += strlen(dataset_name_of(base, i)) + 1;
	for (uint32_t i = 0; i < ret->n_classes; i++)
		ret->classes_bytes += strlen(dataset_class_name(base, i)) + 1;
	if (!is_list(base))
		return;
	ret->kind = INDEX_OF_MANIFEST;
	ret->n_folders = dataset_shards(base);
	ret->folders_bytes = 0;
	for (uint64_t i = 0; i < ret->n_folders; i++) {
		struct dataset_shard shard;

		dataset_shard_of(base, i, &shard);
		ret->folders_bytes += strlen(shard.name) + 1;
	}
}

static void add_shards(struct index_writer *writer, const struct dataset *base, uint64_t to)
{
	while (writer->folder < to) {
		struct dataset_shard shard;

		dataset_shard_of(base, writer->folder, &shard);
		index_add_shard(writer, shard.name, shard.bytes, shard.mtime_ns);
	}
}

/* false: a sample is too large. */
static bool add_samples(struct index_writer *writer, const struct joined *joined)
{
	const struct dataset *base = joined->base.index;
	const uint64_t more = more_bytes(joined);
	const struct index_folder root = {.mtime_ns = INDEX_UNSETTLED};

	for (uint64_t i = 0; i < dataset_count(base); i++) {
		const uint64_t size = arrays_up(dataset_size_of(base, i)) + more;
		const struct index_record record = {.mtime_ns = dataset_mtime_of(base, i),
						    .size = (uint32_t)size,
						    .label = dataset_label_of(base, i)};

		if (size > UINT32_MAX)
			return false;
		if (is_list(base))
			add_shards(writer, base, dataset_shard_with(base, i) + 1);
		index_add_sample(writer, "", dataset_name_of(base, i), &record);
	}
	for (uint32_t i = 0; i < dataset_classes(base); i++)
		index_add_class(writer, dataset_class_name(base, i));
	if (is_list(base))
		add_shards(writer, base, dataset_shards(base));
	else
		index_add_folder(writer, "", &root);
	return true;
}

/* As index(). */
static int make_index(const struct reader_dataset *dataset, const struct joined *joined,
		      const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	_cleanup_free_ char *options = NULL;
	struct index_writer writer;
	struct index_head head;
	char id[65], version[65];
	int r;

	fill_head(joined->base.index, &head);
	options = base_format("%s,arrays=%s,base=%s", joined->own,
			      hash_hex(arrays_id(joined->arrays), id),
			      hash_hex(dataset_version(joined->base.index), version));
	if (!options)
		return -ENOMEM;
	if (!scan_takes(progress, 2 * index_bytes(&head)))
		return DATASET_E_ROOM;
	r = index_new(&writer, &head);
	if (r)
		return r;
	index_add_options(&writer, options);
	if (add_samples(&writer, joined))
		r = index_seal(&writer, ret_fd);
	else
		r = refuse(dataset, diag, "a sample has more than 4 GiB with what is beside it");
	index_drop(&writer);
	return r;
}

static int joined_index(struct reader_dataset *dataset, unsigned threads,
			const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	struct joined *joined = dataset->source;
	_cleanup_close_ int fd = -1;
	int r = joined->base.ops->index(&joined->base, threads, progress, &fd, diag);

	r = r ? r : check_base(dataset, joined, diag);
	r = r ? r : make_index(dataset, joined, progress, ret_fd, diag);
	return r ? r : source_map_new(dataset, ret_fd, diag);
}

/* ---- reading ---- */

static int put_fields(const struct joined *joined, uint64_t sample, uint8_t *record)
{
	const uint64_t bytes = dataset_size_of(joined->base.index, sample);
	const struct arrays_place picture = {.dtype = number_batch_dtype(NUMBER_U8),
					     .ndim = 1,
					     .shape = {bytes},
					     .at = head_bytes(joined),
					     .bytes = bytes};
	struct arrays_place label = {.dtype = number_batch_dtype(NUMBER_I64),
				     .bytes = JOINED_LABEL};
	uint64_t at;
	int r;

	label.at = arrays_put_place(record, 0, &picture);
	little_put_64(record + label.at, dataset_label_of(joined->base.index, sample));
	at = arrays_put_place(record, 1, &label);
	r = arrays_read(joined->arrays, sample, record, JOINED_FIRST, &at);
	if (!r)
		arrays_put_head(record, JOINED_FIRST + arrays_fields(joined->arrays), at);
	return r;
}

static void joined_read(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			uint8_t *buffer, struct reader_outcome *ret)
{
	const struct joined *joined = dataset->source;
	const struct reader_dataset *base = &joined->base;

	base->ops->read(base, root_fd, sample, buffer ? buffer + head_bytes(joined) : NULL, ret);
	if (ret->stage != LAYOUT_FAIL_NONE)
		return;
	if (buffer)
		arrays_outcome(put_fields(joined, sample, buffer), ret);
	arrays_check(joined->arrays, ret);
}

static void joined_close(struct reader_dataset *dataset)
{
	if (dataset->source)
		joined_free(dataset->source);
}

const struct source_ops source_joined = {
    .name = "joined",
    .is_fleeting = true,
    .unconverted = "has fields beside its pictures, which a converted data set has no place for: "
		   "convert the data set without them",
    .options = "beside\0fields\0of\0",
    .probe = joined_probe,
    .index = joined_index,
    .read = joined_read,
    .close = joined_close,
};

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is converted: any kind of data set that access-reader has, opened as that opens it, by the kinds' own table. Their
 * samples are read by lanes, each a process with the descriptors that were open when it was forked; a kind opens its
 * shards when it reads of them, so no two lanes share one.
 *
 * Compressed shards are unpacked first, into a folder beside the target (convert_unpack.c), and are then what any other
 * shards are.
 */

#include "convert/convert.h"

#include <stdio.h>

#include "pipeline/forms/zipped.h"
#include "pipeline/forms/zstandard.h"
#include "storage/index.h"
#include "storage/source/source_bytes.h"
#include "storage/source/source_kind.h"

static void reader_free(struct reader_dataset *reader)
{
	if (!reader)
		return;
	dataset_unmap(reader->index);
	source_close(reader);
	free(reader->path);
	free(reader);
}

/* Consumes path. pattern: the list of shards in it, borrowed while it is open; NULL: none, or it is in path. 0, CONVERT_E_COMPRESSED, or
 * CONVERT_FAILED. */
static int reader_open(char *path, const char *pattern, const struct scan_progress *progress,
		       struct reader_dataset **ret, struct diag *diag)
{
	struct reader_dataset *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader || !path) {
		free(reader);
		free(path);
		return diag_fail(diag, CONVERT_FAILED, "there is not enough memory");
	}
	reader->path = path;
	reader->root_fd = reader->stored_fd = -1;
	reader->how = READER_HOW_ALL;
	*ret = reader; /* what is open of it is freed by who has it */
	r = source_open_root(reader, diag);
	if (pattern)
		reader->pattern = pattern;
	if (!r && reader->bucket)
		source_bucket_want(reader->bucket, true);
	r = r ? r : source_probe(reader, progress, diag);
	if (r == SOURCE_E_NONE)
		source_refuse_root(reader, reader->pattern ? ENOENT : ENOTDIR, diag);
	if (r == DATASET_E_COMPRESSED)
		return CONVERT_E_COMPRESSED;
	if (r)
		return CONVERT_FAILED;
	if (!reader->ops->unconverted && !strstr(reader->options, "members="))
		return 0;
	return diag_fail(
	    diag, CONVERT_FAILED, "\"%s\" %s", BASE_QUOTED(path, 400),
	    reader->ops->unconverted
		? reader->ops->unconverted
		: "has samples of several files: leave members out to convert its pictures");
}

int convert_source_open(struct convert_source *source, const char *path,
			const struct scan_progress *progress, struct diag *diag)
{
	const int r = reader_open(base_absolute(path), NULL, progress, &source->reader, diag);

	source->is_compressed =
	    r == CONVERT_E_COMPRESSED || (r == 0 && convert_unpacks_records(source->reader));
	return source->is_compressed ? 0 : r;
}

/* The shards are now plain, and lie in a folder of ours. */
static int open_unpacked(struct convert_source *source, const char *target,
			 const struct scan_progress *progress, struct diag *diag)
{
	char *path;
	int r =
	    convert_unpack(source->reader, target, source->jobs, progress, &source->unpacked, diag);

	if (r)
		return r;
	if (convert_unpack_keeps_names(source->reader)) {
		source->pattern = strdup(source->reader->pattern);
		if (!source->pattern)
			return diag_fail(diag, CONVERT_FAILED, "there is not enough memory");
	}
	path = base_format("%s%s%s", source->unpacked.path, *source->reader->options ? "?" : "",
			   source->reader->options);
	reader_free(source->reader);
	source->reader = NULL;
	r = reader_open(path, source->pattern, progress, &source->reader, diag);
	return r ? CONVERT_FAILED : 0;
}

int convert_source_list(struct convert_source *source, const char *target, unsigned threads,
			const struct scan_progress *progress, struct diag *diag)
{
	_cleanup_close_ int fd = -1;
	int r = 0;

	if (source->is_compressed)
		r = open_unpacked(source, target, progress, diag);
	if (r)
		return r;
	r = source->reader->ops->index(source->reader, threads, progress, &fd, diag);
	if (r)
		return CONVERT_FAILED;
	source->dataset = source->reader->index;
	return 0;
}

/* Samples are written as they are, and others than workers unpack none. */
static bool is_compressed(const struct convert_source *source, uint64_t sample, const uint8_t *room)
{
	const uint32_t kind = dataset_kind(source->dataset);

	const uint32_t size = dataset_size_of(source->dataset, sample);

	return ((kind == INDEX_OF_BAGZ || kind == INDEX_OF_ARRAYRECORD) &&
		zstandard_is_frame(room, size)) ||
	       (kind == INDEX_OF_ZIP && zipped_is_file(room, size));
}

static const char *why_compressed(const struct convert_source *source)
{
	switch (dataset_kind(source->dataset)) {
	case INDEX_OF_BAGZ:
		return "is compressed, which jobs read and convert does not: write its records to "
		       "a "
		       ".bag with the package bagz";
	case INDEX_OF_ZIP:
		return "is empty, or an archive itself: leave it out (leave_out)";
	default:
		return "is compressed, which jobs read and convert does not: write its records to "
		       "another file, with ArrayRecordWriter(NAME, \"group_size:1,uncompressed\"), "
		       "or "
		       "convert a copy that is in a folder";
	}
}

bool convert_source_read(const struct convert_source *source, uint64_t sample, uint8_t *room,
			 char *ret_why, size_t size)
{
	struct reader_outcome outcome;

	source_sample_read(source->reader, source->reader->root_fd, sample, room, &outcome);
	if (outcome.stage != LAYOUT_FAIL_NONE)
		snprintf(
		    ret_why, size, "%s%s",
		    outcome.stage == LAYOUT_FAIL_CHANGED ? "" : "cannot be read: ", outcome.text);
	else if (!is_compressed(source, sample, room))
		return true;
	else
		snprintf(ret_why, size, "%s", why_compressed(source));
	return false;
}

void convert_source_close(struct convert_source *source)
{
	reader_free(source->reader);
	source->reader = NULL;
	source->dataset = NULL;
	free(base_take_ptr(source->pattern));
	convert_unpack_remove(&source->unpacked);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A wrapped data set (storage/wrapped.h): its index follows from its note, and the user's own processes
 * make its samples (reader_wrapped.c).
 */

#include "storage/reader_parts.h"
#include "storage/source/source_kind.h"
#include "storage/wrapped.h"

_Static_assert(WRAPPED_MAX_BATCH == SOURCE_MOST_MADE, "a question's samples");

const struct wrapped_note *source_wrapped_note(const struct reader_dataset *dataset)
{
	return dataset->source;
}

static int wrapped_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
			 struct diag *diag)
{
	struct wrapped_note note;
	int r;

	(void)progress;
	if (!dataset->is_folder || dataset->pattern)
		return SOURCE_E_NONE;
	r = wrapped_open(dataset->root_fd, dataset->path, &note, diag);
	if (r == WRAPPED_E_NONE)
		return SOURCE_E_NONE;
	if (r)
		return r == WRAPPED_E_BAD ? DATASET_E_REFUSED : r;
	if (dataset->how == READER_HOW_OPEN_ONLY)
		return diag_fail(diag, DATASET_E_CLOSED,
				 "a wrapped data set is private to its user");
	if (dataset->how == READER_HOW_NAMED)
		return diag_fail(
		    diag, DATASET_E_REFUSED,
		    "a wrapped data set runs its user's Python code, which nobody else may "
		    "have run as him: a data set that has a name for others is files, so "
		    "write its samples into some (access-ctl convert, WebDataset, Parquet ...)");
	dataset->source = malloc(sizeof(note));
	if (!dataset->source)
		return -ENOMEM;
	memcpy(dataset->source, &note, sizeof(note));
	return 0;
}

static int wrapped_index_of(struct reader_dataset *dataset, unsigned threads,
			    const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	const struct wrapped_note *note = source_wrapped_note(dataset);
	int r;

	(void)threads;
	if (source_map_stored(dataset)) {
		if (wrapped_is_index(note, dataset->index))
			return 0;
		source_unmap(dataset);
	}
	r = wrapped_index(note, progress, ret_fd);
	if (r < 0)
		diag_set(diag, "cannot make the index of a wrapped data set (%llu samples): %s",
			 (unsigned long long)note->count, strerror(-r));
	return r ? r : source_map_new(dataset, ret_fd, diag);
}

static unsigned wrapped_threads(const struct reader_dataset *dataset)
{
	return source_wrapped_note(dataset)->workers;
}

static void wrapped_close(struct reader_dataset *dataset)
{
	free(dataset->source);
}

const struct source_ops source_wrapped = {
    .name = "wrapped",
    .is_fleeting = true,
    .unconverted =
	"is a wrapped data set (oneaccess.wrap): its samples are made by Python code while "
	"jobs run, there are no pictures to convert",
    .probe = wrapped_probe,
    .index = wrapped_index_of,
    .make = reader_wrapped_make,
    .threads = wrapped_threads,
    .most = reader_wrapped_most,
    .many = reader_wrapped_make_many,
    .close = wrapped_close,
};

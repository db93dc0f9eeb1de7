/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A folder of pictures: a sample is a file (source_file.c). Opening is a listing (scan.c).
 */

#include "storage/openness.h"
#include "storage/reader_parts.h"
#include "storage/source/source_kind.h"

/* ---- opening ---- */

static int folder_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
			struct diag *diag)
{
	(void)progress;
	(void)diag;
	return dataset->is_folder && !dataset->pattern ? 0 : SOURCE_E_NONE;
}

/* true: the stored index is good and its folders have not changed. */
static bool folder_use_stored(struct reader_dataset *dataset)
{
	struct diag diag;

	if (!source_map_stored(dataset))
		return false;
	if (!scan_verify(dataset->root_fd, dataset->shown, dataset->index, &diag) &&
	    (dataset->how != READER_HOW_OPEN_ONLY ||
	     openness_of_index(dataset->root_fd, dataset->index)))
		return true;
	source_unmap(dataset);
	return false;
}

static int folder_index(struct reader_dataset *dataset, unsigned threads,
			const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	int r;

	if (folder_use_stored(dataset))
		return 0;
	r = scan_build(dataset->root_fd, dataset->shown, threads, progress, ret_fd, diag);
	return r ? r : source_map_new(dataset, ret_fd, diag);
}

const struct source_ops source_folder = {
    .name = "folder",
    .files = true,
    .probe = folder_probe,
    .index = folder_index,
    .read = source_file_read,
    .place = source_file_place,
};

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of kinds, and what all of them do with an index.
 */

#include "storage/source/source_kind.h"

#include "storage/reader_parts.h"

#include <string.h>

static const struct source_ops *const kinds[] = {
#define SOURCE(name) &source_##name,
#include "storage/source/source_tbl.h"
#undef SOURCE
};

int source_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
		 struct diag *diag)
{
	int r = SOURCE_E_NONE;

	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds) && r == SOURCE_E_NONE; i++) {
		dataset->ops = kinds[i];
		r = kinds[i]->probe(dataset, progress, diag);
	}
	return r;
}

void source_close(struct reader_dataset *dataset)
{
	if (dataset->ops && dataset->ops->close)
		dataset->ops->close(dataset);
	dataset->source = NULL;
}

void source_unmap(struct reader_dataset *dataset)
{
	dataset_unmap(dataset->index);
	dataset->index = NULL;
}

bool source_map_stored(struct reader_dataset *dataset)
{
	if (dataset->stored_fd < 0 || dataset_map(dataset->stored_fd, &dataset->index))
		return false;
	if (dataset_kind(dataset->index) == dataset->ops->kind)
		return true;
	source_unmap(dataset);
	return false;
}

int source_map_new(struct reader_dataset *dataset, int fd, struct diag *diag)
{
	int r = dataset_map(fd, &dataset->index);

	if (r)
		diag_set(diag, "the new index of the dataset cannot be mapped: %s",
			 r < 0 ? strerror(-r) : "damaged");
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Indexes of samples that have numbers only. */

#include "storage/source/numbered.h"

#include <stdio.h>

#define NUMBERED_NAME_MAX 24

uint64_t numbered_bytes(uint64_t count, unsigned more)
{
	uint64_t bytes = 0;

	for (uint64_t digits = 1, least = 0, next = 10; least < count; digits++) {
		bytes += (BASE_MIN(count, next) - least) * (digits + more);
		least = next;
		next *= 10;
	}
	return bytes;
}

int numbered_index(uint64_t count, const struct index_record *record, const char *options,
		   const struct scan_progress *progress, int *ret_fd)
{
	const struct index_head head = {.n_samples = count,
					.names_bytes = numbered_bytes(count, sizeof("[]")),
					.n_folders = 1,
					.folders_bytes = 1,
					.label_rule = INDEX_LABELS_FLAT};
	const struct index_folder folder = {.mtime_ns = INDEX_UNSETTLED};
	struct index_writer writer;
	char name[NUMBERED_NAME_MAX];
	int r =
	    scan_takes(progress, index_bytes(&head)) ? index_new(&writer, &head) : DATASET_E_ROOM;

	if (r)
		return r;
	index_add_options(&writer, options);
	for (uint64_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "[%llu]", (unsigned long long)i);
		index_add_sample(&writer, "", name, record);
	}
	index_add_folder(&writer, "", &folder);
	r = index_seal(&writer, ret_fd);
	index_drop(&writer);
	return r;
}

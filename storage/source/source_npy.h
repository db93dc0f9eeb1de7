/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A .npy that is one of a data set's several files. */

#include "base/npy.h"
#include "storage/dataset.h"
#include "storage/source/source_bytes.h"

struct source_npy {              /* open */
	struct source_from from; /* owns its fd; -1: none */
	uint64_t bytes;
	int64_t mtime_ns;
	struct npy npy;
};

/* Of a file in that folder; name is borrowed. Is it there, a .npy, and open to everybody where that matters? 0, DATASET_E_REFUSED and why, without
 * the data set's name; or as a kind's probe(). What is open is the caller's to close, whatever it returned. */
int source_npy_open(const struct reader_dataset *dataset, const struct scan_progress *progress,
		    int folder_fd, const char *name, struct source_npy *ret, struct diag *why);
void source_npy_close(struct source_npy *npy);

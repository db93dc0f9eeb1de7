/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The index of samples that have no names but their numbers, "[0]", "[1]", ..., and that are alike: of one size and time, without
 * label. */

#include "storage/dataset.h"
#include "storage/index.h"

/* Bytes of the decimal numbers 0 to count - 1, each with so many more. */
uint64_t numbered_bytes(uint64_t count, unsigned more);
/* count: 1 to INDEX_MAX_SAMPLES. options: as index_add_options(). How much memory it takes is computed, and asked for by the progress,
 * before anything is made. 0 and *ret_fd (caller owns), DATASET_E_ROOM or negative errno. */
int numbered_index(uint64_t count, const struct index_record *record, const char *options,
		   const struct scan_progress *progress, int *ret_fd);

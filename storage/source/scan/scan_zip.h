/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The scan of zip archives. A record's key is the file's path, without what changes nothing in it; pictures, sounds and
 * videos alike: which of them are the samples, and their labels, follow from all keys. Pure, as scan_shard.h says, but for the order:
 * records come in the order of the directory.
 */

#include "storage/source/scan/scan_shard.h"

#include <stdbool.h>

extern const struct source_scan scan_zip;

#define SCAN_ZIP_FOLDER 1024
/* What each key of that source begins with: "" or "FOLDER/", of the option folder. false: that is none. */
bool scan_zip_folder(const char *options, char ret[SCAN_ZIP_FOLDER]);

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_SOURCE_SCAN_MANIFEST_H
#define STORAGE_SOURCE_SCAN_MANIFEST_H

/* Manifests: tables whose rows name files, told by their suffix. A record is a row, and its key is the file's path. */

#include "storage/source/scan_shard.h"

extern const struct source_scan scan_manifest;

#endif

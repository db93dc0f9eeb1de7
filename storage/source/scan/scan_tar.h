/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The scan of tar shards (WebDataset). Pure, as scan_shard.h says.
 */

#include "storage/source/scan/scan_shard.h"

extern const struct source_scan scan_tar;

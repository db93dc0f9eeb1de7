/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bagz files, as Google DeepMind's bagz writes them: records that are pictures or tf.Examples. The options are those of TFRecord. */

#include "storage/source/scan/scan_shard.h"

extern const struct source_scan scan_bagz;

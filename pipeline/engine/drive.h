/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One sample through several programs with one decode. */

#include "pipeline/engine/engine.h"

/* As pipeline_run_sample, for the parts whose bit is set in `who`, at least one, of an engine that can
 * be driven: bad for one is bad for all. */
int drive_sample(const struct engine *engine, struct decode *decode, struct engine_part part[],
		 uint32_t who, const void *data, size_t size, const struct pipeline_key *key,
		 struct pipeline_error *ret_error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/* Runs the pipeline once on a picture of our own, in the parent. 0, or whatever went wrong: a
 * pipeline may have its reasons, so the caller need not mind. */
int warm_up(const struct pipeline *pipeline);

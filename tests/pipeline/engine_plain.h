/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PIPELINE_ENGINE_PLAIN_H
#define TESTS_PIPELINE_ENGINE_PLAIN_H

#include "pipeline/engine/engine.h"

extern const struct engine engine_plain; /* op after op on whole pictures */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/engine/engine.h"

extern const struct engine engine_plain; /* op after op on whole pictures */

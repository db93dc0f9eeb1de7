/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How long a test waits for what must come. It only ends what hangs and never decides a test, so it is the same
 * everywhere and long: a sanitizer, and a machine that is shared with ten others, must not come near it.
 */

#include <stdint.h>

#define PATIENCE_S 300
#define PATIENCE_MS (PATIENCE_S * 1000)
#define PATIENCE_NS (PATIENCE_S * UINT64_C(1000000000))
#define PATIENCE_OF_A_TEST_S (6 * PATIENCE_S)

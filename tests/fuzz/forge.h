/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A plan log that a client made up, of so many samples: the head's words, the first records and the versions that it goes on with are
 * the input, its sizes and seals are right. The last byte says how many versions there are; they are what is before it. The
 * caller closes it. */
int forge_plan_log(const uint8_t *data, size_t size, uint64_t n_samples);

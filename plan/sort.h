/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sorting numbers that a client chose, in a time that their order does not decide. */

#include <stddef.h>
#include <stdint.h>

/* Ascending. spare: room for n more. */
void sort_values(uint64_t *values, uint64_t *spare, size_t n);

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHED_SORT_H
#define SCHED_SORT_H

/* Sorting numbers that a client chose, in a time that their order does not decide. */

#include <stddef.h>
#include <stdint.h>

/* Ascending. spare: room for n more. */
void sort_values(uint64_t *values, uint64_t *spare, size_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The helper thread that touches slots before the job does. */

#include "shmring/slot_table.h"

struct prefault;
/* Starts it over slot table and slots, borrowed until prefault_free(). NULL when it cannot be had: then
 * the first touches cost what they cost. */
struct prefault *prefault_new(const struct slot_table *table, const uint8_t *slots);
void prefault_stop(struct prefault *prefault); /* asks it to end; NULL is fine */
void prefault_free(struct prefault *prefault); /* and waits for it; NULL is fine */

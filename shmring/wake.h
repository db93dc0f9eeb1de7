/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A futex in shared memory and a flag that says that somebody may sleep on it. Inside shmring/ only. */

#include <stdatomic.h>

#include "base/base.h"

/* Wakes up to n sleepers; how many. */
long wake_some(_Atomic uint32_t *seq, int n);
/* Moves the sequence, wakes up to n sleepers if there may be any. */
void wake_ring(_Atomic uint32_t *seq, _Atomic uint32_t *armed, int n);
/* Sleeps until the sequence moved on from seen or timeout_ns went by (UINT64_MAX: no limit), or
 * without a reason. */
void wake_sleep(_Atomic uint32_t *seq, _Atomic uint32_t *armed, uint32_t seen, uint64_t timeout_ns);

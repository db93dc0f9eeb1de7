/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A batch and how many views of it live: the pin ends with the last of them, in whatever thread that
 * is, with or without the interpreter's lock. */

#include <stdbool.h>
#include "libaccess/libaccess.h"

struct pyhold;

/* Takes over the batch. NULL: no memory, and the batch is the caller's still. */
struct pyhold *pyhold_new(struct oa_batch *batch, bool is_writable);
struct pyhold *pyhold_ref(struct pyhold *hold);
void pyhold_unref(struct pyhold *hold); /* NULL is fine */
const struct oa_batch *pyhold_batch(const struct pyhold *hold);
bool pyhold_is_writable(const struct pyhold *hold); /* a private copy */

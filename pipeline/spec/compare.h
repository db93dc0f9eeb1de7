/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What two pipelines have in common: whether one decoding can serve both, and in words. */

#include "base/base.h"

struct pipeline;

/* Can samples be decoded once for both? They begin with the same decode, and the same samples are bad
 * for both or left out by both. An equivalence. */
bool compare_can_meet(const struct pipeline *a, const struct pipeline *b);
/* In words, the ops that are done once for both: "decode", "decode, resize and center_crop", "decode to
 * hflip (4 ops)". Returns ret. */
const char *compare_shared(const struct pipeline *a, const struct pipeline *b, char *ret,
			   size_t size);
/* In words, the first op in which they differ, "here" being a's side: "random_resized_crop: size
 * differs", "normalize here, cast there"; "nothing differs". Returns ret. */
const char *compare_words(const struct pipeline *here, const struct pipeline *there, char *ret,
			  size_t size);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ops that are done at random: those that belong to a random_apply. */

#include "pipeline/spec/op.h"

struct draw;

/* Is op number i (from 0) left out of this sample? Only ops that have a gate (op.h) ever are. */
bool apply_skips(const struct op_list *ops, unsigned i, const struct draw *draw);

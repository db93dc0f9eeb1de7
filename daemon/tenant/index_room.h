/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of indexes that lie in no file: whoever's data they are of has it of his share. */

#include "base/base.h"

struct domain;

/* Bytes that the domain's openings may take now. */
uint64_t index_room_most(const struct domain *domain);
/* The domain has an index of so many bytes, until domain_account() says it has not. false: they are not to be had; diag says how many are. */
bool index_room_take(struct domain *domain, uint64_t bytes, struct diag *diag);

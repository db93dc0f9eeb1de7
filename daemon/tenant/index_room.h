/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_TENANT_INDEX_ROOM_H
#define DAEMON_TENANT_INDEX_ROOM_H

/* Memory of indexes that lie in no file: whoever's data they are of has it of his share. */

#include "base/base.h"

struct domain;
struct source;

/* Bytes that the domain's openings may take now. */
uint64_t index_room_most(const struct domain *domain);
/* The source has an index of so many bytes. false: they are not to be had; diag says how many are. */
bool index_room_take(struct source *source, uint64_t bytes, struct diag *diag);
void index_room_leave(struct source *source);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How large each sample's kept value is, for who plans by it in another process (storage/store.h). Its maker
 * alone writes it, nobody shrinks it. */

#include "base/base.h"
#include "base/counter.h"

struct store_table {
	int fd;                    /* owned; -1: there is none */
	struct counter_cell *cell; /* mapped, owned, [cells]; users read it without lock */
	uint64_t cells;
};

/* All zeros. 0 or negative errno. */
int store_table_new(uint64_t cells, struct store_table *ret);
void store_table_free(struct store_table *table); /* one that is not there is fine, as below */
void store_table_set(const struct store_table *table, uint64_t sample, uint32_t size);
void store_table_clear_from(const struct store_table *table, uint64_t sample);

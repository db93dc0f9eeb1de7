/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A store in a folder of its own, for tests; what fails fails the test. */

#include "base/counter.h"
#include "storage/store.h"

#define HOLD_VALUE_MAX (1 << 20)

struct hold {
	char path[160];
	int fd;
	struct store_settings settings;
	struct store *store; /* NULL: closed */
};
/* A new folder, nothing opened. */
void hold_new(struct hold *hold, uint64_t limit);
void hold_remove(struct hold *hold); /* closes, removes the folder */
void hold_open(struct hold *hold);
void hold_close(struct hold *hold);
void hold_reopen(struct hold *hold);

struct hash_id hold_id(uint64_t number);
/* Opens group number with a note that has `number` in it. */
struct store_group *hold_group(struct hold *hold, uint64_t number, uint64_t n_samples);
/* The bytes of a sample's value: a function of all three. */
void hold_fill(uint64_t number, uint64_t sample, size_t size, uint8_t *ret);
bool hold_put(struct store_group *group, uint64_t number, uint64_t sample, size_t size);
bool hold_replace(struct store_group *group, uint64_t number, uint64_t sample, size_t size);
/* store_get(); what it finds must be the sample's bytes, size if that is not 0. */
int hold_get(struct store_group *group, uint64_t number, uint64_t sample, size_t size);
uint32_t hold_table(const struct store_group *group, uint64_t sample);

struct store_state hold_state(struct hold *hold);
/* Has all written: until nothing waits and every value that was taken was written or given up. */
void hold_settle(struct hold *hold);
/* Until is_so(arg): a minute's limit. */
void hold_until(bool (*is_so)(void *arg), void *arg);

uint64_t hold_bytes(const struct hold *hold, const char *name); /* of a file; 0: there is none */
/* Writes bytes into a file of the folder, at an offset. */
void hold_scribble(const struct hold *hold, const char *name, uint64_t at, const void *data,
		   size_t size);

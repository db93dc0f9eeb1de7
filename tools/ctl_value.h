/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Values of the status for tables. A key that is missing (an older or newer accessd) is 0, "-" or false. */

#include <stdio.h>
#include "base/json.h"

struct table;

unsigned long long ctl_u64(const struct json_in *object, const char *key);
double ctl_real(const struct json_in *object, const char *key);
double ctl_known(const struct json_in *object, const char *key); /* negative: it is not */
const char *ctl_string(const struct json_in *object, const char *key);
const char *ctl_text(const struct json_in *object, const char *key); /* missing: "" */
bool ctl_is(const struct json_in *object, const char *key);

/* The array's objects in the order of a number, and of the second one where that is the same. The caller frees; NULL:
 * there are none, or no memory. */
const struct json_in **ctl_sorted(const struct json_in *array, const char *by, const char *then);

/* A table of the array's objects, sorted so, a row for each; `none` where there are none. */
struct ctl_rows {
	const char *by, *then, *headers, *none;
	void (*row)(const struct json_in *object, struct table *table);
};
void ctl_draw_rows(const struct json_in *array, const struct ctl_rows *rows, FILE *out);

/* Cells. */
void ctl_cell_u64(struct table *table, const struct json_in *object, const char *key);
/* "key key ...": one for each. */
void ctl_cells_u64(struct table *table, const struct json_in *object, const char *keys);
void ctl_cell_bytes(struct table *table, uint64_t bytes);
void ctl_cell_share(struct table *table, double share); /* negative: it is not known */
void ctl_cell_rate(struct table *table, const struct json_in *job);
/* At most `width` characters of it, with "..." for the rest: of its end, or of its beginning. */
void ctl_cell_cut(struct table *table, const char *text, unsigned width, bool keep_end);
/* The user's name, or the number where it has none. */
void ctl_cell_user(struct table *table, uint64_t uid);
/* The named data set that a stream, a worker, a store or a tenant is of; "": of none. */
const char *ctl_named(const struct json_in *object);
/* Whose a worker, a store or a share is: the user's, everybody's, or those' who may use a named data set. */
void ctl_cell_whose(struct table *table, const struct json_in *object);
const char *ctl_user(uint64_t uid, char *ret, size_t size);
/* "up 52 s", "5 min", "3 h 20 min", "12 d 3 h" */
const char *ctl_duration(double seconds, char *ret, size_t size);

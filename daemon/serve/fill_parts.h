/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVE_FILL_PARTS_H
#define DAEMON_SERVE_FILL_PARTS_H

/* What fill.c and fill_bad.c share, and nobody else. */

#include "daemon/serve/fill_state.h"

struct carousel_chunk;
struct domain;
struct stream;

/* ---- fill.c ---- */
const struct carousel_chunk *fill_chunk_of(const struct stream *stream, const struct fill *fill);
/* Sample i of the chunk is done with: on the board, and in the counters. */
void fill_finish(struct stream *stream, struct fill *fill, uint32_t i, uint8_t status);

/* ---- fill_fair.c ---- */
/* The stream's first chunk in production after a time without one. */
void fill_enter(struct stream *stream);
/* Tasks that the stream may begin now beside others; FAIR_ALL: as many as it likes, else it asks again at *ret_until_ns,
 * which is untouched otherwise. */
uint32_t fill_share(struct stream *stream, uint64_t *ret_until_ns);

/* The stream's tenants, each once: who has jobs in it, else who pays. How many. */
unsigned fill_tenants_of(const struct stream *stream, struct domain *ret[]);

/* ---- fill_read.c ---- */
/* The same as fill_share(), by what its tenants may read a second. */
uint32_t fill_read_room(struct stream *stream, uint64_t *ret_until_ns);

/* ---- fill_bad.c ---- */
void fill_release_extent(struct stream *stream, struct fill_task *task);
/* Task i failed: its sample's policy, or the end of the stream. */
void fill_handle_bad(struct stream *stream, struct fill *fill, uint32_t i, enum layout_fail stage,
		     int code, const char *detail);
/* Did it fail, by its pipeline, from a kept form? Then it is queued again for the file. */
bool fill_tries_file(struct stream *stream, struct fill *fill, uint32_t i, enum layout_fail stage);
/* Is a failure at this stage the reader's to tell? */
bool fill_is_of_reader(enum layout_fail stage);
/* Does the reader confirm what the word of task i says of it? false: not yet. Else *stage is the
 * truth. */
bool fill_is_settled(struct stream *stream, struct fill *fill, uint32_t i, enum layout_fail *stage);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files fill_*.c share, and nobody else. */

#include "daemon/serve/fill_state.h"

struct carousel_chunk;
struct domain;
struct node;
struct stream;

/* ---- fill.c ---- */
const struct carousel_chunk *fill_chunk_of(const struct stream *stream, const struct fill *fill);
/* Sample i of the chunk is done with: in the slot table, and in the counters. */
void fill_finish(struct stream *stream, struct fill *fill, uint32_t i, uint8_t status);

/* The bytes of a sample's file came. */
void fill_count_read(struct stream *stream, uint32_t bytes);

/* ---- fill_ahead.c ---- */
/* What has ended of forms that are made ahead, and their row, when all have. */
void fill_ahead_collect(struct stream *stream, struct fill *fill);
/* Samples that were finished for jobs, and that were gone through ahead: what reading and work went to. */
uint64_t fill_samples(const struct stream *stream);

/* ---- fill_fair.c ---- */
/* The stream's first chunk in production after a time without one. */
void fill_enter(struct stream *stream);
/* Tasks that the stream may begin now beside others; FAIR_ALL: as many as it likes, else it asks again at *ret_until_ns,
 * which is untouched otherwise. */
uint32_t fill_share(struct stream *stream, uint64_t now_ns, uint64_t *ret_until_ns);
bool fill_is_busy(const struct stream *stream);
/* What its tasks wait for, if nobody has looked for some ms: stream->waits and what fair_read_look() says. */
void fill_look(struct stream *stream, uint64_t now_ns);
/* Streams counted for their tenants, from none; then what one weighs of them. */
void fill_count_none(struct node *node);
void fill_count(const struct stream *stream);
double fill_weight(const struct stream *stream);

/* The stream's tenants, each once: who has jobs in it, else who pays. How many. */
unsigned fill_tenants_of(const struct stream *stream, struct domain *ret[]);

/* ---- fill_read.c ---- */
/* The same as fill_share(), by what its tenants may read a second. */
uint32_t fill_read_room(struct stream *stream, uint64_t now_ns, uint64_t *ret_until_ns);
/* Bytes of a sample: of those so far; before one is finished, of all of the data set. */
double fill_mean_bytes(const struct stream *stream);

/* ---- fill_disk.c ---- */
/* The same as fill_share(), by what others want of the same disk. */
uint32_t fill_disk_share(struct stream *stream, uint64_t now_ns, uint64_t *ret_until_ns);
void fill_disk_enter(struct stream *stream);
void fill_disk_weigh(struct node *node, uint64_t now_ns);
void fill_disk_tick(struct node *node, double passed_ns);

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

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pump turns a stream: what happened goes into the carousel, its decisions come out as
 * deeds. */

#include "base/base.h"
#include "shmring/layout.h"

struct job;
struct stream;

void pump_turn(struct stream *stream); /* now */
/* Every heartbeat: shows that accessd lives. false: the stream needs none now. */
bool pump_tick(struct stream *stream);
/* What the job waits for, if it does, as it is just now. */
enum layout_stage pump_stage_of(const struct job *job);
/* Does the job, if it waits, wait for a sample that takes longer than a chunk which was begun later? */
bool pump_is_late(const struct stream *stream, const struct job *job, uint64_t *ret_sample);

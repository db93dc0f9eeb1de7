/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A stream does nothing more. */

#include "base/base.h"

struct stream;

/* No further work: jobs get FAILED (code, text), or LOST. */
void stream_fail(struct stream *stream, uint64_t code, const char *text);
/* The same for all that have it: its jobs open again, as after the death of its workers. */
void stream_lose(struct stream *stream, const char *text);
void stream_lose_memory(struct stream *stream); /* its workers are dead */
/* Reader and worker parent let go of its memory. */
void stream_detach(struct stream *stream);

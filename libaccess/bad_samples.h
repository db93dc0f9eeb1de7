/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which samples are bad: what the job has come to, and what accessd knows of it. */

#include <stdint.h>

struct oa_stream;

/* The cursor came to a sample that is bad, whatever becomes of it; with the lock. */
void bad_samples_met(struct oa_stream *stream, int64_t id);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the status says of a stream and of a job: an object of each. */

#include "shmring/layout.h"

struct fair_account;
struct job;
struct json_out;
struct stream;

void status_stream_put(struct json_out *out, const struct stream *stream);
void status_stream_job(struct json_out *out, const struct job *job);
/* Members: what a job or a user had, and what he was saved. */
void status_stream_account(struct json_out *out, const struct fair_account *account);
/* What is waited for. */
const char *status_stream_stage(enum layout_stage stage);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is resident, and jobs that came later. A chunk's files were compared with the index when they were read; one that was
 * written to since then, and before a job was opened, has other pixels than that job is to get. So a chunk that was begun
 * before a job came is shown to it when the reader has looked at its files once more. Where one differs the chunk is given to
 * nobody else, and is made anew, by which whoever needs it learns what is the matter with the file.
 *
 * To the carousel such a chunk is granted, as any other: what the job needs, and what is kept for whom, does not depend on
 * how long the reader looks. Only its place in the inbox waits (job->later), and with it what was granted behind it. One
 * look serves all jobs that came before it began.
 *
 * Samples that processes make have no files that we know of: these are taken as they are.
 */

#include "daemon/serve/revisit_state.h"

struct domain;
struct stream;

int revisit_init(struct stream *stream); /* 0 or -ENOMEM */
void revisit_fini(struct stream *stream);
/* The reader is asked about the next chunk that somebody waits for, if it is asked nothing. */
void revisit_turn(struct stream *stream);

/* from from_children.c */
void revisit_said(struct domain *domain, uint32_t queue, uint64_t id, bool is_same);
void revisit_reader_died(struct stream *stream); /* it is asked again */

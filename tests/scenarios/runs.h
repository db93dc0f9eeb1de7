/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whole runs of a job, and digests of all that they delivered: ids, pixels and labels, sample by
 * sample, so that the cut into batches does not matter. */

#include "base/hash.h"
#include "tests/scenarios/rig.h"

#define RUNS_SAMPLES 53
#define RUNS_EPOCHS 2
#define RUNS_SPEC                                                                         \
	"[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":[24,24]},{\"op\":" \
	"\"hflip\"},"                                                                     \
	"{\"op\":\"cast\",\"dtype\":\"u8\"}]"

/* A folder with so many copies of one photograph: crops of it differ, as those of one colour would not. */
const char *runs_copies(const char *dir, unsigned samples);
const char *runs_photos(const char *dir); /* RUNS_SAMPLES of them */
/* RUNS_SAMPLES pictures that all have a form of each kind. */
const char *runs_waves(const char *dir);
/* RUNS_EPOCHS epochs of RUNS_SPEC. */
struct oa_options runs_options(const char *dataset, enum oa_order order, uint64_t seed,
			       uint32_t batch);
/* The next batch. NULL at the end. */
struct oa_batch *runs_next(struct oa_stream *stream);
void runs_digest_batch(struct hash *hash, const struct oa_batch *batch);
void runs_digest_rest(struct hash *hash, struct oa_stream *stream);
struct hash_id runs_digest_stream(struct oa_stream *stream); /* all that is left of it */
struct hash_id runs_digest(const struct oa_options *options);
void runs_assert_same(struct hash_id a, struct hash_id b);
/* accessd is killed and comes back in the same place, with other settings. */
void runs_kill_and_restart(void);
/* Refused with this code, and a text that says so. */
void runs_assert_refused(const struct oa_options *options, int code, const char *says);
/* The stream's token: heap. */
void *runs_token(struct oa_stream *stream, size_t *ret_size);

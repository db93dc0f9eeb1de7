/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From a spec (JSON text) to a compiled pipeline to finished fields. Parsing and inference run in
 * accessd (and in libaccess's callers through it); running happens in sandboxed workers only.
 *
 * What runs it is an engine (engine/engine.h).
 */

#include "base/hash.h"
#include "pipeline/types.h"

struct pipeline; /* compiled, immutable */
/* The text of a named pipeline ("imagenet-train", "imagenet-eval", with "-u8"), or NULL. */
const char *pipeline_named(const char *name);
unsigned pipeline_names(const char *const **ret); /* list of the names */
/* Parses, validates, infers, compiles. text need not be terminated. 0, PIPELINE_E_BAD, -ENOMEM. */
int pipeline_compile(const char *text, size_t size, struct pipeline **ret, struct diag *diag);
void pipeline_free(struct pipeline *pipeline);
const char *pipeline_canonical(const struct pipeline *pipeline); /* canonical JSON, borrowed */
void pipeline_hash(const struct pipeline *pipeline,
		   struct hash_id *ret); /* of the canonical text + engine's pixel version */
/* Of all that was asked for, with what is each job's own: pipeline_hash(), where there is nothing of it. */
void pipeline_hash_asked(const struct pipeline *pipeline, struct hash_id *ret);
const struct pipeline_batch *pipeline_batch(const struct pipeline *pipeline);
/* The data set's classes that are kept (or dropped) by a filter, *ret_count of them; NULL: it names none.
 * Whoever opens a stream leaves such samples out of the job's epoch; pipeline_run_sample() does not. */
const int32_t *pipeline_filter_labels(const struct pipeline *pipeline, bool keep,
				      unsigned *ret_count);
/* May samples end as PIPELINE_FAIL_FILTERED? */
bool pipeline_filters(const struct pipeline *pipeline);
/* Of what decides, besides decoding, which samples fail or are filtered: the same for all variants
 * of one run. */
void pipeline_hash_outcome(const struct pipeline *pipeline, struct hash_id *ret);
/* How many ops the two begin with in common that work on the picture, so that they are done once for
 * both. */
unsigned pipeline_shared(const struct pipeline *a, const struct pipeline *b);
/* "NAME:ENCODING;...", all columns that samples are to have, where they are columns of MDS; else NULL. */
const char *pipeline_columns(const struct pipeline *pipeline);
bool pipeline_is_random(const struct pipeline *pipeline);
/* Loads what its samples need and this process does not have yet, for it and those that it forks, who could not in their
 * sandboxes. Why it cannot be (for people, kept), or NULL. */
const char *pipeline_load(const struct pipeline *pipeline);
/* How many views it makes of a sample beside the first one. */
unsigned pipeline_views(const struct pipeline *pipeline);
/* Do these allow that one run is of both? Those of other files do, where they begin alike; one that makes several pictures of one file
 * is run with no other. */
bool pipeline_views_are_alike(const struct pipeline *a, const struct pipeline *b);
/* The cuts of a pipeline, *ret of them: how many ops, from the first on, all deterministic, end in an
 * 8-bit picture that can be kept (1: decoded). Ascending. */
unsigned pipeline_cuts(const struct pipeline *pipeline, unsigned ret[PIPELINE_MAX_OPS]);
/* One cut more: the last 8-bit picture, where some op before it is random. What is kept there is of one instance. */
#define PIPELINE_CUT_AUGMENTED (PIPELINE_MAX_OPS + 1)
/* Of the first `cut` ops (0: the file itself, as any decoder sees it) and the engine's pixel version: the
 * same for pipelines that begin alike. Zeros where the ops are no cut. */
void pipeline_hash_cut(const struct pipeline *pipeline, unsigned cut, struct hash_id *ret);
/* Fields a worker writes, in order ("image", "label"). */
unsigned pipeline_fields(const struct pipeline *pipeline, const struct pipeline_field **ret);

/* Several pipelines on one sample, its *variants*: they have one key, one outcome and one decode, and
 * what their lists of ops begin with in common is done once. */
struct pipeline_run; /* scratch memory of one worker for one set of pipelines; not shared */
/* pipelines: n of them, at most PIPELINE_MAX_VARIANTS, borrowed as long as the run lasts; NULL: there
 * is none of that number. 0, -ENOMEM, -EINVAL: their decode differs. */
int pipeline_run_new(const struct pipeline *const pipelines[], unsigned n,
		     struct pipeline_run **ret);
void pipeline_run_free(struct pipeline_run *run);
/* From now on fn is told the size of each picture before its pixels are decoded; arg is the caller's. */
void pipeline_run_watch(struct pipeline_run *run,
			void (*fn)(void *arg, uint32_t height, uint32_t width), void *arg);
void pipeline_run_work(const struct pipeline_run *run, struct pipeline_work *ret);
/* Of a sample that is packed (forms/zstandard.h, forms/zipped.h) what is in it, until the next sample; others stay as they are. 0, or
 * PIPELINE_E_BAD with *ret_error. */
int pipeline_run_unpack(struct pipeline_run *run, const void **data, size_t *size,
			struct pipeline_error *ret_error);
/* One sample: data (hostile bytes: of its file, or of a stored form of it) through each pipeline whose bit is set in variants -> out[number].
 * What pipelines have in common is done once. 0, or PIPELINE_E_BAD with *ret_error: it is bad for
 * all; out may be partly written then. Pixels kept behind a cut (FORM_PIXELS) must be of one that all of
 * these pipelines have, and behind random ops of this very key. */
int pipeline_run_sample(struct pipeline_run *run, uint32_t variants, const void *data, size_t size,
			uint32_t label, const struct pipeline_key *key,
			const struct pipeline_out out[], struct pipeline_error *ret_error);
/* What the pipeline of that number has behind its first `cut` ops of a sample (PIPELINE_CUT_AUGMENTED: behind
 * all on 8-bit pictures, with key's draws), as FORM_PIXELS (form.h), to buffer, which has room for so many bytes;
 * data as above, not from behind the cut. 0; PIPELINE_E_BAD with
 * *ret_error; PIPELINE_E_ROOM with *ret_size what is needed; -ENOMEM; -EINVAL: it has no such cut. */
int pipeline_cut_make(struct pipeline_run *run, unsigned number, unsigned cut, const void *data,
		      size_t size, const struct pipeline_key *key, uint8_t *buffer, size_t room,
		      size_t *ret_size, struct pipeline_error *ret_error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Samples through a pipeline alone. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "pipeline/pipeline.h"

struct trial {
	struct pipeline *pipeline;
	struct pipeline_run *run;
	struct pipeline_error error;
};

static inline void trial_init(struct trial *trial, const char *spec)
{
	struct diag diag = {.text = ""};
	const struct pipeline *one;

	ck_assert_msg(pipeline_compile(spec, strlen(spec), &trial->pipeline, &diag) == 0, "%s: %s",
		      spec, diag.text);
	one = trial->pipeline;
	ck_assert_int_eq(pipeline_run_new(&one, 1, &trial->run), 0);
}

static inline void trial_fini(struct trial *trial)
{
	pipeline_run_free(trial->run);
	pipeline_free(trial->pipeline);
}

/* Of a copy of exactly size bytes: the sanitizer sees one too many. */
static inline int trial_run(struct trial *trial, const void *data, size_t size, uint32_t label,
			    uint64_t sample, const struct pipeline_out *out)
{
	const struct pipeline_key key = {1, 2, sample};
	_cleanup_free_ uint8_t *copy = malloc(size ? size : 1);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, data, size);
	trial->error.text[0] = '\0';
	return pipeline_run_sample(trial->run, 1, copy, size, label, &key, out, &trial->error);
}

/* No pipeline: these words say why. */
static inline void trial_refused(const char *spec, const char *words)
{
	struct pipeline *pipeline = NULL;
	struct diag diag = {.text = ""};

	ck_assert_msg(pipeline_compile(spec, strlen(spec), &pipeline, &diag) == PIPELINE_E_BAD,
		      "%s", spec);
	ck_assert_msg(strstr(diag.text, words) != NULL, "%s: %s", spec, diag.text);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An epoch that had no sample at all: all were bad and skipped, or left out by the pipeline's filter, or what was
 * left is less than a batch and dropped. The next one would have none either, and whoever waits for a batch would
 * wait for ever; so the stream fails and says what became of the samples. Of a number of epochs that was asked for
 * all must be so: one without a sample may be a mishap of its time, or of what was drawn for it, and the end comes by itself.
 * A job that was resumed had some before, as far as is known here.
 *
 * A rank sees its own samples alone, which may be few, and its steps are the other ranks' too: it fails
 * where all samples of the job's epochs are known to be bad. A call that has no time to ask for that goes on.
 */

#include <stdarg.h>
#include <stdio.h>
#include "libaccess/error.h"
#include "libaccess/stream.h"

#define EMPTY_EPOCH_MS 2000 /* that accessd has to tell which sample is bad, and why */

bool empty_epoch_note(struct oa_stream *stream, uint64_t dropped)
{
	const struct progress *progress = &stream->progress;
	const uint64_t epochs = progress->course->epochs; /* 0: without end */
	struct empty_epoch *empty = &stream->met.empty;

	*empty = (struct empty_epoch){
	    .epoch = progress->epoch,
	    .places = progress->places,
	    .skipped = stream->stats.skipped - empty->skipped_before,
	    .filtered = stream->stats.filtered - empty->filtered_before,
	    .dropped = dropped,
	    .skipped_before = stream->stats.skipped,
	    .filtered_before = stream->stats.filtered,
	};
	return progress->delivered == 0 && empty->skipped + empty->filtered > 0 &&
	       (!epochs || (progress->is_whole && stream->stats.samples == 0 &&
			    progress->epoch + 1 >= epochs));
}

/* ---- in words ---- */

BASE_PRINTF(2, 3) static void add(struct diag *diag, const char *fmt, ...)
{
	size_t used = strlen(diag->text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(diag->text + used, sizeof(diag->text) - used, fmt, args);
	va_end(args);
}

static void add_bad(struct diag *diag, const struct empty_epoch *empty, uint64_t job_id,
		    const struct bad_list *list)
{
	struct bad_page_entry first;

	add(diag, "; %llu bad, all of them: Loader.bad_samples",
	    (unsigned long long)empty->skipped);
	if (job_id)
		add(diag, ", access-ctl bad %llu", (unsigned long long)job_id);
	if (!list->count)
		return;
	bad_list_get(list, 0, &first);
	add(diag, "; the first: sample %llu, %s", (unsigned long long)first.id,
	    BASE_QUOTED(first.name, 200));
	if (*first.stage)
		add(diag, ", stage %s: %s", first.stage, first.why);
}

static int fail(struct oa_stream *stream, uint64_t job_id, const struct bad_list *list)
{
	const struct empty_epoch *empty = &stream->met.empty;
	struct diag diag;

	diag_set(&diag, "no sample of epoch %llu of %s is good", (unsigned long long)empty->epoch,
		 BASE_QUOTED(redial_dataset(&stream->redial), 200));
	if (!empty->skipped)
		diag_set(&diag, "epoch %llu has no sample", (unsigned long long)empty->epoch);
	else if (empty->dropped)
		diag_set(&diag, "epoch %llu has no batch", (unsigned long long)empty->epoch);
	if (empty->skipped)
		add_bad(&diag, empty, job_id, list);
	if (empty->filtered)
		add(&diag, "; the pipeline's filter left out %llu: widen it",
		    (unsigned long long)empty->filtered);
	if (empty->dropped)
		add(&diag,
		    "; %llu are good, fewer than the batch of %u, which OA_DROP_LAST "
		    "leaves out",
		    (unsigned long long)empty->dropped, stream->schema.batch);
	return trouble_fail(&stream->trouble, empty->skipped ? OA_E_SAMPLE : OA_E_PIPELINE,
			    diag.text);
}

/* ---- what is known of it ---- */

int empty_epoch_fail(struct oa_stream *stream, uint64_t deadline)
{
	const uint64_t until = BASE_MIN(deadline, dial_deadline(EMPTY_EPOCH_MS));
	uint64_t job_id = stream->session ? stream->session->job_id : 0;
	uint64_t all = BASE_MIN(stream->met.empty.places, stream->course.permutation.n);
	struct bad_list list = {.count = 0};
	struct diag ignored;
	int r = 0;

	if (stream->met.empty.skipped) {
		pthread_mutex_unlock(&stream->lock);
		r = bad_samples_look(stream, until, &list, &ignored);
		pthread_mutex_lock(&stream->lock);
	}
	if (r)
		bad_list_fini(&list); /* it fails without */
	r = trouble_repeat(&stream->trouble);
	if (!r && (!stream->course.is_ranked || list.count >= all))
		r = fail(stream, job_id, &list);
	bad_list_fini(&list);
	return r;
}

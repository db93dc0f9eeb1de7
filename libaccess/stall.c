/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a time-out says. "Timed out" helps nobody: who reads it wants to know whether the files, the
 * decoding, the other jobs or the daemon are slow, and what to do. All of it is in the inbox
 * already.
 */

#include <stdio.h>
#include "libaccess/error.h"
#include "libaccess/stream.h"
#include "shmring/inbox.h"

#define STALL_SILENT_NS UINT64_C(5000000000)

static const char *stall_stage(uint32_t stage)
{
	static const char *const text[] = {
	    [LAYOUT_STAGE_NONE] = "accessd has nothing in work for this job",
	    [LAYOUT_STAGE_SCAN] = "accessd is still listing the dataset's files",
	    [LAYOUT_STAGE_READ] = "storage is slow: accessd waits for the bytes of samples",
	    [LAYOUT_STAGE_DECODE] =
		"workers are busy with the next chunk: preprocessing is the bottleneck",
	    [LAYOUT_STAGE_SLOT] =
		"no slot is free: all are held by jobs; give accessd more memory or slots",
	    [LAYOUT_STAGE_WORKERS] = ("no worker is alive; accessd's log says why: journalctl -u "
				      "accessd, or the file accessd.log beside its socket"),
	    [LAYOUT_STAGE_SCHEDULE] = "the next chunk is being composed",
	    [LAYOUT_STAGE_DRAIN] = "accessd is shutting down; the job goes on with the next one",
	};

	return stage < BASE_ARRAY_LEN(text) ? text[stage]
					    : "accessd is in a stage this libaccess does not know";
}

/* With a session: is accessd alive, and what is it at? */
static void stall_served(const struct oa_stream *stream, char *ret, size_t size)
{
	const struct session *session = stream->session;
	uint64_t heartbeat = inbox_heartbeat_ns(session->inbox);
	const struct held *held = stream->chunks.now;
	int n;

	if (heartbeat > 0 && base_now_ns() > heartbeat + STALL_SILENT_NS) {
		snprintf(ret, size, "accessd (pid %llu) has not answered for %llu s: stopped?",
			 (unsigned long long)session->pid,
			 (unsigned long long)((base_now_ns() - heartbeat) / 1000000000));
		return;
	}
	n = snprintf(ret, size, "%s", stall_stage(inbox_stage(session->inbox)));
	if (held && held->watermark < held->end && n > 0 && (size_t)n < size)
		snprintf(
		    ret + n, size - (size_t)n,
		    "; %u of %u samples of the chunk are finished, the next one is sample %lld",
		    held->watermark, held->end,
		    (long long)slot_table_load_id(&held->ids[held->watermark]));
}

int stall_diagnose(struct oa_stream *stream, int timeout_ms)
{
	char why[512];

	if (remote_describe(&stream->redial.remote, why, sizeof(why)))
		; /* nothing comes before that is done */
	else if (stream->session)
		stall_served(stream, why, sizeof(why));
	else
		redial_describe(&stream->redial, why, sizeof(why));
	return diag_fail(
	    &stream->trouble.error, OA_E_TIMEOUT, "no batch within %d ms: %s; dataset %s%s%s",
	    timeout_ms, why, redial_dataset(&stream->redial),
	    stream->trouble.notice.text[0] ? "; accessd said: " : "", stream->trouble.notice.text);
}

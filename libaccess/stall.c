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

static unsigned long long stall_seconds(uint64_t since_ns)
{
	uint64_t now = base_now_ns();

	return now > since_ns ? (now - since_ns) / 1000000000 : 0;
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
			 (unsigned long long)session->pid, stall_seconds(heartbeat));
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

static void stall_alone(const struct oa_stream *stream, char *ret, size_t size)
{
	char name[192];

	if (stream->dial.state == DIAL_OPEN && stream->dial.progress[0])
		snprintf(ret, size, "%s opens the stream again and is at: %s",
			 dial_name(&stream->dial, name, sizeof(name)), stream->dial.progress);
	else if (stream->dial.state == DIAL_HELLO || stream->dial.state == DIAL_OPEN)
		snprintf(
		    ret, size,
		    "%s has accepted the connection and not answered for %llu s: stopped or busy?",
		    dial_name(&stream->dial, name, sizeof(name)),
		    stall_seconds(stream->dial.since_ns));
	else
		snprintf(ret, size,
			 "no daemon at %s since %llu s; the job goes on when it is back (%.300s)",
			 stream->route.socket, stall_seconds(stream->lost_ns),
			 stream->dial_error.text);
}

int stall_diagnose(struct oa_stream *stream, int timeout_ms)
{
	char why[512];

	if (stream->session)
		stall_served(stream, why, sizeof(why));
	else
		stall_alone(stream, why, sizeof(why));
	return error_set(
	    &stream->trouble.error, OA_E_TIMEOUT, "no batch within %d ms: %s; dataset %s%s%s",
	    timeout_ms, why, stream->open.dataset,
	    stream->trouble.notice.text[0] ? "; accessd said: " : "", stream->trouble.notice.text);
}

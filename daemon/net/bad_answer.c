/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which samples are bad, for who asks for a job's: its user, and who may see all jobs. A stream's jobs share its
 * samples, so they have one list. It is sent by pages, from the place where the last one ended, in the order
 * in which the samples were met, which never changes: a page costs what is in it, however long the list is.
 *
 * Of samples that are asked for by their ids the names are told, bad or not: of those that a job met before it
 * opened again, and of any that a person wants to look at.
 */
#include "daemon/net/bad_answer.h"

#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/serve/job.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/rights.h"
#include "libaccess/libaccess.h"
#include "shmring/bad_page.h"

static const struct stream *stream_of_job(const struct conn *asks, uint64_t id)
{
	BASE_EACH(conn, &asks->node->clients.list, link)
		if (conn->job && conn->job->id == id &&
		    (conn->uid == asks->uid || rights_is_admin(asks)))
			return conn->job->stream;
	return NULL;
}

/* note: NULL: nothing is known of it. */
static bool put(struct bad_page *page, const struct stream *stream, uint64_t id,
		const struct bad_note *note)
{
	char why[BAD_PAGE_WHY] = "";
	struct bad_page_entry entry = {
	    .id = id,
	    .name = dataset_name_of(stream->source->dataset, id),
	    .stage = note ? bad_stage_name((enum layout_fail)note->stage) : "",
	    .why = why,
	};

	if (note)
		bad_why(why, sizeof(why), (enum layout_fail)note->stage, note->code, note->detail);
	return bad_page_put(page, &entry);
}

/* Returns the place behind the last one that is in the page. */
static uint64_t put_from(struct bad_page *page, const struct stream *stream, uint64_t from)
{
	const struct bad_note *note;

	for (; from < stream->bad.noted; from++) {
		note = bad_note_at(&stream->bad, from);
		if (!put(page, stream, note->id, note))
			break;
	}
	return from;
}

/* Returns how many are in the page; UINT64_MAX: one is no sample. */
static uint64_t put_ids(struct bad_page *page, const struct stream *stream,
			const struct items_bytes *ids)
{
	uint64_t id;

	for (size_t i = 0; i < ids->size / sizeof(id); i++) {
		memcpy(&id, ids->data + i * sizeof(id), sizeof(id));
		if (id >= stream->geometry.n_samples)
			return UINT64_MAX;
		if (!put(page, stream, id, bad_note_of(&stream->bad, id)))
			return i;
	}
	return ids->size / sizeof(id);
}

static void send_page(struct conn *conn, const struct bad_page *page, uint64_t done, uint64_t total,
		      uint64_t lost)
{
	conn_tell(conn, PROTO_BAD_SAMPLES, WIRE_BYTES(PROTO_KEY_ENTRIES, page->bytes, page->used),
		  WIRE_U64(PROTO_KEY_DONE, done), WIRE_U64(PROTO_KEY_TOTAL, total),
		  WIRE_U64(PROTO_KEY_LOST, lost));
}

void bad_answer(struct conn *conn, const struct message_bad *message)
{
	const struct stream *stream = stream_of_job(conn, message->job_id);
	struct bad_page page;
	uint64_t done;

	page.used = 0;
	if (!stream) {
		conn_refuse(conn, OA_E_INVALID,
			    "there is no job %llu of yours (any more): access-ctl jobs lists them",
			    (unsigned long long)message->job_id);
		return;
	}
	if (!message->ids.data) {
		done = put_from(&page, stream, message->from);
		send_page(conn, &page, done, stream->bad.noted, stream->bad.lost);
		return;
	}
	done = put_ids(&page, stream, &message->ids);
	if (done == UINT64_MAX)
		conn_refuse(conn, OA_E_INVALID, "bad samples: an id is not of this dataset");
	else
		send_page(conn, &page, done, message->ids.size / sizeof(uint64_t),
			  stream->bad.lost);
}

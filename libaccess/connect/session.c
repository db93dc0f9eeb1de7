/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A session lives as long as anybody reads its memory: the stream while it is served, each chunk
 * that was taken from it until its last batch is released. So batches stay readable when the daemon
 * dies, when the stream goes on with another daemon, and after oa_close(). The socket lives as long
 * as the mappings, because to hang up is to give all pins back.
 *
 * Descriptors of the four memories are closed as soon as they are mapped: one descriptor a stream
 * stays, and a rank's plan log, which it may have to show to another accessd. The outbox is not inherited by forked children (MADV_DONTFORK), so that a child cannot
 * give back, or take, in its parent's name, not even by a bug of ours.
 */

#include "libaccess/connect/session.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "libaccess/error.h"
#include "shmring/proto.h"

enum session_fd { SESSION_SLOTS, SESSION_TABLE, SESSION_INBOX, SESSION_OUTBOX, SESSION_FDS };

static int session_bad(struct diag *diag, int r, const char *what)
{
	if (r < 0)
		return error_of_errno(diag, r, what);
	return diag_fail(diag, -EPROTO, "%s from accessd is no such memory, or contradicts itself",
			 what);
}

static int session_map_rings(struct session *session, int inbox_fd, int outbox_fd,
			     struct diag *diag)
{
	uint64_t bytes = base_align_up(sizeof(*session->outbox), base_page_size());
	int r = grant_memory_attach(inbox_fd, outbox_fd, &session->inbox, &session->outbox);

	if (r)
		return session_bad(diag, r, "inbox or outbox");
	if (madvise(session->outbox, (size_t)bytes, MADV_DONTFORK) < 0)
		return error_of_errno(diag, -errno, "keeping the outbox from forked children");
	grant_rank_init(&session->rank, session->inbox, session->outbox);
	return 0;
}

static int session_map(struct session *session, const int *fds, bool has_view, struct diag *diag)
{
	char what[80];
	int r = slot_table_attach(fds[SESSION_TABLE], &session->table);

	if (r)
		return session_bad(diag, r, "slot table");
	snprintf(what, sizeof(what), "slots memory (%s)",
		 BASE_BYTES(session->table.geometry.slots_bytes));
	r = slots_attach(fds[SESSION_SLOTS], &session->table.geometry, &session->slots);
	if (!r && has_view)
		r = view_new(fds[SESSION_SLOTS], &session->table.geometry, &session->view);
	if (r)
		return session_bad(diag, r, what);
	return session_map_rings(session, fds[SESSION_INBOX], fds[SESSION_OUTBOX], diag);
}

/* OPENED may have a plan log behind the four memories. */
static int session_map_log(struct session *session, struct wire_in *opened, struct diag *diag)
{
	int r;

	session->log_fd = wire_take_fd(opened, SESSION_FDS);
	if (session->log_fd < 0 || wire_get_u64(opened, PROTO_KEY_PLACE, &session->place) ||
	    wire_get_u64(opened, PROTO_KEY_EPOCH, &session->epoch))
		return 0;
	r = plan_log_attach(session->log_fd, UINT64_MAX, &session->log);
	session->has_log = !r;
	return r ? session_bad(diag, r, "plan log") : 0;
}

static void session_free(struct session *session)
{
	plan_log_detach(&session->log);
	base_close(&session->log_fd);
	prefault_free(session->prefault);
	view_unref(session->view);
	if (session->slots)
		slots_detach(&session->table.geometry, session->slots);
	if (session->table.map)
		slot_table_detach(&session->table);
	if (session->inbox)
		grant_memory_detach(session->inbox, session->outbox);
	base_close(&session->sock);
	free(session);
}

int session_new(struct wire_in *opened, int *sock, uint64_t pid, bool has_view,
		struct session **ret, struct diag *diag)
{
	struct session *session = calloc(1, sizeof(*session));
	const void *pipeline;
	uint64_t holes;
	const char *text;
	int fds[SESSION_FDS], r;
	size_t size;

	if (!session)
		return error_of_errno(diag, -ENOMEM, "opening a stream");
	session->sock = session->log_fd = -1;
	session->pid = pid;
	wire_get_u64(opened, PROTO_KEY_JOB_ID, &session->job_id);
	session->refs = 1;
	if (wire_get_bytes(opened, PROTO_KEY_PIPELINE_ID, &pipeline, &size) == 0 &&
	    size == sizeof(session->pipeline))
		memcpy(session->pipeline, pipeline, size);
	if (wire_get_string(opened, PROTO_KEY_TEXT, &text) == 0)
		snprintf(session->shares, sizeof(session->shares), "%s", text);
	for (unsigned i = 0; i < SESSION_FDS; i++)
		fds[i] = wire_take_fd(opened, i);
	if (fds[SESSION_FDS - 1] < 0)
		r = diag_fail(diag, -EPROTO,
			      "accessd sent fewer than four descriptors with its answer");
	else
		r = session_map(session, fds, has_view, diag);
	r = r ? r : session_map_log(session, opened, diag);
	r = r ? r : mixed_ask_read(opened, &session->batch_mixed, diag);
	wire_get_u64(opened, PROTO_KEY_LOCAL_RANKS, &session->local_ranks);
	session->has_holes = wire_get_u64(opened, PROTO_KEY_HOLES, &holes) == 0 && holes != 0;
	for (unsigned i = 0; i < SESSION_FDS; i++)
		base_close(&fds[i]);
	if (r) {
		session_free(session);
		return r;
	}
	session->sock = base_take_fd(sock);
	session->prefault = prefault_new(&session->table, session->view ? view_memory(session->view)
									: session->slots);
	*ret = session;
	return 0;
}

void session_ref(struct session *session)
{
	session->refs++;
}

void session_unref(struct session *session)
{
	if (session && --session->refs == 0)
		session_free(session);
}

void session_abandon(struct session *session, bool keep_slots)
{
	base_close(&session->sock);
	base_close(&session->log_fd);
	/* The outbox is not mapped here: whatever lies at its address is somebody else's. The
	 * prefault thread exists in the parent alone; its struct is left to the end of the process, and so is
	 * the view: batches that are kept may be in it. */
	if (keep_slots)
		return;
	slots_detach(&session->table.geometry, session->slots);
	slot_table_detach(&session->table);
	munmap((void *)session->inbox,
	       (size_t)base_align_up(sizeof(*session->inbox), base_page_size()));
	free(session);
}

void session_send(const struct session *session, uint16_t type)
{
	wire_tell(session->sock, type, WIRE_NOTHING);
}

void session_ask_explanation(const struct session *session, uint64_t instance, uint32_t position)
{
	wire_tell(session->sock, PROTO_EXPLAIN, WIRE_U64(PROTO_KEY_INSTANCE, instance),
		  WIRE_U64(PROTO_KEY_POSITION, position));
}

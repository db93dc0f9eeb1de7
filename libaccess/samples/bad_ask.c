/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What accessd knows of samples by their numbers: their names, and what is wrong with them.
 *
 * It is asked on a connection of its own, by pages, so that oa_next() may go on in another thread meanwhile, and a
 * stream that has failed can be asked as well. The job's number means something to one accessd only: each
 * connection is checked to be to that one. So the answer is about the version of the data set that the stream has.
 */

#include "libaccess/samples/bad_ask.h"

#include "libaccess/error.h"
#include "libaccess/stream.h"
#include "shmring/proto.h"

#define BAD_ASK_MS 600000
#define BAD_ASK_TRIES 8 /* accessd may be restarted meanwhile, not for ever */

/* ---- the conversation ---- */

static int bad_ask_nonsense(const struct bad_ask *ask, struct diag *diag)
{
	return diag_fail(diag, -EPROTO, "accessd's list of %s makes no sense: is it an accessd?",
			 ask->what);
}

static int bad_ask_send(const struct bad_ask *ask, uint64_t from, const uint64_t *ids,
			uint64_t n_ids, struct diag *diag)
{
	int r = wire_tell(ask->dial.sock, PROTO_BAD, WIRE_U64(PROTO_KEY_JOB_ID, ask->job_id),
			  WIRE_BYTES(PROTO_KEY_IDS, ids, n_ids * sizeof(*ids)),
			  WIRE_NONZERO(PROTO_KEY_FROM, ids ? 0 : from));

	if (r == WIRE_E_CLOSED)
		return BAD_ASK_GONE;
	return r ? error_of_errno(diag, r, "asking accessd about samples") : 0;
}

static int bad_ask_receive(struct bad_ask *ask, struct wire_in *in, struct diag *diag)
{
	_cleanup_(dial_wait_end) struct dial_wait wait = {.has_begun = false};
	int r;

	dial_wait_begin(&wait);
	for (;;) {
		r = dial_receive(&ask->dial, in, diag);
		if (r != DIAL_AGAIN)
			return r;
		if (base_now_ns() >= ask->deadline)
			return diag_fail(diag, OA_E_TIMEOUT,
					 "accessd has not listed the %s in time", ask->what);
		r = dial_wait(&wait, dial_fd(&ask->dial), ask->deadline);
		if (r)
			return diag_fail(diag, r, "interrupted by a signal");
	}
}

/* *ret_done: of `total` places or ids, at most `most`; at least one more than before, unless all are, and an
 * entry for each. So what accessd says ends, and has no more entries than the dataset has samples, or ids are. */
static int bad_ask_read(const struct bad_ask *ask, const struct wire_in *in, uint64_t most,
			uint64_t before, uint64_t *ret_done, uint64_t *ret_total, struct diag *diag)
{
	uint64_t done, total, count = ask->list->count;
	const void *bytes;
	size_t size;
	int r = BAD_PAGE_E_BAD;

	if (wire_get_bytes(in, PROTO_KEY_ENTRIES, &bytes, &size) == 0 &&
	    wire_get_u64(in, PROTO_KEY_DONE, &done) == 0 &&
	    wire_get_u64(in, PROTO_KEY_TOTAL, &total) == 0 && done <= total && total <= most &&
	    (done > before || (done == before && done == total)))
		r = bad_list_add(ask->list, bytes, size, ask->n);
	if (r == 0 && ask->list->count - count != done - before)
		r = BAD_PAGE_E_BAD;
	if (r < 0)
		return error_of_errno(diag, r, "a list of samples");
	if (r)
		return bad_ask_nonsense(ask, diag);
	*ret_done = done;
	*ret_total = total;
	return 0;
}

/* One page: places from *done on, or with ids those of them. */
static int bad_ask_page(struct bad_ask *ask, const uint64_t *ids, uint64_t n_ids, uint64_t *done,
			uint64_t *ret_total, struct diag *diag)
{
	_cleanup_(wire_in_fini) struct wire_in in;
	int r;

	wire_in_init(&in);
	r = bad_ask_send(ask, *done, ids, n_ids, diag);
	r = r ? r : bad_ask_receive(ask, &in, diag);
	if (r)
		return r == DIAL_GONE ? BAD_ASK_GONE : r;
	if (in.type == PROTO_BAD_SAMPLES)
		return bad_ask_read(ask, &in, ids ? n_ids : ask->n, ids ? 0 : *done, done,
				    ret_total, diag);
	r = dial_other(&ask->dial, &in, diag);
	return r == OA_E_INVALID ? BAD_ASK_GONE : r;
}

int bad_ask_all(struct bad_ask *ask, struct diag *diag)
{
	uint64_t done = 0, total = 0;
	int r;

	do
		r = bad_ask_page(ask, NULL, 0, &done, &total, diag);
	while (!r && done < total);
	return r;
}

/* Are the newest entries of the list of these samples? */
static bool bad_ask_is_of(const struct bad_list *list, const uint64_t *ids, uint64_t count)
{
	const struct bad_list_item *item = list->item + (list->count - count);

	for (uint64_t i = 0; i < count; i++)
		if (item[i].id != ids[i])
			return false;
	return true;
}

int bad_ask_ids(struct bad_ask *ask, const uint64_t *ids, uint64_t count, struct diag *diag)
{
	while (count > 0) {
		uint64_t n = BASE_MIN(count, (uint64_t)BAD_PAGE_IDS), done = 0, total = 0;
		int r = bad_ask_page(ask, ids, n, &done, &total, diag);

		if (r)
			return r;
		if (done == 0 || !bad_ask_is_of(ask->list, ids, done))
			return bad_ask_nonsense(ask, diag);
		ids += done;
		count -= done;
	}
	return 0;
}

/* ---- of a stream ---- */

static int bad_ask_dial(struct oa_stream *stream, uint64_t pid, struct bad_ask *ask,
			const struct bad_ask_way *way, struct diag *diag)
{
	int r;

	dial_init(&ask->dial, &stream->redial.route);
	r = client_dial(&ask->dial, ask->deadline, diag);
	if (!r && ask->dial.pid != pid)
		r = BAD_ASK_GONE;
	r = r ? r : way->ask(stream, ask, way->arg, diag);
	dial_fini(&ask->dial);
	return r == OA_E_UNREACHABLE || r == DIAL_GONE ? BAD_ASK_GONE : r;
}

int bad_ask_once(struct oa_stream *stream, uint64_t deadline, const struct bad_ask_way *way,
		 struct bad_list *list, struct diag *diag)
{
	struct bad_ask ask = {.deadline = deadline, .list = list, .what = way->what};
	uint64_t pid = 0;

	bad_list_fini(list);
	pthread_mutex_lock(&stream->lock);
	ask.n = stream->course.permutation.n;
	if (stream->session) {
		ask.job_id = stream->session->job_id;
		pid = stream->session->pid;
	}
	pthread_mutex_unlock(&stream->lock);
	diag_set(diag, "accessd is gone");
	return pid ? bad_ask_dial(stream, pid, &ask, way, diag) : BAD_ASK_GONE;
}

static int bad_ask_tries(struct oa_stream *stream, int timeout_ms, const struct bad_ask_way *way,
			 struct bad_list *list, struct diag *diag)
{
	uint64_t deadline = dial_deadline(timeout_ms ? timeout_ms : BAD_ASK_MS);
	int r = BAD_ASK_GONE;

	for (unsigned i = 0; i < BAD_ASK_TRIES && r == BAD_ASK_GONE; i++) {
		int lost;

		r = bad_ask_once(stream, deadline, way, list, diag);
		lost = r == BAD_ASK_GONE ? wait_session(stream, timeout_ms, deadline) : 0;
		if (lost)
			return diag_fail(diag, lost, "%s", oa_error_text(stream));
	}
	return r == BAD_ASK_GONE ? OA_E_UNREACHABLE : r;
}

int bad_ask_fail(struct oa_stream *stream, int code, const char *text)
{
	pthread_mutex_lock(&stream->lock);
	diag_fail(&stream->trouble.error, code, "%s", text);
	pthread_mutex_unlock(&stream->lock);
	return code;
}

int bad_ask(struct oa_stream *stream, int timeout_ms, const struct bad_ask_way *way,
	    struct bad_list *list)
{
	struct diag diag = {""};
	int r;

	wait_enter(stream);
	r = bad_ask_tries(stream, timeout_ms, way, list, &diag);
	if (r)
		bad_ask_fail(stream, r, diag.text);
	wait_leave(stream);
	return r;
}

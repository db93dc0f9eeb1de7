/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of bad samples: of those that accessd has met in this job's stream, the job's own, and those that
 * the job came to itself, which a stream remembers for as long as it is open. So what was skipped before
 * accessd was restarted stays in the list, with its name; why is then not known until it is met again.
 *
 * It is asked on a connection of its own, by pages, so that oa_next() may go on in another thread meanwhile, and a
 * stream that has failed can be asked as well. The job's number means something to one accessd only: each
 * connection is checked to be to that one.
 */

#include "libaccess/connect/client.h"
#include "libaccess/error.h"
#include "libaccess/stream.h"
#include "shmring/bad_list.h"
#include "shmring/proto.h"

#define BAD_SAMPLES_MS 600000
#define BAD_SAMPLES_TRIES 8 /* accessd may be restarted meanwhile, not for ever */

enum { BAD_SAMPLES_GONE = 320 }; /* not that accessd, or not that job any more */

#define BAD_SAMPLES_UNKNOWN \
	"accessd does not know (any more): it was restarted since, or had no memory for it"

struct oa_bad_list { /* never changes: needs no lock */
	struct bad_list list;
};

/* ---- the conversation ---- */

struct bad_samples_ask {
	struct dial dial;
	uint64_t deadline, job_id, n; /* n: samples of the dataset */
	struct bad_list *list;
};

static int bad_samples_send(const struct bad_samples_ask *ask, uint64_t from, const uint64_t *ids,
			    uint64_t n_ids, struct diag *diag)
{
	int r = wire_tell(ask->dial.sock, PROTO_BAD, WIRE_U64(PROTO_KEY_JOB_ID, ask->job_id),
			  WIRE_BYTES(PROTO_KEY_IDS, ids, n_ids * sizeof(*ids)),
			  WIRE_NONZERO(PROTO_KEY_FROM, ids ? 0 : from));

	if (r == WIRE_E_CLOSED)
		return BAD_SAMPLES_GONE;
	return r ? error_of_errno(diag, r, "asking accessd for bad samples") : 0;
}

static int bad_samples_receive(struct bad_samples_ask *ask, struct wire_in *in, struct diag *diag)
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
					 "accessd has not listed the bad samples in time");
		r = dial_wait(&wait, dial_fd(&ask->dial), ask->deadline);
		if (r)
			return diag_fail(diag, r, "interrupted by a signal");
	}
}

/* *ret_done: of `total` places or ids; at least one more than before, unless all are, and an entry for
 * each. So what accessd says ends, and has no more entries than the dataset has samples. */
static int bad_samples_read(const struct bad_samples_ask *ask, const struct wire_in *in,
			    uint64_t before, uint64_t *ret_done, uint64_t *ret_total,
			    struct diag *diag)
{
	uint64_t done, total, count = ask->list->count;
	const void *bytes;
	size_t size;
	int r = BAD_PAGE_E_BAD;

	if (wire_get_bytes(in, PROTO_KEY_ENTRIES, &bytes, &size) == 0 &&
	    wire_get_u64(in, PROTO_KEY_DONE, &done) == 0 &&
	    wire_get_u64(in, PROTO_KEY_TOTAL, &total) == 0 && done <= total && total <= ask->n &&
	    (done > before || (done == before && done == total)))
		r = bad_list_add(ask->list, bytes, size, ask->n);
	if (r == 0 && ask->list->count - count != done - before)
		r = BAD_PAGE_E_BAD;
	if (r < 0)
		return error_of_errno(diag, r, "the list of bad samples");
	if (r)
		return diag_fail(diag, -EPROTO,
				 "accessd's list of bad samples makes no sense: is it an accessd?");
	*ret_done = done;
	*ret_total = total;
	return 0;
}

/* One page: places from *done on, or with ids those of them. */
static int bad_samples_page(struct bad_samples_ask *ask, const uint64_t *ids, uint64_t n_ids,
			    uint64_t *done, uint64_t *ret_total, struct diag *diag)
{
	_cleanup_(wire_in_fini) struct wire_in in;
	int r;

	wire_in_init(&in);
	r = bad_samples_send(ask, *done, ids, n_ids, diag);
	r = r ? r : bad_samples_receive(ask, &in, diag);
	if (r)
		return r == DIAL_GONE ? BAD_SAMPLES_GONE : r;
	if (in.type == PROTO_BAD_SAMPLES)
		return bad_samples_read(ask, &in, ids ? 0 : *done, done, ret_total, diag);
	r = dial_other(&ask->dial, &in, diag);
	return r == OA_E_INVALID ? BAD_SAMPLES_GONE : r;
}

/* All that accessd knows. */
static int bad_samples_fetch(struct bad_samples_ask *ask, struct diag *diag)
{
	uint64_t done = 0, total = 0;
	int r;

	do
		r = bad_samples_page(ask, NULL, 0, &done, &total, diag);
	while (!r && done < total);
	return r;
}

/* The names of samples, a page of them after the other. */
static int bad_samples_name(struct bad_samples_ask *ask, const uint64_t *ids, uint64_t count,
			    struct diag *diag)
{
	int r = 0;

	while (!r && count > 0) {
		uint64_t n = BASE_MIN(count, (uint64_t)BAD_PAGE_IDS), done = 0, total = 0;

		r = bad_samples_page(ask, ids, n, &done, &total, diag);
		if (!r && (done == 0 || done > n))
			r = diag_fail(diag, -EPROTO,
				      "accessd's list of bad samples makes no sense");
		ids += done;
		count -= r ? 0 : done;
	}
	return r;
}

/* ---- whose they are ---- */

/* The samples that the job's epochs have, by id; *ret NULL: all. */
static int bad_samples_own(const struct course *course, uint64_t **ret)
{
	_cleanup_free_ int64_t *listed = NULL;
	const struct sampler *sampler = &course->sampler;
	const int64_t *ids = course->is_listed ? sampler->ids : NULL;
	uint64_t count = sampler->n_ids;
	int r = 0;

	*ret = NULL;
	if (!ids && course->part.bits) {
		r = part_list(&course->part, &listed);
		ids = listed;
		count = course->part.count;
	}
	if (r || !ids)
		return r;
	*ret = calloc(bits_words(course->permutation.n) + 1, sizeof(**ret));
	for (uint64_t i = 0; *ret && i < count; i++)
		if ((uint64_t)ids[i] < course->permutation.n)
			bits_set(*ret, (uint64_t)ids[i]);
	return *ret ? 0 : -ENOMEM;
}

static void bad_samples_keep_own(struct bad_list *list, const uint64_t *own)
{
	uint64_t kept = 0;

	for (uint64_t i = 0; own && i < list->count; i++)
		if (bits_test(own, list->item[i].id))
			list->item[kept++] = list->item[i];
	if (own)
		list->count = kept;
}

/* Those that the job came to and that are not in the list, which is ordered: heap. */
static int bad_samples_missing(const struct met *met, const struct bad_list *list, uint64_t **ret,
			       uint64_t *ret_count)
{
	uint64_t count = bits_count(met->bits, met->n), at = 0, n = 0;
	uint64_t *ids = malloc((count + 1) * sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	for (uint64_t word = 0; word < bits_words(met->n); word++)
		for (uint64_t bits = met->bits[word]; bits; bits &= bits - 1) {
			uint64_t id = word * 64 + (uint64_t)__builtin_ctzll(bits);

			while (at < list->count && list->item[at].id < id)
				at++;
			if (at == list->count || list->item[at].id != id)
				ids[n++] = id;
		}
	*ret = ids;
	*ret_count = n;
	return 0;
}

/* ---- all of it ---- */

static int bad_samples_collect(struct oa_stream *stream, struct bad_samples_ask *ask,
			       struct diag *diag)
{
	_cleanup_free_ uint64_t *missing = NULL, *own = NULL;
	uint64_t count = 0;
	int r = bad_samples_fetch(ask, diag);

	if (r)
		return r;
	bad_list_sort(ask->list);
	pthread_mutex_lock(&stream->lock);
	r = bad_samples_own(&stream->course, &own);
	bad_samples_keep_own(ask->list, own);
	r = r ? r : bad_samples_missing(&stream->met, ask->list, &missing, &count);
	pthread_mutex_unlock(&stream->lock);
	if (r)
		return error_of_errno(diag, r, "the list of bad samples");
	r = bad_samples_name(ask, missing, count, diag);
	bad_list_sort(ask->list);
	return r;
}

static int bad_samples_ask(struct oa_stream *stream, uint64_t pid, struct bad_samples_ask *ask,
			   struct diag *diag)
{
	int r;

	dial_init(&ask->dial, &stream->redial.route);
	r = client_dial(&ask->dial, ask->deadline, diag);
	if (!r && ask->dial.pid != pid)
		r = BAD_SAMPLES_GONE;
	r = r ? r : bad_samples_collect(stream, ask, diag);
	dial_fini(&ask->dial);
	return r == OA_E_UNREACHABLE || r == DIAL_GONE ? BAD_SAMPLES_GONE : r;
}

/* One try. BAD_SAMPLES_GONE: the session is not, or no more, what it was. */
static int bad_samples_try(struct oa_stream *stream, uint64_t deadline, struct bad_list *list,
			   struct diag *diag)
{
	struct bad_samples_ask ask = {.deadline = deadline, .list = list};
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
	return pid ? bad_samples_ask(stream, pid, &ask, diag) : BAD_SAMPLES_GONE;
}

int bad_samples_look(struct oa_stream *stream, uint64_t deadline, struct bad_list *list,
		     struct diag *diag)
{
	return bad_samples_try(stream, deadline, list, diag);
}

/* 0, or what went wrong, with diag. */
static int bad_samples_list(struct oa_stream *stream, int timeout_ms, struct bad_list *list,
			    struct diag *diag)
{
	uint64_t deadline = dial_deadline(timeout_ms ? timeout_ms : BAD_SAMPLES_MS);
	int r = BAD_SAMPLES_GONE;

	for (unsigned i = 0; i < BAD_SAMPLES_TRIES && r == BAD_SAMPLES_GONE; i++) {
		int lost;

		r = bad_samples_try(stream, deadline, list, diag);
		lost = r == BAD_SAMPLES_GONE ? wait_session(stream, timeout_ms, deadline) : 0;
		if (lost)
			return diag_fail(diag, lost, "%s", oa_error_text(stream));
	}
	return r == BAD_SAMPLES_GONE ? OA_E_UNREACHABLE : r;
}

/* ---- for callers ---- */

int oa_bad_samples(struct oa_stream *stream, int timeout_ms, struct oa_bad_list **ret)
{
	struct oa_bad_list *made;
	struct diag diag = {""};
	int r = -ENOMEM;

	if (!stream || !ret)
		return OA_E_INVALID;
	if (!guard_is_ours(&stream->guard))
		return OA_E_FORKED;
	wait_enter(stream);
	diag_set(&diag, "oa_bad_samples(): out of memory");
	made = calloc(1, sizeof(*made));
	if (made)
		r = bad_samples_list(stream, timeout_ms, &made->list, &diag);
	if (r) {
		oa_bad_samples_free(made);
		pthread_mutex_lock(&stream->lock);
		diag_fail(&stream->trouble.error, r, "%s", diag.text);
		pthread_mutex_unlock(&stream->lock);
	} else {
		*ret = made;
	}
	wait_leave(stream);
	return r;
}

uint64_t oa_bad_samples_count(const struct oa_bad_list *list)
{
	return list ? list->list.count : 0;
}

int oa_bad_samples_at(const struct oa_bad_list *list, uint64_t at, struct oa_bad_sample *ret)
{
	struct oa_bad_sample sample;
	struct bad_page_entry entry;
	size_t size;

	if (!list || !ret || at >= list->list.count)
		return OA_E_INVALID;
	bad_list_get(&list->list, at, &entry);
	size = BASE_MIN(ret->size, sizeof(sample));
	sample = (struct oa_bad_sample){
	    .size = size,
	    .id = (int64_t)entry.id,
	    .name = entry.name,
	    .stage = *entry.stage ? entry.stage : "unknown",
	    .error = *entry.stage ? entry.why : BAD_SAMPLES_UNKNOWN,
	};
	memcpy(ret, &sample, size);
	return 0;
}

void oa_bad_samples_free(struct oa_bad_list *list)
{
	if (list)
		bad_list_fini(&list->list);
	free(list);
}

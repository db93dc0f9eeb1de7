/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of bad samples: of those that accessd has met in this job's stream, the job's own, and those that
 * the job came to itself, which a stream remembers for as long as it is open. So what was skipped before
 * accessd was restarted stays in the list, with its name; why is then not known until it is met again.
 */

#include "libaccess/samples/bad_ask.h"
#include "libaccess/error.h"
#include "libaccess/stream.h"

#define BAD_SAMPLES_UNKNOWN \
	"accessd does not know (any more): it was restarted since, or had no memory for it"

struct oa_bad_list { /* never changes: needs no lock */
	struct bad_list list;
};

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

static int bad_samples_collect(struct oa_stream *stream, struct bad_ask *ask, void *unused,
			       struct diag *diag)
{
	_cleanup_free_ uint64_t *missing = NULL, *own = NULL;
	uint64_t count = 0;
	int r = bad_ask_all(ask, diag);

	(void)unused;
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
	r = bad_ask_ids(ask, missing, count, diag);
	bad_list_sort(ask->list);
	return r;
}

static const struct bad_ask_way bad_samples_way = {"bad samples", bad_samples_collect, NULL};

int bad_samples_look(struct oa_stream *stream, uint64_t deadline, struct bad_list *list,
		     struct diag *diag)
{
	return bad_ask_once(stream, deadline, &bad_samples_way, list, diag);
}

/* ---- for callers ---- */

int oa_bad_samples(struct oa_stream *stream, int timeout_ms, struct oa_bad_list **ret)
{
	struct oa_bad_list *made;
	int r;

	if (!stream || !ret)
		return OA_E_INVALID;
	if (!guard_is_ours(&stream->guard))
		return OA_E_FORKED;
	made = calloc(1, sizeof(*made));
	if (!made)
		return bad_ask_fail(stream, -ENOMEM, "oa_bad_samples(): out of memory");
	r = bad_ask(stream, timeout_ms, &bad_samples_way, &made->list);
	if (r)
		oa_bad_samples_free(made);
	else
		*ret = made;
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

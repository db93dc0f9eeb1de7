/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The names of samples, by their numbers. accessd has them in the index of the stream's version of the data set, so a job
 * keeps none, and pays for those that it asks for.
 */

#include "libaccess/samples/bad_ask.h"
#include "libaccess/stream.h"

/* The names of a list in one block, NULL behind the last one. */
static char **sample_names_joined(const struct bad_list *list)
{
	size_t bytes = (list->count + 1) * sizeof(char *);
	struct bad_page_entry entry;
	char **names, *text;

	for (uint64_t i = 0; i < list->count; i++) {
		bad_list_get(list, i, &entry);
		bytes += strlen(entry.name) + 1;
	}
	names = malloc(bytes);
	if (!names)
		return NULL;
	text = (char *)(names + list->count + 1);
	for (uint64_t i = 0; i < list->count; i++) {
		size_t size;

		bad_list_get(list, i, &entry);
		size = strlen(entry.name) + 1;
		names[i] = memcpy(text, entry.name, size);
		text += size;
	}
	names[list->count] = NULL;
	return names;
}

struct sample_names_of {
	const int64_t *ids;
	uint64_t count;
	char **names; /* owned: the answer */
};

static int sample_names_check(const struct sample_names_of *of, uint64_t n, struct diag *diag)
{
	for (uint64_t i = 0; i < of->count; i++)
		if ((uint64_t)of->ids[i] >= n)
			return diag_fail(diag, OA_E_INVALID,
					 "ids[%llu] is %lld: the data set has samples 0 to %llu",
					 (unsigned long long)i, (long long)of->ids[i],
					 (unsigned long long)n - 1);
	return 0;
}

static int sample_names_collect(struct oa_stream *stream, struct bad_ask *ask, void *arg,
				struct diag *diag)
{
	struct sample_names_of *of = arg;
	int r = sample_names_check(of, ask->n, diag);

	(void)stream;
	if (!r)
		r = bad_ask_ids(ask, (const uint64_t *)(const void *)of->ids, of->count, diag);
	if (r)
		return r;
	of->names = sample_names_joined(ask->list);
	return of->names ? 0 : diag_fail(diag, -ENOMEM, "oa_sample_names(): out of memory");
}

int oa_sample_names(struct oa_stream *stream, const int64_t *ids, uint64_t count, int timeout_ms,
		    char ***ret)
{
	struct sample_names_of of = {ids, count, NULL};
	const struct bad_ask_way way = {"samples' names", sample_names_collect, &of};
	struct bad_list list = {.count = 0};
	int r;

	if (!stream || (!ids && count) || !ret)
		return OA_E_INVALID;
	if (!guard_is_ours(&stream->guard))
		return OA_E_FORKED;
	r = bad_ask(stream, timeout_ms, &way, &list);
	bad_list_fini(&list);
	if (!r)
		*ret = of.names;
	return r;
}

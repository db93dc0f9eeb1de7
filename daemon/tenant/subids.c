/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subordinate uids. The file is the administrator's, and one that says two things of a uid, or gives somebody root's,
 * is not guessed at: accessd says which line it is, and does not start. A user whom the database does not know
 * (any more) has no jobs, so his ranges are nobody's.
 */
#include "daemon/tenant/subids.h"

#include <stdio.h>

#include "base/identity.h"
#include "base/log.h"

#define LINE_MOST 512

/* ---- a line ---- */

/* 0; SUBIDS_E_BAD; -ENOENT: the user is not there. */
static int parse_line(char *line, struct subids_range *ret)
{
	char *colon = strchr(line, ':');
	const char *text = colon ? colon + 1 : "";
	struct identity owner;
	uint64_t first, count;

	if (!colon || colon == line || !base_parse_number(&text, IDENTITY_MOST, &first) ||
	    *text++ != ':' || !base_parse_number(&text, IDENTITY_MOST, &count) || *text ||
	    first == 0 || count == 0 || count > UINT32_MAX - first)
		return SUBIDS_E_BAD;
	*colon = '\0';
	ret->first = (uint32_t)first;
	ret->last = (uint32_t)(first + count - 1);
	if (identity_of_user(line, &owner))
		return -ENOENT;
	ret->owner = owner.uid;
	return 0;
}

/* ---- the file ---- */

static int add_range(struct subids *subids, size_t *room, const struct subids_range *range)
{
	if (!base_grow(&subids->range, room, subids->n + 1, sizeof(*range)))
		return -ENOMEM;
	subids->range[subids->n++] = *range;
	return 0;
}

static int read_lines(FILE *file, const char *path, struct subids *subids, struct diag *diag)
{
	char line[LINE_MOST];
	size_t room = 0;
	int r = 0;

	for (unsigned number = 1; r == 0 && fgets(line, sizeof(line), file); number++) {
		struct subids_range range = {.line = number};
		const size_t length = strcspn(line, "\n");
		const bool is_whole = line[length] == '\n' || feof(file);

		line[length] = '\0';
		if (is_whole && (!*line || *line == '#'))
			continue;
		r = is_whole && subids->n < SUBIDS_MOST ? parse_line(line, &range) : SUBIDS_E_BAD;
		if (r == -ENOENT)
			log_line(LOG_LEVEL_INFO, "subids-unknown", "file=\"%s\" line=%u", path,
				 number);
		if (r == SUBIDS_E_BAD)
			diag_set(diag,
				 "%s:%u: write user:first:count, with numbers from 1 to %u, at "
				 "most %d lines",
				 path, number, UINT32_MAX - 1, SUBIDS_MOST);
		r = r == -ENOENT ? 0 : r ? r : add_range(subids, &room, &range);
	}
	if (r == -ENOMEM)
		diag_set(diag, "no memory for the ranges of %s", path);
	return r;
}

static int by_first(const void *a, const void *b)
{
	const struct subids_range *one = a, *other = b;

	return BASE_ORDER(one->first, other->first);
}

static int order(struct subids *subids, const char *path, struct diag *diag)
{
	if (subids->n > 0)
		qsort(subids->range, subids->n, sizeof(*subids->range), by_first);
	for (size_t i = 1; i < subids->n; i++) {
		const struct subids_range *before = &subids->range[i - 1], *range = before + 1;

		if (range->first > before->last)
			continue;
		return diag_fail(diag, SUBIDS_E_BAD,
				 "%s:%u: uid %u is in line %u, too: take it out of one of them",
				 path, range->line, (unsigned)range->first, before->line);
	}
	return 0;
}

int subids_read(const char *path, struct subids *ret, struct diag *diag)
{
	struct subids subids = {.range = NULL};
	FILE *file = fopen(path, "re");
	int r;

	if (!file) {
		r = -errno;
		return diag_fail(diag, r, "cannot read %s: %s", path, strerror(-r));
	}
	r = read_lines(file, path, &subids, diag);
	if (!r && ferror(file))
		r = diag_fail(diag, -EIO, "cannot read %s: is it a file?", path);
	fclose(file);
	r = r ? r : order(&subids, path, diag);
	if (r)
		subids_fini(&subids);
	else
		*ret = subids;
	return r;
}

void subids_fini(struct subids *subids)
{
	free(subids->range);
	*subids = (struct subids){.range = NULL};
}

uid_t subids_owner(const struct subids *subids, uid_t uid)
{
	const uint64_t i = BASE_SEARCH(at, 0, subids->n, subids->range[at].last < uid);

	return i < subids->n && subids->range[i].first <= uid ? subids->range[i].owner : uid;
}

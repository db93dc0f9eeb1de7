/* SPDX-License-Identifier: Apache-2.0 */

/*
 * peers = slurm: the nodes of the job in which accessd was started, by SLURM_JOB_NODELIST, each on the port of this
 * node's peer_listen. The list is expanded here, as `scontrol show hostnames` would: no program of Slurm's is needed.
 */

#include <stdio.h>

#include "cluster/peers/peers_kind.h"

#define VARIABLE "SLURM_JOB_NODELIST"
#define AGAIN_MS 60000
#define SOON_MS 5000
#define MOST_BRACKETS 4 /* of one name */

struct names { /* under construction, with a comma behind each */
	FILE *stream;
	size_t n;
	char name[PEERS_HOST];
};

static bool expand(struct names *names, size_t length, const char *rest, size_t size,
		   unsigned depth);

static bool emit(struct names *names, size_t length)
{
	if (length == 0 || names->n == PEERS_MOST)
		return false;
	names->n++;
	return fprintf(names->stream, "%.*s,", (int)length, names->name) > 0;
}

/* A number of a range as it is written, "007": its value, and how many figures. */
static bool parse_figures(const char **at, uint64_t *ret, int *ret_figures)
{
	const char *begin = *at;

	if (!base_parse_number(at, 999999999, ret))
		return false;
	*ret_figures = (int)(*at - begin);
	return true;
}

/* "01-03,7" up to ']': each number with what is behind the bracket. */
static bool expand_ranges(struct names *names, size_t length, const char *at, const char *end,
			  size_t rest, unsigned depth)
{
	while (at < end) {
		uint64_t from, to;
		int figures, last;

		if (!parse_figures(&at, &from, &figures))
			return false;
		to = from;
		if (at < end && *at == '-' && (at++, !parse_figures(&at, &to, &last)))
			return false;
		if (at > end || (at < end && *at++ != ',') || to < from || to - from >= PEERS_MOST)
			return false;
		for (; from <= to; from++) {
			char number[24];
			int n = snprintf(number, sizeof(number), "%0*llu", figures,
					 (unsigned long long)from);

			if (length + (size_t)n >= sizeof(names->name))
				return false;
			memcpy(names->name + length, number, (size_t)n);
			if (!expand(names, length + (size_t)n, end + 1, rest, depth + 1))
				return false;
		}
	}
	return true;
}

/* name has `length` bytes; size bytes of the text are to come. */
static bool expand(struct names *names, size_t length, const char *rest, size_t size,
		   unsigned depth)
{
	for (size_t i = 0; i < size; i++) {
		const char *close = rest[i] == '[' ? memchr(rest + i, ']', size - i) : NULL;

		if (close && close > rest + i + 1 && depth < MOST_BRACKETS)
			return expand_ranges(names, length, rest + i + 1, close,
					     size - (size_t)(close + 1 - rest), depth);
		if (strchr("[], \t", rest[i]) || length + 1 >= sizeof(names->name))
			return false;
		names->name[length++] = rest[i];
	}
	return emit(names, length);
}

/* Of one name, up to the comma that is in no brackets. */
static size_t name_size(const char *text)
{
	bool is_inside = false;
	size_t i = 0;

	for (; text[i] && (text[i] != ',' || is_inside); i++)
		is_inside = text[i] == '[' || (is_inside && text[i] != ']');
	return i;
}

int peers_slurm_expand(const char *text, char **ret, struct diag *diag)
{
	char *list = NULL;
	size_t size = 0;
	struct names names = {.stream = open_memstream(&list, &size)};
	bool is_good = names.stream != NULL && *text != '\0';

	for (const char *at = text; is_good && *at;) {
		const size_t n = name_size(at);

		is_good = expand(&names, 0, at, n, 0);
		at += n + (at[n] == ',');
	}
	if (names.stream && fclose(names.stream))
		is_good = false;
	if (!is_good) {
		free(list);
		return diag_fail(diag, -EINVAL,
				 "%s=%s is no list of 1 to %d nodes as Slurm writes it", VARIABLE,
				 BASE_QUOTED(text, PEERS_HOST), PEERS_MOST);
	}
	list[size - 1] = '\0'; /* the last comma */
	*ret = list;
	return 0;
}

static int slurm_check(const char *spec, struct diag *diag)
{
	const char *nodes = getenv(VARIABLE);
	_cleanup_free_ char *list = NULL;

	if (*spec)
		return diag_fail(diag, -EINVAL, "peers = slurm:%s: there is nothing behind slurm",
				 spec);
	if (!nodes)
		return diag_fail(diag, -EINVAL,
				 "peers = slurm, but there is no " VARIABLE " in accessd's "
				 "environment: start accessd inside the job, with srun");
	return peers_slurm_expand(nodes, &list, diag);
}

static void slurm_run(struct peers_look *look)
{
	struct peers_found found = {NULL, 0, 0};
	_cleanup_free_ char *list = NULL;
	struct diag diag;
	bool is_whole;

	if (peers_slurm_expand(getenv(VARIABLE), &list, &diag))
		return;
	do {
		is_whole = peers_resolve_list(look, list, &found);
	} while (!peers_wait(look, is_whole ? AGAIN_MS : SOON_MS));
	free(found.entries);
}

const struct peers_kind peers_slurm = {"slurm", slurm_check, slurm_run};

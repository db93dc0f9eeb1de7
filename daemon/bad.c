/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad samples. Budgets count distinct ids, not productions: a file that is broken is one bad sample
 * however many epochs and jobs meet it, so a long training run does not fail on its tenth epoch for
 * what it tolerated in the first. The list is sorted and as long as the largest budget that anybody
 * set plus one; a stream whose every sample is bad ends by its jobs' budgets long before it is
 * large.
 */
#include "daemon/bad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "worker/worker.h"

void bad_fini(struct bad *bad)
{
	free(bad->id);
	free(bad->reason);
	*bad = (struct bad){0};
}

static uint64_t lower_bound(const struct bad *bad, uint64_t id)
{
	uint64_t low = 0, high = bad->count;

	while (low < high) {
		uint64_t middle = (low + high) / 2;

		if (bad->id[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool bad_add(struct bad *bad, uint64_t id)
{
	uint64_t at = lower_bound(bad, id);

	if (at < bad->count && bad->id[at] == id)
		return false;
	if (bad->count == bad->room) {
		uint64_t room = bad->room ? 2 * bad->room : 16;
		uint64_t *larger = realloc(bad->id, room * sizeof(*larger));

		if (!larger)
			return false;
		bad->id = larger;
		bad->room = room;
	}
	memmove(&bad->id[at + 1], &bad->id[at], (bad->count - at) * sizeof(*bad->id));
	bad->id[at] = id;
	bad->count++;
	return true;
}

void bad_explain(struct bad *bad, uint64_t instance, uint32_t position, uint64_t id,
		 const char *text)
{
	struct bad_reason *reason;

	if (!bad->reason && !(bad->reason = calloc(BAD_REASONS, sizeof(*bad->reason))))
		return;
	reason = &bad->reason[bad->reasons++ % BAD_REASONS];
	*reason = (struct bad_reason){.instance = instance, .id = id, .position = position};
	snprintf(reason->text, sizeof(reason->text), "%s", text);
}

const char *bad_reason_of(const struct bad *bad, uint64_t instance, uint32_t position)
{
	uint64_t kept = BASE_MIN(bad->reasons, (uint64_t)BAD_REASONS);

	for (uint64_t i = 0; i < kept; i++)
		if (bad->reason[i].instance == instance && bad->reason[i].position == position)
			return bad->reason[i].text;
	return NULL;
}

static const char *stage_name(enum layout_fail stage)
{
	static const char *const names[] = {
	    [LAYOUT_FAIL_NONE] = "nothing",  [LAYOUT_FAIL_OPEN] = "open",
	    [LAYOUT_FAIL_READ] = "read",     [LAYOUT_FAIL_CHANGED] = "read",
	    [LAYOUT_FAIL_DECODE] = "decode", [LAYOUT_FAIL_REFUSED] = "decode",
	    [LAYOUT_FAIL_CRASH] = "worker",  [LAYOUT_FAIL_HANG] = "worker",
	    [LAYOUT_FAIL_MEMORY] = "memory", [LAYOUT_FAIL_OP] = "pipeline",
	};

	return (size_t)stage < BASE_ARRAY_LEN(names) && names[stage] ? names[stage] : "unknown";
}

/* What the numbers of an outcome mean, when the process left no text of its own. */
static void describe(char *ret, size_t size, enum layout_fail stage, int code, const char *detail)
{
	char quoted[200];

	base_quote(detail, quoted, sizeof(quoted));
	if (stage == LAYOUT_FAIL_HANG)
		snprintf(ret, size, "took too long; its worker was replaced");
	else if (stage == LAYOUT_FAIL_CRASH && WIFSIGNALED(code))
		snprintf(ret, size, "its worker died (%s) and was replaced",
			 strsignal(WTERMSIG(code)));
	else if (stage == LAYOUT_FAIL_CRASH && WIFEXITED(code) &&
		 WEXITSTATUS(code) == WORKER_EXIT_SPENT)
		snprintf(ret, size, "its worker ran out of memory and was replaced");
	else if (stage == LAYOUT_FAIL_CRASH)
		snprintf(ret, size, "its worker exited and was replaced");
	else if (*quoted)
		snprintf(ret, size, "%s", quoted);
	else if (stage == LAYOUT_FAIL_OPEN || stage == LAYOUT_FAIL_READ)
		snprintf(ret, size, "%s", strerror(code < 0 ? -code : code));
	else
		snprintf(ret, size, "code %d", code);
}

void bad_text(char *ret, size_t size, const char *folder, const char *name, uint64_t id,
	      enum layout_fail stage, int code, const char *detail)
{
	char why[256], quoted_folder[200], quoted_name[200];

	describe(why, sizeof(why), stage, code, detail);
	base_quote(folder, quoted_folder, sizeof(quoted_folder));
	base_quote(name, quoted_name, sizeof(quoted_name));
	snprintf(ret, size, "sample %llu, %s/%s, stage %s: %s", (unsigned long long)id,
		 quoted_folder, quoted_name, stage_name(stage), why);
}

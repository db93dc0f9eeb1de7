/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad samples. Budgets count distinct ids, not productions: a file that is broken is one bad sample
 * however many epochs and jobs meet it, so a long training run does not fail on its tenth epoch for
 * what it tolerated in the first. A budget may be as large as the dataset, and what is bad in it is its owner's to
 * say: so the ids are in a table by their hashes, where one more costs the same however many there are.
 * Beside it are notes of what was found, in the order in which the samples were met: who asks for them goes on
 * where he was, whatever was met since.
 */
#include "daemon/serve/bad.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include "base/bits.h"
#include "worker/worker.h"

void bad_fini(struct bad *bad)
{
	free(bad->entry);
	for (uint64_t i = 0; i < bad->noted; i += BAD_CHUNK)
		free(bad->chunk[i / BAD_CHUNK]);
	free(bad->chunk);
	free(bad->reason);
	*bad = (struct bad){0};
}

/* Where it is, or would be. */
static struct bad_entry *entry_of(const struct bad *bad, uint64_t id)
{
	uint64_t at = bits_mix(id);

	while (bad->entry[at & (bad->room - 1)].id && bad->entry[at & (bad->room - 1)].id != id + 1)
		at++;
	return &bad->entry[at & (bad->room - 1)];
}

static bool grow(struct bad *bad)
{
	struct bad larger = {.room = bad->room ? 2 * bad->room : 32};

	larger.entry = calloc(larger.room, sizeof(*larger.entry));
	if (!larger.entry)
		return false;
	for (uint64_t i = 0; i < bad->room; i++)
		if (bad->entry[i].id)
			*entry_of(&larger, bad->entry[i].id - 1) = bad->entry[i];
	free(bad->entry);
	bad->entry = larger.entry;
	bad->room = larger.room;
	return true;
}

bool bad_add(struct bad *bad, uint64_t id)
{
	struct bad_entry *entry;

	if (2 * bad->count >= bad->room && !grow(bad))
		return false;
	entry = entry_of(bad, id);
	if (entry->id)
		return false;
	entry->id = id + 1;
	bad->count++;
	return true;
}

/* ---- notes ---- */

static struct bad_note *note_room(struct bad *bad, uint64_t room)
{
	uint64_t n = bad->noted / BAD_CHUNK;
	struct bad_note **chunk = bad->chunk;

	if (bad->noted % BAD_CHUNK)
		return &chunk[n][bad->noted % BAD_CHUNK];
	if (bad->noted >= BAD_SURE && room < BAD_CHUNK * sizeof(**chunk))
		return NULL;
	if ((n & (n - 1)) == 0) /* it is full at each power of two */
		chunk = reallocarray(chunk, n ? 2 * n : 1, sizeof(*chunk));
	if (!chunk)
		return NULL;
	bad->chunk = chunk;
	return chunk[n] = malloc(BAD_CHUNK * sizeof(**chunk));
}

void bad_keep(struct bad *bad, uint64_t id, enum layout_fail stage, int code, const char *detail,
	      uint64_t room)
{
	struct bad_note *note = note_room(bad, room);

	if (!note) {
		bad->lost++;
		return;
	}
	*note = (struct bad_note){.id = id, .code = code, .stage = (uint8_t)stage};
	snprintf(note->detail, sizeof(note->detail), "%s", detail);
	entry_of(bad, id)->place = ++bad->noted;
}

const struct bad_note *bad_note_at(const struct bad *bad, uint64_t place)
{
	return &bad->chunk[place / BAD_CHUNK][place % BAD_CHUNK];
}

const struct bad_note *bad_note_of(const struct bad *bad, uint64_t id)
{
	uint64_t place = bad->room ? entry_of(bad, id)->place : 0;

	return place ? bad_note_at(bad, place - 1) : NULL;
}

uint64_t bad_bytes(const struct bad *bad)
{
	uint64_t chunks = (bad->noted + BAD_CHUNK - 1) / BAD_CHUNK;

	return bad->room * sizeof(*bad->entry) + chunks * BAD_CHUNK * sizeof(**bad->chunk);
}

/* ---- why ---- */

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

const char *bad_stage_name(enum layout_fail stage)
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
void bad_why(char *ret, size_t size, enum layout_fail stage, int code, const char *detail)
{
	char quoted[200];

	base_quote(detail, quoted, sizeof(quoted));
	if (stage == LAYOUT_FAIL_HANG)
		snprintf(ret, size,
			 "took longer than sample_timeout_ms (accessd.conf) allows for its size; "
			 "its worker was replaced; raise it if the sample is good");
	else if (stage == LAYOUT_FAIL_CRASH && WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL)
		snprintf(
		    ret, size,
		    "its workers were killed, however often it was tried: by their user, or by "
		    "the kernel for want of memory; lower memory or workers (accessd.conf), or "
		    "raise the limit");
	else if (stage == LAYOUT_FAIL_CRASH && WIFSIGNALED(code))
		snprintf(ret, size, "its worker died (%s) and was replaced",
			 strsignal(WTERMSIG(code)));
	else if (stage == LAYOUT_FAIL_CRASH && WIFEXITED(code) &&
		 WEXITSTATUS(code) == WORKER_EXIT_SPENT)
		snprintf(ret, size, "its worker ran out of memory and was replaced");
	else if (stage == LAYOUT_FAIL_CRASH)
		snprintf(ret, size, "its worker exited and was replaced");
	else if (*quoted && stage == LAYOUT_FAIL_REFUSED && code == -EFBIG)
		snprintf(ret, size,
			 "%s; raise arena (accessd.conf), or cut the file into smaller ones",
			 quoted);
	else if (stage == LAYOUT_FAIL_MEMORY && !strncmp(quoted, "no memory for ", 14))
		snprintf(ret, size, "%s; raise worker_memory (accessd.conf)", quoted);
	else if (*quoted)
		snprintf(ret, size, "%s", quoted);
	else if (stage == LAYOUT_FAIL_OPEN || stage == LAYOUT_FAIL_READ)
		snprintf(ret, size, "%s", strerror(code < 0 ? -code : code));
	else
		snprintf(ret, size, "code %d", code);
}

void bad_folder(char *ret, size_t size, const char *path, bool is_manifest)
{
	char *mark, *brace, *slash;

	snprintf(ret, size, "%s", path);
	if (!is_manifest)
		return;
	mark = strrchr(ret, '?');
	if (mark && strchr(mark, '=')) /* options; else of a folder's name */
		*mark = '\0';
	brace = strchr(ret, '{');
	if (brace)
		*brace = '\0';
	slash = strrchr(ret, '/');
	if (slash)
		*slash = '\0';
}

void bad_text(char *ret, size_t size, const char *folder, const char *name, uint64_t id,
	      enum layout_fail stage, int code, const char *detail)
{
	char why[256];

	bad_why(why, sizeof(why), stage, code, detail);
	snprintf(ret, size, "sample %llu, %s%s%s, stage %s: %s", (unsigned long long)id,
		 *name == '/' ? "" : BASE_QUOTED(folder, 200), *name == '/' ? "" : "/",
		 BASE_QUOTED(name, 200), bad_stage_name(stage), why);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An indexer: access-reader, executed anew, with a shard that it can read and a pipe that it can write to,
 * and from then on in the sandbox of workers. It has nothing of what its maker has in memory, no
 * other descriptor, and no system call to come by one. It ends with its shard, or with its maker.
 */

#include "storage/source/source_indexer.h"

#include "base/json.h"
#include "base/sandbox.h"
#include "storage/source/source_kind.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARD_FD 0
#define PIPE_FD 1
#define INDEXER_MEMORY (UINT64_C(64) << 20)
#define INDEXER_BUFFER 65536
#define READ_TRIES 3

_Static_assert(INDEXER_BUFFER >= sizeof(struct indexer_word) + INDEXER_MOST_TEXT, "one fits");

struct speech { /* words that were not written yet */
	uint8_t bytes[INDEXER_BUFFER];
	size_t used;
};

static void flush(struct speech *speech)
{
	if (base_write_all(PIPE_FD, speech->bytes, speech->used))
		_exit(1); /* nobody listens any more */
	speech->used = 0;
}

static void say(struct speech *speech, const struct indexer_word *word, const char *text)
{
	if (speech->used + sizeof(*word) + word->text_bytes > sizeof(speech->bytes))
		flush(speech);
	memcpy(speech->bytes + speech->used, word, sizeof(*word));
	memcpy(speech->bytes + speech->used + sizeof(*word), text, word->text_bytes);
	speech->used += sizeof(*word) + word->text_bytes;
}

static int on_record(void *arg, const struct scan_record *record)
{
	char text[INDEXER_MOST_TEXT];
	const size_t key = strnlen(record->key, SCAN_MOST_KEY - 1) + 1;
	const size_t label = record->word ? strnlen(record->word, SCAN_MOST_WORD - 1) + 1 : 0;
	const struct indexer_word word = {
	    .at = record->at,
	    .bytes = record->bytes,
	    .label = record->label,
	    .said = INDEXER_RECORD,
	    .text_bytes = (uint32_t)(key + label),
	};

	memcpy(text, record->key, key);
	if (label)
		memcpy(text + key, record->word, label);
	say(arg, &word, text);
	return 0;
}

static int read_shard(void *arg, uint64_t at, uint8_t *ret, uint32_t bytes)
{
	unsigned failures = 0;

	(void)arg;
	for (uint32_t got = 0; got < bytes;) {
		const ssize_t r = pread(SHARD_FD, ret + got, bytes - got, (off_t)(at + got));

		/* some network file systems fail in passing */
		if (r < 0 && errno != EINTR && (errno != EIO || ++failures == READ_TRIES))
			return -errno;
		if (r == 0)
			return -ENODATA; /* it became shorter */
		got += r > 0 ? (uint32_t)r : 0;
	}
	return 0;
}

static const struct source_scan *scan_of(const char *name)
{
	const struct source_ops *const kinds[] = {
#define SOURCE(kind) &source_##kind,
#include "storage/source/source_tbl.h"
#undef SOURCE
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++)
		if (kinds[i]->shards && strcmp(kinds[i]->shards->scan->name, name) == 0)
			return kinds[i]->shards->scan;
	return NULL;
}

/* Nothing of the shard was looked at before. */
static int settle(uint64_t *ret_bytes)
{
	const struct sandbox_limits limits = {
	    .memory = INDEXER_MEMORY, .event_fd = PIPE_FD, .reads = true, .read_fd = SHARD_FD};
	struct stat st;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    fstat(SHARD_FD, &st) < 0)
		return -errno;
	prctl(PR_SET_NAME, "access-indexer");
	*ret_bytes = (uint64_t)st.st_size;
	return sandbox_enter(&limits);
}

static void conclude(struct speech *speech, int r, const struct scan_sink *sink)
{
	struct indexer_word word = {.said = INDEXER_END};

	if (r == SCAN_E_BAD) {
		word.said = INDEXER_BAD;
		word.at = sink->bad_at;
		word.text_bytes = (uint32_t)strlen(sink->why) + 1;
	} else if (r) {
		word.said = INDEXER_BROKE;
		word.at = (uint64_t)-r;
	}
	say(speech, &word, sink->why);
	flush(speech);
}

int source_indexing_main(char *const arguments[3])
{
	static struct speech speech;
	const struct source_scan *scan = scan_of(arguments[0]);
	struct scan_shard shard = {.name = arguments[1], .options = arguments[2]};
	const struct scan_reader reader = {.read = read_shard};
	struct scan_sink sink = {.record = on_record, .arg = &speech};

	json_in_prepare(); /* scans of some kinds read JSON */
	if (!scan || settle(&shard.bytes))
		return 1;
	conclude(&speech, scan_shard_run(scan, &shard, &reader, &sink), &sink);
	return 0;
}

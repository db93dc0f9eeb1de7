/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An indexer: access-reader, executed anew, with a shard that it can read and a pipe that it can write to,
 * and from then on in the sandbox of workers. It has nothing of what its maker has in memory, no
 * other descriptor, and no system call to come by one. It ends with its shard, or with its maker.
 *
 * Of a shard in an object store it has no descriptor, but a pipe: through the one it says which bytes it wants, through the other
 * these come. It asks for blocks: small ones where it jumps, ever larger ones where it reads one after the other.
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
	    .at = record->at | (uint64_t)record->width << SCAN_PLACE_BITS,
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

/* ---- bytes that it asks for ---- */

struct blocks { /* of an object; the last of them */
	struct speech *speech;
	uint64_t shard_bytes, at;
	uint32_t size,
	    next; /* bytes that are there; that are asked for next, if it lies behind them */
	uint8_t bytes[INDEXER_MOST];
};

/* Exactly so many, or it ends: nobody gives any more. */
static void take_block(uint8_t *to, uint32_t left)
{
	while (left) {
		const ssize_t got = read(SHARD_FD, to, left);

		if (got == 0 || (got < 0 && errno != EINTR))
			_exit(1);
		to += BASE_MAX(got, 0);
		left -= (uint32_t)BASE_MAX(got, 0);
	}
}

/* One that begins at `at`: larger than the last one, where it lies not farther behind it than that is long. */
static void ask_block(struct blocks *blocks, uint64_t at)
{
	const uint64_t end = blocks->at + blocks->size;
	const bool is_next = blocks->size && at >= end && at - end <= blocks->size;
	struct indexer_word want = {.at = at, .said = INDEXER_WANT};

	blocks->next = is_next ? BASE_MIN(2 * blocks->next, INDEXER_MOST) : INDEXER_FIRST;
	blocks->at = at;
	blocks->size = want.bytes =
	    (uint32_t)BASE_MIN(blocks->shard_bytes - at, (uint64_t)blocks->next);
	say(blocks->speech, &want, "");
	flush(blocks->speech);
	take_block(blocks->bytes, want.bytes);
}

static int read_blocks(void *arg, uint64_t at, uint8_t *ret, uint32_t bytes)
{
	struct blocks *blocks = arg;

	while (bytes) {
		uint32_t there;

		if (at < blocks->at || at >= blocks->at + blocks->size)
			ask_block(blocks, at);
		there = (uint32_t)BASE_MIN(blocks->at + blocks->size - at, (uint64_t)bytes);
		memcpy(ret, blocks->bytes + (at - blocks->at), there);
		at += there;
		ret += there;
		bytes -= there;
	}
	return 0;
}

/* ---- bytes that it has ---- */

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
static int settle(bool is_pipe, uint64_t *ret_bytes)
{
	const struct sandbox_limits limits = {.memory = INDEXER_MEMORY,
					      .event_fd = PIPE_FD,
					      .reads = true,
					      .read_fd = SHARD_FD,
					      .is_pipe = is_pipe};
	struct stat st;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    fstat(SHARD_FD, &st) < 0)
		return -errno;
	prctl(PR_SET_NAME, "access-indexer");
	if (!is_pipe)
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

/* false: it is none of the two. */
static bool is_option(const char *option, bool *ret_is_pipe, uint64_t *ret_bytes)
{
	const size_t length = strlen(INDEXER_PIPE_OPTION);
	const char *number = option + length;

	*ret_is_pipe = strncmp(option, INDEXER_PIPE_OPTION, length) == 0;
	if (*ret_is_pipe)
		return base_parse_number(&number, INT64_MAX, ret_bytes) && !*number;
	return strcmp(option, INDEXER_OPTION) == 0;
}

int source_indexing_main(int argc, char *const argv[])
{
	static struct speech speech;
	struct blocks *blocks = NULL;
	struct scan_reader reader = {.read = read_shard};
	struct scan_sink sink = {.record = on_record, .arg = &speech};
	struct scan_shard shard = {.bytes = 0};
	const struct source_scan *scan;
	bool is_pipe;

	if (argc != 5 || !is_option(argv[1], &is_pipe, &shard.bytes))
		return -1;
	scan = scan_of(argv[2]);
	shard.name = argv[3];
	shard.options = argv[4];
	json_in_prepare(); /* scans of some kinds read JSON */
	if (is_pipe && !(blocks = calloc(1, sizeof(*blocks))))
		return 1;
	if (!scan || settle(is_pipe, &shard.bytes))
		return 1;
	if (blocks) {
		blocks->speech = &speech;
		blocks->shard_bytes = shard.bytes;
		reader = (struct scan_reader){.read = read_blocks, .arg = blocks};
	}
	conclude(&speech, scan_shard_run(scan, &shard, &reader, &sink), &sink);
	return 0;
}

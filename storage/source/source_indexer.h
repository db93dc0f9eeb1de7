/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Scans shards, each in a process of its own that can do nothing but read it and tell what it found
 * (base/sandbox.h): the bytes are a stranger's, and access-reader has the user's rights.
 */

#include "base/base.h"
#include "storage/dataset.h"
#include "storage/source/scan/scan_shard.h"
#include "storage/source/scan/words.h"

struct indexer_record { /* its key is the next one of the shard's keys */
	uint64_t at;    /* its place */
	uint32_t bytes, label;
};
#define INDEXER_WORDS (SCAN_MOST_LABEL + 1) /* labels from here on: numbers of words */

struct indexer_shard {
	const char *name; /* below the root; borrowed */
	/* what was found */
	uint64_t bytes;
	int64_t mtime_ns, ctime_ns;
	struct indexer_record *record; /* owned */
	size_t n_records, room_records;
	char *keys; /* owned; a NUL after each */
	size_t keys_bytes, room_keys;
	struct words words; /* owned */
};

struct indexer_job {
	const struct source_scan *scan;
	const char *options;                  /* of the source; "" */
	const struct reader_dataset *dataset; /* whose root is open */
	unsigned threads;                     /* shards at a time, at most */
};

/* ---- source_indexer.c: in access-reader ---- */

/* Scans them all. 0, or as scan_build() with diag. progress->tell is called from this thread. */
int source_indexer_run(const struct indexer_job *job, struct indexer_shard *shard, size_t n,
		       const struct scan_progress *progress, struct diag *diag);
void source_indexer_free(struct indexer_shard *shard, size_t n);
uint64_t source_indexer_memory(const struct indexer_shard *shard,
			       size_t n); /* of all that they own */

/* ---- source_indexing.c: the other end ---- */

#define INDEXER_OPTION "--index"
#define INDEXER_MOST_TEXT (SCAN_MOST_KEY + SCAN_MOST_WORD)

enum indexer_said {
	INDEXER_RECORD = 0, /* text: the key; behind it the label, if that is a word */
	INDEXER_END = 1,
	INDEXER_BAD = 2,   /* at: where; text: why */
	INDEXER_BROKE = 3, /* at: errno */
	INDEXER_WANT =
	    4, /* at, bytes: these of the shard, which it waits for at the other end of descriptor 0 */
};

struct
    indexer_word { /* what a process tells through its pipe; text_bytes follow, the last one a NUL */
	uint64_t at;
	uint32_t bytes, label;
	uint32_t said, text_bytes; /* enum indexer_said; at most INDEXER_MOST_TEXT */
};

/* What a process has as descriptor 0: the shard, or where bytes of it come that it asks for: the option is then that, and behind it
 * the shard's size. */
#define INDEXER_PIPE_OPTION "--index-pipe="
#define INDEXER_FIRST (UINT32_C(64) << 10) /* bytes that it asks for, and ever more ... */
#define INDEXER_MOST (UINT32_C(4) << 20)   /* ... as long as one lies behind the other */

/* The process, if these are its arguments: the scan's name, the shard's, options; 1 is the pipe. Returns its exit status, or -1:
 * they are another's. */
int source_indexing_main(int argc, char *const argv[]);

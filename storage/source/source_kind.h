/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kinds of data sets: what their bytes mean. A kind is a file here and a line in source_tbl.h. Inside
 * access-reader only.
 *
 * Openers ask each kind of the table in its order whether the root is one of its data sets, and the first
 * that says so has it. From then on all that is special about the data set is behind these functions.
 */

#include "storage/dataset.h"
#include "storage/source/scan/scan_shard.h"

struct dali_shard;
struct indexer_shard;
struct queue_task;
struct reader_dataset;
struct reader_link;
struct reader_outcome;
struct reader_many;
struct source_range;
struct wrapped_note;

#define SOURCE_MOST_MADE 64
enum { SOURCE_E_NONE = 100 }; /* beside DATASET_E_...: it is of another kind */

struct source_making {            /* one sample that a process of the user's is to make */
	struct reader_link *link; /* of the thread */
	const struct queue_task *task;
	uint8_t *buffer;
	bool (*is_leaving)(void *arg); /* its queue */
	void *arg;
};

struct source_shards { /* a kind whose samples lie in shards: source_shards.c does all the rest */
	const char *what;     /* "tar shards", for messages */
	const char *suffixes; /* names of shards end in one of them, any case: ".tar\0" */
	bool
	    is_numbered; /* or in "-00000-of-00128" alone; behind a suffix that may stand for all kinds */
	const char *compressed; /* those that end so are refused */
	bool
	    gives_way; /* often left over: a folder with anything else that is a data set is none of these */
	const struct source_scan *scan;
	bool
	    has_pixels; /* places of its records have the width of pixels above them (scan_shard.h) */
	const char *empty; /* what a shard must have, so that there is a sample in it */
	/* Not NULL: DALI has an index for such shards, and this is the check of it (dali.h). */
	const char *(*dali)(const char *text, size_t size, const struct dali_shard *shard,
			    uint64_t *ret_line);
	bool has_wids; /* and wids one for many of them */
	/* Not NULL: keys are paths in a tree of folders. Takes out what is no sample of it, and makes labels and the order within a shard of
	 * the paths. 0, or as index(), with diag. */
	int (*arrange)(const struct reader_dataset *dataset, struct indexer_shard *shard, size_t n,
		       const struct scan_progress *progress, struct diag *diag);
	/* Not NULL: a record is a row, whose key is the name of a file. Makes of place and bytes of each record its
	 * file's time of change and size. 0, or as index(), with diag. */
	int (*resolve)(const struct reader_dataset *dataset, struct indexer_shard *shard, size_t n,
		       unsigned threads, const struct scan_progress *progress, struct diag *diag);
};

/* Where a record of that place begins. */
static inline uint64_t source_shards_at(const struct source_shards *kind, uint64_t place)
{
	return kind->has_pixels ? place & ((UINT64_C(1) << SCAN_PLACE_BITS) - 1) : place;
}

struct source_ops {
	const char *name;
	uint32_t kind;    /* enum index_kind: what the records of its index mean */
	bool is_fleeting; /* its index is sooner made than stored */
	const struct source_shards *shards; /* NULL: it has none */
	const char *options;                /* that may be given: "one\0other\0"; NULL: none may */
	/* NULL: access-ctl convert takes it; else what it is, and why not */
	const char *unconverted;

	/* In an opener's thread. Is the root one of these? What it learns may go to dataset->source. 0,
	 * SOURCE_E_NONE, or why it is refused: DATASET_E_... or negative errno, with diag. */
	int (*probe)(struct reader_dataset *dataset, const struct scan_progress *progress,
		     struct diag *diag);
	/* In an opener's thread. 0 and the index in place, made in a memfd (*ret_fd, the caller's) or the stored
	 * one (*ret_fd stays -1); or as scan_build(). */
	int (*index)(struct reader_dataset *dataset, unsigned threads,
		     const struct scan_progress *progress, int *ret_fd, struct diag *diag);
	/* Not NULL: a sample is one range of one file, which this says without any I/O, in any thread, and where in the buffer its bytes
	 * go; ret->bytes may be any. 0, SOURCE_E_NONE: not of this data set; DATASET_E_BAD: the index is damaged. */
	int (*place)(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
		     struct source_range *ret);
	/* Such bytes came: makes of them what read() gives. NULL: they are. */
	void (*settle)(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
		       struct reader_outcome *ret);
	bool files; /* each sample is a file */
	/* In any reading thread: the sample's bytes, as many as the index says, from what is below root_fd now;
	 * then, is it still what the index says? buffer NULL: only that. */
	void (*read)(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
		     uint8_t *buffer, struct reader_outcome *ret);
	/* Not NULL: samples are made, not read. They have threads of their own, as many as threads() says, and
	 * nothing is kept of them. */
	void (*make)(const struct reader_dataset *dataset, const struct source_making *making,
		     struct reader_outcome *ret);
	unsigned (*threads)(const struct reader_dataset *dataset);
	/* Or NULL: how many samples a thread with that link may ask for at once now, 1 .. SOURCE_MOST_MADE; and
	 * several that are made, or read, and told as they come. Those that it does not settle are to be asked for one by one:
	 * of those that are made one may have ended the process that made them. */
	unsigned (*most)(const struct reader_dataset *dataset, const struct reader_link *link);
	void (*many)(const struct reader_dataset *dataset, struct reader_many *many);
	/* Frees dataset->source; nobody reads any more. NULL: there is none. */
	void (*close)(struct reader_dataset *dataset);
};

/* ---- source_root.c: one that is being opened; any thread, but of one dataset one at a time ---- */

/* Opens what dataset->path names, whose root_fd is -1; all that is in one is the kind's then. 0 or negative errno with diag. */
int source_open_root(struct reader_dataset *dataset, struct diag *diag);
/* Says that it cannot be opened. -error. */
int source_refuse_root(const struct reader_dataset *dataset, int error, struct diag *diag);
/* What the two and its kind hold, whatever of it there is. Nobody reads any more. */
void source_close(struct reader_dataset *dataset);

/* ---- source_kind.c ---- */

/* The kind of the data set whose root is open, in dataset->ops; as probe(). Its options are some that it takes. */
int source_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
		 struct diag *diag);
/* Is it the name of a shard of another kind than this? Manifests are to those that give way. may_give_way: or of one that does. */
bool source_is_of_others(const struct source_shards *shards, const char *name, bool may_give_way);
/* To be read, below the root, by source_read() alone. A FIFO that took its place holds nobody (O_NONBLOCK). Leaves its time of
 * access alone, if that is allowed. The descriptor, or negative errno. */
int source_open_file(const struct reader_dataset *dataset, int root_fd, const char *name);
/* The same of one of its shards, or of the root, if that is the one. */
int source_open_shard(const struct reader_dataset *dataset, const char *name);
/* Puts the stored index in place, if there is one that is whole and of this kind. */
bool source_map_stored(struct reader_dataset *dataset);
/* Puts a new index in place. 0, or as dataset_map() with diag, and *fd is closed, and -1. */
int source_map_new(struct reader_dataset *dataset, int *fd, struct diag *diag);
void source_unmap(struct reader_dataset *dataset);

/* ---- source_file.c: a sample that is a file ---- */

/* As read(), of the file whose name the index has, below root_fd or a whole path. */
void source_file_read(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
		      uint8_t *buffer, struct reader_outcome *ret);
/* As place(). */
int source_file_place(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
		      struct source_range *ret);

/* ---- the kinds ---- */

#define SOURCE(name) extern const struct source_ops source_##name;
#include "storage/source/source_tbl.h"
#undef SOURCE

/* ---- source_wrapped.c ---- */

const struct wrapped_note *source_wrapped_note(const struct reader_dataset *dataset);

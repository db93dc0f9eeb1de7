/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Data sets in object stores (shmring/bucket.h): which are these, and how their bytes come. All else about them is as of files.
 */

#include "base/base.h"

#include <pthread.h>

struct bucket_link;
struct reader_dataset;
struct scan_progress;

struct bucket {       /* dataset->bucket */
	char *folder; /* owned: that has the note */
	char *url;    /* owned: what people call the data set, with its options */
	char *below;  /* owned: the root's folder, below FOLDER/data: "" or "FOLDER/" */
	const char
	    *file; /* in below, behind its end: the root's name there; NULL: the root is a folder */
	uint64_t wait_ns; /* for an access-bucket that is away */
	int patience_ms;  /* with one from which nothing comes */

	pthread_mutex_t lock;
	/* under the lock */
	struct bucket_link *idle;            /* owned: connections that nobody uses */
	const struct scan_progress *opening; /* who reads wants it; NULL: it is open */
	unsigned queues;                     /* that want it then */
};

/* ---- source_bucket.c ---- */

/* Is the root, which is open, of such a data set? Then dataset->bucket is. 0, or DATASET_E_REFUSED or negative errno with diag. */
int source_bucket_find(struct reader_dataset *dataset, struct diag *diag);
/* May it be read as dataset->how says? 0, or as probe(). */
int source_bucket_check(const struct reader_dataset *dataset, struct diag *diag);
void source_bucket_free(struct bucket *bucket); /* NULL is fine */
/* From now on whoever reads waits for an access-bucket that is away until it is cancelled; NULL: as long as there is a queue. */
void source_bucket_opening(struct bucket *bucket, const struct scan_progress *progress);
/* One queue more, or less, wants it. */
void source_bucket_want(struct bucket *bucket, bool wants);
/* Does nobody wait for its bytes any more? */
bool source_bucket_is_left(struct bucket *bucket);
#define BUCKET_NAME_ROOM 1026
/* What the object is called whose placeholder has that name below the root's folder, NULL: the root, which is a file. Returns its bytes, without
 * the NUL; 0: it would be none of this data set's, or its name is too long. ret: BUCKET_NAME_ROOM bytes. */
size_t source_bucket_name(const struct bucket *bucket, const char *name, char *ret);

/* ---- source_fetch.c: ranges of objects ---- */

#define SOURCE_SLOT (UINT32_C(4) << 20) /* bytes that one question is about, at most */
#define SOURCE_SLOTS 64                 /* questions that one thread waits for at once */

struct source_range {     /* what is wanted */
	const char *name; /* as of source_bucket_name() */
	uint64_t size;    /* of the object, as it was listed, and its tag */
	int64_t mtime_ns;
	uint64_t at;
	uint32_t bytes; /* 1 .. SOURCE_SLOT */
	uint8_t *to;
};

enum {
	SOURCE_E_CHANGED = 101
}; /* beside SOURCE_E_NONE: it is not the object that was listed, or is gone */
#define SOURCE_WHY 48

struct source_fetch {
	/* What is wanted next; false: nothing now. number, below SOURCE_SLOTS, is free then until it came. */
	bool (*next)(void *arg, unsigned number, struct source_range *ret);
	/* It came, or does not: 0, SOURCE_E_CHANGED or negative errno, with why; text is terminated. */
	void (*came)(void *arg, unsigned number, int result, const char *why);
	void (*pause)(void *arg); /* some came, and others are waited for; NULL: nobody asks */
	void *arg;
};
/* All that is wanted. Any thread. */
void source_fetch(struct bucket *bucket, const struct source_fetch *fetch);
void source_fetch_close(struct bucket *bucket); /* the connections; nobody asks any more */

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of a walk, one section a file. Inside walk*.c only. */

#include "base/hold.h"
#include "storage/walk.h"

#define WALK_MAX_THREADS 64
#define WALK_BATCH_BYTES 16384 /* text of a batch: some 500 names */
#define WALK_LEAST_NAME 6      /* of a sample in a batch: type, ".jpg", NUL */

struct walk_batch {                 /* names of one folder, each: type byte (d_type), name, NUL */
	struct walk_folder *folder; /* its lister or queue counts as a holder */
	size_t used;
	char text[WALK_BATCH_BYTES];
};

struct walk {
	int root_fd; /* borrowed */
	const char *root_name;
	const struct walk_kind *kind; /* borrowed */
	unsigned n_threads;
	bool open_only; /* nothing may be closed to anybody */
	pthread_mutex_t lock;
	pthread_cond_t work; /* something to do, or the end */
	pthread_cond_t done; /* for the calling thread */

	/* under the lock */
	struct walk_folder *folders; /* all */
	struct walk_folder *todo;
	struct walk_batch *queue[WALK_MAX_THREADS];
	unsigned n_queued;
	unsigned idle, running;            /* threads that wait for work; that live */
	uint64_t n_listed, n_files, bytes; /* bytes: of what is kept */
	struct walk_left left;
	bool stop;
	int error; /* the first one */
	struct diag *diag;
};

/* ---- walk.c: threads, the queue, failing ---- */

/* Hands the batch to an idle thread if there is one. true: *batch is a fresh one. */
bool walk_offer(struct walk *walk, struct walk_batch **batch);
bool walk_stopped(struct walk *walk);
/* A file with a picture's name that is no regular one. */
void walk_leave_out(struct walk *walk, const char *path, const char *name);
void walk_stop_memory(struct walk *walk);
/* path: of the folder; name: in it, or NULL. why: "is ...; do ..." */
void walk_refuse(struct walk *walk, const char *path, const char *name, const char *why);
/* Something is not open to everybody. */
void walk_refuse_closed(struct walk *walk);
void walk_refuse_errno(struct walk *walk, const char *path, const char *name, int error);

/* ---- walk_folder.c: the life of one folder ---- */

/* Adds a folder to the stack. parent NULL: the root. */
void walk_folder_push(struct walk *walk, const struct walk_folder *parent, const char *name);
/* Opens it for its lister, who is the first holder. false: refused, and said so, or gone. */
bool walk_folder_open(struct walk *walk, struct walk_folder *folder);
/* After the listing: was the folder changed meanwhile? */
void walk_folder_settle(struct walk_folder *folder);
/* One holder less; the last one closes and sorts the folder. */
void walk_folder_put(struct walk *walk, struct walk_folder *folder);

/* ---- walk_look.c: names and files ---- */

/* Lists one folder; *batch is the thread's own and may be exchanged. */
void walk_look_folder(struct walk *walk, struct walk_batch **batch, struct walk_folder *folder);
/* Looks at every name; the batch is empty afterwards. */
void walk_look_batch(struct walk *walk, struct walk_batch *batch);

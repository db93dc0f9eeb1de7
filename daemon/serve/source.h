/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A source: a dataset folder that is open at a version. Made for a client's OPEN; from then on the
 * index of that version is mapped here and in the reader.
 */

#include <sys/queue.h>
#include "daemon/loop.h"
#include "storage/dataset.h"
#include "storage/reader.h"

struct node;
struct domain;
struct source;

enum source_state {
	SOURCE_OPENING, /* the reader verifies the stored index or lists the folder */
	SOURCE_STORING, /* the new index is being written to our folder */
	SOURCE_READY,
	SOURCE_GONE, /* refused: freed when nobody uses it */
};

struct source_calls { /* of who has streams of it */
	void (*reopened)(struct source *source);
	void (*failed)(struct source *source, const char *text); /* it goes */
};

struct source_root { /* which folder or file it is that has the path */
	uint64_t device, inode;
	bool is_file, is_made; /* is_made: by processes of the user's, and from no disk of ours */
	uint64_t stamp;        /* of a file: its time of change */
	bool is_everywhere; /* open to all, and below cluster_paths: other nodes have it, too ... */
	struct hash_id way; /* ... in this very place */
};

struct source {
	LIST_ENTRY(source) link;
	struct domain *domain;
	struct node *node; /* the domain's */
	uint64_t id;       /* the reader's handle */
	char *path;
	char *shown; /* owned: what people call it, if that is not the path */
	enum reader_how how;
	struct source_root root; /* once it is open */
	bool is_open;            /* LOOK: the way to the root is open to everybody */
	enum source_state state;
	unsigned users; /* streams and connections that wait */
	int stored_fd;  /* stored index offered to the reader, -1: none */
	int index_fd;   /* index in use */
	struct dataset *dataset;
	uint64_t memory;             /* of index_fd, where it is no file: index_room.h */
	struct source_store *store;  /* while STORING */
	bool was_stored;             /* its index was written in this open */
	struct loop_watch *deadline; /* while OPENING: the reader says nothing for too long */
	uint64_t folders, files;     /* as the reader told last, 0: nothing yet */
	struct loop_watch *teller;   /* READY or GONE: those who wait are told, some a turn */
	char *refusal;               /* GONE: why */
	bool reopening; /* after a reader's death: the streams of this source wait for OPENED */
};

/* Opens path (absolute): each call looks at the folders anew, calls at the same time share one
 * look. The answer comes as conn_source_ready() / conn_source_refused() for every waiting
 * connection, in later turns of the loop. */
int source_request(struct domain *domain, const char *path, enum reader_how how,
		   struct source **ret);
void source_unref(struct source *source);
/* The same path at the same version, read in the same way: may who opens the one have the other? */
bool source_is_same(const struct source *one, const struct source *other);
/* Is what it reads that very folder or file, whoever has the path meanwhile? */
bool source_keeps_root(const struct source *source);
/* Its version says nothing of bytes, only where in which shard they lie: what is kept of it is kept by the root, too. */
bool source_has_shards(const struct source *source);
/* A file was not what the index says, which the folders did not tell: the stored index goes, so
 * that the next open lists the files anew. */
void source_forget(const struct source *source);

/* What people call it: a path, or the URL of what is in an object store. */
const char *source_shown(const struct source *source);

/* from from_children.c, before it is opened */
void source_called(struct domain *domain, uint64_t id, const char *shown);
/* from from_children.c; is_fleeting: the index is not worth a file */
void source_opened(struct domain *domain, uint64_t id, bool unchanged, bool is_fleeting,
		   const struct source_root *root, int index_fd); /* owns index_fd */
void source_looked(struct domain *domain, uint64_t id, const struct source_root *root,
		   bool is_open);
void source_refused(struct domain *domain, uint64_t id, const char *text);
void source_progress(struct domain *domain, uint64_t id, uint64_t folders, uint64_t files);
void source_reader_started(struct domain *domain);
/* No reader can be had: opens under way are refused, for one of them may be the cause; when it goes
 * on without any, the streams end. */
void source_reader_failed(struct domain *domain, const char *text);
/* A child ended: was it one of ours, that brought an index to the disk? */
bool source_stored(struct node *node, pid_t pid, int status);

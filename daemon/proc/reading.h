/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * accessd's side of the reader process (storage/reader.h): starts it, starts it again when it dies, and tells it
 * what it is to do. Knows nobody: what it says, and what becomes of it, is told by calls.
 */

#include "base/hash.h"
#include "daemon/proc/keeper.h"

struct domain;
struct reader_member;

struct reading_calls {                            /* of whose reader it is */
	void (*started)(struct domain *domain);   /* there is one, which knows nothing yet */
	void (*restarted)(struct domain *domain); /* ... in the place of one that died */
	bool (*said)(struct domain *domain, struct wire_in *in);
	void (*died)(struct domain *domain, int status);
	void (*hopeless)(struct domain *domain, const char *text); /* it dies again and again */
};

struct reading {
	const struct reading_calls *calls;
	struct domain *domain;
	struct child_wants wants;
	struct keeper keeper;
	uint64_t cpu_ns; /* of readers that ended */
	unsigned peers; /* other nodes that the reader was told of: what they have can be brought */
};

/* wants is copied. 0 or negative errno with diag. */
int reading_start(struct reading *reading, const struct child_wants *wants,
		  const struct reading_calls *calls, struct domain *domain, struct diag *diag);
/* waits: until it is gone; it may write what it has queued for its store. */
void reading_stop(struct reading *reading, bool waits);
uint64_t reading_cpu_ns(const struct reading *reading);

struct reading_place {   /* of the store */
	int folder_fd;   /* borrowed; -1: nothing is kept on a disk, ... */
	const char *why; /* ... for this reason */
	uint64_t limit;  /* bytes */
	bool is_suspect; /* the reader before may have died of it */
};
/* Where to keep things, and how much. */
void reading_store(struct reading *reading, const struct reading_place *place);

struct reading_ask {
	uint64_t id;
	const char *path;
	uint64_t how;  /* enum reader_how */
	uint64_t most; /* bytes that an index in memory may have */
};
/* index_fd: stored index to verify, or -1; stays the caller's. */
void reading_open(struct reading *reading, const struct reading_ask *ask, int index_fd);
void reading_close(struct reading *reading, uint64_t id);
void reading_attach(struct reading *reading, uint64_t id, uint32_t queue, int queue_fd,
		    int arena_fd);
/* The queue's samples in that stored form are this group of the store: cache_formed() follows. note: JSON
 * for people. is_shared: other nodes' processes of the same user know it by that name. */
void reading_form(struct reading *reading, uint32_t queue, unsigned form,
		  const struct hash_id *group, const char *note, bool is_shared);
/* Who was to make that form of the sample died of it. */
void reading_unmade(struct reading *reading, uint32_t queue, unsigned form, uint64_t sample);
/* One of its jobs has samples spread over so many nodes: this is that one. */
void reading_spread(struct reading *reading, uint32_t queue, uint32_t number, uint32_t nodes);
/* Something that a person asks of the store: chores_done() follows. */
void reading_chore(struct reading *reading, uint64_t id, uint64_t verb,
		   const struct hash_id *group);
void reading_chore_cancel(struct reading *reading, uint64_t id);
/* What a form that is kept saves: microseconds of a processor a MiB. */
void reading_worth(struct reading *reading, uint32_t queue, unsigned form, double us_per_mib);
/* The queue's stream brings another form now (or this one again): its values make room. */
void reading_yield(struct reading *reading, uint32_t queue, unsigned form, bool yields);
/* So much of the resident memory may be in use, and whether more is to be had at present. */
void reading_memory(struct reading *reading, uint64_t bytes, bool is_most);
/* The answer to its question. */
void reading_unread(struct reading *reading, uint64_t question);
/* Are the sources of so many samples as listed? revisit_said() follows. */
void reading_revisit(struct reading *reading, uint32_t queue, uint64_t id, const uint64_t *samples,
		     unsigned n);
void reading_detach(struct reading *reading, uint32_t queue);
/* There is a carrier, or a new one, between this node (self) and others: its rings (cluster/carrier.h), written by the
 * reader and by the carrier; they stay the caller's. To be said again to each new reader, and then who is there. */
void reading_peers(struct reading *reading, uint64_t self, int to_fd, int from_fd);
/* All others that are connected now, n of them, and the weight of this node. */
void reading_members(struct reading *reading, uint32_t weight, const struct reader_member *members,
		     unsigned n);

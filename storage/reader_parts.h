/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The parts of access-reader, one section a file. Nothing here is seen outside the program.
 *
 * Threads: the main one receives control messages; openers list datasets; the threads of a mount
 * read files; the peers' thread, where there are any, takes what other nodes say (reader_peers.c). Locks, in order: the
 * table of datasets (reader_open.c); a mount (reader_mount.c); the resident memory (reader_resident.c). None is held over
 * a system call that touches user data, and none of these while one of reader_peers.c is.
 */

#include "base/hold.h"
#include "shmring/queue.h"
#include "shmring/resident.h"
#include "shmring/rings.h"
#include "storage/dataset.h"
#include "storage/source/direct.h"
#include "storage/reader.h"
#include "storage/store.h"
#include "storage/store_table.h"

/* ---- reader_say.c: replies, from any thread; a lost connection ends the process ---- */

void reader_say_progress(uint64_t id, uint64_t folders, uint64_t files);
struct reader_dataset;
void reader_say_opened(const struct reader_dataset *dataset, int index_fd); /* -1: unchanged */
void reader_say_looked(uint64_t id, uint64_t device, uint64_t inode, bool is_open);
void reader_say_refused(uint64_t id, const uint64_t *queue, int code, const char *text);
void reader_say_queue(enum reader_message type, uint64_t queue);
void reader_say_wrong(uint64_t node, uint64_t sample);
void reader_say_revisited(uint64_t id, uint64_t queue, bool is_same);
void reader_say_failed(uint64_t queue, const struct queue_task *task);
void reader_say_state(const struct reader_state *state, const char *why);
void reader_say_formed(uint64_t queue, unsigned form, int table_fd,
		       const char *why); /* -1: why not */
void reader_say_ask_unread(uint64_t question);
/* Logs why and exits with 1. */
_Noreturn void reader_say_fatal(const char *event, const char *text);

/* ---- reader_room.c: memory for data sets that are being opened ---- */

struct reader_room {
	uint64_t most, taken; /* bytes */
	uint64_t refused;     /* that were asked for last, and not had */
};
/* Has it so many bytes in all, from now on? */
bool reader_room_takes(struct reader_room *one, uint64_t bytes);
void reader_room_leave(struct reader_room *one);
void reader_room_refuse(const struct reader_room *one, const char *path, struct diag *diag);

/* ---- reader_open.c: datasets ---- */

struct source_ops;
struct bucket;
struct reader_root { /* what was opened */
	uint64_t device, inode;
	uint64_t stamp; /* of a file: when it was written to last */
};
struct reader_dataset { /* open: immutable but for refs */
	uint64_t id;
	int root_fd; /* owned; a folder, or a file that is all of it; instead of a folder another one later,
			if it was made anew: reader_read.c */
	struct reader_root root;
	struct bucket *
	    bucket; /* owned; its files are placeholders of objects: source/source_bucket.h. NULL: it has files */
	struct dataset *index; /* owned */
	bool no_atime;         /* the user owns the root: try O_NOATIME */
	bool is_folder;
	const struct source_ops *ops; /* its kind: source/source_kind.h */
	void *source;                 /* the kind's own, which its close() frees */
	char *path;                   /* owned */
	const char *shown;            /* what people call it: path, or its URL */
	char *name;                   /* owned; the path without options */
	const char *options;          /* in name: behind its end, or "" */
	char *root_path;     /* owned; the root's: name, or of a list of shards their folder */
	const char *pattern; /* in name: the list below the root; NULL: it is none */

	/* under the table's lock */
	unsigned refs;
	bool cancelled, open;
	uint64_t found, moved_ns; /* by its opener; when that grew, or it was begun, 0: it waits */
	struct reader_dataset *next, *next_queued;
	/* of the opener */
	enum reader_how how;
	int stored_fd; /* owned; -1: no stored index */
	struct reader_room room;
};
void reader_open_init(unsigned scan_threads);
/* stored_fd is consumed; -1: none. most: bytes of memory that openings may take. The reply is sent later.
 * false: the id is in use. */
bool reader_open_request(uint64_t id, const char *path, enum reader_how how, uint64_t most,
			 int stored_fd);
void reader_open_cancel(uint64_t id);
/* A reference to an open dataset, or NULL. */
struct reader_dataset *reader_open_ref(uint64_t id);
void reader_open_unref(struct reader_dataset *dataset);

/* ---- reader_queue.c: queues and the threads that serve them ---- */

void reader_queue_init(unsigned threads, struct layout_doorbell *doorbell, int event_fd,
		       bool may_be_huge);
/* Consumes dataset's reference when it succeeds; fds stay the caller's. 0, QUEUE_E_BAD or negative
 * errno, with text in diag. */
int reader_queue_attach(uint64_t number, struct reader_dataset *dataset, int queue_fd, int arena_fd,
			struct diag *diag);
/* DETACHED is sent now or when the last read in flight has ended. false: no such queue. */
bool reader_queue_detach(uint64_t number);

/* For the keeper: a queue that is there, busy until it is put; NULL: there is none. */
struct reader_queue;
struct reader_queue *reader_queue_hold(uint64_t number);
void reader_queue_put(struct reader_queue *queue);
bool reader_queue_is_made(
    const struct reader_queue *queue); /* by processes, of which nothing is kept */
uint64_t reader_queue_samples(const struct reader_queue *queue);
uint64_t reader_queue_key(
    const struct reader_queue *queue); /* of its data set's version, for owner_of_spread() */
struct reader_resident;
struct reader_shared;
struct reader_kept {                      /* a queue's values of one form */
	struct store_group *group;        /* NULL: in memory alone */
	struct reader_resident *resident; /* the same in memory; NULL: none */
	struct reader_shared *shared;     /* NULL: other nodes get none of them */
};
/* The queue's values of that form, of which it has none yet, are these from now on, and it closes both. From the keeper alone. */
const struct reader_kept *reader_queue_take(struct reader_queue *queue, unsigned form,
					    const struct reader_kept *kept);
/* What the queue's values of that form save; of one that has no group (yet) nothing is noted. */
void reader_queue_worth(uint64_t number, unsigned form, double us_per_mib);
/* From the main thread: READER_YIELD; of one that has no group (yet) nothing is noted. */
void reader_queue_yield(uint64_t number, unsigned form, bool yields);
/* Where to keep an item of the write-back ring: the queue expects one of that sample; NULL: nowhere. */
const struct reader_kept *reader_queue_expect(struct reader_queue *queue,
					      const struct rings_item *item);
/* From the main thread: it does not come, who was to make it is dead. */
void reader_queue_unmade(uint64_t number, unsigned form, uint64_t sample);
/* For peers: one that is busy is busy once more, until it is put. */
void reader_queue_keep(struct reader_queue *queue);
/* Nobody asks for its tasks any more; of one that is busy. */
bool reader_queue_is_leaving(const struct reader_queue *queue);
/* The task that waits for a value is read from its source, and the entry is given back. */
struct reader_ask;
void reader_queue_again(struct reader_ask *ask);
/* Has a worker nothing to do, and was there nothing new since the last call, which left *seen? */
bool reader_queue_idles(uint32_t *seen);
struct value_head;
/* A reading thread looks at the source for one who asks: 1: reader_serve_looked() follows; 0: no queue has that group;
 * -1: too many wait for that, or the first one does for long. */
int reader_queue_look(const struct value_head *get);
/* From the main thread: reading threads look at the sources of so many samples; REVISITED follows. */
void reader_queue_revisit(uint64_t number, uint64_t id, const void *samples, size_t n);
/* A value of that form is this node's to keep on its disk. */
void reader_queue_store(struct reader_queue *queue, unsigned form, uint64_t sample,
			const uint8_t *value, uint32_t bytes);
/* It has come, from there, no larger than the task's room: ends the task and gives the entry back. */
void reader_queue_bring(struct reader_ask *ask, enum layout_from from, const uint8_t *value,
			uint32_t bytes);

/* ---- reader_keep.c: what is kept ---- */

int reader_keep_init(int rings_fd); /* 0, RINGS_E_BAD or negative errno */
/* Owns folder_fd if it says true; -1: there is no folder, for that reason. false: there is no write-back ring, or a store. */
bool reader_keep_store(int folder_fd, uint64_t limit, bool force, bool suspect, const char *why);
/* The answer is sent later. is_shared: other nodes may have its values. false: there is no store, or no such form. */
bool reader_keep_form(uint64_t queue, unsigned form, const struct hash_id *group, const char *note,
		      bool is_shared);
/* The queue has a job with samples spread over so many nodes, of which this is that one. false: as above. */
bool reader_keep_spread(uint64_t queue, uint32_t number, uint32_t nodes);
void reader_keep_end(void); /* what is queued is written, within some seconds */

/* ---- reader_resident.c: what of it lies ready in memory ---- */

/* Owns fd if it is 0; RESIDENT_E_BAD or negative errno. Without it there are no groups. */
int reader_resident_init(int fd);
void reader_resident_limit(uint64_t bytes, bool is_most); /* READER_MEMORY */
void reader_resident_unread(uint64_t question);           /* READER_UNREAD */
/* There is no store: groups, none of which was opened yet, have tables. From the keeper. false: nor is there any
 * memory. */
bool reader_resident_stand_alone(void);
/* memfd, as store_group_table(); borrowed until the last close. -1: it does not stand alone. */
int reader_resident_table(const struct reader_resident *group);
/* The values of a group that are in memory; NULL: none will be. */
struct reader_resident *reader_resident_open(const struct hash_id *id, uint64_t samples);
void reader_resident_close(struct reader_resident *group); /* NULL is fine, as below */
/* One who has it reads it no more, or does again; takes that back before he closes it. When all of them yield, it
 * makes room for others. */
void reader_resident_yield(struct reader_resident *group, bool yields);
struct reader_place {
	uint64_t place;      /* as in queue_task */
	const uint8_t *data; /* the same here */
	uint32_t bytes;
};
/* What it says holds for a task that is being read. */
bool reader_resident_find(const struct reader_resident *group, uint64_t sample,
			  struct reader_place *ret);
enum reader_resident_answer {
	RESIDENT_KEEPS, /* or has it already */
	RESIDENT_LATER, /* there will be room, or more is granted */
	RESIDENT_FULL,  /* nor is more to be had */
};
/* A copy stays in memory, if there is room. */
enum reader_resident_answer reader_resident_keep(struct reader_resident *group, uint64_t sample,
						 const uint8_t *value, size_t bytes);
void reader_resident_drop(const struct hash_id *id); /* all of it */
/* A copy of a value that is there, for who has no task that says so. 0, STORE_E_NONE or STORE_E_ROOM. */
int reader_resident_copy(const struct reader_resident *group, uint64_t sample, uint8_t *buffer,
			 size_t room, size_t *ret_bytes);
/* So much, since that was used, that more should be granted soon. */
bool reader_resident_has_grown(uint64_t since);
void reader_resident_hit(void);                       /* counts one */
void reader_resident_state(struct reader_state *ret); /* its members of it */

/* ---- reader_read.c: one sample ---- */

struct reader_outcome {
	enum layout_fail stage; /* LAYOUT_FAIL_NONE: good, text is then not set */
	int code;
	char text[48];
};
/* source/source_kind.c */
void reader_outcome_set(struct reader_outcome *ret, enum layout_fail stage, int code,
			const char *text);
#define READ_INDEX_DAMAGED "its entry in the index is damaged"
struct reader_wanted { /* one of several that are made, or read, at once */
	const struct queue_task *task;
	uint8_t *buffer;
	uint32_t before, behind; /* bytes on both sides of its bytes that are its, too */
	struct reader_outcome outcome;
	bool is_settled; /* the outcome is known; false from the caller, as the next one */
	bool is_left;    /* it cannot be brought so: whoever has time brings it by itself */
	bool is_told;    /* of the caller */
};
struct reader_many { /* those that a thread asks for at once */
	struct reader_link *link;
	struct reader_wanted *wanted;
	unsigned n;
	/* Some more are settled, or left: their tasks end now, or are others' to bring, and their memory is others'. */
	void (*tell)(struct reader_many *many);
	/* Another one, in the place of one that was told: others are still under way. NULL: there is none now. */
	struct reader_wanted *(*more)(struct reader_many *many);
};
/* Reads a sample's bytes to buffer (as many as the index says) and checks that they are still those of the
 * index. */
void reader_read_sample(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
			struct reader_outcome *ret);

/* That check alone, for a sample of which something is kept: what is kept must not outlive its file. */
void reader_check_sample(const struct reader_dataset *dataset, uint64_t sample,
			 struct reader_outcome *ret);

/* ---- reader_wrapped.c: samples of a wrapped data set ---- */

struct reader_link { /* a thread's connection to a pool, and its reads under way; zeros: none */
	bool is_open;
	int fd;            /* owned */
	uint8_t *memory;   /* owned */
	uint64_t bytes;    /* of memory */
	uint32_t room;     /* of a sample */
	struct hash_id id; /* whose pool */
	/* Samples that a question may be about: to that pool, and as long as answers come soon. */
	unsigned batch, most;
	struct direct_queue direct;
};
struct source_making;
/* Has the pool make the sample's record, at most the index' size of it. Waits as long as the note allows, or
 * until its queue leaves. */
void reader_wrapped_make(const struct reader_dataset *dataset, const struct source_making *making,
			 struct reader_outcome *ret);
/* As ops->most() and ops->many(): source/source_kind.h. */
unsigned reader_wrapped_most(const struct reader_dataset *dataset, const struct reader_link *link);
void reader_wrapped_make_many(const struct reader_dataset *dataset, struct reader_many *many);
void reader_wrapped_close(struct reader_link *link);

/* ---- reader_mount.c: a queue, and the mount that it is served by; of reader_queue.c and reader_mount.c alone ---- */

struct reader_queue {
	uint64_t number;
	struct queue queue;             /* mapping, owned */
	uint8_t *arena;                 /* mapping, owned */
	struct reader_dataset *dataset; /* a reference */
	struct reader_mount *mount;
	struct reader_kept kept[LAYOUT_FORMS]; /* owned; by the keeper, before has_kept */
	_Atomic bool has_kept[LAYOUT_FORMS];   /* for ever */
	bool yields[LAYOUT_FORMS];             /* of the main thread, until the queue is finished */
	_Atomic uint64_t touched;              /* bytes of the arena that were used so far, about */
	_Atomic uint64_t
	    gathered; /* bytes of it that were put into huge pages; UINT64_MAX: no more will be */
	uint32_t place, nodes; /* the keeper's: which of so many nodes of a job; 0: of none */
	_Atomic uint8_t
	    *expected; /* owned: one bit a sample of which any form is to come from a worker */

	/* under the mount's lock */
	struct reader_queue *next;
	unsigned busy;        /* threads that read for it */
	_Atomic bool leaving; /* for eyes without it, too: reader_queue_is_leaving() */
};

struct reader_mount {
	/* of the main thread */
	uint64_t device;
	unsigned threads;     /* started */
	_Atomic bool is_made; /* lock and condition are there, for ever */

	pthread_mutex_t lock;
	pthread_cond_t filled;
	/* under the lock */
	struct reader_queue *queues;
	unsigned n_queues;                      /* with those that are leaving */
	struct reader_ask *again, **again_end;  /* their tasks are read before others */
	struct reader_left *left, **left_end;   /* theirs next */
	struct reader_look *looks, **looks_end; /* in turn with other tasks */
	unsigned n_looks;
	struct reader_revisit *revisits, **revisits_end; /* before these */
	bool was_look;                                   /* what was claimed last */
};

struct reader_thread {
	struct reader_mount *mount;
	uint32_t owner;
	struct reader_link link;
};

void reader_mount_init(unsigned threads); /* of a mount that is no source of processes */
/* The mount of the queue's data set, with its threads, has it from now on. 0 or negative errno. From the main thread, as
 * the next one. */
int reader_mount_add(struct reader_queue *queue);
/* Nobody claims its tasks from now on; idle: nobody is busy with it, it is the caller's. NULL: there is none. */
struct reader_queue *reader_mount_remove(uint64_t number, bool *ret_idle);

struct reader_queue *reader_mount_hold(uint64_t number); /* NULL: there is none */
void reader_mount_keep(struct reader_queue *queue);
/* One busy thread less. true: the last one of a queue that was removed, which is the caller's. */
bool reader_mount_put(struct reader_queue *queue);

struct reader_revisit { /* samples whose sources are looked at for accessd */
	struct reader_revisit *next;
	struct reader_queue *queue; /* busy with it */
	uint64_t id;
	size_t n, begun;         /* samples; under the mount's lock: that threads have begun ... */
	size_t ended;            /* ... and ended with */
	_Atomic bool is_changed; /* one was; the others do not matter any more */
	uint64_t sample[];
};

struct reader_look;
struct reader_claim {                   /* at most one of the four */
	struct reader_ask *again;       /* came back from peers */
	struct reader_look *look;       /* owned */
	struct reader_revisit *revisit; /* samples of it, from ... to before ... */
	size_t from, to;
	struct reader_queue *queue; /* busy with the task: put it back */
	struct queue_task task;
	bool is_alone; /* it was claimed with others, and left */
};
/* The next of each kind; of queues the next one in turn that has a task. Waits while the mount has none of all. 0,
 * QUEUE_E_NONE: nothing, QUEUE_E_BAD: a task is forged. */
int reader_mount_claim(const struct reader_thread *thread, struct reader_claim *ret);
/* As reader_queue_look(), but for the bell. */
int reader_mount_look(const struct value_head *get);
/* As reader_queue_revisit(), but for the bell. */
void reader_mount_revisit(struct reader_revisit *revisit);
/* The claim's samples are through. true: they were the last, and the revisit is the caller's. */
bool reader_mount_revisited(const struct reader_claim *claim);
/* Has it values of that group, which other nodes share? */
bool reader_queue_shares(const struct reader_queue *queue, const struct hash_id *group);
/* The task is read before others of its mount. false: its queue is leaving. */
bool reader_mount_again(struct reader_ask *ask);
/* So is this one, which is claimed, by itself, by whichever thread; the queue is busy with it, too. false: not enough memory. */
bool reader_mount_leave(struct reader_queue *queue, const struct queue_task *task);

void *reader_queue_thread(void *thread); /* a struct reader_thread's, for ever */

/* ---- reader_many.c, and what it needs of reader_queue.c ---- */

struct reader_came { /* a kept form, 0: the file */
	uint8_t form;
	enum layout_from from;
	bool is_again; /* peers were asked, and had nothing but what came */
	uint32_t bytes;
	uint64_t resident; /* as in queue_task */
};
/* A task was: it is FAILED, accessd must see that. */
void reader_queue_forged(uint32_t owner);
/* Do the numbers of the task, which are shared memory's, fit the index and the arena? */
bool reader_queue_fits(const struct reader_queue *queue, const struct queue_task *task);
const struct reader_kept *reader_queue_kept(const struct reader_queue *queue,
					    unsigned form); /* NULL: none yet */
/* The task's part of the arena is there, before time is taken. */
void reader_queue_touch(struct reader_queue *queue, const struct queue_task *task);
enum reader_bring { READER_BRING_DONE, READER_BRING_WAITS, READER_BRING_SAMPLE };
/* What needs no reading: the form that is wanted, if it is kept, or nothing. WAITS: the task is others' to end. SAMPLE: the sample is to be read,
 * behind came->bytes that came already. */
enum reader_bring reader_queue_bring_kept(struct reader_queue *queue, const struct queue_task *task,
					  struct reader_came *came, struct reader_outcome *outcome);
/* One by itself. */
void reader_queue_serve(struct reader_thread *thread, struct reader_queue *queue,
			const struct queue_task *task);
/* It was brought, or not. */
void reader_queue_end(struct reader_queue *queue, const struct queue_task *task,
		      const struct reader_came *came, const struct reader_outcome *outcome,
		      uint64_t took_ns, uint64_t cpu_ns);
/* Other threads have a look at what was left. */
void reader_queue_wake(void);
/* The one that was claimed, and as many more as come at once with it. */
void reader_many_serve(struct reader_thread *thread, struct reader_queue *queue,
		       const struct queue_task *first);

/* ---- reader_chores.c: what people ask of the store ---- */

/* false: there is no such verb. group: of verbs that are about one. */
bool reader_chores_ask(uint64_t id, unsigned verb, const struct hash_id *group);
void reader_chores_cancel(uint64_t id);
/* From the keeper: its store, which chores may use until the next call returns; NULL: there is none. */
void reader_chores_store(struct store *store);
void reader_chores_end(void); /* waits for the chore under way, which ends soon */
void reader_say_chore_progress(uint64_t id, uint64_t done, uint64_t total);
void reader_say_chore(uint64_t id, int code, const char *text, int fd); /* fd -1: none */

/* ---- reader_guests.c: groups that peers name ---- */

/* From the keeper, before it opens a group: that is what its name says, and what peers said otherwise is closed. */
void reader_guests_claim(const struct hash_id *id, uint64_t samples, unsigned form,
			 const char *note);

/* ---- reader_peers.c: what comes from other nodes, and goes there ---- */

/* From the main thread: READER_PEERS, whose descriptors stay the caller's, and READER_MEMBERS. false: it makes no
 * sense. */
bool reader_peers_carrier(uint64_t self, int to_fd, int from_fd);
void reader_peers_start(void); /* the peers' thread, once there is a carrier */
bool reader_peers_members(uint32_t weight, const struct reader_member *members, unsigned n);
/* From the keeper: its store, which is used until the end. */
void reader_peers_store(struct store *store);
void reader_peers_end(void); /* of the peers' thread, which uses the store no more */
/* A group that other nodes know by the same name; NULL: not enough memory, or it is too large for theirs. The caller's,
 * to be freed. */
struct reader_shared *reader_peers_share(const struct hash_id *id, uint64_t samples, unsigned form,
					 const char *note);
/* From the keeper: such a group's samples are spread over nodes by the key; what is said counts from now on. */
void reader_spread_take(const struct reader_shared *shared, uint64_t key, uint32_t number,
			uint32_t nodes);
/* From a reading thread: the task, which is to be made, is asked of who may have what it is to make, and is theirs to
 * end. false: nobody is asked. */
bool reader_peers_ask(struct reader_queue *queue, struct reader_shared *shared,
		      const struct queue_task *task);
/* From a reading thread, of a form that no job waits for: is this node to make it? It owns the sample, nobody makes it yet, and who
 * asks for it waits from now on. */
bool reader_peers_makes_ahead(struct reader_shared *shared, uint64_t sample);
/* From the keeper: a worker made that value. true: it is another node's to keep, which has been given it. */
bool reader_peers_made(struct reader_shared *shared, const struct rings_item *item);
bool reader_peers_is_on(void); /* is somebody connected? */
/* It was to be made, and could not be. */
void reader_peers_not_made(struct reader_shared *shared, uint64_t sample);
/* An owner looks at the source of what he gives no more often than that. */
void reader_guests_recheck(uint64_t every_ns);
/* One of so many values that peers give is compared with the source; 0: none. */
void reader_checks_each(uint64_t each);
void reader_checks_state(struct reader_state *ret);

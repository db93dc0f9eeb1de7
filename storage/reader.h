/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * accessd <-> access-reader: control messages (base/wire.h) over a SOCK_SEQPACKET pair, the
 * reader's end is descriptor 3. The reader has the user's uid and groups; it alone opens user data.
 * The stream of work itself goes through queues (shmring/queue.h), not through messages.
 *
 * access-reader --threads N [--as UID:GID[:groups]]     (descriptor 3: control; dies with its parent)
 */

#include <stdint.h>

enum reader_message {
	/* accessd -> reader */
	/* [DIRECT], [HUGE]; fd 0: doorbell, fd 1: eventfd of accessd, [fd 2: write-back ring, [fd 3: resident memory
	 * -> ASK_UNREAD]] */
	READER_START = 1,
	READER_OPEN = 2, /* ID, PATH (absolute), HOW, LIMIT: bytes of memory that openings may take
			    together, [fd 0: stored index] -> PROGRESS*, OPENED | REFUSED */
	READER_CANCEL = 3, /* ID: end the open under way, or close the dataset */
	READER_ATTACH = 4, /* ID, QUEUE; fd 0: queue, fd 1: arena -> ATTACHED | REFUSED */
	READER_DETACH = 5, /* QUEUE -> DETACHED once no thread touches it any more */
	/* LIMIT, FORCE 0|1, SUSPECT 0|1; fd 0: its folder: what the store may have, or TEXT: why
	 * it has none; once, after a START with a write-back ring -> STATE, now and when it has
	 * changed */
	READER_STORE = 6,
	/* QUEUE, FORM, GROUP, NOTE, [SHARED]: that stored form of the queue's samples is brought
	 * where it is wanted, and kept where it is made; again: of the same GROUP -> FORMED */
	READER_FORM = 7,
	READER_CHORE = 8,        /* ID, VERB, GROUP: something that a person asks of the store
				 -> CHORE_PROGRESS*, CHORE_DONE; after a START with a write-back ring */
	READER_CHORE_CANCEL = 9, /* ID: ends soon; one that had not begun has no answer */
	READER_WORTH = 10, /* QUEUE, FORM, WORTH: what that form saves, for who may push out whom */
	READER_MEMORY = 11, /* LIMIT, MOST 0|1: bytes of the resident memory that may be in use, 0
			       until it is said; MOST: more is not to be had at present */
	READER_UNREAD = 12, /* ID: no task that was handed out before that ASK_UNREAD is read */
	/* QUEUE, FORM, YIELDS 0|1: the queue's stream brings nothing of that form any more, so its
	 * values make room where all others say so, too */
	READER_YIELD = 13,
	/* SELF, [RECHECK: who gives a value has looked at its source in that time], [COMPARE: one
	 * of so many values that peers give is made here, too, and compared; 0: none]; fd 0: ring
	 * to write, fd 1: ring to read (cluster/value.h): there is a carrier, or a new one */
	READER_PEERS = 14,
	READER_MEMBERS = 15, /* WEIGHT: this node's; MEMBERS: who is connected now, all of them */
	/* QUEUE, NUMBER, NODES: a job of the queue's stream has its samples spread over so many nodes, of
	 * which this is that one; the last one said holds */
	READER_SPREAD = 29,
	/* QUEUE, FORM, SAMPLE: who was to make that form of it died of it: nobody is to wait for that */
	READER_UNMADE = 30,
	/* ID, QUEUE, SAMPLES: are their sources as listed? -> REVISITED */
	READER_REVISIT = 31,
	/* reader -> accessd */
	READER_PROGRESS = 16, /* ID, FOLDERS, FILES */
	/* ID, DEVICE, INODE, [STAMP], [MADE], FLEETING 0|1: sooner made than stored; [INDEX, fd 0:
	 * sealed memfd]: without it the stored one holds */
	READER_OPENED = 17,
	READER_REFUSED = 18,  /* ID [QUEUE], CODE (enum of dataset.h or errno as negative in two's
				 complement), TEXT */
	READER_ATTACHED = 19, /* QUEUE */
	/* ID, DEVICE, INODE, OPENNESS 0|1 of the way to the root; ID is free again */
	READER_LOOKED = 22,
	READER_DETACHED = 20, /* QUEUE */
	READER_STATE = 23,    /* STATE, TEXT: why it is not on, or not on a disk */
	/* QUEUE, FORM; [TABLE, fd 0: storage/store.h]: without it TEXT says why not */
	READER_FORMED = 24,
	READER_CHORE_PROGRESS = 25, /* ID, FILES (done), FOLDERS (in all) */
	READER_CHORE_DONE = 26,     /* ID, CODE (0 or negative errno in two's complement), TEXT,
				       [LIST, fd 0: a sealed memfd with JSON] */
	READER_ASK_UNREAD = 27,     /* ID -> UNREAD, in its time */
	READER_REVISITED = 32,      /* ID, QUEUE, CODE: 0, or 1: some are not */
	READER_WRONG = 28, /* ID (of a node), SAMPLE: what it gave is not what the source says */
	/* QUEUE, ROW, TASK, SAMPLE: its reader says so itself, before the task's word does, which
	 * workers can write, too */
	READER_FAILED = 21,
};

enum reader_key {
	READER_KEY_ID = 1,      /* u64, accessd's number of the dataset handle */
	READER_KEY_PATH = 2,    /* string */
	READER_KEY_QUEUE = 3,   /* u64 */
	READER_KEY_FOLDERS = 4, /* u64 */
	READER_KEY_FILES = 5,   /* u64 */
	READER_KEY_INDEX = 6,   /* u64: says that there is a descriptor, as TABLE and LIST do */
	READER_KEY_CODE = 7,
	READER_KEY_TEXT = 8,
	READER_KEY_DEVICE = 9,
	READER_KEY_INODE = 10,
	READER_KEY_ROW = 11,  /* u64 */
	READER_KEY_TASK = 12, /* u64, in the row */
	READER_KEY_HOW = 14,  /* u64 of an OPEN: enum reader_how, 0 if absent */
	READER_KEY_OPENNESS = 15,
	READER_KEY_LIMIT = 16, /* u64; of an OPEN: none if absent */
	READER_KEY_FORCE = 17,
	READER_KEY_SUSPECT = 18,
	READER_KEY_FORM = 19,  /* u64: LAYOUT_FORM_... */
	READER_KEY_GROUP = 20, /* bytes: struct hash_id */
	READER_KEY_NOTE = 21,  /* string: JSON, for people */
	READER_KEY_WORTH = 24, /* u64: ns of a processor a MiB */
	READER_KEY_STATE = 22, /* bytes: struct reader_state */
	READER_KEY_VERB = 23,  /* u64: enum reader_verb */
	READER_KEY_MOST = 25,
	READER_KEY_YIELDS = 26,
	READER_KEY_FLEETING = 27,
	READER_KEY_TABLE = 28,
	READER_KEY_LIST = 29,
	/* u64, of a file: its time of change, ns since 1970; no folder has one */
	READER_KEY_STAMP = 30,
	READER_KEY_SAMPLE = 13,  /* u64, whose bytes were asked for */
	READER_KEY_SELF = 31,    /* u64: this node's id */
	READER_KEY_SAMPLES = 53, /* bytes: u64 each, whose bytes were asked for */
	READER_KEY_MEMBERS = 32, /* bytes: struct reader_member, each of another node */
	READER_KEY_WEIGHT = 33,  /* u64 */
	READER_KEY_RECHECK = 42, /* u64, of PEERS: seconds; 0 if absent */
	READER_KEY_COMPARE = 43, /* u64, of PEERS: a number of values; 0 if absent */
	/* u64, of START: data sets in shards that have more bytes may be read past the page cache; none if absent */
	READER_KEY_DIRECT = 48,
	READER_KEY_NUMBER = 50,
	READER_KEY_NODES = 51,
	/* u64 0|1, of START: memory may be put into huge pages; 1 if absent */
	READER_KEY_HUGE = 49,
	/* u64 0|1: other nodes have the group by the same name; 0 if absent */
	READER_KEY_SHARED = 34,
	/* u64 0|1, of an OPENED: samples are made by processes of the user's; 0 if absent */
	READER_KEY_MADE = 44,
	/* String, of an OPENED that is open to everybody: where its root is, behind all links */
	READER_KEY_WAY = 40,
	/* String, of an OPENED whose samples are in an object store: what people call it, its URL; the path if absent */
	READER_KEY_SHOWN = 52,
};

struct reader_member { /* a node that is connected, of the same cell */
	uint64_t id;
	uint32_t peer;   /* its number in messages (cluster/value.h) */
	uint32_t weight; /* its room for values, MiB: its part of what the cell keeps */
};

#define READER_MOST_MEMBERS 15 /* others of a cell */
#define READER_MODE_MEMORY 3   /* beside enum store_mode: there is no store, only memory */

struct reader_state {               /* of the store, since the reader's start where it counts */
	uint64_t mode;              /* enum store_mode */
	uint64_t limit, used, file; /* bytes: most, of values and their index, of the file */
	uint64_t groups, values;
	uint64_t hits, misses, kept, not_taken, full; /* full: not taken for want of room */
	uint64_t damaged, evicted, set_aside, write_errors;
	uint64_t memory_used, memory_values, memory_hits; /* the last: of the hits */
	uint64_t write_ns, write_cpu_ns, write_bytes;     /* of the writer: storage/store.h */
	uint64_t peers_compared, peers_wrong;             /* values of peers, with the source */
};

enum reader_how {
	READER_HOW_ALL = 0, /* whatever the user may read */
	/* If all of it is open to everybody, else REFUSED DATASET_E_CLOSED */
	READER_HOW_OPEN_ONLY = 1,
	READER_HOW_LOOK = 2, /* only the root: LOOKED | REFUSED */
	/* Whatever the user may read, for others: nothing that runs his code */
	READER_HOW_NAMED = 3,
};

/* What a person asks of the store; of clients, too (shmring/proto.h). */
enum reader_verb {
	READER_VERB_LIST,
	READER_VERB_PIN,
	READER_VERB_UNPIN,
	READER_VERB_DROP,
	READER_VERB_VERIFY,
	READER_VERBS,
};

#define READER_CONTROL_FD 3

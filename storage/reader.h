/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_READER_H
#define STORAGE_READER_H

/*
 * accessd <-> access-reader: control messages (base/wire.h) over a SOCK_SEQPACKET pair, the
 * reader's end is descriptor 3. The reader has the user's uid and groups; it alone opens user data.
 * The stream of work itself goes through lanes (shmring/lane.h), not through messages.
 *
 * access-reader --threads N [--as UID:GID[:groups]]     (descriptor 3: control; dies with its parent)
 */

#include <stdint.h>

enum reader_message {
	/* accessd -> reader */
	READER_START = 1, /* fd 0: bell, fd 1: eventfd of accessd */
	READER_OPEN =
	    2, /* ID, PATH (absolute), [fd 0: stored index] -> PROGRESS*, OPENED | REFUSED */
	READER_CANCEL = 3, /* ID: end the open under way, or close the dataset */
	READER_ATTACH = 4, /* ID, LANE; fd 0: lane, fd 1: arena -> ATTACHED | REFUSED */
	READER_DETACH = 5, /* LANE -> DETACHED once no thread touches it any more */
	/* reader -> accessd */
	READER_PROGRESS = 16, /* ID, FOLDERS, FILES */
	READER_OPENED =
	    17, /* ID, UNCHANGED 0|1, DEVICE, INODE; fd 0: index (sealed memfd) unless UNCHANGED */
	READER_REFUSED = 18,  /* ID [LANE], CODE (enum of dataset.h or errno as negative in two's
				 complement), TEXT */
	READER_ATTACHED = 19, /* LANE */
	READER_LOOKED =
	    22, /* ID, DEVICE, INODE, OPENNESS 0|1 of the way to the root; ID is free again */
	READER_DETACHED = 20, /* LANE */
	READER_FAILED =
	    21, /* LANE, BLOCK, TASK, SAMPLE: its reader says so itself, before the task's
				 word does, which workers can write, too */
};

enum reader_key {
	READER_KEY_ID = 1,      /* u64, accessd's number of the dataset handle */
	READER_KEY_PATH = 2,    /* string */
	READER_KEY_LANE = 3,    /* u64 */
	READER_KEY_FOLDERS = 4, /* u64 */
	READER_KEY_FILES = 5,   /* u64 */
	READER_KEY_UNCHANGED = 6,
	READER_KEY_CODE = 7,
	READER_KEY_TEXT = 8,
	READER_KEY_DEVICE = 9,
	READER_KEY_INODE = 10,
	READER_KEY_BLOCK = 11, /* u64 */
	READER_KEY_TASK = 12,  /* u64, in the block */
	READER_KEY_HOW = 14,   /* u64 of an OPEN: enum reader_how, 0 if absent */
	READER_KEY_OPENNESS = 15,
	READER_KEY_SAMPLE = 13, /* u64, whose bytes were asked for */
};

enum reader_how {
	READER_HOW_ALL = 0, /* whatever the user may read */
	READER_HOW_OPEN_ONLY =
	    1,               /* if all of it is open to everybody, else REFUSED DATASET_E_CLOSED */
	READER_HOW_LOOK = 2, /* only the root: LOOKED | REFUSED */
};

#define READER_CONTROL_FD 3

#endif

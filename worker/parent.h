/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * accessd <-> the worker parent (program access-worker): control messages (base/wire.h) over a
 * SOCK_SEQPACKET pair, the parent's end is descriptor 3. The parent is single-threaded, maps each
 * stream's slots writable before accessd seals them, and forks the workers, which inherit the
 * mappings, drop everything else and enter the sandbox.
 *
 * access-worker --workers N --memory BYTES [--nice N] [--as UID:GID]   (descriptor 3; dies with
 * accessd)
 */

enum parent_message {
	/* accessd -> parent */
	/* Fd 0: doorbell, fd 1: eventfd of accessd, [fd 2: write-back ring, [fd 3: resident
	 * memory]] */
	PARENT_START = 1,
	PARENT_ADD = 2, /* QUEUE, VARIANT, SPEC, STRIDE, SLOTS_BYTES, OFFSETS; fd 0: slots
			     (unsealed); with the queue's first variant fd 1: queue, fd 2: arena
			     -> ADDED (mapped; accessd then seals and sends GO) | REFUSED */
	/* QUEUE: start workers that know it; older workers finish their task and exit */
	PARENT_GO = 3,
	/* QUEUE, and VARIANT if it is to lose only that one: unmap; workers are replaced by ones
	 * that do not know it -> REMOVED */
	PARENT_REMOVE = 4,
	PARENT_KILL = 5, /* WORKER: SIGKILL it (hung); EXITED follows, a new one is started */
	PARENT_SIZE = 6, /* WORKERS: so many from now on; those that are too many finish their task
			    and exit */
	/* parent -> accessd */
	PARENT_ADDED = 16,   /* QUEUE, VARIANT */
	PARENT_REFUSED = 17, /* QUEUE, VARIANT, TEXT */
	PARENT_REMOVED = 18, /* QUEUE, VARIANT as in REMOVE: no worker maps it any more */
	PARENT_STARTED = 19, /* WORKER, INDEX (in the doorbell), PID */
	PARENT_EXITED = 20,  /* WORKER, INDEX, STATUS (wait status), CPU_NS (user + system) */
};

enum parent_key {
	PARENT_KEY_QUEUE = 1,
	PARENT_KEY_SPEC = 2,        /* string: canonical pipeline */
	PARENT_KEY_STRIDE = 3,      /* u64: bytes from slot to slot */
	PARENT_KEY_SLOTS_BYTES = 4, /* u64 */
	/* Bytes: u64 [fields of the pipeline][2]: offset in the slot, bytes a sample */
	PARENT_KEY_OFFSETS = 5,
	/* u64: owner number in task words, never used twice by one parent (24 bits) */
	PARENT_KEY_WORKER = 6,
	PARENT_KEY_INDEX = 7, /* u64: its struct layout_worker in the doorbell */
	PARENT_KEY_PID = 8,
	PARENT_KEY_STATUS = 9,
	PARENT_KEY_CPU_NS = 10,
	PARENT_KEY_TEXT = 11,
	PARENT_KEY_VARIANT = 12, /* u64: number of a pipeline in its queue */
	PARENT_KEY_WORKERS = 13, /* u64: 1 .. LAYOUT_MAX_WORKERS, and of the write-back rings */
};

#define PARENT_CONTROL_FD 3

/* parent.c: the program, after its options were read. Returns its exit status. */
struct pool_settings;
int parent_run(const struct pool_settings *settings);

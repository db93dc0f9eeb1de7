/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Every byte that two processes share, in one file, frozen by tests/shmring/layout_test.c.
 *
 * A member's prefix names its only writer: d_ accessd, c_ the rank (client), r_ the reader, w_ a
 * worker, s_ several (by compare-and-swap). Members without a prefix are written once by accessd
 * before the memory is shown to anybody. Writers are kept on separate cache lines. Whoever reads
 * another's memory copies the geometry out once, loads each word once and checks its private copy.
 *
 *   memory   writers                          readers                made, sealed
 *   slots    worker parent + its workers      ranks, read-only       one a variant; FUTURE_WRITE
 *   table    accessd                          ranks, read-only       one a variant; FUTURE_WRITE
 *   inbox    accessd                          one rank, read-only    one a rank;   FUTURE_WRITE
 *   outbox   one rank                         accessd (hostile)      one a rank
 *   queue    accessd, reader, workers         the same (a domain)    one a stream
 *   arena    reader                           workers, read-only     one a stream
 *   resident reader                           workers, read-only     one a trust domain
 *   doorbell     accessd, reader, workers         the same               one a trust domain
 *   pane     accessd                          watchers, read-only    one a user who watches; FUTURE_WRITE
 * All are sealed SHRINK, GROW, SEAL before they leave accessd. The other way goes a list (of the places
 * of an epoch: plan/listing.h), made by a client and sealed WRITE, too: nobody writes it any more.
 */

#include <stdatomic.h>
#include <stdint.h>

#define LAYOUT_VERSION 1
/* Of a slot table that only a library knows which knows fields: layout_slot_table_wide */
#define LAYOUT_VERSION_FIELDS 2
#define LAYOUT_MAGIC_SLOT_TABLE UINT64_C(0x3144524f4221414f) /* "OA!BORD1" */
#define LAYOUT_MAGIC_INBOX UINT64_C(0x3158424e4921414f)      /* "OA!INBX1" */
#define LAYOUT_MAGIC_OUTBOX UINT64_C(0x3158424f2121414f)     /* "OA!!OBX1" */
#define LAYOUT_MAGIC_QUEUE UINT64_C(0x31454e414c21414f)      /* "OA!LANE1" */
#define LAYOUT_MAGIC_DOORBELL UINT64_C(0x314c4c454221414f)   /* "OA!DOORBELL1" */
#define LAYOUT_MAGIC_RINGS UINT64_C(0x315941525421414f)      /* "OA!TRAY1" */
#define LAYOUT_MAGIC_PANE UINT64_C(0x31454e415021414f)       /* "OA!PANE1" */

#define LAYOUT_MAX_FIELDS 24
#define LAYOUT_FIRST_FIELDS 8 /* of a slot table of version 1, all that it has */
#define LAYOUT_MAX_DIMS 4
#define LAYOUT_MAX_SLOTS 1024
#define LAYOUT_NO_SLOT LAYOUT_MAX_SLOTS /* of a row whose tasks make stored forms, and no outputs */
#define LAYOUT_MAX_WORKERS 256
#define LAYOUT_MAX_ROWS 4      /* chunks in production at once in one stream */
#define LAYOUT_MAX_VARIANTS 8  /* pipelines of one stream */
#define LAYOUT_MAX_CHUNK 65536 /* samples a chunk */
#define LAYOUT_GRANT_RING 64   /* grants a rank's inbox holds */
#define LAYOUT_MAX_PINS 2

/* Frozen; the same numbers as enum oa_dtype in libaccess.h. */
enum layout_dtype {
	LAYOUT_U8 = 1,
	LAYOUT_F16 = 2,
	LAYOUT_F32 = 3,
	LAYOUT_I64 = 4,
	LAYOUT_BF16 = 5,
	LAYOUT_I8 = 6, /* from here on: LAYOUT_VERSION_FIELDS */
	LAYOUT_I16 = 7,
	LAYOUT_I32 = 8,
	LAYOUT_U16 = 9,
	LAYOUT_U32 = 10,
	LAYOUT_U64 = 11,
	LAYOUT_F64 = 12,
	LAYOUT_BOOL = 13, /* a byte, 0 or 1 */
};

enum layout_where {
	LAYOUT_IN_SLOT = 1,  /* written by workers: slots memory */
	LAYOUT_IN_TABLE = 2, /* written by accessd: slot table memory (the sample ids) */
};

/* The same numbers as enum oa_kind. */
enum layout_kind {
	LAYOUT_DENSE = 0,
	/* shape[0] is the most that a sample has; zeros stand behind what it has */
	LAYOUT_RAGGED = 1,
	LAYOUT_TEXT = 2, /* the same of UTF-8: u8, one dimension */
};

struct layout_field { /* 128 bytes */
	char name[32];
	uint32_t dtype, where, ndim, reserved;
	uint64_t shape[LAYOUT_MAX_DIMS]; /* of one sample */
	uint64_t offset;       /* of the field's array from the start of the slot; 64-aligned */
	uint64_t sample_bytes; /* distance between samples in the array */
	uint32_t kind;         /* enum layout_kind; not dense: LAYOUT_VERSION_FIELDS */
	/* Of one that is not dense: the field, i64 without dimensions, that says how long samples
	 * are. Workers write it: it is believed up to shape[0] */
	uint32_t lengths;
	uint64_t spare[3];
};

/* ---- slot table ---- */

/* d_status: one byte a sample of a chunk. */
enum layout_sample_status {
	LAYOUT_SAMPLE_PENDING = 0,
	LAYOUT_SAMPLE_OK = 1,
	LAYOUT_SAMPLE_SKIPPED = 2,     /* a hole: not delivered, counts as seen */
	LAYOUT_SAMPLE_SUBSTITUTED = 3, /* another sample's pixels and label under this id */
	LAYOUT_SAMPLE_ERROR = 4,       /* policy "error": oa_next() reports it */
	LAYOUT_SAMPLE_FILTERED = 5,    /* a hole, too: the pipeline leaves it out; no fault */
};

/*
 * A slot's life, seen by ranks. d_instance changes only while no rank holds the slot:
 *   d_instance = 0 --compose--> nonce --(d_watermark 0 .. count)--> full --evict--> 0
 */
struct layout_slot {                 /* 128 bytes */
	_Atomic uint64_t d_instance; /* number of the instance in this stream, from 1; 0: empty */
	uint64_t d_nonce;
	uint32_t d_count;   /* samples in the chunk */
	uint32_t d_blocks;  /* blocks in the chunk; 0: a tail chunk (samples of begun blocks) */
	uint32_t d_private; /* 1: made for one job alone */
	uint32_t reserved0;
	uint64_t reserved1[4];
	_Atomic uint32_t d_watermark; /* samples finished, contiguous from 0; release by accessd */
	uint32_t reserved2;
	uint64_t reserved3[7];
};

/* 1280 bytes; arrays follow from LAYOUT_SLOT_TABLE_HEAD on, where the offsets say. */
struct layout_slot_table {
	uint64_t magic;
	uint32_t version, head_bytes;
	uint64_t bytes;       /* of the whole slot table */
	uint64_t slots_bytes; /* of the whole slots memory */
	uint64_t slot_stride; /* bytes from slot to slot, a multiple of the page size */
	uint32_t max_slots;   /* the memory has room for */
	uint32_t chunk;       /* C: samples a full chunk holds */
	uint32_t block;       /* g */
	uint32_t n_fields;
	uint64_t n_samples;     /* n of the dataset */
	uint64_t seed;          /* of the stream */
	uint8_t dataset[32];    /* dataset version */
	uint8_t stream[32];     /* hash of version, pipeline, policy */
	uint64_t slot_offset;   /* struct layout_slot [max_slots] */
	uint64_t status_offset; /* uint8_t [max_slots][chunk] */
	uint64_t ids_offset;    /* int64_t [max_slots][chunk], ids in order of delivery */
	uint64_t blocks_offset; /* uint32_t [max_slots][chunk] (d_blocks of them used) */
	struct layout_field field[LAYOUT_FIRST_FIELDS];
	uint64_t reserved[11];
};
struct layout_slot_table_wide { /* 3328 bytes */
	struct layout_slot_table table;
	struct layout_field more[LAYOUT_MAX_FIELDS - LAYOUT_FIRST_FIELDS]; /* version 1: zeros */
};
/* The arrays start here; d_ words never share a line with the head. */
#define LAYOUT_SLOT_TABLE_HEAD 4096

/* ---- inbox and outbox ---- */

enum layout_grant_state { LAYOUT_GRANT_POSTED = 1, LAYOUT_GRANT_REVOKED = 2 };
enum layout_take_state { LAYOUT_TAKE_FREE = 0, LAYOUT_TAKE_HELD = 1, LAYOUT_TAKE_KEPT = 2 };
enum layout_result { LAYOUT_RESULT_DONE = 1, LAYOUT_RESULT_RETURNED = 2 };

/*
 * Grants of a rank are numbered from 1; number k lies in ring[k % LAYOUT_GRANT_RING].
 *
 *   accessd:  (absent) --post--> POSTED --revoke--> REVOKED
 *   rank:     take word := k|HELD  then re-reads d_word:
 *                 POSTED  -> has it: take word k|KEPT; result k|DONE when given back
 *                 REVOKED -> result k|RETURNED, nothing delivered
 *
 * Both re-reads are seq_cst (store then load on both sides), so at least one side sees the other.
 * HELD may still come back, KEPT never does: a revoke that came too late costs the rank nothing.
 * The rank passes over entries it finds REVOKED before taking, without a result. A take word is set
 * FREE after the result is stored. accessd posts k + RING only when it knows the end of k; while k is
 * KEPT it leaves k + RING out: d_posted goes beyond it, and its place keeps the older number.
 */
struct layout_grant {            /* 64 bytes */
	_Atomic uint64_t d_word; /* k << 8 | enum layout_grant_state; 0: never posted */
	uint64_t d_instance;     /* must equal the slot's d_instance */
	uint32_t d_slot;
	uint32_t d_first; /* first sample for this rank (0) */
	uint32_t d_count; /* samples */
	uint32_t d_flags; /* LAYOUT_GRANT_LAST: with it the epoch's need is met */
	uint64_t d_epoch; /* epoch of this job that the grant belongs to, from 0 */
	uint64_t reserved[3];
};
#define LAYOUT_GRANT_LAST 1u

/* What a waiting rank waits for: d_stage, in time-outs and status. */
enum layout_stage {
	LAYOUT_STAGE_NONE = 0,
	LAYOUT_STAGE_SCAN = 1,     /* the dataset's listing */
	LAYOUT_STAGE_READ = 2,     /* storage: bytes of samples */
	LAYOUT_STAGE_DECODE = 3,   /* workers are busy with the chunk */
	LAYOUT_STAGE_SLOT = 4,     /* no slot is free: others hold them */
	LAYOUT_STAGE_WORKERS = 5,  /* no worker is alive */
	LAYOUT_STAGE_SCHEDULE = 6, /* a chunk is being composed */
	LAYOUT_STAGE_DRAIN = 7,    /* accessd is shutting down */
};

/* What accessd wants messages of: d_wants_kick. */
#define LAYOUT_KICK_ENDS 1u /* of what is given back */
#define LAYOUT_KICK_NO_SLEEP \
	2u /* not of a rank that goes to sleep: it knows what it will wait for */

struct layout_inbox { /* 4224 bytes */
	uint64_t magic;
	uint32_t version, ring;
	uint64_t bytes;
	uint64_t reserved0[5];
	_Atomic uint64_t d_posted;       /* number of the last grant posted */
	_Atomic uint64_t d_heartbeat_ns; /* accessd's CLOCK_MONOTONIC, every second at least */
	_Atomic uint32_t d_stage;        /* enum layout_stage */
	_Atomic uint32_t d_wants_kick;   /* LAYOUT_KICK_... */
	_Atomic uint64_t d_end_epoch; /* job's epochs: this many will be served; 0: without end */
	_Atomic uint64_t
	    d_late_ns; /* it has waited so long for samples that take longer than a chunk */
	uint64_t reserved1[3];
	struct layout_grant grant[LAYOUT_GRANT_RING] __attribute__((aligned(64)));
};

struct layout_outbox { /* 704 bytes; all of it hostile to accessd */
	uint64_t magic;
	uint32_t version, ring;
	uint64_t bytes;
	uint64_t reserved0[5];
	_Atomic uint64_t c_take[LAYOUT_MAX_PINS]; /* k << 8 | enum layout_take_state */
	_Atomic uint64_t c_next;  /* number of the next grant the rank will look at */
	_Atomic uint64_t c_armed; /* goes up by one when the rank goes to sleep */
	_Atomic uint64_t c_awake; /* = c_armed when it is awake again */
	uint64_t reserved1[3];
	_Atomic uint64_t c_samples, c_batches, c_wait_ns, c_copied, c_epochs; /* for status alone */
	_Atomic uint64_t
	    c_slept_ns; /* when it went to sleep, CLOCK_MONOTONIC; 0: it does not say */
	_Atomic uint64_t c_reserved[2];
	_Atomic uint64_t c_result[LAYOUT_GRANT_RING]; /* k << 8 | enum layout_result */
};

/* ---- task queue: a stream's tasks ---- */

/*
 * A row holds the tasks of one chunk in production. A task's state word, low byte the state, the
 * upper 24 bits who (reader thread or worker number):
 *
 *   FREE --accessd--> HELD --accessd (arena space found)--> QUEUED --reader CAS--> READING
 *        READING --reader--> READY | FAILED        READY --worker CAS--> RUNNING
 *        RUNNING --worker--> DONE | FAILED
 *
 * accessd alone moves DONE and FAILED on (FREE, QUEUED). A dead reader's READING tasks become
 * QUEUED again, a dead worker's RUNNING task gets its policy; both by accessd, after the process is
 * known to be gone.
 */
enum layout_task_state {
	LAYOUT_TASK_FREE = 0,
	LAYOUT_TASK_HELD = 1,
	LAYOUT_TASK_QUEUED = 2,
	LAYOUT_TASK_READING = 3,
	LAYOUT_TASK_READY = 4,
	LAYOUT_TASK_RUNNING = 5,
	LAYOUT_TASK_DONE = 6,
	LAYOUT_TASK_FAILED = 7,
};

/* Stage of a failed task. */
enum layout_fail {
	LAYOUT_FAIL_NONE = 0,
	LAYOUT_FAIL_OPEN = 1,      /* code: errno */
	LAYOUT_FAIL_READ = 2,      /* code: errno */
	LAYOUT_FAIL_CHANGED = 3,   /* not what the index says; code: LAYOUT_CHANGED_ALL, or any */
	LAYOUT_FAIL_DECODE = 4,    /* the bytes are no picture */
	LAYOUT_FAIL_REFUSED = 5,   /* too large, refused before decoding */
	LAYOUT_FAIL_CRASH = 6,     /* the worker died; code: wait status */
	LAYOUT_FAIL_HANG = 7,      /* the worker was killed: too slow */
	LAYOUT_FAIL_MEMORY = 8,    /* the worker ran out of its memory limit */
	LAYOUT_FAIL_OP = 9,        /* an op failed on the picture */
	LAYOUT_FAIL_FILTERED = 10, /* no fault: the pipeline leaves the sample out */
};
#define LAYOUT_CHANGED_ALL 1000000 /* not the one file but the dataset; no errno is so large */

struct layout_task {          /* 192 bytes */
	uint64_t d_sample;    /* id whose bytes are read (the substitute's after a substitution) */
	uint64_t d_random_id; /* id that keys the random ops (the asked sample's) */
	uint64_t d_arena_offset; /* of its bytes in the arena; see dataset_is_placed() */
	uint32_t d_bytes;        /* length of its bytes, from the index */
	uint32_t d_label;
	uint32_t d_position; /* sample number in the slot */
	uint32_t d_attempt;
	uint64_t d_seed, d_nonce; /* of its random ops */
	uint32_t d_room;          /* bytes of the arena that are its, if more than d_bytes */
	uint8_t d_want; /* stored form (LAYOUT_FORM_...) to be brought if it is kept, 0: the file */
	uint8_t d_make; /* stored form to be made of it and kept, 0: none */
	uint8_t d_probe; /* stored form to be made of it and tried out, 0: none */
	uint8_t d_timed; /* enum layout_timed */
	_Atomic uint32_t s_state __attribute__((aligned(64)));
	uint32_t s_stage; /* enum layout_fail, valid with FAILED */
	int32_t s_code;
	uint32_t s_work_us; /* time of reading or of the pipeline */
	char s_text[48];    /* what, for people; hostile: terminate and quote */
	uint64_t r_read_ns; /* duration of the read */
	uint32_t r_bytes;   /* that came to the arena; d_bytes of a file */
	uint32_t r_form;    /* stored form that came, 0: the file */
	uint32_t r_cpu_us;  /* of the reading thread, where d_timed is LAYOUT_TIMED_ALL */
	uint32_t s_made;    /* enum layout_made */
	uint32_t s_make_us; /* CPU time it took to make the form, ... */
	uint32_t s_form_us; /* ... and to run the pipelines from it, if it was tried */
	uint32_t s_form_bytes;
	/* CPU time of the pipelines, from what came or the form that is kept of it, where it is
	 * timed, made or tried */
	uint32_t s_cpu_us;
	uint64_t r_resident; /* 1 + where in the resident memory it lies; 0: in the arena */
	uint32_t r_from;     /* enum layout_from */
	uint32_t reserved1[3];
};

/* Where a task's bytes came from, for eyes and for what it is measured by. */
enum layout_from {
	LAYOUT_FROM_SOURCE = 0,
	LAYOUT_FROM_MEMORY = 1, /* the resident memory */
	LAYOUT_FROM_STORE = 2,
	LAYOUT_FROM_PEER = 3, /* another node */
};

/* Numbers of stored forms. LAYOUT_FORM_PIXELS + n: what is there after the first n ops, up to 32. */
enum {
	LAYOUT_FORM_INDEXED = 1,
	LAYOUT_FORM_PACKED = 2,
	LAYOUT_FORM_PIXELS = 2,
	LAYOUT_FORM_AUGMENTED = 35, /* behind random ops: of one instance, (d_seed, d_nonce) */
	LAYOUT_FORMS = 36
};

enum layout_timed {
	LAYOUT_TIMED_NOT = 0,
	LAYOUT_TIMED_ALL = 1,  /* the CPU time of reading it and of the pipelines is asked for */
	LAYOUT_TIMED_WORK = 2, /* that of the pipelines alone */
};

enum layout_made {
	LAYOUT_MADE_NONE = 0,  /* nor was it found out whether there is one */
	LAYOUT_MADE_YES = 1,   /* and put into the write-back ring, if it is to be kept */
	LAYOUT_MADE_UNFIT = 2, /* the sample has no such form */
	LAYOUT_MADE_FULL = 3,  /* the write-back ring had no room */
	LAYOUT_MADE_FILE = 4,  /* it has none, and its file was put there in the form's place */
};

struct layout_row {               /* head of a row, 256 bytes */
	_Atomic uint64_t d_order; /* order of production, from 1; 0: row unused */
	uint64_t d_nonce;         /* of the chunk; a task of a list may have another */
	uint64_t d_seed;
	uint32_t d_slot;
	uint32_t d_count;    /* tasks */
	uint32_t d_variants; /* a bit for each pipeline of the stream whose fields are made */
	uint32_t reserved;
	uint64_t reserved0[3];
	_Atomic uint32_t s_read_hint; /* tasks below it are not QUEUED, as far as known */
	uint32_t reserved1[15];
	_Atomic uint32_t s_run_hint; /* tasks below it are not READY, as far as known */
	uint32_t reserved2[15];
	_Atomic uint32_t s_ended; /* tasks that became DONE or FAILED since the row was filled */
	_Atomic uint32_t
	    d_ring_at; /* ring accessd when s_ended reaches it; with its highest bit: when the
			* task of the number below it, and all before that, have ended;
			* UINT32_MAX: never. Whoever rings exchanges it back: one ring an arm */
	uint32_t reserved3[14];
};

struct layout_queue { /* 128 bytes */
	uint64_t magic;
	uint32_t version, n_rows;
	uint64_t bytes, arena_bytes;
	uint32_t chunk;            /* tasks a row has room for */
	uint32_t queue;            /* number of the queue in its trust domain */
	uint64_t row_offset;       /* struct layout_row [n_rows] */
	uint64_t task_offset;      /* struct layout_task [n_rows][chunk] */
	_Atomic uint32_t d_closed; /* 1: take nothing more from this queue */
	uint32_t reserved0;
	_Atomic uint32_t r_reading; /* reads in flight, bounded a queue */
	uint32_t reserved1[15];
};

/* ---- doorbell: who sleeps, who works on what; one a trust domain ---- */

struct layout_worker {                 /* 64 bytes */
	_Atomic uint64_t w_task;       /* queue << 48 | row << 40 | task << 8 | 1; 0: idle */
	_Atomic uint64_t w_started_ns; /* of that task */
	_Atomic uint64_t w_done;       /* tasks ended */
	_Atomic uint64_t w_busy_ns;
	_Atomic uint64_t w_pixels; /* of the task's picture, as its head says; 0: not known yet */
	uint64_t reserved[3];
};

struct layout_doorbell { /* 256 bytes and the workers */
	uint64_t magic;
	uint32_t version, max_workers;
	uint64_t bytes;
	uint64_t reserved0[5];
	_Atomic uint32_t s_work_seq;   /* futex: goes up when a task becomes READY */
	_Atomic uint32_t s_work_armed; /* a worker sleeps */
	uint32_t reserved1[14];
	_Atomic uint32_t s_read_seq;   /* futex: goes up when tasks become QUEUED */
	_Atomic uint32_t s_read_armed; /* a reader thread sleeps */
	uint32_t reserved2[14];
	_Atomic uint32_t s_event_armed; /* accessd sleeps: ring its eventfd (exchange to 0 first) */
	uint32_t reserved3[15];
	struct layout_worker worker[LAYOUT_MAX_WORKERS];
};

/* ---- rings: stored forms from workers to the reader (one a trust domain), values to and from a carrier ---- */

struct layout_ring { /* 128 bytes: a worker's, as the doorbell's entry of the same number */
	_Atomic uint64_t w_head; /* bytes that the worker has filled, since ever */
	uint64_t reserved0[7];
	_Atomic uint64_t r_tail; /* bytes that the reader is done with */
	uint64_t reserved1[7];
};

struct layout_rings { /* 128 bytes and the rings */
	uint64_t magic;
	uint32_t version, n_rings;
	uint64_t bytes, ring_bytes, data_offset; /* ring i: data_offset + i * ring_bytes */
	uint64_t reserved0[3];
	_Atomic uint32_t s_seq;   /* futex: goes up when an item was put in */
	_Atomic uint32_t s_armed; /* the reader sleeps */
	uint32_t reserved1[14];
	struct layout_ring ring[];
};

struct layout_item {    /* 64 bytes, before the form's bytes, which are padded to 64 */
	uint32_t magic; /* LAYOUT_ITEM, or LAYOUT_ITEM_SKIP: go to the ring's beginning */
	uint32_t bytes; /* of the form */
	uint32_t queue, row, task, form;
	uint64_t sample;
	uint64_t reserved[4];
};
#define LAYOUT_ITEM UINT32_C(0x4d455449)
#define LAYOUT_ITEM_SKIP UINT32_C(0x50494b53)

/* ---- frozen sizes (offsets: tests/shmring/layout_test.c) ---- */

#define LAYOUT_SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type " is frozen")
LAYOUT_SIZE(layout_field, 128);
LAYOUT_SIZE(layout_slot, 128);
LAYOUT_SIZE(layout_slot_table, 1280);
LAYOUT_SIZE(layout_slot_table_wide, 3328);
LAYOUT_SIZE(layout_grant, 64);
LAYOUT_SIZE(layout_inbox, 128 + 64 * LAYOUT_GRANT_RING);
LAYOUT_SIZE(layout_outbox, 192 + 8 * LAYOUT_GRANT_RING);
LAYOUT_SIZE(layout_task, 192);
LAYOUT_SIZE(layout_row, 256);
LAYOUT_SIZE(layout_queue, 128);
LAYOUT_SIZE(layout_worker, 64);
LAYOUT_SIZE(layout_ring, 128);
LAYOUT_SIZE(layout_rings, 128);
LAYOUT_SIZE(layout_item, 64);
LAYOUT_SIZE(layout_doorbell, 256 + 64 * LAYOUT_MAX_WORKERS);
#undef LAYOUT_SIZE
_Static_assert(sizeof(struct layout_slot_table_wide) <= LAYOUT_SLOT_TABLE_HEAD,
	       "the head ends before the arrays");
_Static_assert((LAYOUT_GRANT_RING & (LAYOUT_GRANT_RING - 1)) == 0, "k % RING must survive a wrap");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
	       "atomics between processes must be lock-free");

/* ---- pane ---- */

/*
 * A text, which begins behind this head, under a sequence lock (pane.c):
 *   d_seq: even: the text is whole --write begins--> odd --write ends--> even, 2 more
 */
struct layout_pane { /* 128 bytes */
	uint64_t magic;
	uint32_t version, head_bytes;
	uint64_t room; /* bytes for text */
	uint64_t reserved0[5];
	_Atomic uint64_t d_seq;   /* from 0: nothing was written yet */
	_Atomic uint64_t d_size;  /* of the text, in bytes; the rest of its last word is zeros */
	_Atomic uint64_t d_ended; /* 1: it is written no more, there may be another one */
	uint64_t reserved1[5];
};
_Static_assert(sizeof(struct layout_pane) == 128, "the text is behind two cache lines");

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A wrapped data set: a folder of the user's with a note of what it has, and a socket where processes of
 * his wait that make its samples (the pool; python/oneaccess/pool.py writes all of this). To accessd it is a
 * folder of pictures like any other: its index has a name and a size for each sample, all of one size,
 * which is the room that a sample's record may take. Both the note and the pool are hostile.
 *
 * The socket is SOCK_SEQPACKET. The reader says WRAPPED_HELLO with a sealed memfd of `room` bytes, then asks
 * for one sample after another; the record is in that memory when WRAPPED_GOOD comes. Numbers have the
 * machine's order: both ends are on it.
 *
 * A pool whose note has a second part may be asked for several samples in one message, an ask of WRAPPED_READ_MANY
 * each. So many answers come in one message, and the records lie in a row, each aligned to WRAPPED_ALIGN; of those
 * that are not good there is none. One answer alone says that the process died, as ever. Readers of before know
 * neither the second part nor the question, pools of before have no such part: either goes on one by one.
 */

#include "base/hash.h"
#include "storage/dataset.h"

#define WRAPPED_NOTE "oneaccess-wrapped"
#define WRAPPED_SOCKET "socket"
#define WRAPPED_MAGIC UINT64_C(0x3150525721214f41) /* "AO!!WRP1" */
#define WRAPPED_MAX_WORKERS 64
#define WRAPPED_MAX_ROOM (UINT32_C(1) << 30)
#define WRAPPED_MAX_SECONDS 86400
#define WRAPPED_MORE_MAGIC UINT64_C(0x3250525721214f41) /* "AO!!WRP2" */
#define WRAPPED_MAX_BATCH 64
#define WRAPPED_ALIGN 64
/* For the records of several, if one has no more room */
#define WRAPPED_BATCH_BYTES (UINT64_C(8) << 20)

struct wrapped_note { /* the file, 64 bytes */
	uint64_t magic;
	uint64_t count;    /* samples */
	uint32_t room;     /* bytes that a sample's record may have */
	uint32_t workers;  /* how many samples may be asked for at a time */
	uint32_t seconds;  /* that a sample may take */
	uint32_t reserved; /* 0 */
	struct hash_id id; /* of the data set's version */
};
_Static_assert(sizeof(struct wrapped_note) == 64, "the note is frozen");

struct wrapped_more { /* behind it in the file, or not there, 64 bytes */
	uint64_t magic;
	uint32_t batch, reserved; /* samples that one question may be about */
	uint64_t reserved1[6];    /* 0 */
};
_Static_assert(sizeof(struct wrapped_more) == 64, "the note's second part is frozen");

enum wrapped_kind { WRAPPED_HELLO = 1, WRAPPED_READ = 2, WRAPPED_READ_MANY = 3 };
struct wrapped_ask { /* 64 bytes */
	uint64_t magic;
	uint32_t kind, reserved;
	uint64_t room; /* of a HELLO: bytes of the memory */
	uint64_t sample, random_id, seed, nonce;
	uint64_t reserved1;
};
_Static_assert(sizeof(struct wrapped_ask) == 64, "the question is frozen");

enum wrapped_status {
	WRAPPED_GOOD = 0,
	WRAPPED_FAILED = 1, /* the sample is bad: text */
	WRAPPED_DIED = 2,   /* so did the process that made it; the connection ends: text */
	WRAPPED_HUNG = 3,   /* it took too long, and its process was ended, as above: text */
	WRAPPED_LATER = 4,  /* of several: the memory was full, ask again */
};
struct wrapped_answer { /* 64 bytes */
	uint32_t status, reserved;
	uint64_t bytes; /* of a good one's record */
	char text[48];  /* terminated or not */
};
_Static_assert(sizeof(struct wrapped_answer) == 64, "the answer is frozen");

enum { WRAPPED_E_NONE = 1, WRAPPED_E_BAD = 2 };

/* Is this what a note holds? Checks every number. */
bool wrapped_note_is_good(const struct wrapped_note *note);
/* Is it such a file of this user's, which nobody else may write to? */
bool wrapped_is_own(int fd, mode_t kind);
/* How many samples one question to the pool of the note may be about: what root's note says, 1 where that is not
 * there or damaged. */
unsigned wrapped_batch(int root_fd);
/* Of the memory in which its records come. */
uint64_t wrapped_memory(const struct wrapped_note *note, unsigned batch);
/* Where in that memory the record of a good answer is: *at, which moves on behind it, from 0 for the first. false: it
 * would be larger than a sample's room, or end behind the memory; then where those after it are is not known either. */
bool wrapped_place(const struct wrapped_answer *answer, const struct wrapped_note *note,
		   uint64_t memory, uint64_t *at, uint64_t *ret_place);
/* The note in root. WRAPPED_E_NONE: a folder like any other. WRAPPED_E_BAD: damaged, or root or note are not
 * this user's own; diag says which and how to mend it. Negative errno. */
int wrapped_open(int root_fd, const char *root_name, struct wrapped_note *ret, struct diag *diag);
/* Its index, as scan_build() makes one. 0 and *ret_fd (caller owns), DATASET_E_ROOM or negative errno. */
int wrapped_index(const struct wrapped_note *note, const struct scan_progress *progress,
		  int *ret_fd);
/* Is it that index, which was made before? */
bool wrapped_is_index(const struct wrapped_note *note, const struct dataset *index);

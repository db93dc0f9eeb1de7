/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A data set in an object store, as access-reader sees it: a folder of the user's own, which access-bucket keeps. accessd
 * and its children never speak to the network: the job that opens a URL starts access-bucket, with its own credentials,
 * proxy and network, as it would read the bucket itself, and all jobs of the user share the one.
 *
 *	FOLDER/oneaccess-bucket   the note: a struct bucket_note, and the URL behind it; it stays when access-bucket has ended
 *	FOLDER/socket             SOCK_SEQPACKET, where access-bucket listens
 *	FOLDER/keys               32 bytes: url_keys() (base/url.h) of the access-bucket that listens; zeros where it is refused
 *	FOLDER/commit             of a data set that has commits: the one that is read, until no job is left
 *	FOLDER/data/              a placeholder for each object: a sparse file of the object's size, whose time of change
 *	                          is the object's tag. It has no bytes and is never read: readers open it with O_PATH.
 *
 * So listing, sizes and "is it still what the index says" are what they are for files, and an object that was
 * replaced has another time. Placeholders are replaced by rename(), never changed.
 *
 * The tag: seconds of Last-Modified, and XXH3-64 of the ETag modulo 10^9 as nanoseconds; where a store has versions or
 * hashes of contents, the upper 60 bits of theirs. Nodes agree on it. An object that comes with another size or tag
 * than a question says is not the one that was listed (BUCKET_CHANGED).
 *
 * At the socket a first message says who is there. A job: one struct bucket_head of BUCKET_WATCH; it gets a
 * struct bucket_news each time there is some, and holds the connection as long as it wants access-bucket to live. A
 * reader: a struct bucket_head of BUCKET_HELLO with a memfd that is sealed against shrinking; then questions: a
 * struct bucket_head of BUCKET_READ, `count` struct bucket_ask, and the names of all, one behind the other. Answers come as
 * they are ready: some struct bucket_answer a message, one for each question. Bytes are in the memory then, where the
 * reader wanted them. Who closes the connection takes back what is not answered. Numbers have the machine's order.
 *
 * A job that has other credentials than FOLDER/keys says starts an access-bucket although there is one. If the store lists
 * anything for those, and gives a byte of it, it sends the one that is there a struct bucket_head of BUCKET_YIELD. That one ends behind the listing under way, with
 * BUCKET_MOVED to its jobs; they and the readers are served by the new one then.
 *
 * Neither side believes the other: both are processes of one user.
 */

#include "base/base.h"

#define BUCKET_NOTE "oneaccess-bucket"
#define BUCKET_SOCKET "socket"
#define BUCKET_DATA "data"
#define BUCKET_KEYS "keys"
#define BUCKET_COMMIT "commit"
#define BUCKET_COMMIT_S 600 /* that it counts behind its last minute with jobs */
#define BUCKET_MAGIC UINT64_C(0x314b4342214f4121)
#define BUCKET_MOST_ASKS 64
#define BUCKET_MOST_NAME 1024 /* below FOLDER/data; S3 has no longer keys */
#define BUCKET_MOST_MEMORY (UINT64_C(1) << 30)
#define BUCKET_MOST_MESSAGE           \
	(sizeof(struct bucket_head) + \
	 BUCKET_MOST_ASKS * (sizeof(struct bucket_ask) + (size_t)BUCKET_MOST_NAME))

struct bucket_note { /* 64 bytes, then url_bytes of the URL */
	uint64_t magic;
	uint32_t url_bytes, reserved;
	uint64_t reserved1[6]; /* 0 */
};
_Static_assert(sizeof(struct bucket_note) == 64, "the note is frozen");

enum bucket_kind { BUCKET_WATCH = 1, BUCKET_HELLO = 2, BUCKET_READ = 3, BUCKET_YIELD = 4 };
struct bucket_head { /* 32 bytes */
	uint64_t magic;
	uint32_t kind, count; /* count: of a READ, 1 .. BUCKET_MOST_ASKS */
	uint64_t memory;      /* of a HELLO: its bytes */
	uint64_t reserved;    /* 0 */
};
_Static_assert(sizeof(struct bucket_head) == 32, "the head is frozen");

struct bucket_ask {           /* 64 bytes */
	uint64_t id;          /* the reader's own, in the answer again */
	uint64_t at, place;   /* of the object; of the memory */
	uint64_t size;        /* of the object, and mtime_ns: as the index has it */
	int64_t mtime_ns;     /* the tag */
	uint32_t bytes;       /* 1 .. */
	uint32_t name_bytes;  /* 1 .. BUCKET_MOST_NAME, without a NUL */
	uint64_t reserved[2]; /* 0 */
};
_Static_assert(sizeof(struct bucket_ask) == 64, "the question is frozen");

enum bucket_status {
	BUCKET_GOOD = 0,
	BUCKET_CHANGED = 1, /* it is not the object that was listed, or is there no more */
	BUCKET_DENIED = 2,  /* and new credentials, if there are any, did not help */
	BUCKET_FAILED = 3,  /* after all tries */
};
struct bucket_answer { /* 64 bytes */
	uint64_t id;
	uint32_t status;
	int32_t code;  /* of HTTP, or an errno; 0: text says it */
	char text[48]; /* of what is not good; terminated or not */
};
_Static_assert(sizeof(struct bucket_answer) == 64, "the answer is frozen");

enum bucket_what {
	BUCKET_LISTING = 1, /* objects were found so far; once a second at most */
	BUCKET_READY =
	    2, /* FOLDER/data is as the last listing, which is no older than this connection by BUCKET_FRESH_S, and begun behind what was last seen to have changed */
	BUCKET_REFUSED =
	    3, /* the text says why, where, and how to mend it; access-bucket ends then, or goes on without it */
	BUCKET_MOVED = 4, /* another one begins here: connect again */
};
#define BUCKET_FRESH_S 10
struct bucket_news { /* 1024 bytes */
	uint64_t magic;
	uint32_t what;
	uint32_t is_denied; /* of a REFUSED: 1, the store says 401 or 403 to its credentials */
	uint64_t objects, bytes;
	char text[992]; /* terminated */
};
_Static_assert(sizeof(struct bucket_news) == 1024, "the news are frozen");

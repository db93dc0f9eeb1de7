/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Client <-> accessd: control messages (base/wire.h) on a SOCK_SEQPACKET socket. Nothing here is on
 * the path of a batch. One connection carries one stream of one rank, or only status requests.
 *
 *   client                         accessd
 *   HELLO ------------------------>
 *   <------------------------------ WELCOME | REFUSED
 *   DESCRIBE (any number of times)>
 *   <------------------------------ PROGRESS* , DESCRIBED (1 fd) | REFUSED
 *   BAD (any number of times) ---->
 *   <------------------------------ BAD_SAMPLES | REFUSED
 *   OPEN (with WELCOME's nonce) -->
 *   <------------------------------ PROGRESS* , OPENED (4-5 fds) | REFUSED
 *   KICK, EXPLAIN ---------------->
 *   <------------------------------ WAKE, EXPLAINED, NOTICE, FAILED, LOST
 *   (hang-up: everything is given back)
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PROTO_MAJOR 1
#define PROTO_NAMED "name:" /* before a named data set's name, where else a path stands */
#ifndef PROTO_MINOR /* else: tests/scenarios/29-upgrade.sh has an accessd without what came last */
#define PROTO_MINOR 6
#endif

/* Which minor version brought what the other side must know of. A key that it does not know it passes over, so what
 * would go wrong in silence then is asked only of who says so late a version. */
enum proto_since {
	PROTO_SINCE_MIXES = 1, /* the client does mixup, cutmix and filters by class */
	PROTO_SINCE_BAD = 2,   /* accessd lists bad samples */
	PROTO_SINCE_SLICES = 3,
	PROTO_SINCE_WATCH = 4,   /* it may be watched */
	PROTO_SINCE_NAMES = 4,   /* data sets have names: PROTO_NAMED, and pipelines of their own */
	PROTO_SINCE_BUCKETS = 5, /* it reads object stores by access-bucket (shmring/bucket.h) */
	PROTO_SINCE_MOSAIC = 6,  /* the client does mosaic */
};

enum proto_message {
	/* client -> accessd */
	PROTO_HELLO = 1,   /* MAJOR, MINOR, PROGRAM */
	PROTO_OPEN = 2,    /* keys below */
	PROTO_KICK = 3,    /* look at my outbox (something was given back, or I go to sleep) */
	PROTO_EXPLAIN = 4, /* INSTANCE, POSITION: why has this sample status ERROR? -> EXPLAINED */
	PROTO_STATUS = 5,  /* -> STATUS_REPLY */
	/* DATASET, maybe PIPELINE -> PROGRESS*, DESCRIBED | REFUSED; before OPEN */
	PROTO_DESCRIBE = 6,
	PROTO_PLAN = 7, /* EPOCH; fd: a sealed list (plan/listing.h). A job that opened with order
			    * PLAN_LIST sends its epoch's and the next one's after OPENED, and with each
			    * epoch that it begins the one after the next */
	/* VERB (enum reader_verb of storage/reader.h), maybe GROUP, maybe WHO: what a person asks
	 * of what is kept -> PROGRESS*, CACHED | REFUSED; before OPEN */
	PROTO_CACHE = 8,
	/* JOB_ID; FROM: which bad samples does its stream have? IDS: what are these samples' names, and are they bad? ->
	 * BAD_SAMPLES | REFUSED; before OPEN. Its user's, and who may see all's */
	PROTO_BAD = 9,
	/* Maybe PERIOD -> WATCHED; before OPEN, and again when the pane has ended */
	PROTO_WATCH = 10,
	/* accessd -> client */
	PROTO_WELCOME = 16,   /* MAJOR, MINOR, PID, NONCE, VERSION, maybe BUCKETS */
	PROTO_REFUSED = 17,   /* CODE (enum oa_error), TEXT */
	PROTO_PROGRESS = 18,  /* TEXT, DONE, TOTAL (0: unknown) */
	PROTO_OPENED = 19,    /* JOB_ID, EPOCH, SHARED (jobs already in the stream), TEXT;
				 PIPELINE_ID, BATCH MIX, MOSAIC, HOLES; fds: slots, slot table, inbox, outbox; with PLACE:
				 the plan log */
	PROTO_WAKE = 20,      /* answer to an armed flag */
	PROTO_EXPLAINED = 21, /* TEXT */
	PROTO_NOTICE = 22,    /* TEXT: for a person, once (a bad sample was skipped, ...) */
	PROTO_FAILED = 23,    /* CODE, TEXT: the stream cannot go on for this job */
	PROTO_LOST = 24,      /* TEXT: open again with your token (restart, worker parent died) */
	PROTO_STATUS_REPLY = 25, /* fd 0: memfd with the JSON text, sealed */
	/* To DESCRIBE with PIPELINE: KEEP, DROP; without, maybe a named data set's PIPELINE; fd 0:
	 * catalogue (shmring/catalog.h) */
	PROTO_DESCRIBED = 26,
	PROTO_CACHED = 27,      /* CODE (0 or enum oa_error), TEXT; fd 0: of a list, its JSON */
	PROTO_BAD_SAMPLES = 28, /* ENTRIES (shmring/bad_page.h), DONE: the next FROM, or how many of
				    * IDS these are; TOTAL: places that there are, or IDS; LOST */
	/* Fd 0: a pane with the status (shmring/pane.h), renewed until hang-up */
	PROTO_WATCHED = 29,
};

enum proto_key {
	PROTO_KEY_MAJOR = 1,
	PROTO_KEY_MINOR = 2,
	PROTO_KEY_PROGRAM = 3, /* string: name of the client's program */
	PROTO_KEY_PID = 4,
	PROTO_KEY_NONCE = 5, /* bytes[16]: proves that the pid of the hello is still this process */
	PROTO_KEY_VERSION = 6, /* string */
	PROTO_KEY_CODE = 7,
	PROTO_KEY_TEXT = 8,
	PROTO_KEY_DONE = 9,
	PROTO_KEY_TOTAL = 10,
	PROTO_KEY_DATASET = 11, /* string: absolute path */
	/* String: JSON or the name of a pipeline; DESCRIBED: of jobs that bring none, missing: no such */
	PROTO_KEY_PIPELINE = 12,
	PROTO_KEY_BATCH = 13,
	PROTO_KEY_EPOCHS = 14, /* 0: without end */
	PROTO_KEY_JOB = 15,    /* string: name for people */
	PROTO_KEY_POLICY = 16, /* enum proto_policy */
	PROTO_KEY_BUDGET = 17, /* bad samples tolerated an epoch; missing: max(10, n / 100) */
	PROTO_KEY_RANKS = 18,
	PROTO_KEY_RANK = 19,
	PROTO_KEY_TOKEN = 20, /* bytes */
	/* OPEN: with a fixed plan, ranks of the job on this node, where these are not all; missing: they are.
	 * OPENED: the same, from who knows slices (plan/ranks/slice.h): granted chunks are ones of local places
	 * then. Beside it in OPEN: the first of them (missing: 0); 1: the last step is left out where it is
	 * short; SPREAD_ARITHMETIC: samples of a step go to nodes by plan/ranks/spread.h. */
	PROTO_KEY_LOCAL_RANKS = 70,
	PROTO_KEY_LOCAL_FIRST = 71,
	PROTO_KEY_DROP_LAST = 72,
	PROTO_KEY_SPREAD = 73,
	PROTO_KEY_CHUNK = 21, /* C wished for by the opener of the stream; missing: by rule */
	PROTO_KEY_JOB_ID = 22,
	PROTO_KEY_EPOCH = 23,
	PROTO_KEY_SHARED = 24,
	PROTO_KEY_INSTANCE = 25,
	PROTO_KEY_POSITION = 26,
	/* Enum plan_order; missing: the token's, else the pipeline's usual one */
	PROTO_KEY_ORDER = 27,
	PROTO_KEY_SEED = 28,  /* of a fixed plan; missing: the token's, else 0 */
	PROTO_KEY_PLACE = 34, /* OPENED: of the rank in its job's plan log, which is fd 4 */
	PROTO_KEY_LOG = 35,   /* OPEN: which of its descriptors is the plan log to go on with */
	/* bytes[32]: with fd 0, a sealed bitmap over positions of the permutation of this dataset version
	 * (plan/population.h): the samples that the job's epochs have; missing: all */
	PROTO_KEY_PART = 40,
	/* u64[3]: the part is a random split: from, to (doubles' bits), seed */
	PROTO_KEY_SPLIT = 41,
	PROTO_KEY_REUSE = 42, /* epochs that may see the same instance; missing: 1 */
	PROTO_KEY_EXACT = 43, /* 1: samples of a chunk have its nonce, none another's; missing: 0 */
	PROTO_KEY_PIPELINE_ID = 29, /* bytes[32]: hash of the pipeline's canonical text */
	PROTO_KEY_BATCH_MIX = 50,   /* OPENED: struct proto_batch_mix[1 .. 2]; missing: none */
	/* OPEN: 1: the part is without the classes that the pipeline drops */
	PROTO_KEY_FILTERED = 51,
	PROTO_KEY_KEEP = 52, /* DESCRIBED: int32[]: classes that the pipeline keeps; missing: all */
	PROTO_KEY_DROP = 53, /* DESCRIBED: int32[]: classes that it drops; missing: none */
	PROTO_KEY_VERB = 60,
	PROTO_KEY_GROUP = 61, /* bytes[32] */
	PROTO_KEY_WHO = 62,   /* string: a uid, or "everybody"; missing: the client's own */
	/* String: OPEN: the form that all of the samples are to be kept in, or "auto"; missing:
	 * what is worth it */
	PROTO_KEY_FORM = 63,
	PROTO_KEY_FROM = 64, /* place in the order in which the stream met them; missing: 0 */
	PROTO_KEY_IDS = 65,  /* int64[1 .. BAD_PAGE_IDS]: of these samples, bad or not */
	PROTO_KEY_ENTRIES = 66,
	PROTO_KEY_LOST = 67,   /* bad samples that accessd had no memory to keep */
	PROTO_KEY_PERIOD = 68, /* ms between renewals, 100 at least; missing: 1000 */
	/* String: the folder in which users may have folders of their access-bucket, as accessd sees it; missing: there is none */
	PROTO_KEY_BUCKETS = 69,
	PROTO_KEY_MOSAIC = 70, /* OPENED: struct proto_mosaic; missing: none */
	PROTO_KEY_HOLES = 54,  /* OPENED: 1: samples may be left out by the pipeline's filter */
};

/* An op on whole batches, which the client does. */
struct proto_batch_mix {
	uint32_t kind;      /* enum batch_mix_kind (plan/mix/batch_mix.h) */
	uint32_t is_planar; /* the image: 1: channels, rows, columns; 0: rows, columns, channels */
	uint32_t classes;   /* 0: the label has a number for each class */
	uint32_t reserved;
	double alpha, p;
};
_Static_assert(sizeof(struct proto_batch_mix) == 32, "struct proto_batch_mix is frozen");

/* What mosaic does with a field. */
enum proto_mosaic_role {
	PROTO_MOSAIC_ALONE = 0, /* the first picture's is taken */
	PROTO_MOSAIC_IMAGE = 1,
	PROTO_MOSAIC_BOXES = 2,
	PROTO_MOSAIC_ROWS = 3, /* one for each box */
	PROTO_MOSAIC_MASK = 4,
	PROTO_MOSAIC_POINTS = 5, /* with boxes a row for each of these */
};
struct proto_mosaic { /* the numbers are struct mosaic_ask's (plan/mix/mosaic.h) */
	double p, center[2], scale[2], min_size, min_visibility;
	uint64_t epochs;
	uint32_t is_planar; /* as above */
	uint8_t fill[12];   /* a value of the image for each channel */
	struct {
		uint32_t role; /* enum proto_mosaic_role */
		uint16_t fill; /* of a mask: the label where no picture is */
		uint16_t
		    numbers; /* of a mask of numbers of boxes: 1 + the field that says them; else 0 */
	} field[24];         /* in the slot table's order */
};
_Static_assert(sizeof(struct proto_mosaic) == 272, "struct proto_mosaic is frozen");

enum proto_policy { PROTO_POLICY_ERROR = 0, PROTO_POLICY_SKIP = 1, PROTO_POLICY_SUBSTITUTE = 2 };

static inline bool proto_is_named(const char *dataset)
{
	return strncmp(dataset, PROTO_NAMED, sizeof(PROTO_NAMED) - 1) == 0;
}

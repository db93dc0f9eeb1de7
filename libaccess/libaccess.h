/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OA_LIBACCESS_H
#define OA_LIBACCESS_H

/*
 * libaccess: batches of preprocessed samples out of read-only shared memory, from accessd.
 *
 *   struct oa_error error = {.size = sizeof error};
 *   struct oa_client *client;
 *   struct oa_stream *stream;
 *   struct oa_options options = {.size = sizeof options, .dataset = "/data/train",
 *                                .pipeline = "imagenet-train", .batch = 256, .epochs = 90};
 *   if (oa_connect(NULL, &client, &error) || oa_open(client, &options, &stream, &error))
 *           errx(1, "%s", error.text);
 *   struct oa_batch *batch;
 *   int r;
 *   while ((r = oa_next(stream, 60000, &batch)) == 0) {
 *           ... oa_batch_field(batch, 0, &field) ...
 *           oa_release(batch);
 *   }
 *   if (r != OA_E_END) errx(1, "%s", oa_error_text(stream));
 *
 * Threads: a client and a stream may be used by several threads at once; calls on one stream are
 * serialised inside, each batch goes to exactly one caller. A batch belongs to whoever got it and
 * may be released from any thread. oa_error_text() is of the last failed call on that handle by any
 * thread.
 *
 * Fork: a child must not use its parent's handles: calls return OA_E_FORKED; the child's exit gives
 * nothing back of the parent's.
 *
 * The library starts no thread but one short-lived helper a stream that prefaults memory, has no
 * signal handlers, prints nothing and never exits or aborts the program.
 *
 * Return values: 0, a positive OA_E_... (an outcome to handle), or a negative errno (something
 * broke).
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Frozen. Each comes with a text, oa_error_text(), that says what, where and how to mend it. */
enum oa_error_code {
	OA_E_END = 1,          /* all epochs that were asked for are delivered */
	OA_E_TIMEOUT = 2,      /* nothing in the time given; the text names the stage that stalls */
	OA_E_PINS = 3,         /* two slots are held: release a batch, or open with OA_KEEP */
	OA_E_REFUSED = 4,      /* accessd refuses; the text says why and how to mend it */
	OA_E_MEMORY = 5,       /* refused for memory, with the numbers */
	OA_E_DATASET = 6,      /* the dataset cannot be opened, or changed under the job */
	OA_E_PIPELINE = 7,     /* the pipeline's text is wrong; names op and parameter */
	OA_E_SAMPLE = 8,       /* a bad sample under OA_BAD_ERROR, or the budget is spent */
	OA_E_TOKEN = 9,        /* the token is damaged, foreign or from a newer version */
	OA_E_VERSION = 10,     /* client and daemon differ; says which to upgrade */
	OA_E_UNREACHABLE = 11, /* no daemon, and none could be started */
	OA_E_PERMISSION = 12,  /* this user may not */
	OA_E_FORKED = 13,      /* handle of the parent process used in a child */
	OA_E_INTERRUPTED = 14, /* a signal came while waiting (handler ran); call again */
	OA_E_INVALID = 15,     /* an argument is wrong; the text says which */
	OA_E_LIMIT = 16,       /* a limit of this process (descriptors, memory) is too low */
};

enum oa_dtype {
	OA_U8 = 1,
	OA_F16 = 2,
	OA_F32 = 3,
	OA_I64 = 4,
	OA_BF16 = 5,
	OA_I8 = 6,
	OA_I16 = 7,
	OA_I32 = 8,
	OA_U16 = 9,
	OA_U32 = 10,
	OA_U64 = 11,
	OA_F64 = 12,
	OA_BOOL = 13, /* a byte, 0 or 1 */
};

enum oa_kind {
	OA_DENSE = 0,
	OA_RAGGED = 1, /* samples differ in length along their first dimension: oa_field_length() */
	OA_TEXT = 2,   /* so do these, and they are UTF-8 */
};

enum oa_bad { OA_BAD_ERROR = 0, OA_BAD_SKIP = 1, OA_BAD_SUBSTITUTE = 2 };

/* In which order an epoch's samples come. Frozen. */
enum oa_order {
	OA_ORDER_USUAL = 0,    /* the token's; without one: CAROUSEL, or ANY without random ops */
	OA_ORDER_CAROUSEL = 1, /* random, dealt so that one production serves many jobs */
	OA_ORDER_ANY = 2,      /* the same, and a resident chunk may serve several epochs */
	OA_ORDER_SEEDED = 3, /* random, from (dataset, seed, epoch) alone: bit-identical batches */
	OA_ORDER_SEQUENTIAL = 4, /* 0, 1, 2, ... */
	OA_ORDER_REPLAY = 5,     /* a recorded plan: oa_options.replay */
};

enum oa_sampler_flags {
	OA_REPLACEMENT = 1 << 0, /* with weights: a sample may be drawn several times an epoch */
};

/* Which samples an epoch has; members that are zero leave it at all of them, once each. What it
 * points to is copied by oa_open(). */
struct oa_sampler {
	size_t size; /* sizeof(struct oa_sampler) */
	/* Sample ids; NULL: all. OA_ORDER_SEQUENTIAL: an epoch in this order, repeats allowed.
	 * OA_ORDER_SEEDED: permuted anew each epoch, repeats allowed. Else a set, without repeats. */
	const int64_t *ids;
	uint64_t n_ids;
	const char *const *classes; /* of these classes alone; NULL: of all */
	uint32_t n_classes;
	/* A random split: the part from .. to of the samples, permuted by split_seed; 0, 0: all of
	 * them. 0 to .9 and .9 to 1, with one split_seed, have no sample in common. */
	double from, to;
	uint64_t split_seed;
	/* One for each of ids, or of the data set's samples: OA_ORDER_SEEDED draws by them. */
	const double *weights;
	uint64_t n_weights;
	uint64_t samples; /* drawn an epoch, with weights; 0: as many as there are to draw from */
	uint32_t flags;   /* enum oa_sampler_flags */
	/* Samples that are read together, as those of a row group: the first one of each block, from 0 on,
	 * ascending. OA_ORDER_SEEDED then permutes the blocks, and what is in `window` of them at a time. */
	const int64_t *blocks;
	uint64_t n_blocks;
	uint32_t window; /* at least 1, with blocks */
};

enum oa_flags {
	OA_COPY = 1 << 0,      /* batches are private, writable copies; no pins */
	OA_DROP_LAST = 1 << 1, /* leave out an epoch's last batch if it is short */
	OA_POISON = 1 << 2,    /* debugging: releases check generations, fill copies with 0xA5 */
	/* In the place of OA_E_PINS, batches that are held become private copies */
	OA_KEEP = 1 << 3,
	OA_WRITABLE = 1 << 4, /* oa_make_writable() works; so it does with OA_KEEP and OA_COPY */
	/* Over nodes: which rank of a step gets which sample follows the samples, so that a node gets mostly the
	 * same ones in each epoch; see local_ranks. */
	OA_SPREAD = 1 << 5,
};

struct oa_error {
	size_t size; /* sizeof(struct oa_error) */
	int code;
	char text[768];
};

struct oa_options {
	size_t size;         /* sizeof(struct oa_options) */
	const char *dataset; /* folder of pictures, shards, rows, a file of access-ctl convert */
	/* JSON, or "imagenet-train", "imagenet-eval", with "-u8". NULL: a named data set's usual one */
	const char *pipeline;
	uint32_t batch;       /* samples a batch, 1 .. 65536 */
	uint32_t flags;       /* enum oa_flags */
	uint64_t epochs;      /* 0: without end */
	const char *job;      /* name for people; NULL: program name and pid */
	enum oa_bad bad;      /* policy for bad samples: the same for all jobs of a stream */
	int64_t bad_budget;   /* bad samples tolerated an epoch; 0: max(10, n / 100); < 0: none */
	uint32_t ranks, rank; /* 0 ranks means 1 */
	const void *token;    /* of oa_state(): goes on from there */
	size_t token_size;
	uint32_t chunk; /* samples a chunk holds, when this job opens the stream; 0: by rule */
	int timeout_ms; /* of the open itself; 0: 10 minutes, < 0: without end */
	/* Called by oa_open() while it waits; NULL: none. */
	void (*progress)(void *arg, const char *text, uint64_t done, uint64_t total);
	void *progress_arg;
	enum oa_order order;
	/* Of orders and random ops with OA_ORDER_SEEDED and OA_ORDER_SEQUENTIAL; 0: the token's. The
	 * others refuse one: the stream has the seed, jobs that share are no independent replicates. */
	uint64_t seed;
	const struct oa_sampler *sampler; /* which samples; NULL: all, once each */
	/* File into which the plan is recorded as it is delivered; NULL: none */
	const char *record;
	const char *replay; /* a recorded plan's file, with OA_ORDER_REPLAY */
	uint32_t reuse;     /* epochs that may see the same augmentation; 0: 1 */
	/* For jobs that prepare others: "auto", "indexed", "packed", "decoded", "deepest": what is not kept
	 * yet of each sample in this form is kept now; NULL: as it is worth it. Shares no slots. */
	const char *keep;
	/* Of a job with ranks on several nodes: so many of them are on this node, local_first the first; 0:
	 * all are. Needs OA_ORDER_SEEDED, with one seed for all, SEQUENTIAL or REPLAY. */
	uint32_t local_ranks, local_first;
};

struct oa_field {         /* of a batch; C order */
	size_t size;      /* sizeof(struct oa_field) */
	const char *name; /* "image", "label", "index"; lives as long as the stream */
	enum oa_dtype dtype;
	uint32_t ndim;    /* 1 + dimensions of one sample */
	const void *data; /* read-only, valid until the batch is released (OA_COPY: writable) */
	uint64_t shape[5];
	int64_t strides[5]; /* in bytes */
	uint64_t bytes;
	/* Not OA_DENSE: shape[1] is the most that a sample has, and zeros stand behind what it has. */
	enum oa_kind kind;
	const int64_t *lengths; /* for oa_field_length(), which checks them; NULL: dense */
};

struct oa_batch_info {
	size_t size;    /* sizeof(struct oa_batch_info) */
	uint32_t count; /* samples, = batch but at an epoch's end */
	uint32_t n_fields;
	uint64_t epoch, step;  /* step counts from 0 in each epoch */
	const int64_t *ids;    /* count sample ids */
	uint32_t substituted;  /* samples whose pixels are another sample's */
	uint32_t copied;       /* samples that the library copied (left-overs; see OA_KEEP) */
	int is_last;           /* of its epoch */
	const uint32_t *parts; /* of a mix: the part that each sample is of; NULL: of none */
	/* The shared memory that the fields lie in, whole pages, for whoever registers it with a device;
	 * NULL: in private memory. The same address is the same memory within one session, of which a
	 * stream has a new one when it has connected again. */
	const void *slot;
	uint64_t slot_bytes, session;
	uint64_t kept; /* oa_stats.kept as of this batch */
};

struct oa_stats {
	size_t size; /* sizeof(struct oa_stats) */
	uint64_t samples, batches, epochs, skipped, substituted;
	uint64_t copied;  /* samples copied because batches do not divide chunks */
	uint64_t wait_ns; /* slept in oa_next() */
	uint64_t ready_count, ready_ns_total; /* calls that neither slept nor copied */
	uint64_t reconnects;
	uint32_t pins; /* slots held now */
	uint32_t chunk, block;
	uint64_t n_samples, epoch;
	uint64_t outstanding; /* batches not yet released */
	uint64_t filtered;    /* samples that the pipeline's filter left out by size */
	/* Batches that mixup and cutmix made, and the time of it */
	uint64_t batch_mixed, batch_mixed_ns;
	/* What is shared with whom, and what not and why, as accessd said when the stream was opened
	 * last: for people. */
	char shares[512];
	/* With OA_KEEP: samples that were copied because more slots were held than two; samples that were
	 * copied because a batch beside them was written to. */
	uint64_t kept, written;
	/* Of wait_ns, as accessd measures it: for samples that take longer than a chunk behind them. */
	uint64_t late_ns;
};

struct oa_bad_sample {
	size_t size;       /* sizeof(struct oa_bad_sample) */
	int64_t id;        /* in the dataset, as in oa_batch_info.ids */
	const char *name;  /* the file, relative to the dataset; any bytes */
	const char *stage; /* "open", "read", "decode", "pipeline", "worker", "memory", "unknown" */
	const char *error; /* one line for people */
};

struct oa_bad_list;
struct oa_client;
struct oa_dataset;
struct oa_stream;
struct oa_batch;

/* socket: path of accessd's socket; NULL: $ACCESS_SOCKET, else the system's /run/accessd/socket,
 * else a private daemon of this user, started when there is none. Caller owns *ret:
 * oa_disconnect(). */
int oa_connect(const char *socket, struct oa_client **ret, struct oa_error *error);
void oa_disconnect(struct oa_client *client); /* its streams go on; NULL is fine */
/* The node's status as JSON text, which the caller frees with free(). */
int oa_status(struct oa_client *client, char **ret_json, struct oa_error *error);

/* What is in a dataset: for class filters, splits by label, and people. Waits for at most timeout_ms
 * (0: 10 minutes, < 0: without end) while accessd opens it, or lists it for the first time. dataset:
 * as in oa_options. It stays what it was when it was opened, whatever happens to the folder or to
 * accessd; any number of threads may read it. Caller owns *ret: oa_dataset_close(). */
int oa_dataset_open(struct oa_client *client, const char *dataset, int timeout_ms,
		    struct oa_dataset **ret, struct oa_error *error);
uint64_t oa_dataset_count(const struct oa_dataset *dataset);   /* samples: ids 0 .. count - 1 */
uint32_t oa_dataset_classes(const struct oa_dataset *dataset); /* 0: a flat folder */
/* Of labels 0 .. classes - 1, until it is closed; NULL for others. */
const char *oa_dataset_class_name(const struct oa_dataset *dataset, uint32_t label);
int64_t oa_dataset_label(const struct oa_dataset *dataset, int64_t id); /* -1: no such sample */
void oa_dataset_close(struct oa_dataset *dataset);                      /* NULL is fine */

int oa_open(struct oa_client *client, const struct oa_options *options, struct oa_stream **ret,
	    struct oa_error *error);
/* Batches still held stay valid until they are released. A thread that waits in oa_next() leaves it
 * with OA_E_INVALID; no other call may begin after this one, but oa_release(). NULL is fine. */
void oa_close(struct oa_stream *stream);

/* Next batch. timeout_ms < 0: waits without end, 0: never waits. 0 and *ret (caller releases), or
 * OA_E_END, OA_E_TIMEOUT, OA_E_PINS, OA_E_SAMPLE, OA_E_INTERRUPTED, ... When the daemon is gone it
 * waits, connects again and goes on, exactly once, within the time given. */
int oa_next(struct oa_stream *stream, int timeout_ms, struct oa_batch **ret);
void oa_release(struct oa_batch *batch); /* NULL is fine */
void oa_batch_info(const struct oa_batch *batch, struct oa_batch_info *ret);
/* From now on the program may write to the batch's fields. Nobody else sees it, and it is gone with the
 * batch. 0; OA_E_INVALID: the stream was opened without OA_WRITABLE, OA_KEEP and OA_COPY; negative errno. Any
 * thread, while the batch is not released, also in a signal's handler. */
int oa_make_writable(struct oa_batch *batch);
/* OA_E_INVALID: there is no such field. */
int oa_batch_field(const struct oa_batch *batch, uint32_t index, struct oa_field *ret);
/* How long a sample of a field is along its first dimension, at most shape[1], whatever is written in memory
 * that others have; of a dense one shape[1]. sample: 0 .. shape[0] - 1. */
uint64_t oa_field_length(const struct oa_field *field, uint32_t sample);

/* Descriptor that polls readable when oa_next(stream, 0, ...) may find something; stays the
 * stream's, and the same. Arms the wake until the next oa_next(): call it again before each poll. */
int oa_fd(struct oa_stream *stream);

/* Resume token: what oa_next() has returned so far counts as delivered. *size: in room at data, out
 * bytes written, or needed with -ENOBUFS. */
int oa_state(struct oa_stream *stream, void *data, size_t *size);
/* The same of the beginning of an epoch, whatever was delivered: to leave an epoch in the middle. */
int oa_state_epoch(struct oa_stream *stream, uint64_t epoch, void *data, size_t *size);
void oa_stream_stats(struct oa_stream *stream, struct oa_stats *ret);
/* The bad samples that the stream's dataset is known to have, of those that its job's epochs have: each
 * that the job has come to since oa_open(), whatever became of it and of accessd meanwhile, and those that
 * accessd has met for it ahead of oa_next() or for others who share the stream; each once, by id. Waits for
 * at most timeout_ms (0: 10 minutes, < 0: without end). Any thread may call it, also while another one is
 * in oa_next(), and when the stream has failed. It does not change; any number of threads may read it.
 * Caller owns *ret, and may keep it longer than the stream: oa_bad_samples_free(). */
int oa_bad_samples(struct oa_stream *stream, int timeout_ms, struct oa_bad_list **ret);
uint64_t oa_bad_samples_count(const struct oa_bad_list *list);
/* at: 0 .. count - 1, else OA_E_INVALID. Texts are the list's. */
int oa_bad_samples_at(const struct oa_bad_list *list, uint64_t at, struct oa_bad_sample *ret);
void oa_bad_samples_free(struct oa_bad_list *list);        /* NULL is fine */
const char *oa_error_text(const struct oa_stream *stream); /* of the last failed call; never NULL */
const char *oa_error_name(int code);                       /* "OA_E_TIMEOUT", or strerror's text */
const char *oa_version(void);

/* ---- several datasets as one ---- */

/* When an epoch of a mix ends. Frozen. */
enum oa_mix_end {
	OA_MIX_FIRST = 0,   /* before the first part would begin its own epoch again */
	OA_MIX_ALL = 1,     /* when each part was at its end once; shorter ones have begun again */
	OA_MIX_LONGEST = 2, /* when the part with the most samples was */
};

/* What is mixed. Frozen. */
enum oa_mix_unit {
	OA_MIX_SAMPLES = 0, /* batches are copied together from samples of the parts */
	OA_MIX_BATCHES = 1, /* whole batches of the parts take turns; nothing is copied */
};

struct oa_mix_part {
	/* As of oa_open(); batch, epochs, token and OA_DROP_LAST are the mix's. */
	const struct oa_options *options;
	uint32_t weight; /* its share is weight / sum of the weights: exactly */
};

struct oa_mix_options {
	size_t size;     /* sizeof(struct oa_mix_options) */
	uint32_t batch;  /* samples a batch, 1 .. 65536 */
	uint32_t flags;  /* OA_DROP_LAST, OA_POISON; with OA_MIX_BATCHES OA_COPY */
	uint64_t epochs; /* 0: without end */
	uint64_t seed;   /* of the samples' places in their batches; 0: the token's */
	enum oa_mix_end end;
	enum oa_mix_unit unit;
	const void *token; /* of oa_mix_state(): goes on from there */
	size_t token_size;
};

struct oa_mix;

/* Opens a stream for each part. Fields must be the same in name, type and shape. Caller owns *ret:
 * oa_mix_close(). Used by one thread at a time. */
int oa_mix_open(struct oa_client *client, const struct oa_mix_part *parts, uint32_t n_parts,
		const struct oa_mix_options *options, struct oa_mix **ret, struct oa_error *error);
void oa_mix_close(struct oa_mix *mix); /* its batches stay valid; NULL is fine */
/* As oa_next(). Batches are ordinary ones; oa_batch_info.parts says what is of which part. */
int oa_mix_next(struct oa_mix *mix, int timeout_ms, struct oa_batch **ret);
/* As oa_state(): one token for all parts. */
int oa_mix_state(struct oa_mix *mix, void *data, size_t *size);
const char *oa_mix_error_text(const struct oa_mix *mix); /* as oa_error_text() */

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif

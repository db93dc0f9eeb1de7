/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OA_LIBACCESS_H
#define OA_LIBACCESS_H

/*
 * libaccess: batches of preprocessed samples in read-only shared memory, from accessd. Each function
 * has a manual page; libaccess(3) has an overview.
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
 * Threads: several threads may use a client and a stream at once. Calls on one stream are
 * serialised; each batch goes to exactly one caller, and any thread may release it. oa_error_text()
 * is the message of the last failed call on the stream, in any thread.
 *
 * Fork: a child must not use its parent's handles; calls return OA_E_FORKED. When the child exits,
 * nothing of the parent's is given back.
 *
 * The library starts no thread, except a short-lived one for each stream that prefaults memory. It
 * installs no signal handlers, prints nothing, and never ends the program.
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
	OA_E_END = 1,          /* all epochs are delivered */
	OA_E_TIMEOUT = 2,      /* nothing came in time; the text names the stage that stalls */
	OA_E_PINS = 3,         /* two slots are held: release a batch, or open with OA_KEEP */
	OA_E_REFUSED = 4,      /* accessd refuses; the text says why and how to mend it */
	OA_E_MEMORY = 5,       /* no room in accessd's budget; the text has the numbers */
	OA_E_DATASET = 6,      /* the dataset cannot be opened, or changed under the job */
	OA_E_PIPELINE = 7,     /* the pipeline's text is wrong; names op and parameter */
	OA_E_SAMPLE = 8,       /* bad under OA_BAD_ERROR, over bad_budget, or all of them */
	OA_E_TOKEN = 9,        /* the token is damaged, of other data, or of a newer version */
	OA_E_VERSION = 10,     /* library and daemon do not fit; says which to upgrade */
	OA_E_UNREACHABLE = 11, /* no daemon, and none could be started */
	OA_E_PERMISSION = 12,  /* this user may not use that accessd */
	OA_E_FORKED = 13,      /* handle of the parent process used in a child */
	OA_E_INTERRUPTED = 14, /* a signal handler ran during the wait; call again */
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
	OA_TEXT = 2,   /* the same, of UTF-8 */
};

enum oa_bad { OA_BAD_ERROR = 0, OA_BAD_SKIP = 1, OA_BAD_SUBSTITUTE = 2 };

/* In which order an epoch's samples come. Frozen. */
enum oa_order {
	OA_ORDER_USUAL = 0,    /* the token's; without one: CAROUSEL, or ANY without random ops */
	OA_ORDER_CAROUSEL = 1, /* random, chosen so that one production serves many jobs */
	OA_ORDER_ANY = 2,      /* the same, and a chunk in memory may serve several epochs */
	OA_ORDER_SEEDED = 3, /* random, from (dataset, seed, epoch) alone: bit-identical batches */
	OA_ORDER_SEQUENTIAL = 4, /* 0, 1, 2, ... */
	OA_ORDER_REPLAY = 5,     /* a recorded plan: oa_options.replay */
};

enum oa_sampler_flags {
	OA_REPLACEMENT = 1 << 0, /* with weights: a sample may be drawn several times an epoch */
};

/* Which samples an epoch has; with all members zero, each sample once. oa_open() copies it and what
 * it points to. */
struct oa_sampler {
	size_t size; /* sizeof(struct oa_sampler) */
	/* Sample ids; NULL: all. OA_ORDER_SEQUENTIAL: in this order, repeats allowed.
	 * OA_ORDER_SEEDED: permuted anew each epoch, repeats allowed. Else a set, without repeats. */
	const int64_t *ids;
	uint64_t n_ids;
	const char *const *classes; /* only samples of these classes; NULL: all */
	uint32_t n_classes;
	/* A random split: the share from .. to of the samples, permuted by split_seed; 0, 0: all.
	 * 0 to .9 and .9 to 1, with one split_seed, have no sample in common. from above to: all but
	 * to .. from, as .4 to .2 for the training beside .2 to .4. */
	double from, to;
	uint64_t split_seed;
	/* A weight for each of ids, or for each sample: OA_ORDER_SEEDED draws each epoch by them. */
	const double *weights;
	uint64_t n_weights;
	uint64_t samples; /* drawn for an epoch, with weights; 0: as many as there are */
	uint32_t flags;   /* enum oa_sampler_flags */
	/* Samples that are read together, such as a row group: the first sample of each block, ascending
	 * from 0. OA_ORDER_SEEDED then permutes the blocks, and the samples of each `window` of them. */
	const int64_t *blocks;
	uint64_t n_blocks;
	uint32_t window; /* at least 1, with blocks */
};

enum oa_flags {
	OA_COPY = 1 << 0,      /* batches are private, writable copies and pin no slot */
	OA_DROP_LAST = 1 << 1, /* leave out an epoch's last batch if it is short */
	OA_POISON = 1 << 2,    /* debugging: releases check generations, fill copies with 0xA5 */
	/* Any number of batches may be held: instead of OA_E_PINS, they become private copies */
	OA_KEEP = 1 << 3,
	OA_WRITABLE = 1 << 4, /* oa_make_writable() works; it also does with OA_KEEP and OA_COPY */
	/* On several nodes (local_ranks): a node gets mostly the same samples in each epoch */
	OA_SPREAD = 1 << 5,
	/* The token, of an epoch's beginning (oa_state_epoch()), may be of another sampler: epochs
	 * are counted on, and have what this sampler says */
	OA_RESAMPLE = 1 << 6,
};

/* What a language model is to learn, where that is not the next token. Frozen. */
enum oa_objective_kind {
	OA_OBJECTIVE_NONE = 0,
	OA_OBJECTIVE_MASKED = 1, /* masked language modelling: BERT */
	OA_OBJECTIVE_SPANS = 2,  /* span corruption: T5 */
	OA_OBJECTIVE_MIDDLE = 3, /* fill in the middle */
};

enum oa_token_what {                              /* bits of oa_objective.what */
		     OA_TOKEN_SPECIAL = 1 << 0,   /* never masked */
		     OA_TOKEN_CONTINUES = 1 << 1, /* the word of the token before it */
};

/* Of a data set of tokens; with all members of a kind but its ids zero, its usual numbers. oa_open() copies it and what it
 * points to. Ids are tokens, from 0. */
struct oa_objective {
	size_t size; /* sizeof(struct oa_objective) */
	enum oa_objective_kind kind;
	/* MASKED: the share of tokens, or of words, that is chosen; the shares of these that become mask_token, and any
	 * token; the others stay. 0, 0, 0: .15, .8, .1. */
	double probability, mask, random;
	int64_t mask_token;
	uint64_t vocabulary; /* tokens 0 .. vocabulary - 1 */
	const uint8_t *what; /* enum oa_token_what of the first n_what tokens */
	uint64_t n_what;
	/* SPANS: the share of tokens that is taken out, the mean length of a span (0, 0: .15, 3), and a sentinel for each span */
	double density, mean_span;
	const int64_t *sentinels;
	uint64_t n_sentinels;
	/* MIDDLE: the share of documents (0: .5), and of these that with the suffix first */
	double rate, swapped;
	int64_t prefix, middle, suffix;
	/* SPANS: behind inputs and targets. MIDDLE: at a document's end. Negative: none */
	int64_t end;
};

struct oa_error {
	size_t size; /* sizeof(struct oa_error) */
	int code;
	char text[768];
};

struct oa_options {
	size_t size;         /* sizeof(struct oa_options) */
	const char *dataset; /* a path, "name:NAME" or a URL: oneaccess-sources(7) */
	/* JSON, or "imagenet-train", "imagenet-eval", with "-u8". NULL: that of a named data set */
	const char *pipeline;
	uint32_t batch;       /* samples a batch, 1 .. 65536 */
	uint32_t flags;       /* enum oa_flags */
	uint64_t epochs;      /* 0: without end */
	const char *job;      /* name for people; NULL: program name and pid */
	enum oa_bad bad;      /* policy for bad samples: the same for all jobs of a stream */
	int64_t bad_budget;   /* bad samples allowed in an epoch; 0: max(10, n / 100); < 0: none */
	uint32_t ranks, rank; /* 0 ranks means 1 */
	const void *token;    /* of oa_state(): continue from there */
	size_t token_size;
	uint32_t chunk; /* samples in a chunk, if this job begins the stream; 0: accessd's choice */
	int timeout_ms; /* of oa_open(); 0: 10 minutes, < 0: no limit */
	/* oa_open() calls it while it waits, in the calling thread; NULL: none. */
	void (*progress)(void *arg, const char *text, uint64_t done, uint64_t total);
	void *progress_arg;
	enum oa_order order;
	/* Of the order and the random ops, with OA_ORDER_SEEDED and OA_ORDER_SEQUENTIAL; 0: the token's.
	 * Other orders refuse one: accessd draws the stream's seed. */
	uint64_t seed;
	const struct oa_sampler *sampler; /* which samples; NULL: all, once each */
	/* File into which the plan is recorded as it is delivered; NULL: none */
	const char *record;
	const char *replay; /* a recorded plan's file, with OA_ORDER_REPLAY */
	uint32_t reuse;     /* epochs that may see the same augmentation; 0: 1 */
	/* For jobs that fill the cache: keep each sample in this form, "auto", "indexed", "packed",
	 * "decoded" or "deepest"; NULL: what pays. */
	const char *keep;
	/* For ranks on several nodes: how many are on this node, and the first of them; 0: all. Needs
	 * OA_ORDER_SEEDED (one seed for all), SEQUENTIAL or REPLAY. */
	uint32_t local_ranks, local_first;
	const struct oa_objective *objective; /* NULL: the next token */
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
	/* Not OA_DENSE: shape[1] is the greatest length, and zeros follow each sample. */
	enum oa_kind kind;
	const int64_t *lengths; /* for oa_field_length(), which checks them; NULL: dense */
};

struct oa_batch_info {
	size_t size;    /* sizeof(struct oa_batch_info) */
	uint32_t count; /* samples; = batch, except at an epoch's end */
	uint32_t n_fields;
	uint64_t epoch, step;  /* step counts from 0 in each epoch */
	const int64_t *ids;    /* count sample ids */
	uint32_t substituted;  /* samples whose pixels are another sample's */
	uint32_t copied;       /* samples that the library copied (ends of chunks; see OA_KEEP) */
	int is_last;           /* of its epoch */
	const uint32_t *parts; /* in a mix: the part of each sample; else NULL */
	/* The shared memory of the fields, whole pages, for registering it with a device; NULL: private
	 * memory. Within one session an address is the same memory; a stream that has connected again
	 * has another session. */
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
	/* Batches with mixup, cutmix, mosaic or an objective, and the time that took */
	uint64_t batch_mixed, batch_mixed_ns;
	/* For people: what is shared with which jobs, and what is not and why, when the stream was last
	 * opened */
	char shares[512];
	/* Samples copied because more than two slots were held (OA_KEEP); because a batch of their slot
	 * was written to */
	uint64_t kept, written;
	/* The part of wait_ns for samples that took longer than a chunk behind them */
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

/* Connects to accessd. socket: path of its socket; NULL: $ACCESS_SOCKET, else the system's
 * /run/accessd/socket, else this user's private daemon, which is started if there is none. The caller
 * owns *ret: oa_disconnect(). */
int oa_connect(const char *socket, struct oa_client **ret, struct oa_error *error);
void oa_disconnect(struct oa_client *client); /* its streams go on; NULL is allowed */
/* The node's status as a string of JSON, which the caller frees with free(). */
int oa_status(struct oa_client *client, char **ret_json, struct oa_error *error);

/* Opens a data set to read its number of samples, labels and classes. dataset: as in oa_options.
 * Waits at most timeout_ms (0: 10 minutes, < 0: no limit) while accessd opens it, or lists it for the
 * first time. It does not change, whatever happens to the files or accessd; any number of threads may
 * read it. The caller owns *ret: oa_dataset_close(). */
int oa_dataset_open(struct oa_client *client, const char *dataset, int timeout_ms,
		    struct oa_dataset **ret, struct oa_error *error);
uint64_t oa_dataset_count(const struct oa_dataset *dataset);   /* samples: ids 0 .. count - 1 */
uint32_t oa_dataset_classes(const struct oa_dataset *dataset); /* 0: a flat folder */
/* Of labels 0 .. classes - 1, valid until the data set is closed; NULL for others. */
const char *oa_dataset_class_name(const struct oa_dataset *dataset, uint32_t label);
int64_t oa_dataset_label(const struct oa_dataset *dataset, int64_t id); /* -1: no such sample */
/* 32 bytes, valid until the data set is closed: those with the same have the same samples, labels and ids. */
const uint8_t *oa_dataset_version(const struct oa_dataset *dataset);
void oa_dataset_close(struct oa_dataset *dataset); /* NULL is allowed */

/* Opens a stream of batches. The caller owns *ret: oa_close(). */
int oa_open(struct oa_client *client, const struct oa_options *options, struct oa_stream **ret,
	    struct oa_error *error);
/* Ends a stream. Batches that are held stay valid until they are released. oa_next() in another thread
 * returns OA_E_INVALID. After this call only oa_release() may be called. NULL is allowed. */
void oa_close(struct oa_stream *stream);

/* Takes the next batch. timeout_ms: 0: does not wait, < 0: no limit. 0 and *ret, which the caller
 * releases, or OA_E_END, OA_E_TIMEOUT, OA_E_PINS, OA_E_SAMPLE, OA_E_INTERRUPTED, ... If the daemon is
 * gone, it waits, connects again and goes on, within timeout_ms; each sample still comes once. */
int oa_next(struct oa_stream *stream, int timeout_ms, struct oa_batch **ret);
void oa_release(struct oa_batch *batch); /* gives the batch back; NULL is allowed */
void oa_batch_info(const struct oa_batch *batch, struct oa_batch_info *ret);
/* Allows writing to the batch's fields. Nobody else sees what is written, and it ends with the batch.
 * 0; OA_E_INVALID: the stream was opened without OA_WRITABLE, OA_KEEP and OA_COPY; negative errno. Any
 * thread, while the batch is not released, also in a signal handler. */
int oa_make_writable(struct oa_batch *batch);
/* Describes field number index, 0 .. n_fields - 1. OA_E_INVALID: there is no such field. */
int oa_batch_field(const struct oa_batch *batch, uint32_t index, struct oa_field *ret);
/* The length of a sample along its first dimension: at most shape[1], whatever is in shared memory; of
 * a dense field shape[1]. sample: 0 .. shape[0] - 1. */
uint64_t oa_field_length(const struct oa_field *field, uint32_t sample);

/* A descriptor that polls readable when oa_next(stream, 0, ...) may find something. It belongs to the
 * stream. Call this before each poll: it arms the wake-up until the next oa_next(). */
int oa_fd(struct oa_stream *stream);

/* Writes a resume token: exactly what oa_next() has returned counts as delivered. *size: the size of
 * data; then the bytes written, or needed with -ENOBUFS. */
int oa_state(struct oa_stream *stream, void *data, size_t *size);
/* The same for the beginning of an epoch, whatever was delivered: to leave an epoch in the middle. */
int oa_state_epoch(struct oa_stream *stream, uint64_t epoch, void *data, size_t *size);
void oa_stream_stats(struct oa_stream *stream, struct oa_stats *ret);
/* Lists the bad samples in the job's epochs, each once, by id: those that the job has come to since
 * oa_open(), also before accessd was restarted, and those that accessd has met ahead of it or for jobs
 * that share the stream. Waits at most timeout_ms (0: 10 minutes, < 0: no limit). Any thread, also
 * during oa_next() in another one, and on a stream that has failed. The list does not change; any
 * number of threads may read it. The caller owns *ret, and may keep it longer than the stream:
 * oa_bad_samples_free(). */
int oa_bad_samples(struct oa_stream *stream, int timeout_ms, struct oa_bad_list **ret);
uint64_t oa_bad_samples_count(const struct oa_bad_list *list);
/* at: 0 .. count - 1, else OA_E_INVALID. The strings belong to the list. */
int oa_bad_samples_at(const struct oa_bad_list *list, uint64_t at, struct oa_bad_sample *ret);
void oa_bad_samples_free(struct oa_bad_list *list); /* NULL is allowed */
/* The names of samples by their ids, as oa_batch_info.ids has them: their files, relative to the dataset (of shards
 * SHARD:KEY), any bytes. *ret: count strings in the order of ids and a NULL, in one block that the caller frees with
 * free(). An id may be any of the dataset and repeated. timeout_ms, threads: as of oa_bad_samples(). */
int oa_sample_names(struct oa_stream *stream, const int64_t *ids, uint64_t count, int timeout_ms,
		    char ***ret);
const char *oa_error_text(const struct oa_stream *stream); /* of the last failed call; never NULL */
const char *oa_error_name(int code);                       /* "OA_E_TIMEOUT", or strerror's text */
const char *oa_version(void);

/* ---- several datasets as one ---- */

/* When an epoch of a mix ends. Frozen. */
enum oa_mix_end {
	OA_MIX_FIRST = 0,   /* before the first part would begin its own epoch again */
	OA_MIX_ALL = 1,     /* when each part was at its end once; shorter ones have begun again */
	OA_MIX_LONGEST = 2, /* when the part with the most samples was at its end */
};

/* What is mixed. Frozen. */
enum oa_mix_unit {
	OA_MIX_SAMPLES = 0, /* each batch has samples of all parts, copied together */
	OA_MIX_BATCHES = 1, /* whole batches of the parts take turns; nothing is copied */
};

struct oa_mix_part {
	/* As of oa_open(), without batch, epochs, token and OA_DROP_LAST: these are the mix's. */
	const struct oa_options *options;
	uint32_t weight; /* the part's exact share is weight / sum of the weights */
};

struct oa_mix_options {
	size_t size;     /* sizeof(struct oa_mix_options) */
	uint32_t batch;  /* samples a batch, 1 .. 65536 */
	uint32_t flags;  /* OA_DROP_LAST, OA_POISON; with OA_MIX_BATCHES OA_COPY */
	uint64_t epochs; /* 0: without end */
	uint64_t seed;   /* of the samples' places in their batches; 0: the token's */
	enum oa_mix_end end;
	enum oa_mix_unit unit;
	const void *token; /* of oa_mix_state(): continue from there */
	size_t token_size;
};

struct oa_mix;

/* Opens a stream for each part. Their fields must be the same in name, type and shape. The caller owns
 * *ret: oa_mix_close(). One thread at a time. */
int oa_mix_open(struct oa_client *client, const struct oa_mix_part *parts, uint32_t n_parts,
		const struct oa_mix_options *options, struct oa_mix **ret, struct oa_error *error);
void oa_mix_close(struct oa_mix *mix); /* its batches stay valid; NULL is allowed */
/* As oa_next(). Batches are ordinary ones; oa_batch_info.parts has the part of each sample. */
int oa_mix_next(struct oa_mix *mix, int timeout_ms, struct oa_batch **ret);
/* As oa_state(), with one token for all parts. */
int oa_mix_state(struct oa_mix *mix, void *data, size_t *size);
/* As oa_sample_names(), of a part: 0 .. n_parts - 1. Any thread. */
int oa_mix_sample_names(struct oa_mix *mix, uint32_t part, const int64_t *ids, uint64_t count,
			int timeout_ms, char ***ret);
const char *oa_mix_error_text(const struct oa_mix *mix); /* as oa_error_text() */

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A kind's scan: what samples are in a shard, from the shard's bytes. It is a coroutine: it says which bytes
 * it wants next, is fed them, and gives a record to its sink for each sample, in the order that they have there. It does no
 * I/O, takes no memory but its state, and asks nobody what time it is: so it runs in a sandbox
 * (indexer.h), since the bytes are a stranger's, and under a fuzzer.
 *
 * It names what is wrong and where. Whether a record lies within the shard is checked by who gets it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCAN_MOST_WANT (UINT32_C(1) << 20) /* bytes that may be wanted at a time */
#define SCAN_MOST_KEY 4096                 /* bytes of a key, with its NUL */
#define SCAN_MOST_WORD 256                 /* bytes of a label that is a word, with its NUL */
#define SCAN_NO_LABEL UINT32_MAX
#define SCAN_MOST_LABEL ((UINT32_C(1) << 24) - 1)

enum {
	SCAN_E_END = 1, /* that was all */
	SCAN_E_BAD = 2, /* the sink has where and why */
};

struct scan_shard { /* what is known of it before its first byte was read; borrowed until the end */
	const char *name;    /* below the root */
	uint64_t bytes;      /* of the whole */
	const char *options; /* of the source: "key=value,...", or "" */
};

struct
    scan_want { /* the bytes that are needed next: 1 to SCAN_MOST_WANT of them, which the shard has */
	uint64_t at;
	uint32_t bytes;
};

/* A record's place, of kinds that have pixels: where it begins, and the width above that. */
#define SCAN_PLACE_BITS 48
#define SCAN_PIXELS_HEAD 24

struct scan_record { /* a sample's bytes, as they lie in the shard */
	uint64_t at;
	uint32_t bytes;
	/* Not 0, of kinds that have such: SCAN_PIXELS_HEAD bytes of no meaning, and then pixels, so many in a row, each red, green, blue. */
	uint16_t width;
	uint32_t label;   /* at most SCAN_MOST_LABEL, or SCAN_NO_LABEL: it brings none */
	const char *key;  /* what people call it; borrowed until record() returns */
	const char *word; /* its label, with SCAN_NO_LABEL; NULL: that is none. Borrowed, too */
};

struct scan_sink {
	/* 0; all else ends the scan, and feed() returns it. */
	int (*record)(void *arg, const struct scan_record *record);
	void *arg;
	/* of SCAN_E_BAD */
	uint64_t bad_at;
	char why[256]; /* with the sample's key, quoted, where there is one */
};

/* Exactly so many bytes: 0. */
static inline int scan_wants(uint64_t at, uint64_t bytes, struct scan_want *ret)
{
	*ret = (struct scan_want){at, (uint32_t)bytes};
	return 0;
}
/* What is wrong, and where. SCAN_E_BAD. */
__attribute__((format(printf, 3, 4))) int scan_bad(struct scan_sink *sink, uint64_t at,
						   const char *fmt, ...);

struct source_scan {
	const char *name;
	size_t state_bytes; /* of memory that begin() may find in any state */
	/* 0 and what it wants first, SCAN_E_END, SCAN_E_BAD. */
	int (*begin)(void *state, const struct scan_shard *shard, struct scan_sink *sink,
		     struct scan_want *ret);
	/* What it wanted. 0 and what it wants next, SCAN_E_END, SCAN_E_BAD, or
	 * what record() returned; then nothing more may be fed. */
	int (*feed)(void *state, uint64_t at, const uint8_t *bytes, uint32_t size,
		    struct scan_sink *sink, struct scan_want *ret);
	/* Do these first bytes begin a shard: 4096, if it has so many? NULL: its name, or its folder, tells. */
	bool (*is_shard)(const uint8_t *head, size_t size);
	/* Not NULL: a sample's bytes, as they lie at that place of the shard, become those that were written, and zeros behind them. */
	void (*join)(uint8_t *bytes, size_t size, uint64_t place);
};

/* ---- the kinds ---- */

extern const struct source_scan scan_tar; /* WebDataset's */
/* Options: image=, label=, the names of the features or columns that are picture and label, where they are not the usual
 * ones. */
extern const struct source_scan scan_tfrecord; /* of tf.Examples */
extern const struct source_scan scan_mds;
extern const struct source_scan scan_litdata;
/* Of pictures or tf.Examples, as Google DeepMind's bagz writes them. The options are those of TFRecord. */
extern const struct source_scan scan_bagz;
/* The same, as Grain and TensorFlow Datasets have them: each in a chunk of its own (group_size:1). Heads of blocks go when a
 * sample is joined. */
extern const struct source_scan scan_arrayrecord;
/* Of pictures, as MXNet's im2rec and pack_img() write them. The option label=N: which number of a label of several is the
 * class, the first is 0; label=none: none is. What stands at a cut goes when a picture is joined: a multiple of four behind
 * the record's begin, wherever that is. */
extern const struct source_scan scan_recordio;
/* Of FFCV's pictures: JPEGs, or pixels as they are. The option image names the field of pictures, where there are several;
 * label that of the labels; label=none: there is none. Pixels that are joined get the head of a PPM, in the SCAN_PIXELS_HEAD
 * bytes before them; what has no width is left as it is. */
extern const struct source_scan scan_beton;

/* ---- scan_shard.c ---- */

struct scan_reader {
	/* Exactly these bytes of the shard, which it has. 0 or negative errno. */
	int (*read)(void *arg, uint64_t at, uint8_t *ret, uint32_t bytes);
	void *arg;
};
/* The whole shard. 0, SCAN_E_BAD, negative errno, or what the sink's record() said. */
int scan_shard_run(const struct source_scan *scan, const struct scan_shard *shard,
		   const struct scan_reader *reader, struct scan_sink *sink);

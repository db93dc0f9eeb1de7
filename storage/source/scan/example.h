/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * tf.Example in the bytes of protocol buffers: where its picture is, and its label. No more of the format is
 * known than that takes:
 *
 *   Example   features = 1: Features
 *   Features  feature = 1, repeated: an entry of a map, key = 1 (text), value = 2 (Feature)
 *   Feature   one of bytes_list = 1, float_list = 2, int64_list = 3, each with value = 1, repeated
 *
 * Fields of other numbers are passed over, as protocol buffers want it, and of two features of one name the last
 * one counts. The bytes come piece by piece and may be any; nothing is remembered of them but places. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXAMPLE_PICTURE "image/encoded"
/* Bytes that a piece must have behind what is looked at, where more follow it */
#define EXAMPLE_AHEAD 320
#define EXAMPLE_NAME 256 /* bytes of a feature's name, with its NUL */

struct example_names { /* of features; "": the usual ones */
	char picture[EXAMPLE_NAME], label[EXAMPLE_NAME];
	bool is_whole; /* the sample is all of it: there need be no picture */
};

struct example {            /* what was found */
	uint64_t at, bytes; /* the picture's, in the example */
	bool has_label;
	int64_t label;
};

/* A walk over one of them. */
enum { EXAMPLE_DEPTH = 6 };
struct example_walk {
	const struct example_names *names; /* borrowed */
	uint64_t bytes;                    /* of the example */
	uint64_t at;                       /* what is looked at next */
	unsigned depth;
	uint64_t end[EXAMPLE_DEPTH]; /* of the messages that it is in */
	struct example_entry {       /* the feature that it is in */
		uint64_t begin;
		uint8_t picture, label; /* how well the name fits */
		uint64_t list, values;  /* which kind, how many */
		uint64_t at, bytes;     /* the last value of bytes */
		bool is_picture;        /* it begins as one */
		int64_t number;         /* the last whole number */
	} entry;
	unsigned guesses;
	uint8_t picture, label; /* how well the names of what was found fit */
	struct example found;
	const char *why; /* what is wrong; static */
	uint64_t bad_at;
};
void example_begin(struct example_walk *walk, const struct example_names *names, uint64_t bytes);
/* The bytes [at, at + size) of the example, with at <= walk->at. Goes on as far as it can: to walk->bytes, or until less than
 * EXAMPLE_AHEAD are left from walk->at on, which may be behind these. false: damaged, see why and bad_at. */
bool example_feed(struct example_walk *walk, uint64_t at, const uint8_t *data, size_t size);
/* At its end. The picture: of the feature that is named, else of image/encoded, else of the only one of bytes that begins
 * as pictures do. The label: of the feature that is named, else of image/class/label, else of label; none without these.
 * false: there is no such picture or label, see why and bad_at. */
bool example_end(struct example_walk *walk, struct example *ret);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pictures kept behind the first ops of a pipeline, its *cut* (FORM_PIXELS): which cuts a pipeline has,
 * and the bytes of such a picture.
 */

#include "base/hash.h"
#include "pipeline/spec/op.h"
#include "pipeline/spec/shape.h"

/* ---- what can be kept of a pipeline ---- */

struct cut_place { /* behind so many ops */
	bool is_cut;
	uint32_t height, width; /* of every picture there; 0: they differ */
	struct hash_id id;      /* of these ops, and of who made the pixels */
};

struct cut_list { /* of one pipeline, immutable */
	unsigned n;
	/* Ops up to the last 8-bit picture, some of them random; 0: there is none */
	unsigned augmented;
	struct cut_place
	    place[PIPELINE_MAX_OPS + 1]; /* [0]: the file; n of them, and [augmented] */
};

/* ops are those on the picture, and what follows; pixels is the engine's word for its pixels.
 * 0 or -ENOMEM; ops is as before. */
int cut_list_make(struct op_list *ops, const struct shape *shape, const char *pixels,
		  struct cut_list *ret);
/* May decode make the picture smaller for the op behind it? end: behind the ops on the picture. */
bool cut_is_joined(const struct op_list *ops, unsigned end);

/* ---- one picture ---- */

#define CUT_PAD 64 /* bytes before and behind the pixels that may be read, too */

struct cut {
	struct hash_id id;
	unsigned ops;
	uint32_t label; /* of the record that it came in, or 0 */
	uint32_t height, width;
	uint32_t source_height, source_width; /* as it was decoded */
	unsigned planes;                      /* 3; 1: red, green and blue are the same */
	const uint8_t *pixels; /* of what was read: plane after plane, rows without gaps */
};

/* 0; FORM_E_OTHER: none, or one that does not hold together; FORM_E_VERSION. ret->pixels lies in data. */
int cut_read(const uint8_t *data, size_t size, struct cut *ret);
/* Is it what the pipeline has behind so many of its ops, where its draws are those of key? */
bool cut_is_of(const struct cut *cut, const struct cut_list *list, const struct pipeline_key *key);
/* Name of the picture behind random ops, and of no other with the same ops. */
void cut_instance(const struct hash_id *ops, const struct pipeline_key *key, struct hash_id *ret);

/* Bytes of the form of a picture of that size. */
uint64_t cut_bytes(uint64_t height, uint64_t width, unsigned planes);
/* Where the pixels of a form stand that begins there. */
uint8_t *cut_pixels(uint8_t *form);
/* What stands around the pixels; form has room for cut_bytes(). */
void cut_write(const struct cut *cut, uint8_t *form);

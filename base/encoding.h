/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Encodings of columns, as MosaicML's MDS names them: what a column's bytes in a sample mean, and how many there are. Pure; the
 * texts and the bytes may be any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENCODING_MOST_DIMS 4

enum encoding_kind {
	ENCODING_OTHER, /* of no meaning here; each sample says how many bytes it has */
	ENCODING_PICTURE,
	ENCODING_BYTES,
	ENCODING_TEXT, /* UTF-8 */
	ENCODING_JSON,
	ENCODING_NUMBER,
	ENCODING_ARRAY,
};

struct encoding {
	enum encoding_kind kind;
	unsigned
	    dtype; /* of numbers and arrays: enum pipeline_dtype's numbers; 0: each sample says it */
	unsigned ndim; /* of arrays; 0: each sample says it, and the shape */
	uint64_t shape[ENCODING_MOST_DIMS];
	uint32_t bytes; /* 0: each sample says it */
};

/* "int32", "ndarray:float32:2,3"; in the place of commas an x may be, too. */
struct encoding encoding_of(const char *name);
bool encoding_is_whole(const struct encoding *encoding); /* a whole number */
bool encoding_is_signed(const struct encoding *encoding);

struct encoding_array { /* one sample's */
	unsigned dtype, ndim;
	uint64_t shape[ENCODING_MOST_DIMS];
	size_t at; /* of its values, which fill the rest of the bytes */
};
/* false: the bytes are none, or of more dimensions. */
bool encoding_array(const struct encoding *encoding, const uint8_t *bytes, size_t size,
		    struct encoding_array *ret);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples of wrapped data sets: what a program of the user's has made of one, packed. All numbers are
 * little endian; whoever writes one leaves no gap undefined:
 *
 *   head | places | field 0 | field 1 | ...	each field begins at a multiple of PACKED_ALIGN
 *
 * There are two versions. The first has at most four fields, whose places end its head of 256 bytes, and
 * none without a value. In the second a head of 64 bytes is followed by as many places of 64 bytes as
 * there are fields, and a field may be nothing along its first dimension: that is a ragged one's sample.
 * Its head may also say which part of the file in field 0 the sample is.
 * A record is as hostile as any file: a worker checks it whole before it uses a byte.
 */

#include "pipeline/spec/op.h"

#define PACKED_MAGIC UINT64_C(0x3144524352214f41)      /* "AO!RCRD1" */
#define PACKED_WIDE_MAGIC UINT64_C(0x3244524352214f41) /* "AO!RCRD2" */
#define PACKED_ALIGN 64
#define PACKED_FIRST_FIELDS 4 /* of the first version, the most */
#define PACKED_MOST_CHANNELS 64

struct packed_place {         /* 56 bytes */
	uint32_t dtype, ndim; /* enum pipeline_dtype */
	uint64_t shape[4];
	uint64_t at, bytes; /* from the record's begin */
};

struct packed_head { /* 256 bytes */
	uint64_t magic;
	uint64_t bytes; /* of the whole record */
	uint32_t n_fields, reserved0;
	uint64_t reserved1;
	struct packed_place field[PACKED_FIRST_FIELDS];
};
_Static_assert(sizeof(struct packed_head) == 256, "the head is frozen");

struct packed_wide_head { /* 64 bytes, and as many a field */
	uint64_t magic, bytes;
	uint32_t n_fields, has_part; /* 0, 1, or 2: of a channel */
	double part[5]; /* start, seconds, and of 2 the channel, from 0 on; the others are 0 */
	struct packed_wide_place {
		struct packed_place place;
		uint64_t reserved;
	} field[];
};
_Static_assert(sizeof(struct packed_wide_head) == 64 && sizeof(struct packed_wide_place) == 64,
	       "the wide head is frozen");

struct packed { /* checked; borrows the bytes */
	unsigned n;
	struct pipeline_part part;                      /* of the file in field 0 */
	struct packed_place field[PIPELINE_MAX_FIELDS]; /* `at` is of no use any more */
	const uint8_t *value[PIPELINE_MAX_FIELDS];
};

/* 0, or PIPELINE_E_BAD with *ret_error. */
int packed_parse(const void *data, size_t size, struct packed *ret,
		 struct pipeline_error *ret_error);

/* What the op "record" announces, or decode of what is beside picture and label: fields of a record. */
struct packed_fields {
	unsigned first,
	    n; /* of the pipeline's fields; lengths of ragged ones, and what is valid of measured ones, stand behind them */
	unsigned boxes;    /* the field of the boxes, on a picture or in space; 0: there is none */
	unsigned points;   /* the same of key points */
	unsigned n_points; /* of these, in a row */
	unsigned measures; /* how many fields are of what was measured */
};
/* The size of masks and other pictures is left to the pipeline. They become fields[first], ..., *ret_n in all with their lengths. What is wrong with it, how to mend it
 * too, else NULL. */
const char *packed_announce(const struct op_list *ops, struct pipeline_field *fields,
			    struct packed_fields *ret, unsigned *ret_n);
/* The boxes and their rows without those boxes that `is_gone` says. In out; count is what the record had, and
 * the most that is looked at. */
void packed_keep(const struct pipeline_field *fields, const struct packed_fields *announced,
		 uint64_t count, bool (*is_gone)(const float *box), const struct pipeline_out *out);
/* How many boxes the record has; rows must be as many. 0, or PIPELINE_E_BAD with *ret_error. */
int packed_boxes(const struct packed *record, unsigned before, const struct pipeline_field *fields,
		 const struct packed_fields *announced, uint64_t *ret,
		 struct pipeline_error *ret_error);
/* The last fields->n of a record, which must be those and have `before` others before them, to out; files are left out.
 * 0, or PIPELINE_E_BAD with *ret_error. */
int packed_write(const struct packed *record, unsigned before, const struct pipeline_field *fields,
		 const struct packed_fields *announced, const struct pipeline_out *out,
		 struct pipeline_error *ret_error);
/* The bytes of the picture that is field 0, and the class that is field 1, where there are two before the
 * last `beside` ones (0: there is none). 0, or PIPELINE_E_BAD with *ret_error. */
int packed_picture(const struct packed *record, unsigned beside, const void **ret_data,
		   size_t *ret_size, uint32_t *ret_label, struct pipeline_error *ret_error);
uint64_t packed_dtype_bytes(enum pipeline_dtype dtype); /* 0: there is no such type */

/* Is it a file that goes where the picture goes? */
static inline bool packed_follows(const struct pipeline_field *field)
{
	return field->role == PIPELINE_MASK || field->role == PIPELINE_IMAGE ||
	       field->role == PIPELINE_MEASURE;
}

/* Is it a file in the record, which the pipeline decodes? */
static inline bool packed_is_file(const struct pipeline_field *field)
{
	return packed_follows(field) || field->role == PIPELINE_FILE;
}

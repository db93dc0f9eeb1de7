/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_FORMS_PACKED_H
#define PIPELINE_FORMS_PACKED_H

/*
 * Samples of wrapped data sets: what a program of the user's has made of one, packed. All numbers are
 * little endian; whoever writes one leaves no gap undefined:
 *
 *   head | field 0 | field 1 | ...		each field begins at a multiple of PACKED_ALIGN
 *
 * It is as hostile as any file: a worker checks it whole before it uses a byte.
 */

#include "pipeline/spec/op.h"

#define PACKED_MAGIC UINT64_C(0x3144524352214f41) /* "AO!RCRD1" */
#define PACKED_ALIGN 64

struct packed_head { /* 256 bytes */
	uint64_t magic;
	uint64_t bytes; /* of the whole record */
	uint32_t n_fields, reserved0;
	uint64_t reserved1;
	struct packed_place {
		uint32_t dtype, ndim; /* enum pipeline_dtype */
		uint64_t shape[4];
		uint64_t at, bytes; /* from the record's begin */
	} field[PIPELINE_MAX_FIELDS];
};
_Static_assert(sizeof(struct packed_head) == 256, "the head is frozen");

struct packed { /* checked; borrows the bytes */
	unsigned n;
	struct packed_place field[PIPELINE_MAX_FIELDS];
	const uint8_t *data;
};

/* 0, or PIPELINE_E_BAD with *ret_error. */
int packed_parse(const void *data, size_t size, struct packed *ret,
		 struct pipeline_error *ret_error);
/* The fields that the op "record" announces, *ret_n of them; what is wrong with it, how to mend it too,
 * else NULL. */
const char *packed_fields(const struct op_list *ops, struct pipeline_field *ret, unsigned *ret_n);
/* The fields of a record, which must be those, to out. 0, or PIPELINE_E_BAD with *ret_error. */
int packed_write(const void *data, size_t size, const struct pipeline_field *fields, unsigned n,
		 const struct pipeline_out *out, struct pipeline_error *ret_error);
/* The bytes of the picture that is field 0, and the class that is field 1 (0 where there is none).
 * 0, or PIPELINE_E_BAD with *ret_error. */
int packed_picture(const void *data, size_t size, const void **ret_data, size_t *ret_size,
		   uint32_t *ret_label, struct pipeline_error *ret_error);
uint64_t packed_dtype_bytes(enum pipeline_dtype dtype); /* 0: there is no such type */

#endif

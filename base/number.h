/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers as files have them, and as what they come into batches: whole numbers of 8 to 32 bits (but uint8) become int64, bool uint8,
 * as in oneaccess.wrap(), so that no value changes; others stay.
 */

#include <stddef.h>
#include <stdint.h>

enum number { /* in a file, little endian */
	      NUMBER_U8 = 1,
	      NUMBER_I8,
	      NUMBER_U16,
	      NUMBER_I16,
	      NUMBER_U32,
	      NUMBER_I32,
	      NUMBER_I64,
	      NUMBER_F16,
	      NUMBER_F32,
	      NUMBER_BOOL,
	      NUMBER_U64,
	      NUMBER_F64,
};

unsigned number_bytes(enum number number); /* of one, in the file; 0: there is no such type */
/* Of one in a batch, and its type there (enum pipeline_dtype's numbers). */
unsigned number_batch_bytes(enum number number);
unsigned number_batch_dtype(enum number number);
/* n of them, from a file's bytes to a batch's; from and to do not overlap. */
void number_widen(enum number number, const uint8_t *from, size_t n, void *to);
/* The number that NumPy calls so ("<i4", "|u1"); 0: there is none. */
enum number number_of_numpy(const char *descr);
/* The number that people call so ("uint16"); 0: there is none. */
enum number number_of_name(const char *name);

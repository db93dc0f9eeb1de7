/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_FORM_H
#define PIPELINE_FORM_H

/*
 * Stored forms: bytes that stand for a picture's file and cost less to decode. Wherever a picture's file
 * is decoded its form may be given instead (decode_open tells them by their first bytes): pixels and
 * outcome are the file's.
 */

#include "base/base.h"

enum form_kind {
	FORM_INDEXED = 1, /* the file behind its crop index */
	FORM_PACKED = 2,  /* packed coefficients, and what stands before the file's scan */
};

enum { FORM_E_UNFIT = 1, FORM_E_OTHER = 2 };

struct form { /* all within the bytes that it was read from */
	enum form_kind kind;
	const uint8_t *index; /* or the coefficients; NULL: a damaged index, do without */
	const uint8_t *file;  /* or its front */
	size_t index_size, file_size;
};

/* Whether the bytes begin as a form does. */
bool form_probe(const uint8_t *data, size_t size);
/* 0, or FORM_E_OTHER: not a form, or one that does not hold together. */
int form_read(const uint8_t *data, size_t size, struct form *ret);

struct form_maker; /* memory to make forms with, one after the other; not shared */
int form_maker_new(struct form_maker **ret); /* 0 or -ENOMEM */
void form_maker_free(struct form_maker *maker);
/* The form of a file's (hostile) bytes, malloc'ed. 0; FORM_E_UNFIT: it has none, keep it as it is;
 * -ENOMEM. */
int form_make(struct form_maker *maker, enum form_kind kind, const uint8_t *file, size_t size,
	      uint8_t **ret, size_t *ret_size);

#endif

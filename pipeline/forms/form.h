/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stored forms: bytes that stand for a picture's file and cost less to decode. Wherever a picture's file
 * is decoded its form may be given instead (decode_open tells them by their first bytes): pixels and
 * outcome are the file's; of FORM_PIXELS, those of the pipeline's first ops.
 */

#include "base/base.h"

enum form_kind {
	FORM_INDEXED = 1, /* the file behind its crop index */
	FORM_PACKED = 2,  /* packed coefficients, and what stands before the file's scan */
	FORM_PIXELS = 3,  /* what a pipeline's first ops made of the picture (cut.h) */
};

enum { FORM_E_UNFIT = 1, FORM_E_OTHER = 2, FORM_E_VERSION = 3 };

struct form { /* all within the bytes that it was read from */
	enum form_kind kind;
	const uint8_t *index; /* or the coefficients, or a cut's head; NULL: a damaged index, do
			       * without */
	const uint8_t *file;  /* or its front, or pixels */
	size_t index_size, file_size;
};

/* Whether the bytes begin as a form does. */
bool form_probe(const uint8_t *data, size_t size);
/* 0; FORM_E_OTHER: not a form, or one that does not hold together; FORM_E_VERSION: a sound one of another
 * version, which nobody reads. */
int form_read(const uint8_t *data, size_t size, struct form *ret);

#define FORM_HEAD 32
/* Writes the head of a form whose other parts stand behind it already. */
void form_seal(uint8_t *form, enum form_kind kind, size_t index_size, size_t file_size);

/* How many of a form's first bytes are to be stored: all, or, if the file itself is stored elsewhere and is
 * put behind them before it is read, those before it. 0: not a form. */
size_t form_kept(const uint8_t *form, size_t size);
/* The most bytes that form_make makes of a file of that size; what would be larger does not pay. */
uint64_t form_bound(enum form_kind kind, uint64_t file_size);

struct form_maker; /* memory to make forms with, one after the other; not shared */
int form_maker_new(struct form_maker **ret); /* 0 or -ENOMEM */
void form_maker_free(struct form_maker *maker);
/* The form of a file's (hostile) bytes, malloc'ed; not FORM_PIXELS, which pipelines make. 0; FORM_E_UNFIT: it has none, keep it as it is;
 * -ENOMEM. */
int form_make(struct form_maker *maker, enum form_kind kind, const uint8_t *file, size_t size,
	      uint8_t **ret, size_t *ret_size);

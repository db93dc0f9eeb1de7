/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images of numbers: the op "bands" takes the place of decode. What a file has in its channels (decode_numbers.h) becomes float32
 * planes, which the ops on pictures crop, turn and resize without making 8-bit values of them.
 */

#include "pipeline/engine/steps.h"
#include "pipeline/formats/decode.h"
#include "pipeline/ops/filter.h"

#define BANDS_MOST 32 /* that are taken of a file */

struct bands {             /* of the op */
	unsigned channels; /* that each file has; 0: as many as are needed */
	unsigned n;        /* that come out */
	uint16_t channel[BANDS_MOST];
	float scale;
	bool is_clamped;
	float least, most;
	bool is_inverted; /* as in decode_numbers.h */
};

struct bands_program; /* what a list of ops does to them; immutable */
struct bands_room;    /* of a run; not shared */

/* ---- bands.c ---- */

/* What is wrong with the first op of the list, how to mend it too; else NULL. */
const char *bands_init(const struct op_list *ops, struct bands *ret);
/* Are there ops on pictures that numbers cannot go through? What is wrong with the first one, and its number in the list (from 0); else
 * NULL. */
const char *bands_check(const struct op_list *ops, const struct shape *shape, unsigned *ret_at);
/* Both outlive the program. 0 or -ENOMEM. */
int bands_program_new(const struct op_list *ops, const struct shape *shape,
		      struct bands_program **ret);
void bands_program_free(struct bands_program *program);

/* ---- bands_run.c ---- */

int bands_room_new(struct bands_room **ret); /* 0 or -ENOMEM */
void bands_room_free(struct bands_room *room);
/* A file's bytes (hostile), by that decoder: its numbers into the room. 0, or PIPELINE_E_BAD with *ret_error. */
int bands_open(struct bands_room *room, const struct bands *bands, struct decode *decode,
	       const void *data, size_t size, struct pipeline_error *ret_error);
/* Also of what did not open. */
void bands_close(struct bands_room *room);
/* ---- of an open one ---- */
void bands_size(const struct bands_room *room, uint32_t *ret_height, uint32_t *ret_width);
/* Through the ops, into the field. */
int bands_run(struct bands_room *room, const struct bands_program *program,
	      const struct pipeline_key *key, void *out, struct pipeline_error *ret_error);

/* ---- for volumes ---- */

/* Scaled and clamped. */
void bands_change(const struct bands *bands, const struct picture *all);
/* To place `at` of floats of that type. */
void bands_value(void *out, size_t at, enum pipeline_dtype dtype, float value);

/* ---- bands_resize.c ---- */

struct bands_resize { /* all zero at the start */
	struct filter_table down, across;
	struct picture_buffer between;
};
/* One plane in another size, into buffer. 0 or enum pipeline_fail. */
int bands_resize(struct bands_resize *resize, const struct picture *from, enum filter_id filter,
		 uint64_t height, uint64_t width, struct picture_buffer *buffer,
		 struct picture *ret);
void bands_resize_trim(struct bands_resize *resize);
void bands_resize_fini(struct bands_resize *resize);

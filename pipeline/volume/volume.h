/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Volumes: the op "volume" takes the place of decode. Slices of a file of numbers (decode_numbers.h) are one picture of three dimensions, of which
 * a part comes out as float32, and of the volumes of labels beside it the same part.
 */

#include "pipeline/bands/bands.h"

struct volume_room; /* of a run; not shared */

struct volume {
	struct bands bands; /* channels, and what is done to all numbers */
	float fill;         /* what is outside */
	bool by_labels;     /* some op asks for the places that have a label */
	float mean[BANDS_MOST], std[BANDS_MOST];
};

/* ---- volume.c ---- */

/* Of a list that begins with it: what is wrong with the op of number *ret_at (from 0), how to mend it too; else NULL. */
const char *volume_init(const struct op_list *ops, const struct shape *shape, struct volume *ret,
			unsigned *ret_at);

/* ---- volume_run.c; all of these: 0, or PIPELINE_E_BAD with *ret_error; files are hostile ---- */

int volume_room_new(struct volume_room **ret); /* 0 or -ENOMEM */
void volume_room_free(struct volume_room *room);
/* The heads of the sample's file, by that decoder, and of one of labels, which must have its size. data stays until they are closed. */
int volume_open(struct volume_room *room, const struct volume *volume, struct decode *decode,
		const void *data, size_t size, struct pipeline_error *ret_error);
/* As volume_open, of one that must have the size of the last one that was open, of which the same is taken. */
int volume_open_further(struct volume_room *room, const struct volume *volume,
			struct decode *decode, const void *data, size_t size,
			struct pipeline_error *ret_error);
int volume_open_labels(struct volume_room *room, const void *data, size_t size,
		       struct pipeline_error *ret_error);
/* What is taken of the open volume, and of its labels: those that are open decide, where an op asks for them. */
int volume_choose(struct volume_room *room, const struct volume *volume, const struct op_list *ops,
		  const struct pipeline_key *key, struct pipeline_error *ret_error);
int volume_image(struct volume_room *room, const struct volume *volume, const struct shape *shape,
		 struct decode *decode, void *out, struct pipeline_error *ret_error);
int volume_labels(struct volume_room *room, const struct pipeline_field *field, void *out,
		  struct pipeline_error *ret_error);
void volume_close_labels(struct volume_room *room);
/* Also of what did not open. */
void volume_close(struct volume_room *room, struct decode *decode);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fields of samples in arrays beside each other: the .npy files of a folder, of each of which row i is sample i's
 * (access-outputs(5)). Which of them are fields is said as "latent;text:77":
 *
 *	NAME		NAME.npy [samples, ...]
 *	NAME:MOST	ragged, of at most so many rows: NAME.npy [rows, ...], and NAME.places.npy, int64 [samples, 2]: where a sample's rows begin,
 *			and how many they are
 *
 * A file written.npy, uint8 [samples], is 0 where nothing was written of a sample.
 */

#include "storage/dataset.h"

#define ARRAYS_MOST 21 /* fields */

enum {
	ARRAYS_E_NONE = 1, /* nothing was written of that sample */
	ARRAYS_E_LONG = 2, /* it has more rows than the most that was said */
	ARRAYS_E_BAD = 3,  /* its rows are not in the file */
};

struct arrays;
struct reader_dataset;
struct reader_outcome;

/* Of the folder. 0, DATASET_E_REFUSED, and why, without the data set's name; or as a kind's probe(). */
int arrays_open(const struct reader_dataset *dataset, const struct scan_progress *progress,
		int folder_fd, const char *fields, struct arrays **ret, struct diag *why);
void arrays_free(struct arrays *arrays); /* NULL is fine */
uint64_t arrays_count(const struct arrays *arrays);
unsigned arrays_fields(const struct arrays *arrays);
/* Bytes that the values of the longest sample take in a record. */
uint64_t arrays_room(const struct arrays *arrays);
/* What tells them from others: the files. */
const struct hash_id *arrays_id(const struct arrays *arrays);
/* The fields of a sample, below the count, into a record (pipeline/forms/packed.h) as its fields first, first + 1, ...: their values from
 * *at on, which goes behind them. Any thread. 0, ARRAYS_E_..., or negative errno. */
int arrays_read(const struct arrays *arrays, uint64_t sample, uint8_t *record, unsigned first,
		uint64_t *at);
/* What became of it. */
void arrays_outcome(int r, struct reader_outcome *ret);
/* Behind a read: false, which ret says, where a file was written to since it was opened. */
bool arrays_check(const struct arrays *arrays, struct reader_outcome *ret);

/* ---- a record ---- */

#define ARRAYS_PLACE \
	64 /* bytes of the head, and of each field's place behind it; each field's values begin at a multiple */

static inline uint64_t arrays_up(uint64_t at)
{
	return (at + ARRAYS_PLACE - 1) / ARRAYS_PLACE * ARRAYS_PLACE;
}
/* The head, of a record that ends there. */
void arrays_put_head(uint8_t *record, unsigned n_fields, uint64_t bytes);
struct arrays_place {
	uint32_t dtype; /* enum pipeline_dtype's numbers */
	unsigned ndim;
	uint64_t shape[4], at, bytes;
};
/* Says where the field is, and leaves no gap behind it that is not 0. Where the next one begins. */
uint64_t arrays_put_place(uint8_t *record, unsigned field, const struct arrays_place *place);

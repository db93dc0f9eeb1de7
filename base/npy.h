/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files of one array, or of one long row of numbers: NumPy's .npy, of versions 1 to 3. Only heads are looked at; what follows has no more structure. Pure; the bytes may be any.
 */

#include "base/base.h"
#include "base/number.h"

#define NPY_MOST_HEAD 65536 /* bytes of a head that is looked at */
#define NPY_MOST_DIMS 5     /* the rows' number, and what PIPELINE_MAX_FIELDS has place for */

enum {
	NPY_E_NONE = 1, /* no such file */
	NPY_E_BAD = 2,  /* one that cannot be read; diag says why, and how to mend it */
};

struct npy {
	uint64_t data_at;
	enum number number; /* what a value is in the file */
	unsigned ndim;      /* 1 .. NPY_MOST_DIMS */
	uint64_t shape[NPY_MOST_DIMS];
	uint64_t row_values; /* values of a row: the product of all but shape[0] */
};

/* Of the file's first bytes, NPY_MOST_HEAD of them or all there are; bytes: the file's. The array fills the file. */
int npy_parse(const uint8_t *data, size_t size, uint64_t bytes, struct npy *ret, struct diag *diag);
/* The same of one that may have no row. */
int npy_read(const uint8_t *data, size_t size, uint64_t bytes, struct npy *ret, struct diag *diag);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Parts of pictures by the quick JPEG decoder, held against the whole ones of libjpeg-turbo: what the
 * tests of its ways to read a file have in common. One of each is there during a test.
 */

#include <check.h>
#include "base/philox.h"
#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"
#include "tests/pipeline/jpeg_oracle.h"

#define PARTS_KERNELS 2
#define PARTS_KINDS 4

extern struct baseline *parts_baseline[PARTS_KERNELS]; /* the last one with the plain kernels */
extern struct oracle_picture parts_picture;            /* the right one */
/* Both factors of the first component; 0: grey. */
extern const int parts_sampling[PARTS_KINDS][2];

/* Check's main(): add adds loops over kinds. */
int parts_main(const char *name, void (*add)(TCase *tcase));

struct oracle_file parts_file(int kind, uint32_t height, uint32_t width);

/* The rows of a band, which begins at row y of box. */
void parts_rows(const struct decode_band *band, const struct picture_box *box, uint32_t y);
/* All rows of box, of what decoder k has open. 0, or what ended it. */
int parts_decode(unsigned k, const struct picture_box *box, bool is_compared);
/* Two edges of a span in size: at, beside and between the borders of blocks. */
void parts_span(struct philox_seq *seq, uint32_t size, uint32_t *ret_first, uint32_t *ret_size);
/* So many parts of the file, its sides halved shift times, with each decoder, that open opens it in. */
void parts_compare(const uint8_t *data, size_t size, unsigned shift, unsigned count,
		   int (*open)(unsigned k));

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of the quick JPEG decoder share. Data go from one to the next:
 *
 *	head    the file's markers             -> what the scan is made of
 *	tables  a Huffman table's bytes        -> tables to decode several symbols at once with
 *	bits    the scan's bytes               -> windows of them without stuffing, between restarts
 *	index   a place in the picture         -> one in the scan, where there is a crop index
 *	entropy windows                        -> blocks of coefficients, in zigzag order
 *	idct    two neighbouring blocks        -> samples
 *	scaled  the same, of a smaller picture -> fewer samples
 *	colour  rows of samples of three kinds -> rows of red, green, blue
 */

#include "pipeline/formats/decode_band.h"
#include "pipeline/picture.h"

#define BASELINE_COMPONENTS 3
#define BASELINE_BLOCKS 6 /* of a MCU, at most */

extern const uint8_t baseline_natural[64]; /* row by row: the place of each in zigzag order */

/* ---- the head ---- */

#define BASELINE_TABLES 4 /* numbers that a file may give to tables of a kind */

struct baseline_component {
	uint8_t id, across, down; /* blocks of a MCU */
	uint8_t quant, dc, ac;    /* numbers of its tables */
};

struct baseline_head {
	uint32_t height, width;
	uint32_t n_components;
	struct baseline_component component[BASELINE_COMPONENTS];
	uint32_t interval;                       /* MCUs between restarts; 0: none */
	const uint8_t *scan;                     /* the first entropy-coded byte */
	uint16_t quant[BASELINE_TABLES][64];     /* in zigzag order */
	const uint8_t *code[2][BASELINE_TABLES]; /* DC and AC: 16 counts, then symbols; checked */
	uint8_t seen_quant;                      /* a bit a number */
};

/* 0, or BASELINE_E_OTHER with *ret undefined. */
int baseline_head_read(const uint8_t *data, size_t size, struct baseline_head *ret);

/* ---- tables ---- */

#define BASELINE_DC_BITS 9
#define BASELINE_AC_BITS 11
#define BASELINE_AC_MOST 18  /* bits that a lookup may consume */
#define BASELINE_VALUES 8    /* coefficients that come from a table at once */
#define BASELINE_AC_END 128  /* advance of an end of block */
#define BASELINE_AC_NONE 256 /* advance of an entry that is none */

struct
    baseline_codes { /* one code at a time; codes are compared with their bits at the top of 16 */
	uint32_t limit[17]; /* by length: above its codes and all shorter ones */
	int32_t offset[17]; /* code + offset is the symbol's index */
	uint8_t symbol[256];
};

struct baseline_dc {
	struct baseline_codes codes;
	uint32_t entry[1 << BASELINE_DC_BITS]; /* bits in all, bits of the code << 8, 63 - size <<
						  16; 0: none */
};

struct baseline_ac {
	uint16_t step[1 << BASELINE_AC_BITS]; /* bits in all + 64 * advance */
	uint16_t last[1 << BASELINE_AC_BITS]; /* last coefficient: start, 63 - size << 6, offset <<
						 12 */
	int8_t value[1 << BASELINE_AC_BITS][BASELINE_VALUES]; /* all others, by offset */
	struct baseline_codes codes;
};

struct baseline_tables;
int baseline_tables_new(struct baseline_tables **ret); /* 0 or -ENOMEM */
void baseline_tables_free(struct baseline_tables *tables);
/* The tables for a code as the head has it. Valid at least until BASELINE_COMPONENTS others of the
 * kind were asked for. NULL: libjpeg would not take the code, or it has symbols that are no good. */
const struct baseline_dc *baseline_tables_dc(struct baseline_tables *tables, const uint8_t *code);
const struct baseline_ac *baseline_tables_ac(struct baseline_tables *tables, const uint8_t *code);

/* ---- bits ---- */

#define BASELINE_WINDOW 16384   /* bytes without stuffing at a time */
#define BASELINE_MCU_BYTES 2048 /* more than any MCU has: 6 blocks of 64 symbols of 31 bits */
#define BASELINE_MARGIN 4096    /* zeros behind: what a MCU may read past the end */

struct baseline;
struct baseline_kernels;

struct baseline_bits {
	uint64_t buffer;          /* the next bits, from the top */
	uint64_t count;           /* of them; those below are right, too, or zero */
	const uint8_t *next;      /* behind those bits */
	const uint8_t *limit;     /* a MCU may begin while next is not above it */
	uint8_t *fill;            /* behind the last byte in window */
	const uint8_t *at, *stop; /* the file: what follows those bytes */
	bool is_last;             /* no more of this segment behind fill */
	size_t dirty;             /* all of window from there on is zeros */
	uint8_t window[BASELINE_WINDOW + BASELINE_MARGIN];
};

/* Begins a segment at at. */
void baseline_bits_start(struct baseline_bits *bits, const struct baseline_kernels *kernels,
			 const uint8_t *at, const uint8_t *stop);
/* The same, but the first bits (0 to 7) of the first byte were consumed. */
void baseline_bits_start_within(struct baseline_bits *bits, const struct baseline_kernels *kernels,
				const uint8_t *at, unsigned consumed, const uint8_t *stop);
/* next is above limit: more bytes. 0, or BASELINE_E_DAMAGED: more were consumed than there are. */
int baseline_bits_more(struct baseline_bits *bits, const struct baseline_kernels *kernels);
/* Whether bits behind the segment's end were consumed. To be asked when a row or a segment is done. */
bool baseline_bits_is_overrun(const struct baseline_bits *bits);
/* Goes on behind the next marker, if that is the one. 0 or BASELINE_E_DAMAGED. */
int baseline_bits_restart(struct baseline_bits *bits, const struct baseline_kernels *kernels,
			  uint8_t marker);
/* Whether nothing but restart markers and entropy-coded bytes come before the end marker. */
bool baseline_bits_has_end(const struct baseline_bits *bits,
			   const struct baseline_kernels *kernels);

/* ---- entropy ---- */

/* 64 coefficients, and what a group may spill behind the last: 15 + 1, and a store's width. */
#define BASELINE_BLOCK 96

struct baseline_block_kind {
	const struct baseline_dc *dc;
	const struct baseline_ac *ac;
	unsigned component;
};

struct baseline_scan {
	struct baseline_bits bits;
	unsigned n_blocks; /* of a MCU */
	struct baseline_block_kind block[BASELINE_BLOCKS];
	int32_t dc[BASELINE_COMPONENTS]; /* predictions */
};

struct baseline_mcu { /* what was decoded of one */
	int16_t coef[BASELINE_BLOCKS][BASELINE_BLOCK] __attribute__((aligned(32)));
	uint8_t end[BASELINE_BLOCKS]; /* behind the last coefficient, 1 ... 64; 0: not wanted, and
				       * only the first coefficient is there */
};

/* ---- kernels ---- */

struct baseline_packed;

struct baseline_kernels {
	/* Copies entropy-coded bytes without stuffing from *at on, to a marker, to stop or until
	 * room bytes were written (64 more may be touched). Returns how many. */
	size_t (*unstuff)(const uint8_t **at, const uint8_t *stop, uint8_t *to, size_t room);
	/* The first FF that no 00 follows, or stop. */
	const uint8_t *(*find)(const uint8_t *at, const uint8_t *stop);
	/* The next MCU, blocks of the bits of wanted into *mcu. 0 or BASELINE_E_DAMAGED. */
	int (*mcu)(struct baseline_scan *scan, unsigned wanted, struct baseline_mcu *mcu);
	/* Up to count MCUs are read over while bits last. Returns how many are left, or < 0. */
	int64_t (*skip)(struct baseline_scan *scan, uint32_t count);
	/* Two blocks (ends as in baseline_mcu, not 0) to samples, side by side. Returns 0, or not:
	 * numbers so large that decoders differ. */
	int (*idct)(const int16_t *a, const int16_t *b, unsigned end, const uint16_t *quant,
		    uint8_t *to, size_t stride);
	/* The packed unit at at (so many bytes as BASELINE_PACKED_MOST are there), the n-th behind those that
	 * the targets are for, to samples: pairs of the bits of wanted. Returns its end. NULL: unpacked,
	 * then idct. */
	const uint8_t *(*packed_unit)(const struct baseline_packed *packed, const uint8_t *at,
				      size_t n, unsigned wanted);
	/* The same to blocks of 4 x 4 and 2 x 2 samples. */
	int (*idct4)(const int16_t *a, const int16_t *b, unsigned end, const uint16_t *quant,
		     uint8_t *to, size_t stride);
	int (*idct2)(const int16_t *a, const int16_t *b, unsigned end, const uint16_t *quant,
		     uint8_t *to, size_t stride);
	/* Rows of pixels from rows of samples. near and far: rows of Cb, Cr at and beside the row;
	 * one sample left and right of count is looked at. count: samples of Cb, rounded up to 32; 32 more may
	 * be read of Cb and Cr. */
	void (*h2v2)(const uint8_t *y, const uint8_t *const near[2], const uint8_t *const far[2],
		     uint8_t *const to[3], size_t count);
	void (*h2v1)(const uint8_t *y, const uint8_t *const near[2], uint8_t *const to[3],
		     size_t count);
	void (*h1v1)(const uint8_t *y, const uint8_t *const near[2], uint8_t *const to[3],
		     size_t count);
};

extern const struct baseline_kernels baseline_kernels_plain;
const struct baseline_kernels *baseline_kernels_avx2(void);   /* NULL: this machine has none */
const struct baseline_kernels *baseline_kernels_avx512(void); /* the same */
const struct baseline_kernels *baseline_kernels_neon(void);   /* the same */
const struct baseline_kernels *baseline_kernels_best(void);   /* baseline.c */

/* baseline_entropy.c: the same code for two kinds of machine */
int baseline_entropy_mcu(struct baseline_scan *scan, unsigned wanted, struct baseline_mcu *mcu);
int64_t baseline_entropy_skip(struct baseline_scan *scan, uint32_t count);
#ifdef __x86_64__
int baseline_entropy_mcu_bmi2(struct baseline_scan *scan, unsigned wanted,
			      struct baseline_mcu *mcu);
int64_t baseline_entropy_skip_bmi2(struct baseline_scan *scan, uint32_t count);
#endif

/* The 4 x 4 and 2 x 2 kernels for any machine. */
int baseline_idct4_plain(const int16_t *a, const int16_t *b, unsigned end, const uint16_t *quant,
			 uint8_t *to, size_t stride);
int baseline_idct2_plain(const int16_t *a, const int16_t *b, unsigned end, const uint16_t *quant,
			 uint8_t *to, size_t stride);

/* ---- packed coefficients ---- */

#define BASELINE_PAIRS 3         /* of blocks, in a unit, at most */
#define BASELINE_PACKED_SHIFT 15 /* at most, of places */
/* More than any unit has, and 16 bytes that may be read behind it */
#define BASELINE_PACKED_MOST 768

/* Groups of coefficients: the place of each in zigzag order; 64: none. */
extern const uint8_t baseline_packed_order[8][8];

/* Which blocks a pair has: numbers of components, of MCUs in the unit, and of blocks in those. */
struct baseline_packed_place {
	uint8_t component[2], mcu[2], block[2];
};

struct baseline_packed {
	const uint8_t *rows; /* places; NULL: the picture is not packed */
	size_t row_size;
	const uint8_t *data; /* the units */
	uint64_t size;       /* their bytes */
	uint32_t per_row;    /* units of a row */
	unsigned mcus;       /* of a unit: 1, or 2 side by side */
	unsigned shift;      /* of places in a row */
	unsigned dc_bytes;   /* of a pair: 3, or 2 */
	unsigned n_pairs;
	struct baseline_packed_place place[BASELINE_PAIRS];
	uint16_t quant[BASELINE_PAIRS][8][16] __attribute__((aligned(32)));
	struct baseline_packed_target {
		uint8_t *to[2];      /* where the first unit's blocks go */
		size_t stride, step; /* rows; units */
	} target[BASELINE_PAIRS];
};

/* What a unit of the open picture is, its pairs, and units of a row. */
void baseline_packed_measure(const struct baseline *baseline, struct baseline_packed *packed);

/* ---- the crop index ---- */

struct baseline_index {
	const uint8_t *rows; /* NULL: there is no index */
	size_t row_size;
	uint32_t step; /* MCUs of a row from one entry to the next */
	uint32_t next; /* column of the MCU row where decoding comes to an entry */
};

/* ---- rows ---- */

struct baseline_span { /* first ... end - 1 */
	uint32_t first, end;
};

struct baseline_plane {
	uint8_t *rows; /* the first row of the MCU row decoded, the first MCU column wanted */
	size_t stride; /* there is one row above, the last one of the MCU row before */
	struct baseline_span across, down; /* samples wanted, of the whole picture */
	uint32_t width, height;            /* of the whole picture */
	uint32_t side;                     /* of a block: 8, or 4, 2, 1 in a smaller picture */
	uint32_t block_width;              /* columns that it takes: side, or twice that */
};

struct baseline_place {               /* of what comes next */
	uint32_t per_row;             /* MCUs of a row */
	struct baseline_span columns; /* MCUs wanted of each row */
	uint32_t mcu_row, y;          /* to come: MCU row; row of pixels */
	uint64_t gap;                 /* MCUs to be read over before it */
};

struct baseline_wanted {            /* a bit for each block of a MCU */
	unsigned down;              /* of the MCU row */
	unsigned first[2], last[2]; /* of the first columns and the last */
};

struct baseline_restart {
	uint32_t until; /* MCUs */
	uint8_t next;   /* 0 ... 7 */
};

struct baseline {
	const struct baseline_kernels *kernels;
	struct baseline_tables *tables;
	const uint8_t *data;
	size_t size;
	struct baseline_head head;
	unsigned shift;         /* sides are halved so often */
	uint32_t height, width; /* of the picture then */
	bool is_half, is_low;   /* chroma has half the columns, half the rows of that */
	unsigned detailed;      /* blocks of a MCU that need more than their first coefficient */
	struct picture_box box;

	/* where the scan is */
	struct baseline_scan scan;
	struct baseline_place place;
	struct baseline_wanted wanted;
	struct baseline_restart restart;
	struct baseline_index index;
	struct baseline_packed packed;

	struct baseline_plane plane[BASELINE_COMPONENTS];
	uint8_t *out[3]; /* a band's rows begin here */
	size_t out_stride;
	void *memory; /* owns the planes and out */
	size_t memory_size;

	uint16_t quant[BASELINE_COMPONENTS][64] __attribute__((aligned(32))); /* row by row */
	struct baseline_mcu mcu[2];
};

/* Begins at the first MCU of the scan. */
void baseline_rows_start(struct baseline *baseline);
/* Before a MCU: goes on behind the restart marker, if there is to be one. 0 or BASELINE_E_DAMAGED. */
int baseline_rows_begin(struct baseline *baseline);
/* A bit for each block of column x that is wanted of the row that comes. */
unsigned baseline_rows_wanted(const struct baseline *baseline, uint32_t x);
/* Decodes the MCU row baseline->place.mcu_row into the planes. 0 or BASELINE_E_DAMAGED. */
int baseline_rows_decode(struct baseline *baseline);
/* MCUs of a row, and rows, of the open picture. */
void baseline_index_measure(const struct baseline *baseline, uint32_t *ret_per_row,
			    uint32_t *ret_rows);
/* The picture is packed: column x of the row that comes, as baseline_kernels.mcu. */
int baseline_packed_mcu(struct baseline *baseline, uint32_t x, unsigned wanted,
			struct baseline_mcu *mcu);
/* The picture is packed and the kernels have packed_unit: all of that row that is wanted, to samples. 0 or
 * BASELINE_E_DAMAGED. */
int baseline_packed_row(struct baseline *baseline);
/* There is an index: to the last entry of MCU row baseline->place.mcu_row that is not behind the first column
 * wanted. Returns how many MCUs before that column are left to be read over. */
uint32_t baseline_index_seek(struct baseline *baseline);
/* There is an index: whether decoding has come to column x of that row as the index says, as far as it
 * says something of it. */
bool baseline_index_agrees(struct baseline *baseline, uint32_t x);
/* Both MCUs' blocks to samples of a smaller picture; x is the first one's column, counted from the
 * first one wanted. 0 or BASELINE_E_DAMAGED. */
int baseline_scaled_samples(const struct baseline *baseline, uint32_t x);
/* Pixels of rows y ... end - 1, all within what was decoded last, as a band. */
void baseline_band_make(const struct baseline *baseline, uint32_t end, struct decode_band *ret);

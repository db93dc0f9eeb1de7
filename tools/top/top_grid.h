/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A screen as cells, which a test reads as text and top_screen.c shows. Pure, but for the locale's width of characters. */

#include "base/base.h"

enum top_style {
	TOP_PLAIN,
	TOP_BOLD,
	TOP_DIM,
	TOP_TITLE,
	TOP_HEADER,   /* of columns */
	TOP_SORTED,   /* the one it is sorted by */
	TOP_SELECTED, /* the row under the cursor */
	TOP_KEY,      /* of the last line: a key's name ... */
	TOP_LABEL,    /* ... and what it does */
	TOP_GOOD,
	TOP_BUSY,
	TOP_BAD,
	TOP_BAR,
	TOP_PART_STYLE, /* of a job's time: and so many more as there are parts, but for what is itself */
	TOP_STYLES = TOP_PART_STYLE + 9
};

struct top_cell {
	char text[8]; /* one character; "": the right half of the one before */
	enum top_style style;
};

struct top_grid {
	unsigned width, height;
	bool is_utf8; /* others than ASCII may be shown */
	struct top_cell *cell;
};

/* All blank. 0 or -ENOMEM; the caller's is then empty. */
int top_grid_init(struct top_grid *grid, unsigned width, unsigned height, bool is_utf8);
void top_grid_fini(struct top_grid *grid);
/* At most width columns of text, which may have any bytes: what could move the cursor is shown as '?'. Returns the
 * columns that it took. Outside of the grid is nothing. */
unsigned top_grid_put(struct top_grid *grid, unsigned x, unsigned y, unsigned width,
		      enum top_style style, const char *text);
/* The same as printf(), to the end of the line. */
unsigned top_grid_say(struct top_grid *grid, unsigned x, unsigned y, enum top_style style,
		      const char *fmt, ...) BASE_PRINTF(5, 6);
/* Columns that it would take, all of it. */
unsigned top_grid_width(const struct top_grid *grid, const char *text);
void top_grid_style(struct top_grid *grid, unsigned x, unsigned y, unsigned width,
		    enum top_style style);
/* A character for 0 to 1; below 0 or NAN: a blank. */
const char *top_grid_spark(const struct top_grid *grid, double height);
/* Lines without blanks at their ends; the caller frees. NULL: no memory. */
char *top_grid_text(const struct top_grid *grid);

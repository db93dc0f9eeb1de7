/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is looked at, and how it is laid out. Pure: keys are numbers, the screen is a grid. */

#include <stdio.h>
#include "tools/top/top_grid.h"
#include "tools/top/top_model.h"

/* Keys that are no character; characters are themselves. */
enum top_key {
	TOP_KEY_UP = 0x110000,
	TOP_KEY_DOWN,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_BACK_TAB,
	TOP_KEY_BACKSPACE,
	TOP_KEY_F1, /* to F10, one after the other */
	TOP_KEY_F10 = TOP_KEY_F1 + 9,
};
#define TOP_KEY_ESCAPE 27
#define TOP_KEY_ENTER '\n'

enum top_page { TOP_PAGE_ROWS, TOP_PAGE_JOB, TOP_PAGE_HELP, TOP_PAGE_SORT };
enum top_prompt { TOP_PROMPT_NONE, TOP_PROMPT_FILTER, TOP_PROMPT_SEARCH, TOP_PROMPT_USER };

struct top_ui {
	enum top_view view;
	enum top_page page;
	enum top_prompt prompt;
	int sort[TOP_VIEWS];     /* column; -1: as they come */
	bool reverse[TOP_VIEWS]; /* of the usual: numbers from the largest on, texts from A on */
	uint64_t key[TOP_VIEWS]; /* of the row under the cursor */
	size_t cursor[TOP_VIEWS], top[TOP_VIEWS]; /* rows */
	size_t page_rows;                         /* that the last layout had room for */
	size_t scroll, choice;                    /* of the help, of the menu of columns */
	char filter[64], user[32];                /* "": all */
	char typed[64], before[64];               /* in a prompt, and what there was before it */
	uint64_t job;                             /* the one that is shown alone */
	bool is_paused, wants_quit;
	uint64_t frames; /* statuses that were shown */
};

/* top_keys.c */
void top_ui_init(struct top_ui *ui);
void top_ui_key(struct top_ui *ui, const struct top_model *model, int key);
void top_help_keys(FILE *out); /* "h F1 ?  this help", a line each */

/* top_order.c */
/* The view's rows that are shown, in their order; the caller frees. NULL: there are none, or no memory. */
const struct top_row **top_order(const struct top_ui *ui, const struct top_model *model,
				 size_t *ret_n);
bool top_matches(const struct top_row *row, const char *text);

/* top_text.c: a value as people read it */
char *top_text(const struct top_value *value, unsigned width, char *ret, size_t size);
bool top_is_left(enum top_kind kind);
void top_json(const struct top_model *model, FILE *out); /* a line */

/* top_layout.c */
/* note: a line that is told in the place of what cannot be shown: "": none. */
void top_layout(struct top_ui *ui, const struct top_model *model, const char *note,
		struct top_grid *grid);
/* What of the cluster does not work, above the rows of the node and of its peers; returns the line below. For -b, too, as what
 * follows. */
unsigned top_layout_trouble(const struct top_ui *ui, const struct top_model *model, unsigned y,
			    struct top_grid *grid);
/* Rows y to the last but one, of the columns that fit. */
void top_layout_header(const struct top_ui *ui, unsigned y, struct top_grid *grid);
void top_layout_row(const struct top_ui *ui, const struct top_row *row, unsigned y,
		    bool is_selected, struct top_grid *grid);
void top_layout_spark(const struct top_past *past, unsigned x, unsigned y, unsigned width,
		      enum top_style style, struct top_grid *grid);

/* top_meters.c: the lines above the rows; returns how many. */
unsigned top_meters(const struct top_ui *ui, const struct top_model *model, struct top_grid *grid);

/* top_job.c: one job alone, and the timeline. */
void top_job(const struct top_ui *ui, const struct top_model *model, unsigned y,
	     struct top_grid *grid);

/* top_help.c */
void top_help(struct top_ui *ui, struct top_grid *grid);
void top_help_columns(FILE *out); /* for --help: views and their columns */

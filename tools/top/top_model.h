/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What access-top knows: rows of each view, made of one status after the other. Pure: no clock, file or terminal; the
 * status says when it was made. Rates and shares are of the time between two statuses that lie STEP_S apart or more,
 * and stay as they are until the next such.
 */

#include <math.h>
#include "base/json.h"

#define TOP_PAST 600   /* steps that are remembered: ten minutes, at one a second */
#define TOP_LATELY 30  /* steps that "lately" is */
#define TOP_STEP_S 0.9 /* between steps, at least */
#define TOP_WORDS 160

enum top_kind {
	TOP_COUNT, /* a whole number */
	TOP_REAL,  /* a number */
	TOP_RATE,  /* a second */
	TOP_SHARE, /* 0 to 1, shown in percent */
	TOP_BYTES,
	TOP_SECONDS,
	TOP_TEXT,
	TOP_TAIL,    /* a text whose end says more than its beginning */
	TOP_USER,    /* a uid */
	TOP_SPARK,   /* the row's past */
	TOP_PER_S,   /* the difference of a counter, a second */
	TOP_BYTES_S, /* the same of bytes */
	TOP_LOAD, /* the difference of seconds of work, a second: a share, which may be more than 1 */
};

enum top_view {
#define VIEW(view, ...) TOP_##view,
#include "tools/top/top_tbl.h"
	TOP_VIEWS
};

/* All columns of all views; a view's begin at TOP_view_FIRST. */
enum top_column {
#define VIEW(view, ...) TOP_##view##_FIRST, TOP_##view##_BEFORE = TOP_##view##_FIRST - 1,
#define COLUMN(view, column, ...) TOP_##view##_##column,
#include "tools/top/top_tbl.h"
	TOP_COLUMNS
};

enum top_node {
#define NODE(row, ...) TOP_OF_##row,
#include "tools/top/top_tbl.h"
	TOP_NODES
};

struct top_column_info {
	enum top_view view;
	const char *word, *header;
	unsigned width, from;
	enum top_kind kind;
	const char *key, *help;
};
struct top_view_info {
	const char *word, *title, *help;
	unsigned first; /* column */
	int main, sort; /* columns; sort -1: as they come */
};
struct top_node_info {
	const char *word;
	enum top_kind kind;
	const char *key, *help;
};
extern const struct top_column_info top_columns[TOP_COLUMNS];
extern const struct top_view_info top_views[TOP_VIEWS];
extern const struct top_node_info top_nodes[TOP_NODES];

/* Where a job's time goes: to what ctl_waits_tbl.h has, in its order, then to two more. */
enum top_part {
	TOP_PART_SCAN,
	TOP_PART_READ,
	TOP_PART_DECODE,
	TOP_PART_SLOT,
	TOP_PART_WORKERS,
	TOP_PART_SCHEDULE,
	TOP_PART_DRAIN,
	TOP_PART_ITSELF,
	TOP_PART_STOPPED,
	TOP_PARTS
};
extern const char *const top_part_words[TOP_PARTS];

#define TOP_MOST 24 /* columns of a view */
enum {              /* counters of a row: those of its columns, then some that no column shows */
       TOP_SUM_HITS = TOP_MOST,
       TOP_SUM_MISSES,
       TOP_SUM_PART,
       TOP_SUMS = TOP_SUM_PART + TOP_PARTS
};

struct top_value {
	double number;    /* NAN: not known */
	const char *text; /* of texts: of the status or of the row, NULL: none; any bytes */
	enum top_kind kind;
};

/* Of one row, over all statuses: counters at the last step, rates since, and a ring of steps. */
struct top_past {
	struct top_past *next;
	enum top_view view;
	uint64_t key;
	bool is_seen;                         /* in the newest status */
	double sum[TOP_SUMS], rate[TOP_SUMS]; /* of counters; NAN: not known */
	uint64_t steps;                       /* in all; the newest is at (steps - 1) % TOP_PAST */
	/* Of the view's main column; of what it is compared with */
	float main[TOP_PAST], other[TOP_PAST];
	float (*part)[TOP_PARTS]; /* TOP_PAST of them, shares of a job's time; NULL: of no job */
};

struct top_row {
	enum top_view view;
	uint64_t key;
	struct top_value value[TOP_MOST];
	struct top_past *past;        /* borrowed from the model */
	const struct json_in *object; /* of the status; of jobs: of the first rank */
	char words[TOP_WORDS], more[TOP_WORDS];
};

struct top_rows {
	struct top_row *row;
	size_t n, room;
};

struct top_model {
	struct json_in *status; /* owned; NULL: none yet */
	struct top_rows rows[TOP_VIEWS];
	struct top_past *pasts;
	uint64_t pid;
	double at_s, step_s; /* uptime of the status, and of the one of the last step */
	double dt_s;         /* from the step before to this one; 0: it is the first */
	bool is_step;
	uint64_t steps;
};

/* top_model.c */
void top_model_init(struct top_model *model);
void top_model_fini(struct top_model *model);
/* Takes status (consumed, also on failure). 0, or -ENOMEM: the model is empty. */
int top_model_take(struct top_model *model, struct json_in *status);
unsigned top_columns_of(enum top_view view); /* how many, from its first on */
struct top_value *top_at(struct top_row *row, unsigned column);
const struct top_value *top_value(const struct top_row *row, unsigned column);
const struct top_row *top_find(const struct top_model *model, enum top_view view, uint64_t key);
double top_node_value(const struct top_model *model, enum top_node node); /* NAN: not known */
/* Since the last step but one: the counter's difference, a second. NAN: not known. */
double top_past_rate(const struct top_model *model, struct top_past *past, unsigned sum,
		     double value);
/* At a step: what its main column is now, and what that is compared with. */
void top_past_push(const struct top_model *model, struct top_past *past, double main, double other);
/* Reads what the key has into a value of its kind; sum: which counter of the row it is. */
void top_read(const struct top_model *model, struct top_past *past, unsigned sum,
	      const struct json_in *object, const char *key, struct top_value *ret);
/* Makes a row of the view, with all that the status has of it. NULL: no memory. */
struct top_row *top_add(struct top_model *model, enum top_view view, uint64_t key,
			const struct json_in *object);
/* The newest is step 0. NAN: there was none, or it was not known. */
double top_past_main(const struct top_past *past, uint64_t steps_ago);
double top_past_part(const struct top_past *past, uint64_t steps_ago, enum top_part part);
/* The sums of main and of other over the last steps; those that are not known are left out. */
void top_past_sums(const struct top_past *past, unsigned steps, double *ret_main,
		   double *ret_other);

/* top_derive.c */
int top_derive(struct top_model *model); /* 0 or -ENOMEM */

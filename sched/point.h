/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which form of a stream's samples is worth keeping, given what each was measured to cost on this
 * machine, or none. Arithmetic alone: measurements are arguments, the choice is a value. Point 0 is
 * the file itself, with nothing kept. Times are microseconds a sample.
 */

#include <stdbool.h>
#include <stdint.h>

#define POINT_MAX 16

/* A point is chosen over the current one when it saves this share of the expected time, in either
 * direction. */
#define POINT_MARGIN 0.03
/* ... and by which a form of which less than POINT_SERVED_LEAST samples came is left. */
#define POINT_MARGIN_NEW 0.25
#define POINT_SERVED_LEAST 256
/* Of a point that was measured less often nothing is said. */
#define POINT_TRIALS_LEAST 8
#define POINT_TRIALS_MOST 1024
/* Values that a mean remembers at least; and the time whose values it remembers, if they are more. */
#define POINT_WINDOW_LEAST 1024
#define POINT_WINDOW_S 4
/* Trials may cost this share of what the stream is expected to cost. */
#define POINT_TRIALS_SHARE 0.01
/* ... and this share of what the best seems to save. */
#define POINT_TRIALS_GAIN 0.1
/* Uses that are expected at least of a sample of a stream whose jobs do not say when they end. */
#define POINT_USES_LEAST 2

/* ---- point.c: the choice ---- */

struct
    point_cost { /* means a sample; what is not finite or negative counts as 0 or a very long time */
	uint64_t samples;   /* times that outputs were made from this form: work, read, bytes */
	uint64_t made;      /* times that it was made: make, write. The file: not looked at */
	double work_us;     /* CPU of a worker to make the outputs from it */
	double read_us;     /* of a reader's thread, elapsed, to bring it to the arena */
	double read_cpu_us; /* of that, CPU */
	/* CPU to make it and to keep it; the sample's outputs are then made from it */
	double make_us;
	double write_us; /* of the store's writer, elapsed: how many it takes in a time */
	double bytes;    /* of a kept sample */
};

struct point_input {
	unsigned n; /* points; more than POINT_MAX are not looked at */
	struct point_cost cost[POINT_MAX];
	double cores; /* that workers and readers have */
	double reader_threads;
	uint64_t n_samples;
	uint64_t room[POINT_MAX]; /* bytes that a form may have of the store, with what it has */
	double cached[POINT_MAX]; /* share of the samples that is kept now */
	double uses;              /* of each sample that are expected from now on: point_uses() */
	double most_uses[POINT_MAX]; /* after so many a form is to be made anew; 0: never */
	double past;                 /* epochs so far, in which these points could be tried */
	unsigned current;            /* point so far; 0 to begin with */
	bool is_new;                 /* point_form_is_new() of that */
};

enum point_reason {
	POINT_UNMEASURED, /* too little is known; what is kept most is used, nothing is made */
	POINT_BEST,       /* the least expected time */
	POINT_STAYS,      /* the rival's is less, by less than POINT_MARGIN, or POINT_MARGIN_NEW */
	POINT_NOT_WORTH, /* the file: the rival is best of the forms, and saves too little even if all fitted */
	POINT_NO_ROOM,  /* the file: the rival would save enough, but too little of it fits */
	POINT_FEW_USES, /* the file: the rival would save enough, but not its own making */
};

struct point_choice {
	unsigned point;
	bool makes;     /* worth making what is not kept yet; else what is kept is used */
	unsigned rival; /* the best of the others that can be had, itself when there is none */
	enum point_reason reason;
	/* Expected elapsed time a sample; infinite where a point was not measured. */
	double whole_us[POINT_MAX]; /* if all samples were kept */
	double serve_us[POINT_MAX]; /* with the share that fits */
	double total_us[POINT_MAX]; /* with the making of it spread over the uses */
	double fits[POINT_MAX];     /* that share: kept, or to be kept */
};

/* Any values are taken. */
void point_choose(const struct point_input *input, struct point_choice *ret);
const char *point_reason_name(enum point_reason reason); /* "best", ...: for the status */

/* Uses expected of each sample from now on. is_known: the jobs say when they end, left epochs from
 * now, at the most of any (jobs that share count once). past: epochs of the dataset so far. */
double point_uses(bool is_known, double left, double past);
/* How often a form may be tried on samples that came as files (made and not kept, outputs made from it
 * once more), by what trials cost and how near it is to the best: less than POINT_TRIALS_LEAST, it is too
 * dear to find out. Ask again after each trial. For point 0, with another chosen: how often to take the
 * file of a sample that is kept. */
uint64_t point_trials(const struct point_input *input, unsigned p);

/* ---- point_mean.c: following a measurement ---- */

struct point_mean {
	uint64_t n;
	double first[POINT_TRIALS_LEAST];
	double mean, variance;
	double anchor;   /* mean of the last decision; negative: there was none */
	uint64_t window; /* values that it remembers */
};
void point_mean_init(struct point_mean *mean);
/* Negative values and what is not a number are not counted; of a great one no more than moves the
 * mean a little. */
void point_mean_add(struct point_mean *mean, double value);
/* Known to 2 % of itself (its standard error), or measured POINT_TRIALS_MOST times. */
bool point_mean_is_sure(const struct point_mean *mean);
/* Whether the mean has left the band round that of the last decision, by more than its noise. */
bool point_mean_moved(const struct point_mean *mean);
void point_mean_settle(struct point_mean *mean); /* a decision was made with this mean */
/* So many values are remembered from now on; never less than POINT_WINDOW_LEAST. */
void point_mean_remember(struct point_mean *mean, double values);

/* ---- point_line.c: what bytes cost ---- */

/* A cost as a fixed part and so much a byte: the straight line through what was measured. */
struct point_line {
	uint64_t n;
	double bytes, cost;   /* means */
	double spread, slope; /* of bytes; with the cost: means of the products */
};
void point_line_add(struct point_line *line, double bytes, double cost);
/* Never less than nothing for the fixed part or a byte. Negative: too little is known. */
double point_line_at(const struct point_line *line, double bytes);

/* ---- point_form.c: all measurements of a form ---- */

struct point_figure {
	struct point_mean tried; /* over the file's work, of the same samples */
	struct point_mean used;
};
struct point_form { /* or of the file, which is only served */
	struct point_figure work, read, read_cpu, make, bytes;
	struct point_line brought; /* read_cpu by bytes */
	bool needs_file;           /* it is brought with the file behind it */
	bool is_at_hand;           /* it will lie in memory: nothing is copied */
	uint64_t counted;          /* values of work at the last point_form_passed() */
	double rate;               /* of them, a second, or that of a moment ago */
};
void point_form_init(struct point_form *form);
/* A figure of a sample that is not known is negative. sample: of one trial; file_work_us: work to make
 * the same sample's outputs from the file. */
void point_form_tried(struct point_form *form, const struct point_cost *sample,
		      double file_work_us);
/* Outputs were made from it: work, read, read_cpu, bytes. */
void point_form_served(struct point_form *form, const struct point_cost *sample);
/* It was made and kept: make, bytes. */
void point_form_made(struct point_form *form, const struct point_cost *sample);
/* What point_choose() wants, but for the store's writer: its part, by bytes the same for all forms, is the caller's to
 * add. file: the form of point 0. The work to bring a form that never was brought is
 * taken for that of a file of the bytes that are copied. */
void point_form_cost(const struct point_form *form, const struct point_form *file,
		     struct point_cost *ret);
/* Where it is not known how long form takes to be read, but of another one in the same store: that, by the bytes. cost: that
 * one's; ret: form's, from point_form_cost(). */
void point_form_read_like(const struct point_form *form, const struct point_form *like,
			  const struct point_cost *cost, struct point_cost *ret);
/* So many seconds have passed since it was told that last: the mean of work remembers those of POINT_WINDOW_S. That of
 * reading does not: what was read once lies in memory from then on. */
void point_form_passed(struct point_form *form, double seconds);
/* What is known of it are trials, and what it takes to write the first values. */
bool point_form_is_new(const struct point_form *form);
bool point_form_is_sure(const struct point_form *form); /* more trials would tell little */
bool point_form_moved(const struct point_form *form);   /* since point_form_settle() */
void point_form_settle(struct point_form *form);

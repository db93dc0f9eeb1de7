/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What limits a job, and how fast it would be after a change: arithmetic on measurements. Rates are samples a second. */

#include <stdbool.h>

/* What brings samples to a job, each with a most that it can give. */
enum whatif_part {
	WHATIF_READ,
	WHATIF_DECODE,
	WHATIF_SLOTS,
	WHATIF_JOB,
	WHATIF_PARTS, /* none: another wait, which no change below helps against */
};

/* Of its time: less waiting and the job's own steps are its pace. */
#define WHATIF_WAITS_LEAST 0.05
/* Of a worker's busy time: with less of a processor, other programs want them. */
#define WHATIF_GRANTED 0.9

/* Means of a sample, microseconds; negative: not known. */
struct whatif_cost {
	double work_us;     /* CPU time of a worker */
	double read_us;     /* of a reading thread, elapsed */
	double read_cpu_us; /* of that, CPU time */
};

struct whatif_input {
	double rate;                /* what the job gets */
	double made;                /* what is made for it and all who share, once for all */
	double waits[WHATIF_PARTS]; /* shares of its time lately; of WHATIF_JOB: other waits */
	double workers, cpus, readers;
	double others_busy; /* workers that other streams keep busy, in the mean */
	double granted;     /* of the time that a worker has a sample it has a processor, too */
	struct whatif_cost cost; /* as samples come now */
};

/* whatif_none, but for what is another. */
struct whatif_change {
	double workers, cpus;    /* more of them than now; negative: fewer */
	struct whatif_cost cost; /* another form; negative: as now */
	double read;             /* the source is so many times as fast */
	double step;             /* the job's own step is so many times as fast */
	double slots;            /* so many times as many */
};
extern const struct whatif_change whatif_none;

struct whatif {
	enum whatif_part limit;
	double most[WHATIF_PARTS]; /* what each could give; infinite: not known, or no bound */
	double used
	    [WHATIF_PARTS]; /* share of it; of slots of the time waited for. Negative: not known */
};

/* Any values are taken. */
void whatif_look(const struct whatif_input *in, struct whatif *ret);
/* The job's rate after the change; whatif: of in. */
double whatif_rate(const struct whatif_input *in, const struct whatif *whatif,
		   const struct whatif_change *change);
/* As samples come when share of them is kept in one form, and the rest comes as files. */
struct whatif_cost whatif_mixed(const struct whatif_cost *file, const struct whatif_cost *form,
				double share);

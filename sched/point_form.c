/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is known of a form. Before one is chosen there are a few trials, of samples whose sizes differ
 * by far more than the forms do. So a trial is noted as a multiple of what the same sample's file
 * took, and a form's cost is the mean of these, times the mean work of all files: sizes cancel out (the
 * ratio estimator of sampling theory; W. G. Cochran, "Sampling Techniques", 1977, chapter 6). When
 * enough samples (POINT_SERVED_LEAST) were really made, kept and served, what they took counts instead: trials find
 * their form where it was just put, and a disk may be slower than that.
 */

#include "sched/point.h"

#include <math.h>

#include "base/base.h"

/* Of the rate that was: a look in which few came is not yet a slow disk. */
#define FORM_HALF_LIFE_S 0.5

static void figure_init(struct point_figure *figure)
{
	point_mean_init(&figure->tried);
	point_mean_init(&figure->used);
}

static uint64_t figure_count(const struct point_figure *figure)
{
	return figure->tried.n + figure->used.n;
}

static double figure_value(const struct point_figure *figure, double file_work_us)
{
	if (figure->used.n >= POINT_SERVED_LEAST || figure->tried.n == 0)
		return figure->used.mean;
	return figure->tried.mean * file_work_us;
}

static bool figure_is_sure(const struct point_figure *figure)
{
	return point_mean_is_sure(&figure->tried) || point_mean_is_sure(&figure->used);
}

void point_form_init(struct point_form *form)
{
	figure_init(&form->work);
	figure_init(&form->read);
	figure_init(&form->read_cpu);
	figure_init(&form->make);
	figure_init(&form->bytes);
	form->brought = (struct point_line){0};
	form->needs_file = form->is_at_hand = false;
	form->counted = 0;
	form->rate = 0;
}

void point_form_tried(struct point_form *form, const struct point_cost *sample, double file_work_us)
{
	if (!(file_work_us > 0))
		return;
	point_mean_add(&form->work.tried, sample->work_us / file_work_us);
	point_mean_add(&form->read.tried, sample->read_us / file_work_us);
	point_mean_add(&form->read_cpu.tried, sample->read_cpu_us / file_work_us);
	point_mean_add(&form->make.tried, sample->make_us / file_work_us);
	point_mean_add(&form->bytes.tried, sample->bytes / file_work_us);
}

void point_form_served(struct point_form *form, const struct point_cost *sample)
{
	point_mean_add(&form->work.used, sample->work_us);
	point_mean_add(&form->read.used, sample->read_us);
	point_mean_add(&form->read_cpu.used, sample->read_cpu_us);
	point_mean_add(&form->bytes.used, sample->bytes);
	point_line_add(&form->brought, sample->bytes, sample->read_cpu_us);
}

void point_form_made(struct point_form *form, const struct point_cost *sample)
{
	point_mean_add(&form->make.used, sample->make_us);
	point_mean_add(&form->bytes.used, sample->bytes);
}

/* Of what was not brought often enough: the first ones are while the store's writer has the disk, and few of them
 * stalls more than most. */
static void guess_reading(const struct point_form *form, const struct point_form *file,
			  struct point_cost *ret)
{
	const double behind = form->needs_file ? file->bytes.used.mean : 0;
	const double copied = (form->is_at_hand ? 0 : ret->bytes) + behind;
	const double cpu_us = point_line_at(&file->brought, copied);

	if (form->read.tried.n > 0 || form->read.used.n >= POINT_SERVED_LEAST)
		return;
	if (cpu_us >= 0)
		ret->read_cpu_us = cpu_us;
	if (file->read.used.n > 0)
		ret->read_us = form->needs_file ? file->read.used.mean : 0;
}

void point_form_cost(const struct point_form *form, const struct point_form *file,
		     struct point_cost *ret)
{
	double work = file->work.used.mean;

	*ret = (struct point_cost){
	    .samples = figure_count(&form->work),
	    .made = figure_count(&form->make),
	    .work_us = figure_value(&form->work, work),
	    .read_us = figure_value(&form->read, work),
	    .read_cpu_us = figure_value(&form->read_cpu, work),
	    .make_us = figure_value(&form->make, work),
	    .bytes = figure_value(&form->bytes, work),
	};
	if (form != file)
		guess_reading(form, file, ret);
}

void point_form_read_like(const struct point_form *form, const struct point_form *like,
			  const struct point_cost *cost, struct point_cost *ret)
{
	if (form->read.tried.n > 0 || form->read.used.n >= POINT_SERVED_LEAST ||
	    like->read.used.n < POINT_SERVED_LEAST || like->needs_file || !(cost->bytes > 0))
		return;
	ret->read_us = BASE_MAX(ret->read_us, cost->read_us * ret->bytes / cost->bytes);
}

void point_form_passed(struct point_form *form, double seconds)
{
	const uint64_t values = form->work.used.n - form->counted;

	if (!(seconds > 0))
		return;
	form->counted = form->work.used.n;
	form->rate =
	    BASE_MAX((double)values / seconds, form->rate * exp2(-seconds / FORM_HALF_LIFE_S));
	point_mean_remember(&form->work.used, form->rate * POINT_WINDOW_S);
}

bool point_form_is_new(const struct point_form *form)
{
	return form->work.used.n < POINT_SERVED_LEAST;
}

bool point_form_is_sure(const struct point_form *form)
{
	return figure_is_sure(&form->work) && figure_is_sure(&form->make);
}

/* What was only tried does not move: trials end with a decision. */
bool point_form_moved(const struct point_form *form)
{
	return point_mean_moved(&form->work.used) || point_mean_moved(&form->read.used) ||
	       point_mean_moved(&form->make.used) || point_mean_moved(&form->bytes.used);
}

void point_form_settle(struct point_form *form)
{
	point_mean_settle(&form->work.used);
	point_mean_settle(&form->read.used);
	point_mean_settle(&form->make.used);
	point_mean_settle(&form->bytes.used);
}

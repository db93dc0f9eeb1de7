/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What bringing so many bytes would cost, from files that were brought: opening one costs the same
 * whatever its size is, so a form that is five times as large is not five times as dear. Least squares
 * (the means of both, of the squares and of the products), of what is not too long ago.
 */

#include "sched/point.h"

#include <math.h>

#include "base/base.h"

#define LINE_WINDOW 1024
#define LINE_MOST 5 /* times the mean: a stall says nothing of bytes */

void point_line_add(struct point_line *line, double bytes, double cost)
{
	double weight, away;

	if (!(bytes >= 0 && cost >= 0) || !isfinite(bytes) || !isfinite(cost))
		return;
	line->n++;
	weight = 1 / (double)BASE_MIN(line->n, (uint64_t)LINE_WINDOW);
	if (line->n > 1)
		cost = BASE_MIN(cost, LINE_MOST * line->cost);
	away = bytes - line->bytes;
	line->bytes += weight * away;
	line->spread += weight * ((1 - weight) * away * away - line->spread);
	line->slope += weight * ((1 - weight) * away * (cost - line->cost) - line->slope);
	line->cost += weight * (cost - line->cost);
}

double point_line_at(const struct point_line *line, double bytes)
{
	double slope = 0;

	if (line->n < POINT_TRIALS_LEAST)
		return -1;
	if (line->spread > 0)
		slope = BASE_MAX(line->slope / line->spread, 0.0);
	if (slope * line->bytes > line->cost)
		slope = line->cost / line->bytes;
	return line->cost + slope * (bytes - line->bytes);
}

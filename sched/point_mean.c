/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A mean that follows its measurement. All values so far count alike until there are as many as its
 * window, later ones replace old ones with a weight of 1 / window, so a disk that has become slow
 * is noticed within some hundreds of samples. But where these pass in a tenth of a second the window
 * is some seconds wide: a machine on which others run is slower by half for a moment and quicker in
 * the next, and a form that is served then would be compared with what others took before.
 *
 * It is the mean that decides how long an epoch takes, so great values are not thrown away: a disk that
 * stalls at each hundredth read is slow. But one value (a stopped process, a laptop that slept) may
 * move the mean by no more than MEAN_PULL of itself. The first few, which warm memory and tables, have
 * no mean yet to be measured by: of them the greatest and the least are left out.
 *
 * "Moved" means out of a band round the mean of the last decision, MEAN_BAND of it or three standard
 * errors, whichever is wider: pictures differ in size, and that alone is no news.
 */

#include "sched/point.h"

#include <math.h>

#include "base/base.h"

#define MEAN_PULL 0.05
#define MEAN_BAND 0.05
#define MEAN_SURE 0.02 /* standard error, of the mean */

void point_mean_init(struct point_mean *mean)
{
	memset(mean, 0, sizeof(*mean));
	mean->anchor = -1;
	mean->window = POINT_WINDOW_LEAST;
}

/* Of the first n without the greatest and the least, where there are three. */
static void start(struct point_mean *mean)
{
	double sum = 0, squares = 0, greatest = mean->first[0], least = mean->first[0];
	double n = (double)mean->n, left = n > 2 ? n - 2 : n;

	for (uint64_t i = 0; i < mean->n; i++) {
		sum += mean->first[i];
		greatest = BASE_MAX(greatest, mean->first[i]);
		least = BASE_MIN(least, mean->first[i]);
	}
	if (mean->n > 2)
		sum -= greatest + least;
	mean->mean = BASE_MAX(sum / left, least);
	for (uint64_t i = 0; i < mean->n; i++) {
		double away = BASE_MIN(mean->first[i], 2 * mean->mean) - mean->mean;

		squares += away * away;
	}
	mean->variance = squares / n;
}

static double clamped(const struct point_mean *mean, double value)
{
	double n = (double)BASE_MIN(mean->n, mean->window);

	return BASE_MIN(value, mean->mean * (1 + BASE_MAX(4.0, MEAN_PULL * n)));
}

static void follow(struct point_mean *mean, double value)
{
	double weight = 1 / (double)BASE_MIN(mean->n, mean->window);
	double away = value - mean->mean;

	mean->mean += weight * away;
	mean->variance += weight * ((1 - weight) * away * away - mean->variance);
}

void point_mean_add(struct point_mean *mean, double value)
{
	if (!(value >= 0) || !isfinite(value))
		return;
	mean->n++;
	if (mean->n <= POINT_TRIALS_LEAST) {
		mean->first[mean->n - 1] = value;
		start(mean);
		return;
	}
	follow(mean, clamped(mean, value));
}

/* Whether the standard error, times so many, is at most share of the mean. */
static bool error_within(const struct point_mean *mean, double times, double share)
{
	/* A weight of 1 / w for what is new leaves the noise of 2 w - 1 values. */
	double n = (double)BASE_MIN(mean->n, 2 * mean->window - 1);
	double bound = share * mean->mean;

	return n > 0 && times * times * mean->variance <= n * bound * bound;
}

bool point_mean_is_sure(const struct point_mean *mean)
{
	if (mean->n < POINT_TRIALS_LEAST)
		return false;
	return mean->n >= POINT_TRIALS_MOST || error_within(mean, 1, MEAN_SURE);
}

bool point_mean_moved(const struct point_mean *mean)
{
	double away = fabs(mean->mean - mean->anchor);

	if (mean->n < POINT_TRIALS_LEAST)
		return false;
	if (mean->anchor < 0)
		return true;
	return away > MEAN_BAND * mean->anchor &&
	       (mean->mean <= 0 || error_within(mean, 3, away / mean->mean));
}

void point_mean_settle(struct point_mean *mean)
{
	mean->anchor = mean->mean;
}

void point_mean_remember(struct point_mean *mean, double values)
{
	mean->window = (uint64_t)BASE_MAX(values, (double)POINT_WINDOW_LEAST);
}

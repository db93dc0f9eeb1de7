/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Draws by weight:
 *
 *   with replacement: the alias method (A. J. Walker, "An efficient method for generating discrete
 *   random variables with general distributions", ACM TOMS 3, 1977), its table built in linear time
 *   as in M. D. Vose, "A linear algorithm for generating random numbers with a given distribution",
 *   IEEE TSE 17, 1991. A place is one draw, a function of (seed, epoch, place).
 *
 *   without: P. S. Efraimidis, P. G. Spirakis, "Weighted random sampling with a reservoir", IPL 97,
 *   2006: the samples with the greatest log(u) / w, u uniform, are a weighted draw without
 *   replacement. u is a function of (seed, epoch, sample). They come out heaviest first, so the
 *   caller permutes them.
 *
 * The same list must come out on every machine and with every compiler, since a token names a place
 * in it. So nothing of libm is used (its last bit is a matter of versions and of the CPU):
 * logarithms are computed in integers, and of floating point there are only single additions,
 * multiplications and divisions whose results are stored, which IEEE 754 defines to the last bit.
 */

#include "plan/weigh.h"

#include "base/base.h"
#include "base/bits.h"
#include "base/philox.h"

/* Apart from each other and from every other use of (seed, epoch). */
#define WEIGH_STREAM_DRAW UINT64_C(0x6472770000000000) /* "drw" */
#define WEIGH_STREAM_WAIT UINT64_C(0x6578700000000000) /* "exp" */

/* ---- drawing with replacement ---- */

struct alias {
	double *share;   /* of an item's column, what is its own, in 0 .. 1 */
	uint64_t *other; /* whose the rest is */
	uint64_t *small, *large;
	uint64_t n, n_small, n_large;
};

static void alias_fini(struct alias *alias)
{
	free(alias->share);
	free(alias->other);
	free(alias->small);
	free(alias->large);
}

static int alias_alloc(struct alias *alias, uint64_t n)
{
	alias->n = n;
	alias->share = malloc(n * sizeof(*alias->share));
	alias->other = malloc(n * sizeof(*alias->other));
	alias->small = malloc(n * sizeof(*alias->small));
	alias->large = malloc(n * sizeof(*alias->large));
	return alias->share && alias->other && alias->small && alias->large ? 0 : -ENOMEM;
}

static uint64_t heaviest_of(const double *weights, uint64_t n)
{
	uint64_t best = 0;

	for (uint64_t i = 1; i < n; i++)
		if (weights[i] > weights[best])
			best = i;
	return best;
}

/* Weights become shares of columns: their mean becomes 1. Divided by the greatest first, so that no
 * sum is too large for a double. */
static void alias_scale(struct alias *alias, const double *weights, uint64_t heaviest)
{
	double sum = 0, mean;

	for (uint64_t i = 0; i < alias->n; i++) {
		alias->share[i] = weights[i] / weights[heaviest];
		sum += alias->share[i];
	}
	mean = sum / (double)alias->n;
	for (uint64_t i = 0; i < alias->n; i++)
		alias->share[i] /= mean;
}

static void alias_sort_in(struct alias *alias, uint64_t item)
{
	if (alias->share[item] < 1)
		alias->small[alias->n_small++] = item;
	else
		alias->large[alias->n_large++] = item;
}

/* 0 or -ENOMEM; alias_fini() in either case. Some weight is not 0. */
static int alias_build(struct alias *alias, const double *weights, uint64_t n)
{
	uint64_t heaviest = heaviest_of(weights, n);

	if (alias_alloc(alias, n))
		return -ENOMEM;
	alias_scale(alias, weights, heaviest);
	for (uint64_t i = 0; i < n; i++) {
		alias->other[i] = heaviest;
		alias_sort_in(alias, i);
	}
	while (alias->n_small && alias->n_large) {
		uint64_t poor = alias->small[--alias->n_small];
		uint64_t rich = alias->large[--alias->n_large];

		alias->other[poor] = rich;
		alias->share[rich] -= 1 - alias->share[poor];
		alias_sort_in(alias, rich);
	}
	/* What rounding has left over is as good as full, but what has no weight is never drawn. */
	while (alias->n_large)
		alias->share[alias->large[--alias->n_large]] = 1;
	while (alias->n_small) {
		uint64_t item = alias->small[--alias->n_small];

		alias->share[item] = weights[item] > 0;
	}
	return 0;
}

static uint64_t alias_draw(const struct alias *alias, const struct weigh *weigh, uint64_t place)
{
	struct philox block = philox_block(weigh->seed, weigh->epoch, WEIGH_STREAM_DRAW + place);
	unsigned __int128 product = philox_half(&block, 0);
	double unit = (double)(philox_half(&block, 1) >> 11) * 0x1p-53;
	uint64_t item;

	product *= alias->n;
	item = (uint64_t)(product >> 64);
	return unit < alias->share[item] ? item : alias->other[item];
}

int weigh_with(const struct weigh *weigh, uint64_t places, uint64_t *ret)
{
	_cleanup_(alias_fini) struct alias alias = {0};
	int r = alias_build(&alias, weigh->weights, weigh->n);

	for (uint64_t i = 0; i < places && !r; i++)
		ret[i] = alias_draw(&alias, weigh, i);
	return r;
}

/* ---- drawing without ---- */

struct contender {
	double wait; /* the least win */
	uint64_t item;
};

static bool is_before(const struct contender *a, const struct contender *b)
{
	return a->wait != b->wait ? a->wait < b->wait : a->item < b->item;
}

static void swap(struct contender *a, struct contender *b)
{
	struct contender c = *a;

	*a = *b;
	*b = c;
}

/* Puts those before the pivot to the left: returns where it comes to lie. */
static uint64_t partition(struct contender *all, uint64_t low, uint64_t high)
{
	struct contender pivot;
	uint64_t at = low;

	swap(&all[low + (high - low) / 2], &all[high]);
	pivot = all[high];
	for (uint64_t i = low; i < high; i++)
		if (is_before(&all[i], &pivot))
			swap(&all[i], &all[at++]);
	swap(&all[at], &all[high]);
	return at;
}

/* The contender that has `rank` before it, found as in C. A. R. Hoare, "Algorithm 65: find", CACM 4,
 * 1961. The order of all is lost. */
static struct contender find(struct contender *all, uint64_t n, uint64_t rank)
{
	uint64_t low = 0, high = n - 1;

	while (low < high) {
		uint64_t at = partition(all, low, high);

		if (at == rank)
			break;
		if (at < rank)
			low = at + 1;
		else
			high = at - 1;
	}
	return all[rank];
}

static struct contender contender_of(const struct weigh *weigh, uint64_t item)
{
	struct philox block = philox_block(weigh->seed, weigh->epoch, WEIGH_STREAM_WAIT + item);
	uint64_t wait = bits_minus_log2(philox_half(&block, 0), 44);

	return (struct contender){(double)wait / weigh->weights[item], item};
}

static uint64_t enter_contenders(const struct weigh *weigh, struct contender *ret)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < weigh->n; i++)
		if (weigh->weights[i] > 0)
			ret[n++] = contender_of(weigh, i);
	return n;
}

int weigh_without(const struct weigh *weigh, uint64_t places, uint64_t *ret)
{
	_cleanup_free_ struct contender *contenders = malloc((weigh->n + 1) * sizeof(*contenders));
	_cleanup_free_ struct contender *scratch = malloc((weigh->n + 1) * sizeof(*scratch));
	struct contender last;
	uint64_t n;

	if (!contenders || !scratch)
		return -ENOMEM;
	n = enter_contenders(weigh, contenders);
	if (places == 0 || places > n)
		return -EINVAL;
	memcpy(scratch, contenders, n * sizeof(*scratch));
	last = find(scratch, n, places - 1);
	for (uint64_t i = 0; i < n; i++)
		if (!is_before(&last, &contenders[i]))
			*ret++ = contenders[i].item;
	return 0;
}

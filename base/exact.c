/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A number is the sum of two doubles, of which the first is the sum rounded (T. J. Dekker, "A floating-point technique for
 * extending the available precision", 1971): some 104 bits, by additions, multiplications and divisions alone, which IEEE 754 fixes
 * to the last bit. So all machines do the same, as long as no compiler joins a product and a sum (-ffp-contract=off).
 *
 * Arguments are brought near to 0, and Taylor's series do the rest. The nearest double is wrong only where the true value is
 * within some 2^-100 of the middle between two, which of 2^40 arguments befalls none.
 */

#include "base/exact.h"

#define EXACT_SPLIT 134217729.0 /* 2^27 + 1 */
#define EXACT_HALVINGS 4        /* of the argument of exp */
#define EXACT_EXP_TERMS 15
#define EXACT_TERMS 28
#define EXACT_LEAST (-746.) /* exp of less is 0 */
#define EXACT_MOST 710.     /* of more, infinite */

struct exact {
	double high, low;
};

/* 1 / n! */
static const struct exact exact_term[EXACT_TERMS] = {
    {0x1.p+0, 0},
    {0x1.p+0, 0},
    {0x1.p-1, 0},
    {0x1.5555555555555p-3, 0x1.5555555555555p-57},
    {0x1.5555555555555p-5, 0x1.5555555555555p-59},
    {0x1.1111111111111p-7, 0x1.1111111111111p-63},
    {0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65},
    {0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-73},
    {0x1.a01a01a01a01ap-16, 0x1.a01a01a01a01ap-76},
    {0x1.71de3a556c734p-19, -0x1.c154f8ddc6c00p-73},
    {0x1.27e4fb7789f5cp-22, 0x1.cbbc05b4fa99ap-76},
    {0x1.ae64567f544e4p-26, -0x1.c062e06d1f209p-80},
    {0x1.1eed8eff8d898p-29, -0x1.2aec959e14c06p-83},
    {0x1.6124613a86d09p-33, 0x1.f28e0cc748ebep-87},
    {0x1.93974a8c07c9dp-37, 0x1.05d6f8a2efd1fp-92},
    {0x1.ae7f3e733b81fp-41, 0x1.1d8656b0ee8cbp-97},
    {0x1.ae7f3e733b81fp-45, 0x1.1d8656b0ee8cbp-101},
    {0x1.952c77030ad4ap-49, 0x1.ac981465ddc6cp-103},
    {0x1.6827863b97d97p-53, 0x1.eec01221a8b0bp-107},
    {0x1.2f49b46814157p-57, 0x1.2650f61dbdcb4p-112},
    {0x1.e542ba4020225p-62, 0x1.ea72b4afe3c2fp-120},
    {0x1.71b8ef6dcf572p-66, -0x1.d043ae40c4647p-120},
    {0x1.0ce396db7f853p-70, -0x1.aebcdbd20331cp-124},
    {0x1.761b41316381ap-75, -0x1.3423c7d91404fp-130},
    {0x1.f2cf01972f578p-80, -0x1.9ada5fcc1ab14p-135},
    {0x1.3f3ccdd165fa9p-84, -0x1.58ddadf344487p-139},
    {0x1.88e85fc6a4e5ap-89, -0x1.71c37ebd16540p-143},
    {0x1.d1ab1c2dccea3p-94, 0x1.054d0c78aea14p-149},
};
/* In parts: of the first three any multiple below 2^15 is a double. */
static const double exact_ln2[4] = {0x1.62e42fefa0000p-1, 0x1.cf79abc9e0000p-40,
				    0x1.d9cc01f978000p-79, 0x1.abd03cd0c99cap-118};
static const double exact_half_pi[4] = {0x1.921fb54440000p+0, 0x1.68c234c4c0000p-39,
					0x1.98a2e03700000p-77, 0x1.cd129024e088ap-115};

/* ---- sums and products ---- */

/* Exact; |a| >= |b| */
static struct exact exact_sum_of_larger(double a, double b)
{
	const double sum = a + b;

	return (struct exact){sum, b - (sum - a)};
}

static struct exact exact_sum(double a, double b) /* exact */
{
	const double sum = a + b, of_b = sum - a;

	return (struct exact){sum, (a - (sum - of_b)) + (b - of_b)};
}

static struct exact exact_product(double a, double b) /* exact */
{
	const double product = a * b, big_a = EXACT_SPLIT * a, big_b = EXACT_SPLIT * b;
	const double high_a = big_a - (big_a - a), high_b = big_b - (big_b - b);
	const double low_a = a - high_a, low_b = b - high_b;

	return (struct exact){product,
			      ((high_a * high_b - product) + high_a * low_b + low_a * high_b) +
				  low_a * low_b};
}

static struct exact exact_add(struct exact a, struct exact b)
{
	struct exact high = exact_sum(a.high, b.high);
	const struct exact low = exact_sum(a.low, b.low);

	high = exact_sum_of_larger(high.high, high.low + low.high);
	return exact_sum_of_larger(high.high, high.low + low.low);
}

static struct exact exact_times(struct exact a, struct exact b)
{
	const struct exact product = exact_product(a.high, b.high);

	return exact_sum_of_larger(product.high, product.low + (a.high * b.low + a.low * b.high));
}

static struct exact exact_over(struct exact a, struct exact b)
{
	struct exact sum = {0, 0};

	for (unsigned i = 0; i < 3; i++) {
		const double part = a.high / b.high;

		sum = exact_add(sum, (struct exact){part, 0});
		a = exact_add(a, exact_times(b, (struct exact){-part, 0}));
	}
	return sum;
}

/* x less so many times a number that is given in parts */
static struct exact exact_less(double x, double times, const double part[4])
{
	struct exact rest = {x, 0};

	for (unsigned i = 0; i < 4; i++)
		rest = exact_add(rest, (struct exact){-times * part[i], 0});
	return rest;
}

/* The series of terms first, first + step, ... below end in x, by Horner; alternating: with changing signs. */
static struct exact exact_series(struct exact x, unsigned first, unsigned step, unsigned end,
				 bool alternating)
{
	unsigned n = first + (end - 1 - first) / step * step;
	struct exact sum = exact_term[n];

	while (n > first) {
		n -= step;
		sum = exact_times(sum, x);
		if (alternating)
			sum = (struct exact){-sum.high, -sum.low};
		sum = exact_add(sum, exact_term[n]);
	}
	return sum;
}

/* ---- exp and log ---- */

/* exp(x) is (1 + what is returned) * 2^*ret_twos */
static struct exact exact_exp_less_1(double x, int *ret_twos)
{
	const double twos = rint(x / M_LN2);
	struct exact rest = exact_less(x, twos, exact_ln2), power;

	rest.high = ldexp(rest.high, -EXACT_HALVINGS);
	rest.low = ldexp(rest.low, -EXACT_HALVINGS);
	power = exact_times(rest, exact_series(rest, 1, 1, EXACT_EXP_TERMS, false));
	for (unsigned i = 0; i < EXACT_HALVINGS; i++) /* (1 + p)^2 - 1 */
		power = exact_add((struct exact){2 * power.high, 2 * power.low},
				  exact_times(power, power));
	*ret_twos = (int)twos;
	return power;
}

double exact_exp(double x)
{
	struct exact power;
	int twos;

	if (x < EXACT_LEAST || x > EXACT_MOST)
		return x < 0 ? 0 : HUGE_VAL;
	power = exact_exp_less_1(x, &twos);
	return ldexp(exact_add(power, (struct exact){1, 0}).high, twos);
}

/* One step of Newton's from what is nearly it: twice as many bits are right. */
double exact_log(double x)
{
	const double near = log(x);
	struct exact power, off;
	int twos;

	power = exact_exp_less_1(-near, &twos);
	x = ldexp(x, twos); /* x exp(-near) is x (1 + power), and nearly 1 */
	off = exact_add(exact_sum(x, -1), exact_times((struct exact){x, 0}, power));
	off = exact_add(off, (struct exact){-off.high * off.high / 2, 0});
	return exact_add((struct exact){near, 0}, off).high;
}

/* ---- sin, cos and tan ---- */

static struct exact exact_near_sin(struct exact x)
{
	return exact_times(x, exact_series(exact_times(x, x), 1, 2, EXACT_TERMS, true));
}

static struct exact exact_near_cos(struct exact x)
{
	return exact_series(exact_times(x, x), 0, 2, EXACT_TERMS, true);
}

/* Of x and so many right angles more. */
static struct exact exact_turned(double x, unsigned more)
{
	const double turns = rint(x / M_PI_2);
	const struct exact rest = exact_less(x, turns, exact_half_pi);
	const unsigned quadrant = ((unsigned)(int)turns + more) & 3;
	const struct exact value = quadrant & 1 ? exact_near_cos(rest) : exact_near_sin(rest);

	return quadrant & 2 ? (struct exact){-value.high, -value.low} : value;
}

double exact_sin(double x)
{
	return exact_turned(x, 0).high;
}

double exact_cos(double x)
{
	return exact_turned(x, 1).high;
}

double exact_tan(double x)
{
	return exact_over(exact_turned(x, 0), exact_turned(x, 1)).high;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Functions that have the same last bit on every machine: the double that is nearest to the true value. Those of libm are
 * right to a little more than half of the last bit, and which way that goes depends on its version and the processor.
 *
 * For finite numbers; sin, cos and tan for those below a million, and results that are neither subnormal nor too large. They take
 * some 0.1 to 0.5 us.
 */

#include <math.h>
#include <stdbool.h>

double exact_exp(double x);
double exact_log(double x); /* x > 0 */
double exact_sin(double x);
double exact_cos(double x);
double exact_tan(double x);

/*
 * Where a result is rounded further, libm's will do unless it is near to where that goes the other way: with any libm, whose
 * error is far below these bounds, the same comes out. Else it is computed anew with the above.
 */
/* Is rint(x) sure? |x| below 2^24. */
static inline bool exact_is_sure(double x)
{
	return fabs(fabs(x - rint(x)) - 0.5) > 1e-6;
}

/* Is (float)x? */
static inline bool exact_is_sure_float(double x)
{
	return (float)(x * (1 - 0x1p-46)) == (float)(x * (1 + 0x1p-46));
}

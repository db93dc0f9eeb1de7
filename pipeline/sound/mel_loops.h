/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Waveforms to mel spectra, to be compiled for several kinds of machines: the same operations in the same order, so the same
 * bits.
 *
 * Eight windows are worked on at once, each in a lane of its own, so a vector's width changes nothing but the time. A window
 * of n numbers is a transform of n/2 complex ones, the even numbers real, the odd ones imaginary (as everybody's), by
 * Stockham's scheme: each pass takes a factor out of the length, from one buffer to the other, and leaves
 * the numbers in order. So nothing of a loud window gets into a silent one, and silence is zeros.
 */

#include "base/base.h"

#define MEL_LANES 8
#define MEL_PASSES 14

typedef float mel_lanes __attribute__((vector_size(MEL_LANES * sizeof(float))));
typedef int32_t mel_whole __attribute__((vector_size(MEL_LANES * sizeof(int32_t))));

struct mel_complex {
	mel_lanes re, im;
};

struct mel_turn { /* a complex number of length 1 */
	float re, im;
};

struct mel_filter { /* what one mel band takes of which bins */
	uint32_t first, n;
	const float *weight;
};

struct mel_tables {
	uint32_t n_fft, n_mels;
	unsigned passes;
	struct mel_pass {
		unsigned factor;
		uint32_t length;             /* that is left before it, */
		uint32_t stride;             /* and what has been taken out of it */
		const struct mel_turn *turn; /* factor - 1 for each place in a part */
	} pass[MEL_PASSES];
	float *window;             /* n_fft; halved, for what is not halved behind the transform */
	struct mel_turn *turn;     /* of half a circle in n_fft / 2 parts */
	struct mel_filter *filter; /* n_mels */
	bool is_power;
	float log_scale; /* 0: no logarithm */
};

struct mel_work {                    /* memory of the loops, all of it aligned */
	struct mel_complex *half[2]; /* n_fft / 2 each */
	mel_lanes *bin;              /* n_fft / 2 + 1 */
	mel_lanes *band;             /* n_mels: what comes out */
};

/* at: where each lane's window begins. */
typedef void mel_fn(const struct mel_tables *tables, const struct mel_work *work,
		    const float *const at[MEL_LANES]);
mel_fn mel_plain;
/* NULL where the machine lacks AVX2. */
mel_fn *mel_avx2(void);

#define MEL_INLINE static inline __attribute__((always_inline))

/* ---- the transform ---- */

MEL_INLINE void mel_load(const struct mel_tables *tables, const float *const at[MEL_LANES],
			 struct mel_complex *to)
{
	for (uint32_t i = 0; i < tables->n_fft / 2; i++) {
		mel_lanes even, odd;

		for (unsigned l = 0; l < MEL_LANES; l++) {
			even[l] = at[l][2 * i];
			odd[l] = at[l][2 * i + 1];
		}
		to[i].re = even * tables->window[2 * i];
		to[i].im = odd * tables->window[2 * i + 1];
	}
}

/* *to = (re, im) turned; NULL: by nothing */
MEL_INLINE void mel_put(struct mel_complex *to, const mel_lanes *re, const mel_lanes *im,
			const struct mel_turn *turn)
{
	if (!turn) {
		to->re = *re;
		to->im = *im;
		return;
	}
	to->re = *re * turn->re - *im * turn->im;
	to->im = *re * turn->im + *im * turn->re;
}

/* What a pass does to the numbers of one place: from x, x + step, ... to y, y + stride, ... */
MEL_INLINE void mel_by_2(const struct mel_complex *x, size_t step, struct mel_complex *y,
			 size_t stride, const struct mel_turn *turn)
{
	const struct mel_complex a = x[0], b = x[step];
	const mel_lanes re = a.re - b.re, im = a.im - b.im;

	y[0].re = a.re + b.re;
	y[0].im = a.im + b.im;
	mel_put(&y[stride], &re, &im, turn);
}

MEL_INLINE void mel_by_3(const struct mel_complex *x, size_t step, struct mel_complex *y,
			 size_t stride, const struct mel_turn *turn)
{
	const float sine = 0.866025403784438647f;
	const struct mel_complex a = x[0], b = x[step], c = x[2 * step];
	const mel_lanes sum_re = b.re + c.re, sum_im = b.im + c.im;
	const mel_lanes mid_re = a.re - 0.5f * sum_re, mid_im = a.im - 0.5f * sum_im;
	const mel_lanes off_re = sine * (b.im - c.im), off_im = sine * (c.re - b.re);
	const mel_lanes re[2] = {mid_re + off_re, mid_re - off_re};
	const mel_lanes im[2] = {mid_im + off_im, mid_im - off_im};

	y[0].re = a.re + sum_re;
	y[0].im = a.im + sum_im;
	mel_put(&y[stride], &re[0], &im[0], turn);
	mel_put(&y[2 * stride], &re[1], &im[1], turn ? turn + 1 : NULL);
}

MEL_INLINE void mel_by_4(const struct mel_complex *x, size_t step, struct mel_complex *y,
			 size_t stride, const struct mel_turn *turn)
{
	const struct mel_complex a = x[0], b = x[step], c = x[2 * step], d = x[3 * step];
	const mel_lanes ac_re = a.re + c.re, ac_im = a.im + c.im;
	const mel_lanes a_c_re = a.re - c.re, a_c_im = a.im - c.im;
	const mel_lanes bd_re = b.re + d.re, bd_im = b.im + d.im;
	const mel_lanes off_re = b.im - d.im, off_im = d.re - b.re; /* -i (b - d) */
	const mel_lanes re[3] = {a_c_re + off_re, ac_re - bd_re, a_c_re - off_re};
	const mel_lanes im[3] = {a_c_im + off_im, ac_im - bd_im, a_c_im - off_im};

	y[0].re = ac_re + bd_re;
	y[0].im = ac_im + bd_im;
	mel_put(&y[stride], &re[0], &im[0], turn);
	mel_put(&y[2 * stride], &re[1], &im[1], turn ? turn + 1 : NULL);
	mel_put(&y[3 * stride], &re[2], &im[2], turn ? turn + 2 : NULL);
}

MEL_INLINE void mel_by_5(const struct mel_complex *x, size_t step, struct mel_complex *y,
			 size_t stride, const struct mel_turn *turn)
{
	const float cos_1 = 0.309016994374947424f, sin_1 = 0.951056516295153572f;
	const float cos_2 = -0.809016994374947424f, sin_2 = 0.587785252292473129f;
	const struct mel_complex a = x[0], b = x[step], c = x[2 * step], d = x[3 * step],
				 e = x[4 * step];
	const mel_lanes be_re = b.re + e.re, be_im = b.im + e.im;
	const mel_lanes cd_re = c.re + d.re, cd_im = c.im + d.im;
	const mel_lanes b_e_re = b.re - e.re, b_e_im = b.im - e.im;
	const mel_lanes c_d_re = c.re - d.re, c_d_im = c.im - d.im;
	const mel_lanes one_re = a.re + cos_1 * be_re + cos_2 * cd_re;
	const mel_lanes one_im = a.im + cos_1 * be_im + cos_2 * cd_im;
	const mel_lanes two_re = a.re + cos_2 * be_re + cos_1 * cd_re;
	const mel_lanes two_im = a.im + cos_2 * be_im + cos_1 * cd_im;
	/* -i times what the sines make of the differences */
	const mel_lanes off_1_re = sin_1 * b_e_im + sin_2 * c_d_im;
	const mel_lanes off_1_im = -(sin_1 * b_e_re + sin_2 * c_d_re);
	const mel_lanes off_2_re = sin_2 * b_e_im - sin_1 * c_d_im;
	const mel_lanes off_2_im = -(sin_2 * b_e_re - sin_1 * c_d_re);
	const mel_lanes re[4] = {one_re + off_1_re, two_re + off_2_re, two_re - off_2_re,
				 one_re - off_1_re};
	const mel_lanes im[4] = {one_im + off_1_im, two_im + off_2_im, two_im - off_2_im,
				 one_im - off_1_im};

	y[0].re = a.re + be_re + cd_re;
	y[0].im = a.im + be_im + cd_im;
	mel_put(&y[stride], &re[0], &im[0], turn);
	mel_put(&y[2 * stride], &re[1], &im[1], turn ? turn + 1 : NULL);
	mel_put(&y[3 * stride], &re[2], &im[2], turn ? turn + 2 : NULL);
	mel_put(&y[4 * stride], &re[3], &im[3], turn ? turn + 3 : NULL);
}

/* Nothing is turned at the first place. */
#define MEL_PASS(name)                                                                        \
	MEL_INLINE void name##_pass(const struct mel_pass *pass, const struct mel_complex *x, \
				    struct mel_complex *y)                                    \
	{                                                                                     \
		const size_t part = pass->length / pass->factor, stride = pass->stride;       \
		const size_t step = part * stride;                                            \
                                                                                              \
		for (size_t q = 0; q < stride; q++)                                           \
			name(x + q, step, y + q, stride, NULL);                               \
		for (size_t p = 1; p < part; p++) {                                           \
			const struct mel_turn *turn = pass->turn + p * (pass->factor - 1);    \
			const struct mel_complex *from = x + p * stride;                      \
			struct mel_complex *to = y + p * stride * pass->factor;               \
                                                                                              \
			for (size_t q = 0; q < stride; q++)                                   \
				name(from + q, step, to + q, stride, turn);                   \
		}                                                                             \
	}
MEL_PASS(mel_by_2)
MEL_PASS(mel_by_3)
MEL_PASS(mel_by_4)
MEL_PASS(mel_by_5)

/* Where it is then. */
MEL_INLINE const struct mel_complex *mel_transform(const struct mel_tables *tables,
						   const struct mel_work *work)
{
	unsigned at = 0;

	for (unsigned i = 0; i < tables->passes; i++, at ^= 1) {
		const struct mel_pass *pass = &tables->pass[i];
		const struct mel_complex *x = work->half[at];
		struct mel_complex *y = work->half[at ^ 1];

		if (pass->factor == 4)
			mel_by_4_pass(pass, x, y);
		else if (pass->factor == 5)
			mel_by_5_pass(pass, x, y);
		else if (pass->factor == 3)
			mel_by_3_pass(pass, x, y);
		else
			mel_by_2_pass(pass, x, y);
	}
	return work->half[at];
}

/* ---- bins, bands ---- */

/* The real numbers' transform, of which each bin's square is kept: the sum and the difference of the even and the odd
 * numbers' transforms, which stand in both halves of x. */
MEL_INLINE void mel_bins(const struct mel_tables *tables, const struct mel_complex *x,
			 mel_lanes *bin)
{
	const uint32_t half = tables->n_fft / 2;

	for (uint32_t k = 0; k <= half / 2; k++) {
		const struct mel_complex a = x[k], b = x[k ? half - k : 0];
		const mel_lanes even_re = a.re + b.re, even_im = a.im - b.im;
		const mel_lanes odd_re = a.im + b.im, odd_im = b.re - a.re;
		const float re = tables->turn[k].re, im = tables->turn[k].im;
		const mel_lanes off_re = odd_re * re - odd_im * im;
		const mel_lanes off_im = odd_re * im + odd_im * re;
		const mel_lanes low_re = even_re + off_re, low_im = even_im + off_im;
		const mel_lanes high_re = even_re - off_re, high_im = even_im - off_im;

		bin[k] = low_re * low_re + low_im * low_im;
		bin[half - k] = high_re * high_re + high_im * high_im;
	}
}

MEL_INLINE void mel_roots(mel_lanes *bin, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		for (unsigned l = 0; l < MEL_LANES; l++)
			bin[k][l] = __builtin_sqrtf(bin[k][l]);
}

/* The logarithm of what is at least 1e-10: x = 2^e m with m around 1, and ln m = 2 atanh((m - 1) / (m + 1)) by its series,
 * whose next term is below 1e-9. What is not finite becomes NaN. */
MEL_INLINE void mel_logarithm(mel_lanes *value, float scale)
{
	const mel_lanes given = *value,
			least = {1e-10f, 1e-10f, 1e-10f, 1e-10f, 1e-10f, 1e-10f, 1e-10f, 1e-10f};
	const mel_whole below = given < least;
	const mel_whole bits = ((mel_whole)least & below) | ((mel_whole)given & ~below);
	const mel_whole power = (bits - 0x3f3504f3) >> 23; /* the square root of a half */
	const mel_lanes m = (mel_lanes)(bits - power * (1 << 23));
	const mel_lanes s = (m - 1) / (m + 1), z = s * s;
	const mel_lanes sum = z * (1 / 3.0f + z * (1 / 5.0f + z * (1 / 7.0f + z * (1 / 9.0f))));
	const mel_lanes e = __builtin_convertvector(power, mel_lanes);

	*value = (e * 0.693147180559945309f + 2 * (s + s * sum)) * scale + (given - given);
}

MEL_INLINE void mel_bands(const struct mel_tables *tables, const mel_lanes *bin, mel_lanes *band)
{
	for (uint32_t j = 0; j < tables->n_mels; j++) {
		const struct mel_filter *filter = &tables->filter[j];
		mel_lanes sum = {0};

		for (uint32_t i = 0; i < filter->n; i++)
			sum += filter->weight[i] * bin[filter->first + i];
		if (tables->log_scale != 0)
			mel_logarithm(&sum, tables->log_scale);
		band[j] = sum;
	}
}

#define MEL_LOOPS(name, attribute)                                                        \
	attribute void name(const struct mel_tables *tables, const struct mel_work *work, \
			    const float *const at[MEL_LANES])                             \
	{                                                                                 \
		mel_load(tables, at, work->half[0]);                                      \
		mel_bins(tables, mel_transform(tables, work), work->bin);                 \
		if (!tables->is_power)                                                    \
			mel_roots(work->bin, tables->n_fft / 2 + 1);                      \
		mel_bands(tables, work->bin, work->band);                                 \
	}

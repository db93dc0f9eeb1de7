/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The column pass and the last step as one, for x86-64 machines with AVX2, FMA and F16C, found out
 * when they run: from sums to floats without bytes in between, and what is stored past the cache
 * drains while the next sums are made. Sixteen outputs are summed up while those before them are
 * normalized: either alone is one long chain of operations that wait for each other.
 */

#include "pipeline/engine/fuse_kernels.h"

#ifdef __x86_64__

#include "pipeline/engine/finish_avx2.h"
#include "pipeline/engine/plane_avx2.h"

struct fuse_avx2_row { /* what one is made of */
	const uint8_t *const *rows;
	const int16_t *split;
	uint32_t pairs;
};

/* Sixteen values as plane_avx2.h has them. */
FINISH_AVX2_IN void fuse_avx2_put(__m256i values, const struct finish_avx2_line *line,
				  enum pipeline_dtype dtype, bool past, uint8_t *out)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256 low = _mm256_cvtepi32_ps(_mm256_unpacklo_epi16(values, zero));
	__m256 high = _mm256_cvtepi32_ps(_mm256_unpackhi_epi16(values, zero));

	finish_avx2_put(finish_avx2_normalize(line, low), dtype, past, out);
	finish_avx2_put(finish_avx2_normalize(line, high), dtype, past,
			out + (dtype == PIPELINE_F32 ? 32 : 16));
}

/* Outputs x to x + 15 of one to three pairs, or, if that is 0, of any. Only few weights that are not
 * negative need no clipping. */
FINISH_AVX2_IN __m256i fuse_avx2_values(const struct fuse_avx2_row *row,
					const struct plane_avx2_pair pair[3], uint32_t pairs,
					size_t x)
{
	__m256i values;

	if (pairs > 0)
		return plane_avx2_few(pair, pairs, (uint32_t)x);
	values = plane_avx2_many(row->rows, row->pairs, row->split, (uint32_t)x);
	values = _mm256_max_epi16(values, _mm256_setzero_si256());
	return _mm256_min_epi16(values, _mm256_set1_epi16(255));
}

FINISH_AVX2_IN void fuse_avx2_row(const struct fuse_avx2_row *row, uint32_t pairs,
				  const struct finish_avx2_line *line, size_t n,
				  enum pipeline_dtype dtype, bool past, uint8_t *out)
{
	const struct plane_avx2_pair pair[3] = {
	    plane_avx2_pair_small(row->rows[0], row->split),
	    plane_avx2_pair_small(row->rows[pairs > 1 ? 1 : 0], row->split + (pairs > 1 ? 4 : 0)),
	    plane_avx2_pair_small(row->rows[pairs > 2 ? 2 : 0], row->split + (pairs > 2 ? 8 : 0)),
	};
	const size_t size = dtype == PIPELINE_F32 ? 4 : 2;
	uint8_t rest[16 * 4] __attribute__((aligned(32)));
	__m256i values = fuse_avx2_values(row, pair, pairs, 0);
	size_t x = 16;

	for (; x < n; x += 16, out += 16 * size) {
		__m256i next = fuse_avx2_values(row, pair, pairs, x);

		fuse_avx2_put(values, line, dtype, past, out);
		values = next;
	}
	if (x == n) {
		fuse_avx2_put(values, line, dtype, past, out);
		return;
	}
	fuse_avx2_put(values, line, dtype, false, rest);
	memcpy(out, rest, (n + 16 - x) * size);
}

/* All rows, with what is known of them made constant. */
FINISH_AVX2_IN void fuse_avx2_rows(const struct fuse_down *down, enum pipeline_dtype dtype,
				   bool past)
{
	const struct plane_table *table = down->table;
	const struct finish_avx2_line line = finish_avx2_line(down->finish, down->c);
	const size_t n = down->width;
	uint8_t *out = down->out;

	for (uint32_t y = down->y; y < down->end; y++, out += down->step) {
		const struct fuse_avx2_row row = {down->pair + (table->first[y] / 2 & down->mask),
						  table->split + 2 * (size_t)y * table->taps,
						  table->count[y] / 2};

		switch (table->overshoots ? 0 : row.pairs) {
		case 1:
			fuse_avx2_row(&row, 1, &line, n, dtype, past, out);
			break;
		case 2:
			fuse_avx2_row(&row, 2, &line, n, dtype, past, out);
			break;
		case 3:
			fuse_avx2_row(&row, 3, &line, n, dtype, past, out);
			break;
		default:
			fuse_avx2_row(&row, 0, &line, n, dtype, past, out);
			break;
		}
	}
}

FINISH_AVX2 static void fuse_avx2_down(const struct fuse_down *down)
{
	const bool past = ((uintptr_t)down->out | (uintptr_t)down->step) % 32 == 0;

	if (down->finish->dtype == PIPELINE_F16)
		fuse_avx2_rows(down, PIPELINE_F16, past);
	else if (down->finish->dtype == PIPELINE_BF16)
		fuse_avx2_rows(down, PIPELINE_BF16, past);
	else if (past)
		fuse_avx2_rows(down, PIPELINE_F32, true);
	else
		fuse_avx2_rows(down, PIPELINE_F32, false);
}

static const struct fuse_kernels fuse_avx2_kernels = {.down = fuse_avx2_down};

const struct fuse_kernels *fuse_avx2(const struct finish *finish)
{
	if (finish->dtype == PIPELINE_U8 || !finish_avx2() || finish->kernels != finish_avx2())
		return NULL;
	return plane_avx2() ? &fuse_avx2_kernels : NULL;
}

#else

const struct fuse_kernels *fuse_avx2(const struct finish *finish)
{
	(void)finish;
	return NULL;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What mixup costs in oa_next(): the sums over a batch of 256 x 3 x 224 x 224 values, against a memcpy()
 * of it, which is what OA_COPY costs.
 *
 *	mingle [ROUNDS]     9 rounds
 *
 * Each kind and the copy are measured in turn in one run, on the CPU's clock for this thread; the least of
 * the rounds counts.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/half.h"
#include "sched/mingle.h"

#define SAMPLES 256
#define VALUES (3 * 224 * 224)

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
	for (size_t i = 0; i < SAMPLES; i++)
		memcpy(to + i * bytes, from + i * bytes, bytes);
}

static void mix(unsigned kind, uint8_t *to, const uint8_t *from, size_t bytes)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		void *out = to + i * bytes;
		const void *own = from + i * bytes;
		const void *other = from + (i ? i - 1 : SAMPLES - 1) * bytes;

		if (kind == 0)
			mingle_f32(out, own, other, VALUES, 0.3);
		else if (kind == 1)
			mingle_f16(out, own, other, VALUES, 0.3);
		else
			mingle_bf16(out, own, other, VALUES, 0.3);
	}
}

static void measure(unsigned kind, unsigned rounds, uint8_t *to, const uint8_t *from)
{
	static const char *const names[] = {"f32", "f16", "bf16"};
	size_t bytes = VALUES * (kind == 0 ? sizeof(float) : sizeof(uint16_t));
	double least[2] = {1e9, 1e9};

	for (unsigned i = 0; i < rounds; i++) {
		double start = now_ms(), middle;

		copy(to, from, bytes);
		middle = now_ms();
		least[0] = BASE_MIN(least[0], middle - start);
		mix(kind, to, from, bytes);
		least[1] = BASE_MIN(least[1], now_ms() - middle);
	}
	printf("%-5s copy %7.2f ms   mixup %7.2f ms   %.2f x\n", names[kind], least[0], least[1],
	       least[1] / least[0]);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 9;
	size_t bytes = (size_t)SAMPLES * VALUES * sizeof(float);
	float *from = malloc(bytes), *to = malloc(bytes);
	uint16_t half[2];

	if (!from || !to || rounds < 1) {
		fprintf(stderr, "usage: mingle [ROUNDS]; or no memory\n");
		return 1;
	}
	half[0] = half[1] = half_f16(0.75f); /* a number in each type */
	for (size_t i = 0; i < bytes / sizeof(half); i++)
		memcpy((uint8_t *)from + i * sizeof(half), half, sizeof(half));
	memset(to, 0, bytes);
	for (unsigned kind = 0; kind < 3; kind++)
		measure(kind, rounds, (uint8_t *)to, (const uint8_t *)from);
	free(from);
	free(to);
	return 0;
}

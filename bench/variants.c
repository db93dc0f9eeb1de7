/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variants [--rounds N] [--files N] FOLDER: what several pipelines take of a core when one run makes
 * them all of each photograph, beside what each takes in a run of its own.
 *
 * The photographs of FOLDER (whatever lies in it or below, by name) are read once, before. They are
 * taken in blocks; in a block the pipelines of a set by themselves and the set in one run take turns,
 * and of each the least thread CPU time over the rounds counts, so that other work on the machine
 * and its changes of speed matter to all alike. Outputs go round through more memory than the caches
 * have, as slots do. Passes, ops and copies are the run's own counts.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "bench/photos.h"
#include "pipeline/pipeline.h"

#define VARIANTS_BLOCK 25 /* photographs */
#define VARIANTS_SLOTS 24 /* outputs of a pipeline that are written in turn */
#define VARIANTS_MOST 4   /* pipelines of a set */

#define NORM(mean)                                                                       \
	",{\"op\":\"normalize\",\"mean\":" mean ",\"std\":[0.229,0.224,0.225]},{\"op\":" \
	"\"layout\"}"
#define FLOAT NORM("[0.485,0.456,0.406]")
#define CROP "{\"op\":\"random_resized_crop\",\"size\":224}"
#define TRAIN CROP ",{\"op\":\"hflip\"}"
#define JITTER ",{\"op\":\"color_jitter\",\"brightness\":0.4,\"contrast\":0.4,\"saturation\":0.4}"
#define RESIZE "{\"op\":\"resize\",\"size\":256}"

static const struct variants_set {
	const char *what;
	const char *ops[VARIANTS_MOST]; /* behind decode */
} variants_sets[] = {
    {"float32 and uint8 of the same crops", {TRAIN FLOAT, TRAIN}},
    {"float32, uint8, other means, erased behind normalize",
     {TRAIN FLOAT, TRAIN, TRAIN NORM("0.5"), TRAIN FLOAT ",{\"op\":\"random_erasing\"}"}},
    {"with and without a flip", {CROP FLOAT, TRAIN FLOAT}},
    {"the same crops, one jittered", {TRAIN FLOAT, TRAIN JITTER FLOAT}},
    {"jittered: float32, uint8, erased, turned",
     {TRAIN JITTER FLOAT, TRAIN JITTER, TRAIN JITTER ",{\"op\":\"random_erasing\"}" FLOAT,
      TRAIN JITTER ",{\"op\":\"rotate\",\"degrees\":15}" FLOAT}},
    {"the middle and a random part of the same resize",
     {RESIZE ",{\"op\":\"center_crop\",\"size\":224}" FLOAT,
      RESIZE ",{\"op\":\"random_crop\",\"size\":224}" FLOAT}},
    {"small parts of the same resize",
     {RESIZE ",{\"op\":\"center_crop\",\"size\":64}" FLOAT,
      RESIZE ",{\"op\":\"random_crop\",\"size\":64}" FLOAT}},
    {"other crops: the decode alone",
     {TRAIN FLOAT, "{\"op\":\"random_resized_crop\",\"size\":160}" FLOAT}},
};

struct variants_one {
	struct pipeline *pipeline;
	struct pipeline_run *run; /* of it alone */
	uint8_t *slots;
	size_t bytes;
};

struct variants {
	struct photos photos;
	unsigned count; /* of pipelines */
	struct variants_one one[VARIANTS_MOST];
	struct pipeline_run *run; /* of all */
	unsigned slot;
};

static _Noreturn void variants_die(const char *what)
{
	fprintf(stderr, "variants: %s\n", what);
	exit(1);
}

/* ---- pipelines ---- */

static void variants_add(struct variants *v, const char *ops)
{
	struct variants_one *one = &v->one[v->count++];
	const struct pipeline_field *fields;
	const struct pipeline *pipeline;
	char text[1024];
	struct diag diag;
	int size = snprintf(text, sizeof(text), "[{\"op\":\"decode\"},%s]", ops);

	if (pipeline_compile(text, (size_t)size, &one->pipeline, &diag) != 0)
		variants_die(diag.text);
	pipeline = one->pipeline;
	pipeline_fields(pipeline, &fields);
	one->bytes = base_align_up(fields[0].bytes, 64);
	one->slots = aligned_alloc(64, VARIANTS_SLOTS * one->bytes);
	if (!one->slots || pipeline_run_new(&pipeline, 1, &one->run) != 0)
		variants_die("no memory");
	memset(one->slots, 1, VARIANTS_SLOTS * one->bytes);
}

static void variants_init(struct variants *v, const struct variants_set *set)
{
	const struct pipeline *pipelines[VARIANTS_MOST];

	v->count = 0;
	while (v->count < VARIANTS_MOST && set->ops[v->count])
		variants_add(v, set->ops[v->count]);
	for (unsigned i = 0; i < v->count; i++)
		pipelines[i] = v->one[i].pipeline;
	if (pipeline_run_new(pipelines, v->count, &v->run) != 0)
		variants_die("no memory");
}

static void variants_fini(struct variants *v)
{
	pipeline_run_free(v->run);
	for (unsigned i = 0; i < v->count; i++) {
		pipeline_run_free(v->one[i].run);
		pipeline_free(v->one[i].pipeline);
		free(v->one[i].slots);
	}
}

/* ---- measuring ---- */

static double variants_now_us(void)
{
	return (double)base_cpu_ns() / 1e3;
}

/* Row i is pipeline i alone, row count all of them. Microseconds of one block. */
static double variants_block(struct variants *v, unsigned row, unsigned first, unsigned end)
{
	const double start = variants_now_us();

	for (unsigned f = first; f < end; f++) {
		const struct pipeline_key key = {20261122, 1, f};
		const struct photo *photo = &v->photos.photo[f];
		struct pipeline_out out[VARIANTS_MOST];
		struct pipeline_error error;
		int64_t label;

		v->slot = (v->slot + 1) % VARIANTS_SLOTS;
		for (unsigned i = 0; i < v->count; i++)
			out[i] = (struct pipeline_out){
			    {v->one[i].slots + v->slot * v->one[i].bytes, &label}};
		if (row < v->count)
			pipeline_run_sample(v->one[row].run, 1, photo->data, photo->size, 0, &key,
					    &out[row], &error);
		else
			pipeline_run_sample(v->run, (1U << row) - 1, photo->data, photo->size, 0,
					    &key, out, &error);
	}
	return variants_now_us() - start;
}

static void variants_measure(struct variants *v, unsigned rounds, double *sum)
{
	for (unsigned first = 0; first < v->photos.n; first += VARIANTS_BLOCK) {
		double best[VARIANTS_MOST + 1] = {0};

		for (unsigned round = 0; round < rounds; round++) {
			for (unsigned row = 0; row <= v->count; row++) {
				double took = variants_block(
				    v, row, first, BASE_MIN(first + VARIANTS_BLOCK, v->photos.n));

				if (round == 0 || took < best[row])
					best[row] = took;
			}
		}
		for (unsigned row = 0; row <= v->count; row++)
			sum[row] += best[row];
	}
}

static void variants_report(struct variants *v, const struct variants_set *set, unsigned rounds)
{
	double sum[VARIANTS_MOST + 1] = {0}, apart = 0;
	struct pipeline_work work;
	unsigned samples = rounds * v->photos.n;

	variants_init(v, set);
	variants_measure(v, rounds, sum);
	pipeline_run_work(v->run, &work);
	for (unsigned i = 0; i < v->count; i++)
		apart += sum[i];
	printf("| %s | %u | %.0f | %.0f | %.0f | %.2f | %.2f | %.2f, %.2f, %.2f |\n", set->what,
	       v->count, sum[0] / v->photos.n, apart / v->photos.n, sum[v->count] / v->photos.n,
	       sum[v->count] / sum[0], sum[v->count] / apart, (double)work.passes / samples,
	       (double)work.ops / samples, (double)work.copies / samples);
	variants_fini(v);
}

int main(int argc, char **argv)
{
	struct variants variants = {.count = 0};
	unsigned rounds = 5, most = 400;
	int i = 1;

	for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
		if (strcmp(argv[i], "--rounds") == 0)
			rounds = (unsigned)strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--files") == 0)
			most = (unsigned)strtoul(argv[i + 1], NULL, 10);
	}
	if (i + 1 != argc || most < 1 || rounds < 1) {
		fprintf(stderr, "usage: variants [--rounds N] [--files N] FOLDER\n");
		return 2;
	}
	photos_read(argv + i, most, NULL, NULL, &variants.photos);
	printf("%u photographs, least of %u rounds; µs an image\n\n"
	       "| set | pipelines | the first alone | each alone, added up | in one run | of the "
	       "first | of the sum | passes, ops, copies |\n"
	       "| --- | --- | --- | --- | --- | --- | --- | --- |\n",
	       variants.photos.n, rounds);
	for (unsigned s = 0; s < BASE_ARRAY_LEN(variants_sets); s++)
		variants_report(&variants, &variants_sets[s], rounds);
	photos_free(&variants.photos);
	return 0;
}

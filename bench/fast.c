/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast [--files N] FOLDER: what decode's "fast" changes, in values of 0 to 255.
 *
 * The photographs of FOLDER (JPEG files in it or below, by name) go through pipelines twice, exact
 * and fast, with the same draws. For each scale that fast chose: how many photographs, and the
 * mean, the largest and the mean square of the differences of all their values, the latter as PSNR
 * (10 log10(255^2 / mean square)). Where fast decodes nothing smaller there is nothing to differ;
 * that is checked, too.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/photos.h"
#include "pipeline/engine/reduce.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/spec.h"

#define FAST_SCALES (DECODE_MAX_SHIFT + 1)

struct fast_error { /* of the photographs of one scale */
	unsigned photographs, most;
	uint64_t values, sum, squares;
};

struct fast_side { /* exact, or fast */
	struct op_list ops;
	struct pipeline *pipeline;
	struct pipeline_run *run;
	uint8_t *image;
	size_t bytes;
};

static const struct fast_case {
	const char *what, *ops; /* behind decode */
} fast_cases[] = {
    {"random_resized_crop 224", "{\"op\":\"random_resized_crop\",\"size\":224},{\"op\":\"hflip\"}"},
    {"resize 256, center_crop 224",
     "{\"op\":\"resize\",\"size\":256},{\"op\":\"center_crop\",\"size\":224}"},
    {"random_resized_crop 128", "{\"op\":\"random_resized_crop\",\"size\":128},{\"op\":\"hflip\"}"},
    {"resize 128, center_crop 128",
     "{\"op\":\"resize\",\"size\":128},{\"op\":\"center_crop\",\"size\":128}"},
    {"resize 64, center_crop 64",
     "{\"op\":\"resize\",\"size\":64},{\"op\":\"center_crop\",\"size\":64}"},
};

struct fast {
	struct photos photos;
	struct decode *decode;
	struct fast_side side[2];
	struct fast_error error[FAST_SCALES];
};

static _Noreturn void fast_die(const char *what)
{
	fprintf(stderr, "fast: %s\n", what);
	exit(1);
}

/* ---- pipelines ---- */

static void fast_side_init(struct fast_side *side, const char *decode, const char *ops)
{
	const struct pipeline_field *fields;
	const struct pipeline *pipeline;
	char text[1024];
	struct diag diag;
	int size = snprintf(text, sizeof(text), "[%s,%s]", decode, ops);

	if (spec_parse(text, (size_t)size, &side->ops, &diag) != 0 ||
	    pipeline_compile(text, (size_t)size, &side->pipeline, &diag) != 0)
		fast_die(diag.text);
	pipeline = side->pipeline;
	pipeline_fields(pipeline, &fields);
	side->bytes = fields[0].bytes;
	side->image = malloc(side->bytes);
	if (!side->image || pipeline_run_new(&pipeline, 1, &side->run) != 0)
		fast_die("no memory");
}

static void fast_side_fini(struct fast_side *side)
{
	pipeline_run_free(side->run);
	pipeline_free(side->pipeline);
	free(side->image);
}

static bool fast_run(struct fast_side *side, const uint8_t *data, size_t size,
		     const struct pipeline_key *key)
{
	int64_t label;
	const struct pipeline_out out = {.field = {side->image, &label}};
	struct pipeline_error error;

	return pipeline_run_sample(side->run, 1, data, size, 0, key, &out, &error) == 0;
}

/* What fast chooses for an open picture. */
static unsigned fast_shift(const struct fast *fast, const struct pipeline_key *key)
{
	struct decode_about about;
	struct reduce reduce;
	struct draw draw;

	draw_init(&draw, key);
	decode_tell(fast->decode, &about);
	reduce_choose(&fast->side[1].ops, &draw, &about, &reduce);
	return reduce.shift;
}

/* ---- differences ---- */

static void fast_add(struct fast_error *error, const uint8_t *a, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned far = (unsigned)abs(a[i] - b[i]);

		error->most = BASE_MAX(error->most, far);
		error->sum += far;
		error->squares += far * far;
	}
	error->values += n;
	error->photographs++;
}

static void fast_photograph(struct fast *fast, unsigned i)
{
	const struct pipeline_key key = {20261121, 1, i};
	struct pipeline_error error;
	uint32_t height, width;
	const struct photo photo = fast->photos.photo[i];

	if (decode_open(fast->decode, photo.data, photo.size, &height, &width, &error) == 0 &&
	    fast_run(&fast->side[0], photo.data, photo.size, &key)) {
		if (!fast_run(&fast->side[1], photo.data, photo.size, &key))
			fast_die("fast refuses what exact takes");
		fast_add(&fast->error[fast_shift(fast, &key)], fast->side[0].image,
			 fast->side[1].image, fast->side[0].bytes);
	}
	decode_close(fast->decode);
}

static void fast_report(const struct fast *fast, const char *what)
{
	for (unsigned shift = 0; shift < FAST_SCALES; shift++) {
		const struct fast_error *error = &fast->error[shift];
		double values = (double)error->values;

		if (shift == 0 && error->most > 0)
			fast_die("a picture in its own size differs");
		if (error->photographs == 0)
			continue;
		printf("| %s | 1/%u | %u | %.2f | %u | ", what, 1u << shift, error->photographs,
		       (double)error->sum / values, error->most);
		if (error->squares > 0)
			printf("%.1f dB |\n",
			       10 * log10(255.0 * 255.0 * values / (double)error->squares));
		else
			printf("same |\n");
	}
}

static void fast_case(struct fast *fast, const struct fast_case *which)
{
	memset(fast->error, 0, sizeof(fast->error));
	fast_side_init(&fast->side[0], "{\"op\":\"decode\"}", which->ops);
	fast_side_init(&fast->side[1], "{\"op\":\"decode\",\"fast\":true}", which->ops);
	for (unsigned i = 0; i < fast->photos.n; i++)
		fast_photograph(fast, i);
	fast_report(fast, which->what);
	fast_side_fini(&fast->side[0]);
	fast_side_fini(&fast->side[1]);
}

int main(int argc, char **argv)
{
	struct fast fast = {.photos.n = 0};
	unsigned most = 2000;
	int i = 1;

	if (argc > 3 && strcmp(argv[1], "--files") == 0) {
		most = (unsigned)strtoul(argv[2], NULL, 10);
		i = 3;
	}
	if (i + 1 != argc || most < 1) {
		fprintf(stderr, "usage: fast [--files N] FOLDER\n");
		return 2;
	}
	if (decode_new(&fast.decode) != 0)
		fast_die("no memory");
	photos_read(argv + i, most, NULL, NULL, &fast.photos);
	printf("| pipeline | scale | photographs | mean | largest | PSNR |\n"
	       "| --- | --- | --- | --- | --- | --- |\n");
	for (unsigned c = 0; c < BASE_ARRAY_LEN(fast_cases); c++)
		fast_case(&fast, &fast_cases[c]);
	photos_free(&fast.photos);
	decode_free(fast.decode);
	return 0;
}

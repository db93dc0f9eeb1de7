/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline [--rounds N] [--pipeline NAME|SPEC] FILE...: time of a pipeline on one core, per image,
 * beside the bare decode of the same files by libjpeg-turbo (through pipeline/decode.h) in the same
 * run, and the ratio of both, which is what can be compared between machines.
 *
 * Files are read once, before. Rounds of the measurements take turns, so that a machine that
 * changes its speed changes it for all; the least time over the rounds counts for each.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "pipeline/decode.h"
#include "pipeline/engine.h"
#include "pipeline/pipeline.h"

struct bench_file {
	uint8_t *data;
	size_t size;
};

struct bench {
	struct bench_file *files;
	unsigned n_files;
	struct pipeline *pipeline;
	struct pipeline_run *run;
	struct pipeline_out out;
	struct decode *decode;
	struct picture_buffer buffer;
	uint64_t lap;
};

static int bench_read(struct bench *bench, const char *name)
{
	struct bench_file file = {0};
	FILE *in = fopen(name, "rb");
	uint8_t block[65536];
	size_t n;

	if (!in) {
		perror(name);
		return -1;
	}
	while ((n = fread(block, 1, sizeof(block), in)) > 0) {
		uint8_t *grown = realloc(file.data, file.size + n);

		if (!grown)
			break;
		memcpy(grown + file.size, block, n);
		file.data = grown;
		file.size += n;
	}
	fclose(in);
	bench->files[bench->n_files++] = file;
	return 0;
}

static int bench_compile(struct bench *bench, const char *spec)
{
	const char *named = pipeline_named(spec);
	const struct pipeline_field *fields;
	const struct pipeline *pipeline;
	struct diag diag;
	unsigned n;

	spec = named ? named : spec;
	if (pipeline_compile(spec, strlen(spec), &bench->pipeline, &diag) != 0) {
		fprintf(stderr, "pipeline: %s\n", diag.text);
		return -1;
	}
	n = pipeline_fields(bench->pipeline, &fields);
	for (unsigned i = 0; i < n; i++) {
		bench->out.field[i] = malloc(fields[i].bytes);
		if (!bench->out.field[i])
			return -1;
	}
	pipeline = bench->pipeline;
	return pipeline_run_new(&pipeline, 1, &bench->run);
}

/* ---- what is measured: microseconds an image ---- */

static void bench_run_one(struct bench *bench, unsigned i)
{
	const struct pipeline_key key = {1, bench->lap, i};
	struct pipeline_error error;

	pipeline_run_sample(bench->run, 1, bench->files[i].data, bench->files[i].size, 0, &key,
			    &bench->out, &error);
}

static void bench_decode_one(struct bench *bench, unsigned i)
{
	struct pipeline_error error;
	struct picture picture;
	uint32_t height, width;

	if (decode_open(bench->decode, bench->files[i].data, bench->files[i].size, &height, &width,
			&error) == 0)
		decode_whole(bench->decode, &bench->buffer, &picture, &error);
}

static double bench_round(struct bench *bench, void (*one)(struct bench *bench, unsigned i))
{
	uint64_t start = base_now_ns();

	for (unsigned i = 0; i < bench->n_files; i++)
		one(bench, i);
	return (double)(base_now_ns() - start) / 1e3 / bench->n_files;
}

static void bench_fini(struct bench *bench)
{
	for (unsigned i = 0; i < bench->n_files; i++)
		free(bench->files[i].data);
	for (unsigned i = 0; i < PIPELINE_MAX_FIELDS; i++)
		free(bench->out.field[i]);
	pipeline_run_free(bench->run);
	pipeline_free(bench->pipeline);
	decode_free(bench->decode);
	picture_buffer_fini(&bench->buffer);
	free(bench->files);
}

int main(int argc, char **argv)
{
	struct bench bench = {0};
	const char *spec = "imagenet-train";
	double decode_us = 1e12, run_us = 1e12;
	unsigned rounds = 5;
	int i = 1;

	for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
		if (strcmp(argv[i], "--rounds") == 0)
			rounds = (unsigned)strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--pipeline") == 0)
			spec = argv[i + 1];
	}
	bench.files = calloc((size_t)argc, sizeof(*bench.files));
	if (i >= argc || !bench.files || decode_new(&bench.decode) != 0 ||
	    bench_compile(&bench, spec) != 0) {
		fprintf(stderr, "usage: pipeline [--rounds N] [--pipeline NAME|SPEC] FILE...\n");
		return 2;
	}
	for (; i < argc; i++) {
		if (bench_read(&bench, argv[i]) != 0)
			return 1;
	}
	for (bench.lap = 0; bench.lap < rounds; bench.lap++) {
		double decode = bench_round(&bench, bench_decode_one);
		double run = bench_round(&bench, bench_run_one);

		decode_us = BASE_MIN(decode_us, decode);
		run_us = BASE_MIN(run_us, run);
	}
	printf("%u files, least of %u rounds: whole decode %.0f us, %.24s %.0f us an image, ratio "
	       "%.2f\n",
	       bench.n_files, rounds, decode_us, spec, run_us, run_us / decode_us);
	bench_fini(&bench);
	return 0;
}

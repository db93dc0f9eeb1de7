/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pixels SPEC SEED NONCE FILE...: what a pipeline makes of files, for parity.py.
 *
 * For each file, on standard output, little endian: outcome (0, or the stage of the error) and
 * size of the image in bytes, both 32 bits,
 * OP_MAX_DRAWN doubles for every op of the spec (what it drew, in its own order: op_run.h and the
 * op's file; 0 else), then the image's bytes.
 * A file's sample id is its number on the command line, from 0. With PIXELS_ENGINE=plain the plain
 * engine runs.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pipeline/engine/steps.h"
#include "pipeline/pipeline.h"
#include "pipeline/ops/apply.h"
#include "pipeline/spec/spec.h"
#include "tests/pipeline/engine_plain.h"

struct pixels {
	const struct engine *engine;
	struct op_list ops;
	struct shape shape;
	struct engine_program *program;
	struct engine_scratch *scratch;
	uint8_t *out;
	size_t out_size;
};

static int pixels_init(struct pixels *pixels, const char *spec)
{
	const char *wish = getenv("PIXELS_ENGINE"), *named = pipeline_named(spec);
	const struct pipeline_field *fields;
	struct pipeline *pipeline;
	struct diag diag;

	spec = named ? named : spec;
	if (pipeline_compile(spec, strlen(spec), &pipeline, &diag) != 0 ||
	    spec_parse(spec, strlen(spec), &pixels->ops, &diag) != 0 ||
	    shape_infer(&pixels->ops, &pixels->shape, &diag) != 0) {
		fprintf(stderr, "pixels: %s\n", diag.text);
		return -1;
	}
	pipeline_fields(pipeline, &fields);
	pixels->out_size = fields[0].bytes;
	pipeline_free(pipeline);
	pixels->engine = wish && strcmp(wish, "plain") == 0 ? &engine_plain : &engine_fused;
	pixels->out = malloc(pixels->out_size);
	if (!pixels->out)
		return -1;
	if (pixels->engine->compile(&pixels->ops, &pixels->shape, &pixels->program) != 0)
		return -1;
	return pixels->engine->scratch_new(pixels->program, &pixels->scratch);
}

static void pixels_fini(struct pixels *pixels)
{
	pixels->engine->scratch_free(pixels->scratch);
	pixels->engine->program_free(pixels->program);
	free(pixels->out);
}

static void pixels_put(int32_t value)
{
	fwrite(&value, sizeof(value), 1, stdout);
}

static void pixels_put_drawn(const struct op_drawn *drawn)
{
	fwrite(drawn->number, sizeof(drawn->number[0]), OP_MAX_DRAWN, stdout);
}

/* What the ops draw for this sample. The pictures are made on the way, since the draws of an op
 * depend on the size that it meets. */
static void pixels_put_draws(const struct pixels *pixels, struct steps_scratch *scratch,
			     const void *data, size_t size, const struct pipeline_key *key)
{
	struct pipeline_error error;
	struct picture picture = {0};
	uint32_t height, width;
	struct draw draw;
	int r;

	draw_init(&draw, key);
	if (pixels->shape.by_exif)
		decode_by_exif(scratch->decode);
	r = decode_open(scratch->decode, data, size, &height, &width, &error);
	if (r == 0)
		r = decode_whole(scratch->decode, &scratch->buffer[0], &picture, &error);
	for (unsigned i = 0; i < pixels->ops.count; i++) {
		const struct op *op = &pixels->ops.op[i];
		struct op_drawn drawn;

		memset(&drawn, 0, sizeof(drawn));
		if (apply_skips(&pixels->ops, i, &draw)) {
			pixels_put_drawn(&drawn);
			continue;
		}
		if (r == 0 && i < pixels->shape.pixel_ops)
			op_draw(op, i, &draw, picture.height, picture.width, &drawn);
		else if (r == 0)
			op_draw(op, i, &draw, pixels->shape.height, pixels->shape.width, &drawn);
		pixels_put_drawn(&drawn);
		if (r == 0 && i > 0 && i < pixels->shape.pixel_ops)
			r = steps_op(scratch, op, &drawn, &picture, &error);
	}
}

static uint8_t *pixels_read(const char *name, size_t *ret_size)
{
	FILE *file = fopen(name, "rb");
	uint8_t *data = NULL;
	long size;

	if (!file)
		return NULL;
	if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0) {
		rewind(file);
		data = malloc((size_t)size + 1);
		*ret_size = data ? fread(data, 1, (size_t)size, file) : 0;
	}
	fclose(file);
	return data;
}

static int pixels_file(struct pixels *pixels, const char *name, const struct pipeline_key *key)
{
	struct pipeline_error error = {0};
	struct steps_scratch *scratch;
	size_t size;
	uint8_t *data = pixels_read(name, &size);
	int r;

	if (!data || steps_scratch_new(&scratch) != 0) {
		perror(name);
		return -1;
	}
	r = pixels->engine->run(pixels->program, pixels->scratch, data, size, key, pixels->out,
				&error);
	if (r != 0)
		fprintf(stderr, "%s: stage %d: %s\n", name, (int)error.stage, error.text);
	pixels_put(r != 0 ? (int32_t)error.stage : 0);
	pixels_put(r != 0 ? 0 : (int32_t)pixels->out_size);
	pixels_put_draws(pixels, scratch, data, size, key);
	if (r == 0)
		fwrite(pixels->out, 1, pixels->out_size, stdout);
	steps_scratch_free(scratch);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	struct pixels pixels = {0};
	struct pipeline_key key;

	if (argc < 4 || pixels_init(&pixels, argv[1]) != 0) {
		fprintf(stderr, "usage: pixels SPEC SEED NONCE FILE...\n");
		return 2;
	}
	key.seed = strtoull(argv[2], NULL, 0);
	key.nonce = strtoull(argv[3], NULL, 0);
	for (int i = 4; i < argc; i++) {
		key.sample = (uint64_t)(i - 4);
		if (pixels_file(&pixels, argv[i], &key) != 0)
			return 1;
	}
	pixels_fini(&pixels);
	return fflush(stdout) == 0 ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pixels [--rounds N] [--files N] [--plain] [--mean] FOLDER: what the image pipeline takes of a core, beside what
 * libjpeg-turbo takes to decode no more than the same parts of the same photographs.
 *
 * The photographs of FOLDER (whatever lies in it or below, by name) are read once, before; with
 * --plain without progressive ones, which both sides leave to libjpeg-turbo, whole. For each
 * the ImageNet training pipeline draws its crop, and the evaluation pipeline knows what rows and
 * columns its output's taps reach. The unit is libjpeg-turbo's bare decode of that: from the file's
 * head to the part's last row, with jpeg_crop_scanline and jpeg_skip_scanlines, into one row that is
 * written over and over; no margin, nothing after it. Everything else is a ratio to it.
 *
 * Photographs are taken in blocks. A round goes through all blocks, and in a block the rows of the
 * table take turns; of each block and row the least thread CPU time over the rounds counts, with --mean
 * the mean: for who compares it with something of which there is no least. So a
 * machine that changes its speed, or has other work, changes all rows. Crops are the same in every
 * round. They have some 440 widths and 430 heights, whose tables a run keeps, as it does in training
 * (plane_cache.c). Outputs go round through a batch that is larger than the caches, and in huge
 * pages, as slots are (doc/decisions/050).
 */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <jpeglib.h>
#include "base/base.h"
#include "bench/photos.h"
#include "pipeline/engine/drive.h"
#include "pipeline/formats/decode.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/spec.h"

#define PIXELS_BLOCK 50 /* photographs */
#define PIXELS_SLOTS 64 /* outputs that are written in turn */
#define PIXELS_BYTES ((size_t)3 * 224 * 224 * 4)
#define PIXELS_PAGE ((size_t)2 << 20)
#define PIXELS_SIDE 256 /* of a picture that is decoded already */

/* The pipelines that go through pipeline_run_sample. */
enum {
	PIXELS_TRAIN,
	PIXELS_EVAL,
	PIXELS_DECODED, /* not this one */
	PIXELS_SMALL,
	PIXELS_TRAIN_FAST,
	PIXELS_EVAL_FAST,
	PIXELS_SMALL_FAST,
	PIXELS_PIPELINES
};

struct pixels_file {
	const struct photo *photo;
	struct picture_box train, eval; /* what the pipelines need of it */
};

struct pixels_program { /* the fused engine by itself */
	struct op_list ops;
	struct shape shape;
	struct engine_program *program;
	struct engine_part part;
};

struct pixels {
	struct photos photos;
	struct pixels_file *files; /* so many as photos */
	unsigned n, most, progressive;
	bool plain; /* no progressive ones */
	bool mean;  /* of the rounds, not the least */
	struct pipeline *pipeline[PIXELS_PIPELINES];
	struct pipeline_run *run[PIXELS_PIPELINES];
	struct pixels_program program[3]; /* the first three */
	struct decode *decode, *library;
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr jpeg_error;
	uint8_t *row, *slots, *planes, *source;
	unsigned slot;
};

#define PIXELS_NORMALIZE                                                                   \
	"{\"op\":\"normalize\",\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]}," \
	"{\"op\":\"layout\"}]"
#define PIXELS_SMALL_OPS \
	"{\"op\":\"resize\",\"size\":128},{\"op\":\"center_crop\",\"size\":128}," PIXELS_NORMALIZE
#define PIXELS_DECODE_FAST "[{\"op\":\"decode\",\"fast\":true},"
static const char pixels_decoded[] = "[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":224},{"
				     "\"op\":\"hflip\"}," PIXELS_NORMALIZE;
static const char pixels_small[] = "[{\"op\":\"decode\"}," PIXELS_SMALL_OPS;
static const char pixels_train_fast[] = PIXELS_DECODE_FAST
    "{\"op\":\"random_resized_crop\",\"size\":224},{\"op\":\"hflip\"}," PIXELS_NORMALIZE;
static const char pixels_eval_fast[] = PIXELS_DECODE_FAST
    "{\"op\":\"resize\",\"size\":256},{\"op\":\"center_crop\",\"size\":224}," PIXELS_NORMALIZE;
static const char pixels_small_fast[] = PIXELS_DECODE_FAST PIXELS_SMALL_OPS;

static _Noreturn void pixels_die(const char *what)
{
	fprintf(stderr, "pixels: %s\n", what);
	exit(1);
}

static void *pixels_memory(size_t size)
{
	const size_t align = size >= PIXELS_PAGE ? PIXELS_PAGE : 64;
	void *memory = aligned_alloc(align, base_align_up(size, align));

	if (!memory)
		pixels_die("no memory");
	if (align == PIXELS_PAGE) /* where there are none, small pages do */
		(void)madvise(memory, base_align_up(size, align), MADV_HUGEPAGE);
	memset(memory, 1, size);
	return memory;
}

static struct pipeline_key pixels_key(unsigned file)
{
	return (struct pipeline_key){20261121, 1, file};
}

static uint8_t *pixels_slot(struct pixels *p)
{
	p->slot = (p->slot + 1) % PIXELS_SLOTS;
	return p->slots + p->slot * PIXELS_BYTES;
}

/* ---- the rows of the table; each does one photograph ---- */

static void pixels_bare(struct pixels *p, const struct pixels_file *file,
			const struct picture_box *box)
{
	struct jpeg_decompress_struct *jpeg = &p->jpeg;
	JDIMENSION left = box->left, width = box->width;
	JSAMPROW row = p->row + 16;

	jpeg_mem_src(jpeg, file->photo->data, file->photo->size);
	jpeg_read_header(jpeg, TRUE);
	jpeg_start_decompress(jpeg);
	jpeg_crop_scanline(jpeg, &left, &width);
	if (box->top > 0)
		jpeg_skip_scanlines(jpeg, box->top);
	for (uint32_t y = 0; y < box->height; y++)
		jpeg_read_scanlines(jpeg, &row, 1);
	jpeg_abort_decompress(jpeg);
}

static void pixels_bare_train(struct pixels *p, unsigned i)
{
	pixels_bare(p, &p->files[i], &p->files[i].train);
}

static void pixels_bare_eval(struct pixels *p, unsigned i)
{
	pixels_bare(p, &p->files[i], &p->files[i].eval);
}

static void pixels_open(struct pixels *p, const struct pixels_file *file)
{
	struct pipeline_error error;
	uint32_t height, width;

	if (decode_open(p->decode, file->photo->data, file->photo->size, &height, &width, &error) !=
	    0)
		pixels_die(error.text);
}

/* The part in bands, each left as it is. */
static void pixels_ours_bands(struct pixels *p, unsigned i)
{
	const struct pixels_file *file = &p->files[i];
	struct pipeline_error error;
	struct decode_band band;
	int r;

	pixels_open(p, file);
	do {
		r = decode_band_start(p->decode, &file->train, &error);
		for (uint32_t y = 0; r == 0 && y < file->train.height; y += band.rows)
			r = decode_band_next(p->decode, &band, &error);
	} while (r == DECODE_E_AGAIN);
	if (r != 0)
		pixels_die(error.text);
	decode_close(p->decode);
}

static void pixels_whole(struct pixels *p, unsigned i, unsigned which)
{
	const struct pipeline_key key = pixels_key(i);
	struct pipeline_error error;
	int64_t label;
	struct pipeline_out out = {.field = {pixels_slot(p), &label}};

	if (pipeline_run_sample(p->run[which], 1, p->files[i].photo->data, p->files[i].photo->size,
				0, &key, &out, &error) != 0)
		pixels_die(error.text);
}

static void pixels_whole_train(struct pixels *p, unsigned i)
{
	pixels_whole(p, i, PIXELS_TRAIN);
}

/* The same, with libjpeg-turbo's decoder. */
static void pixels_library_train(struct pixels *p, unsigned i)
{
	struct engine_part *part = &p->program[PIXELS_TRAIN].part;
	const struct pipeline_key key = pixels_key(i);
	struct pipeline_error error;

	part->out = pixels_slot(p);
	if (drive_sample(&engine_fused, p->library, part, 1, p->files[i].photo->data,
			 p->files[i].photo->size, &key, &error) != 0)
		pixels_die(error.text);
}

static void pixels_whole_eval(struct pixels *p, unsigned i)
{
	pixels_whole(p, i, PIXELS_EVAL);
}

static void pixels_whole_small(struct pixels *p, unsigned i)
{
	pixels_whole(p, i, PIXELS_SMALL);
}

static void pixels_fast_train(struct pixels *p, unsigned i)
{
	pixels_whole(p, i, PIXELS_TRAIN_FAST);
}

static void pixels_fast_eval(struct pixels *p, unsigned i)
{
	pixels_whole(p, i, PIXELS_EVAL_FAST);
}

static void pixels_fast_small(struct pixels *p, unsigned i)
{
	pixels_whole(p, i, PIXELS_SMALL_FAST);
}

static void pixels_decoded_float(struct pixels *p, unsigned i)
{
	struct engine_part *part = &p->program[PIXELS_DECODED].part;
	const struct pipeline_key key = pixels_key(i);
	const size_t stride = PIXELS_SIDE + 128;
	/* the random crop: a place within the picture */
	size_t at = i * 7 % 32 * stride + i * 13 % 32 + 64;
	struct pipeline_error error;
	const struct decode_about about = {.height = 224, .width = 224, .done = 1};
	struct decode_band band = {.stride = stride, .rows = 224};

	part->out = pixels_slot(p);
	if (engine_fused.begin(part, 1, &key, &about, &error) != 0)
		pixels_die(error.text);
	for (unsigned c = 0; c < 3; c++)
		band.plane[c] = p->planes + c * stride * PIXELS_SIDE + at;
	engine_fused.feed(part, &band);
	if (engine_fused.end(part, 1, &error) != 0)
		pixels_die(error.text);
}

static void pixels_memcpy(struct pixels *p, unsigned i)
{
	(void)i;
	memcpy(pixels_slot(p), p->source, PIXELS_BYTES);
}

enum { PIXELS_UNIT, PIXELS_UNIT_EVAL, PIXELS_MEMCPY, PIXELS_UNIT_SMALL };
static const struct pixels_row {
	const char *what;
	void (*one)(struct pixels *p, unsigned i);
	unsigned unit;     /* the row that it is compared with */
	const char *asked; /* of its speed, or of its time where it begins with a less */
} pixels_rows[] = {
    [PIXELS_UNIT] = {"libjpeg-turbo, bare decode of the training crops: the unit",
		     pixels_bare_train, PIXELS_UNIT, ""},
    [PIXELS_UNIT_EVAL] = {"libjpeg-turbo, bare decode of what evaluation needs", pixels_bare_eval,
			  PIXELS_UNIT_EVAL, ""},
    [PIXELS_MEMCPY] = {"memcpy of an output", pixels_memcpy, PIXELS_MEMCPY, ""},
    [PIXELS_UNIT_SMALL] = {"shorter side to 128, its middle, whole", pixels_whole_small,
			   PIXELS_UNIT_SMALL, ""},
    {"training pipeline, whole, libjpeg-turbo decoding", pixels_library_train, PIXELS_UNIT,
     "≥ 0.90"},
    {"our decode of the training crops", pixels_ours_bands, PIXELS_UNIT, "≥ 2.1"},
    {"training pipeline, whole", pixels_whole_train, PIXELS_UNIT, "≥ 1.9"},
    {"evaluation pipeline, whole", pixels_whole_eval, PIXELS_UNIT_EVAL, "≥ 1.8"},
    {"decoded 256 × 256 to cropped, flipped, normalized floats", pixels_decoded_float,
     PIXELS_MEMCPY, "≥ 0.87 (≤ 1.15 × its time)"},
    {"training pipeline, whole, fast", pixels_fast_train, PIXELS_UNIT, ""},
    {"evaluation pipeline, whole, fast", pixels_fast_eval, PIXELS_UNIT_EVAL, ""},
    {"shorter side to 128, its middle, whole, fast", pixels_fast_small, PIXELS_UNIT_SMALL, ""},
};
#define PIXELS_ROWS BASE_ARRAY_LEN(pixels_rows)

/* ---- preparing ---- */

static bool pixels_is_progressive(struct pixels *p, const struct photo *photo)
{
	bool is;

	jpeg_mem_src(&p->jpeg, photo->data, photo->size);
	jpeg_read_header(&p->jpeg, TRUE);
	is = p->jpeg.progressive_mode;
	jpeg_abort_decompress(&p->jpeg);
	return is;
}

/* True: the file is one to measure. */
static bool pixels_wants(void *closure, const struct photo *photo)
{
	struct pixels *p = closure;
	bool is_progressive;

	if (photo->size < 4 || memcmp(photo->data, "\xff\xd8\xff", 3) != 0)
		return false;
	is_progressive = pixels_is_progressive(p, photo);
	if (is_progressive && p->plain)
		return false;
	p->progressive += is_progressive;
	return true;
}

static void pixels_read(struct pixels *p, char *const *paths)
{
	photos_read(paths, p->most, pixels_wants, p, &p->photos);
	p->n = p->photos.n;
	p->files = calloc(p->photos.n, sizeof(*p->files));
	if (!p->files)
		pixels_die("no memory");
	for (unsigned i = 0; i < p->n; i++)
		p->files[i] = (struct pixels_file){.photo = &p->photos.photo[i]};
}

static void pixels_compile_engine(struct pixels_program *program, const char *text)
{
	struct diag diag;

	if (spec_parse(text, strlen(text), &program->ops, &diag) != 0 ||
	    shape_infer(&program->ops, &program->shape, &diag) != 0 ||
	    engine_fused.compile(&program->ops, &program->shape, &program->program) != 0 ||
	    engine_fused.scratch_new(program->program, &program->part.scratch) != 0)
		pixels_die("a pipeline does not compile");
	program->part.program = program->program;
}

static void pixels_compile(struct pixels *p, unsigned i, const char *text)
{
	struct diag diag;

	if (i < BASE_ARRAY_LEN(p->program))
		pixels_compile_engine(&p->program[i], text);
	if (i == PIXELS_DECODED)
		return;
	if (pipeline_compile(text, strlen(text), &p->pipeline[i], &diag) != 0 ||
	    pipeline_run_new((const struct pipeline *const *)&p->pipeline[i], 1, &p->run[i]) != 0)
		pixels_die("a pipeline does not compile");
}

static void pixels_find_box(struct pixels *p, unsigned i, unsigned which, struct picture_box *ret)
{
	const struct pipeline_key key = pixels_key(i);
	struct decode_about about;
	struct pipeline_error error;
	struct engine_part *part = &p->program[which].part;

	part->out = p->slots;
	decode_tell(p->decode, &about);
	if (engine_fused.begin(part, 1, &key, &about, &error) != 0)
		pixels_die(error.text);
	*ret = part->need.box;
}

static void pixels_find_boxes(struct pixels *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		struct pixels_file *file = &p->files[i];
		struct pipeline_error error;
		uint32_t height, width;

		if (decode_open(p->decode, file->photo->data, file->photo->size, &height, &width,
				&error) != 0)
			pixels_die(error.text);
		pixels_find_box(p, i, PIXELS_TRAIN, &file->train);
		pixels_find_box(p, i, PIXELS_EVAL, &file->eval);
		decode_close(p->decode);
	}
}

static void pixels_init(struct pixels *p, char *const *paths)
{
	p->row = pixels_memory((size_t)3 * 65536 + 64);
	p->slots = pixels_memory(PIXELS_SLOTS * PIXELS_BYTES);
	p->source = pixels_memory(PIXELS_BYTES);
	p->planes = pixels_memory((size_t)3 * PIXELS_SIDE * (PIXELS_SIDE + 128) + 64);
	if (decode_new(&p->decode) != 0 || decode_new(&p->library) != 0)
		pixels_die("no memory");
	decode_by_library(p->library);
	p->jpeg.err = jpeg_std_error(&p->jpeg_error);
	jpeg_create_decompress(&p->jpeg);
	pixels_read(p, paths);
	pixels_compile(p, PIXELS_TRAIN, pipeline_named("imagenet-train"));
	pixels_compile(p, PIXELS_EVAL, pipeline_named("imagenet-eval"));
	pixels_compile(p, PIXELS_DECODED, pixels_decoded);
	pixels_compile(p, PIXELS_SMALL, pixels_small);
	pixels_compile(p, PIXELS_TRAIN_FAST, pixels_train_fast);
	pixels_compile(p, PIXELS_EVAL_FAST, pixels_eval_fast);
	pixels_compile(p, PIXELS_SMALL_FAST, pixels_small_fast);
	pixels_find_boxes(p);
}

static void pixels_fini(struct pixels *p)
{
	for (unsigned i = 0; i < 3; i++) {
		engine_fused.scratch_free(p->program[i].part.scratch);
		engine_fused.program_free(p->program[i].program);
	}
	for (unsigned i = 0; i < PIXELS_PIPELINES; i++) {
		pipeline_run_free(p->run[i]);
		pipeline_free(p->pipeline[i]);
	}
	photos_free(&p->photos);
	jpeg_destroy_decompress(&p->jpeg);
	decode_free(p->decode);
	decode_free(p->library);
	free(p->files);
	free(p->row);
	free(p->slots);
	free(p->source);
	free(p->planes);
}

/* ---- measuring ---- */

static double pixels_now_us(void)
{
	return (double)base_cpu_ns() / 1e3;
}

/* took[block][row]: the least so far, or the sum, in microseconds a block. */
static void pixels_round(struct pixels *p, double (*took)[PIXELS_ROWS])
{
	for (unsigned block = 0; block * PIXELS_BLOCK < p->n; block++) {
		unsigned end = BASE_MIN((block + 1) * PIXELS_BLOCK, p->n);

		for (unsigned row = 0; row < PIXELS_ROWS; row++) {
			double *all = &took[block][row], start = pixels_now_us(), now;

			for (unsigned i = block * PIXELS_BLOCK; i < end; i++)
				pixels_rows[row].one(p, i);
			now = pixels_now_us() - start;
			if (p->mean)
				*all += now;
			else if (*all == 0 || now < *all)
				*all = now;
		}
	}
}

static void pixels_report(const struct pixels *p, double (*took)[PIXELS_ROWS], unsigned rounds)
{
	double sum[PIXELS_ROWS] = {0};

	for (unsigned block = 0; block * PIXELS_BLOCK < p->n; block++) {
		for (unsigned row = 0; row < PIXELS_ROWS; row++)
			sum[row] += took[block][row] / (p->mean ? rounds : 1);
	}
	printf("%u photographs (%u progressive), %s of %u rounds\n\n"
	       "| what | µs an image | speed | asked |\n| --- | --- | --- | --- |\n",
	       p->n, p->progressive, p->mean ? "mean" : "least", rounds);
	for (unsigned row = 0; row < PIXELS_ROWS; row++)
		printf("| %s | %.1f | %.3f | %s |\n", pixels_rows[row].what, sum[row] / p->n,
		       sum[pixels_rows[row].unit] / sum[row], pixels_rows[row].asked);
}

int main(int argc, char **argv)
{
	struct pixels pixels = {.most = 2000};
	double(*took)[PIXELS_ROWS];
	unsigned rounds = 10;
	int i = 1;

	for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		if (strcmp(argv[i], "--plain") == 0)
			pixels.plain = true;
		else if (strcmp(argv[i], "--mean") == 0)
			pixels.mean = true;
		else if (strcmp(argv[i], "--rounds") == 0)
			rounds = (unsigned)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--files") == 0)
			pixels.most = (unsigned)strtoul(argv[++i], NULL, 10);
	}
	if (i + 1 != argc || pixels.most < 1) {
		fprintf(stderr,
			"usage: pixels [--rounds N] [--files N] [--plain] [--mean] FOLDER\n");
		return 2;
	}
	pixels_init(&pixels, argv + i);
	took = calloc(pixels.n / PIXELS_BLOCK + 1, sizeof(*took));
	if (!took)
		pixels_die("no memory");
	for (unsigned round = 0; round < rounds; round++)
		pixels_round(&pixels, took);
	pixels_report(&pixels, took, rounds);
	free(took);
	pixels_fini(&pixels);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crops [--rounds N] PATH...: decoding the crops of ImageNet training, one core.
 *
 * The unit is libjpeg-turbo by itself: jpeg_crop_scanline to the crop's columns, jpeg_skip_scanlines
 * to its first row, RGB rows of three bytes that do not begin at multiples of 32 (there it stores
 * past the cache), and stop after the last row. Beside it the same crops by the quick decoder
 * (pipeline/jpeg/baseline.h) to planes. Files are read before; rounds of both take turns, each with crops
 * of its own; thread CPU time; the ratio is of sums over all rounds. A file that the quick decoder
 * leaves to libjpeg-turbo is timed for neither and counted.
 *
 * Then every byte is compared once: libjpeg-turbo's whole picture is what is right.
 */

#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include "base/base.h"
#include "bench/photos.h"
#include "pipeline/formats/decode.h"
#include "pipeline/jpeg/baseline.h"

struct bench_file {
	const uint8_t *data;
	size_t size;
	uint32_t height, width;
	bool is_quick;
};

struct bench {
	struct photos photos;
	struct bench_file *files;
	unsigned n_files;
	struct baseline *baseline;
	uint8_t *rows;
	size_t rows_size;
};

/* ---- libjpeg-turbo ---- */

struct bench_error {
	struct jpeg_error_mgr manager;
	jmp_buf escape;
};

static void bench_on_error(j_common_ptr common)
{
	longjmp(((struct bench_error *)common->err)->escape, 1);
}

static uint8_t *bench_room(struct bench *bench, size_t size)
{
	if (size + 64 > bench->rows_size) {
		free(bench->rows);
		bench->rows_size = size + 64;
		bench->rows = aligned_alloc(64, base_align_up(bench->rows_size, 64));
		if (!bench->rows)
			abort();
	}
	return bench->rows + 16;
}

/* The rows of box, or from its first column that libjpeg-turbo starts at; the whole picture if box
 * is NULL. Returns the bytes from row to row. */
static size_t bench_jpeg(struct bench *bench, const struct bench_file *file,
			 const struct picture_box *box, bool is_counted)
{
	struct jpeg_decompress_struct jpeg;
	struct bench_error error;
	size_t stride;
	uint8_t *room;

	jpeg.err = jpeg_std_error(&error.manager);
	error.manager.error_exit = bench_on_error;
	if (setjmp(error.escape)) {
		jpeg_destroy_decompress(&jpeg);
		return 0;
	}
	jpeg_create_decompress(&jpeg);
	jpeg_mem_src(&jpeg, file->data, file->size);
	jpeg_read_header(&jpeg, TRUE);
	jpeg.out_color_space = JCS_RGB;
	jpeg.dct_method = JDCT_ISLOW;
	jpeg_start_decompress(&jpeg);
	stride = base_align_up((size_t)jpeg.output_width * 3, 32);
	room = bench_room(bench, stride * jpeg.output_height);
	if (box) {
		JDIMENSION left = box->left, width = box->width;

		jpeg_crop_scanline(&jpeg, &left, &width);
		if (box->top > 0)
			jpeg_skip_scanlines(&jpeg, box->top);
	}
	for (uint32_t y = 0; y < (box ? box->height : jpeg.output_height);) {
		JSAMPROW rows[1] = {room + (is_counted ? (size_t)y * stride : 0)};

		y += jpeg_read_scanlines(&jpeg, rows, 1);
	}
	jpeg_destroy_decompress(&jpeg);
	return stride;
}

/* ---- the quick decoder ---- */

static int bench_quick(struct bench *bench, const struct bench_file *file,
		       const struct picture_box *box)
{
	struct decode_band band;
	uint32_t height, width;
	int r = baseline_open(bench->baseline, file->data, file->size, &height, &width);

	if (r == 0)
		r = baseline_start(bench->baseline, box);
	for (uint32_t y = 0; r == 0 && y < box->height; y += band.rows)
		r = baseline_next(bench->baseline, &band);
	return r;
}

/* How many bytes of a crop are not libjpeg-turbo's. */
static uint64_t bench_compare(struct bench *bench, const struct bench_file *file,
			      const struct picture_box *box)
{
	size_t stride = bench_jpeg(bench, file, NULL, true);
	const uint8_t *whole = bench->rows + 16;
	uint64_t differ = 0;
	struct decode_band band;
	uint32_t height, width;

	if (baseline_open(bench->baseline, file->data, file->size, &height, &width) != 0 ||
	    baseline_start(bench->baseline, box) != 0)
		return 0;
	for (uint32_t y = 0; y < box->height; y += band.rows) {
		if (baseline_next(bench->baseline, &band) != 0)
			return (uint64_t)box->height * box->width;
		for (uint32_t i = 0; i < band.rows; i++) {
			const uint8_t *right =
			    whole + (size_t)(box->top + y + i) * stride + (size_t)box->left * 3;

			for (size_t x = 0; x < (size_t)box->width * 3; x++)
				differ += right[x] != band.plane[x % 3][i * band.stride + x / 3];
		}
	}
	return differ;
}

/* ---- files ---- */

static void bench_read(struct bench *bench, char *const *paths)
{
	photos_read(paths, UINT_MAX, NULL, NULL, &bench->photos);
	bench->n_files = bench->photos.n;
	bench->files = calloc(bench->n_files, sizeof(*bench->files));
	if (!bench->files)
		abort();
	for (unsigned i = 0; i < bench->n_files; i++) {
		bench->files[i].data = bench->photos.photo[i].data;
		bench->files[i].size = bench->photos.photo[i].size;
	}
}

/* What is timed: every file that the quick decoder takes, with its crops of a round. */
static uint64_t bench_round(struct bench *bench, uint64_t round, bool is_quick)
{
	uint64_t start = base_cpu_ns();

	for (unsigned i = 0; i < bench->n_files; i++) {
		const struct bench_file *file = &bench->files[i];
		struct picture_box box;

		if (!file->is_quick)
			continue;
		box = photos_crop(round, i, file->height, file->width);
		if (is_quick)
			bench_quick(bench, file, &box);
		else
			bench_jpeg(bench, file, &box, false);
	}
	return base_cpu_ns() - start;
}

static unsigned bench_choose(struct bench *bench)
{
	unsigned taken = 0;

	for (unsigned i = 0; i < bench->n_files; i++) {
		struct bench_file *file = &bench->files[i];
		int r = baseline_open(bench->baseline, file->data, file->size, &file->height,
				      &file->width);
		struct picture_box all = {0, 0, file->height, file->width};

		file->is_quick = r == 0 && bench_quick(bench, file, &all) == 0;
		taken += file->is_quick;
	}
	return taken;
}

int main(int argc, char **argv)
{
	struct bench bench = {0};
	uint64_t unit = 0, quick = 0, differ = 0, rounds = 5;
	unsigned taken;
	int i = 1;

	if (argc > 2 && strcmp(argv[1], "--rounds") == 0) {
		rounds = strtoul(argv[2], NULL, 10);
		i = 3;
	}
	if (i >= argc || baseline_new(&bench.baseline) != 0) {
		fprintf(stderr, "usage: crops [--rounds N] PATH...\n");
		return 2;
	}
	bench_read(&bench, argv + i);
	taken = bench_choose(&bench);
	for (uint64_t round = 0; round < rounds; round++) {
		unit += bench_round(&bench, round, false);
		quick += bench_round(&bench, round, true);
	}
	for (unsigned f = 0; f < bench.n_files; f++) {
		struct picture_box box =
		    photos_crop(rounds, f, bench.files[f].height, bench.files[f].width);

		if (bench.files[f].is_quick)
			differ += bench_compare(&bench, &bench.files[f], &box);
	}
	if (taken > 0 && rounds > 0)
		printf(
		    "libjpeg-turbo %.1f us, quick decoder %.1f us a crop: %.3f x; %u of %u files "
		    "taken, %llu bytes differ\n",
		    (double)unit / 1e3 / (double)(taken * rounds),
		    (double)quick / 1e3 / (double)(taken * rounds), (double)unit / (double)quick,
		    taken, bench.n_files, (unsigned long long)differ);
	photos_free(&bench.photos);
	free(bench.files);
	free(bench.rows);
	baseline_free(bench.baseline);
	return differ > 0;
}

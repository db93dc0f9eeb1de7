/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forms [--rounds N] PATH...: what stored forms of photographs are worth, one core.
 *
 * The same crops of ImageNet training from each file and from each stored form of it: decoded by
 * themselves, and through the whole training pipeline; then the evaluation pipeline, from the file and from
 * what is kept behind its first ops. The unit is libjpeg-turbo's bare decode of those
 * crops: jpeg_crop_scanline to the columns, jpeg_skip_scanlines to the first row, stop after the last. All
 * is in memory; in every round each way does every file; thread CPU time; a file's time is the least of
 * all rounds, so that neighbours on the machine count little, and ratios are of sums over files. A file that some form does not suit is counted and timed for none.
 *
 * Before, every form's output of its pipeline is compared with the file's, bit for bit.
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
#include "pipeline/forms/form.h"
#include "pipeline/pipeline.h"

#define FORMS_BYTES ((size_t)3 * 224 * 224 * 4)
#define FORMS_KEPT ((size_t)64 << 20) /* of a form of pixels, at most */

enum { FORMS_TRAIN, FORMS_EVAL, FORMS_PIPELINES };
static const char *const forms_pipeline[FORMS_PIPELINES] = {"imagenet-train", "imagenet-eval"};

enum forms_form {
	FORMS_FILE = 0,
	FORMS_INDEX = FORM_INDEXED,
	FORMS_PACKED = FORM_PACKED,
	FORMS_DECODED, /* and more of the evaluation pipeline's cuts */
	FORMS_RESIZED,
	FORMS_CROPPED,
	FORMS_N
};
static const char *const forms_name[FORMS_N] = {
    "file",    "crop index",       "packed coefficients",
    "decoded", "decoded, resized", "decoded, resized, crop"};
#define FORMS_MOST_WAYS 16

struct forms_photo {
	struct photo form[FORMS_N]; /* the first is the file itself, borrowed */
	uint32_t height, width;
	uint64_t best[FORMS_MOST_WAYS]; /* ns */
};

struct forms {
	struct photos files;
	struct forms_photo *photos; /* that all forms suit */
	unsigned n;
	unsigned unfit[FORMS_N];
	uint64_t bytes[FORMS_N], made[FORMS_N]; /* made: ns */
	struct form_maker *maker;
	struct decode *decode;
	struct pipeline *pipeline[FORMS_PIPELINES];
	struct pipeline_run *run[FORMS_PIPELINES];
	uint8_t *out[2], *rows, *kept;
	size_t rows_size;
};

static _Noreturn void forms_die(const char *what)
{
	fprintf(stderr, "forms: %s\n", what);
	exit(1);
}

static struct picture_box forms_crop(unsigned i, const struct forms_photo *photo)
{
	return photos_crop(1, i, photo->height, photo->width);
}

/* ---- the ways, one photograph each ---- */

struct forms_error {
	struct jpeg_error_mgr manager;
	jmp_buf escape;
};

static void forms_on_error(j_common_ptr common)
{
	longjmp(((struct forms_error *)common->err)->escape, 1);
}

static void forms_jpeg(struct forms *f, unsigned i, unsigned form)
{
	const struct forms_photo *photo = &f->photos[i];
	struct picture_box box = forms_crop(i, photo);
	struct jpeg_decompress_struct jpeg;
	struct forms_error error;
	JDIMENSION left = box.left, width = box.width;

	jpeg.err = jpeg_std_error(&error.manager);
	error.manager.error_exit = forms_on_error;
	if (setjmp(error.escape))
		forms_die("libjpeg-turbo refuses a photograph");
	jpeg_create_decompress(&jpeg);
	jpeg_mem_src(&jpeg, photo->form[form].data, photo->form[form].size);
	jpeg_read_header(&jpeg, TRUE);
	jpeg.out_color_space = JCS_RGB;
	jpeg.dct_method = JDCT_ISLOW;
	jpeg_start_decompress(&jpeg);
	jpeg_crop_scanline(&jpeg, &left, &width);
	if (box.top > 0)
		jpeg_skip_scanlines(&jpeg, box.top);
	for (uint32_t y = 0; y < box.height;) {
		JSAMPROW rows[1] = {f->rows + 16}; /* no multiple of 32: there it avoids caches */

		y += jpeg_read_scanlines(&jpeg, rows, 1);
	}
	jpeg_destroy_decompress(&jpeg);
}

static void forms_crops(struct forms *f, unsigned i, unsigned form)
{
	const struct forms_photo *photo = &f->photos[i];
	struct picture_box box = forms_crop(i, photo);
	struct pipeline_error error;
	struct decode_band band;
	uint32_t height, width;
	int r;

	if (decode_open(f->decode, photo->form[form].data, photo->form[form].size, &height, &width,
			&error) != 0)
		forms_die(error.text);
	do {
		r = decode_band_start(f->decode, &box, &error);
		for (uint32_t y = 0; r == 0 && y < box.height; y += band.rows)
			r = decode_band_next(f->decode, &band, &error);
	} while (r == DECODE_E_AGAIN);
	if (r != 0)
		forms_die(error.text);
	decode_close(f->decode);
}

static void forms_sample(struct forms *f, unsigned i, unsigned pipeline, unsigned form, uint8_t *to)
{
	const struct photo *bytes = &f->photos[i].form[form];
	const struct pipeline_key key = {20261122, 1, i};
	struct pipeline_error error;
	int64_t label;
	struct pipeline_out out = {.field = {to, &label}};

	if (pipeline_run_sample(f->run[pipeline], 1, bytes->data, bytes->size, 0, &key, &out,
				&error) != 0)
		forms_die(error.text);
}

static void forms_train(struct forms *f, unsigned i, unsigned form)
{
	forms_sample(f, i, FORMS_TRAIN, form, f->out[0]);
}

static void forms_eval(struct forms *f, unsigned i, unsigned form)
{
	forms_sample(f, i, FORMS_EVAL, form, f->out[0]);
}

static const struct forms_way {
	const char *what;
	void (*one)(struct forms *f, unsigned i, unsigned form);
	enum forms_form form; /* those of a file stand before the same of its forms */
} forms_ways[] = {
    {"libjpeg-turbo, bare decode of the crops: the unit", forms_jpeg, FORMS_FILE},
    {"our decode of the crops, from the file", forms_crops, FORMS_FILE},
    {"our decode of the crops, crop index", forms_crops, FORMS_INDEX},
    {"our decode of the crops, packed coefficients", forms_crops, FORMS_PACKED},
    {"training pipeline, from the file", forms_train, FORMS_FILE},
    {"training pipeline, crop index", forms_train, FORMS_INDEX},
    {"training pipeline, packed coefficients", forms_train, FORMS_PACKED},
    {"training pipeline, decoded", forms_train, FORMS_DECODED},
    {"evaluation pipeline, from the file", forms_eval, FORMS_FILE},
    {"evaluation pipeline, crop index", forms_eval, FORMS_INDEX},
    {"evaluation pipeline, packed coefficients", forms_eval, FORMS_PACKED},
    {"evaluation pipeline, decoded", forms_eval, FORMS_DECODED},
    {"evaluation pipeline, decoded, resized", forms_eval, FORMS_RESIZED},
    {"evaluation pipeline, decoded, resized, crop", forms_eval, FORMS_CROPPED},
};
#define FORMS_WAYS BASE_ARRAY_LEN(forms_ways)
_Static_assert(FORMS_WAYS <= FORMS_MOST_WAYS, "a photograph has a time for each way");

/* ---- preparing ---- */

static void *forms_memory(size_t size)
{
	void *memory = aligned_alloc(64, base_align_up(size, 64));

	if (!memory)
		forms_die("no memory");
	memset(memory, 1, size);
	return memory;
}

static void forms_free(struct forms_photo *photo)
{
	for (unsigned form = 1; form < FORMS_N; form++)
		free(photo->form[form].data);
}

/* As form_make; *ret_ns: the time that took. */
static int forms_make_kept(struct forms *f, unsigned cut, const struct photo *file,
			   struct photo *ret, uint64_t *ret_ns)
{
	const struct pipeline_key key = {0, 0, 0}; /* of which a deterministic cut has nothing */
	const uint64_t start = base_cpu_ns();
	struct pipeline_error error;
	size_t room;

	if (pipeline_cut_make(f->run[FORMS_EVAL], 0, cut, file->data, file->size, &key, f->kept,
			      FORMS_KEPT, &room, &error) != 0)
		return FORM_E_UNFIT;
	*ret_ns = base_cpu_ns() - start;
	ret->size = room;
	ret->data = forms_memory(room);
	memcpy(ret->data, f->kept, room);
	return 0;
}

static int forms_make_form(struct forms *f, enum form_kind kind, const struct photo *file,
			   struct photo *ret, uint64_t *ret_ns)
{
	const uint64_t start = base_cpu_ns();
	int r = form_make(f->maker, kind, file->data, file->size, &ret->data, &ret->size);

	*ret_ns = base_cpu_ns() - start;
	return r;
}

/* Whether all forms suit it. */
static bool forms_make(struct forms *f, struct forms_photo *photo)
{
	const struct photo *file = &photo->form[FORMS_FILE];

	for (unsigned i = 1; i < FORMS_N; i++) {
		struct photo *form = &photo->form[i];
		uint64_t ns = 0;
		int r = i >= FORMS_DECODED
			    ? forms_make_kept(f, i - FORMS_DECODED + 1, file, form, &ns)
			    : forms_make_form(f, (enum form_kind)i, file, form, &ns);

		if (r < 0)
			forms_die("no memory");
		if (r != 0) {
			f->unfit[i]++;
			return false;
		}
		f->made[i] += ns;
	}
	for (unsigned form = 0; form < FORMS_N; form++)
		f->bytes[form] += photo->form[form].size;
	return true;
}

static void forms_take(struct forms *f, struct photo file)
{
	struct forms_photo photo = {.form = {file}};
	struct pipeline_error error;

	if (decode_open(f->decode, photo.form[0].data, photo.form[0].size, &photo.height,
			&photo.width, &error) != 0)
		forms_die(error.text);
	if (!forms_make(f, &photo)) {
		forms_free(&photo);
		return;
	}
	if ((size_t)photo.width * 3 + 64 > f->rows_size) {
		free(f->rows);
		f->rows_size = (size_t)photo.width * 3 + 64;
		f->rows = forms_memory(f->rows_size);
	}
	f->photos[f->n++] = photo;
}

static void forms_read(struct forms *f, char *const *paths)
{
	photos_read(paths, UINT_MAX, NULL, NULL, &f->files);
	f->photos = calloc(f->files.n, sizeof(*f->photos));
	if (!f->photos)
		forms_die("no memory");
	for (unsigned i = 0; i < f->files.n; i++)
		forms_take(f, f->files.photo[i]);
	if (f->n == 0)
		forms_die("the forms suit none of these files");
}

static void forms_prepare(struct forms *f)
{
	struct diag diag;

	if (form_maker_new(&f->maker) != 0 || decode_new(&f->decode) != 0)
		forms_die("no memory");
	for (unsigned i = 0; i < FORMS_PIPELINES; i++) {
		const char *text = pipeline_named(forms_pipeline[i]);

		if (pipeline_compile(text, strlen(text), &f->pipeline[i], &diag) != 0 ||
		    pipeline_run_new((const struct pipeline *const *)&f->pipeline[i], 1,
				     &f->run[i]) != 0)
			forms_die("no memory");
	}
	f->out[0] = forms_memory(FORMS_BYTES);
	f->out[1] = forms_memory(FORMS_BYTES);
	f->kept = forms_memory(FORMS_KEPT);
}

/* How often a photograph comes out of a form as it does not out of the file. */
static unsigned forms_compare_one(struct forms *f, unsigned i, unsigned pipeline, unsigned last)
{
	unsigned differ = 0;

	forms_sample(f, i, pipeline, FORMS_FILE, f->out[0]);
	for (unsigned form = 1; form <= last; form++) {
		forms_sample(f, i, pipeline, form, f->out[1]);
		differ += memcmp(f->out[0], f->out[1], FORMS_BYTES) != 0;
	}
	return differ;
}

static unsigned forms_compare(struct forms *f)
{
	unsigned differ = 0;

	for (unsigned i = 0; i < f->n; i++)
		differ += forms_compare_one(f, i, FORMS_TRAIN, FORMS_DECODED) +
			  forms_compare_one(f, i, FORMS_EVAL, FORMS_CROPPED);
	return differ;
}

/* ---- the table ---- */

static uint64_t forms_sum(const struct forms *f, unsigned way)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < f->n; i++)
		sum += f->photos[i].best[way];
	return sum;
}

static void forms_print(const struct forms *f, unsigned differ)
{
	unsigned file = 0;

	for (unsigned w = 0; w < FORMS_WAYS; w++) {
		const double ns = (double)forms_sum(f, w);

		printf("%-50s %7.1f us  %5.2f x the unit", forms_ways[w].what, ns / 1e3 / f->n,
		       (double)forms_sum(f, 0) / ns);
		if (forms_ways[w].form == FORMS_FILE)
			file = w;
		else
			printf("  %5.2f x the file's", (double)forms_sum(f, file) / ns);
		printf("\n");
	}
	for (unsigned form = 1; form < FORMS_N; form++)
		printf("%s: %.0f bytes, %.4f x the file's, made in %.1f us; does not suit %u "
		       "more\n",
		       forms_name[form], (double)f->bytes[form] / f->n,
		       (double)f->bytes[form] / (double)f->bytes[0],
		       (double)f->made[form] / 1e3 / f->n, f->unfit[form]);
	printf("%u photographs; %u outputs differ from the file's\n", f->n, differ);
}

static void forms_round(struct forms *f)
{
	for (unsigned w = 0; w < FORMS_WAYS; w++) {
		for (unsigned i = 0; i < f->n; i++) {
			uint64_t start = base_cpu_ns(), *best = &f->photos[i].best[w];

			forms_ways[w].one(f, i, forms_ways[w].form);
			start = base_cpu_ns() - start;
			if (*best == 0 || start < *best)
				*best = start;
		}
	}
}

static void forms_fini(struct forms *f)
{
	for (unsigned i = 0; i < f->n; i++)
		forms_free(&f->photos[i]);
	free(f->photos);
	photos_free(&f->files);
	form_maker_free(f->maker);
	decode_free(f->decode);
	for (unsigned i = 0; i < FORMS_PIPELINES; i++) {
		pipeline_run_free(f->run[i]);
		pipeline_free(f->pipeline[i]);
	}
	free(f->kept);
	free(f->out[0]);
	free(f->out[1]);
	free(f->rows);
}

int main(int argc, char **argv)
{
	unsigned long rounds = 5;
	struct forms f = {.n = 0};
	unsigned differ;
	int at = 1;

	if (argc > 2 && strcmp(argv[1], "--rounds") == 0) {
		rounds = strtoul(argv[2], NULL, 10);
		at = 3;
	}
	if (at >= argc || rounds == 0) {
		fprintf(stderr, "usage: forms [--rounds N] PATH...\n");
		return 2;
	}
	forms_prepare(&f);
	forms_read(&f, argv + at);
	differ = forms_compare(&f);
	for (; rounds > 0; rounds--)
		forms_round(&f);
	forms_print(&f, differ);
	forms_fini(&f);
	return differ > 0;
}

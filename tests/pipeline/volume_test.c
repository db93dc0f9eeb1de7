/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes: what each op takes of one whose numbers say where they stand, by a plain account of it; labels that go where the volume goes; crops
 * by label; changes of numbers; files in gzip that end behind what is taken; what is refused.
 */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "pipeline/forms/packed.h"
#include "pipeline/pipeline.h"
#include "tests/patience.h"
#include "tests/pipeline/trial.h"

#define DEPTH 7
#define HEIGHT 9
#define WIDTH 11
#define MOST_VALUES (2 * 32 * 32 * 32)
#define FILL -5

/* ---- files ---- */

struct file {
	uint8_t bytes[65536];
	size_t size;
};

/* What stands there: 10000 volume + 1000 z + 30 y + x. */
static float written(unsigned c, int z, int y, int x)
{
	return (float)(10000 * c + 1000 * z + 30 * y + x);
}

static bool is_labelled(int z, int y, int x)
{
	return z == 5 && y > 6 && x < 3;
}

/* A NIfTI-1 file of so many volumes of int16; or of labels, 1 to 3. */
static void file_make(struct file *file, unsigned volumes, bool are_labels)
{
	static const uint8_t dim[] = {4, 0, WIDTH, 0, HEIGHT, 0, DEPTH, 0, 0, 0};
	const float from = 352;
	size_t at = 352;

	memset(file->bytes, 0, 352);
	memcpy(file->bytes + 40, dim, sizeof(dim));
	file->bytes[48] = (uint8_t)volumes;
	file->bytes[70] = are_labels ? 2 : 4;
	memcpy(file->bytes + 108, &from, 4);
	memcpy(file->bytes + 344, "n+1", 4);
	for (unsigned c = 0; c < volumes; c++)
		for (int z = 0; z < DEPTH; z++)
			for (int y = 0; y < HEIGHT; y++)
				for (int x = 0; x < WIDTH; x++) {
					const int16_t number = (int16_t)written(c, z, y, x);

					if (are_labels) {
						file->bytes[at++] =
						    is_labelled(z, y, x) ? (uint8_t)(1 + x) : 0;
						continue;
					}
					memcpy(file->bytes + at, &number, 2);
					at += 2;
				}
	file->size = at;
}

/* Stored, so that a byte of the file is one of what is in it. */
static void file_zip(const struct file *from, struct file *to)
{
	z_stream stream = {.next_in = (uint8_t *)(uintptr_t)from->bytes,
			   .avail_in = (uInt)from->size,
			   .next_out = to->bytes,
			   .avail_out = sizeof(to->bytes)};

	ck_assert_int_eq(
	    deflateInit2(&stream, 0, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
	to->size = stream.total_out;
	deflateEnd(&stream);
}

/* As a wrapped data set's sample. */
static size_t record_make(uint8_t *to, const struct file *image, const struct file *labels)
{
	static const int64_t label = 5;
	struct packed_head *head = (struct packed_head *)(void *)to;
	const struct {
		enum pipeline_dtype dtype;
		unsigned ndim;
		const void *bytes;
		size_t size;
	} fields[] = {{PIPELINE_U8, 1, image->bytes, image->size},
		      {PIPELINE_I64, 0, &label, sizeof(label)},
		      {PIPELINE_U8, 1, labels->bytes, labels->size}};
	size_t at = sizeof(*head);

	memset(head, 0, sizeof(*head));
	head->magic = PACKED_MAGIC;
	head->n_fields = BASE_ARRAY_LEN(fields);
	for (unsigned f = 0; f < BASE_ARRAY_LEN(fields); f++) {
		head->field[f] =
		    (struct packed_place){.dtype = fields[f].dtype,
					  .ndim = fields[f].ndim,
					  .shape = {fields[f].ndim ? fields[f].size : 0},
					  .at = at,
					  .bytes = fields[f].size};
		memset(to + at, 0, base_align_up(fields[f].size, PACKED_ALIGN));
		memcpy(to + at, fields[f].bytes, fields[f].size);
		at += base_align_up(fields[f].size, PACKED_ALIGN);
	}
	head->bytes = at;
	return at;
}

/* ---- a pipeline, and samples through it ---- */

struct rig {
	struct trial trial;
	const struct pipeline_field *field;
	float image[MOST_VALUES];
	int64_t label;
	uint8_t labels[MOST_VALUES];
	uint8_t record[3 * 65536];
};

#define BESIDE ",\"source\":\"record\",\"fields\":[[1,9]],\"kinds\":[5],\"names\":[\"mask\"]"

static void rig_init(struct rig *rig, const char *first, const char *ops)
{
	char spec[600];

	snprintf(spec, sizeof(spec), "[{\"op\":\"volume\",\"fill\":%d%s}%s]", FILL, first, ops);
	trial_init(&rig->trial, spec);
	pipeline_fields(rig->trial.pipeline, &rig->field);
	ck_assert_uint_le(rig->field[0].bytes, sizeof(rig->image));
}

static void rig_fini(struct rig *rig)
{
	trial_fini(&rig->trial);
}

static int rig_run(struct rig *rig, const uint8_t *data, size_t size, uint64_t sample)
{
	const struct pipeline_out out = {.field = {rig->image, &rig->label, rig->labels}};

	memset(rig->image, 0xff, sizeof(rig->image));
	return trial_run(&rig->trial, data, size, 5, sample, &out);
}

static void rig_file(struct rig *rig, const struct file *file, uint64_t sample)
{
	ck_assert_msg(rig_run(rig, file->bytes, file->size, sample) == 0, "%s",
		      rig->trial.error.text);
	ck_assert_int_eq(rig->label, 5);
}

/* Both, the second as labels. */
static void rig_record(struct rig *rig, const struct file *image, const struct file *labels,
		       uint64_t sample)
{
	const size_t size = record_make(rig->record, image, labels);

	ck_assert_msg(rig_run(rig, rig->record, size, sample) == 0, "%s", rig->trial.error.text);
	ck_assert_int_eq(rig->label, 5);
}

static float rig_at(const struct rig *rig, unsigned c, int z, int y, int x)
{
	const uint64_t *shape = rig->field[0].shape;

	return rig->image[((c * shape[1] + (unsigned)z) * shape[2] + (unsigned)y) * shape[3] +
			  (unsigned)x];
}

/* The number at that place of the file, or what is outside. */
static float there(unsigned c, int z, int y, int x)
{
	const bool is_there = z >= 0 && z < DEPTH && y >= 0 && y < HEIGHT && x >= 0 && x < WIDTH;

	return is_there ? written(c, z, y, x) : (float)FILL;
}

/* Is it the part of both volumes that begins there? */
static bool is_part(const struct rig *rig, const int begin[3])
{
	const uint64_t *shape = rig->field[0].shape;
	bool is = true;

	for (unsigned c = 0; c < shape[0]; c++)
		for (int z = 0; z < (int)shape[1]; z++)
			for (int y = 0; y < (int)shape[2]; y++)
				for (int x = 0; x < (int)shape[3]; x++)
					is &= rig_at(rig, c, z, y, x) ==
					      there(c, begin[0] + z, begin[1] + y, begin[2] + x);
	return is;
}

/* ---- crops ---- */

START_TEST(the_middle_is_taken_and_what_is_missing_added)
{
	static const struct {
		unsigned size[3];
		int begin[3];
	} cases[] = {{{DEPTH, HEIGHT, WIDTH}, {0, 0, 0}},
		     {{3, 4, 5}, {2, 2, 3}},
		     {{1, 1, 1}, {3, 4, 5}},
		     {{10, 3, 20}, {-1, 3, -4}},
		     {{8, 10, 12}, {0, 0, 0}}};
	static struct rig rig;
	static struct file file;

	file_make(&file, 2, false);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		char ops[100];

		snprintf(ops, sizeof(ops), ",{\"op\":\"center_crop_3d\",\"size\":[%u,%u,%u]}",
			 cases[i].size[0], cases[i].size[1], cases[i].size[2]);
		rig_init(&rig, ",\"channels\":2", ops);
		ck_assert_int_eq(rig.field[0].dtype, PIPELINE_F32);
		ck_assert_uint_eq(rig.field[0].ndim, 4);
		ck_assert_uint_eq(rig.field[0].shape[0], 2);
		ck_assert_int_eq(pipeline_is_random(rig.trial.pipeline), 0);
		rig_file(&rig, &file, 0);
		ck_assert_msg(is_part(&rig, cases[i].begin), "case %u", i);
		rig_fini(&rig);
	}
}
END_TEST

START_TEST(a_random_part_begins_anywhere)
{
	bool seen[3][WIDTH] = {{false}};
	static struct rig rig;
	static struct file file;

	file_make(&file, 1, false);
	rig_init(&rig, "", ",{\"op\":\"random_crop_3d\",\"size\":[4,10,6]}");
	ck_assert_int_eq(pipeline_is_random(rig.trial.pipeline), 1);
	for (uint64_t sample = 0; sample < 200; sample++) {
		int begin[3], first;

		rig_file(&rig, &file, sample);
		first = (int)rig.image[0];
		begin[0] = first / 1000;
		begin[1] = 0; /* one row is missing, behind */
		begin[2] = first % 1000 % 30;
		ck_assert_msg(is_part(&rig, begin), "sample %u", (unsigned)sample);
		seen[0][begin[0]] = seen[2][begin[2]] = true;
	}
	for (unsigned i = 0; i < 4; i++)
		ck_assert_msg(seen[0][i], "never at slice %u", i);
	for (unsigned i = 0; i < 6; i++)
		ck_assert_msg(seen[2][i], "never at column %u", i);
	rig_fini(&rig);
}
END_TEST

/* Of what a larger crop has added, a smaller one may take nothing else. */
START_TEST(a_part_may_lie_outside)
{
	unsigned n_outside = 0;
	static struct rig rig;
	static struct file file;

	file_make(&file, 1, false);
	rig_init(&rig, ",\"scale\":1,\"clamp\":[-9,9999]",
		 ",{\"op\":\"center_crop_3d\",\"size\":20},{\"op\":\"random_crop_3d\","
		 "\"size\":3}");
	for (uint64_t sample = 0; sample < 400; sample++) {
		int begin[3] = {-3, 0, 0}, i = 0;

		rig_file(&rig, &file, sample);
		while (i < 27 && rig.image[i] == (float)FILL)
			i++;
		if (i < 27) {
			begin[0] = (int)rig.image[i] / 1000 - i / 9;
			begin[1] = (int)rig.image[i] % 1000 / 30 - i / 3 % 3;
			begin[2] = (int)rig.image[i] % 1000 % 30 - i % 3;
		}
		n_outside += i == 27;
		ck_assert_msg(is_part(&rig, begin), "sample %u", (unsigned)sample);
	}
	ck_assert_uint_gt(n_outside, 0);
	ck_assert_uint_lt(n_outside, 400);
	rig_fini(&rig);
}
END_TEST

/* What a crop has cut off does not come back in a larger one. */
START_TEST(crops_follow_each_other)
{
	static struct rig rig;
	static struct file file;

	file_make(&file, 1, false);
	rig_init(&rig, "",
		 ",{\"op\":\"center_crop_3d\",\"size\":[3,5,5]},{\"op\":\"random_flip_3d\","
		 "\"axes\":2,\"p\":1},{\"op\":\"center_crop_3d\",\"size\":[3,5,9]}");
	rig_file(&rig, &file, 0);
	for (int x = 0; x < 9; x++)
		ck_assert(rig_at(&rig, 0, 0, 0, x) ==
			  (x < 2 || x > 6 ? (float)FILL : written(0, 2, 2, 3 + 4 - (x - 2))));
	rig_fini(&rig);
}
END_TEST

/* ---- flips and turns ---- */

START_TEST(axes_are_reversed)
{
	static struct rig rig;
	static struct file file;

	file_make(&file, 2, false);
	for (unsigned axes = 1; axes < 8; axes++) {
		char ops[200];
		int n = 0;

		n += snprintf(ops, sizeof(ops),
			      ",{\"op\":\"center_crop_3d\",\"size\":[7,9,11]},{\"op\":\"random_"
			      "flip_3d\",\"p\":1,\"axes\":[");
		for (unsigned a = 0; a < 3; a++)
			if (axes >> a & 1)
				n += snprintf(ops + n, sizeof(ops) - (size_t)n, "%s%u",
					      ops[n - 1] == '[' ? "" : ",", a);
		snprintf(ops + n, sizeof(ops) - (size_t)n, "]}");
		rig_init(&rig, ",\"channels\":2", ops);
		rig_file(&rig, &file, 0);
		for (int z = 0; z < DEPTH; z++)
			for (int y = 0; y < HEIGHT; y++)
				for (int x = 0; x < WIDTH; x++)
					ck_assert(rig_at(&rig, 1, z, y, x) ==
						  written(1, axes & 1 ? DEPTH - 1 - z : z,
							  axes & 2 ? HEIGHT - 1 - y : y,
							  axes & 4 ? WIDTH - 1 - x : x));
		rig_fini(&rig);
	}
}
END_TEST

/* As numpy.rot90(volume, times, (0, 2)): of a cube of 6 slices from (0, 1, 2) on. */
static float turned(int times, int z, int y, int x)
{
	const int was[4][2] = {{z, x}, {x, 5 - z}, {5 - z, 5 - x}, {5 - x, z}};

	return written(0, was[times][0], 1 + y, 2 + was[times][1]);
}

START_TEST(planes_are_turned)
{
	unsigned seen[4] = {0};
	static struct rig rig;
	static struct file file;

	file_make(&file, 1, false);
	rig_init(&rig, "",
		 ",{\"op\":\"center_crop_3d\",\"size\":6},{\"op\":\"random_rotate90\",\"axes\":[0,"
		 "2],\"p\":0.75}");
	for (uint64_t sample = 0; sample < 400; sample++) {
		unsigned is = 0;

		rig_file(&rig, &file, sample);
		for (int times = 0; times < 4; times++) {
			bool alike = true;

			for (int i = 0; i < 216; i++)
				alike &= rig_at(&rig, 0, i / 36, i / 6 % 6, i % 6) ==
					 turned(times, i / 36, i / 6 % 6, i % 6);
			is += alike;
			seen[times] += alike;
		}
		ck_assert_uint_eq(is, 1);
	}
	for (unsigned times = 0; times < 4; times++)
		ck_assert_msg(seen[times] > 60 && seen[times] < 140, "%u quarters: %u of 400",
			      times, seen[times]);
	rig_fini(&rig);
}
END_TEST

/* ---- labels ---- */

/* All of it: labels go where the numbers go, which say where that was. */
static void check_labels(const struct rig *rig)
{
	for (uint64_t i = 0; i < rig->field[2].bytes; i++) {
		const int number = (int)rig->image[i];
		const int z = number / 1000, y = number % 1000 / 30, x = number % 1000 % 30;

		if (number == FILL)
			ck_assert_uint_eq(rig->labels[i], 9);
		else
			ck_assert_uint_eq(rig->labels[i], is_labelled(z, y, x) ? 1 + x : 0);
	}
}

START_TEST(labels_follow)
{
	static struct rig rig;
	static struct file image, labels;

	file_make(&image, 1, false);
	file_make(&labels, 1, true);
	rig_init(&rig, BESIDE,
		 ",{\"op\":\"random_crop_3d\",\"size\":[8,8,8]},{\"op\":\"random_flip_3d\","
		 "\"axes\":[0,2]},{\"op\":\"random_rotate90\"}");
	ck_assert_str_eq(rig.field[2].name, "mask");
	ck_assert_int_eq(rig.field[2].dtype, PIPELINE_U8);
	ck_assert_uint_eq(rig.field[2].ndim, 3);
	for (uint64_t sample = 0; sample < 50; sample++) {
		rig_record(&rig, &image, &labels, sample);
		check_labels(&rig);
	}
	rig_fini(&rig);
}
END_TEST

/* Three of four have a label in the middle, as far as the volume reaches. */
START_TEST(crops_go_by_labels)
{
	unsigned around = 0, n = 0;
	static struct rig rig;
	static struct file image, labels, zipped;

	file_make(&image, 1, false);
	file_make(&labels, 1, true);
	file_zip(&labels, &zipped);
	rig_init(&rig, BESIDE,
		 ",{\"op\":\"random_crop_by_label\",\"size\":[1,1,1],\"pos\":3,\"neg\":1}");
	for (uint64_t sample = 0; sample < 400; sample++, n++) {
		rig_record(&rig, &image, sample & 1 ? &zipped : &labels, sample);
		check_labels(&rig);
		around += rig.labels[0] > 0;
	}
	ck_assert_msg(around > 270 && around < 330, "%u of 400", around);
	rig_fini(&rig);
	/* The places are in a corner: the crop lies within. */
	rig_init(&rig, BESIDE,
		 ",{\"op\":\"random_crop_by_label\",\"size\":[3,5,5],\"pos\":1,\"neg\":0}");
	for (uint64_t sample = 0; sample < 50; sample++) {
		rig_record(&rig, &image, &labels, sample);
		check_labels(&rig);
		ck_assert(is_part(&rig, (int[3]){4, 4, 0}));
	}
	rig_fini(&rig);
}
END_TEST

/* None of a kind: the other one. */
START_TEST(without_labels_any_place_will_do)
{
	static struct rig rig;
	static struct file image, labels;

	file_make(&image, 1, false);
	file_make(&labels, 1, true);
	memset(labels.bytes + 352, 0, labels.size - 352);
	rig_init(&rig, BESIDE, ",{\"op\":\"random_crop_by_label\",\"size\":3,\"pos\":1,\"neg\":0}");
	for (uint64_t sample = 0; sample < 20; sample++) {
		rig_record(&rig, &image, &labels, sample);
		ck_assert_uint_eq(rig.labels[0], 0);
	}
	rig_fini(&rig);
}
END_TEST

START_TEST(labels_that_do_not_fit_are_told)
{
	static struct rig rig;
	static struct file image, labels;

	file_make(&image, 1, false);
	file_make(&labels, 2, true);
	rig_init(&rig, BESIDE, ",{\"op\":\"center_crop_3d\",\"size\":7}");
	ck_assert_int_eq(rig_run(&rig, rig.record, record_make(rig.record, &image, &labels), 0),
			 PIPELINE_E_BAD);
	ck_assert_str_eq(rig.trial.error.text, "labels 2 x 7 x 9 x 11, not 7 x 9 x 11");
	ck_assert_int_eq(rig_run(&rig, rig.record, record_make(rig.record, &image, &image), 0),
			 PIPELINE_E_BAD);
	ck_assert_str_eq(rig.trial.error.text, "a label is none of 0 to 255");
	rig_fini(&rig);
}
END_TEST

/* ---- numbers ---- */

START_TEST(numbers_are_changed_in_the_order_of_ops)
{
	static struct rig rig;
	static struct file file;

	file_make(&file, 1, false);
	rig_init(&rig, ",\"scale\":0.5,\"clamp\":[100,3000]",
		 ",{\"op\":\"random_shift_intensity\",\"offsets\":[7,7]},{\"op\":\"random_scale_"
		 "intensity\",\"factors\":[1,1]},{\"op\":\"center_crop_3d\",\"size\":[7,9,13]},"
		 "{\"op\":\"normalize\",\"mean\":10,\"std\":4}");
	rig_file(&rig, &file, 0);
	for (int z = 0; z < DEPTH; z++)
		for (int y = 0; y < HEIGHT; y++)
			for (int x = 0; x < 13; x++) {
				float number = fminf(fmaxf(written(0, z, y, x - 1) / 2, 100), 3000);

				if (x == 0 || x == 12)
					number = FILL;
				ck_assert(rig_at(&rig, 0, z, y, x) == ((number + 7) * 2 - 10) / 4);
			}
	rig_fini(&rig);
}
END_TEST

START_TEST(changes_are_drawn_for_each_sample)
{
	double least = 2, most = 0;
	static struct rig rig;
	static struct file file;

	file_make(&file, 1, false);
	rig_init(&rig, "",
		 ",{\"op\":\"random_scale_intensity\",\"factors\":0.25,\"p\":0.5},{\"op\":\"center_"
		 "crop_3d\",\"size\":7}");
	for (uint64_t sample = 0; sample < 200; sample++) {
		double factor;

		rig_file(&rig, &file, sample);
		factor = (double)rig_at(&rig, 0, 6, 6, 6) / (double)written(0, 6, 7, 8);
		ck_assert(rig_at(&rig, 0, 1, 2, 3) == written(0, 1, 3, 5) * (float)factor ||
			  fabs(factor - 1) <= 0.2501);
		least = fmin(least, factor);
		most = fmax(most, factor);
	}
	ck_assert_msg(least < 0.76 && least >= 0.75 && most > 1.24 && most <= 1.25, "%g to %g",
		      least, most);
	rig_fini(&rig);
}
END_TEST

START_TEST(noise_is_added)
{
	double sum = 0, squares = 0;
	const int n = 32 * 32 * 32;
	static struct rig rig;
	static struct file file;

	file_make(&file, 1, false);
	rig_init(&rig, "",
		 ",{\"op\":\"center_crop_3d\",\"size\":32},{\"op\":\"gaussian_noise\",\"mean\":3,"
		 "\"sigma\":2,\"clip\":false}");
	rig_file(&rig, &file, 0);
	for (int i = 0; i < n; i++) {
		const int z = i / 1024 - 12, y = i / 32 % 32 - 11, x = i % 32 - 10;
		const double noise = (double)rig.image[i] - (double)there(0, z, y, x);

		sum += noise;
		squares += noise * noise;
	}
	ck_assert_double_eq_tol(sum / n, 3, 0.1);
	ck_assert_double_eq_tol(squares / n - 9, 4, 0.3);
	rig_fini(&rig);
}
END_TEST

/* ---- files ---- */

/* What is behind the last slice that is taken is not even looked at. */
START_TEST(no_more_is_inflated_than_is_taken)
{
	unsigned good = 0, bad = 0;
	static struct rig rig;
	static struct file file, zipped;

	file_make(&file, 1, false);
	file_zip(&file, &zipped);
	zipped.size -= 2 * 2 * HEIGHT * WIDTH;
	rig_init(&rig, "", ",{\"op\":\"random_crop_3d\",\"size\":[2,9,11]}");
	for (uint64_t sample = 0; sample < 50; sample++) {
		const int r = rig_run(&rig, zipped.bytes, zipped.size, sample);

		good += r == 0;
		bad += r != 0;
		if (r == 0)
			ck_assert(is_part(&rig, (int[3]){(int)rig.image[0] / 1000, 0, 0}));
	}
	ck_assert_uint_gt(good, 10);
	ck_assert_uint_gt(bad, 5);
	rig_fini(&rig);
}
END_TEST

START_TEST(another_number_of_volumes_is_told)
{
	static struct rig rig;
	static struct file file;

	file_make(&file, 2, false);
	rig_init(&rig, "", ",{\"op\":\"center_crop_3d\",\"size\":7}");
	ck_assert_int_eq(rig_run(&rig, file.bytes, file.size, 0), PIPELINE_E_BAD);
	ck_assert_str_eq(rig.trial.error.text, "it has 2 volumes, and not 1");
	rig_fini(&rig);
}
END_TEST

START_TEST(npy_arrays_are_volumes)
{
	static struct rig rig;
	static struct file file;
	uint8_t *at = file.bytes + 128;

	memcpy(file.bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
	snprintf((char *)file.bytes + 10, 118,
		 "{'descr': '<f4', 'fortran_order': False, 'shape': (2, %d, %d, %d), }", DEPTH,
		 HEIGHT, WIDTH);
	for (int i = 0; i < 2 * DEPTH * HEIGHT * WIDTH; i++, at += 4) {
		const float number =
		    written((unsigned)(i / (DEPTH * HEIGHT * WIDTH)), i / (HEIGHT * WIDTH) % DEPTH,
			    i / WIDTH % HEIGHT, i % WIDTH);

		memcpy(at, &number, 4);
	}
	file.size = (size_t)(at - file.bytes);
	rig_init(&rig, ",\"channels\":2", ",{\"op\":\"center_crop_3d\",\"size\":[3,4,5]}");
	rig_file(&rig, &file, 0);
	ck_assert(is_part(&rig, (int[3]){2, 2, 3}));
	rig_fini(&rig);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(specs_are_refused_in_words)
{
	static const char first[] = "[{\"op\":\"volume\"";
	static const struct {
		const char *rest, *wanted;
	} cases[] = {
	    {"}]", "add {\"op\": \"random_crop_3d\""},
	    {"},{\"op\":\"random_crop_3d\",\"size\":[3,4]}]", "[depth, height, width]"},
	    {"},{\"op\":\"random_crop_3d\",\"size\":1000}]", "give a smaller size"},
	    {"},{\"op\":\"random_crop\",\"size\":8}]", "take an op of volumes"},
	    {"},{\"op\":\"center_crop_3d\",\"size\":8},{\"op\":\"random_apply\"},{\"op\":\"random_"
	     "flip_3d\",\"axes\":0}]",
	     "take an op of volumes"},
	    {"},{\"op\":\"center_crop_3d\",\"size\":[8,9,9]},{\"op\":\"random_rotate90\",\"axes\":"
	     "[0,1]}]",
	     "exchange sides that differ"},
	    {"},{\"op\":\"random_rotate90\"},{\"op\":\"center_crop_3d\",\"size\":8}]",
	     "put it behind a crop"},
	    {"},{\"op\":\"center_crop_3d\",\"size\":8},{\"op\":\"random_rotate90\",\"axes\":1}]",
	     "axes are two"},
	    {"},{\"op\":\"center_crop_3d\",\"size\":8},{\"op\":\"random_flip_3d\",\"axes\":[1,1]}]",
	     "there twice"},
	    {"},{\"op\":\"random_crop_by_label\",\"size\":8}]", "asks for a volume of labels"},
	    {BESIDE "},{\"op\":\"random_flip_3d\",\"axes\":1},{\"op\":\"random_crop_by_label\","
		    "\"size\":8}]",
	     "put it first"},
	    {BESIDE "},{\"op\":\"random_crop_by_label\",\"size\":8,\"pos\":0,\"neg\":0}]",
	     "pos and neg are 0"},
	    {"},{\"op\":\"center_crop_3d\",\"size\":8},{\"op\":\"gaussian_noise\"}]",
	     "give \"clip\": false"},
	    {"},{\"op\":\"center_crop_3d\",\"size\":8},{\"op\":\"normalize\",\"mean\":0,\"std\":1},"
	     "{\"op\":\"gaussian_noise\",\"clip\":false}]",
	     "put it before normalize"},
	    {"},{\"op\":\"center_crop_3d\",\"size\":8},{\"op\":\"cast\",\"dtype\":\"u8\"}]",
	     "numbers do not fit u8"},
	    {"},{\"op\":\"center_crop_3d\",\"size\":8},{\"op\":\"layout\",\"order\":\"HWC\"}]",
	     "leave it out"},
	    {"},{\"op\":\"center_crop_3d\",\"size\":8},{\"op\":\"one_hot\",\"num_classes\":9},"
	     "{\"op\":\"mixup\"}]",
	     "leave them out"},
	    {"},{\"op\":\"view\",\"names\":[[97]]},{\"op\":\"center_crop_3d\",\"size\":8}]",
	     "view"},
	    {",\"source\":\"record\",\"fields\":[[1]],\"kinds\":[9]},{\"op\":\"center_crop_3d\","
	     "\"size\":8}]",
	     "do not follow volumes"},
	};
	static const char picture[] =
	    "[{\"op\":\"decode\"},{\"op\":\"random_crop_3d\",\"size\":8}]";

	for (unsigned i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		char spec[500];

		snprintf(spec, sizeof(spec), "%s%s", first, cases[i].rest);
		trial_refused(spec, cases[i].wanted);
	}
	trial_refused(picture, "it works on volumes");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
	    the_middle_is_taken_and_what_is_missing_added,
	    a_random_part_begins_anywhere,
	    a_part_may_lie_outside,
	    crops_follow_each_other,
	    axes_are_reversed,
	    planes_are_turned,
	    labels_follow,
	    crops_go_by_labels,
	    without_labels_any_place_will_do,
	    labels_that_do_not_fit_are_told,
	    numbers_are_changed_in_the_order_of_ops,
	    changes_are_drawn_for_each_sample,
	    noise_is_added,
	    no_more_is_inflated_than_is_taken,
	    another_number_of_volumes_is_told,
	    npy_arrays_are_volumes,
	    specs_are_refused_in_words,
	};
	Suite *suite = suite_create("volume");
	TCase *one = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_set_timeout(one, PATIENCE_OF_A_TEST_S);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(tests); i++)
		tcase_add_test(one, tests[i]);
	suite_add_tcase(suite, one);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

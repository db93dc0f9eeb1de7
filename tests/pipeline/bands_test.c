/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers: files of each type as tifffile and NumPy write them (numbers/, by make_numbers.py), what of them comes out, ops on them against
 * torchvision's resize, masks and views beside, what is refused, and files that are cut off or damaged.
 */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pipeline/pipeline.h"
#include "pipeline/spec/compare.h"
#include "tests/data.h"
#include "tests/patience.h"
#include "tests/pipeline/trial.h"

#define FOLDER "pipeline/numbers"
#define HEIGHT 19
#define WIDTH 23
#define MOST_CHANNELS 13
#define MOST_BYTES 65536
#define MOST_VALUES (64 * 64 * MOST_CHANNELS)

/* ---- files ---- */

struct file {
	uint8_t bytes[MOST_BYTES];
	size_t size;
};

static void file_load(struct file *file, const char *name)
{
	file->size = data_read(FOLDER, name, file->bytes, sizeof(file->bytes));
}

/* Does this build read such files? */
static bool file_is_known(const char *name)
{
	const char *suffix = strrchr(name, '.');

	return (HAS_TIFF || strcmp(suffix, ".tif") != 0) && (HAS_JP2 || !strstr(name, "-jp2.")) &&
	       (HAS_PNG || strcmp(suffix, ".png") != 0) &&
	       (HAS_WEBP || strcmp(suffix, ".webp") != 0);
}

/* ---- a pipeline, and samples through it ---- */

struct rig {
	struct trial trial;
	const struct pipeline_field *field;
	float image[2][MOST_VALUES];
	int64_t label;
};

static void rig_init(struct rig *rig, const char *spec)
{
	trial_init(&rig->trial, spec);
	pipeline_fields(rig->trial.pipeline, &rig->field);
	ck_assert_uint_le(rig->field[0].bytes, sizeof(rig->image[0]));
}

static void rig_fini(struct rig *rig)
{
	trial_fini(&rig->trial);
}

static int rig_run(struct rig *rig, const uint8_t *data, size_t size, uint64_t sample)
{
	const struct pipeline_out out = {.field = {rig->image[0], &rig->label, rig->image[1]}};

	memset(rig->image, 0xff, sizeof(rig->image));
	return trial_run(&rig->trial, data, size, 5, sample, &out);
}

static void rig_file(struct rig *rig, const char *spec, const char *name, uint64_t sample)
{
	struct file file;

	rig_init(rig, spec);
	file_load(&file, name);
	ck_assert_msg(rig_run(rig, file.bytes, file.size, sample) == 0, "%s: %s", name,
		      rig->trial.error.text);
	ck_assert_int_eq(rig->label, 5);
}

/* What make_numbers.py wrote there. */
static float written(const char *dtype, unsigned c, unsigned y, unsigned x)
{
	const int whole = (int)(1000 * c + 37 * y + 11 * x);

	if (dtype[0] == 'f')
		return (float)whole / 8;
	if (strcmp(dtype, "uint8") == 0)
		return (float)(whole & 255);
	return strcmp(dtype, "int8") == 0 ? (float)(int8_t)whole : (float)whole;
}

/* ---- files ---- */

START_TEST(every_file_gives_the_numbers_that_were_written)
{
	struct file list;
	char *line, *left;
	unsigned n = 0;

	file_load(&list, "numbers.tsv");
	list.bytes[list.size] = '\0';
	left = (char *)list.bytes;
	while ((line = strsep(&left, "\n")) && *line) {
		char name[64], dtype[16], spec[200];
		unsigned channels, height, width;
		static struct rig rig;

		ck_assert_int_eq(
		    sscanf(line, "%63s %u %u %u %15s", name, &channels, &height, &width, dtype), 5);
		n++;
		if (!file_is_known(name))
			continue;
		snprintf(spec, sizeof(spec),
			 "[{\"op\":\"bands\",\"channels\":%u},{\"op\":\"center_crop\",\"size\":"
			 "[%u,%u]}]",
			 channels, height, width);
		rig_file(&rig, spec, name, 0);
		ck_assert_int_eq(rig.field[0].dtype, PIPELINE_F32);
		ck_assert_uint_eq(rig.field[0].ndim, 3);
		ck_assert_uint_eq(rig.field[0].shape[0], channels);
		for (unsigned i = 0; i < channels * height * width; i++)
			ck_assert_msg(rig.image[0][i] == written(dtype, i / (height * width),
								 i / width % height, i % width),
				      "%s: number %u is %g", name, i, (double)rig.image[0][i]);
		rig_fini(&rig);
	}
	ck_assert_uint_eq(n, 50);
}
END_TEST

START_TEST(bands_are_picked_scaled_and_clamped)
{
	static struct rig rig;
	static const unsigned picked[] = {3, 2, 1, 3};

	rig_file(&rig,
		 "[{\"op\":\"bands\",\"bands\":[3,2,1,3],\"scale\":0.0001,\"clamp\":[0.15,0.3]},{"
		 "\"op\":\"center_crop\",\"size\":[19,23]}]",
		 "u16-13-planes-lzw.tif", 0);
	for (unsigned i = 0; i < 4 * HEIGHT * WIDTH; i++) {
		float wanted =
		    written("uint16", picked[i / (HEIGHT * WIDTH)], i / WIDTH % HEIGHT, i % WIDTH) *
		    0.0001f;

		wanted = fminf(fmaxf(wanted, 0.15f), 0.3f);
		ck_assert(rig.image[0][i] == wanted);
	}
	rig_fini(&rig);
}
END_TEST

/* Of u16.dcm's kind: times 2, less 1024.5; those of 12 bits whose least number is white. */
START_TEST(medical_files_are_rescaled_and_inverted)
{
	static const struct {
		const char *name, *more;
		float factor, plus;
	} cases[] = {
	    {"hounsfield.dcm", "", 2, -1024.5f},
	    {"hounsfield.dcm", ",\"invert\":true", 2, -1024.5f},
	    {"scaled.nii.gz", "", 2, -1024.5f},
	    {"white-least.dcm", "", 1, 0},
	    {"white-least.dcm", ",\"invert\":true", -1, 4095},
	    {"hounsfield.dcm", ",\"clamp\":[-1000,400]", 2, -1024.5f},
	};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		static struct rig rig;
		char spec[200];

		snprintf(spec, sizeof(spec),
			 "[{\"op\":\"bands\",\"channels\":1%s},{\"op\":\"center_crop\",\"size\":"
			 "[19,23]}%s]",
			 cases[i].more,
			 strstr(cases[i].more, "clamp")
			     ? ",{\"op\":\"normalize\",\"mean\":-1000,\"std\":1400}"
			     : "");
		rig_file(&rig, spec, cases[i].name, 0);
		for (unsigned k = 0; k < HEIGHT * WIDTH; k++) {
			float wanted =
			    written("uint16", 0, k / WIDTH, k % WIDTH) * cases[i].factor +
			    cases[i].plus;

			if (strstr(cases[i].more, "clamp"))
				wanted = (fminf(fmaxf(wanted, -1000), 400) - -1000) / 1400;
			ck_assert_msg(rig.image[0][k] == wanted, "%s: number %u is %g",
				      cases[i].name, k, (double)rig.image[0][k]);
		}
		rig_fini(&rig);
	}
}
END_TEST

/* An element of explicit VR, little endian: one of a 16-bit length. */
static void dicom_put(struct file *file, unsigned group, unsigned element, const char *vr,
		      const void *value, size_t length)
{
	uint8_t *at = file->bytes + file->size;
	const uint8_t head[8] = {(uint8_t)group,          (uint8_t)(group >> 8), (uint8_t)element,
				 (uint8_t)(element >> 8), (uint8_t)vr[0],        (uint8_t)vr[1],
				 (uint8_t)length,         (uint8_t)(length >> 8)};

	memcpy(at, head, 8);
	memcpy(at + 8, value, length);
	file->size += 8 + length;
}

static void dicom_put_number(struct file *file, unsigned element, unsigned number)
{
	dicom_put(file, 0x28, element, "US", (uint8_t[2]){(uint8_t)number}, 2);
}

/* One pixel whose 8 bits are the upper half of 16: luma 100, no blue, 50 of red. */
START_TEST(luma_and_chroma_are_where_their_bits_are)
{
	static const uint8_t pixel[] = {0x5a, 100, 0xa5, 128, 0xff, 178};
	static const float wanted[] = {170, 64, 100};
	static struct rig rig;
	struct file file = {.size = 132};

	memcpy(file.bytes + 128, "DICM", 4);
	dicom_put(&file, 2, 0x10, "UI", "1.2.840.10008.1.2.1", 20);
	dicom_put_number(&file, 0x2, 3);
	dicom_put(&file, 0x28, 0x4, "CS", "YBR_FULL", 8);
	dicom_put_number(&file, 0x10, 1);
	dicom_put_number(&file, 0x11, 1);
	dicom_put_number(&file, 0x100, 16);
	dicom_put_number(&file, 0x101, 8);
	dicom_put_number(&file, 0x102, 15);
	dicom_put(&file, 0x7fe0, 0x10, "US", pixel, sizeof(pixel));
	rig_init(&rig, "[{\"op\":\"bands\",\"channels\":3},{\"op\":\"center_crop\",\"size\":1}]");
	ck_assert_msg(rig_run(&rig, file.bytes, file.size, 0) == 0, "%s", rig.trial.error.text);
	ck_assert_mem_eq(rig.image[0], wanted, sizeof(wanted));
	rig_fini(&rig);
}
END_TEST

/* ---- ops ---- */

START_TEST(resize_is_torchvisions)
{
	static const struct {
		const char *filter;
		unsigned height, width;
		double tolerance;
	} cases[] = {{"bilinear", 9, 14, 1e-5},
		     {"bilinear", 40, 31, 1e-5},
		     {"bicubic", 11, 50, 1e-5},
		     {"nearest", 8, 31, 0}};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		char spec[300], name[64];
		static struct rig rig, golden;

		snprintf(spec, sizeof(spec),
			 "[{\"op\":\"bands\",\"channels\":5},{\"op\":\"resize\",\"size\":[%u,%u],"
			 "\"interpolation\":\"%s\"}]",
			 cases[i].height, cases[i].width, cases[i].filter);
		rig_file(&rig, spec, "f32-5-deflate.tif", 0);
		snprintf(spec, sizeof(spec),
			 "[{\"op\":\"bands\",\"channels\":5},{\"op\":\"center_crop\",\"size\":[%u,%"
			 "u]}]",
			 cases[i].height, cases[i].width);
		snprintf(name, sizeof(name), "resized-%s-%u-%u.npy", cases[i].filter,
			 cases[i].height, cases[i].width);
		rig_file(&golden, spec, name, 0);
		for (unsigned k = 0; k < 5 * cases[i].height * cases[i].width; k++)
			ck_assert_msg(fabs((double)rig.image[0][k] - (double)golden.image[0][k]) <=
					  cases[i].tolerance * 700,
				      "%s: number %u is %.9g, not %.9g", name, k,
				      (double)rig.image[0][k], (double)golden.image[0][k]);
		rig_fini(&rig);
		rig_fini(&golden);
	}
}
END_TEST

START_TEST(what_is_constant_stays_so)
{
	static const char head[] = "P5 40 30 65535\n";
	uint8_t file[sizeof(head) + 2 * 40 * 30];
	static struct rig rig;

	memcpy(file, head, sizeof(head) - 1);
	for (unsigned i = 0; i < 40 * 30; i++)
		memcpy(file + sizeof(head) - 1 + 2 * i, "\xf2\x01", 2);
	rig_init(&rig,
		 "[{\"op\":\"bands\",\"channels\":1},{\"op\":\"random_resized_crop\",\"size\":"
		 "[7,11]}]");
	for (uint64_t sample = 0; sample < 20; sample++) {
		ck_assert_int_eq(rig_run(&rig, file, sizeof(head) - 1 + 2 * 40 * 30, sample), 0);
		for (unsigned i = 0; i < 77; i++)
			ck_assert(rig.image[0][i] == (float)0xf201);
	}
	rig_fini(&rig);
}
END_TEST

/* An 8-bit picture goes the same way as numbers, where nothing is computed: the draws are the same. */
START_TEST(ops_move_numbers_as_they_move_pictures)
{
	static const char *const ops[] = {
	    "{\"op\":\"hflip\"},{\"op\":\"vflip\"},{\"op\":\"center_crop\",\"size\":[15,30]}",
	    "{\"op\":\"random_crop\",\"size\":[12,20],\"padding\":3}",
	    "{\"op\":\"pad\",\"padding\":[1,2,3,4],\"padding_mode\":\"reflect\"},{\"op\":\"random_"
	    "crop\",\"size\":16}",
	    "{\"op\":\"rotate\",\"degrees\":[-180,180]},{\"op\":\"center_crop\",\"size\":16}",
	    "{\"op\":\"affine\",\"degrees\":30,\"translate\":[0.1,0.1],\"scale\":[0.5,2]},{\"op\":"
	    "\"center_crop\",\"size\":16}",
	    "{\"op\":\"random_apply\",\"p\":0.5,\"ops\":1,\"otherwise\":1},{\"op\":\"hflip\",\"p\":"
	    "1},{\"op\":\"vflip\",\"p\":1},{\"op\":\"center_crop\",\"size\":16}",
	    "{\"op\":\"random_resized_crop\",\"size\":[19,23],\"scale\":[1,1],\"ratio\":[1.2,1.22]"
	    "}"};
	struct file file;

	file_load(&file, "u8.ppm");
	for (unsigned i = 0; i < BASE_ARRAY_LEN(ops); i++) {
		char spec[2][400];
		static struct rig numbers, picture;

		snprintf(spec[0], sizeof(spec[0]), "[{\"op\":\"bands\",\"channels\":3},%s]",
			 ops[i]);
		snprintf(spec[1], sizeof(spec[1]),
			 "[{\"op\":\"decode\"},%s,{\"op\":\"layout\",\"order\":\"CHW\"}]", ops[i]);
		rig_init(&numbers, spec[0]);
		rig_init(&picture, spec[1]);
		for (uint64_t sample = 0; sample < 16; sample++) {
			ck_assert_int_eq(rig_run(&numbers, file.bytes, file.size, sample), 0);
			ck_assert_int_eq(rig_run(&picture, file.bytes, file.size, sample), 0);
			for (unsigned k = 0; k < picture.field[0].bytes; k++)
				ck_assert_msg(
				    numbers.image[0][k] == ((const uint8_t *)picture.image[0])[k],
				    "%s: number %u of sample %u", ops[i], k, (unsigned)sample);
		}
		rig_fini(&numbers);
		rig_fini(&picture);
	}
}
END_TEST

START_TEST(normalize_cast_and_layout)
{
	static struct rig rig;
	const uint16_t *half = (const uint16_t *)rig.image[0];

	rig_file(&rig,
		 "[{\"op\":\"bands\",\"channels\":2},{\"op\":\"center_crop\",\"size\":[19,23]},{"
		 "\"op\":\"normalize\",\"mean\":[10,1000],\"std\":[2,4]},{\"op\":\"layout\","
		 "\"order\":\"HWC\"}]",
		 "u16-big.tif", 0);
	for (unsigned i = 0; i < 2 * HEIGHT * WIDTH; i++)
		ck_assert(rig.image[0][i] ==
			  (written("uint16", i % 2, i / 2 / WIDTH, i / 2 % WIDTH) -
			   (i % 2 ? 1000.0f : 10.0f)) /
			      (i % 2 ? 4.0f : 2.0f));
	rig_fini(&rig);
	rig_file(
	    &rig,
	    "[{\"op\":\"bands\",\"channels\":1,\"scale\":0.5},{\"op\":\"center_crop\",\"size\":"
	    "[1,3]},{\"op\":\"cast\",\"dtype\":\"bf16\"}]",
	    "i16.tif", 0);
	ck_assert_int_eq(rig.field[0].dtype, PIPELINE_BF16);
	ck_assert_uint_eq(half[0], 0x435e); /* (9 * 37 + 10 * 11) / 2 is 221.5, which becomes 222 */
	rig_fini(&rig);
}
END_TEST

START_TEST(views_have_draws_of_their_own)
{
	static struct rig rig;
	struct file file;
	unsigned differ = 0;

	rig_init(&rig, "[{\"op\":\"bands\",\"channels\":13},{\"op\":\"random_crop\",\"size\":8},{"
		       "\"op\":\"view\",\"names\":[\"image2\"]},{\"op\":\"random_crop\",\"size\":8}"
		       "]");
	file_load(&file, "u16-13-tiles-deflate.tif");
	for (uint64_t sample = 0; sample < 10; sample++) {
		ck_assert_int_eq(rig_run(&rig, file.bytes, file.size, sample), 0);
		for (unsigned v = 0; v < 2; v++)
			for (unsigned i = 0; i < MOST_CHANNELS * 64; i++)
				ck_assert(rig.image[v][i] ==
					  rig.image[v][0] +
					      written("uint16", i / 64, i / 8 % 8, i % 8));
		differ += rig.image[0][0] != rig.image[1][0];
	}
	ck_assert_uint_ge(differ, 8);
	rig_fini(&rig);
}
END_TEST

/* ---- several jobs ---- */

static struct pipeline *compiled(const char *spec)
{
	struct pipeline *pipeline;
	struct diag diag = {.text = ""};

	ck_assert_msg(pipeline_compile(spec, strlen(spec), &pipeline, &diag) == 0, "%s: %s", spec,
		      diag.text);
	return pipeline;
}

#define SHARED "{\"op\":\"bands\",\"channels\":3,\"scale\":0.5}"

static const char *const jobs[] = {
    "[" SHARED ",{\"op\":\"random_crop\",\"size\":8},{\"op\":\"hflip\"}]",
    "[" SHARED ",{\"op\":\"random_resized_crop\",\"size\":[9,7]},{\"op\":\"normalize\","
    "\"mean\":[1,2,3],\"std\":4}]",
    "[{\"op\":\"bands\",\"channels\":3},{\"op\":\"center_crop\",\"size\":8}]",
    "[{\"op\":\"bands\",\"bands\":[0,1,2]},{\"op\":\"center_crop\",\"size\":8}]",
    "[{\"op\":\"bands\",\"bands\":[0]},{\"op\":\"center_crop\",\"size\":8}]",
    "[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":8}]",
};

/* Those whose numbers are the same share them, whatever they do then. */
START_TEST(jobs_share_the_numbers_of_one_op)
{
	static struct rig alone[2];
	static float image[2][MOST_VALUES];
	const struct pipeline *both[2];
	struct pipeline_run *run;
	struct file file;

	file_load(&file, "u8.ppm");
	for (unsigned i = 0; i < 2; i++) {
		rig_init(&alone[i], jobs[i]);
		both[i] = alone[i].trial.pipeline;
	}
	ck_assert(compare_can_meet(both[0], both[1]) && compare_can_meet(both[1], both[0]));
	ck_assert_int_eq(pipeline_run_new(both, 2, &run), 0);
	for (uint32_t sample = 0; sample < 16; sample++) {
		const struct pipeline_key key = {1, 2, sample};
		const uint32_t who = 1 + sample % 3; /* the first, the second, both */
		struct pipeline_error error;
		int64_t label[2];
		const struct pipeline_out out[2] = {{.field = {image[0], &label[0]}},
						    {.field = {image[1], &label[1]}}};

		ck_assert_int_eq(
		    pipeline_run_sample(run, who, file.bytes, file.size, 5, &key, out, &error), 0);
		for (unsigned i = 0; i < 2; i++) {
			if (!(who >> i & 1))
				continue;
			ck_assert_int_eq(rig_run(&alone[i], file.bytes, file.size, sample), 0);
			ck_assert_int_eq(label[i], 5);
			ck_assert_mem_eq(image[i], alone[i].image[0], alone[i].field[0].bytes);
		}
	}
	pipeline_run_free(run);
	rig_fini(&alone[0]);
	rig_fini(&alone[1]);
}
END_TEST

START_TEST(other_numbers_are_not_shared)
{
	for (unsigned i = 1; i < BASE_ARRAY_LEN(jobs); i++)
		for (unsigned k = i + 1; k < BASE_ARRAY_LEN(jobs); k++) {
			struct pipeline *one = compiled(jobs[i]), *other = compiled(jobs[k]);
			const struct pipeline *both[2] = {one, other};
			struct pipeline_run *run;

			ck_assert(!compare_can_meet(one, other));
			ck_assert_int_eq(pipeline_run_new(both, 2, &run), -EINVAL);
			pipeline_free(one);
			pipeline_free(other);
		}
}
END_TEST

/* ---- what is refused ---- */

START_TEST(ops_that_make_no_sense_are_refused)
{
	static const char crop[] = "{\"op\":\"center_crop\",\"size\":8}";
	static const struct {
		const char *first, *more, *wanted;
	} cases[] = {
	    {"", "", "op 1 (bands): neither \"channels\" nor \"bands\" is given"},
	    {",\"channels\":3,\"bands\":[3]", "", "they are counted from 0"},
	    {",\"channels\":40", "", "channels is not from 1 to 32"},
	    {",\"channels\":3", ",{\"op\":\"color_jitter\",\"hue\":0.1}",
	     "op 3 (color_jitter): it works on 8-bit pictures, and behind bands there are numbers"},
	    {",\"channels\":3", ",{\"op\":\"rand_augment\"}", "op 3 (rand_augment): it works on"},
	    {",\"channels\":3", ",{\"op\":\"five_crop\",\"size\":4}",
	     "op 3 (five_crop): it works on"},
	    {",\"channels\":3",
	     ",{\"op\":\"normalize\",\"mean\":0,\"std\":1},{\"op\":\"random_erasing\"}",
	     "op 4 (random_erasing): it works on"},
	    {",\"channels\":3", ",{\"op\":\"pad\",\"padding\":1,\"fill\":7}",
	     "what is outside of the numbers is 0"},
	    {",\"channels\":3", ",{\"op\":\"rotate\",\"degrees\":9,\"interpolation\":\"bilinear\"}",
	     "interpolation nearest alone"},
	    {",\"channels\":3", ",{\"op\":\"elastic_transform\"}", "interpolation nearest alone"},
	    {",\"channels\":3", ",{\"op\":\"jpeg\",\"quality\":50}", "op 3 (jpeg): it works on"},
	    {",\"channels\":3", ",{\"op\":\"gaussian_noise\"}",
	     "op 3 (gaussian_noise): it works on"},
	    {",\"channels\":3", ",{\"op\":\"cast\",\"dtype\":\"u8\"}", "numbers do not fit u8"},
	    {",\"channels\":4", ",{\"op\":\"normalize\",\"mean\":[1,2,3],\"std\":1}",
	     "there are 4 channels, and 3 numbers for mean or std"},
	    {",\"channels\":3", ",{\"op\":\"normalize\",\"mean\":[1,2],\"std\":1}",
	     "there are 3 channels, and 2 numbers"},
	    {",\"channels\":2", ",{\"op\":\"normalize\",\"mean\":[1,2],\"std\":[1,0]}",
	     "has a number that is not above 0"},
	    {",\"channels\":3", ",{\"op\":\"mixup\",\"num_classes\":3}",
	     "mixup and cutmix are of pictures"},
	    {",\"channels\":3", ",{\"op\":\"bands\",\"channels\":1}",
	     "put it first, and leave decode out"},
	};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		char spec[400];

		snprintf(spec, sizeof(spec), "[{\"op\":\"bands\"%s},%s%s]", cases[i].first, crop,
			 cases[i].more);
		trial_refused(spec, cases[i].wanted);
	}
}
END_TEST

START_TEST(files_that_do_not_fit_are_told)
{
	static const struct {
		const char *first, *name, *wanted;
	} cases[] = {
	    {"\"channels\":3", "u16.png", "it has 1 channels, and not 3"},
	    {"\"bands\":[13]", "u16-13-planes-lzw.tif", "it has 13 channels, and no band 13"},
	    {"\"channels\":1", "u16-pages.tif", "it has 6 channels, and not 1"},
	    {"\"channels\":1", "numbers.tsv", "not JPEG, PNG"},
	    {"\"channels\":1", "jpeg-ls.dcm", "DICOM: JPEG-LS: convert by gdcmconv --raw"},
	    {"\"channels\":3", "../formats/lossless.webp",
	     "WebP: no numbers here, take the op decode"},
	};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		static struct rig rig;
		struct file file;
		char spec[200];

		if (!file_is_known(cases[i].name))
			continue;
		snprintf(spec, sizeof(spec),
			 "[{\"op\":\"bands\",%s},{\"op\":\"center_crop\",\"size\":8}]",
			 cases[i].first);
		rig_init(&rig, spec);
		file_load(&file, cases[i].name);
		ck_assert_int_eq(rig_run(&rig, file.bytes, file.size, 0), PIPELINE_E_BAD);
		ck_assert_msg(strstr(rig.trial.error.text, cases[i].wanted) != NULL, "%s: %s",
			      cases[i].name, rig.trial.error.text);
		rig_fini(&rig);
	}
}
END_TEST

/* By the op decode, which tells of the other one. */
START_TEST(medical_files_are_no_pictures)
{
	static const char *const names[] = {"u16.dcm", "i16.nii", "u8.nii.gz"};
	static struct rig rig;

	rig_init(&rig, "[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":8}]");
	for (unsigned i = 0; i < BASE_ARRAY_LEN(names); i++) {
		struct file file;

		file_load(&file, names[i]);
		ck_assert_int_eq(rig_run(&rig, file.bytes, file.size, 0), PIPELINE_E_BAD);
		ck_assert_msg(strstr(rig.trial.error.text, "no picture; t.Bands(") != NULL, "%s",
			      rig.trial.error.text);
	}
	rig_fini(&rig);
}
END_TEST

/* Each file cut off at some lengths, and with bytes changed: bad or good, and nothing else. */
START_TEST(damaged_files_do_no_harm)
{
	struct file list;
	char *line, *left;
	unsigned bad = 0;
	static struct rig rig;

	rig_init(&rig, "[{\"op\":\"bands\",\"bands\":[0]},{\"op\":\"random_crop\",\"size\":8,\"pad_"
		       "if_needed\":true}]");
	file_load(&list, "numbers.tsv");
	list.bytes[list.size] = '\0';
	left = (char *)list.bytes;
	while ((line = strsep(&left, "\n")) && *line) {
		const char *name = strsep(&line, "\t");
		struct file file;

		if (!file_is_known(name))
			continue;
		file_load(&file, name);
		for (size_t size = 0; size < file.size; size += 1 + size / 8)
			bad += rig_run(&rig, file.bytes, size, 0) == PIPELINE_E_BAD;
		for (size_t at = 0; at < file.size; at += 1 + file.size / 300) {
			const uint8_t was = file.bytes[at];

			file.bytes[at] = (uint8_t)(was + 0x7f);
			bad += rig_run(&rig, file.bytes, file.size, 0) == PIPELINE_E_BAD;
			file.bytes[at] = was;
		}
		ck_assert_msg(rig_run(&rig, file.bytes, file.size, 0) == 0, "%s",
			      rig.trial.error.text);
	}
	ck_assert_uint_ge(bad, 100);
	rig_fini(&rig);
}
END_TEST

/* Heads that say more than the file can have. */
START_TEST(sizes_are_checked_before_memory_is_taken)
{
	static const char *const shapes[] = {"(4000000000, 4000000000, 4000000000)",
					     "(1000, 100000, 100000)", "(3, 0, 4)", "(5000, 1, 1)",
					     "(1, 2, 3, 4)"};
	static const char pgm[] = "P5 100000 100000 65535\n";
	static struct rig rig;

	rig_init(&rig, "[{\"op\":\"bands\",\"bands\":[0]},{\"op\":\"center_crop\",\"size\":8}]");
	ck_assert_int_eq(rig_run(&rig, (const uint8_t *)pgm, sizeof(pgm) - 1, 0), PIPELINE_E_BAD);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(shapes); i++) {
		uint8_t file[4096] = "\x93NUMPY\x01\x00\xf0\x00"; /* a head of 240 bytes */

		snprintf((char *)file + 10, 240,
			 "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shapes[i]);
		ck_assert_msg(rig_run(&rig, file, sizeof(file), 0) == PIPELINE_E_BAD, "%s",
			      shapes[i]);
	}
	rig_fini(&rig);
}
END_TEST

/* The head of an array that ends before its length does. */
START_TEST(a_file_that_is_but_a_few_bytes_is_told)
{
	static const uint8_t bytes[] = "\x93NUMPY\x01\0v\0{'";
	static struct rig rig;

	rig_init(&rig, "[{\"op\":\"bands\",\"bands\":[0]},{\"op\":\"center_crop\",\"size\":8}]");
	for (size_t size = 10; size < 12; size++) {
		ck_assert_int_eq(rig_run(&rig, bytes, size, 0), PIPELINE_E_BAD);
		ck_assert_str_eq(rig.trial.error.text, "NPY: the file is cut off");
	}
	rig_fini(&rig);
}
END_TEST

static void put(struct file *file, uint32_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		file->bytes[file->size++] = (uint8_t)(value >> 8 * i);
}

/* A page of 1 x 1 numbers of 8 bits: in one tile of that size, or in a strip. */
static void put_page(struct file *file, uint32_t tile, bool is_last)
{
	const uint32_t tags[][3] = {
	    {256, 4, 1},
	    {257, 4, 1},
	    {258, 3, 8},
	    {259, 3, 1},
	    {262, 3, 1},
	    {tile ? 322 : 273, 4, tile ? tile : 8},
	    {tile ? 323 : 278, 4, tile ? tile : 1},
	    {tile ? 324 : 279, 4, tile ? 8 : 1},
	    {325, 4, 1},
	};
	const uint32_t n = tile ? 9 : 8;

	put(file, n, 2);
	for (uint32_t i = 0; i < n; i++) {
		put(file, tags[i][0], 2);
		put(file, tags[i][1], 2);
		put(file, 1, 4);
		put(file, tags[i][2], 4);
	}
	put(file, is_last ? 0 : (uint32_t)file->size + 4, 4);
}

/* The tiles of all pages and samples are read, whatever little of them is in the picture. */
START_TEST(tiles_of_all_pages_have_a_limit)
{
	static struct rig rig;
	static struct file file;

	rig_init(&rig, "[{\"op\":\"bands\",\"bands\":[0]},{\"op\":\"resize\",\"size\":[8,8]}]");
	for (unsigned strips = 0; strips < 2; strips++) { /* strips, before the tiles */
		file.size = 0;
		put(&file, 0x2a4949, 4);
		put(&file, 8 + 4, 4);
		put(&file, 7, 4); /* the number */
		for (unsigned page = 0; page < 20; page++)
			put_page(&file, page < strips ? 0 : 8192, page == 19);
		if (strips == 0) {
			ck_assert_int_eq(rig_run(&rig, file.bytes, file.size, 0), PIPELINE_E_BAD);
			ck_assert_msg(strstr(rig.trial.error.text, "tiles of 8192 x 8192") != NULL,
				      "%s", rig.trial.error.text);
			continue;
		}
		/* Those behind a strip are no channels of it. */
		ck_assert_msg(rig_run(&rig, file.bytes, file.size, 0) == 0, "%s",
			      rig.trial.error.text);
		ck_assert(rig.image[0][63] == 7);
	}
	rig_fini(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bands");
	TCase *one = tcase_create("bands");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(one, PATIENCE_OF_A_TEST_S);
	tcase_add_test(one, every_file_gives_the_numbers_that_were_written);
	tcase_add_test(one, medical_files_are_rescaled_and_inverted);
	tcase_add_test(one, medical_files_are_no_pictures);
	tcase_add_test(one, luma_and_chroma_are_where_their_bits_are);
	tcase_add_test(one, what_is_constant_stays_so);
	tcase_add_test(one, ops_move_numbers_as_they_move_pictures);
	tcase_add_test(one, ops_that_make_no_sense_are_refused);
	tcase_add_test(one, files_that_do_not_fit_are_told);
	tcase_add_test(one, damaged_files_do_no_harm);
	tcase_add_test(one, sizes_are_checked_before_memory_is_taken);
	tcase_add_test(one, jobs_share_the_numbers_of_one_op);
	tcase_add_test(one, other_numbers_are_not_shared);
	tcase_add_test(one, a_file_that_is_but_a_few_bytes_is_told);
	if (HAS_TIFF) {
		tcase_add_test(one, tiles_of_all_pages_have_a_limit);
		tcase_add_test(one, bands_are_picked_scaled_and_clamped);
		tcase_add_test(one, resize_is_torchvisions);
		tcase_add_test(one, normalize_cast_and_layout);
		tcase_add_test(one, views_have_draws_of_their_own);
	}
	suite_add_tcase(suite, one);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

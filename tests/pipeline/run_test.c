/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole pipelines over tests/pipeline/data, formats and exif: Pillow's pixels (golden*.tsv), the engines against each
 * other, outcomes of damaged files, independence of what a run did before.
 */

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/philox.h"
#include "pipeline/engine/finish.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/spec.h"
#include "tests/data.h"
#include "tests/histories.h"
#include "tests/patience.h"
#include "tests/pipeline/engine_plain.h"

#define RUN_SEED 20261121 /* parity.py's */
#define RUN_MAX_FILES 320

struct run_file {
	char name[256];
	uint8_t *data;
	size_t size;
};
static struct run_file run_files[RUN_MAX_FILES]; /* in the order of names, as golden.tsv */
static const char *const run_folders[] = {"data", "formats", "exif", "modern", "near"};
#define RUN_FOLDERS BASE_ARRAY_LEN(run_folders)
static unsigned run_first[RUN_FOLDERS + 1]; /* file of each folder; one after the other */
static unsigned run_n_files;

static void run_load(struct run_file *file, const char *folder, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "pipeline/%s", folder);
	snprintf(file->name, sizeof(file->name), "%s", name);
	file->data = data_load(path, name, &file->size);
}

static int run_compare(const void *a, const void *b)
{
	return strcmp(((const struct run_file *)a)->name, ((const struct run_file *)b)->name);
}

static void run_load_folder(const char *folder)
{
	const char *top = getenv("top_srcdir");
	const struct dirent *entry;
	unsigned first = run_n_files;
	char path[4096];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/tests/pipeline/%s", top ? top : ".", folder);
	dir = opendir(path);
	ck_assert_msg(dir != NULL, "cannot open %s", path);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		ck_assert_uint_lt(run_n_files, RUN_MAX_FILES);
		run_load(&run_files[run_n_files++], folder, entry->d_name);
	}
	closedir(dir);
	qsort(run_files + first, run_n_files - first, sizeof(run_files[0]), run_compare);
}

static void run_setup(void)
{
	run_n_files = 0;
	for (unsigned i = 0; i < RUN_FOLDERS; i++) {
		run_load_folder(run_folders[i]);
		run_first[i + 1] = run_n_files;
	}
}

static void run_teardown(void)
{
	for (unsigned i = 0; i < run_n_files; i++)
		free(run_files[i].data);
}

/* The file of that name in the folder of that number. */
static const struct run_file *run_find_in(unsigned folder, const char *name)
{
	for (unsigned i = run_first[folder]; i < run_first[folder + 1]; i++) {
		if (strcmp(run_files[i].name, name) == 0)
			return &run_files[i];
	}
	return NULL;
}

/* The first file of that name. */
static const struct run_file *run_find(const char *name)
{
	for (unsigned folder = 0; folder < RUN_FOLDERS; folder++) {
		const struct run_file *file = run_find_in(folder, name);

		if (file)
			return file;
	}
	ck_abort_msg("no file %s", name);
	return NULL;
}

/* ---- a pipeline with what it writes into ---- */

struct run_case {
	struct pipeline *pipeline;
	struct pipeline_run *run;
	uint8_t *image;
	size_t bytes;
	int64_t label, grid[3], length; /* the last two of patches */
};

static void run_case_init(struct run_case *c, const char *text)
{
	const struct pipeline_field *fields;
	const struct pipeline *pipeline;
	struct diag diag = {""};
	int r = pipeline_compile(text, strlen(text), &c->pipeline, &diag);

	ck_assert_msg(r == 0, "%s", diag.text);
	pipeline_fields(c->pipeline, &fields);
	c->bytes = fields[0].bytes;
	c->image = malloc(c->bytes); /* exactly: the sanitizer sees a byte too many */
	ck_assert_ptr_nonnull(c->image);
	pipeline = c->pipeline;
	ck_assert_int_eq(pipeline_run_new(&pipeline, 1, &c->run), 0);
}

static void run_case_fini(struct run_case *c)
{
	pipeline_run_free(c->run);
	pipeline_free(c->pipeline);
	free(c->image);
}

static int run_case_sample(struct run_case *c, const struct run_file *file,
			   const struct pipeline_key *key, struct pipeline_error *ret_error)
{
	const struct pipeline_out out = {.field = {c->image, &c->label, c->grid, &c->length}};

	return pipeline_run_sample(c->run, 1, file->data, file->size, 1234567, key, &out,
				   ret_error);
}

/* Of a format that this build or this machine has not. */
static bool run_is_left_out(const struct pipeline_error *error)
{
	return strstr(error->text, "this build cannot decode") ||
	       strstr(error->text, "on the node");
}

/* ---- Pillow's pixels ---- */

static void run_golden_line(struct run_case *c, unsigned folder, uint64_t nonce, uint64_t sample,
			    char *line)
{
	struct pipeline_key key = {RUN_SEED, nonce, sample};
	const struct run_file *in;
	struct pipeline_error error = {0};
	struct hash_id id;
	char *what = strchr(line, '\t'), hex[65];

	ck_assert_ptr_nonnull(what);
	*what++ = '\0';
	what[strcspn(what, "\n")] = '\0';
	in = run_find_in(folder, line);
	ck_assert_msg(in != NULL, "no file %s", line);
	if (run_case_sample(c, in, &key, &error) == 0) {
		hash_of(c->image, c->bytes, &id);
		hash_hex(&id, hex);
		hex[16] = '\0';
		ck_assert_int_eq(c->label, 1234567);
	} else {
		snprintf(hex, sizeof(hex), "%d", (int)error.stage);
	}
	if (run_is_left_out(&error))
		return;
	ck_assert_msg(strcmp(hex, what) == 0, "%s, nonce %d: %s, Pillow has %s (%s)", line,
		      (int)nonce, hex, what, pipeline_canonical(c->pipeline));
}

static const struct {
	const char *name;
	unsigned specs; /* at least */
	unsigned folder;
} run_golden[] = {
    {"golden.tsv", 20, 0},        {"golden_formats.tsv", 3, 1},   {"golden_exif.tsv", 7, 2},
    {"golden_modern.tsv", 3, 3},  {"golden_augment.tsv", 13, 0},  {"golden_fast.tsv", 9, 0},
    {"golden_colour.tsv", 13, 0}, {"golden_geometry.tsv", 15, 0}, {"golden_translated.tsv", 20, 0},
    {"golden_patches.tsv", 6, 0}, {"golden_noise.tsv", 12, 0}};

START_TEST(golden)
{
	const unsigned folder = run_golden[_i].folder;
	FILE *file = data_open("pipeline", run_golden[_i].name);
	struct run_case c = {0};
	unsigned specs = 0, lines = 0;
	uint64_t nonce = 0, sample = 0;
	char line[4096];

	while (fgets(line, sizeof(line), file)) {
		if (line[0] == '#')
			continue;
		if (strncmp(line, "spec\t", 5) == 0) {
			char *text;

			run_case_fini(&c);
			nonce = strtoull(line + 5, &text, 10);
			run_case_init(&c, text + 1);
			sample = 0;
			specs++;
		} else {
			run_golden_line(&c, folder, nonce, sample++, line);
			lines++;
		}
	}
	run_case_fini(&c);
	fclose(file);
	ck_assert_uint_ge(specs, run_golden[_i].specs);
	ck_assert_uint_eq(lines, specs * (run_first[folder + 1] - run_first[folder]));
}
END_TEST

/* ---- engines against each other ---- */

struct run_engine {
	const struct engine *engine;
	struct engine_program *program;
	struct engine_scratch *scratch;
	uint8_t *out;
};

struct run_engines {
	struct op_list ops;
	struct shape shape;
	struct run_engine plain, fused;
	size_t bytes;
};

static void run_engine_init(struct run_engine *e, const struct engine *engine,
			    const struct run_engines *both)
{
	e->engine = engine;
	ck_assert_int_eq(engine->compile(&both->ops, &both->shape, &e->program), 0);
	ck_assert_int_eq(engine->scratch_new(e->program, &e->scratch), 0);
	e->out = calloc(1, both->bytes); /* of one channel a third is written */
	ck_assert_ptr_nonnull(e->out);
}

static void run_engine_fini(struct run_engine *e)
{
	e->engine->scratch_free(e->scratch);
	e->engine->program_free(e->program);
	free(e->out);
}

static void run_engines_init(struct run_engines *both, const char *text)
{
	struct diag diag = {""};

	ck_assert_int_eq(spec_parse(text, strlen(text), &both->ops, &diag), 0);
	ck_assert_int_eq(shape_infer(&both->ops, &both->shape, &diag), 0);
	both->bytes = both->shape.patches.most > 0
			  ? both->shape.patches.most * shape_patch_values(&both->shape)
			  : (size_t)both->shape.height * both->shape.width * 3;
	both->bytes *= finish_value_bytes(both->shape.dtype);
	run_engine_init(&both->plain, &engine_plain, both);
	run_engine_init(&both->fused, &engine_fused, both);
}

static void run_engines_fini(struct run_engines *both)
{
	run_engine_fini(&both->plain);
	run_engine_fini(&both->fused);
}

static void run_engines_agree(struct run_engines *both, const uint8_t *data, size_t size,
			      const struct pipeline_key *key, const char *what)
{
	struct pipeline_error a = {0}, b = {0};
	const struct run_engine *p = &both->plain, *c = &both->fused;
	int r = p->engine->run(p->program, p->scratch, data, size, key, p->out, &a);
	int s = c->engine->run(c->program, c->scratch, data, size, key, c->out, &b);

	ck_assert_msg(r == s && a.stage == b.stage && a.code == b.code && !strcmp(a.text, b.text),
		      "%s, sample %d: plain %d %s, fused %d %s", what, (int)key->sample, r, a.text,
		      s, b.text);
	if (r == 0)
		ck_assert_msg(memcmp(p->out, c->out, both->bytes) == 0, "%s, sample %d", what,
			      (int)key->sample);
}

/* Small outputs and all sizes of parts: each column and row of a block is an edge some time. All
 * forms of a plan, what ends one, each type and order. */
static const char *const run_specs[] = {
    ("[{\"op\":\"decode\"},"
     "{\"op\":\"random_resized_crop\",\"size\":[24,40],\"scale\":[0.001,1],"
     "\"ratio\":[0.1,10],\"interpolation\":\"nearest\"}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":[33,17]},"
     "{\"op\":\"hflip\"}]"),
    "[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[31,47]}]",
    ("[{\"op\":\"decode\"},"
     "{\"op\":\"random_resized_crop\",\"size\":[40,20],\"scale\":[0.001,1],"
     "\"ratio\":[0.1,10]},{\"op\":\"hflip\"},"
     "{\"op\":\"normalize\",\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]},"
     "{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},"
     "{\"op\":\"random_resized_crop\",\"size\":[19,35],\"scale\":[0.01,1],"
     "\"interpolation\":\"bicubic\"},{\"op\":\"hflip\"},{\"op\":\"vflip\"},"
     "{\"op\":\"cast\",\"dtype\":\"f16\"},{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},"
     "{\"op\":\"random_resized_crop\",\"size\":32,\"interpolation\":\"lanczos\"},"
     "{\"op\":\"hflip\"},"
     "{\"op\":\"normalize\",\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]},"
     "{\"op\":\"cast\",\"dtype\":\"bf16\"}]"),
    ("[{\"op\":\"decode\"},"
     "{\"op\":\"random_resized_crop\",\"size\":[200,90],\"interpolation\":\"hamming\"},"
     "{\"op\":\"hflip\"},{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},"
     "{\"op\":\"random_resized_crop\",\"size\":[7,160],\"interpolation\":\"box\"},"
     "{\"op\":\"vflip\",\"p\":1},"
     "{\"op\":\"normalize\",\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":37},"
     "{\"op\":\"center_crop\",\"size\":[32,30]},{\"op\":\"hflip\"},"
     "{\"op\":\"normalize\",\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]},"
     "{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":20,\"interpolation\":\"lanczos\"},"
     "{\"op\":\"center_crop\",\"size\":[47,31]},{\"op\":\"hflip\"},{\"op\":\"vflip\"},"
     "{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":20,\"interpolation\":\"nearest\"},"
     "{\"op\":\"center_crop\",\"size\":[47,12]},{\"op\":\"vflip\"},"
     "{\"op\":\"normalize\",\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]},"
     "{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},"
     "{\"op\":\"resize\",\"size\":[51,23],\"interpolation\":\"bicubic\"},"
     "{\"op\":\"hflip\",\"p\":1}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":150},"
     "{\"op\":\"center_crop\",\"size\":140},{\"op\":\"cast\"},{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[300,420]},"
     "{\"op\":\"resize\",\"size\":[41,57]},{\"op\":\"hflip\"},"
     "{\"op\":\"normalize\",\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]},"
     "{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[90,410]},{\"op\":\"hflip\"},"
     "{\"op\":\"vflip\"},{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[420,60]},"
     "{\"op\":\"vflip\",\"p\":1},"
     "{\"op\":\"normalize\",\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"hflip\"},{\"op\":\"resize\",\"size\":[33,44]},"
     "{\"op\":\"center_crop\",\"size\":[40,40]},{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":60},"
     "{\"op\":\"center_crop\",\"size\":[50,80]},"
     "{\"op\":\"random_resized_crop\",\"size\":[24,30]},"
     "{\"op\":\"center_crop\",\"size\":28},{\"op\":\"hflip\"},"
     "{\"op\":\"center_crop\",\"size\":[14,40]},{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\",\"exif_transpose\":true},"
     "{\"op\":\"random_resized_crop\",\"size\":[24,40],\"scale\":[0.001,1],"
     "\"ratio\":[0.1,10]},{\"op\":\"hflip\"},{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\",\"exif_transpose\":true},"
     "{\"op\":\"center_crop\",\"size\":[31,47]}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":60},{\"op\":\"random_crop\",\"size\":[41,30]"
     "},"
     "{\"op\":\"hflip\"},{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"random_crop\",\"size\":[33,30],\"padding\":4,"
     "\"pad_if_needed\":true,\"fill\":9},{\"op\":\"hflip\"},{\"op\":\"cast\"},{\"op\":\"layout\"}"
     "]"),
    ("[{\"op\":\"decode\",\"fast\":true},"
     "{\"op\":\"random_resized_crop\",\"size\":[9,12],\"scale\":[0.05,1],"
     "\"ratio\":[0.3,3]},{\"op\":\"hflip\"},"
     "{\"op\":\"normalize\",\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]},"
     "{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\",\"fast\":true,\"exif_transpose\":true},"
     "{\"op\":\"random_resized_crop\",\"size\":[4,3],\"interpolation\":\"lanczos\"},"
     "{\"op\":\"vflip\"}]"),
    ("[{\"op\":\"decode\",\"fast\":true},{\"op\":\"resize\",\"size\":21},"
     "{\"op\":\"center_crop\",\"size\":[20,15]},{\"op\":\"hflip\"},{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\",\"fast\":true},{\"op\":\"resize\",\"size\":[11,15]},"
     "{\"op\":\"grayscale\"},{\"op\":\"hflip\"},{\"op\":\"rotate\",\"degrees\":20}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"scale_jitter\",\"target_size\":40},{\"op\":\"hflip\"},"
     "{\"op\":\"patches\",\"patch_size\":5,\"max_patches\":29},{\"op\":\"vflip\"},"
     "{\"op\":\"normalize\",\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"patches\",\"patch_size\":4,\"max_pixels\":900,"
     "\"min_pixels\":700,\"merge_size\":3,\"temporal_patch_size\":2},"
     "{\"op\":\"color_jitter\",\"brightness\":0.4},{\"op\":\"hflip\"},{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":[19,35]},{\"op\":\"hflip\"},"
     "{\"op\":\"gaussian_noise\",\"p\":0.7},"
     "{\"op\":\"normalize\",\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]},"
     "{\"op\":\"cast\",\"dtype\":\"bf16\"},{\"op\":\"layout\"}]"),
    ("[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":[19,35]},"
     "{\"op\":\"jpeg\",\"quality\":[1,100]},{\"op\":\"elastic_transform\",\"sigma\":[1,0.5]},"
     "{\"op\":\"aug_mix\"},{\"op\":\"timm_aug_mix\"},{\"op\":\"gaussian_noise\"},{\"op\":\"cast\"}"
     "]"),
};
#define RUN_MANY 3 /* specs that go through all sizes of parts */

/* ASan fills new memory as far as it is told; what libheif shows of damaged pictures is the same each time then. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "max_malloc_fill_size=16777216";
}

/* Samples of a file: a tenth where OpenJPEG or libjxl takes ten times as long as others for so small a picture, and with sanitizers. */
static uint64_t run_samples(const char *name, unsigned most)
{
	const bool is_slow = strstr(name, ".jp2") || strstr(name, ".j2k") || strstr(name, ".jpx") ||
			     strstr(name, ".jxl");

	most = is_slow ? most / 10 : most;
	return HISTORIES_ARE_FEW ? (most + 9) / 10 : most;
}

START_TEST(engines_agree)
{
	struct run_engines both = {0};

	run_engines_init(&both, run_specs[_i]);
	for (unsigned f = 0; f < run_n_files; f++) {
		for (uint64_t sample = 0;
		     sample < run_samples(run_files[f].name, _i < RUN_MANY ? 300 : 20); sample++) {
			struct pipeline_key key = {5, 6, sample};

			run_engines_agree(&both, run_files[f].data, run_files[f].size, &key,
					  run_files[f].name);
		}
	}
	run_engines_fini(&both);
}
END_TEST

/* Damage of any kind: the outcome never depends on how much was decoded. */
START_TEST(engines_agree_on_damage)
{
	struct run_engines both = {0};
	struct philox_seq seq;

	philox_seq_init(&seq, 77, (uint64_t)_i, 0);
	run_engines_init(&both, run_specs[_i]);
	for (unsigned f = 0; f < run_n_files; f++) {
		for (uint64_t sample = 0;
		     run_files[f].size &&
		     sample < run_samples(run_files[f].name, _i < RUN_MANY ? 150 : 10);
		     sample++) {
			struct pipeline_key key = {5, 6, sample};
			size_t size = run_files[f].size;
			uint8_t *data = malloc(size);

			ck_assert_ptr_nonnull(data);
			memcpy(data, run_files[f].data, size);
			for (unsigned i = 0; i < 1 + sample % 7; i++)
				data[philox_below(&seq, size)] = (uint8_t)philox_u32(&seq);
			if (sample % 5 == 0)
				size = philox_below(&seq, size + 1);
			run_engines_agree(&both, data, size, &key, run_files[f].name);
			free(data);
		}
	}
	run_engines_fini(&both);
}
END_TEST

/* ---- outcomes ---- */

static const struct {
	const char *name;
	enum pipeline_fail stage; /* 0: decodes */
	const char *text;
} run_outcomes[] = {
    {"420.jpg", 0, NULL},
    {"corrupt-scan.jpg", 0, NULL},
    {"trailing-bytes.jpg", 0, NULL},
    {"early-end.jpg", 0, NULL},
    {"truncated.jpg", PIPELINE_FAIL_DECODE, "the file ends before"},
    {"no-end-marker.jpg", PIPELINE_FAIL_DECODE, "the file ends before"},
    {"truncated-header.jpg", PIPELINE_FAIL_DECODE, "the file ends before"},
    {"empty.jpg", PIPELINE_FAIL_DECODE, "the file is empty"},
    {"no-magic.jpg", PIPELINE_FAIL_DECODE, "not JPEG, PNG or"},
    {"png.jpg", PIPELINE_FAIL_DECODE, "the file ends before"},
    {"rgb.png", 0, NULL},
    {"marker-in-scan.jpg", 0, NULL},
    {"zero-height.jpg", PIPELINE_FAIL_DECODE, "Empty"},
    {"truncated.png", PIPELINE_FAIL_DECODE, "the file ends before"},
    {"checksum.png", PIPELINE_FAIL_DECODE, "invalid chunk checksum"},
    {"wrong-data.png", PIPELINE_FAIL_DECODE, "invalid chunk checksum"},
    {"early-rows.png", PIPELINE_FAIL_DECODE, "the file ends before"},
    {"no-end.png", 0, NULL},
    {"huge.png", PIPELINE_FAIL_REFUSED, "65500 x 65500 pixels"},
    {"rgb16.tif", 0, NULL},
    {"truncated.tif", PIPELINE_FAIL_DECODE, "damaged or cut off"},
    {"huge.tif", PIPELINE_FAIL_REFUSED, "65500 x 65500 pixels"},
    {"tile-bomb.tif", PIPELINE_FAIL_DECODE, "tiles of 65536 x 16 are too large"},
    {"float.tif", PIPELINE_FAIL_DECODE, "TIFF: 1 x 32 bits of kind 1 are not supported"},
    {"bands.tif", PIPELINE_FAIL_DECODE, "TIFF: 7 x 8 bits of kind 1 are not supported"},
    {"truncated.webp", PIPELINE_FAIL_DECODE, "damaged or cut off"},
    {"truncated.jp2", PIPELINE_FAIL_DECODE, "JPEG 2000: damaged: "},
    {"huge.jp2", PIPELINE_FAIL_REFUSED, "JPEG 2000: 12000 x 12000 pixels in"},
    {"subsampled.j2k", 0, NULL},
    {"five.j2k", PIPELINE_FAIL_DECODE, "JPEG 2000: 5 components"},
    {"truncated.jxl", PIPELINE_FAIL_DECODE, "the file ends before"},
    {"damaged.jxl", PIPELINE_FAIL_DECODE, "JPEG XL: damaged"},
    {"huge.jxl", PIPELINE_FAIL_REFUSED, "JPEG XL: 10000 x 10000 pixels in"},
    {"truncated.heic", PIPELINE_FAIL_DECODE, "HEIF: "},
    {"no-pixels.heic", PIPELINE_FAIL_DECODE, "without pixels"},
    {"huge.heic", PIPELINE_FAIL_REFUSED, "HEIF: 12000 x 12000 pixels in"},
    {"truncated.avif", PIPELINE_FAIL_DECODE, "AVIF: damaged: Truncated data"},
    {"damaged.avif", PIPELINE_FAIL_DECODE, "AVIF: damaged: Decoding of color"},
    {"huge.avif", PIPELINE_FAIL_REFUSED, "16000 x 16000 pixels"},
    {"no-pixels.avif", PIPELINE_FAIL_DECODE, "AVIF: damaged: BMFF"},
    {"truncated.gif", PIPELINE_FAIL_DECODE, "the file ends before"},
    {"truncated.bmp", PIPELINE_FAIL_DECODE, "the file ends before"},
    {"truncated.ppm", PIPELINE_FAIL_DECODE, "the file ends before"},
    {"huge-header.jpg", PIPELINE_FAIL_REFUSED, "65500 x 65500 pixels"},
    {"many-scans.jpg", PIPELINE_FAIL_REFUSED, "more than 100 scans"},
};

START_TEST(outcomes)
{
	struct run_case c = {0};
	struct pipeline_key key = {1, 2, 3};

	for (unsigned n = 0; n < 4; n++) {
		const char *const *names;
		struct pipeline_error error = {0};

		pipeline_names(&names);
		run_case_init(&c, pipeline_named(names[n]));
		ck_assert_int_eq(run_case_sample(&c, run_find(run_outcomes[_i].name), &key, &error),
				 run_outcomes[_i].stage ? PIPELINE_E_BAD : 0);
		ck_assert_int_eq(error.stage, run_outcomes[_i].stage);
		if (run_outcomes[_i].stage)
			ck_assert_msg(strstr(error.text, run_outcomes[_i].text) != NULL, "%s",
				      error.text);
		/* the run goes on as if nothing had been */
		ck_assert_int_eq(run_case_sample(&c, run_find("444.jpg"), &key, &error), 0);
		run_case_fini(&c);
	}
}
END_TEST

/* Claims of rgb.j2k for which OpenJPEG would take much memory or time; refused before it can. */
static const struct {
	size_t at, over; /* bytes of the file, and how many of them */
	const char *bytes;
	size_t size;
	const char *text;
} run_claims[] = {
    {40, 2, "\x40\0", 2, "16384 components are not supported"},
    {24, 8, "\0\0\0\x01\0\0\0\x01", 8, "609 tiles in 1805 bytes"},
    {57, 2, "\xff\xff", 2, "983025 packets in 1805 bytes"},
    /* four layers, and precincts of 2 x 2 */
    {53, 12, "\0\x11\x01\0\0\x04\0\x04\x04\x04\0\x01\x11\x11\x11\x11\x11", 17,
     " packets in 1810 bytes"},
    {134, 2, "\xff\x52", 2, "marker 0xff52 is not supported here"},
    {134, 2, "\xff\x5f", 2, "marker 0xff5f is not supported here"},
};

START_TEST(claims)
{
	const struct run_file *file = run_find("rgb.j2k");
	const size_t at = run_claims[_i].at, end = at + run_claims[_i].over;
	const size_t size = run_claims[_i].size;
	struct run_file claimed = {.size = file->size - (end - at) + size};
	struct run_case c = {0};
	struct pipeline_key key = {1, 2, 3};
	struct pipeline_error error = {0};

	claimed.data = malloc(claimed.size);
	ck_assert_ptr_nonnull(claimed.data);
	memcpy(claimed.data, file->data, at);
	memcpy(claimed.data + at, run_claims[_i].bytes, size);
	memcpy(claimed.data + at + size, file->data + end, file->size - end);
	run_case_init(&c, run_specs[0]);
	ck_assert_int_eq(run_case_sample(&c, &claimed, &key, &error), PIPELINE_E_BAD);
	ck_assert_msg(strstr(error.text, run_claims[_i].text) != NULL, "%s", error.text);
	run_case_fini(&c);
	free(claimed.data);
}
END_TEST

/* What a library makes a little other pixels of in each version, against a file of the same picture. */
static const struct {
	const char *name, *of;
	int most; /* from value to value */
} run_near[] = {
    {"420.heic", "rgb.ppm", 100},          {"deep.jxl", "rgb.ppm", 0},
    {"lossy.jxl", "rgb.ppm", 80},          {"packed-jpeg.jxl", "420.jpg", 12},
    {"upright-2.jxl", "upright-2.jpg", 4}, {"upright-3.jxl", "upright-3.jpg", 4},
    {"upright-4.jxl", "upright-4.jpg", 4}, {"upright-5.jxl", "upright-5.jpg", 4},
    {"upright-6.jxl", "upright-6.jpg", 4}, {"upright-7.jxl", "upright-7.jpg", 4},
    {"upright-8.jxl", "upright-8.jpg", 4},
};

START_TEST(near)
{
	const char *spec = "[{\"op\":\"decode\",\"exif_transpose\":true},{\"op\":\"center_crop\","
			   "\"size\":19}]";
	const char *names[2] = {run_near[_i].name, run_near[_i].of};
	struct run_case both[2] = {0};
	struct pipeline_key key = {1, 2, 3};
	struct pipeline_error error = {0};
	int most = 0;

	for (unsigned i = 0; i < 2; i++) {
		run_case_init(&both[i], spec);
		if (run_case_sample(&both[i], run_find(names[i]), &key, &error) != 0)
			ck_assert_msg(run_is_left_out(&error), "%s: %s", names[i], error.text);
	}
	for (unsigned i = 0; !error.text[0] && i < 19 * 19 * 3; i++)
		most = BASE_MAX(most, abs(both[0].image[i] - both[1].image[i]));
	ck_assert_int_le(most, run_near[_i].most);
	for (unsigned i = 0; i < 2; i++)
		run_case_fini(&both[i]);
}
END_TEST

/* A picture that a resize would blow up beyond all bounds is refused by name of the op. */
START_TEST(refused_by_resize)
{
	struct run_case c = {0};
	struct pipeline_key key = {1, 2, 3};
	struct pipeline_error error = {0};

	run_case_init(&c, "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":16384},"
			  "{\"op\":\"center_crop\",\"size\":8}]");
	ck_assert_int_eq(run_case_sample(&c, run_find("wide.jpg"), &key, &error), PIPELINE_E_BAD);
	ck_assert_int_eq(error.stage, PIPELINE_FAIL_REFUSED);
	ck_assert_ptr_nonnull(strstr(error.text, "resize"));
	run_case_fini(&c);
}
END_TEST

/* ---- several at once ---- */

#define RUN_VARIANTS 4
static const char *const run_variants[][RUN_VARIANTS] = {
    {"[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":48},{\"op\":\"hflip\"},"
     "{\"op\":\"cast\"}]",
     NULL, /* there is none of this number */
     "[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":[20,33]}]",
     "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":40},{\"op\":\"center_crop\",\"size\":32},"
     "{\"op\":\"layout\"}]"},
    {/* each at the scale that it needs */
     "[{\"op\":\"decode\",\"fast\":true},{\"op\":\"random_resized_crop\",\"size\":20},"
     "{\"op\":\"hflip\"},{\"op\":\"cast\"}]",
     NULL, "[{\"op\":\"decode\",\"fast\":true},{\"op\":\"random_resized_crop\",\"size\":[5,9]}]",
     "[{\"op\":\"decode\",\"fast\":true},{\"op\":\"resize\",\"size\":9},"
     "{\"op\":\"center_crop\",\"size\":8},{\"op\":\"layout\"}]"},
};

struct run_set {
	const char *const *text;
	struct run_case alone[RUN_VARIANTS];
	struct pipeline_run *run;
	struct pipeline_out out[RUN_VARIANTS];
	int64_t label[RUN_VARIANTS];
};

static void run_set_init(struct run_set *set, unsigned number)
{
	const struct pipeline *pipelines[RUN_VARIANTS];

	set->text = run_variants[number];
	for (unsigned v = 0; v < RUN_VARIANTS; v++) {
		set->alone[v] = (struct run_case){0};
		if (set->text[v])
			run_case_init(&set->alone[v], set->text[v]);
		pipelines[v] = set->alone[v].pipeline;
		set->out[v].field[0] = malloc(set->alone[v].bytes + 1);
		set->out[v].field[1] = &set->label[v];
	}
	ck_assert_int_eq(pipeline_run_new(pipelines, RUN_VARIANTS, &set->run), 0);
}

static void run_set_fini(struct run_set *set)
{
	pipeline_run_free(set->run);
	for (unsigned v = 0; v < RUN_VARIANTS; v++) {
		run_case_fini(&set->alone[v]);
		free(set->out[v].field[0]);
	}
}

/* Each of `variants` has the bytes that it makes alone; the others are not touched. */
static void run_set_check(struct run_set *set, uint32_t variants, const struct run_file *file,
			  const struct pipeline_key *key)
{
	struct pipeline_error error = {0}, one = {0};
	int r;

	for (unsigned v = 0; v < RUN_VARIANTS; v++)
		memset(set->out[v].field[0], 0xa5, set->alone[v].bytes);
	memset(set->label, 0xa5, sizeof(set->label));
	r = pipeline_run_sample(set->run, variants, file->data, file->size, 1234567, key, set->out,
				&error);
	for (unsigned v = 0; v < RUN_VARIANTS; v++) {
		struct run_case *c = &set->alone[v];

		if (!set->text[v])
			continue;
		memset(c->image, 0xa5, c->bytes);
		if (variants >> v & 1) {
			ck_assert_int_eq(run_case_sample(c, file, key, &one), r);
			ck_assert_int_eq(one.stage, error.stage);
			ck_assert_int_eq(r ? 1234567 : set->label[v], 1234567);
		} else {
			ck_assert_int_eq(set->label[v], (int64_t)UINT64_C(0xa5a5a5a5a5a5a5a5));
		}
		if (r == 0)
			ck_assert_msg(memcmp(set->out[v].field[0], c->image, c->bytes) == 0,
				      "%s, variant %u of %#x", file->name, v, variants);
	}
}

START_TEST(variants_are_as_alone)
{
	struct run_set set = {.run = NULL};

	run_set_init(&set, (unsigned)_i);
	for (unsigned f = 0; f < run_n_files; f++) {
		for (uint64_t nonce = 0; nonce < 8; nonce++) {
			const struct pipeline_key key = {RUN_SEED, nonce, f};

			run_set_check(&set, (uint32_t)(1 + (nonce + 5 * f) % 15), &run_files[f],
				      &key);
			run_set_check(&set, 13, &run_files[f], &key);
		}
	}
	run_set_fini(&set);
}
END_TEST

/* One decode cannot serve pictures that are turned and pictures that are not. */
START_TEST(variants_decode_alike)
{
	struct run_case c[2] = {0};
	const struct pipeline *pipelines[3] = {NULL};
	struct pipeline_run *run;

	run_case_init(&c[0], "[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":8}]");
	run_case_init(&c[1], "[{\"op\":\"decode\",\"exif_transpose\":true},"
			     "{\"op\":\"center_crop\",\"size\":8}]");
	pipelines[0] = c[0].pipeline;
	pipelines[2] = c[1].pipeline;
	ck_assert_int_eq(pipeline_run_new(pipelines, 3, &run), -EINVAL);
	pipelines[0] = c[1].pipeline;
	ck_assert_int_eq(pipeline_run_new(pipelines, 3, &run), 0);
	pipeline_run_free(run);
	run_case_fini(&c[0]);
	run_case_fini(&c[1]);
}
END_TEST

/* ---- a function of (seed, nonce, sample) and of nothing else ---- */

/* A copy of the file whose head says height x width, without its end. */
static struct run_file run_cut(const struct run_file *file, unsigned height, unsigned width)
{
	struct run_file copy = {.data = malloc(file->size), .size = file->size - 100};
	uint8_t *at;

	ck_assert_ptr_nonnull(copy.data);
	memcpy(copy.data, file->data, file->size);
	at = memmem(copy.data, copy.size, "\xff\xc0", 2);
	ck_assert_ptr_nonnull(at);
	at[5] = (uint8_t)(height >> 8);
	at[6] = (uint8_t)height;
	at[7] = (uint8_t)(width >> 8);
	at[8] = (uint8_t)width;
	return copy;
}

/* A picture that fails gives its memory back, or large ones after it would fail for want of it. */
START_TEST(failed_pictures_leave_nothing)
{
	static const struct {
		const char *ops, *name;
		unsigned height, width; /* 0: as it is */
	} cases[] = {
	    {"[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":9000}]", "444.jpg", 12000,
	     12000},
	    {"[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[8,8]}]", "444.jpg", 12000, 12000},
	    {"[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":16384},"
	     "{\"op\":\"center_crop\",\"size\":8}]",
	     "wide.jpg", 0, 0},
	};
	struct pipeline_key key = {1, 2, 3};
	struct pipeline_error error = {0};
	struct run_case c = {0};
	struct run_file file;
	size_t before;

	run_case_init(&c, cases[_i].ops);
	file = *run_find(cases[_i].name);
	if (cases[_i].height)
		file = run_cut(&file, cases[_i].height, cases[_i].width);
	before = mallinfo2().hblkhd;
	ck_assert_int_eq(run_case_sample(&c, &file, &key, &error), PIPELINE_E_BAD);
	ck_assert_msg(mallinfo2().hblkhd <= before + (4 << 20), "case %d: %zu bytes stayed (%s)",
		      _i, mallinfo2().hblkhd - before, error.text);
	if (cases[_i].height)
		free(file.data);
	run_case_fini(&c);
}
END_TEST

START_TEST(order_of_calls)
{
	struct run_case c = {0}, fresh = {0};
	struct pipeline_error error;
	struct hash_id first[64], again;

	run_case_init(&c, run_specs[1]);
	for (unsigned i = 0; i < 64; i++) {
		struct pipeline_key key = {9, 10, i};

		run_case_sample(&c, &run_files[i % run_n_files], &key, &error);
		memset(&first[i], 0, sizeof(first[i]));
		if (run_case_sample(&c, &run_files[i % run_n_files], &key, &error) == 0)
			hash_of(c.image, c.bytes, &first[i]);
	}
	for (unsigned i = 64; i-- > 0;) {
		struct pipeline_key key = {9, 10, i};

		run_case_init(&fresh, pipeline_canonical(c.pipeline));
		memset(&again, 0, sizeof(again));
		if (run_case_sample(&fresh, &run_files[i % run_n_files], &key, &error) == 0)
			hash_of(fresh.image, fresh.bytes, &again);
		ck_assert_mem_eq(&first[i], &again, sizeof(again));
		run_case_fini(&fresh);
	}
	run_case_fini(&c);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("run");
	TCase *tcase = tcase_create("run");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_checked_fixture(tcase, run_setup, run_teardown);
	tcase_add_loop_test(tcase, golden, 0, BASE_ARRAY_LEN(run_golden));
	tcase_add_loop_test(tcase, engines_agree, 0, BASE_ARRAY_LEN(run_specs));
	tcase_add_loop_test(tcase, engines_agree_on_damage, 0, BASE_ARRAY_LEN(run_specs));
	tcase_add_loop_test(tcase, claims, 0, BASE_ARRAY_LEN(run_claims));
	tcase_add_loop_test(tcase, near, 0, BASE_ARRAY_LEN(run_near));
	tcase_add_loop_test(tcase, outcomes, 0, BASE_ARRAY_LEN(run_outcomes));
	tcase_add_test(tcase, refused_by_resize);
	tcase_add_loop_test(tcase, variants_are_as_alone, 0, BASE_ARRAY_LEN(run_variants));
	tcase_add_test(tcase, variants_decode_alike);
	tcase_add_loop_test(tcase, failed_pictures_leave_nothing, 0, 3);
	tcase_add_test(tcase, order_of_calls);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

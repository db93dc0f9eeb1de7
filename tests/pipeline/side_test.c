/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of several media: views that begin with a first op of their own. What each gives is what a pipeline of that
 * medium alone gives of its file, with the draws that are the view's; which fields there are; who meets whom; what is refused.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/forms/packed.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/compare.h"
#include "tests/patience.h"
#include "tests/pipeline/trial.h"

#define MOST_BYTES 8192 /* of a field, and of a file */
#define MOST_FILES 5
#define LABEL 5

static struct pipeline_error error;

/* ---- files ---- */

struct file {
	uint8_t data[MOST_BYTES];
	size_t size;
};

static void put(struct file *file, uint32_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		file->data[file->size++] = (uint8_t)(value >> (8 * i));
}

static void put_text(struct file *file, const char *text)
{
	memcpy(file->data + file->size, text, strlen(text));
	file->size += strlen(text);
}

static void picture(struct file *file, unsigned seed)
{
	file->size = 0;
	put_text(file, "P6\n12 10\n255\n");
	for (unsigned i = 0; i < 12 * 10 * 3; i++)
		put(file, i * 7 + seed, 1);
}

static void sound(struct file *file, unsigned frames)
{
	file->size = 0;
	put_text(file, "RIFF");
	put(file, 36 + 2 * frames, 4);
	put_text(file, "WAVEfmt ");
	put(file, 16, 4);
	put(file, 1, 2);
	put(file, 1, 2);
	put(file, 8000, 4);
	put(file, 16000, 4);
	put(file, 2, 2);
	put(file, 16, 2);
	put_text(file, "data");
	put(file, 2 * frames, 4);
	for (unsigned i = 0; i < frames; i++)
		put(file, i * 31, 2);
}

static void points(struct file *file, unsigned n)
{
	file->size = 0;
	for (unsigned i = 0; i < n; i++)
		file->size += (size_t)sprintf((char *)file->data + file->size, "%u %u %u\n", i,
					      i * i % 17, 100 - i);
}

/* Slices of numbers, as numpy.save() writes them. */
static void volume(struct file *file, unsigned seed)
{
	const unsigned side = 9;
	char head[119];

	memset(head, ' ', sizeof(head));
	head[snprintf(head, sizeof(head),
		      "{'descr': '|u1', 'fortran_order': False, 'shape': (%u, %u, %u), }", side,
		      side, side)] = ' ';
	head[sizeof(head) - 2] = '\n';
	file->size = 0;
	put(file, 0x4d554e93, 4);
	put_text(file, "PY\x01");
	put(file, 0, 1);
	put(file, sizeof(head) - 1, 2);
	memcpy(file->data + file->size, head, sizeof(head) - 1);
	file->size += sizeof(head) - 1;
	for (unsigned i = 0; i < side * side * side; i++)
		put(file, i * 3 + seed, 1);
}

/* ---- a record of them ---- */

static size_t record(uint8_t *to, const struct file *const files[], unsigned n, int64_t label)
{
	struct packed_wide_head *head = (void *)to;
	uint64_t at = sizeof(*head) * (2 + n);

	memset(to, 0, at);
	for (unsigned f = 0; f < n + 1; f++) {
		const unsigned number = f > 1 ? f - 1 : f;
		struct packed_place *place = &head->field[f].place;

		place->at = at;
		if (f == 1) {
			*place = (struct packed_place){.dtype = PIPELINE_I64, .at = at, .bytes = 8};
			memcpy(to + at, &label, 8);
		} else {
			place->dtype = PIPELINE_U8;
			place->ndim = 1;
			place->shape[0] = place->bytes = files[number]->size;
			memcpy(to + at, files[number]->data, files[number]->size);
		}
		at = base_align_up(at + place->bytes, PACKED_ALIGN);
	}
	head->magic = PACKED_WIDE_MAGIC;
	head->n_fields = n + 1;
	head->bytes = at;
	return at;
}

/* ---- pipelines ---- */

#define RUNS 2

struct rig {
	struct pipeline *pipeline[RUNS];
	struct pipeline_run *run;
	unsigned n;
	_Alignas(64) uint8_t field[RUNS][PIPELINE_MAX_FIELDS][MOST_BYTES];
};

static struct rig rig, alone;

static struct pipeline *compiled(const char *spec)
{
	struct pipeline *pipeline;
	struct diag diag = {.text = ""};

	ck_assert_msg(pipeline_compile(spec, strlen(spec), &pipeline, &diag) == 0, "%s", diag.text);
	return pipeline;
}

static void rig_init(struct rig *to, const char *first, const char *second)
{
	const struct pipeline *both[RUNS];

	to->n = second ? 2 : 1;
	both[0] = to->pipeline[0] = compiled(first);
	both[1] = to->pipeline[1] = second ? compiled(second) : NULL;
	ck_assert_int_eq(pipeline_run_new(both, to->n, &to->run), 0);
}

static void rig_fini(struct rig *to)
{
	pipeline_run_free(to->run);
	for (unsigned v = 0; v < to->n; v++)
		pipeline_free(to->pipeline[v]);
}

/* Of a copy of exactly size bytes: the sanitizer sees one too many. */
static int rig_run(struct rig *to, const void *data, size_t size, const struct pipeline_key *key)
{
	struct pipeline_out out[RUNS];
	uint8_t *copy = malloc(size);
	int r;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, data, size);
	for (unsigned v = 0; v < to->n; v++)
		for (unsigned f = 0; f < PIPELINE_MAX_FIELDS; f++)
			out[v].field[f] = to->field[v][f];
	memset(to->field, 0xaa, sizeof(to->field));
	error.text[0] = '\0';
	r = pipeline_run_sample(to->run, (1U << to->n) - 1, copy, size, 0, key, out, &error);
	free(copy);
	return r;
}

static const struct pipeline_key key = {1, 2, 3};

/* The nonce of view number i, and of the first file's. */
static uint64_t nonce(int i)
{
	return i < 0 ? key.nonce : key.nonce ^ UINT64_C(1) << 63 ^ (uint64_t)i << 56;
}

/* ---- samples ---- */

#define FIRST(op, kinds, fields, names)                                                        \
	"[{\"op\":" op ",\"source\":\"record\",\"fields\":[" fields "],\"kinds\":[" kinds "]," \
	"\"names\":[" names "]}"
#define VIEW(name) ",{\"op\":\"view\",\"names\":[\"" name "\"]},{\"op\":"
#define DECODE "\"decode\""
#define AUDIO "\"audio\",\"sample_rate\":8000,\"frames\":200"
#define CLOUD "\"cloud\",\"points\":20"
#define VOLUME "\"volume\""
#define CROP ",{\"op\":\"random_resized_crop\",\"size\":4},{\"op\":\"hflip\"}"
#define CROP3 ",{\"op\":\"random_crop_3d\",\"size\":4},{\"op\":\"random_flip_3d\",\"axes\":[0,1,2]}"
#define NUMBERS \
	",{\"op\":\"random_scale_intensity\",\"factors\":0.5},{\"op\":\"cast\",\"dtype\":\"f16\"}"
#define PATCHES ",{\"op\":\"patches\",\"patch_size\":4,\"max_patches\":4}"
#define SHAKE ",{\"op\":\"point_rotation\"},{\"op\":\"point_jitter\"}"
#define MEL ",{\"op\":\"mel_spectrogram\",\"n_fft\":64,\"n_mels\":4}"

enum kind { PICTURE, SOUND, POINTS, CUBE };

static void make(enum kind kind, unsigned number, struct file *file)
{
	static void (*const makers[])(struct file *, unsigned) = {picture, sound, points, volume};
	static const unsigned least[] = {1, 450, 60, 1};

	makers[kind](file, least[kind] + number);
}

/* Each view is a field of the sample, with its file's kind, and the pipeline of that alone; and where its fields go, which are the alone one's first
 * and those behind its label. */
struct part {
	enum kind kind;
	const char *alone;
	unsigned field, rest, n_rest;
};

static const struct {
	const char *spec, *names; /* of the fields */
	unsigned n;
	struct part part[MOST_FILES];
} samples[] = {
    {FIRST(DECODE, "10,10", "[1],[1]", "\"sound\",\"points\"") CROP VIEW("sound") AUDIO
     "}" VIEW("points") CLOUD "}" SHAKE "]",
     "image label sound points sound_length points_length ",
     3,
     {{PICTURE, "[{\"op\":" DECODE "}" CROP "]", 0, 0, 0},
      {SOUND, "[{\"op\":" AUDIO "}]", 2, 4, 1},
      {POINTS, "[{\"op\":" CLOUD "}" SHAKE "]", 3, 5, 1}}},
    {FIRST(AUDIO, "10,10", "[1],[1]", "\"face\",\"scan\"") MEL VIEW("face") DECODE
     "}" CROP VIEW("scan") VOLUME "}" CROP3 "]",
     "audio label length face scan ",
     3,
     {{SOUND, "[{\"op\":" AUDIO "}" MEL "]", 0, 2, 1},
      {PICTURE, "[{\"op\":" DECODE "}" CROP "]", 3, 0, 0},
      {CUBE, "[{\"op\":" VOLUME "}" CROP3 "]", 4, 0, 0}}},
    {FIRST(CLOUD, "10,10", "[1],[1]", "\"camera\",\"other\"") VIEW("camera") DECODE
     "}" PATCHES VIEW("other") CLOUD ",\"padding\":\"ragged\",\"pick\":\"first\"}]",
     "points label length camera other camera_grid camera.length other.length ",
     3,
     {{POINTS, "[{\"op\":" CLOUD "}]", 0, 2, 1},
      {PICTURE, "[{\"op\":" DECODE "}" PATCHES "]", 3, 5, 2},
      {POINTS, "[{\"op\":" CLOUD ",\"padding\":\"ragged\",\"pick\":\"first\"}]", 4, 7, 1}}},
    {FIRST(VOLUME, "10,10", "[1],[1]", "\"second\",\"sound\"") CROP3 VIEW("sound") AUDIO
     "}" VIEW("second") VOLUME ",\"scale\":2}" CROP3 "]",
     "image label second sound sound_length ",
     3,
     {{CUBE, "[{\"op\":" VOLUME "}" CROP3 "]", 0, 0, 0},
      {CUBE, "[{\"op\":" VOLUME ",\"scale\":2}" CROP3 "]", 2, 0, 0},
      {SOUND, "[{\"op\":" AUDIO "}]", 3, 4, 1}}},
    {FIRST(DECODE, "10,8", "[1],[1]", "\"own\",\"same\"") CROP VIEW("own") DECODE
     "}" CROP VIEW("again") "\"hflip\"}" CROP "]",
     "image label own same again ",
     3,
     {{PICTURE, "[{\"op\":" DECODE "}" CROP "]", 0, 0, 0},
      {PICTURE, "[{\"op\":" DECODE "}" CROP "]", 2, 0, 0},
      {PICTURE, "[{\"op\":" DECODE "}" CROP "]", 3, 0, 0}}},
    {FIRST(VOLUME, "8,8,10", "[1],[1],[1]", "\"t2\",\"flair\",\"sound\"")
	 CROP3 NUMBERS VIEW("sound") AUDIO "}]",
     "image label t2 flair sound sound_length ",
     4,
     {{CUBE, "[{\"op\":" VOLUME "}" CROP3 NUMBERS "]", 0, 0, 0},
      {CUBE, "[{\"op\":" VOLUME "}" CROP3 NUMBERS "]", 2, 0, 0},
      {CUBE, "[{\"op\":" VOLUME "}" CROP3 NUMBERS "]", 3, 0, 0},
      {SOUND, "[{\"op\":" AUDIO "}]", 4, 5, 1}}},
};

/* Number of the view that is part p: they may stand in another order than the fields. */
static int number_of(unsigned i, unsigned p)
{
	if (p == 0 || (i == 4 && p == 2) ||
	    (i == 5 && p < 3)) /* the first file's; and what follows that */
		return -1;
	return i == 5 ? 0 : i == 3 ? (int)(2 - p) : (int)p - 1;
}

START_TEST(each_is_as_alone)
{
	static struct file file[MOST_FILES];
	const struct file *all[MOST_FILES];
	const struct pipeline_field *fields, *own;
	static uint8_t data[MOST_FILES * MOST_BYTES];
	char names[256] = "";
	unsigned n;

	rig_init(&rig, samples[_i].spec, NULL);
	n = pipeline_fields(rig.pipeline[0], &fields);
	for (unsigned f = 0; f < n; f++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s ",
			 fields[f].name);
	ck_assert_str_eq(names, samples[_i].names);
	ck_assert(pipeline_is_random(rig.pipeline[0]));
	for (unsigned p = 0; p < samples[_i].n; p++) {
		make(samples[_i].part[p].kind, p, &file[p]);
		all[p] = &file[p];
	}
	ck_assert_msg(rig_run(&rig, data, record(data, all, samples[_i].n, LABEL), &key) == 0, "%s",
		      error.text);
	ck_assert_int_eq(*(int64_t *)(void *)rig.field[0][1], LABEL);
	for (unsigned p = 0; p < samples[_i].n; p++) {
		const struct part *part = &samples[_i].part[p];
		const struct pipeline_key its = {key.seed, nonce(number_of((unsigned)_i, p)),
						 key.sample};

		rig_init(&alone, part->alone, NULL);
		ck_assert_int_eq(rig_run(&alone, file[p].data, file[p].size, &its), 0);
		pipeline_fields(alone.pipeline[0], &own);
		ck_assert_uint_eq(fields[part->field].bytes, own[0].bytes);
		ck_assert_int_eq(fields[part->field].kind, own[0].kind);
		if (own[0].kind != PIPELINE_DENSE)
			ck_assert_str_eq(strchr(fields[fields[part->field].lengths].name, '.'),
					 ".length");
		ck_assert_mem_eq(rig.field[0][part->field], alone.field[0][0], own[0].bytes);
		for (unsigned f = 0; f < part->n_rest; f++)
			ck_assert_mem_eq(rig.field[0][part->rest + f], alone.field[0][2 + f],
					 own[2 + f].bytes);
		rig_fini(&alone);
	}
	rig_fini(&rig);
}
END_TEST

/* ---- several pipelines ---- */

#define SEEN FIRST(DECODE, "10,10", "[1],[1]", "\"sound\",\"points\"")
#define HEARD VIEW("sound") AUDIO
#define FELT VIEW("points") CLOUD

START_TEST(one_run_of_two)
{
	static const char *const specs[] = {SEEN CROP HEARD "}" FELT "}" SHAKE "]",
					    SEEN ",{\"op\":\"center_crop\",\"size\":6}" HEARD
						 "}" MEL FELT "}]"};
	static uint8_t data[MOST_FILES * MOST_BYTES], both[RUNS][PIPELINE_MAX_FIELDS][MOST_BYTES];
	static struct file file[3];
	const struct file *all[] = {&file[0], &file[1], &file[2]};
	const struct pipeline_field *fields;
	size_t size;

	for (unsigned p = 0; p < 3; p++)
		make((enum kind)p, 0, &file[p]);
	size = record(data, all, 3, LABEL);
	rig_init(&rig, specs[0], specs[1]);
	ck_assert(compare_can_meet(rig.pipeline[0], rig.pipeline[1]));
	ck_assert_int_eq(rig_run(&rig, data, size, &key), 0);
	memcpy(both, rig.field, sizeof(both));
	rig_fini(&rig);
	for (unsigned v = 0; v < RUNS; v++) {
		rig_init(&rig, specs[v], NULL);
		ck_assert_int_eq(rig_run(&rig, data, size, &key), 0);
		for (unsigned f = pipeline_fields(rig.pipeline[0], &fields); f-- > 0;)
			ck_assert_mem_eq(both[v][f], rig.field[0][f], fields[f].bytes);
		rig_fini(&rig);
	}
}
END_TEST

static const struct {
	const char *a, *b;
	bool may;
} pairs[] = {
    {SEEN CROP HEARD "}" FELT "}]", SEEN CROP HEARD "}" MEL FELT "}" SHAKE "]", true},
    {SEEN CROP HEARD "}" FELT "}]", SEEN CROP HEARD ",\"crop\":\"begin\"}" FELT "}]", false},
    {SEEN CROP HEARD "}" FELT "}]", SEEN CROP FELT "}" HEARD "}]", false},
    {SEEN CROP HEARD "}" FELT "}]", SEEN CROP HEARD "}" VIEW("points") VOLUME "}" CROP3 "]", false},
    {SEEN CROP HEARD "}" FELT "}" VIEW("other") "\"hflip\"}" CROP "]",
     SEEN CROP HEARD "}" FELT "}" VIEW("other") "\"vflip\"}" CROP "]", false},
};

START_TEST(who_meets)
{
	struct pipeline *a = compiled(pairs[_i].a), *b = compiled(pairs[_i].b);
	const struct pipeline *both[] = {a, b};
	struct pipeline_run *run = NULL;

	ck_assert(compare_can_meet(a, a));
	ck_assert(compare_can_meet(a, b) == pairs[_i].may);
	ck_assert_int_eq(pipeline_run_new(both, 2, &run), pairs[_i].may ? 0 : -EINVAL);
	pipeline_run_free(run);
	pipeline_free(a);
	pipeline_free(b);
}
END_TEST

/* ---- what is wrong ---- */

START_TEST(a_bad_file_is_named)
{
	static uint8_t data[MOST_FILES * MOST_BYTES];
	static struct file file[3];
	const struct file *all[] = {&file[0], &file[1], &file[2]};

	rig_init(&rig, SEEN CROP HEARD "}" FELT "}]", NULL);
	for (unsigned bad = 1; bad < 3; bad++) {
		for (unsigned p = 0; p < 3; p++)
			make((enum kind)p, 0, &file[p]);
		file[bad].size = 0;
		put_text(&file[bad], "no such file");
		ck_assert_int_eq(rig_run(&rig, data, record(data, all, 3, LABEL), &key),
				 PIPELINE_E_BAD);
		ck_assert_ptr_nonnull(strstr(error.text, bad == 1 ? "sound: " : "points: "));
	}
	ck_assert_int_eq(rig_run(&rig, data, record(data, all, 2, LABEL), &key), PIPELINE_E_BAD);
	rig_fini(&rig);
}
END_TEST

static const struct {
	const char *spec, *words;
} wrong[] = {
    {SEEN CROP HEARD "}]", "field \"points\" is a file (kind 10)"},
    {"[{\"op\":" DECODE "}" CROP VIEW("sound") CLOUD "}]",
     "view \"sound\": it begins with an op on files"},
    {"[{\"op\":" DECODE "}" CROP VIEW("sound") AUDIO "}]", "the first op must be video"},
    {SEEN CROP HEARD "}" HEARD "}" FELT "}]", "view \"sound\": another field has that name"},
    {SEEN CROP HEARD ",\"source\":\"record\"}" FELT "}]", "leave source, fields and members out"},
    {SEEN CROP HEARD "}" CROP FELT "}]", "view \"sound\""},
    {SEEN CROP HEARD "}" VIEW("points") "\"record\",\"fields\":[[1]]}]",
     "record is a sample as it is"},
    {"[{\"op\":" AUDIO "}" VIEW("second") "\"vol\",\"gain\":2}]",
     "audio is decoded for one pipeline"},
    {"[{\"op\":" VOLUME "}" CROP3 VIEW("second") "\"random_flip_3d\",\"axes\":1}]",
     "volume is decoded for one pipeline"},
    {FIRST(AUDIO, "8", "[1]", "\"image\"") "]", "\"kinds\" of 0, 1, 2 and 10"},
    {FIRST(CLOUD, "10", "[1,2]", "\"image\"") VIEW("image") DECODE "}" CROP "]", "is [1]"},
    {FIRST(DECODE, "10,0", "[1],[4]", "\"sound\",\"sound_length\"") CROP HEARD "}]",
     "with _length behind it"},
    {FIRST(DECODE, "10", "[1]", "\"sound\"") CROP HEARD "},{\"op\":\"filter\",\"min_width\":3},"
							"{\"op\":\"mixup\",\"num_classes\":9}]",
     "mixup"},
};

START_TEST(wrong_texts_are_told)
{
	trial_refused(wrong[_i].spec, wrong[_i].words);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("side");
	TCase *tcase = tcase_create("side");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, PATIENCE_S);
	tcase_add_loop_test(tcase, each_is_as_alone, 0, BASE_ARRAY_LEN(samples));
	tcase_add_test(tcase, one_run_of_two);
	tcase_add_loop_test(tcase, who_meets, 0, BASE_ARRAY_LEN(pairs));
	tcase_add_test(tcase, a_bad_file_is_named);
	tcase_add_loop_test(tcase, wrong_texts_are_told, 0, BASE_ARRAY_LEN(wrong));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}

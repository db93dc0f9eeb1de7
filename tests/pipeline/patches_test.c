/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op patches, apart from its pixels (golden_patches.tsv in run_test.c): sizes as transformers has them
 * (golden_grids.tsv, by parity_patches.py), room for all that comes, what stands in a field, several pipelines on one
 * picture, kept pictures of whatever size, and what is refused.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pipeline/engine/finish.h"
#include "pipeline/forms/cut.h"
#include "pipeline/ops/patches.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/spec.h"
#include "tests/data.h"
#include "tests/histories.h"
#include "tests/patience.h"
#include "tests/pipeline/trial.h"

static struct op_list ops;

/* Of patches with these parameters, between decode and `behind`. */
static struct shape shape_of(const char *parameters, const char *behind)
{
	struct diag diag = {""};
	struct shape shape;
	char text[1000];

	snprintf(text, sizeof(text), "[{\"op\":\"decode\"},{\"op\":\"patches\",%s}%s]", parameters,
		 behind);
	ck_assert_msg(spec_parse(text, strlen(text), &ops, &diag) == 0, "%s", diag.text);
	ck_assert_msg(shape_infer(&ops, &shape, &diag) == 0, "%s", diag.text);
	return shape;
}

/* ---- sizes ---- */

START_TEST(sizes_are_those_of_transformers)
{
	FILE *file = data_open("pipeline", "golden_grids.tsv");
	unsigned lines = 0;
	char line[1000];

	while (fgets(line, sizeof(line), file)) {
		unsigned height, width, rows, columns;
		uint64_t down, across;
		struct shape shape;
		char *numbers = strchr(line, '\t');

		if (line[0] == '#')
			continue;
		ck_assert_ptr_nonnull(numbers);
		*numbers++ = '\0';
		ck_assert_int_eq(sscanf(numbers, "%u %u %u %u", &height, &width, &rows, &columns),
				 4);
		shape = shape_of(line, "");
		patches_size(&ops.op[1], height, width, &down, &across);
		ck_assert_msg(down == (uint64_t)rows * shape.patches.size &&
				  across == (uint64_t)columns * shape.patches.size,
			      "%s: of %u x %u %u x %u, not %u x %u", line, height, width, rows,
			      columns, (unsigned)down / shape.patches.size,
			      (unsigned)across / shape.patches.size);
		lines++;
	}
	fclose(file);
	ck_assert_uint_ge(lines, 500);
}
END_TEST

static const char *const room_parameters[] = {
    "\"max_patches\":1",
    "\"max_patches\":256",
    "\"patch_size\":14,\"max_patches\":77",
    "\"patch_size\":14,\"merge_size\":2,\"max_pixels\":3136",
    "\"patch_size\":14,\"merge_size\":2,\"max_pixels\":1003520",
    "\"patch_size\":14,\"merge_size\":2,\"min_pixels\":1,\"max_pixels\":784",
    "\"patch_size\":3,\"merge_size\":5,\"min_pixels\":900,\"max_pixels\":901",
    "\"patch_size\":16,\"merge_size\":1,\"min_pixels\":50000,\"max_pixels\":50001",
};

/* No picture has more patches than there is room for, or sides of other than whole blocks. */
START_TEST(there_is_room)
{
	const struct shape shape = shape_of(room_parameters[_i], "");
	const uint32_t block = shape.patches.size * shape.patches.block;
	struct philox_seq seq;

	philox_seq_init(&seq, 20261128, (uint64_t)_i, 0);
	for (unsigned i = 0; i < HISTORIES_OF(20000); i++) {
		const uint32_t most = UINT32_C(1) << (1 + philox_below(&seq, 14));
		const uint32_t height = 1 + (uint32_t)philox_below(&seq, most);
		const uint32_t width = 1 + (uint32_t)philox_below(&seq, i % 2 ? most : 16384);
		uint64_t down, across;
		uint32_t rows, columns;

		patches_size(&ops.op[1], height, width, &down, &across);
		if (down == 0) {
			ck_assert(height > 200 * width || width > 200 * height);
			continue;
		}
		ck_assert_uint_eq(down % block, 0);
		ck_assert_uint_eq(across % block, 0);
		shape_patch_grid(&shape.patches, (uint32_t)down, (uint32_t)across, &rows, &columns);
		ck_assert_msg((uint64_t)rows * shape.patches.size == down &&
				  (uint64_t)columns * shape.patches.size == across,
			      "%s: of %u x %u %u x %u", room_parameters[_i], height, width,
			      (unsigned)down, (unsigned)across);
	}
}
END_TEST

/* Whatever size a picture has that somebody kept, no more is written than there is room for. */
START_TEST(grids_of_any_size)
{
	const struct shape shape =
	    shape_of("\"patch_size\":2,\"merge_size\":2,\"max_pixels\":100,\"min_pixels\":50", "");
	const uint32_t most = shape.patches.most;

	for (uint32_t height = 1; height < 200; height += 3) {
		for (uint32_t width = 1; width < 3000; width = width * 2 + 1) {
			uint32_t rows, columns;

			shape_patch_grid(&shape.patches, height, width, &rows, &columns);
			ck_assert_uint_le((uint64_t)rows * columns, most);
			ck_assert_uint_le(rows * 2, height);
			ck_assert_uint_le(columns * 2, width);
			ck_assert_uint_eq(rows % 2 + columns % 2, 0);
		}
	}
}
END_TEST

/* ---- what stands in a field ---- */

#define MOST_VALUES 8192

/* The picture's value is its place: red the row, green the column, blue both. */
static void make_picture(uint32_t height, uint32_t width, struct picture_buffer *buffer,
			 struct picture *ret)
{
	ck_assert_int_eq(picture_make(buffer, height, width, ret), 0);
	for (uint32_t y = 0; y < height; y++) {
		for (uint32_t x = 0; x < width; x++) {
			uint8_t *pixel = picture_row(ret, y) + (size_t)x * 4;

			pixel[0] = (uint8_t)y;
			pixel[1] = (uint8_t)x;
			pixel[2] = (uint8_t)(y + x);
		}
	}
}

static const struct {
	const char *parameters, *behind;
	uint32_t rows, columns;
	unsigned block, times;
	bool are_planes;
} orders[] = {
    {"\"patch_size\":3,\"max_patches\":9", "", 2, 4, 1, 1, false},
    {"\"patch_size\":3,\"max_patches\":9", ",{\"op\":\"layout\"}", 3, 3, 1, 1, true},
    {"\"patch_size\":2,\"max_pixels\":100,\"min_pixels\":1,\"merge_size\":2,"
     "\"temporal_patch_size\":2",
     ",{\"op\":\"layout\"}", 4, 6, 2, 2, true},
    {"\"patch_size\":2,\"max_pixels\":100,\"min_pixels\":1,\"merge_size\":3,"
     "\"temporal_patch_size\":3",
     "", 3, 6, 3, 3, false},
    {"\"patch_size\":2,\"max_patches\":20", ",{\"op\":\"grayscale\"}", 4, 5, 1, 1, true},
};

START_TEST(values_have_their_order)
{
	const struct shape shape = shape_of(orders[_i].parameters, orders[_i].behind);
	const unsigned size = shape.patches.size, block = orders[_i].block, c = shape.channels;
	struct picture_buffer buffer = {0};
	static uint8_t out[MOST_VALUES];
	struct finish *finish = malloc(sizeof(*finish));
	struct picture picture;
	const uint8_t *at = out;

	ck_assert_ptr_nonnull(finish);
	ck_assert_uint_le(shape.patches.most * shape_patch_values(&shape), sizeof(out));
	make_picture(orders[_i].rows * size, orders[_i].columns * size, &buffer, &picture);
	memset(out, 0xa5, sizeof(out));
	finish_init(finish, &shape);
	finish_patches(finish, &shape, &picture, out);
	for (uint32_t i = 0; i < orders[_i].rows * orders[_i].columns; i++) {
		const uint32_t blocks = i / (block * block), in = i % (block * block);
		const uint32_t across = orders[_i].columns / block;
		const uint32_t top = (blocks / across * block + in / block) * size;
		const uint32_t left = (blocks % across * block + in % block) * size;

		for (unsigned k = 0; k < shape_patch_values(&shape); k++, at++) {
			const unsigned pixels = size * size, one = k % (c * pixels);
			const unsigned pixel = orders[_i].are_planes ? k % pixels : one / c;
			const unsigned channel =
			    orders[_i].are_planes ? k / (pixels * orders[_i].times) : one % c;

			ck_assert_uint_eq(
			    *at,
			    picture_row(&picture,
					top + pixel / size)[4 * (left + pixel % size) + channel]);
		}
	}
	for (; at < out + shape.patches.most * shape_patch_values(&shape); at++)
		ck_assert_uint_eq(*at, 0);
	ck_assert_uint_eq(*at, 0xa5);
	picture_buffer_fini(&buffer);
	free(finish);
}
END_TEST

/* ---- whole samples ---- */

struct sample {
	struct pipeline *pipeline;
	uint8_t *image;
	size_t bytes;
	int64_t label, grid[3], length;
};

static void sample_init(struct sample *s, const char *parameters)
{
	const struct pipeline_field *fields;
	struct diag diag = {""};
	char text[1000];

	snprintf(text, sizeof(text), "[{\"op\":\"decode\"},{\"op\":\"patches\",%s}]", parameters);
	ck_assert_msg(pipeline_compile(text, strlen(text), &s->pipeline, &diag) == 0, "%s",
		      diag.text);
	ck_assert_uint_eq(pipeline_fields(s->pipeline, &fields), 4);
	ck_assert_str_eq(fields[2].name, "grid");
	ck_assert_int_eq(fields[0].kind, PIPELINE_RAGGED);
	ck_assert_uint_eq(fields[0].lengths, 3);
	s->bytes = fields[0].bytes;
	s->image = malloc(s->bytes); /* exactly: the sanitizer sees a byte too many */
	ck_assert_ptr_nonnull(s->image);
}

static void sample_fini(struct sample *s)
{
	pipeline_free(s->pipeline);
	free(s->image);
}

static struct pipeline_out sample_out(struct sample *s)
{
	return (struct pipeline_out){.field = {s->image, &s->label, s->grid, &s->length}};
}

/* tall.jpg has 150 rows and 24 columns. */
START_TEST(each_pipeline_has_its_grid)
{
	struct sample s[2] = {0};
	const struct pipeline *pipelines[2];
	const struct pipeline_key key = {1, 2, 3};
	struct pipeline_out out[2];
	struct pipeline_error error = {0};
	struct pipeline_run *run;
	size_t size;
	uint8_t *data = data_load("pipeline/data", "tall.jpg", &size);

	sample_init(&s[0], "\"patch_size\":4,\"max_patches\":100");
	sample_init(
	    &s[1],
	    "\"patch_size\":8,\"max_pixels\":4000,\"min_pixels\":64,\"temporal_patch_size\":1");
	for (unsigned i = 0; i < 2; i++) {
		pipelines[i] = s[i].pipeline;
		out[i] = sample_out(&s[i]);
	}
	ck_assert_int_eq(pipeline_run_new(pipelines, 2, &run), 0);
	ck_assert_msg(pipeline_run_sample(run, 3, data, size, 7, &key, out, &error) == 0, "%s",
		      error.text);
	ck_assert_int_eq(s[0].grid[0], 25);
	ck_assert_int_eq(s[0].grid[1], 4);
	ck_assert_int_eq(s[0].length, 100);
	ck_assert_int_eq(s[1].grid[0], 1);
	ck_assert_int_eq(s[1].grid[1], 19);
	ck_assert_int_eq(s[1].grid[2], 3);
	ck_assert_int_eq(s[1].length, 57);
	pipeline_run_free(run);
	sample_fini(&s[0]);
	sample_fini(&s[1]);
	free(data);
}
END_TEST

/* What was kept behind the op gives the same; a form with another size under the same name no more than there is room for. */
START_TEST(kept_pictures)
{
	struct sample s = {0};
	const struct pipeline_key key = {1, 2, 3};
	const struct pipeline *pipeline;
	struct pipeline_error error = {0};
	struct pipeline_out out;
	struct pipeline_run *run;
	struct cut cut;
	size_t size, needed = 0, bytes;
	uint8_t *data = data_load("pipeline/data", "420.jpg", &size), *form, *want, *large;

	sample_init(&s, "\"patch_size\":4,\"max_patches\":100");
	pipeline = s.pipeline;
	out = sample_out(&s);
	want = malloc(s.bytes);
	ck_assert_ptr_nonnull(want);
	ck_assert_int_eq(pipeline_run_new(&pipeline, 1, &run), 0);
	ck_assert_int_eq(pipeline_run_sample(run, 1, data, size, 7, &key, &out, &error), 0);
	memcpy(want, s.image, s.bytes);
	ck_assert_int_eq(pipeline_cut_make(run, 0, 2, data, size, &key, NULL, 0, &needed, &error),
			 PIPELINE_E_ROOM);
	form = malloc(needed);
	ck_assert_ptr_nonnull(form);
	ck_assert_int_eq(
	    pipeline_cut_make(run, 0, 2, data, size, &key, form, needed, &bytes, &error), 0);
	memset(s.image, 0xa5, s.bytes);
	s.grid[0] = s.grid[1] = s.length = 0;
	ck_assert_int_eq(pipeline_run_sample(run, 1, form, bytes, 7, &key, &out, &error), 0);
	ck_assert_mem_eq(s.image, want, s.bytes);
	ck_assert_int_eq(s.grid[0] * s.grid[1], s.length);
	ck_assert_int_gt(s.length, 50);
	ck_assert_int_eq(cut_read(form, bytes, &cut), 0);
	cut.height = 101;
	cut.width = 4003;
	cut.planes = 1;
	large = calloc(1, cut_bytes(cut.height, cut.width, 1));
	ck_assert_ptr_nonnull(large);
	cut_write(&cut, large);
	ck_assert_int_eq(pipeline_run_sample(run, 1, large, cut_bytes(cut.height, cut.width, 1), 7,
					     &key, &out, &error),
			 0);
	ck_assert_int_le(s.length, 100);
	pipeline_run_free(run);
	sample_fini(&s);
	free(data);
	free(form);
	free(want);
	free(large);
}
END_TEST

/* ---- what is refused ---- */

#define D "{\"op\":\"decode\"},"
#define P "{\"op\":\"patches\",\"max_patches\":9}"
#define N "{\"op\":\"normalize\",\"mean\":0,\"std\":1}"

static const struct {
	const char *text, *what;
} refused[] = {
    {"[" D "{\"op\":\"patches\"}]", "op 2 (patches): give one of \"max_patches\""},
    {"[" D "{\"op\":\"patches\",\"max_patches\":9,\"max_pixels\":9000}]",
     "give one of \"max_patches\""},
    {"[" D "{\"op\":\"patches\",\"max_patches\":0}]", "max_patches is not from 1 to 65536"},
    {"[" D "{\"op\":\"patches\",\"max_patches\":9,\"patch_size\":65}]",
     "patch_size is not from 1 to 64"},
    {"[" D "{\"op\":\"patches\",\"max_patches\":9,\"merge_size\":2}]", "goes with \"max_pixels\""},
    {"[" D "{\"op\":\"patches\",\"max_pixels\":3000}]", "less than \"min_pixels\""},
    {"[" D "{\"op\":\"patches\",\"max_pixels\":3136,\"merge_size\":4}]", "than a block"},
    {"[" D "{\"op\":\"patches\",\"max_patches\":65536,\"patch_size\":64}]", "gets too large"},
    {"[" D P "," P "]", "op 3 (patches): put it before patches"},
    {"[" D P ",{\"op\":\"resize\",\"size\":9}]", "op 3 (resize): put it before patches"},
    {"[" D P ",{\"op\":\"center_crop\",\"size\":9}]", "op 3 (center_crop): put it before"},
    {"[" D P "," N ",{\"op\":\"random_erasing\"}]", "op 4 (random_erasing): there are patches"},
    {"[" D P ",{\"op\":\"gaussian_noise\"}," N "]", "op 3 (gaussian_noise): it is of floats"},
    {"[" D P "," N ",{\"op\":\"gaussian_noise\"}]", "op 4 (gaussian_noise): it is of floats"},
    {"[" D "{\"op\":\"gaussian_noise\"}," P "," N "]", "op 3 (patches)"},
    {"[" D "{\"op\":\"random_apply\"}," P "]", "op 3 (patches) cannot be done at random"},
    {"[" D "{\"op\":\"five_crop\",\"size\":9}," P "]", "op 3 (patches): there are several"},
    {"[" D P ",{\"op\":\"cutmix\",\"num_classes\":3}]", "patches are of one picture alone"},
    {"[" D P ",{\"op\":\"mosaic\"}]", "views, mosaic, mixup and cutmix take pictures"},
    {"[" D P ",{\"op\":\"view\",\"names\":[\"b\"]},{\"op\":\"center_crop\",\"size\":9}]",
     "patches are of one picture alone"},
    {"[" D "{\"op\":\"center_crop\",\"size\":9},{\"op\":\"view\",\"names\":[\"b\"]}," P "]",
     "patches are of one picture alone"},
    {"[{\"op\":\"video\",\"frames\":2}," P "]", "op 2 (patches): a clip has many"},
    {"[{\"op\":\"bands\",\"channels\":3}," P "]", "op 2 (patches): it works on 8-bit"},
    {"[{\"op\":\"decode\",\"only_size\":true}," P "]", "gives the picture's size and no pixels"},
    {"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[1]],\"kinds\":[5],\"names\":[\"m\"]}"
     "," P "]",
     "masks and further pictures beside patches"},
    {"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[1]],\"kinds\":[8],\"names\":[\"m\"]}"
     "," P "]",
     "masks and further pictures beside patches"},
    {"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[1,2]],\"names\":[\"grid\"]}," P "]",
     "two fields have one name"},
};

START_TEST(is_refused)
{
	trial_refused(refused[_i].text, refused[_i].what);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("patches");
	TCase *tcase = tcase_create("patches");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_test(tcase, sizes_are_those_of_transformers);
	tcase_add_loop_test(tcase, there_is_room, 0, BASE_ARRAY_LEN(room_parameters));
	tcase_add_test(tcase, grids_of_any_size);
	tcase_add_loop_test(tcase, values_have_their_order, 0, BASE_ARRAY_LEN(orders));
	tcase_add_test(tcase, each_pipeline_has_its_grid);
	tcase_add_test(tcase, kept_pictures);
	tcase_add_loop_test(tcase, is_refused, 0, BASE_ARRAY_LEN(refused));
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

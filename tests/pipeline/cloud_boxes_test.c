/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes among points: that they go where OpenPCDet's functions put them (golden values from these), and where the points go that are
 * their middles; which leave, and their rows with them; and what is refused.
 */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/forms/packed.h"
#include "pipeline/pipeline.h"
#include "tests/patience.h"
#include "tests/pipeline/trial.h"

#define N 4
#define COLUMNS 10 /* the last one stays */
#define ROOM 2048

static const float boxes[N][COLUMNS] = {
    {10, 5, -1, 4, 2, 1.5f, 0.3f, 3, -1, 100},
    {-8, 20.5f, 0.25f, 4.5f, 1.75f, 1.6f, -2.9f, 0, 0, 101},
    {30, -12, 0, 0.8f, 0.6f, 1.7f, 3.1f, -1.25f, 0.5f, 102},
    {3, 2, 1, 1, 1, 1, 6.5f, 2, 2, 103},
};

struct rig {
	struct trial trial;
	float points[N * 3], boxes[N * COLUMNS];
	int64_t label, length, numbers[N], n_boxes, n_numbers;
};

#define FIRST(columns)                                                                     \
	"[{\"op\":\"cloud\",\"points\":4,\"raw_columns\":3,\"pick\":\"first\",\"source\":" \
	"\"record\","                                                                      \
	"\"padding\":\"zero\",\"fields\":[[3,4," columns                                   \
	"],[4,4]],\"kinds\":[11,4],\"names\":[\"boxes\",\"numbers\"]}"

static void rig_init(struct rig *rig, const char *columns, const char *ops)
{
	char spec[1024];

	if (*columns == '7')
		snprintf(spec, sizeof(spec), FIRST("7") "%s]", ops);
	else
		snprintf(spec, sizeof(spec), FIRST("10") "%s]", ops);
	trial_init(&rig->trial, spec);
}

static void rig_fini(struct rig *rig)
{
	trial_fini(&rig->trial);
}

/* The points are the boxes' middles; numbers are 0, 1, ... */
static size_t make(uint8_t data[ROOM], const float *from, uint64_t n, uint64_t columns,
		   uint64_t rows)
{
	struct packed_wide_head *head = (struct packed_wide_head *)(void *)data;
	float middles[N][3];

	memset(data, 0, ROOM);
	*head = (struct packed_wide_head){.magic = PACKED_WIDE_MAGIC, .bytes = 768, .n_fields = 3};
	head->field[0].place = (struct packed_place){PIPELINE_U8, 1, {12 * n}, 256, 12 * n};
	head->field[1].place =
	    (struct packed_place){PIPELINE_F32, 2, {n, columns}, 384, 4 * n * columns};
	head->field[2].place = (struct packed_place){PIPELINE_I64, 1, {rows}, 640, 8 * rows};
	for (uint64_t i = 0; i < n; i++)
		memcpy(middles[i], from + i * columns, sizeof(middles[i]));
	memcpy(data + 256, middles, 12 * n);
	memcpy(data + 384, from, 4 * n * columns);
	for (uint64_t i = 0; i < rows; i++)
		memcpy(data + 640 + 8 * i, &(int64_t){(int64_t)i}, 8);
	return 768;
}

static int rig_run_made(struct rig *rig, const uint8_t *data, size_t size, uint64_t sample)
{
	const struct pipeline_out out = {.field = {rig->points, &rig->label, &rig->length,
						   rig->boxes, rig->numbers, &rig->n_boxes,
						   &rig->n_numbers}};

	memset(rig->boxes, 0xaa, sizeof(rig->boxes));
	return trial_run(&rig->trial, data, size, 7, sample, &out);
}

static int rig_run(struct rig *rig, const float *from, uint64_t columns, uint64_t rows,
		   uint64_t sample)
{
	uint8_t data[ROOM];
	const size_t size = make(data, from, N, columns, rows);

	return rig_run_made(rig, data, size, sample);
}

#define ALONG_X ",{\"op\":\"point_flip\",\"axis\":\"y\",\"p\":1}"
#define ALONG_Y ",{\"op\":\"point_flip\",\"axis\":\"x\",\"p\":1}"
#define ROTATION ",{\"op\":\"point_rotation\",\"degrees\":[25,25]}"
#define SCALE ",{\"op\":\"point_scale\",\"scale\":1.05}"
#define RANGE ",{\"op\":\"point_range\",\"range\":[-20,-20,-3,20,20,3]}"

/* By OpenPCDet's random_flip_along_x and _y, global_rotation, global_scaling and mask_boxes_outside_range_numpy, and limit_period behind. */
static const struct {
	const char *ops;
	unsigned n;
	float box[N][COLUMNS];
} golden[] = {
    {ALONG_X,
     4,
     {{10, -5, -1, 4, 2, 1.5f, -0.3f, 3, 1, 100},
      {-8, -20.5f, 0.25f, 4.5f, 1.75f, 1.6f, 2.9f, 0, 0, 101},
      {30, 12, 0, 0.8f, 0.6f, 1.7f, -3.1f, -1.25f, -0.5f, 102},
      {3, -2, 1, 1, 1, 1, -0.2168145f, 2, -2, 103}}},
    {ALONG_Y,
     4,
     {{-10, 5, -1, 4, 2, 1.5f, 2.841593f, -3, -1, 100},
      {8, 20.5f, 0.25f, 4.5f, 1.75f, 1.6f, -0.2415926f, 0, 0, 101},
      {-30, -12, 0, 0.8f, 0.6f, 1.7f, 0.04159307f, 1.25f, 0.5f, 102},
      {-3, 2, 1, 1, 1, 1, 2.924778f, -2, 2, 103}}},
    {ROTATION,
     4,
     {{6.949986f, 8.757722f, -1, 4, 2, 1.5f, 0.7363323f, 3.141542f, 0.361547f, 100},
      {-15.91414f, 15.19836f, 0.25f, 4.5f, 1.75f, 1.6f, -2.463668f, 0, 0, 101},
      {32.26065f, 1.802854f, 0, 0.8f, 0.6f, 1.7f, -2.746853f, -1.344194f, -0.07511896f, 102},
      {1.873687f, 3.080471f, 1, 1, 1, 1, 0.6531467f, 0.9673791f, 2.657852f, 103}}},
    {SCALE,
     4,
     {{10.5f, 5.25f, -1.05f, 4.2f, 2.1f, 1.575f, 0.3f, 3.15f, -1.05f, 100},
      {-8.4f, 21.525f, 0.2625f, 4.725f, 1.8375f, 1.68f, -2.9f, 0, 0, 101},
      {31.5f, -12.6f, 0, 0.84f, 0.63f, 1.785f, 3.1f, -1.3125f, 0.525f, 102},
      {3.15f, 2.1f, 1.05f, 1.05f, 1.05f, 1.05f, 0.2168145f, 2.1f, 2.1f, 103}}},
    {RANGE,
     2,
     {{10, 5, -1, 4, 2, 1.5f, 0.3f, 3, -1, 100}, {3, 2, 1, 1, 1, 1, 0.2168145f, 2, 2, 103}}},
    {ALONG_X ALONG_Y ROTATION SCALE RANGE,
     3,
     {{-7.297485f, -9.195607f, -1.05f, 4.2f, 2.1f, 1.575f, -2.405261f, -3.298619f, -0.3796243f,
       100},
      {16.70984f, -15.95828f, 0.2625f, 4.725f, 1.8375f, 1.68f, 0.6779251f, 0, 0, 101},
      {-1.967371f, -3.234494f, 1.05f, 1.05f, 1.05f, 1.05f, -2.488446f, -1.015748f, -2.790745f,
       103}}},
    {",{\"op\":\"point_flip\",\"axis\":\"z\",\"p\":1}" RANGE,
     2,
     {{10, 5, 1, 4, 2, 1.5f, 0.3f, 3, -1, 100}, {3, 2, -1, 1, 1, 1, 0.2168145f, 2, 2, 103}}},
    {",{\"op\":\"point_flip\",\"axis\":\"x\",\"p\":0},{\"op\":\"point_jitter\"},{\"op\":\"point_"
     "dropout\"},{\"op\":\"point_shuffle\"},{\"op\":\"point_sample\",\"points\":2}" RANGE,
     2,
     {{10, 5, -1, 4, 2, 1.5f, 0.3f, 3, -1, 100}, {3, 2, 1, 1, 1, 1, 0.2168145f, 2, 2, 103}}},
};

START_TEST(as_elsewhere)
{
	static struct rig rig;

	rig_init(&rig, "10", golden[_i].ops);
	ck_assert_msg(rig_run(&rig, boxes[0], COLUMNS, N, 0) == 0, "%s", rig.trial.error.text);
	ck_assert_int_eq(rig.n_boxes, golden[_i].n);
	ck_assert_int_eq(rig.n_numbers, golden[_i].n);
	for (unsigned i = 0; i < golden[_i].n; i++) {
		ck_assert_int_eq(rig.numbers[i], (int64_t)golden[_i].box[i][9] - 100);
		for (unsigned c = 0; c < COLUMNS; c++)
			ck_assert_msg(fabs((double)(rig.boxes[i * COLUMNS + c] -
						    golden[_i].box[i][c])) < 4e-6,
				      "%s: box %u, %u: %.9g", golden[_i].ops, i, c,
				      (double)rig.boxes[i * COLUMNS + c]);
	}
	for (unsigned i = golden[_i].n; i < N; i++) { /* zeros behind them */
		ck_assert_int_eq(rig.numbers[i], 0);
		for (unsigned c = 0; c < COLUMNS; c++)
			ck_assert_float_eq(rig.boxes[i * COLUMNS + c], 0);
	}
	rig_fini(&rig);
}
END_TEST

/* Ops that draw: each box's middle stays the point that it was, and what else it has turns as those do. */
static const char *const drawn[] = {
    ",{\"op\":\"point_rotation\"}",
    ",{\"op\":\"point_scale\",\"scale\":[0.5,2]}",
    ",{\"op\":\"point_translation\",\"translate\":[1,2,3]}",
    ",{\"op\":\"point_center\"}",
    ",{\"op\":\"point_center\",\"by\":\"box\"}",
    ",{\"op\":\"point_unit\"}",
    ",{\"op\":\"point_unit\",\"to\":\"cube\"}",
    ",{\"op\":\"point_flip\",\"axis\":\"x\"},{\"op\":\"point_flip\",\"axis\":\"y\"},{\"op\":"
    "\"point_"
    "rotation\",\"degrees\":45},{\"op\":\"point_scale\"},{\"op\":\"point_translation\","
    "\"translate\":0.5}",
};

static double distance(const float *a, const float *b)
{
	return sqrt(pow((double)(a[0] - b[0]), 2) + pow((double)(a[1] - b[1]), 2) +
		    pow((double)(a[2] - b[2]), 2));
}

START_TEST(with_the_points)
{
	static struct rig rig;

	rig_init(&rig, "10", drawn[_i]);
	for (uint64_t sample = 0; sample < 40; sample++) {
		double times;

		ck_assert_int_eq(rig_run(&rig, boxes[0], COLUMNS, N, sample), 0);
		ck_assert_int_eq(rig.n_boxes, N);
		times = distance(&rig.points[0], &rig.points[3]) / distance(boxes[0], boxes[1]);
		for (unsigned i = 0; i < N; i++) {
			const float *box = &rig.boxes[i * COLUMNS], *was = boxes[i];
			const double speed = hypot((double)was[7], (double)was[8]);

			for (unsigned k = 0; k < 3; k++) {
				ck_assert_float_eq(box[k], rig.points[3 * i + k]);
				ck_assert_double_eq_tol((double)box[3 + k],
							(double)was[3 + k] * times, 1e-5);
			}
			ck_assert(box[6] >= -3.1415928f && box[6] <= 3.1415928f);
			ck_assert_double_eq_tol(hypot((double)box[7], (double)box[8]),
						speed * times, 1e-5);
			ck_assert_float_eq(box[9], was[9]);
			if (speed > 0) /* the angle between the box and where it goes to */
				ck_assert_double_eq_tol(
				    fabs(cos((double)box[6] -
					     atan2((double)box[8], (double)box[7]))),
				    fabs(cos((double)was[6] -
					     atan2((double)was[8], (double)was[7]))),
				    1e-5);
		}
	}
	rig_fini(&rig);
}
END_TEST

/* Seven numbers are enough; one that is nowhere is no box; what is not known of where it goes to is no reason to leave it out. */
START_TEST(few_numbers)
{
	float seven[N][7], ten[N][COLUMNS];
	static struct rig rig;

	for (unsigned i = 0; i < N; i++)
		memcpy(seven[i], boxes[i], sizeof(seven[i]));
	rig_init(&rig, "7", ALONG_X ROTATION);
	for (unsigned k = 0; k < 7; k++) {
		const float was = seven[1][k];

		seven[1][k] = k % 2 ? NAN : INFINITY;
		ck_assert_int_eq(rig_run(&rig, seven[0], 7, N, 0), 0);
		ck_assert_int_eq(rig.n_boxes, 3);
		ck_assert_int_eq(rig.numbers[1], 2);
		seven[1][k] = was;
	}
	rig_fini(&rig);
	memcpy(ten, boxes, sizeof(ten));
	ten[1][7] = NAN;
	rig_init(&rig, "10", ALONG_X ROTATION);
	ck_assert_int_eq(rig_run(&rig, ten[0], COLUMNS, N, 0), 0);
	ck_assert_int_eq(rig.n_boxes, N);
	ck_assert_int_eq(rig_run(&rig, ten[0], COLUMNS, N - 1, 0), PIPELINE_E_BAD);
	ck_assert_str_eq(rig.trial.error.text, "field 2: 3 for 4 boxes");
	rig_fini(&rig);
}
END_TEST

/* Where no point is left there is no middle, and boxes stay. */
START_TEST(without_points)
{
	static const char *const ops[] = {",{\"op\":\"point_center\"}",
					  ",{\"op\":\"point_center\",\"by\":\"box\"}",
					  ",{\"op\":\"point_unit\"}"};
	static struct rig rig;
	uint8_t data[ROOM];
	const size_t size = make(data, boxes[0], N, COLUMNS, N);

	memset(data + 256, 0xff, sizeof(float) * 3 * N); /* no numbers */
	rig_init(&rig, "10", ops[_i]);
	ck_assert_int_eq(rig_run_made(&rig, data, size, 0), 0);
	ck_assert_int_eq(rig.length, 0);
	ck_assert_int_eq(rig.n_boxes, N);
	for (unsigned i = 0; i < N; i++)
		ck_assert_mem_eq(&rig.boxes[i * COLUMNS], boxes[i], 6 * sizeof(float));
	rig_fini(&rig);
}
END_TEST

#define REFUSED(fields, kinds)                                                     \
	"[{\"op\":\"cloud\",\"points\":4,\"source\":\"record\",\"fields\":" fields \
	",\"kinds\":" kinds "}"

static const struct {
	const char *spec, *wrong;
} refusals[] = {
    {REFUSED("[[3,9,6]]", "[11]") "]", "x, y, z, dx, dy, dz, yaw"},
    {REFUSED("[[4,9,7]]", "[11]") "]", "x, y, z, dx, dy, dz, yaw"},
    {REFUSED("[[3,9,7],[3,9,7]]", "[11,11]") "]", "two fields are boxes"},
    {REFUSED("[[4,9]]", "[4]") "]", "none is boxes (3; of points 11)"},
    {REFUSED("[[3,9,4]]", "[3]") "]", "do not follow points; give kinds 0, 1, 2, 4, 10 and 11"},
    {REFUSED("[[1]]", "[5]") "]", "do not follow points"},
    {REFUSED("[[3,9,6]]", "[7]") "]", "do not follow points"},
    {REFUSED("[[1]]", "[8]") "]", "do not follow points"},
    {REFUSED("[[3,9,7]]", "[12]") "]", "kinds"},
    {REFUSED("[[3,9,7]]", "[11]") ",{\"op\":\"point_rotation\",\"axis\":\"any\"}]",
     "op 2 (point_rotation): boxes turn about z alone"},
    {REFUSED("[[3,9,7]]", "[11]") ",{\"op\":\"point_rotation\",\"axis\":\"x\"}]", "give axis z"},
    {REFUSED("[[3,9,7]]", "[11]") ",{\"op\":\"point_scale\",\"anisotropic\":true}]",
     "leave anisotropic out"},
    {REFUSED("[[3,9,7]]", "[11]") ",{\"op\":\"normalize\",\"mean\":1,\"std\":1}]",
     "give mean 0 and std 1"},
    {"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[3,9,7]],\"kinds\":[11]},"
     "{\"op\":\"center_crop\",\"size\":8}]",
     "boxes in space (kind 11) follow points"},
};

START_TEST(refused)
{
	trial_refused(refusals[_i].spec, refusals[_i].wrong);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cloud_boxes");
	TCase *tcase = tcase_create("cloud_boxes");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_loop_test(tcase, as_elsewhere, 0, BASE_ARRAY_LEN(golden));
	tcase_add_loop_test(tcase, with_the_points, 0, BASE_ARRAY_LEN(drawn));
	tcase_add_test(tcase, few_numbers);
	tcase_add_loop_test(tcase, without_points, 0, 3);
	tcase_add_loop_test(tcase, refused, 0, BASE_ARRAY_LEN(refusals));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meshes: what is read of OFF, OBJ and PLY files, that points are uniform on the faces by area, drawn anew of another key and the same of
 * the same, or always the same; their normals; what is refused, and files that are cut off or damaged.
 */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "pipeline/pipeline.h"
#include "tests/patience.h"
#include "tests/pipeline/trial.h"

#define MOST 4096

struct rig {
	struct trial trial;
	float points[MOST * 6];
	int64_t label, length;
};

static void rig_init(struct rig *rig, const char *spec)
{
	trial_init(&rig->trial, spec);
}

static void rig_fini(struct rig *rig)
{
	trial_fini(&rig->trial);
}

static int rig_run(struct rig *rig, const void *data, size_t size, uint64_t sample)
{
	const struct pipeline_out out = {.field = {rig->points, &rig->label, &rig->length}};

	return trial_run(&rig->trial, data, size, 7, sample, &out);
}

/* ---- the same mesh in each format ---- */

/* A square of area 4 at z = 1, as one face of four corners, and a triangle of area 1 at x = 5. */
#define VERTICES "0 0 1\n2 0 1\n2 2 1\n0 2 1\n5 0 0\n5 2 0\n5 0 1\n"
#define PLY_HEAD(coding)                                                                     \
	"ply\nformat " coding " 1.0\nelement vertex 7\nproperty float x\nproperty float y\n" \
	"property float z\nelement face 2\nproperty float quality\nproperty list uchar int " \
	"vertex_indices\nend_header\n"

static const struct {
	const char *data;
	size_t size; /* 0: a text */
} meshes[] = {
    {"OFF\n7 2 0\n" VERTICES "4 0 1 2 3\n3 4 5 6\n", 0},
    {"OFF7 2 0\n" VERTICES "4 0 1 2 3\n3 4 5 6", 0}, /* as many of ModelNet40's are */
    {"OFF 7 2\r\n" VERTICES "4  0 1 2 3 255 0 0\r\n3 4 5 6 0.5 0.5 0.5 1\r\n", 0},
    {"COFF\n# made by hand\n\n7 2 9\n# vertices\n0 0 1 9 9 9 9\n\n2 0 1 9 9 9 9\n2 2 1\n0 2 1\n5 0 "
     "0\n5 2 0\n"
     "5 0 1\n\n# faces\n4 0 1 2 3\n3 4 5 6 # the last\n",
     0},
    {"# a comment\nmtllib a.mtl\no thing\nv 0 0 1\nv 2 0 1 0.5 0.5 0.5\nv 2 2 1\nv 0 2 1\nvn 0 0 "
     "1\nvt 0 0\n"
     "f 1/1/1 2/1/1 3//1 4\nv 5 0 0\nv 5 2 0\nv 5 0 1\nusemtl x\nf -3 -2 -1\n",
     0},
    {PLY_HEAD("ascii") VERTICES "0.25 4 0 1 2 3\n0.5 3 4 5 6\n", 0},
    {PLY_HEAD("binary_big_endian") "\0\0\0\0\0\0\0\0\x3f\x80\0\0"
				   "\x40\0\0\0\0\0\0\0\x3f\x80\0\0"
				   "\x40\0\0\0\x40\0\0\0\x3f\x80\0\0"
				   "\0\0\0\0\x40\0\0\0\x3f\x80\0\0"
				   "\x40\xa0\0\0\0\0\0\0\0\0\0\0"
				   "\x40\xa0\0\0\x40\0\0\0\0\0\0\0"
				   "\x40\xa0\0\0\0\0\0\0\x3f\x80\0\0"
				   "\0\0\0\0\4\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0\3"
				   "\0\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6",
     sizeof(PLY_HEAD("binary_big_endian")) - 1 + 84 + 38},
};

static size_t size_of(unsigned which)
{
	return meshes[which].size ? meshes[which].size : strlen(meshes[which].data);
}

#define SURFACE "[{\"op\":\"cloud\",\"points\":4096,\"surface\":true,\"channels\":6,\"normals\":3}]"
#define EVENLY                                                                              \
	"[{\"op\":\"cloud\",\"points\":4096,\"surface\":true,\"channels\":6,\"normals\":3," \
	"\"pick\":"                                                                         \
	"\"even\"}]"

/* Of so many points, each on a face, with its normal; in each quarter of the square and of the triangle as many as areas say. */
static void check_points(const struct rig *rig, double slack)
{
	unsigned square[4] = {0}, triangle[4] = {0};

	ck_assert_int_eq(rig->length, MOST);
	for (unsigned i = 0; i < MOST; i++) {
		const float *at = rig->points + (size_t)6 * i;
		double a = (double)at[1] / 2, b = (double)at[2];

		if (at[0] != 5) {
			ck_assert(at[0] >= 0 && at[0] <= 2 && at[1] >= 0 && at[1] <= 2 &&
				  at[2] == 1);
			ck_assert(at[3] == 0 && at[4] == 0 && at[5] == 1);
			square[(at[0] > 1) + 2 * (at[1] > 1)]++;
			continue;
		}
		ck_assert(a >= 0 && b >= 0 && a + b <= 1 + 1e-6);
		ck_assert(at[3] == 1 && at[4] == 0 && at[5] == 0);
		triangle[a > 0.5 ? 1 : b > 0.5 ? 2 : a + b < 0.5 ? 0 : 3]++;
	}
	for (unsigned i = 0; i < 4; i++) {
		const double wanted = MOST / 5.0, small = wanted / 4;

		ck_assert_msg(fabs(square[i] - wanted) < slack * sqrt(wanted), "%u: %u", i,
			      square[i]);
		ck_assert_msg(fabs(triangle[i] - small) < slack * sqrt(small), "%u: %u", i,
			      triangle[i]);
	}
}

START_TEST(on_the_surface)
{
	static struct rig rig;
	static float was[MOST * 6];
	const char *data = meshes[_i].data;

	rig_init(&rig, SURFACE);
	ck_assert(pipeline_is_random(rig.trial.pipeline));
	for (uint64_t sample = 0; sample < 4; sample++) { /* five deviations */
		ck_assert_msg(rig_run(&rig, data, size_of((unsigned)_i), sample) == 0, "%s",
			      rig.trial.error.text);
		check_points(&rig, 5);
		ck_assert(sample == 0 || memcmp(was, rig.points, sizeof(was)) != 0);
		memcpy(was, rig.points, sizeof(was));
	}
	ck_assert_int_eq(rig_run(&rig, data, size_of((unsigned)_i), 3), 0);
	ck_assert_mem_eq(was, rig.points, sizeof(was));
	ck_assert_int_eq(rig_run(&rig, meshes[0].data, size_of(0), 3), 0);
	ck_assert_mem_eq(was, rig.points, sizeof(was)); /* as of the other formats */
	rig_fini(&rig);
	rig_init(&rig, EVENLY);
	ck_assert(!pipeline_is_random(rig.trial.pipeline));
	ck_assert_int_eq(rig_run(&rig, data, size_of((unsigned)_i), 0), 0);
	check_points(&rig, 1); /* nearer than by chance */
	memcpy(was, rig.points, sizeof(was));
	ck_assert_int_eq(rig_run(&rig, data, size_of((unsigned)_i), 1), 0);
	ck_assert_mem_eq(was, rig.points, sizeof(was));
	rig_fini(&rig);
}
END_TEST

START_TEST(vertices)
{
	static const float wanted[7][3] = {{0, 0, 1}, {2, 0, 1}, {2, 2, 1}, {0, 2, 1},
					   {5, 0, 0}, {5, 2, 0}, {5, 0, 1}};
	static struct rig rig;

	rig_init(&rig, "[{\"op\":\"cloud\",\"points\":9,\"pick\":\"first\"}]");
	ck_assert_msg(rig_run(&rig, meshes[_i].data, size_of((unsigned)_i), 0) == 0, "%s",
		      rig.trial.error.text);
	ck_assert_int_eq(rig.length, 7);
	ck_assert_mem_eq(rig.points, wanted, sizeof(wanted));
	rig_fini(&rig);
}
END_TEST

/* Cut off at each byte, and with bytes changed: points or an error, and all memory is whose it is. */
START_TEST(damaged)
{
	static struct rig rig;
	const size_t size = size_of((unsigned)_i);
	_cleanup_free_ uint8_t *data = malloc(size);
	struct philox_seq seq;

	memcpy(data, meshes[_i].data, size);
	rig_init(&rig, "[{\"op\":\"cloud\",\"points\":8,\"surface\":true}]");
	for (size_t cut = 0; cut < size; cut++)
		if (rig_run(&rig, data, cut, 0) == 0)
			ck_assert_int_eq(rig.length, 8);
	philox_seq_init(&seq, 1, 2, (uint32_t)_i);
	for (unsigned i = 0; i < 4000; i++) {
		uint8_t *at = &data[philox_below(&seq, size)], was = *at;

		*at = (uint8_t)philox_u32(&seq);
		if (rig_run(&rig, data, size, 0) == 0)
			for (unsigned k = 0; k < 24; k++)
				ck_assert(isfinite(rig.points[k]));
		*at = was;
	}
	rig_fini(&rig);
}
END_TEST

static const struct {
	const char *data, *text;
} bad_files[] = {
    {"OFF\nseven 2 0\n", "OFF: no counts of vertices and faces"},
    {"OFF BINARY\n1234", "OFF: binary; write it as text"},
    {"OFF\n40000000000 2 0\n0 0 1\n", "OFF: no counts of vertices and faces"},
    {"OFF\n2000000000 2 0\n0 0 1\n", "OFF: the file is cut off"},
    {"OFF\n2 0 0\n0 0 1\n0 a 1\n", "OFF: vertex 2: not 3 numbers"},
    {"OFF\n3 1 0\n0 0 1\n0 1 1\n1 1 1\n", "OFF: the file is cut off"},
    {"OFF\n3 1 0\n0 0 1\n0 1 1\n1 1 1\n3 0 1\n", "OFF: a face has fewer corners than it says"},
    {"OFF\n3 1 0\n0 0 1\n0 1 1\n1 1 1\nx\n", "OFF: a face has no number of corners"},
    {"OFF\n3 1 0\n0 0 1\n0 1 1\n1 1 1\n3 0 1 3\n", "a face has a corner that is no vertex"},
    {"OFF\n3 1 0\n0 0 1\n0 1 1\n1 1 1\n3 0 1 -1\n", "a face has a corner that is no vertex"},
    {"OFF\n3 0 0\n0 0 1\n0 1 1\n1 1 1\n", "it has no faces"},
    {"OFF\n3 1 0\n0 0 1\n0 1 1\n0 2 1\n3 0 1 2\n", "its faces have no area"},
    {"OFF\n3 1 0\n0 0 nan\n0 1 1\n1 2 1\n3 0 1 2\n", "its faces have no area"},
    {"v 1 2\nv 1 2 3\n", "OBJ: vertex 1: not 3 numbers"},
    {"v 1 2 3\nv 2 2 3\nf 1 2 3\n", "a face has a corner that is no vertex"},
    {"v 1 2 3\nv 2 2 3\nv 2 2 4\nf -3 -2 -4\n", "a face has a corner that is no vertex"},
    {"v 1 2 3\nv 2 2 3\nv 2 2 4\nf 1 0 2\n", "a face has a corner that is no vertex"},
    {"v 1 2 3\nv 2 2 3\nv 2 2 4\nf 1 2 x\n", "OBJ: a face has a corner that is no number"},
    {"1 2 3\n2 3 4\n", "text has no faces: leave surface out"},
    {"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float "
     "z\nend_header\n1 2 3\n",
     "PLY: no element face"},
};

START_TEST(refused_files)
{
	static struct rig rig;

	rig_init(&rig, "[{\"op\":\"cloud\",\"points\":8,\"surface\":true}]");
	ck_assert_int_eq(rig_run(&rig, bad_files[_i].data, strlen(bad_files[_i].data), 0),
			 PIPELINE_E_BAD);
	ck_assert_str_eq(rig.trial.error.text, bad_files[_i].text);
	rig_fini(&rig);
}
END_TEST

#define MESH "[{\"op\":\"cloud\",\"points\":4,\"surface\":true"

static const struct {
	const char *spec, *wrong;
} refusals[] = {
    {MESH ",\"channels\":4}]", "give 6 channels and normals 3"},
    {MESH ",\"channels\":6}]", "give 6 channels and normals 3"},
    {MESH ",\"raw_columns\":4}]", "leave surface out"},
    {MESH ",\"pick\":\"first\"}]", "give pick random or even"},
    {MESH ",\"channels\":3,\"properties\":[\"x\",\"y\",\"z\",\"red\"]}]", "three properties"},
};

START_TEST(refused)
{
	trial_refused(refusals[_i].spec, refusals[_i].wrong);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cloud_mesh");
	TCase *tcase = tcase_create("cloud_mesh");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_loop_test(tcase, on_the_surface, 0, BASE_ARRAY_LEN(meshes));
	tcase_add_loop_test(tcase, vertices, 0, BASE_ARRAY_LEN(meshes));
	tcase_add_loop_test(tcase, damaged, 0, BASE_ARRAY_LEN(meshes));
	tcase_add_loop_test(tcase, refused_files, 0, BASE_ARRAY_LEN(bad_files));
	tcase_add_loop_test(tcase, refused, 0, BASE_ARRAY_LEN(refusals));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Point clouds: what is in files of each format (clouds/, by make_clouds.py), which points are taken and what is behind
 * them, what each op does by its formula and what it draws, what is refused, and files that are cut off or damaged.
 */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/exact.h"
#include "base/philox.h"
#include "pipeline/cloud/cloud.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/spec.h"
#include "tests/data.h"
#include "tests/patience.h"
#include "tests/pipeline/trial.h"

#define COUNT 40
#define MOST_POINTS 256
#define MOST_CHANNELS 8
#define MOST_BYTES 8192

/* ---- a pipeline, and samples through it ---- */

struct rig {
	struct trial trial;
	float points[MOST_POINTS * MOST_CHANNELS];
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

	memset(rig->points, 0xaa, sizeof(rig->points));
	return trial_run(&rig->trial, data, size, 7, sample, &out);
}

/* n points of those numbers, which are multiples of 1/8: raw. */
static size_t raw(float *to, size_t n, unsigned columns)
{
	for (size_t i = 0; i < n * columns; i++)
		to[i] = (float)((int)(i * 37 % 251) - 100) / 8;
	return n * columns * sizeof(*to);
}

/* ---- files ---- */

static double value_of(unsigned i, unsigned channel)
{
	const double values[] = {i / 4.0 - 3, 7 * i % 13 / 2.0, -(i / 8.0), i / 64.0, 5.0 * i,
				 i,           255.0 - i};

	return values[channel];
}

static size_t load(const char *name, uint8_t data[MOST_BYTES])
{
	return data_read("pipeline/clouds", name, data, MOST_BYTES);
}

#define NAMED "\"properties\":[\"x\",\"y\",\"z\",\"intensity\",\"red\",\"green\",\"blue\"]"
#define COLOURS "\"properties\":[\"x\",\"y\",\"z\",\"red\",\"green\",\"blue\"]"
#define SOME "\"properties\":[\"x\",\"y\",\"z\",\"green\"]"

static const struct {
	const char *name, *how;
	unsigned channels, first; /* first: the value that the channel behind z is */
} files[] = {
    {"text.ply", NAMED, 7, 3},
    {"little.ply", NAMED, 7, 3},
    {"big.ply", NAMED, 7, 3},
    {"little.ply", "\"channels\":7", 7, 3},
    {"big.ply", SOME, 4, 5},
    {"f64-order.ply", NAMED, 7, 3},
    {"big-behind.ply", NAMED, 7, 3},
    {"text-behind.ply", "\"channels\":5", 5, 3},
    {"ascii.pcd", "\"channels\":4", 4, 3},
    {"binary.pcd", NAMED, 7, 3},
    {"binary.pcd", "\"channels\":6", 6, 3},
    {"binary_compressed.pcd", NAMED, 7, 3},
    {"binary_compressed.pcd", SOME, 4, 5},
    {"raw.bin", "\"raw_columns\":7,\"channels\":4", 4, 3},
    {"raw.bin", "\"raw_columns\":7,\"channels\":7", 7, 3},
    {"f2.npy", "\"channels\":7", 7, 3},
    {"f4.npy", "\"raw_columns\":7,\"channels\":7", 7, 3},
    {"f8.npy", "\"channels\":3", 3, 3},
    {"i16-xyz.npy", "\"channels\":3", 3, 3},
    {"commas.txt", "\"channels\":7", 7, 3},
    {"blanks.xyz", "\"channels\":7", 7, 3},
    {"count.pts", "\"channels\":7", 7, 3},
    {"title-xyz.asc", "\"channels\":3", 3, 3},
    {"old.las", COLOURS, 6, 4},
    {"new.las", COLOURS, 6, 4},
};

static void make_file_spec(char spec[512], unsigned which)
{
	snprintf(spec, 512, "[{\"op\":\"cloud\",\"points\":64,\"padding\":\"zero\",%s}]",
		 files[which].how);
}

START_TEST(in_files)
{
	const unsigned channels = files[_i].channels;
	const double times = strcmp(files[_i].name, "i16-xyz.npy") == 0 ? 8 : 1;
	const bool is_las = strstr(files[_i].name, ".las") != NULL;
	const double less[] = {is_las ? -3 : 0, 0, is_las ? -39 / 8.0 : 0}; /* the least ones */
	static uint8_t data[MOST_BYTES];
	static struct rig rig;
	char spec[512];

	make_file_spec(spec, (unsigned)_i);
	rig_init(&rig, spec);
	ck_assert_msg(rig_run(&rig, data, load(files[_i].name, data), 0) == 0, "%s: %s",
		      files[_i].name, rig.trial.error.text);
	ck_assert_int_eq(rig.length, COUNT);
	ck_assert_int_eq(rig.label, 7);
	for (unsigned i = 0; i < 64; i++)
		for (unsigned c = 0; c < channels; c++) {
			const double wanted = i >= COUNT ? 0
					      : c < 3
						  ? times * value_of(i, c) - less[c]
						  : times * value_of(i, files[_i].first + c - 3);

			ck_assert_msg((double)rig.points[i * channels + c] == wanted,
				      "%s: point %u, channel %u: %g, not %g", files[_i].name, i, c,
				      (double)rig.points[i * channels + c], wanted);
		}
	rig_fini(&rig);
}
END_TEST

/* Each file cut off at each byte, and with one byte changed: points or an error, and all memory is whose it is. */
START_TEST(damaged)
{
	static uint8_t data[MOST_BYTES];
	static struct rig rig;
	const size_t size = load(files[_i].name, data);
	struct philox_seq seq;
	char spec[512];

	make_file_spec(spec, (unsigned)_i);
	rig_init(&rig, spec);
	for (size_t cut = 0; cut < size; cut++)
		if (rig_run(&rig, data, cut, 0) == 0)
			ck_assert_int_le(rig.length, COUNT);
	philox_seq_init(&seq, 1, 2, (uint32_t)_i);
	for (unsigned i = 0; i < 2000; i++) {
		uint8_t *at = &data[philox_below(&seq, size)], was = *at;

		*at = (uint8_t)philox_u32(&seq);
		if (rig_run(&rig, data, size, 0) == 0)
			ck_assert_int_le(rig.length, 64);
		*at = was;
	}
	rig_fini(&rig);
}
END_TEST

#define THREE "{\"op\":\"cloud\",\"points\":4}"
#define PCD_HEAD "# .PCD v0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"

static const struct {
	const char *spec, *data, *text;
} bad_files[] = {
    {THREE, "\x01\x02", "raw numbers need the op's raw_columns"},
    {"{\"op\":\"cloud\",\"points\":4,\"raw_columns\":4}", "\x01\x02",
     "2 bytes: no rows of 4 float32"},
    {THREE, "1 2 3\n4 5\n", "point 2: not 3 numbers"},
    {THREE, "1 2 3\n4 5 a\n", "point 2: not 3 numbers"},
    {THREE, "1 2\n4 5\n", "a point has 2 numbers, not 3"},
    {THREE, "1 2 0x3\n", "point 1: not 3 numbers"},
    {"{\"op\":\"cloud\",\"points\":4,\"properties\":[\"x\",\"y\",\"z\"]}", "1 2 3\n",
     "its columns have no names: no x"},
    {"{\"op\":\"cloud\",\"points\":4,\"properties\":[\"x\",\"y\",\"w\"]}",
     "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nend_header\n1 "
     "2\n",
     "the file has no property w"},
    {THREE, "ply\nformat ascii 1.0\nelement face 1\nproperty float x\nend_header\n1 2\n",
     "PLY: no element vertex"},
    {THREE, "ply\nelement vertex 1\nproperty float x\nend_header\n1 2\n",
     "PLY: no format 1.0 in its head"},
    {THREE, "ply\nformat ascii 1.0\nelement vertex 1\n", "PLY: its head has no end"},
    {THREE, "ply\nformat ascii 1.0\nelement vertex 1\nproperty half x\nend_header\n",
     "PLY: a line of its head cannot be read"},
    {THREE, "ply\nformat ascii 1.0\nelement vertex 1\nproperty list uchar int x\nend_header\n",
     "PLY: a point has a list"},
    {THREE,
     "ply\nformat binary_little_endian 1.0\nelement vertex 4000000000\nproperty float x\nproperty "
     "float y\nproperty float "
     "z\nend_header\n",
     "PLY: the file is cut off"},
    {THREE,
     "ply\nformat ascii 1.0\nelement vertex 4000000000\nproperty float x\nproperty float "
     "y\nproperty float z\nend_header\n",
     "the file is cut off"},
    {THREE, PCD_HEAD "POINTS 4\nDATA binary\n12345", "PCD: the file is cut off"},
    {THREE, PCD_HEAD "POINTS 4000000000\nDATA binary\n12345",
     "PCD: 4000000000 points are too many"},
    {THREE, PCD_HEAD "POINTS 4\nDATA zip\n12345", "PCD: its DATA is none"},
    {THREE, PCD_HEAD "DATA binary\n12345", "PCD: its head has no DATA or no POINTS"},
    {THREE, PCD_HEAD "POINTS 1\nDATA binary_compressed\n1234567890",
     "PCD: its compressed part has another size"},
    {THREE, "# .PCD v0.7\nFIELDS x y z\nSIZE 4 4\n", "PCD: a line of its head cannot be read"},
    {THREE, "# .PCD v0.7\nFIELDS x y z\nSIZE 4 4 3\nTYPE F F F\nPOINTS 0\nDATA binary\n",
     "PCD: a field's TYPE and SIZE are none"},
};

START_TEST(refused_files)
{
	static struct rig rig;
	char spec[512];

	snprintf(spec, sizeof(spec), "[%s]", bad_files[_i].spec);
	rig_init(&rig, spec);
	ck_assert_int_eq(rig_run(&rig, bad_files[_i].data, strlen(bad_files[_i].data), 0),
			 PIPELINE_E_BAD);
	ck_assert_str_eq(rig.trial.error.text, bad_files[_i].text);
	rig_fini(&rig);
}
END_TEST

/* Numbers as strtod() has them, to the last bit of the double. */
START_TEST(numbers)
{
	static const char *const texts[] = {
	    "0.1",
	    "-0.1",
	    "123456.789",
	    "9007199254740993",
	    "0.30000000000000004",
	    "1e22",
	    "1e-30",
	    "-2.5E+3",
	    ".5",
	    "5.",
	    "+7",
	    "0.0000000000000000000012345",
	    "12345678901234567890123",
	    "179769313486231580793e289",
	    "-0",
	    "inf",
	    "-nan",
	};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(texts); i++) {
		static struct rig rig;
		const float wanted = (float)strtod(texts[i], NULL);
		char text[128];

		rig_init(&rig, "[{\"op\":\"cloud\",\"points\":1,\"channels\":4}]");
		snprintf(text, sizeof(text), "1 2 3 %s", texts[i]);
		ck_assert_msg(rig_run(&rig, text, strlen(text), 0) == 0, "%s: %s", texts[i],
			      rig.trial.error.text);
		ck_assert_msg(memcmp(&rig.points[3], &wanted, 4) == 0, "%s: %.9g", texts[i],
			      (double)rig.points[3]);
		rig_fini(&rig);
	}
}
END_TEST

/* ---- how many there are ---- */

/* Points that are nowhere are none, whatever else they have. */
START_TEST(nowhere)
{
	float points[6 * 4];
	static struct rig rig;

	rig_init(&rig, "[{\"op\":\"cloud\",\"points\":5,\"channels\":4,\"raw_columns\":4,"
		       "\"padding\":\"repeat\"}]");
	raw(points, 6, 4);
	points[4] = NAN;
	points[4 * 3 + 2] = INFINITY;
	points[4 * 5 + 1] = -INFINITY;
	points[3] = NAN; /* no coordinate: it stays */
	ck_assert_int_eq(rig_run(&rig, points, sizeof(points), 0), 0);
	ck_assert_int_eq(rig.length, 3);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_mem_eq(&rig.points[4 * i], &points[4 * ((unsigned[]){0, 2, 4})[i % 3]],
				 16);
	for (unsigned i = 0; i < 6; i++)
		points[4 * i] = NAN;
	ck_assert_int_eq(rig_run(&rig, points, sizeof(points), 0), 0);
	ck_assert_int_eq(rig.length, 0);
	for (unsigned i = 0; i < 5 * 4; i++)
		ck_assert_float_eq(rig.points[i], 0);
	ck_assert_int_eq(rig_run(&rig, points, 0, 0), 0); /* a file of nothing */
	ck_assert_int_eq(rig.length, 0);
	rig_fini(&rig);
}
END_TEST

START_TEST(evenly)
{
	float points[100 * 3];
	static struct rig rig;
	const size_t size = raw(points, 100, 3);

	for (unsigned n = 1; n < 120; n++) {
		char spec[200];

		snprintf(spec, sizeof(spec),
			 "[{\"op\":\"cloud\",\"points\":%u,\"raw_columns\":3,\"pick\":\"%s\","
			 "\"padding\":\"repeat\"}]",
			 n, n % 2 ? "even" : "first");
		rig_init(&rig, spec);
		ck_assert(!pipeline_is_random(rig.trial.pipeline));
		ck_assert_int_eq(rig_run(&rig, points, size, n), 0);
		ck_assert_int_eq(rig.length, BASE_MIN(n, 100));
		for (unsigned i = 0; i < n; i++) {
			const unsigned from = n >= 100 ? i % 100 : n % 2 ? i * 100 / n : i;

			ck_assert_mem_eq(&rig.points[3 * i], &points[3 * from], 12);
		}
		rig_fini(&rig);
	}
}
END_TEST

/* Each point is taken as often as each other, none twice, in each place as often; and the same again of the same key. */
START_TEST(at_random)
{
	enum { N = 10, OF = 40, TIMES = 20000 };
	static unsigned at[OF][N];
	float points[OF * 3], was[N * 3];
	static struct rig rig;

	rig_init(&rig, "[{\"op\":\"cloud\",\"points\":10,\"raw_columns\":3}]");
	ck_assert(pipeline_is_random(rig.trial.pipeline));
	raw(points, OF, 3);
	for (unsigned i = 0; i < OF; i++)
		points[3 * i] = (float)i;
	for (uint64_t sample = 0; sample < TIMES; sample++) {
		uint64_t seen = 0;

		ck_assert_int_eq(rig_run(&rig, points, sizeof(points), sample), 0);
		for (unsigned i = 0; i < N; i++) {
			const unsigned which = (unsigned)rig.points[3 * i];

			ck_assert(!(seen >> which & 1));
			seen |= UINT64_C(1) << which;
			ck_assert_mem_eq(&rig.points[3 * i], &points[3 * which], 12);
			at[which][i]++;
		}
		memcpy(was, rig.points, sizeof(was));
	}
	ck_assert_int_eq(rig_run(&rig, points, sizeof(points), TIMES - 1), 0);
	ck_assert_mem_eq(was, rig.points, sizeof(was));
	for (unsigned i = 0; i < OF * N; i++) /* 500 on average; five deviations are 110 */
		ck_assert_msg(at[i / N][i % N] > 390 && at[i / N][i % N] < 610, "%u: %u", i,
			      at[i / N][i % N]);
	rig_fini(&rig);
}
END_TEST

/* Two pipelines that begin alike choose the same points, and read the file once. */
START_TEST(shared)
{
	static const char *const specs[] = {
	    "[{\"op\":\"cloud\",\"points\":20,\"raw_columns\":3},{\"op\":\"point_flip\",\"axis\":"
	    "\"x\",\"p\":1}]",
	    "[{\"op\":\"cloud\",\"points\":20,\"raw_columns\":3},{\"op\":\"point_sample\","
	    "\"points\":8,\"pick\":\"first\"}]",
	    "[{\"op\":\"cloud\",\"points\":21,\"raw_columns\":3}]",
	};
	const struct pipeline_key key = {1, 2, 3};
	struct pipeline *pipeline[3];
	struct pipeline_run *run;
	struct pipeline_error error;
	float points[100 * 3], one[20 * 3], other[8 * 3];
	int64_t label[2], length[2];
	const struct pipeline_out out[] = {{.field = {one, &label[0], &length[0]}},
					   {.field = {other, &label[1], &length[1]}}};
	struct diag diag;
	const size_t size = raw(points, 100, 3);

	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(pipeline_compile(specs[i], strlen(specs[i]), &pipeline[i], &diag),
				 0);
	ck_assert_int_eq(pipeline_run_new((const struct pipeline *const *)pipeline, 3, &run),
			 -EINVAL);
	ck_assert_int_eq(pipeline_run_new((const struct pipeline *const *)pipeline, 2, &run), 0);
	ck_assert_int_eq(pipeline_run_sample(run, 3, points, size, 7, &key, out, &error), 0);
	ck_assert_int_eq(length[0], 20);
	ck_assert_int_eq(length[1], 8);
	for (unsigned i = 0; i < 8 * 3; i++)
		ck_assert_float_eq(one[i], i % 3 ? other[i] : -other[i]);
	pipeline_run_free(run);
	for (unsigned i = 0; i < 3; i++)
		pipeline_free(pipeline[i]);
}
END_TEST

/* What is said of the fields. */
START_TEST(fields)
{
	static struct rig rig;
	const struct pipeline_field *field;

	rig_init(&rig, "[{\"op\":\"cloud\",\"points\":20,\"channels\":4,\"padding\":\"ragged\"},{"
		       "\"op\":\"point_sample\","
		       "\"points\":8},{\"op\":\"one_hot\",\"num_classes\":3}]");
	ck_assert_uint_eq(pipeline_fields(rig.trial.pipeline, &field), 3);
	ck_assert_str_eq(field[0].name, "points");
	ck_assert(field[0].dtype == PIPELINE_F32 && field[0].ndim == 2 && field[0].shape[0] == 8 &&
		  field[0].shape[1] == 4);
	ck_assert(field[0].kind == PIPELINE_RAGGED && field[0].lengths == 2);
	ck_assert_str_eq(field[2].name, "points.length");
	rig_fini(&rig);
	rig_init(&rig, "[{\"op\":\"cloud\",\"points\":20}]");
	ck_assert_uint_eq(pipeline_fields(rig.trial.pipeline, &field), 3);
	ck_assert(field[0].kind == PIPELINE_DENSE && field[0].shape[0] == 20 &&
		  field[0].shape[1] == 3);
	ck_assert_str_eq(field[2].name, "length");
	rig_fini(&rig);
}
END_TEST

/* ---- ops ---- */

#define POINTS 50

static struct op_list ops;
static struct cloud cloud;
static float before[POINTS * 6], after[POINTS * 6];

/* The op behind "cloud" of six channels, of which three are normals, on points: what it drew, and how many are left. */
static size_t run_op(const char *op, uint64_t sample, struct op_drawn *drawn)
{
	const struct pipeline_key key = {1, 2, sample};
	struct cloud_part part = {.cloud = &cloud, .at = after, .n = POINTS};
	struct draw draw;
	struct diag diag;
	char spec[400];

	snprintf(spec, sizeof(spec),
		 "[{\"op\":\"cloud\",\"points\":50,\"channels\":6,\"normals\":3},%s]", op);
	ck_assert_msg(spec_parse(spec, strlen(spec), &ops, &diag) == 0, "%s", diag.text);
	ck_assert_msg(cloud_init(&ops, ops.count, &cloud, &diag) == 0, "%s", diag.text);
	raw(before, POINTS, 6);
	memcpy(after, before, sizeof(after));
	draw_init(&draw, &key);
	op_draw(&ops.op[1], 1, &draw, 1, POINTS, drawn);
	cloud_ops(&ops, &key, &part);
	return part.n;
}

static void same_number(double is, double wanted)
{
	ck_assert_msg((float)wanted == (float)is, "%.9g, not %.9g", is, wanted);
}

START_TEST(rotation)
{
	static const char *const specs[] = {
	    "{\"op\":\"point_rotation\",\"degrees\":[30,30]}",
	    "{\"op\":\"point_rotation\",\"degrees\":[30,30],\"axis\":\"x\"}",
	    "{\"op\":\"point_rotation\",\"degrees\":[30,30],\"axis\":\"y\"}",
	};
	static const unsigned turned[3][2] = {
	    {0, 1}, {1, 2}, {2, 0}}; /* the first of these goes to the second */
	const double cosine = exact_cos(30 * 3.14159265358979323846 / 180),
		     sine = exact_sin(30 * 3.14159265358979323846 / 180);
	struct op_drawn drawn;

	for (unsigned s = 0; s < 3; s++) {
		ck_assert_uint_eq(run_op(specs[s], 0, &drawn), POINTS);
		ck_assert(!op_is_random(&ops.op[1]));
		for (unsigned i = 0; i < POINTS * 2; i++) { /* points and normals */
			const float *from = &before[3 * i], *to = &after[3 * i];
			const double u = (double)from[turned[s][0]], v = (double)from[turned[s][1]];

			same_number((double)to[turned[s][0]], cosine * u - sine * v);
			same_number((double)to[turned[s][1]], sine * u + cosine * v);
			ck_assert_float_eq(to[3 - turned[s][0] - turned[s][1]],
					   from[3 - turned[s][0] - turned[s][1]]);
		}
	}
}
END_TEST

/* A rotation: lengths stay, right-handed; and where x goes is uniform on the sphere: each coordinate is uniform in [-1, 1]. */
START_TEST(any_rotation)
{
	unsigned tenths[9][10] = {0};
	struct op_drawn drawn;

	for (uint64_t sample = 0; sample < 10000; sample++) {
		const double *m = &drawn.number[1];

		run_op("{\"op\":\"point_rotation\",\"axis\":\"any\"}", sample, &drawn);
		for (unsigned a = 0; a < 3; a++)
			for (unsigned b = 0; b < 3; b++)
				ck_assert(fabs(m[a] * m[b] + m[3 + a] * m[3 + b] +
					       m[6 + a] * m[6 + b] - (a == b)) < 1e-12);
		ck_assert(fabs(m[0] * (m[4] * m[8] - m[5] * m[7]) -
			       m[1] * (m[3] * m[8] - m[5] * m[6]) +
			       m[2] * (m[3] * m[7] - m[4] * m[6]) - 1) < 1e-12);
		for (unsigned k = 0; k < 9; k++)
			tenths[k][(unsigned)BASE_MIN((m[k] + 1) * 5, 9)]++;
		for (unsigned i = 0; i < POINTS * 2; i++)
			for (unsigned k = 0; k < 3; k++)
				same_number((double)after[3 * i + k],
					    m[3 * k] * (double)before[3 * i] +
						m[3 * k + 1] * (double)before[3 * i + 1] +
						m[3 * k + 2] * (double)before[3 * i + 2]);
	}
	for (unsigned i = 0; i < 90; i++) /* five deviations are 150 */
		ck_assert_msg(tenths[i / 10][i % 10] > 850 && tenths[i / 10][i % 10] < 1150,
			      "%u: %u", i, tenths[i / 10][i % 10]);
}
END_TEST

START_TEST(moved)
{
	struct op_drawn drawn;

	run_op("{\"op\":\"point_flip\",\"axis\":\"y\",\"p\":1}", 0, &drawn);
	for (unsigned i = 0; i < POINTS * 6; i++)
		ck_assert_float_eq(after[i], i % 3 == 1 ? -before[i] : before[i]);
	run_op("{\"op\":\"point_scale\",\"scale\":[0.5,2]}", 1, &drawn);
	ck_assert(drawn.number[1] == drawn.number[2] && drawn.number[1] == drawn.number[3]);
	for (unsigned i = 0; i < POINTS * 6; i++)
		same_number((double)after[i],
			    (double)before[i] * (i % 6 < 3 ? drawn.number[1] : 1));
	run_op("{\"op\":\"point_scale\",\"scale\":[0.5,2],\"anisotropic\":true}", 1, &drawn);
	ck_assert(drawn.number[1] != drawn.number[2] && drawn.number[2] != drawn.number[3]);
	for (unsigned i = 0; i < POINTS * 6; i++)
		same_number((double)after[i],
			    (double)before[i] * (i % 6 < 3 ? drawn.number[1 + i % 6] : 1));
	run_op("{\"op\":\"point_translation\",\"translate\":[1,0,5]}", 2, &drawn);
	ck_assert(fabs(drawn.number[1]) <= 1 && drawn.number[2] == 0 && fabs(drawn.number[3]) > 1);
	for (unsigned i = 0; i < POINTS * 6; i++)
		same_number((double)after[i],
			    (double)before[i] + (i % 6 < 3 ? drawn.number[1 + i % 6] : 0));
	run_op("{\"op\":\"normalize\",\"mean\":[1,2,3,4,5,6],\"std\":[1,2,3,4,5,6]}", 0, &drawn);
	for (unsigned i = 0; i < POINTS * 6; i++)
		ck_assert_float_eq(after[i], (before[i] - (float)(1 + i % 6)) / (float)(1 + i % 6));
}
END_TEST

START_TEST(jitter)
{
	double sum = 0, squares = 0;
	unsigned clipped = 0;
	struct op_drawn drawn;

	for (uint64_t sample = 0; sample < 400; sample++) {
		run_op("{\"op\":\"point_jitter\",\"sigma\":0.5,\"clip\":1}", sample, &drawn);
		for (unsigned i = 0; i < POINTS * 6; i++) {
			const double shift =
			    i % 6 < 3 ? 0.5 * (double)draw_normal_float(&drawn.seq) : 0;
			const double wanted = BASE_MAX(-1, BASE_MIN(shift, 1));

			same_number((double)after[i], (double)before[i] + wanted);
			sum += i % 6 < 3 ? wanted : 0;
			squares += wanted * wanted;
			clipped += fabs(wanted) == 1;
		}
	}
	ck_assert(fabs(sum / 60000) < 0.0105);                       /* five deviations */
	ck_assert(squares / 60000 > 0.22 && squares / 60000 < 0.24); /* cut off at two: 0.2302 */
	ck_assert(clipped > 2450 && clipped < 3000); /* 4.55 in 100 are beyond two */
	run_op("{\"op\":\"point_jitter\",\"sigma\":100,\"clip\":null}", 0, &drawn);
	ck_assert(fabs((double)after[0] - (double)before[0]) > 1);
}
END_TEST

START_TEST(left_out)
{
	size_t n = 0, all = 0;
	struct op_drawn drawn;

	all = run_op("{\"op\":\"point_range\",\"range\":[-5,-12,0,5.625,12,8]}", 0, &drawn);
	for (unsigned i = 0; i < POINTS; i++) {
		const float *p = &before[6 * i];

		if (p[0] < -5 || p[0] > 5.625F || p[1] < -12 || p[1] > 12 || p[2] < 0 || p[2] > 8)
			continue;
		ck_assert_mem_eq(&after[6 * n++], p, 24);
	}
	ck_assert(n == all && n > 2 && n < POINTS);
	all = 0;
	for (uint64_t sample = 0; sample < 1000; sample++) {
		n = run_op("{\"op\":\"point_dropout\",\"ratio\":[0,0.5]}", sample, &drawn);
		ck_assert(drawn.number[1] >= 0 && drawn.number[1] < 0.5);
		for (unsigned i = 0, k = 0; i < POINTS; i++) /* in their order */
			if (philox_unit(&drawn.seq) >= drawn.number[1])
				ck_assert_mem_eq(&after[6 * k++], &before[6 * i], 24);
		all += n;
	}
	ck_assert(all > 36000 && all < 39000);
	ck_assert_uint_eq(run_op("{\"op\":\"point_dropout\",\"ratio\":1}", 0, &drawn), 0);
	ck_assert_uint_eq(
	    run_op("{\"op\":\"point_sample\",\"points\":20,\"pick\":\"even\"}", 0, &drawn), 20);
	ck_assert_mem_eq(&after[6 * 3], &before[6 * 7], 24);
}
END_TEST

START_TEST(shuffled)
{
	struct op_drawn drawn;
	unsigned changed = 0;

	ck_assert_uint_eq(run_op("{\"op\":\"point_shuffle\"}", 5, &drawn), POINTS);
	for (unsigned i = 0; i < POINTS; i++) { /* Fisher and Yates' */
		const size_t from = i + philox_below(&drawn.seq, POINTS - i);
		float row[6];

		memcpy(row, &before[6 * from], 24);
		memmove(&before[6 * from], &before[6 * i], 24);
		memcpy(&before[6 * i], row, 24);
		changed += from != i;
	}
	ck_assert_mem_eq(after, before, sizeof(after));
	ck_assert(changed > POINTS / 2);
}
END_TEST

START_TEST(unit)
{
	double mean[3] = {0}, far = 0, side = 0;
	struct op_drawn drawn;

	run_op("{\"op\":\"point_center\"}", 0, &drawn);
	for (unsigned i = 0; i < POINTS; i++)
		for (unsigned k = 0; k < 3; k++)
			mean[k] += (double)before[6 * i + k] / POINTS;
	for (unsigned i = 0; i < POINTS * 6; i++)
		ck_assert(fabs((double)after[i] -
			       ((double)before[i] - (i % 6 < 3 ? mean[i % 6] : 0))) < 1e-5);
	for (unsigned i = 0; i < POINTS; i++) {
		double squares = 0;

		for (unsigned k = 0; k < 3; k++) {
			squares += pow((double)before[6 * i + k] - mean[k], 2);
			side = BASE_MAX(side, fabs((double)before[6 * i + k] - mean[k]));
		}
		far = BASE_MAX(far, sqrt(squares));
	}
	for (unsigned is_cube = 0; is_cube < 2; is_cube++) {
		run_op(is_cube ? "{\"op\":\"point_unit\",\"to\":\"cube\"}"
			       : "{\"op\":\"point_unit\"}",
		       0, &drawn);
		for (unsigned i = 0; i < POINTS * 6; i++)
			ck_assert(
			    fabs((double)after[i] - (i % 6 < 3 ? ((double)before[i] - mean[i % 6]) /
								     (is_cube ? side : far)
							       : (double)before[i])) < 1e-6);
	}
	run_op("{\"op\":\"point_center\",\"by\":\"box\"}", 0, &drawn);
	for (unsigned k = 0; k < 3; k++) {
		float least = INFINITY, most = -INFINITY;

		for (unsigned i = 0; i < POINTS; i++) {
			least = BASE_MIN(least, after[6 * i + k]);
			most = BASE_MAX(most, after[6 * i + k]);
		}
		ck_assert_float_eq(least, -most);
	}
}
END_TEST

/* One point, or none, is no reason for NaN. */
START_TEST(few)
{
	static const char *const names[] = {
	    "{\"op\":\"point_unit\"}", "{\"op\":\"point_center\",\"by\":\"box\"}",
	    "{\"op\":\"point_shuffle\"}", "{\"op\":\"point_jitter\",\"sigma\":0}"};
	const float point[3] = {1, 2, 3};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(names); i++)
		for (unsigned n = 0; n < 2; n++) {
			static struct rig rig;
			char spec[300];

			snprintf(spec, sizeof(spec),
				 "[{\"op\":\"cloud\",\"points\":2,\"raw_columns\":3},%s]",
				 names[i]);
			rig_init(&rig, spec);
			ck_assert_int_eq(rig_run(&rig, point, n * sizeof(point), 0), 0);
			ck_assert_int_eq(rig.length, n);
			for (unsigned k = 0; k < 6; k++)
				ck_assert_float_eq(rig.points[k],
						   i < 2 || n == 0 ? 0 : point[k % 3]);
			rig_fini(&rig);
		}
}
END_TEST

static const struct {
	const char *op;
	double share; /* of samples that it is done to */
	bool is_random;
} chances[] = {
    {"{\"op\":\"point_rotation\",\"p\":0.25}", 0.25, true},
    {"{\"op\":\"point_rotation\",\"p\":0}", 0, false},
    {"{\"op\":\"point_rotation\"}", 1, true},
    {"{\"op\":\"point_flip\",\"axis\":\"x\"}", 0.5, true},
    {"{\"op\":\"point_flip\",\"axis\":\"x\",\"p\":1}", 1, false},
    {"{\"op\":\"point_scale\",\"scale\":2}", 1, false},
    {"{\"op\":\"point_scale\",\"p\":0.75}", 0.75, true},
    {"{\"op\":\"point_translation\",\"translate\":1,\"p\":0.5}", 0.5, true},
    {"{\"op\":\"point_jitter\",\"p\":0.5}", 0.5, true},
    {"{\"op\":\"point_dropout\",\"p\":0.5}", 0.5, true},
    {"{\"op\":\"point_dropout\",\"ratio\":0}", 1, false},
    {"{\"op\":\"point_shuffle\"}", 1, true},
    {"{\"op\":\"point_sample\",\"points\":3}", 1, true},
};

START_TEST(now_and_then)
{
	unsigned done = 0;
	struct op_drawn drawn;

	for (uint64_t sample = 0; sample < 4000; sample++) {
		run_op(chances[_i].op, sample, &drawn);
		done += drawn.number[0] != 0;
		if (drawn.number[0] == 0)
			ck_assert_mem_eq(before, after, sizeof(before));
	}
	ck_assert_msg(fabs(done / 4000.0 - chances[_i].share) < 0.04, "%u", done);
	ck_assert(op_is_random(&ops.op[1]) == chances[_i].is_random);
}
END_TEST

/* Frozen: a change is another pipeline. */
START_TEST(frozen)
{
	struct op_drawn drawn;

	run_op("{\"op\":\"point_scale\",\"scale\":[1,100],\"anisotropic\":true}", 3, &drawn);
	ck_assert_msg(fabs(drawn.number[3] - 63.3916355443) < 1e-9, "%.12g", drawn.number[3]);
	run_op("{\"op\":\"point_rotation\",\"axis\":\"any\"}", 3, &drawn);
	ck_assert_msg(fabs(drawn.number[9] + 0.967900238226) < 1e-9, "%.12g", drawn.number[9]);
}
END_TEST

/* ---- what is refused ---- */

#define FOUR "{\"op\":\"cloud\",\"points\":4,\"channels\":4}"

static const struct {
	const char *spec, *wrong;
} refusals[] = {
    {"[{\"op\":\"cloud\"}]", "points"},
    {"[{\"op\":\"cloud\",\"points\":0}]", "points"},
    {"[{\"op\":\"cloud\",\"points\":4,\"channels\":2}]", "channels"},
    {"[{\"op\":\"cloud\",\"points\":4,\"properties\":[\"x\",\"y\"]}]",
     "properties are one for each of channels"},
    {"[{\"op\":\"cloud\",\"points\":4,\"properties\":[\"x\",\"y\",\"z\"],\"channels\":4}]",
     "properties are one for each of channels"},
    {"[{\"op\":\"cloud\",\"points\":4,\"properties\":[\"x\",\"y\",\"z\"],\"raw_columns\":4}]",
     "leave properties out"},
    {"[{\"op\":\"cloud\",\"points\":4,\"channels\":4,\"raw_columns\":3}]", "raw_columns are fewer"},
    {"[{\"op\":\"cloud\",\"points\":4,\"channels\":5,\"normals\":3}]",
     "a normal has three channels"},
    {"[" FOUR ",{\"op\":\"hflip\"}]", "op 2 (hflip): behind cloud there are points"},
    {"[" FOUR ",{\"op\":\"point_shuffle\"},{\"op\":\"vol\",\"gain\":1}]",
     "op 3 (vol): behind cloud"},
    {"[" FOUR ",{\"op\":\"cloud\",\"points\":4}]", "op 2 (cloud): behind cloud"},
    {"[" FOUR ",{\"op\":\"normalize\",\"mean\":[1,2,3],\"std\":1}]", "one for each channel"},
    {"[" FOUR ",{\"op\":\"point_range\",\"range\":[1,2,3]}]", "range is six numbers"},
    {"[" FOUR ",{\"op\":\"point_range\",\"range\":[1,2,3,0,5,6]}]",
     "range begins with the larger number"},
    {"[" FOUR ",{\"op\":\"point_translation\",\"translate\":[1,2]}]", "translate is one number"},
    {"[" FOUR ",{\"op\":\"point_rotation\",\"axis\":\"any\",\"degrees\":10}]", "leave degrees out"},
    {"[" FOUR ",{\"op\":\"mixup\",\"num_classes\":3}]", "mosaic, mixup and cutmix"},
    {"[{\"op\":\"decode\"},{\"op\":\"point_shuffle\"}]", "begin with cloud in place of decode"},
    {"[{\"op\":\"decode\"},{\"op\":\"cloud\",\"points\":3}]", "it takes the place of decode"},
    {"[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":80},{\"op\":\"point_shuffle\"}]", "audio"},
};

START_TEST(refused)
{
	trial_refused(refusals[_i].spec, refusals[_i].wrong);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cloud");
	TCase *tcase = tcase_create("cloud");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_loop_test(tcase, in_files, 0, BASE_ARRAY_LEN(files));
	tcase_add_loop_test(tcase, damaged, 0, BASE_ARRAY_LEN(files));
	tcase_add_loop_test(tcase, refused_files, 0, BASE_ARRAY_LEN(bad_files));
	tcase_add_test(tcase, numbers);
	tcase_add_test(tcase, nowhere);
	tcase_add_test(tcase, evenly);
	tcase_add_test(tcase, at_random);
	tcase_add_test(tcase, shared);
	tcase_add_test(tcase, fields);
	tcase_add_test(tcase, rotation);
	tcase_add_test(tcase, any_rotation);
	tcase_add_test(tcase, moved);
	tcase_add_test(tcase, jitter);
	tcase_add_test(tcase, left_out);
	tcase_add_test(tcase, shuffled);
	tcase_add_test(tcase, unit);
	tcase_add_test(tcase, few);
	tcase_add_loop_test(tcase, now_and_then, 0, BASE_ARRAY_LEN(chances));
	tcase_add_test(tcase, frozen);
	tcase_add_loop_test(tcase, refused, 0, BASE_ARRAY_LEN(refusals));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines that begin alike, as variants of one run: each has the bytes, the label and the outcome
 * that it has alone, whichever of them are wanted, and what they have in common is done once, by the
 * run's own count.
 *
 * Sets are made at random: each pipeline takes some of the first ops of one before it and goes on by
 * itself, so that they part in front of, within, at the end of and behind the fused ops.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "pipeline/engine/fuse_fan.h"
#include "pipeline/pipeline.h"
#include "tests/data.h"
#include "tests/suite.h"

#define SHARE_SETS 72
#define SHARE_MASKS 6 /* a set and file */

struct share_file {
	const char *name;
	uint8_t *data;
	size_t size;
};
static struct share_file share_files[] = {
    {.name = "420.jpg"},         {.name = "444.jpg"},       {.name = "gray.jpg"},
    {.name = "low-quality.jpg"}, {.name = "odd-size.jpg"},  {.name = "progressive.jpg"},
    {.name = "tall.jpg"},        {.name = "truncated.jpg"}, {.name = "corrupt-scan.jpg"},
    {.name = "wide.jpg"},        {.name = "one-pixel.jpg"}, {.name = "empty.jpg"},
};

static void share_setup(void)
{
	for (unsigned f = 0; f < BASE_ARRAY_LEN(share_files); f++) {
		struct share_file *file = &share_files[f];

		file->data = data_load("pipeline/data", file->name, &file->size);
	}
}

static void share_teardown(void)
{
	for (unsigned f = 0; f < BASE_ARRAY_LEN(share_files); f++)
		free(share_files[f].data);
}

static const struct share_file *share_find(const char *name)
{
	unsigned f = 0;

	while (strcmp(share_files[f].name, name) != 0)
		f++;
	return &share_files[f];
}

/* ---- sets ---- */

struct share_one {
	struct pipeline *pipeline;
	struct pipeline_run *run; /* of it alone */
	size_t bytes;
	uint8_t
	    *image[2]; /* alone and in the set; exactly as long: the sanitizer sees a byte more */
	int64_t label[2];
	uint64_t ops; /* that it ran alone for the last sample */
	int r;
	struct pipeline_error error;
};

struct share_set {
	unsigned n;
	struct share_one one[PIPELINE_MAX_VARIANTS];
	struct pipeline_run *run;
};

static bool share_add(struct share_set *set, const char *decode, const char *ops)
{
	struct share_one *one = &set->one[set->n];
	const struct pipeline_field *fields;
	const struct pipeline *pipeline;
	char text[4096];
	struct diag diag;

	snprintf(text, sizeof(text), "[{\"op\":\"decode\"%s}%s]", decode, ops);
	if (pipeline_compile(text, strlen(text), &one->pipeline, &diag) != 0)
		return false;
	pipeline = one->pipeline;
	pipeline_fields(pipeline, &fields);
	ck_assert_uint_eq(fields[1].bytes, sizeof(one->label[0]));
	one->bytes = fields[0].bytes;
	for (unsigned i = 0; i < 2; i++) {
		one->image[i] = malloc(one->bytes);
		ck_assert_ptr_nonnull(one->image[i]);
	}
	ck_assert_int_eq(pipeline_run_new(&pipeline, 1, &one->run), 0);
	set->n++;
	return true;
}

static void share_end(struct share_set *set)
{
	const struct pipeline *pipelines[PIPELINE_MAX_VARIANTS];

	for (unsigned v = 0; v < set->n; v++)
		pipelines[v] = set->one[v].pipeline;
	ck_assert_int_eq(pipeline_run_new(pipelines, set->n, &set->run), 0);
}

static void share_free(struct share_set *set)
{
	pipeline_run_free(set->run);
	for (unsigned v = 0; v < set->n; v++) {
		pipeline_run_free(set->one[v].run);
		pipeline_free(set->one[v].pipeline);
		free(set->one[v].image[0]);
		free(set->one[v].image[1]);
	}
	*set = (struct share_set){.n = 0};
}

/* ---- a sample ---- */

static void share_alone(struct share_one *one, const struct share_file *file, uint32_t label,
			const struct pipeline_key *key)
{
	const struct pipeline_out out = {.field = {one->image[0], &one->label[0]}};
	struct pipeline_work before, after;

	memset(one->image[0], 0xa5, one->bytes);
	one->error = (struct pipeline_error){0};
	pipeline_run_work(one->run, &before);
	one->r =
	    pipeline_run_sample(one->run, 1, file->data, file->size, label, key, &out, &one->error);
	pipeline_run_work(one->run, &after);
	one->ops = after.ops - before.ops;
	ck_assert_uint_le(after.passes - before.passes, 1);
	ck_assert_uint_eq(after.copies, 0);
}

/* The ops that a set runs behind its passes: each of those that each runs alone, but not again what
 * one before it ran, too. */
static uint64_t share_ops(const struct share_set *set, uint32_t who)
{
	uint64_t sum = 0;

	for (unsigned v = 0; v < set->n; v++) {
		const struct pipeline *own = set->one[v].pipeline;
		unsigned end = pipeline_shared(own, own);

		for (unsigned i = end - (unsigned)set->one[v].ops; who >> v & 1 && i < end; i++) {
			bool there = false;

			for (unsigned u = 0; u < v && !there; u++)
				there =
				    who >> u & 1 && pipeline_shared(own, set->one[u].pipeline) > i;
			sum += !there;
		}
	}
	return sum;
}

/* The first that fails alone tells for all. */
static void share_check_error(const struct share_set *set, uint32_t who, int r,
			      const struct pipeline_error *error)
{
	for (unsigned v = 0; v < set->n; v++) {
		const struct share_one *one = &set->one[v];

		if (!(who >> v & 1) || one->r == 0)
			continue;
		ck_assert_int_eq(r, one->r);
		ck_assert_int_eq(error->stage, one->error.stage);
		ck_assert_int_eq(error->code, one->error.code);
		ck_assert_str_eq(error->text, one->error.text);
		return;
	}
	ck_assert_msg(r == 0, "%s", error->text);
}

static bool share_is_untouched(const struct share_one *one)
{
	size_t i = 0;

	while (i < one->bytes && one->image[1][i] == 0x5a)
		i++;
	return i == one->bytes;
}

static void share_check_out(const struct share_set *set, uint32_t who, int r, const char *name)
{
	for (unsigned v = 0; v < set->n; v++) {
		const struct share_one *one = &set->one[v];
		bool wanted = who >> v & 1;

		if (wanted && r != 0)
			continue;
		ck_assert_msg(memcmp(one->image[0], one->image[1], one->bytes) == 0 || !wanted,
			      "%s: %u of %#x: %s", name, v, who, pipeline_canonical(one->pipeline));
		ck_assert(wanted || share_is_untouched(one));
		ck_assert_int_eq(one->label[1], wanted ? one->label[0] : -1);
	}
}

/* Those of `who` in one run, against what share_alone() found; what it took. */
static struct pipeline_work share_check(struct share_set *set, uint32_t who,
					const struct share_file *file, uint32_t label,
					const struct pipeline_key *key)
{
	struct pipeline_out out[PIPELINE_MAX_VARIANTS];
	struct pipeline_work before, after;
	struct pipeline_error error = {0};
	int r;

	for (unsigned v = 0; v < set->n; v++) {
		struct share_one *one = &set->one[v];

		memset(one->image[1], 0x5a, one->bytes);
		one->label[1] = -1;
		out[v].field[0] = one->image[1];
		out[v].field[1] = &one->label[1];
	}
	pipeline_run_work(set->run, &before);
	r = pipeline_run_sample(set->run, who, file->data, file->size, label, key, out, &error);
	pipeline_run_work(set->run, &after);
	share_check_error(set, who, r, &error);
	share_check_out(set, who, r, file->name);
	after.passes -= before.passes;
	after.ops -= before.ops;
	after.copies -= before.copies;
	if (r == 0)
		ck_assert_uint_eq(after.ops, share_ops(set, who));
	return after;
}

/* ---- at random ---- */

/* Ops that work on pictures; those from SHARE_LAST on give one a size. */
static const char *const share_picture[] = {
    "{\"op\":\"hflip\"}",
    "{\"op\":\"vflip\",\"p\":1}",
    "{\"op\":\"hflip\",\"p\":1}",
    "{\"op\":\"color_jitter\",\"brightness\":0.4,\"hue\":0.1}",
    "{\"op\":\"grayscale\",\"num_output_channels\":3}",
    "{\"op\":\"rotate\",\"degrees\":30}",
    ("{\"op\":\"random_apply\",\"otherwise\":2},{\"op\":\"vflip\"},{\"op\":\"random_apply\",\"p\":"
     "0.3},"
     "{\"op\":\"invert\",\"p\":1},{\"op\":\"hflip\"}"),
    "{\"op\":\"timm_rand_augment\",\"p\":1}",
    "{\"op\":\"gaussian_blur\",\"kernel_size\":3}",
    "{\"op\":\"random_erasing\",\"p\":1}",
    "{\"op\":\"posterize\",\"bits\":3,\"p\":1}",
    "{\"op\":\"jpeg\",\"quality\":[20,90]}",
    "{\"op\":\"elastic_transform\",\"sigma\":[0.1,0.1]}",
    "{\"op\":\"aug_mix\",\"mixture_width\":2}",
    "{\"op\":\"pad\",\"padding\":3}",
    "{\"op\":\"resize\",\"size\":40}",
    "{\"op\":\"resize\",\"size\":40,\"interpolation\":\"bicubic\"}",
    "{\"op\":\"resize\",\"size\":16384}",
    "{\"op\":\"random_crop\",\"size\":24}",
    "{\"op\":\"center_crop\",\"size\":[24,40]}",
    "{\"op\":\"center_crop\",\"size\":32}",
    "{\"op\":\"random_resized_crop\",\"size\":[33,31]}",
    "{\"op\":\"random_resized_crop\",\"size\":32,\"scale\":[0.001,1]}",
    "{\"op\":\"resize\",\"size\":[44,38]}",
    "{\"op\":\"five_crop\",\"size\":20}",
};
#define SHARE_LAST 19
#define SHARE_RESIZE 23

static const char *const share_finish[] = {
    "",
    ",{\"op\":\"layout\"}",
    ",{\"op\":\"cast\"}",
    ",{\"op\":\"cast\",\"dtype\":\"f16\"},{\"op\":\"layout\"}",
    ",{\"op\":\"normalize\",\"mean\":[0.4,0.5,0.6],\"std\":[0.2,0.3,0.1]},{\"op\":\"layout\"}",
    ",{\"op\":\"normalize\",\"mean\":0.5,\"std\":0.5},{\"op\":\"random_erasing\",\"p\":1}",
};

/* The same for all of a set. */
static const char *const share_tail[] = {
    "",
    ",{\"op\":\"filter\",\"min_width\":70}",
    ",{\"op\":\"map\",\"labels\":[4,5,6]}",
};

#define SHARE_MOST 5 /* ops on pictures, and one that gives a size */
struct share_ops {
	unsigned n;
	unsigned op[SHARE_MOST + 1];
};

static unsigned share_below(struct philox_seq *seq, unsigned n)
{
	return (unsigned)philox_below(seq, n);
}

/* The first ops of another one, then some of its own. */
static void share_draw(struct philox_seq *seq, const struct share_ops *from, struct share_ops *ret)
{
	unsigned more;

	ret->n = share_below(seq, from->n + 1);
	if (ret->n > SHARE_MOST)
		ret->n = SHARE_MOST;
	memcpy(ret->op, from->op, ret->n * sizeof(ret->op[0]));
	for (more = share_below(seq, SHARE_MOST + 1 - ret->n); more > 0; more--)
		ret->op[ret->n++] = share_below(seq, BASE_ARRAY_LEN(share_picture));
	if (ret->n == 0 || share_below(seq, 2))
		ret->op[ret->n++] =
		    SHARE_LAST + share_below(seq, BASE_ARRAY_LEN(share_picture) - SHARE_LAST);
}

static void share_write(const struct share_ops *ops, const char *finish, const char *tail,
			char *ret, size_t size)
{
	size_t at = 0;

	for (unsigned i = 0; i < ops->n; i++)
		at += (size_t)snprintf(ret + at, size - at, ",%s", share_picture[ops->op[i]]);
	snprintf(ret + at, size - at, "%s%s", finish, tail);
}

static void share_make(struct philox_seq *seq, unsigned tail, bool is_fast, struct share_set *set)
{
	const unsigned n = 2 + share_below(seq, PIPELINE_MAX_VARIANTS - 1);
	struct share_ops ops[PIPELINE_MAX_VARIANTS] = {{.n = 0}};
	/* half of the sets are mostly of parts of one resize */
	const struct share_ops first = {.n = share_below(seq, 2), .op = {SHARE_RESIZE}};
	char text[4096];

	while (set->n < n) {
		const struct share_ops *from = set->n ? &ops[share_below(seq, set->n)] : &first;

		share_draw(seq, from, &ops[set->n]);
		share_write(&ops[set->n],
			    share_finish[share_below(seq, BASE_ARRAY_LEN(share_finish))],
			    share_tail[tail], text, sizeof(text));
		share_add(set, is_fast && share_below(seq, 3) ? ",\"fast\":true" : "", text);
	}
	share_end(set);
}

/* One set, all files, some masks. */
START_TEST(as_alone)
{
	struct share_set set = {.n = 0};
	struct philox_seq seq;

	philox_seq_init(&seq, 20261122, (uint64_t)_i, 0);
	share_make(&seq, (unsigned)_i % BASE_ARRAY_LEN(share_tail), _i % 4 == 3, &set);
	for (unsigned f = 0; f < BASE_ARRAY_LEN(share_files); f++) {
		const struct pipeline_key key = {7, (uint64_t)_i, f};
		const uint32_t label = share_below(&seq, 4), all = (UINT32_C(1) << set.n) - 1;

		for (unsigned v = 0; v < set.n; v++)
			share_alone(&set.one[v], &share_files[f], label, &key);
		share_check(&set, all, &share_files[f], label, &key);
		for (unsigned i = 1; i < SHARE_MASKS; i++)
			share_check(&set, share_below(&seq, all + 1), &share_files[f], label, &key);
	}
	share_free(&set);
}
END_TEST

/* ---- what is done once ---- */

#define CROP ",{\"op\":\"random_resized_crop\",\"size\":64}"
#define FLIP ",{\"op\":\"hflip\"}"
#define MIRROR ",{\"op\":\"hflip\",\"p\":1}"
#define JITTER ",{\"op\":\"color_jitter\",\"brightness\":0.4}"
#define TURN ",{\"op\":\"rotate\",\"degrees\":20}"
#define FLOAT ",{\"op\":\"cast\"},{\"op\":\"layout\"}"
#define MEAN ",{\"op\":\"normalize\",\"mean\":0.5,\"std\":0.5}"
#define ERASE ",{\"op\":\"random_erasing\",\"p\":1}"
#define SMALL ",{\"op\":\"resize\",\"size\":60}"

static const struct {
	const char *ops[5];
	uint32_t who;
	struct pipeline_work work;
} share_counts[] = {
    /* types, orders, what stands behind normalize */
    {{CROP FLIP, CROP FLIP FLOAT, CROP FLIP MEAN, CROP FLIP MEAN ERASE}, 15, {1, 0, 0}},
    {{CROP FLIP, CROP FLIP FLOAT, CROP FLIP MEAN, CROP FLIP MEAN ERASE}, 10, {1, 0, 0}},
    /* other flips of the same crop, and other windows */
    {{CROP, CROP FLIP, CROP ",{\"op\":\"vflip\",\"p\":1}"}, 7, {1, 0, 0}},
    {{SMALL ",{\"op\":\"center_crop\",\"size\":60}", SMALL ",{\"op\":\"random_crop\",\"size\":40}",
      SMALL ",{\"op\":\"center_crop\",\"size\":80}" FLOAT},
     7,
     {1, 0, 0}},
    {{SMALL ",{\"op\":\"random_crop\",\"size\":[40,44]}" MIRROR,
      SMALL ",{\"op\":\"random_crop\",\"size\":[44,40]}" FLOAT,
      SMALL ",{\"op\":\"random_crop\",\"size\":[51,38]},{\"op\":\"vflip\",\"p\":1}" MIRROR,
      SMALL ",{\"op\":\"random_crop\",\"size\":50}" JITTER},
     15,
     {1, 1, 0}},
    /* other crops have nothing in common */
    {{CROP, ",{\"op\":\"random_resized_crop\",\"size\":63}"}, 3, {2, 0, 0}},
    /* one window within the other; two small ones, far apart, cost less than one around them */
    {{SMALL ",{\"op\":\"center_crop\",\"size\":60},{\"op\":\"five_crop\",\"size\":9}",
      SMALL ",{\"op\":\"center_crop\",\"size\":9}"},
     3,
     {1, 1, 0}},
    {{SMALL ",{\"op\":\"random_crop\",\"size\":9}", SMALL ",{\"op\":\"center_crop\",\"size\":9}"},
     3,
     {2, 0, 0}},
    /* behind the pass: one who is done with it, two who have an op in common and part */
    {{CROP FLOAT, CROP JITTER TURN, CROP JITTER FLOAT, CROP JITTER MEAN}, 15, {1, 2, 0}},
    {{CROP FLOAT, CROP JITTER TURN, CROP JITTER FLOAT, CROP JITTER MEAN}, 9, {1, 1, 0}},
    {{CROP JITTER TURN, CROP JITTER ERASE, CROP JITTER TURN FLOAT}, 7, {1, 3, 1}},
    {{CROP JITTER TURN, CROP JITTER ERASE, CROP JITTER TURN FLOAT}, 5, {1, 2, 0}},
    {{CROP JITTER TURN, CROP TURN, CROP ERASE, CROP TURN JITTER, CROP JITTER}, 31, {1, 5, 2}},
    /* the same op in another place draws otherwise */
    {{CROP JITTER, CROP FLIP JITTER}, 3, {1, 2, 0}},
    /* in front of a crop */
    {{JITTER CROP, JITTER CROP FLIP, JITTER SMALL ",{\"op\":\"center_crop\",\"size\":9}"},
     7,
     {1, 5, 1}},
};

START_TEST(once)
{
	const struct pipeline_key key = {3, 4, 5};
	struct share_set set = {.n = 0};
	struct pipeline_work work;

	for (unsigned v = 0; v < 5 && share_counts[_i].ops[v]; v++)
		ck_assert(share_add(&set, "", share_counts[_i].ops[v]));
	share_end(&set);
	for (unsigned v = 0; v < set.n; v++)
		share_alone(&set.one[v], share_find("420.jpg"), 0, &key);
	work = share_check(&set, share_counts[_i].who, share_find("420.jpg"), 0, &key);
	ck_assert_uint_eq(work.passes, share_counts[_i].work.passes);
	ck_assert_uint_eq(work.ops, share_counts[_i].work.ops);
	ck_assert_uint_eq(work.copies, share_counts[_i].work.copies);
	share_free(&set);
}
END_TEST

/* Only what resizes the same part alike is one pass; windows, flips and frames may differ. */
START_TEST(one_pass)
{
	struct finish finish = {.order = OP_CHW};
	struct fuse_plan plan[12], other;
	struct fuse_fan fan = {.n = 0};
	const struct fuse_sink sink = {.plan = &plan[0], .finish = &finish};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(plan); i++)
		plan[i] = (struct fuse_plan){.shift = 1,
					     .source = {8, 9, 70, 80},
					     .cut = {{1, 2}, {3, 4}},
					     .resized = true,
					     .filter = FILTER_BILINEAR,
					     .to = {50, 60},
					     .window = {0, 0, 50, 60},
					     .frame = {50, 60}};
	plan[1].shift = 2;
	plan[2].source.left = 7;
	plan[3].source.height = 71;
	plan[4].cut.across.front = 4;
	plan[5].cut.down.back = 1;
	plan[6].resized = false;
	plan[7].filter = FILTER_BOX;
	plan[8].to.height = 51;
	plan[9].to.width = 61;
	plan[10].mirrored = plan[10].turned = true;
	plan[11].window = (struct picture_box){5, 6, 7, 8};
	for (unsigned i = 1; i < BASE_ARRAY_LEN(plan); i++) {
		struct fuse_sink second = {.plan = &plan[i], .finish = &finish};

		fuse_fan_start(&fan, &sink);
		other = fan.plan;
		ck_assert_msg(fuse_fan_add(&fan, &second) == (i >= 10), "plan %u", i);
		ck_assert_uint_eq(fan.n, i >= 10 ? 2 : 1);
		ck_assert_mem_eq(&fan.plan.window, &other.window, sizeof(other.window));
	}
}
END_TEST

/* ---- who has how much in common ---- */

static const struct {
	const char *a, *b;
	unsigned shared;
} share_lengths[] = {
    {CROP FLIP, CROP FLIP, 3},
    {CROP FLIP FLOAT, CROP FLIP MEAN, 3},
    {CROP FLIP, CROP FLIP JITTER, 3},
    {CROP FLIP JITTER, CROP ",{\"op\":\"hflip\",\"p\":0.25}" JITTER, 2},
    {CROP ",{\"op\":\"hflip\",\"p\":0.5}" JITTER, CROP FLIP JITTER, 4},
    {CROP, ",{\"op\":\"random_resized_crop\",\"size\":[64,63]}", 1},
    {CROP ERASE, CROP ",{\"op\":\"random_erasing\",\"p\":1,\"value\":9}", 2},
};

START_TEST(lengths)
{
	struct share_set set = {.n = 0};

	ck_assert(share_add(&set, "", share_lengths[_i].a) &&
		  share_add(&set, "", share_lengths[_i].b));
	ck_assert_uint_eq(pipeline_shared(set.one[0].pipeline, set.one[1].pipeline),
			  share_lengths[_i].shared);
	ck_assert_uint_eq(pipeline_shared(set.one[1].pipeline, set.one[0].pipeline),
			  share_lengths[_i].shared);
	share_free(&set);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, share_setup, share_teardown);
	tcase_add_loop_test(tcase, as_alone, 0, SHARE_SETS);
	tcase_add_loop_test(tcase, once, 0, BASE_ARRAY_LEN(share_counts));
	tcase_add_test(tcase, one_pass);
	tcase_add_loop_test(tcase, lengths, 0, BASE_ARRAY_LEN(share_lengths));
}

int main(void)
{
	return suite_run("share", add);
}

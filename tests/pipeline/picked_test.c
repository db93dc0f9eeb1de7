/* SPDX-License-Identifier: Apache-2.0 */

/* Samples that are all files of a tar shard, all columns of MDS or a tf.Example: the op's text, what a field is made of, and how. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/tar.h"
#include "pipeline/pipeline.h"

#define ROOM (64 << 10)

static uint8_t tar[ROOM];
static size_t used;

static void add(const char *path, const void *data, size_t size)
{
	struct tar_header header = {.type = '0', .magic = "ustar"};

	ck_assert(used + 2 * TAR_BLOCK + size <= sizeof(tar));
	memcpy(header.name, path, strlen(path));
	snprintf(header.size, sizeof(header.size), "%011o", (unsigned)size & 07777777);
	snprintf(header.checksum, sizeof(header.checksum), "%06o", tar_header_sum(&header));
	memcpy(tar + used, &header, sizeof(header));
	memcpy(tar + used + TAR_BLOCK, data, size);
	used += TAR_BLOCK + base_align_up(size, TAR_BLOCK);
}

static void add_text(const char *path, const char *text)
{
	add(path, text, strlen(text));
}

static const char picture[] = "P6\n2 1\n255\n\xff\x00\x00\x80\x80\x80";
static const char mask[] = "P5\n2 1\n255\n\x07\x09";
#define NPY(bytes, text, values) "\x93NUMPY\x01\x00" bytes "\x00" text values

/* Of `more` behind the rest. */
static void begin(const char *json)
{
	used = 0;
	memset(tar, 0, sizeof(tar));
	add("a/1.PPM", picture, sizeof(picture) - 1);
	add_text("README", "no key: of no sample");
	add("a/1.mask.pgm", mask, sizeof(mask) - 1);
	add_text("a/1.txt", "gr\xc3\xbcn");
	add_text("a/1.cls", "17\n");
	add_text("a/1.json", json);
	add("a/1.ids.npy",
	    NPY("\x37", "{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}",
		"\x05\x00\xfe\xff"),
	    69);
}

static struct pipeline *compiled(const char *text)
{
	struct pipeline *pipeline = NULL;
	struct diag diag = {.text = ""};

	ck_assert_msg(pipeline_compile(text, strlen(text), &pipeline, &diag) == 0, "%s", diag.text);
	return pipeline;
}

static _Alignas(64) uint8_t field[PIPELINE_MAX_FIELDS][256];
static struct pipeline_error error;

/* The sample of these bytes, with label 5. */
static int run_of(const char *text, const uint8_t *data, size_t size)
{
	struct pipeline *pipeline = compiled(text);
	const struct pipeline *one = pipeline;
	const struct pipeline_key key = {1, 2, 3};
	struct pipeline_out out;
	struct pipeline_run *run;
	int r;

	for (unsigned f = 0; f < PIPELINE_MAX_FIELDS; f++)
		out.field[f] = field[f];
	memset(field, 0xee, sizeof(field));
	error.text[0] = '\0';
	ck_assert_int_eq(pipeline_run_new(&one, 1, &run), 0);
	r = pipeline_run_sample(run, 1, data, size, 5, &key, &out, &error);
	pipeline_run_free(run);
	pipeline_free(pipeline);
	return r;
}

static int run_text(const char *text)
{
	uint8_t *copy = malloc(used); /* that ends where the sample does */
	int r;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, tar, used);
	r = run_of(text, copy, used);
	free(copy);
	return r;
}

/* ---- the text ---- */

#define DECODE(members, fields, kinds) \
	"[{\"op\":\"decode\",\"members\":" members ",\"fields\":" fields ",\"kinds\":" kinds "},"
#define CROP "{\"op\":\"center_crop\",\"size\":[1,2]}]"
#define RECORD(members, fields, kinds)                                                            \
	"[{\"op\":\"record\",\"members\":[" members "],\"fields\":[" fields "],\"kinds\":[" kinds \
	"]}]"

#define COLUMNS(columns, members, fields, kinds)                              \
	"[{\"op\":\"record\",\"columns\":[" columns "],\"members\":[" members \
	"],\"fields\":[" fields "],\"kinds\":[" kinds "]}]"

static const struct {
	const char *text, *says;
} wrong[] = {
    {"[{\"op\":\"decode\",\"members\":[]}," CROP, "is an empty list"},
    {"[{\"op\":\"decode\",\"members\":[\"\"]}," CROP, "ASCII"},
    {"[{\"op\":\"decode\",\"members\":[\"a\\\"b\"]}," CROP, "ASCII"},
    {"[{\"op\":\"decode\",\"members\":[\"jpg;\"]}," CROP, "none of them empty"},
    {"[{\"op\":\"decode\",\"members\":[\":a\"]}," CROP, "none of them empty"},
    {"[{\"op\":\"decode\",\"members\":[\"jpg\",\"txt\"]}," CROP, "more members than fields"},
    {"[{\"op\":\"decode\",\"members\":[\"jpg\"],\"source\":\"record\"}," CROP, "leave source out"},
    {DECODE("[\"jpg\"]", "[[1,9]]", "[2]") CROP, "the picture's"},
    {RECORD("\"txt\"", "[1,9],[1,9]", "2,2"), "as many members as fields"},
    {COLUMNS("\"a:int\"", "\"b\"", "[4]", "0"), "none of the columns"},
    {COLUMNS("\"a:pkl\"", "\"a\"", "[1,9]", "1"), "no place in a batch"},
    {COLUMNS("\"a:int\",\":str\"", "\"a\"", "[4]", "0"), "NAME:ENCODING"},
    {COLUMNS("\"a:int\",\"b\"", "\"a\"", "[4]", "0"), "NAME:ENCODING"},
    {"[{\"op\":\"record\",\"fields\":[[4]],\"columns\":[\"a:int\"]}]", "give these, too"},
};

START_TEST(wrong_texts_are_told)
{
	struct pipeline *pipeline;
	struct diag diag = {.text = ""};

	ck_assert_int_eq(pipeline_compile(wrong[_i].text, strlen(wrong[_i].text), &pipeline, &diag),
			 PIPELINE_E_BAD);
	ck_assert_msg(strstr(diag.text, wrong[_i].says) != NULL, "\"%s\" has no \"%s\"", diag.text,
		      wrong[_i].says);
}
END_TEST

START_TEST(the_canonical_text_is_read_again)
{
	struct pipeline *first =
	    compiled(DECODE("[\"jpg;png\",\"json:a/b\"]", "[[3,2,4]]", "[3]") CROP);
	struct pipeline *again = compiled(pipeline_canonical(first));

	ck_assert_ptr_nonnull(strstr(pipeline_canonical(first), "[\"jpg;png\",\"json:a/b\"]"));
	ck_assert_str_eq(pipeline_canonical(first), pipeline_canonical(again));
	ck_assert(!pipeline_is_random(first));
	pipeline_free(first);
	pipeline_free(again);
	first = compiled(RECORD("\"txt\"", "[1,9]", "2"));
	ck_assert(!pipeline_is_random(first)); /* files do not change */
	pipeline_free(first);
}
END_TEST

/* ---- samples ---- */

static int64_t whole(unsigned f)
{
	int64_t number;

	memcpy(&number, field[f], sizeof(number));
	return number;
}

START_TEST(a_picture_and_what_is_beside_it)
{
	const float boxes[2][4] = {{0, 0, 2, 1}, {0, 0, 0, 0}};

	begin("{\"of\": {\"boxes\": [[0, 0, 2, 1], [0.5, 0, 1, 0.5]]}, \"classes\": [3, 4]}");
	ck_assert_msg(
	    run_text(DECODE("[\"jpg;ppm\",\"mask.pgm\",\"json:of/boxes\",\"json:classes\",\"txt\"]",
			    "[[4],[3,2,4],[4,2],[1,8]]", "[5,3,4,2]") CROP) == 0,
	    "%s", error.text);
	ck_assert_int_eq(memcmp(field[0], picture + 11, 6), 0);
	ck_assert_int_eq(whole(1), 5); /* the index' */
	ck_assert_int_eq(whole(2), 7);
	ck_assert_int_eq(((const int64_t *)(const void *)field[2])[1], 9);
	ck_assert_int_eq(memcmp(field[3], boxes, sizeof(boxes)), 0); /* one is too small */
	ck_assert_int_eq(whole(4), 3);
	ck_assert_str_eq((const char *)field[5], "gr\xc3\xbcn");
	ck_assert_int_eq(whole(6), 1); /* lengths: boxes, classes, text */
	ck_assert_int_eq(whole(7), 1);
	ck_assert_int_eq(whole(8), 5);
}
END_TEST

#define ALONE "[{\"op\":\"decode\",\"members\":[\"ppm\"]}," CROP

/* What is kept behind all ops of it. */
static size_t kept_of_alone(uint8_t *form, size_t room)
{
	struct pipeline *pipeline = compiled(ALONE);
	const struct pipeline *one = pipeline;
	const struct pipeline_key key = {1, 2, 3};
	struct pipeline_run *run;
	size_t size = 0;

	ck_assert_int_eq(pipeline_run_new(&one, 1, &run), 0);
	ck_assert_int_eq(pipeline_cut_make(run, 0, 2, tar, used, &key, form, room, &size, &error),
			 0);
	pipeline_run_free(run);
	pipeline_free(pipeline);
	return size;
}

START_TEST(a_picture_alone)
{
	static _Alignas(64) uint8_t form[1024];

	begin("{}");
	ck_assert_int_eq(run_text(ALONE), 0);
	ck_assert_int_eq(memcmp(field[0], picture + 11, 6), 0);
	ck_assert_int_eq(whole(1), 5); /* the index' */
	ck_assert_int_eq(run_of(ALONE, form, kept_of_alone(form, sizeof(form))), 0);
	ck_assert_int_eq(memcmp(field[0], picture + 11, 6), 0);
	ck_assert_int_eq(whole(1), 5);
}
END_TEST

START_TEST(fields_without_a_picture)
{
	const int64_t ids[2] = {5, -2};

	begin("{\"name\": \"it\", \"all\": [[1, 2], [3, 4]], \"yes\": [true, false]}");
	ck_assert_msg(
	    run_text(RECORD("\"cls\",\"ids.npy\",\"json:name\",\"json:all/1\",\"json:yes\","
			    "\"json\",\"mask.pgm\"",
			    "[4],[4,2],[1,4],[6,2],[13,2],[1,90],[1,20]", "0,0,2,0,0,2,1")) == 0,
	    "%s", error.text);
	ck_assert_int_eq(whole(0), 17);
	ck_assert_int_eq(memcmp(field[1], ids, sizeof(ids)), 0);
	ck_assert_str_eq((const char *)field[2], "it");
	ck_assert_int_eq(memcmp(field[3], "\3\4", 2), 0);
	ck_assert_int_eq(memcmp(field[4], "\1\0", 2), 0);
	ck_assert_ptr_nonnull(strstr((const char *)field[5], "\"name\": \"it\""));
	ck_assert_int_eq(memcmp(field[6], mask, sizeof(mask) - 1), 0);
}
END_TEST

START_TEST(two_files_of_json)
{
	begin("{\"name\": \"the one that is read first\", \"n\": [1, 2]}");
	add_text("a/1.more.json", "{\"name\": \"another\", \"n\": [3]}");
	ck_assert_msg(run_text(RECORD("\"json:name\",\"more.json:n\",\"more.json:name\",\"json:n\"",
				      "[1,40],[4,1],[1,7],[4,2]", "2,0,2,0")) == 0,
		      "%s", error.text);
	ck_assert_str_eq((const char *)field[0], "the one that is read first");
	ck_assert_int_eq(whole(1), 3);
	ck_assert_int_eq(memcmp(field[2], "another", 7), 0);
	ck_assert_int_eq(whole(3), 1);
}
END_TEST

START_TEST(lists_of_nothing)
{
	begin("{\"boxes\": []}");
	ck_assert_int_eq(run_text(RECORD("\"json:boxes\"", "[3,2,4]", "1")), 0);
	ck_assert_int_eq(whole(1), 0);
}
END_TEST

static const struct {
	const char *text, *says;
} bad[] = {
    {RECORD("\"webp\"", "[1,9]", "1"), "no file for webp"},
    {RECORD("\"txt\"", "[1,2]", "2"), "5, at most 2"},
    {RECORD("\"txt:a\"", "[1,9]", "2"), "txt:a: a key (behind a colon) is of JSON"},
    {RECORD("\"ppm\"", "[1,90]", "2"), "ppm: no UTF-8 at byte 11"},
    {RECORD("\"cls\"", "[4,1]", "0"), "cls: its field is [4]"},
    {RECORD("\"ids.npy\"", "[4,3]", "0"), "ids.npy: of another shape"},
    {RECORD("\"ids.npy\"", "[3,2]", "0"), "ids.npy: of another type; it becomes [4]"},
    {RECORD("\"json:none/x\"", "[4]", "0"), "json:none/x: nothing is there"},
    {RECORD("\"json:all/7\"", "[4]", "0"), "json:all/7: nothing is there"},
    {RECORD("\"json:all\"", "[4,1]", "1"), "json:all: 2, at most 1"},
    {RECORD("\"json:all\"", "[4,2,3]", "0"), "json:all: of other shape or type"},
    {RECORD("\"json:all\"", "[9,2,2]", "0"), "json:all: of other shape or type"}, /* -1 */
    {RECORD("\"json:all\"", "[2,2,2]", "0"), "json:all: of other shape or type"}, /* float16 */
    {RECORD("\"json:half\"", "[4]", "0"), "json:half: of other shape or type"},
    {RECORD("\"json:half\"", "[1,9]", "2"), "json:half: it is no text"},
    {RECORD("\"json:name\"", "[1,3]", "2"), "json:name: 4, at most 3"},
    {DECODE("[\"ppm\",\"json:back\"]", "[[3,1,4]]", "[3]") CROP, "a box ends before it begins"},
    {DECODE("[\"ppm\",\"back.npy\"]", "[[3,1,4]]", "[3]") CROP, "a box ends before it begins"},
    {DECODE("[\"txt\",\"txt\"]", "[[1,9]]", "[2]") CROP, ""},
    {"[{\"op\":\"decode\"}," CROP, "decode needs \"members\""},
};

START_TEST(bad_samples_are_told)
{
	begin("{\"all\": [[1, 2], [3, -1]], \"half\": 0.5, \"name\": \"long\","
	      " \"back\": [[3, 0, 2, 1]]}");
	add("a/1.back.npy",
	    NPY("\x39", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4)}",
		"\0\0\x40\x40\0\0\0\0\0\0\0\x40\0\0\x80\x3f"),
	    83);
	ck_assert_int_eq(run_text(bad[_i].text), PIPELINE_E_BAD);
	ck_assert_msg(strstr(error.text, bad[_i].says) != NULL, "\"%s\" has no \"%s\"", error.text,
		      bad[_i].says);
}
END_TEST

START_TEST(what_is_no_sample_of_these)
{
	const uint8_t other[] = "P6\n2 1\n255\n......";

	ck_assert_int_eq(run_of(RECORD("\"txt\"", "[1,9]", "2"), other, sizeof(other)),
			 PIPELINE_E_BAD);
	ck_assert_msg(strstr(error.text, "members=all") != NULL, "%s", error.text);
	begin("{]");
	ck_assert_int_eq(run_text(RECORD("\"json:a\"", "[4]", "0")), PIPELINE_E_BAD);
	ck_assert_str_eq(error.text, "json:a: it is no JSON");
}
END_TEST

/* ---- columns of MDS ---- */

#define SHARD                                                                                   \
	"\"a:int\",\"b:ndarray:int16:2,2\",\"c:str\",\"d:ndarray\",\"e:bytes\",\"f:json\",\"g:" \
	"pkl\","                                                                                \
	"\"h:float64\",\"i:png\""

/* Of fixed columns 8 + 8 + 8 bytes; sizes of the six others. */
static void begin_columns(const char *text, const char *array, uint32_t array_size)
{
	const char json[] = "{\"n\": [1.5, 2], \"s\": \"in it\"}";
	const uint32_t sizes[] = {(uint32_t)strlen(text), array_size, 6,
				  sizeof(json) - 1,       3,          sizeof(picture) - 1};
	const int64_t number = -7;
	const double real = 0.1;

	used = 0;
#define ADD(from, size) (memcpy(tar + used, from, size), used += (size))
	ADD(sizes, sizeof(sizes));
	ADD(&number, 8);
	ADD("\1\0\2\0\xff\xff\4\0", 8);
	ADD(text, strlen(text));
	ADD(array, array_size);
	ADD("\1\0\2\0\3\0", 6);
	ADD(json, sizeof(json) - 1);
	ADD("pkl", 3);
	ADD(&real, 8);
	ADD(picture, sizeof(picture) - 1);
#undef ADD
}

/* uint32, one dimension in a byte, two of them: 5, 70000. */
#define DYNAMIC "\x20\4\2\5\0\0\0\x70\x11\1\0"

START_TEST(columns_of_every_kind)
{
	const int64_t wide[2] = {5, 70000}, matrix[4] = {1, 2, -1, 4};
	const uint16_t raw[3] = {1, 2, 3};
	const float floats[2] = {1.5F, 2};
	const double real = 0.1;

	begin_columns("gr\xc3\xbcn", DYNAMIC, 11);
	ck_assert_msg(
	    run_text(COLUMNS(SHARD, "\"a\",\"b\",\"c\",\"d\",\"e\",\"f:n\",\"f:s\",\"h\",\"b\"",
			     "[4],[4,2,2],[1,9],[4,4],[9,4],[3,2],[1,9],[12],[7,2,2]",
			     "0,0,2,1,1,0,2,0,0")) == 0,
	    "%s", error.text);
	ck_assert_int_eq(whole(0), -7);
	ck_assert_int_eq(memcmp(field[1], matrix, sizeof(matrix)), 0);
	ck_assert_str_eq((const char *)field[2], "gr\xc3\xbcn");
	ck_assert_int_eq(memcmp(field[3], wide, sizeof(wide)), 0);
	ck_assert_int_eq(memcmp(field[4], raw, sizeof(raw)), 0);
	ck_assert_int_eq(memcmp(field[5], floats, sizeof(floats)), 0);
	ck_assert_str_eq((const char *)field[6], "in it");
	ck_assert_int_eq(memcmp(field[7], &real, sizeof(real)), 0);
	ck_assert_int_eq(memcmp(field[8], "\1\0\2\0\xff\xff\4\0", 8), 0);
	ck_assert_int_eq(whole(9), 5); /* lengths: text, array, bytes, text */
	ck_assert_int_eq(whole(10), 2);
	ck_assert_int_eq(whole(11), 3);
	ck_assert_int_eq(whole(12), 5);
}
END_TEST

START_TEST(a_picture_among_columns)
{
	begin_columns("", DYNAMIC, 11);
	ck_assert_msg(run_text("[{\"op\":\"decode\",\"columns\":[" SHARD
			       "],\"members\":[\"i\",\"c\"],"
			       "\"fields\":[[1,9]],\"kinds\":[2]}," CROP) == 0,
		      "%s", error.text);
	ck_assert_int_eq(memcmp(field[0], picture + 11, 6), 0);
	ck_assert_int_eq(whole(1), 5);
	ck_assert_int_eq(whole(3), 0);
}
END_TEST

static const struct {
	const char *array;
	uint32_t size;
	const char *member, *shape, *kind, *says;
} bad_columns[] = {
    {DYNAMIC, 11, "\"a\"", "[8]", "0", "a: of another type; it is [4]"},
    {DYNAMIC, 11, "\"a\"", "[4,1]", "0", "a: of another shape"},
    {DYNAMIC, 11, "\"b\"", "[7,4]", "0", "b: of another shape"},
    {DYNAMIC, 11, "\"b\"", "[7,2,2]", "0", NULL},
    {DYNAMIC, 11, "\"d\"", "[10,1]", "1", "d: of another shape"},
    {DYNAMIC, 11, "\"d\"", "[10,3]", "0", "d: of another shape"},
    {DYNAMIC, 10, "\"d\"", "[10,3]", "1", "d: it is no array"},
    {"\x20\4\0", 3, "\"d\"", "[10,3]", "1", "d: it is no array"},
    {"\x20", 1, "\"d\"", "[10,3]", "1", "d: it is no array"},
    {"\x07\4\1\1", 4, "\"d\"", "[10,3]", "1", "d: it is no array"},
    {"\x08\x18\1\1\1\1\1\1\1", 9, "\"d\"", "[1,3]", "1", "d: it is no array"}, /* 6 dimensions */
    {DYNAMIC, 11, "\"e\"", "[8,4]", "1", "e: 6 bytes, no numbers of 4"},
    {DYNAMIC, 11, "\"e\"", "[9,2]", "1", "e: 3 values, at most 2"},
    {DYNAMIC, 11, "\"e\"", "[9,4]", "0", "e: 3 values, not 4"},
    {DYNAMIC, 11, "\"e\"", "[9,4,2]", "1", "e: 3 values, no rows of 2"},
    {DYNAMIC, 11, "\"h:a\"", "[12]", "0", "h:a: a key (behind a colon) is of JSON"},
    {DYNAMIC, 11, "\"c\"", "[1,3]", "2", "4, at most 3"},
};

START_TEST(bad_columns_are_told)
{
	char text[400];
	int r;

	begin_columns("text", bad_columns[_i].array, bad_columns[_i].size);
	snprintf(text, sizeof(text), COLUMNS(SHARD, "%s", "%s", "%s"), bad_columns[_i].member,
		 bad_columns[_i].shape, bad_columns[_i].kind);
	r = run_text(text);
	ck_assert_int_eq(r, bad_columns[_i].says ? PIPELINE_E_BAD : 0);
	if (bad_columns[_i].says)
		ck_assert_msg(strstr(error.text, bad_columns[_i].says) != NULL,
			      "\"%s\" has no \"%s\"", error.text, bad_columns[_i].says);
}
END_TEST

START_TEST(columns_that_do_not_fill_a_sample)
{
	begin_columns("text", DYNAMIC, 11);
	for (size_t whole_size = used++; used > 0; used--) {
		const int r =
		    used == whole_size ? 0 : run_text(COLUMNS(SHARD, "\"a\"", "[4]", "0"));

		ck_assert_int_eq(r, used == whole_size ? 0 : PIPELINE_E_BAD);
	}
}
END_TEST

/* ---- features of tf.Example ---- */

/* A message's field of bytes, which are fewer than 128. */
static size_t put_bytes(uint8_t *to, unsigned number, const void *data, size_t size)
{
	ck_assert_uint_lt(size, 128);
	to[0] = (uint8_t)(number << 3 | 2);
	to[1] = (uint8_t)size;
	memcpy(to + 2, data, size);
	return size + 2;
}

/* A list of that number is the feature's. */
static void add_feature(const char *name, unsigned list, const void *data, size_t size)
{
	uint8_t feature[128], entry[256], features[256];
	size_t n = put_bytes(feature, list, data, size),
	       m = put_bytes(entry, 1, name, strlen(name));

	m += put_bytes(entry + m, 2, feature, n);
	n = put_bytes(features, 1, entry, m);
	used += put_bytes(tar + used, 1, features, n); /* messages of one number are merged */
}

static void add_bytes_feature(const char *name, const void *data, size_t size)
{
	uint8_t list[128];

	add_feature(name, 1, list, put_bytes(list, 1, data, size));
}

static void begin_example(void)
{
	used = 0;
	add_bytes_feature("image/encoded", picture, sizeof(picture) - 1);
	add_bytes_feature("text", "the first one is not it", 23);
	add_bytes_feature("text", "gr\xc3\xbcn", 5);
	add_bytes_feature("raw", "\1\0\2\0\3\0", 6);
	add_bytes_feature("about", "{\"n\": [3, 4]}", 13);
	add_feature("packed", 3, "\x0a\3\5\xac\2", 5); /* 5, 300 */
	add_feature("single", 3, "\x08\5\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 13);
	add_feature("floats", 2, "\x0a\x08\0\0\x80\x3f\0\0\0\x40", 10);
	add_feature("float", 2, "\x0d\0\0\x80\x3f", 5);
	add_feature("nothing", 1, "", 0);
	add_feature("none", 3, "", 0);
	add_feature("twice", 1, "\x0a\1a\x0a\1b", 6);
	used += put_bytes(tar + used, 7, "unknown", 7);
}

START_TEST(features_of_every_kind)
{
	const int64_t whole_ones[2] = {5, 300}, single[2] = {5, -1};
	const float floats[2] = {1, 2};

	begin_example();
	ck_assert_msg(run_text(RECORD(
			  "\"text\",\"raw\",\"about:n\",\"packed\",\"single\",\"floats\",\"float\","
			  "\"nothing\",\"none\",\"missing;packed\"",
			  "[1,9],[9,3],[4,5],[4,4],[4,2],[3,3,2],[3],[3,2],[8,2],[9,2]",
			  "2,0,1,1,0,1,0,1,1,0")) == 0,
		      "%s", error.text);
	ck_assert_str_eq((const char *)field[0], "gr\xc3\xbcn");
	ck_assert_int_eq(memcmp(field[1], "\1\0\2\0\3\0", 6), 0);
	ck_assert_int_eq(whole(2), 3);
	ck_assert_int_eq(memcmp(field[3], whole_ones, sizeof(whole_ones)), 0);
	ck_assert_int_eq(memcmp(field[4], single, sizeof(single)), 0);
	ck_assert_int_eq(memcmp(field[5], floats, sizeof(floats)), 0);
	ck_assert_int_eq(memcmp(field[6], floats, sizeof(floats[0])), 0);
	ck_assert_int_eq(memcmp(field[9], "\5\0\x2c\1", 4), 0);
	for (unsigned i = 0; i < 6; i++) /* text, about, packed, floats, nothing, none */
		ck_assert_int_eq(whole(10 + i), ((const int64_t[]){5, 2, 2, 1, 0, 0})[i]);
}
END_TEST

START_TEST(a_picture_among_features)
{
	begin_example();
	ck_assert_msg(run_text(DECODE("[\"image/encoded\",\"packed\"]", "[[4,3]]", "[1]") CROP) ==
			  0,
		      "%s", error.text);
	ck_assert_int_eq(memcmp(field[0], picture + 11, 6), 0);
	ck_assert_int_eq(whole(1), 5);
	ck_assert_int_eq(whole(2), 5);
}
END_TEST

static const struct {
	const char *text, *says;
} bad_features[] = {
    {RECORD("\"missing\"", "[4]", "0"), "no feature missing"},
    {RECORD("\"Text\"", "[1,9]", "2"), "no feature Text"},
    {RECORD("\"twice\"", "[1,9]", "2"), "twice: 2 values of bytes, not one"},
    {RECORD("\"nothing\"", "[3,2]", "0"), "nothing: 0 values of bytes, not one"},
    {RECORD("\"packed\"", "[4,3]", "0"), "packed: 2 values, not 3"},
    {RECORD("\"packed\"", "[4,1]", "1"), "packed: more values than 1"},
    {RECORD("\"packed\"", "[1,2]", "1"), "packed: more values than 2, or beyond the type"},
    {RECORD("\"packed\"", "[4,3,3]", "1"), "packed: 2 values, no rows of 3"},
    {RECORD("\"packed\"", "[3,2]", "1"), "packed: of another type; it is [4]"},
    {RECORD("\"packed\"", "[1,9]", "2"), "packed: of another type; it is [4]"},
    {RECORD("\"packed:a\"", "[4]", "0"), "packed:a: a key (behind a colon) is of JSON"},
    {RECORD("\"floats\"", "[4,2]", "0"), "floats: of another type; it is [3]"},
    {RECORD("\"floats\"", "[3,1]", "0"), "floats: more values than 1"},
    {"[{\"op\":\"decode\",\"members\":[\"packed\"]}," CROP, "packed: it is no picture's bytes"},
};

START_TEST(bad_features_are_told)
{
	begin_example();
	ck_assert_int_eq(run_text(bad_features[_i].text), PIPELINE_E_BAD);
	ck_assert_msg(strstr(error.text, bad_features[_i].says) != NULL, "\"%s\" has no \"%s\"",
		      error.text, bad_features[_i].says);
}
END_TEST

/* Cut off anywhere but between two messages. */
START_TEST(an_example_that_is_cut)
{
	begin_example();
	while (--used > 0)
		if (run_text(RECORD("\"raw\"", "[9,3]", "0")) == 0)
			ck_assert_int_eq(memcmp(field[0], "\1\0\2\0\3\0", 6), 0);
}
END_TEST

/* Zeros are behind those that had heads of blocks in them; anything else is damage. */
START_TEST(an_example_before_zeros)
{
	const char *text = RECORD("\"raw\"", "[9,3]", "0");

	begin_example();
	memset(tar + used, 0, 24);
	used += 24;
	ck_assert_int_eq(run_text(text), 0);
	ck_assert_int_eq(memcmp(field[0], "\1\0\2\0\3\0", 6), 0);
	tar[used - 1] = 1;
	ck_assert_int_eq(run_text(text), PIPELINE_E_BAD);
}
END_TEST

/* ---- frames of Zstandard, as records of a .bagz that bagz 0.3.8 wrote ---- */

static const uint8_t picture_frame[] =
    "\x28\xb5\x2f\xfd\x20\x11\x89\0\0P6\n2 1\n255\n\xff\0\0\x80\x80\x80";
/* A tf.Example: n is 7, text is nine times "again ". */
static const uint8_t example_frame[] = "\x28\xb5\x2f\xfd\x20\x52\x55\x01\0\x24\x02\n\x50\n\n\n\1n"
				       "\x12\5\x1a\3\n\1\7\nB\n\4text\x12:\n8\n6again "
				       "\x01\0\x2a\x51\x79\x02";
#define PICTURE_FRAME (sizeof(picture_frame) - 1)
#define EXAMPLE_FRAME (sizeof(example_frame) - 1)
#define ONLY_CROP "[{\"op\":\"decode\"}," CROP

/* In memory that ends where they do. */
static int run_frame(const char *text, const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size);
	int r;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, data, size);
	r = run_of(text, copy, size);
	free(copy);
	return r;
}

START_TEST(what_is_in_a_frame)
{
	uint8_t plain[6];

	ck_assert_int_eq(run_of(ONLY_CROP, (const uint8_t *)picture, sizeof(picture) - 1), 0);
	memcpy(plain, field[0], sizeof(plain));
	ck_assert_int_eq(run_frame(ONLY_CROP, picture_frame, PICTURE_FRAME), 0);
	ck_assert_mem_eq(field[0], plain, sizeof(plain));
	ck_assert_int_eq(
	    run_frame(RECORD("\"n\",\"text\"", "[4],[1,60]", "0,2"), example_frame, EXAMPLE_FRAME),
	    0);
	ck_assert_uint_eq(field[0][0], 7);
	ck_assert_int_eq(run_frame(ONLY_CROP, example_frame, EXAMPLE_FRAME), PIPELINE_E_BAD);
	ck_assert_ptr_nonnull(strstr(error.text, "decode needs members"));
}
END_TEST

/* As it is where it was made piece by piece; of more blocks than memory is there for at first; and zeros behind it. */
START_TEST(a_frame_that_does_not_say_how_much_is_in_it)
{
	enum { BLOCKS = 37, MOST = 100000 };
	uint8_t *frame = malloc(BLOCKS * (MOST + 3) + 64), plain[6], *at = frame;

	ck_assert_int_eq(run_of(ONLY_CROP, (const uint8_t *)picture, sizeof(picture) - 1), 0);
	memcpy(plain, field[0], sizeof(plain));
	memcpy(at, "\x28\xb5\x2f\xfd\0\x58\x88\0\0P6\n2 1\n255\n\xff\0\0\x80\x80\x80", 26);
	at += 26;
	for (unsigned i = 1; i < BLOCKS; i++) {
		const uint32_t head = MOST << 3 | (i + 1 == BLOCKS);

		*at++ = (uint8_t)head;
		*at++ = (uint8_t)(head >> 8);
		*at++ = (uint8_t)(head >> 16);
		memset(at, (int)i, MOST);
		at += MOST;
	}
	memset(at, 0, 24);
	for (unsigned zeros = 0; zeros <= 24; zeros += 24) {
		ck_assert_msg(run_frame(ONLY_CROP, frame, (size_t)(at - frame) + zeros) == 0, "%s",
			      error.text);
		ck_assert_mem_eq(field[0], plain, sizeof(plain));
	}
	ck_assert_int_eq(run_frame(ONLY_CROP, frame, (size_t)(at - frame) - 1), PIPELINE_E_BAD);
	ck_assert_ptr_nonnull(strstr(error.text, "cut off"));
	free(frame);
}
END_TEST

START_TEST(a_frame_that_is_cut)
{
	for (size_t size = 4; size < EXAMPLE_FRAME; size++) {
		ck_assert_int_eq(run_frame(RECORD("\"n\"", "[4]", "0"), example_frame, size),
				 PIPELINE_E_BAD);
		ck_assert_msg(strncmp(error.text, "zstd: ", 6) == 0, "%s", error.text);
	}
}
END_TEST

static const struct {
	uint8_t head[14]; /* descriptor, sizes, and a last block of one byte as it is */
	unsigned size;
	const char *says;
} lies[] = {
    {{0x00, 0x58, 0x11, 0, 0, 'x'}, 6, "zstd: "},
    {{0x00, 0x58, 0x08, 0, 0, 'x'}, 6, "it is cut off"},
    {{0x00, 0x58, 0x01, 0, 0}, 5, "nothing is in it"},
    {{0x00, 0x58, 0x09, 0, 0, 'x', 0, 1}, 8, "there is more behind the frame"},
    {{0x20, 0x01, 0x09, 0, 0, 'x', 0, 1}, 8, "there is more behind the frame"},
    {{0x00, 0xf8, 0x09, 0, 0, 'x'}, 6, "zstd: "}, /* wants a window of 2 TiB */
    {{0x20, 0x00, 0x01, 0, 0}, 5, "nothing is in it"},
    {{0xe0, 1, 0, 0, 0x40, 0, 0, 0, 0, 0x09, 0, 0, 'x'}, 13, "more than 1 GiB"},
    {{0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x09, 0, 0, 'x'},
     13,
     "more than 1 GiB"},
    {{0xa0, 0xff, 0xff, 0xff, 0, 0x09, 0, 0, 'x'}, 9, "zstd: "}, /* 16 MiB, they say */
    {{0x20, 0x02, 0x09, 0, 0, 'x'}, 6, "zstd: "},
};

START_TEST(a_frame_that_lies)
{
	uint8_t frame[18] = "\x28\xb5\x2f\xfd";

	memcpy(frame + 4, lies[_i].head, lies[_i].size);
	ck_assert_int_eq(run_frame(ONLY_CROP, frame, 4 + lies[_i].size), PIPELINE_E_BAD);
	ck_assert_msg(strstr(error.text, lies[_i].says) != NULL, "%s", error.text);
}
END_TEST

#ifndef __SANITIZE_ADDRESS__ /* whose own memory counts */
/* Of a frame that is whole it is not said that it is damaged. */
START_TEST(a_frame_without_memory_for_its_window)
{
	static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x80, /* of 64 MiB */
					0x09, 0x00, 0x00, 'x'};
	struct rlimit was, limit;
	unsigned long pages;
	FILE *file = fopen("/proc/self/statm", "re");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages), 1);
	fclose(file);
	ck_assert_int_eq(getrlimit(RLIMIT_DATA, &was), 0);
	limit = (struct rlimit){pages * (rlim_t)sysconf(_SC_PAGESIZE) + (32 << 20), was.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_DATA, &limit), 0);
	ck_assert_int_eq(run_frame(ONLY_CROP, frame, sizeof(frame)), PIPELINE_E_BAD);
	ck_assert_int_eq(setrlimit(RLIMIT_DATA, &was), 0);
	ck_assert_str_eq(error.text, "no memory for the window of a zstd frame");
	ck_assert_int_eq(error.stage, PIPELINE_FAIL_MEMORY);
}
END_TEST
#endif
/* ---- files of a zip, from their headers on, as Python's zipfile wrote them ---- */

/* What is in picture_frame, too. */
static const uint8_t picture_file[] =
    "PK\3\4\x14\0\0\0\x08\0\0\0!\0\xce\xcb\xac`\x13\0\0\0\x11\0\0\0\5\0\0\0"
    "a.ppm\x0b"
    "0\xe3"
    "2R0\xe4"
    "225\xe5\xfa\xcf\xc0\xd0\xd0\xd0\0\0";
#define PICTURE_FILE (sizeof(picture_file) - 1)
#define FILE_HEAD 35

START_TEST(what_is_in_a_file)
{
	uint8_t plain[6], file[PICTURE_FILE];

	ck_assert_int_eq(run_of(ONLY_CROP, (const uint8_t *)picture, sizeof(picture) - 1), 0);
	memcpy(plain, field[0], sizeof(plain));
	memcpy(file, picture_file, sizeof(file));
	for (unsigned is_piped = 0; is_piped < 2; is_piped++) {
		memset(field[0], 0, sizeof(plain));
		ck_assert_msg(run_frame(ONLY_CROP, file, sizeof(file)) == 0, "%s", error.text);
		ck_assert_mem_eq(field[0], plain, sizeof(plain));
		file[6] = 8; /* sizes and checksum come later */
		memset(file + 14, 0, 12);
	}
}
END_TEST

START_TEST(a_file_that_is_cut)
{
	for (size_t size = 30; size < PICTURE_FILE; size++) {
		ck_assert_int_eq(run_frame(ONLY_CROP, picture_file, size), PIPELINE_E_BAD);
		ck_assert_msg(strncmp(error.text, "zip: ", 5) == 0, "%s", error.text);
	}
}
END_TEST

static const struct {
	unsigned at;
	uint8_t value;
	const char *says;
} file_lies[] = {
    {8, 0, "it is not deflated"},
    {8, 12, "it is not deflated"},
    {14, 0, "its CRC-32 is wrong"},
    {22, 0x10, "another size"},
    {22, 0x12, "another size"},
    {22, 0, "another size"},
    {25, 0x7f, "more than 1 GiB"},
    {26, 99, "its header is damaged"},
    {29, 1, "its header is damaged"},
    {26, 24, "nothing is in it"},
    {26, 4, "zip: "},
    {FILE_HEAD, 7, "damaged"},
};

START_TEST(a_file_that_lies)
{
	uint8_t file[PICTURE_FILE];

	memcpy(file, picture_file, sizeof(file));
	file[file_lies[_i].at] = file_lies[_i].value;
	ck_assert_int_eq(run_frame(ONLY_CROP, file, sizeof(file)), PIPELINE_E_BAD);
	ck_assert_msg(strstr(error.text, file_lies[_i].says) != NULL, "%s", error.text);
}
END_TEST

START_TEST(more_behind_a_file)
{
	uint8_t file[PICTURE_FILE + 1] = {0};

	memcpy(file, picture_file, PICTURE_FILE);
	ck_assert_int_eq(run_frame(ONLY_CROP, file, sizeof(file)), PIPELINE_E_BAD);
	ck_assert_ptr_nonnull(strstr(error.text, "there is more behind it"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("picked");
	TCase *tcase = tcase_create("picked");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, wrong_texts_are_told, 0, (int)BASE_ARRAY_LEN(wrong));
	tcase_add_test(tcase, the_canonical_text_is_read_again);
	tcase_add_test(tcase, a_picture_and_what_is_beside_it);
	tcase_add_test(tcase, a_picture_alone);
	tcase_add_test(tcase, fields_without_a_picture);
	tcase_add_test(tcase, two_files_of_json);
	tcase_add_test(tcase, lists_of_nothing);
	tcase_add_loop_test(tcase, bad_samples_are_told, 0, (int)BASE_ARRAY_LEN(bad));
	tcase_add_test(tcase, what_is_no_sample_of_these);
	tcase_add_test(tcase, columns_of_every_kind);
	tcase_add_test(tcase, a_picture_among_columns);
	tcase_add_loop_test(tcase, bad_columns_are_told, 0, (int)BASE_ARRAY_LEN(bad_columns));
	tcase_add_test(tcase, columns_that_do_not_fill_a_sample);
	tcase_add_test(tcase, features_of_every_kind);
	tcase_add_test(tcase, a_picture_among_features);
	tcase_add_loop_test(tcase, bad_features_are_told, 0, (int)BASE_ARRAY_LEN(bad_features));
	tcase_add_test(tcase, an_example_that_is_cut);
	tcase_add_test(tcase, an_example_before_zeros);
	tcase_add_test(tcase, what_is_in_a_frame);
	tcase_add_test(tcase, a_frame_that_does_not_say_how_much_is_in_it);
	tcase_add_test(tcase, a_frame_that_is_cut);
	tcase_add_loop_test(tcase, a_frame_that_lies, 0, sizeof(lies) / sizeof(lies[0]));
#ifndef __SANITIZE_ADDRESS__
	tcase_add_test(tcase, a_frame_without_memory_for_its_window);
#endif
	tcase_add_test(tcase, what_is_in_a_file);
	tcase_add_test(tcase, a_file_that_is_cut);
	tcase_add_loop_test(tcase, a_file_that_lies, 0, sizeof(file_lies) / sizeof(file_lies[0]));
	tcase_add_test(tcase, more_behind_a_file);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pictures of every format, through a real accessd and its sandboxed workers: what a job gets are
 * Pillow's pixels (tests/pipeline/golden_*.tsv, the first spec of each, which draws nothing),
 * pictures that Pillow cannot read are left out, and no worker dies of any.
 */

#include "tests/scenarios/trainee.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"

#define FORMATS_MOST 256

struct formats { /* sample i of the dataset */
	unsigned n, good;
	char digits[FORMATS_MOST][17]; /* Pillow's; empty: it cannot be read */
	unsigned seen[FORMATS_MOST];
	char spec[512];
};

static const struct {
	const char *folder, *golden;
	unsigned good; /* at least */
} formats_cases[] = {
    {"formats", "golden_formats.tsv", 40},
    {"exif", "golden_exif.tsv", 30},
    {"modern", "golden_modern.tsv", 20},
};

static FILE *formats_open(const char *folder, const char *name)
{
	const char *top = getenv("top_srcdir");
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/pipeline/%s/%s", top ? top : ".", folder, name);
	file = fopen(path, "rb");
	ck_assert_msg(file != NULL, "cannot open %s", path);
	return file;
}

static bool formats_is_built(const char *name)
{
	const char *dot = strrchr(name, '.');

	return !dot || !((strcmp(dot, ".png") == 0 && !HAS_PNG) ||
			 (strcmp(dot, ".tif") == 0 && !HAS_TIFF) ||
			 (strcmp(dot, ".webp") == 0 && !HAS_WEBP) ||
			 (strcmp(dot, ".gif") == 0 && !HAS_GIF) ||
			 ((strcmp(dot, ".jp2") == 0 || strcmp(dot, ".j2k") == 0 ||
			   strcmp(dot, ".jpx") == 0) &&
			  !HAS_JP2) ||
			 (strcmp(dot, ".jxl") == 0 && !HAS_JXL) ||
			 ((strcmp(dot, ".heic") == 0 || strcmp(dot, ".heif") == 0) && !HAS_HEIF) ||
			 (strcmp(dot, ".avif") == 0 && !HAS_AVIF));
}

/* The file as the dataset's sample of that number: its name says nothing of its format. */
static void formats_copy(const char *folder, const char *name, const char *to, unsigned number)
{
	static uint8_t data[65536];
	FILE *in = formats_open(folder, name);
	size_t size = fread(data, 1, sizeof(data), in);
	FILE *out = fopen(rig_path("%s/%03u.jpg", to, number), "wb");

	ck_assert_uint_lt(size, sizeof(data));
	ck_assert_ptr_nonnull(out);
	ck_assert_uint_eq(fwrite(data, 1, size, out), size);
	ck_assert_int_eq(fclose(out), 0);
	fclose(in);
}

/* "name<TAB>digits", or the stage of an error, of one digit. */
static void formats_add(struct formats *formats, const char *folder, char *line)
{
	char *digits = strchr(line, '\t');

	ck_assert_ptr_nonnull(digits);
	*digits++ = '\0';
	digits[strcspn(digits, "\n")] = '\0';
	ck_assert_uint_lt(formats->n, FORMATS_MOST);
	formats_copy(folder, line, folder, formats->n);
	if (strlen(digits) == 16 && formats_is_built(line)) {
		memcpy(formats->digits[formats->n], digits, 17);
		formats->good++;
	}
	formats->n++;
}

static void formats_read(struct formats *formats, const char *folder, const char *golden)
{
	FILE *file = formats_open(".", golden);
	char line[4096];

	ck_assert_int_eq(mkdir(rig_path("%s", folder), 0700), 0);
	while (fgets(line, sizeof(line), file)) {
		if (line[0] == '#')
			continue;
		if (strncmp(line, "spec\t", 5) != 0) {
			formats_add(formats, folder, line);
			continue;
		}
		if (formats->spec[0])
			break;
		snprintf(formats->spec, sizeof(formats->spec), "%s", strchr(line, '['));
	}
	fclose(file);
}

static void formats_see(struct formats *formats, const struct oa_batch *batch)
{
	const struct oa_batch_info info = trainee_info(batch);
	struct oa_field image;
	struct hash_id id;
	char digits[65];

	trainee_field(batch, "image", &image);
	for (uint32_t i = 0; i < info.count; i++) {
		ck_assert_uint_lt((uint64_t)info.ids[i], formats->n);
		hash_of((const uint8_t *)image.data + i * (size_t)image.strides[0],
			(size_t)image.strides[0], &id);
		hash_hex(&id, digits);
		digits[16] = '\0';
		ck_assert_msg(strcmp(digits, formats->digits[info.ids[i]]) == 0,
			      "sample %d: %s, Pillow has \"%s\"", (int)info.ids[i], digits,
			      formats->digits[info.ids[i]]);
		formats->seen[info.ids[i]]++;
	}
}

START_TEST(each_format_is_decoded_by_workers)
{
	static struct formats formats;
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;

	memset(&formats, 0, sizeof(formats));
	formats_read(&formats, formats_cases[_i].folder, formats_cases[_i].golden);
	ck_assert_uint_ge(formats.good, HAS_PNG && HAS_TIFF && HAS_WEBP && HAS_GIF && HAS_AVIF
					    ? formats_cases[_i].good
					    : 1);
	options = trainee_options(rig_path("%s", formats_cases[_i].folder), 7, 1);
	options.pipeline = formats.spec;
	options.bad = OA_BAD_SKIP;
	options.bad_budget = FORMATS_MOST;
	rig_start("workers=2", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	for (struct oa_batch *batch; (batch = trainee_next(stream)); oa_release(batch))
		formats_see(&formats, batch);
	for (unsigned i = 0; i < formats.n; i++)
		ck_assert_uint_eq(formats.seen[i], formats.digits[i][0] != '\0');
	ck_assert_double_eq(rig_status("node.worker_restarts"), 0);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, each_format_is_decoded_by_workers, 0,
			    BASE_ARRAY_LEN(formats_cases));
}

int main(void)
{
	return rig_main("formats", add);
}

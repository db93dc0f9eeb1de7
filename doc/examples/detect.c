/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Detection with masks and captions out of WebDataset's tar shards: detect SHARDS, as /data/street-{000..099}.tar
 *
 * A sample is 0001.jpg (or .png), 0001.mask.png, 0001.json with {"boxes": [[left, top, right, bottom], ...],
 * "classes": [...]}, 0001.txt and 0001.cls. Boxes and masks follow the crop and the flip.
 *
 *   cc detect.c $(pkg-config --cflags --libs libaccess)
 */

#include <err.h>
#include <inttypes.h>
#include <libaccess.h>
#include <stdio.h>
#include <string.h>

/* Types are those of oneaccess-pipeline(5): 1 uint8, 3 float32, 4 int64; kinds: 5 a mask, 3 boxes, 4 a row for each box, 2 text. */
static const char pipeline[] =
    "[{\"op\": \"decode\","
    "  \"members\": [\"jpg;png\", \"mask.png\", \"json:boxes\", \"json:classes\", \"txt\"],"
    "  \"fields\": [[1, 255], [3, 50, 4], [4, 50], [1, 200]],"
    "  \"kinds\": [5, 3, 4, 2],"
    "  \"names\": [\"mask\", \"boxes\", \"classes\", \"caption\"]},"
    " {\"op\": \"random_resized_crop\", \"size\": 96}, {\"op\": \"hflip\"}]";

static struct oa_field field_of(const struct oa_batch *batch, const char *name)
{
	struct oa_field field = {.size = sizeof(field)};

	for (uint32_t i = 0; oa_batch_field(batch, i, &field) == 0; i++)
		if (strcmp(field.name, name) == 0)
			return field;
	errx(1, "a batch without %s", name);
}

/* Where the field has sample i; *ret: how long it is there. */
static const void *at(const struct oa_field *field, uint32_t i, uint64_t *ret)
{
	*ret = oa_field_length(field, i);
	return (const char *)field->data + field->strides[0] * i;
}

static void show(const struct oa_batch *batch, uint32_t i, int64_t id)
{
	const struct oa_field label = field_of(batch, "label"), mask = field_of(batch, "mask");
	const struct oa_field boxes = field_of(batch, "boxes"),
			      classes = field_of(batch, "classes");
	const struct oa_field caption = field_of(batch, "caption");
	uint64_t length, n, pixels = 0;
	const uint8_t *of_mask = at(&mask, i, &length);
	const char *text = at(&caption, i, &length);
	const float(*box)[4] = at(&boxes, i, &n);
	const int64_t *class = at(&classes, i, &n);

	for (uint64_t k = 0; k < mask.shape[1] * mask.shape[2]; k++)
		pixels += of_mask[k] != 255;
	printf("%" PRId64 ": label %" PRId64 ", \"%.*s\", %" PRIu64 " pixels of mask\n", id,
	       ((const int64_t *)label.data)[i], (int)length, text, pixels);
	for (uint64_t b = 0; b < n; b++)
		printf("  class %" PRId64 ": %.1f %.1f %.1f %.1f\n", class[b], (double)box[b][0],
		       (double)box[b][1], (double)box[b][2], (double)box[b][3]);
}

int main(int argc, char **argv)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = {
	    .size = sizeof(options), .pipeline = pipeline, .batch = 8, .epochs = 1};
	char shards[4096];
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;
	int r;

	if (argc != 2)
		errx(2, "usage: detect SHARDS");
	snprintf(shards, sizeof(shards), "%s?members=all", argv[1]);
	options.dataset = shards;
	if (oa_connect(NULL, &client, &error) || oa_open(client, &options, &stream, &error))
		errx(1, "%s", error.text);
	while ((r = oa_next(stream, 60000, &batch)) == 0) {
		struct oa_batch_info info = {.size = sizeof(info)};

		oa_batch_info(batch, &info);
		for (uint32_t i = 0; i < info.count; i++)
			show(batch, i, info.ids[i]);
		oa_release(batch);
	}
	if (r != OA_E_END)
		errx(1, "%s: %s", oa_error_name(r), oa_error_text(stream));
	oa_close(stream);
	oa_disconnect(client);
	return 0;
}

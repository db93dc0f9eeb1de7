/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Captions, tokens and boxes out of MDS shards or TFRecord files: columns SHARDS, as /data/mds or /data/train-{000..099}.tfrecord
 *
 * A sample has the columns (of MDS: these, in this order) or features photo, a JPEG; text; tokens, up to 16 numbers; and
 * about, JSON with {"boxes": [[left, top, right, bottom], ...]}. Boxes follow the crop.
 *
 *   cc columns.c $(pkg-config --cflags --libs libaccess)
 */

#include <err.h>
#include <inttypes.h>
#include <libaccess.h>
#include <stdio.h>
#include <string.h>

/* What index.json of MDS says, in its order, as the option ?columns= has it. Samples of tf.Example say it themselves. */
#define COLUMNS "about:json;photo:jpeg;text:str;tokens:ndarray:uint32"

/* Types are those of oneaccess-pipeline(5): 1 uint8, 3 float32, 4 int64; kinds: 2 text, 1 ragged, 3 boxes. */
#define FIELDS                                                             \
	"\"members\": [\"photo\", \"text\", \"tokens\", \"about:boxes\"]," \
	"\"fields\": [[1, 200], [4, 16], [3, 50, 4]],"                     \
	"\"kinds\": [2, 1, 3],"                                            \
	"\"names\": [\"text\", \"tokens\", \"boxes\"]"
#define OPS ", {\"op\": \"resize\", \"size\": 96}, {\"op\": \"center_crop\", \"size\": 96}]"

static const char of_mds[] =
    "[{\"op\": \"decode\", " FIELDS ", \"columns\": [\"about:json\", \"photo:jpeg\", "
    "\"text:str\", \"tokens:ndarray:uint32\"]}" OPS;
static const char of_examples[] = "[{\"op\": \"decode\", " FIELDS "}" OPS;

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
	const struct oa_field text = field_of(batch, "text"), tokens = field_of(batch, "tokens");
	const struct oa_field boxes = field_of(batch, "boxes");
	uint64_t length, n;
	const char *of_text = at(&text, i, &length);
	const int64_t *token = at(&tokens, i, &n);
	const float(*box)[4];

	printf("%" PRId64 ": \"%.*s\", tokens", id, (int)length, of_text);
	for (uint64_t k = 0; k < n; k++)
		printf(" %" PRId64, token[k]);
	box = at(&boxes, i, &n);
	for (uint64_t b = 0; b < n; b++)
		printf(", box %.1f %.1f %.1f %.1f", (double)box[b][0], (double)box[b][1],
		       (double)box[b][2], (double)box[b][3]);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = {.size = sizeof(options), .batch = 8, .epochs = 1};
	const int is_examples = argc == 2 && strstr(argv[1], "tfrecord") != NULL;
	char shards[4096];
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;
	int r;

	if (argc != 2)
		errx(2, "usage: columns SHARDS");
	snprintf(shards, sizeof(shards), "%s?%s", argv[1],
		 is_examples ? "members=all" : "columns=" COLUMNS);
	options.dataset = shards;
	options.pipeline = is_examples ? of_examples : of_mds;
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

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A training loop with a checkpoint: train_loop FOLDER [TOKEN-FILE]
 *
 *   cc train_loop.c $(pkg-config --cflags --libs libaccess)
 */

#include <err.h>
#include <inttypes.h>
#include <libaccess.h>
#include <stdio.h>
#include <stdlib.h>

/* The whole file in memory, or NULL if there is none. */
static void *load(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "rb");
	char *data = malloc(1 << 20);

	*ret_size = 0;
	if (file && data)
		*ret_size = fread(data, 1, 1 << 20, file);
	if (file)
		fclose(file);
	if (*ret_size > 0)
		return data;
	free(data);
	return NULL;
}

static void save(struct oa_stream *stream, const char *path)
{
	size_t size = 0;
	void *token;
	FILE *file;

	oa_state(stream, NULL, &size);
	token = malloc(size);
	if (!token || oa_state(stream, token, &size))
		errx(1, "%s", oa_error_text(stream));
	file = fopen(path, "wb");
	if (!file || fwrite(token, 1, size, file) != size || fclose(file))
		err(1, "%s", path);
	free(token);
}

static void train(const struct oa_batch *batch)
{
	struct oa_batch_info info = {.size = sizeof(info)};
	struct oa_field image = {.size = sizeof(image)};

	oa_batch_info(batch, &info);
	if (oa_batch_field(batch, 0, &image))
		errx(1, "a batch without fields");
	/* image.data: (count, 3, 224, 224) floats; copy them to the device, take a step ... */
	printf("epoch %" PRIu64 " step %" PRIu64 ": %u samples, first id %" PRId64
	       ", %s of %" PRIu64 " bytes\n",
	       info.epoch, info.step, info.count, info.ids[0], image.name, image.bytes);
}

int main(int argc, char **argv)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = {
	    .size = sizeof(options), .pipeline = "imagenet-train", .batch = 32, .epochs = 2};
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;
	void *token = NULL;
	int r;

	if (argc < 2)
		errx(2, "usage: train_loop FOLDER [TOKEN-FILE]");
	options.dataset = argv[1];
	if (argc > 2)
		token = load(argv[2], &options.token_size);
	options.token = token;
	if (oa_connect(NULL, &client, &error) || oa_open(client, &options, &stream, &error))
		errx(1, "%s", error.text);
	free(token);
	while ((r = oa_next(stream, 60000, &batch)) == 0) {
		train(batch);
		oa_release(batch);
		if (argc > 2)
			save(stream, argv[2]);
	}
	if (r != OA_E_END)
		errx(1, "%s: %s", oa_error_name(r), oa_error_text(stream));
	oa_close(stream);
	oa_disconnect(client);
	return 0;
}

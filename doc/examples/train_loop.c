/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A training loop with a checkpoint: train_loop FOLDER [TOKEN-FILE [STEPS]]
 *
 * It ends after two epochs or, as a job whose time is up, after STEPS batches; the next one goes on.
 *
 *   cc train_loop.c $(pkg-config --cflags --libs libaccess)
 */

#define _GNU_SOURCE
#include <err.h>
#include <inttypes.h>
#include <libaccess.h>
#include <limits.h>
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

/* A job that is killed here leaves the whole old file or the whole new one. */
static void save(struct oa_stream *stream, const char *path)
{
	size_t size = 0;
	void *token;
	char *fresh;
	FILE *file;

	oa_state(stream, NULL, &size);
	token = malloc(size);
	if (!token || oa_state(stream, token, &size))
		errx(1, "%s", oa_error_text(stream));
	if (asprintf(&fresh, "%s.new", path) < 0)
		err(1, NULL);
	file = fopen(fresh, "wb");
	if (!file || fwrite(token, 1, size, file) != size || fclose(file) || rename(fresh, path))
		err(1, "%s", path);
	free(fresh);
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
	unsigned long steps = argc > 3 ? strtoul(argv[3], NULL, 10) : ULONG_MAX;
	void *token = NULL;
	int r = OA_E_END;

	if (argc < 2)
		errx(2, "usage: train_loop FOLDER [TOKEN-FILE [STEPS]]");
	options.dataset = argv[1];
	if (argc > 2)
		token = load(argv[2], &options.token_size);
	options.token = token;
	if (oa_connect(NULL, &client, &error) || oa_open(client, &options, &stream, &error))
		errx(1, "%s", error.text);
	free(token);
	while (steps-- > 0 && (r = oa_next(stream, 60000, &batch)) == 0) {
		train(batch);
		oa_release(batch);
		if (argc > 2)
			save(stream, argv[2]);
	}
	if (r != 0 && r != OA_E_END)
		errx(1, "%s: %s", oa_error_name(r), oa_error_text(stream));
	oa_close(stream);
	oa_disconnect(client);
	return 0;
}

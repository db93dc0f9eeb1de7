/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What access-ctl convert unpacks: ArrayRecord files. An input is chunks, as 'a' of scan_fuzz has them, which come in good frames, or, behind an
 * 'f', the file as it is; behind a 'z', a zip archive, and behind an 'l' options, with a zero byte behind, and one. What comes out is a file of which the scan says no more than what may be wrong with a record.
 */

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/little.h"
#include "convert/convert.h"
#include "storage/source/scan/scan_shard.h"
#include "storage/source/scan/scan_zip.h"
#include "tests/storage/scan_run.h"

#define MOST_OUT (8u << 20)
#define MOST_OPTIONS 1024u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct shard_bytes from, to;

static bool fuzz_read(struct unpack_pipe *pipe)
{
	const size_t at = (size_t)BASE_MIN(pipe->at, (uint64_t)from.size);

	pipe->in_bytes = BASE_MIN(sizeof(pipe->in), from.size - at);
	memcpy(pipe->in, from.data + at, pipe->in_bytes);
	pipe->at += pipe->in_bytes;
	return true;
}

static bool fuzz_write(struct unpack_pipe *pipe, size_t bytes)
{
	if (bytes > to.room - to.size)
		return false;
	shard_put(&to, pipe->out, bytes);
	return true;
}

static void put_chunks(const uint8_t *data, size_t size)
{
	struct shard_bytes stream;

	shard_chunks_of(&stream, data, size);
	shard_bytes_init(&from, 2 * stream.size + (6 << 16));
	shard_put_array_file(&from, &stream);
	shard_bytes_fini(&stream);
}

static void check_scan(void)
{
	static const char *const may[] = {"it is empty", "it is neither", "record "};
	static struct scan_run run;
	bool is_known = false;

	if (scan_run(&scan_arrayrecord, to.data, to.size, "", &run) == SCAN_E_END)
		return;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(may); i++)
		is_known = is_known || strstr(run.why, may[i]);
	if (!is_known || strstr(run.why, "checksum") || strstr(run.why, "chunk"))
		abort();
}

/* All is stored, and nothing is wrong with it. */
static void check_zip(void)
{
	static struct scan_run run;

	if (scan_run(&scan_zip, to.data, to.size, "", &run) != SCAN_E_END)
		abort();
}

/* Returns the bytes of both. */
static size_t take_options(const uint8_t *data, size_t size, char ret[MOST_OPTIONS])
{
	const size_t bytes = strnlen((const char *)data, BASE_MIN(size, MOST_OPTIONS - 1));

	memcpy(ret, data, bytes);
	ret[bytes] = '\0';
	return BASE_MIN(bytes + 1, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct unpack_pipe pipe = {.read = fuzz_read, .write = fuzz_write, .name = "s"};
	char options[MOST_OPTIONS] = "";

	if (size < 1 || size > 1 << 18)
		return 0;
	pipe.options = options;
	*pipe.file = '\0';
	if (data[0] == 'l') {
		const size_t head = 1 + take_options(data + 1, size - 1, options);

		shard_bytes_init(&from, size);
		shard_put(&from, data + head, size - head);
	} else if (data[0] == 'f' || data[0] == 'z') {
		shard_bytes_init(&from, size);
		shard_put(&from, data + 1, size - 1);
	} else {
		put_chunks(data + 1, size - 1);
	}
	shard_bytes_init(&to, MOST_OUT);
	pipe.at = pipe.in_bytes = 0;
	pipe.bytes = from.size;
	if (data[0] == 'z' || data[0] == 'l') {
		if (unpack_zip(&pipe) == 0)
			check_zip();
	} else if (unpack_arrayrecord(&pipe) == 0)
		check_scan();
	shard_bytes_fini(&to);
	shard_bytes_fini(&from);
	return 0;
}

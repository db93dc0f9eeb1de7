/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib, for PNG. It allocates some 40 KB a stream and nothing by what the stream says.
 *
 * The only file that includes zlib.h.
 */

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>
#include "pipeline/decode_inflate.h"
#include "pipeline/pipeline.h"

struct decode_inflate {
	z_stream stream;
};

int decode_inflate_new(struct decode_inflate **ret)
{
	struct decode_inflate *handle = calloc(1, sizeof(*handle));

	if (!handle || inflateInit(&handle->stream) != Z_OK) {
		free(handle);
		return PIPELINE_FAIL_MEMORY;
	}
	*ret = handle;
	return 0;
}

void decode_inflate_free(struct decode_inflate *handle)
{
	if (!handle)
		return;
	inflateEnd(&handle->stream);
	free(handle);
}

void decode_inflate_give(struct decode_inflate *handle, const uint8_t *data, size_t size)
{
	handle->stream.next_in = (Bytef *)data; /* zlib does not write there */
	handle->stream.avail_in = (uInt)BASE_MIN(size, UINT_MAX);
}

bool decode_inflate_is_empty(const struct decode_inflate *handle)
{
	return handle->stream.avail_in == 0;
}

int decode_inflate_take(struct decode_inflate *handle, uint8_t *to, size_t room, size_t *ret_count,
			bool *ret_is_end)
{
	z_stream *stream = &handle->stream;
	int r;

	stream->next_out = to;
	stream->avail_out = (uInt)BASE_MIN(room, UINT_MAX);
	r = inflate(stream, Z_NO_FLUSH);
	*ret_count = (size_t)(stream->next_out - to);
	*ret_is_end = r == Z_STREAM_END;
	if (r < 0)
		return r == Z_MEM_ERROR ? PIPELINE_FAIL_MEMORY : PIPELINE_FAIL_DECODE;
	return r == Z_NEED_DICT ? PIPELINE_FAIL_DECODE : 0;
}

int64_t decode_inflate_length(const uint8_t *data, size_t size, size_t most)
{
	struct decode_inflate *handle;
	uint8_t scratch[16384];
	bool is_end = false;
	size_t count, total = 0;
	int r;

	if (decode_inflate_new(&handle) != 0)
		return -1;
	decode_inflate_give(handle, data, size);
	do {
		r = decode_inflate_take(handle, scratch, BASE_MIN(sizeof(scratch), most - total),
					&count, &is_end);
		total += count;
	} while (r == 0 && !is_end && total < most && !decode_inflate_is_empty(handle));
	is_end |= decode_inflate_is_empty(handle);
	decode_inflate_free(handle);
	if (r != 0)
		return 0;
	return is_end ? (int64_t)total : -1;
}

uint32_t decode_inflate_crc(const uint8_t *data, size_t size)
{
	return (uint32_t)crc32_z(0, data, size);
}

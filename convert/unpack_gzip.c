/* SPDX-License-Identifier: Apache-2.0 */

/* gzip, members one behind the other, and zlib: what it is, the library finds out. And streams without a head, of zip archives. */

#include "convert/convert.h"

#include <zlib.h>

#define GZIP_OR_ZLIB (MAX_WBITS + 32)

static int why_not(int error)
{
	return error == Z_MEM_ERROR ? UNPACK_E_MEMORY : UNPACK_E_DAMAGED;
}

/* What was read. *is_whole: a member has ended, and none begun. 0 or UNPACK_E_.... */
static int unpack_some(struct unpack_pipe *pipe, z_stream *stream, bool *is_whole)
{
	int r = Z_OK;

	stream->next_in = pipe->in;
	stream->avail_in = (uInt)pipe->in_bytes;
	do {
		if (*is_whole) {
			/* Behind a member: what fills up a block of a tape. gzip(1) passes over it, too. */
			while (stream->avail_in && *stream->next_in == 0) {
				stream->next_in++;
				stream->avail_in--;
			}
		}
		if (*is_whole && !stream->avail_in)
			break;
		if (*is_whole && inflateReset(stream) != Z_OK)
			return UNPACK_E_DAMAGED;
		stream->next_out = pipe->out;
		stream->avail_out = (uInt)sizeof(pipe->out);
		r = inflate(stream, Z_NO_FLUSH);
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			return why_not(r);
		*is_whole = r == Z_STREAM_END;
		if (!pipe->write(pipe, sizeof(pipe->out) - stream->avail_out))
			return UNPACK_E_WRITE;
	} while (stream->avail_in || (!*is_whole && stream->avail_out == 0));
	return 0;
}

int unpack_gzip(struct unpack_pipe *pipe)
{
	z_stream stream = {.zalloc = Z_NULL};
	bool is_whole = false;
	int r = 0;

	if (inflateInit2(&stream, GZIP_OR_ZLIB) != Z_OK)
		return UNPACK_E_MEMORY;
	while (!r) {
		if (!pipe->read(pipe))
			r = UNPACK_E_READ;
		else if (pipe->in_bytes == 0)
			break;
		else
			r = unpack_some(pipe, &stream, &is_whole);
	}
	inflateEnd(&stream);
	return r || is_whole ? r : UNPACK_E_CUT;
}

/* ---- without a head ---- */

void unpack_raw_new(struct unpack_raw *raw)
{
	*raw = (struct unpack_raw){.stream = calloc(1, sizeof(*raw->stream))};
	if (raw->stream && inflateInit2(raw->stream, -MAX_WBITS) != Z_OK) {
		free(raw->stream);
		raw->stream = NULL;
	}
}

void unpack_raw_begin(struct unpack_raw *raw)
{
	inflateReset(raw->stream);
	raw->crc = 0;
	raw->has_ended = false;
}

int unpack_raw_step(struct unpack_raw *raw, struct unpack_piece *piece)
{
	z_stream *stream = raw->stream;
	int r;

	stream->next_in = (Bytef *)(uintptr_t)piece->from;
	stream->avail_in = (uInt)piece->size;
	stream->next_out = piece->to;
	stream->avail_out = (uInt)piece->room;
	r = inflate(stream, Z_NO_FLUSH);
	piece->taken = piece->size - stream->avail_in;
	piece->made = piece->room - stream->avail_out;
	raw->crc = (uint32_t)crc32_z(raw->crc, piece->to, piece->made);
	raw->has_ended = r == Z_STREAM_END;
	return r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR ? 0 : why_not(r);
}

void unpack_raw_free(struct unpack_raw *raw)
{
	if (raw->stream)
		inflateEnd(raw->stream);
	free(raw->stream);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Most headers say how much is in the file and its CRC-32: memory is then reserved once, and both are checked. The kernel gives no
 * page of it before something is written there, so that a lie costs what is really in the file. Where they stand behind the
 * bytes, as of an archive that was written to a pipe, memory grows with what comes, and nothing is checked.
 */

#include "pipeline/forms/zipped.h"

#include <zlib.h>

#include "base/zip.h"
#include "pipeline/formats/decode.h"

struct zipped {
	z_stream stream;
	bool is_begun; /* the stream is to be ended */
};

bool zipped_is_file(const void *data, size_t size)
{
	struct zip_header header;

	return size >= ZIP_HEADER && zip_header(data, &header);
}

void zipped_free(struct zipped *zipped)
{
	if (!zipped)
		return;
	if (zipped->is_begun)
		inflateEnd(&zipped->stream);
	free(zipped);
}

static int fail(struct pipeline_error *ret_error, const char *why)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "zip: %s", why);
}

static int fail_inflate(struct pipeline_error *ret_error, const char *what, const char *why)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "%.12s: %s", what, why);
}

static int fail_large(struct pipeline_error *ret_error)
{
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "zip: more than 1 GiB are in it");
}

static int fail_memory(struct pipeline_error *ret_error)
{
	return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to inflate it");
}

/* bits: zlib's windowBits, which say what is around the stream. */
static bool need(struct zipped **zipped, int bits)
{
	if (!*zipped)
		*zipped = calloc(1, sizeof(**zipped));
	if (!*zipped)
		return false;
	if (!(*zipped)->is_begun)
		(*zipped)->is_begun = inflateInit2(&(*zipped)->stream, bits) == Z_OK;
	else
		inflateReset2(&(*zipped)->stream, bits);
	return (*zipped)->is_begun;
}

/* All of the stream, or some bytes more than `most`, to memory that is reserved. */
static int inflate_all(z_stream *stream, const char *what, struct unpacked *to, size_t most,
		       size_t *ret, struct pipeline_error *ret_error)
{
	int r = Z_OK;

	while (r != Z_STREAM_END && *ret <= most) {
		if (*ret == to->room && !unpacked_grow(to))
			return fail_memory(ret_error);
		stream->next_out = to->bytes + *ret;
		stream->avail_out = (uInt)(BASE_MIN(to->room, most + 1) - *ret);
		r = inflate(stream, Z_NO_FLUSH);
		*ret = (size_t)(stream->next_out - to->bytes);
		if (r == Z_MEM_ERROR)
			return fail_memory(ret_error);
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			return fail_inflate(ret_error, what, "damaged");
		if (r != Z_STREAM_END && stream->avail_out > 0)
			return fail_inflate(ret_error, what, "it is cut off");
	}
	return 0;
}

static int unpack_deflated(struct zipped *zipped, struct unpacked *to,
			   const struct zip_header *header, const uint8_t *data, size_t size,
			   size_t *ret, struct pipeline_error *ret_error)
{
	const bool is_known = !(header->flags & ZIP_FLAG_LATER) && header->size != UINT32_MAX;
	const size_t most = is_known ? header->size : UNPACKED_MOST;
	int r;

	if (most > UNPACKED_MOST)
		return fail_large(ret_error);
	/* one byte more: that the stream ends there is seen where there is room behind it */
	if (!unpacked_reserve(to, is_known ? most + 1 : UNPACKED_FIRST))
		return fail_memory(ret_error);
	zipped->stream.next_in = (Bytef *)(uintptr_t)data;
	zipped->stream.avail_in = (uInt)size;
	r = inflate_all(&zipped->stream, "zip", to, most, ret, ret_error);
	if (r)
		return r;
	if (!is_known && *ret > most)
		return fail_large(ret_error);
	if (is_known && *ret != most)
		return fail(ret_error, "another size is in it than its header says");
	if (zipped->stream.avail_in > 0)
		return fail(ret_error, "there is more behind it");
	return 0;
}

int zipped_unpack(struct zipped **zipped, struct unpacked *to, const void **data, size_t *size,
		  struct pipeline_error *ret_error)
{
	struct zip_header header;
	const uint8_t *bytes = *data;
	size_t got = 0;
	int r;

	if (*size < ZIP_HEADER || !zip_header(bytes, &header) || header.bytes > *size)
		return fail(ret_error, "its header is damaged");
	if (header.bytes == *size)
		return fail(ret_error, "nothing is in it");
	if (header.method != ZIP_DEFLATED)
		return fail(ret_error, "it is not deflated");
	if (!need(zipped, -MAX_WBITS))
		return fail_memory(ret_error);
	r = unpack_deflated(*zipped, to, &header, bytes + header.bytes, *size - header.bytes, &got,
			    ret_error);
	if (r)
		return r;
	if (got == 0)
		return fail(ret_error, "nothing is in it");
	if (!(header.flags & ZIP_FLAG_LATER) && crc32_z(0, to->bytes, got) != header.crc)
		return fail(ret_error, "its CRC-32 is wrong: the archive is damaged");
	*data = to->bytes;
	*size = got;
	return 0;
}

/* A file in gzip may have several members, which stand for what is in them, one behind the other. */
static bool goes_on(z_stream *stream)
{
	return stream->avail_in >= 2 && memcmp(stream->next_in, "\x1f\x8b", 2) == 0 &&
	       inflateReset(stream) == Z_OK;
}

int zipped_inflate(struct zipped **zipped, bool is_gzip, const char *what, const uint8_t *data,
		   size_t size, size_t most, struct unpacked *to, size_t *ret,
		   struct pipeline_error *ret_error)
{
	int r;

	*ret = 0;
	if (size > UINT32_MAX || !need(zipped, is_gzip ? MAX_WBITS + 16 : -MAX_WBITS) ||
	    !unpacked_reserve(to, BASE_MIN(most + 1, UNPACKED_FIRST)))
		return fail_memory(ret_error);
	(*zipped)->stream.next_in = (Bytef *)(uintptr_t)data;
	(*zipped)->stream.avail_in = (uInt)size;
	do
		r = inflate_all(&(*zipped)->stream, what, to, most, ret, ret_error);
	while (r == 0 && *ret <= most && is_gzip && goes_on(&(*zipped)->stream));
	return r;
}

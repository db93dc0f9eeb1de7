/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A frame that was made at once says how much is in it, so that memory is reserved once; the kernel gives no page of
 * it before something is written there, so that a lie costs what is really in the frame. Of one that was made piece by piece memory
 * grows with what comes out of it.
 */

#include "pipeline/forms/zstandard.h"

#include <zstd.h>
#include <zstd_errors.h>

#include "pipeline/formats/decode.h"

struct zstandard {
	ZSTD_DCtx *context; /* owned */
};

bool zstandard_is_frame(const void *data, size_t size)
{
	static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd};

	return size >= sizeof(magic) && memcmp(data, magic, sizeof(magic)) == 0;
}

void zstandard_free(struct zstandard *zstandard)
{
	if (!zstandard)
		return;
	ZSTD_freeDCtx(zstandard->context);
	free(zstandard);
}

static bool need(struct zstandard **zstandard)
{
	if (!*zstandard)
		*zstandard = calloc(1, sizeof(**zstandard));
	if (*zstandard && !(*zstandard)->context)
		(*zstandard)->context = ZSTD_createDCtx();
	return *zstandard && (*zstandard)->context;
}

static int fail(struct pipeline_error *ret_error, const char *why)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "zstd: %s", why);
}

static int fail_large(struct pipeline_error *ret_error)
{
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "zstd: more than 1 GiB are in it");
}

static int fail_memory(struct pipeline_error *ret_error, unsigned long long bytes)
{
	return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0,
			   "no memory for %llu bytes of a zstd frame", bytes);
}

/* The library has memory of its own, for what a frame refers back to. */
static int fail_code(struct pipeline_error *ret_error, size_t code)
{
	return ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation
		   ? decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0,
				 "no memory for the window of a zstd frame")
		   : fail(ret_error, ZSTD_getErrorName(code));
}

static int unpack_known(struct zstandard *zstandard, struct unpacked *room, ZSTD_inBuffer *frame,
			unsigned long long bytes, size_t *ret, struct pipeline_error *ret_error)
{
	const size_t packed = ZSTD_findFrameCompressedSize(frame->src, frame->size);

	if (bytes > UNPACKED_MOST)
		return fail_large(ret_error);
	if (ZSTD_isError(packed))
		return fail_code(ret_error, packed);
	if (!unpacked_reserve(room, (size_t)bytes))
		return fail_memory(ret_error, bytes);
	*ret = ZSTD_decompressDCtx(zstandard->context, room->bytes, bytes, frame->src, packed);
	frame->pos = packed;
	return ZSTD_isError(*ret) ? fail_code(ret_error, *ret) : 0;
}

static int unpack_unknown(struct zstandard *zstandard, struct unpacked *room, ZSTD_inBuffer *frame,
			  size_t *ret, struct pipeline_error *ret_error)
{
	ZSTD_outBuffer to = {.pos = 0};
	size_t left = 1;

	if (!unpacked_reserve(room, UNPACKED_FIRST))
		return fail_memory(ret_error, UNPACKED_FIRST);
	ZSTD_DCtx_reset(zstandard->context, ZSTD_reset_session_only);
	while (left > 0) {
		to.dst = room->bytes;
		to.size = room->room;
		left = ZSTD_decompressStream(zstandard->context, &to, frame);
		if (ZSTD_isError(left))
			return fail_code(ret_error, left);
		if (left > 0 && to.pos < to.size)
			return fail(ret_error, "it is cut off");
		if (to.pos > UNPACKED_MOST)
			return fail_large(ret_error);
		if (left > 0 && !unpacked_grow(room))
			return fail_memory(ret_error, 2ULL * room->room);
	}
	*ret = to.pos;
	return 0;
}

/* Zeros are behind samples of some shards. */
static bool is_filled(const ZSTD_inBuffer *frame)
{
	const uint8_t *bytes = frame->src;

	for (size_t at = frame->pos; at < frame->size; at++)
		if (bytes[at] != 0)
			return false;
	return true;
}

int zstandard_unpack(struct zstandard **zstandard, struct unpacked *room, const void **data,
		     size_t *size, struct pipeline_error *ret_error)
{
	const unsigned long long bytes = ZSTD_getFrameContentSize(*data, *size);
	ZSTD_inBuffer frame = {.src = *data, .size = *size};
	size_t got = 0;
	int r;

	if (bytes == ZSTD_CONTENTSIZE_ERROR)
		return fail(ret_error, "damaged");
	if (!need(zstandard))
		return fail_memory(ret_error, 0);
	r = bytes == ZSTD_CONTENTSIZE_UNKNOWN
		? unpack_unknown(*zstandard, room, &frame, &got, ret_error)
		: unpack_known(*zstandard, room, &frame, bytes, &got, ret_error);
	if (r)
		return r;
	if (got == 0)
		return fail(ret_error, "nothing is in it");
	if (!is_filled(&frame))
		return fail(ret_error, "there is more behind the frame");
	*data = room->bytes;
	*size = got;
	return 0;
}

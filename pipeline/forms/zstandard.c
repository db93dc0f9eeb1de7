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

#define ZSTANDARD_MOST (UINT64_C(1) << 30) /* bytes of a sample */
#define ZSTANDARD_KEPT (16u << 20)         /* that stay reserved */
#define ZSTANDARD_FIRST (128u << 10) /* that are reserved first where nobody says how many come */

struct zstandard {
	ZSTD_DCtx *context; /* owned */
	uint8_t *bytes;     /* owned */
	size_t room;
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
	free(zstandard->bytes);
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

/* A large sample's memory goes with the next small one. */
static bool reserve(struct zstandard *zstandard, size_t bytes)
{
	if (bytes <= zstandard->room &&
	    (zstandard->room <= ZSTANDARD_KEPT || bytes > ZSTANDARD_KEPT))
		return true;
	free(zstandard->bytes);
	zstandard->bytes = malloc(bytes);
	zstandard->room = zstandard->bytes ? bytes : 0;
	return zstandard->bytes != NULL;
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

static int unpack_known(struct zstandard *zstandard, ZSTD_inBuffer *frame, unsigned long long bytes,
			size_t *ret, struct pipeline_error *ret_error)
{
	const size_t packed = ZSTD_findFrameCompressedSize(frame->src, frame->size);

	if (bytes > ZSTANDARD_MOST)
		return fail_large(ret_error);
	if (ZSTD_isError(packed))
		return fail_code(ret_error, packed);
	if (!reserve(zstandard, (size_t)bytes))
		return fail_memory(ret_error, bytes);
	*ret = ZSTD_decompressDCtx(zstandard->context, zstandard->bytes, bytes, frame->src, packed);
	frame->pos = packed;
	return ZSTD_isError(*ret) ? fail_code(ret_error, *ret) : 0;
}

/* More memory, with what is in it. */
static bool grow(struct zstandard *zstandard)
{
	const size_t room = 2 * zstandard->room;
	uint8_t *bytes = realloc(zstandard->bytes, room);

	if (!bytes)
		return false;
	zstandard->bytes = bytes;
	zstandard->room = room;
	return true;
}

static int unpack_unknown(struct zstandard *zstandard, ZSTD_inBuffer *frame, size_t *ret,
			  struct pipeline_error *ret_error)
{
	ZSTD_outBuffer to = {.pos = 0};
	size_t left = 1;

	if (!reserve(zstandard, ZSTANDARD_FIRST))
		return fail_memory(ret_error, ZSTANDARD_FIRST);
	ZSTD_DCtx_reset(zstandard->context, ZSTD_reset_session_only);
	while (left > 0) {
		to.dst = zstandard->bytes;
		to.size = zstandard->room;
		left = ZSTD_decompressStream(zstandard->context, &to, frame);
		if (ZSTD_isError(left))
			return fail_code(ret_error, left);
		if (left > 0 && to.pos < to.size)
			return fail(ret_error, "it is cut off");
		if (to.pos > ZSTANDARD_MOST)
			return fail_large(ret_error);
		if (left > 0 && !grow(zstandard))
			return fail_memory(ret_error, 2ULL * zstandard->room);
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

int zstandard_unpack(struct zstandard **zstandard, const void **data, size_t *size,
		     struct pipeline_error *ret_error)
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
		? unpack_unknown(*zstandard, &frame, &got, ret_error)
		: unpack_known(*zstandard, &frame, bytes, &got, ret_error);
	if (r)
		return r;
	if (got == 0)
		return fail(ret_error, "nothing is in it");
	if (!is_filled(&frame))
		return fail(ret_error, "there is more behind the frame");
	*data = (*zstandard)->bytes;
	*size = got;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A frame must say how much is in it, as one does that was made at once, so that memory is reserved once; the kernel gives no page of
 * it before something is written there, so that a lie costs what is really in the frame.
 */

#include "pipeline/forms/zstandard.h"

#include <zstd.h>

#include "pipeline/formats/decode.h"

#define ZSTANDARD_MOST (UINT64_C(1) << 30) /* bytes of a sample */
#define ZSTANDARD_KEPT (16u << 20)         /* that stay reserved */

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

int zstandard_unpack(struct zstandard **zstandard, const void **data, size_t *size,
		     struct pipeline_error *ret_error)
{
	const unsigned long long bytes = ZSTD_getFrameContentSize(*data, *size);
	size_t got;

	if (bytes == ZSTD_CONTENTSIZE_UNKNOWN)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "zstd: it does not say how many bytes are in it");
	if (bytes == ZSTD_CONTENTSIZE_ERROR)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "zstd: damaged");
	if (bytes == 0)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "zstd: nothing is in it");
	if (bytes > ZSTANDARD_MOST)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "zstd: more than 1 GiB are in it");
	if (!need(zstandard) || !reserve(*zstandard, (size_t)bytes))
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0,
				   "no memory for %llu bytes of a zstd frame", bytes);
	got = ZSTD_decompressDCtx((*zstandard)->context, (*zstandard)->bytes, bytes, *data, *size);
	if (ZSTD_isError(got))
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "zstd: %s",
				   ZSTD_getErrorName(got));
	*data = (*zstandard)->bytes;
	*size = got;
	return 0;
}

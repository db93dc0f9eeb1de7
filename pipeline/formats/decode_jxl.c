/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG XL by libjxl: codestreams and files, grey and colours of any depth, with alpha, layers, of an animation the
 * first picture; a JPEG that was packed into one is decoded as any other.
 *
 * Pixels are djxl's in 8 bits: libjxl makes them of what was coded, turned as the codestream says (whatever EXIF
 * says), alpha is dropped, the colours under it stay. Colours are in the space that the file names, as of all formats.
 *
 * libjxl brings an encoder, lcms2 and brotli along: found when the program runs, as libavif is. Without a runner
 * it makes no threads. Debian's tells stderr of damage.
 *
 * Hostile files: what is blank costs no bytes, so pixels are held against the file's bytes as JPEG 2000's, and there are
 * few channels. Layers may be larger than the picture: libjxl's memory is what the sandbox leaves it.
 *
 * The only file that includes jxl/.
 */

#include <jxl/decode.h>
#include "base/library.h"
#include "pipeline/formats/decode_format.h"
#include "pipeline/formats/exif.h"

#define JXL_FREE_PIXELS (UINT64_C(1) << 20)
#define JXL_MOST_PIXELS 1024 /* for each byte, beyond these */
#define JXL_MOST_EXTRA 4     /* channels besides the colours: alpha, black, depth, ... */
#define JXL_FILE "\0\0\0\x0cJXL \r\n\x87\n"

struct decode_jxl {
	JxlDecoder *decoder; /* owned until closed */
};

#define JXL_EACH(F)                                  \
	F(jxl, create, JxlDecoderCreate)             \
	F(jxl, destroy, JxlDecoderDestroy)           \
	F(jxl, subscribe, JxlDecoderSubscribeEvents) \
	F(jxl, set_input, JxlDecoderSetInput)        \
	F(jxl, process, JxlDecoderProcessInput)      \
	F(jxl, info, JxlDecoderGetBasicInfo)         \
	F(jxl, set_buffer, JxlDecoderSetImageOutBuffer)

/* Of the library, once it is loaded. */
static struct {
	JXL_EACH(LIBRARY_MEMBER)
} jxl;

static bool decode_jxl_load(void)
{
	static const struct library_name names[] = {JXL_EACH(LIBRARY_NAME)};

	return !library_load(JXL_SONAME, names, BASE_ARRAY_LEN(names));
}

static bool decode_jxl_probe(const uint8_t *data, size_t size)
{
	return (size >= 2 && memcmp(data, "\xff\x0a", 2) == 0) ||
	       (size >= 12 && memcmp(data, JXL_FILE, 12) == 0);
}

static void decode_jxl_close(void *state)
{
	struct decode_jxl *its = state;

	if (its->decoder)
		jxl.destroy(its->decoder);
	its->decoder = NULL;
}

/* Has libjxl go on to what is wanted; what else it may come to is an error. */
static int decode_jxl_to(struct decode_jxl *its, JxlDecoderStatus wanted,
			 struct pipeline_error *ret_error)
{
	FILE *real = decode_hush();
	const JxlDecoderStatus status = jxl.process(its->decoder);

	stderr = real;
	if (status == wanted)
		return 0;
	if (status == JXL_DEC_NEED_MORE_INPUT)
		return decode_fail_truncated(ret_error);
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, (int)status, "JPEG XL: damaged");
}

static int decode_jxl_check(const JxlBasicInfo *info, size_t size, struct pipeline_error *ret_error)
{
	int r = decode_check_size(info->ysize, info->xsize, ret_error);

	if (r != 0)
		return r;
	if ((uint64_t)info->ysize * info->xsize >
	    JXL_FREE_PIXELS + JXL_MOST_PIXELS * (uint64_t)size)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "JPEG XL: %u x %u pixels in %zu bytes", info->xsize, info->ysize,
				   size);
	if (info->num_extra_channels > JXL_MOST_EXTRA)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "JPEG XL: %u channels besides the colours are more than %d",
				   info->num_extra_channels, JXL_MOST_EXTRA);
	return 0;
}

static int decode_jxl_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			   uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_jxl *its = state;
	JxlBasicInfo info;
	int r;

	decode_jxl_close(its);
	its->decoder = jxl.create(NULL);
	if (!its->decoder ||
	    jxl.subscribe(its->decoder, JXL_DEC_BASIC_INFO | JXL_DEC_FULL_IMAGE) != 0 ||
	    jxl.set_input(its->decoder, data, size) != 0)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	r = decode_jxl_to(its, JXL_DEC_BASIC_INFO, ret_error);
	if (r == 0 && jxl.info(its->decoder, &info) != JXL_DEC_SUCCESS)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "JPEG XL: no picture");
	r = r ? r : decode_jxl_check(&info, size, ret_error);
	if (r != 0)
		return r;
	*ret_height = info.ysize;
	*ret_width = info.xsize;
	return 0;
}

static int decode_jxl_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			    struct pipeline_error *ret_error)
{
	struct decode_jxl *its = state;
	JxlPixelFormat format = {4, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
	JxlBasicInfo info;
	int r;

	if (jxl.info(its->decoder, &info) != JXL_DEC_SUCCESS)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "JPEG XL: no picture");
	r = decode_jxl_to(its, JXL_DEC_NEED_IMAGE_OUT_BUFFER, ret_error);
	r = r ? r : decode_make(buffer, info.ysize, info.xsize, ret, ret_error);
	if (r != 0)
		return r;
	format.align = ret->stride; /* of which a row is one, then */
	if (jxl.set_buffer(its->decoder, &format, ret->data, ret->stride * ret->height) !=
	    JXL_DEC_SUCCESS)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "JPEG XL: pixels of this kind are not supported");
	return decode_jxl_to(its, JXL_DEC_FULL_IMAGE, ret_error);
}

/* libjxl has turned it. */
static unsigned decode_jxl_orientation(const void *state)
{
	(void)state;
	return EXIF_UPRIGHT;
}

const struct decode_format decode_jxl = {
    .name = "JPEG XL",
    .library = JXL_SONAME,
    .state_size = sizeof(struct decode_jxl),
    .load = decode_jxl_load,
    .probe = decode_jxl_probe,
    .open = decode_jxl_open,
    .whole = decode_jxl_whole,
    .orientation = decode_jxl_orientation,
    .close = decode_jxl_close,
    .fini = decode_jxl_close,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AVIF by libavif: 8, 10 and 12 bits, grey, with alpha, grids, of a sequence the first picture.
 *
 * Pixels are Pillow's, which calls the same library: libavif makes 8-bit RGB of what was coded, and alpha
 * is dropped, the colours under it stay. It has two ways to do that, its own and libyuv's, whose
 * roundings differ; which one a picture goes is what Pillow asks for. 10 and 12 bits lose their lower
 * ones before libyuv has them, as since libavif 1.0; older ones round otherwise. A picture is turned (irot, imir)
 * only where EXIF is asked for.
 *
 * libavif brings four encoders along, which nobody needs who reads; so it is found when the program
 * runs, and loaded by who calls decode_load() before a sandbox closes.
 *
 * Hostile files: the size that the container says is checked before anything is decoded, and libavif and dav1d
 * refuse coded pictures of more pixels. One thread, so that nothing is started. dav1d tells stderr of damage,
 * which a sandboxed worker would die of; while it decodes, stderr is a stream that goes nowhere.
 *
 * The only file that includes avif/.
 */

#include <avif/avif.h>
#include "base/library.h"
#include "pipeline/formats/decode_format.h"
#include "pipeline/formats/exif.h"
#include "pipeline/spec/op.h"

struct decode_avif {
	avifDecoder *decoder; /* owned until closed */
};

#define AVIF_EACH(F)                                   \
	F(avif, create, avifDecoderCreate)             \
	F(avif, destroy, avifDecoderDestroy)           \
	F(avif, set_memory, avifDecoderSetIOMemory)    \
	F(avif, parse, avifDecoderParse)               \
	F(avif, next, avifDecoderNextImage)            \
	F(avif, codec, avifCodecName)                  \
	F(avif, set_defaults, avifRGBImageSetDefaults) \
	F(avif, to_rgb, avifImageYUVToRGB)             \
	F(avif, text, avifResultToString)

/* Of the library, once it is loaded. */
static struct {
	AVIF_EACH(LIBRARY_MEMBER)
} avif;

static bool decode_avif_load(void)
{
	static const struct library_name names[] = {AVIF_EACH(LIBRARY_NAME)};

	return !library_load(AVIF_SONAME, names, BASE_ARRAY_LEN(names));
}

static bool decode_avif_probe(const uint8_t *data, size_t size)
{
	return decode_has_brand(data, size, "avifavis");
}

static void decode_avif_close(void *state)
{
	struct decode_avif *its = state;

	if (its->decoder)
		avif.destroy(its->decoder);
	its->decoder = NULL;
}

static int decode_avif_fail(avifResult result, struct pipeline_error *ret_error)
{
	return decode_fail(ret_error,
			   result == AVIF_RESULT_OUT_OF_MEMORY ? PIPELINE_FAIL_MEMORY
							       : PIPELINE_FAIL_DECODE,
			   (int)result, "AVIF: damaged: %s", avif.text(result));
}

static int decode_avif_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			    uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_avif *its = state;
	avifResult result;

	decode_avif_close(its);
	its->decoder = avif.create();
	if (!its->decoder)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	if (avif.codec(AVIF_CODEC_CHOICE_DAV1D, AVIF_CODEC_FLAG_CAN_DECODE))
		its->decoder->codecChoice = AVIF_CODEC_CHOICE_DAV1D;
	its->decoder->maxThreads = 1;
	its->decoder->strictFlags &=
	    ~(avifStrictFlags)(AVIF_STRICT_CLAP_VALID | AVIF_STRICT_PIXI_REQUIRED);
	its->decoder->ignoreExif = its->decoder->ignoreXMP = AVIF_TRUE;
	result = avif.set_memory(its->decoder, data, size);
	result = result == AVIF_RESULT_OK ? avif.parse(its->decoder) : result;
	if (result != AVIF_RESULT_OK)
		return decode_avif_fail(result, ret_error);
	its->decoder->imageSizeLimit =
	    OP_MAX_PIXELS; /* of what is coded; the container's is checked here */
	*ret_height = its->decoder->image->height;
	*ret_width = its->decoder->image->width;
	return decode_check_size(*ret_height, *ret_width, ret_error);
}

static avifResult decode_avif_next(avifDecoder *decoder)
{
	FILE *real = decode_hush();
	const avifResult result = avif.next(decoder);

	stderr = real;
	return result;
}

/* Does libavif leave the colours to libyuv, of whatever depth? */
static bool decode_avif_is_yuv(const avifImage *image)
{
	static const uint8_t known[] = {1, 2, 5, 6,
					9}; /* of CICP: BT.709, not said, BT.601 twice, BT.2020 */
	unsigned matrix = image->matrixCoefficients;

	if (image->yuvFormat == AVIF_PIXEL_FORMAT_YUV400 && !image->alphaPlane)
		return false; /* Pillow has a grey picture made, which libyuv does not */
	if (matrix == AVIF_MATRIX_COEFFICIENTS_CHROMA_DERIVED_NCL)
		matrix = image->colorPrimaries;
	return memchr(known, (int)matrix, sizeof(known));
}

/* Samples of 16 bits in the place of which come their upper 8. */
static void decode_avif_narrow(uint8_t *plane, uint32_t stride, uint32_t height, uint32_t width,
			       unsigned shift)
{
	for (uint32_t y = 0; plane && y < height; y++) {
		uint8_t *row = plane + (size_t)y * stride;

		for (uint32_t x = 0; x < width; x++)
			row[x] = (uint8_t)((row[2 * x] | row[2 * x + 1] << 8) >> shift);
	}
}

/* *ret: image in 8 bits, whose samples are overwritten by them. */
static void decode_avif_lower(const avifImage *image, avifImage *ret)
{
	const unsigned shift = image->depth - 8;
	const bool is_narrow = image->yuvFormat == AVIF_PIXEL_FORMAT_YUV420 ||
			       image->yuvFormat == AVIF_PIXEL_FORMAT_YUV422;
	const bool is_low = image->yuvFormat == AVIF_PIXEL_FORMAT_YUV420;

	for (unsigned i = 0; i < 3; i++)
		decode_avif_narrow(
		    image->yuvPlanes[i], image->yuvRowBytes[i],
		    i && is_low ? image->height / 2 + image->height % 2 : image->height,
		    i && is_narrow ? image->width / 2 + image->width % 2 : image->width, shift);
	decode_avif_narrow(image->alphaPlane, image->alphaRowBytes, image->height, image->width,
			   shift);
	*ret = *image;
	ret->depth = 8;
}

static int decode_avif_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			     struct pipeline_error *ret_error)
{
	const struct decode_avif *its = state;
	const avifImage *image = its->decoder->image;
	const uint32_t height = image->height, width = image->width;
	avifImage eight;
	avifRGBImage rgb;
	avifResult result = decode_avif_next(its->decoder);
	int r;

	if (result != AVIF_RESULT_OK)
		return decode_avif_fail(result, ret_error);
	image = its->decoder->image;
	if (image->height != height || image->width != width)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "AVIF: two sizes");
	r = decode_make(buffer, height, width, ret, ret_error);
	if (r != 0)
		return r;
	if (image->depth > 8 && decode_avif_is_yuv(image)) {
		decode_avif_lower(image, &eight);
		image = &eight;
	}
	avif.set_defaults(&rgb, image);
	rgb.depth = 8;
	rgb.format = AVIF_RGB_FORMAT_RGBA;
	rgb.avoidLibYUV = !decode_avif_is_yuv(image);
	rgb.pixels = ret->data;
	rgb.rowBytes = (uint32_t)ret->stride;
	result = avif.to_rgb(image, &rgb);
	return result == AVIF_RESULT_OK ? 0 : decode_avif_fail(result, ret_error);
}

/* EXIF's number for a picture that is turned by quarters, against the clock, and then mirrored. Pillow has it so; what EXIF itself says
 * does not count. */
static unsigned decode_avif_orientation(const void *state)
{
	static const uint8_t turned[4] = {EXIF_UPRIGHT, 8, 3, 6};
	static const uint8_t mirrored[2][4] = {{4, 5, 2, 7}, {2, 7, 4, 5}};
	const avifImage *image = ((const struct decode_avif *)state)->decoder->image;
	unsigned angle = image->transformFlags & AVIF_TRANSFORM_IROT ? image->irot.angle & 3u : 0;

	if (!(image->transformFlags & AVIF_TRANSFORM_IMIR))
		return turned[angle];
#if AVIF_VERSION >= 1000000
	return mirrored[image->imir.axis & 1u][angle];
#else
	return mirrored[image->imir.mode & 1u][angle];
#endif
}

const struct decode_format decode_avif = {
    .name = "AVIF",
    .library = AVIF_SONAME,
    .state_size = sizeof(struct decode_avif),
    .load = decode_avif_load,
    .probe = decode_avif_probe,
    .open = decode_avif_open,
    .whole = decode_avif_whole,
    .orientation = decode_avif_orientation,
    .close = decode_avif_close,
    .fini = decode_avif_close,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebP by libwebp: lossy, lossless, with alpha; of an animated one the first frame.
 *
 * Pixels and outcomes are Pillow's: the first frame on its canvas, which is black where the frame is
 * not; alpha is dropped, the colours under it stay; a file whose last frame is cut off has none.
 *
 * Hostile files: libwebp's demuxer checks the container and reads nothing behind it; a frame's size
 * is at most 16,383 a side, and the canvas, which may be larger, is checked before anything is made
 * of it. The decoder allocates for a frame's pixels; no threads are asked for.
 *
 * The only file that includes webp/.
 */

#include <webp/decode.h>
#include <webp/demux.h>
#include "base/little.h"
#include "pipeline/formats/decode_format.h"

struct decode_webp {
	WebPDemuxer *demuxer; /* owned until closed */
	uint32_t width, height;
};

static bool decode_webp_probe(const uint8_t *data, size_t size)
{
	return size >= 16 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBPVP8", 7) == 0 &&
	       strchr(" XL", data[15]) != NULL && data[15] != '\0';
}

static void decode_webp_close(void *state)
{
	struct decode_webp *webp = state;

	WebPDemuxDelete(webp->demuxer);
	webp->demuxer = NULL;
}

/* The canvas as the container's first bytes have it: too large ones are refused for that even where
 * the rest is damaged. */
static int decode_webp_check_head(const uint8_t *data, size_t size,
				  struct pipeline_error *ret_error)
{
	if (data[15] != 'X' || size < 30)
		return 0;
	return decode_check_size((little_32(data + 26) >> 8) + UINT64_C(1),
				 (little_32(data + 24) & 0xffffff) + UINT64_C(1), ret_error);
}

static int decode_webp_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			    uint32_t *ret_width, struct pipeline_error *ret_error)
{
	const WebPData bytes = {data, size};
	struct decode_webp *webp = state;
	int r = decode_webp_check_head(data, size, ret_error);

	if (r != 0)
		return r;
	decode_webp_close(webp);
	webp->demuxer = WebPDemux(&bytes);
	if (!webp->demuxer)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "WebP: the file is damaged or cut off");
	webp->width = WebPDemuxGetI(webp->demuxer, WEBP_FF_CANVAS_WIDTH);
	webp->height = WebPDemuxGetI(webp->demuxer, WEBP_FF_CANVAS_HEIGHT);
	*ret_height = webp->height;
	*ret_width = webp->width;
	return decode_check_size(webp->height, webp->width, ret_error);
}

static int decode_webp_frame(const WebPIterator *frame, const struct picture *to,
			     struct pipeline_error *ret_error)
{
	WebPDecoderConfig config;
	VP8StatusCode status;
	size_t left = (size_t)frame->x_offset * 4;

	if (!WebPInitDecoderConfig(&config))
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "WebP: another libwebp");
	config.output.colorspace = MODE_RGBA;
	config.output.is_external_memory = 1;
	config.output.u.RGBA.rgba = picture_row(to, (uint32_t)frame->y_offset) + left;
	config.output.u.RGBA.stride = (int)to->stride;
	config.output.u.RGBA.size =
	    (size_t)(frame->height - 1) * to->stride + (size_t)frame->width * 4;
	status = WebPDecode(frame->fragment.bytes, frame->fragment.size, &config);
	WebPFreeDecBuffer(&config.output);
	if (status == VP8_STATUS_OK)
		return 0;
	return decode_fail(ret_error,
			   status == VP8_STATUS_OUT_OF_MEMORY ? PIPELINE_FAIL_MEMORY
							      : PIPELINE_FAIL_DECODE,
			   (int)status, "WebP: the picture is damaged");
}

static bool decode_webp_fits(const struct decode_webp *webp, const WebPIterator *frame)
{
	return frame->width > 0 && frame->height > 0 && frame->x_offset >= 0 &&
	       frame->y_offset >= 0 &&
	       (uint64_t)frame->x_offset + (uint64_t)frame->width <= webp->width &&
	       (uint64_t)frame->y_offset + (uint64_t)frame->height <= webp->height;
}

static int decode_webp_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			     struct pipeline_error *ret_error)
{
	struct decode_webp *webp = state;
	WebPIterator frame;
	int r = decode_make(buffer, webp->height, webp->width, ret, ret_error);

	if (r != 0)
		return r;
	if (!WebPDemuxGetFrame(webp->demuxer, 1, &frame))
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "WebP: no picture");
	if (!decode_webp_fits(webp, &frame))
		r = decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "WebP: a frame out of place");
	if (r == 0 &&
	    ((uint32_t)frame.width < webp->width || (uint32_t)frame.height < webp->height))
		memset(ret->data, 0, ret->height * ret->stride);
	r = r ? r : decode_webp_frame(&frame, ret, ret_error);
	WebPDemuxReleaseIterator(&frame);
	return r;
}

const struct decode_format decode_webp = {
    .name = "WebP",
    .state_size = sizeof(struct decode_webp),
    .probe = decode_webp_probe,
    .open = decode_webp_open,
    .whole = decode_webp_whole,
    .close = decode_webp_close,
    .fini = decode_webp_close,
};

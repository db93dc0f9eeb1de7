/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colours: planes by video_yuv.c, what is left by libswscale, with flags without which what comes out depends on the
 * processor. The matrix and the range are what the file says; where it says nothing, BT.601 and the narrow range.
 *
 * The only file that includes libswscale's headers.
 */

#include "pipeline/video/module/video_rgb.h"

#include <libswscale/swscale.h>

#include "pipeline/video/module/video_yuv.h"

#define VIDEO_FLAGS (SWS_BILINEAR | SWS_ACCURATE_RND | SWS_BITEXACT | SWS_FULL_CHR_H_INT)
#define VIDEO_BEYOND 64 /* bytes that libswscale may write behind a row */

static const struct {
	enum AVPixelFormat format;
	uint8_t bits, right, below;
	bool is_full; /* by its name */
} video_planar[] = {
    {AV_PIX_FMT_YUV420P, 8, 1, 1, false},    {AV_PIX_FMT_YUVJ420P, 8, 1, 1, true},
    {AV_PIX_FMT_YUV422P, 8, 1, 0, false},    {AV_PIX_FMT_YUVJ422P, 8, 1, 0, true},
    {AV_PIX_FMT_YUV444P, 8, 0, 0, false},    {AV_PIX_FMT_YUVJ444P, 8, 0, 0, true},
    {AV_PIX_FMT_YUV420P10, 10, 1, 1, false}, {AV_PIX_FMT_YUV422P10, 10, 1, 0, false},
    {AV_PIX_FMT_YUV444P10, 10, 0, 0, false}, {AV_PIX_FMT_YUV420P12, 12, 1, 1, false},
    {AV_PIX_FMT_YUV422P12, 12, 1, 0, false}, {AV_PIX_FMT_YUV444P12, 12, 0, 0, false},
};

/* false: it is for libswscale. */
static bool video_rgb_planar(const struct video_picture *picture, uint8_t *to)
{
	const int *matrix = sws_getCoefficients(picture->matrix);

	for (size_t i = 0; i < BASE_ARRAY_LEN(video_planar); i++) {
		if (video_planar[i].format == picture->format) {
			const struct video_yuv yuv = {
			    .is_full =
				video_planar[i].is_full || picture->range == AVCOL_RANGE_JPEG,
			    .bits = video_planar[i].bits,
			    .right = video_planar[i].right,
			    .below = video_planar[i].below,
			    .matrix = {matrix[0], matrix[1], matrix[2], matrix[3]},
			};

			video_yuv_to_rgb(&yuv, picture->plane, picture->stride, picture->height,
					 picture->width, to);
			return true;
		}
	}
	return false;
}

static int video_rgb_prepare(struct video_rgb *rgb, const struct video_picture *picture)
{
	const bool is_full = picture->range == AVCOL_RANGE_JPEG;
	const enum AVPixelFormat format = picture->format;
	const int *matrix = sws_getCoefficients(picture->matrix);

	if (rgb->context && rgb->height == picture->height && rgb->width == picture->width &&
	    rgb->format == picture->format && rgb->matrix == picture->matrix &&
	    rgb->range == picture->range)
		return 0;
	sws_freeContext(rgb->context);
	rgb->context = NULL;
	if (!sws_isSupportedInput(format))
		return PIPELINE_E_BAD;
	rgb->context =
	    sws_getContext((int)picture->width, (int)picture->height, format, (int)picture->width,
			   (int)picture->height, AV_PIX_FMT_RGB24, VIDEO_FLAGS, NULL, NULL, NULL);
	if (!rgb->context)
		return -ENOMEM;
	sws_setColorspaceDetails(rgb->context, matrix, is_full, sws_getCoefficients(SWS_CS_DEFAULT),
				 1, 0, 1 << 16, 1 << 16);
	rgb->height = picture->height;
	rgb->width = picture->width;
	rgb->format = picture->format;
	rgb->matrix = picture->matrix;
	rgb->range = picture->range;
	return 0;
}

static int video_rgb_scale(struct video_rgb *rgb, const struct video_picture *picture,
			   struct pipeline_error *ret_error)
{
	const int stride = (int)picture->width * 3;
	const int rc = video_rgb_prepare(rgb, picture);

	if (rc == PIPELINE_E_BAD)
		return video_fail(ret_error, PIPELINE_FAIL_REFUSED,
				  "its kind of pixels is not read");
	if (rc != 0)
		return rc;
	return sws_scale(rgb->context, picture->plane, picture->stride, 0, (int)picture->height,
			 (uint8_t *[]){rgb->pixels, NULL, NULL, NULL}, (int[]){stride, 0, 0, 0}) > 0
		   ? 0
		   : -ENOMEM;
}

static void video_rgb_turn(const struct video_rgb *rgb, size_t height, size_t width,
			   unsigned quarters)
{
	/* where the first pixel goes, and how far the next right and the next below */
	const ptrdiff_t right = quarters == 1   ? (ptrdiff_t)height
				: quarters == 2 ? -1
						: -(ptrdiff_t)height;
	const ptrdiff_t below = quarters == 1 ? -1 : quarters == 2 ? -(ptrdiff_t)width : 1;
	const size_t first = quarters == 1   ? height - 1
			     : quarters == 2 ? height * width - 1
					     : (width - 1) * height;

	for (size_t y = 0; y < height; y++) {
		const uint8_t *from = rgb->pixels + y * width * 3;
		uint8_t *to = rgb->turned + 3 * (ptrdiff_t)first + 3 * below * (ptrdiff_t)y;

		for (size_t x = 0; x < width; x++, from += 3, to += 3 * right)
			memcpy(to, from, 3);
	}
}

int video_rgb_make(struct video_rgb *rgb, const struct video_picture *picture, unsigned quarters,
		   const uint8_t **ret, struct pipeline_error *ret_error)
{
	const size_t bytes = (size_t)picture->height * picture->width * 3;
	int rc = 0;

	if (!base_grow(&rgb->pixels, &rgb->pixels_room, bytes + VIDEO_BEYOND, 1) ||
	    (quarters && !base_grow(&rgb->turned, &rgb->turned_room, bytes, 1)))
		return -ENOMEM;
	if (!video_rgb_planar(picture, rgb->pixels))
		rc = video_rgb_scale(rgb, picture, ret_error);
	if (rc != 0)
		return rc;
	if (quarters)
		video_rgb_turn(rgb, picture->height, picture->width, quarters);
	*ret = quarters ? rgb->turned : rgb->pixels;
	return 0;
}

void video_rgb_trim(struct video_rgb *rgb)
{
	if (rgb->pixels_room > VIDEO_KEEP) {
		sws_freeContext(rgb->context);
		rgb->context = NULL;
	}
	video_trim(&rgb->pixels, &rgb->pixels_room, 1);
	video_trim(&rgb->turned, &rgb->turned_room, 1);
}

void video_rgb_fini(struct video_rgb *rgb)
{
	sws_freeContext(rgb->context);
	free(rgb->pixels);
	free(rgb->turned);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colours, by libswscale. SWS_ACCURATE_RND, SWS_BITEXACT and SWS_FULL_CHR_H_INT: without them what comes out depends on the
 * processor. The matrix and the range are what the file says; where it says nothing, BT.601 and the narrow range.
 *
 * The only file that includes libswscale's headers.
 */

#include "pipeline/video/module/video_rgb.h"

#include <libswscale/swscale.h>

#define VIDEO_FLAGS (SWS_BILINEAR | SWS_ACCURATE_RND | SWS_BITEXACT | SWS_FULL_CHR_H_INT)
#define VIDEO_BEYOND 64 /* bytes that libswscale may write behind a row */

/* "J" formats are others of full range. */
static enum AVPixelFormat video_plain(int format, bool *is_full)
{
	static const enum AVPixelFormat table[][2] = {
	    {AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV420P}, {AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUV422P},
	    {AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUV444P}, {AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUV440P},
	    {AV_PIX_FMT_YUVJ411P, AV_PIX_FMT_YUV411P},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(table); i++) {
		if (table[i][0] == format) {
			*is_full = true;
			return table[i][1];
		}
	}
	return format;
}

static int video_rgb_prepare(struct video_rgb *rgb, const struct video_picture *picture)
{
	bool is_full = picture->range == AVCOL_RANGE_JPEG;
	const enum AVPixelFormat format = video_plain(picture->format, &is_full);
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

static void video_rgb_turn(const struct video_rgb *rgb, unsigned quarters)
{
	const size_t height = rgb->height, width = rgb->width;
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
	int rc = video_rgb_prepare(rgb, picture);
	const int stride = (int)picture->width * 3;

	if (rc == PIPELINE_E_BAD)
		return video_fail(ret_error, PIPELINE_FAIL_REFUSED,
				  "its kind of pixels is not read");
	if (rc == 0 && !base_grow(&rgb->pixels, &rgb->pixels_room, bytes + VIDEO_BEYOND, 1))
		rc = -ENOMEM;
	if (rc == 0 && quarters && !base_grow(&rgb->turned, &rgb->turned_room, bytes, 1))
		rc = -ENOMEM;
	if (rc != 0)
		return rc;
	if (sws_scale(rgb->context, picture->plane, picture->stride, 0, (int)picture->height,
		      (uint8_t *[]){rgb->pixels, NULL, NULL, NULL}, (int[]){stride, 0, 0, 0}) <= 0)
		return -ENOMEM;
	if (quarters)
		video_rgb_turn(rgb, quarters);
	*ret = quarters ? rgb->turned : rgb->pixels;
	return 0;
}

void video_rgb_fini(struct video_rgb *rgb)
{
	sws_freeContext(rgb->context);
	free(rgb->pixels);
	free(rgb->turned);
}

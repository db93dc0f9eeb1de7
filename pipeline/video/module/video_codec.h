/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A decoder: packets go in, in their order, pictures come out in theirs, or sound does. */

#include "pipeline/video/module/video_file.h"

struct video_codec;
struct AVBSFContext;
struct AVPacket;
struct AVCodecParameters;

struct video_picture { /* as it was coded; the codec's until it is asked for the next */
	const uint8_t *plane[4];
	int stride[4];
	uint32_t height, width;
	int format, matrix, range; /* FFmpeg's numbers: pixel format, colour space and range */
	uint32_t packet;           /* from whose packet it is */
	bool is_damaged;
};

struct video_samples {      /* of sound, float; the codec's until it is asked for the next */
	const float *frame; /* the channels of each side by side */
	uint32_t n, channels, rate;
	uint32_t packet; /* from whose packet they are; UINT32_MAX: from the same as those before */
};

/* Beside PIPELINE_E_BAD: */
#define VIDEO_CODEC_E_MORE 11 /* wants the next packet */
#define VIDEO_CODEC_E_END 12  /* nothing comes any more */

/* Before a sandbox: what a library asks the machine when it is asked first. */
void video_codec_prepare(void);
/* The file is borrowed. 0, or PIPELINE_E_BAD with *ret_error, or -ENOMEM. */
int video_codec_new(const struct video_file *file, struct video_codec **ret,
		    struct pipeline_error *ret_error);
void video_codec_free(struct video_codec *codec);
void video_codec_reset(struct video_codec *codec); /* the next packet is a key frame's */
/* That packet; is_passed: nobody wants its picture, which need not come. UINT32_MAX: there are no more. 0, PIPELINE_E_BAD:
 * it cannot be decoded, or -ENOMEM. Call video_codec_take() until it wants the next. */
int video_codec_put(struct video_codec *codec, uint32_t packet, bool is_passed);
/* 0, VIDEO_CODEC_E_MORE, VIDEO_CODEC_E_END, PIPELINE_E_BAD or -ENOMEM. */
int video_codec_take(struct video_codec *codec, struct video_picture *ret);
/* The same of sound. PIPELINE_E_BAD, too, for numbers of a kind that is not read. */
int video_codec_take_sound(struct video_codec *codec, struct video_samples *ret);
/* Of sound of which a packet's samples were seen, with what was cut off: how many are heard of each packet; and how
 * many there are in the one that was seen. 0 or -ENOMEM. */
int video_codec_count(struct video_codec *codec, const struct video_samples *seen, uint32_t *ret,
		      uint32_t *ret_whole);
/* Of H.264 and HEVC, which number their pictures: to each packet when it is shown, without decoding. 0, PIPELINE_E_BAD: not known,
 * or -ENOMEM. */
int video_codec_times(struct video_codec *codec, int64_t *ret);
/* What the library said last that was wrong; "": nothing. */
const char *video_codec_words(const struct video_codec *codec);

/* MPEG-4 of AVI may have two pictures in a packet, and in the next a filler: a picture in each, as elsewhere. parameters are those
 * before and behind. 0 or -ENOMEM; *ret is freed by video_unpack_free(). */
int video_unpack_new(struct AVCodecParameters *parameters, struct AVBSFContext **ret);
/* In the packet's place. false: nothing comes of it. */
bool video_unpack(struct AVBSFContext *unpack, struct AVPacket *packet);
void video_unpack_free(struct AVBSFContext **unpack);

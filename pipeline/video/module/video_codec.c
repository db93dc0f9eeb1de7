/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoders, by libavcodec: one thread, and only codecs of the list, in which there is a family that data sets are made of.
 * A packet's number goes along with it in the place of its time, and comes out with its picture: no decoder orders by times.
 *
 * Damage is an error, not a grey picture: what a decoder would conceal it is told to call an error (err_detect=explode). But of
 * H.264, which then also fails at remarks that no pixel is made of (a picture that is to be forgotten and is not there, behind a
 * cut at an open GOP): its pictures say themselves that they are damaged.
 *
 * The library writes no messages: the last one is kept, for the error.
 *
 * The only file that includes libavcodec's headers.
 */

#include "pipeline/video/module/video_codec.h"

#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>

struct video_codec {
	const struct video_file *file; /* borrowed */
	AVCodecContext *context;
	AVPacket *packet;
	AVFrame *frame;
	uint8_t *bytes; /* of the packet, and zeros behind them */
	size_t bytes_room;
};

static _Thread_local char video_words[64];

__attribute__((format(printf, 3, 0))) static void video_keep_words(void *context, int level,
								   const char *format, va_list args)
{
	(void)context;
	if (level > AV_LOG_ERROR)
		return;
	vsnprintf(video_words, sizeof(video_words), format, args);
	for (char *c = video_words; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = c[1] ? '?' : '\0';
}

const char *video_codec_words(const struct video_codec *codec)
{
	(void)codec;
	return video_words;
}

void video_codec_prepare(void)
{
	av_log_set_callback(video_keep_words);
	av_max_alloc(VIDEO_MOST_ALLOC);
}

static const AVCodec *video_decoder(enum AVCodecID id)
{
	static const enum AVCodecID native[] = {
	    AV_CODEC_ID_H264,  AV_CODEC_ID_HEVC,       AV_CODEC_ID_VP8,   AV_CODEC_ID_VP9,
	    AV_CODEC_ID_MPEG4, AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MJPEG, AV_CODEC_ID_THEORA,
	};
	static const char *const name[] = {"h264",  "hevc",       "vp8",   "vp9",
					   "mpeg4", "mpeg2video", "mjpeg", "theora"};

	if (id == AV_CODEC_ID_AV1)
		return avcodec_find_decoder_by_name("libdav1d");
	for (size_t i = 0; i < BASE_ARRAY_LEN(native); i++)
		if (native[i] == id)
			return avcodec_find_decoder_by_name(name[i]);
	return NULL;
}

static int video_codec_open(struct video_codec *codec, const AVCodec *decoder)
{
	AVCodecContext *context = avcodec_alloc_context3(decoder);
	int r;

	codec->context = context;
	codec->packet = av_packet_alloc();
	codec->frame = av_frame_alloc();
	if (!context || !codec->packet || !codec->frame)
		return AVERROR(ENOMEM);
	r = avcodec_parameters_to_context(context, codec->file->parameters);
	if (r < 0)
		return r;
	context->thread_count = 1;
	context->max_pixels = VIDEO_MOST_PIXELS;
	context->has_b_frames =
	    BASE_MAX(context->has_b_frames, (int)BASE_MIN(codec->file->delay, VIDEO_MOST_DELAY));
	context->err_recognition = AV_EF_CRCCHECK;
	if (codec->file->parameters->codec_id != AV_CODEC_ID_H264)
		context->err_recognition |= AV_EF_EXPLODE;
	return avcodec_open2(context, decoder, NULL);
}

int video_codec_new(const struct video_file *file, struct video_codec **ret,
		    struct pipeline_error *ret_error)
{
	const enum AVCodecID id = file->parameters->codec_id;
	const AVCodec *decoder = video_decoder(id);
	struct video_codec *codec;
	int r;

	if (!decoder)
		return video_fail(ret_error, PIPELINE_FAIL_REFUSED,
				  "its coding, %s, is not read: encode it anew",
				  avcodec_get_name(id));
	codec = calloc(1, sizeof(*codec));
	if (!codec)
		return -ENOMEM;
	codec->file = file;
	*video_words = '\0';
	r = video_codec_open(codec, decoder);
	if (r < 0) {
		video_codec_free(codec);
		return r == AVERROR(ENOMEM)
			   ? -ENOMEM
			   : video_fail(ret_error, PIPELINE_FAIL_DECODE, "%s",
					*video_words ? video_words : av_err2str(r));
	}
	*ret = codec;
	return 0;
}

void video_codec_free(struct video_codec *codec)
{
	if (!codec)
		return;
	avcodec_free_context(&codec->context);
	av_frame_free(&codec->frame);
	av_packet_free(&codec->packet);
	free(codec->bytes);
	free(codec);
}

void video_codec_reset(struct video_codec *codec)
{
	avcodec_flush_buffers(codec->context);
	*video_words = '\0';
}

/* Decoders that lack memory may say that it is the data. errno is 0 before. */
static int video_codec_answer(int r)
{
	return r >= 0 ? 0 : r == AVERROR(ENOMEM) || errno == ENOMEM ? -ENOMEM : PIPELINE_E_BAD;
}

/* Its bytes, and the zeros behind them; NULL: no memory. */
static const uint8_t *video_codec_bytes(struct video_codec *codec,
					const struct video_packet *packet)
{
	if (!base_grow(&codec->bytes, &codec->bytes_room, (size_t)packet->size + VIDEO_PADDING, 1))
		return NULL;
	memcpy(codec->bytes, video_file_bytes(codec->file, packet), packet->size);
	memset(codec->bytes + packet->size, 0, VIDEO_PADDING);
	return codec->bytes;
}

static int video_codec_parse(struct video_codec *codec, AVCodecParserContext *parser, int64_t *ret)
{
	const struct video_file *file = codec->file;
	int64_t period = 0, most = INT64_MIN;

	for (uint32_t i = 0; i < file->packets; i++) {
		const uint8_t *bytes = video_codec_bytes(codec, &file->packet[i]);
		uint8_t *out;
		int size;

		if (!bytes)
			return -ENOMEM;
		parser->output_picture_number = INT_MIN;
		av_parser_parse2(parser, codec->context, &out, &size, bytes,
				 (int)file->packet[i].size, AV_NOPTS_VALUE, AV_NOPTS_VALUE, 0);
		if (parser->output_picture_number == INT_MIN)
			return PIPELINE_E_BAD;
		/* A key frame that is not behind all before begins anew. */
		if (parser->key_frame == 1 && parser->output_picture_number <= most) {
			period++;
			most = INT64_MIN;
		}
		most = BASE_MAX(most, parser->output_picture_number);
		ret[i] = period * (INT64_C(1) << 33) + parser->output_picture_number;
	}
	return 0;
}

int video_codec_times(struct video_codec *codec, int64_t *ret)
{
	const enum AVCodecID id = codec->file->parameters->codec_id;
	AVCodecParserContext *parser;
	int rc;

	if (id != AV_CODEC_ID_H264 && id != AV_CODEC_ID_HEVC)
		return PIPELINE_E_BAD;
	parser = av_parser_init(id);
	if (!parser)
		return -ENOMEM;
	parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
	rc = video_codec_parse(codec, parser, ret);
	av_parser_close(parser);
	return rc;
}

int video_codec_put(struct video_codec *codec, uint32_t number, bool is_passed)
{
	const struct video_packet *packet;
	AVPacket *to = codec->packet;
	int r;

	errno = 0;
	if (number == UINT32_MAX)
		return video_codec_answer(avcodec_send_packet(codec->context, NULL));
	packet = &codec->file->packet[number];
	if (!video_codec_bytes(codec, packet))
		return -ENOMEM;
	to->data = codec->bytes;
	to->size = (int)packet->size;
	to->pts = number;
	to->dts = AV_NOPTS_VALUE;
	to->flags = packet->is_key ? AV_PKT_FLAG_KEY : 0;
	codec->context->skip_frame = is_passed ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
	*video_words = '\0';
	r = avcodec_send_packet(codec->context, to);
	/* It says so, and makes a grey picture in the place of the one that is missing. */
	if (r == 0 && strncmp(video_words, "Could not find ref", strlen("Could not find ref")) == 0)
		r = AVERROR_INVALIDDATA;
	return video_codec_answer(r);
}

int video_codec_take(struct video_codec *codec, struct video_picture *ret)
{
	AVFrame *frame = codec->frame;
	int r;

	errno = 0;
	r = avcodec_receive_frame(codec->context, frame);
	if (r == AVERROR(EAGAIN))
		return VIDEO_CODEC_E_MORE;
	if (r == AVERROR_EOF)
		return VIDEO_CODEC_E_END;
	if (r < 0)
		return video_codec_answer(r);
	for (unsigned i = 0; i < 4; i++) {
		ret->plane[i] = frame->data[i];
		ret->stride[i] = frame->linesize[i];
	}
	ret->height = (uint32_t)frame->height;
	ret->width = (uint32_t)frame->width;
	ret->format = frame->format;
	ret->matrix = frame->colorspace;
	ret->range = frame->color_range;
	ret->packet = frame->pts >= 0 && frame->pts < codec->file->packets ? (uint32_t)frame->pts
									   : UINT32_MAX;
	ret->is_damaged = frame->decode_error_flags || frame->flags & AV_FRAME_FLAG_CORRUPT;
	return 0;
}

/* ---- packets with two pictures ---- */

int video_unpack_new(struct AVCodecParameters *parameters, struct AVBSFContext **ret)
{
	const AVBitStreamFilter *filter = av_bsf_get_by_name("mpeg4_unpack_bframes");
	AVBSFContext *context = NULL;

	if (filter && av_bsf_alloc(filter, &context) == 0 &&
	    avcodec_parameters_copy(context->par_in, parameters) >= 0 &&
	    av_bsf_init(context) == 0 &&
	    avcodec_parameters_copy(parameters, context->par_out) >= 0) {
		*ret = context;
		return 0;
	}
	av_bsf_free(&context);
	return -ENOMEM;
}

bool video_unpack(struct AVBSFContext *unpack, struct AVPacket *packet)
{
	return av_bsf_send_packet(unpack, packet) == 0 &&
	       av_bsf_receive_packet(unpack, packet) == 0;
}

void video_unpack_free(struct AVBSFContext **unpack)
{
	av_bsf_free(unpack);
}

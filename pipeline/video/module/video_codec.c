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
	float *samples; /* of the frame */
	size_t samples_room;
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

/* How long the sound of a packet is. */
enum video_count { BY_FRAME, BY_PARSER, BY_BYTES, BY_TIME };

static const struct video_decoder {
	enum AVCodecID id;
	const char *name;
	enum video_count count;
} video_decoders[] = {
    {AV_CODEC_ID_H264, "h264", 0},
    {AV_CODEC_ID_HEVC, "hevc", 0},
    {AV_CODEC_ID_VP8, "vp8", 0},
    {AV_CODEC_ID_VP9, "vp9", 0},
    {AV_CODEC_ID_MPEG4, "mpeg4", 0},
    {AV_CODEC_ID_MPEG2VIDEO, "mpeg2video", 0},
    {AV_CODEC_ID_MJPEG, "mjpeg", 0},
    {AV_CODEC_ID_THEORA, "theora", 0},
    {AV_CODEC_ID_AV1, "libdav1d", 0},
    {AV_CODEC_ID_AAC, "aac", BY_FRAME},
    {AV_CODEC_ID_MP3, "mp3float", BY_FRAME},
    {AV_CODEC_ID_MP2, "mp2float", BY_BYTES},
    {AV_CODEC_ID_AC3, "ac3", BY_BYTES},
    {AV_CODEC_ID_EAC3, "eac3", BY_FRAME},
    {AV_CODEC_ID_OPUS, "opus", BY_PARSER},
    {AV_CODEC_ID_VORBIS, "vorbis", BY_PARSER},
    {AV_CODEC_ID_FLAC, "flac", BY_PARSER},
    {AV_CODEC_ID_ALAC, "alac", BY_TIME},
    {AV_CODEC_ID_ADPCM_MS, "adpcm_ms", BY_BYTES},
    {AV_CODEC_ID_ADPCM_IMA_WAV, "adpcm_ima_wav", BY_BYTES},
    {AV_CODEC_ID_PCM_U8, "pcm_u8", BY_BYTES},
    {AV_CODEC_ID_PCM_S8, "pcm_s8", BY_BYTES},
    {AV_CODEC_ID_PCM_S16LE, "pcm_s16le", BY_BYTES},
    {AV_CODEC_ID_PCM_S16BE, "pcm_s16be", BY_BYTES},
    {AV_CODEC_ID_PCM_S24LE, "pcm_s24le", BY_BYTES},
    {AV_CODEC_ID_PCM_S24BE, "pcm_s24be", BY_BYTES},
    {AV_CODEC_ID_PCM_S32LE, "pcm_s32le", BY_BYTES},
    {AV_CODEC_ID_PCM_S32BE, "pcm_s32be", BY_BYTES},
    {AV_CODEC_ID_PCM_F32LE, "pcm_f32le", BY_BYTES},
    {AV_CODEC_ID_PCM_F32BE, "pcm_f32be", BY_BYTES},
    {AV_CODEC_ID_PCM_ALAW, "pcm_alaw", BY_BYTES},
    {AV_CODEC_ID_PCM_MULAW, "pcm_mulaw", BY_BYTES},
};

static const struct video_decoder *video_decoder(enum AVCodecID id)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(video_decoders); i++)
		if (video_decoders[i].id == id)
			return &video_decoders[i];
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
	if (codec->file->parameters->codec_id != AV_CODEC_ID_H264 && !codec->file->is_sound)
		context->err_recognition |= AV_EF_EXPLODE;
	return avcodec_open2(context, decoder, NULL);
}

int video_codec_new(const struct video_file *file, struct video_codec **ret,
		    struct pipeline_error *ret_error)
{
	const enum AVCodecID id = file->parameters->codec_id;
	const struct video_decoder *known = video_decoder(id);
	const AVCodec *decoder = known ? avcodec_find_decoder_by_name(known->name) : NULL;
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
	free(codec->samples);
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

/* The head of that packet. 0 or -ENOMEM. */
static int video_codec_parse_one(struct video_codec *codec, AVCodecParserContext *parser,
				 const struct video_packet *packet)
{
	const uint8_t *bytes = video_codec_bytes(codec, packet);
	uint8_t *out;
	int size;

	if (!bytes)
		return -ENOMEM;
	parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
	parser->output_picture_number = INT_MIN;
	parser->duration = 0;
	av_parser_parse2(parser, codec->context, &out, &size, bytes, (int)packet->size,
			 AV_NOPTS_VALUE, AV_NOPTS_VALUE, 0);
	return 0;
}

static int video_codec_parse(struct video_codec *codec, AVCodecParserContext *parser, int64_t *ret)
{
	const struct video_file *file = codec->file;
	int64_t period = 0, most = INT64_MIN;

	for (uint32_t i = 0; i < file->packets; i++) {
		if (video_codec_parse_one(codec, parser, &file->packet[i]) != 0)
			return -ENOMEM;
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
	rc = video_codec_parse(codec, parser, ret);
	av_parser_close(parser);
	return rc;
}

/* What is not heard of a packet of sound, the decoder leaves out. 0 or -ENOMEM. */
static int video_codec_cut(const struct video_packet *packet, AVPacket *to)
{
	uint8_t *side;

	if (packet->shown == VIDEO_NOT_SHOWN)
		to->flags |= AV_PKT_FLAG_DISCARD;
	if (packet->cut[0] == 0 && packet->cut[1] == 0)
		return 0;
	side = av_packet_new_side_data(to, AV_PKT_DATA_SKIP_SAMPLES, 10);
	if (!side)
		return -ENOMEM;
	memset(side, 0, 10);
	for (unsigned i = 0; i < 8; i++)
		side[i] = (uint8_t)(packet->cut[i / 4] >> 8 * (i % 4));
	return 0;
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
	if (codec->file->is_sound && video_codec_cut(packet, to) != 0)
		return -ENOMEM;
	r = avcodec_send_packet(codec->context, to);
	av_packet_unref(to);
	/* It says so, and makes a grey picture in the place of the one that is missing. */
	if (r == 0 && strncmp(video_words, "Could not find ref", strlen("Could not find ref")) == 0)
		r = AVERROR_INVALIDDATA;
	return video_codec_answer(r);
}

static int video_codec_receive(struct video_codec *codec)
{
	int r;

	errno = 0;
	r = avcodec_receive_frame(codec->context, codec->frame);
	if (r == AVERROR(EAGAIN))
		return VIDEO_CODEC_E_MORE;
	return r == AVERROR_EOF ? VIDEO_CODEC_E_END : video_codec_answer(r);
}

int video_codec_take(struct video_codec *codec, struct video_picture *ret)
{
	const AVFrame *frame = codec->frame;
	const int r = video_codec_receive(codec);

	if (r != 0)
		return r;
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

/* ---- sound ---- */

/* One sample, as libswresample makes float of it. */
static float video_sample(const uint8_t *at, enum AVSampleFormat format)
{
	union {
		int16_t s16;
		int32_t s32;
		float f;
		double d;
	} of;

	memcpy(&of, at, (size_t)av_get_bytes_per_sample(format));
	switch (format) {
	case AV_SAMPLE_FMT_U8:
		return (float)(*at - 0x80) * (1.0f / (1 << 7));
	case AV_SAMPLE_FMT_S16:
		return (float)of.s16 * (1.0f / (1 << 15));
	case AV_SAMPLE_FMT_S32:
		return (float)of.s32 * (1.0f / (1u << 31));
	case AV_SAMPLE_FMT_DBL:
		return (float)of.d;
	default:
		return of.f;
	}
}

static uint32_t video_channels(const AVFrame *frame)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(59, 37, 100)
	return (uint32_t)frame->ch_layout.nb_channels;
#else
	return (uint32_t)frame->channels;
#endif
}

int video_codec_take_sound(struct video_codec *codec, struct video_samples *ret)
{
	const AVFrame *frame = codec->frame;
	const int r = video_codec_receive(codec);
	const bool is_planar = r == 0 && av_sample_fmt_is_planar(frame->format);
	enum AVSampleFormat format;
	uint32_t channels;
	size_t each;

	if (r != 0)
		return r;
	format = av_get_packed_sample_fmt(frame->format);
	channels = video_channels(frame);
	if (format < AV_SAMPLE_FMT_U8 || format > AV_SAMPLE_FMT_DBL || frame->nb_samples < 0)
		return PIPELINE_E_BAD;
	if (!base_grow(&codec->samples, &codec->samples_room, (size_t)frame->nb_samples * channels,
		       sizeof(*codec->samples)))
		return -ENOMEM;
	each = (size_t)av_get_bytes_per_sample(format);
	for (size_t i = 0; i < (size_t)frame->nb_samples; i++)
		for (uint32_t c = 0; c < channels; c++)
			codec->samples[i * channels + c] = video_sample(
			    is_planar ? frame->extended_data[c] + i * each
				      : frame->extended_data[0] + (i * channels + c) * each,
			    format);
	*ret = (struct video_samples){
	    .frame = codec->samples,
	    .n = (uint32_t)frame->nb_samples,
	    .channels = channels,
	    .rate = (uint32_t)BASE_MAX(frame->sample_rate, 0),
	    .packet = frame->pts >= 0 && frame->pts < codec->file->packets ? (uint32_t)frame->pts
									   : UINT32_MAX,
	};
	return 0;
}

static uint32_t video_codec_count_one(struct video_codec *codec, enum video_count how,
				      const struct video_packet *packet, int64_t duration,
				      const struct video_samples *seen)
{
	int64_t n = codec->context->frame_size ? codec->context->frame_size : (int64_t)seen->n;

	if (how == BY_PARSER)
		n = duration;
	else if (how == BY_BYTES)
		n = av_get_audio_frame_duration2(codec->file->parameters, (int)packet->size);
	else if (how == BY_TIME && packet->lasts_us > 0)
		n = av_rescale(packet->lasts_us, seen->rate, 1000000);
	return (uint32_t)BASE_MIN(BASE_MAX(n, 0), INT32_MAX);
}

int video_codec_count(struct video_codec *codec, const struct video_samples *seen, uint32_t *ret,
		      uint32_t *ret_whole)
{
	const struct video_file *file = codec->file;
	const struct video_decoder *known = video_decoder(file->parameters->codec_id);
	AVCodecParserContext *parser = NULL;
	uint64_t cut = 0; /* of the next one, too */
	int rc = 0;

	if (known->count == BY_PARSER)
		parser = av_parser_init(known->id);
	for (uint32_t i = 0; rc == 0 && i < file->packets; i++) {
		const struct video_packet *packet = &file->packet[i];
		uint64_t n, now;

		if (parser)
			rc = video_codec_parse_one(codec, parser, packet);
		n = video_codec_count_one(codec, known->count, packet,
					  parser ? parser->duration : 0, seen);
		if (i == seen->packet)
			*ret_whole = (uint32_t)n;
		cut = packet->cut[0] ? packet->cut[0] : cut;
		now = BASE_MIN(cut, n);
		cut -= now;
		n -= now;
		ret[i] = packet->shown == VIDEO_NOT_SHOWN
			     ? 0
			     : (uint32_t)(n - BASE_MIN(packet->cut[1], n));
	}
	av_parser_close(parser);
	return rc;
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

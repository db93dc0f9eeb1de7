/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers, by libavformat. It sees the file by a read from memory, may open nothing else, and is told by the file's first
 * bytes which of five kinds it is, so that no other of its demuxers is ever asked. Other streams than the one that is asked for are
 * passed over.
 *
 * A packet that lies in the file in one piece, as in MP4, AVI and nearly all of Matroska, is remembered by its place; one that
 * the container has in pieces (MPEG-TS, Ogg) is copied. All of them together are hardly larger than the file (Matroska may leave out
 * what their beginnings have in common): what is more is one that was made to be, as are tables that no such file needs.
 *
 * When a frame is shown is what the container says. AVI says nothing of order: for MPEG-2 and 4 the packets' kinds do, for H.264 and
 * HEVC their pictures' numbers, where these do not, decoding (is_order_open).
 *
 * The only file that includes libavformat's headers.
 */

#include "pipeline/video/module/video_file.h"

#include <iconv.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>

#include "pipeline/video/module/video_codec.h"
#include "pipeline/video/video_kind.h"

#define VIDEO_BUFFER (64 << 10)
#define VIDEO_NO_FRAME "a video without a frame: copy it anew"
#define VIDEO_STREAMS 16
#define VIDEO_TABLES (16 << 20)        /* bytes of a table for a file that has nothing else */
#define VIDEO_MORE ((uint64_t)1 << 20) /* bytes of packets more than the file has */
#define VIDEO_LEAST_MPEG4 20           /* bytes of a packet that has a picture for sure */
#define VIDEO_NEAR 64                  /* bytes of a container's own before a packet's */

struct video_source {
	const uint8_t *data;
	int64_t size, at;
	AVIOContext *io; /* owned; the context forgets it when it fails to open */
};

static int video_read(void *opaque, uint8_t *to, int room)
{
	struct video_source *source = opaque;
	const int64_t n = BASE_MIN(source->size - source->at, room);

	if (n <= 0)
		return AVERROR_EOF;
	memcpy(to, source->data + source->at, (size_t)n);
	source->at += n;
	return (int)n;
}

static int64_t video_seek(void *opaque, int64_t offset, int whence)
{
	struct video_source *source = opaque;

	if (whence & AVSEEK_SIZE)
		return source->size;
	whence &= ~AVSEEK_FORCE;
	if (whence == SEEK_CUR)
		offset += source->at;
	else if (whence == SEEK_END)
		offset += source->size;
	if (offset < 0 || offset > source->size)
		return AVERROR(EINVAL);
	return source->at = offset;
}

static int video_open_no_other(AVFormatContext *context, AVIOContext **io, const char *url,
			       int flags, AVDictionary **options)
{
	(void)context, (void)io, (void)url, (void)flags, (void)options;
	return AVERROR(EACCES);
}

/* MPEG-TS has names of programmes, in any of these: what iconv opens a file for it has then opened, and does not forget while
 * handles are kept. */
void video_file_prepare(void)
{
	static const char *const other[] = {"ISO6937", "UCS-2BE", "KSC_5601",
					    "GB2312",  "UTF-8",   "unknown"};
	static iconv_t kept[16 + BASE_ARRAY_LEN(other)];
	char name[24];

	if (kept[0]) /* once */
		return;
	for (unsigned i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "ISO-8859-%u", i + 1);
		kept[i] = iconv_open("UTF-8", name);
	}
	for (size_t i = 0; i < BASE_ARRAY_LEN(other); i++)
		kept[16 + i] = iconv_open("UTF-8", other[i]);
}

/* ---- what it is ---- */

static int video_refuse(int why, struct pipeline_error *ret_error)
{
	char text[AV_ERROR_MAX_STRING_SIZE];

	if (why == AVERROR(ENOMEM) && errno == ENOMEM)
		return -ENOMEM;
	if (why == AVERROR(ENOMEM)) /* more than av_max_alloc() */
		return video_fail(ret_error, PIPELINE_FAIL_REFUSED,
				  "tables larger than the file: copy it anew");
	if (why == AVERROR_INVALIDDATA || why == AVERROR_EOF)
		return video_fail(ret_error, PIPELINE_FAIL_DECODE,
				  "cut short or damaged: copy it anew");
	av_strerror(why, text, sizeof(text));
	return video_fail(ret_error, PIPELINE_FAIL_DECODE, "%s", text);
}

static int video_begin(struct video_source *source, AVFormatContext **ret,
		       struct pipeline_error *ret_error)
{
	const char *name = video_kind(source->data, (size_t)source->size);
	const AVInputFormat *format = name ? av_find_input_format(name) : NULL;
	uint8_t *buffer;
	AVFormatContext *context;
	int r;

	if (source->size == 0)
		return video_fail(ret_error, PIPELINE_FAIL_DECODE, "an empty file");
	if (!name)
		return video_fail(ret_error, PIPELINE_FAIL_DECODE,
				  "not MP4, Matroska, WebM, AVI, MPEG-TS or Ogg");
	if (!format)
		return video_fail(ret_error, PIPELINE_FAIL_REFUSED, "this FFmpeg reads no %s",
				  name);
	buffer = av_malloc(VIDEO_BUFFER);
	if (buffer)
		source->io = avio_alloc_context(buffer, VIDEO_BUFFER, 0, source, video_read, NULL,
						video_seek);
	if (!source->io) {
		av_free(buffer);
		return -ENOMEM;
	}
	context = avformat_alloc_context();
	if (!context)
		return -ENOMEM;
	context->pb = source->io;
	context->flags |= AVFMT_FLAG_CUSTOM_IO;
	context->io_open = video_open_no_other;
	context->max_streams = VIDEO_STREAMS;
	/* The process has no other thread: until video_end(). */
	av_max_alloc(BASE_MIN(VIDEO_MOST_ALLOC, VIDEO_TABLES + 2 * (size_t)source->size));
	errno = 0;
	context->protocol_whitelist = av_strdup("");
	r = avformat_open_input(&context, NULL, format, NULL); /* frees it, if it fails */
	if (r < 0)
		return video_refuse(r, ret_error);
	*ret = context;
	return 0;
}

static void video_end(struct video_source *source, AVFormatContext *context)
{
	avformat_close_input(&context);
	av_max_alloc(VIDEO_MOST_ALLOC);
	if (source->io)
		av_freep(&source->io->buffer);
	avio_context_free(&source->io);
}

static bool video_is_better(const AVStream *a, const AVStream *b)
{
	const bool is_default = a->disposition & AV_DISPOSITION_DEFAULT;

	if (is_default != !!(b->disposition & AV_DISPOSITION_DEFAULT))
		return is_default;
	return (int64_t)a->codecpar->width * a->codecpar->height >
	       (int64_t)b->codecpar->width * b->codecpar->height;
}

static AVStream *video_best(AVFormatContext *context, enum AVMediaType type)
{
	AVStream *best = NULL;

	for (unsigned i = 0; i < context->nb_streams; i++) {
		AVStream *stream = context->streams[i];

		stream->discard = AVDISCARD_ALL;
		if (stream->codecpar->codec_type == type &&
		    !(stream->disposition & AV_DISPOSITION_ATTACHED_PIC) &&
		    (!best || video_is_better(stream, best)))
			best = stream;
	}
	if (best)
		best->discard = AVDISCARD_DEFAULT;
	return best;
}

static const void *video_side(const AVStream *stream, enum AVPacketSideDataType type, size_t least)
{
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 16, 100)
	const AVPacketSideData *side = av_packet_side_data_get(
	    stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, type);

	return side && side->size >= least ? side->data : NULL;
#else
	size_t size = 0;
	const void *data = av_stream_get_side_data(stream, type, &size);

	return data && size >= least ? data : NULL;
#endif
}

static int video_copy_parameters(struct video_file *file, const AVStream *stream,
				 struct pipeline_error *ret_error)
{
	const uint32_t tag = stream->codecpar->codec_tag;

	if (tag == MKTAG('e', 'n', 'c', 'v') || tag == MKTAG('e', 'n', 'c', 'a') ||
	    video_side(stream, AV_PKT_DATA_ENCRYPTION_INIT_INFO, 0))
		return video_fail(ret_error, PIPELINE_FAIL_REFUSED, "it is encrypted");
	file->parameters = avcodec_parameters_alloc();
	if (!file->parameters || avcodec_parameters_copy(file->parameters, stream->codecpar) < 0)
		return -ENOMEM;
	return 0;
}

static int video_head_of(struct video_file *file, const AVStream *stream,
			 struct pipeline_error *ret_error)
{
	const int32_t *matrix = video_side(stream, AV_PKT_DATA_DISPLAYMATRIX, 9 * sizeof(*matrix));
	double angle = matrix ? av_display_rotation_get(matrix) : 0;

	if (!(angle >= -180 && angle <= 180)) /* of a matrix of zeros: none */
		angle = 0;
	file->quarters = 0;
	for (int q = 1; q < 4; q++)
		if ((int)(angle + (angle < 0 ? -0.5 : 0.5)) == (q == 3 ? 90 : -90 * q) ||
		    (q == 2 && (int)(angle + 0.5) == 180))
			file->quarters = (unsigned)q;
	switch (stream->codecpar->codec_id) {
	case AV_CODEC_ID_H264:
	case AV_CODEC_ID_HEVC:
	case AV_CODEC_ID_MPEG2VIDEO:
	case AV_CODEC_ID_MPEG4:
		file->is_reordered = true;
		break;
	default:
		file->is_reordered = false;
	}
	/* Others keep what they learn from such a picture, or have a part of the next one in its packet. */
	file->can_pass = stream->codecpar->codec_id == AV_CODEC_ID_H264 ||
			 stream->codecpar->codec_id == AV_CODEC_ID_HEVC ||
			 stream->codecpar->codec_id == AV_CODEC_ID_MPEG2VIDEO;
	return video_copy_parameters(file, stream, ret_error);
}

/* ---- packets ---- */

/* Where in the file its bytes are, in one piece. */
static bool video_place(const struct video_file *file, const AVPacket *packet, uint64_t *ret)
{
	const size_t size = (size_t)packet->size;

	if (packet->pos < 0)
		return false;
	for (uint64_t at = (uint64_t)packet->pos;
	     at <= (uint64_t)packet->pos + VIDEO_NEAR && at < file->size; at++) {
		if (size > file->size - at)
			return false;
		if (file->data[at] == packet->data[0] &&
		    memcmp(file->data + at, packet->data, size) == 0) {
			*ret = at;
			return true;
		}
	}
	return false;
}

static int video_copy(struct video_file *file, const AVPacket *packet, uint64_t *ret)
{
	const size_t size = (size_t)packet->size;

	if (!base_grow(&file->copied, &file->copied_room, file->copied_size + size, 1))
		return -ENOMEM;
	memcpy(file->copied + file->copied_size, packet->data, size);
	*ret = file->copied_size;
	file->copied_size += size;
	return 0;
}

/* Frames that a codec has for later ones only. */
static bool video_is_hidden(const struct video_file *file, const AVPacket *packet)
{
	const uint8_t *data = packet->data;

	if (file->parameters->codec_id == AV_CODEC_ID_VP8)
		return !(data[0] & 0x10);
	if (file->parameters->codec_id == AV_CODEC_ID_VP9) {
		const unsigned profile = (data[0] >> 5 & 1) | (data[0] >> 3 & 2);
		const unsigned at =
		    profile == 3 ? 2 : 3; /* of show_existing_frame, from the lowest bit */

		return (data[packet->size - 1] & 0xe0) != 0xc0 && !(data[0] >> at & 1) &&
		       !(data[0] >> (at - 2) & 1);
	}
	return false;
}

/* The kind of MPEG-4's picture: 0 I, 1 P, 2 B, 3 S; or -1. */
static int video_kind_of_mpeg4(const uint8_t *data, size_t size)
{
	const uint8_t *head = memmem(data, size, "\0\0\1\xb6", 4);

	return head && head + 4 < data + size ? head[4] >> 6 : -1;
}

/* AVI also calls the filler behind a key frame one. */
static bool video_is_key(const struct video_file *file, const AVPacket *packet)
{
	return packet->flags & AV_PKT_FLAG_KEY &&
	       (file->parameters->codec_id != AV_CODEC_ID_MPEG4 ||
		video_kind_of_mpeg4(packet->data, (size_t)packet->size) == 0);
}

/* So that their differences are in bounds. */
static int64_t video_time(int64_t time)
{
	const int64_t most = INT64_C(1) << 60;

	return time == AV_NOPTS_VALUE ? time : BASE_MIN(BASE_MAX(time, -most), most);
}

/* As the library's decoders take it. */
static void video_add_cut(const AVPacket *packet, uint32_t ret[2])
{
	size_t size = 0;
	const uint8_t *side = av_packet_get_side_data(packet, AV_PKT_DATA_SKIP_SAMPLES, &size);

	for (unsigned i = 0; i < 8 && side && size >= 10; i++)
		ret[i / 4] |= (uint32_t)side[i] << 8 * (i % 4);
}

static int video_add(struct video_file *file, const AVPacket *packet,
		     struct pipeline_error *ret_error)
{
	struct video_packet *to;
	int rc = 0;

	if (file->packets == VIDEO_MOST_HAS)
		return video_fail(ret_error, PIPELINE_FAIL_REFUSED, "more than %u %s",
				  VIDEO_MOST_HAS, file->is_sound ? "packets of sound" : "frames");
	if (!base_grow(&file->packet, &file->packet_room, file->packets + 1, sizeof(*to)))
		return -ENOMEM;
	if (file->packets > 0 && av_packet_get_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, NULL))
		return video_fail(ret_error, PIPELINE_FAIL_REFUSED,
				  "its coding changes midway: encode it anew");
	if (av_packet_get_side_data(packet, AV_PKT_DATA_ENCRYPTION_INFO, NULL))
		return video_fail(ret_error, PIPELINE_FAIL_REFUSED, "it is encrypted");
	file->bytes += (uint64_t)packet->size;
	if (file->bytes > file->size + VIDEO_MORE)
		return video_fail(ret_error, PIPELINE_FAIL_REFUSED,
				  "packets larger than the file: copy it anew");
	to = &file->packet[file->packets];
	*to = (struct video_packet){
	    .time = video_time(packet->pts),
	    .decoded = video_time(packet->dts),
	    .lasts_us = packet->duration,
	    .size = (uint32_t)packet->size,
	    .is_key = video_is_key(file, packet),
	    .shown = packet->flags & AV_PKT_FLAG_DISCARD || video_is_hidden(file, packet)
			 ? VIDEO_NOT_SHOWN
			 : 0,
	};
	video_add_cut(packet, to->cut);
	if (!video_place(file, packet, &to->at)) {
		to->is_copied = true;
		rc = video_copy(file, packet, &to->at);
	}
	if (rc == 0)
		file->packets++;
	return rc;
}

static int video_add_all(struct video_file *file, AVFormatContext *context, const AVStream *stream,
			 struct pipeline_error *ret_error)
{
	const AVRational us = {1, 1000000};
	const bool is_mpeg4 = file->parameters->codec_id == AV_CODEC_ID_MPEG4;
	struct AVBSFContext *unpack = NULL;
	AVPacket *packet = av_packet_alloc();
	int rc = packet ? 0 : -ENOMEM;
	int r = 0;

	if (rc == 0 && is_mpeg4)
		rc = video_unpack_new(file->parameters, &unpack);
	while (rc == 0 && (r = av_read_frame(context, packet)) >= 0) {
		if (file->is_sound)
			av_packet_rescale_ts(packet, stream->time_base, us);
		if (packet->stream_index == stream->index && packet->size > 0 &&
		    (!unpack || (video_unpack(unpack, packet) && packet->size > 0)))
			rc = video_add(file, packet, ret_error);
		av_packet_unref(packet);
	}
	av_packet_free(&packet);
	video_unpack_free(&unpack);
	if (rc == 0 && ((file->packets == 0 && r != AVERROR_EOF) || r == AVERROR(ENOMEM)))
		rc = video_refuse(r, ret_error);
	return rc;
}

/* ---- what is shown ---- */

/* As of MPEG-4. */
static int video_kind_of_mpeg2(const uint8_t *data, size_t size)
{
	const uint8_t *head = memmem(data, size, "\0\0\1\0", 4);

	return head && head + 5 < data + size ? (head[5] >> 3 & 7) - 1 : -1;
}

/* MPEG-2 and MPEG-4: a picture that others are made of is shown when the next such is decoded. false: a packet is so small that it may be no
 * picture, but "as the one before". */
static bool video_order_by_kind(struct video_file *file)
{
	const bool is_mpeg4 = file->parameters->codec_id == AV_CODEC_ID_MPEG4;
	struct video_packet *held = NULL;
	int64_t time = 0;

	for (uint32_t i = 0; i < file->packets; i++) {
		struct video_packet *packet = &file->packet[i];
		const uint8_t *data = video_file_bytes(file, packet);
		const int kind = is_mpeg4 ? video_kind_of_mpeg4(data, packet->size)
					  : video_kind_of_mpeg2(data, packet->size);
		const bool is_b = kind == 2;

		if (kind < 0 || (is_mpeg4 && packet->size < VIDEO_LEAST_MPEG4))
			return false;
		if (!is_b) {
			if (held)
				held->time = time++;
			held = packet;
		} else {
			packet->time = time++;
		}
	}
	if (held)
		held->time = time;
	return true;
}

static int video_compare(const void *a, const void *b, void *packets)
{
	const struct video_packet *packet = packets;
	const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
	const int64_t x = packet[one].time, y = packet[other].time;

	if (x != y)
		return x < y ? -1 : 1;
	return one < other ? -1 : one > other;
}

void video_file_sort(const struct video_file *file, uint32_t *packet, uint32_t n)
{
	qsort_r(packet, n, sizeof(*packet), video_compare, file->packet);
}

static int video_show(struct video_file *file, struct pipeline_error *ret_error)
{
	uint32_t first = 0, most = 0;

	while (first < file->packets && !file->packet[first].is_key)
		first++;
	if (first == file->packets)
		return video_fail(ret_error, PIPELINE_FAIL_DECODE,
				  file->packets ? "no key frame: encode it anew" : VIDEO_NO_FRAME);
	if (!base_grow(&file->shown, &file->shown_room, file->packets, sizeof(*file->shown)) ||
	    !base_grow(&file->time_us, &file->time_room, file->packets, sizeof(*file->time_us)))
		return -ENOMEM;
	file->frames = 0;
	for (uint32_t i = 0; i < file->packets; i++) {
		struct video_packet *packet = &file->packet[i];
		/* What is shown before the first key frame is made of what is not there. */
		const bool is_there = i >= first && (!file->is_reordered || file->is_order_open ||
						     packet->time >= file->packet[first].time);

		if (is_there && packet->shown != VIDEO_NOT_SHOWN)
			file->shown[file->frames++] = i;
		packet->shown = VIDEO_NOT_SHOWN;
	}
	if (file->frames == 0)
		return video_fail(ret_error, PIPELINE_FAIL_DECODE, VIDEO_NO_FRAME);
	video_file_sort(file, file->shown, file->frames);
	for (uint32_t n = 0; n < file->frames; n++)
		file->packet[file->shown[n]].shown = n;
	for (uint32_t n = 0; n < file->frames; n++) {
		most = BASE_MAX(most, file->shown[n]);
		file->delay = BASE_MAX(file->delay, most - file->shown[n]);
	}
	if (file->is_order_open)
		file->delay = VIDEO_MOST_DELAY;
	return 0;
}

/* Of pictures that come out when others go in: the times of those. Behind the last, in the step of the last two. */
static void video_times_of_places(struct video_file *file)
{
	const uint32_t delay = file->is_order_open ? 0 : file->delay, n = file->frames;
	const uint32_t from = BASE_MIN(delay, n - 1);
	int64_t *time = file->time_us, step;
	uint32_t i = 0;

	for (uint32_t p = 0; p < file->packets; p++)
		if (file->packet[p].shown != VIDEO_NOT_SHOWN)
			time[i++] = file->packet[p].decoded;
	/* the steps of all are in bounds, too */
	step = n > 1 ? BASE_MIN(time[n - 1] - time[n - 2], (INT64_C(1) << 60) / n) : 0;
	memmove(time, time + from, (n - from) * sizeof(*time));
	for (i = n - from; i < n; i++)
		time[i] = time[i - 1] + step;
}

static void video_times(struct video_file *file, AVRational unit, bool is_guess)
{
	int64_t *time = file->time_us, first;

	if (is_guess)
		video_times_of_places(file);
	for (uint32_t n = 0; n < file->frames && !is_guess; n++)
		time[n] = file->packet[file->shown[n]].time;
	first = time[0];
	file->start_us = av_rescale_q(first, unit, (AVRational){1, 1000000});
	file->start_us = BASE_MIN(BASE_MAX(file->start_us, -VIDEO_MOST_US), VIDEO_MOST_US);
	for (uint32_t n = 0; n < file->frames; n++) {
		time[n] = av_rescale_q(time[n] - first, unit, (AVRational){1, 1000000});
		if (n > 0 && time[n] < time[n - 1])
			time[n] = time[n - 1];
	}
}

void video_file_order(struct video_file *file, const uint32_t *packet, uint32_t n)
{
	uint32_t kept = 0, of = 0;

	for (uint32_t i = 0; i < file->packets; i++)
		file->packet[i].time =
		    file->packet[i].shown == VIDEO_NOT_SHOWN ? -1 : (int64_t)of++;
	for (uint32_t i = 0; i < file->packets; i++)
		file->packet[i].shown = VIDEO_NOT_SHOWN;
	file->frames = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct video_packet *at = &file->packet[packet[i]];

		if (at->time < 0 || at->shown != VIDEO_NOT_SHOWN)
			continue;
		file->shown[file->frames] = packet[i];
		at->shown = file->frames++;
	}
	for (uint32_t i = 0; i < file->packets; i++) {
		struct video_packet *at = &file->packet[i];

		if (at->shown == VIDEO_NOT_SHOWN) {
			at->is_key = false;
			continue;
		}
		file->time_us[kept++] = file->time_us[at->time];
		at->time = at->shown;
	}
	file->start_us += kept ? BASE_MIN(file->time_us[0], VIDEO_MOST_US) : 0;
	for (uint32_t i = file->frames; i-- > 0;)
		file->time_us[i] -= file->time_us[0];
	file->is_order_open = false;
}

/* Matroska does not say of pictures when they are shown if that is before the file's beginning, as it is of those that were cut
 * off from what they are made of: before the first key frame, then. */
static void video_time_leading(struct video_file *file)
{
	uint32_t first = 0, last;

	while (first < file->packets && !file->packet[first].is_key)
		first++;
	for (last = first + 1; last < file->packets && file->packet[last].time == AV_NOPTS_VALUE;)
		last++;
	if (last >= file->packets || file->packet[first].time == AV_NOPTS_VALUE)
		return;
	while (--last > first)
		file->packet[last].time = file->packet[first].time - 1;
}

/* Where the container does not say in which order pictures are shown. */
static bool video_guess_order(struct video_file *file, const AVFormatContext *context)
{
	bool is_told = !file->is_reordered || strcmp(context->iformat->name, "avi") != 0;

	if (is_told && file->is_reordered)
		video_time_leading(file);
	for (uint32_t i = 0; i < file->packets; i++)
		is_told = is_told && file->packet[i].time != AV_NOPTS_VALUE;
	if (is_told)
		return false;
	for (uint32_t i = 0; i < file->packets; i++)
		file->packet[i].time = i;
	file->is_order_open =
	    file->is_reordered && ((file->parameters->codec_id != AV_CODEC_ID_MPEG4 &&
				    file->parameters->codec_id != AV_CODEC_ID_MPEG2VIDEO) ||
				   !video_order_by_kind(file));
	for (uint32_t i = 0; i < file->packets && file->is_order_open; i++)
		file->packet[i].time = i;
	return true;
}

/* Times of decoding that are not all there, or not in order: one unit each. */
static void video_mend_decoded(struct video_file *file)
{
	bool is_good = true;

	for (uint32_t i = 0; i < file->packets; i++)
		is_good = is_good && file->packet[i].decoded != AV_NOPTS_VALUE &&
			  (i == 0 || file->packet[i].decoded >= file->packet[i - 1].decoded);
	for (uint32_t i = 0; i < file->packets && !is_good; i++)
		file->packet[i].decoded = i;
}

static int video_file_read(struct video_file *file, AVFormatContext *context,
			   struct pipeline_error *ret_error)
{
	AVStream *stream = video_best(context, AVMEDIA_TYPE_VIDEO);
	bool is_guess = false;
	int rc;

	if (!stream)
		return video_fail(ret_error, PIPELINE_FAIL_DECODE,
				  context->nb_streams ? "no video in it, only sound or pictures"
						      : "nothing in it");
	rc = video_head_of(file, stream, ret_error);
	if (rc == 0)
		rc = video_add_all(file, context, stream, ret_error);
	if (rc == 0) {
		is_guess = video_guess_order(file, context);
		rc = video_show(file, ret_error);
	}
	if (rc == 0) {
		video_mend_decoded(file);
		video_times(file, stream->time_base, is_guess);
	}
	return rc;
}

static int video_file_read_sound(struct video_file *file, AVFormatContext *context,
				 struct pipeline_error *ret_error)
{
	const AVStream *stream = video_best(context, AVMEDIA_TYPE_AUDIO);
	int rc = stream ? video_copy_parameters(file, stream, ret_error) : 0;

	return rc || !stream ? rc : video_add_all(file, context, stream, ret_error);
}

typedef int video_read_fn(struct video_file *file, AVFormatContext *context,
			  struct pipeline_error *ret_error);

static int video_file_open_by(struct video_file *file, const void *data, size_t size,
			      video_read_fn *fn, struct pipeline_error *ret_error)
{
	struct video_source source = {.data = data, .size = (int64_t)size};
	AVFormatContext *context = NULL;
	int rc;

	video_file_close(file);
	file->data = data;
	file->size = size;
	rc = video_begin(&source, &context, ret_error);
	if (rc == 0)
		rc = fn(file, context, ret_error);
	video_end(&source, context);
	return rc;
}

int video_file_open(struct video_file *file, const void *data, size_t size,
		    struct pipeline_error *ret_error)
{
	file->is_sound = false;
	return video_file_open_by(file, data, size, video_file_read, ret_error);
}

int video_file_open_sound(struct video_file *file, const void *data, size_t size,
			  struct pipeline_error *ret_error)
{
	file->is_sound = true;
	return video_file_open_by(file, data, size, video_file_read_sound, ret_error);
}

void video_file_size(const struct video_file *file, uint32_t *ret_height, uint32_t *ret_width)
{
	*ret_height = (uint32_t)BASE_MAX(file->parameters->height, 0);
	*ret_width = (uint32_t)BASE_MAX(file->parameters->width, 0);
}

void video_file_close(struct video_file *file)
{
	avcodec_parameters_free(&file->parameters);
	file->copied_size = 0;
	file->bytes = 0;
	video_trim(&file->copied, &file->copied_room, 1);
	video_trim(&file->packet, &file->packet_room, sizeof(*file->packet));
	video_trim(&file->shown, &file->shown_room, sizeof(*file->shown));
	video_trim(&file->time_us, &file->time_room, sizeof(*file->time_us));
	file->packets = file->frames = file->delay = 0;
	file->is_order_open = false;
}

void video_file_fini(struct video_file *file)
{
	video_file_close(file);
	free(file->copied);
	free(file->packet);
	free(file->shown);
	free(file->time_us);
}

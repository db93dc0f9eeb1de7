/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A video file in memory: the packets of one of its streams, of the pictures or of the sound, in the order of decoding, and which of them
 * are shown, when. All of them are read once; afterwards a packet is a place in the file, so nothing ever seeks by a container's index.
 */

#include "pipeline/video/module/video_error.h"
#include "pipeline/video/video.h"

#define VIDEO_KEEP ((size_t)32 << 20) /* bytes of a buffer, from file to file */
#define VIDEO_NOT_SHOWN UINT32_MAX
#define VIDEO_MOST_DELAY 16                /* of any coding */
#define VIDEO_MOST_ALLOC ((size_t)1 << 30) /* of the libraries, in one piece */
#define VIDEO_PADDING 64                   /* zeros that FFmpeg's decoders want behind a packet */

struct AVCodecParameters;

struct video_packet {
	int64_t
	    time; /* when it is shown, in the stream's unit: of order alone, once the file is open */
	int64_t decoded;  /* when it is decoded */
	int64_t lasts_us; /* 0: not said */
	uint64_t at;      /* in the file, or in copied */
	uint32_t size;
	uint32_t shown;  /* its frame's number among those shown, or VIDEO_NOT_SHOWN */
	uint32_t cut[2]; /* samples of sound that are not heard, at its beginning and its end */
	bool is_key, is_copied;
};

struct video_file {
	const uint8_t *data; /* borrowed */
	size_t size;
	struct AVCodecParameters *parameters; /* owned */
	uint8_t *copied;                      /* packets that the container has in pieces */
	size_t copied_size, copied_room;
	uint64_t bytes; /* of all packets */
	struct video_packet *packet;
	size_t packet_room;
	uint32_t packets;
	uint32_t *shown; /* the packets of the frames that are shown, as they are */
	int64_t *time_us, start_us;
	size_t shown_room, time_room;
	bool is_sound;
	uint32_t frames;
	uint32_t delay; /* how many frames are decoded at most before one that is shown earlier */
	unsigned quarters; /* to the right, when it is shown */
	bool
	    is_reordered; /* its kind of coding has frames that are shown later than they are coded */
	bool is_order_open; /* the container does not tell the order */
	bool can_pass; /* a packet whose picture nobody wants may be kept from the decoder's work */
};

/* What a large file needed is not kept for small ones. */
static inline void video_trim(void *pointer_to_pointer, size_t *room, size_t each)
{
	void **pointer = (void **)pointer_to_pointer;

	if (*room * each <= VIDEO_KEEP)
		return;
	free(*pointer);
	*pointer = NULL;
	*room = 0;
}

/* Before a sandbox. */
void video_file_prepare(void);
/* Memory is kept from file to file, but what is large: all zeros is none. 0, or PIPELINE_E_BAD with *ret_error, or -ENOMEM. */
int video_file_open(struct video_file *file, const void *data, size_t size,
		    struct pipeline_error *ret_error);
/* The same of its sound: packets alone, whose times are microseconds. parameters stay NULL where it has none. */
int video_file_open_sound(struct video_file *file, const void *data, size_t size,
			  struct pipeline_error *ret_error);
/* Packets, in the order of their times. */
void video_file_sort(const struct video_file *file, uint32_t *packet, uint32_t n);
/* Of one whose order was open, what decoding showed, or the pictures' numbers: so many packets in this order, all others not at all. */
void video_file_order(struct video_file *file, const uint32_t *packet, uint32_t n);
/* Of a frame, as the container says, which may be anything. */
void video_file_size(const struct video_file *file, uint32_t *ret_height, uint32_t *ret_width);
void video_file_close(struct video_file *file);
void video_file_fini(struct video_file *file);
static inline const uint8_t *video_file_bytes(const struct video_file *file,
					      const struct video_packet *packet)
{
	return (packet->is_copied ? file->copied : file->data) + packet->at;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* zstd: frames, one behind the other, and a frame within something else. */

#include "convert/convert.h"

#include <zstd.h>
#include <zstd_errors.h>

static int why_not(size_t error)
{
	switch (ZSTD_getErrorCode(error)) {
	case ZSTD_error_frameParameter_windowTooLarge:
		return UNPACK_E_WINDOW;
	case ZSTD_error_memory_allocation:
		return UNPACK_E_MEMORY;
	default:
		return UNPACK_E_DAMAGED;
	}
}

static int unpack_frames(struct unpack_pipe *pipe, ZSTD_DStream *stream)
{
	size_t left = 0; /* of the frame; 0: it is whole */

	for (;;) {
		ZSTD_inBuffer in = {pipe->in, 0, 0};
		ZSTD_outBuffer out = {pipe->out, sizeof(pipe->out), sizeof(pipe->out)};

		if (!pipe->read(pipe))
			return UNPACK_E_READ;
		if (pipe->in_bytes == 0)
			return left ? UNPACK_E_CUT : 0;
		in.size = pipe->in_bytes;
		while (in.pos < in.size || out.pos == out.size) {
			out.pos = 0;
			left = ZSTD_decompressStream(stream, &out, &in);
			if (ZSTD_isError(left))
				return why_not(left);
			if (!pipe->write(pipe, out.pos))
				return UNPACK_E_WRITE;
			if (left == 0 && in.pos == in.size)
				break;
		}
	}
}

int unpack_zstd(struct unpack_pipe *pipe)
{
	ZSTD_DStream *stream = ZSTD_createDStream();
	const int r = stream ? unpack_frames(pipe, stream) : UNPACK_E_MEMORY;

	ZSTD_freeDStream(stream);
	return r;
}

/* ---- one frame ---- */

void unpack_frame_new(struct unpack_frame *frame)
{
	frame->context = ZSTD_createDCtx();
}

void unpack_frame_free(struct unpack_frame *frame)
{
	ZSTD_freeDCtx(frame->context);
}

void unpack_frame_begin(struct unpack_frame *frame)
{
	ZSTD_DCtx_reset(frame->context, ZSTD_reset_session_only);
}

int unpack_frame_step(struct unpack_frame *frame, struct unpack_piece *piece)
{
	ZSTD_inBuffer in = {piece->from, piece->size, 0};
	ZSTD_outBuffer out = {piece->to, piece->room, 0};
	const size_t left = ZSTD_decompressStream(frame->context, &out, &in);

	piece->taken = in.pos;
	piece->made = out.pos;
	return ZSTD_isError(left) ? why_not(left) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* zstd: frames, one behind the other. */

#include "convert/convert.h"

#include <zstd.h>
#include <zstd_errors.h>

static int why_not(size_t error)
{
	return ZSTD_getErrorCode(error) == ZSTD_error_frameParameter_windowTooLarge
		   ? UNPACK_E_WINDOW
		   : UNPACK_E_DAMAGED;
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
	const int r = stream ? unpack_frames(pipe, stream) : UNPACK_E_READ;

	ZSTD_freeDStream(stream);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/video/video_kind.h"

const char *video_kind(const uint8_t *data, size_t size)
{
	static const char *const atom[] = {"ftyp", "moov", "mdat", "free", "skip",
					   "wide", "pnot", "styp", "uuid"};

	if (size >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "AVI", 3) == 0)
		return "avi";
	if (size >= 4 && memcmp(data, "\x1a\x45\xdf\xa3", 4) == 0)
		return "matroska";
	if (size >= 4 && memcmp(data, "OggS", 4) == 0)
		return "ogg";
	for (size_t i = 0; size >= 8 && i < BASE_ARRAY_LEN(atom); i++)
		if (memcmp(data + 4, atom[i], 4) == 0)
			return "mov";
	for (size_t lead = 0; lead <= 4;
	     lead += 4) /* 4: with times before each piece, as cameras write it */
		if (size > 2 * (188 + lead) + lead && data[lead] == 0x47 &&
		    data[188 + 2 * lead] == 0x47 && data[2 * 188 + 3 * lead] == 0x47)
			return "mpegts";
	return NULL;
}

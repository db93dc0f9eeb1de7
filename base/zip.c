/* SPDX-License-Identifier: Apache-2.0 */

/* Records of zip archives (APPNOTE.TXT 6.3.10). */

#include "base/zip.h"

#include "base/base.h"
#include "base/little.h"

#define ZIP_HEADER_BEGIN UINT32_C(0x04034b50)
#define ZIP_ENTRY_BEGIN UINT32_C(0x02014b50)
#define ZIP_END_BEGIN UINT32_C(0x06054b50)
#define ZIP_END_64_BEGIN UINT32_C(0x06064b50)
#define ZIP_LOCATOR_BEGIN UINT32_C(0x07064b50)
#define ZIP_EXTRA_64 1
#define ZIP_OF_DOS 0
#define ZIP_UNIX_TYPE 0170000u
#define ZIP_UNIX_LINK 0120000u

/* A comment may have another's first bytes in it: the end is the record behind whose comment the file ends. */
size_t zip_end(const uint8_t *bytes, size_t size, struct zip_end *ret)
{
	size_t at = size < ZIP_END ? 0 : size - ZIP_END + 1;

	while (at-- > 0) {
		const uint8_t *end = bytes + at;

		if (little_32(end) != ZIP_END_BEGIN || little_16(end + 20) != size - at - ZIP_END)
			continue;
		*ret = (struct zip_end){
		    .directory = little_32(end + 16),
		    .bytes = little_32(end + 12),
		    .is_split = little_16(end + 4) != little_16(end + 6) ||
				(little_16(end + 4) != 0 && little_16(end + 4) != UINT16_MAX),
		};
		return at;
	}
	return SIZE_MAX;
}

bool zip_locator(const uint8_t bytes[ZIP_LOCATOR], uint64_t *ret)
{
	*ret = little_64(bytes + 8);
	return little_32(bytes) == ZIP_LOCATOR_BEGIN;
}

bool zip_end_64(const uint8_t bytes[ZIP_END_64], struct zip_end *ret)
{
	*ret = (struct zip_end){
	    .directory = little_64(bytes + 48),
	    .bytes = little_64(bytes + 40),
	    .is_split = little_32(bytes + 16) != 0 || little_32(bytes + 20) != 0,
	};
	return little_32(bytes) == ZIP_END_64_BEGIN;
}

/* Of what is extra to an entry the next number of Zip64's, for one that has no room. */
static bool take_64(const uint8_t **at, const uint8_t *end, uint64_t *number)
{
	if (*number != UINT32_MAX)
		return true;
	if (end - *at < 8)
		return false;
	*number = little_64(*at);
	*at += 8;
	return true;
}

static bool take_extra(const uint8_t *extra, size_t size, struct zip_entry *entry)
{
	const uint8_t *end = extra + size;

	while (end - extra >= 4) {
		const unsigned id = little_16(extra);
		const size_t bytes = little_16(extra + 2);
		const uint8_t *at = extra + 4;

		if (bytes > (size_t)(end - at))
			break;
		extra = at + bytes;
		if (id == ZIP_EXTRA_64)
			return take_64(&at, extra, &entry->size) &&
			       take_64(&at, extra, &entry->packed) &&
			       take_64(&at, extra, &entry->header);
	}
	return entry->size != UINT32_MAX && entry->packed != UINT32_MAX &&
	       entry->header != UINT32_MAX;
}

size_t zip_entry(const uint8_t *bytes, size_t size, struct zip_entry *ret)
{
	size_t name, extra, all;
	unsigned disk;

	if (size < ZIP_ENTRY)
		return 0;
	if (little_32(bytes) != ZIP_ENTRY_BEGIN)
		return SIZE_MAX;
	name = little_16(bytes + 28);
	extra = little_16(bytes + 30);
	all = ZIP_ENTRY + name + extra + little_16(bytes + 32);
	if (size < all)
		return 0;
	disk = little_16(bytes + 34);
	*ret = (struct zip_entry){
	    .flags = little_16(bytes + 8),
	    .method = little_16(bytes + 10),
	    .is_link = bytes[5] == ZIP_OF_UNIX &&
		       (little_32(bytes + 38) >> 16 & ZIP_UNIX_TYPE) == ZIP_UNIX_LINK,
	    .is_dos = bytes[5] == ZIP_OF_DOS,
	    .is_split = disk != 0 && disk != UINT16_MAX,
	    .crc = little_32(bytes + 16),
	    .packed = little_32(bytes + 20),
	    .size = little_32(bytes + 24),
	    .header = little_32(bytes + 42),
	    .name = bytes + ZIP_ENTRY,
	    .name_bytes = name,
	};
	return take_extra(bytes + ZIP_ENTRY + name, extra, ret) ? all : SIZE_MAX;
}

bool zip_header(const uint8_t bytes[ZIP_HEADER], struct zip_header *ret)
{
	*ret = (struct zip_header){
	    .flags = little_16(bytes + 6),
	    .method = little_16(bytes + 8),
	    .crc = little_32(bytes + 14),
	    .packed = little_32(bytes + 18),
	    .size = little_32(bytes + 22),
	    .name_bytes = little_16(bytes + 26),
	    .bytes = ZIP_HEADER + (size_t)little_16(bytes + 26) + little_16(bytes + 28),
	};
	return little_32(bytes) == ZIP_HEADER_BEGIN;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_SOURCE_TAR_HEADER_H
#define STORAGE_SOURCE_TAR_HEADER_H

/* A header of a tar archive, of POSIX.1-1988: the block before a file's bytes. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TAR_BLOCK 512 /* headers are one; files are filled up to a multiple */

struct tar_header { /* numbers are octal digits */
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char linkname[100], magic[6], version[2], uname[32], gname[32], major[8], minor[8];
	char prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is a block");

/* The sum of its bytes, the checksum's as blanks. */
static inline unsigned tar_header_sum(const struct tar_header *header)
{
	uint8_t bytes[TAR_BLOCK];
	unsigned sum = 0;

	memcpy(bytes, header, sizeof(bytes));
	memset(bytes + offsetof(struct tar_header, checksum), ' ', sizeof(header->checksum));
	for (size_t i = 0; i < sizeof(bytes); i++)
		sum += bytes[i];
	return sum;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Zip archives: the records that they are made of, as they are read. No I/O and no memory; all bytes are a stranger's.
 *
 *   header, bytes | header, bytes | ... | directory: an entry for each | end
 *
 * The end is found from behind, and says where the directory is. With Zip64 there is one more end, of larger numbers, and a
 * locator of it before the other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZIP_HEADER 30 /* bytes of the records, as far as they are the same in all */
#define ZIP_ENTRY 46
#define ZIP_END 22
#define ZIP_END_64 56
#define ZIP_LOCATOR 20
#define ZIP_MOST_TEXT 65535 /* bytes of a name, of what is extra, of a comment */
#define ZIP_MOST_ENTRY (ZIP_ENTRY + 3 * ZIP_MOST_TEXT)

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };
#define ZIP_FLAGS_ENCRYPTED (1u | 1u << 6 | 1u << 13) /* the bytes, or all that is said of them */
#define ZIP_FLAG_UTF8 (1u << 11)                      /* the name is */
#define ZIP_OF_UNIX 3
#define ZIP_FLAG_LATER (1u << 3) /* checksum and sizes are behind the bytes, not in the header */

struct zip_end {
	uint64_t directory, bytes; /* where it begins, and how many it has */
	bool is_split;             /* other files belong to the archive */
};
/* The end, which the last bytes of a file have. Where it begins in them; SIZE_MAX: there is none. */
size_t zip_end(const uint8_t *bytes, size_t size, struct zip_end *ret);
/* A locator: where the end of Zip64 begins. false: it is none. */
bool zip_locator(const uint8_t bytes[ZIP_LOCATOR], uint64_t *ret);
/* false: it is none. */
bool zip_end_64(const uint8_t bytes[ZIP_END_64], struct zip_end *ret);

struct zip_entry {
	unsigned flags, method;
	bool is_link;  /* its bytes are a path */
	bool is_dos;   /* it is of DOS or Windows: older programs have put \ into paths for / */
	bool is_split; /* they are in another file */
	uint32_t crc;  /* CRC-32 of what is in it */
	uint64_t packed, size; /* bytes as they lie there, and of what is in them */
	uint64_t header;       /* where that begins */
	const uint8_t *name;   /* not terminated */
	size_t name_bytes;
};
/* One of the directory's. Bytes of the whole record; 0: so many are not there; SIZE_MAX: it is none. */
size_t zip_entry(const uint8_t *bytes, size_t size, struct zip_entry *ret);

struct zip_header {
	unsigned flags, method;
	uint32_t crc, packed,
	    size; /* as far as flags say, and not all ones, which stand for Zip64 */
	size_t name_bytes;
	size_t bytes; /* of the header with name and extra, behind which those of the file begin */
};
/* false: it is none. bytes: ZIP_HEADER of them. */
bool zip_header(const uint8_t bytes[ZIP_HEADER], struct zip_header *ret);

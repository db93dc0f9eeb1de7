/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tar archives: headers as they are written, and a walk from file to file as they are read. The walk says which bytes
 * it wants next and is fed them; it does no I/O and takes no memory but its own, so it goes over a shard as well as
 * over a sample's bytes. They are a stranger's: whatever they are, each step takes it nearer to the end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TAR_BLOCK 512                     /* headers are one; files are filled up to a multiple */
#define TAR_MOST_WANT (UINT32_C(1) << 20) /* bytes that may be wanted at a time */
#define TAR_MOST_PATH 4096                /* bytes of a path, with its NUL */

/* The block before a file's bytes, of POSIX.1-1988. */
struct tar_header { /* numbers are octal digits */
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char linkname[100], magic[6], version[2], uname[32], gname[32], major[8], minor[8];
	char prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is a block");

/* The sum of its bytes, the checksum's as blanks. */
unsigned tar_header_sum(const struct tar_header *header);
/* Do the first bytes of a file begin an archive? */
bool tar_is_archive(const uint8_t *head, size_t size);

enum { TAR_E_FILE = 1, TAR_E_END = 2, TAR_E_BAD = 3 };

struct tar_file {
	const char *path; /* until the next step */
	uint64_t begin;   /* of the first header that is about it */
	uint64_t header;  /* of its own one */
	uint64_t at, bytes;
};

enum tar_stage { TAR_AT_HEADER, TAR_AT_LONG_NAME, TAR_AT_PAX };

struct tar {
	enum tar_stage stage;
	uint64_t bytes;  /* of the archive */
	uint64_t begin;  /* behind the last file */
	uint64_t header; /* where the header begins that was looked at last */
	uint64_t next;   /* where the next one does */
	uint32_t want;

	/* what headers before a file's own say of it */
	bool has_path, has_size;
	char path[TAR_MOST_PATH];
	uint64_t size;

	char why[96]; /* of TAR_E_BAD, at `header` */
};

/* bytes: of the archive, fewer than 2^63. */
void tar_begin(struct tar *tar, uint64_t bytes);
/* 0 and which bytes come next, 1 to TAR_MOST_WANT of them; TAR_E_END. */
int tar_next(const struct tar *tar, uint64_t *ret_at, uint32_t *ret_bytes);
/* These; fewer only where the archive ends. 0; TAR_E_FILE with *ret; TAR_E_END; TAR_E_BAD, and then nothing more may be fed. */
int tar_feed(struct tar *tar, const uint8_t *bytes, uint32_t size, struct tar_file *ret);
/* Where what a file is to its sample begins, behind the first dot of its base name; NULL: it is of none, for
 * webdataset neither: no dot, or one in front, or a path that begins with __NAME__. */
const char *tar_field(const char *path);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files of an archive to samples, as the webdataset package groups them: neighbours with one key. Pure, as scan_shard.h
 * says.
 */

#include "base/tar.h"
#include "storage/source/scan/scan_shard.h"

#include <stdbool.h>

#define GROUP_MOST_FIELDS 8192 /* bytes of a sample's field names, a NUL each */
#define GROUP_MOST_CLS 24      /* bytes of a label's text */

struct scan_group {    /* the sample under way; zeros: none */
	bool is_whole; /* all of a sample's files are the sample; set once */
	bool has_key;
	bool
	    has_huge; /* what stands for the sample has 4 GiB or more; one of a kind before it may follow */
	unsigned kind; /* of what stands for it, in walk_kinds; WALK_KINDS: nothing yet */
	char key[SCAN_MOST_KEY];
	char fields[GROUP_MOST_FIELDS];
	size_t fields_used;
	struct scan_record picture; /* or the sound or video, or all of the files */
	uint64_t huge_at;           /* with has_huge */
};

enum { GROUP_E_LABEL = 3 }; /* beside SCAN_E_...: scan_group_label() is to have the file's bytes */

/* The next file. 0, GROUP_E_LABEL, SCAN_E_BAD, or what the sink's record() said. */
int scan_group_add(struct scan_group *group, const struct tar_file *file, struct scan_sink *sink);
/* at: where they are. 0 or SCAN_E_BAD. */
int scan_group_label(struct scan_group *group, uint64_t at, const uint8_t *bytes, uint32_t size,
		     struct scan_sink *sink);
/* There are no more files. 0, SCAN_E_BAD, or what record() said. */
int scan_group_end(struct scan_group *group, struct scan_sink *sink);

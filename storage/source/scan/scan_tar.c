/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples of a tar shard: its files (base/tar.h), which scan_group.c groups. Headers are all that is looked at, and
 * the text of a label. With the option members=all a sample is all of its files, else its picture.
 */

#include "storage/source/scan/scan_shard.h"

#include "base/base.h"
#include "base/tar.h"
#include "storage/source/scan/scan_group.h"
#include "storage/source/scan/scan_option.h"

struct scan_tar {
	struct tar tar;
	struct scan_want label; /* bytes 0: it is none that is wanted */
	struct scan_group group;
};
_Static_assert(TAR_MOST_WANT == SCAN_MOST_WANT && TAR_MOST_PATH == SCAN_MOST_KEY, "the same");

/* The next header, or the end. */
static int go_on(struct scan_tar *scan, struct scan_sink *sink, struct scan_want *ret)
{
	int r = tar_next(&scan->tar, &ret->at, &ret->bytes);

	if (r != TAR_E_END)
		return scan_wants(ret->at,
				  BASE_MIN((uint64_t)ret->bytes, scan->tar.bytes - ret->at), ret);
	r = scan_group_end(&scan->group, sink);
	return r ? r : SCAN_E_END;
}

static int on_file(struct scan_tar *scan, const struct tar_file *file, struct scan_sink *sink,
		   struct scan_want *ret)
{
	const int r = scan_group_add(&scan->group, file, sink);

	if (r != GROUP_E_LABEL)
		return r ? r : go_on(scan, sink, ret);
	*ret = scan->label = (struct scan_want){file->at, (uint32_t)file->bytes};
	return 0;
}

static int on_label(struct scan_tar *scan, uint64_t at, const uint8_t *bytes, uint32_t size,
		    struct scan_sink *sink, struct scan_want *ret)
{
	const int r = scan_group_label(&scan->group, at, bytes, size, sink);

	scan->label.bytes = 0;
	return r ? r : go_on(scan, sink, ret);
}

static int scan_tar_begin(void *state, const struct scan_shard *shard, struct scan_sink *sink,
			  struct scan_want *ret)
{
	struct scan_tar *scan = state;

	memset(scan, 0, sizeof(*scan));
	if (!scan_option_members(shard->options, &scan->group.is_whole))
		return scan_bad(sink, 0, "%s", SCAN_OPTION_MEMBERS);
	if (shard->bytes == 0)
		return scan_bad(sink, 0, "it is empty");
	if (shard->bytes > UINT64_MAX >> 1)
		return scan_bad(sink, 0, "it is too large");
	tar_begin(&scan->tar, shard->bytes);
	return go_on(scan, sink, ret);
}

static int scan_tar_feed(void *state, uint64_t at, const uint8_t *bytes, uint32_t size,
			 struct scan_sink *sink, struct scan_want *ret)
{
	struct scan_tar *scan = state;
	struct tar_file file;
	int r;

	if (scan->label.bytes)
		return on_label(scan, at, bytes, size, sink, ret);
	r = tar_feed(&scan->tar, bytes, size, &file);
	if (r == TAR_E_FILE)
		return on_file(scan, &file, sink, ret);
	if (r == TAR_E_BAD)
		return scan_bad(sink, scan->tar.header, "%s", scan->tar.why);
	if (r == TAR_E_END)
		scan->tar.next = scan->tar.bytes;
	return go_on(scan, sink, ret);
}

const struct source_scan scan_tar = {
    .name = "tar",
    .state_bytes = sizeof(struct scan_tar),
    .begin = scan_tar_begin,
    .feed = scan_tar_feed,
    .is_shard = tar_is_archive,
};

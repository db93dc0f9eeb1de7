/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/source/scan/scan_example.h"

#include "storage/source/scan/scan_option.h"

const char *scan_example_options(const char *options, struct example_names *ret)
{
	*ret = (struct example_names){.is_whole = false};
	if (!scan_option(options, "image", ret->picture, EXAMPLE_NAME) ||
	    !scan_option(options, "label", ret->label, EXAMPLE_NAME))
		return "the name of a feature has more than 255 bytes";
	if (!scan_option_members(options, &ret->is_whole))
		return SCAN_OPTION_MEMBERS;
	if (ret->is_whole)
		ret->picture[0] = '\0';
	return NULL;
}

const char *scan_example_record(struct example_walk *walk, uint64_t at, struct scan_record *ret,
				uint64_t *ret_bad_at)
{
	struct example found;

	if (walk->why || !example_end(walk, &found)) {
		*ret_bad_at = at + walk->bad_at;
		return walk->why;
	}
	*ret_bad_at = at;
	if (walk->names->is_whole) {
		found.at = 0;
		found.bytes = walk->bytes;
	}
	if (found.bytes == 0)
		return "it is empty";
	if (found.bytes > UINT32_MAX)
		return "it has more than 4 GiB";
	if (found.has_label && (found.label < -1 || found.label > SCAN_MOST_LABEL))
		return "its label is no class; classes count from 0 (-1: none)";
	*ret = (struct scan_record){
	    .at = at + found.at,
	    .bytes = (uint32_t)found.bytes,
	    .label = found.has_label && found.label >= 0 ? (uint32_t)found.label : SCAN_NO_LABEL,
	};
	return NULL;
}

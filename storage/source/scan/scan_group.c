/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sample is a run of neighbouring files with one key: the path up to the first dot of its base name; what follows
 * the dot, in lower case, is the field. The picture is the first field whose name is a suffix that counts in
 * folders, too; the first sound stands for it in a sample without one, the first video in one without either. "cls" is the
 * label. Files without a key are passed over, as they are by webdataset, and so is a sample with none of these, unless the
 * sample is all of its files. Two fields of one name are an error there and here.
 */

#include "storage/source/scan/scan_group.h"

#include "base/base.h"
#include "storage/walk.h"

#include <ctype.h>
#include <stdio.h>

/* Of the sample under way. */
static int bad(const struct scan_group *group, struct scan_sink *sink, uint64_t at,
	       const char *what)
{
	return scan_bad(sink, at, "sample \"%s\" %s", BASE_QUOTED(group->key, 100), what);
}

/* The path before the dot, without what changes nothing in a path. false: it leads upwards. */
static bool key_of(const char *path, const char *field, char ret[SCAN_MOST_KEY])
{
	char *to = ret;

	for (const char *from = path; from < field;) {
		const char *slash = memchr(from, '/', (size_t)(field - from));
		const size_t length = (size_t)((slash ? slash : field - 1) - from);
		const bool is_dot = length == 1 && from[0] == '.';

		if (slash && length == 2 && memcmp(from, "..", 2) == 0)
			return false;
		if (length && !(slash && is_dot)) {
			memcpy(to, from, length);
			to += length;
			if (slash)
				*to++ = '/';
		}
		from = slash ? slash + 1 : field;
	}
	*to = '\0';
	return true;
}

static bool has_field(const struct scan_group *group, const char *field)
{
	for (size_t at = 0; at < group->fields_used; at += strlen(group->fields + at) + 1)
		if (strcmp(group->fields + at, field) == 0)
			return true;
	return false;
}

/* Which of walk_kinds a field is by its name; WALK_KINDS: none. */
static unsigned kind_of(const char *field)
{
	char suffix[8];

	if (strlen(field) + 2 > sizeof(suffix) ||
	    (strchr(field, '.') && strcasecmp(field, "nii.gz") != 0))
		return WALK_KINDS;
	snprintf(suffix, sizeof(suffix), ".%s", field);
	return walk_kind_of(suffix);
}

int scan_group_end(struct scan_group *group, struct scan_sink *sink)
{
	const struct scan_record record = group->picture;
	const bool is_sample = group->has_key && group->kind < WALK_KINDS;

	group->has_key = false;
	if (is_sample && group->has_huge)
		return bad(group, sink, group->huge_at, "has 4 GiB or more; none may have");
	return is_sample ? sink->record(sink->arg, &record) : 0;
}

/* The sample that the file belongs to is the one under way from now on. */
static int begin_sample(struct scan_group *group, const char *key, struct scan_sink *sink)
{
	int r;

	if (group->has_key && strcmp(group->key, key) == 0)
		return 0;
	r = scan_group_end(group, sink);
	strcpy(group->key, key);
	group->has_key = true;
	group->kind = WALK_KINDS;
	group->fields_used = 0;
	group->has_huge = false;
	group->picture = (struct scan_record){.label = SCAN_NO_LABEL, .key = group->key};
	return r;
}

/* Its name, in lower case, is one of the sample's from now on. */
static int add_field(struct scan_group *group, const struct tar_file *file, const char *name,
		     struct scan_sink *sink, const char **ret)
{
	const size_t size = strlen(name) + 1;
	char *field = group->fields + group->fields_used, what[96];

	if (size > sizeof(group->fields) - group->fields_used)
		return bad(group, sink, file->header, "has too many files");
	for (size_t i = 0; i < size; i++)
		field[i] = (char)tolower((unsigned char)name[i]);
	if (has_field(group, field)) {
		snprintf(what, sizeof(what), "has two files \".%s\"", BASE_QUOTED(field, 64));
		return bad(group, sink, file->header, what);
	}
	group->fields_used += size;
	*ret = field;
	return 0;
}

/* From `from` on up to the file's end. */
static int add_bytes(struct scan_group *group, const struct tar_file *file, uint64_t from,
		     struct scan_sink *sink)
{
	const uint64_t bytes = file->at + file->bytes - from;

	if (bytes > UINT32_MAX)
		return bad(group, sink, file->header, "has 4 GiB or more; none may have");
	group->picture.at = from;
	group->picture.bytes = (uint32_t)bytes;
	return 0;
}

/* The first file of the first of walk_kinds is the sample, or all of its files are. */
static int add_file(struct scan_group *group, const struct tar_file *file, const char *field,
		    struct scan_sink *sink)
{
	const unsigned had = group->kind, kind = group->is_whole ? WALK_PICTURES : kind_of(field);

	group->kind = BASE_MIN(had, kind);
	if (group->is_whole)
		return add_bytes(group, file,
				 had == WALK_PICTURES ? group->picture.at : file->begin, sink);
	if (kind >= had)
		return 0;
	group->has_huge = kind != WALK_PICTURES && file->bytes > UINT32_MAX;
	group->huge_at = file->header;
	return group->has_huge ? 0 : add_bytes(group, file, file->at, sink);
}

int scan_group_add(struct scan_group *group, const struct tar_file *file, struct scan_sink *sink)
{
	const char *name = tar_field(file->path);
	const char *field = NULL;
	char key[SCAN_MOST_KEY];
	int r;

	if (!name)
		return 0;
	if (!key_of(file->path, name, key))
		return scan_bad(sink, file->header, "a file's path leads upwards (\"..\")");
	r = begin_sample(group, key, sink);
	r = r ? r : add_field(group, file, name, sink, &field);
	r = r ? r : add_file(group, file, field, sink);
	if (r)
		return r;
	if (strcmp(field, "cls") == 0) {
		if (!file->bytes || file->bytes > GROUP_MOST_CLS)
			return bad(group, sink, file->header, "has a .cls that is no number");
		return GROUP_E_LABEL;
	}
	return 0;
}

int scan_group_label(struct scan_group *group, uint64_t at, const uint8_t *bytes, uint32_t size,
		     struct scan_sink *sink)
{
	const uint8_t *end = bytes + size;
	uint64_t label = 0;
	bool is_number = false;

	while (bytes < end && isspace(*bytes))
		bytes++;
	for (; bytes < end && isdigit(*bytes) && label <= SCAN_MOST_LABEL; bytes++) {
		label = label * 10 + (uint64_t)(*bytes - '0');
		is_number = true;
	}
	while (bytes < end && isspace(*bytes))
		bytes++;
	if (!is_number || bytes < end || label > SCAN_MOST_LABEL)
		return bad(group, sink, at, "has a .cls that is no number from 0 to 16777215");
	group->picture.label = (uint32_t)label;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * WebDataset shards: tar archives that the webdataset package, torchdata and others read, and accessd does.
 *
 * Sample i has the key i, in nine digits or more, and up to three members that stand together:
 *
 *   000000012.jpg	the file as it is; the suffix is that of its name, in lower case, or its content's
 *   000000012.cls	its label in decimal digits, where there are classes
 *   000000012.json	{"name": path below the source, "class": name}
 *
 * A name's own dots would be read as the begin of a suffix, so names are within the json. The bytes depend on the
 * samples and --shard-size alone: times and owners are 0. A shard is closed before the sample that would make it
 * larger than asked for; one sample alone may be.
 *
 * No shard has its name before all are on the disk, where the file system can; so each has a descriptor until then.
 */

#include <ctype.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/json.h"
#include "convert/convert.h"
#include "pipeline/forms/form.h"
#include "storage/source/scan/magic.h"
#include "base/tar.h"
#include "storage/walk.h"

#define TAR_RECORD 10240 /* an archive is a multiple of it */
#define TAR_END (2 * TAR_BLOCK)

struct tar_shard {
	struct convert_target target;
	char *path; /* owned */
};

struct convert_output {
	const struct convert_options *options;
	const struct dataset *source;
	struct tar_shard *shard; /* owned; the last one is being written */
	unsigned n;
	size_t room;
	uint64_t at; /* end of what was written of it */
};

/* ---- members ---- */

static uint64_t tar_span(uint64_t bytes)
{
	return TAR_BLOCK + base_align_up(bytes, TAR_BLOCK);
}

/* Bytes of an archive whose last member ends there. */
static uint64_t tar_whole(uint64_t end)
{
	return (end + TAR_END + TAR_RECORD - 1) / TAR_RECORD * TAR_RECORD;
}

/* 0 or negative errno. */
static int tar_write(struct convert_output *output, const void *bytes, uint64_t size)
{
	const int fd = output->shard[output->n - 1].target.fd;
	int r = base_write_at(fd, bytes, size, output->at);

	output->at += r ? 0 : size;
	return r;
}

static int tar_add_member(struct convert_output *output, uint64_t sample, const char *suffix,
			  const void *bytes, uint32_t size)
{
	static const uint8_t zeros[TAR_BLOCK];
	struct tar_header header;
	char name[100];
	int r;

	snprintf(name, sizeof(name), "%09llu.%s", (unsigned long long)sample, suffix);
	memset(&header, 0, sizeof(header));
	snprintf(header.name, sizeof(header.name), "%s", name);
	memcpy(header.mode, "0000644", 8);
	memcpy(header.uid, "0000000", 8);
	memcpy(header.gid, "0000000", 8);
	snprintf(header.size, sizeof(header.size), "%011o", size);
	memcpy(header.mtime, "00000000000", 12);
	header.type = '0';
	memcpy(header.magic, "ustar", 6);
	memcpy(header.version, "00", 2);
	snprintf(header.checksum, sizeof(header.checksum) - 1, "%06o", tar_header_sum(&header));
	r = tar_write(output, &header, sizeof(header));
	r = r ? r : tar_write(output, bytes, size);
	r = r ? r : tar_write(output, zeros, base_align_up(size, TAR_BLOCK) - size);
	return r;
}

/* ---- shards ---- */

static struct tar_shard *tar_last(struct convert_output *output)
{
	return &output->shard[output->n - 1];
}

static char *tar_path(const struct convert_options *options, unsigned number)
{
	if (!options->shard_bytes)
		return strdup(options->target);
	return base_format("%.*s-%06u.tar", (int)strlen(options->target) - 4, options->target,
			   number);
}

static int tar_begin_shard(struct convert_output *output, struct diag *diag)
{
	struct tar_shard *shard;
	int r;

	if (!base_grow(&output->shard, &output->room, output->n + 1, sizeof(*shard)))
		return convert_output_fail(output->options->target, ENOMEM, diag);
	shard = &output->shard[output->n];
	shard->path = tar_path(output->options, output->n);
	if (!shard->path)
		return convert_output_fail(output->options->target, ENOMEM, diag);
	r = convert_target_open(&shard->target, shard->path, output->options->force, diag);
	if (r) {
		free(shard->path);
		return r;
	}
	output->n++;
	output->at = 0;
	return 0;
}

static int tar_end_shard(struct convert_output *output, struct diag *diag)
{
	static const uint8_t zeros[TAR_RECORD];
	const uint64_t end = tar_whole(output->at);
	int r = 0;

	while (!r && output->at < end)
		r = tar_write(output, zeros, BASE_MIN(end - output->at, sizeof(zeros)));
	return r ? convert_output_fail(tar_last(output)->path, -r, diag) : 0;
}

/* ---- the output ---- */

static void close_tar(struct convert_output *output)
{
	for (unsigned i = 0; i < output->n; i++) {
		convert_target_close(&output->shard[i].target);
		free(output->shard[i].path);
	}
	free(output->shard);
	free(output);
}

/* A shard is a descriptor or two until all are named. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int open_tar(const struct convert_options *options, struct convert_output **ret,
		    struct diag *diag)
{
	struct convert_output *output;
	int r;

	if (options->form != CONVERT_USUAL_FORM && options->form != 0)
		return diag_fail(diag, CONVERT_FAILED,
				 "shards have the files as they are: leave out --form, or give a "
				 "TARGET that does not end in .tar");
	output = calloc(1, sizeof(*output));
	if (!output)
		return convert_output_fail(options->target, ENOMEM, diag);
	output->options = options;
	raise_limit();
	r = tar_begin_shard(output, diag);
	if (r)
		close_tar(output);
	else
		*ret = output;
	return r;
}

static int begin_tar(struct convert_output *output, const struct dataset *source, struct diag *diag)
{
	(void)diag;
	output->source = source;
	return 0;
}

/* Of a file that has a picture's, a sound's or a video's name, that; of others what they begin as. Readers look for a picture's
 * suffix, so one that is damaged has one, too: what it is worth, its content decides there as here. */
static void tar_suffix(const char *name, const uint8_t *bytes, uint32_t bytes_size, char *ret,
		       size_t size)
{
	const char *dot = walk_kind_of(name) < WALK_KINDS ? strrchr(name, '.') + 1
							  : magic_suffix(bytes, bytes_size);
	size_t n = 0;

	if (dot && strcasecmp(dot, "gz") == 0) /* of a volume's name, which has two */
		dot = "nii.gz";
	if (!dot || strcmp(dot, "gif") == 0) /* which no reader of shards takes for a picture's */
		dot = "jpg";
	for (; *dot && n + 1 < size; dot++)
		ret[n++] = (char)tolower((unsigned char)*dot);
	ret[n] = '\0';
}

static char *tar_json(const struct dataset *source, uint64_t sample)
{
	const uint32_t label = dataset_label_of(source, sample);
	struct json_out out;
	char *text;

	json_out_init(&out, false);
	json_out_object_begin(&out);
	json_out_member_string(&out, "name", dataset_name_of(source, sample));
	if (dataset_classes(source))
		json_out_member_string(&out, "class", dataset_class_name(source, label));
	json_out_object_end(&out);
	return json_out_take(&out, &text, NULL) ? NULL : text;
}

static int tar_add_sample(struct convert_output *output, const struct convert_result *result,
			  const void *bytes, const char *json)
{
	char suffix[16], label[16];
	int r;

	tar_suffix(dataset_name_of(output->source, result->sample), bytes, result->size, suffix,
		   sizeof(suffix));
	snprintf(label, sizeof(label), "%u", dataset_label_of(output->source, result->sample));
	r = tar_add_member(output, result->sample, suffix, bytes, result->size);
	if (!r && dataset_classes(output->source))
		r = tar_add_member(output, result->sample, "cls", label, (uint32_t)strlen(label));
	r = r ? r : tar_add_member(output, result->sample, "json", json, (uint32_t)strlen(json));
	return r;
}

static int add_tar(struct convert_output *output, const struct convert_result *result,
		   const void *bytes, struct diag *diag)
{
	_cleanup_free_ char *json = tar_json(output->source, result->sample);
	const uint64_t limit = output->options->shard_bytes;
	uint64_t end;
	int r = 0;

	if (!json)
		return convert_output_fail(tar_last(output)->path, ENOMEM, diag);
	end = output->at + tar_span(result->size) + tar_span(1) + tar_span(strlen(json));
	if (limit && output->at && tar_whole(end) > limit) {
		r = tar_end_shard(output, diag);
		r = r ? r : tar_begin_shard(output, diag);
	}
	if (r)
		return r;
	r = tar_add_sample(output, result, bytes, json);
	return r ? convert_output_fail(tar_last(output)->path, -r, diag) : 0;
}

/* A shard with the next number, of an older conversion, would be taken for one of these. */
static int tar_look_beyond(const struct convert_output *output, struct diag *diag)
{
	_cleanup_free_ char *path = tar_path(output->options, output->n);

	if (!path)
		return convert_output_fail(output->options->target, ENOMEM, diag);
	if (!output->options->shard_bytes || access(path, F_OK) < 0)
		return 0;
	return diag_fail(
	    diag, CONVERT_FAILED,
	    "\"%s\" is there, and these samples end with the shard before it: remove it",
	    BASE_QUOTED(path, 512));
}

/* A shard that has its name must not be the begin of a data set of which the rest was lost. */
static int tar_sync(const struct convert_output *output, struct diag *diag)
{
	for (unsigned i = 0; i < output->n; i++)
		if (fsync(output->shard[i].target.fd) < 0)
			return convert_output_fail(output->shard[i].path, errno, diag);
	return 0;
}

static int keep_tar(struct convert_output *output, struct diag *diag)
{
	unsigned kept = 0;
	int r = tar_end_shard(output, diag);

	r = r ? r : tar_look_beyond(output, diag);
	r = r ? r : tar_sync(output, diag);
	while (!r && kept < output->n) {
		r = convert_target_keep(&output->shard[kept].target, diag);
		kept += !r;
	}
	while (r && kept && !output->options->force) /* with it, they took the place of others */
		unlink(output->shard[--kept].path);
	return r;
}

const struct convert_output_ops convert_tar_ops = {
    .usual_form = 0,
    .open = open_tar,
    .begin = begin_tar,
    .add = add_tar,
    .keep = keep_tar,
    .close = close_tar,
};

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * records KIND FILE: the samples that a scan finds in a shard, a line each: where, bytes, label or -, key. What is wrong
 * with it goes to stderr, as "byte: why", and the status is then 1. For tests that compare with other readers.
 */

#include "storage/source/scan/scan_shard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

static const struct source_scan *const scans[] = {&scan_tar};

static int on_record(void *arg, const struct scan_record *record)
{
	char label[16] = "-";

	(void)arg;
	if (record->label != SCAN_NO_LABEL)
		snprintf(label, sizeof(label), "%u", record->label);
	printf("%llu %u %s %s\n", (unsigned long long)record->at, record->bytes, label,
	       record->key);
	return 0;
}

static int read_file(void *arg, uint64_t at, uint8_t *ret, uint32_t bytes)
{
	const ssize_t got = pread(*(const int *)arg, ret, bytes, (off_t)at);

	return got == (ssize_t)bytes ? 0 : -EIO;
}

static int scan(const struct source_scan *kind, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st = {.st_size = 0};
	struct scan_shard shard = {.name = path, .options = ""};
	const struct scan_reader reader = {read_file, &fd};
	struct scan_sink sink = {.record = on_record};
	int r;

	if (fd < 0 || fstat(fd, &st) < 0) {
		perror(path);
		return 1;
	}
	shard.bytes = (uint64_t)st.st_size;
	r = scan_shard_run(kind, &shard, &reader, &sink);
	if (r)
		fprintf(stderr, "%llu: %s\n", (unsigned long long)sink.bad_at,
			r == SCAN_E_BAD ? sink.why : strerror(-r));
	return r ? 1 : 0;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < BASE_ARRAY_LEN(scans); i++)
		if (!strcmp(scans[i]->name, argv[1]))
			return scan(scans[i], argv[2]);
	fprintf(stderr, "Usage: records KIND FILE\n");
	return 2;
}

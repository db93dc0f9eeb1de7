/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The main() of a fuzz target where there is no fuzzer: "make check" runs every input that was ever
 * found worth keeping, and seeded mutations of each, so that a parser that got a new branch meets
 * broken input on the same day.
 *
 *	NAME_fuzz             the folder $top_srcdir/tests/fuzz/corpus/NAME, with mutations
 *	NAME_fuzz FILE...     these files as they are
 *
 * REPLAY_MUTATIONS is how many mutations an input gets: 200, or what the target says, if its inputs take
 * long; a tenth of them without sanitizers, which are what sees most that goes wrong. The target is given a heap
 * block of exactly the input's size, so that a sanitizer sees each byte read past its end. An input stands in
 * ./NAME_fuzz.crash while it runs: after a crash that is the one.
 */

#include "base/base.h"
#include "base/philox.h"
#include "tests/histories.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPLAY_INPUT_MAX = 1 << 20, REPLAY_EDITS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const unsigned long replay_mutations_wanted __attribute__((weak));

static int replay_crash_fd = -1;
static uint8_t replay_input[REPLAY_INPUT_MAX], replay_mutant[REPLAY_INPUT_MAX];

static void replay_fail(const char *what, const char *name)
{
	fprintf(stderr, "replay: %s: ", name);
	perror(what);
	exit(1);
}

static void replay_run(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size);

	if (!exact && size > 0)
		replay_fail("malloc", "input");
	if (size > 0)
		memcpy(exact, data, size);
	if (ftruncate(replay_crash_fd, 0) < 0 ||
	    pwrite(replay_crash_fd, data, size, 0) != (ssize_t)size)
		replay_fail("write", "crash file");
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static size_t replay_cut(struct philox_seq *seq, uint8_t *data, size_t size)
{
	size_t at = (size_t)philox_below(seq, size);
	size_t length = (size_t)philox_below(seq, size - at) + 1;

	memmove(data + at, data + at + length, size - at - length);
	return size - length;
}

static size_t replay_repeat(struct philox_seq *seq, uint8_t *data, size_t size)
{
	size_t at = (size_t)philox_below(seq, size);
	size_t length = (size_t)philox_below(seq, size - at) + 1;

	if (size + length > REPLAY_INPUT_MAX)
		return size;
	memmove(data + at + length, data + at, size - at);
	return size + length;
}

/* One edit of data in place; returns the new size. Small numbers and all ones hit lengths. */
static size_t replay_edit(struct philox_seq *seq, uint8_t *data, size_t size)
{
	static const uint8_t number[] = {0, 1, 2, 4, 7, 8, 16, 64, 127, 128, 254, 255};
	size_t at = (size_t)philox_below(seq, size);

	switch (philox_below(seq, 6)) {
	case 0:
		data[at] ^= (uint8_t)(1u << philox_below(seq, 8));
		return size;
	case 1:
		data[at] = number[philox_below(seq, BASE_ARRAY_LEN(number))];
		return size;
	case 2:
		memset(data + at, (int)philox_below(seq, 2) * 255, BASE_MIN(size - at, (size_t)4));
		return size;
	case 3:
		return at;
	case 4:
		return replay_cut(seq, data, size);
	default:
		return replay_repeat(seq, data, size);
	}
}

static void replay_mutations(size_t size, unsigned long mutations)
{
	struct philox_seq seq;

	philox_seq_init(&seq, size, 0, 0);
	for (unsigned long i = 0; i < mutations; i++) {
		size_t edits = (size_t)philox_below(&seq, REPLAY_EDITS) + 1, now = size;

		memcpy(replay_mutant, replay_input, size);
		while (edits-- > 0 && now > 0)
			now = replay_edit(&seq, replay_mutant, now);
		replay_run(replay_mutant, now);
	}
}

static size_t replay_read(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, replay_input, REPLAY_INPUT_MAX);

	if (size < 0)
		replay_fail("read", path);
	return (size_t)size;
}

/* Every file of the folder, with mutations. Returns how many there were. */
static unsigned long replay_folder(const char *folder, unsigned long mutations)
{
	DIR *entries = opendir(folder);
	unsigned long files = 0;
	struct dirent *entry;
	char path[4096];

	if (!entries)
		replay_fail("opendir", folder);
	while ((entry = readdir(entries))) {
		size_t size;

		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >=
		    (int)sizeof(path))
			continue;
		size = replay_read(path);
		replay_run(replay_input, size);
		replay_mutations(size, mutations);
		files++;
	}
	closedir(entries);
	return files;
}

/* The target's name from the program's: "wire" of ".../wire_fuzz". */
static void replay_name(const char *program, char *ret, size_t size)
{
	const char *slash = strrchr(program, '/');
	char *end;

	snprintf(ret, size, "%s", slash ? slash + 1 : program);
	end = strstr(ret, "_fuzz");
	if (end)
		*end = '\0';
}

int main(int argc, char **argv)
{
	const char *source = getenv("top_srcdir"), *count = getenv("REPLAY_MUTATIONS");
	unsigned long mutations = &replay_mutations_wanted ? replay_mutations_wanted : 200;
	unsigned long files = 0;
	char name[256], crash[512], folder[4096];

	if (!HISTORIES_ARE_FEW)
		mutations = (mutations + 9) / 10;
	if (count)
		mutations = strtoul(count, NULL, 10);
	replay_name(argv[0], name, sizeof(name));
	snprintf(crash, sizeof(crash), "%s_fuzz.crash", name);
	replay_crash_fd = open(crash, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (replay_crash_fd < 0)
		replay_fail("open", crash);
	for (int i = 1; i < argc; i++, files++)
		replay_run(replay_input, replay_read(argv[i]));
	if (argc == 1) {
		snprintf(folder, sizeof(folder), "%s/tests/fuzz/corpus/%s", source ? source : ".",
			 name);
		files = replay_folder(folder, mutations);
	}
	close(replay_crash_fd);
	unlink(crash);
	printf("%lu inputs of %s\n", files, name);
	return files == 0;
}

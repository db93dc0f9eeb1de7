/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process that unpacks one shard: from descriptor 0, which it can read, to 1, which it can write; in the sandbox of
 * workers from before its first byte on. Its status says what came of it.
 */

#include "convert/convert.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sandbox.h"

#define UNPACK_MEMORY (UINT64_C(256) << 20) /* a window of zstd's may have 128 MiB */

static bool unpack_read(struct unpack_pipe *pipe)
{
	const size_t most = pipe->most ? pipe->most : sizeof(pipe->in);
	ssize_t got;

	do
		got = pread(0, pipe->in, most, (off_t)pipe->at);
	while (got < 0 && errno == EINTR);
	pipe->in_bytes = got > 0 ? (size_t)got : 0;
	pipe->at += pipe->in_bytes;
	return got >= 0;
}

static bool unpack_write(struct unpack_pipe *pipe, size_t bytes)
{
	return base_write_all(1, pipe->out, bytes) == 0;
}

/* Who has started it reads that behind what was written, which is of no use. */
static int tell_file(const struct unpack_pipe *pipe, int code)
{
	if (code && *pipe->file && base_write_all(1, "", 1) == 0)
		base_write_all(1, pipe->file, strlen(pipe->file) + 1);
	return code;
}

int convert_unpacking_main(const char *how, const char *options, const char *name)
{
	static struct unpack_pipe pipe = {.read = unpack_read, .write = unpack_write};
	const struct sandbox_limits limits = {
	    .memory = UNPACK_MEMORY, .event_fd = 1, .reads = true, .read_fd = 0};
	struct stat st;

	signal(SIGXFSZ, SIG_IGN);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || fstat(0, &st) < 0 || sandbox_enter(&limits))
		return UNPACK_E_SANDBOX;
	pipe.bytes = (uint64_t)st.st_size;
	pipe.options = options;
	pipe.name = name;
	if (strcmp(how, "arrayrecord") == 0)
		return unpack_arrayrecord(&pipe);
	if (strcmp(how, "zip") == 0)
		return tell_file(&pipe, unpack_zip(&pipe));
	return strcmp(how, "zstd") == 0 ? unpack_zstd(&pipe) : unpack_gzip(&pipe);
}

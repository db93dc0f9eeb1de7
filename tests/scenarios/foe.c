/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/scenarios/foe.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- draws ---- */

void foe_begin(struct foe *foe, uint64_t seed, uint64_t number)
{
	foe->number = number;
	philox_seq_init(&foe->draws, seed, number, 0);
	foe->noise = philox_u64(&foe->draws) | 1;
}

uint64_t foe_below(struct foe *foe, uint64_t bound)
{
	return philox_below(&foe->draws, bound);
}

uint64_t foe_number(struct foe *foe)
{
	static const uint64_t edges[] = {
	    0,
	    1,
	    UINT32_MAX,
	    UINT64_C(1) << 32,
	    INT64_MAX,
	    UINT64_MAX,
	    UINT64_MAX - 7,
	    (uint64_t)INT64_MAX + 1,
	    UINT64_C(1) << 40,
	};

	if (foe_below(foe, 2))
		return foe_below(foe, 70);
	return edges[foe_below(foe, BASE_ARRAY_LEN(edges))];
}

void foe_rest(struct foe *foe, unsigned most_ms)
{
	rig_sleep_ms((unsigned)foe_below(foe, most_ms + 1));
}

/* ---- descriptors ---- */

int foe_keep(struct foe *foe, int fd)
{
	if (fd < 0)
		return -1;
	if (foe->n_kept == FOE_MOST_KEPT) {
		close(fd);
		return -1;
	}
	foe->kept[foe->n_kept++] = fd;
	return fd;
}

void foe_end(struct foe *foe)
{
	if (foe->n_kept < FOE_MOST_KEPT / 2 && foe_below(foe, 4) == 0)
		return;
	while (foe->n_kept)
		close(foe->kept[--foe->n_kept]);
}

/* ---- talk ---- */

int foe_dial(struct foe *foe)
{
	return foe_keep(foe, raw_try_dial());
}

bool foe_hear(struct foe *foe, int sock, struct wire_in *ret)
{
	static const unsigned patience_ms[] = {1, 10, 100, 1000, 5000};

	return raw_hear_for(sock, 0, patience_ms[foe_below(foe, BASE_ARRAY_LEN(patience_ms))],
			    ret) == 0;
}

int foe_greet(struct foe *foe)
{
	int sock = foe_dial(foe);
	const void *nonce;
	struct wire_in in;
	size_t size;

	wire_in_init(&in);
	if (sock < 0 || raw_say_hello(sock, "foe") || raw_hear_for(sock, 0, 20000, &in) ||
	    in.type != PROTO_WELCOME)
		sock = -1;
	else if (wire_get_bytes(&in, PROTO_KEY_NONCE, &nonce, &size) == 0)
		memcpy(foe->nonce, nonce, BASE_MIN(size, sizeof(foe->nonce)));
	wire_in_fini(&in);
	return sock;
}

void foe_send(int sock, struct wire_out *out)
{
	wire_send(sock, out, MSG_DONTWAIT);
	wire_out_fini(out);
}

/* Sizes are those that fit something, and any. */
static size_t odd_size(struct foe *foe)
{
	static const size_t sizes[] = {0, 1, 8, 15, 16, 17, 24, 31, 32, 33, 64, 4096, 65536};

	return foe_below(foe, 3) ? sizes[foe_below(foe, BASE_ARRAY_LEN(sizes))]
				 : foe_below(foe, 150000);
}

static void put_odd_item(struct foe *foe, struct wire_out *out)
{
	static char noise[150001];
	uint16_t key = (uint16_t)(foe_below(foe, 8) ? foe_below(foe, 66) : foe_below(foe, 65536));
	size_t size;

	switch (foe_below(foe, 3)) {
	case 0:
		wire_put_u64(out, key, foe_number(foe));
		break;
	case 1:
		size = odd_size(foe);
		memset(noise, foe_below(foe, 2) ? '/' : '\x1b', size);
		noise[size] = '\0';
		wire_put_string(out, key, noise);
		break;
	default:
		size = odd_size(foe);
		raw_nonsense(0, &foe->noise, (uint8_t *)noise, BASE_MAX(size, (size_t)1));
		wire_put_bytes(out, key, noise, size);
	}
}

void foe_put_odd(struct foe *foe, struct wire_out *out, unsigned n)
{
	for (unsigned i = 0; i < n && out->size < WIRE_MAX - 160000 && !out->error; i++)
		put_odd_item(foe, out);
}

void foe_begin_open(const struct foe *foe, struct wire_out *out, uint16_t type)
{
	wire_out_init(out, type);
	wire_put_bytes(out, PROTO_KEY_NONCE, foe->nonce, sizeof(foe->nonce));
}

static const char *some_pipeline(struct foe *foe)
{
	static char spec[256];
	unsigned side = 16 + (unsigned)foe_below(foe, 40);

	if (foe_below(foe, 3))
		return foe_below(foe, 2) ? "imagenet-eval-u8" : "imagenet-train-u8";
	snprintf(spec, sizeof(spec),
		 "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[%u,%u]},"
		 "{\"op\":\"layout\",\"order\":\"CHW\"}]}",
		 side, side);
	return spec;
}

void foe_end_open(struct foe *foe, struct wire_out *out, const char *dataset)
{
	wire_put_string(out, PROTO_KEY_DATASET, dataset);
	wire_put_string(out, PROTO_KEY_PIPELINE, some_pipeline(foe));
	wire_put_u64(out, PROTO_KEY_BATCH, 1 + foe_below(foe, 16));
	wire_put_u64(out, PROTO_KEY_EPOCHS, foe_below(foe, 3));
	wire_put_string(out, PROTO_KEY_JOB, "foe\x1b[2J\n");
	wire_put_u64(out, PROTO_KEY_POLICY, foe_below(foe, 3));
}

int foe_open(struct foe *foe, const char *dataset, struct wire_in *ret_opened)
{
	int sock = foe_greet(foe);
	struct wire_out out;

	wire_in_init(ret_opened);
	if (sock < 0)
		return -1;
	foe_begin_open(foe, &out, PROTO_OPEN);
	foe_end_open(foe, &out, dataset);
	foe_send(sock, &out);
	if (foe_hear(foe, sock, ret_opened) && ret_opened->type == PROTO_OPENED &&
	    ret_opened->n_fds >= 4)
		return sock;
	wire_in_fini(ret_opened);
	wire_in_init(ret_opened);
	return -1;
}

/* ---- processes, files ---- */

void foe_sacrifice(struct foe *foe, void (*fn)(struct foe *foe), unsigned most_ms)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(foe);
		_exit(0);
	}
	if (pid < 0)
		return;
	foe_rest(foe, most_ms);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

const char *foe_path(const struct foe *foe, const char *fmt, ...)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];
	int n = snprintf(path, PATH_MAX, "%s/%llu", foe->folder, (unsigned long long)foe->number);
	va_list args;

	va_start(args, fmt);
	vsnprintf(path + n, PATH_MAX - (size_t)n, fmt, args);
	va_end(args);
	return path;
}

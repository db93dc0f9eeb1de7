/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Processes are forked before the test opens anything of libaccess, or at least never use what it
 * opened: a trainee connects by itself. It has no assertions of Check, whose processes they would
 * confuse: it ends with a status.
 */

#include "tests/scenarios/trainee.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct oa_options trainee_options(const char *dataset, uint32_t batch, uint64_t epochs)
{
	return (struct oa_options){
	    .size = sizeof(struct oa_options),
	    .dataset = dataset,
	    .pipeline = "imagenet-eval-u8",
	    .batch = batch,
	    .epochs = epochs,
	};
}

struct oa_batch *trainee_next(struct oa_stream *stream)
{
	struct oa_batch *batch = NULL;
	int r = oa_next(stream, PATIENCE_MS, &batch);

	ck_assert_msg(r == 0 || r == OA_E_END, "oa_next: %s: %s", oa_error_name(r),
		      oa_error_text(stream));
	return r == 0 ? batch : NULL;
}

struct oa_batch_info trainee_info(const struct oa_batch *batch)
{
	struct oa_batch_info info = {.size = sizeof(info)};

	oa_batch_info(batch, &info);
	return info;
}

void trainee_field(const struct oa_batch *batch, const char *name, struct oa_field *ret)
{
	struct oa_batch_info info = trainee_info(batch);

	ret->size = sizeof(*ret);
	for (uint32_t i = 0; i < info.n_fields; i++)
		if (oa_batch_field(batch, i, ret) == 0 && strcmp(ret->name, name) == 0)
			return;
	*ret = (struct oa_field){.ndim = 0};
}

int trainee_shown(const struct oa_batch *batch, uint32_t i)
{
	struct oa_field image;
	const uint8_t *at;
	uint8_t rgb[3];

	trainee_field(batch, "image", &image);
	if (image.ndim != 4 || image.shape[1] != 3 || image.dtype != OA_U8)
		return -1;
	at = (const uint8_t *)image.data + i * (size_t)image.strides[0] +
	     100 * (size_t)image.strides[2] + 100 * (size_t)image.strides[3];
	for (unsigned c = 0; c < 3; c++)
		rgb[c] = at[c * (size_t)image.strides[1]];
	return rig_number_of(rgb);
}

unsigned trainee_count_wrong(const struct oa_batch *batch, unsigned n, unsigned classes)
{
	struct oa_batch_info info = trainee_info(batch);
	struct oa_field label, index;
	unsigned wrong = 0;

	trainee_field(batch, "label", &label);
	trainee_field(batch, "index", &index);
	if (label.ndim != 1 || index.ndim != 1)
		return info.count;
	for (uint32_t i = 0; i < info.count; i++) {
		int64_t id = info.ids[i];

		wrong += trainee_shown(batch, i) != id;
		wrong += ((const int64_t *)label.data)[i] != (int64_t)((uint64_t)id * classes / n);
		wrong += ((const int64_t *)index.data)[i] != id;
	}
	return wrong;
}

void trainee_see(struct trainee_seen *seen, const struct oa_batch *batch)
{
	struct oa_batch_info info = trainee_info(batch);

	for (uint32_t i = 0; i < info.count; i++)
		if (info.ids[i] >= 0 && info.ids[i] < TRAINEE_MOST)
			seen->count[info.ids[i]]++;
		else
			seen->count[TRAINEE_MOST - 1] += 1000000;
}

unsigned trainee_train(struct oa_stream *stream, unsigned most, struct trainee_seen *seen)
{
	struct oa_batch *batch;
	unsigned n = 0;

	while ((most == 0 || n < most) && (batch = trainee_next(stream))) {
		trainee_see(seen, batch);
		oa_release(batch);
		n++;
	}
	return n;
}

bool trainee_saw_all(const struct trainee_seen *seen, unsigned n, unsigned times)
{
	for (unsigned i = 0; i < TRAINEE_MOST; i++)
		if (seen->count[i] != (i < n ? times : 0)) {
			fprintf(stderr, "sample %u of %u came %u times, not %u\n", i, n,
				seen->count[i], times);
			return false;
		}
	return true;
}

/* ---- in a process of its own ---- */

struct life {
	struct oa_stream *stream;
	struct oa_batch *held[2];
	unsigned n;
	uint64_t epochs;
	int go_fd;
	struct trainee_seen seen;
};

static void wait_for_go(const struct life *life)
{
	char byte;

	if (read(life->go_fd, &byte, 1) != 1)
		_exit(20);
}

static void check_held(const struct life *life)
{
	for (unsigned i = 0; i < 2; i++)
		if (trainee_count_wrong(life->held[i], life->n, 2) != 0)
			_exit(21);
}

static void finish(struct life *life)
{
	struct oa_batch *batch;
	int r;

	check_held(life);
	for (unsigned i = 0; i < 2; i++) {
		trainee_see(&life->seen, life->held[i]);
		oa_release(life->held[i]);
	}
	while ((r = oa_next(life->stream, PATIENCE_MS, &batch)) == 0) {
		trainee_see(&life->seen, batch);
		oa_release(batch);
	}
	if (r != OA_E_END)
		fprintf(stderr, "trainee: %s\n", oa_error_text(life->stream));
	_exit(r == OA_E_END && trainee_saw_all(&life->seen, life->n, (unsigned)life->epochs) ? 0
											     : 22);
}

/* On every socket of messages that this process has: libaccess's is among them. */
static void babble(void)
{
	static const char nonsense[64] = "this is no message at all";
	unsigned said = 0;

	for (int fd = 3; fd < 64; fd++) {
		int type = 0;
		socklen_t size = sizeof(type);

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
		    type == SOCK_SEQPACKET)
			said += send(fd, nonsense, sizeof(nonsense), MSG_NOSIGNAL) > 0;
	}
	if (said == 0)
		_exit(23);
}

_Noreturn static void live(struct life *life, enum trainee_then then, int ready_fd)
{
	struct oa_batch *batch;

	if (write(ready_fd, "r", 1) != 1)
		_exit(24);
	wait_for_go(life);
	switch (then) {
	case TRAINEE_HOLDS:
		break;
	case TRAINEE_FINISHES:
		finish(life);
		break;
	case TRAINEE_BABBLES:
		babble();
		wait_for_go(life);
		check_held(life);
		_exit(0);
	case TRAINEE_EXITS:
		check_held(life);
		exit(7);
	case TRAINEE_WAITS:
		oa_release(life->held[0]);
		oa_release(life->held[1]);
		while (oa_next(life->stream, -1, &batch) == 0)
			oa_release(batch);
		break;
	}
	_exit(25);
}

_Noreturn static void be_trainee(struct life *life, struct oa_options *options,
				 enum trainee_then then, int ready_fd)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL); /* Check's handlers end the whole test */
	signal(SIGTERM, SIG_DFL);
	options->job = "trainee";
	if (oa_connect(rig_host.socket, &client, &error) ||
	    oa_open(client, options, &life->stream, &error)) {
		fprintf(stderr, "trainee: %s\n", error.text);
		_exit(26);
	}
	for (unsigned i = 0; i < 2; i++)
		if (oa_next(life->stream, PATIENCE_MS, &life->held[i]))
			_exit(27);
	check_held(life);
	live(life, then, ready_fd);
}

struct trainee trainee_start(const char *dataset, unsigned n, uint32_t batch, uint64_t epochs,
			     enum trainee_then then)
{
	struct oa_options options = trainee_options(dataset, batch, epochs);
	struct life life = {.n = n, .epochs = epochs};
	int go[2], ready[2];
	struct trainee trainee;
	char byte;

	ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	trainee.pid = fork();
	ck_assert_int_ge(trainee.pid, 0);
	if (trainee.pid == 0) {
		close(go[1]);
		close(ready[0]);
		life.go_fd = go[0];
		be_trainee(&life, &options, then, ready[1]);
	}
	close(go[0]);
	close(ready[1]);
	trainee.go_fd = go[1];
	ck_assert_msg(read(ready[0], &byte, 1) == 1, "the trainee did not get two batches");
	close(ready[0]);
	return trainee;
}

void trainee_go(const struct trainee *trainee)
{
	ck_assert_int_eq(write(trainee->go_fd, "g", 1), 1);
}

int trainee_end(struct trainee *trainee)
{
	int status = 0;

	ck_assert_int_eq(waitpid(trainee->pid, &status, 0), trainee->pid);
	base_close(&trainee->go_fd);
	trainee->pid = 0;
	return status;
}

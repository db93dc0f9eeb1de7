/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What goes wrong between a job and its daemon: silence, refusals, lies, deaths, limits, signals.
 * Each must end in the right code with a text that helps, and never in a crash.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/libaccess/fake.h"
#include "tests/suite.h"

static const struct fake_config plain = {.n = 100, .chunk = 10, .slots = 4};

static void has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "\"%s\" lacks \"%s\"", text, part);
}

/* ---- opening ---- */

static const struct open_case {
	enum fake_mode mode;
	int code;
	const char *text;
} open_cases[] = {
    {FAKE_REFUSE, OA_E_MEMORY, "needs 9 GiB, has 1 GiB: raise memory="},
    {FAKE_GARBAGE_OPENED, -EPROTO, "sent a message that makes no sense"},
    {FAKE_WRONG_TYPE, -EPROTO, "answered with message 16"},
    {FAKE_FEW_FDS, -EPROTO, "fewer than four descriptors"},
    {FAKE_WRONG_FDS, 0, "slot table"},
    {FAKE_MIXED_FDS, -EPROTO, "contradicts itself"},
    {FAKE_BAD_TABLE, -EPROTO, "contradicts itself"},
    {FAKE_HANG_UP_OPEN, OA_E_UNREACHABLE, "hung up"},
};

static unsigned count_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Ops on batches that make no sense, or do not fit an image without channels. */
static const struct {
	struct proto_batch_mix item[3];
	size_t bytes;
} batch_mixes[] = {
    {{{1, 0, 5, 0, 1, 1}}, 32},
    {{{0, 0, 5, 0, 1, 1}}, 32},
    {{{3, 0, 5, 0, 1, 1}}, 32},
    {{{0xffffffff, 0, 5, 0, 1, 1}}, 32},
    {{{2, 0, 5, 0, 0, 1}}, 32},
    {{{2, 0, 5, 0, 1, 2}}, 32},
    {{{2, 0, 0x7fffffff, 0, 1, 1}}, 32},
    {{{2, 0, 5, 0, 1, 0.5}, {2, 0, 5, 0, 1, 0.5}}, 64},
    {{{2, 0, 5, 0, 1, 0.5}, {1, 0, 6, 0, 1, 0.5}}, 64},
    {{{2, 0, 5, 0, 1, 0.3}, {1, 0, 5, 0, 1, 0.3}, {1, 0, 5, 0, 1, 0.3}}, 96},
    {{{2, 0, 5, 0, 1, 1}}, 31},
    {{{2, 0, 5, 0, 1, 1}}, 0},
};

START_TEST(bad_ops_on_batches)
{
	struct fake_config config = plain;
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = fake_options(5, 1);
	struct oa_stream *stream = NULL;
	struct oa_client *client;
	struct fake fake;

	config.batch_mix = batch_mixes[_i].item;
	config.batch_mix_bytes = batch_mixes[_i].bytes;
	fake_start(&fake, &config);
	client = fake_connect(&fake);
	ck_assert_int_eq(oa_open(client, &options, &stream, &error), -EPROTO);
	has(error.text, "mosaic, mixup or cutmix makes no sense");
	ck_assert_ptr_null(stream);
	oa_disconnect(client);
	fake_stop(&fake);
}
END_TEST

START_TEST(bad_answers_to_open)
{
	const struct open_case *c = &open_cases[_i];
	struct fake_config config = plain;
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = fake_options(5, 1);
	struct oa_stream *stream = NULL;
	struct oa_client *client;
	struct fake fake;
	unsigned fds;
	int r;

	config.mode = c->mode;
	fake_start(&fake, &config);
	client = fake_connect(&fake);
	fake_wait_alone(&fake); /* it has seen the end of the first connection */
	fds = count_fds();
	r = oa_open(client, &options, &stream, &error);
	ck_assert(c->code ? r == c->code : r != 0);
	ck_assert_int_eq(error.code, r);
	has(error.text, c->text);
	ck_assert_ptr_null(stream);
	fake_wait_alone(&fake);
	ck_assert_uint_eq(count_fds(), fds);
	oa_disconnect(client);
	fake_stop(&fake);
}
END_TEST

static const struct open_case hello_cases[] = {
    {FAKE_MAJOR, OA_E_VERSION, "upgrade libaccess"},
    {FAKE_GARBAGE, -EPROTO, "makes no sense"},
    {FAKE_HANG_UP, OA_E_UNREACHABLE, "hung up"},
    {FAKE_MINOR, 0, ""},
};

START_TEST(bad_answers_to_hello)
{
	const struct open_case *c = &hello_cases[_i];
	struct fake_config config = plain;
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = NULL;
	struct fake fake;

	config.mode = c->mode;
	fake_start(&fake, &config);
	ck_assert_int_eq(oa_connect(fake.socket, &client, &error), c->code);
	has(error.text, c->text);
	oa_disconnect(client);
	fake_stop(&fake);
}
END_TEST

/* A job goes on where accessd is an older one now; not one of a data set with a name, which is told so. */
START_TEST(an_older_accessd_comes_back)
{
	struct oa_options options = fake_options(5, 1);
	struct fake_config config = plain;
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct fake fake;
	int r;

	options.dataset = _i ? "name:pets" : "/data/pets";
	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
	oa_release(batch);
	fake_kill(&fake);
	fake.config.mode = FAKE_OLDER;
	fake_again(&fake);
	while ((r = oa_next(stream, PATIENCE_MS, &batch)) == 0)
		oa_release(batch);
	ck_assert_int_eq(r, _i ? OA_E_VERSION : OA_E_END);
	if (_i)
		has(oa_error_text(stream), "older than data sets with names: upgrade accessd");
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

START_TEST(a_name_is_not_asked_of_an_older_accessd)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = fake_options(5, 1);
	struct fake_config config = plain;
	struct oa_stream *stream = NULL;
	struct oa_client *client;
	struct fake fake;

	config.mode = FAKE_OLDER;
	options.dataset = "name:pets";
	options.pipeline = _i ? NULL : options.pipeline; /* with a question before, and without */
	fake_start(&fake, &config);
	client = fake_connect(&fake);
	ck_assert_int_eq(oa_open(client, &options, &stream, &error), OA_E_VERSION);
	has(error.text, "\"name:pets\"");
	oa_disconnect(client);
	fake_stop(&fake);
}
END_TEST

START_TEST(nobody_there)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client;
	struct fake fake;

	fake_start(&fake, &plain);
	fake_kill(&fake);
	ck_assert_int_eq(oa_connect(fake.socket, &client, &error), OA_E_UNREACHABLE);
	has(error.text, "mount the folder of the socket");
	unlink(fake.socket);
	ck_assert_int_eq(oa_connect(fake.socket, &client, &error), OA_E_UNREACHABLE);
	has(error.text, "No such file");
	has(error.text, "systemctl start accessd");
	ck_assert_int_eq(
	    oa_connect(
		"/a/name/that/is/longer/than/what/fits/into/a/sockaddr_un/of/any/unix/system/"
		"that/is/known/to/the/author/of/these/lines/at/all",
		&client, &error),
	    OA_E_INVALID);
	fake_stop(&fake);
}
END_TEST

/* In a process of its own, which is not root's: root may connect to anything. */
static int connect_as_somebody(const struct fake *fake)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client;

	if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
			       setresuid(65534, 65534, 65534)))
		return 1;
	if (oa_connect(fake->socket, &client, &error) != OA_E_PERMISSION)
		return 2;
	return strstr(error.text, "may not connect") ? 0 : 3;
}

START_TEST(no_permission)
{
	struct fake fake;
	int status;
	pid_t pid;

	fake_start(&fake, &plain);
	ck_assert_int_eq(chmod(fake.folder, 0711), 0);
	ck_assert_int_eq(chmod(fake.socket, 0), 0);
	pid = fork();
	if (pid == 0)
		_exit(connect_as_somebody(&fake));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	fake_stop(&fake);
}
END_TEST

START_TEST(wrong_options)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_stream *stream;
	struct oa_client *client;
	struct fake fake;

	fake_start(&fake, &plain);
	client = fake_connect(&fake);
#define REFUSED(member, value, part)                                                        \
	do {                                                                                \
		struct oa_options options = fake_options(5, 1);                             \
		options.member = value;                                                     \
		ck_assert_int_eq(oa_open(client, &options, &stream, &error), OA_E_INVALID); \
		has(error.text, part);                                                      \
	} while (0)
	REFUSED(dataset, NULL, "options.dataset");
	REFUSED(pipeline, "", "options.pipeline");
	REFUSED(batch, 0, "options.batch");
	REFUSED(batch, 70000, "options.batch");
	REFUSED(flags, 1u << 20, "options.flags");
	REFUSED(bad, (enum oa_bad)9, "options.bad");
	REFUSED(rank, 1, "options.rank");
	REFUSED(chunk, 100000, "options.chunk");
	REFUSED(token_size, 5, "options.token");
	REFUSED(size, 8, "options.size");
#undef REFUSED
	ck_assert_int_eq(oa_open(NULL, NULL, &stream, &error), OA_E_INVALID);
	ck_assert_int_eq(oa_open(client, NULL, &stream, NULL), OA_E_INVALID);
	oa_disconnect(client);
	fake_stop(&fake);
}
END_TEST

START_TEST(drop_last_without_a_batch)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = fake_options(200, 1);
	struct oa_stream *stream;
	struct oa_client *client;
	struct fake fake;

	options.flags = OA_DROP_LAST;
	fake_start(&fake, &plain);
	client = fake_connect(&fake);
	ck_assert_int_eq(oa_open(client, &options, &stream, &error), OA_E_INVALID);
	has(error.text, "100 samples, fewer than one batch of 200");
	oa_disconnect(client);
	fake_stop(&fake);
}
END_TEST

START_TEST(open_in_time)
{
	struct fake_config config = plain;
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = fake_options(5, 1);
	struct oa_stream *stream;
	struct oa_client *client;
	struct fake fake;

	fake_start(&fake, &config);
	client = fake_connect(&fake);
	fake_lock(&fake);
	fake.config.mode = FAKE_SILENT;
	fake_unlock(&fake);
	options.timeout_ms = 100;
	ck_assert_int_eq(oa_open(client, &options, &stream, &error), OA_E_TIMEOUT);
	has(error.text, "has not opened the stream in time");
	oa_disconnect(client);
	fake_stop(&fake);
}
END_TEST

/* ---- limits ---- */

START_TEST(few_descriptors)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = fake_options(5, 1);
	struct rlimit limit = {.rlim_cur = 64, .rlim_max = 64};
	struct oa_stream *stream = NULL;
	struct oa_client *client;
	struct fake fake;
	int spare[64], n = 0;

	fake_start(&fake, &plain);
	client = fake_connect(&fake);
	fake_wait_alone(&fake);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (n < 64 && (spare[n] = dup(0)) >= 0)
		n++;
	ck_assert_int_eq(oa_open(client, &options, &stream, &error), OA_E_LIMIT);
	has(error.text, "RLIMIT_NOFILE of this process is 64");
	while (n > 0)
		close(spare[--n]);
	ck_assert_int_eq(oa_open(client, &options, &stream, &error), 0);
	oa_close(stream);
	oa_disconnect(client);
	fake_stop(&fake);
}
END_TEST

/* The fake has its descriptors open already; the four in the message find no place. */
START_TEST(stripped_descriptors)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = fake_options(5, 1);
	struct rlimit before, limit;
	struct oa_stream *stream = NULL;
	struct oa_client *client;
	unsigned codes[2] = {0, 0};
	struct fake fake;

	fake_start(&fake, &plain);
	client = fake_connect(&fake);
	fake_wait_alone(&fake);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	/* sock, its peer, four memories, three or fewer of the four that come */
	for (unsigned room = 6; room <= 9; room++) {
		int r;

		limit = before;
		limit.rlim_cur = (rlim_t)count_fds() + room;
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		r = oa_open(client, &options, &stream, &error);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
		codes[r == 0]++;
		if (r)
			ck_assert_int_eq(r, OA_E_LIMIT);
		if (r)
			has(error.text, "RLIMIT_NOFILE");
		else
			oa_close(stream);
		fake_wait_alone(&fake);
	}
	ck_assert_uint_gt(codes[0], 0);
	oa_disconnect(client);
	fake_stop(&fake);
}
END_TEST

/* ---- time-outs: the texts ---- */

static const struct stage_case {
	uint32_t stage;
	bool is_stopped;
	const char *text;
} stage_cases[] = {
    {LAYOUT_STAGE_NONE, false,
     "no batch within 30 ms: accessd has nothing in work for this job; dataset /data/fake"},
    {LAYOUT_STAGE_SCAN, false,
     "no batch within 30 ms: accessd is still listing the dataset's files; dataset "},
    {LAYOUT_STAGE_READ, false,
     "no batch within 30 ms: storage is slow: accessd waits for the bytes of samples; "},
    {LAYOUT_STAGE_DECODE, false,
     "workers are busy with the next chunk: preprocessing is the bottleneck; dataset"},
    {LAYOUT_STAGE_SLOT, false,
     "no slot is free: all are held by jobs; give accessd more memory or slots; data"},
    {LAYOUT_STAGE_WORKERS, false,
     "no worker is alive; accessd's log says why: journalctl -u accessd, or the file accessd.log "
     "beside its socket; dataset /data/fake"},
    {LAYOUT_STAGE_SCHEDULE, false, "the next chunk is being composed; dataset /data/fake"},
    {LAYOUT_STAGE_DRAIN, false,
     "accessd is shutting down; the job goes on with the next one; dataset"},
    {77, false, "a stage this libaccess does not know"},
    {LAYOUT_STAGE_READ, true,
     "accessd (pid 4242) has not answered for 12 s: stopped?; dataset /data/fake"},
};

START_TEST(timeouts_name_the_stage)
{
	const struct stage_case *c = &stage_cases[_i];
	struct fake_config config = plain;
	struct oa_options options = fake_options(5, 1);
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct fake fake;

	config.most_chunks = 0;
	fake_start(&fake, &config);
	fake.config.most_chunks = 0;
	fake.config.stage = c->stage;
	fake.config.is_stopped = c->is_stopped;
	stream = fake_open(&fake, &options);
	fake_times_out(stream, 30, c->text); /* chunks may have been posted before that was set */
	ck_assert_int_eq(oa_next(stream, 0, &batch), OA_E_TIMEOUT);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

START_TEST(timeouts_name_the_watermark_and_notices)
{
	struct fake_config config = plain;
	struct oa_options options = fake_options(4, 1);
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct fake fake;

	config.stop_at = 7;
	config.stage = LAYOUT_STAGE_DECODE;
	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
	oa_release(batch);
	fake_say(&fake, PROTO_NOTICE, 0, "3 samples were skipped");
	ck_assert_int_eq(oa_next(stream, 50, &batch), OA_E_TIMEOUT);
	has(oa_error_text(stream),
	    "; 7 of 10 samples of the chunk are finished, the next one is sample ");
	has(oa_error_text(stream), "; accessd said: 3 samples were skipped");
	fake_kill(&fake);
	fake_times_out(stream, 50, "no daemon at ");
	has(oa_error_text(stream), " s; the job goes on when it is back");
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

START_TEST(silent_after_reconnect)
{
	struct oa_options options = fake_options(5, 1);
	struct oa_stream *stream;
	struct fake fake;

	fake_start(&fake, &plain);
	stream = fake_open(&fake, &options);
	fake_kill(&fake);
	fake.config.mode = FAKE_SILENT;
	fake_again(&fake);
	fake_times_out(stream, 100, "has accepted the connection and not answered for ");
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* ---- pins, poison ---- */

START_TEST(two_slots_at_most)
{
	struct oa_options options = fake_options(5, 1);
	struct oa_batch *held[4], *batch;
	struct oa_stream *stream;
	struct fake fake;

	fake_start(&fake, &plain);
	stream = fake_open(&fake, &options);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &held[i]), 0);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), OA_E_PINS);
	ck_assert_str_eq(oa_error_text(stream), "you hold 4 batches on 2 slots; release one before "
						"oa_next(), or open with OA_KEEP or OA_COPY");
	oa_release(held[1]);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch),
			 OA_E_PINS); /* its slot has another window */
	oa_release(held[0]);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
	for (unsigned i = 2; i < 4; i++)
		fake_check_batch(held[i]);
	oa_release(held[2]);
	oa_release(held[2]); /* twice changes nothing */
	oa_release(held[3]);
	oa_release(batch);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

START_TEST(copies_pin_nothing)
{
	struct oa_options options = fake_options(5, 1);
	struct oa_stats stats = {.size = sizeof(stats)};
	struct oa_batch *held[20], *batch;
	struct oa_stream *stream;
	struct oa_field field = {.size = sizeof(field)};
	struct fake fake;

	options.flags = OA_COPY;
	fake_start(&fake, &plain);
	stream = fake_open(&fake, &options);
	for (unsigned i = 0; i < 20; i++)
		ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &held[i]), 0);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), OA_E_END);
	oa_stream_stats(stream, &stats);
	ck_assert_uint_eq(stats.pins, 0);
	ck_assert_uint_eq(stats.copied, 0);
	ck_assert_int_eq(oa_batch_field(held[3], 0, &field), 0);
	memset((void *)field.data, 1, field.bytes); /* ours to write */
	for (unsigned i = 4; i < 20; i++)
		fake_check_batch(held[i]);
	oa_close(stream);
	for (unsigned i = 0; i < 20; i++)
		oa_release(held[i]);
	fake_stop(&fake);
}
END_TEST

START_TEST(poison_finds_a_recycled_slot)
{
	struct oa_options options = fake_options(5, 1);
	struct oa_stream *stream;
	struct oa_batch *batch, *next;
	struct fake fake;

	options.flags = OA_POISON;
	fake_start(&fake, &plain);
	stream = fake_open(&fake, &options);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
	fake_lock(&fake);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(fake.conn); i++)
		for (unsigned slot = 0; fake.conn[i].has_stream && slot < plain.slots; slot++)
			slot_table_empty(&fake.conn[i].table, slot); /* a bug of accessd */
	fake_unlock(&fake);
	oa_release(batch);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &next), -EPROTO);
	has(oa_error_text(stream), "OA_POISON");
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* ---- bad samples, failures, lies ---- */

static uint8_t status_one_error(uint64_t id)
{
	return id == 33 ? LAYOUT_SAMPLE_ERROR : LAYOUT_SAMPLE_OK;
}

START_TEST(error_samples_are_explained)
{
	struct fake_config config = plain;
	struct oa_options options = fake_options(1, 1);
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct fake fake;
	int r;

	config.status = status_one_error;
	config.is_mute = _i == 1;
	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	while ((r = oa_next(stream, PATIENCE_MS, &batch)) == 0)
		oa_release(batch);
	ck_assert_int_eq(r, OA_E_SAMPLE);
	has(oa_error_text(stream), config.is_mute
				       ? "sample 33 is bad; accessd did not say why within 2000 ms"
				       : "cat/7.jpg: decode: truncated (position ");
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), OA_E_SAMPLE); /* for good */
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

START_TEST(failed_streams_stay_failed)
{
	struct fake_config config = plain;
	struct oa_options options = fake_options(10, 0);
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct fake fake;
	int r;

	config.most_chunks = 3;
	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	fake_say(&fake, PROTO_FAILED, OA_E_DATASET, "a/b.jpg has changed since it was listed");
	while ((r = oa_next(stream, PATIENCE_MS, &batch)) == 0) /* what is ready comes first */
		oa_release(batch);
	ck_assert_int_eq(r, OA_E_DATASET);
	ck_assert_str_eq(oa_error_text(stream), "a/b.jpg has changed since it was listed");
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), OA_E_DATASET);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* A daemon that contradicts itself is left and dialled again; the epoch is still exact. */
START_TEST(lies_cost_a_reconnect)
{
	struct fake_config config = {.n = 64, .chunk = 8, .slots = 4, .lie = (uint32_t)_i};
	struct oa_batch_info info = {.size = sizeof(info)};
	struct oa_stats stats = {.size = sizeof(stats)};
	struct oa_options options = fake_options(4, 1);
	uint8_t seen[64] = {0};
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct fake fake;
	int r;

	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	for (unsigned tries = 0; (r = oa_next(stream, 300, &batch)) != OA_E_END; tries++) {
		ck_assert_uint_lt(tries, 1000);
		if (r == OA_E_TIMEOUT) { /* enough of it: it becomes honest */
			oa_stream_stats(stream, &stats);
			fake_lock(&fake);
			fake.config.lie = stats.reconnects ? 0 : fake.config.lie;
			fake_unlock(&fake);
			continue;
		}
		ck_assert_msg(r == 0, "%s", oa_error_text(stream));
		oa_batch_info(batch, &info);
		for (uint32_t i = 0; i < info.count; i++)
			seen[info.ids[i]]++;
		oa_release(batch);
	}
	oa_stream_stats(stream, &stats);
	ck_assert_uint_gt(stats.reconnects, 0);
	for (unsigned id = 0; id < 64; id++)
		ck_assert(_i == 6 ? seen[id] >= 1 : seen[id] == 1);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

START_TEST(lost_and_found)
{
	struct oa_options options = fake_options(5, 2);
	struct oa_stats stats = {.size = sizeof(stats)};
	struct oa_stream *stream;
	struct oa_batch *batch;
	unsigned batches = 0;
	struct fake fake;

	fake_start(&fake, &plain);
	stream = fake_open(&fake, &options);
	for (; oa_next(stream, PATIENCE_MS, &batch) == 0; batches++) {
		if (batches == 3)
			fake_say(&fake, PROTO_LOST, 0, "restarting");
		if (batches == 9)
			fake_hang_up(&fake);
		oa_release(batch);
	}
	ck_assert_uint_eq(batches, 40);
	oa_stream_stats(stream, &stats);
	ck_assert_uint_ge(stats.reconnects, 1);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

START_TEST(changed_dataset_after_a_restart)
{
	struct oa_options options = fake_options(5, 0);
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct fake fake;

	fake_start(&fake, &plain);
	stream = fake_open(&fake, &options);
	fake_kill(&fake);
	fake.config.mode = FAKE_REFUSE; /* may pass: tried again */
	fake_again(&fake);
	fake_times_out(stream, 200, "raise memory=");
	fake_lock(&fake);
	fake.config.mode = FAKE_GOOD;
	fake_unlock(&fake);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
	oa_release(batch);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* ---- signals, descriptors ---- */

static void on_alarm(int number)
{
	(void)number;
}

START_TEST(signals_interrupt)
{
	struct fake_config config = plain;
	struct oa_options options = fake_options(5, 1);
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = _i ? SA_RESTART : 0};
	struct oa_stream *stream;
	struct oa_batch *batch;
	sigset_t alarms;
	struct fake fake;
	int r;

	/* The fake's thread must not get it. */
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	config.most_chunks = 1;
	fake_start(&fake, &config);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	stream = fake_open(&fake, &options);
	sigaction(SIGALRM, &action, NULL);
	ualarm(100000, 100000); /* again and again: the first may come before the wait */
	while ((r = oa_next(stream, -1, &batch)) == 0)
		oa_release(batch);
	ck_assert_int_eq(r, OA_E_INTERRUPTED);
	has(oa_error_text(stream), "call it again");
	fake_kill(&fake); /* and without a daemon */
	ck_assert_int_eq(oa_next(stream, -1, &batch), OA_E_INTERRUPTED);
	ualarm(0, 0);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

START_TEST(pollable)
{
	struct fake_config config = {.n = 100, .chunk = 10, .slots = 4, .drips = true};
	struct oa_options options = fake_options(7, 2);
	struct oa_stream *stream;
	struct oa_batch *batch;
	unsigned batches = 0;
	struct fake fake;
	int r, first = -1;

	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	for (unsigned turn = 0; turn < 100000; turn++) {
		struct pollfd fd = {.fd = oa_fd(stream), .events = POLLIN};

		ck_assert_int_ge(fd.fd, 0);
		first = first < 0 ? fd.fd : first;
		ck_assert_int_eq(fd.fd, first);
		ck_assert_int_eq(poll(&fd, 1, PATIENCE_MS), 1);
		r = oa_next(stream, 0, &batch);
		if (r == OA_E_TIMEOUT)
			continue;
		if (r)
			break;
		oa_release(batch);
		if (++batches == 10) {
			fake_kill(&fake);
			fake_again(&fake);
		}
	}
	ck_assert_int_eq(r, OA_E_END);
	ck_assert_uint_eq(batches, 30);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

START_TEST(status_and_names)
{
	struct oa_error small = {.size = offsetof(struct oa_error, text) + 8};
	struct oa_client *client;
	char *json = NULL;
	struct fake fake;

	fake_start(&fake, &plain);
	client = fake_connect(&fake);
	ck_assert_int_eq(oa_status(client, &json, NULL), 0);
	ck_assert_str_eq(json, "{\"jobs\": []}");
	free(json);
	memset(small.text, 'x', sizeof(small.text));
	ck_assert_int_eq(oa_status(NULL, &json, &small), OA_E_INVALID);
	ck_assert_uint_eq(strlen(small.text), 7);
	ck_assert_int_eq(small.text[8], 'x');
	ck_assert_str_eq(oa_error_name(OA_E_TIMEOUT), "OA_E_TIMEOUT");
	ck_assert_str_eq(oa_error_name(-ENOENT), "No such file or directory");
	ck_assert_str_eq(oa_error_name(12345), "unknown error");
	ck_assert_str_eq(oa_error_name(-12345), "unknown error");
	ck_assert_ptr_nonnull(oa_version());
	ck_assert_ptr_nonnull(oa_error_text(NULL));
	oa_release(NULL);
	oa_close(NULL);
	oa_disconnect(client);
	oa_disconnect(NULL);
	fake_stop(&fake);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, bad_answers_to_open, 0, BASE_ARRAY_LEN(open_cases));
	tcase_add_loop_test(tcase, bad_ops_on_batches, 0, BASE_ARRAY_LEN(batch_mixes));
	tcase_add_loop_test(tcase, bad_answers_to_hello, 0, BASE_ARRAY_LEN(hello_cases));
	tcase_add_loop_test(tcase, an_older_accessd_comes_back, 0, 2);
	tcase_add_loop_test(tcase, a_name_is_not_asked_of_an_older_accessd, 0, 2);
	tcase_add_test(tcase, nobody_there);
	tcase_add_test(tcase, no_permission);
	tcase_add_test(tcase, wrong_options);
	tcase_add_test(tcase, drop_last_without_a_batch);
	tcase_add_test(tcase, open_in_time);
	tcase_add_test(tcase, few_descriptors);
	tcase_add_test(tcase, stripped_descriptors);
	tcase_add_loop_test(tcase, timeouts_name_the_stage, 0, BASE_ARRAY_LEN(stage_cases));
	tcase_add_test(tcase, timeouts_name_the_watermark_and_notices);
	tcase_add_test(tcase, silent_after_reconnect);
	tcase_add_test(tcase, two_slots_at_most);
	tcase_add_test(tcase, copies_pin_nothing);
	tcase_add_test(tcase, poison_finds_a_recycled_slot);
	tcase_add_loop_test(tcase, error_samples_are_explained, 0, 2);
	tcase_add_test(tcase, failed_streams_stay_failed);
	tcase_add_loop_test(tcase, lies_cost_a_reconnect, 1, 7);
	tcase_add_test(tcase, lost_and_found);
	tcase_add_test(tcase, changed_dataset_after_a_restart);
	tcase_add_loop_test(tcase, signals_interrupt, 0, 2);
	tcase_add_test(tcase, pollable);
	tcase_add_test(tcase, status_and_names);
}

int main(void)
{
	return suite_run("trouble", add);
}

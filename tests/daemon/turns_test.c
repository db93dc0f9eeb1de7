/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What one client asks for is done in turns of the loop, between those of the others: his opening may
 * take long, their status comes meanwhile.
 */

#include "tests/daemon/raw.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/net/porter.h"
#include "shmring/plan_log.h"

#define PICTURES 5000
#define RANKS 1024
#define BATCH 16
/* A plan of chunks of one sample, as far as a step of all ranks goes. */
#define PLANNED ((uint64_t)RANKS * BATCH)
#define RECORD (sizeof(struct plan_log_record) + 8)

static const char *dataset;

static void put_open(struct wire_out *out, const struct wire_in *welcome, const char *job)
{
	const void *nonce = NULL;
	size_t size = 0;

	ck_assert_int_eq(wire_get_bytes(welcome, PROTO_KEY_NONCE, &nonce, &size), 0);
	wire_out_init(out, PROTO_OPEN);
	wire_put_bytes(out, PROTO_KEY_NONCE, nonce, size);
	wire_put_string(out, PROTO_KEY_DATASET, dataset);
	wire_put_string(out, PROTO_KEY_PIPELINE, "imagenet-eval-u8");
	wire_put_u64(out, PROTO_KEY_BATCH, BATCH);
	wire_put_u64(out, PROTO_KEY_CHUNK, 1);
	wire_put_u64(out, PROTO_KEY_EPOCHS, 0);
	wire_put_string(out, PROTO_KEY_JOB, job);
	wire_put_u64(out, PROTO_KEY_RANKS, RANKS);
	wire_put_u64(out, PROTO_KEY_RANK, 0);
}

static int open_rank(const char *job, struct wire_in *ret_opened)
{
	struct wire_in welcome;
	struct wire_out out;
	int sock = raw_greeted(&welcome);

	put_open(&out, &welcome, job);
	ck_assert_int_eq(wire_send(sock, &out, 0), 0);
	wire_out_fini(&out);
	wire_in_fini(&welcome);
	ck_assert_int_eq(raw_hear(sock, PROTO_OPENED, ret_opened), 0);
	ck_assert_uint_eq(ret_opened->n_fds, 5);
	return sock;
}

static void ask_status(int sock)
{
	struct wire_in in;

	raw_say(sock, PROTO_STATUS);
	ck_assert_int_eq(raw_hear(sock, PROTO_STATUS_REPLY, &in), 0);
	wire_in_fini(&in);
}

/* Asks another client's status while the plan grows. true: there was an answer to a question of then before
 * the plan was whole, so it is not made in one turn. A plan that takes long may never be whole: nobody deals for
 * a rank that has taken nothing for a while. */
static bool is_heard_meanwhile(int other, const char *job)
{
	struct wire_in opened;
	struct plan_log plan_log;
	uint64_t before, after = 0;
	bool is_heard = false;
	int sock = open_rank(job, &opened);

	ck_assert_int_eq(plan_log_attach(opened.fds[4], UINT64_MAX, &plan_log), 0);
	while (!is_heard && after < PLANNED * RECORD) {
		before = plan_log_end(&plan_log);
		ask_status(other);
		after = plan_log_end(&plan_log);
		is_heard = before && after < PLANNED * RECORD;
	}
	plan_log_detach(&plan_log);
	wire_in_fini(&opened);
	close(sock);
	return is_heard;
}

START_TEST(a_long_plan_lets_others_speak)
{
	bool is_heard = false;
	struct wire_in welcome;
	char job[32];
	int other;

	dataset = rig_pictures("plan", PICTURES, 1, 2);
	rig_start("workers=1", NULL);
	other = raw_greeted(&welcome);
	for (unsigned i = 0; i < 100 && !is_heard; i++) {
		snprintf(job, sizeof(job), "plan-%u", i);
		is_heard = is_heard_meanwhile(other, job);
	}
	ck_assert(is_heard);
	wire_in_fini(&welcome);
	close(other);
	rig_end();
}
END_TEST

/* ---- the end of a stream ---- */

static bool is_porter(long pid)
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	file = fopen(path, "r");
	if (file && !fgets(name, sizeof(name), file))
		*name = '\0';
	if (file)
		fclose(file);
	return strncmp(name, PORTER_NAME, strlen(PORTER_NAME)) == 0;
}

static unsigned find_porters(long *ret, unsigned most)
{
	char path[96];
	unsigned n = 0;
	FILE *file;
	long pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)rig_host.pid,
		 (int)rig_host.pid);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	while (n < most && fscanf(file, "%ld", &pid) == 1)
		if (is_porter(pid))
			ret[n++] = pid;
	fclose(file);
	return n;
}

static bool has_new_porter(const long *old, unsigned n_old)
{
	long now[64];
	unsigned n = find_porters(now, BASE_ARRAY_LEN(now));
	bool is_new = false;

	for (unsigned i = 0; i < n; i++) {
		is_new = true;
		for (unsigned k = 0; k < n_old; k++)
			is_new &= old[k] != now[i];
		if (is_new)
			break;
	}
	return is_new;
}

/* A stream's memory is given back by a porter, also where nobody but accessd has it any more. */
START_TEST(memory_is_given_back_elsewhere)
{
	const uint64_t end_ns = base_now_ns() + UINT64_C(60000000000);
	struct wire_in opened;
	long before[64];
	unsigned n;
	int sock;

	dataset = rig_pictures("end", 64, 1, 2);
	rig_start("workers=1", "linger_s=0", NULL);
	sock = open_rank("end", &opened);
	n = find_porters(before, BASE_ARRAY_LEN(before));
	wire_in_fini(&opened);
	close(sock);
	ck_assert(rig_wait_status("streams", 0, 0));
	while (!has_new_porter(before, n) && base_now_ns() < end_ns)
		rig_sleep_ms(10);
	ck_assert(has_new_porter(before, n));
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, memory_is_given_back_elsewhere);
	tcase_add_test(tcase, a_long_plan_lets_others_speak);
}

int main(void)
{
	return rig_main("turns", add);
}

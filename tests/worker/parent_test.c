/* SPDX-License-Identifier: Apache-2.0 */

/* The worker parent as accessd sees it: queues come and go, workers follow, nobody outlives
 * anybody. */

#include "pipeline/pipeline.h"
#include "tests/worker/rig.h"
#include "tests/suite.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/pool.h"
#include "base/sandbox.h"
#include "worker/warm.h"
#include "worker/worker.h"

#define MEMORY "256M"

/* A chunk of count samples through slot; all of it right. */
static void produce(struct rig *rig, struct rig_queue *queue, uint32_t slot, uint32_t count)
{
	uint32_t row = rig_queue_fill(rig, queue, slot, count);

	rig_queue_await(rig, queue, row);
	ck_assert_uint_eq(rig_queue_count(queue, row, LAYOUT_TASK_DONE), count);
	rig_queue_check(queue, row, slot, count);
	queue_row_end(&queue->queue, row);
}

START_TEST(test_fields_are_right)
{
	struct rig *rig = rig_new(2, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(1);

	rig_queue_open(rig, queue);
	produce(rig, queue, 0, RIG_CHUNK);
	produce(rig, queue, RIG_SLOTS - 1, 5);
	rig_await_workers(rig, 2);
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

/* The clock of CPU time is a system call a look: it is looked at for those that ask for it. */
START_TEST(test_timed)
{
	struct rig *rig = rig_new(1, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(1);
	uint32_t row;

	rig_queue_open(rig, queue);
	row = rig_queue_fill(rig, queue, 0, 8);
	rig_queue_await(rig, queue, row);
	for (uint32_t i = 0; i < 8; i++) {
		struct queue_kept kept;

		queue_task_kept(&queue->queue, row, i, &kept);
		ck_assert_int_eq(kept.work_us > 0, rig_timed(i) != LAYOUT_TIMED_NOT);
	}
	queue_row_end(&queue->queue, row);
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

START_TEST(test_accessd_is_rung)
{
	struct rig *rig = rig_new(1, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(1);
	struct pollfd polled = {rig->event, POLLIN, 0};
	uint64_t rings = 0;

	rig_queue_open(rig, queue);
	rig_queue_fill(rig, queue, 0, 7);
	ck_assert_int_eq(poll(&polled, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(read(rig->event, &rings, sizeof(rings)), sizeof(rings));
	ck_assert_uint_eq(rings, 1);
	ck_assert_uint_eq(queue_ended(&queue->queue, 0), 7);
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

static bool all_before_exited(struct rig *rig, void *closure)
{
	uint32_t last = *(uint32_t *)closure;

	for (uint32_t owner = 1; owner <= last; owner++)
		if (!rig->worker[owner].has_exited)
			return false;
	return true;
}

START_TEST(test_generations)
{
	struct rig *rig = rig_new(3, MEMORY, NULL);
	struct rig_queue *queue[3];
	uint32_t first_generation;

	for (uint32_t i = 0; i < 3; i++)
		queue[i] = rig_queue_new(i + 1);
	rig_queue_open(rig, queue[0]);
	produce(rig, queue[0], 0, RIG_CHUNK);
	rig_await_workers(rig, 3);
	first_generation = rig->last_owner;
	/* two more, one change of workers */
	ck_assert(rig_queue_add(rig, queue[1], &(struct rig_add){.spec = NULL}));
	ck_assert(rig_queue_add(rig, queue[2], &(struct rig_add){.spec = NULL}));
	rig_send_queue(rig, PARENT_GO, 2);
	rig_send_queue(rig, PARENT_GO, 3);
	rig_await(rig, all_before_exited, &first_generation);
	rig_await_workers(rig, 3);
	for (uint32_t i = 0; i < 3; i++)
		produce(rig, queue[i], i, RIG_CHUNK);
	rig_pump(rig, 0);
	ck_assert_uint_eq(rig->last_owner, first_generation + 3);
	ck_assert_uint_eq(rig->most_alive, 3);
	for (uint32_t owner = 1; owner <= first_generation; owner++)
		ck_assert_int_eq(rig->worker[owner].status, 0);
	rig_free(rig);
	for (uint32_t i = 0; i < 3; i++)
		rig_queue_free(queue[i]);
}
END_TEST

static bool has_ended(struct rig *rig, unsigned n)
{
	for (uint32_t owner = 1; owner <= rig->last_owner; owner++)
		n -= rig->worker[owner].has_exited;
	return n == 0;
}

static bool two_have_ended(struct rig *rig, void *closure)
{
	(void)closure;
	return has_ended(rig, 2);
}

/* Fewer finish what they do and leave, more come; each task is done once, whoever did it. */
START_TEST(test_size_changes)
{
	struct rig *rig = rig_new(4, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(1);
	uint32_t row;

	rig_queue_open(rig, queue);
	produce(rig, queue, 0, RIG_CHUNK);
	rig_await_workers(rig, 4);
	row = rig_queue_fill(rig, queue, 0, RIG_CHUNK);
	rig_send_size(rig, 2);
	rig_await(rig, two_have_ended, NULL);
	rig_queue_await(rig, queue, row);
	ck_assert_uint_eq(rig_queue_count(queue, row, LAYOUT_TASK_DONE), RIG_CHUNK);
	rig_queue_check(queue, row, 0, RIG_CHUNK);
	queue_row_end(&queue->queue, row);
	for (uint32_t owner = 1; owner <= rig->last_owner; owner++) {
		if (rig->worker[owner].has_exited)
			ck_assert_int_eq(rig->worker[owner].status, 0);
	}
	rig_await_workers(rig, 2);
	produce(rig, queue, 1, RIG_CHUNK);
	rig_send_size(rig, 6);
	rig_await_workers(rig, 6);
	produce(rig, queue, 0, RIG_CHUNK);
	ck_assert(has_ended(rig, 2));
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

static bool is_removed(struct rig *rig, void *closure)
{
	return rig->answer.removed == *(uint32_t *)closure;
}

static void remove_queue(struct rig *rig, uint32_t number)
{
	uint32_t before = rig->last_owner;

	rig->answer.removed = 0;
	rig_send_queue(rig, PARENT_REMOVE, number);
	rig_await(rig, is_removed, &number);
	ck_assert(all_before_exited(rig, &before));
}

START_TEST(test_remove)
{
	struct rig *rig = rig_new(2, MEMORY, NULL);
	struct rig_queue *queue[2] = {rig_queue_new(1), rig_queue_new(2)};

	rig_queue_open(rig, queue[0]);
	rig_queue_open(rig, queue[1]);
	produce(rig, queue[0], 0, RIG_CHUNK);
	rig_await_workers(rig, 2);
	queue_close(&queue[0]->queue);
	remove_queue(rig, 1);
	produce(rig, queue[1], 0, RIG_CHUNK);
	rig_await_workers(rig, 2);
	/* the last one: nothing to do, nobody stays */
	remove_queue(rig, 2);
	rig_await_workers(rig, 0);
	/* the number can be used again */
	rig_queue_free(queue[0]);
	queue[0] = rig_queue_new(1);
	rig_queue_open(rig, queue[0]);
	produce(rig, queue[0], 1, RIG_CHUNK);
	rig_free(rig);
	rig_queue_free(queue[0]);
	rig_queue_free(queue[1]);
}
END_TEST

/* ---- variants ---- */

#define SPEC_OTHER                                                                                \
	"{\"ops\":[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":[9,17]},{\"op\":" \
	"\"cast\",\"dtype\":\"f32\"}]}"
#define SPEC_THIRD "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[16,16]}]}"

/* A chunk in the variants of both, all of it right. */
static void produce_both(struct rig *rig, struct rig_queue *queue, struct rig_queue *further,
			 uint32_t slot)
{
	uint32_t row;

	queue->variants = 1 | UINT32_C(1) << further->variant;
	row = rig_queue_fill(rig, queue, slot, RIG_CHUNK);
	rig_queue_await(rig, queue, row);
	ck_assert_uint_eq(rig_queue_count(queue, row, LAYOUT_TASK_DONE), RIG_CHUNK);
	rig_queue_check(queue, row, slot, RIG_CHUNK);
	rig_queue_check(further, row, slot, RIG_CHUNK);
	queue_row_end(&queue->queue, row);
	queue->variants = 1;
}

static void open_variant(struct rig *rig, struct rig_queue *further)
{
	ck_assert(rig_queue_add(rig, further, &(struct rig_add){.spec = NULL}));
	ck_assert_int_eq(slots_seal(further->slots_fd), 0);
	rig_send_queue(rig, PARENT_GO, further->number);
}

static void remove_variant(struct rig *rig, struct rig_queue *further)
{
	struct wire_out out;

	rig->answer.removed = 0;
	wire_out_init(&out, PARENT_REMOVE);
	wire_put_u64(&out, PARENT_KEY_QUEUE, further->number);
	wire_put_u64(&out, PARENT_KEY_VARIANT, further->variant);
	ck_assert_int_eq(wire_send(rig->control, &out, 0), 0);
	wire_out_fini(&out);
	rig_await(rig, is_removed, &further->number);
	ck_assert_uint_eq(rig->answer.variant, further->variant);
}

/* A chunk with a variant that the workers do not know waits for those who do, and holds up no other. */
START_TEST(test_variant_comes)
{
	struct rig *rig = rig_new(2, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(3);
	struct rig_queue *further = rig_variant_new(queue, 5, SPEC_OTHER);
	uint32_t first_generation, row;

	rig_queue_open(rig, queue);
	produce(rig, queue, 0, RIG_CHUNK);
	rig_await_workers(rig, 2);
	first_generation = rig->last_owner;
	queue->variants = 1 | 1 << 5;
	row = rig_queue_fill(rig, queue, 1, RIG_CHUNK); /* though nobody can */
	queue->variants = 1;
	for (unsigned i = 0; i < 4; i++)
		produce(rig, queue, 0, RIG_CHUNK);
	ck_assert(rig_queue_add(rig, further, &(struct rig_add){.spec = NULL}));
	produce(rig, queue, 2, RIG_CHUNK);
	ck_assert_uint_eq(rig_queue_count(queue, row, LAYOUT_TASK_READY), RIG_CHUNK);
	ck_assert_int_eq(slots_seal(further->slots_fd), 0);
	rig_send_queue(rig, PARENT_GO, 3);
	rig_queue_await(rig, queue, row);
	ck_assert_uint_eq(rig_queue_count(queue, row, LAYOUT_TASK_DONE), RIG_CHUNK);
	rig_queue_check(queue, row, 1, RIG_CHUNK);
	rig_queue_check(further, row, 1, RIG_CHUNK);
	queue_row_end(&queue->queue, row);
	rig_await(rig, all_before_exited, &first_generation);
	for (uint32_t owner = 1; owner <= first_generation; owner++)
		ck_assert_int_eq(rig->worker[owner].status, 0);
	produce(rig, queue, 3, RIG_CHUNK); /* in the first variant alone */
	rig_free(rig);
	rig_queue_free(further);
	rig_queue_free(queue);
}
END_TEST

/* A variant goes, the others go on, and its number is another's. */
START_TEST(test_variant_goes)
{
	struct rig *rig = rig_new(2, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(3);
	struct rig_queue *further = rig_variant_new(queue, 7, SPEC_OTHER);

	rig_queue_open(rig, queue);
	open_variant(rig, further);
	for (uint32_t slot = 0; slot < RIG_SLOTS; slot++)
		produce_both(rig, queue, further, slot);
	ck_assert(!rig_queue_add(rig, further, &(struct rig_add){.spec = NULL}));
	ck_assert_ptr_nonnull(strstr(rig->answer.text, "still in use"));
	ck_assert(!rig_queue_add(rig, further, &(struct rig_add){.variant_change = 1}));
	ck_assert_ptr_nonnull(strstr(rig->answer.text, "too large"));
	remove_variant(rig, further);
	remove_variant(rig, further); /* there is none: no worker maps it */
	produce(rig, queue, 0, RIG_CHUNK);
	rig_queue_free(further);
	further = rig_variant_new(queue, 7, SPEC_THIRD);
	open_variant(rig, further);
	produce_both(rig, queue, further, 1);
	remove_queue(rig, 3); /* with all its variants */
	rig_await_workers(rig, 0);
	rig_free(rig);
	rig_queue_free(further);
	rig_queue_free(queue);
}
END_TEST

/* A variant that is refused leaves the others alone. */
START_TEST(test_variant_refused)
{
	struct rig *rig = rig_new(1, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(3);
	struct rig_queue *further = rig_variant_new(queue, 1, SPEC_OTHER);

	rig_queue_open(rig, queue);
	ck_assert(!rig_queue_add(rig, further, &(struct rig_add){.offset_change = 8}));
	ck_assert(!rig_queue_add(rig, further, &(struct rig_add){.fds_left_out = 1}));
	produce(rig, queue, 0, 3);
	open_variant(rig, further);
	produce_both(rig, queue, further, 1);
	rig_free(rig);
	rig_queue_free(further);
	rig_queue_free(queue);
}
END_TEST

/* ---- refusals ---- */

static const struct {
	const char *text; /* part of the refusal */
	struct rig_add spoilt;
} refusal_table[] = {
    {"nonsense", {.spec = "{\"ops\":[{\"op\":\"nonsense\"}]}"}},
    {"another size",
     {.spec = "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[9,9]},{"
	      "\"op\":\"layout\",\"order\":\"CHW\"}]}"}},
    {"another size", {.bytes_change = 64}},
    {"cache line", {.offset_change = 8}},
    {"outside its slot", {.offset_change = UINT64_C(1) << 40}},
    {"outside its slot", {.offset_change = UINT64_MAX - 63}},
    {"overlap", {.same_offsets = true}},
    {"smaller than it says", {.slots_change = 1}},
    {"smaller than it says", {.stride_change = UINT64_C(1) << 40}},
    {"larger than a slot", {.stride_change = UINT64_MAX - 4095}},
    {"Too many open files", {.fds_left_out = 1}},
    {"Too many open files", {.fds_left_out = 3}},
};

START_TEST(test_refusal)
{
	struct rig *rig = rig_new(1, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(9);

	/* stride_change of "larger than a slot" is minus one page: the slot is then too small */
	ck_assert(!rig_queue_add(rig, queue, &refusal_table[_i].spoilt));
	ck_assert_msg(strstr(rig->answer.text, refusal_table[_i].text) != NULL, "%s",
		      rig->answer.text);
	/* and it goes on */
	rig_queue_open(rig, queue);
	produce(rig, queue, 0, 3);
	ck_assert(!rig_queue_add(rig, queue, &(struct rig_add){.spec = NULL}));
	ck_assert_ptr_nonnull(strstr(rig->answer.text, "still in use"));
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

/* What decodes videos cannot be loaded: a stream that has some is refused, and the parent goes on. */
START_TEST(test_module_is_broken)
{
	static const char spec[] =
	    "[{\"op\":\"video\",\"frames\":2},{\"op\":\"center_crop\",\"size\":24}]";
	char folder[] = "/tmp/access-parent-XXXXXX", path[64];
	struct rig_queue *queue = rig_queue_new(9);
	struct rig *rig;
	FILE *module;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/access-video.so", folder);
	module = fopen(path, "w");
	ck_assert_ptr_nonnull(module);
	fputs("no module\n", module);
	fclose(module);
	ck_assert_int_eq(setenv("ACCESS_LIBEXEC", folder, 1), 0);
	rig = rig_new(1, MEMORY, NULL);
	ck_assert(!rig_queue_add(rig, queue, &(struct rig_add){.spec = spec}));
	ck_assert_msg(strstr(rig->answer.text, "video") != NULL, "%s", rig->answer.text);
	rig_queue_open(rig, queue);
	produce(rig, queue, 0, 3);
	rig_free(rig);
	rig_queue_free(queue);
	unlink(path);
	rmdir(folder);
}
END_TEST

START_TEST(test_queues_that_are_not)
{
	struct rig *rig = rig_new(1, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(1);

	rig_send_queue(rig, PARENT_GO, 7);
	rig_send_queue(rig, (enum parent_message)4711, 7);
	remove_queue(rig, 7);
	ck_assert(!rig_queue_add(rig, queue, &(struct rig_add){.bytes_change = 1}));
	remove_queue(rig, 1);
	rig_queue_open(rig, queue);
	produce(rig, queue, 0, 3);
	rig_send_queue(rig, PARENT_REMOVE, 1);
	remove_queue(rig, 1); /* twice: one answer or two, both true */
	rig_await_workers(rig, 0);
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

/* A message that cannot be meant ends the parent, and accessd starts another. */
START_TEST(test_nonsense)
{
	struct rig *rig = rig_new(1, MEMORY, NULL);
	int status;

	if (_i == 0)
		ck_assert_int_eq(send(rig->control, "nonsense", 8, 0), 8);
	else if (_i == 1)
		rig_send_queue(rig, PARENT_START, 1);
	else if (_i == 2)
		rig_send_queue(rig, PARENT_SIZE, 1); /* says not how many */
	else
		rig_send_size(rig, _i == 3 ? 0 : LAYOUT_MAX_WORKERS + 1);
	status = rig_reap(rig->pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
	rig->pid = 0;
	rig_free(rig);
}
END_TEST

/* ---- ends ---- */

static void await_deaths(const struct rig *rig)
{
	for (uint32_t owner = 1; owner <= rig->last_owner; owner++) {
		int status;

		if (rig->worker[owner].has_exited)
			continue;
		status = rig_reap(rig->worker[owner].pid);
		/* a newborn may see by itself that its parent is gone */
		ck_assert(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL
					      : WEXITSTATUS(status) == WORKER_EXIT_SETUP);
	}
}

START_TEST(test_parent_killed)
{
	struct rig *rig = rig_new(4, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(1);

	rig_queue_open(rig, queue);
	rig_await_workers(rig, 4);
	ck_assert_int_eq(kill(rig->pid, SIGKILL), 0);
	rig_reap(rig->pid);
	rig->pid = 0;
	await_deaths(rig);
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

START_TEST(test_accessd_hangs_up)
{
	struct rig *rig = rig_new(4, MEMORY, _i == 0 ? NULL : "loop:101");
	struct rig_queue *queue = rig_queue_new(1);
	int status;

	rig_queue_open(rig, queue);
	rig_await_workers(rig, 4);
	rig_queue_fill(rig, queue, 0, 2);
	ck_assert_int_eq(shutdown(rig->control, SHUT_RDWR), 0);
	status = rig_reap(rig->pid);
	rig->pid = 0;
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	await_deaths(rig);
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

/* ---- what a worker is ---- */

START_TEST(test_warm_picture)
{
	const char *const *names;
	unsigned n_names = pipeline_names(&names);

	ck_assert_uint_gt(n_names, 0);
	for (unsigned i = 0; i < n_names; i++) {
		const char *text = pipeline_named(names[i]);
		struct pipeline *pipeline;
		struct diag diag;

		ck_assert_int_eq(pipeline_compile(text, strlen(text), &pipeline, &diag), 0);
		ck_assert_int_eq(warm_up(pipeline), 0);
		pipeline_free(pipeline);
	}
}
END_TEST

static bool status_says(pid_t pid, const char *key, const char *value)
{
	char path[64], line[256];
	bool is_so = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, key, strlen(key)) == 0)
			is_so |= strstr(line, value) != NULL;
	}
	fclose(file);
	return is_so;
}

START_TEST(test_sandboxed)
{
	struct rig *rig = rig_new(1, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(1);
	pid_t pid;

	rig_queue_open(rig, queue);
	produce(rig, queue, 0, 4); /* it ran, so it is in its sandbox */
	rig_await_workers(rig, 1);
	pid = rig->worker[1].pid;
	ck_assert(status_says(pid, "Name:", "access-worker"));
	ck_assert(status_says(pid, "NoNewPrivs:", "1"));
	if (sandbox_is_strict()) {
		ck_assert(status_says(pid, "Seccomp:", "2"));
		ck_assert(status_says(pid, "CapEff:", "0000000000000000"));
		ck_assert(status_says(pid, "CapPrm:", "0000000000000000"));
		ck_assert(status_says(pid, "Threads:", "1"));
	}
	ck_assert(status_says(rig->pid, "Name:", "access-parent"));
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

static long read_number(pid_t pid, const char *name)
{
	char path[64];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%ld", &number), 1);
	fclose(file);
	return number;
}

/* When memory runs out the kernel takes a worker, never the parent. */
START_TEST(test_oom_takes_workers)
{
	struct rig *rig = rig_new(2, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(1);

	rig_queue_open(rig, queue);
	rig_await_workers(rig, 2);
	for (uint32_t owner = 1; owner <= 2; owner++)
		ck_assert_int_eq(read_number(rig->worker[owner].pid, "oom_score_adj"), 1000);
	ck_assert_int_eq(read_number(rig->pid, "oom_score_adj"),
			 read_number(getpid(), "oom_score_adj"));
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

/* /proc/PID/fd of others can be listed by root alone. */
static unsigned count_fds(pid_t pid)
{
	char path[64];
	unsigned count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (dir == NULL)
		return 0;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

START_TEST(test_descriptors)
{
	struct rig *rig = rig_new(1, MEMORY, NULL);
	struct rig_queue *queue[2] = {rig_queue_new(1), rig_queue_new(2)};
	unsigned before, after;

	rig_queue_open(rig, queue[0]);
	before = count_fds(rig->pid);
	rig_queue_open(rig, queue[1]);
	after = count_fds(rig->pid);
	ck_assert_uint_eq(before, after); /* nothing of a queue is kept but its mappings */
	produce(rig, queue[1], 0, 1);
	rig_await_workers(rig, 1);
	if (sandbox_is_strict() && after > 0)
		ck_assert_uint_eq(count_fds(rig->worker[rig->last_owner].pid), 1);
	rig_free(rig);
	rig_queue_free(queue[0]);
	rig_queue_free(queue[1]);
}
END_TEST

/* A worker's own cost reaches accessd, and its memory stays where it is. */
START_TEST(test_costs)
{
	struct rig *rig = rig_new(1, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(1);
	uint64_t done, busy_ns;

	rig_queue_open(rig, queue);
	for (unsigned i = 0; i < 20; i++)
		produce(rig, queue, 0, RIG_CHUNK);
	rig_await_workers(rig, 1);
	done = atomic_load(&rig->doorbell->worker[0].w_done);
	busy_ns = atomic_load(&rig->doorbell->worker[0].w_busy_ns);
	ck_assert_uint_ge(done, 20 * RIG_CHUNK - 1); /* the last one is counted after it ended */
	ck_assert_uint_gt(busy_ns, 0);
	remove_queue(rig, 1);
	ck_assert_uint_gt(rig->worker[1].cpu_ns, 0);
	ck_assert_uint_eq(atomic_load(&rig->doorbell->worker[0].w_done), 20 * RIG_CHUNK);
	ck_assert_uint_eq(atomic_load(&rig->doorbell->worker[0].w_task), 0);
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

/* Owner numbers are never used twice: the parent ends instead. */
START_TEST(test_numbers_spent)
{
	static struct pool pool;
	static struct workset set;
	const struct pool_settings settings = {.n_workers = 1, .oom_fd = -1};
	struct workset_queue queue = {.number = 1, .variant = {{.state = WORKSET_MAPPED}}};
	struct layout_doorbell *doorbell;
	struct pool_event event;
	int fd;

	ck_assert_int_eq(doorbell_new(&doorbell, &fd), 0);
	ck_assert_int_eq(pool_init(&pool, &settings, doorbell, NULL, NULL, &set), 0);
	ck_assert_int_eq(pool_start(&pool, 1, &event), POOL_E_NONE); /* no queue */
	set.queue[set.count++] = &queue;
	pool.last_owner = POOL_LAST_OWNER;
	ck_assert_int_eq(pool_start(&pool, 1, &event), POOL_E_SPENT);
	pool_fini(&pool);
	doorbell_detach(doorbell);
	close(fd);
}
END_TEST

/* ---- options ---- */

static const struct {
	const char *text; /* part of what is said */
	const char *argv[8];
} usage_table[] = {
    {"--workers is missing", {"--memory", "1G"}},
    {"--memory is missing", {"--workers", "1"}},
    {"at least 1", {"--workers", "0", "--memory", "1G"}},
    {"out of range", {"--workers", "257", "--memory", "1G"}},
    {"out of range", {"--workers", "2x", "--memory", "1G"}},
    {"no size", {"--workers", "2", "--memory", "lots"}},
    {"less than", {"--workers", "2", "--memory", "1M"}},
    {"out of range", {"--nice", "-5", "--workers", "2", "--memory", "1G"}},
    {"needs a value", {"--workers"}},
    {"--speed is unknown", {"--speed", "9"}},
    {"no control socket", {"--workers", "2", "--memory", "1G"}},
};

START_TEST(test_usage)
{
	char text[1024] = "";
	int status;

	status = rig_run_program(usage_table[_i].argv, text, sizeof(text));
	ck_assert_msg(strstr(text, usage_table[_i].text) != NULL, "%s", text);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, test_fields_are_right);
	tcase_add_test(tcase, test_timed);
	tcase_add_test(tcase, test_accessd_is_rung);
	tcase_add_test(tcase, test_generations);
	tcase_add_test(tcase, test_size_changes);
	tcase_add_test(tcase, test_remove);
	tcase_add_test(tcase, test_variant_comes);
	tcase_add_test(tcase, test_variant_goes);
	tcase_add_test(tcase, test_variant_refused);
	tcase_add_loop_test(tcase, test_refusal, 0, BASE_ARRAY_LEN(refusal_table));
	tcase_add_test(tcase, test_module_is_broken);
	tcase_add_test(tcase, test_queues_that_are_not);
	tcase_add_loop_test(tcase, test_nonsense, 0, 5);
	tcase_add_test(tcase, test_parent_killed);
	tcase_add_loop_test(tcase, test_accessd_hangs_up, 0, 2);
	tcase_add_test(tcase, test_warm_picture);
	tcase_add_test(tcase, test_sandboxed);
	tcase_add_test(tcase, test_oom_takes_workers);
	tcase_add_test(tcase, test_descriptors);
	tcase_add_test(tcase, test_costs);
	tcase_add_test(tcase, test_numbers_spent);
	tcase_add_loop_test(tcase, test_usage, 0, BASE_ARRAY_LEN(usage_table));
}

int main(void)
{
	return suite_run("parent", add_tests);
}

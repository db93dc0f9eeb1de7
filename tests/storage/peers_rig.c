/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/storage/peers_rig.h"

#include <check.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/little.h"
#include "base/owner.h"
#include "base/philox.h"

#define QUEUE 7
#define DATASET 1
#define STORE_LIMIT (64 << 20)
#define MEMORY (UINT64_C(16) << 20)
#define ROOM 8192 /* of the arena, each */
#define POLL_US 200
#define PROBE UINT64_C(0x7072006f6265)

uint32_t peers_value(uint64_t sample, uint8_t ret[PEERS_VALUE_MOST])
{
	const uint32_t bytes = 1 + (uint32_t)(sample * 53 % PEERS_VALUE_MOST);

	for (uint32_t i = 0; i < bytes; i++)
		ret[i] = (uint8_t)(sample * 31 + i * 7 + (i >> 8));
	return bytes;
}

/* ---- the worker ---- */

static bool is_file(const struct peers_node *node, const struct queue_task *task)
{
	const char *name = dataset_name_of(node->dataset, task->sample);
	const uint8_t *data = node->arena + task->arena_offset;

	for (uint32_t k = 0; k < task->bytes; k++)
		if (data[k] != tree_byte(name, k))
			return false;
	return true;
}

static bool is_value(const struct peers_node *node, const struct queue_task *task)
{
	uint8_t value[PEERS_VALUE_MOST];
	const uint32_t bytes = peers_value(task->sample, value);
	const uint8_t *data = node->arena + task->arena_offset;

	if (task->resident)
		data = resident_at(&node->resident, task->resident, task->came);
	return data && task->came == bytes && task->form == PEERS_FORM &&
	       memcmp(data, value, bytes) == 0;
}

static void make_value(struct peers_node *node, const struct queue_task *task)
{
	const bool is_unfit = node->unfit_every && task->sample % node->unfit_every == 0;
	struct queue_made made = {.made = LAYOUT_MADE_FULL};
	uint8_t value[PEERS_VALUE_MOST];
	const struct rings_item item = {
	    .queue = QUEUE,
	    .form = task->make,
	    .bytes = is_unfit ? 0 : peers_value(task->sample, value),
	    .sample = task->sample,
	};
	uint8_t *at = rings_begin(&node->rings, 0, item.bytes);

	if (at) {
		memcpy(at, value, item.bytes);
		if (node->lies && node->lies[task->sample])
			at[0] ^= 1;
		rings_end(&node->rings, 0, &item);
		made.made = is_unfit ? LAYOUT_MADE_UNFIT : LAYOUT_MADE_YES;
	}
	queue_run_made(&node->queue, task, &made);
}

static void run_task(struct peers_node *node, const struct queue_task *task)
{
	struct queue_kept kept;

	queue_task_kept(&node->queue, task->row, task->index, &kept);
	node->from_where[kept.from]++;
	node->runs[task->sample]++;
	if (task->form && task->slot == LAYOUT_NO_SLOT) { /* there is nothing to do */
		node->wrong += task->came > 0 && !is_value(node, task);
	} else if (task->form) {
		node->wrong += !is_value(node, task);
	} else {
		node->files[task->sample]++;
		node->wrong += !is_file(node, task);
	}
	if (!task->form && task->make && node->dies_every && task->sample % node->dies_every == 0) {
		queue_run_done(&node->queue, task, LAYOUT_FAIL_CRASH, 0, "", 0);
		return;
	}
	if (!task->form && task->make)
		make_value(node, task);
	queue_run_done(&node->queue, task, LAYOUT_FAIL_NONE, 0, "", 0);
}

static void *work_on(void *arg)
{
	struct peers_node *node = arg;

	while (!node->stops) {
		const uint32_t seen = doorbell_work_seq(node->process.doorbell);
		struct queue_task task;

		if (queue_claim_run(&node->queue, 1, 1, &task) == 0)
			run_task(node, &task);
		else
			doorbell_sleep_worker(node->process.doorbell, seen, 50000000);
	}
	return NULL;
}

/* ---- talking to a reader ---- */

static uint64_t number_of(const struct wire_in *in, uint16_t key)
{
	uint64_t value;

	ck_assert_int_eq(wire_get_u64(in, key, &value), 0);
	return value;
}

/* What a reader says by itself. false: it is something else. */
static bool is_aside(struct peers_node *node, const struct wire_in *in)
{
	struct wire_out out;

	if (in->type == READER_ASK_UNREAD) {
		wire_out_init(&out, READER_UNREAD);
		wire_put_u64(&out, READER_KEY_ID, number_of(in, READER_KEY_ID));
		process_send(&node->process, &out);
	}
	node->said_wrong += in->type == READER_WRONG;
	return in->type == READER_ASK_UNREAD || in->type == READER_STATE ||
	       in->type == READER_WRONG || in->type == READER_FAILED;
}

static void expect(struct peers_node *node, uint16_t type, struct wire_in *ret)
{
	for (;;) {
		process_receive(&node->process, ret);
		if (!is_aside(node, ret))
			break;
		wire_in_fini(ret);
	}
	ck_assert_int_eq(ret->type, type);
}

/* Whatever it says while it works. */
static void listen_for(struct peers_node *node, int timeout_ms)
{
	struct pollfd poll_fd = {.fd = node->process.sock, .events = POLLIN};

	while (poll(&poll_fd, 1, timeout_ms) == 1) {
		struct wire_in in;

		wire_in_init(&in);
		ck_assert_int_eq(wire_recv(node->process.sock, &in, 0), 0);
		ck_assert(is_aside(node, &in));
		wire_in_fini(&in);
		timeout_ms = 0;
	}
}

static void send_start(struct peers_node *node)
{
	struct wire_out out;

	wire_out_init(&out, READER_START);
	wire_put_fd(&out, node->process.doorbell_fd);
	wire_put_fd(&out, node->process.event_fd);
	wire_put_fd(&out, node->rings_fd);
	if (node->has_memory)
		wire_put_fd(&out, node->resident_fd);
	process_send(&node->process, &out);
	if (node->has_memory) {
		wire_out_init(&out, READER_MEMORY);
		wire_put_u64(&out, READER_KEY_LIMIT, MEMORY);
		wire_put_u64(&out, READER_KEY_MOST, 1);
		process_send(&node->process, &out);
	}
	wire_out_init(&out, READER_STORE);
	wire_put_u64(&out, READER_KEY_LIMIT, STORE_LIMIT);
	wire_put_u64(&out, READER_KEY_FORCE, 1);
	wire_put_u64(&out, READER_KEY_SUSPECT, 0);
	wire_put_fd(&out, node->hold.fd);
	process_send(&node->process, &out);
}

static void open_data(struct peers_node *node)
{
	struct wire_in in;
	int fd;

	process_ask_open(&node->process, DATASET, node->tree->path, -1);
	expect(node, READER_OPENED, &in);
	fd = wire_take_fd(&in, 0);
	wire_in_fini(&in);
	ck_assert_int_ge(fd, 0);
	if (!node->dataset)
		ck_assert_int_eq(dataset_map(fd, &node->dataset), 0);
	close(fd);
}

static void attach_queue(struct peers_node *node)
{
	struct wire_out out;
	struct wire_in in;

	wire_out_init(&out, READER_ATTACH);
	wire_put_u64(&out, READER_KEY_ID, DATASET);
	wire_put_u64(&out, READER_KEY_QUEUE, QUEUE);
	wire_put_fd(&out, node->queue_fd);
	wire_put_fd(&out, node->arena_fd);
	process_send(&node->process, &out);
	expect(node, READER_ATTACHED, &in);
	wire_in_fini(&in);
}

void peers_form(struct peers_node *node)
{
	struct wire_out out;
	struct wire_in in;
	void *map;
	int fd;

	wire_out_init(&out, READER_FORM);
	wire_put_u64(&out, READER_KEY_QUEUE, QUEUE);
	wire_put_u64(&out, READER_KEY_FORM, PEERS_FORM);
	wire_put_bytes(&out, READER_KEY_GROUP, &node->group, sizeof(node->group));
	wire_put_string(&out, READER_KEY_NOTE, "{\"dataset\":\"/data\"}");
	wire_put_u64(&out, READER_KEY_SHARED, 1);
	process_send(&node->process, &out);
	expect(node, READER_FORMED, &in);
	fd = wire_take_fd(&in, 0);
	wire_in_fini(&in);
	ck_assert_int_ge(fd, 0);
	if (node->table)
		munmap((void *)(uintptr_t)node->table, PEERS_SAMPLES * sizeof(*node->table));
	map = mmap(NULL, PEERS_SAMPLES * sizeof(*node->table), PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	node->table = map;
	close(fd);
}

/* ---- nodes ---- */

static void new_queue(struct peers_node *node)
{
	ck_assert_int_eq(queue_new(QUEUE, 1, PEERS_SAMPLES, (uint64_t)PEERS_SAMPLES * ROOM,
				   &node->queue, &node->queue_fd, &node->arena_fd),
			 0);
	ck_assert_int_eq(queue_arena_attach(node->arena_fd, &node->queue, false, &node->arena), 0);
}

void peers_node_start(struct peers_node *node, unsigned number, struct tree *tree, bool has_memory)
{
	memset(node, 0, sizeof(*node));
	node->number = number;
	node->id = 1000 + number;
	node->tree = tree;
	node->has_memory = has_memory;
	node->group = hold_id(77);
	node->to_fd = node->from_fd = -1;
	hold_new(&node->hold, STORE_LIMIT);
	ck_assert_int_eq(rings_new(1, 1 << 20, &node->rings_fd), 0);
	ck_assert_int_eq(rings_attach(node->rings_fd, &node->rings), 0);
	ck_assert_int_eq(resident_new(MEMORY, &node->resident_fd), 0);
	ck_assert_int_eq(resident_attach(node->resident_fd, false, &node->resident), 0);
	new_queue(node);
	process_start(&node->process, NULL, false);
	send_start(node);
	open_data(node);
	attach_queue(node);
	peers_form(node);
	ck_assert_int_eq(pthread_create(&node->worker, NULL, work_on, node), 0);
}

static void close_rings(struct peers_node *node)
{
	rings_detach(&node->to);
	rings_detach(&node->from);
	base_close(&node->to_fd);
	base_close(&node->from_fd);
}

void peers_node_stop(struct peers_node *node)
{
	node->stops = true;
	pthread_join(node->worker, NULL);
	listen_for(node, 0);
	process_stop(&node->process);
	close_rings(node);
	rings_detach(&node->rings);
	close(node->rings_fd);
	resident_detach(&node->resident);
	close(node->resident_fd);
	queue_arena_detach(&node->queue, node->arena);
	queue_detach(&node->queue);
	close(node->queue_fd);
	close(node->arena_fd);
	munmap((void *)(uintptr_t)node->table, PEERS_SAMPLES * sizeof(*node->table));
	dataset_unmap(node->dataset);
	hold_remove(&node->hold);
}

/* It did what was said before this: it has no such queue. */
static void wait_until_heard(struct peers_node *node)
{
	struct wire_out out;
	struct wire_in in;

	wire_out_init(&out, READER_DETACH);
	wire_put_u64(&out, READER_KEY_QUEUE, QUEUE + 1);
	process_send(&node->process, &out);
	expect(node, READER_DETACHED, &in);
	wire_in_fini(&in);
}

void peers_members(struct peers_node *node, const struct peers_node *other)
{
	struct reader_member member = {.weight = 10};
	struct wire_out out;

	if (other)
		member.id = other->id;
	wire_out_init(&out, READER_MEMBERS);
	wire_put_u64(&out, READER_KEY_WEIGHT, 10);
	wire_put_bytes(&out, READER_KEY_MEMBERS, &member, other ? sizeof(member) : 0);
	process_send(&node->process, &out);
	wait_until_heard(node);
}

void peers_spread(struct peers_node *node, uint32_t number, uint32_t nodes)
{
	struct wire_out out;

	wire_out_init(&out, READER_SPREAD);
	wire_put_u64(&out, READER_KEY_QUEUE, QUEUE);
	wire_put_u64(&out, READER_KEY_NUMBER, number);
	wire_put_u64(&out, READER_KEY_NODES, nodes);
	process_send(&node->process, &out);
	wait_until_heard(node);
}

void peers_unmade(struct peers_node *node, uint64_t sample)
{
	struct wire_out out;

	wire_out_init(&out, READER_UNMADE);
	wire_put_u64(&out, READER_KEY_QUEUE, QUEUE);
	wire_put_u64(&out, READER_KEY_FORM, PEERS_FORM);
	wire_put_u64(&out, READER_KEY_SAMPLE, sample);
	process_send(&node->process, &out);
	wait_until_heard(node);
}

static void new_rings(struct peers_node *node)
{
	close_rings(node);
	ck_assert_int_eq(rings_new(1, VALUE_RING_BYTES, &node->to_fd), 0);
	ck_assert_int_eq(rings_attach(node->to_fd, &node->to), 0);
	ck_assert_int_eq(rings_new(1, VALUE_RING_BYTES, &node->from_fd), 0);
	ck_assert_int_eq(rings_attach(node->from_fd, &node->from), 0);
}

static void say_carrier(struct peers_node *node, const struct peers_node *other)
{
	struct wire_out out;

	wire_out_init(&out, READER_PEERS);
	wire_put_u64(&out, READER_KEY_SELF, node->id);
	wire_put_u64(&out, READER_KEY_RECHECK, node->recheck_s);
	wire_put_u64(&out, READER_KEY_COMPARE, node->compare_each);
	wire_put_fd(&out, node->to_fd);
	wire_put_fd(&out, node->from_fd);
	process_send(&node->process, &out);
	peers_members(node, other);
}

void peers_node_die(struct peers_node *node)
{
	uint32_t owner;

	process_kill(&node->process);
	for (uint32_t i = 0; i < PEERS_SAMPLES; i++)
		if (queue_task_state(&node->queue, node->row, i, &owner) == LAYOUT_TASK_READING)
			queue_task_take_over(&node->queue, node->row, i, owner, LAYOUT_TASK_READING,
					     LAYOUT_TASK_QUEUED, LAYOUT_FAIL_NONE, 0);
	process_spawn(&node->process, NULL);
	send_start(node);
	open_data(node);
	attach_queue(node);
	peers_form(node);
}

/* ---- work ---- */

static void queue_all(struct peers_node *node, uint32_t slot)
{
	const struct queue_keep keep = {.room = ROOM, .want = PEERS_FORM, .make = PEERS_FORM};

	ck_assert_int_eq(queue_row_begin(&node->queue, 1, 1, 1, slot, 1, PEERS_SAMPLES, &node->row),
			 0);
	memset(node->from_where, 0,
	       sizeof(node->from_where)); /* who is awake takes a task at once */
	for (uint32_t i = 0; i < PEERS_SAMPLES; i++) {
		node->files[i] = node->runs[i] = 0;
		queue_task_keep(&node->queue, node->row, i, &keep);
		queue_task_put(&node->queue, node->row, i, i, i, i, 0, (uint64_t)i * ROOM,
			       dataset_size_of(node->dataset, i), 0);
	}
	doorbell_ring_readers(node->process.doorbell);
}

void peers_queue(struct peers_node *node)
{
	queue_all(node, 0);
}

void peers_queue_ahead(struct peers_node *node)
{
	queue_all(node, LAYOUT_NO_SLOT);
}

static uint32_t ended(const struct peers_node *node)
{
	uint32_t n = 0, owner;

	for (uint32_t i = 0; i < PEERS_SAMPLES; i++) {
		const enum layout_task_state state =
		    queue_task_state(&node->queue, node->row, i, &owner);

		n += state == LAYOUT_TASK_DONE || state == LAYOUT_TASK_FAILED;
	}
	return n;
}

void peers_wait(struct peers_node *node, unsigned n)
{
	const uint64_t deadline_ns = base_now_ns() + PATIENCE_NS;

	for (unsigned i = 0; i < n; i++)
		while (ended(&node[i]) < PEERS_SAMPLES) {
			ck_assert_uint_lt(base_now_ns(), deadline_ns);
			for (unsigned k = 0; k < n; k++)
				listen_for(&node[k], 2);
		}
}

void peers_end_round(struct peers_node *node)
{
	queue_row_end(&node->queue, node->row);
}

unsigned peers_files(struct peers_node *node)
{
	unsigned n = 0;

	for (unsigned i = 0; i < PEERS_SAMPLES; i++)
		n += node->files[i];
	return n;
}

void peers_wait_kept(struct peers_node *node, unsigned n, unsigned samples)
{
	const uint64_t deadline_ns = base_now_ns() + PATIENCE_NS;
	unsigned kept;

	do {
		ck_assert_uint_lt(base_now_ns(), deadline_ns);
		kept = 0;
		for (unsigned k = 0; k < n; k++) {
			listen_for(&node[k], 2);
			for (unsigned i = 0; i < PEERS_SAMPLES; i++)
				kept += counter_cell_get(&node[k].table[i]) > 0;
		}
	} while (kept < samples);
	ck_assert_uint_eq(kept, samples);
}

uint32_t peers_number_of(const struct peers_node *node, uint64_t sample, uint32_t nodes)
{
	return owner_of_spread(little_64(dataset_version(node->dataset)->bytes), sample, nodes);
}

bool peers_owns(const struct peers_node *node, const struct peers_node *other, uint64_t sample)
{
	const struct owner_node nodes[] = {{node->id, 10}, {other->id, 10}};

	unsigned next;

	return owner_of(little_64(node->group.bytes), sample, nodes, 2, &next) == 0;
}

/* ---- the net ---- */

/* Waits for room: the reader must take what there is. false: the net stops. */
static bool put(struct peers_net *net, struct peers_node *node, const struct value_head *head,
		const void *data)
{
	const uint32_t bytes = (uint32_t)sizeof(*head) + head->bytes;
	uint8_t *at;

	while (!(at = rings_begin(&node->from, 0, bytes))) {
		if (net->stops)
			return false;
		usleep(POLL_US);
	}
	memcpy(at, head, sizeof(*head));
	if (data)
		memcpy(at + sizeof(*head), data, head->bytes);
	rings_end(&node->from, 0, &(struct rings_item){.bytes = bytes});
	return true;
}

static void carry(struct peers_net *net, unsigned from, const struct rings_item *item)
{
	struct value_head head;
	unsigned times = 1;

	ck_assert_uint_ge(item->bytes, sizeof(head));
	memcpy(&head, item->data, sizeof(head));
	ck_assert(value_head_check(&head));
	ck_assert_uint_eq(head.bytes, item->bytes - sizeof(head));
	if (head.peer != 0) /* to nobody, as what it answers came from nobody */
		return;
	net->carried[head.type]++;
	if (net->fate)
		times = net->fate(net->arg, from, &head);
	while (times-- > 0)
		put(net, &net->node[1 - from], &head, item->data + sizeof(head));
}

static void *carry_all(void *arg)
{
	struct peers_net *net = arg;

	while (!net->stops) {
		bool any = false;

		pthread_mutex_lock(&net->lock);
		for (unsigned i = 0; i < PEERS_NODES; i++) {
			struct peers_node *node = &net->node[i];
			struct rings_item item;
			bool bad;

			if (!node->to.head || !net->node[1 - i].from.head ||
			    !rings_look(&node->to, 0, &item, &bad))
				continue;
			carry(net, i, &item);
			rings_pass(&node->to, 0, &item);
			any = true;
		}
		pthread_mutex_unlock(&net->lock);
		if (!any)
			usleep(POLL_US);
	}
	return NULL;
}

/* Asks of a group that nobody knows: whoever answers has taken these rings, and all messages before. */
static void wait_until_taken(struct peers_net *net, struct peers_node *node)
{
	const struct value_head get = {
	    .magic = VALUE_MAGIC, .type = VALUE_GET, .id = PROBE, .room = 1};
	const uint64_t deadline_ns = base_now_ns() + PATIENCE_NS;
	bool is_taken = false;

	put(net, node, &get, NULL);
	while (!is_taken) {
		struct rings_item item;
		struct value_head head;
		bool bad;

		ck_assert_uint_lt(base_now_ns(), deadline_ns);
		if (!rings_look(&node->to, 0, &item, &bad)) {
			usleep(POLL_US);
			continue;
		}
		memcpy(&head, item.data, sizeof(head));
		is_taken = head.type == VALUE_MISS && head.id == PROBE;
		if (!is_taken)
			carry(net, node->number, &item);
		rings_pass(&node->to, 0, &item);
	}
}

void peers_connect(struct peers_net *net, struct peers_node *node, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		new_rings(&node[i]);
	for (unsigned i = 0; i < n; i++)
		say_carrier(&node[i], &net->node[1 - node[i].number]);
	for (unsigned i = 0; i < n; i++)
		wait_until_taken(net, &node[i]);
}

void peers_net_start(struct peers_net *net, struct peers_node *node)
{
	net->node = node;
	net->stops = false;
	pthread_mutex_init(&net->lock, NULL);
	ck_assert_int_eq(pthread_create(&net->thread, NULL, carry_all, net), 0);
}

void peers_net_stop(struct peers_net *net)
{
	net->stops = true;
	pthread_join(net->thread, NULL);
	pthread_mutex_destroy(&net->lock);
}

void peers_say(struct peers_net *net, struct peers_node *node, const struct value_head *head,
	       const void *data)
{
	pthread_mutex_lock(&net->lock);
	put(net, node, head, data);
	pthread_mutex_unlock(&net->lock);
}

void peers_settle(struct peers_net *net, struct peers_node *node)
{
	const struct value_head nothing = {.magic = VALUE_MAGIC, .type = VALUE_MISS};

	peers_say(net, node, &nothing, NULL);
	peers_wait_taken(net, node);
}

void peers_wait_taken(struct peers_net *net, struct peers_node *node)
{
	pthread_mutex_lock(&net->lock);
	wait_until_taken(net, node);
	pthread_mutex_unlock(&net->lock);
}

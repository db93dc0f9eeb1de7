/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The thread looks every millisecond, and whenever a message comes: reads outboxes, frees slots,
 * posts chunks, moves watermarks, answers sleepers. All state is under one lock, so that a test can
 * change the configuration or speak between two looks.
 *
 * The grants are composed as the real one does it: a tail first, as a chunk without blocks; an
 * epoch's grants before the next one's; a reclaimed grant's blocks are needed again. Revocation is
 * tried on the newest grant only, and nothing is posted until its end is known.
 */

#include "tests/libaccess/fake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/bits.h"
#include "plan/permutation.h"
#include "plan/token.h"

static uint64_t fake_random(struct fake *fake)
{
	fake->random ^= fake->random >> 12;
	fake->random ^= fake->random << 25;
	fake->random ^= fake->random >> 27;
	return fake->random * UINT64_C(2685821657736338717) >> 11;
}

uint8_t fake_pixel(uint64_t id, uint64_t nonce, unsigned k)
{
	return (uint8_t)((id * 31 + nonce * 7 + k * 3) % 251);
}

/* ---- memory ---- */

static void fake_geometry(const struct fake *fake, struct slot_geometry *ret)
{
	*ret = (struct slot_geometry){
	    .max_slots = fake->config.slots,
	    .chunk = fake->config.chunk,
	    .block = permutation_block_of(fake->config.n),
	    .n_fields = 3,
	    .n_samples = fake->config.n,
	    .seed = fake->seed,
	    .field = {{.name = "image",
		       .dtype = LAYOUT_U8,
		       .where = LAYOUT_IN_SLOT,
		       .ndim = 2,
		       .shape = {2, 5}},
		      {.name = "label", .dtype = LAYOUT_I64, .where = LAYOUT_IN_SLOT},
		      {.name = "index", .dtype = LAYOUT_I64, .where = LAYOUT_IN_TABLE}},
	};
	memcpy(ret->dataset, fake->dataset, 32);
	ck_assert_int_eq(slot_table_plan(ret), 0);
}

static void fake_make_memory(struct fake *fake, struct fake_conn *conn)
{
	struct slot_geometry geometry;
	void *map;

	fake_geometry(fake, &geometry);
	ck_assert_int_eq(slot_table_new(&geometry, &conn->table, &conn->table_fd), 0);
	ck_assert_int_eq(slots_new(&conn->table.geometry, &conn->slots_fd), 0);
	map = mmap(NULL, conn->table.geometry.slots_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		   conn->slots_fd, 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	conn->slots = map;
	ck_assert_int_eq(slots_seal(conn->slots_fd), 0);
	for (uint32_t slot = 0; slot < fake->config.slots; slot++)
		ck_assert_int_eq(slots_reserve(conn->slots_fd, &conn->table.geometry, slot), 0);
	ck_assert_int_eq(
	    grant_memory_new(&conn->inbox, &conn->inbox_fd, &conn->outbox, &conn->outbox_fd), 0);
	grant_server_init(&conn->grants, conn->inbox, conn->outbox);
}

static void fake_drop(struct fake_conn *conn)
{
	base_close(&conn->sock);
	if (conn->has_stream) {
		munmap(conn->slots, conn->table.geometry.slots_bytes);
		base_close(&conn->table_fd);
		base_close(&conn->slots_fd);
		base_close(&conn->inbox_fd);
		base_close(&conn->outbox_fd);
		slot_table_detach(&conn->table);
		grant_memory_free(conn->inbox, conn->outbox);
	}
	free(conn->need);
	free(conn->tail);
	*conn = (struct fake_conn){.sock = -1};
}

/* ---- chunks ---- */

static uint32_t fake_choose_blocks(struct fake *fake, struct fake_conn *conn,
				   const struct permutation *permutation, uint32_t *ret)
{
	uint64_t left = bits_count(conn->need, permutation->blocks);
	uint32_t room = fake->config.chunk / permutation->block, n = 0;

	if (fake->config.shortens && fake_random(fake) % 3 == 0)
		room = 1 + (uint32_t)(fake_random(fake) % room);
	while (n < room && left > 0) {
		uint64_t block = fake_random(fake) % permutation->blocks;

		while (!bits_test(conn->need, block))
			block = (block + 1) % permutation->blocks;
		bits_clear(conn->need, block);
		ret[n++] = (uint32_t)block;
		left--;
	}
	return n;
}

static void fake_fill(struct fake *fake, struct fake_conn *conn, uint32_t slot, uint64_t nonce,
		      const int64_t *ids, uint32_t count)
{
	const struct slot_geometry *geometry = &conn->table.geometry;
	uint8_t *base = conn->slots + slot * geometry->slot_stride;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t id = (uint64_t)ids[i];
		uint8_t status = fake->config.status ? fake->config.status(id) : LAYOUT_SAMPLE_OK;
		int64_t label = (int64_t)nonce;

		for (unsigned k = 0; k < 10; k++)
			base[geometry->field[0].offset + i * geometry->field[0].sample_bytes + k] =
			    fake_pixel(id, nonce, k);
		memcpy(base + geometry->field[1].offset + i * geometry->field[1].sample_bytes,
		       &label, 8);
		if (fake->config.lie == 5 && i == count / 2)
			status = LAYOUT_SAMPLE_PENDING;
		slot_table_status(&conn->table, slot, i, status);
	}
}

static void fake_post(struct fake *fake, struct fake_conn *conn, uint32_t slot, uint32_t count,
		      bool is_last)
{
	struct grant grant = {
	    .instance = conn->instance,
	    .epoch = conn->epoch,
	    .slot = slot,
	    .count = count,
	    .flags = is_last ? LAYOUT_GRANT_LAST : 0,
	};
	uint64_t number;

	if (fake->config.lie && fake->config.lie != 5 && conn->chunks == 2) {
		grant.instance += fake->config.lie == 1;
		grant.slot += fake->config.lie == 2 ? 1000 : 0;
		grant.count += fake->config.lie == 3 ? fake->config.chunk : 0;
		grant.epoch += fake->config.lie == 4;
	}
	ck_assert_int_eq(grant_post(&conn->grants, &grant, &number), 0);
	conn->grant_of[slot] = number;
}

/* Puts one chunk into the slot and posts it. false: nothing is needed. */
static bool fake_produce(struct fake *fake, struct fake_conn *conn, uint32_t slot)
{
	static _Thread_local int64_t ids[LAYOUT_MAX_CHUNK];
	static _Thread_local uint32_t blocks[LAYOUT_MAX_CHUNK];
	uint32_t n_blocks = 0, count;
	struct permutation permutation;

	permutation_init(&permutation, fake->config.n, fake->dataset);
	if (conn->n_tail == 0 && bits_count(conn->need, permutation.blocks) == 0) {
		if ((conn->epochs && conn->epoch + 1 >= conn->epochs) || fake->config.n == 0)
			return false;
		conn->epoch++;
		bits_fill(conn->need, permutation.blocks);
	}
	fake->nonce++;
	if (conn->n_tail > 0) {
		count = BASE_MIN(conn->n_tail, fake->config.chunk);
		conn->n_tail -= count;
		memcpy(ids, conn->tail + conn->n_tail, count * sizeof(*ids));
		permutation_shuffle(fake->seed, fake->nonce, ids, count);
	} else {
		n_blocks = fake_choose_blocks(fake, conn, &permutation, blocks);
		count = permutation_members(&permutation, NULL, fake->seed, fake->nonce, blocks,
					    n_blocks, ids);
		for (uint32_t i = 0; i < n_blocks && fake->config.lie == 6; i++)
			bits_set(conn->need, blocks[i]);
	}
	conn->instance++;
	conn->chunks++;
	slot_table_begin(&conn->table, slot, conn->instance, fake->nonce, ids, count, blocks,
			 n_blocks, n_blocks == 0);
	fake_fill(fake, conn, slot, fake->nonce, ids, count);
	conn->watermark[slot] = 0;
	conn->target[slot] =
	    fake->config.stop_at ? (uint32_t)BASE_MIN(fake->config.stop_at, count) : count;
	conn->is_late[slot] =
	    fake->config.late && conn->instance % fake->config.late == 1 % fake->config.late;
	if (conn->is_late[slot])
		conn->target[slot] = count / 2;
	fake_post(fake, conn, slot, count,
		  conn->n_tail == 0 && bits_count(conn->need, permutation.blocks) == 0);
	return true;
}

static void fake_put_back(struct fake_conn *conn, uint32_t slot)
{
	const struct layout_slot *s = slot_table_of(&conn->table, slot);

	for (uint32_t i = 0; i < s->d_blocks; i++)
		bits_set(conn->need, slot_table_blocks_of(&conn->table, slot)[i]);
	if (s->d_blocks == 0) {
		memcpy(conn->tail + conn->n_tail, slot_table_ids_of(&conn->table, slot),
		       s->d_count * sizeof(int64_t));
		conn->n_tail += s->d_count;
	}
	slot_table_empty(&conn->table, slot);
	conn->grant_of[slot] = 0;
}

static void fake_revoke_newest(struct fake_conn *conn, uint32_t slot)
{
	uint64_t number = conn->grant_of[slot];
	int r = grant_revoke(&conn->grants, number);

	if (r == 0)
		fake_put_back(conn, slot);
	else if (r == GRANT_E_HELD)
		conn->pending = number;
}

static void fake_read_outbox(struct fake *fake, struct fake_conn *conn)
{
	struct grant grant;
	enum grant_fate fate;
	uint64_t nonsense = 0;

	while (grant_poll(&conn->grants, &grant, &fate, &nonsense) == 0) {
		if (conn->pending == grant.number)
			conn->pending = 0;
		if (fate == GRANT_TAKEN || grant.slot >= fake->config.slots)
			continue;
		if (fate == GRANT_RETURNED) {
			fake_put_back(conn, grant.slot);
		} else {
			slot_table_empty(&conn->table, grant.slot);
			conn->grant_of[grant.slot] = 0;
		}
	}
	fake->nonsense += nonsense;
}

static bool fake_move_watermarks(struct fake *fake, struct fake_conn *conn)
{
	bool moved = false;

	for (uint32_t slot = 0; slot < fake->config.slots; slot++) {
		uint32_t step = fake->config.drips ? 1 : conn->target[slot];

		if (!conn->grant_of[slot] || conn->watermark[slot] >= conn->target[slot])
			continue;
		conn->watermark[slot] += BASE_MIN(step, conn->target[slot] - conn->watermark[slot]);
		slot_table_watermark(&conn->table, slot, conn->watermark[slot]);
		moved = true;
	}
	return moved;
}

#define IDLE 3 /* a job that found something since the last look does not wait so long */

/* The samples that chunks wait for are there. */
static void fake_end_late(struct fake *fake, struct fake_conn *conn, bool moved)
{
	conn->idle = moved || !grant_is_waiting(&conn->grants) ? 0 : conn->idle + 1;
	if (fake->config.late_stays || conn->idle < IDLE)
		return;
	for (uint32_t slot = 0; slot < fake->config.slots; slot++)
		if (conn->is_late[slot])
			conn->target[slot] = slot_table_of(&conn->table, slot)->d_count;
	memset(conn->is_late, 0, sizeof(conn->is_late));
}

static void fake_serve(struct fake *fake, struct fake_conn *conn)
{
	bool moved;

	fake_read_outbox(fake, conn);
	for (uint32_t slot = 0; slot < fake->config.slots && !conn->pending; slot++) {
		if (conn->grant_of[slot] || conn->chunks >= fake->config.most_chunks)
			continue;
		if (!fake_produce(fake, conn, slot))
			break;
		if (fake->config.revoke && fake_random(fake) % fake->config.revoke == 0)
			fake_revoke_newest(conn, slot);
	}
	moved = fake_move_watermarks(fake, conn);
	fake_end_late(fake, conn, moved);
	atomic_store(&conn->inbox->d_stage, fake->config.stage);
	atomic_store(&conn->inbox->d_heartbeat_ns,
		     base_now_ns() - (fake->config.is_stopped ? UINT64_C(12500000000) : 0));
	if (moved && grant_wants_wake(&conn->grants)) {
		struct wire_out out;

		wire_out_init(&out, PROTO_WAKE);
		wire_send(conn->sock, &out, MSG_DONTWAIT);
		wire_out_fini(&out);
	}
}

/* ---- messages ---- */

static void fake_send_text(int sock, uint16_t type, uint64_t code, const char *text)
{
	struct wire_out out;

	wire_out_init(&out, type);
	wire_put_u64(&out, PROTO_KEY_CODE, code);
	wire_put_string(&out, PROTO_KEY_TEXT, text);
	wire_put_u64(&out, 4711, 1); /* of a newer minor version */
	wire_send(sock, &out, MSG_DONTWAIT);
	wire_out_fini(&out);
}

static void fake_welcome(struct fake *fake, struct fake_conn *conn)
{
	struct wire_out out;

	if (fake->config.mode == FAKE_SILENT)
		return;
	if (fake->config.mode == FAKE_GARBAGE) {
		ck_assert_int_eq(send(conn->sock, "Hello, who are you?", 19, 0), 19);
		return;
	}
	if (fake->config.mode == FAKE_HANG_UP) {
		fake_drop(conn);
		return;
	}
	wire_out_init(&out, PROTO_WELCOME);
	wire_put_u64(&out, PROTO_KEY_MAJOR, PROTO_MAJOR + (fake->config.mode == FAKE_MAJOR));
	wire_put_u64(&out, PROTO_KEY_MINOR,
		     fake->config.mode == FAKE_OLDER
			 ? PROTO_SINCE_NAMES - 1
			 : PROTO_MINOR + (fake->config.mode == FAKE_MINOR));
	wire_put_u64(&out, PROTO_KEY_PID, 4242);
	wire_put_bytes(&out, PROTO_KEY_NONCE, "0123456789abcdef", 16);
	wire_put_string(&out, PROTO_KEY_VERSION, "9.9.9");
	if (fake->config.buckets)
		wire_put_string(&out, PROTO_KEY_BUCKETS, fake->config.buckets);
	wire_send(conn->sock, &out, 0);
	wire_out_fini(&out);
}

static void fake_spoil(struct fake *fake, struct fake_conn *conn, int *fds)
{
	struct layout_slot_table *head = conn->table.map;

	if (fake->config.mode == FAKE_WRONG_FDS)
		fds[0] = fds[1] = fds[2] = fds[3] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fake->config.mode == FAKE_MIXED_FDS) {
		fds[0] = conn->table_fd;
		fds[1] = conn->slots_fd;
	}
	if (fake->config.mode == FAKE_BAD_TABLE)
		head->status_offset = head->bytes - 8;
}

static void fake_opened(struct fake *fake, struct fake_conn *conn)
{
	int fds[4] = {conn->slots_fd, conn->table_fd, conn->inbox_fd, conn->outbox_fd};
	struct wire_out out;

	if (fake->config.mode == FAKE_GARBAGE_OPENED) {
		ck_assert_int_eq(send(conn->sock, "\0\0\0\0\xff\xff\xff\xff", 8, 0), 8);
		return;
	}
	fake_spoil(fake, conn, fds);
	wire_out_init(&out, fake->config.mode == FAKE_WRONG_TYPE ? PROTO_WELCOME : PROTO_OPENED);
	for (unsigned i = 0; i < (fake->config.mode == FAKE_FEW_FDS ? 2 : 4); i++)
		wire_put_fd(&out, fds[i]);
	if (fake->config.batch_mix)
		wire_put_bytes(&out, PROTO_KEY_BATCH_MIX, fake->config.batch_mix,
			       fake->config.batch_mix_bytes);
	ck_assert_int_eq(wire_send(conn->sock, &out, 0), 0);
	wire_out_fini(&out);
	if (fake->config.mode == FAKE_WRONG_FDS)
		close(fds[0]);
}

static void fake_read_token(struct fake *fake, struct fake_conn *conn, const struct wire_in *in)
{
	struct token token = {0};
	struct permutation permutation;
	struct diag diag;
	const void *data;
	size_t size;

	permutation_init(&permutation, fake->config.n, fake->dataset);
	conn->need = calloc(bits_words(permutation.blocks) + 1, 8);
	conn->tail = calloc(2 * LAYOUT_MAX_CHUNK, 8);
	bits_fill(conn->need, permutation.blocks);
	if (wire_get_bytes(in, PROTO_KEY_TOKEN, &data, &size))
		return;
	ck_assert_msg(token_parse(data, size, &token, &diag) == 0, "%s", diag.text);
	ck_assert_msg(token_fits(&token, permutation.n, permutation.block, fake->dataset, &diag) ==
			  0,
		      "%s", diag.text);
	memcpy(conn->need, token.need, bits_words(permutation.blocks) * 8);
	memcpy(conn->tail, token.tail, token.n_tail * sizeof(int64_t));
	conn->n_tail = token.n_tail;
	conn->epoch = token.epoch;
	token_fini(&token);
}

static void fake_open_stream(struct fake *fake, struct fake_conn *conn, const struct wire_in *in)
{
	const char *dataset = "";
	const void *nonce;
	size_t size;

	wire_get_string(in, PROTO_KEY_DATASET, &dataset);
	snprintf(fake->asked, sizeof(fake->asked), "%s", dataset);
	fake->opens++;
	if (fake->config.mode == FAKE_REFUSE) {
		fake_send_text(conn->sock, PROTO_REFUSED, OA_E_MEMORY,
			       "needs 9 GiB, has 1 GiB: raise memory=");
		return;
	}
	if (fake->config.mode == FAKE_HANG_UP_OPEN) {
		fake_drop(conn);
		return;
	}
	ck_assert_int_eq(wire_get_bytes(in, PROTO_KEY_NONCE, &nonce, &size), 0);
	ck_assert_mem_eq(nonce, "0123456789abcdef", 16);
	ck_assert_int_eq(wire_get_u64(in, PROTO_KEY_EPOCHS, &conn->epochs), 0);
	fake_read_token(fake, conn, in);
	fake_make_memory(fake, conn);
	conn->has_stream = true;
	fake_send_text(conn->sock, PROTO_PROGRESS, 0, "listing");
	fake_opened(fake, conn);
}

static void fake_status(int sock)
{
	int fd = base_memfd("status", 0);
	struct wire_out out;

	ck_assert_int_eq(write(fd, "{\"jobs\": []}", 12), 12);
	wire_out_init(&out, PROTO_STATUS_REPLY);
	wire_put_fd(&out, fd);
	wire_send(sock, &out, 0);
	wire_out_fini(&out);
	close(fd);
}

static void fake_hear(struct fake *fake, struct fake_conn *conn)
{
	struct wire_in in;
	int r;

	wire_in_init(&in);
	r = wire_recv(conn->sock, &in, MSG_DONTWAIT);
	if (r == WIRE_E_CLOSED || (r && r != -EAGAIN)) {
		fake_drop(conn);
	} else if (r == 0 && in.type == PROTO_HELLO) {
		fake_welcome(fake, conn);
	} else if (r == 0 && in.type == PROTO_OPEN) {
		fake_open_stream(fake, conn, &in);
	} else if (r == 0 && in.type == PROTO_STATUS) {
		fake_status(conn->sock);
	} else if (r == 0 && in.type == PROTO_BAD && fake->config.bad) {
		fake->config.bad(conn->sock, &in, fake->config.bad_arg);
	} else if (r == 0 && in.type == PROTO_KICK) {
		fake->kicks++;
	} else if (r == 0 && in.type == PROTO_EXPLAIN && !fake->config.is_mute) {
		uint64_t position = 0;
		char text[64];

		wire_get_u64(&in, PROTO_KEY_POSITION, &position);
		snprintf(text, sizeof(text), "cat/7.jpg: decode: truncated (position %d)",
			 (int)position);
		fake_send_text(conn->sock, PROTO_EXPLAINED, 0, text);
	}
	wire_in_fini(&in);
}

/* ---- the thread ---- */

static void fake_accept(struct fake *fake)
{
	int sock = accept4(fake->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (unsigned i = 0; sock >= 0 && i < BASE_ARRAY_LEN(fake->conn); i++) {
		if (fake->conn[i].sock < 0) {
			fake->conn[i] = (struct fake_conn){.sock = sock};
			return;
		}
	}
	if (sock >= 0)
		close(sock);
}

static void fake_look(struct fake *fake)
{
	fake_accept(fake);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(fake->conn); i++) {
		struct fake_conn *conn = &fake->conn[i];

		if (conn->sock >= 0)
			fake_hear(fake, conn);
		if (conn->sock >= 0 && conn->has_stream)
			fake_serve(fake, conn);
	}
}

static void *fake_run(void *argument)
{
	struct fake *fake = argument;
	bool is_stopping = false;

	while (!is_stopping) {
		struct pollfd fds[BASE_ARRAY_LEN(fake->conn) + 1];
		struct timespec pause = {.tv_nsec = 1000000};

		pthread_mutex_lock(&fake->lock);
		fake_look(fake);
		is_stopping = fake->is_stopping;
		fds[0] = (struct pollfd){.fd = fake->listen_fd, .events = POLLIN};
		for (unsigned i = 0; i < BASE_ARRAY_LEN(fake->conn); i++)
			fds[i + 1] = (struct pollfd){.fd = fake->conn[i].sock, .events = POLLIN};
		if (fake->config.drips)
			pause.tv_nsec = 20000;
		pthread_mutex_unlock(&fake->lock);
		ppoll(fds, BASE_ARRAY_LEN(fds), &pause, NULL);
	}
	return NULL;
}

static void fake_listen(struct fake *fake)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(address.sun_path, fake->socket);
	unlink(fake->socket);
	fake->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_ge(fake->listen_fd, 0);
	ck_assert_int_eq(bind(fake->listen_fd, (const struct sockaddr *)&address, sizeof(address)),
			 0);
	ck_assert_int_eq(listen(fake->listen_fd, 16), 0);
	fake->is_stopping = fake->is_gone = false;
	ck_assert_int_eq(pthread_create(&fake->thread, NULL, fake_run, fake), 0);
}

void fake_start_at(struct fake *fake, const struct fake_config *config, const char *path)
{
	*fake = (struct fake){.config = *config, .seed = 77, .random = 0x9e3779b97f4a7c15};
	if (!fake->config.most_chunks)
		fake->config.most_chunks = UINT64_MAX;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(fake->conn); i++)
		fake->conn[i].sock = -1;
	for (unsigned i = 0; i < 32; i++)
		fake->dataset[i] = (uint8_t)(i * 5 + 1);
	pthread_mutex_init(&fake->lock, NULL);
	strcpy(fake->socket, path);
	fake_listen(fake);
}

void fake_start(struct fake *fake, const struct fake_config *config)
{
	char folder[] = "/tmp/oa-fake-XXXXXX", path[96];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	fake_start_at(fake, config, path);
	strcpy(fake->folder, folder);
}

void fake_kill(struct fake *fake)
{
	if (fake->is_gone)
		return;
	fake_lock(fake);
	fake->is_stopping = true;
	fake_unlock(fake);
	pthread_join(fake->thread, NULL);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(fake->conn); i++)
		if (fake->conn[i].sock >= 0)
			fake_drop(&fake->conn[i]);
	base_close(&fake->listen_fd);
	fake->is_gone = true;
}

void fake_again(struct fake *fake)
{
	fake->seed++;
	fake->nonce += 1000;
	fake_listen(fake);
}

void fake_stop(struct fake *fake)
{
	fake_kill(fake);
	unlink(fake->socket);
	if (fake->folder[0])
		rmdir(fake->folder);
}

void fake_lock(struct fake *fake)
{
	pthread_mutex_lock(&fake->lock);
}

void fake_unlock(struct fake *fake)
{
	pthread_mutex_unlock(&fake->lock);
}

void fake_say(struct fake *fake, uint16_t type, uint64_t code, const char *text)
{
	fake_lock(fake);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(fake->conn); i++)
		if (fake->conn[i].has_stream)
			fake_send_text(fake->conn[i].sock, type, code, text);
	fake_unlock(fake);
}

void fake_hang_up(struct fake *fake)
{
	fake_lock(fake);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(fake->conn); i++)
		if (fake->conn[i].sock >= 0)
			fake_drop(&fake->conn[i]);
	fake_unlock(fake);
}

bool fake_has_no_pins(struct fake *fake)
{
	for (unsigned wait = 0; wait < PATIENCE_MS / 5; wait++) {
		bool taken = false;

		fake_lock(fake);
		for (unsigned i = 0; i < BASE_ARRAY_LEN(fake->conn); i++)
			for (unsigned k = 0; fake->conn[i].has_stream && k < LAYOUT_GRANT_RING; k++)
				taken |= fake->conn[i].grants.fate[k] == GRANT_TAKEN;
		fake_unlock(fake);
		if (!taken)
			return true;
		usleep(5000);
	}
	return false;
}

/* ---- waiting for what must come ---- */

static unsigned fake_count_conns(struct fake *fake)
{
	unsigned n = 0;

	fake_lock(fake);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(fake->conn); i++)
		n += fake->conn[i].sock >= 0;
	fake_unlock(fake);
	return n;
}

void fake_wait_alone(struct fake *fake)
{
	for (unsigned wait = 0; wait < PATIENCE_MS / 5 && fake_count_conns(fake) > 0; wait++)
		usleep(5000);
	ck_assert_uint_eq(fake_count_conns(fake), 0);
}

static bool is_asleep(pid_t thread)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	file = fopen(path, "re");
	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (file)
		fclose(file);
	return state == 'S';
}

void fake_wait_asleep(const _Atomic pid_t *thread)
{
	unsigned wait = 0;

	while (wait++ < PATIENCE_MS / 5 && (*thread == 0 || !is_asleep(*thread)))
		usleep(5000);
	ck_assert_uint_le(wait, PATIENCE_MS / 5);
}

void fake_times_out(struct oa_stream *stream, int timeout_ms, const char *part)
{
	const uint64_t end_ns = base_now_ns() + PATIENCE_NS;
	struct oa_batch *batch = NULL;
	int r;

	do {
		r = oa_next(stream, timeout_ms, &batch);
		if (r == 0)
			oa_release(batch);
	} while (base_now_ns() < end_ns &&
		 (r == 0 || (r == OA_E_TIMEOUT && !strstr(oa_error_text(stream), part))));
	ck_assert_int_eq(r, OA_E_TIMEOUT);
	ck_assert_msg(strstr(oa_error_text(stream), part) != NULL, "\"%s\" lacks \"%s\"",
		      oa_error_text(stream), part);
}

/* ---- what most tests want ---- */

struct oa_client *fake_connect(struct fake *fake)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = NULL;
	int r = oa_connect(fake->socket, &client, &error);

	ck_assert_msg(r == 0, "oa_connect: %s: %s", oa_error_name(r), error.text);
	return client;
}

struct oa_options fake_options(uint32_t batch, uint64_t epochs)
{
	return (struct oa_options){
	    .size = sizeof(struct oa_options),
	    .dataset = "/data/fake",
	    .pipeline = "imagenet-train",
	    .batch = batch,
	    .epochs = epochs,
	    .timeout_ms = PATIENCE_MS,
	};
}

struct oa_stream *fake_open(struct fake *fake, const struct oa_options *options)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = fake_connect(fake);
	struct oa_stream *stream = NULL;
	int r = oa_open(client, options, &stream, &error);

	ck_assert_msg(r == 0, "oa_open: %s: %s", oa_error_name(r), error.text);
	oa_disconnect(client);
	return stream;
}

void fake_check_batch(const struct oa_batch *batch)
{
	struct oa_batch_info info = {.size = sizeof(info)};
	struct oa_field image = {.size = sizeof(image)}, label = image, index = image;

	oa_batch_info(batch, &info);
	ck_assert_uint_eq(info.n_fields, 3);
	ck_assert_int_eq(oa_batch_field(batch, 0, &image), 0);
	ck_assert_int_eq(oa_batch_field(batch, 1, &label), 0);
	ck_assert_int_eq(oa_batch_field(batch, 2, &index), 0);
	ck_assert_int_eq(oa_batch_field(batch, 3, &index), OA_E_INVALID);
	ck_assert_uint_eq(image.ndim, 3);
	ck_assert_uint_eq(image.shape[0], info.count);
	ck_assert_int_eq(image.strides[1], 5);
	ck_assert_uint_eq(index.ndim, 1);
	for (uint32_t i = 0; i < info.count; i++) {
		const uint8_t *pixels = (const uint8_t *)image.data + i * image.strides[0];
		int64_t nonce;

		memcpy(&nonce, (const uint8_t *)label.data + i * label.strides[0], 8);
		if (((const int64_t *)index.data)[i] != info.ids[i])
			ck_abort_msg("sample %lld has a wrong index", (long long)info.ids[i]);
		/* Not ck_assert: it tells Check of each of thousands. */
		for (unsigned k = 0; k < 10; k++)
			if (pixels[k] != fake_pixel((uint64_t)info.ids[i], (uint64_t)nonce, k))
				ck_abort_msg("sample %lld has wrong bytes", (long long)info.ids[i]);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * accessd and the gate: what they say is trusted, but a message that makes no sense means that the two are not of one
 * version, or that one of them is broken. It is logged, and the process ends; accessd starts a new one.
 *
 * Rings come once, with the first START, for nothing can be mapped afterwards. A gate that died is replaced by the next
 * START; connections live on meanwhile.
 */

#include "cluster/carrier_parts.h"

#include "base/log.h"
#include "base/wire.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ITEMS_TABLE "cluster/carrier_tbl.h"
#define ITEMS_STRUCT(name) carrier_##name
#define ITEMS_UNION carrier_said
#define ITEMS_KEY(KEY) CARRIER_KEY_##KEY
#define ITEMS_TYPE(NAME) CARRIER_##NAME
#define ITEMS_WHOSE "carrier's "
#include "base/items_structs_tbl.h"
#include "base/items_types_tbl.h"

_Noreturn void control_fatal(const char *event, const char *text)
{
	log_line(LOG_LEVEL_ERROR, event, "text=\"%s\"", text);
	_exit(1);
}

int control_watch(const struct carrier *carrier, int fd, uint64_t tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};

	return epoll_ctl(carrier->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* ---- START ---- */

static void take_gate(struct carrier *carrier, int fd)
{
	base_close(&carrier->gate_fd);
	carrier->gate_fd = fd;
	if (fd < 0 || control_watch(carrier, fd, CONTROL_TAG_GATE))
		control_fatal("message-bad", "START brings no socket to the gate");
}

static void take_rings(int fd, struct rings *ret)
{
	int r = fd < 0 ? -EBADF : rings_attach(fd, ret);

	base_close(&fd);
	if (r || rings_most(ret) < sizeof(struct value_head) + VALUE_MOST)
		control_fatal("message-bad", "START brings a ring that cannot be used");
}

static void on_start(struct carrier *carrier, const struct carrier_start *start, struct wire_in *in)
{
	if (start->has_from == (carrier->to_reader.head != NULL))
		control_fatal("message-bad", "START has rings once");
	if (start->has_gate)
		take_gate(carrier, wire_take_fd(in, start->gate_fd));
	if (!start->has_from)
		return;
	if (start->transport > CARRIER_RDMA)
		control_fatal("message-bad", "START names a transport that there is not");
	carrier->transport = (enum carrier_transport)start->transport;
	take_rings(wire_take_fd(in, start->from_fd), &carrier->from_reader);
	take_rings(wire_take_fd(in, start->to_fd), &carrier->to_reader);
}

/* Ends the process where it is not a good message of that type. */
static void read_message(const struct wire_in *in, enum carrier_message type,
			 union carrier_said *ret)
{
	struct diag diag;

	if (in->type != type)
		control_fatal("message-bad", "it is one that a carrier does not know");
	if (items_read(in, items_types, BASE_ARRAY_LEN(items_types), ret, &diag))
		control_fatal("message-bad", diag.text);
}

/* true: a message; false: none now, or there will be none any more (*ret_closed). */
static bool receive(int fd, int flags, struct wire_in *ret, bool *ret_closed)
{
	int r;

	do
		r = wire_recv(fd, ret, flags);
	while (r == -EINTR);
	*ret_closed = r == WIRE_E_CLOSED || r == -ECONNRESET;
	if (r && r != -EAGAIN && !*ret_closed)
		control_fatal("receive", r < 0 ? strerror(-r) : "damaged message");
	return r == 0;
}

static void receive_start(struct carrier *carrier, int flags)
{
	_cleanup_(wire_in_fini) struct wire_in in;
	union carrier_said said;
	bool closed;

	wire_in_init(&in);
	if (receive(CARRIER_CONTROL_FD, flags, &in, &closed)) {
		read_message(&in, CARRIER_START, &said);
		on_start(carrier, &said.start, &in);
	} else if (closed) {
		_exit(0);
	}
}

void control_begin(struct carrier *carrier)
{
	receive_start(carrier, 0);
	if (control_watch(carrier, CARRIER_CONTROL_FD, CONTROL_TAG_ACCESSD))
		control_fatal("control", "the control socket cannot be watched");
}

void control_receive(struct carrier *carrier)
{
	receive_start(carrier, MSG_DONTWAIT);
}

/* ---- telling ---- */

/* To one who may have gone meanwhile; his end is noticed where it is received. */
#define say(fd, flags, type, ...) ((void)wire_tell_of(fd, flags, type, WIRE_PARTS(__VA_ARGS__)))
#define CHANNEL_ITEMS(channel)                                                                \
	WIRE_U64(CARRIER_KEY_PEER, (channel)->peer), WIRE_U64(CARRIER_KEY_ID, (channel)->id), \
	    WIRE_U64(CARRIER_KEY_INCARNATION, (channel)->incarnation)

static void say_ended(const struct carrier *carrier, uint64_t id, uint64_t incarnation)
{
	say(carrier->gate_fd, 0, CARRIER_ENDED, WIRE_U64(CARRIER_KEY_ID, id),
	    WIRE_U64(CARRIER_KEY_INCARNATION, incarnation));
}

void control_met(struct carrier *carrier, const struct channel *channel)
{
	const bool is_rdma = transport_is_verbs(channel->transport);

	say(CARRIER_CONTROL_FD, 0, CARRIER_MET, CHANNEL_ITEMS(channel),
	    WIRE_U64(CARRIER_KEY_WEIGHT, channel->weight), WIRE_U64(CARRIER_KEY_RDMA, is_rdma),
	    WIRE_STRING(CARRIER_KEY_TEXT,
			is_rdma ? verbs_pool_device(carrier->pool) : channel->path.why.text));
}

void control_lost(struct carrier *carrier, const struct channel *channel)
{
	if (channel->was_met)
		say(CARRIER_CONTROL_FD, 0, CARRIER_LOST, CHANNEL_ITEMS(channel),
		    WIRE_STRING(CARRIER_KEY_TEXT, channel->why.text));
	else
		say(CARRIER_CONTROL_FD, 0, CARRIER_REFUSED, WIRE_U64(CARRIER_KEY_ID, channel->id),
		    WIRE_STRING(CARRIER_KEY_TEXT, channel->why.text));
	if (!channel->is_replaced)
		say_ended(carrier, channel->id, channel->incarnation);
}

static void say_state(struct channel *channel, uint64_t cpu_ns)
{
	channel->state.cpu_ns = channel->said_state.cpu_ns;
	if (memcmp(&channel->state, &channel->said_state, sizeof(channel->state)) == 0)
		return;
	channel->state.cpu_ns = cpu_ns;
	channel->said_state = channel->state;
	/* The next one says it, too. */
	say(CARRIER_CONTROL_FD, MSG_DONTWAIT, CARRIER_STATE, CHANNEL_ITEMS(channel),
	    WIRE_BYTES(CARRIER_KEY_STATE, &channel->state, sizeof(channel->state)));
}

void control_states(struct carrier *carrier)
{
	const uint64_t cpu_ns = base_cpu_ns();

	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		if (carrier->channel[i].phase == CHANNEL_LIVES)
			say_state(&carrier->channel[i], cpu_ns);
}

/* ---- the gate ---- */

static void on_channel(struct carrier *carrier, const struct carrier_channel *message, int fd)
{
	struct channel_new from = {
	    .id = message->id,
	    .incarnation = message->incarnation,
	    .weight = message->weight <= UINT32_MAX ? (uint32_t)message->weight : 0,
	    .fd = fd,
	    .is_sealed = message->is_sealed != 0,
	};
	struct carrier_keys keys;
	int r;

	memcpy(&keys, message->keys, sizeof(keys));
	from.keys = &keys;
	r = channel_meet(carrier, &from);
	if (r) {
		log_line(LOG_LEVEL_WARN, "channel-refused", "node=%.16llx text=\"%s\"",
			 (unsigned long long)message->id, strerror(-r));
		say_ended(carrier, message->id, message->incarnation);
	}
}

void control_gate(struct carrier *carrier)
{
	_cleanup_(wire_in_fini) struct wire_in in;
	union carrier_said said;
	bool closed;

	wire_in_init(&in);
	if (carrier->gate_fd < 0)
		return;
	if (receive(carrier->gate_fd, MSG_DONTWAIT, &in, &closed)) {
		read_message(&in, CARRIER_CHANNEL, &said);
		on_channel(carrier, &said.channel, wire_take_fd(&in, said.channel.keys_fd));
	} else if (closed) {
		base_close(&carrier->gate_fd);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carriers, seen from accessd.
 *
 *   carrier starts -> rings -> START to it, PEERS to the reader -> DOMAIN to the gate -> MET -> MEMBERS to the reader
 *
 * Whatever fails, the domain has no peers for a while, and all else goes on.
 */
#include "daemon/cluster/carrying.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/wire.h"
#include "daemon/cluster/gating.h"
#include "daemon/net/porter.h"
#include "shmring/rings.h"
#include "storage/reader.h"

#define ITEMS_TABLE "daemon/cluster/carrying_tbl.h"
#define ITEMS_STRUCT(name) said_##name
#define ITEMS_UNION said
#define ITEMS_KEY(KEY) CARRIER_KEY_##KEY
#define ITEMS_TYPE(NAME) CARRIER_##NAME
#define ITEMS_WHOSE "carrier's "
#include "base/items_structs_tbl.h"
#include "base/items_types_tbl.h"

_Static_assert((int)TRANSPORT_TCP == (int)CARRIER_TCP && (int)TRANSPORT_RDMA == (int)CARRIER_RDMA,
	       "a choice of accessd.conf is said as it is");

/* ---- the reader's part ---- */

static bool is_distrusted(const struct carrying *carrying, uint64_t id)
{
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		if (id && carrying->distrusted[i] == id)
			return true;
	return false;
}

static void tell_members(struct carrying *carrying)
{
	struct reader_member members[VALUE_MOST_PEERS];
	unsigned n = 0;

	for (uint32_t peer = 0; peer < VALUE_MOST_PEERS; peer++) {
		const struct carrying_channel *channel = &carrying->channel[peer];

		if (channel->incarnation && !is_distrusted(carrying, channel->id))
			members[n++] = (struct reader_member){
			    .id = channel->id, .peer = peer, .weight = (uint32_t)channel->weight};
	}
	carrying->wants.calls.members(carrying->wants.calls.arg, members, n);
}

static void tell_reader(struct carrying *carrying)
{
	carrying->wants.calls.rings(carrying->wants.calls.arg, carrying->to_fd, carrying->from_fd);
	tell_members(carrying);
}

/* Of more than there is room for, the last ones are remembered. */
void carrying_distrust(struct carrying *carrying, uint64_t id, uint64_t sample)
{
	char name[65];

	if (!carrying->number || !id || is_distrusted(carrying, id))
		return;
	memmove(carrying->distrusted + 1, carrying->distrusted,
		sizeof(carrying->distrusted) - sizeof(carrying->distrusted[0]));
	carrying->distrusted[0] = id;
	log_line(LOG_LEVEL_ERROR, "peer-distrusted",
		 "node=\"%s\" uid=%u sample=%" PRIu64
		 " why=\"what it gave is not what the source says; it is asked no more\"",
		 gating_name_of(carrying->wants.gating, id, name),
		 (unsigned)carrying->wants.child.uid, sample);
	tell_members(carrying);
}

/* ---- messages from it ---- */

static void forget_refused(struct carrying *carrying, uint64_t id)
{
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		if (carrying->refused[i].id == id)
			carrying->refused[i].id = 0;
}

static void on_refused(struct carrying *carrying, const struct said_refused *said)
{
	struct carrying_refused *refused;
	char name[65];

	forget_refused(carrying, said->id);
	refused = &carrying->refused[carrying->next_refused++ % VALUE_MOST_PEERS];
	refused->id = said->id;
	snprintf(refused->why, sizeof(refused->why), "%.511s", said->text);
	log_line(LOG_LEVEL_WARN, "peer-refused", "node=\"%s\" uid=%u why=\"%s\"",
		 gating_name_of(carrying->wants.gating, said->id, name),
		 (unsigned)carrying->wants.child.uid, said->text);
}

static bool on_met(struct carrying *carrying, const struct said_met *met)
{
	char name[65];

	if (met->peer >= VALUE_MOST_PEERS || !met->incarnation || !met->weight ||
	    met->weight > UINT32_MAX)
		return false;
	/* The node may have begun anew, and what is lost of its life before is said later. */
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		if (carrying->channel[i].id == met->id)
			carrying->channel[i] = (struct carrying_channel){.id = 0};
	carrying->channel[met->peer] = (struct carrying_channel){
	    .id = met->id,
	    .incarnation = met->incarnation,
	    .weight = met->weight,
	    .is_rdma = met->is_rdma != 0,
	};
	snprintf(carrying->channel[met->peer].way, sizeof(carrying->channel[met->peer].way),
		 "%.255s", met->text);
	forget_refused(carrying, met->id);
	log_line(LOG_LEVEL_INFO, "peer-met", "node=\"%s\" uid=%u by=%s way=\"%s\"",
		 gating_name_of(carrying->wants.gating, met->id, name),
		 (unsigned)carrying->wants.child.uid, met->is_rdma ? "rdma" : "tcp", met->text);
	tell_members(carrying);
	return true;
}

/* What is said of a channel that is there no more says nothing of the one that took its number. */
static struct carrying_channel *channel_of(struct carrying *carrying, uint32_t peer, uint64_t id,
					   uint64_t incarnation)
{
	struct carrying_channel *channel;

	if (peer >= VALUE_MOST_PEERS)
		return NULL;
	channel = &carrying->channel[peer];
	return channel->id == id && channel->incarnation == incarnation ? channel : NULL;
}

/* Of more nodes than there is room for, the last ones are remembered. */
static void note_lost(struct carrying *carrying, const struct said_lost *said)
{
	struct carrying_lost *lost = NULL;

	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		if (carrying->lost[i].id == said->id)
			lost = &carrying->lost[i];
	if (!lost) {
		lost = &carrying->lost[carrying->next_lost++ % VALUE_MOST_PEERS];
		*lost = (struct carrying_lost){.id = said->id};
	}
	lost->times++;
	snprintf(lost->why, sizeof(lost->why), "%.255s", said->text);
}

static void on_lost(struct carrying *carrying, const struct said_lost *lost)
{
	struct carrying_channel *channel =
	    channel_of(carrying, lost->peer, lost->id, lost->incarnation);
	char name[65];

	if (!channel)
		return;
	*channel = (struct carrying_channel){.id = 0};
	note_lost(carrying, lost);
	log_line(LOG_LEVEL_INFO, "peer-lost", "uid=%u why=\"%s: %s\"",
		 (unsigned)carrying->wants.child.uid,
		 gating_name_of(carrying->wants.gating, lost->id, name), lost->text);
	tell_members(carrying);
}

static void measure(struct carrying *carrying, uint64_t cpu_ns)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		if (carrying->channel[i].incarnation)
			bytes += carrying->channel[i].state.bytes_sent +
				 carrying->channel[i].state.bytes_received;
	peering_carried(&carrying->carry, cpu_ns, bytes);
}

static void on_state(struct carrying *carrying, const struct said_state *said)
{
	struct carrying_channel *channel =
	    channel_of(carrying, said->peer, said->id, said->incarnation);

	if (!channel)
		return;
	memcpy(&channel->state, said->state, sizeof(channel->state));
	measure(carrying, channel->state.cpu_ns);
}

static bool on_message(void *arg, struct wire_in *in)
{
	struct carrying *carrying = arg;
	union said said;

	if (!keeper_reads(&carrying->keeper, in, items_types, BASE_ARRAY_LEN(items_types), &said))
		return false;
	switch (in->type) {
	case CARRIER_MET:
		return on_met(carrying, &said.met);
	case CARRIER_REFUSED:
		on_refused(carrying, &said.refused);
		break;
	case CARRIER_LOST:
		on_lost(carrying, &said.lost);
		break;
	case CARRIER_STATE:
		on_state(carrying, &said.state);
		break;
	default: /* of no type in the table */
		return false;
	}
	return true;
}

/* ---- life ---- */

/* rings: it has none yet. Who cannot be introduced to the gate is of no use. */
static void send_start(struct carrying *carrying, bool rings)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		log_line(LOG_LEVEL_ERROR, "carrier-start", "error=\"%s\"", strerror(errno));
		kill(carrying->keeper.child.pid, SIGKILL);
		return;
	}
	keeper_tell(
	    &carrying->keeper, CARRIER_START, WIRE_U64(CARRIER_KEY_GATE, 1), WIRE_FD(pair[0]),
	    WIRE_NONZERO(CARRIER_KEY_RINGS, rings),
	    WIRE_NONZERO(CARRIER_KEY_TRANSPORT, rings ? carrying->wants.child.param->transport : 0),
	    WIRE_FD(rings ? carrying->to_fd : -1), WIRE_FD(rings ? carrying->from_fd : -1));
	base_close(&pair[0]);
	gating_domain(carrying->wants.gating, carrying->number, carrying->name, pair[1]);
}

static void close_rings(struct carrying *carrying)
{
	const struct child_wants *wants = &carrying->wants.child;

	porter_close(wants->porters, wants->uid, &carrying->to_fd);
	porter_close(wants->porters, wants->uid, &carrying->from_fd);
}

static int make_rings(struct carrying *carrying)
{
	int r = rings_new(1, VALUE_RING_BYTES, &carrying->to_fd);

	return r ? r : rings_new(1, VALUE_RING_BYTES, &carrying->from_fd);
}

static int start_process(void *arg, struct diag *diag)
{
	static const char *const arguments[] = {"access-carrier", NULL};
	struct carrying *carrying = arg;
	int r = make_rings(carrying);

	if (r)
		diag_set(diag, "cannot make its rings: %s", strerror(-r));
	r = r ? r : keeper_start(&carrying->keeper, arguments, diag);
	if (r) {
		close_rings(carrying);
		return r;
	}
	send_start(carrying, true);
	tell_reader(carrying);
	return 0;
}

static void on_died(void *arg, int status, uint64_t cpu_ns)
{
	struct carrying *carrying = arg;

	(void)cpu_ns;
	keeper_died(&carrying->keeper, status);
	memset(carrying->channel, 0, sizeof(carrying->channel));
	memset(carrying->refused, 0, sizeof(carrying->refused));
	tell_members(carrying);
	close_rings(carrying);
	keeper_again(&carrying->keeper);
}

void carrying_begin(struct carrying *carrying, const struct carrying_wants *wants)
{
	static const struct keeper_kind kind = {
	    .name = "carrier",
	    .then = "another one is started",
	    .pause_ns = CHILD_PAUSE_NS,
	    .start = start_process,
	    .end = "end of a carrier",
	    .said = on_message,
	    .died = on_died,
	};

	*carrying = (struct carrying){.wants = *wants, .to_fd = -1, .from_fd = -1};
	if (keeper_begin(&carrying->keeper, &kind, carrying, &carrying->wants.child))
		return;
	snprintf(carrying->name, sizeof(carrying->name), "%s", wants->name);
	carrying->number = ++wants->gating->domains;
	keeper_restart(&carrying->keeper);
}

void carrying_end(struct carrying *carrying)
{
	if (!carrying->number)
		return;
	gating_domain_end(carrying->wants.gating, carrying->number);
	keeper_end(&carrying->keeper);
	child_abandon(&carrying->keeper.child, carrying->wants.child.reaper);
	close_rings(carrying);
}

void carrying_reader_died(struct carrying *carrying)
{
	if (carrying->keeper.child.pid > 0)
		kill(carrying->keeper.child.pid, SIGKILL);
}

void carrying_reader_started(struct carrying *carrying)
{
	if (carrying->keeper.child.pid > 0)
		tell_reader(carrying);
}

void carrying_gate_started(struct carrying *carrying)
{
	if (carrying->keeper.child.pid > 0)
		send_start(carrying, false);
}

/* ---- for people ---- */

/* Begins the object of another node. */
static void put_node(const struct carrying *carrying, uint64_t id, struct json_out *out)
{
	char name[65];

	json_out_object_begin(out);
	json_out_member_string(out, "node", gating_name_of(carrying->wants.gating, id, name));
	json_out_member_u64(out, "uid", carrying->wants.child.uid);
}

static void put_channel(const struct carrying *carrying, const struct carrying_channel *channel,
			struct json_out *out)
{
	const struct carrier_state *s = &channel->state;

	put_node(carrying, channel->id, out);
	json_out_member_u64(out, "gid", carrying->wants.gid);
	json_out_member_bool(out, "public", carrying->wants.is_public);
	json_out_member_string(out, "transport", channel->is_rdma ? "rdma" : "tcp");
	JSON_OUT_MEMBERS(out, channel, way, weight);
	json_out_member_bool(out, "open", !s->is_shut);
	json_out_member_bool(out, "distrusted", is_distrusted(carrying, channel->id));
	JSON_OUT_MEMBERS(out, s, gets, gots, misses, late, asked, had, missed, puts_sent,
			 puts_received, bytes_sent, bytes_received, value_bytes_sent,
			 value_bytes_received, answer_us);
	json_out_object_end(out);
}

void carrying_describe(const struct carrying *carrying, struct json_out *out)
{
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		if (carrying->channel[i].incarnation)
			put_channel(carrying, &carrying->channel[i], out);
}

void carrying_describe_refused(const struct carrying *carrying, struct json_out *out)
{
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++) {
		const struct carrying_refused *refused = &carrying->refused[i];

		if (!refused->id)
			continue;
		put_node(carrying, refused->id, out);
		json_out_member_string(out, "why", refused->why);
		json_out_object_end(out);
	}
}

void carrying_describe_lost(const struct carrying *carrying, struct json_out *out)
{
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++) {
		const struct carrying_lost *lost = &carrying->lost[i];

		if (!lost->id)
			continue;
		put_node(carrying, lost->id, out);
		JSON_OUT_MEMBERS(out, lost, times, why);
		json_out_object_end(out);
	}
}

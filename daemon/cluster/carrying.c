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
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/wire.h"
#include "daemon/cluster/gating.h"
#include "shmring/rings.h"
#include "storage/reader.h"

#define ITEMS_TABLE "daemon/cluster/carrying_tbl.h"
#define ITEMS_STRUCT(name) said_##name
#define ITEMS_KEY(KEY) CARRIER_KEY_##KEY
#define ITEMS_TYPE(NAME) CARRIER_##NAME
#define ITEMS_WHOSE "carrier's "
#include "base/items_structs_tbl.h"
#include "base/items_types_tbl.h"

_Static_assert((int)TRANSPORT_TCP == (int)CARRIER_TCP && (int)TRANSPORT_RDMA == (int)CARRIER_RDMA,
	       "a choice of accessd.conf is said as it is");

union said {
	struct said_met met;
	struct said_refused refused;
	struct said_lost lost;
	struct said_state state;
};

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
		 gating_name_of(carrying->wants.gating, id, name), (unsigned)carrying->wants.uid,
		 sample);
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
		 (unsigned)carrying->wants.uid, said->text);
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
		 (unsigned)carrying->wants.uid, met->is_rdma ? "rdma" : "tcp", met->text);
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
		 (unsigned)carrying->wants.uid,
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
	struct diag diag = {""};
	union said said;

	if (items_read(in, items_types, BASE_ARRAY_LEN(items_types), &said, &diag)) {
		log_line(LOG_LEVEL_WARN, "carrier-message", "text=\"%s\"", diag.text);
		return false;
	}
	loop_is_about(carrying->wants.loop,
		      items_name(items_types, BASE_ARRAY_LEN(items_types), in->type));
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

/* rings: it has none yet. */
static int send_start(struct carrying *carrying, bool rings)
{
	struct wire_out out;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	wire_out_init(&out, CARRIER_START);
	wire_put_u64(&out, CARRIER_KEY_GATE, 1);
	wire_put_fd(&out, pair[0]);
	if (rings) {
		wire_put_u64(&out, CARRIER_KEY_RINGS, 1);
		wire_put_u64(&out, CARRIER_KEY_TRANSPORT, carrying->wants.transport);
		wire_put_fd(&out, carrying->to_fd);
		wire_put_fd(&out, carrying->from_fd);
	}
	r = wire_send(carrying->child.sock, &out, MSG_DONTWAIT);
	wire_out_fini(&out);
	base_close(&pair[0]);
	gating_domain(carrying->wants.gating, carrying->number, carrying->name, pair[1]);
	return r ? -ECONNRESET : 0;
}

static void close_fd(struct carrying *carrying, int *fd)
{
	carrying->wants.calls.let_go(carrying->wants.calls.arg, fd);
}

static void close_rings(struct carrying *carrying)
{
	close_fd(carrying, &carrying->to_fd);
	close_fd(carrying, &carrying->from_fd);
}

static int make_rings(struct carrying *carrying)
{
	int r = rings_new(1, VALUE_RING_BYTES, &carrying->to_fd);

	return r ? r : rings_new(1, VALUE_RING_BYTES, &carrying->from_fd);
}

static int start_process(struct carrying *carrying, struct diag *diag)
{
	const struct carrying_wants *wants = &carrying->wants;
	char path[PATH_MAX];
	char *argv[] = {(char *)"access-carrier", NULL, NULL, NULL};
	int r = child_find("access-carrier", wants->is_private, path, sizeof(path), diag);

	if (r)
		return r;
	if (wants->as) {
		argv[1] = (char *)"--as";
		argv[2] = carrying->as;
	}
	r = make_rings(carrying);
	r = r ? r : child_start(path, argv, wants->priority, &carrying->child);
	if (!r)
		r = hearing_begin(&carrying->hearing, wants->loop, &carrying->child, on_message,
				  carrying);
	r = r ? r : send_start(carrying, true);
	if (r) {
		diag_set(diag, "cannot start %s: %s", path, strerror(-r));
		hearing_end(&carrying->hearing);
		child_abandon(&carrying->child, wants->reaper);
		close_rings(carrying);
		return r;
	}
	child_luck_start(&carrying->luck, base_now_ns());
	tell_reader(carrying);
	return 0;
}

static void start_later(struct carrying *carrying)
{
	loop_timer_set(
	    carrying->restart,
	    BASE_MAX(child_luck_failure(&carrying->luck, base_now_ns()), CHILD_PAUSE_NS));
}

static void restart(void *arg)
{
	struct carrying *carrying = arg;
	struct diag diag = {""};

	if (start_process(carrying, &diag) == 0)
		return;
	log_line(LOG_LEVEL_ERROR, "carrier-start", "error=\"%s\"", diag.text);
	start_later(carrying);
}

void carrying_begin(struct carrying *carrying, const struct carrying_wants *wants)
{
	*carrying =
	    (struct carrying){.wants = *wants, .child = {.sock = -1}, .to_fd = -1, .from_fd = -1};
	if (loop_timer_new(wants->loop, restart, carrying, &carrying->restart))
		return;
	if (wants->as)
		snprintf(carrying->as, sizeof(carrying->as), "%s", wants->as);
	snprintf(carrying->name, sizeof(carrying->name), "%s", wants->name);
	carrying->number = ++wants->gating->domains;
	restart(carrying);
}

void carrying_end(struct carrying *carrying)
{
	if (!carrying->number)
		return;
	gating_domain_end(carrying->wants.gating, carrying->number);
	loop_unwatch(&carrying->restart);
	hearing_end(&carrying->hearing);
	child_abandon(&carrying->child, carrying->wants.reaper);
	close_rings(carrying);
}

bool carrying_child_ended(struct carrying *carrying, pid_t pid, int status)
{
	char how[96];

	if (pid <= 0 || pid != carrying->child.pid)
		return false;
	hearing_end(&carrying->hearing);
	close_fd(carrying, &carrying->child.sock);
	carrying->child.pid = 0;
	log_line(LOG_LEVEL_ERROR, "carrier-died", "uid=%u how=\"%s\"",
		 (unsigned)carrying->wants.uid, child_describe_end(status, how, sizeof(how)));
	memset(carrying->channel, 0, sizeof(carrying->channel));
	memset(carrying->refused, 0, sizeof(carrying->refused));
	tell_members(carrying);
	close_rings(carrying);
	start_later(carrying);
	return true;
}

void carrying_reader_died(struct carrying *carrying)
{
	if (carrying->child.pid > 0)
		kill(carrying->child.pid, SIGKILL);
}

void carrying_reader_started(struct carrying *carrying)
{
	if (carrying->child.pid > 0)
		tell_reader(carrying);
}

void carrying_gate_started(struct carrying *carrying)
{
	if (carrying->child.pid > 0 && send_start(carrying, false))
		kill(carrying->child.pid, SIGKILL);
}

/* ---- for people ---- */

/* Begins the object of another node. */
static void put_node(const struct carrying *carrying, uint64_t id, struct json_out *out)
{
	char name[65];

	json_out_object_begin(out);
	json_out_member_string(out, "node", gating_name_of(carrying->wants.gating, id, name));
	json_out_member_u64(out, "uid", carrying->wants.uid);
}

static void put_channel(const struct carrying *carrying, const struct carrying_channel *channel,
			struct json_out *out)
{
	const struct carrier_state *s = &channel->state;

	put_node(carrying, channel->id, out);
	json_out_member_u64(out, "gid", carrying->wants.gid);
	json_out_member_bool(out, "public", carrying->wants.is_public);
	json_out_member_string(out, "transport", channel->is_rdma ? "rdma" : "tcp");
	json_out_member_string(out, "way", channel->way);
	json_out_member_u64(out, "weight", channel->weight);
	json_out_member_bool(out, "open", !s->is_shut);
	json_out_member_bool(out, "distrusted", is_distrusted(carrying, channel->id));
	json_out_member_u64(out, "gets", s->gets);
	json_out_member_u64(out, "gots", s->gots);
	json_out_member_u64(out, "misses", s->misses);
	json_out_member_u64(out, "late", s->late);
	json_out_member_u64(out, "asked", s->asked);
	json_out_member_u64(out, "had", s->had);
	json_out_member_u64(out, "missed", s->missed);
	json_out_member_u64(out, "puts_sent", s->puts_sent);
	json_out_member_u64(out, "puts_received", s->puts_received);
	json_out_member_u64(out, "bytes_sent", s->bytes_sent);
	json_out_member_u64(out, "bytes_received", s->bytes_received);
	json_out_member_u64(out, "value_bytes_sent", s->value_bytes_sent);
	json_out_member_u64(out, "value_bytes_received", s->value_bytes_received);
	json_out_member_u64(out, "answer_us", s->answer_us);
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
		json_out_member_u64(out, "times", lost->times);
		json_out_member_string(out, "why", lost->why);
		json_out_object_end(out);
	}
}

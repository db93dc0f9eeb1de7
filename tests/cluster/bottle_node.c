/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A node: accessd, which is made up, and what it starts: a gate's cell, a carrier, a reader. A process that stands still does
 * what it missed when it goes on.
 */

#include "tests/cluster/bottle.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT 7411
#define DOMAIN_NUMBER 1
#define DOMAIN_NAME "user:1000:1000:ada"
#define CALLS_OF 16 /* and so many within SHORT are too many */
#define CALLS_SHORT (10 * SECOND)
#define SOON (20 * US) /* until a process that was woken runs */
#define WEIGHT 10

uint64_t node_awake_ns(const struct node *node, bool is_reader)
{
	const uint64_t until_ns =
	    is_reader ? BASE_MAX(node->until_ns, node->reader_until_ns) : node->until_ns;

	return BASE_MAX(until_ns, node->bottle->clock.now_ns);
}

static bool sleeps(const struct node *node)
{
	return node->until_ns > node->bottle->clock.now_ns;
}

/* ---- the reader ---- */

static void *allocate(void *arg, size_t bytes)
{
	return blocks_add(&((struct node *)arg)->blocks, bytes);
}

static void release(void *arg, void *data)
{
	blocks_free(&((struct node *)arg)->blocks, data);
}

static uint64_t clock_of(void *arg)
{
	return ((struct node *)arg)->bottle->clock.now_ns;
}

static uint64_t chance_of(void *arg)
{
	return philox_u64(&((struct node *)arg)->bottle->chance);
}

static void complain(void *arg, const char *event)
{
	struct node *node = arg;

	bottle_break(node->bottle, "the reader of node %u logs: %s", node->number, event);
}

static bool has_item(const struct rings *rings)
{
	struct rings_item item;
	bool bad;

	return rings->head && rings_look(rings, 0, &item, &bad);
}

static void on_reader(void *arg, uint64_t when_ns, uint64_t unused)
{
	struct node *node = arg;
	struct bottle *bottle = node->bottle;
	const uint64_t awake_ns = node_awake_ns(node, true);

	(void)unused;
	if (when_ns != node->reader_at_ns || !node->reader)
		return;
	node->reader_at_ns = NEVER;
	if (awake_ns > bottle->clock.now_ns) {
		reader_wake(node, awake_ns);
		return;
	}
	node->reader->turn();
	if (has_item(&node->carrier.from_reader))
		carrier_wake(node, bottle->clock.now_ns + SOON);
	reader_wake(node, bottle->clock.now_ns +
			      (has_item(&node->carrier.to_reader) ? SOON : node->reader->nap_ns()));
}

void reader_wake(struct node *node, uint64_t when_ns)
{
	if (!node->reader || node->reader_at_ns <= when_ns)
		return;
	node->reader_at_ns = when_ns;
	bottle_at(node->bottle, when_ns, on_reader, node, when_ns, 0);
}

static void load(struct node *node)
{
	const struct bottle *bottle = node->bottle;

	node->module = dlopen(node->module_path, RTLD_NOW | RTLD_LOCAL);
	node->reader = node->module ? dlsym(node->module, BOTTLE_READER) : NULL;
	if (!node->reader) {
		fprintf(stderr, "%s\n", dlerror());
		abort();
	}
	node->host = (struct bottle_host){
	    .node = node,
	    .mutant = bottle->mutant,
	    .has_store = bottle->has_store,
	    .now_ns = clock_of,
	    .chance = chance_of,
	    .allocate = allocate,
	    .release = release,
	    .find = kept_find,
	    .keep = kept_keep,
	    .is_idle = job_is_idle,
	    .look = job_look,
	    .complain = complain,
	    .again = job_again,
	    .bring = job_bring,
	};
	node->reader_life++;
	node->has_rings = false;
	node->reader->begin(&node->host);
	node->reader_at_ns = NEVER;
	for (unsigned i = 0; i < BOTTLE_JOBS; i++)
		node->job[i].queue =
		    node->reader->open(i, &bottle->group[node->job[i].group], BOTTLE_SAMPLES);
}

/* With all that it had. */
static void unload(struct node *node)
{
	if (!node->module)
		return;
	dlclose(node->module);
	node->module = NULL;
	node->reader = NULL;
	blocks_end(&node->blocks);
	node->n_told = 0;
	if (!node->bottle->has_store)
		kept_lose(node);
}

static void on_reader_again(void *arg, uint64_t life, uint64_t unused)
{
	struct node *node = arg;

	(void)unused;
	if (!node->is_up || node->life != life || node->reader)
		return;
	load(node);
	job_go_on(node, false);
}

/* And accessd kills the carrier, as what is in its rings is half read. */
void reader_die(struct node *node)
{
	struct bottle *bottle = node->bottle;
	const uint64_t pause_ns = (20 + bottle_below(bottle, 500)) * MS;

	if (!node->reader)
		return;
	carrier_die(node, pause_ns + 50 * MS);
	unload(node);
	job_go_on(node, false);
	bottle_at(bottle, bottle->clock.now_ns + pause_ns, on_reader_again, node, node->life, 0);
}

/* ---- members, as accessd tells them ---- */

static bool is_in(const struct reader_member *members, unsigned n, uint64_t id)
{
	for (unsigned i = 0; i < n; i++)
		if (members[i].id == id)
			return true;
	return id == 0;
}

/* Who comes takes his share, from others alike; who goes leaves no more than that; nothing else moves. */
static void check_owners(struct node *node, const uint64_t before[BOTTLE_SAMPLES],
			 const struct reader_member *members, unsigned n)
{
	struct bottle *bottle = node->bottle;
	unsigned moved = 0, came = 0;

	for (unsigned i = 0; i < n; i++)
		came += !is_in(node->told, node->n_told, members[i].id);
	for (unsigned s = 0; s < BOTTLE_SAMPLES; s++) {
		const uint64_t after = node->reader->owner(&bottle->group[0], s);

		moved += before[s] != after;
		if (before[s] != after && is_in(members, n, before[s]) &&
		    is_in(node->told, node->n_told, after))
			bottle_break(
			    bottle, "sample %u moved between two nodes that were there and are", s);
	}
	if (came == 1 && n == node->n_told + 1 &&
	    (moved * (n + 1) < BOTTLE_SAMPLES / 3 || moved * (n + 1) > BOTTLE_SAMPLES * 3))
		bottle_break(bottle, "of %u samples %u moved to a node that is one of %u",
			     BOTTLE_SAMPLES, moved, n + 1);
}

static void on_members(void *arg, uint64_t when_ns, uint64_t unused)
{
	struct node *node = arg;
	struct bottle *bottle = node->bottle;
	struct reader_member members[VALUE_MOST_PEERS];
	uint64_t before[BOTTLE_SAMPLES];
	unsigned n = 0;

	(void)unused;
	if (when_ns != node->members_at_ns)
		return;
	node->members_at_ns = NEVER;
	if (!node->reader || !node->has_rings)
		return;
	for (uint32_t peer = 0; peer < VALUE_MOST_PEERS; peer++)
		if (node->met[peer].id)
			members[n++] = node->met[peer];
	for (unsigned s = 0; s < BOTTLE_SAMPLES; s++)
		before[s] = node->reader->owner(&bottle->group[0], s);
	if (!node->reader->members(WEIGHT, members, n))
		bottle_break(bottle, "the reader refuses its members");
	check_owners(node, before, members, n);
	memcpy(node->told, members, sizeof(node->told));
	node->n_told = n;
	bottle_note(bottle, 'm', node->number, n);
	reader_wake(node, bottle->clock.now_ns + SOON);
}

static void tell_members(struct node *node)
{
	struct bottle *bottle = node->bottle;

	node->members_at_ns = node_awake_ns(node, false) + bottle_below(bottle, 20 * MS);
	bottle_at(bottle, node->members_at_ns, on_members, node, node->members_at_ns, 0);
}

/* ---- the carrier, and what of it is not here ---- */

static struct node *node_of(struct carrier *carrier)
{
	return (struct node *)((char *)carrier - offsetof(struct node, carrier));
}

_Noreturn void control_fatal(const char *event, const char *text)
{
	fprintf(stderr, "%s: %s\n", event, text);
	abort();
}

int control_watch(const struct carrier *carrier, int fd, uint64_t tag)
{
	(void)carrier;
	(void)fd;
	(void)tag;
	return 0;
}

void control_states(struct carrier *carrier)
{
	(void)carrier;
}

void control_met(struct carrier *carrier, const struct channel *channel)
{
	struct node *node = node_of(carrier);

	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		if (node->met[i].id == channel->id)
			node->met[i].id = 0;
	node->met[channel->peer] =
	    (struct reader_member){.id = channel->id, .peer = channel->peer, .weight = WEIGHT};
	node->met_incarnation[channel->peer] = channel->incarnation;
	node->shadow[channel->peer] = (struct shadow){.row = 0};
	bottle_note(node->bottle, 'M', node->number, channel->id);
	tell_members(node);
}

static void gate_wake(struct node *node, uint64_t when_ns);

static void on_ended(void *arg, uint64_t id, uint64_t incarnation)
{
	struct node *node = arg;

	if (!node->cell)
		return;
	cell_lost(node->cell, DOMAIN_NUMBER, id, incarnation, node->bottle->clock.now_ns);
	gate_wake(node, node->bottle->clock.now_ns);
}

void control_lost(struct carrier *carrier, const struct channel *channel)
{
	struct node *node = node_of(carrier);
	struct bottle *bottle = node->bottle;

	bottle_note(bottle, 'L', node->number, channel->id);
	if (channel->was_met && node->met[channel->peer].id == channel->id &&
	    node->met_incarnation[channel->peer] == channel->incarnation) {
		node->met[channel->peer].id = 0;
		tell_members(node);
	}
	if (!channel->is_replaced)
		bottle_at(bottle, bottle->clock.now_ns + MS, on_ended, node, channel->id,
			  channel->incarnation);
}

/* Each GET that is out has its deadline, as long as our reader takes what it is told. */
static void check_deadlines(struct node *node)
{
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++) {
		const struct channel *channel = &node->carrier.channel[i];
		const struct asked_get *get =
		    channel->phase == CHANNEL_LIVES ? asked_oldest(&channel->asked) : NULL;

		if (get && !node->carrier.is_held &&
		    node->carrier.now_ns - get->sent_ns > ASKED_ALIVE_NS + 100 * MS)
			bottle_break(node->bottle,
				     "a GET is out for longer than a peer may be silent");
	}
}

static void on_carrier(void *arg, uint64_t when_ns, uint64_t unused)
{
	struct node *node = arg;
	struct carrier *carrier = &node->carrier;
	struct bottle *bottle = node->bottle;
	bool more;

	(void)unused;
	if (when_ns != node->carrier_at_ns || !node->has_carrier)
		return;
	node->carrier_at_ns = NEVER;
	if (sleeps(node)) {
		carrier_wake(node, node->until_ns);
		return;
	}
	carrier->now_ns = bottle->clock.now_ns;
	carrier->is_held = false;
	more = turn_take(carrier);
	turn_tick(carrier);
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++) {
		struct channel *channel = &carrier->channel[i];
		const uint32_t events =
		    channel_is_open(channel) ? net_events(channel->transport) : 0;

		if (events || channel->is_awake)
			turn_woke(carrier, channel, events);
		more |= channel_is_open(channel) && net_events(channel->transport);
	}
	check_deadlines(node);
	bottle_note(bottle, 'c', node->number, carrier->serial);
	if (has_item(&carrier->to_reader))
		reader_wake(node, bottle->clock.now_ns + SOON);
	carrier_wake(node, more ? bottle->clock.now_ns + SOON
				: BASE_MAX(turn_due_ns(carrier), bottle->clock.now_ns + SOON));
}

void carrier_wake(struct node *node, uint64_t when_ns)
{
	if (!node->has_carrier || node->carrier_at_ns <= when_ns)
		return;
	node->carrier_at_ns = when_ns;
	bottle_at(node->bottle, when_ns, on_carrier, node, when_ns, 0);
}

static void begin_domain(struct node *node)
{
	if (!node->cell)
		return;
	cell_domain(node->cell, DOMAIN_NUMBER, DOMAIN_NAME, WEIGHT, node->bottle->clock.now_ns);
	gate_wake(node, node->bottle->clock.now_ns + MS);
}

static void make_rings(struct rings *rings, int *ret_fd)
{
	if (rings_new(1, VALUE_RING_BYTES, ret_fd) || rings_attach(*ret_fd, rings))
		abort();
}

static void start_carrier(struct node *node)
{
	struct carrier *carrier = &node->carrier;
	int to_fd, from_fd;

	rings_detach(&carrier->from_reader);
	rings_detach(&carrier->to_reader);
	memset(carrier, 0, sizeof(*carrier));
	memset(node->shadow, 0, sizeof(node->shadow));
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		carrier->channel[i].peer = i;
	carrier->epoll_fd = carrier->gate_fd = -1;
	carrier->transport = CARRIER_TCP;
	carrier->chance = (uint32_t)chance_of(node);
	carrier->serial = carrier->chance;
	carrier->now_ns = node->bottle->clock.now_ns;
	make_rings(&carrier->from_reader, &to_fd);
	make_rings(&carrier->to_reader, &from_fd);
	path_open(carrier);
	if (!node->reader->carrier(node->id, to_fd, from_fd))
		bottle_break(node->bottle, "the reader refuses its carrier");
	node->has_rings = true;
	close(to_fd);
	close(from_fd);
	node->n_told = 0;
	node->has_carrier = true;
	node->carrier_at_ns = NEVER;
	reader_wake(node, node->bottle->clock.now_ns + SOON);
	begin_domain(node);
}

static void on_carrier_again(void *arg, uint64_t life, uint64_t unused)
{
	struct node *node = arg;
	const uint64_t awake_ns = node_awake_ns(node, false);

	(void)unused;
	if (!node->is_up || node->carrier_life != life || node->has_carrier)
		return;
	if (!node->reader || awake_ns > node->bottle->clock.now_ns)
		bottle_at(node->bottle, BASE_MAX(awake_ns, node->bottle->clock.now_ns + 10 * MS),
			  on_carrier_again, node, life, 0);
	else
		start_carrier(node);
}

/* What a process that ends leaves: nothing but rings, of which the reader has its own mappings. */
static void bury_channel(struct channel *channel)
{
	path_fini(channel);
	channel->transport->ops->close(channel->transport);
	seal_free(channel->sends);
	seal_free(channel->receives);
	outbox_fini(&channel->outbox);
	frame_fini(&channel->intake);
	names_fini(&channel->told);
	names_fini(&channel->heard);
	asked_fini(&channel->asked);
}

void carrier_die(struct node *node, uint64_t pause_ns)
{
	struct bottle *bottle = node->bottle;

	if (node->has_carrier) {
		for (unsigned i = 0; i < VALUE_MOST_PEERS; i++) {
			if (channel_is_open(&node->carrier.channel[i]))
				bury_channel(&node->carrier.channel[i]);
			node->carrier.channel[i].phase = CHANNEL_FREE;
		}
		node->has_carrier = false;
		if (node->cell)
			cell_domain_end(node->cell, DOMAIN_NUMBER);
		memset(node->met, 0, sizeof(node->met));
		tell_members(node);
	}
	node->carrier_life++;
	bottle_at(bottle, bottle->clock.now_ns + pause_ns, on_carrier_again, node,
		  node->carrier_life, 0);
}

/* ---- the gate ---- */

static struct gate_address address_of(unsigned number)
{
	struct gate_address address = {.size = sizeof(struct sockaddr_in)};
	const struct sockaddr_in sock = {.sin_family = AF_INET,
					 .sin_port = htons(PORT),
					 .sin_addr.s_addr = htonl(0x0a000001 + number)};

	memcpy(&address.sock, &sock, sizeof(sock));
	return address;
}

static unsigned number_of(const struct gate_address *address)
{
	struct sockaddr_in sock;

	memcpy(&sock, &address->sock, sizeof(sock));
	return ntohl(sock.sin_addr.s_addr) - 0x0a000001;
}

struct side { /* of a call */
	struct node *node;
	uint64_t cell_serial;
	struct cell_ref ref;
	bool is_open; /* its gate has it, by that ref */
	int fd;       /* -1: none, or not here any more */
};

struct call {
	struct bottle *bottle;
	struct side side[2]; /* who calls, who is called */
	struct gate_hello hello, answer;
	struct carrier_keys keys[2];
	unsigned events; /* that are to come */
};

static bool is_there(const struct side *side)
{
	return side->is_open && side->node->cell && side->node->cell_serial == side->cell_serial;
}

static void let_go(struct call *call)
{
	if (--call->events > 0)
		return;
	for (unsigned i = 0; i < 2; i++)
		if (call->side[i].fd >= 0)
			net_close(call->bottle, call->side[i].fd);
	blocks_free(&call->bottle->blocks, call);
}

static void later(struct call *call, uint64_t when_ns, clock_fn *fn)
{
	call->events++;
	bottle_at(call->bottle, when_ns, fn, call, 0, 0);
}

static void fail_side(struct side *side)
{
	struct diag diag;

	diag_set(&diag, "it does not answer");
	if (is_there(side)) {
		cell_failed(side->node->cell, &side->ref, false, &diag,
			    side->node->bottle->clock.now_ns);
		gate_wake(side->node, side->node->bottle->clock.now_ns);
	}
	side->is_open = false;
}

/* A connection that is over, or late. */
static void on_hung_up(void *arg, uint64_t a, uint64_t b)
{
	struct call *call = arg;

	(void)a;
	(void)b;
	fail_side(&call->side[0]);
	fail_side(&call->side[1]);
	let_go(call);
}

/* A word goes from one side to the other: `times` ways later it is there, or never, or it is seen that there is no way. */
static void send_word(struct call *call, unsigned from, unsigned times, clock_fn *fn)
{
	struct bottle *bottle = call->bottle;
	const unsigned a = call->side[from].node->number, b = call->side[1 - from].node->number;
	const uint64_t when_ns = bottle->clock.now_ns + times * net_late_ns(bottle, a, b);

	if (bottle->wire[a][b].is_cut || bottle->wire[b][a].is_cut)
		later(call, when_ns, on_hung_up);
	else if (!bottle->wire[a][b].is_hole && !bottle->wire[b][a].is_hole)
		later(call,
		      node_awake_ns(call->side[1 - from].node, false) + when_ns -
			  bottle->clock.now_ns,
		      fn);
}

static void hand_over(struct call *call, unsigned which, struct gate_call *gate_call)
{
	struct side *side = &call->side[which];
	struct node *node = side->node;
	const struct gate_hello *theirs = &gate_call->theirs;
	struct channel_new from = {.incarnation = theirs->incarnation,
				   .weight = (uint32_t)theirs->weight,
				   .is_sealed = theirs->is_sealed,
				   .keys = &call->keys[which],
				   .fd = side->fd};

	side->is_open = false;
	if (!cell_done(node->cell, &side->ref, gate_call, node->bottle->clock.now_ns, &from.id)) {
		gate_wake(node, node->bottle->clock.now_ns);
		return;
	}
	bottle_note(node->bottle, 'g', node->number, which);
	if (!node->has_carrier) {
		on_ended(node, from.id, from.incarnation);
		return;
	}
	side->fd = -1;
	node->carrier.now_ns = node->bottle->clock.now_ns;
	if (channel_meet(&node->carrier, &from))
		bottle_break(node->bottle, "a carrier refuses a channel");
	carrier_wake(node, node->bottle->clock.now_ns + SOON);
}

static void on_go(void *arg, uint64_t a, uint64_t b)
{
	struct call *call = arg;
	struct side *side = &call->side[1];
	struct gate_call gate_call = {.theirs = call->hello};

	(void)a;
	(void)b;
	gate_call.other = address_of(call->side[0].node->number);
	if (is_there(side) && cell_wants(side->node->cell, &side->ref))
		hand_over(call, 1, &gate_call);
	let_go(call);
}

static void connect_sides(struct call *call)
{
	int fd[2];

	net_connect(call->side[0].node, call->side[1].node, fd);
	call->side[0].fd = fd[0];
	call->side[1].fd = fd[1];
	for (unsigned i = 0; i < sizeof(call->keys[0].send_key); i++)
		call->keys[0].send_key[i] = (uint8_t)philox_u32(&call->bottle->chance);
	memcpy(call->keys[1].receive_key, call->keys[0].send_key, sizeof(call->keys[0].send_key));
}

static void on_answer(void *arg, uint64_t a, uint64_t b)
{
	struct call *call = arg;
	struct side *side = &call->side[0];
	struct gate_call gate_call = {.is_caller = true, .theirs = call->answer};

	(void)a;
	(void)b;
	if (!is_there(side) || !cell_wants(side->node->cell, &side->ref)) {
		side->is_open = false;
		fail_side(&call->side[1]);
	} else if (call->answer.answer != GATE_ANSWER_YES) {
		side->is_open = false;
		cell_answered(side->node->cell, &side->ref, &gate_call, call->bottle->clock.now_ns);
		gate_wake(side->node, call->bottle->clock.now_ns);
	} else {
		connect_sides(call);
		hand_over(call, 0, &gate_call);
		send_word(call, 0, 1, on_go);
	}
	let_go(call);
}

static void on_asked(void *arg, uint64_t a, uint64_t b)
{
	struct call *call = arg;
	struct side *side = &call->side[1];
	struct gate_call gate_call = {.theirs = call->hello};

	(void)a;
	(void)b;
	gate_call.other = address_of(call->side[0].node->number);
	if (!side->node->cell) {
		later(call, call->bottle->clock.now_ns, on_hung_up);
	} else if (call->side[0].is_open) {
		side->cell_serial = side->node->cell_serial;
		cell_asked(side->node->cell, &gate_call, call->bottle->clock.now_ns, &call->answer,
			   &side->ref);
		side->is_open = call->answer.answer == GATE_ANSWER_YES;
		bottle_note(call->bottle, 'a', side->node->number, call->answer.answer);
		gate_wake(side->node, call->bottle->clock.now_ns);
		send_word(call, 1, 1, on_answer);
	}
	let_go(call);
}

static void begin_call(struct node *node, const struct cell_call *due)
{
	struct bottle *bottle = node->bottle;
	struct node *to = &bottle->node[number_of(&due->to)];
	struct call *call = blocks_add(&bottle->blocks, sizeof(*call));
	const unsigned n = node->calls[to->number]++;

	*call = (struct call){
	    .bottle = bottle,
	    .hello = due->hello,
	    .side = {{.node = node,
		      .cell_serial = node->cell_serial,
		      .ref = due->ref,
		      .is_open = true,
		      .fd = -1},
		     {.node = to, .fd = -1}},
	};
	bottle_note(bottle, 'C', node->number, to->number);
	if (n >= CALLS_OF &&
	    bottle->clock.now_ns - node->called_ns[to->number][n % CALLS_OF] < CALLS_SHORT)
		bottle_break(bottle, "node %u calls node %u %u times in 10 s", node->number,
			     to->number, CALLS_OF);
	node->called_ns[to->number][n % CALLS_OF] = bottle->clock.now_ns;
	later(call, bottle->clock.now_ns + GATE_CALL_PATIENCE_NS, on_hung_up);
	send_word(call, 0, 3, on_asked); /* connecting, and TLS */
}

static void on_gate(void *arg, uint64_t when_ns, uint64_t unused)
{
	struct node *node = arg;
	struct cell_call due;

	(void)unused;
	if (when_ns != node->cell_at_ns || !node->cell)
		return;
	node->cell_at_ns = NEVER;
	if (sleeps(node)) {
		gate_wake(node, node->until_ns);
		return;
	}
	while (!node->bottle->broken[0] && cell_due(node->cell, node->bottle->clock.now_ns, &due))
		begin_call(node, &due);
	gate_wake(node, cell_next_ns(node->cell));
}

static void gate_wake(struct node *node, uint64_t when_ns)
{
	if (!node->cell || node->cell_at_ns <= when_ns)
		return;
	node->cell_at_ns = when_ns;
	bottle_at(node->bottle, when_ns, on_gate, node, when_ns, 0);
}

void node_list(struct node *node)
{
	struct bottle *bottle = node->bottle;
	struct peers_list list = {.n = 0};

	if (!node->cell)
		return;
	for (unsigned i = 0; i < bottle->n_nodes; i++) {
		struct peers_entry *entry = &list.entries[list.n];

		if (i == node->number || (bottle->has_names && !bottle->node[i].is_listed))
			continue;
		entry->address = address_of(i);
		if (bottle->has_names)
			snprintf(entry->node, sizeof(entry->node), "%s", bottle->node[i].name);
		list.n++;
	}
	cell_list(node->cell, &list, bottle->clock.now_ns);
	gate_wake(node, bottle->clock.now_ns);
}

static void on_member(void *arg, uint64_t id, const struct cell_member *member)
{
	(void)arg;
	(void)id;
	(void)member;
}

static void on_gone(void *arg, uint64_t id)
{
	(void)arg;
	(void)id;
}

static void start_gate(struct node *node)
{
	const struct cell_sink sink = {node, on_member, on_gone};
	struct gate_hello self = {.incarnation = node->incarnation,
				  .port = PORT,
				  .cluster = "c",
				  .is_sealed = node->bottle->is_sealed};

	snprintf(self.node, sizeof(self.node), "%s", node->name);
	if (cell_new(&self, &sink, &node->cell))
		abort();
	node->cell_serial = ++node->bottle->clock.serial;
	node->cell_at_ns = NEVER;
	node_list(node);
}

static void stop_gate(struct node *node)
{
	cell_free(node->cell);
	node->cell = NULL;
}

static void on_gate_again(void *arg, uint64_t life, uint64_t unused)
{
	struct node *node = arg;

	(void)unused;
	if (!node->is_up || node->life != life || node->cell)
		return;
	start_gate(node);
	if (node->has_carrier)
		begin_domain(node);
}

/* Channels live on. */
void gate_die(struct node *node, uint64_t pause_ns)
{
	if (!node->cell)
		return;
	stop_gate(node);
	bottle_at(node->bottle, node->bottle->clock.now_ns + pause_ns, on_gate_again, node,
		  node->life, 0);
}

/* ---- the node ---- */

void node_begin(struct bottle *bottle, unsigned number, const char *folder)
{
	struct node *node = &bottle->node[number];

	node->bottle = bottle;
	node->number = number;
	node->cell_at_ns = node->members_at_ns = NEVER;
	node->source_us = 200 + bottle_below(bottle, 2000);
	snprintf(node->name, sizeof(node->name), "n%u", number);
	snprintf(node->module_path, sizeof(node->module_path), "%s/%u.so", folder, number);
	node->id = gate_id_of(node->name);
	for (unsigned i = 0; i < BOTTLE_JOBS; i++)
		job_begin(node, i, i % BOTTLE_GROUPS);
	node_start(node);
}

static void list_all(struct bottle *bottle)
{
	for (unsigned i = 0; i < bottle->n_nodes; i++)
		if (bottle->node[i].is_up)
			node_list(&bottle->node[i]);
}

static void on_lease(void *arg, uint64_t life, uint64_t unused)
{
	struct node *node = arg;

	(void)unused;
	if (node->life != life)
		return;
	node->is_listed = node->is_up;
	list_all(node->bottle);
}

void node_start(struct node *node)
{
	struct bottle *bottle = node->bottle;

	if (node->is_up)
		return;
	node->is_up = true;
	node->life++;
	node->incarnation = philox_u64(&bottle->chance) | 1;
	load(node);
	start_gate(node);
	start_carrier(node);
	job_go_on(node, true);
	bottle_at(bottle, bottle->clock.now_ns + bottle_below(bottle, SECOND), on_lease, node,
		  node->life, 0);
}

void node_die(struct node *node)
{
	struct bottle *bottle = node->bottle;

	if (!node->is_up)
		return;
	carrier_die(node, NEVER / 2);
	stop_gate(node);
	unload(node);
	node->is_up = false;
	job_go_on(node, true);
	bottle_at(bottle, bottle->clock.now_ns + 10 * SECOND, on_lease, node, node->life, 0);
}

void node_end(struct node *node)
{
	node_die(node);
	rings_detach(&node->carrier.from_reader);
	rings_detach(&node->carrier.to_reader);
	kept_lose(node);
}

bool node_is_connected(const struct node *node, const struct node *other)
{
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		if (node->carrier.channel[i].phase == CHANNEL_LIVES &&
		    node->carrier.channel[i].id == other->id &&
		    node->carrier.channel[i].incarnation == other->incarnation)
			return true;
	return false;
}

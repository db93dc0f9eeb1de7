/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whole sessions with a whole accessd: its loop, node and place are the real ones, reader and worker parent
 * are played (actors.h), and the bytes are steps of up to four clients: messages as the grammar makes them,
 * with descriptors, answers that are heard or not, outboxes used as they should be or scribbled in, hang-ups,
 * captured children and their deaths. After each step the invariants hold that have a checker; after each
 * session everything is given back: connections, streams, memory, descriptors.
 *
 * One node serves all sessions, and the next one after a death: one that was unlucky rests.
 */

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/cache/stores.h"
#include "daemon/net/conn.h"
#include "daemon/node_life.h"
#include "daemon/proc/child.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/streams.h"
#include "daemon/tenant/domain.h"
#include "shmring/grant.h"
#include "tests/daemon/role.h"
#include "tests/fuzz/actors.h"
#include "tests/fuzz/grammar.h"
#include "tests/patience.h"

#define CLIENTS 4
#define MOST_STEPS 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const unsigned long replay_mutations_wanted;
const unsigned long replay_mutations_wanted = 10; /* where there is no fuzzer (replay.c) */

uint64_t __real_fingerprint_of_arithmetic(void);
uint64_t __wrap_fingerprint_of_arithmetic(void);

static struct node node;
static char root[] = "/tmp/session-fuzz-XXXXXX";
static struct grammar_world world = {.dataset = "/data", .samples = 40};
static bool lazy;             /* the actors do not answer */
static unsigned without_node; /* descriptors of this process */

static struct client {
	int sock; /* -1: none */
	bool is_deaf;
	uint8_t nonce[16];
	const struct layout_inbox *inbox; /* NULL: no job */
	struct layout_outbox *outbox;
	struct grant_rank rank;
	uint64_t held[LAYOUT_MAX_PINS];
	unsigned n_held;
} clients[CLIENTS];

static void demand(bool truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "session: %s\n", what);
	abort();
}

/* ---- a node ---- */

static void node_end(void)
{
	node_fini(&node);
	actors_end();
}

static void at_exit(void)
{
	node_end();
	role_remove(root);
}

static void name_a_set(const char *name, const char *value)
{
	struct diag diag = {""};

	demand(named_set(&node.param.named, NULL, name, value, &diag) == 0, diag.text);
}

/* It takes longer than all else that a node begins with, and is the same for each. */
uint64_t __wrap_fingerprint_of_arithmetic(void)
{
	static uint64_t fingerprint;

	fingerprint = fingerprint ? fingerprint : __real_fingerprint_of_arithmetic();
	return fingerprint;
}

static void node_begin(void)
{
	struct diag diag = {""};
	char owner[16];

	memset(&node, 0, sizeof(node));
	node.porters.program = "";
	param_init(&node.param);
	node.param.memory = UINT64_C(48) << 20;
	node.param.cache_size = UINT64_C(16) << 20;
	node.param.arena = 65536;
	node.param.workers = 1;
	node.param.slots = 5;
	node.param.max_clients = CLIENTS;
	node.param.linger_s = 0;
	node.param.idle_exit_s = 0;
	node.param.seed = 1;
	name_a_set("dataset.pets.path", "/data");
	name_a_set("dataset.pets.pipeline", "imagenet-eval");
	snprintf(owner, sizeof(owner), "%u", (unsigned)geteuid());
	name_a_set("dataset.pets.owner", owner);
	snprintf(node.param.cache_dir, sizeof(node.param.cache_dir), "%s/cache", root);
	demand(place_open(&node.place, &node.param, true, root, -1, &diag) == 0, diag.text);
	demand(node_init(&node, &diag) == 0, diag.text);
	signal(SIGTERM, SIG_DFL); /* the fuzzer's */
	signal(SIGINT, SIG_DFL);
}

/* What programs are looked for: actors.c starts none. */
static void make_programs(void)
{
	static const char *const names[] = {"access-reader", "access-worker"};
	char path[64];

	for (unsigned i = 0; i < BASE_ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, names[i]);
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700));
	}
	setenv("ACCESS_LIBEXEC", root, 1);
}

/* ---- turns ---- */

static void check_node(void)
{
	const char *broken = role_check(&node, false); /* captured ones scribble in queues */

	demand(!broken, broken);
}

static void turn(void)
{
	demand(loop_turn(node.loop) == 0, "the loop fails");
	if (!lazy)
		actors_serve(&node);
}

/* Is a process at work that ends by itself? */
static bool is_busy(void)
{
	BASE_EACH(domain, &node.domains, link)
		BASE_EACH(source, &domain->sources, link)
			if (source->store)
				return true;
	return node.stores->pid != 0;
}

static void hear_all(void);

static void settle(void)
{
	const uint64_t end_ns = base_now_ns() + PATIENCE_NS;

	for (unsigned i = 0; i < 6 || is_busy(); i++) {
		turn();
		if (i >= 6)
			sched_yield();
		demand(base_now_ns() < end_ns, "a child does not end");
	}
	check_node();
	hear_all();
}

/* ---- clients ---- */

static void say(struct client *client, struct wire_out *out)
{
	if (!out->error)
		wire_send(client->sock, out, MSG_DONTWAIT);
	wire_out_fini(out);
}

static void detach(struct client *client)
{
	if (client->inbox)
		grant_memory_detach(client->inbox, client->outbox);
	client->inbox = NULL;
	client->n_held = 0;
}

static void on_welcome(struct client *client, const struct wire_in *in)
{
	const void *nonce;
	size_t size;

	if (wire_get_bytes(in, PROTO_KEY_NONCE, &nonce, &size) == 0 &&
	    size == sizeof(client->nonce))
		memcpy(client->nonce, nonce, size);
}

static void hear(struct client *client)
{
	struct wire_in in;
	int r = 0;

	while (client->sock >= 0 && !r) {
		wire_in_init(&in);
		r = role_is_told(client->sock) ? wire_recv(client->sock, &in, MSG_DONTWAIT)
					       : -EAGAIN;
		if (!r && in.type == PROTO_WELCOME)
			on_welcome(client, &in);
		if (!r && in.type == PROTO_OPENED)
			wire_get_u64(&in, PROTO_KEY_JOB_ID, &world.job);
		if (!r && in.type == PROTO_OPENED && !client->inbox && in.n_fds >= 4 &&
		    grant_memory_attach(in.fds[2], in.fds[3], &client->inbox, &client->outbox) == 0)
			grant_rank_init(&client->rank, client->inbox, client->outbox);
		wire_in_fini(&in);
	}
}

static void hear_all(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		if (!clients[i].is_deaf)
			hear(&clients[i]);
}

static void hang_up(struct client *client)
{
	detach(client);
	base_close(&client->sock);
}

static void dial(struct client *client)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	hang_up(client);
	*client = (struct client){.sock = -1};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", root);
	client->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	demand(client->sock >= 0, "no socket");
	if (connect(client->sock, (struct sockaddr *)&address, sizeof(address)))
		base_close(&client->sock);
}

static void greet(struct client *client)
{
	struct wire_out out;

	dial(client);
	wire_out_init(&out, PROTO_HELLO);
	wire_put_u64(&out, PROTO_KEY_MAJOR, PROTO_MAJOR);
	wire_put_u64(&out, PROTO_KEY_MINOR, PROTO_MINOR);
	say(client, &out);
}

static void say_made(struct client *client, struct grammar *grammar)
{
	unsigned n_fds = grammar_below(grammar, 4), n = 0;
	int fds[4];
	struct wire_out out;

	world.nonce = client->nonce;
	grammar_message(grammar, &world, &out);
	while (n < n_fds) {
		fds[n] = grammar_fd(grammar, &world);
		wire_put_fd(&out, fds[n++]);
	}
	say(client, &out);
	while (n > 0)
		base_close(&fds[--n]);
}

static void say_bytes(struct client *client, struct grammar *grammar)
{
	const void *bytes;
	size_t size = grammar_bytes(grammar, 16, &bytes);

	if (send(client->sock, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return; /* its queue is full */
}

static void kick(struct client *client)
{
	struct wire_out out;

	wire_out_init(&out, PROTO_KICK);
	say(client, &out);
}

/* As an honest rank does. */
static void take(struct client *client, unsigned n)
{
	struct grant grant;

	if (!client->inbox)
		return;
	for (; n > 0 && client->n_held < LAYOUT_MAX_PINS; n--) {
		if (grant_take(&client->rank, &grant))
			break;
		client->held[client->n_held++] = grant.number;
	}
	grant_arm(&client->rank);
	kick(client);
}

static void give_back(struct client *client)
{
	if (!client->inbox || !client->n_held)
		return;
	grant_release(&client->rank, client->held[--client->n_held]);
	kick(client);
}

static void scribble(struct client *client, struct grammar *grammar)
{
	uint64_t at = (uint64_t)grammar_byte(grammar) * 8, number = grammar_number(grammar);

	if (client->inbox && at + sizeof(number) <= sizeof(*client->outbox)) {
		memcpy((uint8_t *)client->outbox + at, &number, sizeof(number));
		kick(client);
	}
}

/* ---- sessions ---- */

/* What a client does; one that is not there comes first. */
static void step_of(struct client *client, uint8_t what, struct grammar *grammar)
{
	if (client->sock < 0) {
		greet(client);
		settle();
	}
	switch (what) {
	case 0:
	case 1:
	case 2:
		say_made(client, grammar);
		break;
	case 3:
		take(client, 1 + grammar_below(grammar, 4));
		break;
	case 4:
		give_back(client);
		break;
	case 5:
		hang_up(client);
		break;
	case 6:
		shutdown(client->sock, grammar_below(grammar, 3));
		break;
	case 7:
		scribble(client, grammar);
		break;
	case 8:
		say_bytes(client, grammar);
		break;
	case 9:
		client->is_deaf = !client->is_deaf;
		break;
	default:
		dial(client);
	}
}

static void step(struct grammar *grammar)
{
	uint8_t choice = grammar_byte(grammar), what = choice & 15;

	if (what < 11)
		step_of(&clients[choice >> 4 & 3], what, grammar);
	else if (what == 11)
		actors_work(1 + grammar_below(grammar, 16), grammar_byte(grammar));
	else if (what == 12)
		actors_say(grammar);
	else if (what == 13)
		actors_scribble(grammar);
	else if (what == 14)
		lazy = choice & 16;
	else if (choice >= 224)
		actors_die(choice & 16);
	if (choice < 192) /* else the next step comes at once */
		settle();
}

static unsigned count_descriptors(void)
{
	return role_descriptors() - node.porters.n; /* they rest for a while */
}

static bool is_empty(void)
{
	BASE_EACH(domain, &node.domains, link) {
		if (!LIST_EMPTY(&domain->streams) || !LIST_EMPTY(&domain->sources))
			return false;
		if (!LIST_EMPTY(&domain->chores))
			return false;
	}
	return !node.clients.n && node.memory.used == node.memory.catalogs;
}

/* Everybody goes. What comes back late comes back all the same. */
static void end_session(unsigned descriptors)
{
	const uint64_t end_ns = base_now_ns() + PATIENCE_NS;

	lazy = false;
	for (unsigned i = 0; i < CLIENTS; i++)
		hang_up(&clients[i]);
	while (!actors_died() && (!is_empty() || count_descriptors() > descriptors)) {
		turn();
		check_node();
		if (!node.clients.n) /* none that is being opened is waited for */
			stream_free_idle(node.own);
		demand(base_now_ns() < end_ns, "not everything was given back");
	}
	actors_forget();
}

static void run_steps(const uint8_t *data, size_t size)
{
	struct grammar grammar = {data, size};

	for (unsigned i = 0; i < MOST_STEPS && grammar.left; i++)
		step(&grammar);
}

/* A node on which somebody has looked and opened: the stored index and the catalogue stay. */
static void begin_anew(void)
{
	static const uint8_t steps[] = {0, 0, 4, 0, 0, 0, 1, 0};

	node_begin();
	settle();
	run_steps(steps, sizeof(steps));
	end_session(UINT_MAX);
}

static void run_session(const uint8_t *data, size_t size)
{
	const unsigned descriptors = count_descriptors();

	run_steps(data, size);
	end_session(descriptors);
	if (!actors_died())
		return;
	node_end();
	demand(count_descriptors() == without_node, "descriptors are left behind");
	begin_anew();
}

static void begin(void)
{
	static const char *const programs[] = {"access-reader", "access-worker"};
	char path[PATH_MAX];
	struct diag diag;

	log_init("session_fuzz", LOG_LEVEL_ERROR - 1);
	demand(mkdtemp(root) != NULL, "no folder for it");
	make_programs();
	for (unsigned i = 0; i < CLIENTS; i++)
		clients[i].sock = -1;
	actors_init(&world);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(programs); i++) /* accessd keeps those for good */
		child_find(programs[i], true, path, sizeof(path), &diag);
	without_node = count_descriptors();
	begin_anew();
	atexit(at_exit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool has_begun;

	if (!has_begun)
		begin();
	has_begun = true;
	run_session(data, size);
	return 0;
}

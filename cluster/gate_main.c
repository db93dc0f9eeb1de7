/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-gate: the one program of ours that other machines can reach.
 *
 * accessd starts it with the control socket at descriptor 3 and says who this node is, where to listen, whom to look for,
 * and which domains there are. It sees no sample and opens no file but those that the system's libraries do
 * (names, users, certificates of an etcd); of the key it gets a descriptor, and a connection that
 * has proved itself is handed to the domain's carrier, with keys of its own. It lives as long as accessd, and is not dumpable, for its memory
 * has the cluster's key. What others say is read with bounds and a deadline (gate_call.c); what accessd says is
 * trusted, but a message that makes no sense means that the two are not of one version: that is logged, and the process ends.
 */

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sandbox.h"
#include "base/started.h"
#include "base/wire.h"
#include "cluster/cell.h"
#include "cluster/gate_serve.h"

#define ITEMS_TABLE "cluster/gate_tbl.h"
#define ITEMS_STRUCT(name) said_##name
#define ITEMS_UNION said
#include "base/items_structs_tbl.h"
#define ITEMS_KEY(KEY) GATE_KEY_##KEY
#define ITEMS_TYPE(NAME) GATE_##NAME
#define ITEMS_WHOSE "accessd's "
#include "base/items_types_tbl.h"

#define MOST_FILES 1024
#define MOST_LOGIN 1024
#define LISTEN_AGAIN_MS 1000
#define MOST_MEMORY ((rlim_t)512 << 20)

/* One a process. */
static struct {
	char node[GATE_HELLO_NAME + 1], cluster[GATE_HELLO_NAME + 1];
	char login[MOST_LOGIN + 1];
	struct peers_self self;
	struct gate_tls_way *way;
	struct cell *cell;
	struct gate_carriers carriers; /* of the cell */
	struct peers *peers;
	struct gate_serve *serve;
} gate;

static _Noreturn void fatal(const char *event, const char *why)
{
	log_line(LOG_LEVEL_ERROR, event, "why=\"%s\"", why);
	exit(1);
}

/* ---- what accessd is told: it reads in time, and if it is gone, so is the gate ---- */

static void say_of(enum gate_message type, const struct wire_part *parts)
{
	int r = wire_tell_of(GATE_CONTROL_FD, 0, (uint16_t)type, parts);

	if (r == WIRE_E_CLOSED)
		exit(0);
	if (!r)
		return;
	log_line(LOG_LEVEL_ERROR, "control", "why=\"%s\"", strerror(r < 0 ? -r : EBADMSG));
	exit(1);
}

#define say(type, ...) say_of(type, WIRE_PARTS(__VA_ARGS__))

static void say_ready(const struct gate_address *address)
{
	char text[GATE_CALL_ADDRESS];

	say(GATE_READY, WIRE_STRING(GATE_KEY_ADDRESS, gate_address_text(address, text)));
}

/* What is tried again; "": nothing any longer. */
static void say_trouble(const char *text)
{
	if (*text)
		log_line(LOG_LEVEL_WARN, "trouble", "why=\"%s\" text=\"it is tried again\"", text);
	else
		log_line(LOG_LEVEL_INFO, "trouble", "text=\"it is over\"");
	say(GATE_TROUBLE, WIRE_STRING(GATE_KEY_TEXT, text));
}

/* Says so, and ends the process. */
static _Noreturn void say_failed(const struct diag *diag)
{
	log_line(LOG_LEVEL_ERROR, "gate-failed", "why=\"%s\"", diag->text);
	say(GATE_FAILED, WIRE_STRING(GATE_KEY_TEXT, diag->text));
	exit(1);
}

static void say_member(void *arg, uint64_t id, const struct cell_member *member)
{
	char text[GATE_CALL_ADDRESS] = "";

	(void)arg;
	if (member->has_address)
		gate_address_text(&member->address, text);
	log_line(member->state == GATE_MEMBER_REFUSED ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "member",
		 "node=\"%s\" address=%s state=%s why=\"%s\"", member->node, text,
		 (const char *const[]){"known", "waits", "refused", "met"}[member->state],
		 member->text.text);
	say(GATE_MEMBER, WIRE_U64(GATE_KEY_ID, id),
	    WIRE_STRING(GATE_KEY_NODE, *member->node ? member->node : text),
	    WIRE_STRING(GATE_KEY_ADDRESS, text),
	    WIRE_U64(GATE_KEY_INCARNATION, member->incarnation),
	    WIRE_U64(GATE_KEY_STATE, member->state), WIRE_STRING(GATE_KEY_TEXT, member->text.text));
}

static void say_gone(void *arg, uint64_t id)
{
	(void)arg;
	say(GATE_MEMBER_GONE, WIRE_U64(GATE_KEY_ID, id));
}

/* ---- START ---- */

static char *read_file(struct wire_in *in, unsigned index, size_t *ret_size)
{
	_cleanup_close_ int fd = wire_take_fd(in, index);
	struct stat stat;
	char *data;

	if (fd < 0 || fstat(fd, &stat) || !S_ISREG(stat.st_mode) ||
	    stat.st_size > GATE_TLS_MOST_FILE)
		return NULL;
	*ret_size = (size_t)stat.st_size;
	data = malloc(*ret_size + 1);
	if (data && base_read_at(fd, data, *ret_size, 0)) {
		free(data);
		return NULL;
	}
	return data;
}

static void set_way(struct wire_in *in, const struct said_start *start)
{
	const unsigned fds[] = {start->key_fd, start->own_key_fd, start->authority_fd};
	struct gate_tls_file files[3] = {{NULL, 0}};
	const size_t n = start->has_certificates ? 3 : 1;
	struct diag diag = {
	    "the cluster's key file, or a certificate, cannot be read: it must be a "
	    "regular file of at most 64 KiB"};
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		files[i].data = read_file(in, fds[i], &files[i].size);
		if (!files[i].data)
			r = -EIO;
	}
	if (!r)
		r = start->has_certificates ? gate_tls_way_of_certificates(
						  files[0], files[1], files[2], &gate.way, &diag)
					    : gate_tls_way_of_key(files[0], &gate.way, &diag);
	for (size_t i = 0; i < n; i++) {
		char *data = (char *)(uintptr_t)files[i].data;

		if (data)
			explicit_bzero(data, files[i].size);
		free(data);
	}
	if (r)
		say_failed(&diag);
}

/* USER:PASSWORD, and perhaps an end of the line. */
static void set_login(struct wire_in *in, const struct said_start *start)
{
	static const struct diag diag = {
	    "the file of peer_etcd_login: must be one line, USER:PASSWORD, of at most 1024 bytes"};
	size_t size = 0;
	char *data = read_file(in, start->login_fd, &size);

	if (!data || size > sizeof(gate.login) - 1)
		say_failed(&diag);
	memcpy(gate.login, data, size);
	explicit_bzero(data, size);
	free(data);
	if (size > 0 && gate.login[size - 1] == '\n')
		gate.login[--size] = '\0';
	if (*gate.login == ':' || !strchr(gate.login, ':') || strlen(gate.login) != size ||
	    strchr(gate.login, '\n'))
		say_failed(&diag);
}

static void check_name(const char *parameter, const char *name, char ret[GATE_HELLO_NAME + 1])
{
	struct diag diag;

	if (!gate_hello_is_name(name)) {
		diag_set(&diag,
			 "%s %s: must be 1 to %d of letters, digits, '_', '-' and, but "
			 "at first, '.'",
			 parameter, name, GATE_HELLO_NAME);
		say_failed(&diag);
	}
	memcpy(ret, name, strlen(name) + 1);
}

/* An address may come after the start of the machine, and another accessd's port may not be free yet. */
static int listen_in_time(const char *text)
{
	struct diag diag;
	bool is_told = false;

	for (;;) {
		struct pollfd control = {GATE_CONTROL_FD, 0, 0}; /* its end alone */
		int r = gate_serve_listen(text, &gate.self.listen, &diag);

		if (r >= 0 && is_told)
			say_trouble("");
		if (r >= 0)
			return r;
		if (r != -EADDRINUSE && r != -EADDRNOTAVAIL)
			say_failed(&diag);
		if (!is_told)
			say_trouble(diag.text);
		is_told = true;
		if (poll(&control, 1, LISTEN_AGAIN_MS) > 0)
			exit(0);
	}
}

static void on_start(struct wire_in *in, const struct said_start *start)
{
	static const struct cell_sink sink = {NULL, say_member, say_gone};
	struct gate_hello hello = {.incarnation = start->incarnation,
				   .is_sealed = start->sealed != 0};
	struct diag diag;
	int fd;

	if (gate.cell || start->incarnation == 0)
		fatal("message-bad", "START comes twice, or without an incarnation");
	check_name("node_name", start->node, gate.node);
	check_name("cluster_name", start->cluster, gate.cluster);
	set_way(in, start);
	if (start->has_login)
		set_login(in, start);
	gate.self = (struct peers_self){.node = gate.node,
					.cluster = gate.cluster,
					.incarnation = start->incarnation,
					.login = gate.login};
	fd = listen_in_time(start->listen);
	memcpy(hello.node, gate.node, sizeof(gate.node));
	memcpy(hello.cluster, gate.cluster, sizeof(gate.cluster));
	hello.port = gate_address_port(&gate.self.listen);
	if (cell_new(&hello, &sink, &gate.cell))
		fatal("memory", "there is none");
	gate.carriers.cell = gate.cell;
	if (gate_serve_new(gate.way, &gate.carriers, fd, &gate.serve))
		fatal("memory", "there is none");
	if (peers_start(start->peers, &gate.self, &gate.peers, &diag))
		say_failed(&diag);
	say_ready(&gate.self.listen);
}

/* ---- the others ---- */

static void on_message(struct wire_in *in)
{
	struct diag diag;
	union said said;

	if (items_read(in, items_types, BASE_ARRAY_LEN(items_types), &said, &diag))
		fatal("message-bad", diag.text);
	if (!gate.cell && in->type != GATE_START)
		fatal("message-bad", "START must come first");
	switch (in->type) {
	case GATE_START:
		on_start(in, &said.start);
		break;
	case GATE_DOMAIN:
		gate_carriers_begin(&gate.carriers, said.domain.number, said.domain.name,
				    said.domain.weight, wire_take_fd(in, said.domain.carrier_fd));
		break;
	case GATE_DOMAIN_END:
		gate_carriers_end(&gate.carriers, said.domain_end.number);
	}
}

static void receive(void)
{
	struct wire_in in;
	int r;

	wire_in_init(&in);
	r = wire_recv(GATE_CONTROL_FD, &in, MSG_DONTWAIT);
	if (r == WIRE_E_CLOSED) {
		peers_stop(gate.peers);
		_exit(0);
	}
	if (r == -EINTR || r == -EAGAIN)
		return;
	if (r)
		fatal("receive", r < 0 ? strerror(-r) : "damaged message");
	on_message(&in);
	wire_in_fini(&in);
}

static _Noreturn void run(void)
{
	char trouble[PEERS_TROUBLE] = "";
	struct peers_list list;

	while (!gate.serve) {
		struct wire_in in;

		wire_in_init(&in);
		if (wire_recv(GATE_CONTROL_FD, &in, 0))
			exit(0);
		on_message(&in);
		wire_in_fini(&in);
	}
	for (;;) {
		const int fds[2] = {GATE_CONTROL_FD, peers_fd(gate.peers)};
		int r = gate_serve_turn(gate.serve, fds);

		if (r < 0)
			fatal("poll", strerror(-r));
		if (r & 1)
			receive();
		if (!(r & 2))
			continue;
		peers_take(gate.peers, &list);
		cell_list(gate.cell, &list, base_now_ns());
		if (strcmp(trouble, list.trouble) != 0)
			say_trouble(strcpy(trouble, list.trouble));
	}
}

/* ---- the process ---- */

static void limit(int resource, rlim_t most)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)resource, &now))
		return;
	now.rlim_max = BASE_MIN(now.rlim_max, most);
	now.rlim_cur = now.rlim_max;
	setrlimit((__rlimit_resource_t)resource, &now);
}

static void limit_all(void)
{
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_NOFILE, MOST_FILES);
	if (sandbox_is_strict()) /* the run-time of the sanitizers wants more */
		limit(RLIMIT_DATA, MOST_MEMORY);
}

int main(int argc, char **argv)
{
	started_options(
	    "access-gate", argc, argv,
	    "access-gate [--as UID:GID]: connects this node to others of its cluster for accessd, "
	    "which starts it with the control socket at descriptor 3\n",
	    NULL, NULL);
	started_confine("access-gate");
	limit_all();
	started_follow("access-gate");
	run();
}

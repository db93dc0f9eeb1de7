/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which daemon a program talks to is decided once, in oa_connect(): the socket it names, else
 * $ACCESS_SOCKET, else the system's, if somebody listens there, else a private one. A stream stays
 * with that decision for ever: it must not move to a private daemon because the system's is being
 * restarted.
 *
 * A client holds no connection, so a thousand clients cost the daemon nothing; oa_connect() only
 * finds out that somebody answers and can be understood.
 */

#include "libaccess/connect/client.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "libaccess/error.h"
#include "shmring/proto.h"

#define CLIENT_ANSWER_MS 30000
#define CLIENT_STATUS_MAX (UINT64_C(64) << 20)

/* ---- the route ---- */

/* In the place of a path: this user's own, whatever the system has */
#define CLIENT_PRIVATE "private"

static int client_set_socket(struct dial_route *route, const char *socket, struct diag *diag)
{
	if (strlen(socket) >= sizeof(route->socket))
		return diag_fail(diag, OA_E_INVALID,
				 "the socket's path %s is longer than %zu bytes", socket,
				 sizeof(route->socket) - 1);
	strcpy(route->socket, socket);
	return 0;
}

/* Does somebody listen at the system's socket? Also yes when we may not ask: that needs a text. */
static bool client_has_system(const char *path)
{
	_cleanup_close_ int sock = wire_connect(path);

	return sock >= 0 || sock == -EACCES || sock == -EPERM || sock == -EAGAIN;
}

static int client_set_private(struct dial_route *route, struct diag *diag)
{
	int r = private_folder(route->folder, sizeof(route->folder) - sizeof("/socket"), diag);
	char path[DIAL_PATH + sizeof("/socket")];

	r = r ? r : private_make_folder(route->folder, diag);
	if (r)
		return r;
	route->is_private = true;
	snprintf(path, sizeof(path), "%s/socket", route->folder);
	return client_set_socket(route, path, diag);
}

static int client_set_route(struct dial_route *route, const char *socket, struct diag *diag)
{
	const char *named = socket ? socket : secure_getenv("ACCESS_SOCKET");

	if (named && strcmp(named, CLIENT_PRIVATE) == 0)
		return client_set_private(route, diag);
	if (named && *named)
		return client_set_socket(route, named, diag);
	if (client_has_system(RUNSTATEDIR "/accessd/socket"))
		return client_set_socket(route, RUNSTATEDIR "/accessd/socket", diag);
	return client_set_private(route, diag);
}

/* ---- connect ---- */

static int client_no_answer(const struct dial *dial, struct diag *diag)
{
	char name[192];

	if (dial->state == DIAL_HELLO || dial->state == DIAL_OPEN)
		return diag_fail(diag, OA_E_UNREACHABLE,
				 "%s has not answered for %d s: stopped or overloaded?",
				 dial_name(dial, name, sizeof(name)), CLIENT_ANSWER_MS / 1000);
	return diag_fail(
	    diag, OA_E_UNREACHABLE,
	    "no accessd at %s within %d s, and another process holds the lock to start one",
	    dial->route->socket, CLIENT_ANSWER_MS / 1000);
}

/* A daemon that exits just now hangs up: the next try finds that out. */
int client_dial(struct dial *dial, uint64_t deadline, struct diag *diag)
{
	_cleanup_(dial_wait_end) struct dial_wait wait = {.has_begun = false};
	unsigned gone = 0;

	dial_wait_begin(&wait);
	for (;;) {
		int r = dial_step(dial, NULL, NULL, diag);

		if (r == DIAL_GONE && ++gone > 3)
			return OA_E_UNREACHABLE;
		if (r == DIAL_GONE && !dial->route->is_private)
			return OA_E_UNREACHABLE;
		if (r == DIAL_GONE)
			continue;
		if (r != DIAL_AGAIN)
			return r;
		if (base_now_ns() >= deadline)
			return client_no_answer(dial, diag);
		r = dial_wait(&wait, dial_fd(dial), BASE_MIN(dial->wake_ns, deadline));
		if (r)
			return diag_fail(diag, r, "interrupted by a signal while connecting");
	}
}

static int client_try(struct oa_client *client, const char *socket, struct diag *diag)
{
	_cleanup_(dial_fini) struct dial dial;
	int r = client_set_route(&client->route, socket, diag);

	dial_init(&dial, &client->route);
	if (r)
		return r;
	r = guard_init(&client->guard);
	if (r)
		return error_of_errno(diag, r, "oa_connect()");
	r = client_dial(&dial, dial_deadline(CLIENT_ANSWER_MS), diag);
	strcpy(client->route.buckets, dial.buckets);
	return r;
}

int oa_connect(const char *socket, struct oa_client **ret, struct oa_error *error)
{
	struct diag diag = {""};
	struct oa_client *client;
	int r;

	if (!ret)
		return error_export(error, OA_E_INVALID, "oa_connect(): ret is NULL");
	client = calloc(1, sizeof(*client));
	if (!client)
		return error_export(error, -ENOMEM, "oa_connect(): out of memory");
	r = client_try(client, socket, &diag);
	if (r) {
		oa_disconnect(client);
		return error_export(error, r, diag.text);
	}
	*ret = client;
	return error_export(error, 0, "");
}

void oa_disconnect(struct oa_client *client)
{
	if (!client)
		return;
	guard_fini(&client->guard);
	free(client);
}

/* ---- status ---- */

/* Reads all of a memfd as text. 0 or negative errno. */
static int client_read_all(int fd, char **ret)
{
	struct stat status;
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size < 0 ||
	    (uint64_t)status.st_size > CLIENT_STATUS_MAX)
		return -EPROTO;
	size = (size_t)status.st_size;
	text = malloc(size + 1);
	if (!text)
		return -ENOMEM;
	r = base_read_at(fd, text, size, 0);
	if (r)
		return r;
	text[size] = '\0';
	*ret = base_take_ptr(text);
	return 0;
}

static int client_read_reply(struct wire_in *in, char **ret_json, struct diag *diag)
{
	_cleanup_close_ int fd = wire_take_fd(in, 0);
	const char *text = "accessd answered a status request with something else";
	int r;

	if (in->type != PROTO_STATUS_REPLY || fd < 0) {
		wire_get_string(in, PROTO_KEY_TEXT, &text);
		return diag_fail(diag, in->type == PROTO_REFUSED ? OA_E_REFUSED : -EPROTO, "%s",
				 text);
	}
	r = client_read_all(fd, ret_json);
	return r ? error_of_errno(diag, r, "reading accessd's status") : 0;
}

static int client_ask_status(struct dial *dial, uint64_t deadline, char **ret_json,
			     struct diag *diag)
{
	_cleanup_(dial_wait_end) struct dial_wait wait = {.has_begun = false};
	_cleanup_(wire_in_fini) struct wire_in in;
	int r;

	wire_in_init(&in);
	dial_wait_begin(&wait);
	r = wire_tell(dial->sock, PROTO_STATUS, WIRE_NOTHING);
	while (r == 0 && base_now_ns() < deadline) {
		r = dial_wait(&wait, dial->sock, deadline);
		if (r == OA_E_INTERRUPTED)
			return diag_fail(diag, r,
					 "interrupted by a signal while waiting for the status");
		r = r ? r : wire_recv(dial->sock, &in, MSG_DONTWAIT);
		if (r == 0)
			return client_read_reply(&in, ret_json, diag);
		r = r == -EAGAIN ? 0 : r;
	}
	if (r == 0)
		return client_no_answer(dial, diag);
	if (r == WIRE_E_TRUNCATED_FDS)
		return error_of_files(diag, "reading accessd's status");
	if (r == WIRE_E_CLOSED)
		return diag_fail(diag, OA_E_UNREACHABLE, "accessd at %s hung up",
				 dial->route->socket);
	return error_of_errno(diag, r < 0 ? r : -EPROTO, "accessd's status");
}

int oa_status(struct oa_client *client, char **ret_json, struct oa_error *error)
{
	_cleanup_(dial_fini) struct dial dial;
	uint64_t deadline = dial_deadline(CLIENT_ANSWER_MS);
	struct diag diag = {""};
	int r;

	dial_init(&dial, client ? &client->route : NULL);
	if (!client || !ret_json)
		return error_export(error, OA_E_INVALID, "oa_status(): client or ret_json is NULL");
	if (!guard_is_ours(&client->guard))
		return error_export(error, OA_E_FORKED, ERROR_FORKED_TEXT);
	r = client_dial(&dial, deadline, &diag);
	r = r ? r : client_ask_status(&dial, deadline, ret_json, &diag);
	return error_export(error, r, diag.text);
}

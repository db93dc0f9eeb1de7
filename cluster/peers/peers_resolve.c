/* SPDX-License-Identifier: Apache-2.0 */

/* Names of nodes to addresses, as texts and by the system's resolver. */

#include <netdb.h>
#include <stdio.h>

#include "cluster/peers/peers_kind.h"

static int bad_host(const char *text, size_t size, struct diag *diag)
{
	char name[PEERS_HOST];

	snprintf(name, sizeof(name), "%.*s", (int)BASE_MIN(size, sizeof(name) - 1), text);
	return diag_fail(diag, -EINVAL, "'%s' is no HOST, HOST:PORT or [IPv6]:PORT",
			 BASE_QUOTED(name, PEERS_HOST));
}

static bool is_host(const char *text, size_t size, bool is_six)
{
	static const char of[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

	if (size == 0 || size >= PEERS_HOST || text[0] == '-')
		return false;
	for (size_t i = 0; i < size; i++)
		if (text[i] == '\0' || (!strchr(of, text[i]) && !(is_six && strchr(":%", text[i]))))
			return false;
	return true;
}

/* From the colon on. */
static bool parse_port(const char *text, const char *end, unsigned *ret)
{
	const char *at = text + 1;
	uint64_t port;

	if (text == end) {
		*ret = 0;
		return true;
	}
	if (*text != ':' || at == end || !base_parse_number(&at, UINT16_MAX, &port) || at != end)
		return false;
	*ret = (unsigned)port;
	return true;
}

int peers_parse_host(const char *text, size_t size, char ret_host[PEERS_HOST], unsigned *ret_port,
		     struct diag *diag)
{
	const char *end = text + size;
	const bool is_six = size > 0 && *text == '[';
	const char *host = text + is_six;
	const char *host_end = memchr(text, is_six ? ']' : ':', size);
	const char *port;

	if (!host_end && is_six)
		return bad_host(text, size, diag);
	if (!host_end)
		host_end = end;
	port = host_end + is_six;
	if (!is_host(host, (size_t)(host_end - host), is_six) || !parse_port(port, end, ret_port))
		return bad_host(text, size, diag);
	memcpy(ret_host, host, (size_t)(host_end - host));
	ret_host[host_end - host] = '\0';
	return 0;
}

bool peers_parse_address(const char *text, struct gate_address *ret)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *info = NULL;
	char host[PEERS_HOST];
	struct diag diag;
	unsigned port;

	if (peers_parse_host(text, strlen(text), host, &port, &diag) || port == 0 ||
	    getaddrinfo(host, NULL, &hints, &info))
		return false;
	memset(ret, 0, sizeof(*ret));
	memcpy(&ret->sock, info->ai_addr, info->ai_addrlen);
	ret->size = info->ai_addrlen;
	gate_address_set_port(ret, port);
	freeaddrinfo(info);
	return true;
}

static size_t ask(const char *host, int family, unsigned port, struct gate_address *ret,
		  size_t most, int *ret_error)
{
	const struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
	struct addrinfo *all = NULL;
	size_t n = 0;

	*ret_error = getaddrinfo(host, NULL, &hints, &all);
	if (*ret_error)
		return 0;
	for (const struct addrinfo *one = all; one && n < most; one = one->ai_next) {
		if (one->ai_addrlen > sizeof(ret[n].sock))
			continue;
		memset(&ret[n], 0, sizeof(ret[n]));
		memcpy(&ret[n].sock, one->ai_addr, one->ai_addrlen);
		ret[n].size = one->ai_addrlen;
		gate_address_set_port(&ret[n++], port);
	}
	freeaddrinfo(all);
	return n;
}

/* Of a host without any address that this node could use. */
static void say_why(const char *host, unsigned port, int error, struct diag *ret)
{
	struct gate_address six;

	if (ask(host, AF_INET6, port, &six, 1, &(int){0}))
		diag_set(ret,
			 "%s has IPv6 addresses alone, and peer_listen of this node is an IPv4 "
			 "one: peer_listen = [::]:%u takes both",
			 host, port);
	else
		diag_set(ret,
			 "%s has no address: %s (is the name right? `getent hosts %s` asks for it)",
			 host, gai_strerror(error), host);
}

size_t peers_resolve(const struct peers_self *self, const char *host, unsigned port,
		     struct gate_address *ret, size_t most, struct diag *ret_why)
{
	int error = 0;
	size_t n = 0;

	if (self->listen.sock.ss_family == AF_INET6)
		n = ask(host, AF_INET6, port, ret, most, &error);
	if (n == 0)
		n = ask(host, AF_INET, port, ret, most, &error);
	if (n == 0)
		say_why(host, gate_address_port(&self->listen), error, ret_why);
	return n;
}

bool peers_resolve_list(struct peers_look *look, const char *list, struct peers_found *found)
{
	struct diag why = {""};
	bool is_whole = true;
	size_t i = 0;

	for (const char *at = list; *at; i++) {
		const size_t size = strcspn(at, ",");
		struct gate_address address;
		char host[PEERS_HOST];
		unsigned port;

		if (i == found->n && !peers_add(found, &(struct peers_entry){.node = ""}))
			return false;
		if (peers_parse_host(at, size, host, &port, &why) == 0 &&
		    peers_resolve(look->self, host,
				  port ? port : gate_address_port(&look->self->listen), &address, 1,
				  &why) == 1)
			found->entries[i].address = address;
		else
			is_whole = false;
		at += size + (at[size] == ',');
	}
	look->publish(look, found);
	peers_tell(look, why.text);
	return is_whole;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Addresses of nodes as texts and numbers. An IPv4 address that came through an IPv6 socket is the IPv4 one. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/little.h"
#include "cluster/gate_call.h"

const char *gate_address_text(const struct gate_address *address, char ret[GATE_CALL_ADDRESS])
{
	char host[INET6_ADDRSTRLEN] = "?";
	const struct sockaddr_in *four = (const void *)&address->sock;
	const struct sockaddr_in6 *six = (const void *)&address->sock;

	if (address->sock.ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
		snprintf(ret, GATE_CALL_ADDRESS, "[%s]:%u", host, ntohs(six->sin6_port));
	} else {
		inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
		snprintf(ret, GATE_CALL_ADDRESS, "%s:%u", host, ntohs(four->sin_port));
	}
	return ret;
}

/* As 16 bytes, IPv4 as IPv6 has it. */
static void host_of(const struct gate_address *address, uint8_t ret[16])
{
	const struct sockaddr_in *four = (const void *)&address->sock;
	const struct sockaddr_in6 *six = (const void *)&address->sock;

	if (address->sock.ss_family == AF_INET6) {
		memcpy(ret, &six->sin6_addr, 16);
		return;
	}
	memset(ret, 0, 16);
	memset(ret + 10, 0xff, 2);
	memcpy(ret + 12, &four->sin_addr, 4);
}

bool gate_address_is_host(const struct gate_address *one, const struct gate_address *other)
{
	uint8_t hosts[2][16];

	host_of(one, hosts[0]);
	host_of(other, hosts[1]);
	return memcmp(hosts[0], hosts[1], sizeof(hosts[0])) == 0;
}

unsigned gate_address_port(const struct gate_address *address)
{
	/* at the same place in both */
	return ntohs(((const struct sockaddr_in *)(const void *)&address->sock)->sin_port);
}

void gate_address_set_port(struct gate_address *address, unsigned port)
{
	((struct sockaddr_in *)(void *)&address->sock)->sin_port = htons((uint16_t)port);
}

uint64_t gate_id_of(const char *name)
{
	struct hash_id hash;

	hash_of(name, strlen(name), &hash);
	return BASE_MAX(little_64(hash.bytes), UINT64_C(1));
}

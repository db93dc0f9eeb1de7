/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A carrier is the user's own process: what it says is read by its table, and one that makes no sense, or does not take
 * what it is sent, is let go. Nothing waits for it.
 */

#include "cluster/gate_carriers.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/wire.h"

#define ITEMS_TABLE "cluster/gate_ended_tbl.h"
#define ITEMS_STRUCT(name) said_##name
#include "base/items_structs_tbl.h"
#define ITEMS_KEY(KEY) CARRIER_KEY_##KEY
#define ITEMS_TYPE(NAME) CARRIER_##NAME
#define ITEMS_WHOSE "carrier's "
#include "base/items_types_tbl.h"

/* A uid that has no name has none there, either, or is somebody else. false: it is too long, or no user. */
static bool name_domain(const char *name, char ret[GATE_HELLO_DOMAIN + 1])
{
	const char *digits = strncmp(name, "user:", 5) == 0 ? name + 5 : "";
	const struct passwd *user;
	uint64_t uid;

	if (!base_parse_number(&digits, UINT32_MAX - 1, &uid) || *digits)
		return false;
	user = getpwuid((uid_t)uid);
	return snprintf(ret, GATE_HELLO_DOMAIN + 1, "user:%u:%s", (unsigned)uid,
			user ? user->pw_name : "") <= GATE_HELLO_DOMAIN;
}

static void drop(struct gate_carriers *carriers, size_t i)
{
	cell_domain_end(carriers->cell, carriers->carrier[i].domain);
	base_close(&carriers->carrier[i].fd);
	carriers->carrier[i] = carriers->carrier[--carriers->n];
}

void gate_carriers_end(struct gate_carriers *carriers, uint64_t domain)
{
	for (size_t i = carriers->n; i-- > 0;)
		if (carriers->carrier[i].domain == domain)
			drop(carriers, i);
}

void gate_carriers_begin(struct gate_carriers *carriers, uint64_t domain, const char *name,
			 uint64_t weight, int fd)
{
	char whole[GATE_HELLO_DOMAIN + 1];
	int r = -EINVAL;

	gate_carriers_end(carriers, domain);
	if (name_domain(name, whole))
		r = cell_domain(carriers->cell, domain, whole, weight, base_now_ns());
	if (r) {
		log_line(LOG_LEVEL_WARN, "domain",
			 "name=\"%s\" why=\"%s\" text=\"it is not connected to other nodes\"", name,
			 r == -ENOSPC ? "there are as many as a gate connects" : strerror(-r));
		base_close(&fd);
		return;
	}
	carriers->carrier[carriers->n++] = (struct gate_carrier){domain, fd};
}

void gate_carriers_poll(const struct gate_carriers *carriers, struct pollfd *ret)
{
	for (size_t i = 0; i < carriers->n; i++)
		ret[i] = (struct pollfd){carriers->carrier[i].fd, POLLIN, 0};
}

/* One message. false: the carrier is gone, or not worth listening to. */
static bool hear(struct gate_carriers *carriers, const struct gate_carrier *carrier)
{
	struct said_ended said;
	struct diag diag = {"it hung up"};
	struct wire_in in;
	int r;

	wire_in_init(&in);
	r = wire_recv(carrier->fd, &in, MSG_DONTWAIT);
	if (r == -EAGAIN || r == -EINTR)
		return true;
	if (!r)
		r = items_read(&in, items_types, BASE_ARRAY_LEN(items_types), &said, &diag);
	if (!r)
		cell_lost(carriers->cell, carrier->domain, said.id, said.incarnation,
			  base_now_ns());
	else
		log_line(LOG_LEVEL_INFO, "carrier-gone", "domain=%llu why=\"%s\"",
			 (unsigned long long)carrier->domain, diag.text);
	wire_in_fini(&in);
	return r == 0;
}

void gate_carriers_hear(struct gate_carriers *carriers, const struct pollfd *pollfds, size_t n)
{
	for (size_t i = n; i-- > 0;) /* one that goes is replaced by the last */
		if (pollfds[i].revents && !hear(carriers, &carriers->carrier[i]))
			drop(carriers, i);
}

static void put_channel(struct wire_out *out, uint64_t id, const struct gate_hello *theirs,
			const struct carrier_keys *keys, int fd)
{
	wire_out_init(out, CARRIER_CHANNEL);
	wire_put_u64(out, CARRIER_KEY_ID, id);
	wire_put_u64(out, CARRIER_KEY_INCARNATION, theirs->incarnation);
	wire_put_u64(out, CARRIER_KEY_WEIGHT, theirs->weight);
	wire_put_u64(out, CARRIER_KEY_SEALED, theirs->is_sealed);
	wire_put_bytes(out, CARRIER_KEY_KEYS, keys, sizeof(*keys));
	wire_put_fd(out, fd);
}

bool gate_carriers_hand(struct gate_carriers *carriers, uint64_t domain, uint64_t id,
			const struct gate_hello *theirs, const struct carrier_keys *keys, int fd)
{
	struct wire_out out;
	size_t i = 0;
	int r;

	while (i < carriers->n && carriers->carrier[i].domain != domain)
		i++;
	if (i == carriers->n)
		return false;
	put_channel(&out, id, theirs, keys, fd);
	r = wire_send(carriers->carrier[i].fd, &out, MSG_DONTWAIT);
	if (out.data)
		explicit_bzero(out.data, out.size);
	wire_out_fini(&out);
	return r == 0;
}

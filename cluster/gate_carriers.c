/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A carrier is the user's own process: what it says is read by its table, and one that makes no sense, or does not take
 * what it is sent, is let go. Nothing waits for it.
 */

#include "cluster/gate_carriers.h"

#include <pwd.h>
#include <stdio.h>

#include "base/log.h"
#include "base/wire.h"

#define ITEMS_TABLE "cluster/gate_ended_tbl.h"
#define ITEMS_STRUCT(name) said_##name
#include "base/items_structs_tbl.h"
#define ITEMS_KEY(KEY) CARRIER_KEY_##KEY
#define ITEMS_TYPE(NAME) CARRIER_##NAME
#define ITEMS_WHOSE "carrier's "
#include "base/items_types_tbl.h"

#define AGAIN_NS UINT64_C(10000000000)

/* 0; -EINVAL: it is too long, or no user and group; -ENOENT: this machine knows no name of that user now. */
static int name_domain(const char *name, char ret[GATE_HELLO_DOMAIN + 1])
{
	const char *digits = strncmp(name, "user:", 5) == 0 ? name + 5 : "";
	const struct passwd *user;
	uint64_t uid, gid;
	int size;

	if (strcmp(name, GATE_PUBLIC) == 0) {
		snprintf(ret, GATE_HELLO_DOMAIN + 1, "%s", name);
		return 0;
	}
	if (!base_parse_number(&digits, UINT32_MAX - 1, &uid) || *digits++ != ':' ||
	    !base_parse_number(&digits, UINT32_MAX - 1, &gid) || *digits)
		return -EINVAL;
	user = getpwuid((uid_t)uid);
	if (!user || !*user->pw_name)
		return -ENOENT;
	size = snprintf(ret, GATE_HELLO_DOMAIN + 1, "user:%u:%u:%s", (unsigned)uid, (unsigned)gid,
			user->pw_name);
	return size <= GATE_HELLO_DOMAIN ? 0 : -EINVAL;
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

/* Puts it into the cell, or has it wait: without a name two users of one uid would be taken for one. */
static int enter(struct gate_carriers *carriers, struct gate_carrier *carrier, uint64_t now_ns)
{
	char whole[GATE_HELLO_DOMAIN + 1];
	const bool is_new = carrier->again_ns == 0;
	int r = name_domain(carrier->name, whole);

	carrier->again_ns = 0;
	if (r == 0)
		return cell_domain(carriers->cell, carrier->domain, whole, carrier->weight, now_ns);
	if (r != -ENOENT)
		return r;
	carrier->again_ns = now_ns + AGAIN_NS;
	if (is_new)
		log_line(
		    LOG_LEVEL_WARN, "domain",
		    "name=\"%s\" text=\"this machine knows no name of that user (getent passwd "
		    "UID): he is not connected to other nodes until it does\"",
		    carrier->name);
	return 0;
}

static void log_refused(const char *name, int r)
{
	log_line(LOG_LEVEL_WARN, "domain",
		 "name=\"%s\" why=\"%s\" text=\"it is not connected to other nodes\"", name,
		 r == -ENOSPC ? "there are as many as a gate connects" : strerror(-r));
}

void gate_carriers_begin(struct gate_carriers *carriers, uint64_t domain, const char *name,
			 uint64_t weight, int fd)
{
	struct gate_carrier carrier = {.domain = domain, .weight = weight, .fd = fd};
	int r = strlen(name) < sizeof(carrier.name) ? 0 : -EINVAL;

	gate_carriers_end(carriers, domain);
	strncpy(carrier.name, name, sizeof(carrier.name) - 1);
	if (!r)
		r = carriers->n < CELL_MOST_DOMAINS ? enter(carriers, &carrier, base_now_ns())
						    : -ENOSPC;
	if (r) {
		log_refused(name, r);
		base_close(&fd);
		return;
	}
	carriers->carrier[carriers->n++] = carrier;
}

uint64_t gate_carriers_again(struct gate_carriers *carriers, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	for (size_t i = carriers->n; i-- > 0;) {
		struct gate_carrier *carrier = &carriers->carrier[i];
		int r = 0;

		if (carrier->again_ns && carrier->again_ns <= now_ns)
			r = enter(carriers, carrier, now_ns);
		if (r) {
			log_refused(carrier->name, r);
			drop(carriers, i);
		} else if (carrier->again_ns) {
			next_ns = BASE_MIN(next_ns, carrier->again_ns);
		}
	}
	return next_ns;
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
	r = r ? r : items_read(&in, items_types, BASE_ARRAY_LEN(items_types), &said, &diag);
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
	wire_out_make(&out, CARRIER_CHANNEL, WIRE_U64(CARRIER_KEY_ID, id),
		      WIRE_U64(CARRIER_KEY_INCARNATION, theirs->incarnation),
		      WIRE_U64(CARRIER_KEY_WEIGHT, theirs->weight),
		      WIRE_U64(CARRIER_KEY_SEALED, theirs->is_sealed),
		      WIRE_BYTES(CARRIER_KEY_KEYS, keys, sizeof(*keys)), WIRE_FD(fd));
	r = wire_send(carriers->carrier[i].fd, &out, MSG_DONTWAIT);
	if (out.data)
		explicit_bzero(out.data, out.size);
	wire_out_fini(&out);
	return r == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One connection between two gates, from connect() or accept() until it is a channel of a domain, or nothing. It never
 * waits: gate_call_step() goes as far as the socket lets it. It knows no members; who should be answered what is asked of its
 * owner, by GATE_CALL_ASKED.
 *
 *   caller   connect  TLS  CALL ->          <- ANSWER      GO ->        done
 *   called   accept   TLS        -> CALL    ANSWER ->            -> GO  done
 *
 * The last bytes of TLS are the GO. The caller is done when the kernel has it, who was called when he has read it, and no
 * byte more: what comes behind it is the carriers'.
 */

#include <sys/socket.h>

#include "cluster/carrier.h"
#include "cluster/gate_hello.h"
#include "cluster/gate_tls.h"

#define GATE_CALL_ADDRESS 64 /* bytes of "[IPv6]:PORT" */
#define GATE_CALL_PATIENCE_NS UINT64_C(10000000000)

struct gate_address {
	struct sockaddr_storage sock;
	socklen_t size;
};

enum gate_call_result {
	GATE_CALL_WAITS, /* for the socket: gate_call_events() */
	GATE_CALL_ASKED, /* theirs is read: gate_call_answer() */
	GATE_CALL_DONE,  /* gate_call_take() */
	GATE_CALL_NO,    /* the answer, read or written, was another one than YES */
	GATE_CALL_BROKE, /* nobody there, too late, hung up: diag */
	GATE_CALL_REFUSED, /* one does not believe the other, or they do not understand each other: diag */
};

enum gate_call_step {
	GATE_CALL_CONNECT,
	GATE_CALL_SHAKE,
	GATE_CALL_WRITE, /* mine */
	GATE_CALL_READ,  /* theirs */
	GATE_CALL_DECIDE,
	GATE_CALL_WRITE_GO,
	GATE_CALL_READ_GO,
};

struct gate_call {
	struct gate_tls *tls;
	int fd;
	bool is_caller, wants_write;
	enum gate_call_step step;
	uint64_t began_ns, deadline_ns;
	struct gate_address other;
	/* Theirs: once read; with another version only that is said */
	struct gate_hello mine, theirs;
	uint8_t buffer[GATE_HELLO_BYTES];
	size_t done; /* bytes of the buffer */
	struct diag diag;
	/* the owner's */
	uint64_t id, domain; /* of whom it is with, and for which; id 0: not known yet */
};

/* Begins to connect; mine is a CALL. 0 or negative errno. */
int gate_call_to(struct gate_tls_way *way, const struct gate_address *to,
		 const struct gate_hello *mine, uint64_t now_ns, struct gate_call **ret);
/* Of a socket that accept4() gave; fd is consumed, also on failure. */
int gate_call_from(struct gate_tls_way *way, int fd, const struct gate_address *from,
		   uint64_t now_ns, struct gate_call **ret);
void gate_call_free(struct gate_call *call);
short gate_call_events(const struct gate_call *call); /* for poll() */
enum gate_call_result gate_call_step(struct gate_call *call, uint64_t now_ns);
/* After ASKED: what mine says is written. */
void gate_call_answer(struct gate_call *call, const struct gate_hello *mine);
/* After DONE: the keys, of this node's side, and the socket, which the caller owns. Negative errno. */
int gate_call_take(struct gate_call *call, struct carrier_keys *ret_keys);

/* "10.0.0.2:7411", "[fd00::2]:7411" */
const char *gate_address_text(const struct gate_address *address, char ret[GATE_CALL_ADDRESS]);
bool gate_address_is_host(const struct gate_address *one, const struct gate_address *other);
unsigned gate_address_port(const struct gate_address *address);
void gate_address_set_port(struct gate_address *address, unsigned port);
/* The first 8 bytes of the hash of a name, never 0. */
uint64_t gate_id_of(const char *name);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Control messages (base/wire.h) of access-carrier, one a trust domain, with the user's uid. It opens nothing: values
 * come from the reader and for it through two rings (cluster/value.h), connected sockets and their keys from the gate.
 * Two sockets (SOCK_SEQPACKET) tell it what to do: descriptor 3 is accessd's, and START brings the end of a pair whose
 * other end the gate has (cluster/gate.h): accessd introduces the two, and never holds a socket of a network, or a key.
 *
 * access-carrier [--as UID:GID]     (dies with its parent)
 */

#include <stdint.h>

enum carrier_message {
	/* accessd -> carrier */
	/* GATE 1; fd 0: to the gate; RINGS 1, TRANSPORT, in the first one alone; fd 1: ring that the reader writes, fd 2:
	 * ring that the carrier writes. A later one: the gate is a new one; channels live on. */
	CARRIER_START = 1,
	/* gate -> carrier, over their pair */
	/* ID, INCARNATION, WEIGHT, SEALED 0|1, KEYS; fd 0: a connected stream socket to that node. A channel that was
	 * there to the same node is lost first, without ENDED. The carrier gives it a free number (peer). */
	CARRIER_CHANNEL = 2,
	/* carrier -> gate */
	CARRIER_ENDED = 8, /* ID, INCARNATION: that channel has ended: connect anew, in time */
	/* carrier -> accessd */
	/* PEER, ID, INCARNATION, WEIGHT, RDMA 0|1, TEXT: a channel has begun; RDMA: values go by verbs; TEXT: why not */
	CARRIER_MET = 16,
	CARRIER_LOST = 17,    /* PEER, ID, INCARNATION, TEXT: why; the reader was told GONE */
	CARRIER_STATE = 18,   /* PEER, ID, INCARNATION, STATE: once a second while it changes */
	CARRIER_REFUSED = 19, /* ID, TEXT: a channel has ended before it was MET: why */
};

enum carrier_key {
	CARRIER_KEY_PEER = 1,        /* u64, below VALUE_MOST_PEERS: in messages of readers */
	CARRIER_KEY_ID = 2,          /* u64: of a node (cluster/gate.h) */
	CARRIER_KEY_INCARNATION = 3, /* u64: of that node's accessd */
	CARRIER_KEY_WEIGHT = 4,      /* u64: its room for the domain's values, MiB, 1 to 2^32 - 1 */
	CARRIER_KEY_SEALED = 5,      /* u64: 1: messages by AES-128-GCM; 0: XXH3, for accidents */
	CARRIER_KEY_KEYS = 6,        /* bytes: struct carrier_keys */
	CARRIER_KEY_TEXT = 7,        /* string */
	CARRIER_KEY_STATE = 8,       /* bytes: struct carrier_state */
	CARRIER_KEY_GATE = 9,        /* u64: says that there is a descriptor */
	CARRIER_KEY_RINGS = 10,      /* u64: the same, of two */
	CARRIER_KEY_TRANSPORT = 11,  /* u64: enum carrier_transport; AUTO if it is not there */
	CARRIER_KEY_RDMA = 12,       /* u64 */
};

enum carrier_transport {
	CARRIER_AUTO, /* RDMA where both ends have a device and it works, else TCP */
	CARRIER_TCP,
	CARRIER_RDMA /* or not at all */
};

struct
    carrier_keys { /* of one connection; of TLS's exporter (RFC 8446, 7.5): both ends have the same */
	uint8_t send_key[16], receive_key[16];
	uint8_t send_iv[12], receive_iv[12]; /* nonce n: the IV, n XORed into its last 8 bytes */
};

struct carrier_state {                       /* of a channel, since it began */
	uint64_t gets, gots, misses;         /* asked there, and how that was answered */
	uint64_t asked, had, missed;         /* asked by there, and how that was answered */
	uint64_t puts_sent, puts_received;   /* values for an owner to keep */
	uint64_t bytes_sent, bytes_received; /* on the connection, all of it */
	uint64_t value_bytes_sent, value_bytes_received;
	uint64_t puts_dropped; /* for want of room to send: the peer takes too slowly */
	uint64_t late;         /* GETs given up */
	uint64_t answer_us;    /* a GET until its answer: a moving mean */
	uint64_t is_shut;      /* the breaker is open: nothing is asked there but probes */
	uint64_t cpu_ns;       /* of the carrier, all channels */
};

#define CARRIER_CONTROL_FD 3

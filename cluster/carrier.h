/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLUSTER_CARRIER_H
#define CLUSTER_CARRIER_H

/*
 * accessd <-> access-carrier: control messages (base/wire.h) over a SOCK_SEQPACKET pair, the carrier's end is
 * descriptor 3. One carrier a trust domain, with the user's uid. It opens nothing: connected sockets and keys come from
 * the gate through accessd, values from the reader and for it through two trays (cluster/value.h).
 *
 * access-carrier [--as UID:GID]     (descriptor 3: control; dies with its parent)
 */

#include <stdint.h>

enum carrier_message {
	/* accessd -> carrier */
	CARRIER_START =
	    1, /* fd 0: tray that the reader writes, fd 1: tray that the carrier writes; one ring each */
	CARRIER_CHANNEL =
	    2, /* PEER, SERIAL, SEALED 0|1, KEYS; fd 0: a connected stream socket. One that was there under
				that number is closed first */
	CARRIER_CLOSE = 3, /* PEER */
	/* carrier -> accessd */
	CARRIER_LOST = 16,  /* PEER, SERIAL, TEXT: why; the reader was told GONE before */
	CARRIER_STATE = 17, /* PEER, SERIAL, STATE: about once a second while it changes */
};

enum carrier_key {
	CARRIER_KEY_PEER = 1, /* u64, below VALUE_MOST_PEERS */
	CARRIER_KEY_SERIAL =
	    2, /* u64, of the channel: what is said of an older one is not believed */
	CARRIER_KEY_SEALED =
	    3, /* u64: 1: each message by AES-128-GCM; 0: XXH3 of it, which only notices accidents */
	CARRIER_KEY_KEYS = 4,  /* bytes: struct carrier_keys */
	CARRIER_KEY_TEXT = 5,  /* string */
	CARRIER_KEY_STATE = 6, /* bytes: struct carrier_state */
};

struct
    carrier_keys { /* of one connection; of TLS's exporter (RFC 8446, 7.5), so both ends have the same */
	uint8_t send_key[16], receive_key[16];
	uint8_t send_iv[12],
	    receive_iv[12]; /* message n's nonce: the IV with n XORed into its last 8 bytes */
};

struct carrier_state {               /* of a channel, since it began */
	uint64_t gets, gots, misses; /* asked there, and how that was answered */
	uint64_t asked, had, missed; /* asked by there, and how that was answered */
	uint64_t puts_sent, puts_received;
	uint64_t bytes_sent, bytes_received; /* on the connection, all of it */
	uint64_t value_bytes_sent, value_bytes_received;
	uint64_t late;      /* GETs given up */
	uint64_t answer_us; /* a GET until its answer: a moving mean */
	uint64_t cpu_ns;    /* of the carrier, all channels */
};

#define CARRIER_CONTROL_FD 3

#endif

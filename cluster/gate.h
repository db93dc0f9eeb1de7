/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * accessd <-> access-gate: control messages (base/wire.h) over a SOCK_SEQPACKET pair, the gate's end is descriptor 3.
 * One gate a node: it alone has sockets that listen, knows who else is there (cluster/peers/), and proves to each
 * other node's gate, and has it proved, that both have the cluster's key (TLS 1.3). What it hands over is a connected
 * socket with keys, to a domain's carrier itself (CARRIER_CHANNEL of cluster/carrier.h, over the socket that DOMAIN
 * brings; CARRIER_ENDED comes back over it): accessd only introduces the two. The gate sees no sample.
 *
 * access-gate [--as UID:GID]     (descriptor 3: control; dies with its parent)
 */

enum gate_message {
	/* accessd -> gate */
	/* NODE, CLUSTER, LISTEN, PEERS, INCARNATION, SEALED 0|1; fd 0: the cluster's key file, or with CERTIFICATES
	 * fd 0: certificate, fd 1: its key, fd 2: the authority's; with LOGIN one more: etcd's user and password
	 * -> READY | FAILED */
	GATE_START = 1,
	/* DOMAIN, NAME, WEIGHT; fd 0: to its carrier: connect it to the same domain of all members, and take their
	 * calls for it. One that is there under that number has a new carrier. */
	GATE_DOMAIN = 2,
	GATE_DOMAIN_END = 3, /* DOMAIN */
	/* gate -> accessd */
	GATE_READY = 16,  /* ADDRESS: on which it listens */
	GATE_FAILED = 17, /* TEXT: what is wrong and how to mend it; the gate ends */
	/* ID, NODE, ADDRESS, INCARNATION (0: not known yet), STATE, TEXT: is new, or has changed */
	GATE_MEMBER = 18,
	GATE_MEMBER_GONE = 19, /* ID */
	/* TEXT: what it cannot do for now (listen, see who is there), and tries again; "": it can */
	GATE_TROUBLE = 20,
};

enum gate_key {
	GATE_KEY_NODE = 1,         /* string: a node's name, [A-Za-z0-9._-]{1,64}, no dot first */
	GATE_KEY_CLUSTER = 2,      /* string: the cluster's name */
	GATE_KEY_LISTEN = 3,       /* string: ADDRESS:PORT, [IPv6]:PORT */
	GATE_KEY_PEERS = 4,        /* string: static:..., dns:..., slurm, etcd:URL */
	GATE_KEY_INCARNATION = 5,  /* u64: of an accessd's life, random; never 0 */
	GATE_KEY_SEALED = 6,       /* u64 */
	GATE_KEY_CERTIFICATES = 7, /* u64: 1 */
	GATE_KEY_DOMAIN = 8,       /* u64: accessd's number */
	/* string: of a domain: "user:UID:GID", to which the gate adds ":" and what it calls that uid, as both must
	 * agree; or GATE_PUBLIC */
	GATE_KEY_NAME = 9,
	GATE_KEY_ID = 10,      /* u64: of a node: the first 8 bytes of the hash of its name */
	GATE_KEY_ADDRESS = 11, /* string */
	GATE_KEY_STATE = 12,   /* u64: enum gate_state */
	GATE_KEY_TEXT = 13,    /* string */
	/* u64: room for the domain's values, MiB, at least 1; the peer is told */
	GATE_KEY_WEIGHT = 14,
	GATE_KEY_LOGIN = 15, /* u64: 1 */
};

enum gate_state {
	GATE_MEMBER_KNOWN,   /* nothing was to be connected yet */
	GATE_MEMBER_WAITS,   /* does not answer: TEXT; tried again after 1 to 30 s */
	GATE_MEMBER_REFUSED, /* is not of this cluster, or of another version: TEXT */
	GATE_MEMBER_MET,     /* proved that it has the key */
};

#define GATE_CONTROL_FD 3
#define GATE_PUBLIC "public" /* the domain of data that are open to everybody */
#define GATE_MOST_MEMBERS 15 /* others of a cell */

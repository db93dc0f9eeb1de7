/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLUSTER_GATE_H
#define CLUSTER_GATE_H

/*
 * accessd <-> access-gate: control messages (base/wire.h) over a SOCK_SEQPACKET pair, the gate's end is descriptor 3.
 * One gate a node: it alone has sockets that listen, knows who else is there (cluster/members.h), and proves to each
 * other node's gate, and has it proved, that both have the cluster's key (TLS 1.3). What it hands over is a connected
 * socket with keys for a domain's carrier; it sees no sample.
 *
 * access-gate [--as UID:GID]     (descriptor 3: control; dies with its parent)
 */

#include <stdint.h>

enum gate_message {
	/* accessd -> gate */
	GATE_START =
	    1, /* NODE, CLUSTER, LISTEN, PEERS, INCARNATION, SEALED 0|1; fd 0: the cluster's key file, or
				with CERTIFICATES fd 0: certificate, fd 1: its key, fd 2: the authority's -> READY | FAILED */
	GATE_DOMAIN =
	    2, /* DOMAIN, NAME, WEIGHT: connect it to the same domain of all members, and take their calls for it */
	GATE_DOMAIN_END = 3, /* DOMAIN */
	GATE_LOST = 4, /* DOMAIN, ID, INCARNATION: that channel has ended: connect anew, in time */
	/* gate -> accessd */
	GATE_READY = 16, /* ADDRESS: on which it listens */
	GATE_FAILED =
	    17, /* TEXT: what of the configuration is wrong and how to mend it; the gate ends */
	GATE_MEMBER =
	    18, /* ID, NODE, ADDRESS, INCARNATION (0: not known yet), STATE, TEXT: is new, or has changed */
	GATE_MEMBER_GONE = 19, /* ID */
	GATE_CHANNEL =
	    20, /* DOMAIN, ID, INCARNATION, WEIGHT (the other's), KEYS; fd 0: a connected socket, blocking or not */
};

enum gate_key {
	GATE_KEY_NODE = 1, /* string: a node's name, [A-Za-z0-9._-]{1,64}, unique in the cluster */
	GATE_KEY_CLUSTER = 2, /* string: the cluster's name */
	GATE_KEY_LISTEN = 3,  /* string: ADDRESS:PORT, [IPv6]:PORT */
	GATE_KEY_PEERS = 4,   /* string: static:..., dns:..., slurm, etcd:URL (access-cluster(7)) */
	GATE_KEY_INCARNATION = 5,  /* u64: of an accessd's life, random; never 0 */
	GATE_KEY_SEALED = 6,       /* u64 */
	GATE_KEY_CERTIFICATES = 7, /* u64: 1 */
	GATE_KEY_DOMAIN = 8,       /* u64: accessd's number */
	GATE_KEY_NAME = 9,         /* string: of a domain: "user:UID:NAME" */
	GATE_KEY_ID = 10,          /* u64: of a node: the first 8 bytes of the hash of its name */
	GATE_KEY_ADDRESS = 11,     /* string */
	GATE_KEY_STATE = 12,       /* u64: enum gate_state */
	GATE_KEY_TEXT = 13,        /* string */
	GATE_KEY_WEIGHT =
	    15, /* u64: a node's room for the domain's values, MiB, at least 1; told the peer */
	GATE_KEY_KEYS = 14, /* bytes: struct carrier_keys (cluster/carrier.h) */
};

enum gate_state {
	GATE_MEMBER_KNOWN,   /* nothing was to be connected yet */
	GATE_MEMBER_WAITS,   /* does not answer: TEXT; tried again after 1 to 30 s */
	GATE_MEMBER_REFUSED, /* is not of this cluster, or of another version: TEXT */
	GATE_MEMBER_MET,     /* proved that it has the key */
};

#define GATE_CONTROL_FD 3
#define GATE_MOST_MEMBERS 15 /* others of a cell */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The items of what accessd and the gate say to a carrier (base/items.h says how, cluster/carrier.h what it means). */
MESSAGE(start, START, NOTHING)
NUMBER_FD(start, GATE, gate, MAY, "the way to the gate")
NUMBER_FD(start, RINGS, from, MAY, "the rings")
FD(start, to, WITH(RINGS), "the ring that the carrier writes")
NUMBER(start, TRANSPORT, transport, MAY, "the transport")

MESSAGE(channel, CHANNEL, NOTHING)
NUMBER(channel, ID, id, MUST, "the node's id")
NUMBER(channel, INCARNATION, incarnation, MUST, "the incarnation of its accessd")
NUMBER(channel, WEIGHT, weight, MUST, "its weight")
NUMBER(channel, SEALED, is_sealed, MUST, "whether messages are sealed")
FIXED_FD(channel, KEYS, keys, sizeof(struct carrier_keys), MUST, "the connection's keys")

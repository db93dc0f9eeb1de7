/* SPDX-License-Identifier: Apache-2.0 */
/* Every item of every message of a carrier (base/items.h says how, cluster/carrier.h what it means). */
MESSAGE(met, MET, NOTHING)
SMALL(met, PEER, peer, MUST, "a channel's number")
NUMBER(met, ID, id, MUST, "a node's id")
NUMBER(met, INCARNATION, incarnation, MUST, "a node's incarnation")
NUMBER(met, WEIGHT, weight, MUST, "a node's room")
NUMBER(met, RDMA, is_rdma, MUST, "whether values go by RDMA")
TEXT(met, TEXT, text, 0, 1023, MUST, "by which device, or why not")

MESSAGE(refused, REFUSED, NOTHING)
NUMBER(refused, ID, id, MUST, "a node's id")
TEXT(refused, TEXT, text, 0, 1023, MUST, "why a channel did not begin")

MESSAGE(lost, LOST, NOTHING)
SMALL(lost, PEER, peer, MUST, "a channel's number")
NUMBER(lost, ID, id, MUST, "a node's id")
NUMBER(lost, INCARNATION, incarnation, MUST, "a node's incarnation")
TEXT(lost, TEXT, text, 0, 1023, MUST, "why a channel ended")

MESSAGE(state, STATE, NOTHING)
SMALL(state, PEER, peer, MUST, "a channel's number")
NUMBER(state, ID, id, MUST, "a node's id")
NUMBER(state, INCARNATION, incarnation, MUST, "a node's incarnation")
FIXED(state, STATE, state, sizeof(struct carrier_state), MUST, "a channel's state")

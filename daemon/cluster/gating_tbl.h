/* SPDX-License-Identifier: Apache-2.0 */
/* Every item of every message of the gate (base/items.h says how, cluster/gate.h what it means). */
MESSAGE(ready, READY, NOTHING)
TEXT(ready, ADDRESS, address, 1, 255, MUST, "the address that it listens on")

MESSAGE(failed, FAILED, NOTHING)
TEXT(failed, TEXT, text, 1, 1023, MUST, "what is wrong")

MESSAGE(trouble, TROUBLE, NOTHING)
TEXT(trouble, TEXT, text, 0, 1023, MUST, "what does not work for now")

MESSAGE(member, MEMBER, NOTHING)
NUMBER(member, ID, id, MUST, "a node's id")
TEXT(member, NODE, node, 0, 64, MUST, "a node's name")
TEXT(member, ADDRESS, address, 0, 255, MUST, "a node's address")
NUMBER(member, INCARNATION, incarnation, MUST, "a node's incarnation")
NUMBER(member, STATE, state, MUST, "a node's state")
TEXT(member, TEXT, text, 0, 1023, MAY, "why it is not met")

MESSAGE(member_gone, MEMBER_GONE, NOTHING)
NUMBER(member_gone, ID, id, MUST, "a node's id")

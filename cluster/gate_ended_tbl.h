/* SPDX-License-Identifier: Apache-2.0 */
/* Every item of every message of a carrier to the gate (base/items.h says how, cluster/carrier.h what it means). */
MESSAGE(ended, ENDED, NOTHING)
NUMBER(ended, ID, id, MUST, "the node's id")
NUMBER(ended, INCARNATION, incarnation, MUST, "the node's incarnation")

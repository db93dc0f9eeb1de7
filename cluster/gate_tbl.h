/* SPDX-License-Identifier: Apache-2.0 */
/* Every item of every message of accessd to its gate (base/items.h says how, cluster/gate.h what it means).
 * Descriptors are taken before: of START as many as CERTIFICATES and LOGIN say, of DOMAIN one. */
MESSAGE(start, START, NOTHING)
TEXT(start, NODE, node, 1, 64, MUST, "the node's name")
TEXT(start, CLUSTER, cluster, 1, 64, MUST, "the cluster's name")
TEXT(start, LISTEN, listen, 1, 255, MUST, "the address to listen on")
TEXT(start, PEERS, peers, 1, 4096, MUST, "the peers")
NUMBER(start, INCARNATION, incarnation, MUST, "the incarnation")
NUMBER(start, SEALED, sealed, MUST, "whether messages are sealed")
NUMBER(start, CERTIFICATES, certificates, MAY, "whether there are certificates")
NUMBER(start, LOGIN, login, MAY, "whether there is a login")
END(start, START)

MESSAGE(domain, DOMAIN, NOTHING)
NUMBER(domain, DOMAIN, number, MUST, "the domain's number")
TEXT(domain, NAME, name, 1, 255, MUST, "the domain's name")
NUMBER(domain, WEIGHT, weight, MUST, "the node's weight")
END(domain, DOMAIN)

MESSAGE(domain_end, DOMAIN_END, NOTHING)
NUMBER(domain_end, DOMAIN, number, MUST, "the domain's number")
END(domain_end, DOMAIN_END)

/* SPDX-License-Identifier: Apache-2.0 */
/* Every item of every message of accessd to its gate (base/items.h says how, cluster/gate.h what it means). */
MESSAGE(start, START, NOTHING)
TEXT(start, NODE, node, 1, 64, MUST, "the node's name")
TEXT(start, CLUSTER, cluster, 1, 64, MUST, "the cluster's name")
TEXT(start, LISTEN, listen, 1, 255, MUST, "the address to listen on")
TEXT(start, PEERS, peers, 1, 4096, MUST, "the peers")
NUMBER(start, INCARNATION, incarnation, MUST, "the incarnation")
NUMBER(start, SEALED, sealed, MUST, "whether messages are sealed")
NUMBER(start, CERTIFICATES, certificates, MAY, "whether there are certificates")
FD(start, key, MUST, "the cluster's key, or the node's certificate")
FD(start, own_key, WITH(CERTIFICATES), "the certificate's key")
FD(start, authority, WITH(CERTIFICATES), "the authority's certificate")
NUMBER_FD(start, LOGIN, login, MAY, "etcd's login")

MESSAGE(domain, DOMAIN, NOTHING)
NUMBER(domain, DOMAIN, number, MUST, "the domain's number")
TEXT(domain, NAME, name, 1, 255, MUST, "the domain's name")
NUMBER(domain, WEIGHT, weight, MUST, "the node's weight")
FD(domain, carrier, MUST, "the way to the carrier")

MESSAGE(domain_end, DOMAIN_END, NOTHING)
NUMBER(domain_end, DOMAIN, number, MUST, "the domain's number")

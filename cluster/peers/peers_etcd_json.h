/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What etcd's JSON gateway (v3) is asked and what it answers, texts to structs and back. Keys and values are base64
 * there, and 64-bit numbers are strings. Answers are hostile: anybody may write into an etcd.
 *
 *   /oneaccess/CLUSTER/node/NAME   {"address": "10.0.0.2:7411", "incarnation": "1f..."}
 */

#include "cluster/peers/peers_kind.h"

#define PEERS_ETCD_MOST_ANSWER ((size_t)8 << 20)
#define PEERS_ETCD_MOST_LINE ((size_t)1 << 20)
#define PEERS_ETCD_MOST_TOKEN ((size_t)8 << 10)
#define PEERS_ETCD_PREFIX 128 /* bytes of "/oneaccess/CLUSTER/node/" */

#define PEERS_ETCD_REFUSAL 200 /* bytes of what a refusal says */

enum { PEERS_ETCD_E_BAD = 1 };

struct peers_etcd_event {
	char node[GATE_HELLO_NAME + 1];
	bool is_gone;
	struct peers_entry entry; /* unless it is gone */
};
/* Events that make no sense are passed over. */
typedef void (*peers_etcd_fn)(void *arg, const struct peers_etcd_event *event);

/* "" if there is no memory. The caller frees. */
void peers_etcd_prefix(const char *cluster, char ret[PEERS_ETCD_PREFIX]);
char *peers_etcd_ask_grant(unsigned ttl_s);
char *peers_etcd_ask_lease(const char *lease); /* of keepalive and of revoke */
char *peers_etcd_ask_put(const char *prefix, const char *node, const char *address,
			 uint64_t incarnation, const char *lease);
char *peers_etcd_ask_range(const char *prefix);
char *peers_etcd_ask_token(const char *user, const char *password);
char *peers_etcd_ask_watch(const char *prefix, uint64_t revision);

/* 0, or PEERS_ETCD_E_BAD. The lease's number, as text. */
int peers_etcd_read_grant(const char *text, size_t size, char ret_lease[24]);
/* Printable, without a blank, at most PEERS_ETCD_MOST_TOKEN bytes; the caller frees it. 0 or PEERS_ETCD_E_BAD. */
int peers_etcd_read_token(const char *text, size_t size, char **ret);
/* What a refusal says, of which there is always something: printable, cut where it is longer. */
void peers_etcd_read_refusal(const char *text, size_t size, char ret[PEERS_ETCD_REFUSAL]);
/* 0; PEERS_ETCD_E_BAD: the lease has expired, or it makes no sense. */
int peers_etcd_read_keepalive(const char *text, size_t size);
/* An event for each node; *ret_revision: of the store, to watch from behind it. */
int peers_etcd_read_range(const char *text, size_t size, const char *prefix, peers_etcd_fn fn,
			  void *arg, uint64_t *ret_revision);
/* A line of a watch. PEERS_ETCD_E_BAD: it is over. */
int peers_etcd_read_watch(const char *text, size_t size, const char *prefix, peers_etcd_fn fn,
			  void *arg);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * TLS 1.3 between two gates, on OpenSSL (whose headers only gate_tls.c sees): by a key that both have, or by certificates
 * of one authority. Sockets do not block. TLS is left without a word, and the socket lives on: nothing that came
 * behind the last record has been read by then.
 */

#include "base/base.h"

struct gate_tls_way; /* how this node proves itself */
struct gate_tls;     /* one connection */

enum {
	GATE_TLS_E_READ = 1,   /* go on when the socket can be read */
	GATE_TLS_E_WRITE = 2,  /* ... written */
	GATE_TLS_E_CLOSED = 3, /* the connection broke; diag says how */
	/* One of the two does not believe the other; diag says why, and what to do */
	GATE_TLS_E_REFUSED = 4,
};

#define GATE_TLS_LEAST_KEY 32 /* bytes of a key file */
#define GATE_TLS_MOST_FILE 65536

struct gate_tls_file {
	const char *data; /* borrowed */
	size_t size;
};

int gate_tls_way_of_key(struct gate_tls_file key, struct gate_tls_way **ret, struct diag *diag);
/* PEM: this node's chain, its key, the authority's certificate. */
int gate_tls_way_of_certificates(struct gate_tls_file chain, struct gate_tls_file key,
				 struct gate_tls_file authority, struct gate_tls_way **ret,
				 struct diag *diag);
void gate_tls_way_free(struct gate_tls_way *way);

/* fd stays the caller's and must outlive it. */
int gate_tls_new(struct gate_tls_way *way, int fd, bool is_caller, struct gate_tls **ret);
void gate_tls_free(struct gate_tls *tls);
/* 0 or GATE_TLS_E_... */
int gate_tls_shake(struct gate_tls *tls, struct diag *diag);
/* Exactly size bytes in the end; *done counts them. 0 or GATE_TLS_E_... */
int gate_tls_read(struct gate_tls *tls, void *ret, size_t size, size_t *done, struct diag *diag);
int gate_tls_write(struct gate_tls *tls, const void *data, size_t size, size_t *done,
		   struct diag *diag);
/* Is the other side's certificate one of that node? By a key: everybody who has it may say his name. */
bool gate_tls_is_of(const struct gate_tls *tls, const char *node);
/* The same bytes on both sides (RFC 8446, 7.5), that nobody else has. 0 or -EIO. */
int gate_tls_export(struct gate_tls *tls, const void *context, size_t context_size, void *ret,
		    size_t size);

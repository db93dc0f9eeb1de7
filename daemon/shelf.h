/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SHELF_H
#define DAEMON_SHELF_H

/*
 * What a domain may keep on the disk, seen from accessd: the tray between its workers and its reader, the
 * folder of the store, which the reader alone opens (storage/store.h), and how the store is.
 */

#include "base/base.h"
#include "base/identity.h"
#include "storage/reader.h"

struct domain;
struct json_out;
struct node;

enum shelf_share { /* of the node's disk: daemon/stores.h */
		   SHELF_ALONE,
		   SHELF_ASKS,
		   SHELF_LOOKS,
		   SHELF_HAS,
		   SHELF_REFUSED,
};

struct shelf {
	int tray_fd; /* -1: nothing is kept, and why says so */
	enum shelf_share share;
	uint64_t limit;  /* bytes that its store may have; 0: none yet */
	bool has_folder; /* this reader was given one */
	bool is_told;    /* or at least why there is none: it keeps what it can */
	bool is_known;   /* the reader has said how its store is */
	bool suspect;    /* the reader before died in a way that a damaged store would explain */
	uint64_t full_until_ns, pause_ns; /* it took nothing: nothing more is made until then */
	struct reader_state state;        /* as the reader said last */
	bool has_written; /* what writing takes was measured: ns a byte of the disk */
	double write_ns, write_cpu_ns;
	char why[256]; /* nothing is kept; "" otherwise */
};

/* Makes the tray, where anything is to be kept. 0 or negative errno. */
int shelf_init(struct shelf *shelf, const struct domain *domain);
void shelf_fini(struct shelf *shelf);
/* The store's folder of the domain, made if need be; the caller owns the descriptor. -1: nothing is
 * kept on a disk, and shelf->why says so. */
int shelf_open_folder(struct shelf *shelf, const struct domain *domain);
/* The name of its folder below the node's. Returns ret. */
const char *shelf_key(const struct domain *domain, char ret[IDENTITY_TEXT_MAX]);
/* It is used now, not longer ago. */
void shelf_touch(const struct domain *domain);
/* From the reader: its store's state; why: it is not on. */
void shelf_said(struct shelf *shelf, const struct reader_state *state, const char *why);
void shelf_reader_died(struct shelf *shelf, int status);
/* Are forms brought from it; can more be kept in it now? */
bool shelf_gives(const struct shelf *shelf);
bool shelf_is_memory(const struct shelf *shelf); /* and nothing on a disk */
bool shelf_takes(const struct shelf *shelf, uint64_t now_ns);
void shelf_has_room(struct shelf *shelf); /* again: it is not waited for */
/* What the store's writer takes for a value of that size, elapsed, and of that on a processor. false: it has
 * not written any yet. */
bool shelf_write_us(const struct shelf *shelf, uint64_t bytes, double *ret_us, double *ret_cpu_us);
void shelf_describe(const struct domain *domain, struct json_out *out); /* an object, for people */

#endif

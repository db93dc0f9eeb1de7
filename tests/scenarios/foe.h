/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the attacks of a hostile neighbour have in common. An attack is what one process does for a moment; all
 * that it draws follows from the seed and the attack's number. It asserts nothing, waits for nobody longer
 * than it likes, and leaves what it began to whoever must clear it up.
 */

#include "base/philox.h"
#include "tests/daemon/raw.h"

#define FOE_MOST_KEPT 512 /* descriptors that a foe has open at once */

struct foe {
	const char *data;   /* a folder of pictures that can be trained with */
	const char *folder; /* where it may make others */
	uint64_t number;    /* of the attack */
	struct philox_seq draws;
	uint64_t noise;
	bool is_over;            /* its process ends: what it has open, close() would wait for */
	uint8_t nonce[16];       /* of the last WELCOME */
	int kept[FOE_MOST_KEPT]; /* sockets and others, closed when it likes */
	unsigned n_kept;
};

/* ---- foe.c ---- */

void foe_begin(struct foe *foe, uint64_t seed, uint64_t number);
/* Closes what it kept, or leaves it for later. */
void foe_end(struct foe *foe);
uint64_t foe_below(struct foe *foe, uint64_t bound);
/* A number that is small, or at some edge. */
uint64_t foe_number(struct foe *foe);
void foe_rest(struct foe *foe, unsigned most_ms);
/* The descriptor is closed by foe_end(). Returns it. */
int foe_keep(struct foe *foe, int fd);

/* Sockets are kept; -1: accessd does not want us. */
int foe_dial(struct foe *foe);
int foe_greet(struct foe *foe);
/* Items of any kind, key and size. */
void foe_put_odd(struct foe *foe, struct wire_out *out, unsigned n);
/* An OPEN (or DESCRIBE) that would be served but for what is put in between. */
void foe_begin_open(const struct foe *foe, struct wire_out *out, uint16_t type);
void foe_end_open(struct foe *foe, struct wire_out *out, const char *dataset);
void foe_send(int sock, struct wire_out *out);
/* Waits for an answer as long as it likes. Whether one came; *ret must be ended. */
bool foe_hear(struct foe *foe, int sock, struct wire_in *ret);
/* A job, with the answer; -1: it was refused. */
int foe_open(struct foe *foe, const char *dataset, struct wire_in *ret_opened);

/* Runs fn(foe) in a process of its own, and kills it at some moment. */
void foe_sacrifice(struct foe *foe, void (*fn)(struct foe *foe), unsigned most_ms);
/* A path in its folder, made of the attack's number; good until the fourth next call. */
const char *foe_path(const struct foe *foe, const char *fmt, ...) BASE_PRINTF(2, 3);

/* ---- attacks, by what they are made of ---- */

typedef void foe_attack_fn(struct foe *foe);
foe_attack_fn foe_nonsense, foe_any_order, foe_odd_open, foe_largest, foe_half_talk,
    foe_crowd; /* foe_words.c */
foe_attack_fn foe_uninvited, foe_lingers, foe_many_fds, foe_unread_fds, foe_odd_part,
    foe_right_part, foe_log, foe_list;                                           /* foe_fds.c */
foe_attack_fn foe_oads, foe_note, foe_odd_folder, foe_many_folders, foe_changes; /* foe_files.c */
foe_attack_fn foe_flood, foe_ranks, foe_holds, foe_outbox, foe_stops, foe_dies, foe_hoards,
    foe_breaks, foe_chores, foe_kills; /* foe_jobs.c */
foe_attack_fn foe_named, foe_asks;     /* foe_names.c */

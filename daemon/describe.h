/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_DESCRIBE_H
#define DAEMON_DESCRIBE_H

/* Answers to DESCRIBE: the catalogue (shmring/catalog.h) of a dataset version. */

#include "base/hash.h"

struct conn;
struct dataset;
struct node;

/* Catalogues that were made lately. Who asks again and again is given the same memory again. */
struct describe_shelf {
	struct {
		struct hash_id version;
		int fd; /* owned; -1: none */
	} entry[4];
	unsigned next; /* the one that goes next */
};

void describe_shelf_init(struct describe_shelf *shelf);
void describe_shelf_fini(struct describe_shelf *shelf);
/* Sends DESCRIBED, or refuses the connection. */
void describe_answer(struct conn *conn, struct describe_shelf *shelf,
		     const struct dataset *dataset);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An access-bucket that serves from files, for tests: a tree has them in real/, and one placeholder each in data/. */

#include "shmring/bucket.h"
#include "tests/storage/tree.h"

#include <pthread.h>

enum fake_act { /* what becomes of questions */
		FAKE_GOOD,
		FAKE_BACKWARDS, /* the last one first, each in a message of its own */
		FAKE_WRONG_ID, /* one answer is of nobody's question; from here on to FAKE_ONCE once only, then good */
		FAKE_WRONG_STATUS,
		FAKE_TWICE,      /* the same answer again */
		FAKE_SHORT,      /* a message that ends in an answer */
		FAKE_CLOSE,      /* hangs up without a word */
		FAKE_HALF_CLOSE, /* half of the answers come before that */
		FAKE_ONCE,
		FAKE_CHANGED, /* of FAKE_NAME alone, as the next two */
		FAKE_DENIED,
		FAKE_FAILED,
		FAKE_NEVER,        /* no answer at all */
		FAKE_CLOSE_ALWAYS, /* hangs up each time */
		FAKE_WRONG_ALWAYS,
};
#define FAKE_URL "s3://bucket/a/prefix"
#define FAKE_TEXT "AccessDenied: the bucket says no, and more so!!" /* 47 bytes */

struct fake {
	const struct tree *tree;
	int listener;
	pthread_t thread;

	pthread_mutex_t lock;
	/* under the lock */
	enum fake_act act;
	char name[64]; /* of an object that FAKE_CHANGED and so on are about */
	unsigned acted, connections, messages, asks;
	unsigned most;     /* questions that one message had */
	uint64_t bytes;    /* that were asked for */
	uint32_t longest;  /* of one question */
	uint64_t shortest; /* of one question */
};
/* The note and the folders of the tree. */
void fake_tree(const struct tree *tree);
/* From now on somebody listens at the tree's socket. */
void fake_start(struct fake *fake, const struct tree *tree);
/* Nobody does; connections go on until they are closed. */
void fake_stop(struct fake *fake);
void fake_says(struct fake *fake, enum fake_act act, const char *name);
struct fake fake_counts(struct fake *fake); /* a copy of what is under the lock */
/* A placeholder for each file below real/, and in the place of those that are there. */
void fake_list(const struct tree *tree);

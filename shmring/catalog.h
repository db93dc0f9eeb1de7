/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a client is told about a dataset version: how many samples, the label of each, the names of
 * the classes. One sealed memfd, made by accessd, so that its size is bounded by memory and not by
 * a message, and any number of clients share it. Little endian:
 *
 *   head (64 bytes) | uint32_t label[n], to a multiple of 8 | uint64_t start[n_classes + 1] | names
 *
 * names: the classes' names one after the other, each with its NUL; start: where each begins, then
 * the end. A flat folder has no classes and the label 0 throughout.
 */

#include "base/base.h"

#define CATALOG_MAGIC UINT64_C(0x4c54434721414f01) /* 01 "OA!GCTL" */
/* No honest catalogue comes near these; below them no sum of sizes overflows 64 bits. */
#define CATALOG_MAX_SAMPLES (UINT64_C(1) << 40)
#define CATALOG_MAX_NAMES (UINT64_C(1) << 40)

enum { CATALOG_E_BAD = 1 };

struct catalog_head {
	uint64_t magic, n, n_classes, names_bytes;
	uint8_t version[32];
};
_Static_assert(sizeof(struct catalog_head) == 64, "the head is frozen");

struct catalog { /* attached: checked, read-only, never changes */
	struct catalog_head head;
	const uint32_t *label;
	const uint64_t *start;
	const char *names;
	const void *map;
	uint64_t bytes;
};

/* One that is being written, by whoever has its descriptor; n labels and n_classes names must be
 * added, in order. */
struct catalog_draft {
	struct catalog_head head;
	uint32_t *label; /* the caller fills them */
	uint64_t *start;
	char *names;
	void *map;
	uint64_t bytes, classes, used;
	int fd;
};

/* A memory of the right size, of which nothing is there yet. 0 (catalog_take() or catalog_drop()
 * ends it) or negative errno. */
int catalog_new(const struct catalog_head *head, struct catalog_draft *ret);
/* Reserves all of it, to be filled. 0 or negative errno. */
int catalog_begin(struct catalog_draft *draft);
void catalog_add_class(struct catalog_draft *draft, const char *name);
/* 0: nobody can change it any more. Negative errno: it is none, and for catalog_drop(). */
int catalog_seal(struct catalog_draft *draft);
/* Of one that was sealed, also by another process: 0 and *ret_fd (caller owns), which reads, and is
 * nobody else's. Negative errno: it is dropped. */
int catalog_take(struct catalog_draft *draft, int *ret_fd);
void catalog_drop(struct catalog_draft *draft);

/* Another descriptor of it (caller owns), to give away. 0 or negative errno. */
int catalog_lend(int fd, int *ret_fd);
/* Does anybody still have one that was given away, or has mapped it? No, where the kernel does not say. */
bool catalog_is_lent(int fd);

/* fd stays the caller's. Believes nothing: seals, sizes, each label and each name are checked. 0,
 * CATALOG_E_BAD, negative errno. */
int catalog_attach(int fd, struct catalog *ret);
void catalog_detach(struct catalog *catalog);

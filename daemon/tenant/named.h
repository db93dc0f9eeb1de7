/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Named data sets, as accessd.conf has them: where one is, as whom it is read, and who may use it. A table that is part
 * of the parameters, and is copied with them; the rule is arithmetic on what the kernel says of a client.
 */

#include <stdio.h>
#include "base/identity.h"
#include "shmring/proto.h"

struct json_out;

#define NAMED_PREFIX "dataset." /* of a line in accessd.conf: dataset.NAME.WHAT */
#define NAMED_SETS 64
#define NAMED_WORDS 6     /* path, owner, ... */
#define NAMED_NAME_MAX 32 /* with its end: it is part of a domain's key */
#define NAMED_PATH_MAX 1024
#define NAMED_PIPELINE_MAX 1024
#define NAMED_TEXT_MAX 512 /* of a list */
#define NAMED_WHO_MAX 64   /* in a list; of the owner's name */

enum { NAMED_E_BAD = 1, NAMED_E_DENIED = 2 };

struct named_list {
	char text[NAMED_TEXT_MAX]; /* as it is written */
	bool is_all;               /* "*" */
	unsigned n, unknown;       /* unknown: names that the user database does not have */
	uint32_t id[NAMED_WHO_MAX];
};

struct named {
	char name[NAMED_NAME_MAX];
	char path[NAMED_PATH_MAX]; /* absolute */
	char owner_name[NAMED_WHO_MAX];
	struct identity owner;
	bool is_known; /* the owner is, to the user database */
	struct named_list users, groups;
	char contact[128]; /* whom to ask; "": who runs accessd */
	char pipeline
	    [NAMED_PIPELINE_MAX]; /* of jobs that bring none, as it is written; "": it has no usual one */
};

struct named_sets { /* zeroed: there are none */
	unsigned n;
	struct named set[NAMED_SETS];
};

struct named_client { /* as SO_PEERCRED and SO_PEERGROUPS say */
	uid_t uid;
	gid_t gid;
	const gid_t *groups; /* ascending; borrowed */
	size_t n;
	/* What groups without a number here look like: no rule means it; (gid_t)-1: all have one */
	gid_t nobodys;
};

/* Is this a line's name of a named data set, and not of a parameter? */
bool named_is_name(const char *name);
/* name: "dataset.NAME.WHAT". What `known` (NULL: nobody) has in the same words is not looked up again. 0, or NAMED_E_BAD with diag. A
 * name that the user database does not have is logged, and is nobody's. */
int named_set(struct named_sets *sets, const struct named_sets *known, const char *name,
	      const char *value, struct diag *diag);
/* Has each what it needs? 0, or NAMED_E_BAD with diag. */
int named_check(const struct named_sets *sets, struct diag *diag);
/* NULL: none is called so. */
const struct named *named_find(const struct named_sets *sets, const char *name);
/* The name that a job's data set has, of what it asks for: part of it. NULL: it is a path, or nothing. */
const char *named_asked(const char *dataset);

/* Puts them in the order that named_client has them in. */
void named_sort_groups(gid_t *groups, size_t n);
bool named_allows(const struct named *named, const struct named_client *client);
/* 0, or NAMED_E_DENIED and diag says which rule, who he is, and whom to ask. */
int named_admit(const struct named *named, const struct named_client *client, struct diag *diag);
/* Could somebody who had `then` be without it now, or get another? now: NULL if it is gone. */
bool named_is_narrower(const struct named *now, const struct named *then);
/* An object of an array, for people. */
void named_describe(const struct named *named, bool is_allowed, unsigned jobs,
		    struct json_out *out);
/* One line a word: name and what. For --help. */
void named_print(FILE *out);

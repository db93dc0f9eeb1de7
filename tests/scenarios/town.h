/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A system accessd and users whom it serves: real uids, processes that really are those users. Needs
 * root (three capabilities of it); who is not root skips.
 */

#include <sys/types.h>

#include "tests/scenarios/trainee.h"

struct town_user {
	uid_t uid;
	gid_t gid, group; /* group: supplementary, 0: none */
};
/* anna and bert are in no user database; carl is, and in the group of `carls` as a second one, where the
 * town could have a user database of its own (town_has_database). */
extern const struct town_user town_anna, town_bert, town_carl, town_accessd,
    town_public;         /* who reads what is open to all */
#define TOWN_GROUP 65300 /* carl's second group */

/* Can there be a town here? If not, *ret_why says why not. */
bool town_can(const char **ret_why);
/* Starts an accessd as root does, with these settings, chunks of 16 if they do not say otherwise; its socket in
 * rig_host.socket. */
void town_start(const char *first, ...) __attribute__((sentinel));
/* Set before town_start(): a file with its configuration, read before these settings; NULL: there is none. */
extern const char *town_config;
/* Set before town_start(): root without any capability starts it. */
extern bool town_is_powerless;
/* Set before town_start(), where a town can be slow: bytes a second that each reader gets of its disk; 0: as it is. */
extern uint64_t town_pace;
bool town_can_be_slow(void); /* if not, it prints why not */
void town_end(void);         /* by SIGTERM; it must leave no process and end with status 0 */
bool town_has_database(void);

/* Gives a tree of the rig to a user: all of it, with these modes. */
void town_give(const char *path, const struct town_user *owner, gid_t group, mode_t folders,
	       mode_t files);

/* What a job of a user is to do, and what came of it; shared with the process that does it. */
struct town_errand {
	char dataset[512], job[64];
	unsigned n, epochs, hold; /* hold: batches kept until it may go on, at most 2 */
	unsigned step_ms;         /* that it takes over each batch */
	enum oa_order order;      /* the pipeline's usual one if it is not set */
	/* results */
	int code; /* outcome of the last call */
	char text[768];
	unsigned batches, wrong;
	bool saw_all;
	volatile bool holds, goes; /* holds: it has what it holds; goes: it may go on */
};
struct town_errand *town_errand_new(const char *dataset, unsigned n, unsigned epochs);
void town_errand_free(struct town_errand *errand);

/* A child that is the user, with his groups, and runs fn(arg); its result is the exit status. */
pid_t town_send(const struct town_user *user, int (*fn)(void *arg), void *arg);
int town_wait(pid_t pid);       /* the exit status; 128 + signal */
bool town_has_ended(pid_t pid); /* town_wait() would not wait */
/* Both at once. */
int town_do(const struct town_user *user, int (*fn)(void *arg), void *arg);
/* Trains as the errand says. 0: the outcome is in the errand. */
int town_train(void *errand);
/* Waits until the job of that process holds its batches; false: it ended before. */
bool town_wait_holding(const struct town_errand *errand, pid_t pid);

/* The status as that user sees it; good until the next call. */
const char *town_status_of(const struct town_user *user);
/* Processes whose parent is pid: so many, at most `most`. */
unsigned town_children(pid_t pid, pid_t *ret, unsigned most);

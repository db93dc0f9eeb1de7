/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who a process is, and how it becomes somebody else for good. For accessd and the programs that it
 * starts; all of them have one thread when they call this.
 */

#include "base/base.h"

struct identity {
	uid_t uid;
	gid_t gid;
	/* The supplementary groups that the user database gives the uid; else none */
	bool has_groups;
};

#define IDENTITY_TEXT_MAX 48
/* (uid_t)-1 means "leave it as it is" to the kernel, so it is nobody's number. */
#define IDENTITY_MOST (UINT32_MAX - 1)
/* "UID:GID" or "UID:GID:groups", as the programs take it for --as. */
void identity_format(const struct identity *identity, char ret[IDENTITY_TEXT_MAX]);
/* 0, or -EINVAL and *ret untouched. */
int identity_parse(const char *text, struct identity *ret);
/* A user's name or number, with his main group. 0, -ENOENT: there is none, negative errno. */
int identity_of_user(const char *user, struct identity *ret);
/* A group's name or number. As identity_of_user(). */
int identity_of_group(const char *group, gid_t *ret);

/* Becomes it, with no capability, no new privileges and no way back, all of which is verified; is not
 * dumpable afterwards. 0, or negative errno: the process must then end. */
int identity_become(const struct identity *identity);

/* The capabilities by which accessd starts processes as others and ends them: SETUID, SETGID, KILL.
 * From root, becomes identity and keeps these and no other. 0 or negative errno. */
int identity_keep_switching(const struct identity *identity);
/* Has the process all of them? Then it hands them on to what it executes. */
bool identity_can_switch(void);
/* Gives them up in a child that needs none. */
int identity_drop_switching(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which keys of a bucket are a data set's, and what they are called below FOLDER/data. A key is any bytes that a server
 * says; a name is one that a file can have, below a folder and nowhere else.
 */

#include "base/base.h"

/* NULL: it is a good name; or why not, in words. Without a NUL at its end. */
const char *key_bad_name(const char *name, size_t bytes);

enum key_kind {
	KEY_BELOW,   /* all below a prefix, which ends in "/" or is "" */
	KEY_OBJECT,  /* one object */
	KEY_PATTERN, /* shards by a pattern, {000..123} or {one,other} */
};
struct key_scope {
	enum key_kind kind;
	char *prefix;  /* of all its keys */
	size_t folder; /* bytes of a key before its name */
	size_t head;   /* KEY_PATTERN: bytes before the first brace, */
	char *pattern; /* of the name, */
	char *tail;    /* and what is behind the last brace */
};
/* path: of a URL. KEY_OBJECT where path may be one object, or a prefix to which "/" is added: key_scope_below() makes that of
 * it. 0; -EINVAL with diag: the braces are wrong; -ENOMEM. */
int key_scope_of(const char *path, struct key_scope *ret, struct diag *diag);
int key_scope_below(struct key_scope *scope);
/* Of KEY_OBJECT that is there: with it what it brings (url_brings()). */
void key_scope_widen(struct key_scope *scope);
void key_scope_fini(struct key_scope *scope);
/* The name of a key; NULL: it is not in the scope, or stands for a folder (an end in "/"). */
const char *key_name(const struct key_scope *scope, const char *key);
/* Calls fn with each key that KEY_PATTERN or KEY_OBJECT names, and ends with what it gave, unless that is 0. -EINVAL with
 * diag: the braces are wrong; -E2BIG: more than `most`. */
int key_each(const struct key_scope *scope, uint64_t most, int (*fn)(void *arg, const char *key),
	     void *arg, struct diag *diag);

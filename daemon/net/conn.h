/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A client's connection, and what is said to it. Who hears it is client.c.
 */

#include <sys/queue.h>
#include "base/wire.h"
#include "daemon/loop.h"
#include "daemon/net/request.h"
#include "daemon/net/watch.h"
#include "daemon/tenant/named.h"

struct conn;
struct node;
struct domain;
struct source;
struct stream;
struct variant;
struct job;
struct chore;
struct guest;
struct describe_entry;
struct prepare;
struct errand;

enum conn_state {
	CONN_NEW,           /* waits for HELLO */
	CONN_GREETED,       /* may open or ask for the status */
	CONN_WAITS_SOURCE,  /* the dataset is being opened */
	CONN_WAITS_CATALOG, /* the dataset's catalogue is being written */
	CONN_WAITS_STREAM,  /* the stream's memory is being handed to reader and workers */
	CONN_RUNS,          /* has a job */
	CONN_SHUT,          /* refused, failed or misbehaved: only its hang-up matters */
};

struct conn_steps { /* what follows, of an open (client.c) */
	void (*source_ready)(struct conn *conn);
	void (*source_refused)(struct conn *conn, const char *text);
	void (*stream_ready)(struct conn *conn);
};

struct conn_look { /* what its own user's reader saw of the root of what it opens */
	uint64_t device, inode;
	bool is_open;
};

struct conn_ear { /* by which we hear of it: client.c */
	struct loop_watch *watch, *pid_watch, *deadline;
	int pid_fd;
	struct errand *errand; /* the porter fetches its next message */
	struct guest *guest;   /* its uid's */
	unsigned heard;        /* messages since since_ns */
	uint64_t since_ns;
};

struct conn {
	LIST_ENTRY(conn) link;
	struct node *node;
	const struct conn_steps *steps;
	int fd;
	pid_t pid;
	uid_t uid;
	gid_t gid;
	enum conn_state state;
	bool sending_shut;
	struct conn_ear ear;
	uint8_t nonce[MESSAGE_NONCE];
	struct request request;
	struct domain *domain;      /* its own, from its OPEN on */
	char named[NAMED_NAME_MAX]; /* what it opens, as it asked for it; "": a path */
	struct source *source;      /* a reference while it waits */
	struct conn_look looked;
	bool describes;          /* it waits for DESCRIBED, not for OPENED */
	struct stream *stream;   /* waited for, or the job's */
	struct variant *variant; /* of the stream */
	char apart[240];         /* why it has a stream of its own, for people */
	struct prepare *prepare; /* what it brings, while it waits for the stream */
	struct job *job;
	struct chore *chore;            /* of the store, under way */
	struct describe_entry *catalog; /* that is waited for */
	struct watcher watcher;         /* of the status */
};

/* Messages to the client. They never block: a client that does not read is shut, or misses what it
 * can do without (wakes, progress, notices). */
void conn_send(struct conn *conn, struct wire_out *out); /* finishes out */
void conn_tell_of(struct conn *conn, uint16_t type, const struct wire_part *parts);
#define conn_tell(conn, type, ...) conn_tell_of(conn, type, WIRE_PARTS(__VA_ARGS__))
void conn_send_text(struct conn *conn, uint16_t type, uint64_t code, const char *text);
/* REFUSED, then shut. */
BASE_PRINTF(3, 4) void conn_refuse(struct conn *conn, uint64_t code, const char *fmt, ...);
void conn_progress(struct conn *conn, const char *what, uint64_t done, uint64_t total);
void conn_wake(struct conn *conn);
/* Stops talking: our sending side is shut. A client with a job is kept until it hangs up, any other
 * one is given a moment to do that. */
void conn_shut(struct conn *conn);

/* Steps of an open: what it waits for is there, or will not be. It may be freed then. */
void conn_source_ready(struct conn *conn);
void conn_source_refused(struct conn *conn, const char *text);
void conn_stream_ready(struct conn *conn);

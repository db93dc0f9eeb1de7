/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Streams: which one a connection gets (streams.c), their memory (stream_room.c), their end (stream_end.c). */

#include "daemon/node.h"
#include "daemon/serve/source.h"

struct slot_geometry;
struct conn;
struct domain;
struct fill_death;
struct stream;

extern const struct source_calls streams_source_calls; /* of those that streams have */
extern const struct memory_room streams_room;

/* The variant for conn's request over its (ready) source: an existing one, a new one of a stream that
 * decodes the same, or one of a new stream, as far as memory allows. Sets conn->stream and variant;
 * conn_stream_ready() follows, at once or later. Refuses the connection otherwise. */
void stream_request(struct conn *conn);
/* A connection leaves its stream. */
void stream_unref(struct conn *conn);
void stream_free(struct stream *stream);
/* Has the stream slots for one more job? 0; STREAM_E_LATER: they are being reserved, its connection
 * is told by conn_stream_ready(); STREAM_E_MEMORY with diag: refused with the numbers. Asks for the
 * slots that it would like to have, too. */
enum { STREAM_E_LATER = 1, STREAM_E_MEMORY = 2 };
int stream_make_room(struct stream *stream, struct diag *diag);
/* Has few slots free: reserves more, in which late and slow jobs find what others had, while there is memory to spare. */
void stream_grow(struct stream *stream);
/* A child ended: was it one that reserved slots? */
bool stream_child_ended(struct node *node, pid_t pid, int status);
/* Makes room for a further variant with this geometry. false: there is none, and why in ret. *ret_slots:
 * how many it must have. */
bool stream_make_room_for(struct stream *stream, const struct slot_geometry *geometry,
			  const struct domain *payer, uint32_t *ret_slots, char *ret, size_t size);
/* What happened is looked at, and what follows is done, now (pump.h). */
void stream_turn(struct stream *stream);
/* Runs what can run, and lets those who wait for it try. */
void stream_settle(struct stream *stream);
/* Frees a catalogue that nobody has, or the oldest stream that no connection has, or a variant, or has the forms that are kept in memory give
 * way, if that makes room for the tenant of domain. false: there is none. */
bool stream_free_idle(struct domain *domain);
/* The oldest stream or a variant that no connection has, whoever pays. false: there is none. */
bool stream_give_back(struct node *node);
/* The oldest such one that the tenant of domain pays for. */
bool stream_free_idle_of(struct domain *domain);
/* How long a sample of the chunk in that row may take; own_ns: that it may take in any case, in one variant. */
uint64_t stream_patience_ns(struct domain *domain, uint32_t queue, uint32_t row, uint64_t own_ns);

/* from from_children.c */
void stream_workers_added(struct domain *domain, uint32_t queue, uint64_t variant);
void stream_variant_removed(struct domain *domain, uint32_t queue, uint64_t variant);
void stream_queue_attached(struct domain *domain, uint32_t queue);
void stream_read_failed(struct domain *domain, uint32_t queue, uint64_t row, uint64_t task,
			uint64_t sample); /* the reader says so */
void stream_queue_refused(struct domain *domain, uint32_t queue, const char *text);
void stream_variant_refused(struct domain *domain, uint32_t queue, uint64_t variant,
			    const char *text);
void stream_worker_died(struct domain *domain, const struct fill_death *death);
void stream_workers_died(struct domain *domain);    /* jobs are LOST: they open again */
void stream_workers_started(struct domain *domain); /* streams asked for meanwhile go on */
void stream_workers_failed(struct domain *domain, const char *text);
void stream_reader_died(struct domain *domain);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a carrier does with an RDMA device: a table of few calls, so that tests have devices that fail as no real one does on
 * demand. verbs_ib.c is libibverbs; verbs_none.c is a build without its headers.
 *
 * All that is opened, mapped and pinned is so by open(): a carrier in its sandbox can do nothing of it. Then there are n
 * queue pairs, each with a queue of what is done and a descriptor that tells of it, which are connected and reset again and
 * again. Errors are negative errno; nobody waits.
 */

#include "base/base.h"
#include "cluster/path.h"

struct verbs;

struct verbs_done {
	uint64_t id; /* of the post */
	/* Of what was received: how long it is, and the number that it brought */
	uint32_t bytes, said;
	const char *wrong; /* it failed, for this reason; NULL: it did not */
};

struct verbs_ops {
	/* The first device that can be used; queue pairs that send and receive in that memory, with room for so many posts of
	 * either kind. why: what hinders it, and how to mend it. */
	int (*open)(void *memory, size_t bytes, unsigned n, unsigned sends, unsigned receives,
		    struct verbs **ret, struct diag *why);
	void (*close)(struct verbs *verbs);
	const char *(*name)(const struct verbs *verbs); /* of the device */
	int (*device_fd)(const struct verbs *verbs);    /* calls go to it */
	int (*event_fd)(const struct verbs *verbs);     /* readable: call broken() */
	bool (*broken)(struct verbs *verbs); /* the device is gone, or of no use any more */
	/* Of the port now, and that queue pair. */
	int (*address)(struct verbs *verbs, unsigned i, struct path_address *ret, struct diag *why);
	/* From reset to where it sends, to that end; receives may be posted before, and are not taken away. */
	int (*connect)(struct verbs *verbs, unsigned i, const struct path_address *ours,
		       const struct path_address *theirs, struct diag *why);
	/* Ready for receives to be posted. */
	int (*prepare)(struct verbs *verbs, unsigned i);
	/* It sends and receives no more: what is under way is given up, which may take a moment, and may be told. */
	void (*stop)(struct verbs *verbs, unsigned i);
	/* Stopped a while ago, or new: nothing of before is told from now on. */
	int (*reset)(struct verbs *verbs, unsigned i);
	int (*post_receive)(struct verbs *verbs, unsigned i, uint64_t id, void *place,
			    uint32_t bytes);
	int (*post_send)(struct verbs *verbs, unsigned i, uint64_t id, const void *place,
			 uint32_t bytes, uint32_t said);
	/* How many were done, up to `most`; negative errno. */
	int (*poll)(struct verbs *verbs, unsigned i, struct verbs_done *ret, unsigned most);
	/* Readable from the next one on that is done after arm(); heard() takes that back. */
	int (*done_fd)(const struct verbs *verbs, unsigned i);
	int (*arm)(struct verbs *verbs, unsigned i);
	void (*heard)(struct verbs *verbs, unsigned i);
};

/* NULL: this build has none. */
extern const struct verbs_ops *const verbs_ib;

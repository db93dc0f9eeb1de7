/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Openings among tenants.
 *
 *   LOOK by the user's own reader --root and the way to it are open to all--> OPEN_ONLY in the public domain
 *      |                                                                        |  same root: settled
 *      +--not open--> ALL in the user's own domain <--not open, other root, no room, reader gone--+
 *
 * Nobody joins public data whose root his own reader could not open: a user whom a mandatory policy or
 * a namespace keeps out stays out. What is public is the public domain's reader to say, which
 * is no user's and looks at every folder and file as nobody in particular; what a user's own reader
 * says of that only saves asking. A liar there wins a look at what everybody may look at.
 *
 * A named data set is none of that: an administrator says who reads it for whom (named.h), and who may not have
 * it gets nothing else in its place.
 *
 * The public domain is an offer: whatever goes wrong there, also for want of memory of the
 * one who pays for its stream, sends the job to its own user's domain, as if there were no sharing.
 */
#include "daemon/net/opening.h"

#include <stdio.h>
#include <unistd.h>

#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/streams.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/domains.h"
#include "daemon/tenant/rights.h"
#include "libaccess/libaccess.h"

/* Lets go of what it waited for and waits for this one. */
static int wait_for(struct conn *conn, struct domain *domain, const char *path, enum reader_how how)
{
	struct source *old = conn->source;
	int r = source_request(domain, path, how, &conn->source);

	if (r)
		conn->source = NULL;
	conn->state = r ? conn->state : CONN_WAITS_SOURCE;
	source_unref(old);
	return r;
}

/* ---- named data sets ---- */

static int check_owner(const struct node *node, const struct named *named, struct diag *diag)
{
	const uid_t uid = named->owner.uid;
	const char *why = NULL;

	if (!named->is_known)
		why = "whom the user database does not have";
	else if (!node->tenants.serves_all && uid != geteuid())
		why = "as whom this accessd cannot read, for it serves its own user only";
	else if (node->tenants.serves_all && uid == geteuid())
		why = "who is accessd's own user, and reads nothing";
	else if (node->tenants.serves_all && uid == 0 && !node->param.serve_root)
		why = "as whom accessd reads nothing without serve_root";
	if (!why)
		return 0;
	return diag_fail(diag, OA_E_PERMISSION,
			 "data set \"%s\" is to be read as user \"%.64s\", %s: ask %s", named->name,
			 named->owner_name, why,
			 *named->contact ? named->contact : "who runs accessd");
}

static int refuse_unknown(const char *name, struct diag *diag)
{
	return diag_fail(
	    diag, OA_E_DATASET,
	    "no data set is called \"%s\" here: access-ctl datasets lists those that you may use; "
	    "what stands behind a path, as ?options, is set where the name is",
	    BASE_QUOTED(name, 96));
}

/* *ret: the domain that reads it, a reference; *ret_path is node->param's. */
static int enter_named(const struct conn *conn, const char *name, struct domain **ret,
		       const char **ret_path, struct diag *diag)
{
	struct node *node = conn->node;
	const struct named *named = named_find(&node->param.named, name);
	int r = named ? rights_may_use(conn, named, diag) : refuse_unknown(name, diag);

	r = r ? r : check_owner(node, named, diag);
	if (r)
		return r;
	*ret_path = named->path;
	if (!node->own)
		return domains_request_named(node, named, ret, diag);
	*ret = domain_ref(node->own);
	return 0;
}

static int begin_named(struct conn *conn, const char *name, struct diag *diag)
{
	struct domain *domain;
	const char *path;
	int r = enter_named(conn, name, &domain, &path, diag);

	if (r)
		return r;
	r = wait_for(conn, domain, path, READER_HOW_NAMED);
	domain_unref(domain);
	return r;
}

/* ---- opening ---- */

int opening_begin(struct conn *conn, const char *dataset, struct diag *diag)
{
	const char *name = named_asked(dataset);
	int r;

	conn->looked = (struct conn_look){.is_open = false};
	snprintf(conn->named, sizeof(conn->named), "%s", name ? name : "");
	diag_set(diag, "out of memory");
	if (name)
		r = begin_named(conn, name, diag);
	else
		r = wait_for(conn, conn->domain, dataset,
			     conn->node->tenants.shares ? READER_HOW_LOOK : READER_HOW_ALL);
	return r < 0 ? OA_E_MEMORY : r;
}

static void ask_own(struct conn *conn, const char *path)
{
	if (wait_for(conn, conn->domain, path, READER_HOW_ALL))
		conn_refuse(conn, OA_E_MEMORY, "out of memory");
}

static bool ask_public(struct conn *conn, const char *path)
{
	const struct identity *nobody = &conn->node->tenants.nobody;
	struct domain *domain;
	struct diag diag;
	int r;

	if (domains_request(conn->node, DOMAIN_PUBLIC, nobody, &domain, &diag))
		return false;
	r = wait_for(conn, domain, path, READER_HOW_OPEN_ONLY);
	domain_unref(domain);
	return r == 0;
}

bool opening_is_settled(struct conn *conn)
{
	const struct source *source = conn->source;
	_cleanup_free_ char *path = NULL;

	if (source->how == READER_HOW_ALL || source->how == READER_HOW_NAMED ||
	    (source->how == READER_HOW_OPEN_ONLY && source->root.device == conn->looked.device &&
	     source->root.inode == conn->looked.inode))
		return true;
	path = strdup(source->path);
	if (!path) {
		conn_refuse(conn, OA_E_MEMORY, "out of memory");
		return false;
	}
	if (source->how == READER_HOW_LOOK) {
		conn->looked =
		    (struct conn_look){source->root.device, source->root.inode, source->is_open};
		if (source->is_open && ask_public(conn, path))
			return false;
	}
	ask_own(conn, path);
	return false;
}

bool opening_falls_back(struct conn *conn)
{
	const struct source *source = conn->stream ? conn->stream->source : conn->source;
	struct stream *stream = conn->stream;
	_cleanup_free_ char *path = NULL;

	if (!source || source->how != READER_HOW_OPEN_ONLY ||
	    (stream && !conn->request.pipeline)) /* it went into a stream of its own */
		return false;
	path = strdup(source->path);
	if (!path)
		return false;
	if (stream)
		stream_unref(conn);
	ask_own(conn, path);
	return true;
}

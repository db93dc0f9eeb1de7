/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named data sets: from a name to the domain that reads it, and back when the configuration changes.
 *
 * A named data set has a domain of its own, whose reader is its owner and whose workers serve its streams alone. A
 * job that is let in gets a stream there as it would in its own user's domain; it never speaks to the reader, and chooses
 * neither paths nor code, only a pipeline of known ops. Its own user pays for what it wants, as with data that are open to all.
 *
 * What one has mapped one can keep, whatever is closed. So when somebody loses a data set, also somebody whose job ended long
 * ago, its slots are written no more: the streams are LOST, and whoever may still have it opens again with his token, in new memory.
 * Groups are those that the client had when it connected. Who leaves one keeps what he has open until then, or until a
 * change of the rule shuts everybody out for a moment.
 */
#include "daemon/net/sharing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/serve/job.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "libaccess/libaccess.h"

/* ---- who comes ---- */

static int may_use(const struct conn *conn, const struct named *named, struct diag *diag)
{
	struct named_client client = {.uid = conn->uid, .gid = conn->gid};
	_cleanup_free_ gid_t *groups = NULL;

	tenant_groups(conn, &groups, &client.n);
	client.groups = groups;
	client.nobodys = tenant_nobodys_group(conn->node);
	return named_admit(named, &client, diag) ? OA_E_PERMISSION : 0;
}

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
	diag_set(diag, "data set \"%s\" is to be read as user \"%.64s\", %s: ask %s", named->name,
		 named->owner_name, why, *named->contact ? named->contact : "who runs accessd");
	return OA_E_PERMISSION;
}

static int refuse_unknown(const char *name, struct diag *diag)
{
	char quoted[96];

	diag_set(diag,
		 "no data set is called \"%s\" here: access-ctl datasets lists those that you may "
		 "use; what stands behind a path, as ?options, is set where the name is",
		 base_quote(name, quoted, sizeof(quoted)));
	return OA_E_DATASET;
}

int sharing_enter(const struct conn *conn, const char *name, struct domain **ret,
		  const char **ret_path, struct diag *diag)
{
	struct node *node = conn->node;
	const struct named *named = named_find(&node->param.named, name);
	int r = named ? may_use(conn, named, diag) : refuse_unknown(name, diag);

	if (!r)
		r = check_owner(node, named, diag);
	if (r)
		return r;
	*ret_path = named->path;
	if (!node->own)
		return domain_request_named(node, named, ret, diag);
	*ret = domain_ref(node->own);
	return 0;
}

/* ---- who has to go ---- */

static bool is_in(const struct conn *conn, const struct domain *domain)
{
	return conn->stream ? conn->stream->domain == domain
			    : conn->source && conn->source->domain == domain;
}

static void turn_out(struct conn *conn, const char *text)
{
	if (conn->job && conn->job->active)
		job_fail(conn->job, OA_E_PERMISSION, text);
	else if (conn->state == CONN_WAITS_SOURCE || conn->state == CONN_WAITS_STREAM)
		conn_refuse(conn, OA_E_PERMISSION, text);
}

static void turn_out_all(const struct domain *domain, const struct named *now)
{
	struct conn *conn, *next;
	struct diag diag;

	for (conn = LIST_FIRST(&domain->node->conns); conn; conn = next) {
		next = LIST_NEXT(conn, link);
		if (!is_in(conn, domain))
			continue;
		if (!now)
			diag_set(&diag,
				 "data set \"%s\" is no longer among those of this accessd: ask "
				 "who runs it",
				 domain->name);
		if (!now || may_use(conn, now, &diag))
			turn_out(conn, diag.text);
	}
}

static void close_streams(struct domain *domain)
{
	struct stream *stream, *next;

	for (stream = LIST_FIRST(&domain->streams); stream; stream = next) {
		next = LIST_NEXT(stream, link);
		stream_lose(stream, "who may use the data set has changed: it is opened again");
	}
}

void sharing_reload(struct node *node, const struct named_sets *then)
{
	struct domain *domain, *next;

	for (domain = LIST_FIRST(&node->domains); domain; domain = next) {
		const struct named *now, *was;

		next = LIST_NEXT(domain, link);
		if (domain->kind != DOMAIN_NAMED)
			continue;
		now = named_find(&node->param.named, domain->name);
		was = named_find(then, domain->name);
		if (!was || !named_is_narrower(now, was))
			continue;
		log_line(LOG_LEVEL_INFO, "dataset-narrowed", "name=%s", domain->name);
		turn_out_all(domain, now);
		close_streams(domain);
	}
}

/* ---- for people ---- */

static unsigned jobs_of(const struct node *node, const char *name)
{
	const struct conn *conn;
	unsigned n = 0;

	LIST_FOREACH(conn, &node->conns, link)
	n += conn->job && strcmp(conn->stream->domain->name, name) == 0;
	return n;
}

static void describe_one(const struct node *node, const struct named *named, bool is_allowed,
			 struct json_out *out)
{
	json_out_object_begin(out);
	json_out_member_string(out, "name", named->name);
	json_out_member_string(out, "path", named->path);
	json_out_member_string(out, "owner", named->owner_name);
	json_out_member_string(out, "users", named->users.text);
	json_out_member_string(out, "groups", named->groups.text);
	json_out_member_string(out, "contact", named->contact);
	json_out_member_bool(out, "allowed", is_allowed);
	json_out_member_u64(out, "jobs", jobs_of(node, named->name));
	json_out_object_end(out);
}

void sharing_describe(const struct conn *conn, bool sees_all, struct json_out *out)
{
	const struct node *node = conn->node;
	struct diag diag;

	json_out_array_begin(out);
	for (unsigned i = 0; i < node->param.named.n; i++) {
		const struct named *named = &node->param.named.set[i];
		const bool is_allowed = may_use(conn, named, &diag) == 0;

		if (is_allowed || sees_all)
			describe_one(node, named, is_allowed, out);
	}
	json_out_array_end(out);
}

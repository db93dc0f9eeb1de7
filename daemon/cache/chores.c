/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chores of the store. A user's are of his own domain; root and accessd's own user may name another's, which
 * must be there (it has jobs, or had some a moment ago): nobody's processes are started for somebody else.
 *
 * accessd looks at nothing of an answer: the list is a memory that the reader made and the client reads.
 *
 * Who asked may go away meanwhile. What only tells him something is cancelled then; what changes the store
 * goes on without him, as nobody could say how much of it was done already, and streams are to know of it.
 * Such a chore has no connection and no reference to its domain, whose end is its own.
 */
#include "daemon/cache/chores.h"

#include <stdio.h>
#include <unistd.h>

#include "base/hash.h"
#include "daemon/cache/cache.h"
#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/proc/reading.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"
#include "libaccess/libaccess.h"
#include "shmring/proto.h"
#include "storage/reader.h"

struct chore {
	LIST_ENTRY(chore) link; /* of the domain's */
	uint64_t id;
	struct conn *conn;     /* who asked; NULL: he is gone */
	struct domain *domain; /* a reference, as long as he is there */
	uint64_t verb;
	struct hash_id group;
};

/* ---- whose store ---- */

static bool may_act_for_all(const struct conn *conn)
{
	return !conn->node->tenants.serves_all || conn->uid == 0 || conn->uid == geteuid();
}

static struct domain *find(const struct node *node, const char *who)
{
	char key[NAMED_NAME_MAX + 8];

	BASE_EACH(domain, &node->domains, link) {
		if (domain->kind == DOMAIN_PUBLIC)
			snprintf(key, sizeof(key), "everybody");
		else if (domain->kind == DOMAIN_NAMED)
			snprintf(key, sizeof(key), PROTO_NAMED "%s", domain->name);
		else
			snprintf(key, sizeof(key), "%u", (unsigned)domain->who.uid);
		if (strcmp(who, key) == 0)
			return domain;
	}
	return NULL;
}

/* *ret is a reference. 0 or an OA_E_... with diag. */
static int domain_of(const struct conn *conn, const char *who, struct domain **ret,
		     struct diag *diag)
{
	struct domain *domain = who ? NULL : conn->domain;

	if (who && !may_act_for_all(conn))
		return diag_fail(diag, OA_E_PERMISSION,
				 "only root and accessd's own user act on what others have kept: "
				 "leave out --user");
	if (who)
		domain = find(conn->node, who);
	if (!domain)
		return diag_fail(diag, OA_E_INVALID,
				 "accessd serves no such user now: a number of access-ctl tenants, "
				 "name:NAME of a data set, or everybody");
	*ret = domain_ref(domain);
	return 0;
}

/* ---- from clients ---- */

static int check_store(const struct domain *domain, struct diag *diag)
{
	const struct disk_cache *disk_cache = &domain->disk_cache;

	if (disk_cache->rings_fd < 0 || (!disk_cache->is_known && disk_cache->why[0]))
		diag_set(diag, "nothing is kept: %s", disk_cache->why);
	else if (domain->reading.keeper.child.sock < 0)
		diag_set(diag, "the reader is just being started again: try again");
	else
		return 0;
	return OA_E_REFUSED;
}

static int check(const struct conn *conn, const struct message_cache *asked, struct domain **ret,
		 struct diag *diag)
{
	int code;

	if (asked->verb >= READER_VERBS)
		return diag_fail(
		    diag, OA_E_VERSION,
		    "accessd %s knows no such thing to do with what is kept: update it",
		    PACKAGE_VERSION);
	if (conn->chore)
		return diag_fail(diag, OA_E_REFUSED, "one thing at a time: wait for the answer");
	code = domain_of(conn, asked->who, ret, diag);
	if (!code) {
		code = check_store(*ret, diag);
		if (code)
			domain_unref(*ret);
	}
	return code;
}

void chores_ask(struct conn *conn, const struct message_cache *asked)
{
	struct domain *domain = NULL;
	struct chore *chore;
	struct diag diag;
	int code = check(conn, asked, &domain, &diag);

	if (code) {
		conn_refuse(conn, (uint64_t)code, "%s", diag.text);
		return;
	}
	chore = calloc(1, sizeof(*chore));
	if (!chore) {
		domain_unref(domain);
		conn_refuse(conn, OA_E_MEMORY, "out of memory");
		return;
	}
	*chore = (struct chore){
	    .id = ++domain->last_chore, .conn = conn, .domain = domain, .verb = asked->verb};
	_Static_assert(sizeof(chore->group) == sizeof(asked->group), "a group's name is a hash");
	memcpy(&chore->group, asked->group, sizeof(chore->group));
	LIST_INSERT_HEAD(&domain->chores, chore, link);
	conn->chore = chore;
	reading_chore(&domain->reading, chore->id, chore->verb, &chore->group);
}

/* Nobody waits for it any more. */
static void chore_leave(struct chore *chore)
{
	chore->conn->chore = NULL;
	chore->conn = NULL;
	domain_unref(chore->domain);
}

static void chore_free(struct chore *chore)
{
	LIST_REMOVE(chore, link);
	if (chore->conn)
		chore_leave(chore);
	free(chore);
}

static bool changes_something(uint64_t verb)
{
	return verb != READER_VERB_LIST && verb != READER_VERB_VERIFY;
}

void chores_forget(struct conn *conn)
{
	struct chore *chore = conn->chore;

	if (chore && changes_something(chore->verb)) {
		chore_leave(chore);
	} else if (chore) {
		reading_chore_cancel(&chore->domain->reading, chore->id);
		chore_free(chore);
	}
}

void chores_end(struct domain *domain)
{
	while (!LIST_EMPTY(&domain->chores))
		chore_free(LIST_FIRST(&domain->chores));
}

/* ---- from readers ---- */

static struct chore *chore_of(const struct domain *domain, uint64_t id)
{
	BASE_EACH(chore, &domain->chores, link)
		if (chore->id == id)
			return chore;
	return NULL;
}

void chores_progress(struct domain *domain, uint64_t id, uint64_t done, uint64_t total)
{
	const struct chore *chore = chore_of(domain, id);

	if (chore && chore->conn)
		conn_progress(chore->conn, "values checked", done, total);
}

static void forget_group(const struct domain *domain, const struct hash_id *group)
{
	BASE_EACH(stream, &domain->streams, link)
		cache_dropped(stream, group);
}

void chores_done(struct domain *domain, uint64_t id, uint64_t code, const char *text, int fd)
{
	struct chore *chore = chore_of(domain, id);
	struct conn *conn;

	if (!chore)
		return;
	conn = chore->conn;
	if (!code && chore->verb == READER_VERB_DROP)
		forget_group(domain, &chore->group);
	chore_free(chore);
	if (!conn)
		return;
	conn_tell(conn, PROTO_CACHED, WIRE_U64(PROTO_KEY_CODE, code ? OA_E_REFUSED : 0),
		  WIRE_STRING(PROTO_KEY_TEXT, text), WIRE_FD(fd));
}

void chores_fail(struct domain *domain, const char *why)
{
	BASE_EACH_LEAVING(chore, &domain->chores, link)
		chores_done(domain, chore->id, 1, why, -1);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas of single users. A name is looked up once, where its first line is read: the user database may be far away,
 * and on SIGHUP jobs wait meanwhile. So who is known already is not looked up again then, and numbers never are. A
 * user who is gone does not keep accessd from starting, a word that is wrong does.
 */
#include "daemon/tenant/quota.h"

#include <inttypes.h>

#include "base/identity.h"
#include "base/log.h"

struct row {
	const char *name, *what;
	bool is_bytes;
	uint64_t least, most;
};

static const struct row rows[QUOTA_KINDS] = {
#define QUOTA_BYTES(n, l, m, w) [QUOTA_##n] = {#n, w, true, l, m},
#define QUOTA_COUNT(n, l, m, w) [QUOTA_##n] = {#n, w, false, l, m},
#include "daemon/tenant/quota_tbl.h"
#undef QUOTA_BYTES
#undef QUOTA_COUNT
};

bool quota_is_name(const char *name)
{
	return strncmp(name, QUOTA_PREFIX, strlen(QUOTA_PREFIX)) == 0;
}

/* QUOTA_KINDS: there is none of that name. */
static unsigned kind_of(const char *what)
{
	unsigned kind = 0;

	while (kind < QUOTA_KINDS && strcmp(rows[kind].name, what) != 0)
		kind++;
	return kind;
}

/* Cuts name into the user's and the kind. */
static int split(const char *name, char ret_user[QUOTA_NAME_MAX], unsigned *ret_kind,
		 struct diag *diag)
{
	const char *user = name + strlen(QUOTA_PREFIX), *dot = strrchr(user, '.');
	const size_t length = dot ? (size_t)(dot - user) : 0;

	if (length == 0 || length >= QUOTA_NAME_MAX)
		return diag_fail(diag, QUOTA_E_BAD,
				 "\"%.200s\" is no quota: write tenant.USER.memory = 8G", name);
	*ret_kind = kind_of(dot + 1);
	if (*ret_kind == QUOTA_KINDS)
		return diag_fail(diag, QUOTA_E_BAD,
				 "%.200s: users have no \"%.64s\": write share, memory, cache, "
				 "clients, streams, jobs or read_bandwidth",
				 name, dot + 1);
	memcpy(ret_user, user, length);
	ret_user[length] = '\0';
	return 0;
}

static int parse(const char *name, const struct row *row, const char *text, uint64_t *ret,
		 struct diag *diag)
{
	const char *end = text;
	uint64_t value;
	bool is_good = row->is_bytes ? base_parse_bytes(text, &value) == 0
				     : base_parse_number(&end, UINT64_MAX, &value) && !*end;

	if (!is_good)
		return diag_fail(diag, QUOTA_E_BAD, "%.200s: \"%.64s\" is not %s", name, text,
				 row->is_bytes ? "a size (write 4096, 64M or 1.5G)"
					       : "a whole number");
	if (value < row->least || value > row->most)
		return diag_fail(diag, QUOTA_E_BAD,
				 "%.200s: %.64s is out of its range %" PRIu64 " .. %" PRIu64, name,
				 text, row->least, row->most);
	*ret = value;
	return 0;
}

/* Its place; quotas->n: it is not there. */
static unsigned find(const struct quotas *quotas, const char *name)
{
	unsigned i = 0;

	while (i < quotas->n && strcmp(quotas->user[i].name, name) != 0)
		i++;
	return i;
}

static bool look_up(const struct quotas *known, const char *name, uid_t *ret)
{
	const unsigned i = known ? find(known, name) : 0;
	const char *end = name;
	struct identity who;
	uint64_t number;

	if (known && i < known->n && known->user[i].is_known)
		*ret = known->user[i].uid;
	else if (base_parse_number(&end, IDENTITY_MOST, &number) && !*end)
		*ret = (uid_t)number;
	else if (identity_of_user(name, &who) == 0)
		*ret = who.uid;
	else
		return false;
	return true;
}

/* NULL: there are too many. */
static struct quota_user *add(struct quotas *quotas, const struct quotas *known, const char *name)
{
	struct quota_user *user;

	if (quotas->n == QUOTA_USERS)
		return NULL;
	user = &quotas->user[quotas->n++];
	memset(user, 0, sizeof(*user)); /* they are compared as bytes */
	memcpy(user->name, name, strlen(name) + 1);
	user->is_known = look_up(known, name, &user->uid);
	if (!user->is_known)
		log_line(LOG_LEVEL_WARN, "tenant-unknown", "user=\"%s\"", name);
	return user;
}

int quota_set(struct quotas *quotas, const struct quotas *known, const char *name,
	      const char *value, struct diag *diag)
{
	char user_name[QUOTA_NAME_MAX];
	struct quota_user *user;
	uint64_t number = 0;
	unsigned kind, i;

	if (split(name, user_name, &kind, diag) || parse(name, &rows[kind], value, &number, diag))
		return QUOTA_E_BAD;
	i = find(quotas, user_name);
	user = i < quotas->n ? &quotas->user[i] : add(quotas, known, user_name);
	if (!user)
		return diag_fail(diag, QUOTA_E_BAD,
				 "%.200s: there are quotas for %d users already, the most", name,
				 QUOTA_USERS);
	for (i = 0; user->is_known && i < quotas->n; i++) /* also by another name of his */
		if (quotas->user[i].is_known && quotas->user[i].uid == user->uid)
			quotas->user[i].value[kind] = 0;
	user->value[kind] = number;
	return 0;
}

uint64_t quota_of(const struct quotas *quotas, uid_t uid, enum quota_kind kind)
{
	for (unsigned i = 0; i < quotas->n; i++) {
		const struct quota_user *user = &quotas->user[i];

		if (user->is_known && user->uid == uid && user->value[kind])
			return user->value[kind];
	}
	return 0;
}

bool quota_is_set(const struct quotas *quotas, enum quota_kind kind)
{
	unsigned i = 0;

	while (i < quotas->n && !quotas->user[i].value[kind])
		i++;
	return i < quotas->n;
}

void quota_print(FILE *out)
{
	for (unsigned i = 0; i < QUOTA_KINDS; i++)
		fprintf(out, "  " QUOTA_PREFIX "USER.%-8s %s\n", rows[i].name, rows[i].what);
}

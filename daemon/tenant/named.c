/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named data sets: what accessd.conf says of them, and whom that lets in.
 *
 * A name is looked up where its line is read, as in quota.c, and for the same reason a list that says the same as the
 * one in force is not looked up again. Who is in no database is nobody: a list with a name that is
 * misspelt lets in fewer, never more. Groups are those that the kernel knows of the client (SO_PEERGROUPS), in the
 * numbers of our own user namespace: the user database is not asked when somebody opens, for it may be far away.
 * All groups that have no number here look like one, which therefore is nobody's.
 *
 * The owner may always use what is read with his rights.
 */
#include "daemon/tenant/named.h"

#include <ctype.h>
#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "base/url.h"
#include "pipeline/pipeline.h"

#define ALLOWED "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* ---- names ---- */

bool named_is_name(const char *name)
{
	return strncmp(name, NAMED_PREFIX, strlen(NAMED_PREFIX)) == 0;
}

static bool is_good_name(const char *name)
{
	const size_t length = strlen(name);

	return length > 0 && length < NAMED_NAME_MAX && isalnum((unsigned char)*name) &&
	       strspn(name, ALLOWED) == length;
}

const char *named_asked(const char *dataset)
{
	return proto_is_named(dataset) ? dataset + strlen(PROTO_NAMED) : NULL;
}

const struct named *named_find(const struct named_sets *sets, const char *name)
{
	for (unsigned i = 0; i < sets->n; i++)
		if (strcmp(sets->set[i].name, name) == 0)
			return &sets->set[i];
	return NULL;
}

/* ---- lines ---- */

static int set_path(struct named *named, const struct named *known, const char *value,
		    struct diag *diag)
{
	(void)known;
	if (url_is(value))
		return diag_fail(
		    diag, NAMED_E_BAD,
		    "\"%.200s\" is in an object store, which is read with the credentials "
		    "of the job that opens it: users give the URL themselves; or keep a copy "
		    "for them (access-ctl convert \"%.200s\" DATASET.oads), and name that",
		    value, value);
	if (*value != '/' || strlen(value) >= sizeof(named->path))
		return diag_fail(diag, NAMED_E_BAD,
				 "\"%.200s\" is no absolute path of at most %d bytes", value,
				 NAMED_PATH_MAX - 1);
	strcpy(named->path, value);
	return 0;
}

static int set_owner(struct named *named, const struct named *known, const char *value,
		     struct diag *diag)
{
	if (!*value || strlen(value) >= sizeof(named->owner_name))
		return diag_fail(diag, NAMED_E_BAD,
				 "\"%.64s\" is no user: write a name, or a number", value);
	strcpy(named->owner_name, value);
	if (known && known->is_known && strcmp(known->owner_name, value) == 0) {
		named->owner = known->owner;
		named->is_known = true;
		return 0;
	}
	named->is_known = identity_of_user(value, &named->owner) == 0;
	named->owner.has_groups = true;
	if (!named->is_known)
		log_line(LOG_LEVEL_WARN, "dataset-owner-unknown", "name=%s user=\"%s\"",
			 named->name, value);
	return 0;
}

static int set_contact(struct named *named, const struct named *known, const char *value,
		       struct diag *diag)
{
	(void)known;
	if (strlen(value) >= sizeof(named->contact))
		return diag_fail(diag, NAMED_E_BAD, "longer than %zu bytes",
				 sizeof(named->contact) - 1);
	strcpy(named->contact, value);
	return 0;
}

/* A client gets it as text and asks for it as if it were his own; here it is made sure that he can. */
static int set_pipeline(struct named *named, const struct named *known, const char *value,
			struct diag *diag)
{
	const char *text = pipeline_named(value) ? pipeline_named(value) : value;
	struct pipeline *pipeline = NULL;

	if (strlen(value) >= sizeof(named->pipeline))
		return diag_fail(diag, NAMED_E_BAD, "longer than %zu bytes",
				 sizeof(named->pipeline) - 1);
	if (*value && !(known && strcmp(known->pipeline, value) == 0) &&
	    pipeline_compile(text, strlen(text), &pipeline, diag))
		return NAMED_E_BAD;
	pipeline_free(pipeline);
	strcpy(named->pipeline, value);
	return 0;
}

static bool look_up(const char *word, bool is_group, uint32_t *ret)
{
	const char *end = word;
	struct identity who;
	uint64_t number;
	gid_t gid;

	if (base_parse_number(&end, IDENTITY_MOST, &number) && !*end)
		*ret = (uint32_t)number;
	else if (is_group && identity_of_group(word, &gid) == 0)
		*ret = gid;
	else if (!is_group && identity_of_user(word, &who) == 0)
		*ret = who.uid;
	else
		return false;
	return true;
}

static int add_word(struct named_list *list, const char *word, bool is_group, struct diag *diag)
{
	uint32_t id;

	if (strcmp(word, "*") == 0 && !is_group) {
		list->is_all = true;
		return 0;
	}
	if (list->n == NAMED_WHO_MAX)
		return diag_fail(diag, NAMED_E_BAD, "has more than %d; put users into a group",
				 NAMED_WHO_MAX);
	if (look_up(word, is_group, &id)) {
		list->id[list->n++] = id;
		return 0;
	}
	list->unknown++;
	log_line(LOG_LEVEL_WARN, "dataset-unknown", "%s=\"%s\"", is_group ? "group" : "user", word);
	return 0;
}

/* Words with commas, blanks or both between them. */
static int set_list(struct named_list *list, const struct named_list *known, const char *value,
		    bool is_group, struct diag *diag)
{
	char copy[NAMED_TEXT_MAX], *at = NULL;

	if (strlen(value) >= sizeof(copy))
		return diag_fail(diag, NAMED_E_BAD, "longer than %d bytes: put users into a group",
				 NAMED_TEXT_MAX - 1);
	if (known && known->unknown == 0 && strcmp(known->text, value) == 0) {
		*list = *known;
		return 0;
	}
	memset(list, 0, sizeof(*list));
	strcpy(list->text, value);
	strcpy(copy, value);
	for (char *word = strtok_r(copy, ", \t", &at); word; word = strtok_r(NULL, ", \t", &at))
		if (add_word(list, word, is_group, diag))
			return NAMED_E_BAD;
	return 0;
}

static int set_users(struct named *named, const struct named *known, const char *value,
		     struct diag *diag)
{
	return set_list(&named->users, known ? &known->users : NULL, value, false, diag);
}

static int set_groups(struct named *named, const struct named *known, const char *value,
		      struct diag *diag)
{
	return set_list(&named->groups, known ? &known->groups : NULL, value, true, diag);
}

static const struct word {
	const char *name, *what;
	int (*set)(struct named *named, const struct named *known, const char *value,
		   struct diag *diag);
} words[] = {
    {"path", "where it is: an absolute path, and what may stand behind one", set_path},
    {"owner", "user with whose rights it is read: a name, or a number", set_owner},
    {"users", "who may use it: names, numbers, or * for everybody", set_users},
    {"groups", "whose members may use it: names, or numbers", set_groups},
    {"contact", "whom to ask; empty: who runs accessd", set_contact},
    {"pipeline", "of jobs that bring none: JSON, or a name", set_pipeline},
};

_Static_assert(BASE_ARRAY_LEN(words) == NAMED_WORDS, "as many as are said");

static const struct word *word_of(const char *what)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(words); i++)
		if (strcmp(words[i].name, what) == 0)
			return &words[i];
	return NULL;
}

/* Cuts the line's name into the data set's and the word. */
static int split(const char *name, char ret_name[NAMED_NAME_MAX], const struct word **ret,
		 struct diag *diag)
{
	const char *set = name + strlen(NAMED_PREFIX), *dot = strrchr(set, '.');
	const size_t length = dot ? (size_t)(dot - set) : 0;

	if (length == 0 || length >= NAMED_NAME_MAX)
		return diag_fail(diag, NAMED_E_BAD,
				 "\"%.200s\" is no line of a data set: write " NAMED_PREFIX
				 "NAME.path = /where/it/is, with a NAME of at most %d bytes",
				 name, NAMED_NAME_MAX - 1);
	memcpy(ret_name, set, length);
	ret_name[length] = '\0';
	*ret = word_of(dot + 1);
	if (!*ret)
		diag_set(diag,
			 "%.200s: data sets have no \"%.64s\": write path, owner, users, groups, "
			 "contact or pipeline",
			 name, dot + 1);
	else if (!is_good_name(ret_name))
		diag_set(diag,
			 "%.200s: a data set's name begins with a letter or a digit and has no "
			 "others than those, '.', '_' and '-'",
			 name);
	else
		return 0;
	return NAMED_E_BAD;
}

static struct named *find_or_add(struct named_sets *sets, const char *name)
{
	for (unsigned i = 0; i < sets->n; i++)
		if (strcmp(sets->set[i].name, name) == 0)
			return &sets->set[i];
	if (sets->n == NAMED_SETS)
		return NULL;
	memset(&sets->set[sets->n], 0, sizeof(sets->set[0])); /* they are compared as bytes */
	strcpy(sets->set[sets->n].name, name);
	return &sets->set[sets->n++];
}

int named_set(struct named_sets *sets, const struct named_sets *known, const char *name,
	      const char *value, struct diag *diag)
{
	char set_name[NAMED_NAME_MAX];
	const struct word *word = NULL;
	struct diag why = {""};
	struct named *named;

	if (split(name, set_name, &word, diag))
		return NAMED_E_BAD;
	named = find_or_add(sets, set_name);
	if (!named)
		return diag_fail(diag, NAMED_E_BAD,
				 "%.200s: there are %d data sets already, the most", name,
				 NAMED_SETS);
	if (word->set(named, known ? named_find(known, set_name) : NULL, value, &why) == 0)
		return 0;
	return diag_fail(diag, NAMED_E_BAD, "%.200s: %s", name, why.text);
}

int named_check(const struct named_sets *sets, struct diag *diag)
{
	for (unsigned i = 0; i < sets->n; i++) {
		const struct named *named = &sets->set[i];
		const char *lacks = !*named->path ? "path" : !*named->owner_name ? "owner" : NULL;

		if (!lacks)
			continue;
		return diag_fail(diag, NAMED_E_BAD,
				 "data set \"%s\" has no %s: write " NAMED_PREFIX "%s.%s = ...",
				 named->name, lacks, named->name, lacks);
	}
	return 0;
}

/* ---- the rule ---- */

static bool has(const struct named_list *list, uint32_t id)
{
	for (unsigned i = 0; i < list->n; i++)
		if (list->id[i] == id)
			return true;
	return false;
}

void named_sort_groups(gid_t *groups, size_t n)
{
	qsort(groups, n, sizeof(*groups), base_compare_u32);
}

/* A client has as many groups as he likes, and a rule few. */
static bool is_member(const struct named_client *client, gid_t gid)
{
	return gid != client->nobodys &&
	       (gid == client->gid || (client->n && bsearch(&gid, client->groups, client->n,
							    sizeof(gid), base_compare_u32)));
}

bool named_allows(const struct named *named, const struct named_client *client)
{
	bool is_in = named->users.is_all || has(&named->users, client->uid) ||
		     (named->is_known && client->uid == named->owner.uid);

	for (unsigned i = 0; i < named->groups.n && !is_in; i++)
		is_in = is_member(client, named->groups.id[i]);
	return is_in;
}

int named_admit(const struct named *named, const struct named_client *client, struct diag *diag)
{
	if (named_allows(named, client))
		return 0;
	return diag_fail(
	    diag, NAMED_E_DENIED,
	    "data set \"%s\" is for users \"%.200s\" and groups \"%.200s\" (" NAMED_PREFIX
	    "%s.users and .groups of accessd), and you, user %u with group %u and %zu others, are "
	    "none of them: ask %s",
	    named->name, named->users.text, named->groups.text, named->name, (unsigned)client->uid,
	    (unsigned)client->gid, client->n,
	    *named->contact ? named->contact : "who runs accessd");
}

static bool has_all(const struct named_list *now, const struct named_list *then)
{
	for (unsigned i = 0; i < then->n; i++)
		if (!has(now, then->id[i]))
			return false;
	return true;
}

bool named_is_narrower(const struct named *now, const struct named *then)
{
	if (!now || strcmp(now->path, then->path) != 0 || now->is_known != then->is_known ||
	    now->owner.uid != then->owner.uid || now->owner.gid != then->owner.gid)
		return true;
	return !now->users.is_all && (then->users.is_all || !has_all(&now->users, &then->users) ||
				      !has_all(&now->groups, &then->groups));
}

void named_describe(const struct named *named, bool is_allowed, unsigned jobs, struct json_out *out)
{
	json_out_object_begin(out);
	JSON_OUT_MEMBERS(out, named, name, path);
	json_out_member_string(out, "owner", named->owner_name);
	json_out_member_string(out, "users", named->users.text);
	json_out_member_string(out, "groups", named->groups.text);
	JSON_OUT_MEMBERS(out, named, contact, pipeline);
	json_out_member_bool(out, "allowed", is_allowed);
	json_out_member_u64(out, "jobs", jobs);
	json_out_object_end(out);
}

void named_print(FILE *out)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(words); i++)
		fprintf(out, "  " NAMED_PREFIX "NAME.%-8s %s\n", words[i].name, words[i].what);
}

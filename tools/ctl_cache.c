/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is kept, asked of accessd on a connection of its own: HELLO, CACHE, progress, CACHED. A group is
 * named by the first figures of its id, as the list shows them, so pins and drops ask for the list first.
 *
 * accessd passes on what a reader says, perhaps another user's, so an answer is data: the list is bounded
 * before it is read, and no text reaches the terminal unquoted.
 */

#include "tools/ctl_cache.h"

#include "base/url.h"
#include "shmring/proto.h"
#include "tools/ctl_ask.h"
#include "tools/table.h"
#include "tools/ctl_value.h"

#define CACHE_MAX_LIST (64u << 20)
#define CACHE_FIGURES 12 /* of an id that are shown */
#define CACHE_LEAST 4    /* that name one */

/* The last one is made of the others, and accessd does not know it. */
enum cache_verb { CACHE_LIST, CACHE_PIN, CACHE_UNPIN, CACHE_DROP, CACHE_VERIFY, CACHE_FORGET };

static const struct {
	const char *name;
	bool has_word; /* a group; of forget a data set */
} cache_verbs[] = {
    [CACHE_LIST] = {"ls", false},       [CACHE_PIN] = {"pin", true},
    [CACHE_UNPIN] = {"unpin", true},    [CACHE_DROP] = {"drop", true},
    [CACHE_VERIFY] = {"verify", false}, [CACHE_FORGET] = {"forget", true},
};

struct cache_ask {
	const struct ctl_cache *cache;
	struct ctl_ask ask;
};

/* ---- the list ---- */

static void cache_age(struct table *table, uint64_t last_use_s)
{
	double s = difftime(time(NULL), (time_t)last_use_s);

	if (last_use_s == 0 || s < 0)
		table_cell(table, "-");
	else if (s < 7200)
		table_cell(table, "%.0f min", s / 60);
	else if (s < 172800)
		table_cell(table, "%.0f h", s / 3600);
	else
		table_cell(table, "%.0f days", s / 86400);
}

static void cache_state(const struct json_in *group, struct table *table)
{
	static const struct {
		const char *key, *words;
	} states[] = {{"pinned", "pinned"}, {"used", "in use"}, {"superseded", "superseded"}};
	char text[64] = "";
	size_t used = 0;

	for (size_t i = 0; i < BASE_ARRAY_LEN(states); i++)
		if (ctl_is(group, states[i].key))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used > 0 ? ", " : "", states[i].words);
	table_cell(table, "%s", text);
}

/* What its maker noted of a group; the caller frees. NULL: nothing that can be read. */
static struct json_in *cache_note_of(const struct json_in *group)
{
	const char *text = ctl_text(group, "note");
	struct json_in *note = NULL;

	return json_in_parse(text, strlen(text), 65536, &note, NULL) ? NULL : note;
}

static void cache_row(const struct json_in *group, struct table *table)
{
	unsigned long long samples = ctl_u64(group, "samples");
	uint64_t values = ctl_u64(group, "values");
	_cleanup_json_ struct json_in *note = cache_note_of(group);

	table_cell(table, "%.*s", CACHE_FIGURES, ctl_string(group, "id"));
	table_cell(table, "%s", ctl_string(note, "form"));
	table_cell(table, "%s", ctl_string(note, "dataset"));
	table_cell(table, "%llu", samples);
	table_cell(table, "%.1f %%", samples ? 100 * (double)values / (double)samples : 0);
	table_cell(table, "%s", BASE_BYTES(ctl_u64(group, "bytes")));
	cache_age(table, ctl_u64(group, "last_use_s"));
	cache_state(group, table);
	table_end_row(table);
}

void ctl_cache_draw(const struct json_in *list, FILE *out)
{
	const struct json_in *groups = json_in_member(list, "groups");
	struct table table;

	fprintf(out,
		"%s of %s, %llu values; damaged %llu, pushed out %llu; in memory %llu values, %s\n",
		BASE_BYTES(ctl_u64(list, "bytes_used")), BASE_BYTES(ctl_u64(list, "limit")),
		ctl_u64(list, "values"), ctl_u64(list, "damaged"), ctl_u64(list, "evicted"),
		ctl_u64(list, "memory_values"), BASE_BYTES(ctl_u64(list, "memory_used")));
	table_init(&table, "<group|<form|<dataset|samples|kept|bytes|last used|<");
	JSON_IN_EACH(group, groups)
		cache_row(group, &table);
	table_print(&table, "", "", out);
}

static int cache_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool cache_read_id(const char *text, uint8_t ret[32])
{
	if (strlen(text) != 64)
		return false;
	for (unsigned i = 0; i < 32; i++) {
		int high = cache_digit(text[2 * i]), low = cache_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

int ctl_cache_find(const struct json_in *list, const char *prefix, uint8_t ret[32],
		   struct diag *diag)
{
	const struct json_in *groups = json_in_member(list, "groups");
	size_t length = strlen(prefix);
	const char *found = NULL;
	char quoted[80];

	base_quote(prefix, quoted, sizeof(quoted));
	JSON_IN_EACH(group, groups) {
		const char *id = ctl_text(group, "id");

		if (length < CACHE_LEAST || strncmp(id, prefix, length) != 0)
			continue;
		if (found)
			return diag_fail(diag, CTL_E_NONE,
					 "%s is the beginning of several groups: give more of it",
					 quoted);
		found = id;
	}
	if (found && cache_read_id(found, ret))
		return 0;
	return diag_fail(
	    diag, CTL_E_NONE,
	    "there is no group %s among %zu: %d figures at least, as access-ctl cache ls "
	    "shows them",
	    quoted, json_in_count(groups), CACHE_LEAST);
}

/* Slashes at the end say nothing. */
static size_t cache_length(const char *path, size_t length)
{
	while (length > 1 && path[length - 1] == '/')
		length--;
	return length;
}

static bool cache_is_text(const char *path, const char *dataset)
{
	const size_t length = cache_length(path, strlen(path));

	return length == cache_length(dataset, strlen(dataset)) &&
	       memcmp(path, dataset, length) == 0;
}

/* The path is as a job said it: nobody has resolved links, dots and slashes in it. */
static bool cache_is_path(const char *path, const char *dataset)
{
	_cleanup_free_ char *joined = NULL, *real = NULL, *real_path = NULL;

	if (cache_is_text(path, dataset))
		return true;
	joined = base_absolute(dataset);
	if (joined && cache_is_text(path, joined))
		return true;
	real = realpath(dataset, NULL);
	if (!real)
		return false;
	real_path = *path == '/' ? realpath(path, NULL) : NULL;
	return cache_is_text(path, real) || (real_path && strcmp(real_path, real) == 0);
}

/* Is the path in the folder that access-bucket has for the URL, whatever it was told beside it? */
static bool cache_is_in(const char *path, const char *text)
{
	char folder[URL_FOLDER_MAX];
	struct url url;
	bool is_in = false;
	size_t length;

	if (url_parse(text, &url))
		return false;
	length = url_folder(&url, folder);
	url_fini(&url);
	for (const char *at = path; at && !is_in; at = strchr(at, '/')) {
		at += *at == '/';
		is_in =
		    strncmp(at, folder, length) == 0 && (at[length] == '/' || at[length] == '-');
	}
	return is_in;
}

/* With and without a slash at the end it is another URL, and of the same objects. */
static bool cache_is_url(const char *path, const char *dataset)
{
	const size_t length = cache_length(dataset, strlen(dataset));
	_cleanup_free_ char *bare = strndup(dataset, length);
	_cleanup_free_ char *closed = bare ? base_format("%s/", bare) : NULL;

	if (!closed)
		return false;
	return cache_is_in(path, dataset) || cache_is_in(path, bare) || cache_is_in(path, closed);
}

bool ctl_cache_is_of(const struct json_in *group, const char *dataset)
{
	_cleanup_json_ struct json_in *note = cache_note_of(group);
	const char *of = ctl_text(note, "dataset");
	bool is_of = url_is(dataset) ? cache_is_url(of, dataset)
				     : *of && *dataset && cache_is_path(of, dataset);

	for (const char *mark = *dataset ? strchr(of, '?') : NULL; !is_of && mark;
	     mark = strchr(mark + 1, '?')) {
		_cleanup_free_ char *path = strndup(of, (size_t)(mark - of));

		is_of = path && *path && cache_is_path(path, dataset);
	}
	return is_of;
}

/* ---- the conversation ---- */

static int cache_do(struct cache_ask *ask, enum cache_verb verb, const uint8_t *group,
		    struct wire_in *ret, struct diag *diag)
{
	int r = ctl_ask(&ask->ask, PROTO_CACHED, ret, diag, PROTO_CACHE,
			WIRE_U64(PROTO_KEY_VERB, verb), WIRE_BYTES(PROTO_KEY_GROUP, group, 32),
			WIRE_STRING(PROTO_KEY_WHO, ask->cache->user));

	if (ask->ask.drew)
		fputs("\r\033[K", stderr);
	return r;
}

/* ret_text, ret_list: the caller frees. */
static int cache_list(struct cache_ask *ask, char **ret_text, struct json_in **ret_list,
		      struct diag *diag)
{
	_cleanup_free_ char *text = NULL;
	struct wire_in in;

	if (cache_do(ask, CACHE_LIST, NULL, &in, diag))
		return 1;
	text = ctl_ask_text(&in, CACHE_MAX_LIST);
	if (!text || json_in_parse(text, strlen(text), CACHE_MAX_LIST, ret_list, diag) != 0)
		return diag_fail(diag, 1, "accessd's list cannot be read");
	*ret_text = base_take_ptr(text);
	return 0;
}

/* ---- commands ---- */

/* What an answer to CACHE_DROP leaves to be told: 1 with diag; 0: all of it is gone. */
static int cache_left(const struct wire_in *in, struct diag *diag)
{
	const char *left = "";

	wire_get_string(in, PROTO_KEY_TEXT, &left);
	return *left ? diag_fail(diag, 1, "%s", BASE_QUOTED(left, 512)) : 0;
}

static int cache_act(struct cache_ask *ask, enum cache_verb verb, const char *prefix,
		     struct diag *diag)
{
	uint8_t group[32];
	const char *text = "";
	struct wire_in in;
	int status = 0;

	if (prefix) {
		_cleanup_free_ char *json = NULL;
		_cleanup_json_ struct json_in *list = NULL;
		int r = cache_list(ask, &json, &list, diag);

		r = r ? r : ctl_cache_find(list, prefix, group, diag);
		if (r)
			return 1;
	}
	if (cache_do(ask, verb, prefix ? group : NULL, &in, diag))
		return 1;
	wire_get_string(&in, PROTO_KEY_TEXT, &text);
	if (verb == CACHE_DROP)
		status = cache_left(&in, diag);
	else if (*text)
		puts(BASE_QUOTED(text, 512));
	wire_in_fini(&in);
	return status;
}

/* ---- forgetting ---- */

struct cache_forgotten {
	unsigned long long groups, values, bytes;
	struct diag stays; /* "", or of the last group that did */
};

static void cache_forget_group(struct cache_ask *ask, const struct json_in *group,
			       struct cache_forgotten *forgotten)
{
	const char *text = ctl_text(group, "id");
	struct diag why = {.text = "its id cannot be read"};
	struct wire_in in;
	uint8_t id[32];

	if (!cache_read_id(text, id) || cache_do(ask, CACHE_DROP, id, &in, &why)) {
		diag_set(&forgotten->stays,
			 ask->ask.is_lost
			     ? "whether group %.*s was dropped is not known: %s: run it again"
			     : "group %.*s stays: %s",
			 CACHE_FIGURES, text, why.text);
		return;
	}
	wire_in_fini(&in); /* are bytes of it left? cache_wipe() asks */
	ctl_ask_renew(&ask->ask);
	forgotten->groups++;
	forgotten->values += ctl_u64(group, "values");
	forgotten->bytes += ctl_u64(group, "bytes");
}

/* A drop of no group writes what waits to be, so that it is in the list that comes next, and wipes what is left of values
 * that were pushed out, or dropped before. */
static int cache_wipe(struct cache_ask *ask, struct diag *diag)
{
	static const char no_group[] =
	    "there is no such group"; /* storage/reader_chores.c says so */
	static const uint8_t none[32];
	struct wire_in in;
	int r;

	if (cache_do(ask, CACHE_DROP, none, &in, diag)) {
		r = strncmp(diag->text, no_group, strlen(no_group)) == 0 ? 0 : 1;
	} else {
		r = cache_left(&in, diag);
		wire_in_fini(&in);
	}
	ctl_ask_renew(&ask->ask);
	return r;
}

/* All groups of a data set that can go. */
static int cache_forget(struct cache_ask *ask, const char *dataset, struct diag *diag)
{
	_cleanup_free_ char *path = realpath(dataset, NULL), *text = NULL;
	struct cache_forgotten forgotten = {.stays = {.text = ""}};
	struct diag left = {.text = ""};
	_cleanup_json_ struct json_in *list = NULL;
	char quoted[512];
	int r = cache_wipe(ask, &left);

	if (cache_list(ask, &text, &list,
		       diag)) /* a refusal ends the connection: that was the first answer */
		return r ? diag_fail(diag, 1, "%s", left.text) : 1;
	JSON_IN_EACH(group, json_in_member(list, "groups"))
		if (!ask->ask.is_lost && ctl_cache_is_of(group, dataset))
			cache_forget_group(ask, group, &forgotten);
	if (forgotten.groups && !ask->ask.is_lost)
		r = cache_wipe(ask, &left); /* what is left after all is what counts */
	if (*forgotten.stays.text)
		r = diag_fail(diag, 1, "%s%s%s", forgotten.stays.text, r ? "; " : "",
			      r ? left.text : "");
	else if (r)
		diag_set(diag, "%s", left.text);
	base_quote(path ? path : dataset, quoted, sizeof(quoted));
	if (forgotten.groups == 0 && r == 0)
		printf("nothing is kept of %s\n", quoted);
	else
		printf("%llu groups of %s were thrown away, with %llu values (%s)\n",
		       forgotten.groups, quoted, forgotten.values, BASE_BYTES(forgotten.bytes));
	return r;
}

static int cache_ls(struct cache_ask *ask, struct diag *diag)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ struct json_in *list = NULL;

	if (cache_list(ask, &text, &list, diag))
		return 1;
	if (ask->cache->json)
		puts(text);
	else
		ctl_cache_draw(list, stdout);
	return fflush(stdout) == 0 ? 0 : diag_fail(diag, 1, "standard output: %s", strerror(errno));
}

int ctl_cache_run(const struct ctl_cache *cache, const char *socket, uint64_t until_ns,
		  char **words, unsigned n, struct diag *diag)
{
	struct cache_ask ask = {.cache = cache, .ask = {.counts = "values checked"}};
	unsigned verb = 0;
	int r;

	while (n > 0 && verb < BASE_ARRAY_LEN(cache_verbs) &&
	       strcmp(words[0], cache_verbs[verb].name) != 0)
		verb++;
	if (n == 0 || verb == BASE_ARRAY_LEN(cache_verbs) ||
	    n != (cache_verbs[verb].has_word ? 2u : 1u))
		return diag_fail(
		    diag, 2,
		    "cache needs one of ls, pin GROUP, unpin GROUP, drop GROUP, forget "
		    "DATASET, verify, "
		    "warm DATASET, lend DATASET");
	r = ctl_ask_begin(&ask.ask, socket, until_ns, diag);
	if (!r && verb == CACHE_LIST)
		r = cache_ls(&ask, diag);
	else if (!r && verb == CACHE_FORGET)
		r = cache_forget(&ask, words[1], diag);
	else if (!r)
		r = cache_act(&ask, (enum cache_verb)verb,
			      cache_verbs[verb].has_word ? words[1] : NULL, diag);
	base_close(&ask.ask.sock);
	return r;
}

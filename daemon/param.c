/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters: one table (param_tbl.h), four uses. A value is checked where it is set, so that the
 * rest of accessd reads plain numbers inside their ranges. An unknown name is an error, never
 * ignored: a misspelt parameter that silently keeps its default is worse than a daemon that does
 * not start.
 */
#include "daemon/param.h"

#include <ctype.h>
#include <unistd.h>

enum param_kind { KIND_BYTES, KIND_COUNT, KIND_TEXT, KIND_PATH, KIND_CHOICE };

struct row {
	const char *name, *what, *text; /* text: a text's default, or choices */
	enum param_kind kind;
	size_t offset;
	uint64_t init, least, most;
};

static const struct row rows[] = {
#define PARAM_BYTES(n, i, l, m, w) {#n, w, NULL, KIND_BYTES, offsetof(struct param, n), i, l, m},
#define PARAM_COUNT(n, i, l, m, w) {#n, w, NULL, KIND_COUNT, offsetof(struct param, n), i, l, m},
#define PARAM_TEXT(n, i, w) {#n, w, i, KIND_TEXT, offsetof(struct param, n), 0, 0, 0},
#define PARAM_PATH(n, i, w) {#n, w, i, KIND_PATH, offsetof(struct param, n), 0, 0, 0},
#define PARAM_CHOICE(n, i, c, w) {#n, w, c, KIND_CHOICE, offsetof(struct param, n), i, 0, 0},
#include "daemon/param_tbl.h"
#undef PARAM_BYTES
#undef PARAM_COUNT
#undef PARAM_TEXT
#undef PARAM_PATH
#undef PARAM_CHOICE
};

static bool is_text(const struct row *row)
{
	return row->kind == KIND_TEXT || row->kind == KIND_PATH;
}

static uint64_t *number_of(struct param *param, const struct row *row)
{
	return (uint64_t *)(void *)((char *)param + row->offset);
}

static char *text_of(struct param *param, const struct row *row)
{
	return (char *)param + row->offset;
}

void param_init(struct param *param)
{
	memset(&param->quotas, 0, sizeof(param->quotas));
	memset(&param->named, 0, sizeof(param->named));
	param->known = NULL;
	for (size_t i = 0; i < BASE_ARRAY_LEN(rows); i++) {
		if (is_text(&rows[i]))
			snprintf(text_of(param, &rows[i]), PARAM_TEXT_MAX, "%s", rows[i].text);
		else
			*number_of(param, &rows[i]) = rows[i].init;
	}
}

static const struct row *row_of(const char *name, size_t length)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(rows); i++)
		if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
			return &rows[i];
	return NULL;
}

static int parse_count(const char *text, uint64_t *ret)
{
	return base_parse_number(&text, UINT64_MAX, ret) && !*text ? 0 : -EINVAL;
}

static int set_number(struct param *param, const struct row *row, const char *value,
		      struct diag *diag)
{
	uint64_t number;
	int r = row->kind == KIND_BYTES ? base_parse_bytes(value, &number)
					: parse_count(value, &number);

	if (r)
		return diag_fail(diag, PARAM_E_BAD, "parameter %s: \"%s\" is not %s", row->name,
				 value,
				 row->kind == KIND_BYTES ? "a size (write 4096, 64M or 1.5G)"
							 : "a whole number");
	if (number < row->least || number > row->most)
		return diag_fail(diag, PARAM_E_BAD,
				 "parameter %s: %s is out of its range %llu .. %llu", row->name,
				 value, (unsigned long long)row->least,
				 (unsigned long long)row->most);
	*number_of(param, row) = number;
	return 0;
}

/* The word at that place; NULL: there are fewer. */
static const char *choice_at(const struct row *row, uint64_t place, size_t *ret_length)
{
	const char *word = row->text;

	for (; place > 0 && word; place--)
		word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL;
	if (word)
		*ret_length = strcspn(word, "|");
	return word;
}

static void word_of(const struct row *row, uint64_t place, char *ret, size_t size)
{
	size_t length = 0;
	const char *word = choice_at(row, place, &length);

	snprintf(ret, size, "%.*s", (int)length, word ? word : "");
}

static int set_choice(struct param *param, const struct row *row, const char *value,
		      struct diag *diag)
{
	size_t length;
	const char *word;

	for (uint64_t place = 0; (word = choice_at(row, place, &length)); place++) {
		if (strlen(value) != length || memcmp(value, word, length) != 0)
			continue;
		*number_of(param, row) = place;
		return 0;
	}
	return diag_fail(diag, PARAM_E_BAD, "parameter %s: \"%s\" is none of %s", row->name, value,
			 row->text);
}

static int set_text(struct param *param, const struct row *row, const char *value,
		    struct diag *diag)
{
	if (strlen(value) >= PARAM_TEXT_MAX)
		return diag_fail(diag, PARAM_E_BAD, "parameter %s: longer than %d bytes", row->name,
				 PARAM_TEXT_MAX - 1);
	if (row->kind == KIND_PATH && *value && *value != '/')
		return diag_fail(diag, PARAM_E_BAD,
				 "parameter %s: \"%s\" is no whole path: begin it with /",
				 row->name, value);
	snprintf(text_of(param, row), PARAM_TEXT_MAX, "%s", value);
	return 0;
}

/* What is set for a user, or of a named data set. */
static int set_entry(struct param *param, const char *name, size_t length, const char *value,
		     struct diag *diag)
{
	const struct param *known = param->known;
	_cleanup_free_ char *copy = strndup(name, length);
	int r;

	if (!copy)
		return diag_fail(diag, PARAM_E_BAD, "no memory for \"%.64s\"", name);
	if (quota_is_name(copy))
		r = quota_set(&param->quotas, known ? &known->quotas : NULL, copy, value, diag);
	else
		r = named_set(&param->named, known ? &known->named : NULL, copy, value, diag);
	return r ? PARAM_E_BAD : 0;
}

int param_set(struct param *param, const char *assignment, struct diag *diag)
{
	const char *equals = strchr(assignment, '=');
	const char *end = equals;
	char value[PARAM_TEXT_MAX + 1];
	const struct row *row;

	if (!equals)
		return diag_fail(diag, PARAM_E_BAD, "\"%s\" is no assignment: write name = value",
				 assignment);
	while (end > assignment && isspace((unsigned char)end[-1]))
		end--;
	row = row_of(assignment, (size_t)(end - assignment));
	if (!row && !quota_is_name(assignment) && !named_is_name(assignment))
		return diag_fail(diag, PARAM_E_BAD,
				 "no parameter is called \"%.*s\": `accessd --help` lists them",
				 (int)(end - assignment), assignment);
	for (equals++; isspace((unsigned char)*equals);)
		equals++;
	if (strlen(equals) >= sizeof(value))
		return diag_fail(diag, PARAM_E_BAD, "parameter %.*s: longer than %d bytes",
				 (int)BASE_MIN(end - assignment, (ptrdiff_t)64), assignment,
				 PARAM_TEXT_MAX);
	strcpy(value, equals);
	for (size_t n = strlen(value); n > 0 && isspace((unsigned char)value[n - 1]); n--)
		value[n - 1] = '\0';
	if (!row)
		return set_entry(param, assignment, (size_t)(end - assignment), value, diag);
	if (row->kind == KIND_CHOICE)
		return set_choice(param, row, value, diag);
	return is_text(row) ? set_text(param, row, value, diag)
			    : set_number(param, row, value, diag);
}

#define PARAM_MARK "\xef\xbb\xbf" /* the byte order mark that some editors begin a file with */

/* Does the value go on as a comment would? What has the name has none. */
static bool has_comment(const char *assignment)
{
	const char *at = strchr(assignment, '=');

	while (at && (at = strchr(at, '#')) && !isspace((unsigned char)at[-1]))
		at++;
	return at != NULL;
}

static int read_lines(struct param *param, FILE *file, const char *path, struct diag *diag)
{
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	for (unsigned number = 1; getline(&line, &room, file) >= 0; number++) {
		const char *start = line;
		struct diag why = {""};

		line[strcspn(line, "\r\n")] = '\0';
		if (number == 1 && strncmp(start, PARAM_MARK, strlen(PARAM_MARK)) == 0)
			start += strlen(PARAM_MARK);
		while (isspace((unsigned char)*start))
			start++;
		if (!*start || *start == '#' || param_set(param, start, &why) == 0)
			continue;
		return diag_fail(diag, PARAM_E_BAD, "%s:%u: %s%s", path, number, why.text,
				 has_comment(start) ? "; a comment is a line of its own" : "");
	}
	if (ferror(file)) {
		int r = -errno;

		return diag_fail(diag, r, "cannot read %s: %s", path, strerror(-r));
	}
	return 0;
}

int param_read(struct param *param, const char *path, struct diag *diag)
{
	FILE *file = fopen(path, "re");
	int r;

	if (!file) {
		r = -errno;
		return diag_fail(diag, r, "cannot read %s: %s", path, strerror(-r));
	}
	r = read_lines(param, file, path, diag);
	fclose(file);
	return r;
}

/* ---- what a user says ---- */

#define PARAM_VARIABLE "ACCESSD_"

extern char **environ;

/* The name in small letters, as the table has it. */
static int set_variable(struct param *param, const char *variable, struct diag *diag)
{
	const size_t name = strcspn(variable, "=");
	struct diag why = {""};
	_cleanup_free_ char *assignment = strdup(variable + strlen(PARAM_VARIABLE));

	if (!assignment)
		return diag_fail(diag, -ENOMEM, "no memory for the environment");
	for (char *at = assignment; *at && *at != '='; at++)
		*at = (char)tolower((unsigned char)*at);
	if (param_set(param, assignment, &why) == 0)
		return 0;
	return diag_fail(diag, PARAM_E_BAD, "%.*s in the environment: %s",
			 (int)BASE_MIN(name, (size_t)64), variable, why.text);
}

static int read_environment(struct param *param, struct diag *diag)
{
	for (char **variable = environ; variable && *variable; variable++) {
		int r = 0;

		if (strncmp(*variable, PARAM_VARIABLE, strlen(PARAM_VARIABLE)) == 0)
			r = set_variable(param, *variable, diag);
		if (r)
			return r;
	}
	return 0;
}

int param_read_users(struct param *param, struct diag *diag)
{
	const char *config = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
	_cleanup_free_ char *path = NULL;
	const bool is_config = config && *config == '/';

	if (is_config || (home && *home == '/')) {
		path = base_format("%s%s/oneaccess/accessd.conf", is_config ? config : home,
				   is_config ? "" : "/.config");
		if (!path)
			return diag_fail(diag, -ENOMEM, "no memory for the configuration");
	}
	if (path && access(path, F_OK) == 0) {
		const int r = param_read(param, path, diag);

		if (r)
			return r;
	}
	return read_environment(param, diag);
}

/* ---- what changes in a running accessd ---- */

static bool is_live(const struct row *row)
{
	static const size_t live[] = {
#define PARAM_LIVE(name) offsetof(struct param, name),
#include "daemon/live_tbl.h"
#undef PARAM_LIVE
	};
	size_t i = 0;

	while (i < BASE_ARRAY_LEN(live) && live[i] != row->offset)
		i++;
	return i < BASE_ARRAY_LEN(live);
}

static void add_name(char *list, size_t size, const char *name)
{
	size_t length = strlen(list);

	snprintf(list + length, size - length, "%s%s", length ? ", " : "", name);
}

void param_take(struct param *param, const struct param *wanted, struct param_change *ret)
{
	*ret = (struct param_change){.taken = ""};
	for (size_t i = 0; i < BASE_ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		char *now = (char *)param + row->offset;
		const char *then = (const char *)wanted + row->offset;

		if (is_text(row) ? strcmp(now, then) == 0
				 : memcmp(now, then, sizeof(uint64_t)) == 0)
			continue;
		if (!is_live(row)) {
			add_name(ret->left, sizeof(ret->left), row->name);
			continue;
		}
		memcpy(now, then, is_text(row) ? PARAM_TEXT_MAX : sizeof(uint64_t));
		add_name(ret->taken, sizeof(ret->taken), row->name);
	}
	if (memcmp(&param->quotas, &wanted->quotas, sizeof(param->quotas)) != 0) {
		param->quotas = wanted->quotas;
		add_name(ret->taken, sizeof(ret->taken), QUOTA_PREFIX "*");
	}
	if (memcmp(&param->named, &wanted->named, sizeof(param->named)) != 0) {
		param->named = wanted->named;
		add_name(ret->taken, sizeof(ret->taken), NAMED_PREFIX "*");
	}
}

/* ---- what is said ---- */

void param_show(const struct param *param,
		void (*fn)(void *arg, const char *name, const char *text, uint64_t number),
		void *arg)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(rows); i++) {
		const char *at = (const char *)param + rows[i].offset;
		char word[32];

		if (is_text(&rows[i])) {
			fn(arg, rows[i].name, at, 0);
		} else if (rows[i].kind == KIND_CHOICE) {
			word_of(&rows[i], *(const uint64_t *)(const void *)at, word, sizeof(word));
			fn(arg, rows[i].name, word, 0);
		} else {
			fn(arg, rows[i].name, NULL, *(const uint64_t *)(const void *)at);
		}
	}
}

void param_print(FILE *out)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(rows); i++) {
		char value[32] = "\"\"";

		if (rows[i].kind == KIND_COUNT)
			snprintf(value, sizeof(value), "%llu", (unsigned long long)rows[i].init);
		else if (rows[i].kind == KIND_BYTES && rows[i].init)
			base_format_bytes(rows[i].init, value, sizeof(value));
		else if (rows[i].kind == KIND_BYTES)
			snprintf(value, sizeof(value), "0");
		else if (rows[i].kind == KIND_CHOICE)
			word_of(&rows[i], rows[i].init, value, sizeof(value));
		else if (*rows[i].text)
			snprintf(value, sizeof(value), "%s", rows[i].text);
		fprintf(out, "  %-18s %-8s %s\n", rows[i].name, value, rows[i].what);
	}
	quota_print(out);
	named_print(out);
}

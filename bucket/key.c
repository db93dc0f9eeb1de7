/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/key.h"

#include <stdio.h>

#include "base/url.h"
#include "shmring/bucket.h"

#define KEY_MOST_PART 255
#define KEY_MOST_GROUPS 8

const char *key_bad_name(const char *name, size_t bytes)
{
	size_t from = 0;

	if (bytes == 0)
		return "it is empty";
	if (bytes > BUCKET_MOST_NAME)
		return "it is longer than 1024 bytes";
	if (memchr(name, '\0', bytes))
		return "it has a NUL";
	for (size_t i = 0; i <= bytes; i++) {
		const size_t part = i - from;

		if (i < bytes && name[i] != '/')
			continue;
		if (part == 0)
			return "a folder in it has no name";
		if (part > KEY_MOST_PART)
			return "a part of it is longer than 255 bytes";
		if (name[from] == '.' && (part == 1 || (part == 2 && name[from + 1] == '.')))
			return "\".\" or \"..\" is a part of it";
		from = i + 1;
	}
	return NULL;
}

static size_t folder_of(const char *path, size_t bytes)
{
	const char *slash = memrchr(path, '/', bytes);

	return slash ? (size_t)(slash - path) + 1 : 0;
}

static int refuse_braces(const char *path, struct diag *diag)
{
	return diag_fail(
	    diag, -EINVAL,
	    "\"%s\": write {000..123} or {one,other} in the name, not in a folder or within "
	    "each other, the smaller number first",
	    BASE_QUOTED(path, 200));
}

int key_scope_of(const char *path, struct key_scope *ret, struct diag *diag)
{
	const size_t bytes = strlen(path), plain = strcspn(path, "{");
	struct key_scope scope = {.kind = KEY_BELOW};

	if (plain < bytes) {
		const char *last = strrchr(path, '}');

		if (!last || last < path + plain || strchr(path + plain, '/'))
			return refuse_braces(path, diag);
		scope.kind = KEY_PATTERN;
		scope.folder = folder_of(path, plain);
		scope.head = plain - scope.folder;
		scope.prefix = strndup(path, plain);
		scope.pattern = strdup(path + scope.folder);
		scope.tail = strdup(last + 1);
	} else {
		scope.kind = bytes == 0 || path[bytes - 1] == '/' ? KEY_BELOW : KEY_OBJECT;
		scope.folder = folder_of(path, bytes);
		scope.prefix = strdup(path);
		scope.pattern = strdup(path + scope.folder);
		scope.tail = strdup("");
	}
	if (!scope.prefix || !scope.pattern || !scope.tail) {
		key_scope_fini(&scope);
		return diag_fail(diag, -ENOMEM, "there is no memory");
	}
	*ret = scope;
	return 0;
}

int key_scope_below(struct key_scope *scope)
{
	char *prefix = base_format("%s/", scope->prefix);

	if (!prefix)
		return -ENOMEM;
	free(scope->prefix);
	scope->prefix = prefix;
	scope->folder = strlen(prefix);
	scope->kind = KEY_BELOW;
	return 0;
}

void key_scope_widen(struct key_scope *scope)
{
	switch (url_brings(scope->prefix)) {
	case URL_WITH_FOLDER:
		scope->prefix[scope->folder] = '\0';
		scope->kind = KEY_BELOW;
		break;
	case URL_WITH_INDEX:
		scope->prefix[strlen(scope->prefix) - strlen("bin")] = '\0';
		scope->kind = KEY_PATTERN;
		break;
	case URL_ALONE:
		break;
	}
}

void key_scope_fini(struct key_scope *scope)
{
	free(scope->prefix);
	free(scope->pattern);
	free(scope->tail);
	*scope = (struct key_scope){.prefix = NULL};
}

const char *key_name(const struct key_scope *scope, const char *key)
{
	const size_t bytes = strlen(key), prefix = strlen(scope->prefix);
	const char *name = key + scope->folder;
	size_t tail;

	if (strncmp(key, scope->prefix, prefix) != 0 || bytes == scope->folder ||
	    key[bytes - 1] == '/')
		return NULL;
	if (scope->kind == KEY_BELOW)
		return name;
	if (scope->kind == KEY_OBJECT)
		return bytes == prefix ? name : NULL;
	tail = strlen(scope->tail);
	return !strchr(name, '/') && bytes >= prefix + tail &&
		       strcmp(key + bytes - tail, scope->tail) == 0
		   ? name
		   : NULL;
}

/* ---- the names of a pattern ---- */

struct names {
	int (*fn)(void *arg, const char *key);
	void *arg;
	uint64_t left;
	char text[2 * BUCKET_MOST_NAME];
};

static int each(struct names *names, size_t used, const char *rest, unsigned groups);

static int each_with(struct names *names, size_t used, const char *part, size_t bytes,
		     const char *rest, unsigned groups)
{
	if (bytes >= sizeof(names->text) - used)
		return -EINVAL;
	memcpy(names->text + used, part, bytes);
	return each(names, used + bytes, rest, groups);
}

/* "000..123": as many digits as the first number has, at least. */
static int each_number(struct names *names, size_t used, const char *from, const char *end,
		       const char *rest, unsigned groups)
{
	const char *at = from;
	uint64_t first, last;
	size_t digits;
	char text[32];
	int r = 0;

	if (!base_parse_number(&at, UINT32_MAX, &first))
		return -EINVAL;
	digits = (size_t)(at - from);
	if (strncmp(at, "..", 2) != 0)
		return -EINVAL;
	at += 2;
	if (!base_parse_number(&at, UINT32_MAX, &last) || at != end || last < first || digits > 20)
		return -EINVAL;
	for (uint64_t i = first; i <= last && !r; i++) {
		const int n =
		    snprintf(text, sizeof(text), "%0*llu", (int)digits, (unsigned long long)i);

		r = each_with(names, used, text, (size_t)n, rest, groups);
	}
	return r;
}

static int each(struct names *names, size_t used, const char *rest, unsigned groups)
{
	const size_t plain = strcspn(rest, "{}");
	const char *from = rest + plain + 1, *end, *comma;
	int r = 0;

	if (plain >= sizeof(names->text) - used)
		return -EINVAL;
	memcpy(names->text + used, rest, plain);
	used += plain;
	if (!rest[plain]) {
		names->text[used] = '\0';
		return names->left-- == 0 ? -E2BIG : names->fn(names->arg, names->text);
	}
	end = rest[plain] == '{' ? strchr(from, '}') : NULL;
	if (!end || groups == 0 || memchr(from, '{', (size_t)(end - from)))
		return -EINVAL;
	if (!memchr(from, ',', (size_t)(end - from)))
		return each_number(names, used, from, end, end + 1, groups - 1);
	for (; !r && from <= end; from = comma + 1) {
		comma = memchr(from, ',', (size_t)(end - from));
		comma = comma ? comma : end;
		r = each_with(names, used, from, (size_t)(comma - from), end + 1, groups - 1);
	}
	return r;
}

int key_each(const struct key_scope *scope, uint64_t most, int (*fn)(void *arg, const char *key),
	     void *arg, struct diag *diag)
{
	struct names names = {.fn = fn, .arg = arg, .left = most};
	int r;

	if (scope->folder >= sizeof(names.text))
		return refuse_braces(scope->prefix, diag);
	memcpy(names.text, scope->prefix, scope->folder);
	r = each(&names, scope->folder, scope->pattern, KEY_MOST_GROUPS);
	if (r == -EINVAL)
		return refuse_braces(scope->pattern, diag);
	if (r == -E2BIG)
		return diag_fail(diag, r, "\"%s\" has more than %llu names",
				 BASE_QUOTED(scope->pattern, 200), (unsigned long long)most);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * INI files: [sections], "key = value", and lines that are indented belong to the key before them, if that has no value of
 * its own. A line that begins with "#" or ";" is a comment. The text is cut into its items where it is.
 */

#include "bucket/s3/s3_profile.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/* "[profile "a b"]" is "profile a b"; one blank between words. */
static const char *section_of(char *line)
{
	char *to = ++line, *begin = line;

	for (const char *at = line; *at && *at != ']'; at++) {
		if (*at == '"' || *at == '\'')
			continue;
		if (isspace((unsigned char)*at) && (to == begin || isspace((unsigned char)to[-1])))
			continue;
		*to++ = (char)(isspace((unsigned char)*at) ? ' ' : *at);
	}
	*to = '\0';
	return trim(begin);
}

static int add_item(struct s3_profile_file *file, const struct s3_profile_item *item)
{
	if (!base_grow(&file->items, &file->room, file->n + 1, sizeof(*file->items)))
		return -ENOMEM;
	file->items[file->n++] = *item;
	return 0;
}

struct parsing {
	const char *section, *parent; /* section NULL: none yet */
};

static int parse_line(struct s3_profile_file *file, struct parsing *parsing, char *line)
{
	const bool is_indented = isspace((unsigned char)*line);
	char *key = trim(line), *equals;
	struct s3_profile_item item;

	if (*key == '\0' || *key == '#' || *key == ';')
		return 0;
	if (*key == '[') {
		*parsing = (struct parsing){section_of(key), ""};
		return 0;
	}
	equals = strchr(key, '=');
	if (!equals || equals == key || !parsing->section)
		return 0;
	*equals = '\0';
	item = (struct s3_profile_item){parsing->section, is_indented ? parsing->parent : "",
					trim(key), trim(equals + 1)};
	if (!is_indented)
		parsing->parent = *item.value ? "" : item.key;
	return add_item(file, &item);
}

int s3_profile_parse(const char *text, size_t size, struct s3_profile_file *ret)
{
	struct s3_profile_file file = {.text = malloc(size + 1), .size = size};
	struct parsing parsing = {NULL, ""};
	char *line = file.text, *end;

	if (!file.text)
		return -ENOMEM;
	memcpy(file.text, text, size);
	file.text[size] = '\0';
	for (; line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		if (parse_line(&file, &parsing, line)) {
			s3_profile_free(&file);
			return -ENOMEM;
		}
	}
	*ret = file;
	return 0;
}

void s3_profile_free(struct s3_profile_file *file)
{
	if (file->text)
		explicit_bzero(file->text, file->size);
	free(file->text);
	free(file->items);
	*file = (struct s3_profile_file){.text = NULL};
}

const char *s3_profile_item(const struct s3_profile_file *file, const char *section,
			    const char *parent, const char *key)
{
	for (size_t i = file->n; i-- > 0;) {
		const struct s3_profile_item *item = &file->items[i];

		if (strcmp(item->section, section) == 0 && strcasecmp(item->key, key) == 0 &&
		    strcasecmp(item->parent, parent) == 0)
			return item->value;
	}
	return NULL;
}

/* ---- the two files ---- */

static void path_of(const char *variable, const char *name, char ret[512])
{
	const char *said = base_variable(variable), *home = base_variable("HOME");
	int n;

	if (said && *said == '~' && said[1] == '/' && home)
		n = snprintf(ret, 512, "%s%s", home, said + 1);
	else if (said)
		n = snprintf(ret, 512, "%s", said);
	else
		n = home ? snprintf(ret, 512, "%s/.aws/%s", home, name) : 512;
	if (n < 0 || n >= 512)
		ret[0] = '\0';
}

static int unreadable(const char *path, int error, struct diag *diag)
{
	return diag_fail(diag, error == ENOMEM ? -ENOMEM : -EACCES, "%s cannot be read: %s",
			 BASE_QUOTED(path, 300), strerror(error));
}

static int read_fd(const char *path, int fd, struct s3_profile_file *ret, struct diag *diag)
{
	struct stat st;
	char *text;
	int r;

	if (fstat(fd, &st))
		return unreadable(path, errno, diag);
	if (!S_ISREG(st.st_mode))
		return S_ISCHR(st.st_mode) ? 0 : unreadable(path, EINVAL, diag);
	if (st.st_size > (off_t)S3_PROFILE_MOST_FILE)
		return unreadable(path, EFBIG, diag);
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	r = base_read_at(fd, text, (uint64_t)st.st_size, 0);
	r = r ? unreadable(path, -r, diag) : s3_profile_parse(text, (size_t)st.st_size, ret);
	explicit_bzero(text, (size_t)st.st_size);
	free(text);
	return r;
}

static int read_file(const char *path, struct s3_profile_file *ret, struct diag *diag)
{
	_cleanup_close_ int fd = *path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

	if (fd < 0 && (!*path || errno == ENOENT || errno == ENOTDIR))
		return 0;
	return fd < 0 ? unreadable(path, errno, diag) : read_fd(path, fd, ret, diag);
}

int s3_profiles_read(struct s3_profiles *ret)
{
	struct s3_profiles profiles = {.config_path = ""};
	int r;

	path_of("AWS_CONFIG_FILE", "config", profiles.config_path);
	path_of("AWS_SHARED_CREDENTIALS_FILE", "credentials", profiles.credentials_path);
	r = read_file(profiles.config_path, &profiles.config, &profiles.refused);
	if (r != -ENOMEM)
		r = read_file(profiles.credentials_path, &profiles.credentials, &profiles.refused);
	if (r == -ENOMEM)
		s3_profiles_free(&profiles);
	else
		*ret = profiles;
	return r == -ENOMEM ? r : 0;
}

void s3_profiles_free(struct s3_profiles *profiles)
{
	s3_profile_free(&profiles->config);
	s3_profile_free(&profiles->credentials);
}

static bool has_section(const struct s3_profile_file *file, const char *section)
{
	for (size_t i = 0; i < file->n; i++)
		if (strcmp(file->items[i].section, section) == 0)
			return true;
	return false;
}

/* The section of a profile in the file of configuration; the default one may be called either way. */
static const char *section_in_config(const struct s3_profiles *profiles, const char *profile,
				     char ret[300])
{
	snprintf(ret, 300, "profile %s", profile);
	return strcmp(profile, "default") == 0 && !has_section(&profiles->config, ret) ? "default"
										       : ret;
}

bool s3_profiles_have(const struct s3_profiles *profiles, const char *profile)
{
	char section[300];

	return has_section(&profiles->credentials, profile) ||
	       has_section(&profiles->config, section_in_config(profiles, profile, section));
}

const char *s3_profiles_nested(const struct s3_profiles *profiles, const char *profile,
			       const char *parent, const char *key)
{
	char section[300];
	const char *value = s3_profile_item(&profiles->credentials, profile, parent, key);

	if (!value || !*value)
		value = s3_profile_item(&profiles->config,
					section_in_config(profiles, profile, section), parent, key);
	return value && *value ? value : NULL;
}

const char *s3_profiles_get(const struct s3_profiles *profiles, const char *profile,
			    const char *key)
{
	return s3_profiles_nested(profiles, profile, "", key);
}

const char *s3_profiles_service(const struct s3_profiles *profiles, const char *name,
				const char *service, const char *key)
{
	char section[300];
	const char *value;

	snprintf(section, sizeof(section), "services %s", name);
	value = s3_profile_item(&profiles->config, section, service, key);
	return value && *value ? value : NULL;
}

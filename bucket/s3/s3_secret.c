/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/s3/s3_secret.h"

#include <fcntl.h>
#include <unistd.h>

bool s3_secret_trim(char *text)
{
	size_t bytes = strlen(text), from = strspn(text, " \t\r\n");

	while (bytes > from && strchr(" \t\r\n", text[bytes - 1]))
		bytes--;
	text[bytes] = '\0';
	memmove(text, text + from, bytes - from + 1);
	for (const char *at = text; *at; at++)
		if (*at < ' ' || *at > '~')
			return false;
	return *text != '\0';
}

int s3_secret_read(const char *path, const char *what, char **ret, struct diag *diag)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_wipe_ char *text = calloc(1, S3_SECRET_MOST + 1);
	ssize_t bytes;

	if (!text)
		return -ENOMEM;
	bytes = fd < 0 ? -1 : read(fd, text, S3_SECRET_MOST);
	if (bytes < 0)
		return diag_fail(diag, -EACCES, "%s %s cannot be read: %s", what,
				 BASE_QUOTED(path, 300), strerror(errno));
	if (bytes == S3_SECRET_MOST || strlen(text) != (size_t)bytes || !s3_secret_trim(text))
		return diag_fail(diag, -EACCES, "%s %s has no token in it", what,
				 BASE_QUOTED(path, 300));
	*ret = base_take_ptr(text);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files that stand beside tests in the tree, also for what a program does before its tests. */

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* tests/FOLDER/NAME; the caller closes it. */
static inline FILE *data_open(const char *folder, const char *name)
{
	const char *top = getenv("top_srcdir");
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/%s/%s", top ? top : ".", folder, name);
	file = fopen(path, "re");
	if (!file)
		err(EXIT_FAILURE, "%s", path);
	return file;
}

/* All of it, which is less than room. Returns its size. */
static inline size_t data_read(const char *folder, const char *name, void *to, size_t room)
{
	FILE *file = data_open(folder, name);
	const size_t size = fread(to, 1, room, file);

	fclose(file);
	if (size == room)
		errx(EXIT_FAILURE, "%s is larger than %zu bytes", name, room);
	return size;
}

/* All of it, in memory of exactly its size, so that a sanitizer sees a byte too many. The caller frees it. */
static inline uint8_t *data_load(const char *folder, const char *name, size_t *ret_size)
{
	FILE *file = data_open(folder, name);
	uint8_t *data;

	fseek(file, 0, SEEK_END);
	*ret_size = (size_t)ftell(file);
	rewind(file);
	data = malloc(*ret_size ? *ret_size : 1);
	if (!data || fread(data, 1, *ret_size, file) != *ret_size)
		errx(EXIT_FAILURE, "%s cannot be read", name);
	fclose(file);
	return data;
}

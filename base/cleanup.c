/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the cleanup attributes call. An owning local is declared with one of them and set to NULL or
 * -1 at once; what leaves the function leaves by base_take_ptr() or base_take_fd(). So no error
 * path has a label, and none can forget one.
 *
 * errno is kept: a function may return -errno after its locals have gone.
 */

#include "base/base.h"

#include <unistd.h>

void base_freep(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}

void base_wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void base_close(int *fd)
{
	int saved = errno;

	/* Never again after EINTR: Linux has closed it, the number may be another thread's by
	 * now. */
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

void base_closep(const int *fd)
{
	int owned = *fd;

	base_close(&owned);
}

/* ---- arrays: how they grow, and what qsort() and bsearch() ask ---- */

bool base_grow(void *pointer_to_pointer, size_t *room, size_t needed, size_t each)
{
	void **p = pointer_to_pointer, *more;
	size_t want = BASE_MAX(*room, (size_t)16);

	if (needed <= *room)
		return true;
	while (want < needed)
		want *= 2;
	more = reallocarray(*p, want, each);
	if (!more)
		return false;
	*p = more;
	*room = want;
	return true;
}

int base_compare_u32(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return BASE_ORDER(x, y);
}

int base_compare_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return BASE_ORDER(x, y);
}

int base_compare_times(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? BASE_ORDER(a->tv_sec, b->tv_sec)
				      : BASE_ORDER(a->tv_nsec, b->tv_nsec);
}

int base_compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The catalogue's bytes: written once by accessd, sealed, then read by clients. Places follow from
 * the head's numbers, so there is nothing to forge but contents, and those are checked when a client
 * attaches: after that each accessor is a load.
 *
 * Who gives a memory away cannot take it back, so it has to know whether it is still out. The kernel
 * tells whether a file is open elsewhere to who wants a lease on it. It counts what was opened by open(), which
 * memfd_create() is not, and counts once what was opened once, however often it was passed on; so
 * the maker keeps one opening, of its own, and gives away others. What is pinned without being open, by
 * O_PATH or inotify, it does not count.
 */

#include "shmring/catalog.h"

#include <fcntl.h>
#include <stdio.h>

#include "shmring/region.h"

struct places {
	uint64_t start, names, bytes;
};

/* false: a number is beyond all limits. */
static bool place(const struct catalog_head *head, struct places *ret)
{
	if (head->n > CATALOG_MAX_SAMPLES || head->n_classes > UINT32_MAX ||
	    head->names_bytes > CATALOG_MAX_NAMES)
		return false;
	ret->start = sizeof(*head) + base_align_up(head->n * sizeof(uint32_t), 8);
	ret->names = ret->start + (head->n_classes + 1) * sizeof(uint64_t);
	ret->bytes = ret->names + head->names_bytes;
	return true;
}

/* ---- writing ---- */

int catalog_new(const struct catalog_head *head, struct catalog_draft *ret)
{
	struct catalog_draft draft = {.head = *head, .fd = -1};
	struct places places;

	draft.head.magic = CATALOG_MAGIC;
	if (!place(head, &places))
		return -EOVERFLOW;
	draft.bytes = places.bytes;
	draft.fd = base_memfd("access-catalog", draft.bytes);
	if (draft.fd < 0)
		return draft.fd;
	*ret = draft;
	return 0;
}

int catalog_begin(struct catalog_draft *draft)
{
	struct places places;
	int r = place(&draft->head, &places) ? 0 : -EOVERFLOW;

	r = r ? r : region_reserve(draft->fd, 0, draft->bytes);
	r = r ? r : region_map(draft->fd, draft->bytes, true, &draft->map);
	if (r)
		return r;
	draft->label = (uint32_t *)(void *)((uint8_t *)draft->map + sizeof(draft->head));
	draft->start = (uint64_t *)(void *)((uint8_t *)draft->map + places.start);
	draft->names = (char *)draft->map + places.names;
	return 0;
}

void catalog_add_class(struct catalog_draft *draft, const char *name)
{
	size_t size = strlen(name) + 1;

	if (draft->classes >= draft->head.n_classes || size > draft->head.names_bytes - draft->used)
		return; /* not as announced: catalog_seal() finds out */
	memcpy(draft->names + draft->used, name, size);
	draft->start[draft->classes++] = draft->used;
	draft->used += size;
	draft->start[draft->classes] = draft->used;
}

void catalog_drop(struct catalog_draft *draft)
{
	region_unmap(draft->map, draft->bytes);
	base_close(&draft->fd);
	draft->map = NULL;
}

int catalog_seal(struct catalog_draft *draft)
{
	if (draft->classes != draft->head.n_classes || draft->used != draft->head.names_bytes)
		return -EINVAL;
	memcpy(draft->map, &draft->head, sizeof(draft->head));
	region_unmap(draft->map, draft->bytes); /* F_SEAL_WRITE wants no writable mapping */
	draft->map = NULL;
	return region_seal(draft->fd, REGION_IMMUTABLE);
}

int catalog_take(struct catalog_draft *draft, int *ret_fd)
{
	int r = catalog_lend(draft->fd, ret_fd);

	catalog_drop(draft);
	return r;
}

/* ---- given away ---- */

int catalog_lend(int fd, int *ret_fd)
{
	char path[64];
	int lent;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	lent = open(path, O_RDONLY | O_CLOEXEC);
	if (lent < 0)
		return -errno;
	*ret_fd = lent;
	return 0;
}

bool catalog_is_lent(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return errno == EAGAIN;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

/* ---- attaching ---- */

static bool names_are_good(const struct catalog *catalog)
{
	uint64_t at = catalog->start[0], next;

	if (at != 0 || catalog->start[catalog->head.n_classes] != catalog->head.names_bytes)
		return false;
	for (uint64_t i = 0; i < catalog->head.n_classes; i++, at = next) {
		next = catalog->start[i + 1];
		if (next <= at || next > catalog->head.names_bytes ||
		    memchr(catalog->names + at, 0, next - at) != catalog->names + next - 1)
			return false;
	}
	return true;
}

static bool labels_are_good(const struct catalog *catalog)
{
	uint64_t classes = BASE_MAX(catalog->head.n_classes, 1), bad = 0;

	for (uint64_t i = 0; i < catalog->head.n; i++)
		bad |= catalog->label[i] >= classes;
	return !bad;
}

static int check(struct catalog *catalog)
{
	const uint8_t *map = catalog->map;
	struct places places;

	memcpy(&catalog->head, map, sizeof(catalog->head));
	if (catalog->head.magic != CATALOG_MAGIC || !place(&catalog->head, &places) ||
	    places.bytes != catalog->bytes)
		return CATALOG_E_BAD;
	catalog->label = (const uint32_t *)(const void *)(map + sizeof(catalog->head));
	catalog->start = (const uint64_t *)(const void *)(map + places.start);
	catalog->names = (const char *)map + places.names;
	return names_are_good(catalog) && labels_are_good(catalog) ? 0 : CATALOG_E_BAD;
}

int catalog_attach(int fd, struct catalog *ret)
{
	struct catalog catalog;
	void *map;
	int r = region_attach_any(fd, REGION_IMMUTABLE, sizeof(catalog.head), UINT64_MAX, false,
				  &map, &catalog.bytes);

	if (r)
		return r < 0 ? r : CATALOG_E_BAD;
	catalog.map = map;
	r = check(&catalog);
	if (r)
		region_unmap(map, catalog.bytes);
	else
		*ret = catalog;
	return r;
}

void catalog_detach(struct catalog *catalog)
{
	region_unmap(catalog->map, catalog->bytes);
	catalog->map = NULL;
}

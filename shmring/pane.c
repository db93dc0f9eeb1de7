/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sequence lock. The text is copied word by word with atomic loads and stores, so that a torn copy is no race but a copy
 * that is thrown away:
 *
 *   writer: d_seq odd; words, d_size, each release (P1); d_seq even, release (P2)
 *   reader: d_seq, acquire (Q1, pairs with P2); d_size, words, each acquire (Q2, pairs with P1); d_seq again
 *
 * If a reader's word is of a writing that had begun after Q1, then by P1 and Q2 its second look at d_seq finds that
 * writing's number. A writer never waits for readers, so one that is stopped holds up nobody; readers give up after a few
 * tries and come back at their next time.
 */

#include "shmring/pane.h"

#include "shmring/region.h"

#define PANE_TRIES 8

/* Not a flexible member: the layout's struct is the head alone. */
static _Atomic uint64_t *pane_words(const struct layout_pane *map)
{
	return (_Atomic uint64_t *)((uintptr_t)map + sizeof(*map));
}

/* ---- accessd ---- */

int pane_new(uint64_t room, struct pane *ret)
{
	uint64_t bytes = base_align_up(room + sizeof(struct layout_pane), base_page_size());
	struct pane pane = {.bytes = bytes, .room = bytes - sizeof(struct layout_pane), .fd = -1};
	void *map;
	int r = region_new("oneaccess-pane", REGION_READ_ONLY, bytes, &map, &pane.fd);

	if (r)
		return r;
	pane.map = map;
	pane.map->magic = LAYOUT_MAGIC_PANE;
	pane.map->version = LAYOUT_VERSION;
	pane.map->head_bytes = sizeof(*pane.map);
	pane.map->room = pane.room;
	*ret = pane;
	return 0;
}

int pane_write(struct pane *pane, const char *text, size_t size)
{
	struct layout_pane *map = pane->map;
	uint64_t seq = atomic_load_explicit(&map->d_seq, memory_order_relaxed);

	if (size > pane->room)
		return PANE_E_ROOM;
	atomic_store_explicit(&map->d_seq, seq + 1, memory_order_relaxed);
	for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, text + at, BASE_MIN(size - at, sizeof(word)));
		atomic_store_explicit(&pane_words(map)[at / sizeof(word)], word,
				      memory_order_release); /* P1: pairs with Q2 */
	}
	atomic_store_explicit(&map->d_size, size, memory_order_release);   /* P1 */
	atomic_store_explicit(&map->d_seq, seq + 2, memory_order_release); /* P2: pairs with Q1 */
	return 0;
}

void pane_end(struct pane *pane)
{
	if (!pane->map)
		return;
	atomic_store_explicit(&pane->map->d_ended, 1, memory_order_relaxed); /* orders nothing */
	region_unmap(pane->map, pane->bytes);
	base_close(&pane->fd);
	pane->map = NULL;
}

/* ---- a watcher ---- */

int pane_attach(int fd, struct pane_view *ret)
{
	struct pane_view view = {.seq = 0};
	struct layout_pane head;
	void *map;
	int r =
	    region_attach_any(fd, REGION_READ_ONLY, sizeof(head) + 1,
			      PANE_MAX + sizeof(head) + base_page_size(), false, &map, &view.bytes);

	if (r)
		return r < 0 ? r : PANE_E_BAD;
	memcpy(&head, map, sizeof(head)); /* what is used of it is never written again */
	if (head.magic != LAYOUT_MAGIC_PANE || head.version != LAYOUT_VERSION ||
	    head.head_bytes != sizeof(head) || head.room != view.bytes - sizeof(head)) {
		region_unmap(map, view.bytes);
		return PANE_E_BAD;
	}
	view.map = map;
	view.room = view.bytes - sizeof(head);
	*ret = view;
	return 0;
}

/* One try. */
static int pane_copy(struct pane_view *view, char *to, size_t *ret_size)
{
	const struct layout_pane *map = view->map;
	uint64_t seq =
	    atomic_load_explicit(&map->d_seq, memory_order_acquire); /* Q1: pairs with P2 */
	uint64_t size = atomic_load_explicit(&map->d_size, memory_order_acquire); /* Q2 */

	if (seq % 2)
		return PANE_E_BUSY;
	if (seq == view->seq)
		return PANE_E_OLD;
	for (uint64_t at = 0; size <= view->room && at < size; at += sizeof(uint64_t)) {
		uint64_t word = atomic_load_explicit(&pane_words(map)[at / sizeof(word)],
						     memory_order_acquire); /* Q2: pairs with P1 */

		memcpy(to + at, &word, sizeof(word));
	}
	/* Whoever has a word of a newer text has its odd number, too. */
	if (atomic_load_explicit(&map->d_seq, memory_order_relaxed) != seq)
		return PANE_E_BUSY;
	if (size > view->room)
		return PANE_E_BAD;
	view->seq = seq;
	*ret_size = (size_t)size;
	return 0;
}

int pane_read(struct pane_view *view, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *text = malloc(view->room + sizeof(uint64_t) + 1);
	int r = PANE_E_BUSY;

	if (!text)
		return -ENOMEM;
	if (atomic_load_explicit(&view->map->d_ended, memory_order_relaxed))
		return PANE_E_ENDED;
	for (unsigned i = 0; i < PANE_TRIES && r == PANE_E_BUSY; i++)
		r = pane_copy(view, text, ret_size);
	if (r)
		return r;
	text[*ret_size] = '\0';
	*ret = base_take_ptr(text);
	return 0;
}

void pane_detach(struct pane_view *view)
{
	region_unmap(view->map, view->bytes);
	view->map = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Slots that can become private, page by page, without their address changing.
 *
 * A view is a second mapping of the slots, MAP_PRIVATE and read-only. As long as nobody writes, it is the
 * shared memory: its pages are those of the memfd, without a copy and without a call. A slot of it that is
 * opened can be written to, and the kernel copies each page that is. So can pages be copied as they are
 * (MADV_POPULATE_WRITE), by which a batch outlives the pin of its slot: arrays stay where they are.
 *
 *   shared --open--> private --last chunk in the slot leaves--> shared
 *
 * A private page hides what the daemon writes there from then on. That is noticed in two places. When the
 * last chunk in the slot leaves, which is before its grant is released, private pages are dropped. As long
 * as others are in it, and be it one that is kept while the slot has new contents, batches are copied from
 * the session's shared mapping (view_is_private()).
 *
 * A page may have the end of one sample and the beginning of the next, which is being decoded while the
 * first one is written to. is_private is set before the page can be copied, and is read after the next
 * sample was seen finished: who reads false will see all of it in the copy, too, and who reads true copies
 * from the shared mapping. Both are sequentially consistent.
 *
 * The memory is the program's own, and no more than it keeps or writes to. Rejected: a page fault for each
 * batch (mapped writable from the start, what was written is only known to the kernel: dropping all costs
 * a batch of 37 MiB 9,000 faults); pagemap's soft-dirty bits (two system calls a chunk); PyTorch's _version
 * (says nothing of what is written through pointers).
 */

#include "libaccess/connect/view.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include "base/base.h"
#include "shmring/region.h"

struct view_slot {
	uint32_t users; /* chunks in it */
	bool is_kept;
	atomic_bool is_private;
};

struct view {
	uint8_t *memory;
	uint64_t bytes, stride;
	uint64_t offset[LAYOUT_MAX_FIELDS];
	uint32_t refs;
	struct view_slot slot[];
};

int view_new(int slots_fd, const struct slot_geometry *geometry, struct view **ret)
{
	struct view *view =
	    calloc(1, sizeof(*view) + geometry->max_slots * sizeof(struct view_slot));
	int r;

	if (!view)
		return -ENOMEM;
	r = slots_view(slots_fd, geometry, &view->memory);
	if (r) {
		free(view);
		return r;
	}
	view->bytes = geometry->slots_bytes;
	view->stride = geometry->slot_stride;
	for (uint32_t i = 0; i < geometry->n_fields; i++)
		view->offset[i] = geometry->field[i].offset;
	view->refs = 1;
	*ret = view;
	return 0;
}

void view_ref(struct view *view)
{
	view->refs++;
}

void view_unref(struct view *view)
{
	if (!view || --view->refs > 0)
		return;
	region_unmap(view->memory, view->bytes);
	free(view);
}

uint8_t *view_slot(const struct view *view, uint32_t slot)
{
	return view->memory + slot * view->stride;
}

uint64_t view_offset(const struct view *view, uint32_t field)
{
	return view->offset[field];
}

const uint8_t *view_memory(const struct view *view)
{
	return view->memory;
}

/* ---- chunks in a slot ---- */

BASE_HOT void view_enter(struct view *view, uint32_t slot)
{
	view->slot[slot].users++;
}

/* What cannot be dropped stays private, and batches in it copies. */
static BASE_COLD void view_close(struct view *view, uint32_t slot)
{
	uint8_t *at = view_slot(view, slot);

	if (mprotect(at, (size_t)view->stride, PROT_READ) == 0 &&
	    madvise(at, (size_t)view->stride, MADV_DONTNEED) == 0)
		atomic_store(&view->slot[slot].is_private, false);
	view->slot[slot].is_kept = false;
}

BASE_HOT bool view_leave(struct view *view, uint32_t slot)
{
	bool is_written;

	if (--view->slot[slot].users > 0 || !view_is_private(view, slot))
		return false;
	is_written = !view->slot[slot].is_kept;
	view_close(view, slot);
	return is_written;
}

BASE_HOT bool view_is_private(const struct view *view, uint32_t slot)
{
	return atomic_load(&view->slot[slot].is_private);
}

/* ---- private ---- */

int view_open(struct view *view, uint32_t slot)
{
	int saved = errno, r = 0;

	atomic_store(&view->slot[slot].is_private, true);
	if (mprotect(view_slot(view, slot), (size_t)view->stride, PROT_READ | PROT_WRITE) < 0)
		r = -errno;
	errno = saved;
	return r;
}

int view_keep(struct view *view, uint32_t slot, uint64_t offset, uint64_t bytes)
{
	uint64_t page = base_page_size(), first = offset / page * page;
	uint8_t *at = view_slot(view, slot) + first;
	size_t size = (size_t)(base_align_up(offset + bytes, page) - first);

	view->slot[slot].is_kept = true;
	while (madvise(at, size, MADV_POPULATE_WRITE) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

bool view_is_kept(const struct view *view, uint32_t slot)
{
	return view->slot[slot].is_kept;
}

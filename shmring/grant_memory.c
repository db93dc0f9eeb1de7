/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memories of grants: an inbox that accessd writes and a rank reads, an outbox the other way
 * round. Each is made by accessd, so that both are reserved and sealed, and mapped by each side
 * with no more rights than it needs: accessd cannot write the outbox by mistake, the rank cannot
 * write the inbox at all.
 */

#include "shmring/grant.h"
#include "shmring/region.h"

static uint64_t inbox_bytes(void)
{
	return base_align_up(sizeof(struct layout_inbox), base_page_size());
}

static uint64_t outbox_bytes(void)
{
	return base_align_up(sizeof(struct layout_outbox), base_page_size());
}

/* ---- accessd ---- */

static int inbox_new(struct layout_inbox **ret, int *ret_fd)
{
	struct layout_inbox *inbox;
	void *map;
	int r = region_new("oneaccess-inbox", REGION_READ_ONLY, inbox_bytes(), &map, ret_fd);

	if (r)
		return r;
	inbox = map;
	inbox->magic = LAYOUT_MAGIC_INBOX;
	inbox->version = LAYOUT_VERSION;
	inbox->ring = LAYOUT_GRANT_RING;
	inbox->bytes = sizeof(*inbox);
	*ret = inbox;
	return 0;
}

static int outbox_new(const struct layout_outbox **ret, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	struct layout_outbox *outbox;
	void *map;
	int r = region_new("oneaccess-outbox", REGION_SHARED, outbox_bytes(), &map, &fd);

	if (r)
		return r;
	outbox = map;
	outbox->magic = LAYOUT_MAGIC_OUTBOX;
	outbox->version = LAYOUT_VERSION;
	outbox->ring = LAYOUT_GRANT_RING;
	outbox->bytes = sizeof(*outbox);
	atomic_store_explicit(&outbox->c_next, 1, memory_order_relaxed);
	region_unmap(map, outbox_bytes());
	r = region_map(fd, outbox_bytes(), false, &map);
	if (r)
		return r;
	*ret = map;
	*ret_fd = base_take_fd(&fd);
	return 0;
}

int grant_memory_new(struct layout_inbox **ret_inbox, int *ret_inbox_fd,
		     const struct layout_outbox **ret_outbox, int *ret_outbox_fd)
{
	_cleanup_close_ int inbox_fd = -1;
	struct layout_inbox *inbox;
	int r = inbox_new(&inbox, &inbox_fd);

	if (r)
		return r;
	r = outbox_new(ret_outbox, ret_outbox_fd);
	if (r) {
		region_unmap(inbox, inbox_bytes());
		return r;
	}
	*ret_inbox = inbox;
	*ret_inbox_fd = base_take_fd(&inbox_fd);
	return 0;
}

void grant_memory_free(struct layout_inbox *inbox, const struct layout_outbox *outbox)
{
	grant_memory_detach(inbox, (struct layout_outbox *)outbox);
}

/* ---- the rank ---- */

static bool inbox_is_good(const struct layout_inbox *inbox)
{
	return inbox->magic == LAYOUT_MAGIC_INBOX && inbox->version == LAYOUT_VERSION &&
	       inbox->ring == LAYOUT_GRANT_RING && inbox->bytes == sizeof(*inbox);
}

static bool outbox_is_good(const struct layout_outbox *outbox)
{
	return outbox->magic == LAYOUT_MAGIC_OUTBOX && outbox->version == LAYOUT_VERSION &&
	       outbox->ring == LAYOUT_GRANT_RING && outbox->bytes == sizeof(*outbox);
}

int grant_memory_attach(int inbox_fd, int outbox_fd, const struct layout_inbox **ret_inbox,
			struct layout_outbox **ret_outbox)
{
	void *inbox = NULL, *outbox = NULL;
	int r = region_attach(inbox_fd, REGION_READ_ONLY, inbox_bytes(), false, &inbox);

	r = r ? r : region_attach(outbox_fd, REGION_SHARED, outbox_bytes(), true, &outbox);
	if (!r && (!inbox_is_good(inbox) || !outbox_is_good(outbox)))
		r = REGION_E_BAD;
	if (r) {
		grant_memory_detach(inbox, outbox);
		return r < 0 ? r : GRANT_E_BAD;
	}
	*ret_inbox = inbox;
	*ret_outbox = outbox;
	return 0;
}

void grant_memory_detach(const struct layout_inbox *inbox, struct layout_outbox *outbox)
{
	region_unmap(inbox, inbox_bytes());
	region_unmap(outbox, outbox_bytes());
}

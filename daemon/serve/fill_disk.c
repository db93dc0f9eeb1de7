/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of reading (sched/fair_read.h), where work is begun: in fill_feed(). Of streams whose data sets lie on the same device, those
 * that wait for it have its bytes by their tenants' shares, as processors are shared (fill_fair.c): each tenant's goes in
 * equal parts to his streams that wait for that device. What was read is charged before more is begun.
 *
 * What is kept, here or on other nodes, is not asked of that disk.
 *
 * Two devices that are one disk below are not known as such, and neither are two mounts of one server. Where the user's own
 * processes make the samples there is no disk of ours.
 */
#include "daemon/serve/fill_parts.h"

#include "daemon/node.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"

#define RETRY_NS UINT64_C(10000000)

static bool is_on_disk(const struct stream *stream)
{
	return fill_is_busy(stream) && stream->source && !stream->source->root.is_made;
}

static bool is_on(const struct stream *stream, uint64_t device)
{
	return is_on_disk(stream) && stream->source->root.device == device;
}

/* ---- shares ---- */

static void weigh_device(struct node *node, uint64_t device, uint64_t now_ns)
{
	fill_count_none(node);
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link)
			if (is_on(stream, device) &&
			    fair_read_is_bound(&stream->share.reading, now_ns))
				fill_count(stream);
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link) {
			if (!is_on(stream, device))
				continue;
			stream->share.disk_weighed_ns = now_ns;
			if (fair_read_is_bound(&stream->share.reading, now_ns))
				stream->share.reading.fair.weight = fill_weight(stream);
		}
}

void fill_disk_weigh(struct node *node, uint64_t now_ns)
{
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link)
			if (is_on_disk(stream) && stream->share.disk_weighed_ns != now_ns)
				weigh_device(node, stream->source->root.device, now_ns);
}

/* ---- what was read ---- */

static void settle(struct stream *stream, uint64_t now_ns)
{
	fair_read_settle(&stream->share.reading, fill_samples(stream) - stream->share.disk_samples,
			 fill_under_way(stream->fill),
			 (double)(stream->figures.bytes_read - stream->share.disk_bytes), now_ns);
	stream->share.disk_samples = fill_samples(stream);
	stream->share.disk_bytes = stream->figures.bytes_read;
}

void fill_disk_tick(struct node *node, double passed_ns)
{
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link)
			fair_read_tick(&stream->share.reading, passed_ns);
}

/* ---- what may be begun ---- */

void fill_disk_enter(struct stream *stream)
{
	double least = -1;

	if (!is_on_disk(stream))
		return;
	if (stream->share.reading.fair.cost <= 0)
		stream->share.reading.fair.cost = fill_mean_bytes(stream);
	BASE_EACH(domain, &stream->node->domains, link)
		BASE_EACH(other, &domain->streams, link) {
			const double reached =
			    fair_reached(&other->share.reading.fair, fill_under_way(other->fill));

			if (other != stream && is_on(other, stream->source->root.device) &&
			    (least < 0 || reached < least))
				least = reached;
		}
	fair_enter(&stream->share.reading.fair, least);
}

uint32_t fill_disk_share(struct stream *stream, uint64_t now_ns, uint64_t *ret_until_ns)
{
	struct fair_read *one = &stream->share.reading;
	struct fair_node disk = {.rate = 0};
	double least = -1;
	uint32_t room;

	settle(stream, now_ns);
	stream->share.is_read_limited = false;
	if (stream->node->shares.n_busy < 2 || !is_on_disk(stream))
		return FAIR_ALL;
	fill_look(stream, now_ns);
	fair_read_add(&disk, one);
	BASE_EACH(domain, &stream->node->domains, link)
		BASE_EACH(other, &domain->streams, link) {
			if (other == stream || !is_on(other, stream->source->root.device))
				continue;
			fill_look(other, now_ns);
			if (!fair_read_wants(&other->share.reading, now_ns))
				continue;
			fair_read_add(&disk, &other->share.reading);
			fair_look(&other->share.reading.fair, &least);
		}
	BASE_EACH(domain, &stream->node->domains, link)
		BASE_EACH(other, &domain->streams, link)
			if (other != stream && is_on(other, stream->source->root.device))
				fair_pass(&other->share.reading.fair, &one->fair, &disk, least);
	room = fair_read_room(one, &disk, least, fill_under_way(stream->fill), now_ns);
	stream->share.held += room == 0;
	stream->share.is_read_limited = room == 0;
	*ret_until_ns = now_ns + RETRY_NS;
	return room;
}

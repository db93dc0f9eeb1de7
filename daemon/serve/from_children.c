/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a domain's reader says, and what becomes of it and of the workers, are news for sources, streams, stores and chores:
 * each is told here, and none of them knows where it comes from.
 */
#include "daemon/serve/from_children.h"

#include "base/hash.h"
#include "base/wire.h"
#include "daemon/cache/cache.h"
#include "daemon/cache/chores.h"
#include "daemon/cache/ram_cache.h"
#include "daemon/cache/stores.h"
#include "daemon/cluster/everywhere.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/proc/reading.h"
#include "daemon/serve/fill_state.h"
#include "daemon/serve/revisit.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/streams.h"
#include "daemon/tenant/domain.h"
#include "storage/reader.h"

#define ITEMS_TABLE "daemon/proc/reading_tbl.h"
#define ITEMS_STRUCT(name) reading_##name
#define ITEMS_UNION reading_message
#define ITEMS_KEY(KEY) READER_KEY_##KEY
#define ITEMS_TYPE(NAME) READER_##NAME
#define ITEMS_WHOSE "reader's "
#include "base/items_structs_tbl.h"
#include "base/items_types_tbl.h"

static void on_opened(struct domain *domain, const struct reading_opened *opened,
		      struct wire_in *in)
{
	struct source_root root = {.device = opened->device,
				   .inode = opened->inode,
				   .is_file = opened->has_stamp,
				   .is_made = opened->has_is_made && opened->is_made,
				   .stamp = opened->has_stamp ? opened->stamp : 0};
	int fd = wire_take_fd(in, opened->index_fd);

	root.is_everywhere = domain->kind == DOMAIN_PUBLIC && opened->way &&
			     everywhere_has(domain->node->param.cluster_paths, opened->way);
	if (root.is_everywhere)
		hash_of(opened->way, strlen(opened->way), &root.way);
	if (opened->shown)
		source_called(domain, opened->id, opened->shown);
	source_opened(domain, opened->id, fd < 0, opened->is_fleeting != 0, &root, fd);
}

static void on_looked(struct domain *domain, const struct reading_looked *looked)
{
	const struct source_root root = {.device = looked->device, .inode = looked->inode};

	source_looked(domain, looked->id, &root, looked->is_open != 0);
}

static void on_refused(struct domain *domain, const struct reading_refused *refused)
{
	if (refused->has_queue)
		stream_queue_refused(domain, refused->queue, refused->text);
	else
		source_refused(domain, refused->id, refused->text);
}

static void on_state(struct domain *domain, const struct reading_state *said)
{
	struct reader_state state;

	memcpy(&state, said->state, sizeof(state));
	disk_cache_said(&domain->disk_cache, &state, said->why);
	ram_cache_said(domain, &state);
}

static void on_formed(struct domain *domain, const struct reading_formed *formed,
		      struct wire_in *in)
{
	struct stream *stream = stream_of_queue(domain, formed->queue);
	_cleanup_close_ int fd = wire_take_fd(in, formed->table_fd);

	if (stream)
		cache_formed(stream, formed->form, fd, formed->why ? formed->why : "");
}

static void on_chore_done(struct domain *domain, const struct reading_chore_done *done,
			  struct wire_in *in)
{
	int fd = wire_take_fd(in, done->list_fd);

	chores_done(domain, done->id, done->code, done->text, fd);
	porter_close(&domain->node->porters, domain->who.uid, &fd);
}

static void on_failed(struct domain *domain, const struct reading_failed *failed)
{
	stream_read_failed(domain, failed->queue, failed->row, failed->task, failed->sample);
}

static bool on_said(struct domain *domain, struct wire_in *in)
{
	union reading_message message;

	if (!keeper_reads(&domain->reading.keeper, in, items_types, BASE_ARRAY_LEN(items_types),
			  &message))
		return false;
	switch (in->type) {
	case READER_PROGRESS:
		source_progress(domain, message.progress.id, message.progress.folders,
				message.progress.files);
		break;
	case READER_OPENED:
		on_opened(domain, &message.opened, in);
		break;
	case READER_LOOKED:
		on_looked(domain, &message.looked);
		break;
	case READER_REFUSED:
		on_refused(domain, &message.refused);
		break;
	case READER_ATTACHED:
		stream_queue_attached(domain, message.attached.queue);
		break;
	case READER_DETACHED:
		break;
	case READER_STATE:
		on_state(domain, &message.state);
		break;
	case READER_FORMED:
		on_formed(domain, &message.formed, in);
		break;
	case READER_CHORE_PROGRESS:
		chores_progress(domain, message.chore_progress.id, message.chore_progress.done,
				message.chore_progress.total);
		break;
	case READER_CHORE_DONE:
		on_chore_done(domain, &message.chore_done, in);
		break;
	case READER_ASK_UNREAD:
		ram_cache_asked(domain, message.ask_unread.id);
		break;
	case READER_WRONG:
		carrying_distrust(&domain->carrying, message.wrong.id, message.wrong.sample);
		break;
	case READER_REVISITED:
		revisit_said(domain, message.revisited.queue, message.revisited.id,
			     message.revisited.code == 0);
		break;
	case READER_FAILED:
		on_failed(domain, &message.failed);
		break;
	default: /* of no type in the table */
		return false;
	}
	return true;
}

/* ---- life ---- */

static void on_started(struct domain *domain)
{
	carrying_reader_started(&domain->carrying);
	if (domain->disk_cache.share == DISK_CACHE_HAS)
		stores_tell(domain);
	else
		stores_ask(domain);
}

static void on_reader_died(struct domain *domain, int status)
{
	domain->node->counters.restarts.reader++;
	domain->restarts.reader++;
	disk_cache_reader_died(&domain->disk_cache, status);
	ram_cache_reader_died(domain);
	carrying_reader_died(&domain->carrying);
	stream_reader_died(domain);
	chores_fail(domain, "the reader died meanwhile: try again");
}

const struct reading_calls from_reader_calls = {.started = on_started,
						.restarted = source_reader_started,
						.said = on_said,
						.died = on_reader_died,
						.hopeless = source_reader_failed};

/* ---- the workers ---- */

static void on_workers_died(struct domain *domain)
{
	domain->node->counters.restarts.parent++;
	domain->restarts.parent++;
	stream_workers_died(domain);
}

static void on_worker_died(struct domain *domain, const struct fill_death *death)
{
	if (death->status) {
		domain->node->counters.restarts.worker++;
		domain->restarts.worker++;
	}
	stream_worker_died(domain, death);
}

const struct workers_calls from_workers_calls = {.restarted = stream_workers_started,
						 .died = on_workers_died,
						 .hopeless = stream_workers_failed,
						 .added = stream_workers_added,
						 .refused = stream_variant_refused,
						 .removed = stream_variant_removed,
						 .let_go = ram_cache_look,
						 .worker_died = on_worker_died};

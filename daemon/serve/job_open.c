/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/job_open.h"

#include "base/log.h"
#include "daemon/cache/cache.h"
#include "daemon/net/conn.h"
#include "daemon/net/opening.h"
#include "daemon/net/porter.h"
#include "daemon/net/prepare.h"
#include "daemon/node.h"
#include "daemon/serve/group.h"
#include "daemon/serve/job.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/streams.h"
#include "daemon/serve/variant.h"
#include "libaccess/libaccess.h"
#include "pipeline/pipeline.h"
#include "plan/mix/batch_mix.h"
#include "plan/plan.h"
#include "plan/ranks/spread.h"
#include "shmring/inbox.h"

#define MOST_WORK 32768 /* some 4 ms of the loop */

/* A spread is computed step by step, for each chunk anew. */
static int check_spread(const struct job *job, const struct slice *slice, uint64_t *code,
			struct diag *diag)
{
	uint32_t chunk = job->stream->geometry.chunk;

	if (!slice->is_spread || spread_work(slice, chunk) <= MOST_WORK)
		return 0;
	*code = OA_E_INVALID;
	return diag_fail(
	    diag, OA_E_INVALID,
	    "chunks of %u samples, as the stream has, are too large for a spread of so many small "
	    "steps: leave the spread out, or the chunk's size where the stream is opened",
	    chunk);
}

/* *ret: where the job begins, need and token left out. */
static int enter_carousel(struct job *job, const struct request *request, struct carousel_join *ret,
			  uint64_t *code, struct diag *diag)
{
	const struct slice *slice = &request->slice;
	struct carousel_join join = {
	    .variant = job->conn->variant->number,
	    .batch = request->batch,
	    .ranks = slice_is_whole(slice) ? request->ranks : slice->count,
	    .slice = *slice,
	    .epochs = request->epochs,
	    .order = plan_is_fixed(request->order) ? request->order : 0,
	    .seed = request->seed,
	    .reuse = request->reuse,
	    .is_exact = request->is_exact,
	};
	int r = check_spread(job, slice, code, diag);

	r = r ? r : prepare_join(job->conn, &join, &job->group, code, diag);
	if (r)
		return r;
	r = carousel_join(job->stream->carousel, &join, base_now_ns(), &job->number);
	if (r) {
		*code = r == CAROUSEL_E_BAD ? OA_E_TOKEN : OA_E_MEMORY;
		return diag_fail(diag, r, "%s",
				 r == CAROUSEL_E_BAD ? "the token contradicts itself"
				 : r == CAROUSEL_E_FULL
				     ? "the stream serves its most jobs (256) already"
				     : "out of memory");
	}
	if (job->group)
		group_joined(job->group, request->rank);
	*ret = (struct carousel_join){.epoch = join.epoch, .place = join.place};
	return 0;
}

_Static_assert((int)PIPELINE_MIXUP == (int)BATCH_MIX_MIXUP &&
		   (int)PIPELINE_CUTMIX == (int)BATCH_MIX_CUTMIX,
	       "one numbering of ops on batches");

static void put_batch_mix(struct wire_out *out, const struct pipeline_batch *batch)
{
	struct proto_batch_mix item[BASE_ARRAY_LEN(batch->op)] = {{0}};

	if (batch->n && batch->op[0].kind == PIPELINE_MOSAIC)
		return;
	for (unsigned i = 0; i < batch->n; i++)
		item[i] = (struct proto_batch_mix){
		    .kind = batch->op[i].kind,
		    .is_planar = batch->is_planar,
		    .classes = batch->classes,
		    .alpha = batch->op[i].alpha,
		    .p = batch->op[i].p,
		};
	if (batch->n)
		wire_put_bytes(out, PROTO_KEY_BATCH_MIX, item, batch->n * sizeof(item[0]));
}

/* Fields that go where the picture goes are known by their roles, numbers of boxes by their name: from_coco() and
 * from_yolo() have them in "mask" and "mask_id". */
static uint16_t find_numbers(const struct pipeline_field *fields, unsigned n,
			     const struct pipeline_field *mask)
{
	char name[sizeof(mask->name) + sizeof("_id")];

	snprintf(name, sizeof(name), "%s_id", mask->name);
	for (unsigned i = 0; i < n; i++)
		if (fields[i].role == PIPELINE_ROWS && fields[i].dtype == PIPELINE_I64 &&
		    fields[i].ndim == 1 && strcmp(fields[i].name, name) == 0)
			return (uint16_t)(i + 1);
	return 0;
}

/* Of the job's own ops; the fields are those of all jobs that share them. */
static void put_mosaic(struct wire_out *out, const struct pipeline_batch *batch,
		       const struct pipeline *pipeline)
{
	static const uint32_t roles[] = {
	    [PIPELINE_ALONE] = PROTO_MOSAIC_ALONE,   [PIPELINE_BOXES] = PROTO_MOSAIC_BOXES,
	    [PIPELINE_ROWS] = PROTO_MOSAIC_ROWS,     [PIPELINE_MASK] = PROTO_MOSAIC_MASK,
	    [PIPELINE_POINTS] = PROTO_MOSAIC_POINTS, [PIPELINE_BOXES_3D] = PROTO_MOSAIC_ALONE,
	};
	const struct pipeline_mosaic *mosaic = &batch->mosaic;
	const struct pipeline_field *fields;
	const unsigned n = pipeline_fields(pipeline, &fields);
	struct proto_mosaic item = {
	    .p = batch->op[0].p,
	    .center = {mosaic->center[0], mosaic->center[1]},
	    .scale = {mosaic->scale[0], mosaic->scale[1]},
	    .min_size = mosaic->min_size,
	    .min_visibility = mosaic->min_visibility,
	    .epochs = mosaic->epochs,
	    .is_planar = batch->is_planar,
	    .field[0].role = PROTO_MOSAIC_IMAGE,
	};

	if (!batch->n || batch->op[0].kind != PIPELINE_MOSAIC)
		return;
	memcpy(item.fill, mosaic->fill, sizeof(item.fill));
	for (unsigned i = 1; i < n && i < BASE_ARRAY_LEN(item.field); i++) {
		if (fields[i].role < BASE_ARRAY_LEN(roles))
			item.field[i].role = roles[fields[i].role];
		if (fields[i].role != PIPELINE_MASK)
			continue;
		item.field[i].fill = (uint16_t)fields[i].fill;
		item.field[i].numbers = find_numbers(fields, n, &fields[i]);
	}
	wire_put_bytes(out, PROTO_KEY_MOSAIC, &item, sizeof(item));
}

static void send_opened(struct job *job, const struct carousel_join *join, int inbox_fd,
			int outbox_fd)
{
	const struct request *request = &job->conn->request;
	struct stream *stream = job->stream;
	const struct variant *variant = job->conn->variant;
	struct wire_out out;
	char text[1024];

	variant_tell_shared(job->conn, text, sizeof(text));
	wire_out_make(
	    &out, PROTO_OPENED, WIRE_U64(PROTO_KEY_JOB_ID, job->id),
	    WIRE_U64(PROTO_KEY_EPOCH, join->epoch),
	    WIRE_U64(PROTO_KEY_SHARED, stream->users.n_jobs - 1), WIRE_STRING(PROTO_KEY_TEXT, text),
	    WIRE_BYTES(PROTO_KEY_PIPELINE_ID, request->asked.bytes, sizeof(request->asked.bytes)),
	    WIRE_NONZERO(PROTO_KEY_HOLES, pipeline_filters(variant->pipeline)),
	    WIRE_FD(variant->slots_read_fd), WIRE_FD(variant->table_fd), WIRE_FD(inbox_fd),
	    WIRE_FD(outbox_fd));
	put_batch_mix(&out, &request->batch_mix);
	put_mosaic(&out, &request->batch_mix, variant->pipeline);
	if (!slice_is_whole(&request->slice))
		wire_put_u64(&out, PROTO_KEY_LOCAL_RANKS, request->slice.count);
	if (job->group) {
		wire_put_u64(&out, PROTO_KEY_PLACE, join->place);
		wire_put_fd(&out, job->group->plan_log_fd);
	}
	conn_send(job->conn, &out);
}

void job_open(struct conn *conn)
{
	_cleanup_close_ int inbox_fd = -1, outbox_fd = -1;
	struct stream *stream = conn->stream;
	struct carousel_join begin = {.epoch = 0};
	uint64_t code = OA_E_MEMORY;
	struct diag diag = {"out of memory or descriptors for the job's inbox and outbox"};
	struct job *job;

	if (cache_check(stream, &diag)) {
		conn_refuse(conn, OA_E_REFUSED, "%s", diag.text);
		return;
	}
	switch (stream_make_room(stream, &diag)) {
	case STREAM_E_LATER:
		return;
	case STREAM_E_MEMORY:
		if (!opening_falls_back(conn))
			conn_refuse(conn, OA_E_MEMORY, "%s", diag.text);
		return;
	}
	job = job_new(conn, &inbox_fd, &outbox_fd);
	if (!job || enter_carousel(job, &conn->request, &begin, &code, &diag)) {
		if (job)
			job_destroy(job);
		prepare_free(conn);
		conn_refuse(conn, code, "%s", diag.text);
		return;
	}
	prepare_free(conn);
	job->id = ++stream->node->next.id;
	job->active = true;
	job->since = job->group ? job->group->since : revisit_opened(&stream->users.revisit);
	stream->users.job[job->number] = job;
	stream->users.n_jobs++;
	conn->variant->n_jobs++;
	conn->job = job;
	conn->state = CONN_RUNS;
	cache_spread(stream, &conn->request.slice);
	inbox_set_end(job->grants.inbox, job->epochs);
	log_line(LOG_LEVEL_INFO, "job-open",
		 "job=%llu name=\"%s\" pid=%ld queue=%u variant=%u batch=%u order=%s epoch=%llu",
		 (unsigned long long)job->id, job->name, (long)conn->pid,
		 stream->shared.queue.number, conn->variant->number, job->batch,
		 plan_name(job->order), (unsigned long long)begin.epoch);
	porter_close(&stream->node->porters, conn->uid, &conn->request.log_fd);
	send_opened(job, &begin, inbox_fd, outbox_fd);
	programs_begin(&stream->node->clients.programs, conn->uid, conn->pid,
		       conn->request.token.data);
	node_need_tick(stream->node);
	stream_turn_soon(stream);
}

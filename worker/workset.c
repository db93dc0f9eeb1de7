/* SPDX-License-Identifier: Apache-2.0 */

/*
 * accessd sends a queue's numbers once, in PARENT_ADD; they are checked here against the memory
 * they speak of and against the pipeline compiled here, and only the private copies are used
 * afterwards. Slots memory is mapped writable now, while it can be: accessd seals it when it has
 * our answer, and from then on writable mappings exist in the parent and its children only.
 *
 * An address that a worker writes to is slots + slot * stride + offset + position * sample bytes.
 * workset_check_fields() makes sure, once, that all of it is inside one slot for every position
 * below the queue's chunk, and that no two fields overlap; workset_outputs() then compares slot and
 * position.
 *
 * A queue has at least one variant. Others come and go while workers run, who have the queue as it was
 * when they were forked: what they do not know they leave to others (queue_claim_run()).
 */

#include "worker/workset.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "shmring/slot_table.h"
#include "worker/evict.h"
#include "worker/warm.h"

#define WORKSET_AROUND 65536 /* fault_around_bytes of most kernels */

static int workset_refuse(struct diag *diag, uint64_t number, const char *what)
{
	return diag_fail(diag, WORKSET_E_REFUSED,
			 "stream %llu: the workers cannot use it: %s; this is a fault in accessd",
			 (unsigned long long)number, what);
}

static int workset_refuse_errno(struct diag *diag, uint64_t number, const char *what, int error)
{
	return diag_fail(
	    diag, WORKSET_E_REFUSED,
	    "stream %llu: the workers cannot map its %s: %s; look at the memory limit of "
	    "accessd's service or container",
	    (unsigned long long)number, what, strerror(error));
}

static void workset_variant_fini(struct workset_variant *variant)
{
	if (variant->slots != NULL)
		munmap(variant->slots, variant->slots_bytes);
	pipeline_free(variant->pipeline);
	*variant = (struct workset_variant){.state = WORKSET_UNUSED};
}

static void workset_queue_free(struct workset_queue *queue)
{
	if (queue == NULL)
		return;
	if (queue->arena != NULL)
		queue_arena_detach(&queue->queue, queue->arena);
	if (queue->queue.head != NULL)
		queue_detach(&queue->queue);
	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++)
		workset_variant_fini(&queue->variant[v]);
	free(queue);
}

static void workset_queue_freep(struct workset_queue **queue)
{
	workset_queue_free(*queue);
}

static bool workset_overlap(const struct workset_field *a, const struct workset_field *b,
			    uint64_t chunk)
{
	return a->offset < b->offset + chunk * b->sample_bytes &&
	       b->offset < a->offset + chunk * a->sample_bytes;
}

/* Every product and sum below stays under 2^64: chunk <= LAYOUT_MAX_CHUNK, and sample_bytes is
 * compared with stride first, which is at most slots_bytes, the size of a mapping. */
static const char *workset_check_fields(const struct workset_variant *variant, uint64_t chunk)
{
	for (unsigned f = 0; f < variant->n_fields; f++) {
		const struct workset_field *field = &variant->field[f];

		if (field->offset % BASE_CACHE_LINE != 0)
			return "a field's array does not start on a cache line";
		if (field->sample_bytes > variant->stride / chunk)
			return "a field's array is larger than a slot";
		if (field->offset > variant->stride - chunk * field->sample_bytes)
			return "a field's array ends outside its slot";
		for (unsigned g = 0; g < f; g++)
			if (workset_overlap(field, &variant->field[g], chunk))
				return "two fields overlap";
	}
	return NULL;
}

static int workset_copy_fields(struct workset_variant *variant, uint64_t chunk,
			       const struct workset_request *request, struct diag *diag)
{
	const struct pipeline_field *fields;
	unsigned n_fields = pipeline_fields(variant->pipeline, &fields);
	uint64_t pairs[PIPELINE_MAX_FIELDS][2];
	const char *wrong;

	if (n_fields > PIPELINE_MAX_FIELDS || request->offsets_size != n_fields * sizeof(pairs[0]))
		return workset_refuse(diag, request->number,
				      "offsets for other fields than its pipeline's");
	memcpy(pairs, request->offsets, request->offsets_size);
	for (unsigned f = 0; f < n_fields; f++) {
		if (pairs[f][1] != fields[f].bytes)
			return workset_refuse(
			    diag, request->number,
			    "a field's samples have another size than its pipeline makes");
		variant->field[f].offset = pairs[f][0];
		variant->field[f].sample_bytes = pairs[f][1];
	}
	variant->n_fields = n_fields;
	wrong = workset_check_fields(variant, chunk);
	return wrong == NULL ? 0 : workset_refuse(diag, request->number, wrong);
}

static int workset_map_slots(struct workset_variant *variant, const struct workset_request *request,
			     struct diag *diag)
{
	struct stat status;
	void *map;
	int r;

	if (fstat(request->slots_fd, &status) < 0)
		return workset_refuse_errno(diag, request->number, "slots", errno);
	if (request->stride == 0 || request->slots_bytes < request->stride ||
	    (uint64_t)status.st_size < request->slots_bytes)
		return workset_refuse(diag, request->number, "its slots are smaller than it says");
	r = slots_map(request->slots_fd, request->slots_bytes, &map);
	if (r)
		return workset_refuse_errno(diag, request->number, "slots", -r);
	variant->slots = map;
	variant->slots_bytes = request->slots_bytes;
	variant->stride = request->stride;
	variant->n_slots = request->slots_bytes / request->stride;
	return 0;
}

static int workset_map_tasks(struct workset_queue *queue, const struct workset_request *request,
			     struct diag *diag)
{
	int rc = queue_attach(request->queue_fd, &queue->queue);

	if (rc < 0)
		return workset_refuse_errno(diag, request->number, "tasks", -rc);
	if (rc > 0)
		return workset_refuse(diag, request->number, "its memory of tasks is damaged");
	if (queue->queue.number != request->number)
		return workset_refuse(diag, request->number,
				      "its memory of tasks has another number");
	rc = queue_arena_attach(request->arena_fd, &queue->queue, false, &queue->arena);
	if (rc < 0)
		return workset_refuse_errno(diag, request->number, "arena", -rc);
	if (rc > 0)
		return workset_refuse(diag, request->number, "its arena is smaller than it says");
	return 0;
}

static int workset_admit(struct workset *set, const struct workset_request *request,
			 const struct workset_queue *queue, struct diag *diag)
{
	if (queue == NULL && set->count == WORKSET_MAX_QUEUES)
		return workset_refuse(diag, request->number, "too many streams in one pool");
	if (request->number > UINT16_MAX || request->variant >= LAYOUT_MAX_VARIANTS)
		return workset_refuse(diag, request->number, "its number is too large");
	if (queue != NULL &&
	    (queue->is_leaving || queue->variant[request->variant].state != WORKSET_UNUSED))
		return workset_refuse(diag, request->number, "its number is still in use");
	if (request->slots_fd < 0 ||
	    (queue == NULL && (request->queue_fd < 0 || request->arena_fd < 0)))
		return workset_refuse_errno(diag, request->number, "memory", EMFILE);
	return 0;
}

static int workset_queue_new(const struct workset_request *request, struct workset_queue **ret,
			     struct diag *diag)
{
	_cleanup_(workset_queue_freep) struct workset_queue *queue = calloc(1, sizeof(*queue));
	int rc;

	if (queue == NULL)
		return -ENOMEM;
	queue->number = (uint32_t)request->number;
	rc = workset_map_tasks(queue, request, diag);
	if (rc == 0)
		*ret = base_take_ptr(queue);
	return rc;
}

/* Leaves the variant UNUSED where it fails. */
static int workset_add_variant(struct workset_queue *queue, const struct workset_request *request,
			       uint64_t known_from, struct diag *diag)
{
	struct workset_variant *variant = &queue->variant[request->variant];
	int rc = pipeline_compile(request->spec, strlen(request->spec), &variant->pipeline, diag);
	const char *why = NULL;

	if (rc == PIPELINE_E_BAD)
		rc = WORKSET_E_REFUSED;
	/* Workers that are forked from now on have it, and who has no such stream does without. */
	if (rc == 0)
		why = pipeline_load(variant->pipeline);
	if (why)
		rc = diag_fail(diag, WORKSET_E_REFUSED, "stream %llu: %s",
			       (unsigned long long)request->number, why);
	if (rc == 0)
		rc = workset_map_slots(variant, request, diag);
	if (rc == 0)
		rc = workset_copy_fields(variant, queue->queue.chunk, request, diag);
	if (rc != 0) {
		workset_variant_fini(variant);
		return rc;
	}
	warm_up(variant->pipeline);
	variant->known_from = known_from;
	variant->state = WORKSET_MAPPED;
	return 0;
}

int workset_add(struct workset *set, const struct workset_request *request, uint64_t known_from,
		struct diag *diag)
{
	_cleanup_(workset_queue_freep) struct workset_queue *queue = NULL;
	struct workset_queue *known = workset_find(set, request->number);
	int rc = workset_admit(set, request, known, diag);

	if (rc != 0)
		return rc;
	if (known != NULL)
		return workset_add_variant(known, request, known_from, diag);
	rc = workset_queue_new(request, &queue, diag);
	if (rc == 0)
		rc = workset_add_variant(queue, request, known_from, diag);
	if (rc != 0)
		return rc;
	set->queue[set->count++] = base_take_ptr(queue);
	return 0;
}

void workset_fini(struct workset *set)
{
	while (set->count > 0)
		workset_queue_free(set->queue[--set->count]);
}

struct workset_queue *workset_find(struct workset *set, uint64_t number)
{
	for (unsigned i = 0; i < set->count; i++)
		if (set->queue[i]->number == number)
			return set->queue[i];
	return NULL;
}

void workset_unmap(struct workset_queue *queue, uint64_t leaves)
{
	queue_arena_detach(&queue->queue, queue->arena);
	queue_detach(&queue->queue);
	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++)
		workset_variant_fini(&queue->variant[v]);
	*queue =
	    (struct workset_queue){.number = queue->number, .is_leaving = true, .leaves = leaves};
}

bool workset_unmap_variant(struct workset_queue *queue, uint64_t number, uint64_t leaves)
{
	struct workset_variant *variant =
	    &queue->variant[BASE_MIN(number, LAYOUT_MAX_VARIANTS - 1)];

	if (number >= LAYOUT_MAX_VARIANTS || variant->state != WORKSET_MAPPED)
		return false;
	workset_variant_fini(variant);
	variant->state = WORKSET_LEAVES;
	variant->leaves = leaves;
	return true;
}

/* One variant of the queue that has left. */
static bool workset_forget_variant(struct workset_queue *queue, uint64_t oldest,
				   uint32_t *ret_variant)
{
	for (uint32_t v = 0; v < LAYOUT_MAX_VARIANTS; v++) {
		struct workset_variant *variant = &queue->variant[v];

		if (variant->state != WORKSET_LEAVES || oldest < variant->leaves)
			continue;
		variant->state = WORKSET_UNUSED;
		*ret_variant = v;
		return true;
	}
	return false;
}

bool workset_forget(struct workset *set, uint64_t oldest, uint32_t *ret_number,
		    uint32_t *ret_variant)
{
	for (unsigned i = 0; i < set->count; i++) {
		struct workset_queue *queue = set->queue[i];

		*ret_number = queue->number;
		if (workset_forget_variant(queue, oldest, ret_variant))
			return true;
		if (!queue->is_leaving || oldest < queue->leaves)
			continue;
		*ret_variant = WORKSET_ALL;
		free(queue);
		set->queue[i] = set->queue[--set->count];
		return true;
	}
	return false;
}

bool workset_has_news(const struct workset_queue *queue, uint64_t generation)
{
	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++)
		if (queue->variant[v].state == WORKSET_MAPPED &&
		    queue->variant[v].known_from > generation)
			return true;
	return false;
}

uint32_t workset_known(const struct workset_queue *queue, uint64_t generation)
{
	uint32_t known = 0;

	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++)
		if (queue->variant[v].state == WORKSET_MAPPED &&
		    queue->variant[v].known_from <= generation)
			known |= UINT32_C(1) << v;
	return known;
}

bool workset_is_idle(const struct workset *set, uint64_t generation)
{
	for (unsigned i = 0; i < set->count; i++)
		if (workset_known(set->queue[i], generation))
			return false;
	return true;
}

bool workset_outputs(const struct workset_queue *queue, const struct queue_task *task,
		     struct pipeline_out out[LAYOUT_MAX_VARIANTS])
{
	if (task->variants == 0 || task->variants >> LAYOUT_MAX_VARIANTS ||
	    task->position >= queue->queue.chunk)
		return false;
	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++) {
		const struct workset_variant *variant = &queue->variant[v];

		if (!(task->variants >> v & 1))
			continue;
		if (variant->state != WORKSET_MAPPED || task->slot >= variant->n_slots)
			return false;
		/* position is below the queue's chunk. */
		for (unsigned f = 0; f < variant->n_fields; f++)
			out[v].field[f] = variant->slots + task->slot * variant->stride +
					  variant->field[f].offset +
					  task->position * variant->field[f].sample_bytes;
	}
	return true;
}

static void workset_touch_field(const uint8_t *field, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += WORKSET_AROUND)
		(void)*(const volatile uint8_t *)(field + at);
	if (bytes > 0)
		(void)*(const volatile uint8_t *)(field + bytes - 1);
}

/* Small pages are mapped one by one by who writes to them, but WORKSET_AROUND bytes at a time by who
 * reads, and for writing, too, as the mapping is. */
void workset_touch(const struct workset_queue *queue, const struct queue_task *task,
		   const struct pipeline_out out[LAYOUT_MAX_VARIANTS])
{
	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++) {
		const struct workset_variant *variant = &queue->variant[v];

		for (unsigned f = 0; task->variants >> v & 1 && f < variant->n_fields; f++)
			workset_touch_field(out[v].field[f], variant->field[f].sample_bytes);
	}
}

void workset_evict(const struct workset_queue *queue, const struct queue_task *task,
		   const struct pipeline_out out[LAYOUT_MAX_VARIANTS])
{
	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++) {
		const struct workset_variant *variant = &queue->variant[v];

		for (unsigned f = 0; task->variants >> v & 1 && f < variant->n_fields; f++)
			evict(out[v].field[f], variant->field[f].sample_bytes);
	}
}

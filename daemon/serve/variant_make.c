/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/variant_make.h"

#include <fcntl.h>
#include <stdio.h>

#include "daemon/machine/numa.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/proc/reserve.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/domain.h"
#include "pipeline/pipeline.h"

/* Jobs get a descriptor that cannot even reserve memory. */
static int reopen_for_reading(int fd, int *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*ret = open(path, O_RDONLY | O_CLOEXEC);
	return *ret < 0 ? -errno : 0;
}

static int make_memory(struct variant *variant, const struct slot_geometry *geometry)
{
	int r = slot_table_new(geometry, &variant->table, &variant->table_fd);

	if (r)
		return r;
	variant_account(variant, (int64_t)geometry->table_bytes);
	r = slots_new(geometry, &variant->slots_fd);
	if (!r)
		numa_prefer(&variant->stream->node->machine.numa, variant->slots_fd,
			    geometry->slots_bytes, variant->stream->shared.numa_node);
	r = r ? r : reopen_for_reading(variant->slots_fd, &variant->slots_read_fd);
	return r;
}

static uint32_t free_number(const struct stream *stream)
{
	uint32_t number = 0;

	while (number < LAYOUT_MAX_VARIANTS && stream->variant[number])
		number++;
	return number;
}

int variant_new(struct stream *stream, struct pipeline *pipeline, const struct hash_id *key,
		const struct slot_geometry *geometry, struct domain *payer, struct variant **ret)
{
	uint32_t number = free_number(stream);
	struct variant *variant = number < LAYOUT_MAX_VARIANTS ? calloc(1, sizeof(*variant)) : NULL;
	struct slot_geometry own = *geometry;
	int r;

	if (!variant)
		return -ENOMEM;
	variant->stream = stream;
	variant->number = number;
	variant->payer = domain_ref(payer);
	variant->key = *key;
	variant->slots_fd = variant->slots_read_fd = variant->table_fd = -1;
	stream->variant[number] = variant;
	memcpy(own.stream, key, sizeof(own.stream));
	r = make_memory(variant, &own);
	if (r) {
		variant_free(variant);
		return r;
	}
	variant->pipeline = pipeline;
	*ret = variant;
	return 0;
}

void variant_let_go(struct variant *variant)
{
	reserve_cancel(variant);
	base_close(&variant->slots_read_fd);
	porter_close(&variant->stream->node->porters, PORTER_OWN, &variant->slots_fd);
}

/* All but its number. */
void variant_give_back(struct variant *variant)
{
	variant_let_go(variant);
	loop_unwatch(&variant->linger_timer);
	if (variant->table.map)
		slot_table_detach(&variant->table);
	porter_close(&variant->stream->node->porters, PORTER_OWN, &variant->table_fd);
	pipeline_free(variant->pipeline);
	variant->pipeline = NULL;
	variant_account(variant, -(int64_t)variant->memory);
	domain_unref(variant->payer);
	variant->payer = NULL;
}

void variant_free(struct variant *variant)
{
	if (variant->state != VARIANT_GONE)
		variant_give_back(variant);
	variant->stream->variant[variant->number] = NULL;
	free(variant);
}

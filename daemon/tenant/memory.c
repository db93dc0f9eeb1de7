/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/tenant/memory.h"

#include "base/json.h"

void memory_account(struct memory *memory, struct memory_part *part, int64_t bytes)
{
	memory->used += (uint64_t)bytes;
	part->used += (uint64_t)bytes;
}

void memory_keep(struct memory *memory, struct memory_part *part, uint64_t bytes)
{
	memory->kept = memory->kept - part->kept + bytes;
	part->kept = bytes;
}

uint64_t memory_left(const struct memory *memory)
{
	return memory->budget - BASE_MIN(memory->used + memory->kept, memory->budget);
}

void memory_describe(const struct memory *memory, struct json_out *out)
{
	json_out_member_u64(out, "memory_budget", memory->budget);
	json_out_member_string(out, "memory_source", memory->source);
	json_out_member_u64(out, "memory_used", memory->used);
	json_out_member_u64(out, "memory_kept", memory->kept);
	json_out_member_u64(out, "memory_catalogs", memory->catalogs);
}

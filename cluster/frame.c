/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frames. Every byte of a head has a meaning or must be 0, so that a later version can give it one.
 */

#include "cluster/frame.h"

#include "base/little.h"
#include "cluster/path.h"

/* Where the members lie. */
enum {
	AT_TYPE = 0,
	AT_FORM = 1,
	AT_ZERO = 2,
	AT_GROUP = 4,
	AT_SAMPLE = 8,
	AT_ROOM = 12,
	AT_ID = 16
};
_Static_assert(AT_ID + 8 == FRAME_HEAD, "a head has no holes");

bool frame_length_check(uint32_t length, unsigned tag)
{
	return length >= FRAME_HEAD + tag && length - FRAME_HEAD - tag <= VALUE_MOST;
}

void frame_put(const struct frame *frame, uint8_t ret[FRAME_HEAD])
{
	ret[AT_TYPE] = frame->type;
	ret[AT_FORM] = frame->form;
	little_put(ret + AT_ZERO, 0, 2);
	little_put_32(ret + AT_GROUP, frame->group);
	little_put_32(ret + AT_SAMPLE, (uint32_t)frame->sample);
	little_put_32(ret + AT_ROOM, frame->room);
	little_put_64(ret + AT_ID, frame->id);
}

static bool is_answer(uint8_t type)
{
	return type == VALUE_HAVE || type == VALUE_MISS;
}

/* As a value's head; what a frame has besides is not in it. */
static bool makes_sense(const struct frame *frame, uint32_t body)
{
	static const struct hash_id none;
	struct value_head head;

	if (frame->type == FRAME_ALIVE || frame->type == FRAME_PATH)
		return body == (frame->type == FRAME_PATH ? PATH_BYTES : 0) && frame->form == 0 &&
		       frame->group == 0 && frame->sample == 0 && frame->room == 0 &&
		       frame->id == 0;
	if (frame->type == VALUE_GONE || (frame->type == VALUE_GROUP && body < FRAME_HASH))
		return false;
	if (!is_answer(frame->type) && frame->group >= FRAME_MOST_GROUPS)
		return false;
	if (frame->type == VALUE_GROUP && frame->id)
		return false;
	frame_to_value(frame, body, &none, 0, &head);
	return value_head_check(&head);
}

bool frame_get(const uint8_t head[FRAME_HEAD], uint32_t body, struct frame *ret)
{
	const struct frame frame = {
	    .type = head[AT_TYPE],
	    .form = head[AT_FORM],
	    .group = little_32(head + AT_GROUP),
	    .sample = little_32(head + AT_SAMPLE),
	    .room = little_32(head + AT_ROOM),
	    .id = little_64(head + AT_ID),
	};

	if (little_16(head + AT_ZERO) != 0 || !makes_sense(&frame, body))
		return false;
	*ret = frame;
	return true;
}

uint32_t frame_mark(const struct hash_id *group)
{
	return little_32(group->bytes);
}

void frame_of_value(const struct value_head *head, uint32_t group, uint64_t id, struct frame *ret)
{
	*ret = (struct frame){
	    .type = (uint8_t)head->type,
	    .form = (uint8_t)head->form,
	    .group = group,
	    .sample = head->type == VALUE_GROUP ? head->samples - 1 : head->sample,
	    .room = head->room,
	    .id = id,
	};
}

uint32_t frame_body(const struct value_head *head)
{
	return head->bytes + (head->type == VALUE_GROUP ? FRAME_HASH : 0);
}

void frame_to_value(const struct frame *frame, uint32_t body, const struct hash_id *group,
		    uint32_t peer, struct value_head *ret)
{
	const bool is_group = frame->type == VALUE_GROUP;

	*ret = (struct value_head){
	    .magic = VALUE_MAGIC,
	    .type = frame->type,
	    .peer = peer,
	    .bytes = body - (is_group ? FRAME_HASH : 0),
	    .id = frame->id,
	    .sample = is_group ? 0 : frame->sample,
	    .samples = is_group ? frame->sample + 1 : 0,
	    .form = frame->form,
	    .room = frame->room,
	    .group = *group,
	};
}

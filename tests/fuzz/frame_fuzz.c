/* SPDX-License-Identifier: Apache-2.0 */

/* Heads of values and of frames, and what agrees on their way, by anybody: what is passed makes sense, and says the same as a frame and as a value. */

#include <stdlib.h>
#include <string.h>

#include "cluster/frame.h"
#include "cluster/path.h"
#include "shmring/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_claim(bool is_so)
{
	if (!is_so)
		abort();
}

static void fuzz_value(const struct value_head *head)
{
	struct value_head again;
	uint8_t bytes[FRAME_HEAD];
	struct frame frame;

	if (!value_head_check(head))
		return;
	fuzz_claim(head->bytes <= VALUE_MOST && head->peer < VALUE_MOST_PEERS);
	fuzz_claim(head->form < LAYOUT_FORMS && head->sample < VALUE_MOST_SAMPLES);
	if (head->type == VALUE_GONE)
		return;
	frame_of_value(head, 1, head->id, &frame);
	frame_put(&frame, bytes);
	fuzz_claim(frame_get(bytes, frame_body(head), &frame));
	frame_to_value(&frame, frame_body(head), &head->group, head->peer, &again);
	fuzz_claim(memcmp(&again, head, sizeof(again)) == 0);
}

static void fuzz_frame(const uint8_t *bytes, uint32_t body)
{
	static const struct hash_id group;
	struct value_head head;
	struct frame frame;
	uint8_t again[FRAME_HEAD];

	if (!frame_get(bytes, body, &frame))
		return;
	frame_put(&frame, again);
	fuzz_claim(memcmp(again, bytes, FRAME_HEAD) == 0);
	if (frame.type == FRAME_ALIVE || frame.type == FRAME_PATH)
		return;
	frame_to_value(&frame, body, &group, 0, &head);
	fuzz_claim(value_head_check(&head));
}

/* There is one way to say a thing. */
static void fuzz_path(const uint8_t *bytes)
{
	struct path_message message;
	uint8_t again[PATH_BYTES];

	if (!path_read(bytes, &message))
		return;
	path_write(&message, again);
	fuzz_claim(memcmp(again, bytes, PATH_BYTES) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct value_head head;
	uint32_t body;

	if (size == sizeof(head)) {
		memcpy(&head, data, sizeof(head));
		fuzz_value(&head);
	} else if (size == PATH_BYTES) {
		fuzz_path(data);
	} else if (size >= sizeof(body) + FRAME_HEAD) {
		memcpy(&body, data, sizeof(body));
		fuzz_frame(data + sizeof(body), body);
	}
	return 0;
}

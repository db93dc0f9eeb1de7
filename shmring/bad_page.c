/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of bad samples may be as long as its dataset, so it goes by pages: each is a message of a size
 * that both sides know, and who has read one asks for the next. Nobody has memory but for what he reads.
 */
#include "shmring/bad_page.h"

struct bad_page_head { /* as it stands in a page, without padding */
	uint64_t id;
	uint16_t bytes[3];
};
#define HEAD_BYTES 14

static const uint16_t limits[3] = {BAD_PAGE_NAME, BAD_PAGE_STAGE, BAD_PAGE_WHY};

bool bad_page_put(struct bad_page *page, const struct bad_page_entry *entry)
{
	const char *const texts[3] = {entry->name, entry->stage, entry->why};
	struct bad_page_head head = {.id = entry->id};
	size_t bytes = HEAD_BYTES;
	uint8_t *at = page->bytes + page->used;

	for (unsigned i = 0; i < 3; i++) {
		head.bytes[i] = (uint16_t)(strnlen(texts[i], limits[i] - 1u) + 1);
		bytes += head.bytes[i];
	}
	if (bytes > sizeof(page->bytes) - page->used)
		return false;
	page->used += bytes;
	memcpy(at, &head, HEAD_BYTES);
	at += HEAD_BYTES;
	for (unsigned i = 0; i < 3; i++) {
		memcpy(at, texts[i], head.bytes[i] - 1u);
		at[head.bytes[i] - 1] = '\0';
		at += head.bytes[i];
	}
	return true;
}

static bool is_word(const char *text)
{
	for (; *text; text++)
		if (*text < 'a' || *text > 'z')
			return false;
	return true;
}

static bool is_line(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

int bad_page_next(const uint8_t *bytes, size_t size, size_t *at, struct bad_page_entry *ret)
{
	const char *text[3];
	struct bad_page_head head;
	size_t next = *at;

	if (next == size)
		return BAD_PAGE_E_END;
	if (size - next < HEAD_BYTES)
		return BAD_PAGE_E_BAD;
	memcpy(&head, bytes + next, HEAD_BYTES);
	next += HEAD_BYTES;
	for (unsigned i = 0; i < 3; i++) {
		text[i] = (const char *)bytes + next;
		if (head.bytes[i] == 0 || head.bytes[i] > limits[i] ||
		    head.bytes[i] > size - next ||
		    memchr(text[i], '\0', head.bytes[i]) != text[i] + head.bytes[i] - 1)
			return BAD_PAGE_E_BAD;
		next += head.bytes[i];
	}
	if (head.id > INT64_MAX || !is_word(text[1]) || !is_line(text[2]))
		return BAD_PAGE_E_BAD;
	*at = next;
	*ret = (struct bad_page_entry){head.id, text[0], text[1], text[2]};
	return 0;
}

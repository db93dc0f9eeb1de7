/* SPDX-License-Identifier: Apache-2.0 */

/* The bytes of a path's message: there is one way only to say a thing, and all others are refused. */

#include "cluster/path.h"

#include "base/base.h"
#include "base/little.h"

enum {
	AT_STEP = 0,
	AT_YES = 1,
	AT_MTU = 2,
	AT_ETHERNET = 3,
	AT_NUMBER = 4,
	AT_FIRST = 8,
	AT_LID = 12,
	AT_GID = 16,
	AT_TEXT = 32,
	AT_ZEROS = AT_TEXT + PATH_TEXT
};
#define MOST_24 ((UINT32_C(1) << 24) - 1)

static void write_address(const struct path_address *address, uint8_t *ret)
{
	ret[AT_MTU] = address->mtu;
	ret[AT_ETHERNET] = address->is_ethernet;
	little_put_32(ret + AT_NUMBER, address->number);
	little_put_32(ret + AT_FIRST, address->first);
	little_put(ret + AT_LID, address->lid, 2);
	memcpy(ret + AT_GID, address->gid, sizeof(address->gid));
}

void path_write(const struct path_message *message, uint8_t ret[PATH_BYTES])
{
	const size_t length = strnlen(message->text, PATH_TEXT - 1);

	memset(ret, 0, PATH_BYTES);
	ret[AT_STEP] = (uint8_t)message->step;
	ret[AT_YES] = message->yes;
	if (message->step == PATH_OFFER && message->yes)
		write_address(&message->address, ret);
	if (message->yes)
		return;
	/* It is for people at the other end, who get no control characters. */
	for (size_t i = 0; i < length; i++) {
		const uint8_t c = (uint8_t)message->text[i];

		ret[AT_TEXT + i] = c < ' ' || c > '~' ? '?' : c;
	}
}

static bool is_zero(const uint8_t *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (from[i])
			return false;
	return true;
}

static bool read_address(const uint8_t *from, struct path_address *ret)
{
	*ret = (struct path_address){
	    .number = little_32(from + AT_NUMBER),
	    .first = little_32(from + AT_FIRST),
	    .lid = (uint16_t)little_16(from + AT_LID),
	    .mtu = from[AT_MTU],
	    .is_ethernet = from[AT_ETHERNET] == 1,
	};
	memcpy(ret->gid, from + AT_GID, sizeof(ret->gid));
	if (ret->number < 2 || ret->number > MOST_24 || ret->first > MOST_24 || ret->mtu < 1 ||
	    ret->mtu > 5 || from[AT_ETHERNET] > 1 || !is_zero(from + AT_LID + 2, 2))
		return false;
	return ret->is_ethernet ? !is_zero(ret->gid, sizeof(ret->gid)) && ret->lid == 0
				: ret->lid != 0;
}

/* A reason, if there is to be one. */
static bool read_text(const uint8_t *from, bool wanted, char ret[PATH_TEXT])
{
	const size_t length = strnlen((const char *)from, PATH_TEXT);

	if (length == PATH_TEXT || (length > 0) != wanted ||
	    !is_zero(from + length, PATH_TEXT - length))
		return false;
	for (size_t i = 0; i < length; i++)
		if (from[i] < ' ' || from[i] > '~')
			return false;
	memcpy(ret, from, PATH_TEXT);
	return true;
}

bool path_read(const uint8_t from[PATH_BYTES], struct path_message *ret)
{
	struct path_message message = {.step = from[AT_STEP], .yes = from[AT_YES] == 1};
	const bool has_address = message.step == PATH_OFFER && message.yes;

	if (message.step < PATH_OFFER || message.step > PATH_DONE || from[AT_YES] > 1 ||
	    (message.step == PATH_READY && !message.yes) ||
	    !is_zero(from + AT_ZEROS, PATH_BYTES - AT_ZEROS) ||
	    !read_text(from + AT_TEXT, !message.yes, message.text))
		return false;
	if (has_address ? !read_address(from, &message.address)
			: !is_zero(from + AT_MTU, AT_TEXT - AT_MTU))
		return false;
	*ret = message;
	return true;
}

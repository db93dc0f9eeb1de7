/* SPDX-License-Identifier: Apache-2.0 */

#include "cluster/gate_say.h"

#include "base/log.h"
#include "base/wire.h"

static void say_of(enum gate_message type, const struct wire_part *parts)
{
	int r = wire_tell_of(GATE_CONTROL_FD, 0, (uint16_t)type, parts);

	if (r == WIRE_E_CLOSED)
		exit(0);
	if (!r)
		return;
	log_line(LOG_LEVEL_ERROR, "control", "why=\"%s\"", strerror(r < 0 ? -r : EBADMSG));
	exit(1);
}

#define say(type, ...) say_of(type, WIRE_PARTS(__VA_ARGS__))

void gate_say_ready(const struct gate_address *address)
{
	char text[GATE_CALL_ADDRESS];

	say(GATE_READY, WIRE_STRING(GATE_KEY_ADDRESS, gate_address_text(address, text)));
}

void gate_say_trouble(const char *text)
{
	if (*text)
		log_line(LOG_LEVEL_WARN, "trouble", "why=\"%s\" text=\"it is tried again\"", text);
	else
		log_line(LOG_LEVEL_INFO, "trouble", "text=\"it is over\"");
	say(GATE_TROUBLE, WIRE_STRING(GATE_KEY_TEXT, text));
}

_Noreturn void gate_say_failed(const struct diag *diag)
{
	log_line(LOG_LEVEL_ERROR, "gate-failed", "why=\"%s\"", diag->text);
	say(GATE_FAILED, WIRE_STRING(GATE_KEY_TEXT, diag->text));
	exit(1);
}

void gate_say_member(void *arg, uint64_t id, const struct cell_member *member)
{
	char text[GATE_CALL_ADDRESS] = "";

	(void)arg;
	if (member->has_address)
		gate_address_text(&member->address, text);
	log_line(member->state == GATE_MEMBER_REFUSED ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "member",
		 "node=\"%s\" address=%s state=%s why=\"%s\"", member->node, text,
		 (const char *const[]){"known", "waits", "refused", "met"}[member->state],
		 member->text.text);
	say(GATE_MEMBER, WIRE_U64(GATE_KEY_ID, id),
	    WIRE_STRING(GATE_KEY_NODE, *member->node ? member->node : text),
	    WIRE_STRING(GATE_KEY_ADDRESS, text),
	    WIRE_U64(GATE_KEY_INCARNATION, member->incarnation),
	    WIRE_U64(GATE_KEY_STATE, member->state), WIRE_STRING(GATE_KEY_TEXT, member->text.text));
}

void gate_say_gone(void *arg, uint64_t id)
{
	(void)arg;
	say(GATE_MEMBER_GONE, WIRE_U64(GATE_KEY_ID, id));
}

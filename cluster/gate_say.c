/* SPDX-License-Identifier: Apache-2.0 */

#include "cluster/gate_say.h"

#include "base/log.h"
#include "base/wire.h"

static void send_out(struct wire_out *out)
{
	int r = wire_send(GATE_CONTROL_FD, out, 0);

	wire_out_fini(out);
	if (r == WIRE_E_CLOSED)
		exit(0);
	if (!r)
		return;
	log_line(LOG_LEVEL_ERROR, "control", "why=\"%s\"", strerror(r < 0 ? -r : EBADMSG));
	exit(1);
}

void gate_say_ready(const struct gate_address *address)
{
	char text[GATE_CALL_ADDRESS];
	struct wire_out out;

	wire_out_init(&out, GATE_READY);
	wire_put_string(&out, GATE_KEY_ADDRESS, gate_address_text(address, text));
	send_out(&out);
}

void gate_say_trouble(const char *text)
{
	struct wire_out out;

	if (*text)
		log_line(LOG_LEVEL_WARN, "trouble", "why=\"%s\" text=\"it is tried again\"", text);
	else
		log_line(LOG_LEVEL_INFO, "trouble", "text=\"it is over\"");
	wire_out_init(&out, GATE_TROUBLE);
	wire_put_string(&out, GATE_KEY_TEXT, text);
	send_out(&out);
}

_Noreturn void gate_say_failed(const struct diag *diag)
{
	struct wire_out out;

	log_line(LOG_LEVEL_ERROR, "gate-failed", "why=\"%s\"", diag->text);
	wire_out_init(&out, GATE_FAILED);
	wire_put_string(&out, GATE_KEY_TEXT, diag->text);
	send_out(&out);
	exit(1);
}

void gate_say_member(void *arg, uint64_t id, const struct cell_member *member)
{
	char text[GATE_CALL_ADDRESS] = "";
	struct wire_out out;

	(void)arg;
	if (member->has_address)
		gate_address_text(&member->address, text);
	log_line(member->state == GATE_MEMBER_REFUSED ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "member",
		 "node=\"%s\" address=%s state=%s why=\"%s\"", member->node, text,
		 (const char *const[]){"known", "waits", "refused", "met"}[member->state],
		 member->text.text);
	wire_out_init(&out, GATE_MEMBER);
	wire_put_u64(&out, GATE_KEY_ID, id);
	wire_put_string(&out, GATE_KEY_NODE, *member->node ? member->node : text);
	wire_put_string(&out, GATE_KEY_ADDRESS, text);
	wire_put_u64(&out, GATE_KEY_INCARNATION, member->incarnation);
	wire_put_u64(&out, GATE_KEY_STATE, member->state);
	wire_put_string(&out, GATE_KEY_TEXT, member->text.text);
	send_out(&out);
}

void gate_say_gone(void *arg, uint64_t id)
{
	struct wire_out out;

	(void)arg;
	wire_out_init(&out, GATE_MEMBER_GONE);
	wire_put_u64(&out, GATE_KEY_ID, id);
	send_out(&out);
}

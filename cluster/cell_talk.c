/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is answered to a call, and what an answer means. Whoever gets here has proved that he has the cluster's key, or a
 * certificate of its authority; with certificates the node's name is checked against it, before it is used.
 */

#include "cluster/cell_parts.h"

/* ---- who it is ---- */

static bool was_replaced(const struct cell_member *member, uint64_t incarnation)
{
	for (size_t i = 0; i < CELL_REPLACED; i++)
		if (member->replaced[i] && member->replaced[i] == incarnation)
			return true;
	return false;
}

static bool is_double(const struct cell *cell, unsigned slot, uint64_t incarnation)
{
	return was_replaced(&cell->members[slot], incarnation) && cell_is_connected(cell, slot);
}

/* Its channels of an earlier life are dead, whatever accessd has noticed by now. */
static void set_incarnation(struct cell *cell, unsigned slot, uint64_t incarnation, uint64_t now_ns)
{
	struct cell_member *member = &cell->members[slot];

	if (member->incarnation == incarnation)
		return;
	memmove(member->replaced + 1, member->replaced,
		sizeof(member->replaced) - sizeof(*member->replaced));
	member->replaced[0] = member->incarnation;
	for (size_t i = 0; member->incarnation && i < CELL_MOST_DOMAINS; i++) {
		struct cell_link *link = cell->domains[i] ? &cell->domains[i]->links[slot] : NULL;

		if (link && link->is_alive) {
			link->is_alive = false;
			link->next_ns = now_ns;
		}
	}
	member->incarnation = incarnation;
	cell_say(cell, member);
}

/* What was known by its address has a name. Its place: another one, if that node is known already. */
static unsigned give_name(struct cell *cell, unsigned slot, const char *node)
{
	struct cell_member *member = &cell->members[slot];
	const unsigned other = cell_find(cell, node);

	if (strcmp(node, cell->self.node) == 0) {
		member->is_self = true;
		cell_say(cell, member);
		return CELL_NOBODY;
	}
	if (other == slot)
		return slot;
	if (other == CELL_NOBODY) {
		memcpy(member->node, node, strlen(node) + 1);
		member->incarnation = 0;
		return slot;
	}
	if (cell->members[other].is_listed) {
		member->is_alias = true;
		cell_say(cell, member);
		return other;
	}
	cell->members[other].is_listed = cell->members[other].has_address = true;
	cell->members[other].address = member->address;
	cell_forget(cell, slot);
	return other;
}

/* Who called: by name, by the address on which he says he listens, or somebody new. */
static unsigned place_of(struct cell *cell, const struct gate_call *call, uint64_t now_ns)
{
	const struct gate_hello *theirs = &call->theirs;
	unsigned slot = cell_find(cell, theirs->node);

	if (slot != CELL_NOBODY)
		return slot;
	for (unsigned i = 0; i < GATE_MOST_MEMBERS; i++) {
		const struct cell_member *member = &cell->members[i];

		if (member->is_used && !*member->node && !member->is_self &&
		    gate_address_is_host(&member->address, &call->other) &&
		    gate_address_port(&member->address) == theirs->port)
			return give_name(cell, i, theirs->node);
	}
	slot = cell_place(cell, false);
	if (slot == CELL_NOBODY)
		return slot;
	cell->members[slot] =
	    (struct cell_member){.is_used = true, .has_address = true, .address = call->other};
	gate_address_set_port(&cell->members[slot].address, theirs->port);
	memcpy(cell->members[slot].node, theirs->node, sizeof(theirs->node));
	cell_begin(cell, slot, now_ns);
	return slot;
}

/* ---- being called ---- */

/* What keeps the two from each other for good; NONE: nothing. */
static enum gate_answer objection(const struct cell *cell, const struct gate_call *call)
{
	const struct gate_hello *theirs = &call->theirs;

	if (theirs->version != GATE_HELLO_VERSION)
		return GATE_ANSWER_VERSION;
	if (strcmp(theirs->cluster, cell->self.cluster) != 0)
		return GATE_ANSWER_CLUSTER;
	if (strcmp(theirs->node, cell->self.node) == 0)
		return theirs->incarnation == cell->self.incarnation ? GATE_ANSWER_SELF
								     : GATE_ANSWER_SAME_NAME;
	if (!gate_tls_is_of(call->tls, theirs->node))
		return GATE_ANSWER_CERTIFICATE;
	return theirs->is_sealed == cell->self.is_sealed ? GATE_ANSWER_NONE : GATE_ANSWER_SEALED;
}

/* The newer of two calls wins, but where the older is this node's, and this node's id the smaller one. */
static enum gate_answer take(struct cell *cell, struct cell_domain *domain, unsigned slot,
			     struct cell_ref *ret)
{
	struct cell_link *link = &domain->links[slot];

	if (link->is_alive)
		return GATE_ANSWER_CONNECTED;
	if (link->calling && cell->self_id < gate_id_of(cell->members[slot].node))
		return GATE_ANSWER_CROSSED;
	link->calling = 0;
	link->taking = ++cell->serial;
	*ret = (struct cell_ref){slot, domain->number, link->taking};
	return GATE_ANSWER_YES;
}

static enum gate_answer decide(struct cell *cell, const struct gate_call *call, uint64_t now_ns,
			       struct cell_ref *ret)
{
	struct cell_domain *domain;
	enum gate_answer answer = objection(cell, call);
	unsigned slot;

	if (answer != GATE_ANSWER_NONE)
		return answer;
	slot = place_of(cell, call, now_ns);
	if (slot == CELL_NOBODY)
		return GATE_ANSWER_FULL;
	if (is_double(cell, slot, call->theirs.incarnation))
		return GATE_ANSWER_SAME_NAME;
	set_incarnation(cell, slot, call->theirs.incarnation, now_ns);
	cell_set_state(cell, slot, GATE_MEMBER_MET, NULL);
	domain = cell_domain_named(cell, call->theirs.domain);
	if (domain)
		return take(cell, domain, slot, ret);
	cell_forget_stranger(cell, slot);
	return GATE_ANSWER_NO_DOMAIN;
}

void cell_asked(struct cell *cell, const struct gate_call *call, uint64_t now_ns,
		struct gate_hello *ret_answer, struct cell_ref *ret_ref)
{
	const struct cell_domain *domain;

	*ret_answer = cell->self;
	ret_answer->type = GATE_HELLO_ANSWER;
	ret_answer->weight = 1;
	ret_answer->answer = decide(cell, call, now_ns, ret_ref);
	memcpy(ret_answer->domain, call->theirs.domain, sizeof(ret_answer->domain));
	domain =
	    ret_answer->answer == GATE_ANSWER_YES ? cell_domain_of(cell, ret_ref->domain) : NULL;
	if (domain)
		ret_answer->weight = domain->weight;
}

/* ---- answers to calls of this node's ---- */

static void explain(const struct cell *cell, const struct gate_hello *theirs, struct diag *ret)
{
	switch ((enum gate_answer)theirs->answer) {
	case GATE_ANSWER_CLUSTER:
		diag_set(ret,
			 "it is of the cluster %s, this node of %s: set cluster_name to the same "
			 "on both, or take it out of peers",
			 theirs->cluster, cell->self.cluster);
		break;
	case GATE_ANSWER_SAME_NAME:
		diag_set(ret,
			 "another node of this cluster has the name %s, too: give each its own "
			 "node_name, and start accessd there again",
			 cell->self.node);
		break;
	case GATE_ANSWER_CERTIFICATE:
		diag_set(ret,
			 "this node's certificate is not for %s: set node_name here to a name in "
			 "the certificate (subjectAltName, DNS)",
			 cell->self.node);
		break;
	case GATE_ANSWER_SEALED:
		diag_set(ret, "peer_crypt is %s there and %s here: set it to the same on both",
			 theirs->is_sealed ? "on" : "off", cell->self.is_sealed ? "on" : "off");
		break;
	case GATE_ANSWER_FULL:
		diag_set(ret,
			 "it has %d peers by now, and no room for more: does its `peers` "
			 "name other nodes than this node's?",
			 GATE_MOST_MEMBERS);
		break;
	default:
		diag_set(ret, "it answered %u, which makes no sense", theirs->answer);
		break;
	}
}

static bool is_met(uint32_t answer)
{
	return answer == GATE_ANSWER_NO_DOMAIN || answer == GATE_ANSWER_CROSSED ||
	       answer == GATE_ANSWER_CONNECTED;
}

void cell_answered(struct cell *cell, const struct cell_ref *ref, const struct gate_call *call,
		   uint64_t now_ns)
{
	const struct gate_hello *theirs = &call->theirs;
	struct cell_link *link = cell_link_of(cell, ref);
	unsigned slot = ref->slot;
	struct diag text;

	if (!link || link->calling != ref->serial)
		return;
	cell_retry(link, now_ns);
	if (theirs->answer == GATE_ANSWER_NO_DOMAIN) {
		link->failures = 0;
		link->next_ns = now_ns + CELL_MOST_PAUSE_NS; /* it calls when it has one */
	}
	if (!is_met(theirs->answer) && theirs->answer != GATE_ANSWER_SELF) {
		explain(cell, theirs, &text);
		cell_set_state(cell, slot,
			       theirs->answer < GATE_ANSWER_CLUSTER ? GATE_MEMBER_WAITS
								    : GATE_MEMBER_REFUSED,
			       &text);
		return;
	}
	if (!gate_tls_is_of(call->tls, theirs->node))
		return;
	slot = give_name(cell, slot, theirs->node);
	if (slot == CELL_NOBODY)
		return;
	if (!is_double(cell, slot, theirs->incarnation))
		set_incarnation(cell, slot, theirs->incarnation, now_ns);
	cell_set_state(cell, slot, GATE_MEMBER_MET, NULL);
	if (theirs->answer == GATE_ANSWER_NO_DOMAIN)
		cell_forget_stranger(cell, slot);
}

void cell_failed(struct cell *cell, const struct cell_ref *ref, bool is_refused,
		 const struct diag *diag, uint64_t now_ns)
{
	struct cell_link *link = cell_link_of(cell, ref);

	if (!link)
		return;
	if (link->taking == ref->serial) { /* who called tries again, and so does this node */
		link->taking = 0;
		link->next_ns = now_ns + CELL_LEAST_PAUSE_NS;
		return;
	}
	if (link->calling != ref->serial)
		return;
	cell_retry(link, now_ns);
	if (!is_refused && cell_is_connected(cell, ref->slot))
		return; /* one of several domains */
	cell_set_state(cell, ref->slot, is_refused ? GATE_MEMBER_REFUSED : GATE_MEMBER_WAITS, diag);
	if (link->failures >= CELL_STRANGER_FAILURES)
		cell_forget_stranger(cell, ref->slot);
}

bool cell_done(struct cell *cell, const struct cell_ref *ref, const struct gate_call *call,
	       uint64_t now_ns, uint64_t *ret_id)
{
	const struct gate_hello *theirs = &call->theirs;
	struct cell_ref place = *ref;
	struct cell_link *link;

	if (!cell_wants(cell, ref))
		return false;
	if (call->is_caller)
		place.slot = give_name(cell, ref->slot, theirs->node);
	link = cell_link_of(cell, &place);
	if (!link || is_double(cell, place.slot, theirs->incarnation))
		return false;
	set_incarnation(cell, place.slot, theirs->incarnation, now_ns);
	*link =
	    (struct cell_link){.is_alive = true, .since_ns = now_ns, .failures = link->failures};
	cell_set_state(cell, place.slot, GATE_MEMBER_MET, NULL);
	*ret_id = cell->members[place.slot].said;
	return true;
}

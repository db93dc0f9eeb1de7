/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Members and links. What holds after each function:
 *
 *   a node is one member that is neither an alias nor this node itself
 *   a link that lives is neither called nor being taken
 *   who was told of to accessd is said to be gone before its place is used for another
 *
 * An incarnation is drawn once for an accessd's life. One that comes back after another took its place is no restart: two
 * nodes have one name. That is said to whichever comes while the other has a channel.
 */

#include "cluster/cell_parts.h"

int cell_new(const struct gate_hello *self, const struct cell_sink *sink, struct cell **ret)
{
	struct cell *cell = calloc(1, sizeof(*cell));

	if (!cell)
		return -ENOMEM;
	cell->self = *self;
	cell->self.version = GATE_HELLO_VERSION;
	cell->self_id = gate_id_of(self->node);
	cell->sink = *sink;
	*ret = cell;
	return 0;
}

void cell_free(struct cell *cell)
{
	if (!cell)
		return;
	for (size_t i = 0; i < CELL_MOST_DOMAINS; i++)
		free(cell->domains[i]);
	free(cell);
}

/* ---- members ---- */

static uint64_t id_of(const struct cell_member *member)
{
	char text[GATE_CALL_ADDRESS];

	return gate_id_of(*member->node ? member->node : gate_address_text(&member->address, text));
}

static void unsay(struct cell *cell, struct cell_member *member)
{
	if (member->said)
		cell->sink.gone(cell->sink.arg, member->said);
	member->said = 0;
}

void cell_say(struct cell *cell, struct cell_member *member)
{
	const uint64_t id = id_of(member);

	if (member->said != id || member->is_self || member->is_alias)
		unsay(cell, member);
	if (member->is_self || member->is_alias)
		return;
	member->said = id;
	cell->sink.member(cell->sink.arg, id, member);
}

void cell_set_state(struct cell *cell, unsigned slot, enum gate_state state,
		    const struct diag *text)
{
	struct cell_member *member = &cell->members[slot];
	const char *now = text ? text->text : "";

	if (member->said == id_of(member) && member->state == state &&
	    strcmp(member->text.text, now) == 0)
		return;
	member->state = state;
	diag_set(&member->text, "%s", now);
	cell_say(cell, member);
}

void cell_forget(struct cell *cell, unsigned slot)
{
	unsay(cell, &cell->members[slot]);
	memset(&cell->members[slot], 0, sizeof(cell->members[slot]));
	for (size_t i = 0; i < CELL_MOST_DOMAINS; i++)
		if (cell->domains[i])
			memset(&cell->domains[i]->links[slot], 0, sizeof(struct cell_link));
}

unsigned cell_find(const struct cell *cell, const char *node)
{
	for (unsigned i = 0; i < GATE_MOST_MEMBERS; i++) {
		const struct cell_member *member = &cell->members[i];

		if (member->is_used && !member->is_alias && strcmp(member->node, node) == 0)
			return i;
	}
	return CELL_NOBODY;
}

static bool is_listed_at(const struct cell_member *member, const struct peers_entry *entry)
{
	return member->is_used && member->is_listed &&
	       gate_address_is_host(&member->address, &entry->address) &&
	       gate_address_port(&member->address) == gate_address_port(&entry->address) &&
	       (!*entry->node || strcmp(member->node, entry->node) == 0);
}

static bool is_in(const struct peers_list *list, const struct cell_member *member)
{
	for (size_t i = 0; i < list->n; i++)
		if (is_listed_at(member, &list->entries[i]))
			return true;
	return false;
}

/* Who is not listed any more goes, when he has no channel, and what was an alias of his is looked at anew. */
static void forget_unlisted(struct cell *cell, const struct peers_list *list)
{
	bool is_any = false;

	for (unsigned i = 0; i < GATE_MOST_MEMBERS; i++) {
		if (!cell->members[i].is_listed || is_in(list, &cell->members[i]))
			continue;
		if (cell_is_connected(cell, i))
			cell->members[i].is_listed = false; /* as one who called */
		else
			cell_forget(cell, i);
		is_any = true;
	}
	for (unsigned i = 0; is_any && i < GATE_MOST_MEMBERS; i++)
		if (cell->members[i].is_alias) {
			cell->members[i].is_alias = false;
			cell->members[i].node[0] = '\0';
		}
}

/* A place; one who only called, is in no list and has no channel, makes room for who is in it. */
unsigned cell_place(struct cell *cell, bool is_listed)
{
	for (unsigned i = 0; i < GATE_MOST_MEMBERS; i++)
		if (!cell->members[i].is_used)
			return i;
	for (unsigned i = 0; is_listed && i < GATE_MOST_MEMBERS; i++)
		if (!cell->members[i].is_listed && !cell_is_connected(cell, i)) {
			cell_forget(cell, i);
			return i;
		}
	return CELL_NOBODY;
}

void cell_begin(struct cell *cell, unsigned slot, uint64_t now_ns)
{
	for (size_t i = 0; i < CELL_MOST_DOMAINS; i++)
		if (cell->domains[i])
			cell->domains[i]->links[slot] = (struct cell_link){.next_ns = now_ns};
}

static void list_one(struct cell *cell, const struct peers_entry *entry, uint64_t now_ns)
{
	unsigned slot = *entry->node ? cell_find(cell, entry->node) : CELL_NOBODY;
	struct cell_member *member;

	for (unsigned i = 0; i < GATE_MOST_MEMBERS; i++)
		if (is_listed_at(&cell->members[i], entry))
			return;
	if (slot == CELL_NOBODY) {
		slot = cell_place(cell, true);
		if (slot == CELL_NOBODY)
			return;
		cell->members[slot] = (struct cell_member){.is_used = true};
		cell_begin(cell, slot, now_ns);
	}
	member = &cell->members[slot];
	member->is_listed = member->has_address = true;
	member->address = entry->address;
	memcpy(member->node, entry->node, sizeof(member->node));
	cell_say(cell, member);
}

void cell_list(struct cell *cell, const struct peers_list *list, uint64_t now_ns)
{
	forget_unlisted(cell, list);
	for (size_t i = 0; i < list->n; i++)
		list_one(cell, &list->entries[i], now_ns);
}

/* ---- domains ---- */

struct cell_domain *cell_domain_of(const struct cell *cell, uint64_t number)
{
	for (size_t i = 0; i < CELL_MOST_DOMAINS; i++)
		if (cell->domains[i] && cell->domains[i]->number == number)
			return cell->domains[i];
	return NULL;
}

struct cell_domain *cell_domain_named(const struct cell *cell, const char *name)
{
	for (size_t i = 0; i < CELL_MOST_DOMAINS; i++)
		if (cell->domains[i] && strcmp(cell->domains[i]->name, name) == 0)
			return cell->domains[i];
	return NULL;
}

int cell_domain(struct cell *cell, uint64_t number, const char *name, uint64_t weight,
		uint64_t now_ns)
{
	struct cell_domain *domain;
	size_t i = 0;

	if (cell_domain_of(cell, number) || cell_domain_named(cell, name))
		return -EEXIST;
	while (i < CELL_MOST_DOMAINS && cell->domains[i])
		i++;
	if (i == CELL_MOST_DOMAINS)
		return -ENOSPC;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -ENOMEM;
	domain->number = number;
	domain->weight = BASE_MAX(weight, UINT64_C(1));
	strncpy(domain->name, name, sizeof(domain->name) - 1);
	for (unsigned slot = 0; slot < GATE_MOST_MEMBERS; slot++)
		domain->links[slot].next_ns = now_ns;
	cell->domains[i] = domain;
	return 0;
}

void cell_domain_end(struct cell *cell, uint64_t number)
{
	for (size_t i = 0; i < CELL_MOST_DOMAINS; i++)
		if (cell->domains[i] && cell->domains[i]->number == number) {
			free(cell->domains[i]);
			cell->domains[i] = NULL;
		}
}

/* ---- links ---- */

struct cell_link *cell_link_of(const struct cell *cell, const struct cell_ref *ref)
{
	struct cell_domain *domain = cell_domain_of(cell, ref->domain);

	if (!domain || ref->slot >= GATE_MOST_MEMBERS || !cell->members[ref->slot].is_used)
		return NULL;
	return &domain->links[ref->slot];
}

bool cell_wants(const struct cell *cell, const struct cell_ref *ref)
{
	const struct cell_link *link = cell_link_of(cell, ref);

	return link && (link->calling == ref->serial || link->taking == ref->serial);
}

bool cell_is_connected(const struct cell *cell, unsigned slot)
{
	for (size_t i = 0; i < CELL_MOST_DOMAINS; i++)
		if (cell->domains[i] && cell->domains[i]->links[slot].is_alive)
			return true;
	return false;
}

/* Half of it is by chance, so that those whom one event cut off do not come back together. */
static uint64_t pause_ns(unsigned failures)
{
	const uint64_t whole =
	    BASE_MIN(CELL_LEAST_PAUSE_NS << BASE_MIN(failures, 6U), CELL_MOST_PAUSE_NS);
	uint64_t chance = 0;

	base_random(&chance, sizeof(chance));
	return BASE_MAX(whole / 2 + chance % (whole / 2), CELL_LEAST_PAUSE_NS);
}

void cell_retry(struct cell_link *link, uint64_t now_ns)
{
	link->calling = 0;
	link->next_ns = now_ns + pause_ns(link->failures++);
}

void cell_forget_stranger(struct cell *cell, unsigned slot)
{
	if (!cell->members[slot].is_listed && !cell_is_connected(cell, slot))
		cell_forget(cell, slot);
}

void cell_lost(struct cell *cell, uint64_t number, uint64_t id, uint64_t incarnation,
	       uint64_t now_ns)
{
	struct cell_domain *domain = cell_domain_of(cell, number);

	for (unsigned i = 0; domain && i < GATE_MOST_MEMBERS; i++) {
		struct cell_link *link = &domain->links[i];

		if (!cell->members[i].is_used || cell->members[i].said != id || !link->is_alive ||
		    cell->members[i].incarnation != incarnation)
			continue;
		link->is_alive = false;
		if (now_ns - link->since_ns > CELL_MOST_PAUSE_NS)
			link->failures = 0;
		cell_retry(link, now_ns);
	}
}

/* ---- calls of this node's ---- */

static bool is_callable(const struct cell_member *member)
{
	return member->is_used && member->has_address && !member->is_self && !member->is_alias;
}

static bool is_idle(const struct cell_link *link)
{
	return !link->is_alive && !link->calling && !link->taking;
}

bool cell_due(struct cell *cell, uint64_t now_ns, struct cell_call *ret)
{
	for (size_t i = 0; i < CELL_MOST_DOMAINS * (size_t)GATE_MOST_MEMBERS; i++) {
		struct cell_domain *domain = cell->domains[i / GATE_MOST_MEMBERS];
		const unsigned slot = (unsigned)(i % GATE_MOST_MEMBERS);
		struct cell_link *link = domain ? &domain->links[slot] : NULL;

		if (!link || !is_callable(&cell->members[slot]) || !is_idle(link) ||
		    link->next_ns > now_ns)
			continue;
		link->calling = ++cell->serial;
		ret->ref = (struct cell_ref){slot, domain->number, link->calling};
		ret->to = cell->members[slot].address;
		ret->hello = cell->self;
		ret->hello.type = GATE_HELLO_CALL;
		ret->hello.answer = GATE_ANSWER_NONE;
		ret->hello.weight = domain->weight;
		memcpy(ret->hello.domain, domain->name, sizeof(domain->name));
		return true;
	}
	return false;
}

uint64_t cell_next_ns(const struct cell *cell)
{
	uint64_t next_ns = UINT64_MAX;

	for (size_t i = 0; i < CELL_MOST_DOMAINS; i++)
		for (unsigned slot = 0; cell->domains[i] && slot < GATE_MOST_MEMBERS; slot++) {
			const struct cell_link *link = &cell->domains[i]->links[slot];

			if (is_callable(&cell->members[slot]) && is_idle(link))
				next_ns = BASE_MIN(next_ns, link->next_ns);
		}
	return next_ns;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* access-ctl peers: who the other nodes are, and what comes from them. */

#include "tools/ctl.h"

#include "tools/ctl_peer.h"
#include "tools/ctl_value.h"
#include "tools/option.h"
#include "tools/table.h"

#define CTL_PEERS_LINE 76

/* "": there is nothing to say. */
static const char *ctl_said(const struct json_in *object, const char *key)
{
	const char *text = ctl_text(object, key);

	return strcmp(text, "-") == 0 ? "" : text;
}

/* Of data that are open to everybody, where accessd says it. */
static void ctl_peer_paths(const struct json_in *cluster, FILE *out)
{
	const char *paths = ctl_said(cluster, "cluster_paths");

	if (json_in_member(cluster, "cluster_paths"))
		option_wrap(out, 0, CTL_PEERS_LINE, "what is open to everybody is shared %s%s",
			    *paths ? "below "
				   : "with nobody: cluster_paths is empty (accessd.conf(5))",
			    BASE_QUOTED(paths, 600));
}

static void ctl_peer_row(const struct json_in *member, const struct ctl_peer *peer,
			 struct table *table)
{
	ctl_cell_cut(table, ctl_string(member, "node"), 16, false);
	table_cell(table, "%s", ctl_peer_state(member, peer));
	table_cell(table, "%s", peer->transport);
	table_cell(table, "%llu", (unsigned long long)peer->gets);
	table_cell(table, "%llu", (unsigned long long)peer->gots);
	table_cell(table, "%llu", (unsigned long long)peer->late);
	table_cell(table, "%llu", (unsigned long long)peer->answer_us);
	table_cell(table, "%llu", (unsigned long long)peer->had);
	table_cell(table, "%llu", (unsigned long long)peer->kept);
	ctl_cell_bytes(table, peer->received);
	ctl_cell_bytes(table, peer->sent);
	table_end_row(table);
}

/* Why those who are not met are not, and connections ended, of which it says how many did. */
static void ctl_peer_reasons(const struct json_in *members, FILE *out)
{
	JSON_IN_EACH(member, members) {
		const unsigned long long times = ctl_u64(member, "times");
		const char *node = BASE_QUOTED(ctl_string(member, "node"), 128);
		const char *why = BASE_QUOTED(ctl_said(member, "why"), 600);

		if (*why && times)
			option_wrap(out, 2, CTL_PEERS_LINE,
				    "%s: %llu connection%s ended; the last one: %s", node, times,
				    times == 1 ? "" : "s", why);
		else if (*why)
			option_wrap(out, 2, CTL_PEERS_LINE, "%s: %s", node, why);
	}
}

/* Why values do not go by RDMA: each reason once. */
static void ctl_peer_ways(const struct json_in *channels, FILE *out)
{
	for (size_t i = 0; i < json_in_count(channels); i++) {
		const struct json_in *channel = json_in_item(channels, i);
		const char *way = ctl_string(channel, "way");
		bool is_new = strcmp(ctl_string(channel, "transport"), "tcp") == 0 && *way;

		for (size_t j = 0; is_new && j < i; j++)
			is_new = strcmp(ctl_string(json_in_item(channels, j), "way"), way) != 0;
		if (is_new && strcmp(way, "transport = tcp") != 0)
			option_wrap(out, 2, CTL_PEERS_LINE, "by TCP: %s", BASE_QUOTED(way, 600));
	}
}

static void ctl_peer_table(const struct json_in *cluster, FILE *out)
{
	const struct json_in *members = json_in_member(cluster, "members");
	struct table table;

	table_init(&table, "<node|<state|<by|asked|got|late|us|gave|kept|received|sent");
	JSON_IN_EACH(member, members) {
		const struct ctl_peer peer = ctl_peer_of(cluster, member);

		ctl_peer_row(member, &peer, &table);
	}
	table_print(&table, "", NULL, out);
	ctl_peer_reasons(members, out);
	ctl_peer_reasons(json_in_member(cluster, "refused"), out);
	ctl_peer_reasons(json_in_member(cluster, "lost"), out);
	ctl_peer_ways(json_in_member(cluster, "channels"), out);
}

void ctl_draw_peers(const struct json_in *status, FILE *out)
{
	const struct json_in *cluster = json_in_member(status, "cluster");
	const char *address = ctl_text(cluster, "address"), *failed = ctl_said(cluster, "failed"),
		   *trouble = ctl_said(cluster, "trouble");

	if (!cluster) {
		fputs("this node has no peers: set `peers` in accessd.conf (access-cluster(7))\n",
		      out);
		return;
	}
	if (*failed) {
		fputs("the gate does not run: ", out);
		option_wrap(out, 2, CTL_PEERS_LINE, "%s", BASE_QUOTED(failed, 1100));
		return;
	}
	fprintf(out, "%s listens on %s, %s\n", BASE_QUOTED(ctl_string(cluster, "node"), 160),
		*address ? BASE_QUOTED(address, 300) : "nothing yet",
		ctl_is(cluster, "sealed") ? "encrypted" : "not encrypted");
	if (*trouble) {
		fputs("what does not work for now, and is tried again:\n  ", out);
		option_wrap(out, 2, CTL_PEERS_LINE, "%s", BASE_QUOTED(trouble, 1100));
	}
	if (json_in_count(json_in_member(cluster, "members")) == 0)
		fputs("no other node is known\n", out);
	else
		ctl_peer_table(cluster, out);
	ctl_peer_paths(cluster, out);
}

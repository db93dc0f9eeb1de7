/* SPDX-License-Identifier: Apache-2.0 */

/* peers = static:HOST[:PORT],...: the same on all nodes, this one among them or not. Names are looked up again each
 * minute, and sooner while some have no address. */

#include "cluster/peers/peers_kind.h"

#define AGAIN_MS 60000
#define SOON_MS 5000

static int static_check(const char *spec, struct diag *diag)
{
	size_t n = 0;

	for (const char *at = spec; *at; n++) {
		const size_t size = strcspn(at, ",");
		char host[PEERS_HOST];
		struct diag why;
		unsigned port;

		if (peers_parse_host(at, size, host, &port, &why))
			return diag_fail(diag, -EINVAL, "peers = static:...: %s", why.text);
		at += size + (at[size] == ',');
	}
	if (n > 0 && n <= PEERS_MOST)
		return 0;
	return diag_fail(diag, -EINVAL,
			 "peers = static: names %zu hosts; it must be 1 to %d, as in "
			 "static:node1,node2:7411",
			 n, PEERS_MOST);
}

static void static_run(struct peers_look *look)
{
	struct peers_found found = {NULL, 0, 0};
	bool is_whole;

	do {
		is_whole = peers_resolve_list(look, look->spec, &found);
	} while (!peers_wait(look, is_whole ? AGAIN_MS : SOON_MS));
	free(found.entries);
}

const struct peers_kind peers_static = {"static", static_check, static_run};

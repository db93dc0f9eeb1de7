/* SPDX-License-Identifier: Apache-2.0 */

/* peers = dns:NAME[:PORT]: every address that the name has, looked up each 10 s; as a headless service of Kubernetes has
 * one for each pod. */

#include "cluster/peers/peers_kind.h"

#define AGAIN_MS 10000

static int dns_check(const char *spec, struct diag *diag)
{
	char host[PEERS_HOST];
	struct diag why;
	unsigned port;

	if (peers_parse_host(spec, strlen(spec), host, &port, &why) == 0)
		return 0;
	return diag_fail(diag, -EINVAL, "peers = dns:...: %s", why.text);
}

static void look_up(struct peers_look *look, struct gate_address *addresses)
{
	struct peers_found found = {NULL, 0, 0};
	char host[PEERS_HOST];
	struct diag why = {""};
	unsigned port;
	size_t n;

	peers_parse_host(look->spec, strlen(look->spec), host, &port, &why);
	n = peers_resolve(look->self, host, port ? port : gate_address_port(&look->self->listen),
			  addresses, PEERS_MOST, &why);
	for (size_t i = 0; i < n; i++)
		peers_add(&found, &(struct peers_entry){.address = addresses[i]});
	if (n > 0) /* else it is as it was */
		look->publish(look, &found);
	peers_tell(look, n > 0 ? "" : why.text);
	free(found.entries);
}

static void dns_run(struct peers_look *look)
{
	struct gate_address *addresses = calloc(PEERS_MOST, sizeof(*addresses));

	do {
		if (addresses)
			look_up(look, addresses);
	} while (!peers_wait(look, AGAIN_MS));
	free(addresses);
}

const struct peers_kind peers_dns = {"dns", dns_check, dns_run};

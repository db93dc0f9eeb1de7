/* SPDX-License-Identifier: Apache-2.0 */

/* What an etcd answers, or somebody in its place: each reader gets each text, and what it makes of it has names. */

#include "cluster/peers/peers_etcd_json.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX "/oneaccess/c/node/"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_event(void *arg, const struct peers_etcd_event *event)
{
	(void)arg;
	if (!gate_hello_is_name(event->node))
		abort();
	if (!event->is_gone &&
	    (strcmp(event->entry.node, event->node) != 0 || event->entry.incarnation == 0 ||
	     event->entry.address.size == 0 || gate_address_port(&event->entry.address) == 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	char lease[24] = "", refusal[PEERS_ETCD_REFUSAL], *token = NULL;
	uint64_t revision;

	if (peers_etcd_read_grant(text, size, lease) == 0 && !*lease)
		abort();
	if (peers_etcd_read_token(text, size, &token) == 0 &&
	    (!*token || strchr(token, '\n') || strlen(token) > PEERS_ETCD_MOST_TOKEN))
		abort();
	free(token);
	peers_etcd_read_refusal(text, size, refusal);
	if (!*refusal || strchr(refusal, '\n') || strlen(refusal) >= sizeof(refusal))
		abort();
	peers_etcd_read_keepalive(text, size);
	peers_etcd_read_range(text, size, PREFIX, on_event, NULL, &revision);
	peers_etcd_read_watch(text, size, PREFIX, on_event, NULL);
	return 0;
}

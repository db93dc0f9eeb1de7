/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What may be in the files of peer_key and peer_certificates: as the key, and in PEM as this node's chain, its key and the
 * authority, all of which may be in one file. What is refused is so with a reason, and a connection can begin with what is not.
 */

#include "cluster/gate_tls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_so)
{
	if (!is_so)
		abort();
}

static void use(int r, struct gate_tls_way *way, const struct diag *diag)
{
	struct gate_tls *tls;
	struct diag why;
	int ends[2];

	check(r ? !way && *diag->text && !strchr(diag->text, '\n') : way != NULL);
	if (r)
		return;
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
	check(gate_tls_new(way, ends[0], true, &tls) == 0);
	check(gate_tls_shake(tls, &why) == GATE_TLS_E_READ);
	gate_tls_free(tls);
	close(ends[0]);
	close(ends[1]);
	gate_tls_way_free(way);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct gate_tls_file file = {(const char *)data, size};
	struct gate_tls_way *way = NULL;
	struct diag diag = {""};
	int r = gate_tls_way_of_key(file, &way, &diag);

	check((r == 0) == (size >= GATE_TLS_LEAST_KEY && size <= GATE_TLS_MOST_FILE));
	use(r, way, &diag);
	way = NULL;
	diag = (struct diag){""};
	r = gate_tls_way_of_certificates(file, file, file, &way, &diag);
	use(r, way, &diag);
	return 0;
}

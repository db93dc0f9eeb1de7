/* SPDX-License-Identifier: Apache-2.0 */

/* OPENs that anybody could have sent. What is accepted keeps every promise of request.h; what is
 * refused has a code and a sentence. */

#include "daemon/param.h"
#include "daemon/request.h"
#include "libaccess/libaccess.h"
#include "pipeline/pipeline.h"
#include "sched/token.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_accepted(const struct request *request)
{
	const char *canonical = pipeline_canonical(request->pipeline);
	struct pipeline *again = NULL;
	struct token token = {0};
	struct diag diag = {""};

	if (request->dataset[0] != '/' || strlen(request->dataset) > PARAM_TEXT_MAX ||
	    strlen(request->job) > REQUEST_NAME_MAX || request->batch < 1 ||
	    request->batch > 65536 || request->hand > 65536 ||
	    request->policy > PROTO_POLICY_SUBSTITUTE)
		abort();
	if (pipeline_compile(canonical, strlen(canonical), &again, &diag) ||
	    strcmp(pipeline_canonical(again), canonical) != 0)
		abort();
	pipeline_free(again);
	if (request->token && token_parse(request->token, request->token_size, &token, &diag))
		abort();
	token_fini(&token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t nonce[REQUEST_NONCE] = {0};
	struct request request;
	struct diag diag = {""};
	const void *repeated;
	struct wire_in in;
	size_t length;
	int code;

	request_init(&request);
	wire_in_init(&in);
	if (wire_in_parse(&in, data, size) == 0) {
		if (wire_get_bytes(&in, PROTO_KEY_NONCE, &repeated, &length) == 0 &&
		    length == sizeof(nonce))
			memcpy(nonce, repeated, length); /* nobody guesses one */
		request.program = request_text(&in, PROTO_KEY_PROGRAM, REQUEST_NAME_MAX);
		code = request_parse(&request, &in, nonce, &diag);
		if (code == 0)
			fuzz_accepted(&request);
		else if (code < OA_E_END || code > OA_E_LIMIT || !diag.text[0])
			abort();
		request_fini(&request);
	}
	wire_in_fini(&in);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * OPENs that anybody could have sent: the bytes themselves as a message, and the message that the grammar
 * makes of them. What is accepted keeps every promise of request.h; what is refused has a code and a
 * sentence. Accepted or refused, nothing is written that the message has no item for: neither past the
 * request, where a page begins that cannot be touched, nor over its other fields.
 */

#include "daemon/net/request.h"
#include "daemon/param.h"
#include "libaccess/libaccess.h"
#include "pipeline/pipeline.h"
#include "plan/token.h"
#include "tests/fuzz/grammar.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t fuzz_zeros[64];

static void demand(bool truth)
{
	if (!truth)
		abort();
}

/* A request whose last byte is the last one before memory that nobody may touch. */
static struct request *fuzz_request(void)
{
	static uint8_t *end;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!end) {
		end = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
		demand((void *)end != MAP_FAILED);
		end += page;
		demand(mprotect(end, page, PROT_NONE) == 0);
	}
	return (struct request *)(end - sizeof(struct request));
}

static bool has_bytes(const struct wire_in *in, uint16_t key, size_t size)
{
	const void *bytes;
	size_t found;

	return wire_get_bytes(in, key, &bytes, &found) == 0 && found == size;
}

static bool has_number(const struct wire_in *in, uint16_t key)
{
	uint64_t number;

	return wire_get_u64(in, key, &number) == 0;
}

static bool is_bool(const bool *flag)
{
	uint8_t byte;

	memcpy(&byte, flag, 1);
	return byte <= 1;
}

/* What the message does not say is as request_init() left it, whatever came of the rest. */
static void fuzz_untouched(const struct request *request, const struct wire_in *in)
{
	const struct population_split *split = &request->part.split;

	if (!has_bytes(in, PROTO_KEY_PART, sizeof(request->part.version)))
		demand(memcmp(request->part.version, fuzz_zeros, sizeof(request->part.version)) ==
		       0);
	if (!has_bytes(in, PROTO_KEY_SPLIT, 24))
		demand(memcmp(split, fuzz_zeros, sizeof(*split)) == 0);
	if (!has_bytes(in, PROTO_KEY_TOKEN, request->token.size))
		demand(!request->token.data && !request->token.size);
	demand(request->part.sum == 0 && request->minor == 0);
	demand(request->reuse <= REQUEST_MOST_REUSE);
	demand(has_number(in, PROTO_KEY_EXACT) || !request->is_exact);
	demand(has_number(in, PROTO_KEY_BUDGET) || !request->has_budget);
	demand(is_bool(&request->is_exact) && is_bool(&request->has_budget) &&
	       is_bool(&request->has_filtered));
	demand(request->part.fd == -1 || fcntl(request->part.fd, F_GETFD) >= 0);
	demand(request->log_fd == -1 || fcntl(request->log_fd, F_GETFD) >= 0);
	demand(memchr(request->keep, 0, sizeof(request->keep)) != NULL);
}

static void fuzz_accepted(const struct request *request)
{
	const char *canonical = pipeline_canonical(request->pipeline);
	struct pipeline *again = NULL;
	struct token token;
	struct diag diag = {""};

	demand(request_is_dataset(request->dataset) && strlen(request->dataset) <= PARAM_TEXT_MAX &&
	       strlen(request->job) <= REQUEST_NAME_MAX);
	demand(request->batch >= 1 && request->batch <= 65536 && request->chunk <= 65536 &&
	       request->rank < request->ranks && request->ranks <= 65536 &&
	       request->policy <= PROTO_POLICY_SUBSTITUTE);
	demand(request->part.split.from >= 0 && request->part.split.from <= 1 &&
	       request->part.split.to >= 0 && request->part.split.to <= 1);
	demand(pipeline_compile(canonical, strlen(canonical), &again, &diag) == 0 &&
	       strcmp(pipeline_canonical(again), canonical) == 0);
	pipeline_free(again);
	demand(!request->token.data ||
	       token_look(request->token.data, request->token.size, &token, &diag) == 0);
}

/* nonce NULL: the message's own, which nobody guesses. */
static void fuzz_parse(struct wire_in *in, const uint8_t *nonce)
{
	struct request *request = fuzz_request();
	struct diag diag = {""};
	union message message;
	int code;

	if (message_read(in, &message, &diag)) {
		demand(diag.text[0]);
		return;
	}
	if (in->type != PROTO_OPEN)
		return;
	request_init(request);
	request->program = request_name("fuzz");
	code = request_parse(request, &message.open, in, nonce ? nonce : message.open.nonce, &diag);
	fuzz_untouched(request, in);
	if (code == 0)
		fuzz_accepted(request);
	else
		demand(code >= OA_E_END && code <= OA_E_LIMIT && diag.text[0]);
	request_fini(request);
}

static void fuzz_bytes(const uint8_t *data, size_t size)
{
	struct wire_in in;

	wire_in_init(&in);
	if (wire_in_parse(&in, data, size) == 0)
		fuzz_parse(&in, NULL);
	wire_in_fini(&in);
}

static void fuzz_made(const uint8_t *data, size_t size)
{
	static const uint8_t nonce[MESSAGE_NONCE] = {1, 2, 3};
	const struct grammar_world world = {
	    .dataset = "/data", .version = {4, 5, 6}, .samples = 40, .nonce = nonce};
	struct grammar grammar = {data, size};
	unsigned n_fds = grammar_below(&grammar, 4);
	struct wire_out out;
	struct wire_in in;

	wire_in_init(&in);
	grammar_message(&grammar, &world, &out);
	if (!out.error) {
		demand(wire_in_parse(&in, out.data, out.size) == 0);
		while (in.n_fds < n_fds)
			in.fds[in.n_fds++] = grammar_fd(&grammar, &world); /* or -1 */
		fuzz_parse(&in, nonce);
	}
	wire_out_fini(&out);
	wire_in_fini(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_bytes(data, size);
	fuzz_made(data, size);
	return 0;
}

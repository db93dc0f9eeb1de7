/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/fuzz/grammar.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plan/listing.h"
#include "plan/token.h"
#include "shmring/proto.h"

/* ---- choices ---- */

uint8_t grammar_byte(struct grammar *grammar)
{
	if (!grammar->left)
		return 0;
	grammar->left--;
	return *grammar->at++;
}

uint32_t grammar_below(struct grammar *grammar, uint32_t below)
{
	return grammar_byte(grammar) % below;
}

uint64_t grammar_number(struct grammar *grammar)
{
	static const uint64_t limits[] = {
	    255,
	    256,
	    257,
	    4096,
	    65535,
	    65536,
	    65537,
	    INT32_MAX,
	    UINT64_C(1) << 31,
	    UINT32_MAX,
	    UINT64_C(1) << 32,
	    UINT64_C(1) << 40,
	    INT64_MAX,
	    UINT64_C(1) << 63,
	    UINT64_MAX - 1,
	    UINT64_MAX,
	};
	uint8_t choice = grammar_byte(grammar);
	uint64_t number = 0;

	if (choice < 128)
		return choice;
	if (choice < 192)
		return limits[choice % BASE_ARRAY_LEN(limits)];
	for (unsigned i = 0; i < 8; i++)
		number = number << 8 | grammar_byte(grammar);
	return number;
}

size_t grammar_bytes(struct grammar *grammar, size_t usual, const void **ret)
{
	static const uint32_t sizes[] = {0,  1,  8,  15,  16,  17,   31,    32,
					 33, 40, 64, 256, 400, 4096, 65536, 180000};
	static uint8_t bytes[180000];
	uint8_t choice = grammar_byte(grammar), fill = grammar_byte(grammar);
	size_t size = choice < 128 ? usual : sizes[choice % BASE_ARRAY_LEN(sizes)];

	memset(bytes, fill, size);
	if (fill % 2 == 0)
		for (size_t i = 0; i < BASE_MIN(size, (size_t)64); i++)
			bytes[i] = grammar_byte(grammar);
	*ret = bytes;
	return size;
}

/* ---- texts ---- */

#define SMALL "{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":8}"
#define CROP "{\"op\":\"resize\",\"size\":8},{\"op\":\"center_crop\",\"size\":8}"
#define RECORD "{\"op\":\"decode\",\"source\":\"record\",\"fields\":"
#define RANDOM "{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":8}"
static const char *const pipelines[] = {
    "imagenet-eval-u8",
    "[" SMALL ",{\"op\":\"center_crop\",\"size\":8}]",
    "[" RANDOM ",{\"op\":\"hflip\"}]",
    "[" RANDOM ",{\"op\":\"mixup\",\"num_classes\":3}]",
    "[" SMALL ",{\"op\":\"center_crop\",\"size\":8},{\"op\":\"filter\",\"keep\":[1]}]",
    "imagenet-train",
    "{\"ops\":[]}",
    "[" RANDOM
    ",{\"op\":\"view\",\"names\":[\"b\",\"c\"]},{\"op\":\"random_resized_crop\",\"size\":4}]",
    "[" RECORD "[[4,2],[1,9,9],[3,5,4]],\"kinds\":[0,5,3],\"names\":[\"a\",\"m\",\"boxes\"]}," CROP
    "]",
    "[" RECORD "[[4,3],[3,5,4]],\"kinds\":[4,3]},{\"op\":\"rotate\",\"degrees\":[-9,9]}," CROP "]",
    "[{\"op\":\"record\",\"fields\":[[4],[13,2,2]],\"kinds\":[0,1],\"names\":[\"label\",\"x\"]}]",
    "[" RANDOM ",{\"op\":\"mosaic\"}]",
};
/* Names, and what may stand behind a path. */
static const char *const odd_datasets[] = {
    "name:pets",
    "name:nobody",
    "name:",
    "name:pets?image=jpg",
    "name:../pets",
    "/data?image=jpg,label=cls",
    "/data/{000..002}.tar?",
    "/data/{a,b}/{00..15}.tar?image=jpg",
};
static const char *const others[] = {"auto", "packed", "decoded", "everybody", "0", "job", ""};

static const char *text_of(struct grammar *grammar, const struct grammar_world *world, uint16_t key)
{
	static char text[16384];
	uint8_t choice = grammar_byte(grammar);
	size_t size = choice & 63;

	if (choice < 96 && key == PROTO_KEY_DATASET && world)
		return world->dataset;
	if (choice < 128 && key == PROTO_KEY_DATASET)
		return odd_datasets[choice % BASE_ARRAY_LEN(odd_datasets)];
	if (choice < 128 && key == PROTO_KEY_PIPELINE)
		return pipelines[choice % BASE_ARRAY_LEN(pipelines)];
	if (choice < 128)
		return others[choice % BASE_ARRAY_LEN(others)];
	if (choice < 192)
		size *= 255;
	memset(text, '/', size);
	text[size] = '\0';
	for (size_t i = 0; i < BASE_MIN(size, (size_t)63); i++)
		text[i] = (char)BASE_MAX(grammar_byte(grammar), 1);
	return text;
}

/* ---- tokens ---- */

/* Of this dataset and any place in it, or bytes. */
static void put_token(struct grammar *grammar, const struct grammar_world *world,
		      struct wire_out *out)
{
	uint64_t need = grammar_number(grammar) & ((UINT64_C(1) << world->samples) - 1);
	uint8_t choice = grammar_byte(grammar), bytes[1024];
	struct token token = {
	    .n = world->samples,
	    .block = 1,
	    .order = choice & 7,
	    .seed = grammar_below(grammar, 3),
	    .epoch = grammar_number(grammar),
	    .delivered = grammar_number(grammar),
	    .need = &need,
	    .has_log = choice & 8,
	    .place = grammar_below(grammar, 4),
	};

	memcpy(token.dataset, world->version, sizeof(token.dataset));
	memset(token.sampler, choice & 16 ? choice : 0, sizeof(token.sampler));
	wire_put_bytes(out, PROTO_KEY_TOKEN, bytes, token_write(&token, bytes, sizeof(bytes)));
}

/* ---- items ---- */

enum grammar_kind { GRAMMAR_NUMBER, GRAMMAR_TEXT, GRAMMAR_BYTES };

static const struct grammar_item {
	uint16_t key;
	enum grammar_kind kind;
	size_t usual;
} items[] = {
    {PROTO_KEY_MAJOR, GRAMMAR_NUMBER, 0},       {PROTO_KEY_MINOR, GRAMMAR_NUMBER, 0},
    {PROTO_KEY_PROGRAM, GRAMMAR_TEXT, 0},       {PROTO_KEY_NONCE, GRAMMAR_BYTES, 16},
    {PROTO_KEY_DATASET, GRAMMAR_TEXT, 0},       {PROTO_KEY_PIPELINE, GRAMMAR_TEXT, 0},
    {PROTO_KEY_BATCH, GRAMMAR_NUMBER, 0},       {PROTO_KEY_EPOCHS, GRAMMAR_NUMBER, 0},
    {PROTO_KEY_JOB, GRAMMAR_TEXT, 0},           {PROTO_KEY_POLICY, GRAMMAR_NUMBER, 0},
    {PROTO_KEY_BUDGET, GRAMMAR_NUMBER, 0},      {PROTO_KEY_RANKS, GRAMMAR_NUMBER, 0},
    {PROTO_KEY_RANK, GRAMMAR_NUMBER, 0},        {PROTO_KEY_TOKEN, GRAMMAR_BYTES, 136},
    {PROTO_KEY_CHUNK, GRAMMAR_NUMBER, 0},       {PROTO_KEY_EPOCH, GRAMMAR_NUMBER, 0},
    {PROTO_KEY_ORDER, GRAMMAR_NUMBER, 0},       {PROTO_KEY_INSTANCE, GRAMMAR_NUMBER, 0},
    {PROTO_KEY_SEED, GRAMMAR_NUMBER, 0},        {PROTO_KEY_POSITION, GRAMMAR_NUMBER, 0},
    {PROTO_KEY_LOG, GRAMMAR_NUMBER, 0},         {PROTO_KEY_PART, GRAMMAR_BYTES, 32},
    {PROTO_KEY_SPLIT, GRAMMAR_BYTES, 24},       {PROTO_KEY_REUSE, GRAMMAR_NUMBER, 0},
    {PROTO_KEY_EXACT, GRAMMAR_NUMBER, 0},       {PROTO_KEY_FILTERED, GRAMMAR_NUMBER, 0},
    {PROTO_KEY_VERB, GRAMMAR_NUMBER, 0},        {PROTO_KEY_GROUP, GRAMMAR_BYTES, 32},
    {PROTO_KEY_LOCAL_RANKS, GRAMMAR_NUMBER, 0}, {PROTO_KEY_LOCAL_FIRST, GRAMMAR_NUMBER, 0},
    {PROTO_KEY_SPREAD, GRAMMAR_NUMBER, 0},      {PROTO_KEY_DROP_LAST, GRAMMAR_NUMBER, 0},
    {PROTO_KEY_WHO, GRAMMAR_TEXT, 0},           {PROTO_KEY_FORM, GRAMMAR_TEXT, 0},
    {PROTO_KEY_VERSION, GRAMMAR_BYTES, 32},     {PROTO_KEY_TEXT, GRAMMAR_TEXT, 0},
};

static void put_item(struct grammar *grammar, const struct grammar_world *world,
		     struct wire_out *out)
{
	const struct grammar_item *item = &items[grammar_below(grammar, BASE_ARRAY_LEN(items))];
	uint8_t choice = grammar_byte(grammar);
	enum grammar_kind kind = choice < 224 ? item->kind : (enum grammar_kind)(choice % 3);
	const void *bytes;
	size_t size;

	if (kind == GRAMMAR_NUMBER) {
		wire_put_u64(out, item->key, grammar_number(grammar));
	} else if (kind == GRAMMAR_TEXT) {
		wire_put_string(out, item->key, text_of(grammar, world, item->key));
	} else if (choice < 128 && item->key == PROTO_KEY_TOKEN) {
		put_token(grammar, world, out);
	} else if (choice < 128 && item->key == PROTO_KEY_PART) {
		wire_put_bytes(out, item->key, world->version, sizeof(world->version));
	} else {
		size = grammar_bytes(grammar, item->usual, &bytes);
		wire_put_bytes(out, item->key, bytes, size);
	}
}

/* ---- messages ---- */

/* Of a job that may be there, from a place or of samples. */
static void put_bad(struct grammar *grammar, const struct grammar_world *world,
		    struct wire_out *out)
{
	uint64_t id[3];

	wire_put_u64(out, PROTO_KEY_JOB_ID, world->job - grammar_below(grammar, 3));
	if (grammar_below(grammar, 2)) {
		wire_put_u64(out, PROTO_KEY_FROM, grammar_number(grammar));
		return;
	}
	for (unsigned i = 0; i < BASE_ARRAY_LEN(id); i++)
		id[i] = grammar_number(grammar);
	wire_put_bytes(out, PROTO_KEY_IDS, id, sizeof(id) - grammar_below(grammar, 20));
}

static const uint8_t served[] = {1, 2, 3, 4, 7, 11}; /* of pipelines: a folder has what they want */

static void put_honest(struct grammar *grammar, const struct grammar_world *world, uint16_t type,
		       struct wire_out *out)
{
	switch (type) {
	case PROTO_HELLO:
		wire_put_u64(out, PROTO_KEY_MAJOR, PROTO_MAJOR);
		wire_put_u64(out, PROTO_KEY_MINOR, PROTO_MINOR);
		break;
	case PROTO_OPEN:
		wire_put_bytes(out, PROTO_KEY_NONCE, world->nonce, 16);
		wire_put_u64(out, PROTO_KEY_BATCH, 1 + grammar_below(grammar, 4));
		wire_put_u64(out, PROTO_KEY_CHUNK, 4);
		wire_put_string(out, PROTO_KEY_PIPELINE,
				pipelines[served[grammar_below(grammar, BASE_ARRAY_LEN(served))]]);
		wire_put_u64(out, PROTO_KEY_FILTERED, 1);
		wire_put_string(out, PROTO_KEY_DATASET, world->dataset);
		break;
	case PROTO_DESCRIBE:
		wire_put_string(out, PROTO_KEY_DATASET, world->dataset);
		break;
	case PROTO_PLAN:
		wire_put_u64(out, PROTO_KEY_EPOCH, grammar_below(grammar, 3));
		break;
	case PROTO_BAD:
		put_bad(grammar, world, out);
		break;
	default:
		break;
	}
}

void grammar_message(struct grammar *grammar, const struct grammar_world *world,
		     struct wire_out *ret)
{
	static const uint16_t types[] = {
	    PROTO_HELLO,   PROTO_OPEN, PROTO_OPEN, PROTO_OPEN,   PROTO_DESCRIBE, PROTO_KICK,
	    PROTO_EXPLAIN, PROTO_PLAN, PROTO_PLAN, PROTO_STATUS, PROTO_CACHE,
	};
	uint8_t choice = grammar_byte(grammar);
	uint16_t type = types[choice % BASE_ARRAY_LEN(types)];
	unsigned n = grammar_below(grammar, 8);

	if (choice >= 250)
		type = (uint16_t)grammar_number(grammar);
	else if (choice >= 245)
		type = PROTO_BAD;
	else if (choice >= 243)
		type = PROTO_WATCH;
	wire_out_init(ret, type);
	while (n-- > 0)
		put_item(grammar, world, ret);
	if (choice < 240 || type == PROTO_BAD)
		put_honest(grammar, world, type, ret);
}

void grammar_any(struct grammar *grammar, uint16_t type, struct wire_out *ret)
{
	unsigned n = grammar_below(grammar, 8);

	wire_out_init(ret, type);
	while (n-- > 0) {
		uint8_t choice = grammar_byte(grammar);
		uint16_t key = grammar_byte(grammar) & 63;
		const void *bytes;
		size_t size;

		if (choice < 160) {
			wire_put_u64(ret, key, grammar_number(grammar));
		} else if (choice < 192) {
			wire_put_string(ret, key, text_of(grammar, NULL, 0));
		} else {
			size = grammar_bytes(grammar, 168, &bytes);
			wire_put_bytes(ret, key, bytes, size);
		}
	}
}

/* ---- descriptors ---- */

static int memory(const void *bytes, size_t size, int seals)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || (size && write(fd, bytes, size) != (ssize_t)size) ||
	    fcntl(fd, F_ADD_SEALS, seals))
		abort();
	return fd;
}

#define ALL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static int part(struct grammar *grammar, const struct grammar_world *world)
{
	uint64_t bits = 0;

	for (uint64_t i = 0; i < world->samples; i += 8)
		bits |= (uint64_t)grammar_byte(grammar) << i;
	return memory(&bits, sizeof(bits), ALL_SEALS);
}

static int list(struct grammar *grammar, const struct grammar_world *world)
{
	uint64_t entries[16], words[64];
	struct listing_key keys[2] = {{1, 2}, {3, grammar_byte(grammar)}};
	struct listing_draft draft = {.entries = entries,
				      .keys = keys,
				      .places = 1 + grammar_below(grammar, 16),
				      .n_keys = 2};

	for (uint64_t i = 0; i < draft.places; i++)
		entries[i] = listing_entry(grammar_below(grammar, (uint32_t)world->samples), i & 1);
	if (grammar_byte(grammar) & 1) /* an entry that is none */
		entries[0] = grammar_number(grammar);
	listing_write(&draft, words);
	return memory(words, listing_bytes(&draft), ALL_SEALS);
}

static int sparse(uint64_t bytes, int seals)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, seals))
		base_close(&fd);
	return fd;
}

static int pipe_end(unsigned end)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		abort();
	close(ends[!end]);
	return ends[end];
}

static int socket_end(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		abort();
	close(ends[1]);
	return ends[0];
}

int grammar_fd(struct grammar *grammar, const struct grammar_world *world)
{
	uint8_t choice = grammar_byte(grammar);
	const void *bytes;
	size_t size;

	switch (choice % 12) {
	case 0:
	case 1:
	case 2:
		return part(grammar, world);
	case 3:
	case 4:
	case 5:
		return list(grammar, world);
	case 6:
		return sparse(BASE_MIN(grammar_number(grammar), UINT64_C(1) << 32),
			      choice & 128 ? ALL_SEALS : 0);
	case 7:
		return pipe_end(choice & 64 ? 1 : 0);
	case 8:
		return socket_end();
	case 9:
		return open(choice & 64 ? "/" : "/dev/null", O_RDONLY | O_CLOEXEC);
	case 10:
		return eventfd(0, EFD_CLOEXEC);
	default:
		size = grammar_bytes(grammar, 64, &bytes);
		return memory(bytes, size, choice & 128 ? ALL_SEALS : F_SEAL_SHRINK);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replaying. The file is read once at the opening, in full: that finds damage before the job begins,
 * says which epochs there are and where, and gives the plan its name, which tokens carry. An
 * epoch is read again when its list is due, and must then be what it was.
 *
 * Keys are those of chunks: each is named by many samples that follow each other, and by some that
 * were carried over a few batches. So a key is looked for among the last ones only; that one may
 * come twice into a list's table does no harm.
 */

#include "libaccess/replay.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/hash.h"
#include "libaccess/error.h"
#include "plan/plan.h"

#define REPLAY_RECENT 64
#define REPLAY_MOST_EPOCHS (UINT64_C(1) << 24)

void replay_init(struct replay *replay)
{
	*replay = (struct replay){.fd = -1};
}

void replay_fini(struct replay *replay)
{
	base_close(&replay->fd);
	free(replay->path);
	free(replay->epochs);
	replay_init(replay);
}

static struct recording_reader replay_reader(const struct replay *replay)
{
	return (struct recording_reader){
	    .read = base_read_at, .file = replay->fd, .size = replay->size};
}

/* ---- at the opening ---- */

static int replay_bad(const struct replay *replay, struct diag *diag, const char *why)
{
	return error_open(diag, "options.replay: %s: %s", replay->path, why);
}

static int replay_add_epoch(struct replay *replay, const struct recording_reader *reader)
{
	if (!base_grow(&replay->epochs, &replay->room, replay->n_epochs + 1,
		       sizeof(*replay->epochs)))
		return -ENOMEM;
	replay->epochs[replay->n_epochs++] = (struct replay_epoch){
	    .offset = reader->begin,
	    .number = reader->number - 1,
	};
	return 0;
}

static int replay_note(struct replay *replay, const struct recording_reader *reader,
		       const struct recording_batch *batch, struct diag *diag)
{
	uint64_t next = replay->first + replay->n_epochs;
	int r = 0;

	if (batch->ranks != 1)
		return replay_bad(replay, diag,
				  "it is the part of one of several ranks; join all parts by "
				  "access-ctl plan export --format plan");
	if (!replay->n_epochs)
		next = replay->first = batch->epoch;
	if (batch->epoch == next && replay->n_epochs < REPLAY_MOST_EPOCHS)
		r = replay_add_epoch(replay, reader);
	else if (!replay->n_epochs || batch->epoch + 1 != next)
		return replay_bad(replay, diag, "its epochs do not follow each other");
	if (!r)
		replay->epochs[replay->n_epochs - 1].places += batch->count;
	return r;
}

static int replay_scan(struct replay *replay, struct recording_reader *reader, struct hash *hash,
		       struct diag *diag)
{
	struct recording_batch batch;
	int r;

	while ((r = recording_next(reader, &batch, diag)) == 0) {
		if (!batch.count)
			continue;
		r = replay_note(replay, reader, &batch, diag);
		if (r)
			return r;
		hash_add_u64(hash, batch.epoch);
		hash_add_u64(hash, batch.count);
		hash_add(hash, batch.runs, (size_t)(batch.ids - batch.runs));
		hash_add(hash, batch.ids, (size_t)batch.count * batch.id_bytes);
	}
	if (r != RECORDING_E_END && r != RECORDING_E_CUT)
		return r < 0 ? r : replay_bad(replay, diag, "it is damaged, and not at its end");
	if (!replay->n_epochs)
		return replay_bad(replay, diag, "it holds no batch");
	return 0;
}

static int replay_read_all(struct replay *replay, uint8_t hash[TOKEN_SAMPLER], struct diag *diag)
{
	_cleanup_(hash_freep) struct hash *content = NULL;
	_cleanup_(recording_fini) struct recording_reader reader = replay_reader(replay);
	struct hash_id id;
	int r = hash_new(&content);

	r = r ? r : recording_open(&reader, diag);
	if (r > 0) {
		struct diag why = *diag;

		return replay_bad(replay, diag, why.text);
	}
	if (r)
		return r;
	replay->head = reader.head;
	hash_add(content, "oneaccess replay", sizeof("oneaccess replay"));
	hash_add(content, replay->head.dataset, sizeof(replay->head.dataset));
	r = replay_scan(replay, &reader, content, diag);
	hash_finish(content, &id);
	memcpy(hash, id.bytes, TOKEN_SAMPLER);
	return r;
}

int replay_open(struct replay *replay, const char *path, uint8_t hash[TOKEN_SAMPLER],
		struct diag *diag)
{
	struct stat st;
	int r;

	replay->path = strdup(path);
	if (!replay->path)
		return -ENOMEM;
	replay->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (replay->fd < 0 || fstat(replay->fd, &st) < 0)
		return error_of_errno(diag, -errno, path);
	if (!S_ISREG(st.st_mode))
		return replay_bad(replay, diag, "it is no regular file");
	replay->size = (uint64_t)st.st_size;
	r = replay_read_all(replay, hash, diag);
	return r < 0 ? error_of_errno(diag, r, path) : r;
}

int replay_token(const struct replay *replay, uint64_t epochs, const uint8_t hash[TOKEN_SAMPLER],
		 void **ret, size_t *ret_size)
{
	struct token token = {
	    .n = replay->head.n,
	    .block = replay->head.block,
	    .order = PLAN_LIST,
	    .epoch = replay->first,
	    .epochs = epochs,
	};

	memcpy(token.dataset, replay->head.dataset, sizeof(token.dataset));
	memcpy(token.sampler, hash, sizeof(token.sampler));
	*ret_size = token_size(&token);
	*ret = malloc(*ret_size);
	if (!*ret)
		return -ENOMEM;
	token_write(&token, *ret, *ret_size);
	return 0;
}

/* ---- epochs ---- */

static const struct replay_epoch *replay_epoch(const struct replay *replay, uint64_t epoch)
{
	uint64_t index = epoch - replay->first;

	return epoch >= replay->first && index < replay->n_epochs ? &replay->epochs[index] : NULL;
}

uint64_t replay_places(const struct replay *replay, uint64_t epoch)
{
	const struct replay_epoch *found = replay_epoch(replay, epoch);

	return found ? found->places : 0;
}

/* The key's number in the draft's table, into which it goes if it is not among the last ones. */
static int replay_key(struct listing_draft *draft, const struct listing_key *key, uint32_t *ret)
{
	uint32_t n = draft->n_keys;

	for (uint32_t i = n; i > 0 && n - i < REPLAY_RECENT; i--)
		if (draft->keys[i - 1].seed == key->seed &&
		    draft->keys[i - 1].nonce == key->nonce) {
			*ret = i - 1;
			return 0;
		}
	if (n == LISTING_MAX_KEYS)
		return -EOVERFLOW;
	if (!n || (n & (n - 1)) == 0) {
		struct listing_key *keys =
		    realloc(draft->keys, (n ? 2 * (size_t)n : 1) * sizeof(*keys));

		if (!keys)
			return -ENOMEM;
		draft->keys = keys;
	}
	draft->keys[n] = *key;
	*ret = draft->n_keys++;
	return 0;
}

static int replay_add(struct listing_draft *draft, uint64_t room,
		      const struct recording_batch *batch)
{
	uint32_t at = 0;

	if (batch->count > room - draft->places)
		return -EIO;
	for (uint32_t run = 0; run < batch->n_runs; run++) {
		struct listing_key key;
		uint32_t samples = recording_run(batch, run, &key), number;
		int r = replay_key(draft, &key, &number);

		if (r)
			return r;
		for (uint32_t i = 0; i < samples; i++, at++)
			draft->entries[draft->places++] =
			    listing_entry((uint64_t)recording_id(batch, at), number);
	}
	return 0;
}

static int replay_fill(struct recording_reader *reader, uint64_t epoch, uint64_t room,
		       struct listing_draft *draft)
{
	struct recording_batch batch;
	struct diag diag;
	int r = 0;

	while (!r && draft->places < room) {
		r = recording_next(reader, &batch, &diag);
		if (!r && batch.epoch == epoch)
			r = replay_add(draft, room, &batch);
	}
	return r > 0 ? -EIO : r;
}

int replay_build(const struct replay *replay, uint64_t epoch, struct listing_draft *ret)
{
	_cleanup_(recording_fini) struct recording_reader reader = replay_reader(replay);
	const struct replay_epoch *found = replay_epoch(replay, epoch);
	struct listing_draft draft = {0};
	int r = 0;

	if (!found)
		return -EINVAL;
	reader.head = replay->head;
	recording_seek(&reader, found->offset, found->number);
	draft.entries = malloc(found->places * sizeof(*draft.entries));
	if (!draft.entries)
		r = -ENOMEM;
	r = r ? r : replay_fill(&reader, epoch, found->places, &draft);
	if (r) {
		listing_fini(&draft);
		return r;
	}
	*ret = draft;
	return 0;
}

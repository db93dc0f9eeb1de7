/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/scenarios/runs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *make_folder(const char *name)
{
	static char folders[4][PATH_MAX];
	static unsigned n_folders;
	char *folder = folders[n_folders++ % BASE_ARRAY_LEN(folders)];

	snprintf(folder, PATH_MAX, "%s", rig_path("%s", name));
	mkdir(folder, 0755);
	mkdir(rig_path("%s/class", name), 0755);
	return folder;
}

const char *runs_copies(const char *dir, unsigned samples)
{
	const char *from = getenv("top_srcdir"), *folder = make_folder(dir);
	char photo[PATH_MAX];

	snprintf(photo, sizeof(photo), "%s/tests/worker/photo.jpg", from ? from : ".");
	for (unsigned i = 0; i < samples; i++)
		ck_assert_msg(symlink(photo, rig_path("%s/class/%04u.jpg", dir, i)) == 0 ||
				  errno == EEXIST,
			      "%s", strerror(errno));
	return folder;
}

const char *runs_photos(const char *dir)
{
	return runs_copies(dir, RUNS_SAMPLES);
}

const char *runs_waves(const char *dir)
{
	const char *folder = make_folder(dir);

	for (unsigned i = 0; i < RUNS_SAMPLES; i++)
		ck_assert_int_eq(rig_write_waves(rig_path("%s/class/%04u.jpg", dir, i), i, 256), 0);
	return folder;
}

struct oa_options runs_options(const char *dataset, enum oa_order order, uint64_t seed,
			       uint32_t batch)
{
	return (struct oa_options){
	    .size = sizeof(struct oa_options),
	    .dataset = dataset,
	    .pipeline = RUNS_SPEC,
	    .batch = batch,
	    .epochs = RUNS_EPOCHS,
	    .order = order,
	    .seed = seed,
	};
}

struct oa_batch *runs_next(struct oa_stream *stream)
{
	struct oa_batch *batch = NULL;
	int r = oa_next(stream, PATIENCE_MS, &batch);

	ck_assert_msg(r == 0 || r == OA_E_END, "%s: %s", oa_error_name(r), oa_error_text(stream));
	return batch;
}

void runs_digest_batch(struct hash *hash, const struct oa_batch *batch)
{
	struct oa_batch_info info = {.size = sizeof(info)};
	struct oa_field field = {.size = sizeof(field)};

	oa_batch_info(batch, &info);
	for (uint32_t i = 0; i < info.count; i++) {
		hash_add_u64(hash, info.epoch);
		hash_add_u64(hash, (uint64_t)info.ids[i]);
		for (uint32_t f = 0; oa_batch_field(batch, f, &field) == 0; f++)
			hash_add(hash, (const uint8_t *)field.data + i * (uint64_t)field.strides[0],
				 (size_t)(field.bytes / info.count));
	}
}

void runs_digest_rest(struct hash *hash, struct oa_stream *stream)
{
	struct oa_batch *batch;

	while ((batch = runs_next(stream))) {
		runs_digest_batch(hash, batch);
		oa_release(batch);
	}
}

struct hash_id runs_digest_stream(struct oa_stream *stream)
{
	struct hash_id id;
	struct hash *hash;

	ck_assert_int_eq(hash_new(&hash), 0);
	runs_digest_rest(hash, stream);
	hash_finish(hash, &id);
	hash_free(hash);
	return id;
}

struct hash_id runs_digest(const struct oa_options *options)
{
	struct oa_client *client = rig_connect();
	struct oa_stream *stream = rig_open(client, options);
	struct hash_id id = runs_digest_stream(stream);

	oa_close(stream);
	oa_disconnect(client);
	return id;
}

void runs_assert_same(struct hash_id a, struct hash_id b)
{
	ck_assert_mem_eq(a.bytes, b.bytes, sizeof(a.bytes));
}

void runs_kill_and_restart(void)
{
	const char *program = getenv("ACCESS_DAEMON");
	char cache[PATH_MAX];

	kill(rig_host.pid, SIGKILL);
	waitpid(rig_host.pid, NULL, 0);
	snprintf(cache, sizeof(cache), "cache_dir=%s", rig_host.dir);
	rig_host.pid = fork();
	if (rig_host.pid == 0) {
		execl(program, program, "--private", "--dir", rig_host.dir, "--set", cache, "--set",
		      "chunk=6", "--set", "workers=1", "--set", "cache_size=0", (char *)NULL);
		_exit(127);
	}
	ck_assert(rig_wait_status("node.clients", 0, 1000));
}

void runs_assert_refused(const struct oa_options *options, int code, const char *says)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = rig_connect();
	struct oa_stream *stream = NULL;
	int r = oa_open(client, options, &stream, &error);

	ck_assert_msg(r == code && strstr(error.text, says), "%s: %s", oa_error_name(r),
		      error.text);
	oa_disconnect(client);
}

void *runs_token(struct oa_stream *stream, size_t *ret_size)
{
	void *token;

	*ret_size = 0;
	oa_state(stream, NULL, ret_size);
	token = malloc(*ret_size);
	ck_assert_int_eq(oa_state(stream, token, ret_size), 0);
	return token;
}

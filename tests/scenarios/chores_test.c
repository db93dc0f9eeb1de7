/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What people ask of what is kept (access-ctl cache), where others are about: users who may do what they like
 * with their own alone, readers that die under it, people who go away before they were answered, and warming
 * beside jobs.
 */

#include "tests/scenarios/folk.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "storage/reader.h"
#include "tests/daemon/raw.h"
#include "tools/ctl_warm.h"

#define N FOLK_PICTURES
#define EPOCHS 8
#define KEEPS "cache_point=decoded", "cache_size=64M", "cache_force=1", "linger_s=0", "workers=1"

/* ---- asking ---- */

/* A chore and its answer; shared with the process that asks. */
struct chore {
	enum reader_verb verb;
	const char *who; /* whose store it is about; NULL: the one who asks */
	struct hash_id group;
	/* the answer */
	uint16_t type;
	uint64_t code;
	char text[512], list[16384];
};

static void say(int sock, const struct chore *chore)
{
	struct wire_out out;

	wire_out_init(&out, PROTO_CACHE);
	wire_put_u64(&out, PROTO_KEY_VERB, chore->verb);
	wire_put_bytes(&out, PROTO_KEY_GROUP, &chore->group, sizeof(chore->group));
	if (chore->who)
		wire_put_string(&out, PROTO_KEY_WHO, chore->who);
	ck_assert_int_eq(wire_send(sock, &out, 0), 0);
	wire_out_fini(&out);
}

static void hear(int sock, struct chore *chore)
{
	const char *text = "";
	struct wire_in in;
	int fd;

	ck_assert_int_eq(raw_hear(sock, 0, &in), 0);
	chore->type = in.type;
	ck_assert_int_eq(wire_get_u64(&in, PROTO_KEY_CODE, &chore->code), 0);
	ck_assert_int_eq(wire_get_string(&in, PROTO_KEY_TEXT, &text), 0);
	snprintf(chore->text, sizeof(chore->text), "%s", text);
	memset(chore->list, 0, sizeof(chore->list));
	fd = wire_take_fd(&in, 0);
	if (fd >= 0)
		ck_assert_int_gt(pread(fd, chore->list, sizeof(chore->list) - 1, 0), 0);
	base_close(&fd);
	wire_in_fini(&in);
}

static int greeted(void)
{
	struct wire_in welcome;
	int sock = raw_greeted(&welcome);

	wire_in_fini(&welcome);
	return sock;
}

static int ask(void *arg)
{
	struct chore *chore = arg;
	int sock = greeted();

	say(sock, chore);
	hear(sock, chore);
	close(sock);
	return 0;
}

static void is_answered(const struct chore *chore, uint64_t code, const char *says)
{
	ck_assert_msg(chore->code == code && strstr(chore->text, says), "%llu \"%s\", not \"%s\"",
		      (unsigned long long)chore->code, chore->text, says);
	ck_assert_uint_eq(chore->type,
			  code == 0 || code == OA_E_REFUSED ? PROTO_CACHED : PROTO_REFUSED);
}

/* The list of one's own store, which the reader may still be opening, or be started again. */
static void ask_for_list(struct chore *chore)
{
	*chore = (struct chore){.verb = READER_VERB_LIST};
	for (unsigned i = 0; i < 600; i++, rig_sleep_ms(100)) {
		ask(chore);
		if (chore->code == 0)
			return;
		ck_assert_msg(strstr(chore->text, "being started again"), "%s", chore->text);
	}
	ck_abort_msg("no reader comes: %s", chore->text);
}

/* ---- lists ---- */

static unsigned digit(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static struct json_in *parsed(const struct chore *chore)
{
	struct json_in *list = NULL;
	struct diag diag = {.text = ""};

	ck_assert_msg(json_in_parse(chore->list, strlen(chore->list), 65536, &list, &diag) == 0,
		      "%s", diag.text);
	return list;
}

static void id_of(const struct json_in *group, struct hash_id *ret)
{
	const char *id = json_in_string(json_in_member(group, "id"), "");

	ck_assert_uint_eq(strlen(id), 2 * sizeof(ret->bytes));
	for (unsigned i = 0; i < sizeof(ret->bytes); i++)
		ret->bytes[i] = (uint8_t)(digit(id[2 * i]) << 4 | digit(id[2 * i + 1]));
}

/* The id of the one group of a list, and how many values it has. */
static double only_group(const struct chore *chore, struct hash_id *ret)
{
	struct json_in *list = parsed(chore);
	const struct json_in *groups = json_in_member(list, "groups");
	double values;

	ck_assert_msg(json_in_count(groups) == 1, "%s", chore->list);
	id_of(json_in_item(groups, 0), ret);
	values = json_in_double(json_in_member(json_in_item(groups, 0), "values"), -1);
	json_in_free(list);
	return values;
}

/* How many values a group of the list has, -1: it is not there. */
static double values_of(const struct chore *chore, const struct hash_id *group)
{
	struct json_in *list = parsed(chore);
	const struct json_in *groups = json_in_member(list, "groups");
	double values = -1;

	for (size_t i = 0; i < json_in_count(groups); i++) {
		struct hash_id id;

		id_of(json_in_item(groups, i), &id);
		if (memcmp(&id, group, sizeof(id)) == 0)
			values =
			    json_in_double(json_in_member(json_in_item(groups, i), "values"), -1);
	}
	json_in_free(list);
	return values;
}

/* ---- in one's own accessd ---- */

/* Warms as access-ctl would, in a process of its own. */
static pid_t start_warming(const char *dataset)
{
	const struct ctl_warm how = {
	    .dataset = dataset, .pipeline = "imagenet-eval-u8", .form = "decoded"};
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct diag diag = {.text = ""};
		int status;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		status = ctl_warm_run(&how, rig_host.socket, &diag);
		fprintf(stderr, "warming: %d %s\n", status, diag.text);
		_exit(status);
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

static void must_warm(const char *dataset)
{
	ck_assert_int_eq(town_wait(start_warming(dataset)), 0);
}

/* One job that sees all there is; what it is given comes from what is kept. */
static void must_train_of_it(const char *dataset)
{
	const struct oa_options options = trainee_options(dataset, 8, EPOCHS);
	double hits = 0;

	for (unsigned i = 0; i < 100 && hits <= 0; i++) {
		struct oa_client *client = rig_connect();
		struct oa_stream *stream = rig_open(client, &options);
		struct trainee_seen seen = {{0}};

		trainee_train(stream, 0, &seen);
		ck_assert(trainee_saw_all(&seen, N, EPOCHS));
		hits = rig_status("streams.0.cache.hits");
		oa_close(stream);
		oa_disconnect(client);
		ck_assert(rig_wait_status("streams", 0, 0));
	}
	ck_assert(hits > 0);
}

static pid_t stopped_reader(void)
{
	const pid_t reader = rig_pid("node.reader_pid");

	ck_assert_int_eq(kill(reader, SIGSTOP), 0);
	return reader;
}

/* accessd has heard what was said to it before: it hears everybody in turn. */
static void let_it_be_heard(void)
{
	ck_assert(rig_status("node.clients") >= 0);
}

/* An accessd that keeps all of a folder. *ret: of the one group that there is. */
static const char *keep_folder(struct hash_id *ret)
{
	const char *data = rig_pictures("data", N, 2, 64);
	struct chore list;

	rig_start(KEEPS, NULL);
	must_warm(data);
	ask_for_list(&list);
	ck_assert_double_eq(only_group(&list, ret), N);
	return data;
}

/* Whoever asked is told; the next reader does it, and has all that was kept. */
START_TEST(readers_die_in_chores)
{
	static const enum reader_verb verbs[] = {READER_VERB_LIST, READER_VERB_VERIFY,
						 READER_VERB_DROP};
	struct hash_id group;

	keep_folder(&group);
	for (size_t i = 0; i < BASE_ARRAY_LEN(verbs); i++) {
		struct chore chore = {.verb = verbs[i], .group = group}, list;
		const pid_t reader = stopped_reader();
		int sock = greeted();

		say(sock, &chore);
		let_it_be_heard();
		ck_assert_int_eq(kill(reader, SIGKILL), 0);
		hear(sock, &chore);
		is_answered(&chore, OA_E_REFUSED, "the reader died meanwhile: try again");
		ask_for_list(&list);
		ck_assert_double_eq(only_group(&list, &group), N);
		say(sock, &chore); /* the same connection may ask again */
		hear(sock, &chore);
		is_answered(&chore, 0, "");
		close(sock);
	}
	rig_end();
}
END_TEST

/* Who wanted something changed and went away has it changed; who wanted to know something is forgotten. */
START_TEST(who_asked_goes_away)
{
	static const enum reader_verb verbs[] = {READER_VERB_LIST, READER_VERB_PIN,
						 READER_VERB_UNPIN, READER_VERB_VERIFY,
						 READER_VERB_DROP};
	struct hash_id group;

	keep_folder(&group);
	for (size_t i = 0; i < BASE_ARRAY_LEN(verbs); i++) {
		struct chore chore = {.verb = verbs[i], .group = group}, list;
		const pid_t reader = stopped_reader();
		int sock = greeted();

		say(sock, &chore);
		let_it_be_heard();
		close(sock);
		ck_assert(rig_wait_status("node.clients", 1, 1)); /* who asks */
		ck_assert_int_eq(kill(reader, SIGCONT), 0);
		ask_for_list(&list); /* behind it in the queue, or amid a check of all */
		if (verbs[i] == READER_VERB_DROP)
			ck_assert_msg(strstr(list.list, "\"groups\":[]"), "%s", list.list);
		else
			ck_assert_double_eq(only_group(&list, &group), N);
		ck_assert((verbs[i] == READER_VERB_PIN) == !!strstr(list.list, "\"pinned\":true"));
	}
	ck_assert_double_eq(rig_status("node.reader_restarts"), 0);
	rig_end();
}
END_TEST

/* While a stream uses it: the stream does without from then on, and lacks nothing. */
START_TEST(dropped_under_a_job_by_who_is_gone)
{
	struct chore chore = {.verb = READER_VERB_DROP}, list;
	struct trainee_seen seen = {{0}};
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;
	pid_t reader;
	int sock;

	options = trainee_options(keep_folder(&chore.group), 8, EPOCHS);
	client = rig_connect();
	stream = rig_open(client, &options);
	trainee_train(stream, 2, &seen);
	reader = stopped_reader();
	sock = greeted();
	say(sock, &chore);
	let_it_be_heard();
	close(sock);
	let_it_be_heard();
	ck_assert_int_eq(kill(reader, SIGCONT), 0);
	trainee_train(stream, 0, &seen);
	ck_assert(trainee_saw_all(&seen, N, EPOCHS));
	ask_for_list(&list);
	ck_assert_double_eq(values_of(&list, &chore.group), 0);
	ck_assert(rig_wait_status("streams.0.cache.points.3.kept_samples", 0, 0));
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

START_TEST(one_chore_at_a_time)
{
	struct chore chore = {.verb = READER_VERB_VERIFY};
	pid_t reader;
	int sock;

	rig_start(KEEPS, NULL);
	ask_for_list(&chore);
	reader = stopped_reader();
	sock = greeted();
	say(sock, &chore);
	say(sock, &chore);
	let_it_be_heard();
	ck_assert_int_eq(kill(reader, SIGCONT), 0);
	hear(sock, &chore);
	ck_assert_uint_eq(chore.type, PROTO_REFUSED);
	ck_assert_msg(strstr(chore.text, "one thing at a time"), "%s", chore.text);
	close(sock);
	ask_for_list(&chore);
	rig_end();
}
END_TEST

/* Beside a job of the same data set that takes its batches meanwhile, or holds them. */
START_TEST(warming_beside_a_job)
{
	const bool takes = _i;
	const char *data = rig_pictures("data", N, 2, 64);
	struct trainee job;
	struct chore list;
	pid_t warming;

	rig_start(KEEPS, NULL);
	job = trainee_start(data, N, 8, EPOCHS, TRAINEE_FINISHES);
	if (takes)
		trainee_go(&job);
	warming = start_warming(data);
	ck_assert_int_eq(town_wait(warming), 0);
	if (!takes)
		trainee_go(&job);
	ck_assert_int_eq(trainee_end(&job), 0);
	ask_for_list(&list);
	ck_assert_double_eq(only_group(&list, &list.group), N);
	ck_assert(rig_wait_status("streams", 0, 0));
	must_train_of_it(data);
	rig_end();
}
END_TEST

/* ---- between users ---- */

/* chore is in memory that is shared. */
static void ask_as(const struct town_user *user, struct chore *chore, enum reader_verb verb,
		   const char *who, const struct hash_id *group)
{
	*chore = (struct chore){.verb = verb, .who = who};
	if (group)
		chore->group = *group;
	ck_assert_int_eq(town_do(user, ask, chore), 0);
}

static struct chore *shared_chore(void)
{
	struct chore *chore =
	    mmap(NULL, sizeof(*chore), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(chore, MAP_FAILED);
	return chore;
}

static void folk_must_warm(const struct town_user *user, const char *dataset)
{
	char text[768];

	ck_assert_msg(folk_warm(user, dataset, text) == 0, "%s", text);
}

/* A town in which anna and bert keep what is theirs; the ids of their groups. */
static void keep_secrets(struct chore *chore, struct hash_id *ret_annas, struct hash_id *ret_berts)
{
	const char *annas = folk_secret("annas-folder", &town_anna);
	const char *berts = folk_secret("berts-folder", &town_bert);

	town_start(KEEPS, NULL);
	folk_must_warm(&town_anna, annas);
	folk_must_warm(&town_bert, berts);
	ask_as(&town_anna, chore, READER_VERB_LIST, NULL, NULL);
	ck_assert(strstr(chore->list, "annas-folder") && !strstr(chore->list, "berts-folder"));
	ck_assert_double_eq(only_group(chore, ret_annas), N);
	ask_as(&town_bert, chore, READER_VERB_LIST, NULL, NULL);
	ck_assert(strstr(chore->list, "berts-folder") && !strstr(chore->list, "annas-folder"));
	ck_assert_double_eq(only_group(chore, ret_berts), N);
}

START_TEST(each_has_what_is_his_own)
{
	struct chore *chore = shared_chore();
	struct hash_id annas, berts;

	keep_secrets(chore, &annas, &berts);
	for (enum reader_verb verb = READER_VERB_PIN; verb <= READER_VERB_DROP; verb++) {
		ask_as(&town_bert, chore, verb, NULL, &annas);
		is_answered(chore, OA_E_REFUSED, "there is no such group");
	}
	ask_as(&town_bert, chore, READER_VERB_VERIFY, NULL, NULL);
	is_answered(chore, 0, "48 values of 1 groups are sound");
	ask_as(&town_carl, chore, READER_VERB_LIST, NULL, NULL); /* who never had a job */
	is_answered(chore, 0, "");
	ck_assert_msg(strstr(chore->list, "\"groups\":[]"), "%s", chore->list);
	ask_as(&town_bert, chore, READER_VERB_DROP, NULL, &berts);
	is_answered(chore, 0, "");
	ask_as(&town_anna, chore, READER_VERB_VERIFY, NULL, NULL);
	is_answered(chore, 0, "48 values of 1 groups are sound");
	ask_as(&town_bert, chore, READER_VERB_VERIFY, NULL, NULL);
	is_answered(chore, 0, "0 values of 0 groups are sound");
	munmap(chore, sizeof(*chore));
	town_end();
}
END_TEST

/* Root and accessd's own user act for others, by name; nobody else does, not even who sees all. */
START_TEST(who_may_act_for_others)
{
	static const struct town_user root = {0, 0, 0};
	const struct town_user seer = {town_carl.uid, town_carl.gid, town_accessd.gid};
	static const char *const others[] = {"65201", "65202", "everybody"};
	struct chore *chore = shared_chore();
	struct hash_id annas, berts;

	keep_secrets(chore, &annas, &berts);
	for (size_t i = 0; i < BASE_ARRAY_LEN(others); i++) {
		for (enum reader_verb verb = 0; verb < READER_VERBS; verb++) {
			ask_as(&town_bert, chore, verb, others[i], &annas);
			is_answered(chore, OA_E_PERMISSION, "only root and accessd's own user");
		}
		ask_as(&seer, chore, READER_VERB_LIST, others[i], NULL);
		is_answered(chore, OA_E_PERMISSION, "only root and accessd's own user");
	}
	ask_as(&root, chore, READER_VERB_LIST, NULL, NULL);
	is_answered(chore, OA_E_PERMISSION, "serve_root");
	ask_as(&root, chore, READER_VERB_LIST, "4711", NULL);
	is_answered(chore, OA_E_INVALID, "serves no such user now");
	ask_as(&root, chore, READER_VERB_LIST, "65201", NULL);
	is_answered(chore, 0, "");
	ck_assert_double_eq(only_group(chore, &annas), N);
	ask_as(&root, chore, READER_VERB_DROP, "65201", &berts);
	is_answered(chore, OA_E_REFUSED, "there is no such group");
	ask_as(&town_accessd, chore, READER_VERB_DROP, "65202", &berts);
	is_answered(chore, 0, "");
	ask_as(&town_bert, chore, READER_VERB_LIST, NULL, NULL);
	ck_assert_msg(strstr(chore->list, "\"groups\":[]"), "%s", chore->list);
	ask_as(&town_anna, chore, READER_VERB_LIST, NULL, NULL);
	ck_assert_double_eq(only_group(chore, &annas), N);
	munmap(chore, sizeof(*chore));
	town_end();
}
END_TEST

/* What is made of open data is everybody's: each may make it and has it, root alone throws it away. */
START_TEST(open_data_are_kept_for_all)
{
	static const struct town_user root = {0, 0, 0};
	const char *all = folk_open("open-folder");
	struct chore *chore = shared_chore();
	struct hash_id group;

	town_start(KEEPS, NULL);
	folk_must_warm(&town_bert, all);
	ask_as(&root, chore, READER_VERB_LIST, "everybody", NULL);
	ck_assert_msg(strstr(chore->list, "open-folder"), "%s", chore->list);
	ck_assert_double_eq(only_group(chore, &group), N);
	for (unsigned i = 0; i < 2; i++) {
		const struct town_user *user = i ? &town_anna : &town_bert;

		ask_as(user, chore, READER_VERB_LIST, NULL, NULL);
		is_answered(chore, 0, "");
		ck_assert_double_eq(values_of(chore, &group), -1);
		ask_as(user, chore, READER_VERB_DROP, NULL, &group);
		is_answered(chore, OA_E_REFUSED, "there is no such group");
	}
	for (unsigned i = 0; i < 100 && folk_kept(NULL, "hits") <= 0; i++, rig_sleep_ms(200))
		folk_must_train(&town_anna, all, 20);
	ck_assert(folk_kept(NULL, "hits") > 0);
	ask_as(&root, chore, READER_VERB_PIN, "everybody", &group);
	is_answered(chore, 0, "");
	ask_as(&root, chore, READER_VERB_DROP, "everybody", &group);
	is_answered(chore, OA_E_REFUSED, "is pinned");
	ask_as(&root, chore, READER_VERB_UNPIN, "everybody", &group);
	is_answered(chore, 0, "");
	ask_as(&root, chore, READER_VERB_DROP, "everybody", &group);
	is_answered(chore, 0, "");
	folk_must_train(&town_anna, all, 1);
	munmap(chore, sizeof(*chore));
	town_end();
}
END_TEST

START_TEST(nobody_warms_what_he_may_not_read)
{
	const char *annas = folk_secret("annas-folder", &town_anna);
	char text[768];

	town_start(KEEPS, NULL);
	folk_must_warm(&town_anna, annas);
	ck_assert_int_eq(folk_warm(&town_bert, annas, text), 1);
	ck_assert_msg(strstr(text, "Permission denied"), "%s", text);
	ck_assert(folk_kept(&town_bert, "values") <= 0);
	town_end();
}
END_TEST

/* Anna's reader hangs, and dies, while she asks: bert is answered meanwhile. */
START_TEST(a_chore_that_hangs_is_its_owners)
{
	struct chore *annas = shared_chore(), *berts = shared_chore();
	struct hash_id a, b;
	pid_t reader, anna;

	keep_secrets(annas, &a, &b);
	reader = folk_tenant(&town_anna, "reader_pid");
	ck_assert_int_gt(reader, 1);
	ck_assert(rig_wait_status("node.clients", 1, 1)); /* who asks */
	ck_assert_int_eq(kill(reader, SIGSTOP), 0);
	*annas = (struct chore){.verb = READER_VERB_VERIFY};
	anna = town_send(&town_anna, ask, annas);
	ck_assert(rig_wait_status("node.clients", 2, 1e9));
	ask_as(&town_bert, berts, READER_VERB_VERIFY, NULL, NULL);
	is_answered(berts, 0, "48 values of 1 groups are sound");
	ck_assert_int_eq(kill(reader, SIGKILL), 0);
	ck_assert_int_eq(town_wait(anna), 0);
	ck_assert(annas->code == 0 || strstr(annas->text, "try again"));
	ck_assert_int_eq(folk_tenant(&town_bert, "reader_restarts"), 0);
	munmap(annas, sizeof(*annas));
	munmap(berts, sizeof(*berts));
	town_end();
}
END_TEST

static void add(TCase *tcase)
{
	const char *why;

	tcase_add_test(tcase, readers_die_in_chores);
	tcase_add_test(tcase, who_asked_goes_away);
	tcase_add_test(tcase, dropped_under_a_job_by_who_is_gone);
	tcase_add_test(tcase, one_chore_at_a_time);
	tcase_add_loop_test(tcase, warming_beside_a_job, 0, 2);
	if (!town_can(&why)) {
		printf("not tested, with other users: %s\n", why);
		return;
	}
	tcase_add_test(tcase, each_has_what_is_his_own);
	tcase_add_test(tcase, who_may_act_for_others);
	tcase_add_test(tcase, open_data_are_kept_for_all);
	tcase_add_test(tcase, nobody_warms_what_he_may_not_read);
	tcase_add_test(tcase, a_chore_that_hangs_is_its_owners);
}

int main(void)
{
	return rig_main("chores", add);
}

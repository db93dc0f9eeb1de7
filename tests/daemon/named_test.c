/* SPDX-License-Identifier: Apache-2.0 */

/* Named data sets: lines good and bad, whom a rule lets in, and when a new rule takes something away. */

#include "daemon/tenant/named.h"
#include "daemon/param.h"
#include "tests/suite.h"

#include <string.h>

static struct named_sets sets;

static void say(struct named_sets *to, const char *name, const char *value)
{
	struct diag diag = {""};

	ck_assert_msg(named_set(to, NULL, name, value, &diag) == 0, "%s", diag.text);
}

static void setup(void)
{
	memset(&sets, 0, sizeof(sets));
	say(&sets, "dataset.pets.path", "/srv/pets");
	say(&sets, "dataset.pets.owner", "65203");
	say(&sets, "dataset.pets.users", "65201, 65202");
	say(&sets, "dataset.pets.groups", "65300");
}

static bool lets_in(const struct named *named, uid_t uid, gid_t gid, gid_t other, gid_t nobodys)
{
	const struct named_client client = {
	    .uid = uid, .gid = gid, .groups = &other, .n = 1, .nobodys = nobodys};

	return named_allows(named, &client);
}

START_TEST(names_are_told_from_paths)
{
	ck_assert(named_is_name("dataset.x.path") && !named_is_name("datasets"));
	ck_assert_str_eq(named_asked("name:pets"), "pets");
	ck_assert_str_eq(named_asked("name:"), "");
	ck_assert_ptr_null(named_asked("/name:pets"));
	ck_assert_ptr_null(named_asked("./name:pets"));
	ck_assert_ptr_null(named_find(&sets, "pets2"));
	ck_assert_ptr_null(named_find(&sets, ""));
	ck_assert_str_eq(named_find(&sets, "pets")->path, "/srv/pets");
}
END_TEST

START_TEST(the_rule_lets_in_whom_it_names)
{
	const gid_t all = (gid_t)-1;
	struct named *pets = &sets.set[0];

	ck_assert(lets_in(pets, 65201, 1, 1, all) && lets_in(pets, 65202, 1, 1, all));
	ck_assert(lets_in(pets, 65203, 1, 1, all)); /* the owner */
	ck_assert(lets_in(pets, 9, 65300, 1, all)); /* by his group, and by another one of his */
	ck_assert(lets_in(pets, 9, 1, 65300, all));
	ck_assert(!lets_in(pets, 9, 1, 1, all) && !lets_in(pets, 0, 0, 0, all));
	ck_assert(!lets_in(pets, 65300, 65201, 65202, all)); /* uids are no gids */
	pets->is_known = false;
	ck_assert(!lets_in(pets, 65203, 1, 1, all));
}
END_TEST

/* All groups without a number look like one. */
START_TEST(a_group_without_a_number_is_nobodys)
{
	const struct named *pets;

	say(&sets, "dataset.pets.groups", "65534");
	pets = &sets.set[0];
	ck_assert(lets_in(pets, 9, 65534, 1, (gid_t)-1));
	ck_assert(!lets_in(pets, 9, 65534, 65534, 65534));
}
END_TEST

START_TEST(everybody_is_a_star)
{
	say(&sets, "dataset.pets.users", "*");
	ck_assert(lets_in(&sets.set[0], 9, 1, 1, (gid_t)-1));
	say(&sets, "dataset.pets.users", ""); /* nobody; a star is no group */
	say(&sets, "dataset.pets.groups", "*");
	ck_assert(!lets_in(&sets.set[0], 9, 1, 1, (gid_t)-1));
}
END_TEST

START_TEST(who_is_not_known_is_nobody)
{
	say(&sets, "dataset.pets.users", "no-such-user root,no-such-user-either");
	ck_assert_uint_eq(sets.set[0].users.n, 1);
	ck_assert_uint_eq(sets.set[0].users.unknown, 2);
	ck_assert(lets_in(&sets.set[0], 0, 1, 1, (gid_t)-1));
	say(&sets, "dataset.pets.owner", "no-such-user");
	ck_assert(!sets.set[0].is_known);
	say(&sets, "dataset.pets.users", "");
	ck_assert(
	    !lets_in(&sets.set[0], 0, 1, 1, (gid_t)-1)); /* whom nothing is known of is not root */
}
END_TEST

START_TEST(who_is_denied_is_told_why_and_whom_to_ask)
{
	const struct named_client client = {.uid = 9, .gid = 10, .nobodys = (gid_t)-1};
	struct diag diag = {""};

	ck_assert_int_eq(named_admit(&sets.set[0], &client, &diag), NAMED_E_DENIED);
	ck_assert_ptr_nonnull(strstr(diag.text, "data set \"pets\" is for users \"65201, 65202\""));
	ck_assert_ptr_nonnull(strstr(diag.text, "groups \"65300\" (dataset.pets.users"));
	ck_assert_ptr_nonnull(strstr(diag.text, "user 9 with group 10"));
	ck_assert_ptr_nonnull(strstr(diag.text, "ask who runs accessd"));
	say(&sets, "dataset.pets.contact", "vera@lab");
	named_admit(&sets.set[0], &client, &diag);
	ck_assert_ptr_nonnull(strstr(diag.text, "ask vera@lab"));
}
END_TEST

static const struct {
	const char *name, *value, *text;
} bad[] = {
    {"dataset.pets", "x", "write dataset.NAME.path"},
    {"dataset..path", "/x", "write dataset.NAME.path"},
    {"dataset.", "/x", "write dataset.NAME.path"},
    {"dataset.a123456789b123456789c123456789d1.path", "/x", "at most 31 bytes"},
    {"dataset.a/b.path", "/x", "letter or a digit"},
    {"dataset..b.path", "/x", "letter or a digit"},
    {"dataset.a b.path", "/x", "letter or a digit"},
    {"dataset.cats.luck", "x", "no \"luck\": write path, owner"},
    {"dataset.cats.path", "srv/cats", "no absolute path"},
    {"dataset.cats.path", "", "no absolute path"},
    {"dataset.cats.path", "s3://bucket/cats?region=x",
     "credentials of the job that opens it: users give the URL"},
    {"dataset.cats.path", "https://h/cats.tar",
     "access-ctl convert \"https://h/cats.tar\" DATASET.oads"},
    {"dataset.cats.owner", "", "is no user"},
    {"dataset.cats.pipeline", "imagenet-trian", "dataset.cats.pipeline: "},
    {"dataset.cats.pipeline", "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"fold\"}]}", "fold"},
};

START_TEST(what_is_wrong_is_said)
{
	struct diag diag = {""};

	ck_assert_int_eq(named_set(&sets, NULL, bad[_i].name, bad[_i].value, &diag), NAMED_E_BAD);
	ck_assert_msg(strstr(diag.text, bad[_i].text), "%s", diag.text);
}
END_TEST

START_TEST(a_usual_pipeline_is_a_name_or_json)
{
	static const char json[] =
	    "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[8,8]}]}";
	char longer[NAMED_PIPELINE_MAX + 1];
	struct diag diag = {""};

	say(&sets, "dataset.pets.pipeline", "imagenet-eval");
	ck_assert_str_eq(sets.set[0].pipeline, "imagenet-eval");
	say(&sets, "dataset.pets.pipeline", json);
	ck_assert_str_eq(sets.set[0].pipeline, json);
	say(&sets, "dataset.pets.pipeline", "");
	ck_assert_str_eq(sets.set[0].pipeline, "");
	memset(longer, ' ', sizeof(longer));
	memcpy(longer, json, strlen(json));
	longer[sizeof(longer) - 1] = '\0';
	ck_assert_int_eq(named_set(&sets, NULL, "dataset.pets.pipeline", longer, &diag),
			 NAMED_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, "longer than 1023 bytes"));
}
END_TEST

START_TEST(each_needs_a_path_and_an_owner)
{
	struct diag diag = {""};

	ck_assert_int_eq(named_check(&sets, &diag), 0);
	say(&sets, "dataset.v1.2.path", "/srv/v1.2");
	ck_assert_int_eq(named_check(&sets, &diag), NAMED_E_BAD);
	ck_assert_str_eq(diag.text,
			 "data set \"v1.2\" has no owner: write dataset.v1.2.owner = ...");
}
END_TEST

START_TEST(there_is_a_most)
{
	struct diag diag = {""};
	char text[NAMED_TEXT_MAX + 8] = "";

	for (unsigned i = 1; i < NAMED_SETS; i++) {
		snprintf(text, sizeof(text), "dataset.n%u.owner", i);
		say(&sets, text, "1");
	}
	ck_assert_int_eq(named_set(&sets, NULL, "dataset.more.owner", "1", &diag), NAMED_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, "64 data sets"));
	text[0] = '\0';
	for (unsigned i = 0; i <= NAMED_WHO_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u ", 1000 + i);
	ck_assert_int_eq(named_set(&sets, NULL, "dataset.pets.users", text, &diag), NAMED_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, "more than 64"));
	memset(text, '1', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(named_set(&sets, NULL, "dataset.pets.groups", text, &diag), NAMED_E_BAD);
}
END_TEST

/* What was looked up once, and says the same. */
START_TEST(a_list_that_is_known_is_not_looked_up_again)
{
	static struct named_sets again;
	struct diag diag;

	memset(&again, 0, sizeof(again));
	say(&sets, "dataset.pets.users", "root");
	say(&sets, "dataset.pets.owner", "root");
	sets.set[0].users.id[0] = 65299;
	sets.set[0].owner.uid = 65298;
	ck_assert_int_eq(named_set(&again, &sets, "dataset.pets.users", "root", &diag), 0);
	ck_assert_int_eq(named_set(&again, &sets, "dataset.pets.owner", "root", &diag), 0);
	ck_assert_uint_eq(again.set[0].users.id[0], 65299);
	ck_assert_uint_eq(again.set[0].owner.uid, 65298);
}
END_TEST

static const struct {
	const char *name, *value;
	bool is_narrower;
} changes[] = {
    {"dataset.pets.users", "65202 65201", false},
    {"dataset.pets.pipeline", "imagenet-eval", false},
    {"dataset.pets.users", "65202 65201 65209", false},
    {"dataset.pets.users", "*", false},
    {"dataset.pets.users", "65201", true},
    {"dataset.pets.users", "", true},
    {"dataset.pets.groups", "65300,65301", false},
    {"dataset.pets.groups", "65301", true},
    {"dataset.pets.contact", "vera", false},
    {"dataset.pets.path", "/srv/pets2", true},
    {"dataset.pets.owner", "65204", true},
    {"dataset.pets.owner", "no-such-user", true},
};

START_TEST(what_takes_something_away_is_seen)
{
	const struct named then = sets.set[0];

	say(&sets, changes[_i].name, changes[_i].value);
	ck_assert_int_eq(named_is_narrower(&sets.set[0], &then), changes[_i].is_narrower);
	ck_assert(named_is_narrower(NULL, &then));
	if (sets.set[0].users.is_all)
		ck_assert(named_is_narrower(&then, &sets.set[0]));
}
END_TEST

START_TEST(they_are_parameters)
{
	static struct param param, wanted;
	struct param_change change;
	struct diag diag = {""};

	param_init(&param);
	param_init(&wanted);
	ck_assert_int_eq(param_set(&wanted, "dataset.pets.path = /srv/my pets ", &diag), 0);
	ck_assert_int_eq(param_set(&wanted, "dataset.pets.luck = 4", &diag), PARAM_E_BAD);
	param_take(&param, &wanted, &change);
	ck_assert_str_eq(change.taken, "dataset.*");
	ck_assert_str_eq(named_find(&param.named, "pets")->path, "/srv/my pets");
	param_take(&param, &wanted, &change);
	ck_assert_str_eq(change.taken, "");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, names_are_told_from_paths);
	tcase_add_test(tcase, the_rule_lets_in_whom_it_names);
	tcase_add_test(tcase, a_group_without_a_number_is_nobodys);
	tcase_add_test(tcase, everybody_is_a_star);
	tcase_add_test(tcase, who_is_not_known_is_nobody);
	tcase_add_test(tcase, who_is_denied_is_told_why_and_whom_to_ask);
	tcase_add_loop_test(tcase, what_is_wrong_is_said, 0, BASE_ARRAY_LEN(bad));
	tcase_add_test(tcase, a_usual_pipeline_is_a_name_or_json);
	tcase_add_test(tcase, each_needs_a_path_and_an_owner);
	tcase_add_test(tcase, there_is_a_most);
	tcase_add_test(tcase, a_list_that_is_known_is_not_looked_up_again);
	tcase_add_loop_test(tcase, what_takes_something_away_is_seen, 0, BASE_ARRAY_LEN(changes));
	tcase_add_test(tcase, they_are_parameters);
}

int main(void)
{
	return suite_run("named", add);
}

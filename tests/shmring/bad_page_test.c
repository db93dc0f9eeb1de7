/* SPDX-License-Identifier: Apache-2.0 */

/* Pages of bad samples: what is put comes out, texts are cut to their limits, a full page says so, damaged ones are
 * refused at each byte; and lists of pages, ordered, each sample once. */

#include "shmring/bad_list.h"
#include "tests/shmring/suite.h"

#include <stdlib.h>
#include <string.h>

static struct bad_page page;

static bool put(uint64_t id, const char *name, const char *stage, const char *why)
{
	return bad_page_put(&page, &(struct bad_page_entry){id, name, stage, why});
}

START_TEST(what_is_put_comes_out)
{
	static const struct bad_page_entry entries[] = {
	    {7, "a/b.jpg", "decode", "Not a JPEG file"},
	    {0, "line\nbreak\xff.jpg", "read", "Input/output error"},
	    {INT64_MAX, "", "", ""},
	};
	struct bad_page_entry entry;
	size_t at = 0;

	page.used = 0;
	for (size_t i = 0; i < BASE_ARRAY_LEN(entries); i++)
		ck_assert(bad_page_put(&page, &entries[i]));
	for (size_t i = 0; i < BASE_ARRAY_LEN(entries); i++) {
		ck_assert_int_eq(bad_page_next(page.bytes, page.used, &at, &entry), 0);
		ck_assert_uint_eq(entry.id, entries[i].id);
		ck_assert_str_eq(entry.name, entries[i].name);
		ck_assert_str_eq(entry.stage, entries[i].stage);
		ck_assert_str_eq(entry.why, entries[i].why);
	}
	ck_assert_int_eq(bad_page_next(page.bytes, page.used, &at, &entry), BAD_PAGE_E_END);
}
END_TEST

START_TEST(long_texts_are_cut)
{
	static char text[5000];
	struct bad_page_entry entry;
	size_t at = 0;

	memset(text, 'x', sizeof(text) - 1);
	page.used = 0;
	ck_assert(put(1, text, text, text));
	ck_assert_int_eq(bad_page_next(page.bytes, page.used, &at, &entry), 0);
	ck_assert_uint_eq(strlen(entry.name), BAD_PAGE_NAME - 1);
	ck_assert_uint_eq(strlen(entry.stage), BAD_PAGE_STAGE - 1);
	ck_assert_uint_eq(strlen(entry.why), BAD_PAGE_WHY - 1);
}
END_TEST

/* What did not fit has changed nothing; each page has room for the largest entry. */
START_TEST(a_full_page_says_so)
{
	static char text[5000];
	struct bad_page_entry entry;
	size_t at = 0;
	uint64_t n = 0;

	memset(text, 'y', sizeof(text) - 1);
	page.used = 0;
	while (put(n, text, "decode", text))
		n++;
	ck_assert_uint_ge(n, 10);
	for (uint64_t i = 0; i < n; i++) {
		ck_assert_int_eq(bad_page_next(page.bytes, page.used, &at, &entry), 0);
		ck_assert_uint_eq(entry.id, i);
	}
	ck_assert_int_eq(bad_page_next(page.bytes, page.used, &at, &entry), BAD_PAGE_E_END);
}
END_TEST

/* Cut at each byte; each byte of lengths and ends changed. */
START_TEST(damaged_pages_are_refused)
{
	static const char words[] = "a/b.jpg\0decode\0why";
	struct bad_page_entry entry;
	size_t at;

	page.used = 0;
	ck_assert(put(7, "a/b.jpg", "decode", "why"));
	ck_assert_mem_eq(page.bytes + 14, words, sizeof(words));
	for (size_t size = 1; size < page.used; size++) {
		uint8_t *copy = malloc(size);

		memcpy(copy, page.bytes, size);
		at = 0;
		ck_assert_int_eq(bad_page_next(copy, size, &at, &entry), BAD_PAGE_E_BAD);
		ck_assert_uint_eq(at, 0);
		free(copy);
	}
	for (size_t i = 8; i < 14; i++)
		for (unsigned value = 0; value < 256; value++) {
			uint8_t was = page.bytes[i];

			page.bytes[i] = (uint8_t)value;
			at = 0;
			ck_assert_int_eq(bad_page_next(page.bytes, page.used, &at, &entry),
					 value == was ? 0 : BAD_PAGE_E_BAD);
			page.bytes[i] = was;
		}
	for (size_t i = 14; i < page.used; i++) {
		uint8_t was = page.bytes[i];

		page.bytes[i] = was ? '\0' : 'x';
		at = 0;
		ck_assert_int_eq(bad_page_next(page.bytes, page.used, &at, &entry), BAD_PAGE_E_BAD);
		page.bytes[i] = was;
	}
}
END_TEST

START_TEST(strange_words_are_refused)
{
	struct bad_page_entry entry;
	static const struct bad_page_entry entries[] = {
	    {1, "a", "Decode", "x"},       {1, "a", "de code", "x"},
	    {1, "a", "decode", "\x1b[2J"}, {1, "a", "decode", "a\nb"},
	    {1, "a", "decode", "\x7f"},    {UINT64_MAX, "a", "decode", "x"},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(entries); i++) {
		size_t at = 0;

		page.used = 0;
		ck_assert(bad_page_put(&page, &entries[i]));
		ck_assert_int_eq(bad_page_next(page.bytes, page.used, &at, &entry), BAD_PAGE_E_BAD);
	}
}
END_TEST

#define MANY 20000

/* Each sample twice, in an order of its own: what came first stays. */
START_TEST(lists_are_in_order)
{
	struct bad_list list = {0};
	struct bad_page_entry entry;
	char name[32];

	for (uint64_t i = 0; i < 2 * MANY; i++) {
		uint64_t id = i * 7919 % MANY;

		snprintf(name, sizeof(name), "%llu-%d", (unsigned long long)id, i >= MANY);
		page.used = 0;
		ck_assert(put(id, name, i < MANY ? "read" : "decode", ""));
		ck_assert_int_eq(bad_list_add(&list, page.bytes, page.used, MANY), 0);
	}
	ck_assert_uint_eq(list.count, 2 * MANY);
	bad_list_sort(&list);
	ck_assert_uint_eq(list.count, MANY);
	for (uint64_t i = 0; i < MANY; i++) {
		bad_list_get(&list, i, &entry);
		snprintf(name, sizeof(name), "%llu-0", (unsigned long long)i);
		ck_assert_uint_eq(entry.id, i);
		ck_assert_str_eq(entry.name, name);
		ck_assert_str_eq(entry.stage, "read");
	}
	bad_list_fini(&list);
	bad_list_sort(&list);
	ck_assert_uint_eq(list.count, 0);
}
END_TEST

START_TEST(lists_have_samples_of_the_dataset)
{
	struct bad_list list = {0};

	page.used = 0;
	ck_assert(put(9, "a", "read", "") && put(10, "b", "read", ""));
	ck_assert_int_eq(bad_list_add(&list, page.bytes, page.used, 11), 0);
	ck_assert_int_eq(bad_list_add(&list, page.bytes, page.used, 10), BAD_PAGE_E_BAD);
	bad_list_fini(&list);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, what_is_put_comes_out);
	tcase_add_test(tcase, long_texts_are_cut);
	tcase_add_test(tcase, a_full_page_says_so);
	tcase_add_test(tcase, damaged_pages_are_refused);
	tcase_add_test(tcase, strange_words_are_refused);
	tcase_add_test(tcase, lists_are_in_order);
	tcase_add_test(tcase, lists_have_samples_of_the_dataset);
}

int main(void)
{
	return suite_run("bad_page", add);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Data sets with URLs, as libaccess opens them: who starts access-bucket, what it is told, what is made of its news, its
 * death. The test is access-bucket itself, if it is called so; what it does is in FAKE_BUCKET.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/url.h"
#include "shmring/bucket.h"
#include "tests/libaccess/fake.h"
#include "tests/suite.h"

static const struct fake_config plain = {.n = 1000, .chunk = 20, .slots = 4};

/* ---- access-bucket ---- */

#define MOST_WATCHERS 16

static bool does(const char *word)
{
	return strstr(getenv("FAKE_BUCKET"), word) != NULL;
}

/* Who does not listen any more ends it. */
static void tell(int sock, uint32_t what, uint64_t objects, const char *text)
{
	struct bucket_news news = {.magic = BUCKET_MAGIC,
				   .what = what,
				   .is_denied = strstr(text, "AccessDenied") != NULL,
				   .objects = objects};

	snprintf(news.text, sizeof(news.text), "%s", text);
	if (send(sock, &news, sizeof(news), MSG_NOSIGNAL) < 0)
		_exit(9);
}

static void make_data(const char *files)
{
	mkdir("data", 0700);
	for (const char *at = files; *at; at += strcspn(at, " "), at += *at == ' ') {
		char name[128];
		int fd;

		snprintf(name, sizeof(name), "data/%.*s", (int)strcspn(at, " "), at);
		fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			_exit(3);
		close(fd);
	}
}

/* NULL: nobody's. */
static void write_keys(const char *text)
{
	FILE *file = fopen("keys", "we");
	struct hash_id keys = {{0}};

	if (!file || (text && url_keys(text, NULL, false, &keys)) ||
	    fwrite(&keys, sizeof(keys), 1, file) != 1 || fclose(file))
		_exit(10);
}

/* A letter more in a file, for who counts them. */
static void note(const char *name)
{
	FILE *file = fopen(name, "ae");

	if (!file || fputc('.', file) < 0 || fclose(file))
		_exit(11);
}

/* A watcher has come; or another access-bucket, to take its place: false. */
static bool greet(int sock)
{
	struct bucket_head head;
	static unsigned served;
	uint64_t objects = 0;
	const ssize_t n = recv(sock, &head, sizeof(head), 0);

	if (n == 0) { /* it has looked whether somebody listens, and has other credentials */
		note("looks");
		return true;
	}
	if (n != sizeof(head) || head.magic != BUCKET_MAGIC ||
	    (head.kind != BUCKET_WATCH && head.kind != BUCKET_YIELD))
		_exit(4);
	if (head.kind == BUCKET_YIELD)
		return false;
	note("watches");
	if (does("dies"))
		_exit(5);
	while (does("slow") && access("../go", F_OK) != 0) {
		tell(sock, BUCKET_LISTING, objects += 1000, "");
		usleep(5000);
	}
	if (does("refuses")) {
		tell(sock, BUCKET_REFUSED, 0,
		     "s3://no/such: there is no such bucket: look at its name");
		_exit(6);
	}
	if (does("denies") || (does("one") && served++)) {
		write_keys(NULL);
		tell(sock, BUCKET_REFUSED, 0, "s3://b: AccessDenied");
		return true;
	}
	if (does("breaks") && served++) {
		tell(sock, BUCKET_REFUSED, 0, "s3://b: the server says 500, after all tries");
		return true;
	}
	if (does("lies"))
		(void)!send(sock, "what?", 5, MSG_NOSIGNAL);
	make_data(getenv("FAKE_FILES"));
	tell(sock, BUCKET_READY, 2000, "");
	return true;
}

/* The one that is there gives its place. */
static void supplant(const struct sockaddr_un *address)
{
	const struct bucket_head yield = {.magic = BUCKET_MAGIC, .kind = BUCKET_YIELD};
	_cleanup_close_ int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char end;

	if (connect(sock, (const struct sockaddr *)address, sizeof(*address)) == 0 &&
	    send(sock, &yield, sizeof(yield), MSG_NOSIGNAL) == sizeof(yield))
		(void)!recv(sock, &end, 1, 0);
}

static void serve(int listener)
{
	FILE *file = fopen("pid", "we");
	struct pollfd fds[MOST_WATCHERS + 1] = {{.fd = listener, .events = POLLIN}};
	const unsigned most = does("twice") ? 2 : 1;
	unsigned n = 0, had = 0;

	if (!file || fprintf(file, "%d", (int)getpid()) < 0 || fclose(file))
		_exit(8);
	while (n > 0 || had < most) {
		if (poll(fds, n + 1, PATIENCE_MS) <= 0)
			_exit(7);
		for (unsigned i = n; i > 0; i--)
			if (fds[i].revents) { /* it hung up: nothing else is said */
				close(fds[i].fd);
				fds[i] = fds[n--];
			}
		if (fds[0].revents && n < MOST_WATCHERS) {
			fds[++n] = (struct pollfd){
			    .fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), .events = POLLIN};
			had++;
			if (greet(fds[n].fd))
				continue;
			while (--n > 0)
				tell(fds[n].fd, BUCKET_MOVED, 0, "");
		}
	}
	unlink("socket");
	_exit(0);
}

static int be_bucket(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	FILE *starts;

	if (argc < 3 || chdir(argv[1]))
		return 1;
	if (does("fails")) {
		fputs("access-bucket: there is no libcurl here: install it\n", stderr);
		return 1;
	}
	supplant(&address);
	write_keys(argv[2]);
	unlink("socket");
	if (bind(sock, (struct sockaddr *)&address, sizeof(address)) || listen(sock, 16))
		return 1;
	fflush(NULL);
	switch (fork()) {
	case -1:
		return 1;
	case 0:
		serve(sock);
	}
	starts = fopen("../starts", "ae");
	for (int i = 2; starts && i < argc; i++)
		fprintf(starts, "%s%c", argv[i], i + 1 < argc ? ' ' : '\n');
	return !starts || fclose(starts);
}

/* ---- the test's own ---- */

static char libexec[96], bases[160];

/* A fake accessd, beside whose socket folders are, and an access-bucket that does so. */
static void begin(struct fake *fake, const char *deeds, const char *files)
{
	char link[128], self[512];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	ck_assert_int_gt(length, 0);
	self[length] = '\0';
	fake_start(fake, &plain);
	snprintf(libexec, sizeof(libexec), "%s/libexec", fake->folder);
	snprintf(bases, sizeof(bases), "%s/buckets", fake->folder);
	snprintf(link, sizeof(link), "%s/access-bucket", libexec);
	ck_assert_int_eq(mkdir(libexec, 0700), 0);
	ck_assert_int_eq(symlink(self, link), 0);
	setenv("ACCESS_LIBEXEC", libexec, 1);
	unsetenv("ACCESS_BUCKETS");
	setenv("FAKE_BUCKET", deeds, 1);
	setenv("FAKE_FILES", files, 1);
}

static void end(struct fake *fake)
{
	char command[320];

	fake_wait_alone(fake);
	snprintf(command, sizeof(command), "rm -rf %s %s", bases, libexec);
	for (unsigned i = 0; system(command) != 0;
	     i++) { /* an access-bucket that ends may still write there */
		ck_assert_uint_lt(i, PATIENCE_MS / 10);
		usleep(10000);
	}
	fake_stop(fake);
}

/* What access-bucket was started with, a line each; the number of lines. */
static unsigned read_starts(char *ret, size_t size)
{
	char path[256];
	unsigned n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/starts", bases);
	file = fopen(path, "re");
	ret[0] = '\0';
	for (size_t at = 0; file && fgets(ret + at, (int)(size - at), file); at = strlen(ret))
		n++;
	if (file)
		fclose(file);
	return n;
}

/* What access-bucket has noted in a file of the URL's folder. */
static unsigned read_notes(const char *dataset, const char *name)
{
	char path[320], folder[URL_FOLDER_MAX];
	struct stat status = {.st_size = 0};
	struct url url;

	ck_assert_int_eq(url_parse(dataset, &url), 0);
	url_folder(&url, folder);
	url_fini(&url);
	snprintf(path, sizeof(path), "%s/%s/%s", bases, folder, name);
	return stat(path, &status) == 0 ? (unsigned)status.st_size : 0;
}

static struct oa_options options_of(const char *dataset)
{
	struct oa_options options = fake_options(10, 1);

	options.dataset = dataset;
	return options;
}

static struct oa_stream *open_url(struct fake *fake, const char *dataset)
{
	struct oa_options options = options_of(dataset);

	return fake_open(fake, &options);
}

static void refuses(struct fake *fake, const struct oa_options *options, int code, const char *part)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = fake_connect(fake);
	struct oa_stream *stream;

	ck_assert_int_eq(oa_open(client, options, &stream, &error), code);
	ck_assert_msg(strstr(error.text, part) != NULL, "%s", error.text);
	oa_disconnect(client);
}

static void take_all(struct oa_stream *stream)
{
	struct oa_batch *batch;
	unsigned n = 0;
	int r;

	for (; (r = oa_next(stream, PATIENCE_MS, &batch)) == 0; n++)
		oa_release(batch);
	ck_assert_msg(r == OA_E_END, "%s", oa_error_text(stream));
	ck_assert_uint_eq(n, 100);
}

/* ---- URLs ---- */

static const struct {
	const char *dataset, *text, *options, *access, *tail, *folder;
} urls[] = {
    {"s3://b/train", "s3://b/train", "", "", "train", "b-train-"},
    {"s3://b/train/", "s3://b/train/", "", "", "", "b-train-"},
    {"s3://b", "s3://b", "", "", "", "b-"},
    {"gs://b/x.tar?label=none", "gs://b/x.tar", "?label=none", "", "x.tar", "b-x.tar-"},
    {"s3://b/a?region=eu,members=all,endpoint=http://h:1/", "s3://b/a", "?members=all",
     "endpoint=http://h:1/ region=eu ", "a", "b-a-"},
    {"s3://b/a?b", "s3://b/a?b", "", "", "a?b", "b-a-b-"},
    {"s3://b/{x,y}/{00..15}.tar", "s3://b/{x,y}/{00..15}.tar", "", "", "{x,y}/{00..15}.tar", "b-"},
    {"s3://b/x-{0..3}.tar?label=none,region=x", "s3://b/x-{0..3}.tar", "?label=none", "region=x ",
     "x-{0..3}.tar", "b-x-"},
    {"https://u:secret@h/a/x.tar?sig=a=b,c/d", "https://u:secret@h/a/x.tar?sig=a=b,c/d", "", "",
     "x.tar", "h-a-x.tar-"},
    {"https://h/x.npy?sig=1#dtype=u8,token_file=/t", "https://h/x.npy?sig=1", "?dtype=u8",
     "token_file=/t ", "x.npy", "h-x.npy-"},
    {"abfss://c@account.dfs.core.windows.net/p", "abfss://c@account.dfs.core.windows.net/p", "", "",
     "p", "c-account.dfs.core.windows.net-p-"},
    {"hf://datasets/org/name@main/data", "hf://datasets/org/name@main/data", "", "", "data",
     "datasets-org-name-main-data-"},
    {"s3://b/0123456789012345678901234567890123456789/end",
     "s3://b/0123456789012345678901234567890123456789/end", "", "", "end",
     "456789012345678901234567890123456789-end-"},
    {"s3:///...", "s3:///...", "", "", "...", ""},
};

START_TEST(urls_have_parts)
{
	char folder[URL_FOLDER_MAX], again[URL_FOLDER_MAX], access[256] = "";
	const char *tail;
	struct url url;
	size_t length;

	ck_assert(url_is(urls[_i].dataset));
	ck_assert_int_eq(url_parse(urls[_i].dataset, &url), 0);
	for (size_t i = 0; i < url.n_access; i++) {
		strcat(access, url.access[i]);
		strcat(access, " ");
	}
	ck_assert_str_eq(url.text, urls[_i].text);
	ck_assert_str_eq(url.options, urls[_i].options);
	ck_assert_str_eq(access, urls[_i].access);
	ck_assert_uint_eq(url_tail(&url, &tail), strlen(urls[_i].tail));
	ck_assert_int_eq(strncmp(tail, urls[_i].tail, strlen(urls[_i].tail)), 0);
	length = url_folder(&url, folder);
	ck_assert_uint_eq(length, strlen(urls[_i].folder) + 16);
	ck_assert_uint_eq(strlen(folder),
			  length + (url.n_access || strstr(url.text, "sig") ? 9 : 0));
	ck_assert_msg(strncmp(folder, urls[_i].folder, strlen(urls[_i].folder)) == 0, "%s", folder);
	ck_assert_ptr_null(strchr(folder, '/'));
	url_fini(&url);
	ck_assert_int_eq(url_parse(urls[_i].text, &url),
			 0); /* the same, whatever access-bucket is told */
	url_folder(&url, again);
	ck_assert_int_eq(strncmp(folder, again, length), 0);
	url_fini(&url);
}
END_TEST

START_TEST(stores_that_the_environment_names_differ)
{
	char folder[3][URL_FOLDER_MAX];
	struct url url;

	ck_assert_int_eq(url_parse("s3://b/train", &url), 0);
	url_folder(&url, folder[0]);
	setenv("AWS_ENDPOINT_URL", "http://one:1", 1);
	url_folder(&url, folder[1]);
	setenv("AWS_ENDPOINT_URL", "http://two:2", 1);
	url_folder(&url, folder[2]);
	unsetenv("AWS_ENDPOINT_URL");
	ck_assert_str_ne(folder[0], folder[1]);
	ck_assert_str_ne(folder[1], folder[2]);
	ck_assert_int_eq(strncmp(folder[0], folder[1], strlen(folder[0])), 0);
	setenv("AWS_ACCESS_KEY_ID", "AKIDANOTHER", 1);
	url_folder(&url, folder[1]);
	unsetenv("AWS_ACCESS_KEY_ID");
	ck_assert_str_eq(folder[0], folder[1]);
	url_fini(&url);
}
END_TEST

static struct hash_id keys_of(const char *file)
{
	struct hash_id keys;

	ck_assert_int_eq(url_keys("s3://b", file, false, &keys), 0);
	return keys;
}

static struct hash_id keys_of_anybody(const char *text)
{
	struct hash_id keys;

	ck_assert_int_eq(url_keys(text, NULL, true, &keys), 0);
	return keys;
}

static bool are_alike(struct hash_id a, struct hash_id b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(fputs(text, file), 0);
	ck_assert_int_eq(fclose(file), 0);
}

/* What a variable says, and what is in the file that one or an option names; not where that is. */
START_TEST(credentials_differ)
{
	char folder[] = "/tmp/oneaccess-keys-XXXXXX", file[64], other[64];
	struct hash_id before;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/token", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	write_text(file, "one");
	write_text(other, "one");
	setenv("HOME", folder, 1);
	before = keys_of(NULL);
	ck_assert(are_alike(before, keys_of(NULL)));
	setenv("HOME", "/nowhere", 1);
	ck_assert(are_alike(before, keys_of(NULL)));
	ck_assert(are_alike(before, keys_of("/nowhere/token")));
	ck_assert(!are_alike(before, keys_of(file)));
	ck_assert(are_alike(keys_of(other), keys_of(file)));
	write_text(file, "two");
	ck_assert(!are_alike(keys_of(other), keys_of(file)));
	setenv("HF_TOKEN_PATH", file, 1);
	ck_assert(!are_alike(before, keys_of(NULL)));
	before = keys_of(NULL);
	setenv("HF_TOKEN_PATH", other, 1);
	ck_assert(!are_alike(before, keys_of(NULL)));
	unsetenv("HF_TOKEN_PATH");
	before = keys_of(NULL);
	setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token", 1); /* nobody */
	ck_assert(are_alike(before, keys_of(NULL)));
	setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file, 1); /* it proves who AWS_ROLE_ARN is */
	ck_assert(!are_alike(before, keys_of(NULL)));
	before = keys_of(NULL);
	setenv("AWS_WEB_IDENTITY_TOKEN_FILE", other, 1);
	ck_assert(are_alike(before, keys_of(NULL)));
	setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/other", 1);
	ck_assert(!are_alike(before, keys_of(NULL)));
	unsetenv("AWS_ROLE_ARN");
	unsetenv("AWS_WEB_IDENTITY_TOKEN_FILE");
	before = keys_of(NULL);
	setenv("AZURE_STORAGE_KEY", "one", 1);
	ck_assert(!are_alike(before, keys_of(NULL)));
	before = keys_of(NULL);
	setenv("AZURE_STORAGE_KEY", "two", 1);
	ck_assert(!are_alike(before, keys_of(NULL)));
	unsetenv("AZURE_STORAGE_KEY");
	ck_assert(unlink(file) == 0 && unlink(other) == 0 && rmdir(folder) == 0);
}
END_TEST

/* What is used there counts. */
START_TEST(credentials_of_anybody_differ_by_the_way)
{
	struct hash_id store = keys_of_anybody("s3://b"), web = keys_of_anybody("https://h/f");

	setenv("AWS_ACCESS_KEY_ID", "AKIDANOTHER", 1);
	setenv("HF_TOKEN", "another", 1);
	ck_assert(are_alike(store, keys_of_anybody("s3://b")));
	ck_assert(are_alike(web, keys_of_anybody("https://h/f")));
	setenv("AWS_DEFAULT_PROFILE", "another", 1); /* which may name an endpoint */
	ck_assert(!are_alike(store, keys_of_anybody("s3://b")));
	ck_assert(are_alike(web, keys_of_anybody("https://h/f")));
	setenv("https_proxy", "http://another:1", 1);
	ck_assert(!are_alike(web, keys_of_anybody("https://h/f")));
	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("HF_TOKEN");
	unsetenv("AWS_DEFAULT_PROFILE");
	unsetenv("https_proxy");
}
END_TEST

START_TEST(paths_are_no_urls)
{
	static const char *const paths[] = {"/s3://b",      "s3:/b", "a/s3://b", "name:x",  "",
					    "file:///data", "://b",  "3s://b",   "FILE://x"};

	for (size_t i = 0; i < BASE_ARRAY_LEN(paths); i++)
		ck_assert_msg(!url_is(paths[i]), "%s", paths[i]);
	ck_assert_str_eq(url_path("file:///data"), "/data");
	ck_assert_str_eq(url_path("/data"), "/data");
}
END_TEST

/* ---- opening ---- */

static const struct {
	const char *dataset, *files, *path;
} meant[] = {
    {"s3://b/train", "a.jpg b.jpg", "data"},
    {"s3://b/train", "train", "data/train"}, /* an object */
    {"s3://b/train", "train x", "data"},     /* a prefix with an object of its own name */
    {"s3://b/train", "other", "data"},
    {"s3://b/train/", "train", "data"},
    {"s3://b/x-{0..1}.tar?label=none", "x-0.tar x-1.tar", "data/x-{0..1}.tar?label=none"},
    {"https://h/f?id=7#dtype=u8", "f", "data/f?dtype=u8"},
};

START_TEST(accessd_is_told_a_folder)
{
	char expected[512], folder[URL_FOLDER_MAX], starts[512];
	struct oa_stream *stream;
	struct stat status;
	struct fake fake;
	struct url url;

	begin(&fake, "", meant[_i].files);
	stream = open_url(&fake, meant[_i].dataset);
	ck_assert_int_eq(url_parse(meant[_i].dataset, &url), 0);
	url_folder(&url, folder);
	snprintf(expected, sizeof(expected), "%s/%s/%s", bases, folder, meant[_i].path);
	ck_assert_str_eq(fake.asked, expected);
	ck_assert_uint_eq(read_starts(starts, sizeof(starts)), 1);
	starts[strcspn(starts, "\n")] = '\0';
	ck_assert_str_eq(starts, url.text);
	ck_assert_int_eq(stat(bases, &status), 0);
	ck_assert_uint_eq(status.st_mode & 07777, 0700);
	take_all(stream);
	oa_close(stream);
	url_fini(&url);
	end(&fake);
}
END_TEST

struct sharer { /* the second job */
	struct fake *fake;
	int held; /* at its end the first one is open, too */
};

static void *share(void *arg)
{
	const struct sharer *sharer = arg;
	struct oa_stream *stream;
	char path[256], over;

	usleep(20000);
	snprintf(path, sizeof(path), "%s/go", bases);
	mkdir(bases, 0700);
	close(open(path, O_CREAT | O_CLOEXEC | O_WRONLY, 0600));
	stream = open_url(sharer->fake, "s3://b/train?region=x");
	take_all(stream);
	ck_assert_int_eq(read(sharer->held, &over, 1), 0);
	oa_close(stream);
	return NULL;
}

/* Two at once, and one that comes later: one access-bucket, which goes with the last of them. */
START_TEST(jobs_share_one)
{
	struct oa_stream *first, *second;
	char starts[512], path[256], folder[URL_FOLDER_MAX];
	struct sharer sharer;
	struct fake fake;
	struct url url;
	pthread_t thread;
	int held[2];

	begin(&fake, "slow", "a b");
	ck_assert_int_eq(pipe(held), 0);
	sharer = (struct sharer){&fake, held[0]};
	ck_assert_int_eq(pthread_create(&thread, NULL, share, &sharer), 0);
	first = open_url(&fake, "s3://b/train?region=x");
	close(held[1]);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	close(held[0]);
	second = open_url(&fake, "s3://b/train?region=x");
	ck_assert_uint_eq(read_starts(starts, sizeof(starts)), 1);
	ck_assert_str_eq(starts, "s3://b/train region=x\n");
	oa_close(first);
	take_all(second);
	oa_close(second);
	ck_assert_int_eq(url_parse("s3://b/train?region=x", &url), 0);
	url_folder(&url, folder);
	url_fini(&url);
	snprintf(path, sizeof(path), "%s/%s/socket", bases, folder);
	for (unsigned i = 0; access(path, F_OK) == 0; i++, usleep(5000))
		ck_assert_uint_lt(i, PATIENCE_MS / 5);
	end(&fake);
}
END_TEST

static void count_progress(void *argument, const char *text, uint64_t done, uint64_t total)
{
	unsigned *calls = argument;
	char path[256];

	if (strcmp(text, "listing s3://b/many") != 0)
		return;
	ck_assert_uint_eq(done % 1000, 0);
	ck_assert_uint_eq(total, 0);
	snprintf(path, sizeof(path), "%s/go", bases);
	if (++*calls == 3)
		close(open(path, O_CREAT | O_CLOEXEC | O_WRONLY, 0600));
}

START_TEST(a_listing_is_told)
{
	struct oa_options options = options_of("s3://b/many");
	unsigned calls = 0;
	struct fake fake;

	begin(&fake, "slow", "a b");
	options.progress = count_progress;
	options.progress_arg = &calls;
	oa_close(fake_open(&fake, &options));
	ck_assert_uint_ge(calls, 3);
	end(&fake);
}
END_TEST

/* ---- what goes wrong ---- */

static const struct {
	const char *deeds;
	int code;
	const char *text;
} failures[] = {
    {"refuses", OA_E_DATASET, "there is no such bucket: look at its name"},
    {"fails", OA_E_DATASET, "s3://b/train: there is no libcurl here: install it"},
    {"dies", OA_E_DATASET, "access-bucket has ended 6 times within a minute"},
    {"lies", OA_E_DATASET, "says what makes no sense"},
};

START_TEST(failures_are_told)
{
	const struct oa_options options = options_of("s3://b/train");
	struct fake fake;

	begin(&fake, failures[_i].deeds, "a b");
	refuses(&fake, &options, failures[_i].code, failures[_i].text);
	ck_assert_uint_eq(fake.opens, 0);
	end(&fake);
}
END_TEST

START_TEST(it_may_be_late)
{
	struct oa_options options = options_of("s3://b/train");
	struct fake fake;

	begin(&fake, "slow", "a b");
	options.timeout_ms = 100;
	refuses(&fake, &options, OA_E_TIMEOUT, "access-bucket");
	end(&fake);
}
END_TEST

START_TEST(it_may_not_be_there)
{
	const struct oa_options options = options_of("s3://b/train");
	char path[4096];
	struct fake fake;

	begin(&fake, "", "a b");
	setenv("ACCESS_LIBEXEC", "/nowhere", 1);
	snprintf(path, sizeof(path), "%s", getenv("PATH"));
	setenv("PATH", "/nowhere", 1);
	refuses(&fake, &options, OA_E_DATASET,
		"install the package oneaccess-buckets where the job runs");
	setenv("PATH", path, 1);
	end(&fake);
}
END_TEST

START_TEST(an_older_accessd_is_told)
{
	const struct oa_options options = options_of("s3://b/train");
	struct fake fake;

	begin(&fake, "", "a b");
	fake_lock(&fake);
	fake.config.mode = FAKE_OLDER;
	fake_unlock(&fake);
	refuses(&fake, &options, OA_E_VERSION,
		"older than data sets of object stores: upgrade accessd");
	end(&fake);
}
END_TEST

enum { MODE, FILE_THERE, LINK, OWNER, INNER, N_TRAPS };

static void set_trap(unsigned trap)
{
	char folder[URL_FOLDER_MAX], path[256];
	struct url url;

	ck_assert_int_eq(url_parse("s3://b/train", &url), 0);
	url_folder(&url, folder);
	url_fini(&url);
	snprintf(path, sizeof(path), "%s/%s", bases, folder);
	if (trap == FILE_THERE) {
		close(open(bases, O_CREAT | O_CLOEXEC | O_WRONLY, 0600));
		return;
	}
	ck_assert_int_eq(mkdir(bases, 0700), 0);
	if (trap == MODE)
		ck_assert_int_eq(chmod(bases, 0770), 0);
	if (trap == LINK)
		ck_assert_int_eq(symlink("/tmp", path), 0);
	if (trap == OWNER)
		ck_assert_int_eq(chmod(bases, 0777) || chown(bases, 65534, 65534), 0);
	if (trap == INNER)
		ck_assert_int_eq(mkdir(path, 0700) || chown(path, 65534, 65534), 0);
}

/* Nothing is started in a folder that is, or may be, another user's. */
START_TEST(folders_of_others_are_refused)
{
	const struct oa_options options = options_of("s3://b/train");
	char starts[128];
	struct fake fake;

	if (_i >= OWNER && geteuid() != 0)
		return;
	begin(&fake, "", "a b");
	set_trap((unsigned)_i);
	refuses(&fake, &options, OA_E_PERMISSION, "must be a folder of uid");
	ck_assert_uint_eq(read_starts(starts, sizeof(starts)), 0);
	end(&fake);
}
END_TEST

/* As beside the socket of a system's accessd; the first name is another user's there. */
START_TEST(in_a_folder_of_all_ours_is_found)
{
	char path[256], starts[128];
	struct oa_stream *stream;
	struct stat status;
	struct fake fake;
	const unsigned uid = geteuid();

	begin(&fake, "", "a b");
	ck_assert_int_eq(mkdir(bases, 0700) || chmod(bases, 01777), 0);
	snprintf(path, sizeof(path), "%s/%u", bases, uid);
	if (_i == 1)
		close(open(path, O_CREAT | O_CLOEXEC | O_WRONLY, 0600)); /* in the way */
	stream = open_url(&fake, "s3://b/train");
	take_all(stream);
	snprintf(path, sizeof(path), "%s/%u%s", bases, uid, _i == 1 ? ".1" : "");
	ck_assert_int_eq(strncmp(fake.asked, path, strlen(path)), 0);
	ck_assert_int_eq(fake.asked[strlen(path)], '/');
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert_uint_eq(status.st_mode & 07777, 0700);
	ck_assert_uint_eq(read_starts(starts, sizeof(starts)), 0); /* it is deeper */
	oa_close(stream);
	end(&fake);
}
END_TEST

/* A container may see the folder of the socket under another name; and an administrator may have it elsewhere. */
START_TEST(accessd_sees_it_under_its_own_name)
{
	char elsewhere[192], path[256];
	struct oa_stream *stream;
	struct fake fake;

	begin(&fake, "", "a b");
	snprintf(elsewhere, sizeof(elsewhere), "%s/libexec/elsewhere", fake.folder);
	fake_lock(&fake);
	fake.config.buckets = elsewhere;
	fake_unlock(&fake);
	ck_assert_int_eq(
	    mkdir(_i ? elsewhere : bases, 0700) || chmod(_i ? elsewhere : bases, 01777), 0);
	stream = open_url(&fake, "s3://b/train");
	take_all(stream);
	snprintf(path, sizeof(path), "%s/%u/b-train-", elsewhere, (unsigned)geteuid());
	ck_assert_int_eq(strncmp(fake.asked, path, strlen(path)), 0);
	snprintf(path, sizeof(path), "%s/%u", _i ? elsewhere : bases, (unsigned)geteuid());
	ck_assert_int_eq(access(path, F_OK), 0);
	snprintf(path, sizeof(path), "%s/%u", _i ? bases : elsewhere, (unsigned)geteuid());
	ck_assert_int_eq(access(path, F_OK), -1);
	oa_close(stream);
	end(&fake);
}
END_TEST

START_TEST(another_folder_may_be_named)
{
	struct oa_stream *stream;
	struct fake fake;
	char path[256];

	begin(&fake, "", "a b");
	snprintf(path, sizeof(path), "%s/elsewhere", fake.folder);
	setenv("ACCESS_BUCKETS", path, 1);
	stream = open_url(&fake, "s3://b/train");
	ck_assert_int_eq(strncmp(fake.asked, path, strlen(path)), 0);
	oa_close(stream);
	snprintf(bases, sizeof(bases), "%s", path);
	end(&fake);
}
END_TEST

/* ---- other credentials ---- */

/* A job that has others starts an access-bucket of them; one that was there before goes on with that, whatever it has itself. */
START_TEST(newer_credentials_are_taken)
{
	struct oa_stream *first, *second;
	struct oa_batch *batch;
	char starts[512];
	struct fake fake;
	unsigned n = 0;

	begin(&fake, "", "a b");
	fake_lock(&fake);
	fake.config.most_chunks = 1;
	fake_unlock(&fake);
	setenv("AWS_ACCESS_KEY_ID", "AKIDOLD", 1);
	first = open_url(&fake, "s3://b/train");
	for (; n < 2; n++) {
		ck_assert_int_eq(oa_next(first, PATIENCE_MS, &batch), 0);
		oa_release(batch);
	}
	oa_close(open_url(&fake, "s3://b/train"));
	ck_assert_uint_eq(read_starts(starts, sizeof(starts)), 1);
	setenv("AWS_ACCESS_KEY_ID", "AKIDNEW", 1);
	for (unsigned i = 0; i < 10; i++) { /* more often than one may die within a minute */
		setenv("AWS_SESSION_TOKEN", i % 2 ? "one" : "other", 1);
		second = open_url(&fake, "s3://b/train");
		ck_assert_uint_eq(read_starts(starts, sizeof(starts)), 2 + i);
		while (read_notes("s3://b/train", "watches") <
		       2 * (i + 2)) /* else it would end with the second */
			ck_assert_int_eq(oa_next(first, 10, &batch), OA_E_TIMEOUT);
		oa_close(second);
	}
	setenv("AWS_ACCESS_KEY_ID", "AKIDOLD", 1);
	fake_lock(&fake);
	fake.config.most_chunks = UINT64_MAX;
	fake_unlock(&fake);
	for (; n < 100; n++) {
		ck_assert_int_eq(oa_next(first, PATIENCE_MS, &batch), 0);
		oa_release(batch);
	}
	ck_assert_uint_eq(read_starts(starts, sizeof(starts)), 11);
	ck_assert_ptr_null(strstr(starts, "AKID"));
	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SESSION_TOKEN");
	oa_close(first);
	end(&fake);
}
END_TEST

/* A job that has gone over to one which then lists nothing asks with its own credentials, once. */
START_TEST(a_job_that_went_over_in_vain_asks_itself)
{
	const struct oa_options options = options_of("s3://b/train");
	struct oa_stream *stream;
	struct oa_batch *batch;
	char starts[512];
	struct fake fake;
	unsigned n = 0;
	int r;

	begin(&fake, "", "a b");
	fake_lock(&fake);
	fake.config.most_chunks = 1;
	fake_unlock(&fake);
	setenv("AWS_ACCESS_KEY_ID", "AKIDOLD", 1);
	stream = open_url(&fake, "s3://b/train");
	for (; n < 2; n++) {
		ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
		oa_release(batch);
	}
	setenv("AWS_ACCESS_KEY_ID", "AKIDNEW", 1);
	setenv("FAKE_BUCKET", "denies twice", 1);
	refuses(&fake, &options, OA_E_DATASET, "AccessDenied");
	setenv("AWS_ACCESS_KEY_ID", "AKIDOLD", 1);
	setenv("FAKE_BUCKET", _i ? "denies" : "", 1);
	for (unsigned i = 0; _i == 0 && read_starts(starts, sizeof(starts)) < 3; i++) {
		ck_assert_uint_lt(i, PATIENCE_MS / 10);
		r = oa_next(stream, 10, &batch);
		ck_assert_msg(r == OA_E_TIMEOUT, "%s", oa_error_text(stream));
	}
	if (_i == 1)
		ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), OA_E_DATASET);
	fake_lock(&fake);
	fake.config.most_chunks = UINT64_MAX;
	fake_unlock(&fake);
	while ((r = oa_next(stream, PATIENCE_MS, &batch)) == 0) {
		oa_release(batch);
		n++;
	}
	if (_i == 0)
		ck_assert_uint_eq(n, 100);
	else
		ck_assert_ptr_nonnull(strstr(oa_error_text(stream), "AccessDenied"));
	ck_assert_int_eq(r, _i ? OA_E_DATASET : OA_E_END);
	ck_assert_uint_eq(read_starts(starts, sizeof(starts)), 3);
	unsetenv("AWS_ACCESS_KEY_ID");
	oa_close(stream);
	end(&fake);
}
END_TEST

/* While another job is starting one, it waits for that, and does not look again and again who listens. */
START_TEST(the_turn_is_waited_for)
{
	struct oa_options options = options_of("s3://b/train");
	char folder[URL_FOLDER_MAX], path[320];
	struct oa_stream *first;
	struct fake fake;
	struct url url;
	int lock;

	begin(&fake, "", "a b");
	first = open_url(&fake, "s3://b/train");
	ck_assert_int_eq(url_parse("s3://b/train", &url), 0);
	url_folder(&url, folder);
	url_fini(&url);
	snprintf(path, sizeof(path), "%s/%s/lock", bases, folder);
	lock = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(flock(lock, LOCK_EX), 0);
	setenv("AWS_ACCESS_KEY_ID", "AKIDNEW", 1);
	options.timeout_ms = 500;
	refuses(&fake, &options, OA_E_TIMEOUT, "not there in time");
	unsetenv("AWS_ACCESS_KEY_ID");
	close(lock);
	oa_close(open_url(&fake, "s3://b/train")); /* what came before it was answered */
	ck_assert_uint_eq(read_notes("s3://b/train", "looks"), 1);
	oa_close(first);
	end(&fake);
}
END_TEST

/* So does one that comes with what seemed to be the same, once. */
START_TEST(who_is_refused_by_another_asks_itself)
{
	const struct oa_options options = options_of("s3://b/train");
	struct oa_stream *first;
	char starts[512];
	struct fake fake;

	begin(&fake, "one", "a b");
	first = open_url(&fake, "s3://b/train");
	setenv("FAKE_BUCKET", _i ? "denies" : "", 1);
	if (_i)
		refuses(&fake, &options, OA_E_DATASET, "AccessDenied");
	else
		oa_close(open_url(&fake, "s3://b/train"));
	ck_assert_uint_eq(read_starts(starts, sizeof(starts)), 2);
	oa_close(first);
	end(&fake);
}
END_TEST

/* Where that is not for its credentials, another one is told the same: there is none. */
START_TEST(who_is_told_of_another_error_asks_nobody)
{
	const struct oa_options options = options_of("s3://b/train");
	struct oa_stream *first;
	char starts[512];
	struct fake fake;

	begin(&fake, "breaks", "a b");
	first = open_url(&fake, "s3://b/train");
	refuses(&fake, &options, OA_E_DATASET, "the server says 500");
	ck_assert_uint_eq(read_starts(starts, sizeof(starts)), 1);
	oa_close(first);
	end(&fake);
}
END_TEST

/* ---- it dies ---- */

static void kill_bucket(const char *dataset)
{
	char path[300], folder[URL_FOLDER_MAX];
	struct url url;
	FILE *file;
	int pid;

	ck_assert_int_eq(url_parse(dataset, &url), 0);
	url_folder(&url, folder);
	url_fini(&url);
	snprintf(path, sizeof(path), "%s/%s/pid", bases, folder);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
	fclose(file);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
}

/* Of one that waits for a batch which does not come: another is started, and the job goes on. */
START_TEST(another_is_started)
{
	struct oa_batch *batch;
	struct oa_stream *stream;
	char starts[512];
	struct fake fake;
	unsigned n = 0;

	begin(&fake, "", "a b");
	fake_lock(&fake);
	fake.config.most_chunks = 1;
	fake_unlock(&fake);
	stream = open_url(&fake, "s3://b/train");
	for (; n < 2; n++) {
		ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
		oa_release(batch);
	}
	kill_bucket("s3://b/train");
	for (unsigned i = 0; read_starts(starts, sizeof(starts)) < 2; i++) {
		ck_assert_uint_lt(i, PATIENCE_MS / 10);
		if (_i == 1) /* by its descriptor, as an event loop does */
			ck_assert_int_ge(oa_fd(stream), 0);
		ck_assert_int_eq(oa_next(stream, _i == 1 ? 0 : 10, &batch), OA_E_TIMEOUT);
	}
	fake_lock(&fake);
	fake.config.most_chunks = UINT64_MAX;
	fake_unlock(&fake);
	for (; oa_next(stream, PATIENCE_MS, &batch) == 0; n++)
		oa_release(batch);
	ck_assert_uint_eq(n, 100);
	oa_close(stream);
	end(&fake);
}
END_TEST

START_TEST(one_that_does_not_come_back_ends_the_job)
{
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct fake fake;

	begin(&fake, "", "a b");
	fake_lock(&fake);
	fake.config.most_chunks = 1;
	fake_unlock(&fake);
	stream = open_url(&fake, "s3://b/train");
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
		oa_release(batch);
	}
	setenv("FAKE_BUCKET", "dies", 1);
	kill_bucket("s3://b/train");
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), OA_E_DATASET);
	ck_assert_ptr_nonnull(
	    strstr(oa_error_text(stream),
		   "s3://b/train: access-bucket has ended 6 times within a minute"));
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), OA_E_DATASET);
	oa_close(stream);
	end(&fake);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, urls_have_parts, 0, BASE_ARRAY_LEN(urls));
	tcase_add_test(tcase, paths_are_no_urls);
	tcase_add_test(tcase, stores_that_the_environment_names_differ);
	tcase_add_test(tcase, credentials_differ);
	tcase_add_test(tcase, credentials_of_anybody_differ_by_the_way);
	tcase_add_loop_test(tcase, accessd_is_told_a_folder, 0, BASE_ARRAY_LEN(meant));
	tcase_add_test(tcase, jobs_share_one);
	tcase_add_test(tcase, a_listing_is_told);
	tcase_add_loop_test(tcase, failures_are_told, 0, BASE_ARRAY_LEN(failures));
	tcase_add_test(tcase, it_may_be_late);
	tcase_add_test(tcase, it_may_not_be_there);
	tcase_add_test(tcase, an_older_accessd_is_told);
	tcase_add_loop_test(tcase, folders_of_others_are_refused, 0, N_TRAPS);
	tcase_add_loop_test(tcase, in_a_folder_of_all_ours_is_found, 0, 2);
	tcase_add_loop_test(tcase, accessd_sees_it_under_its_own_name, 0, 2);
	tcase_add_test(tcase, another_folder_may_be_named);
	tcase_add_test(tcase, newer_credentials_are_taken);
	tcase_add_loop_test(tcase, a_job_that_went_over_in_vain_asks_itself, 0, 2);
	tcase_add_test(tcase, the_turn_is_waited_for);
	tcase_add_loop_test(tcase, who_is_refused_by_another_asks_itself, 0, 2);
	tcase_add_test(tcase, who_is_told_of_another_error_asks_nobody);
	tcase_add_loop_test(tcase, another_is_started, 0, 2);
	tcase_add_test(tcase, one_that_does_not_come_back_ends_the_job);
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');

	if (strcmp(slash ? slash + 1 : argv[0], "access-bucket") == 0)
		return be_bucket(argc, argv);
	return suite_run("remote", add);
}

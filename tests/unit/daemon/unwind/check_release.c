#include "daemon/unwind/release.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "tests/unit/suite.h"

TEST(control_characters_and_invalid_utf8_become_underscores)
{
	char text[] = "a\n\x7f\xff\xc3\xa4z";

	release_clean(text);
	ck_assert_str_eq(text, "a___\xc3\xa4z");
}

TEST(each_of_the_first_releases_is_new_once)
{
	char text[16];

	ck_assert(release_is_new("a@1"));
	ck_assert(release_is_new("b@1"));
	ck_assert(!release_is_new("a@1"));
	ck_assert(!release_is_new("b@1"));
	for (int i = 2; i < RELEASE_SEEN_MAX; i++) {
		(void)snprintf(text, sizeof(text), "c@%d", i);
		ck_assert(release_is_new(text));
	}
	ck_assert(!release_is_new(text));
	/* There is no room for more. */
	ck_assert(release_is_new("d@1"));
	ck_assert(release_is_new("d@1"));
}

/* get_image() gives this process's executable, or fails as for a process that has ended. */
static bool has_ended;

static int get_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	(void)ctx, (void)start, (void)end;
	if (has_ended)
		return -ESRCH;
	*ret_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

/* Makes the release of this process's executable, with this path and file. */
static bool release_as(const char *exe, const char *file, char release[160])
{
	static const struct unwind_files files = {.image = get_image};
	const struct unwind_cache_options options = {.max_bytes = 64u << 20};
	struct unwind_cache *cache;
	struct unwind_space *space;
	/* Static: malloc() during the reading would change the maps. */
	static char maps[1u << 20];
	size_t size = 0;
	bool is_known;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	while ((n = read(fd, maps + size, sizeof(maps) - size)) > 0)
		size += (size_t)n;
	ck_assert_int_eq((int)n, 0);
	close_fd(&fd);
	OK(unwind_cache_new(&options, &cache));
	OK(unwind_space_new(cache, &files, NULL, &space));
	if (!has_ended)
		OK(unwind_space_set_maps(space, maps, size));
	is_known = release_of_image(exe, file, space, release, 160);
	unwind_space_free(space);
	unwind_cache_free(cache);
	return is_known;
}

TEST(an_ended_process_gets_the_release_of_an_earlier_one_of_its_file)
{
	char exe[256] = "", alive[160], gone[160];

	ck_assert_int_gt(readlink("/proc/self/exe", exe, sizeof(exe) - 1), 0);
	has_ended = true;
	ck_assert(!release_as(exe, "8 15 1.0", gone));
	ck_assert_str_eq(gone, "check_release@unknown");
	has_ended = false;
	ck_assert(release_as(exe, "8 15 1.0", alive));
	ck_assert_int_eq((int)strlen(alive), (int)strlen("check_release@") + 12);
	has_ended = true;
	ck_assert(release_as(exe, "8 15 1.0", gone));
	ck_assert_str_eq(gone, alive);
	/* Another file, an unknown file, or another path. */
	ck_assert(!release_as(exe, "8 15 2.0", gone));
	ck_assert(!release_as(exe, "", gone));
	ck_assert(!release_as("/bin/other", "8 15 1.0", gone));
	ck_assert_str_eq(gone, "other@unknown");
	ck_assert(!release_as("", "", gone));
	ck_assert_str_eq(gone, "unknown@unknown");
}

TEST(the_oldest_release_is_forgotten)
{
	char exe[256] = "", release[160], file[32];

	ck_assert_int_gt(readlink("/proc/self/exe", exe, sizeof(exe) - 1), 0);
	has_ended = false;
	for (int i = 0; i <= RELEASE_KNOWN_MAX; i++) {
		(void)snprintf(file, sizeof(file), "8 %d 1.0", i);
		ck_assert(release_as(exe, file, release));
	}
	has_ended = true;
	ck_assert(release_as(exe, file, release));
	ck_assert(!release_as(exe, "8 0 1.0", release));
	ck_assert(release_as(exe, "8 1 1.0", release));
}

#define TEXT_255                                                           \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define ATTRIBUTES "OTEL_RESOURCE_ATTRIBUTES="
#define E(text)	   text, sizeof(text) - 1

static const struct {
	const char *text;
	size_t len;
	const char *release, *environment;
} environs[] = {
	{E(""), "", ""},
	{E("A=1\0SENTRY_RELEASE=app@1\0B=2"), "app@1", ""},
	{E("SENTRY_ENVIRONMENT=lab"), "", "lab"}, /* without its NUL */
	{E("SENTRY_RELEASE="), "", ""},
	{E("XSENTRY_RELEASE=no\0SENTRY_RELEASES=no\0SENTRY_RELEASE"), "", ""},
	{E("A=\0\0\0SENTRY_RELEASE=x"), "x", ""},
	{E("SENTRY_RELEASE=" TEXT_255), TEXT_255, ""},
	/* Does not fit. */
	{E("SENTRY_RELEASE=" TEXT_255 "x\0SENTRY_RELEASE=second"), "second", ""},
	/* OpenTelemetry's. */
	{E("OTEL_SERVICE_NAME=shop\0" ATTRIBUTES "service.version=1.2"), "shop@1.2", ""},
	{E(ATTRIBUTES "service.name=cart,service.version=1.2,"
		      "deployment.environment.name=staging"),
	 "cart@1.2", "staging"},
	{E(ATTRIBUTES "service.name=cart,service.version=1.2\0"
		      "OTEL_SERVICE_NAME=shop"),
	 "shop@1.2", ""},
	/* No version, or no name. */
	{E("OTEL_SERVICE_NAME=shop"), "", ""},
	{E(ATTRIBUTES "service.name=shop,service.version="), "", ""},
	{E(ATTRIBUTES "service.version=1,deployment.environment.name=x"), "", "x"},
	{E(ATTRIBUTES "deployment.environment=old"), "", ""},
	/* Sentry's count first, each by itself. */
	{E("SENTRY_RELEASE=own@2\0OTEL_SERVICE_NAME=shop\0" ATTRIBUTES
	   "service.version=1,deployment.environment.name=staging"),
	 "own@2", "staging"},
	{E(ATTRIBUTES "service.name=a,service.version=1,"
		      "deployment.environment.name=staging\0"
		      "SENTRY_ENVIRONMENT=own"),
	 "a@1", "own"},
	/* Blanks, escapes, empty pairs, an equals sign in a value. */
	{E(ATTRIBUTES " service.name = a%20b%2cc ,, service.version=1=2,"), "a b,c@1=2", ""},
	{E(ATTRIBUTES "service%2ename=a,service.version=%c3%A4"), "a@\xc3\xa4", ""},
	/* Malformed: nothing of it counts. */
	{E(ATTRIBUTES "service.name=a,service.version=1,x"), "", ""},
	{E(ATTRIBUTES "service.name=a,service.version=1,x=%"), "", ""},
	{E(ATTRIBUTES "service.name=a,service.version=1,x=%2"), "", ""},
	{E(ATTRIBUTES "service.name=a,service.version=1,x=%2g"), "", ""},
	{E(ATTRIBUTES "service.name=a,service.version=1%00"), "", ""},
	/* Together they do not fit. */
	{E("OTEL_SERVICE_NAME=" TEXT_255 "\0" ATTRIBUTES "service.version=1"), "", ""},
	{E(ATTRIBUTES "deployment.environment.name=" TEXT_255 "x"), "", ""},
};

TESTS(environment_variables_give_release_and_environment, (array_size(environs)))
{
	struct release_names names;

	memset(&names, 'x', sizeof(names));
	release_of_environ(environs[_i].text, environs[_i].len, &names);
	ck_assert_str_eq(names.release, environs[_i].release);
	ck_assert_str_eq(names.environment, environs[_i].environment);
}

/* Each limit of sentry-profd.conf(5), section LIMITS, met and exceeded by one. */
#include "daemon/config/config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/config/config_fault.h"
#include "daemon/config/config_read.h"
#include "daemon/config/config_resolve.h"
#include "lib/base/buf.h"
#include "tests/unit/daemon/config_text.h"
#include "tests/unit/suite.h"

FIXTURE(setup, teardown)

#define SECTION "[target \"x\"]\nprofile_session_sample_rate = 1\n"

/* A text that ends with a value, of which `more` bytes are added. */
static char *lengthened(const char *text, size_t more)
{
	const size_t n = strlen(text);
	char *ret = malloc(n + more + 1);

	ck_assert_ptr_nonnull(ret);
	memcpy(ret, text, n);
	memset(ret + n, 'a', more);
	ret[n + more] = '\0';
	return ret;
}

static const struct {
	const char *text; /* begins the value */
	size_t begun, most;
	unsigned int line;
	const char *key;
} values[] = {
	{"[sentry]\nrelease = ", 0, 200, 2, "release"},
	{"[sentry]\nenvironment = ", 0, 200, 2, "environment"},
	{"[sentry]\nno_proxy = ", 0, 4095, 2, "no_proxy"},
	{"[sentry]\nhttps_proxy = ", 0, 255, 2, "https_proxy"},
	{"[sentry]\nspotlight = http://h/", 9, 255, 2, "spotlight"},
	{"[sentry]\nca_certs = /", 1, 255, 2, "ca_certs"},
	{"[profiler]\nin_app_include = ", 0, 1023, 2, "in_app_include"},
	{"[profiler]\nin_app_exclude = ", 0, 1023, 2, "in_app_exclude"},
	{"[profiler]\nsocket = /", 1, 107, 2, "socket"},
	{"[profiler]\nspool = /", 1, 255, 2, "spool"},
	{SECTION "exe = /", 1, 255, 3, "exe"},
	{SECTION "cmdline = ", 0, 1023, 3, "cmdline"},
	{SECTION "cgroup = /", 1, 1023, 3, "cgroup"},
	{SECTION "unit = ", 0, 255, 3, "unit"},
	{SECTION "pid_file = /", 1, 255, 3, "pid_file"},
	{SECTION "env A = ", 2, 1023, 3, "env NAME"},
};

TESTS(a_value_of_the_greatest_length_is_accepted, array_size(values))
{
	char *text = lengthened(values[_i].text, values[_i].most - values[_i].begun);

	read_main(text);
	free(text);
	resolve();
	expect("");
}

/* The only fault: a section whose rule is too long is not a section without a rule. */
TESTS(a_longer_value_is_one_fault, array_size(values))
{
	char *text = lengthened(values[_i].text, values[_i].most - values[_i].begun + 1);
	char fault[128];

	read_main(text);
	free(text);
	(void)!config_resolve(&config, nothing, &faults);
	(void)snprintf(fault, sizeof(fault), "f:%u: %s: longer than %zu bytes", values[_i].line,
		       values[_i].key, values[_i].most);
	expect(fault);
	ck_assert_uint_eq(faults.n_errors, 1);
}

/* Texts that are longer by one than the greatest length, which their own rules refuse. */
static const struct {
	const char *before;
	size_t most;
	const char *after;
	const char *fault;
} others[] = {
	{"[target \"", 40, "\"]\ncomm = x\nprofile_session_sample_rate = 1\n",
	 "f:1: a target is [target \"NAME\"]; NAME has 1 to 40 "},
	{SECTION "comm = ", 15, "\n",
	 "f:3: comm: matches no name: the kernel cuts names off after 15"},
	{SECTION "comm = ", 15, "*\n",
	 "f:3: comm: matches no name: the kernel cuts names off after 15"},
	{SECTION "container = ", 127, "*\n", "f:3: container: matches no container: "},
};

static void read_filled(const char *before, size_t n, const char *after)
{
	char *begin = lengthened(before, n);
	struct buf b;

	buf_init(&b, 1u << 16);
	OK(buf_printf(&b, "%s%s", begin, after));
	free(begin);
	read_main(buf_string(&b));
	buf_fini(&b);
}

TESTS(a_text_of_the_greatest_length_is_accepted, array_size(others))
{
	read_filled(others[_i].before, others[_i].most, others[_i].after);
	resolve();
	expect("");
}

TESTS(a_longer_text_is_a_fault, array_size(others))
{
	read_filled(others[_i].before, others[_i].most + 1, others[_i].after);
	(void)!config_resolve(&config, nothing, &faults);
	expect(others[_i].fault);
}

TEST(a_dsn_has_less_than_1024_bytes)
{
	read_filled("[sentry]\ndsn = https://k@h/", 1024 - strlen("https://k@h//1"), "/1\n");
	(void)!config_resolve(&config, nothing, &faults);
	expect("f:2: dsn: the DSN is too long");
}

static const struct {
	size_t size;
	const char *fault;
} dsn_files[] = {{2047, ""}, {2048, "f:2: dsn_file: "}};

/* A DSN, and many line breaks. */
TESTS(a_file_of_a_dsn_has_less_than_2048_bytes, array_size(dsn_files))
{
	static const char dsn[] = "https://k@h/1";
	char text[2048], path[64], line[96];
	int fd;

	memset(text, '\n', sizeof(text));
	memcpy(text, dsn, strlen(dsn));
	(void)snprintf(path, sizeof(path), "%s/dsn", suite_directory());
	(void)snprintf(line, sizeof(line), "[sentry]\ndsn_file = %s\n", path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	OK(write_all(fd, text, dsn_files[_i].size));
	close(fd);
	read_main(line);
	expect(dsn_files[_i].fault);
}

TEST(a_line_has_at_most_64_kib)
{
	static const char begin[] = "[sentry]\nenvironment = x ; ";
	const size_t before = sizeof("environment = x ; ") - 1;
	char *text = lengthened(begin, 65536 - before);

	read_main(text);
	free(text);
	resolve();
	expect("");
	ck_assert_str_eq(config.environment, "x");
	text = lengthened(SECTION "cmdline = ", 65536 - strlen("cmdline = ") + 1);
	read_main(text);
	free(text);
	(void)!config_resolve(&config, nothing, &faults);
	expect("f:3: is longer than 65536 bytes");
}

#define RATE "profile_session_sample_rate = 1\n"

static void append_section(struct buf *b, unsigned int number, const char *more)
{
	OK(buf_printf(b, "[target \"t%u\"]\ncomm = t%u\n" RATE "%s", number, number, more));
}

TEST(a_257th_section_is_a_fault)
{
	struct buf b;

	buf_init(&b, 1u << 20);
	for (unsigned int i = 0; i < 256; i++)
		append_section(&b, i, "");
	read_main(buf_string(&b));
	resolve();
	expect("");
	config_fini(&config);
	config_init(&config);
	append_section(&b, 256, "");
	read_main(buf_string(&b));
	buf_fini(&b);
	expect("f:769: more than 256 targets");
}

/* Reads sections with DSNs of their own beside that of [sentry]. */
static void read_dsns(const char *sentry, unsigned int n, bool is_check)
{
	char dsn[64];
	struct buf b;

	buf_init(&b, 1u << 16);
	OK(buf_printf(&b, "[sentry]\n%s", sentry));
	for (unsigned int i = 0; i < n; i++) {
		(void)snprintf(dsn, sizeof(dsn), "dsn = http://k@h/%u\n", i);
		append_section(&b, i, dsn);
	}
	/* Another text of a DSN is no further DSN. */
	append_section(&b, n, "dsn = http://k:s@h/0\n");
	faults.is_check = is_check;
	read_main(buf_string(&b));
	buf_fini(&b);
	(void)!config_resolve(&config, nothing, &faults);
}

static const struct {
	const char *sentry;
	unsigned int n;
	bool is_check;
	const char *faults;
	size_t errors;
} dsns[] = {
	{"", 31, true, "", 0},
	{"dsn = http://k@h/30\n", 32, true, "", 0},
	{"spotlight = yes\n", 30, true, "", 0},
	{"", 32, true, "f:126: [target \"t31\"]: its DSN is one too many (the limit is 32", 1},
	{"spotlight = yes\n", 31, true, "f:123: [target \"t30\"]: its DSN is one too many", 1},
	{"dsn = http://k@h/99\n", 33, true,
	 "f:127: [target \"t31\"]: its DSN is one too many\n"
	 "f:131: [target \"t32\"]: its DSN is one too many",
	 2},
	/* A daemon starts, and warns. */
	{"", 32, false, "f:126: [target \"t31\"]: its DSN is one too many", 0},
};

TESTS(a_33rd_dsn_is_a_fault, array_size(dsns))
{
	read_dsns(dsns[_i].sentry, dsns[_i].n, dsns[_i].is_check);
	expect(dsns[_i].faults);
	ck_assert_uint_eq(faults.n_errors, dsns[_i].errors);
}

static void write_file(const char *path, size_t size)
{
	char *text = lengthened("#", size - 1);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	OK(write_all(fd, text, size));
	close(fd);
	free(text);
}

static void load(const char *expected)
{
	struct config c;

	ck_assert_int_eq(config_load("a.conf", &c, &faults), *expected == '\0' ? 0 : -EINVAL);
	config_fini(&c);
	expect(expected);
	config_faults_fini(&faults);
}

TEST(files_have_a_limit_of_size_and_of_number)
{
	char path[64];

	OK(chdir(suite_directory()));
	OK(mkdir("targets.d", 0755));
	write_file("a.conf", 1u << 20);
	load("");
	write_file("a.conf", (1u << 20) + 1);
	load("a.conf: larger than 1 MiB");
	write_file("a.conf", 1);
	for (int i = 0; i < 256; i++) {
		(void)snprintf(path, sizeof(path), "targets.d/%d.conf", i);
		write_file(path, 1);
	}
	load("");
	write_file("targets.d/x.conf", 1);
	load("targets.d: more than 256 files");
}

#include "daemon/config/config_files.h"

#include <fcntl.h>
#include <stdlib.h>

#include "daemon/config/config_resolve.h"
#include "daemon/config/config_value.h"
#include "tests/unit/daemon/config_text.h"
#include "tests/unit/suite.h"

#define CERT                                          \
	"-----BEGIN CERTIFICATE-----\nMAYCAQUCAQc=\n" \
	"-----END CERTIFICATE-----\n"
#define KEY                                           \
	"-----BEGIN PRIVATE KEY-----\nMAYCAQUCAQc=\n" \
	"-----END PRIVATE KEY-----\n"

static const char *dir;

static void write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	OK(write_all(fd, text, strlen(text)));
	close(fd);
}

/* The text, and line breaks up to this size. */
static void write_long_file(const char *name, const char *text, size_t size)
{
	char *whole = malloc(size + 1);

	ck_assert_ptr_nonnull(whole);
	memset(whole, '\n', size);
	memcpy(whole, text, strlen(text));
	whole[size] = '\0';
	write_file(name, whole);
	free(whole);
}

static void make_files(void)
{
	setup();
	dir = suite_directory();
	OK(chdir(dir));
	write_file("cert", CERT);
	write_file("key", KEY);
	write_file("both", CERT KEY);
	write_file("broken", "-----BEGIN CERTIFICATE-----\nMAYC\n");
	write_file("text", "no certificate\n");
	write_long_file("4m", CERT, 4u << 20);
	write_long_file("4m1", CERT, (4u << 20) + 1);
	write_long_file("256k", CERT KEY, 256u << 10);
	write_long_file("256k1", CERT KEY, (256u << 10) + 1);
}

static void remove_files(void)
{
	OK(chdir("/"));
	teardown();
}

/* "~" stands for the directory of the files. */
static void insert_dir(const char *text, char *ret, size_t size)
{
	size_t n = 0;

	for (; *text != '\0' && n + 1 < size; text++)
		if (*text == '~')
			n += (size_t)snprintf(ret + n, size - n, "%s", dir);
		else
			ret[n++] = *text;
	ret[n] = '\0';
}

static void check_with(const char *text, config_env_fn get, enum config_occasion occasion,
		       const char *expected)
{
	char in[1024], out[1024];

	insert_dir(text, in, sizeof(in));
	insert_dir(expected, out, sizeof(out));
	read_main(in);
	OK(config_resolve(&config, get, &faults));
	config_files_check(&config, occasion, &faults);
	expect(out);
}

static const struct {
	const char *text, *faults;
} certificates[] = {
	{"ca_certs = ~/cert\n", ""},
	{"ca_certs = ~/none\n", "f:2: ca_certs: ~/none: No such file"},
	{"ca_certs = ~\n", "f:2: ca_certs: ~: Is a directory"},
	{"ca_certs = ~/text\n", "f:2: ca_certs: ~/text: holds no certificate"},
	{"ca_certs = ~/broken\n", "f:2: ca_certs: ~/broken: is cut off"},
	{"client_cert = ~/both\n", ""},
	{"client_cert = ~/cert\nclient_key = ~/key\n", ""},
	{"client_cert = ~/cert\n",
	 "f:2: client_cert: ~/cert: holds no private key in PEM (-----BEGIN "
	 "PRIVATE KEY), and there is no client_key"},
	{"client_key = ~/cert\nclient_cert = ~/key\n",
	 "f:2: client_key: ~/cert: holds no private key\n"
	 "f:3: client_cert: ~/key: holds no certificate"},
	/* LIMITS of sentry-profd.conf(5). */
	{"ca_certs = ~/4m\n", ""},
	{"ca_certs = ~/4m1\n", "f:2: ca_certs: ~/4m1: File too large"},
	{"client_cert = ~/256k\nclient_key = ~/256k\n", ""},
	{"client_cert = ~/256k1\nclient_key = ~/256k1\n",
	 "f:2: client_cert: ~/256k1: File too large\n"
	 "f:3: client_key: ~/256k1: File too large"},
	{"ca_certs = ~/a\nclient_cert = ~/b\nclient_key = ~/c\n",
	 "f:2: ca_certs: ~/a: No such\nf:3: client_cert: ~/b: No such\n"
	 "f:4: client_key: ~/c: No such"},
};

FIXTURE(make_files, remove_files)

TESTS(faults_of_certificates_are_found_at_the_start, array_size(certificates))
{
	char text[512];

	(void)snprintf(text, sizeof(text), "[sentry]\n%s", certificates[_i].text);
	check_with(text, nothing, CONFIG_AT_START, certificates[_i].faults);
}

/* At a reload the files may be incomplete because a program is renewing them. */
TEST(faults_of_certificates_are_warnings_at_a_reload)
{
	check_with("[sentry]\nca_certs = ~/a\nclient_cert = ~/b\n"
		   "client_key = ~/c\n",
		   nothing, CONFIG_AT_RELOAD,
		   "f:2: ca_certs: ~/a: No such\nf:3: client_cert: ~/b: No "
		   "such\nf:4: client_key: ~/c: No such");
	ck_assert_uint_eq(faults.n_errors, 0);
}

TEST(a_fault_names_the_option)
{
	char problem[CONFIG_PROBLEM_MAX];

	OK(config_set(&config, "ca_certs", "--ca-certs", "/nowhere/x", problem));
	check_with("[sentry]\nretry_5xx = no\n", nothing, CONFIG_AT_START,
		   "--ca-certs: /nowhere/x: No such file");
}

static char *authorities(const char *name)
{
	static char nowhere[] = "/nowhere/x";

	return strcmp(name, "SSL_CERT_FILE") == 0 ? nowhere : NULL;
}

/* The variable may be meant for other programs, so the daemon starts all the same. */
TESTS(a_fault_of_ssl_cert_file_is_a_warning, 3)
{
	check_with("[sentry]\n", authorities,
		   _i == 0   ? CONFIG_AT_START
		   : _i == 1 ? CONFIG_AT_RELOAD
			     : CONFIG_AT_CHECK,
		   "SSL_CERT_FILE: /nowhere/x: No such file");
	ck_assert(faults.v[0].is_warning);
	ck_assert(config.ca_certs_by_variable);
	ck_assert_str_eq(config.ca_certs, "/nowhere/x");
}

TEST(ca_certs_overrides_ssl_cert_file)
{
	check_with("[sentry]\nca_certs = ~/cert\n", authorities, CONFIG_AT_CHECK, "");
	ck_assert(!config.ca_certs_by_variable);
}

#define SENDS "[sentry]\ndsn = " DSN "\n[profiler]\n"

static const struct {
	const char *text, *faults;
} spools[] = {
	{SENDS "spool = none\n", ""},
	{SENDS "spool = ~\n", ""},
	{SENDS "spool = ~/new\n", ""},
	{SENDS "spool = ~/new/new/\n", ""},
	{SENDS "spool = ~/new/new/new\n", "f:4: spool: ~/new/new/new: ~/new: No such file"},
	{SENDS "spool = ~/text\n", "f:4: spool: ~/text: Not a directory"},
	{SENDS "spool = ~/text/x\n", "f:4: spool: ~/text/x: Not a directory"},
	{SENDS "spool = /proc/self\n", "f:4: spool: /proc/self: Not a"},
	{"[profiler]\nspool = ~/text\n", ""}, /* nothing is sent */
};

TESTS(a_spool_that_cannot_be_used_is_a_fault, array_size(spools))
{
	check_with(spools[_i].text, nothing, CONFIG_AT_START, spools[_i].faults);
	config_faults_fini(&faults);
	config_files_check(&config, CONFIG_AT_RELOAD, &faults);
	expect("");
}

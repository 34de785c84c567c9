#include "daemon/config/config.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/config/config_fault.h"
#include "daemon/config/config_print.h"
#include "daemon/config/config_read.h"
#include "daemon/config/config_resolve.h"
#include "tests/unit/daemon/config_text.h"
#include "tests/unit/suite.h"

FIXTURE(setup, teardown)

TEST(an_empty_file_gives_the_defaults)
{
	read_main("");
	resolve();
	expect("");
	ck_assert(!config.has_dsn);
	ck_assert_str_eq(config.environment, "production");
	ck_assert_uint_eq(config.rate_hz, 101);
	ck_assert(config.mode == MODE_WALL);
	ck_assert(config.symbols == UNWIND_SYMBOLS_NAMES);
	ck_assert(config.addresses == ADDRESSES_AUTO);
	ck_assert_uint_eq(config.n_sections, 0);
}

TEST(all_keys_are_read)
{
	const struct section_config *section;

	read_main("\xef\xbb\xbf# all of it\r\n"
		  "[sentry] ; with a comment\n"
		  "dsn = " DSN "\n"
		  "\trelease = app@1\r\n"
		  "environment=staging ; not production\n"
		  "retry_5xx = yes\n"
		  "compression = zstd\n"
		  "client_reports = no\n"
		  "shutdown_timeout = 2.5\n"
		  "https_proxy = http://me:secret@proxy:3128\n"
		  "[profiler]\n"
		  "rate_hz = 53\n"
		  "mode = cpu\n"
		  "symbols = lines\n"
		  "addresses = function\n"
		  "spool_max_bytes = 2G\n"
		  "[target \"web.1\"]\n"
		  "exe = /usr/sbin/nginx\n"
		  "user = 33\n"
		  "profile_session_sample_rate = 0.25\n"
		  "profile_lifecycle = trace\n"
		  "platform = native\n"
#if defined(__x86_64__)
		  "thread_id_format = pthread\n"
#endif
		  "max_instances = 3\n"
		  "[target \"other\"]\n"
		  "cmdline = * --port=*\n"
		  "dsn = https://k@other.example.com/1\n"
		  "release = other@2\n"
		  "profile_session_sample_rate = 1.0\n"
		  "autostart = yes\n"
		  "rate_hz = 7\n"
		  "min_age_seconds = 60\n");
	resolve();
	expect("");
	ck_assert(config.has_dsn && config.retry_5xx == RETRY_5XX_YES && !config.client_reports);
	ck_assert(config.compression == COMPRESSION_ZSTD);
	ck_assert_str_eq(config.dsn, DSN);
	ck_assert_str_eq(config.environment, "staging");
	ck_assert(config.shutdown_timeout_s > 2.4);
	ck_assert(config.mode == MODE_CPU);
	ck_assert(config.symbols == UNWIND_SYMBOLS_LINES);
	ck_assert(config.addresses == ADDRESSES_FUNCTION);
	ck_assert_uint_eq(config.spool_max_bytes, UINT64_C(2) << 30);
	ck_assert_uint_eq(config.n_sections, 2);
	section = &config.sections[0];
	ck_assert_str_eq(section->name, "web.1");
	ck_assert_uint_eq(section->uid, 33);
	ck_assert(section->session_sample_rate > 0.24 && section->session_sample_rate < 0.26);
	ck_assert(section->lifecycle == LIFECYCLE_TRACE && !section->autostart);
#if defined(__x86_64__)
	ck_assert(section->thread_id_format == THREAD_ID_PTHREAD);
#endif
	ck_assert_str_eq(section->platform, "native");
	ck_assert_uint_eq(section->max_instances, 3);
	/* Values of [sentry] and [profiler], and a default. */
	ck_assert_uint_eq(section->rate_hz, 53);
	ck_assert_str_eq(section->dsn, DSN);
	ck_assert_str_eq(section->release, "app@1");
	ck_assert_uint_eq(section->min_age_s, 1);
	section = &config.sections[1];
	ck_assert_str_eq(section->cmdline, "* --port=*");
	ck_assert_str_eq(section->dsn, "https://k@other.example.com/1");
	ck_assert_str_eq(section->release, "other@2");
	ck_assert_str_eq(section->environment, "staging");
	ck_assert_str_eq(section->platform, "rust");
	ck_assert(section->lifecycle == LIFECYCLE_MANUAL && section->autostart);
	ck_assert_uint_eq(section->rate_hz, 7);
	ck_assert_uint_eq(section->min_age_s, 60);
}

#define LONG50	"0123456789012345678901234567890123456789012345678"
#define LONG40	"0123456789abcdefghijklmnopqrstuvwxyz._-@"
#define LONG200 LONG50 LONG50 LONG50 LONG50 "0000"

static const struct {
	const char *text, *faults;
} wrong[] = {
	{"rate_hz = 1\nx = 2\n", "f:1: rate_hz is not in any section\n"
				 "f:2: x is not in any section"},
	{"[sentri]\nx = 1\n", "f:1: unknown section [sentri]"},
	{"[sentri]\n", "f:1: unknown section [sentri]"},
	{"[sentry\ndsn = x\n", "f:1: a section is [NAME]"},
	{"[sentry] x = 1\n", "f:1: a section is [NAME]"},
	{"[sentry\n", "f:1: a section is [NAME]"},
	{"[sentry]\nrate = 1\nfoo\n\n= 3\nrate_hz = 5\n", "f:2: unknown key rate\n"
							  "f:3: is neither [section]\n"
							  "f:5: unknown key \n"
							  "f:6: rate_hz is a key of [profiler]"},
	{"[profiler]\nrate_hz = 0\nrate_hz = 5\nmode = walk\n"
	 "chunk_seconds = 5s\n",
	 "f:2: rate_hz: not a number from 1 to 1000\n"
	 "f:3: rate_hz is given twice\n"
	 "f:4: mode: neither wall nor cpu: 'walk'\n"
	 "f:5: chunk_seconds: not a number from 1 to 60"},
	{"[sentry]\nretry_5xx = maybe\nca_certs = x.pem\nrelease =\n"
	 "dsn = ftp://key@h/1\nshutdown_timeout = inf\n",
	 "f:2: retry_5xx: neither spool, yes nor no: 'maybe'\n"
	 "f:3: ca_certs: not an absolute path: 'x.pem'\n"
	 "f:4: release: empty: ''\n"
	 "f:5: dsn: the DSN\n"
	 "f:6: shutdown_timeout: not a positive number of seconds: 'inf'"},
	{"[profiler]\nspool_max_bytes = 1\n", "f:2: spool_max_bytes: not a number of bytes"},
	{"[profiler]\nspool_max_bytes = 99999999999G\n",
	 "f:2: spool_max_bytes: not a number of bytes"},
	{"[sentry]\n[profiler]\n[sentry]\nretry_5xx = no\n"
	 "[sentry]\nretry_5xx = no\n",
	 "f:6: retry_5xx is given twice"},
	{"[sentry]\nrelease = " LONG200 "0\n", "f:2: release: longer than 200 bytes"},
	{"[sentry]\nrelease = a\001b\n", "f:2: contains control characters"},
	{"[sentry]\nenvironment = pr\xe9\n" TARGET_X "release = \xff\n",
	 "f:2: environment: not UTF-8: 'pr\xe9'\n"
	 "f:6: release: not UTF-8: '\xff'"},
	{"[target]\n", "f:1: a target is [target \"NAME\"]"},
	{"[target x]\n", "f:1: a target is [target \"NAME\"]"},
	{"[target \"\"]\n", "f:1: a target is [target \"NAME\"]"},
	{"[target \"a/b\"]\nx = 1\n", "f:1: a target is [target \"NAME\"]"},
	{"[target \"" LONG40 "0\"]\n", "f:1: a target is [target \"NAME\"]"},
	{TARGET_X "[target \"x\"]\ncomm = y\n", "f:4: [target \"x\"] is defined twice"},
	{"[target \"x\"]\nprofile_session_sample_rate = 1.5\n"
	 "profile_lifecycle = auto\nplatform = java\nuser = no body\n"
	 "max_instances = 0\nmin_age_seconds = -1\n",
	 "f:2: profile_session_sample_rate: not a number from 0.0\n"
	 "f:3: profile_lifecycle: neither manual nor trace: 'auto'\n"
	 "f:4: platform: neither rust nor native: 'java'\n"
	 "f:5: user: not a user\n"
	 "f:6: max_instances: not a number\n"
	 "f:7: min_age_seconds: not a number"},
	{"[sentry]\nhttp_proxy = secret@\nhttps_proxy = p:0\n"
	 "no_proxy = any thing\n",
	 "f:2: http_proxy: no URL of a proxy: it has no host\n"
	 "f:3: https_proxy: no URL of a proxy: its port"},
	{"[profiler]\nmetrics_listen = 127.0.0.1:80\nsocket = /" LONG50 LONG50 LONG50 "\n",
	 "f:2: metrics_listen is no key any more: sentry-profd-metrics\n"
	 "f:3: socket: longer than 107 bytes"},
	{"[sentry]\ndsn =\ndsn_file = /x\n", "f:3: both dsn and dsn_file"},
	{"[sentry]\ndsn_file = /nowhere/x\n",
	 "f:2: dsn_file: /nowhere/x: No such file or directory"},
	{"[sentry]\ndsn_file = /\n", "f:2: dsn_file: /: not a regular file"},
};

TESTS(each_wrong_line_is_a_fault, array_size(wrong))
{
	read_main(wrong[_i].text);
	expect(wrong[_i].faults);
	ck_assert_uint_eq(faults.n_errors, faults.n);
}

TEST(faults_contain_no_secrets)
{
	read_main("[sentry]\ndsn = https://0123456789abcdef@/x\n"
		  "https_proxy = " LONG200 LONG200 "\n");
	for (size_t i = 0; i < faults.n; i++)
		LACKS(faults.v[i].text, "0123456789abcdef");
	ck_assert_uint_eq(faults.n, 2);
}

/* A DSN that was given to a key that is no secret. */
TEST(faults_contain_no_dsn_of_a_wrong_key)
{
	read_main("[sentry]\ndsn_file = https://0123456789abcdef@host/1\n"
		  "spotlight = https://0123456789abcdef@host/1\n"
		  "compression = https://0123456789abcdef@host/1\n");
	ck_assert_uint_eq(faults.n, 3);
	expect("f:2: dsn_file: not an absolute path\n"
	       "f:3: spotlight: neither yes, no nor a URL like http://localhost:8969\n"
	       "f:4: compression: neither gzip nor zstd");
	for (size_t i = 0; i < faults.n; i++)
		LACKS(faults.v[i].text, "0123456789abcdef");
}

TEST(further_faults_are_counted_and_not_kept)
{
	char text[4096] = "[sentry]\n";
	size_t n = strlen(text);

	for (int i = 0; i < 2 * CONFIG_FAULTS_MAX; i++, n += 4)
		memcpy(text + n, "x=1\n", 5);
	read_main(text);
	ck_assert_uint_eq(faults.n, CONFIG_FAULTS_MAX);
	ck_assert_uint_eq(faults.n_errors, 2 * CONFIG_FAULTS_MAX);
	ck_assert_str_eq(faults.v[99].text, "f:101: unknown key x");
}

TEST(an_error_behind_many_warnings_is_kept)
{
	char text[4096] = "[sentry]\n";
	size_t n = strlen(text);

	faults.is_check = false;
	for (int i = 0; i < 2 * CONFIG_FAULTS_MAX; i++, n += 4)
		memcpy(text + n, "x=1\n", 5);
	memcpy(text + n, "debug = 2\n", sizeof("debug = 2\n"));
	read_main(text);
	ck_assert_uint_eq(faults.n, CONFIG_FAULTS_MAX);
	ck_assert_uint_eq(faults.n_errors, 1);
	ck_assert_str_eq(faults.v[98].text, "f:100: unknown key x");
	ck_assert_str_eq(faults.v[99].text, "f:202: debug: neither yes nor no: '2'");
}

TEST(a_name_of_40_bytes_is_accepted)
{
	read_main("[target \"" LONG40 "\"]\ncomm = a\n");
	expect("");
	ck_assert_str_eq(config.sections[0].name, LONG40);
}

TEST(a_section_has_a_rule_for_each_variable)
{
	read_main("[target \"a\"]\nprofile_session_sample_rate = 1\n"
		  "env TEAM = pay*\n env\tTIER_2 : a = b ; c\n");
	resolve();
	expect("");
	ck_assert_str_eq(config.sections[0].env, "TEAM=pay*\nTIER_2=a = b");
}

TEST(wrong_rules_of_variables_are_faults)
{
	read_main(TARGET_X "env A = 1\nenv AB = 1\nenv A = 2\nenv 1A = x\nenv A-B = x\n"
			   "env B =\nenv = A=1\n[sentry]\nenv A = 1\n");
	expect("f:6: env NAME: given twice: 'A=2'\n"
	       "f:7: env NAME: the name of a variable has letters\n"
	       "f:8: env NAME: the name of a variable has letters\n"
	       "f:9: env NAME: empty: 'B='\n"
	       "f:10: unknown key env\n"
	       "f:12: env NAME is a key of [target \"NAME\"]");
}

TEST(files_of_targets_d_have_no_section_profiler)
{
	read_main("[sentry]\nenvironment = y\n");
	read_as("[sentry]\nrelease = x\nenvironment = z\n[profiler]\nrate_hz = 5\n" TARGET_X,
		CONFIG_TARGETS_D, 0100600);
	expect("f:3: environment is given twice\n"
	       "f:4: [profiler] belongs in the main file");
	ck_assert_str_eq(config.release, "x");
	ck_assert_uint_eq(config.n_sections, 1);
}

static const char with_unknown_keys[] = "[sentry]\nreleas = x\n[profiler]\nmode = cpu\nxyz = 1\n"
					"[target \"a\"]\n" RULES "comn = b\nzzz = 1\n"
					"[target \"b\"]\nrate_hz = 7\nspool = /x\n"
					"[target \"c\"]\n" RULES;

TEST(an_unknown_key_is_a_fault_of_a_check)
{
	read_main(with_unknown_keys);
	(void)!config_resolve(&config, nothing, &faults);
	expect("f:2: unknown key releas: did you mean release?\n"
	       "f:5: unknown key xyz\n"
	       "f:9: unknown key comn: did you mean comm?\n"
	       "f:10: unknown key zzz\n"
	       "f:11: [target \"b\"] has no profile_session_sample_rate\n"
	       "f:13: spool is a key of [profiler]\n"
	       "f:14: [target \"c\"]: matches no process");
	ck_assert_uint_eq(faults.n_errors, 5);
}

TEST(an_unknown_key_switches_its_section_off)
{
	faults.is_check = false;
	read_main(with_unknown_keys);
	OK(config_resolve(&config, nothing, &faults));
	ck_assert_uint_eq(faults.n_errors, 0);
	expect("f:2: unknown key releas: did you mean release?\n"
	       "f:5: unknown key xyz\n"
	       "f:6: [target \"a\"] is off, and none of its processes is profiled, because of "
	       "this: unknown key comn: did you mean comm?\n"
	       "f:9: unknown key comn: did you mean comm?\n"
	       "f:10: unknown key zzz\n"
	       "f:11: [target \"b\"] has no profile_session_sample_rate\n"
	       "f:11: [target \"b\"] is off\n"
	       "f:13: spool is a key of [profiler]\n"
	       "f:14: [target \"c\"]: matches no process");
	ck_assert(config.mode == MODE_CPU);
	ck_assert(config.sections[0].is_off && config.sections[1].is_off);
	ck_assert(!config.sections[2].is_off && config.sections[2].defect[0] == '\0');
}

/* As at a reload: the text of before, and what it takes over from the new [sentry]. */
TEST(a_section_with_an_unknown_key_stays_as_it_was)
{
	struct config old;

	faults.is_check = false;
	read_main("[sentry]\nrelease = a\n[target \"x\"]\n" RULES "rate_hz = 7\n"
		  "[target \"off\"]\nuser = 1\nprofile_session_sample_rate = 1\nxyz = 1\n");
	OK(config_resolve(&config, nothing, &faults));
	config_faults_fini(&faults);
	old = config;
	config_init(&config);
	read_main("[sentry]\nrelease = b\n[target \"new\"]\nuser = 2\nabc = 1\n"
		  "[target \"off\"]\nuser = 3\nabc = 1\n"
		  "[target \"x\"]\ncomm = y\nrate_hz = 8\nmin_age = 9\n");
	config_keep_sections(&config, &old);
	OK(config_resolve(&config, nothing, &faults));
	ck_assert(config.sections[0].is_off && config.sections[1].is_off);
	ck_assert_uint_eq(config.sections[1].uid, 3);
	ck_assert(!config.sections[2].is_off);
	ck_assert_str_eq(config.sections[2].defect, "unknown key min_age");
	ck_assert_str_eq(config.sections[2].comm, "x");
	ck_assert_uint_eq(config.sections[2].rate_hz, 7);
	ck_assert_str_eq(config.sections[2].release, "b");
	ck_assert_str_eq(faults.v[faults.n - 2].text,
			 "f:9: [target \"x\"] keeps its former settings because of this: "
			 "unknown key min_age");
	ck_assert(!config_section_equal(&old.sections[1], &config.sections[1]));
	config_fini(&old);
}

TEST(a_section_that_is_off_differs_from_one_that_is_not)
{
	struct section_config on = {.uid = 1}, off = {.uid = 1, .is_off = true, .defect = "a"};
	struct section_config also = off;

	ck_assert(config_section_equal(&off, &also));
	ck_assert(!config_section_equal(&on, &off));
	also.defect[0] = 'b';
	ck_assert(!config_section_equal(&off, &also));
}

TEST(faults_of_several_values_are_found_by_config_resolve)
{
	read_main("[target \"a\"]\nprofile_session_sample_rate = 1\n"
		  "[target \"b\"]\ncomm = b\n"
		  "[target \"c\"]\ncomm = c\nprofiles_sample_rate = 1\n"
		  "profile_session_sample_rate = 1\n"
		  "profile_lifecycle = trace\nautostart = yes\n"
		  "[sentry]\nclient_key = /k\n");
	ck_assert_int_eq(config_resolve(&config, nothing, &faults), -EINVAL);
	expect("f:1: [target \"a\"] has no rule\n"
	       "f:3: [target \"b\"] has no profile_session_sample_rate\n"
	       "f:7: profiles_sample_rate has no effect\n"
	       "f:10: [target \"c\"]: autostart has no effect\n"
	       "f:12: client_key is given without client_cert");
	ck_assert_uint_eq(faults.n_errors, 2);
}

/* Only the wrong rule is reported, not the lack of a rule. */
TEST(a_section_with_a_wrong_rule_is_not_a_section_without_a_rule)
{
	read_main("[target \"a\"]\nuser = no such user\n"
		  "profile_session_sample_rate = 1\n");
	(void)!config_resolve(&config, nothing, &faults);
	expect("f:2: user: not a user");
}

static const struct {
	const char *text;
	uint32_t mode;
	const char *faults;
} modes[] = {
	{"[sentry]\ndsn = " DSN "\n", 0600, ""},
	{"[sentry]\ndsn = " DSN "\n", 0400, ""},
	{"[sentry]\ndsn = " DSN "\n", 0604,
	 "f: holds a DSN, and others can read it (mode 0604): chmod 600 f"},
	{"[sentry]\ndsn = " DSN "\n", 0640, "f: holds a DSN"},
	{"[sentry]\ndsn = " DSN "\n", 0620, "f: holds a DSN, and others can write"},
	{TARGET_X "dsn = " DSN "\n", 0644, "f: holds a DSN"},
	{TARGET_X, 0644, ""},
	{"[sentry]\ndsn =\n", 0644, ""},
	{TARGET_X, 0664, "f: can be written by others (mode 0664): chmod go-w"},
	{TARGET_X, 0646, "f: can be written by others"},
};

TESTS(others_may_not_write_the_file_nor_read_a_dsn, array_size(modes))
{
	read_as(modes[_i].text, CONFIG_MAIN, 0100000 | modes[_i].mode);
	expect(modes[_i].faults);
}

TEST(the_file_must_belong_to_root_or_to_this_user)
{
	struct config_text t = {"f", CONFIG_MAIN, TARGET_X, strlen(TARGET_X), 0100600, 12345};

	config_read_text(&config, &t, &faults);
	expect("f: belongs to uid 12345, who can change it: chown root f");
}

static const struct {
	const char *text, *value;
} spelt[] = {
	{"[sentry]\nrelease=a", "a"},
	{" [sentry]\t# x\n\t release\t=\t a b \t\n", "a b"},
	{"[sentry];x\nrelease: a=b\n", "a=b"},
	{"[sentry]\nrelease = a:b;c#d # e ;f ;g\n", "a:b;c#d # e"},
	{"[sentry]\n;release = b\n #release = c\nrelease = [a]\r\n", "[a]"},
	{"[sentry]\nrelease = a\n environment = b\n", "a"},
};

TESTS(a_line_is_split_at_the_first_sign_of_equality_or_colon, array_size(spelt))
{
	read_main(spelt[_i].text);
	expect("");
	ck_assert_str_eq(config.release, spelt[_i].value);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	OK(write_all(fd, text, strlen(text)));
	OK(fchmod(fd, mode));
	close(fd);
}

TEST(the_main_file_and_targets_d_are_read_in_order)
{
	const char *dir = suite_directory();
	char path[128], text[1024];
	struct config c;

	OK(chdir(dir));
	(void)snprintf(path, sizeof(path), "%s/a.conf", dir);
	ck_assert_int_eq(config_load(path, &c, &faults), -EINVAL);
	config_fini(&c);
	(void)snprintf(text, sizeof(text), "%s: No such file", path);
	expect(text);
	config_faults_fini(&faults);

	(void)snprintf(text, sizeof(text),
		       "[sentry]\ndsn_file = %s/dsn\n[target \"z\"]\n" RULES "user = 0\n", dir);
	write_file("a.conf", text, 0644);
	write_file("dsn", DSN "\n", 0644);
	ck_assert_int_eq(config_load(path, &c, &faults), -EINVAL);
	config_fini(&c);
	(void)snprintf(text, sizeof(text),
		       "%s:2: dsn_file: holds a DSN, and others can read it "
		       "(mode 0644): chmod 600 %s/dsn",
		       path, dir);
	expect(text);
	config_faults_fini(&faults);

	write_file("dsn", "\xef\xbb\xbf\t " DSN " \t\r\n\n", 0600);
	OK(mkdir("targets.d", 0755));
	write_file("targets.d/20-b.conf", TARGET_X, 0644);
	write_file("targets.d/10.conf", "[target \"w\"]\n" RULES "user = 1\n", 0644);
	write_file("targets.d/.x.conf", "nonsense\n", 0644);
	write_file("targets.d/x.bak", "nonsense\n", 0644);
	OK(config_load(path, &c, &faults));
	expect("");
	OK(config_resolve(&c, nothing, &faults));
	ck_assert_str_eq(c.dsn, DSN);
	ck_assert_uint_eq(c.n_sections, 3);
	ck_assert_str_eq(c.sections[0].name, "z");
	ck_assert_str_eq(c.sections[1].name, "w");
	ck_assert_str_eq(c.sections[2].name, "x");
	config_fini(&c);

	write_file("targets.d/10.conf", TARGET_X, 0666);
	ck_assert_int_eq(config_load("a.conf", &c, &faults), -EINVAL);
	config_fini(&c);
	expect("targets.d/10.conf: can be written by others (mode 0666)\n"
	       "targets.d/20-b.conf:1: [target \"x\"] is defined twice");
}

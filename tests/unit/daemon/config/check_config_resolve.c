/* Values of the environment and of the command line; printing and comparing configurations. */
#include "daemon/config/config.h"

#include <sys/mman.h>

#include "daemon/config/config_fault.h"
#include "daemon/config/config_print.h"
#include "daemon/config/config_resolve.h"
#include "daemon/config/config_value.h"
#include "tests/unit/daemon/config_text.h"
#include "tests/unit/suite.h"

static char *environment(const char *name)
{
	static char dsn[] = "https://env@e.example.com/1", release[] = "env@1", stage[] = "env",
		    rate[] = "0.5", cycle[] = "trace", on[] = "1";
	const struct {
		const char *name;
		char *value;
	} v[] = {
		{"SENTRY_DSN", dsn},
		{"SENTRY_RELEASE", release},
		{"SENTRY_ENVIRONMENT", stage},
		{"SENTRY_DEBUG", on},
		{"SENTRY_PROFILE_SESSION_SAMPLE_RATE", rate},
		{"SENTRY_PROFILE_LIFECYCLE", cycle},
		{"SENTRY_PROFILES_SAMPLE_RATE", rate},
	};

	for (size_t i = 0; i < array_size(v); i++)
		if (strcmp(v[i].name, name) == 0)
			return v[i].value;
	return NULL;
}

FIXTURE(setup, teardown)

TEST(variables_set_what_the_file_does_not_give)
{
	const struct section_config *section;

	read_main("[target \"x\"]\ncomm = x\n");
	OK(config_resolve(&config, environment, &faults));
	expect("SENTRY_PROFILES_SAMPLE_RATE: has no effect");
	section = &config.sections[0];
	ck_assert(config.has_dsn && config.debug);
	ck_assert_str_eq(section->dsn, "https://env@e.example.com/1");
	ck_assert_str_eq(config.release, "");
	ck_assert_str_eq(config.release_env, "env@1");
	ck_assert_str_eq(section->environment, "env");
	ck_assert(!section->environment_given && !config.implicit.environment_given);
	ck_assert(section->session_sample_rate > 0.4 && section->session_sample_rate < 0.6);
	ck_assert(section->lifecycle == LIFECYCLE_TRACE);
}

TEST(the_file_overrides_variables)
{
	const struct section_config *section;

	read_main("[sentry]\ndsn =\nenvironment = here\ndebug = no\n"
		  "release = own@1\n"
		  "[target \"x\"]\ncomm = x\nprofile_lifecycle = manual\n"
		  "profile_session_sample_rate = 0\n");
	OK(config_resolve(&config, environment, &faults));
	section = &config.sections[0];
	ck_assert(config.has_dsn && !config.debug);
	ck_assert_str_eq(config.dsn, "");
	ck_assert_str_eq(section->release, "own@1");
	ck_assert_str_eq(section->environment, "here");
	ck_assert(section->environment_given && config.implicit.environment_given);
	ck_assert(section->session_sample_rate < 0.1);
	ck_assert(section->lifecycle == LIFECYCLE_MANUAL);
}

static char *bad_environment(const char *name)
{
	static char key[] = "https://sec%ret@/1", two[] = "2";

	if (strcmp(name, "SENTRY_DSN") == 0)
		return key;
	return strcmp(name, "SENTRY_PROFILE_SESSION_SAMPLE_RATE") == 0 ? two : NULL;
}

TEST(wrong_variables_are_faults)
{
	ck_assert_int_eq(config_resolve(&config, bad_environment, &faults), -EINVAL);
	expect("SENTRY_DSN: the DSN\n"
	       "SENTRY_PROFILE_SESSION_SAMPLE_RATE: not a number from 0.0 to "
	       "1.0: '2'");
	LACKS(faults.v[0].text, "ret");
}

static char *proxies(const char *name)
{
	static char wrong[] = "http://secret@:80", good[] = "proxy:3128";

	if (strcmp(name, "HTTPS_PROXY") == 0 || strcmp(name, "http_proxy") == 0)
		return wrong;
	return strcmp(name, "all_proxy") == 0 ? good : NULL;
}

/* libcurl uses the first variable that is set, unless a key of the configuration replaces it. */
TEST(a_wrong_proxy_variable_that_libcurl_would_use_is_a_warning)
{
	read_main("[sentry]\nrelease = x\n");
	OK(config_resolve(&config, proxies, &faults));
	read_main(TARGET_X "dsn = " DSN "\n");
	OK(config_resolve(&config, proxies, &faults));
	expect("HTTPS_PROXY: no URL of a proxy: it has no host");
	config_faults_fini(&faults);
	read_main("[sentry]\nhttps_proxy = proxy\n");
	OK(config_resolve(&config, proxies, &faults));
	expect("");
}

TEST(options_override_the_file_and_the_variables)
{
	char problem[CONFIG_PROBLEM_MAX];

	read_main("[sentry]\nenvironment = here\n[profiler]\nrate_hz = "
		  "5\n" TARGET_X "[target \"y\"]\n" RULES "rate_hz = 6\n");
	OK(config_set(&config, "environment", "--environment", "there", problem));
	OK(config_set(&config, "rate_hz", "--rate", "7", problem));
	ck_assert_int_eq(config_set(&config, "rate_hz", "--rate", "x", problem), -EINVAL);
	OK(config_resolve(&config, environment, &faults));
	ck_assert_str_eq(config.sections[0].environment, "there");
	ck_assert_uint_eq(config.sections[0].rate_hz, 7);
	ck_assert_uint_eq(config.sections[1].rate_hz, 6);
}

TEST(a_process_without_a_section_is_profiled_by_default)
{
	struct section_config section;

	read_main("[sentry]\ndsn = " DSN "\n");
	resolve();
	config_implicit_section(&config, "pid", &section);
	ck_assert_str_eq(section.name, "pid");
	ck_assert_str_eq(section.dsn, DSN);
	ck_assert_str_eq(section.platform, "rust");
	ck_assert(section.autostart && section.session_sample_rate >= 1);
	ck_assert_uint_eq(section.rate_hz, 101);
}

/* The printed text gives the same configuration, apart from secrets, which are not printed. */
TEST(a_printed_configuration_can_be_read_again)
{
	int fd = memfd_create("out", MFD_CLOEXEC);
	char text[8192];
	struct config again;
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	read_main("[sentry]\ndsn = " DSN "\n"
		  "https_proxy = http://me:secret@proxy:3128\n"
		  "release = a@1\nenvironment = production\n[profiler]\nmode = cpu\n" TARGET_X
		  "user = 33\nmin_age_seconds = 0\n");
	resolve();
	expect("");
	OK(config_print(&config, fd));
	n = pread(fd, text, sizeof(text) - 1, 0);
	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	close(fd);
	LACKS(text, "0123456789abcdef");
	LACKS(text, "secret");
	HAS(text, "dsn = " SHOWN "\n");
	HAS(text, "https_proxy = http://...@proxy");
	HAS(text, "release = a@1\n");
	HAS(text, "user = 33\n");
	again = config;
	config_init(&config);
	while (strstr(text, SHOWN) != NULL)
		memcpy(strstr(text, SHOWN), "https://000@", 12);
	read_main(text);
	resolve();
	expect("");
	memcpy(config.sections[0].dsn, DSN, sizeof(DSN));
	ck_assert(config_section_equal(&config.sections[0], &again.sections[0]));
	config_fini(&again);
}

static char changed_keys[512];

static void on_key(void *ctx, const char *section, const char *key)
{
	size_t n = strlen(changed_keys);

	(void)ctx;
	(void)snprintf(changed_keys + n, sizeof(changed_keys) - n, "%s%s ", section, key);
}

/* Returns true if the section of this name has the same values in old and in config. */
static bool is_same(const struct config *old, const char *name)
{
	return config_section_equal(config_section(old, name), config_section(&config, name));
}

/* Without the key, the processes' own variables count. */
TEST(the_default_environment_that_is_given_is_a_change)
{
	struct config old;

	read_main("[target \"a\"]\n" RULES);
	resolve();
	old = config;
	config_init(&config);
	read_main("[sentry]\nenvironment = production\n[target \"a\"]\n" RULES);
	resolve();
	ck_assert(!is_same(&old, "a"));
	config_fini(&old);
}

TEST(changed_sections_and_keys_are_found)
{
	struct config old;

	read_main("[profiler]\nrate_hz = 5\n"
		  "[target \"same\"]\n" RULES "[target \"own_rate\"]\n" RULES "rate_hz = 9\n"
		  "[target \"changed\"]\n" RULES "autostart = yes\n");
	resolve();
	old = config;
	config_init(&config);
	read_main("[profiler]\nrate_hz = 5\n"
		  "[target \"changed\"]\n" RULES "[target \"own_rate\"]\nrate_hz = 9\n" RULES
		  "[target \"same\"]\n" RULES "autostart = no\nmin_age_seconds = 1\n");
	resolve();
	ck_assert(is_same(&old, "same") && is_same(&old, "own_rate"));
	ck_assert(!is_same(&old, "changed"));
	ck_assert_ptr_null(config_section(&config, "other"));
	changed_keys[0] = '\0';
	config_changed_keys(&old, &config, on_key, NULL);
	ck_assert_str_eq(changed_keys, "");
	config_fini(&config);

	/* A value that a section takes over from [profiler] counts as a value of the section. */
	config_init(&config);
	read_main("[sentry]\nretry_5xx = yes\n[profiler]\nrate_hz = 6\n"
		  "spool_max_chunks = 7\n[target \"same\"]\n" RULES "[target \"own_rate\"]\n" RULES
		  "rate_hz = 9\n");
	resolve();
	ck_assert(!is_same(&old, "same") && is_same(&old, "own_rate"));
	changed_keys[0] = '\0';
	config_changed_keys(&old, &config, on_key, NULL);
	ck_assert_str_eq(changed_keys, "[sentry]retry_5xx [profiler]spool_max_chunks ");
	config_fini(&old);
}

/* Sections that match no process: because of their own rules, or because of earlier sections. */
#include "daemon/config/config.h"
#include "daemon/config/config_read.h"
#include "daemon/config/config_resolve.h"
#include "tests/unit/daemon/config_text.h"
#include "tests/unit/suite.h"

#define SECTION(name) "[target \"" name "\"]\n"
#define RATE	      "profile_session_sample_rate = 1\n"
#define HEX64	      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	const char *rule;
	const char *fault; /* NULL: none */
} rules[] = {
	{"exe = /usr/sbin/nginx", NULL},
	{"exe = **/nginx", NULL},
	{"exe = /opt/*/bin/?", NULL},
	{"exe = nginx", "matches no file"},
	{"exe = *nginx", "matches no file"},
	{"exe = */nginx", "matches no file"},
	{"exe = /opt/app/", "matches no file"},
	{"comm = php-fpm", NULL},
	{"comm = 123456789012345", NULL},
	{"comm = *12345678901234*5*", NULL},
	{"comm = 1234567890123456", "matches no name"},
	{"comm = ????????????????", "matches no name"},
	{"cmdline = anything at all/", NULL},
	{"cgroup = /system.slice/*", NULL},
	{"cgroup = */docker-*", NULL},
	{"cgroup = system.slice/*", "matches no control group"},
	{"unit = nginx", NULL},
	{"unit = app-*@*.service", NULL},
	{"unit = system.slice/nginx.service", "matches no unit"},
	{"container = *", NULL},
	{"container = 0a1b", NULL},
	{"container = " HEX64, NULL},
	{"container = *" HEX64, NULL},
	{"container = " HEX64 HEX64, "matches no container"},
	{"container = web", "matches no container"},
	{"container = 0A1B", "matches no container"},
};

FIXTURE(setup, teardown)

TESTS(a_rule_that_no_process_can_match_is_a_fault, array_size(rules))
{
	char text[512], expected[512] = "";

	(void)snprintf(text, sizeof(text), SECTION("x") RATE "%s\n", rules[_i].rule);
	read_main(text);
	if (rules[_i].fault != NULL)
		(void)snprintf(expected, sizeof(expected), "f:3: %.*s: %s",
			       (int)strcspn(rules[_i].rule, " "), rules[_i].rule, rules[_i].fault);
	/* config_resolve() does not report in addition that the section has no rule. */
	(void)!config_resolve(&config, nothing, &faults);
	expect(expected);
}

#define FIRST  SECTION("a") RATE "exe = /x\ncomm = x*\n"
#define SECOND SECTION("b") RATE

static const struct {
	const char *text, *faults;
} sections[] = {
	{FIRST SECOND "comm = x*\nexe = /x\n",
	 "f:5: [target \"b\"]: matches no process: [target \"a\"]"},
	{FIRST SECOND "comm = x*\nexe = /x\nuser = 0\n", "f:5: [target \"b\"]: matches no process"},
	{FIRST SECOND "exe = /x\n", ""},
	{FIRST SECOND "exe = /x\ncomm = x\n", ""},
	{FIRST SECOND "exe = /x\nuser = 0\n", ""},
	{SECTION("a") RATE "user = 0\n" SECOND "user = root\n",
	 "f:4: [target \"b\"]: matches no process"},
	/* Keys that are no rules make no difference. */
	{SECTION("a") RATE "comm = x\nmax_instances = 1\n" SECOND "comm = x\nmin_age_seconds = 9\n",
	 "f:5: [target \"b\"]: matches no process"},
	/* A section without a rule is a fault of its own. */
	{SECTION("a") RATE SECOND "comm = x\n", "f:1: [target \"a\"] has no"},
};

TESTS(a_section_is_warned_of_if_an_earlier_one_matches_its_processes, array_size(sections))
{
	read_main(sections[_i].text);
	(void)!config_resolve(&config, nothing, &faults);
	expect(sections[_i].faults);
}

/* The faults are of sections and of keys, in two files. */
TEST(faults_are_in_the_order_of_files_and_lines)
{
	read_main(SECTION("a") RATE "comm = a\nprofile_lifecycle = trace\n"
				    "autostart = yes\nspeed = 1\n" SECTION("b"));
	read_as("[profiler]\n" SECTION("c") RATE, CONFIG_TARGETS_D, 0100606);
	(void)!config_resolve(&config, nothing, &faults);
	expect("f:5: [target \"a\"]: autostart has no effect\n"
	       "f:6: unknown key speed\n"
	       "f:7: [target \"b\"] has no profile_session_sample_rate\n"
	       "f:7: [target \"b\"] has no rule\n"
	       "f: can be written by others\n"
	       "f:1: [profiler] belongs in the main file\n"
	       "f:2: [target \"c\"] has no rule");
}

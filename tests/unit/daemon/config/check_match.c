#include "daemon/config/match.h"

#include <string.h>

#include "tests/unit/suite.h"

#define HEX16	 "0123456789abcdef"
#define ID	 HEX16 HEX16 HEX16 HEX16
#define OTHER_ID HEX16 HEX16 HEX16 "fedcba9876543210"

static void set(char *field, const char *value)
{
	memcpy(field, value, strlen(value) + 1);
}

static void init_section(struct section_config *section)
{
	*section = (struct section_config){.uid = CONFIG_UID_ANY};
}

static const struct process_facts nginx = {
	.pid = 42,
	.uid = 33,
	.comm = "nginx",
	.exe = "/usr/sbin/nginx",
	.cmdline = "nginx: worker\0-g\0daemon off;\0\0",
	.cmdline_size = 30,
	.cgroup = "/system.slice/nginx.service",
	.container = "",
	.environ = "A=1\0TEAM=payments\0TEAM=other\0EMPTY=\0SENTRY_PROFILER=off",
	.environ_size = 55,
	.pid_file_pid = 0,
};

/* Each row has one rule: a pattern that matches nginx, and one that does not. */
static const struct {
	size_t offset;
	const char *fits, *other;
} rules[] = {
#define RULE(field) offsetof(struct section_config, field)
	{RULE(comm), "nginx", "ngin"},
	{RULE(comm), "ng*", "*x?"},
	{RULE(exe), "/usr/sbin/nginx", "/usr/*"},
	{RULE(cmdline), "nginx: worker -g daemon off;", "nginx: worker"},
	{RULE(cmdline), "*worker*", "*master*"},
	{RULE(cgroup), "/system.slice/*", "/user.slice/*"},
	{RULE(unit), "nginx", "apache2"},
	{RULE(unit), "nginx.service", "nginx.scope"},
	{RULE(unit), "system.slice", "user.slice"},
	{RULE(env), "TEAM=pay*", "TEAM=pay"},
	{RULE(env), "TEAM=payments\nA=?", "TEAM=payments\nA=2"},
	{RULE(env), "EMPTY=*", "NONE=*"},
	{RULE(env), "SENTRY_PROFILER=off", "TEAM=other"},
	{RULE(env), "A=1", "=1"},
};

TESTS(each_rule_is_compared_with_its_fact, array_size(rules))
{
	struct process_facts unknown = {
		.pid = 42, .uid = 33, .pid_file_pid = -1, .comm = nginx.comm};
	struct match_refusal why;
	struct section_config section;

	init_section(&section);
	ck_assert(!match_has_rules(&section));
	ck_assert_int_eq(match_process(&section, &nginx), MATCH_NO);
	set((char *)&section + rules[_i].offset, rules[_i].fits);
	ck_assert(match_has_rules(&section));
	ck_assert_int_eq(match_process(&section, &nginx), MATCH_YES);
	ck_assert_int_eq(match_process(&section, &unknown),
			 rules[_i].offset == RULE(comm) ? MATCH_YES : MATCH_UNKNOWN);
	ck_assert(!match_refusal(&section, &nginx, &why));
	set((char *)&section + rules[_i].offset, rules[_i].other);
	ck_assert_int_eq(match_process(&section, &nginx), MATCH_NO);
	ck_assert(match_refusal(&section, &nginx, &why));
	ck_assert_str_eq(why.pattern, rules[_i].other);
}

/* Names and patterns of units, and the control groups of processes. */
static const struct {
	const char *unit, *cgroup;
	bool matches;
} units[] = {
	/* A dot begins a type only if systemd has a type of that name. */
	{"php8.2-fpm", "/system.slice/php8.2-fpm.service", true},
	{"postgresql@9.6-main", "/system.slice/system-postgresql.slice/postgresql@9.6-main.service",
	 true},
	{"app@10.0.0.1", "/system.slice/system-app.slice/app@10.0.0.1.service", true},
	{"docker.socket", "/system.slice/docker.service", false},
	{"nginx.servic", "/system.slice/nginx.service", false},
	/* A pattern without a type matches all types. */
	{"app@*", "/system.slice/system-app.slice/app@10.0.0.1.service", true},
	{"ngin?", "/system.slice/nginx.service", true},
	{"session-*", "/user.slice/user-1000.slice/session-3.scope", true},
	{"session", "/user.slice/user-1000.slice/session.scope", false},
	{"*.slice", "/system.slice/nginx.service", true},
	{"system-app.slice", "/system.slice/system-app.slice/app@1.service", true},
	{"cryptsetup@disk\\x2d1", "/system.slice/cryptsetup@disk\\x2d1.service", true},
	/* Units of a user's systemd. */
	{"user@1000", "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service", true},
	{"web", "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service", true},
	{"app.slice", "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service", true},
	/* Control groups that a unit has made for itself. */
	{"web", "/system.slice/web.service/worker/1", true},
	{"sshd", "/system.slice/web.service/sshd.service", false},
	{"sshd", "/system.slice/docker-1.scope/system.slice/sshd.service", false},
	{"sshd", "/user.slice/user-1.slice/user@1.service/web.service/sshd.service", false},
	{"memory", "/system.slice/_memory.service", true},
	{"web", "/web", false},
	{"web", "/", false},
};

TESTS(units_are_named_as_in_systemctl, array_size(units))
{
	struct process_facts f = nginx;
	struct section_config section;

	init_section(&section);
	set(section.unit, units[_i].unit);
	f.cgroup = units[_i].cgroup;
	ck_assert_int_eq(match_process(&section, &f), units[_i].matches ? MATCH_YES : MATCH_NO);
}

static const struct {
	const char *text;
	size_t size;
	bool is;
} declined[] = {
	{"SENTRY_PROFILER=off", 19, true},
	{"A=1\0SENTRY_PROFILER=off\0B=2", 27, true},
	{"SENTRY_PROFILER=off", 18, false},
	{"SENTRY_PROFILER=offer", 21, false},
	{"SENTRY_PROFILER=", 16, false},
	{"SENTRY_PROFILER", 15, false},
	{"XSENTRY_PROFILER=off", 20, false},
	{"", 0, false},
	{"SENTRY_PROFILER=on\0SENTRY_PROFILER=off", 38, false},
};

TESTS(a_process_declines_by_one_value, array_size(declined))
{
	const struct process_facts f = {.environ = declined[_i].text,
					.environ_size = declined[_i].size};

	ck_assert_int_eq(process_facts_decline(&f), declined[_i].is);
}

TEST(no_variable_is_shown)
{
	struct match_refusal why;
	struct section_config section;

	init_section(&section);
	set(section.env, "TEAM=x");
	ck_assert(match_refusal(&section, &nginx, &why));
	ck_assert_str_eq(why.key, "env");
	ck_assert_str_eq(why.fact, "");
}

TEST(all_rules_of_a_section_must_match)
{
	struct process_facts f = nginx;
	struct match_needs wants;
	struct section_config section;

	init_section(&section);
	set(section.comm, "nginx");
	set(section.exe, "/usr/sbin/nginx");
	section.uid = 33;
	match_needs(&section, &wants);
	ck_assert(wants.exe && !wants.cmdline && !wants.cgroup && !wants.container &&
		  !wants.pid_file);
	ck_assert_int_eq(match_process(&section, &nginx), MATCH_YES);
	/* A known fact that does not match decides, even if other facts are unknown. */
	f.exe = NULL;
	ck_assert_int_eq(match_process(&section, &f), MATCH_UNKNOWN);
	f.comm = "sh";
	ck_assert_int_eq(match_process(&section, &f), MATCH_NO);
	section.uid = 34;
	ck_assert_int_eq(match_process(&section, &nginx), MATCH_NO);
}

TEST(the_suffix_deleted_of_an_exe_is_ignored)
{
	struct process_facts f = nginx;
	struct section_config section;

	init_section(&section);
	set(section.exe, "/usr/sbin/nginx");
	f.exe = "/usr/sbin/nginx (deleted)";
	ck_assert_int_eq(match_process(&section, &f), MATCH_YES);
	f.exe = "/usr/sbin/nginx (deleted) ";
	ck_assert_int_eq(match_process(&section, &f), MATCH_NO);
	f.exe = ""; /* a kernel thread */
	ck_assert_int_eq(match_process(&section, &f), MATCH_NO);
}

/* The kernel does not report changes of these facts. */
TEST(only_cmdline_cgroup_and_container_could_change)
{
	struct process_facts f = nginx;
	struct section_config section;

	init_section(&section);
	set(section.exe, "/usr/sbin/nginx");
	set(section.cmdline, "nginx: master*");
	ck_assert_int_eq(match_process(&section, &f), MATCH_NO);
	ck_assert(match_could_change(&section, &f));
	set(section.unit, "other");
	ck_assert(match_could_change(&section, &f));
	set(section.container, "*");
	ck_assert(match_could_change(&section, &f));
	/* The command line was not read. */
	f.cmdline = NULL;
	ck_assert(match_could_change(&section, &f));
	set(section.comm, "other");
	ck_assert(!match_could_change(&section, &f));
	section.comm[0] = '\0';
	section.uid = 34;
	ck_assert(!match_could_change(&section, &f));
	section.uid = CONFIG_UID_ANY;
	f.exe = "/usr/sbin/other";
	ck_assert(!match_could_change(&section, &f));
	init_section(&section);
	set(section.exe, "/usr/sbin/nginx");
	set(section.pid_file, "/run/nginx.pid");
	ck_assert_int_eq(match_process(&section, &nginx), MATCH_NO);
	ck_assert(!match_could_change(&section, &nginx));
}

TEST(container_and_pid_file_are_matched)
{
	struct process_facts f = nginx;
	struct section_config section;

	init_section(&section);
	set(section.container, "0123456789ab");
	ck_assert_int_eq(match_process(&section, &f), MATCH_NO);
	f.container = ID;
	ck_assert_int_eq(match_process(&section, &f), MATCH_YES);
	set(section.container, "*");
	ck_assert_int_eq(match_process(&section, &f), MATCH_YES);
	f.container = "";
	ck_assert_int_eq(match_process(&section, &f), MATCH_NO);
	f.container = "lxc:web2";
	set(section.container, "lxc:web");
	ck_assert_int_eq(match_process(&section, &f), MATCH_NO);
	set(section.container, "lxc:web?");
	ck_assert_int_eq(match_process(&section, &f), MATCH_YES);

	init_section(&section);
	set(section.pid_file, "/run/nginx.pid");
	ck_assert_int_eq(match_process(&section, &f), MATCH_NO);
	f.pid_file_pid = 42;
	ck_assert_int_eq(match_process(&section, &f), MATCH_YES);
	f.pid_file_pid = -1;
	ck_assert_int_eq(match_process(&section, &f), MATCH_UNKNOWN);
}

TEST(container_ids_are_found_in_cgroups)
{
	static const struct {
		const char *cgroup, *id;
	} v[] = {
		{"", ""},
		{"/", ""},
		{"/system.slice/docker-" ID ".scope", ID},
		{"/docker/" ID, ID},
		{"/kubepods/burstable/podf0/" ID "/init", ID},
		{"/machine.slice/libpod-" ID ".scope/container", ID},
		{"/kubepods.slice/cri-containerd-" ID ".scope", ID},
		{"/docker/" ID "0", ""},
		{"/docker/x" ID, ""},
		{"/docker/" HEX16 HEX16, ""},
		{"/docker/" ID "/docker/" OTHER_ID, OTHER_ID},
		{"/kubepods-besteffort-podf0.slice:cri-containerd:" ID, ID},
		{"/machine.slice/libpod-conmon-" ID ".scope", ""},
		{"/kubepods.slice/crio-conmon-" ID ".scope", ""},
		{"/ecs/" HEX16 HEX16 "/" HEX16 HEX16 "-1234567890", HEX16 HEX16 "-1234567890"},
		{"/ecs/" HEX16 HEX16 "-", ""},
		{"/ecs/" HEX16 HEX16 "-12a", ""},
		{"/system.slice/garden.service/garden/6f265890-5165-7fab-6b52-18d1",
		 "6f265890-5165-7fab-6b52-18d1"},
		{"/garden/6f265890-5165-7fab-6b52-18d1f0f0f0f0",
		 "6f265890-5165-7fab-6b52-18d1f0f0f0f0"},
		{"/garden/6f265890-5165-7fab-6b52-18d", ""},
		{"/garden/6f265890-5165-7fab-6b52", ""},
		{"/kubepods/pod6f265890-5165-7fab-6b52-18d1f0f0f0f0", ""},
		{"/lxc.payload.web/system.slice/nginx.service", "lxc:web"},
		{"/lxc.monitor.web", ""},
		{"/lxc.payload.", ""},
	};
	char id[PROCESS_FACTS_CONTAINER_SIZE];

	for (size_t i = 0; i < array_size(v); i++) {
		process_facts_container(v[i].cgroup, id);
		ck_assert_str_eq(id, v[i].id);
	}
}

/* Rules for the container around it do not match its processes. */
TEST(a_container_of_a_long_name_has_no_id)
{
	char cgroup[512], id[PROCESS_FACTS_CONTAINER_SIZE];

	(void)snprintf(cgroup, sizeof(cgroup), "/lxc.payload.outer/lxc.payload.%0200d", 0);
	process_facts_container(cgroup, id);
	ck_assert_str_eq(id, "");
}

TEST(the_cgroup_of_systemd_is_preferred)
{
	static const struct {
		const char *text, *path; /* NULL: none */
	} v[] = {
		{"0::/system.slice/a.service\n", "/system.slice/a.service"},
		{"0::/a:b\n", "/a:b"},
		{"0::/", "/"},
		{"12:cpu,cpuacct:/x\n1:name=systemd:/y\n0::/\n", "/y"},
		{"2:cpu:/x\n", NULL},
		{"0::/longer-than-there-is-room-for\n", NULL},
		{"", NULL},
		{"\n:\n::\n", ""},
	};
	char path[28];

	for (size_t i = 0; i < array_size(v); i++) {
		bool found = process_facts_cgroup(v[i].text, strlen(v[i].text), path, sizeof(path));

		ck_assert_int_eq(found, v[i].path != NULL);
		if (found)
			ck_assert_str_eq(path, v[i].path);
	}
}

TEST(pid_files_are_parsed)
{
	static const struct {
		const char *text;
		int32_t pid;
	} v[] = {
		{"42\n", 42},
		{"42", 42},
		{" 42 \n", 42},
		{"42\n/var/x\n", 42},
		{"", 0},
		{"0\n", 0},
		{"-1\n", 0},
		{"42x", 0},
		{"2147483647", INT32_MAX},
		{"2147483648", 0},
		{"99999999999", 0},
		{"x", 0},
	};

	for (size_t i = 0; i < array_size(v); i++)
		ck_assert_int_eq(process_facts_pid_file(v[i].text, strlen(v[i].text)), v[i].pid);
}

TEST(the_first_rule_that_refuses_is_reported)
{
	struct process_facts facts = nginx;
	struct match_refusal why;
	struct section_config section;

	init_section(&section);
	set(section.comm, "ng*");
	set(section.cmdline, "*master*");
	ck_assert(match_refusal(&section, &facts, &why));
	ck_assert_str_eq(why.key, "cmdline");
	ck_assert_str_eq(why.pattern, "*master*");
	ck_assert_str_eq(why.fact, "nginx: worker -g daemon off;");
	ck_assert(!why.is_part);
	set(section.cmdline, "worker");
	ck_assert(match_refusal(&section, &facts, &why));
	ck_assert(why.is_part);
	init_section(&section);
	set(section.pid_file, "/run/nginx.pid");
	facts.pid_file_pid = 43;
	ck_assert(match_refusal(&section, &facts, &why));
	ck_assert_str_eq(why.key, "pid_file");
	ck_assert_str_eq(why.fact, "43");
	init_section(&section);
	set(section.user, "www-data");
	section.uid = 34;
	ck_assert(match_refusal(&section, &facts, &why));
	ck_assert_str_eq(why.fact, "uid 33");
}

#include "daemon/config/match.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/glob.h"

static bool match_glob(const char *pattern, const char *text, size_t n, bool slash_ends_star)
{
	return glob_match(pattern, strlen(pattern), text, n, slash_ends_star);
}

static bool glob_text(const char *pattern, const char *text)
{
	return match_glob(pattern, text, strlen(text), false);
}

static enum match_result glob_fact(const char *pattern, const char *fact)
{
	if (*pattern == '\0')
		return MATCH_YES;
	if (fact == NULL)
		return MATCH_UNKNOWN;
	return glob_text(pattern, fact) ? MATCH_YES : MATCH_NO;
}

static enum match_result match_user(const struct section_config *section,
				    const struct process_facts *f)
{
	return section->uid == CONFIG_UID_ANY || section->uid == f->uid ? MATCH_YES : MATCH_NO;
}

static enum match_result match_comm(const struct section_config *section,
				    const struct process_facts *f)
{
	return glob_fact(section->comm, f->comm);
}

static enum match_result match_cgroup(const struct section_config *section,
				      const struct process_facts *f)
{
	return glob_fact(section->cgroup, f->cgroup);
}

static enum match_result match_exe(const struct section_config *section,
				   const struct process_facts *f)
{
	static const char deleted[] = " (deleted)";
	const size_t n_deleted = sizeof(deleted) - 1;
	const char *pattern = section->exe, *exe = f->exe;
	size_t n;

	if (*pattern == '\0')
		return MATCH_YES;
	if (exe == NULL)
		return MATCH_UNKNOWN;
	n = strlen(exe);
	if (n > n_deleted && strcmp(exe + n - n_deleted, deleted) == 0)
		n -= n_deleted;
	return match_glob(pattern, exe, n, true) ? MATCH_YES : MATCH_NO;
}

static enum match_result match_cmdline(const struct section_config *section,
				       const struct process_facts *f)
{
	const char *pattern = section->cmdline;
	size_t n = f->cmdline_size;

	if (*pattern == '\0')
		return MATCH_YES;
	if (f->cmdline == NULL)
		return MATCH_UNKNOWN;
	while (n > 0 && f->cmdline[n - 1] == '\0')
		n--;
	return match_glob(pattern, f->cmdline, n, false) ? MATCH_YES : MATCH_NO;
}

/* Returns the type of a unit by its name, without the dot; NULL if it is not the name of one. */
static const char *unit_type(const char *name, size_t n)
{
	static const char *const types[] = {"automount", "device",  "mount", "path",
					    "scope",	 "service", "slice", "socket",
					    "swap",	 "target",  "timer"};
	const char *dot = memrchr(name, '.', n);

	for (size_t i = 0; dot != NULL && i < array_size(types); i++)
		if ((size_t)(name + n - dot - 1) == strlen(types[i]) &&
		    memcmp(dot + 1, types[i], strlen(types[i])) == 0)
			return types[i];
	return NULL;
}

/*
 * A name without a type means a service, and a pattern without one a unit of any type, as in
 * systemctl(1). A dot alone begins no type: php8.2-fpm, app@10.0.0.1.
 */
static bool is_unit(const char *pattern, const char *unit, size_t n, const char *type)
{
	if (match_glob(pattern, unit, n, false))
		return true;
	return unit_type(pattern, strlen(pattern)) == NULL && strcmp(type, "service") == 0 &&
	       match_glob(pattern, unit, n - sizeof(".service") + 1, false);
}

static bool is_user_manager(const char *unit, size_t n)
{
	static const char prefix[] = "user@";

	return n > sizeof(prefix) && memcmp(unit, prefix, sizeof(prefix) - 1) == 0;
}

/*
 * A process belongs to the first unit on its control group's path that is no slice, to the slices
 * before it, and to the units of a user's own systemd below it. What follows in the path are
 * control groups that the unit has made, with names of its choice. systemd puts "_" before a name
 * that the kernel could take for one of its files.
 */
static enum match_result match_unit(const struct section_config *section,
				    const struct process_facts *f)
{
	const char *pattern = section->unit, *cgroup = f->cgroup;
	size_t n;

	if (*pattern == '\0')
		return MATCH_YES;
	if (cgroup == NULL)
		return MATCH_UNKNOWN;
	for (; *cgroup != '\0'; cgroup += n + (cgroup[n] == '/')) {
		const char *type;

		cgroup += *cgroup == '_';
		n = strcspn(cgroup, "/");
		type = unit_type(cgroup, n);
		if (type == NULL)
			continue;
		if (is_unit(pattern, cgroup, n, type))
			return MATCH_YES;
		if (strcmp(type, "slice") != 0 && !is_user_manager(cgroup, n))
			break;
	}
	return MATCH_NO;
}

/* The pattern can be the beginning of an id, as in docker(1), but not of a name. */
static enum match_result match_container(const struct section_config *section,
					 const struct process_facts *f)
{
	const char *pattern = section->container, *container = f->container;

	if (*pattern == '\0')
		return MATCH_YES;
	if (container == NULL)
		return MATCH_UNKNOWN;
	if (*container == '\0')
		return MATCH_NO;
	if (strncmp(container, pattern, strlen(pattern)) == 0 &&
	    strncmp(container, PROCESS_FACTS_LXC, sizeof(PROCESS_FACTS_LXC) - 1) != 0)
		return MATCH_YES;
	return glob_text(pattern, container) ? MATCH_YES : MATCH_NO;
}

static enum match_result match_pid_file(const struct section_config *section,
					const struct process_facts *f)
{
	if (section->pid_file[0] == '\0')
		return MATCH_YES;
	if (f->pid_file_pid < 0)
		return MATCH_UNKNOWN;
	return f->pid_file_pid == f->pid ? MATCH_YES : MATCH_NO;
}

static enum match_result match_env(const struct section_config *section,
				   const struct process_facts *f)
{
	const char *rule = section->env, *value;
	size_t n, n_value;

	if (*rule == '\0')
		return MATCH_YES;
	if (f->environ == NULL)
		return MATCH_UNKNOWN;
	for (; *rule != '\0'; rule += n + (rule[n] == '\n')) {
		const size_t name = strcspn(rule, "=");

		n = strcspn(rule, "\n");
		if (!process_facts_variable(f, rule, name, &value, &n_value) ||
		    !glob_match(rule + name + 1, n - name - 1, value, n_value, false))
			return MATCH_NO;
	}
	return MATCH_YES;
}

/* The rules of a section, and the fact that each is compared with. */
static const struct {
	const char *key;
	size_t pattern; /* in struct section_config, a text */
	size_t fact;	/* in struct process_facts */
	enum match_result (*match)(const struct section_config *section,
				   const struct process_facts *f);
} rules[] = {
#define KEY(name)  #name, offsetof(struct section_config, name)
#define FACT(name) offsetof(struct process_facts, name)
	{KEY(user), FACT(uid), match_user},
	{KEY(comm), FACT(comm), match_comm},
	{KEY(exe), FACT(exe), match_exe},
	{KEY(cmdline), FACT(cmdline), match_cmdline},
	{KEY(cgroup), FACT(cgroup), match_cgroup},
	{KEY(unit), FACT(cgroup), match_unit},
	{KEY(container), FACT(container), match_container},
	{KEY(pid_file), FACT(pid_file_pid), match_pid_file},
	{KEY(env), FACT(environ), match_env},
#undef KEY
#undef FACT
};

enum match_result match_process(const struct section_config *section, const struct process_facts *f)
{
	enum match_result all = MATCH_YES;

	for (size_t i = 0; i < array_size(rules); i++) {
		const enum match_result result = rules[i].match(section, f);

		if (result == MATCH_NO)
			return MATCH_NO;
		if (result == MATCH_UNKNOWN)
			all = MATCH_UNKNOWN;
	}
	return match_has_rules(section) ? all : MATCH_NO;
}

/* Writes the fact of a process as text. */
static void copy_fact(const struct process_facts *f, size_t fact, char ret[MATCH_FACT_SIZE])
{
	const char *at = (const char *)f + fact;
	size_t n;

	if (fact == offsetof(struct process_facts, uid)) {
		(void)snprintf(ret, MATCH_FACT_SIZE, "uid %u", f->uid);
	} else if (fact == offsetof(struct process_facts, pid_file_pid)) {
		(void)snprintf(ret, MATCH_FACT_SIZE, "%d", f->pid_file_pid);
	} else if (fact == offsetof(struct process_facts, environ)) {
		ret[0] = '\0';
	} else {
		const char *text;

		memcpy(&text, at, sizeof(text));
		n = fact == offsetof(struct process_facts, cmdline) ? f->cmdline_size
								    : strlen(text);
		while (n > 0 && text[n - 1] == '\0')
			n--;
		n = min_size(n, MATCH_FACT_SIZE - 1);
		memcpy(ret, text, n);
		ret[n] = '\0';
		/* Arguments end with a NUL. */
		for (size_t i = 0; i < n; i++)
			if (ret[i] == '\0')
				ret[i] = ' ';
	}
}

static bool is_part(const char *pattern, const char *fact)
{
	char around[CONFIG_PATTERN_MAX + sizeof("**")];

	(void)snprintf(around, sizeof(around), "*%s*", pattern);
	return glob_text(around, fact);
}

bool match_refusal(const struct section_config *section, const struct process_facts *f,
		   struct match_refusal *ret)
{
	for (size_t i = 0; i < array_size(rules); i++) {
		if (rules[i].match(section, f) != MATCH_NO)
			continue;
		ret->key = rules[i].key;
		ret->pattern = (const char *)section + rules[i].pattern;
		copy_fact(f, rules[i].fact, ret->fact);
		ret->is_part = is_part(ret->pattern, ret->fact);
		return true;
	}
	return false;
}

bool match_exe_excludes(const struct section_config *section, const char *exe)
{
	return match_exe(section, &(struct process_facts){.exe = exe}) == MATCH_NO;
}

bool match_could_change(const struct section_config *section, const struct process_facts *f)
{
	struct process_facts later = *f;

	later.cmdline = NULL;
	later.cgroup = NULL;
	later.container = NULL;
	return match_process(section, &later) == MATCH_UNKNOWN;
}

void match_needs(const struct section_config *section, struct match_needs *ret)
{
	*ret = (struct match_needs){
		.exe = section->exe[0] != '\0',
		.cmdline = section->cmdline[0] != '\0',
		.cgroup = section->cgroup[0] != '\0' || section->unit[0] != '\0',
		.container = section->container[0] != '\0',
		.pid_file = section->pid_file[0] != '\0',
		.environ = section->env[0] != '\0',
	};
}

bool match_has_rules(const struct section_config *section)
{
	return section->uid != CONFIG_UID_ANY || section->comm[0] != '\0' ||
	       section->exe[0] != '\0' || section->cmdline[0] != '\0' ||
	       section->cgroup[0] != '\0' || section->unit[0] != '\0' ||
	       section->container[0] != '\0' || section->pid_file[0] != '\0' ||
	       section->env[0] != '\0';
}

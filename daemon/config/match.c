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

static enum match_result match_user(const struct target_config *t, const struct process_facts *f)
{
	return t->uid == CONFIG_UID_ANY || t->uid == f->uid ? MATCH_YES : MATCH_NO;
}

static enum match_result match_comm(const struct target_config *t, const struct process_facts *f)
{
	return glob_fact(t->comm, f->comm);
}

static enum match_result match_cgroup(const struct target_config *t, const struct process_facts *f)
{
	return glob_fact(t->cgroup, f->cgroup);
}

static enum match_result match_exe(const struct target_config *t, const struct process_facts *f)
{
	static const char deleted[] = " (deleted)";
	const size_t n_deleted = sizeof(deleted) - 1;
	const char *pattern = t->exe, *exe = f->exe;
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

static enum match_result match_cmdline(const struct target_config *t, const struct process_facts *f)
{
	const char *pattern = t->cmdline;
	size_t n = f->cmdline_size;

	if (*pattern == '\0')
		return MATCH_YES;
	if (f->cmdline == NULL)
		return MATCH_UNKNOWN;
	while (n > 0 && f->cmdline[n - 1] == '\0')
		n--;
	return match_glob(pattern, f->cmdline, n, false) ? MATCH_YES : MATCH_NO;
}

/*
 * The processes of a unit are in the cgroup of the unit's name or below it. A name without a
 * suffix means a service, as in systemctl(1).
 */
static enum match_result match_unit(const struct target_config *t, const struct process_facts *f)
{
	const char *pattern = t->unit, *cgroup = f->cgroup;
	char whole[CONFIG_TEXT_MAX + sizeof(".service")];
	size_t n = strlen(pattern);

	if (n == 0)
		return MATCH_YES;
	if (cgroup == NULL)
		return MATCH_UNKNOWN;
	memcpy(whole, pattern, n + 1);
	if (strchr(pattern, '.') == NULL)
		memcpy(whole + n, ".service", sizeof(".service"));
	while (*cgroup != '\0') {
		size_t part = strcspn(cgroup, "/");

		if (part > 0 && match_glob(whole, cgroup, part, false))
			return MATCH_YES;
		cgroup += part + (cgroup[part] == '/');
	}
	return MATCH_NO;
}

/* The pattern can be the beginning of an id, as in docker(1). */
static enum match_result match_container(const struct target_config *t,
					 const struct process_facts *f)
{
	const char *pattern = t->container, *container = f->container;

	if (*pattern == '\0')
		return MATCH_YES;
	if (container == NULL)
		return MATCH_UNKNOWN;
	if (*container == '\0')
		return MATCH_NO;
	if (strncmp(container, pattern, strlen(pattern)) == 0)
		return MATCH_YES;
	return glob_text(pattern, container) ? MATCH_YES : MATCH_NO;
}

static enum match_result match_pid_file(const struct target_config *t,
					const struct process_facts *f)
{
	if (t->pid_file[0] == '\0')
		return MATCH_YES;
	if (f->pid_file_pid < 0)
		return MATCH_UNKNOWN;
	return f->pid_file_pid == f->pid ? MATCH_YES : MATCH_NO;
}

/* The rules of a section, and the fact that each is compared with. */
static const struct {
	const char *key;
	size_t pattern; /* in struct target_config, a text */
	size_t fact;	/* in struct process_facts */
	enum match_result (*match)(const struct target_config *t, const struct process_facts *f);
} rules[] = {
#define KEY(name)  #name, offsetof(struct target_config, name)
#define FACT(name) offsetof(struct process_facts, name)
	{KEY(user), FACT(uid), match_user},
	{KEY(comm), FACT(comm), match_comm},
	{KEY(exe), FACT(exe), match_exe},
	{KEY(cmdline), FACT(cmdline), match_cmdline},
	{KEY(cgroup), FACT(cgroup), match_cgroup},
	{KEY(unit), FACT(cgroup), match_unit},
	{KEY(container), FACT(container), match_container},
	{KEY(pid_file), FACT(pid_file_pid), match_pid_file},
#undef KEY
#undef FACT
};

enum match_result match_process(const struct target_config *t, const struct process_facts *f)
{
	enum match_result all = MATCH_YES;

	for (size_t i = 0; i < array_size(rules); i++) {
		const enum match_result result = rules[i].match(t, f);

		if (result == MATCH_NO)
			return MATCH_NO;
		if (result == MATCH_UNKNOWN)
			all = MATCH_UNKNOWN;
	}
	return match_has_rules(t) ? all : MATCH_NO;
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

bool match_refusal(const struct target_config *t, const struct process_facts *f,
		   struct match_refusal *ret)
{
	for (size_t i = 0; i < array_size(rules); i++) {
		if (rules[i].match(t, f) != MATCH_NO)
			continue;
		ret->key = rules[i].key;
		ret->pattern = (const char *)t + rules[i].pattern;
		copy_fact(f, rules[i].fact, ret->fact);
		return true;
	}
	return false;
}

bool match_exe_excludes(const struct target_config *t, const char *exe)
{
	return match_exe(t, &(struct process_facts){.exe = exe}) == MATCH_NO;
}

bool match_could_change(const struct target_config *t, const struct process_facts *f)
{
	struct process_facts later = *f;

	later.cmdline = NULL;
	later.cgroup = NULL;
	later.container = NULL;
	return match_process(t, &later) == MATCH_UNKNOWN;
}

void match_needs(const struct target_config *t, struct match_needs *ret)
{
	*ret = (struct match_needs){
		.exe = t->exe[0] != '\0',
		.cmdline = t->cmdline[0] != '\0',
		.cgroup = t->cgroup[0] != '\0' || t->unit[0] != '\0',
		.container = t->container[0] != '\0',
		.pid_file = t->pid_file[0] != '\0',
	};
}

bool match_has_rules(const struct target_config *t)
{
	return t->uid != CONFIG_UID_ANY || t->comm[0] != '\0' || t->exe[0] != '\0' ||
	       t->cmdline[0] != '\0' || t->cgroup[0] != '\0' || t->unit[0] != '\0' ||
	       t->container[0] != '\0' || t->pid_file[0] != '\0';
}

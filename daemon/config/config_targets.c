/* Is there a process that a section is about, and is it about any? */
#include "daemon/config/config_keys.h"

#include <stdio.h>
#include <string.h>

#include "daemon/config/match.h"
#include "daemon/process/process.h"

/* Capture knows what pthread_self() returns there (lib/capture/arch.h). */
#if defined(__x86_64__)
static const bool knows_pthreads = true;
#else
static const bool knows_pthreads = false;
#endif

static const char *const rules[] = {"exe",    "comm", "cmdline",   "user",
				    "cgroup", "unit", "container", "pid_file"};

static int wrong(char problem[CONFIG_PROBLEM_MAX], const char *text)
{
	(void)snprintf(problem, CONFIG_PROBLEM_MAX, "%s", text);
	return -EINVAL;
}

/* Of a text that fits, the least. */
static size_t least_bytes(const char *pattern)
{
	size_t n = 0;

	for (; *pattern != '\0'; pattern++)
		n += *pattern != '*';
	return n;
}

static bool is_of(const char *value, const char *allowed)
{
	return value[strspn(value, allowed)] == '\0';
}

int config_rule_check(const struct config_key *key, const char *value,
		      char problem[CONFIG_PROBLEM_MAX])
{
	const size_t n = strlen(value);

	/* What a star or "?" stands for there is no slash. */
	if (strcmp(key->name, "exe") == 0 && n > 0 &&
	    ((value[0] != '/' && strncmp(value, "**", 2) != 0) || value[n - 1] == '/'))
		return wrong(problem, "fits no path of a file: these begin "
				      "with / (** stands for it, too), and do "
				      "not end with it");
	if (strcmp(key->name, "comm") == 0 && least_bytes(value) >= PROCESS_COMM_SIZE)
		return wrong(problem, "fits no name: the kernel keeps 15 bytes "
				      "of it");
	if (strcmp(key->name, "cgroup") == 0 && n > 0 && strchr("/*?", value[0]) == NULL)
		return wrong(problem, "fits no path of a control group: these "
				      "begin with /");
	if (strcmp(key->name, "unit") == 0 && strchr(value, '/') != NULL)
		return wrong(problem, "fits no unit: a name has no slash (for "
				      "paths there is cgroup)");
	if (strcmp(key->name, "container") == 0 &&
	    (!is_of(value, "0123456789abcdef*?") || least_bytes(value) >= FACTS_CONTAINER_SIZE))
		return wrong(problem, "fits no container: an id has 64 digits, "
				      "0 to 9 and a to f");
	return 0;
}

static bool gives_rule(const struct target_config *t)
{
	for (size_t i = 0; i < array_size(rules); i++)
		if (config_target_gives(t, rules[i]))
			return true;
	return false;
}

/* All that the first asks for the other asks for as well. */
static bool covers(const struct target_config *first, const struct target_config *other)
{
	for (size_t i = 0; i < array_size(rules); i++) {
		if (!config_target_gives(first, rules[i]))
			continue;
		if (!config_target_gives(other, rules[i]) ||
		    !config_value_equal(config_key_find(SECTION_TARGET, rules[i]), first, other))
			return false;
	}
	return match_has_rules(first);
}

static void check_those_before(const struct config *c, const struct target_config *t,
			       struct config_faults *faults)
{
	for (const struct target_config *first = c->targets; first < t; first++)
		if (covers(first, t)) {
			config_fault_add(faults, c, &t->origin, true,
					 "[target \"%s\"]: no process is left "
					 "for it: [target \"%s\"] comes first "
					 "and takes all that it is about",
					 t->name, first->name);
			return;
		}
}

void config_target_check(const struct config *c, const struct target_config *t,
			 struct config_faults *faults)
{
	if (!match_has_rules(t) && !gives_rule(t))
		config_fault_add(faults, c, &t->origin, false,
				 "[target \"%s\"] has no rule (exe, comm, "
				 "cmdline, user, cgroup, unit, container, "
				 "pid_file): it would be every process",
				 t->name);
	if (t->thread_id_format == THREAD_ID_PTHREAD && !knows_pthreads)
		config_fault_add(faults, c, config_target_origin(t, "thread_id_format"), false,
				 "[target \"%s\"]: thread_id_format = "
				 "pthread is for x86-64 only",
				 t->name);
	if (t->autostart && t->lifecycle == LIFECYCLE_TRACE)
		config_fault_add(faults, c, config_target_origin(t, "autostart"), true,
				 "[target \"%s\"]: autostart has no effect with "
				 "profile_lifecycle = trace",
				 t->name);
	check_those_before(c, t, faults);
}

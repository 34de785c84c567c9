/*
 * Matches processes with the rules of [target] sections. Used by the broker's discovery, which
 * looks for processes to profile (daemon/broker/discovery/), and by its inspection of a process for
 * `doctor` (daemon/broker/control/inspect.c). These callers read the facts of the process; this
 * module reads nothing.
 *
 * A process can choose most of its facts. This module only compares facts with patterns, and opens
 * no file that a fact names. Patterns are those of lib/base/glob.h; in exe, "*" does not match a
 * slash.
 */
#ifndef DAEMON_CONFIG_MATCH_H
#define DAEMON_CONFIG_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "daemon/process/process_facts.h"

enum match_result {
	MATCH_NO,
	MATCH_YES,
	MATCH_UNKNOWN, /* all known facts match; match_needs() says which facts to read */
};

/* Matches the process with all rules of the section. MATCH_NO if the section has no rule. */
enum match_result match_process(const struct section_config *section,
				const struct process_facts *f);

/* The rule that a process does not match. */
#define MATCH_FACT_SIZE 256
struct match_refusal {
	const char *key;	    /* the rule: "comm" */
	const char *pattern;	    /* its value; points into the section */
	char fact[MATCH_FACT_SIZE]; /* the process's fact, may be cut off; "" for the rule env */
	bool is_part;		    /* the pattern matches a part of fact */
};

/*
 * Finds the first rule that the process does not match. The caller has read all facts that the
 * rules need. Returns false if there is no such rule.
 */
bool match_refusal(const struct section_config *section, const struct process_facts *f,
		   struct match_refusal *ret);

/*
 * Call this for a process for which match_process() has returned MATCH_NO. Returns true if the
 * process could match after a change of its command line or its control group: the kernel does not
 * report these changes, so the process has to be checked again.
 */
bool match_could_change(const struct section_config *section, const struct process_facts *f);

/* The facts of a process that have to be read, in addition to pid, uid and comm. */
struct match_needs {
	bool exe, cmdline, cgroup, container, pid_file, environ;
};
/* Sets *ret to the facts that the rules of the section need. */
void match_needs(const struct section_config *section, struct match_needs *ret);

/* Returns true if the section refuses every process whose link /proc/PID/exe has this text. */
bool match_exe_excludes(const struct section_config *section, const char *exe);

/* Returns true if the section has a rule. A section without one matches no process. */
bool match_has_rules(const struct section_config *section);

#endif

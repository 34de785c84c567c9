/*
 * Matches processes with [target] sections. The callers are the broker's discovery, which looks
 * for processes to profile (daemon/broker/discovery/), and its inspection of a process for `doctor`
 * (daemon/broker/control/inspect.c); both read the facts. This module
 * reads nothing itself.
 *
 * The process chose most of its facts. They are compared with patterns and used for nothing
 * else. Patterns are those of lib/base/glob.h; in exe, "*" does not match a slash.
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
	MATCH_UNKNOWN, /* all known facts match; match_needs() says which facts are needed */
};

/* Matches the process with all rules of the section. */
enum match_result match_process(const struct section_config *section,
				const struct process_facts *f);

/* The rule that a process does not match. */
#define MATCH_FACT_SIZE 256
struct match_refusal {
	const char *key;	    /* of the section: "comm" */
	const char *pattern;	    /* its value in the section */
	char fact[MATCH_FACT_SIZE]; /* what the process has instead; cut off; "": environ */
	bool is_part;		    /* the pattern matches a part of it */
};

/*
 * Finds the first rule that refuses the process, all of whose facts are known. Returns false
 * if there is none.
 */
bool match_refusal(const struct section_config *section, const struct process_facts *f,
		   struct match_refusal *ret);

/*
 * Call this for a process for which match_process() has returned MATCH_NO. Returns true if the
 * process could match after a change of its command line or its control group: the kernel does not
 * report these changes, so the process has to be checked again.
 */
bool match_could_change(const struct section_config *section, const struct process_facts *f);

/* Facts of a process, in addition to pid, uid and comm. */
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

/*
 * Is a process one of a [target] section? Pure: what is known of the process
 * comes as an argument, read by whoever has the rights, with bounds of its own.
 * All of it was chosen by a stranger, and is compared, nothing else.
 *
 * Patterns are those of lib/base/glob.h; in exe a slash ends a star.
 */
#ifndef DAEMON_CONFIG_MATCH_H
#define DAEMON_CONFIG_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "daemon/process/facts.h"

enum match_result {
	MATCH_NO,
	MATCH_YES,
	MATCH_UNKNOWN, /* all that is known fits: match_wants says what lacks */
};
enum match_result match_process(const struct target_config *t, const struct process_facts *f);

/* Why match_process refuses a process. */
#define MATCH_FACT_SIZE 256
struct match_refusal {
	const char *key;     /* of the section: "comm" */
	const char *pattern; /* the section's value */
	/* What the process has, or the pid of the pid file; cut off. */
	char fact[MATCH_FACT_SIZE];
};
/* All facts are known. False: no rule of the section refuses the process. */
bool match_refusal(const struct target_config *t, const struct process_facts *f,
		   struct match_refusal *ret);

/*
 * Of one that match_process refuses: would it be one if it had another command
 * line or control group? These change without a word of the kernel's.
 */
bool match_may_become(const struct target_config *t, const struct process_facts *f);

/* What match_process needs beside pid, uid and comm for this section. */
struct match_wants {
	bool exe, cmdline, cgroup, container, pid_file;
};
void match_wants(const struct target_config *t, struct match_wants *ret);

/*
 * True if the section cannot match a process whose link /proc/PID/exe says
 * this, whatever else is found out about it.
 */
bool match_exe_excludes(const struct target_config *t, const char *exe);

/* Has it any rule? One without would be all processes. */
bool match_has_rules(const struct target_config *t);

#endif

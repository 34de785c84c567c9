/*
 * Completes a configuration after its files and the command line were read:
 * - A value that neither gave comes from an environment variable, or becomes a default that depends
 *   on these variables or on other values. config_init() has set all other defaults.
 * - Each [target] section takes over from [sentry] and [profiler] what it does not set.
 * - The values are checked together. Example: if an earlier section matches all processes of a
 *   section, that is a fault (a warning).
 */
#ifndef DAEMON_CONFIG_CONFIG_RESOLVE_H
#define DAEMON_CONFIG_CONFIG_RESOLVE_H

#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"
#include "lib/base/util.h"

/* getenv(3), or a function of the same contract: tests pass their own. */
typedef char *(*config_env_fn)(const char *name);

/*
 * Completes c. Reads the variables SENTRY_* and SSL_CERT_FILE. Only checks the proxy variables of
 * libcurl, since ship reads them itself. Returns 0, or -EINVAL if it has added faults that are
 * errors.
 */
must_check int config_resolve(struct config *c, config_env_fn get, struct config_faults *faults);

/*
 * Makes a section for a process that --pid or a user names: *ret is a copy of c->implicit, the
 * settings of such processes, with this name, which is cut off at CONFIG_NAME_MAX - 1 bytes. c must
 * be resolved.
 */
void config_implicit_section(const struct config *c, const char *name, struct section_config *ret);

#endif

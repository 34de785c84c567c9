/*
 * Completes a configuration after files and command line were read. Sets what neither gave: from
 * the environment, or to a default that depends on the environment or on other values (environment,
 * spotlight, the settings of sections; config_init() has set all other defaults). Each [target]
 * section takes over from [sentry] and [profiler] what it does not set. Then checks what a single
 * value cannot show, such as a section that no process can match.
 */
#ifndef DAEMON_CONFIG_CONFIG_RESOLVE_H
#define DAEMON_CONFIG_CONFIG_RESOLVE_H

#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"
#include "lib/base/util.h"

/* getenv(3), or a function of the same contract: tests pass their own. */
typedef char *(*config_env_fn)(const char *name);

/*
 * Completes c. Variables: SENTRY_*, SSL_CERT_FILE, and the proxies of libcurl, which are
 * checked and not kept. Returns 0, or -EINVAL if faults were added that are no warnings.
 */
must_check int config_resolve(struct config *c, config_env_fn get, struct config_faults *faults);

/*
 * Makes a section for a process that no section matches (--pid, attach): *ret is a copy of
 * c->implicit with this name. c must be resolved.
 */
void config_implicit_section(const struct config *c, const char *name, struct section_config *ret);

#endif

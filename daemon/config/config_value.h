/*
 * Parses the values of keys (config_keys.h), as they are written in a file, in an option or in an
 * environment variable.
 *
 * A function that refuses a value describes the problem in words that follow the key, such as "not
 * a number from 1 to 1000". The words contain no value that can be a secret. The caller may add the
 * value unless config_value_may_be_secret() is true.
 */
#ifndef DAEMON_CONFIG_CONFIG_VALUE_H
#define DAEMON_CONFIG_CONFIG_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "daemon/config/config_keys.h"
#include "lib/base/util.h"

#define CONFIG_PROBLEM_MAX 256

/*
 * Parses value and writes it to the field of key in base: a struct config for a key of [sentry]
 * or [profiler], a struct section_config for a key of [target]. For KEY_DSN_FILE value is a path,
 * and the content of that file is the value. Returns 0, or -EINVAL with the problem.
 */
must_check int config_value_parse(const struct config_key *key, const char *value, void *base,
				  char problem[CONFIG_PROBLEM_MAX]);

/*
 * Returns true if a message must not contain the value: the value is a DSN, the URL of a proxy, or
 * a URL with a user name, which may be a DSN that was given to the wrong key. key: the key of the
 * value; NULL: not known.
 */
bool config_value_may_be_secret(const struct config_key *key, const char *value);

/*
 * Sets the key of this name to value, for an option of the command line. Looks for the key in
 * [sentry], then in [profiler], then in [target]; a key of [target] is set in c->implicit, the
 * settings of processes without a section. One of the three must have the key. Marks the key as
 * given by the option (struct config_origin), also if the value is refused. option: the name of the
 * option, for messages; it is not copied, and must be valid as long as c. Returns 0, or -EINVAL
 * with the problem.
 */
must_check int config_set(struct config *c, const char *name, const char *option, const char *value,
			  char problem[CONFIG_PROBLEM_MAX]);

/*
 * Checks the URL of a proxy: [SCHEME://][USER[:PASSWORD]@]HOST[:PORT][/]. Returns NULL if it finds
 * no fault, or the problem as a constant text. Finds only a missing host and a port that is no
 * number from 1 to 65535; libcurl reports any other fault at the first request.
 */
const char *config_proxy_problem(const char *url);

/*
 * Checks the mode and the owner (uid) of a file that the caller has opened. The file's group and
 * others must have no right to write to the file, or, if holds_dsn is true, no right at all. The
 * owner must be root or the effective user of this process. path is only for the message. Returns
 * 0, or -EINVAL with the problem, which names the command that repairs it.
 */
must_check int config_check_mode(const char *path, uint32_t mode, uint32_t uid, bool holds_dsn,
				 char problem[CONFIG_PROBLEM_MAX]);

#endif

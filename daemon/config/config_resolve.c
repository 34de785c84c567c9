#include "daemon/config/config_resolve.h"

#include <stdio.h>
#include <string.h>

#include "daemon/config/config_keys.h"
#include "daemon/config/config_print.h"
#include "daemon/config/config_value.h"
#include "daemon/config/match.h"
#include "proto/dsn.h"

static bool is_given(const struct config *c, const char *name)
{
	return (c->given_sentry & config_key_bit(config_key_find(SECTION_SENTRY, name))) != 0;
}

/* Parses the value of a variable for a key. Adds a fault and returns false if it is wrong. */
static bool parse_variable(const char *variable, const char *value, enum config_section section,
			   const char *name, void *base, struct config_faults *faults)
{
	const struct config_key *key = config_key_find(section, name);
	const struct config_origin at = {.given_by = variable};
	char problem[CONFIG_PROBLEM_MAX];

	if (config_value_parse(key, value, base, problem) == 0)
		return true;
	if (config_value_may_be_secret(key, value))
		config_fault_add(faults, NULL, &at, false, "%s", problem);
	else
		config_fault_add(faults, NULL, &at, false, "%s: '%s'", problem, value);
	return false;
}

static const char *get_variable(config_env_fn get, const char *name)
{
	const char *value = get(name);

	return value != NULL && *value != '\0' ? value : NULL;
}

/* Returns true if value is not one of the words for "no". */
static bool is_on(const char *value)
{
	return value != NULL && strcmp(value, "0") != 0 && strcmp(value, "false") != 0 &&
	       strcmp(value, "no") != 0 && strcmp(value, "off") != 0;
}

static void resolve_authorities(struct config *c, config_env_fn get, struct config_faults *faults)
{
	const char *variable = "SSL_CERT_FILE", *name = "ca_certs";
	const char *value = get_variable(get, variable);

	if (is_given(c, name) || value == NULL ||
	    !parse_variable(variable, value, SECTION_SENTRY, name, c, faults))
		return;
	c->origins[config_key_find(SECTION_SENTRY, name) - config_keys] =
		(struct config_origin){.given_by = variable};
	c->ca_certs_by_variable = true;
}

/*
 * The option and the key take precedence over the variable. If the option or the key only says yes,
 * the URL comes from the variable, if the variable has one.
 */
static void resolve_spotlight(struct config *c, config_env_fn get, struct config_faults *faults)
{
	const char *variable = "SENTRY_SPOTLIGHT", *name = "spotlight";
	const char *value = get_variable(get, variable);
	const bool is_on = strcmp(c->spotlight, CONFIG_SPOTLIGHT_ON) == 0;
	struct config of_env = {.has_dsn = false};

	if (value != NULL && value[strspn(value, " \t")] != '\0' && (is_on || !is_given(c, name)) &&
	    parse_variable(variable, value, SECTION_SENTRY, name, &of_env, faults) &&
	    (!is_on || of_env.spotlight[0] != '\0'))
		memcpy(c->spotlight, of_env.spotlight, sizeof(c->spotlight));
	if (strcmp(c->spotlight, CONFIG_SPOTLIGHT_ON) == 0)
		memcpy(c->spotlight, CONFIG_SPOTLIGHT_DEFAULT, sizeof(CONFIG_SPOTLIGHT_DEFAULT));
}

static void resolve_sentry(struct config *c, config_env_fn get, struct config_faults *faults)
{
	struct config of_env = {.has_dsn = false};
	const char *value;

	c->has_dsn = is_given(c, "dsn") || is_given(c, "dsn_file");
	value = get("SENTRY_DSN");
	if (!c->has_dsn && value != NULL)
		c->has_dsn = parse_variable("SENTRY_DSN", value, SECTION_SENTRY, "dsn", c, faults);
	value = get_variable(get, "SENTRY_ENVIRONMENT");
	if (!is_given(c, "environment"))
		(void)parse_variable("SENTRY_ENVIRONMENT", value != NULL ? value : "production",
				     SECTION_SENTRY, "environment", c, faults);
	value = get_variable(get, "SENTRY_RELEASE");
	if (value != NULL &&
	    parse_variable("SENTRY_RELEASE", value, SECTION_SENTRY, "release", &of_env, faults))
		memcpy(c->release_env, of_env.release, sizeof(c->release_env));
	if (!is_given(c, "debug"))
		c->debug = is_on(get_variable(get, "SENTRY_DEBUG"));
	resolve_authorities(c, get, faults);
	resolve_spotlight(c, get, faults);
	if (c->client_key[0] != '\0' && c->client_cert[0] == '\0')
		config_fault_add(faults, c, config_origin(c, SECTION_SENTRY, "client_key"), false,
				 "client_key is given without client_cert");
}

/* Copies the values of [sentry] and [profiler] that the section does not set itself. */
static void inherit(const struct config *c, struct section_config *section)
{
	if (!config_section_gives(section, "dsn") && !config_section_gives(section, "dsn_file"))
		memcpy(section->dsn, c->dsn, sizeof(section->dsn));
	if (!config_section_gives(section, "release"))
		memcpy(section->release, c->release, sizeof(section->release));
	section->environment_given =
		config_section_gives(section, "environment") || is_given(c, "environment");
	if (!config_section_gives(section, "environment"))
		memcpy(section->environment, c->environment, sizeof(section->environment));
	if (!config_section_gives(section, "platform"))
		memcpy(section->platform, c->platform, sizeof(section->platform));
	if (!config_section_gives(section, "rate_hz"))
		section->rate_hz = c->rate_hz;
	if (!config_section_gives(section, "on_crash"))
		section->on_crash = c->on_crash;
	if (!config_section_gives(section, "leak_check"))
		section->leak_check = c->leak_check;
	if (!config_section_gives(section, "min_age_seconds"))
		section->min_age_s = 1;
}

/* Sets the defaults of targets from environment variables. */
static void read_target_defaults(config_env_fn get, struct section_config *ret,
				 struct config_faults *faults)
{
	static const struct {
		const char *variable, *key;
	} v[] = {
		{"SENTRY_PROFILE_SESSION_SAMPLE_RATE", "profile_session_sample_rate"},
		{"SENTRY_PROFILE_LIFECYCLE", "profile_lifecycle"},
	};
	const struct config_origin v1 = {.given_by = "SENTRY_PROFILES_SAMPLE_RATE"};
	const char *value;

	*ret = (struct section_config){.uid = CONFIG_UID_ANY};
	for (size_t i = 0; i < array_size(v); i++) {
		value = get_variable(get, v[i].variable);
		if (value == NULL)
			continue;
		(void)parse_variable(v[i].variable, value, SECTION_TARGET, v[i].key, ret, faults);
		ret->given |= config_key_bit(config_key_find(SECTION_TARGET, v[i].key));
	}
	if (get_variable(get, v1.given_by) != NULL)
		config_fault_add(faults, NULL, &v1, true,
				 "has no effect on continuous profiling: use "
				 "SENTRY_PROFILE_SESSION_SAMPLE_RATE");
}

static const char *const rules[] = {"exe",  "comm",	 "cmdline",  "user",	    "cgroup",
				    "unit", "container", "pid_file", CONFIG_KEY_ENV};

static bool gives_rule(const struct section_config *section)
{
	for (size_t i = 0; i < array_size(rules); i++)
		if (config_section_gives(section, rules[i]))
			return true;
	return section->has_unread_line;
}

/* Returns true if, by their rules, first matches every process that other matches. */
static bool covers(const struct section_config *first, const struct section_config *other)
{
	for (size_t i = 0; i < array_size(rules); i++) {
		if (!config_section_gives(first, rules[i]))
			continue;
		if (!config_section_gives(other, rules[i]) ||
		    !config_value_equal(config_key_find(SECTION_TARGET, rules[i]), first, other))
			return false;
	}
	return match_has_rules(first);
}

static void warn_if_covered(const struct config *c, const struct section_config *section,
			    struct config_faults *faults)
{
	for (const struct section_config *first = c->sections; first < section; first++)
		if (covers(first, section)) {
			config_fault_add(
				faults, c, &section->origin, true,
				"[target \"%s\"]: matches no process: [target \"%s\"] comes "
				"first and matches all of its processes",
				section->name, first->name);
			return;
		}
}

static void check_section(const struct config *c, const struct section_config *section,
			  struct config_faults *faults)
{
	if (section->defect[0] != '\0' && !faults->is_check)
		config_fault_add(faults, c, &section->origin, true,
				 section->is_off
					 ? "[target \"%s\"] is off, and none of its processes is "
					   "profiled, because of this: %s"
					 : "[target \"%s\"] keeps its former settings because of "
					   "this: %s",
				 section->name, section->defect);
	if (!match_has_rules(section) && !gives_rule(section))
		config_fault_add(faults, c, &section->origin, false,
				 "[target \"%s\"] has no rule (exe, comm, "
				 "cmdline, user, cgroup, unit, container, "
				 "pid_file, env NAME): it would match every process",
				 section->name);
	if (section->autostart && section->lifecycle == LIFECYCLE_TRACE)
		config_fault_add(faults, c, config_section_origin(section, "autostart"), true,
				 "[target \"%s\"]: autostart has no effect with "
				 "profile_lifecycle = trace",
				 section->name);
	warn_if_covered(c, section, faults);
}

static void resolve_section(const struct config *c, const struct section_config *defaults,
			    struct section_config *section, struct config_faults *faults)
{
	const char *rate = "profile_session_sample_rate";

	inherit(c, section);
	if (!config_section_gives(section, rate))
		section->session_sample_rate = defaults->session_sample_rate;
	if (!config_section_gives(section, "profile_lifecycle"))
		section->lifecycle = defaults->lifecycle;
	/* If Spotlight is the only destination, all processes are sampled. */
	if (!config_section_gives(section, rate) && !config_section_gives(defaults, rate) &&
	    (c->spotlight[0] == '\0' || section->dsn[0] != '\0'))
		config_fault_add(faults, c, &section->origin, true,
				 "[target \"%s\"] has no %s: the default is 0, so none of its "
				 "processes is profiled",
				 section->name, rate);
	check_section(c, section, faults);
}

/* A process that --pid names is profiled, unless an option says otherwise. */
static void resolve_implicit(const struct section_config *defaults, struct config *c)
{
	struct section_config *section = &c->implicit;
	const char *rate = "profile_session_sample_rate";
	const char *lifecycle = "profile_lifecycle";

	inherit(c, section);
	section->min_age_s = 0;
	section->autostart = true;
	if (!config_section_gives(section, rate))
		section->session_sample_rate =
			config_section_gives(defaults, rate) ? defaults->session_sample_rate : 1;
	if (!config_section_gives(section, lifecycle))
		section->lifecycle = defaults->lifecycle;
}

static bool sends_over(const struct config *c, const char *scheme)
{
	const size_t n = strlen(scheme);

	if (strncmp(c->dsn, scheme, n) == 0)
		return true;
	for (size_t i = 0; i < c->n_sections; i++)
		if (strncmp(c->sections[i].dsn, scheme, n) == 0)
			return true;
	return false;
}

/*
 * Checks the variables that ship's libcurl reads, in libcurl's order. A wrong one is only a
 * warning: the variable can be meant for other programs, and no_proxy can exclude the server.
 */
static void check_proxies(const struct config *c, config_env_fn get, struct config_faults *faults)
{
	const struct {
		const char *scheme, *given, *variables[5];
	} v[] = {
		{"http:", c->http_proxy, {"http_proxy", "all_proxy", "ALL_PROXY", NULL}},
		{"https:",
		 c->https_proxy,
		 {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", NULL}},
	};

	for (size_t i = 0; i < array_size(v); i++) {
		const char *const *name = v[i].variables, *value = NULL;

		if (v[i].given[0] != '\0' || !sends_over(c, v[i].scheme))
			continue;
		while (*name != NULL && (value = get_variable(get, *name)) == NULL)
			name++;
		if (value != NULL && config_proxy_problem(value) != NULL)
			config_fault_add(faults, NULL, &(struct config_origin){.given_by = *name},
					 true, "%s", config_proxy_problem(value));
	}
}

/*
 * As in the broker, where two texts of one DSN have one ship. In the order of the file, so that the
 * same sections are off each time.
 */
static void check_ships(struct config *c, struct config_faults *faults)
{
	const size_t most = CONFIG_SHIPS_MAX - (c->spotlight[0] != '\0');
	uint64_t numbers[CONFIG_SHIPS_MAX];
	size_t n = 0;

	numbers[n++] = dsn_hash_of_text(c->dsn);
	for (size_t i = 0; i < c->n_sections; i++) {
		struct section_config *section = &c->sections[i];
		const uint64_t number = dsn_hash_of_text(section->dsn);
		size_t at = 0;

		while (at < n && numbers[at] != number)
			at++;
		if (at < n)
			continue;
		if (n < most) {
			numbers[n++] = number;
			continue;
		}
		section->is_off = true;
		(void)snprintf(section->defect, sizeof(section->defect),
			       "its DSN is one too many (the limit is %d, with that of [sentry] "
			       "and Spotlight)",
			       CONFIG_SHIPS_MAX);
		config_fault_add(faults, c, &section->origin, !faults->is_check,
				 "[target \"%s\"]: %s: none of its processes is profiled",
				 section->name, section->defect);
	}
}

int config_resolve(struct config *c, config_env_fn get, struct config_faults *faults)
{
	size_t before = faults->n_errors;
	struct section_config defaults;

	resolve_sentry(c, get, faults);
	read_target_defaults(get, &defaults, faults);
	resolve_implicit(&defaults, c);
	for (size_t i = 0; i < c->n_sections; i++)
		resolve_section(c, &defaults, &c->sections[i], faults);
	check_ships(c, faults);
	check_proxies(c, get, faults);
	return faults->n_errors != before ? -EINVAL : 0;
}

void config_implicit_section(const struct config *c, const char *name, struct section_config *ret)
{
	*ret = c->implicit;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
}

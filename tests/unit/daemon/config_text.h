/*
 * Common code of tests of the configuration. read_as() and read_main() read a text into the
 * variable config, and add its faults to the variable faults. Then resolve() completes config, or
 * expect() checks the faults.
 */
#ifndef TESTS_UNIT_DAEMON_CONFIG_TEXT_H
#define TESTS_UNIT_DAEMON_CONFIG_TEXT_H

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"
#include "daemon/config/config_read.h"
#include "daemon/config/config_resolve.h"

#define DSN	 "https://0123456789abcdef@sentry.example.com:8443/a/42"
#define SHOWN	 "https://...@sentry.example.com:8443/a/42"
#define RULES	 "comm = x\nprofile_session_sample_rate = 1\n"
#define TARGET_X "[target \"x\"]\n" RULES

static struct config config;
static struct config_faults faults;

static void setup(void)
{
	config_init(&config);
	config_faults_fini(&faults);
	faults.is_check = true;
}

static void teardown(void)
{
	config_fini(&config);
	config_faults_fini(&faults);
}

/* Reads text as a file at this place, owned by the user of the test and with this st_mode. */
static void read_as(const char *text, enum config_place place, uint32_t mode)
{
	struct config_text t = {"f", place, text, strlen(text), mode, geteuid()};

	config_read_text(&config, &t, &faults);
}

/* Reads text as the main file, with mode 0600. */
static void read_main(const char *text)
{
	read_as(text, CONFIG_MAIN, 0100600);
}

static inline char *nothing(const char *name)
{
	(void)name;
	return NULL;
}

static void show_faults(void)
{
	for (size_t i = 0; i < faults.n; i++)
		(void)fprintf(stderr, "%s\n", faults.v[i].text);
}

/* Completes config, without environment variables. Fails the test on an error. */
static inline void resolve(void)
{
	int r = config_resolve(&config, nothing, &faults);

	show_faults();
	ck_assert_int_eq(r, 0);
}

/* Checks that each line of expected is the beginning of a fault, and that there are no others. */
static void expect(const char *expected)
{
	size_t i = 0;

	show_faults();
	while (*expected != '\0') {
		size_t n = strcspn(expected, "\n");

		ck_assert_uint_lt(i, faults.n);
		ck_assert_msg(strncmp(faults.v[i].text, expected, n) == 0, "'%s' is not '%.*s'",
			      faults.v[i].text, (int)n, expected);
		i++;
		expected += n + (expected[n] == '\n');
	}
	ck_assert_uint_eq(faults.n, i);
}

#endif

/*
 * What is wrong with an option that getopt_long(3) has refused, in words for
 * the line that the user reads. For the command lines of sentry-profd and
 * sentry-profctl.
 *
 * The caller sets opterr to 0, begins the string of short options with ':', and
 * gives each long option a val from OPTION_LONG on, so that optopt tells it
 * from the letter of a short one.
 */
#ifndef DAEMON_COMMON_OPTION_FAULT_H
#define DAEMON_COMMON_OPTION_FAULT_H

#include <getopt.h>
#include <stddef.h>

#define OPTION_LONG 256

/* The longest option of ours has 18 characters; a longer word is cut off. */
struct option_fault {
	char option[32];  /* "--durration", without a value: it may be a DSN */
	char problem[64]; /* "not known: did you mean --duration?" */
};

/*
 * result: what getopt_long returned, '?' or ':'. known: its table, with an
 * entry of zeros at the end.
 */
void option_fault(int result, char *const *argv, const struct option *known,
		  struct option_fault *ret);

/* The same, as a line of the log that begins with where the option stands. */
void option_fault_log(int result, const char *where, char *const *argv, const struct option *known);

/*
 * The one of the n names that is likeliest meant by word: the smallest edit
 * distance (an inserted, removed, replaced character, or two exchanged
 * neighbours count 1 each), if it is at most a third of the word's length.
 * NULL: none. A word of more than 32 bytes is none of ours.
 */
const char *option_nearest(const char *word, const char *const *names, size_t n);

#endif

/*
 * Reads the options of a command line with getopt_long(3). If getopt_long(3) refuses an option,
 * describes what is wrong, and suggests the option that the user probably meant. Used by all
 * programs.
 *
 * A program calls option_next() for each option. Or it sets opterr = 0, calls getopt_long(3)
 * itself, and calls option_fault() when the result is '?' or ':'.
 *
 * In both cases the program begins the string of short options with ':', and gives each long option
 * a val of at least OPTION_LONG. So optopt distinguishes a long option from the letter of a short
 * one.
 */
#ifndef DAEMON_COMMON_OPTION_FAULT_H
#define DAEMON_COMMON_OPTION_FAULT_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#define OPTION_LONG 256

/* The exit status after a command line that is wrong. */
#define EXIT_USAGE 2

/* Describes a refused option. The longest option has 18 characters; a longer word is cut off. */
struct option_fault {
	char option[32];  /* "--durration"; without its value, which may be secret, as a DSN is */
	char problem[64]; /* "not known: did you mean --duration?" */
};

/*
 * Describes the option that getopt_long(3) has just refused. result: the value that it returned,
 * '?' or ':'. known: the table of long options, which ends with an entry of zeros.
 */
void option_fault(int result, char *const *argv, const struct option *known,
		  struct option_fault *ret);

/*
 * Returns the next option as getopt_long(3) does, and -1 after the last. If getopt_long(3) refuses
 * an option, logs a line that begins with command, the name of the command, and returns '?': the
 * caller exits with EXIT_USAGE. letters: the short options. known: the long options, with an entry
 * of zeros at the end. *ret_index: the index of a long option in known; ret_index may be NULL.
 */
int option_next(const char *command, int argc, char *const *argv, const char *letters,
		const struct option *known, int *ret_index);

/*
 * Reads the value of the option --names, "short" or "full". Returns false after a line on stderr,
 * which begins with command, if the value is neither.
 */
bool option_full_names(const char *command, const char *value, bool *ret_full);

/*
 * Returns the one of n names that the user probably meant by word: the name with the smallest edit
 * distance, if that is at most a third of the word's length. Otherwise returns NULL. Each character
 * that is inserted, removed or replaced adds 1 to the distance, and so do two neighbours that are
 * exchanged. Words and names of more than 32 bytes have no match.
 */
const char *option_nearest(const char *word, const char *const *names, size_t n);

#endif

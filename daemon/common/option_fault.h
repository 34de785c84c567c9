/*
 * Reads options with getopt_long(3), describes an option that it has refused, and suggests the
 * option that the user probably meant. For the command lines of all programs.
 *
 * The caller begins the string of short options with ':', and gives each long option a val of
 * at least OPTION_LONG, so that optopt distinguishes a long option from the letter of a short
 * one. A caller of getopt_long also sets opterr to 0.
 */
#ifndef DAEMON_COMMON_OPTION_FAULT_H
#define DAEMON_COMMON_OPTION_FAULT_H

#include <getopt.h>
#include <stddef.h>

#define OPTION_LONG 256

/* The exit status after a command line that is wrong. */
#define EXIT_USAGE 2

/* The longest option has 18 characters; a longer word is cut off. */
struct option_fault {
	char option[32];  /* "--durration"; without a value, which can be a DSN */
	char problem[64]; /* "not known: did you mean --duration?" */
};

/*
 * Fills in *ret. result: what getopt_long returned, '?' or ':'. known: its table, which ends
 * with an entry of zeros.
 */
void option_fault(int result, char *const *argv, const struct option *known,
		  struct option_fault *ret);

/*
 * Returns the next option as getopt_long does, -1 after the last. Logs an option that getopt_long
 * refuses, after where, such as the name of the command, and returns '?'. ret_index: NULL, or set
 * to the entry of known that a long option has.
 */
int option_next(const char *where, int argc, char *const *argv, const char *letters,
		const struct option *known, int *ret_index);

/*
 * Returns the one of n names that word was probably meant to be, or NULL: the name with the
 * smallest edit distance, if that is at most a third of the word's length. An inserted, a
 * removed and a replaced character, and two exchanged neighbours, count 1 each. Words of more
 * than 32 bytes have no match.
 */
const char *option_nearest(const char *word, const char *const *names, size_t n);

#endif

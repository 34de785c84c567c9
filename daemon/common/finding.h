/*
 * The findings of sentry-profctl doctor: lines with a grade, a subject and a text. doctor
 * writes its own and repeats those that the daemon made of itself.
 */
#ifndef DAEMON_COMMON_FINDING_H
#define DAEMON_COMMON_FINDING_H

#include <stdio.h>

#include "lib/base/util.h"

enum finding {
	FINDING_OK,
	FINDING_WARNING, /* profiling works, with limits */
	FINDING_FAULT,	 /* profiling does not work */
};

/* The sizes of the longest subject and text. */
#define FINDING_SUBJECT_SIZE 64
#define FINDING_TEXT_SIZE    10240 /* a path of PATH_MAX, twice, and words */

/*
 * Writes a finding to out, control characters escaped. subject: a word or two. Raises
 * *worst, the gravest grade so far.
 */
void finding_write(FILE *out, enum finding *worst, enum finding finding, const char *subject,
		   const char *format, ...) printf_like(5, 6);

/* Writes a line that finding_write() made, without its newline, once more. Raises *worst. */
void finding_repeat(FILE *out, enum finding *worst, const char *line);

/* Returns the exit status of a program whose gravest finding is worst. */
int finding_status(enum finding worst);

#endif

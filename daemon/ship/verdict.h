/* What a server's answer means for what it was sent. */
#ifndef DAEMON_SHIP_VERDICT_H
#define DAEMON_SHIP_VERDICT_H

#include <stdbool.h>

enum verdict {
	VERDICT_NONE,	 /* there is no answer: to be sent again */
	VERDICT_TAKEN,	 /* 2xx */
	VERDICT_LIMITED, /* 429: taken or not, and never sent again */
	VERDICT_REFUSED, /* anything else: never sent again */
};

/*
 * status 0: there was no answer. retry_5xx: 502, 503 and 504 are none, either.
 * Who is overloaded may say so by these, and a proxy whose server is gone.
 */
enum verdict verdict_of(int status, bool retry_5xx);

/* what: the subject of the line in the log. */
void verdict_tell(enum verdict verdict, const char *what, int status);

#endif

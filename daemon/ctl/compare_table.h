/* The table of sentry-profctl compare: the functions that changed most. */
#ifndef DAEMON_CTL_COMPARE_TABLE_H
#define DAEMON_CTL_COMPARE_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/base/util.h"
#include "proto/export/compare.h"

struct compare_table {
	enum merge_states states; /* which time is compared */
	size_t rows;		  /* at most */
	bool has_colours;	  /* growth is red, shrinking is blue */
};

/*
 * Writes a row for each function whose shares in A and B differ by 0.05
 * percentage points or more, the largest difference first, and one row for all
 * other functions. Returns 0, -ENOMEM or
 * -EIO.
 */
must_check int compare_table_write(const struct compare_table *t, const struct compare *c,
				   FILE *out);

#endif

#include "daemon/credit.h"

/*
 * Less than this part of the ring is not worth waking its writer. At the end of
 * what there is to read, so that it may end its lap early (ring.c); before only
 * if it is much.
 */
#define SHARE	    128
#define EARLY_SHARE 8

bool credit_is_due(struct credit *c, const struct ring_reader *reader,
		   bool at_end)
{
	if (reader->tail - c->given <
	    reader->size / (at_end ? SHARE : EARLY_SHARE))
		return false;
	c->given = reader->tail;
	return true;
}

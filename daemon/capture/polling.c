#include "daemon/capture/polling.h"

bool polling_is_due(struct polling *p)
{
	if (p->left == 0)
		return true;
	p->left--;
	return false;
}

void polling_ended(struct polling *p, bool all_came)
{
	if (all_came)
		p->pause = 0;
	else if (p->pause < POLLING_PAUSE_MAX)
		p->pause = 2 * p->pause + 1;
	p->left = p->pause;
}

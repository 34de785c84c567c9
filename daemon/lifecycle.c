#include "daemon/lifecycle.h"

bool lifecycle_wants(const struct instance *i)
{
	if (!i->is_sampled)
		return false;
	switch (i->config.lifecycle) {
	case LIFECYCLE_MANUAL:
		return i->is_started;
	case LIFECYCLE_TRACE:
		return i->root_spans > 0;
	}
	return false;
}

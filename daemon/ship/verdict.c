#include "daemon/ship/verdict.h"

#include "daemon/common/log.h"

enum verdict verdict_of(int status, bool retry_5xx)
{
	if (status == 0 || (retry_5xx && status >= 502 && status <= 504))
		return VERDICT_NONE;
	if (status == 429)
		return VERDICT_LIMITED;
	return status < 300 ? VERDICT_TAKEN : VERDICT_REFUSED;
}

void verdict_tell(enum verdict verdict, const char *what, int status)
{
	if (verdict == VERDICT_REFUSED)
		log_warning("%s was refused by the server: status %d", what, status);
	else
		log_debug("%s: the server answers %d", what, status);
}

#include "daemon/msg/discard.h"

#include "proto/profile.h"

static const struct {
	const char *name;
	enum client_report_reason report;
} reasons[DISCARD_N] = {
#define X(reason, name, report) [reason] = {name, CLIENT_REPORT_##report},
	DISCARD_LIST(X)
#undef X
		/* No thread has two samples: Sentry's word for it. */
		[PROFILE_NO_SAMPLES] = {"insufficient_data", CLIENT_REPORT_INSUFFICIENT_DATA},
};

const char *discard_name(uint32_t reason)
{
	if (reason < DISCARD_N && reasons[reason].name != NULL)
		return reasons[reason].name;
	return profile_fault_name((enum profile_fault)reason);
}

enum client_report_reason discard_report(uint32_t reason)
{
	return reasons[reason].name != NULL ? reasons[reason].report
					    : CLIENT_REPORT_INTERNAL_SDK_ERROR;
}

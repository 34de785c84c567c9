/*
 * The session's decision: is a service instance profiled at all? Made once for
 * each, by its identity and the rate (profile_session_sample_rate) and nothing
 * else: so it is the same when only the daemon is started anew, and made anew
 * when the service is. The boot id is random, so hosts decide independently of
 * each other.
 */
#ifndef DAEMON_BROKER_TARGETS_SAMPLING_H
#define DAEMON_BROKER_TARGETS_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/siphash.h"
#include "lib/base/util.h"

/* The kernel's boot id, the key of all decisions until the next boot. */
struct sampling_key {
	uint8_t bytes[SIPHASH_KEY_SIZE];
};

/*
 * Of the kernel's text (/proc/sys/kernel/random/boot_id): 32 hex digits,
 * hyphens in between. Returns 0 or -EINVAL.
 */
must_check int sampling_key_parse(const char *text, struct sampling_key *ret);
/* Of the machine. Returns 0 or -errno. */
must_check int sampling_key_read(struct sampling_key *ret);

/*
 * rate: 0.0 (none) to 1.0 (all). Who is sampled at a rate is at every higher
 * one.
 */
bool sampling_decides(const struct sampling_key *key, int32_t pid, uint64_t start_ticks,
		      double rate);

#endif

/*
 * Decides whether a process that a section matches is profiled at all
 * (profile_session_sample_rate). instances.h asks when it adds the process, and when a reload has
 * changed the section. The decision depends only on the pid and start time of the process, the
 * rate, and the key, which is the random boot id of the kernel. So a restart of the daemon does not
 * change the decision, a restart of the process causes a new one, and hosts decide independently of
 * each other.
 */
#ifndef DAEMON_BROKER_TARGETS_SESSION_SAMPLING_H
#define DAEMON_BROKER_TARGETS_SESSION_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/siphash.h"
#include "lib/base/util.h"

/* The kernel's boot id: the key of all decisions until the next boot. */
struct session_sampling_key {
	uint8_t bytes[SIPHASH_KEY_SIZE];
};

/*
 * Reads the key from the kernel's text (/proc/sys/kernel/random/boot_id): 32 hex digits with
 * hyphens in between. Returns 0 or -EINVAL.
 */
must_check int session_sampling_key_parse(const char *text, struct session_sampling_key *ret);
/* Reads the key of this machine. Returns 0, -errno of reading the file, or -EINVAL. */
must_check int session_sampling_key_read(struct session_sampling_key *ret);

/*
 * Returns true if the process is to be profiled. start_ticks: its start time as in /proc/PID/stat.
 * rate: 0.0 (no process) to 1.0 (all). A process that is profiled at one rate is profiled at every
 * higher rate.
 */
bool session_sampling_decides(const struct session_sampling_key *key, int32_t pid,
			      uint64_t start_ticks, double rate);

#endif

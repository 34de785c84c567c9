#include "lib/capture/exec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/capture/proc/proc.h"
#include "lib/capture/proc/status.h"
#include "lib/capture/record.h"
#include "lib/capture/sample.h"
#include "lib/capture/schedule.h"
#include "lib/capture/state.h"
#include "lib/capture/tracees.h"
#include "lib/capture/watched_parts.h"

/* The owner of no file. */
#define NO_USER UINT32_MAX

/*
 * Reads the start of the auxiliary vector. Its size is 0 if the leader is dead and has released its
 * memory.
 */
static enum proc_outcome read_program(const struct traced_process *t, struct exec_auxv *ret)
{
	enum proc_outcome outcome;

	*ret = (struct exec_auxv){0};
	outcome = proc_read(t->proc_fd, "auxv", ret->words, sizeof(ret->words), &ret->size);
	/* AT_NULL: the kernel has not filled in the vector yet (fs/binfmt_elf.c). */
	if (ret->words[0] == 0)
		ret->size = 0;
	return outcome;
}

static enum proc_answer runs_another_program(struct traced_process *t)
{
	struct exec_auxv now;

	if (read_program(t, &now) == PROC_LACK)
		return PROC_UNKNOWN;
	if (now.size == 0)
		return PROC_NO;
	/* The first program is not reported as an exec. */
	if (!t->exec.auxv_known) {
		t->exec.auxv = now;
		t->exec.auxv_known = true;
	}
	return now.size == t->exec.auxv.size &&
			       memcmp(now.words, t->exec.auxv.words, sizeof(now.words)) == 0
		       ? PROC_NO
		       : PROC_YES;
}

bool exec_program_is_known(struct traced_process *t)
{
	return runs_another_program(t) == PROC_NO;
}

/*
 * Returns PROC_YES if the leader in the table is not the current leader. A traced thread stays
 * capture's tracee until capture reaps it or detaches from it; only an exec replaces it by another
 * thread (ptrace(2), "execve(2) under ptrace").
 */
static enum proc_answer lost_leader(const struct traced_process *t)
{
	struct status_state state;

	if (t->capture->options.perf != NULL || tracees_find(t->capture, (uint32_t)t->pid) == NULL)
		return PROC_NO;
	switch (status_read_state(t->proc_fd, (uint32_t)t->pid, &state)) {
	case PROC_READ:
		return !status_is_dead(&state) && state.tracer != (uint32_t)gettid() ? PROC_YES
										     : PROC_NO;
	case PROC_GONE:
		return PROC_NO;
	case PROC_LACK:
		break;
	}
	return PROC_UNKNOWN;
}

static enum proc_answer has_executed(struct traced_process *t)
{
	const enum proc_answer runs_another = runs_another_program(t);

	return runs_another != PROC_NO ? runs_another : lost_leader(t);
}

void exec_check(struct traced_process *t)
{
	/* No event is reported before the first scan is over. */
	switch (t->phase != TRACED_NEW ? has_executed(t) : PROC_UNKNOWN) {
	case PROC_YES:
		exec_happened(t);
		return;
	case PROC_UNKNOWN:
		t->exec.doubt = true;
		return;
	case PROC_NO:
		return;
	}
}

/* Nearly every exec leaves a sign. Without one, capture checks for an exec after so many ticks. */
#define DOUBT_TICKS 512

void exec_check_tick(struct traced_process *t, uint64_t tick, uint64_t previous)
{
	if (!t->exec.doubt && tick / DOUBT_TICKS == previous / DOUBT_TICKS)
		return;
	t->exec.doubt = false;
	exec_check(t);
}

void exec_leader_begins_to_die(struct traced_process *t)
{
	t->exec.leader_dies = true;
}

bool exec_leader_dies(struct traced_process *t)
{
	t->exec.leader_dies = t->exec.leader_dies && runs_another_program(t) != PROC_YES;
	return t->exec.leader_dies;
}

/*
 * The auxiliary vector is made of words of the program's size. Its first type
 * is a small number: read as 64 bits its upper half is 0, and in a vector of
 * 32 bits it has the value of the first entry, of AT_SYSINFO or AT_HWCAP
 * (create_elf_tables() in fs/binfmt_elf.c).
 */
static bool is_32_bit(const struct exec_auxv *p)
{
	return p->size >= sizeof(p->words[0]) && p->words[0] >> 32 != 0;
}

int exec_read_first(struct traced_process *t)
{
	/* The size of a dead leader's vector is 0, so the next program counts as another one. */
	t->exec.auxv_known = read_program(t, &t->exec.auxv) != PROC_LACK;
	/*
	 * The file belongs to the same owner as the files that each sample reads. A process that
	 * may not read it cannot seize a thread either.
	 */
	if (!t->exec.auxv_known && errno == EACCES)
		return -EACCES;
	return is_32_bit(&t->exec.auxv) ? -ENOEXEC : 0;
}

static bool belongs_to_user(const struct traced_process *t, const char *file)
{
	struct stat st;

	return fstatat(t->proc_fd, file, &st, 0) == 0 && st.st_uid == t->exec.files_uid;
}

static bool any_belongs_to_user(const struct traced_process *t, const struct thread *th)
{
	char path[32];

	for (; th != NULL; th = th->next) {
		(void)snprintf(path, sizeof(path), "task/%u/stat", th->tid);
		if (belongs_to_user(t, path))
			return true;
	}
	return false;
}

/*
 * Returns true if the program has other rights than the process had when it became a target. The
 * owner of a thread's files is the process's effective user, or root while a program with other
 * rights than its caller's runs (proc(5), /proc/PID). The files of a leader that has exited, and of
 * a thread that exits, belong to root. So one thread whose files are the user's is enough.
 */
static bool has_other_rights(const struct traced_process *t)
{
	return t->exec.user_known && !belongs_to_user(t, "stat") &&
	       !any_belongs_to_user(t, t->threads.awake) &&
	       !any_belongs_to_user(t, t->threads.asleep);
}

bool exec_compare_rights(struct traced_process *t)
{
	if (t->phase != TRACED_AWAITS_EXEC && t->phase != TRACED_SAMPLED)
		return true;
	t->phase = has_other_rights(t) ? TRACED_AWAITS_EXEC : TRACED_SAMPLED;
	/* Read after the comparison: a later exec has a record before its program's samples. */
	t->observed.compared_ns = t->capture->options.now_ns();
	schedule_target(t);
	return t->phase == TRACED_SAMPLED;
}

void exec_happened(struct traced_process *t)
{
	bool has_rights;

	tracees_forget_all(t);
	t->exec.auxv_known = read_program(t, &t->exec.auxv) == PROC_READ && t->exec.auxv.size > 0;
	t->exec.leader_dies = false;
	t->crash = (struct traced_crash){0};
	/*
	 * The files of a user's process that is not dumpable belong to root, and still do if the
	 * new program has root's rights: the owner does not show it.
	 */
	if (t->exec.user_known && t->exec.uid != t->exec.files_uid)
		t->exec.files_uid = NO_USER;
	has_rights = exec_compare_rights(t);
	record_forget_exits(t);
	t->reader.own_data_size = 0;
	watched_parts_clear(t);
	/* Capture may not have attached to the leader yet. */
	t->scan.tick = 0;
	t->sink->execs++;
	(void)record_event(t, RECORD_EXEC, (uint32_t)t->pid, t->ticks.span.last, record_time(t));
	t->capture->options.event(t->capture->options.ctx, t->id, CAPTURE_EXEC);
	if (!has_rights)
		t->capture->options.event(t->capture->options.ctx, t->id, CAPTURE_OTHER_RIGHTS);
}

#include "daemon/unwind/exec_budget.h"

#include "daemon/common/log.h"
#include "lib/base/token_bucket.h"

bool exec_budget_take(struct exec_budget *b, int32_t pid, uint64_t now_ns)
{
	if (token_bucket_holds(b->full_ns, EXEC_BUDGET_BURST * EXEC_BUDGET_EVERY_NS, now_ns,
			       EXEC_BUDGET_EVERY_NS)) {
		token_bucket_take(&b->full_ns, now_ns, EXEC_BUDGET_EVERY_NS);
		return true;
	}
	if (b->held_back++ == 0)
		log_warning("process %d executes one program after another: only one chunk in "
			    "%llu s is kept, since each program has a chunk of its own; the others "
			    "are discarded",
			    pid, (unsigned long long)(EXEC_BUDGET_EVERY_NS / NS_PER_SEC));
	return false;
}

void exec_budget_begin(struct exec_budget *b, uint64_t time_ns)
{
	b->began_ns = time_ns;
}

void exec_budget_log_end(struct exec_budget *b, int32_t pid, uint64_t now_ns)
{
	if (b->held_back == 0 || now_ns < b->began_ns + EXEC_BUDGET_EVERY_NS)
		return;
	log_warning("process %d has run the same program for %llu s: its chunks are kept again; "
		    "%llu chunk%s of earlier programs %s discarded",
		    pid, (unsigned long long)(EXEC_BUDGET_EVERY_NS / NS_PER_SEC),
		    (unsigned long long)b->held_back, b->held_back == 1 ? "" : "s",
		    b->held_back == 1 ? "was" : "were");
	b->held_back = 0;
}

# Tests for aarch64, in emulated machines (prepare.sh, run.py). The machine's root is the sysroot of
# the cross compiler.
MACHINE_DIR = $(B)/arm64-machine
# PAGES=16k: the machines boot a kernel with pages of 16 KiB.
PAGES =
CROSS_B = $(B)/arm64
SYSROOT = $(abspath $(MACHINE_DIR))/root
CROSS_PKG = $(SYSROOT)/usr/lib/aarch64-linux-gnu/pkgconfig:$(SYSROOT)/usr/share/pkgconfig
CROSS_CC = aarch64-linux-gnu-gcc --sysroot=$(SYSROOT)
# Sources for which there is no musl-gcc, or no sanitizer of clang.
LACKED = $(shell grep -l '^// cc: musl-gcc' tests/targets/*.c) \
	$(wildcard tests/targets/leaks_*clang*.c) tests/unit/unwind/elf/check_leak_runtime.c
CROSS = MACHINE=aarch64 B=$(CROSS_B) MACHINE_DIR=$(MACHINE_DIR) LACKING='$(LACKED)' \
	PKG_CONFIG='PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) PKG_CONFIG_LIBDIR=$(CROSS_PKG) pkg-config' \
	CC='$(CROSS_CC)' GCC='$(CROSS_CC)' CXX='aarch64-linux-gnu-g++ --sysroot=$(SYSROOT)' \
	CLANG='clang --target=aarch64-linux-gnu --sysroot=$(SYSROOT)' AR=aarch64-linux-gnu-ar \
	LD=aarch64-linux-gnu-ld NM=aarch64-linux-gnu-nm OBJCOPY=aarch64-linux-gnu-objcopy

# In the sub-make all of CHECKS are built for aarch64. Those in PURE start no other program.
# Those that take minutes of an emulator's time ($(SLOW)) say nothing about the processor.
STARTS_TARGETS = $(patsubst tests/unit/%.c,$(B)/tests/%, \
	$(shell grep -lE 'record\.h|suite_target' $(UNIT_SOURCES)))
PURE = $(filter-out $(STARTS_TARGETS) $(SLOW) %/check_ipc, \
	$(filter $(addprefix $(B)/tests/,base/% aggregate/% proto/% import/% export/% unwind/%),$(CHECKS)))
IN_MACHINE = $(filter $(addprefix $(B)/tests/,base/% capture/% daemon/% unwind/%), \
	$(filter-out $(PURE),$(CHECKS)))
AARCH64_SCRIPTS = $(patsubst %,tests/integration/test_%.py,children command deaths discovery \
	job_control let_go life_execs life_family life_signals spool stacks transparency_calls \
	transparency_lengths zoo)

# The tests of the short choice say most about the processor.
SHORT_PURE = $(filter $(addprefix $(B)/tests/,unwind/aarch64/% unwind/check_recorded \
	unwind/dwarf/% unwind/elf/% unwind/walk/% unwind/rules/%),$(PURE))
SHORT_SCRIPTS = tests/integration/test_known.py

check-aarch64 check-aarch64-short:
	$(Q)BUILD=$(B) tests/tools/deps.sh aarch64
	$(Q)tests/aarch64/prepare.sh $(MACHINE_DIR) $(PAGES)
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(CROSS) run-$@

# build/sentry-profd*_arm64.deb.
deb-arm64:
	$(Q)BUILD=$(B) tests/tools/deps.sh aarch64
	$(Q)tests/aarch64/prepare.sh $(MACHINE_DIR)
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(CROSS) STRIP=aarch64-linux-gnu-strip \
		DEB_ARCH=arm64 DEBS=$(abspath $(B)) deb

run-check-aarch64: built
	$(Q)tests/aarch64/run.py $(MACHINE_DIR) $(B) $(PAGES:%=--pages %) --user $(PURE) \
		--exact tests/integration/test_known.py --fast $(IN_MACHINE) $(AARCH64_SCRIPTS) \
		--absent $(NOT_HERE)
run-check-aarch64-short: executables $(B)/targets/known $(SHORT_PURE)
	$(Q)tests/aarch64/run.py $(MACHINE_DIR) $(B) $(PAGES:%=--pages %) --user $(SHORT_PURE) \
		--exact $(SHORT_SCRIPTS)

# libunwind and libdwfl against ours. They find no caller by a signed return address, which differ
# removes: so the second run has only the program that signs them.
differ-aarch64:
	$(Q)BUILD=$(B) tests/tools/deps.sh aarch64
	$(Q)tests/aarch64/prepare.sh $(MACHINE_DIR) $(PAGES)
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(CROSS) run-$@
run-differ-aarch64: executables $(B)/oracle/differ $(filter $(B)/targets/zoo_% $(B)/targets/plugins%,$(TARGETS))
	$(Q)tests/aarch64/run.py $(MACHINE_DIR) $(B) $(PAGES:%=--pages %) --cpu max,pauth=off \
		--command 'tests/oracle/differ.py --total 5000 --steps 20'
	$(Q)tests/aarch64/run.py $(MACHINE_DIR) $(B) $(PAGES:%=--pages %) \
		--command 'tests/oracle/differ.py --total 2000 --steps 20 zoo_signed'

.PHONY: differ-aarch64 run-differ-aarch64 deb-arm64 check-aarch64 check-aarch64-short run-check-aarch64 run-check-aarch64-short

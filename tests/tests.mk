# Tests and benchmarks. docs/HACKING.md says what each target holds, and when to run it.
#
#help
#help Tests (make check T=ring: the tests of all targets whose names contain "ring"):
#help make check              what a change may break, in minutes
#help make check-slow         unit tests that take long
#help make check-integration  the programs, with real targets
#help make check-asan         the unit tests and the fuzz corpora with sanitizers
#help make check-sanitized    integration tests and short storms, with sanitized executables
#help make check-aarch64-objects  compiles for aarch64, and unwinds samples of it
#help make check-all          all of these, and the analyzers
#help make check-aarch64      tests in emulated aarch64 machines; check-aarch64-short: some of them
#help make check-pictures     the page in a browser, the formats in their own programs
#help make check-package      the package in a new Debian, which is booted
#help make analyze            clang-tidy, cppcheck and gcc -fanalyzer
#help make valgrind           unit tests under valgrind
#help make fuzz               every parser with random input (T=cfi SECONDS=600)
#help make storm              loads drawn from a seed, a minute each (T=soak HOURS=2, SEED=)
#help make bench              benchmarks (T=, SECONDS=, DOC=)

# Unit tests: one program for each tests/unit/DIR/check_*.c. It links only what its
# directory may use, so that a broken directory does not break the tests of another.
unit_base_LIB = base
unit_capture_OBJ = $(patsubst %,$(B)/obj/tests/unit/capture/%.o, \
	live live_wait)
unit_capture_LIB = capture base
unit_unwind_OBJ = $(patsubst %,$(B)/obj/tests/%.o, \
	fuzz/fuzz unit/unwind/made_up unit/unwind/record) \
	$(B)/obj/daemon/oracle/oracle.o $(B)/obj/lib/capture/ptrace/arch.o \
	$(B)/obj/lib/capture/ptrace/aarch64.o
unit_unwind_LIB = unwind base
unit_unwind_PKG = libdw libelf liblzma libzstd libunwind-ptrace
unit_unwind_LIBS = -liberty
unit_aggregate_OBJ = $(B)/obj/tests/unit/aggregate/fake_unwind.o
unit_aggregate_LIB = aggregate base proto
unit_aggregate_PKG = jansson
unit_proto_LIB = proto base
unit_proto_PKG = jansson
unit_import_LIB = import proto base
unit_import_PKG = jansson zlib
unit_export_LIB = export import ship proto base
unit_export_PKG = jansson zlib libprotobuf-c
unit_client_OBJ = $(patsubst %,$(B)/obj/tests/unit/client/%.o, \
	fake_clock fake_daemon)
unit_client_LIB = client base
unit_client_PKG = jansson
unit_ship_LIB = msg ship proto base
unit_ship_PKG = libcurl zlib libzstd jansson
# All of daemon/ except the main files of the programs: an archive, so that a test links what it
# calls.
$(B)/daemon.a: $(filter-out %/main.o $(B)/obj/daemon/oracle/%,$(DAEMON_OBJS)) $(unit_capture_OBJ)
unit_daemon_LIB = daemon export import aggregate unwind capture ship proto base
unit_daemon_PKG = libdw libelf liblzma libzstd jansson libcurl \
	zlib libseccomp libprotobuf-c ncursesw
unit_daemon_LIBS = -liberty

# Sources that are not built here: a line "// machine: ..." names the only processor for which a
# source is, and a cross build sets LACKING to those for which it lacks a compiler.
OTHER_ARCH = $(if $(filter aarch64,$(MACHINE)),x86_64,aarch64)
LACKING =
NOT_HERE := $(shell grep -rl '^// machine: $(OTHER_ARCH)$$' tests/unit tests/targets) $(LACKING)

UNIT_SOURCES = $(wildcard $(addsuffix /check_*.c,tests/unit/* tests/unit/*/* \
	tests/unit/*/*/*))
UNIT_DIRS = $(sort $(patsubst tests/unit/%/,%,$(dir $(UNIT_SOURCES))))
CHECKS = $(patsubst tests/unit/%.c,$(B)/tests/%,$(filter-out $(NOT_HERE),$(UNIT_SOURCES)))

# A directory, and its first part, which says what it may use.
define unit_rules
$(B)/tests/$(1)/%: $(B)/obj/tests/unit/$(1)/%.o $(B)/obj/tests/unit/main.o \
		$(unit_$(2)_OBJ) $(call archives,$(unit_$(2)_LIB))
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(ALL_CFLAGS) -o $$@ $$^ $$(ALL_LDFLAGS) \
		$$(call pkg,check $(unit_$(2)_PKG)) $(unit_$(2)_LIBS)
endef
$(foreach d,$(UNIT_DIRS),$(eval $(call unit_rules,$(d),$(firstword $(subst /, ,$(d))))))

# The unit tests themselves are not optimized, which takes half the time to compile. _FORTIFY_SOURCE
# needs optimization.
TEST_CFLAGS = -O0 -U_FORTIFY_SOURCE
$(B)/obj/tests/unit/%.o: ALL_CFLAGS += $(TEST_CFLAGS)

# This test starts the process that it tests.
$(B)/tests/ship/check_process $(B)/tests/ship/check_process_messages: | $(B)/sentry-profd-ship

# Programs that the tests profile: tests/targets/*.c and *.cc. A line "// cflags: ..."
# in a source adds flags, at the end of the command so that they may name libraries;
# "// cc: ..." names another compiler: gcc, clang or musl-gcc.
GCC = gcc
CLANG = clang
TARGETS = $(patsubst tests/targets/%.c,$(B)/targets/%, \
		$(filter-out $(NOT_HERE),$(wildcard tests/targets/*.c))) \
	$(patsubst tests/targets/%.cc,$(B)/targets/%,$(wildcard tests/targets/*.cc))
TARGET_HEADERS = $(wildcard tests/targets/*.h)
target_flags = $$(sed -n 's,^// cflags: ,,p' $<)
target_cc = $$(case $$(sed -n 's,^// cc: ,,p' $<) in \
	gcc) echo $(GCC) ;; clang) echo $(CLANG) ;; musl-gcc) echo musl-gcc ;; *) echo $(CC) ;; esac)

$(B)/targets/%: tests/targets/%.c $(TARGET_HEADERS) Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(target_cc) -std=gnu11 -D_GNU_SOURCE -O2 -g -pthread -o $@ $< \
		$(target_flags)

$(B)/targets/%: tests/targets/%.cc Makefile
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) -std=gnu++17 -O2 -g -pthread -o $@ $< $(target_flags)

# This test reads programs with sanitizers.
$(B)/tests/unwind/elf/check_leak_runtime: | $(filter $(B)/targets/leaks_%,$(TARGETS))

# These tests read two libraries.
$(B)/tests/unwind/space/check_versions $(B)/tests/unwind/elf/check_fingerprint: | $(B)/targets/swap_alpha $(B)/targets/swap_beta

# The programs that make bench compares with, and its target.
BENCH = $(patsubst %,$(B)/bench/%,target bare near naive unwind first outage parse)
target_SRC = target gaps waits
bare_SRC = bare tracer
near_SRC = near tracer
naive_SRC = naive tracer
naive_PKG = libunwind-ptrace
unwind_SRC = unwind recorded beside others
unwind_LIB = aggregate unwind ship proto
unwind_PKG = libunwind-ptrace libdw libelf liblzma libzstd jansson zlib
unwind_LIBS = -liberty
first_SRC = first recorded others
first_LIB = unwind
first_PKG = libunwind-ptrace libdw libelf liblzma libzstd
first_LIBS = -liberty
BENCH_OBJS = $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/bench/*.c))
ALL_OBJS += $(BENCH_OBJS)

outage_SRC = outage
outage_LIB = ship
parse_SRC = parse
parse_PKG = jansson

define bench_rules
$(B)/bench/$(1): $$($(1)_SRC:%=$(B)/obj/tests/bench/%.o) \
		$$(call archives,$$($(1)_LIB) capture base)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(ALL_CFLAGS) -pthread -o $$@ $$^ $$(ALL_LDFLAGS) \
		$$($(1)_LIBS) $$(if $$($(1)_PKG),$$(call pkg,$$($(1)_PKG)))
endef
$(foreach b,target bare near naive unwind first outage parse,$(eval $(call bench_rules,$(b))))

# Profiles for the tests of the page, and the packages that these and test_foreign.js
# need.
PICTURES = $(B)/pictures
ALL_OBJS += $(B)/obj/tests/pictures/make_page.o
$(PICTURES)/make_page: $(B)/obj/tests/pictures/make_page.o \
		$(call archives,export import proto base)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) $(call pkg,$(unit_export_PKG))
page_known = known
page_two = two
page_compare = compare
page_ready = ready
page_only_ready = only-ready
page_old = old
page_names = names
page_programs = programs
page_stateless = stateless
page_compare_ready = compare-ready
page_few = many 10000 10 5 html
page_many = many 1000000 100 50 html
page_long = many 1000000 10 480 html
$(PICTURES)/%.html: $(PICTURES)/make_page
	$(call say,PAGE,$@)
	$(Q)$< $(page_$*) >$@
$(PICTURES)/many.json: $(PICTURES)/make_page
	$(call say,PAGE,$@)
	$(Q)$< $(page_many:html=json) >$@
NPM_FILES = $(patsubst %,tests/pictures/%,package.json package-lock.json .npmrc)
$(PICTURES)/node_modules: $(NPM_FILES)
	@mkdir -p $(@D)
	$(call say,NPM,$@)
	$(Q)cp $(NPM_FILES) $(@D) && cd $(@D) && \
		npm ci --no-audit --no-fund --loglevel=error && touch node_modules
pictures: executables $(B)/targets/shares $(PICTURES)/node_modules $(PICTURES)/many.json \
		$(patsubst %,$(PICTURES)/%.html,known two ready only_ready old stateless names programs compare \
			compare_ready few many long)
	@:

# Comparisons with other unwinders at random stops, and step by step through a turn of
# a program; and the recorder of the samples in tests/golden/stacks.
ORACLE = $(patsubst %,$(B)/oracle/%,differ record steps births)
ORACLE_OBJS = $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/oracle/*.c))
ALL_OBJS += $(ORACLE_OBJS)
$(ORACLE): $(B)/oracle/%: $(B)/obj/tests/oracle/%.o \
		$(B)/obj/tests/oracle/thread.o \
		$(filter-out %/main.o,$(sentry-profd-oracle_OBJ)) \
		$(call archives,$(sentry-profd-oracle_LIB))
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) \
		$(call pkg,$(sentry-profd-oracle_PKG) jansson) $(sentry-profd-oracle_LIBS)

# Fuzz targets, tests/fuzz/fuzz_NAME.c: make check replays their corpus under the
# sanitizers, make fuzz runs them with clang's libFuzzer.
FUZZ = $(patsubst tests/fuzz/fuzz_%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_MAIN = $(B)/obj/tests/fuzz/replay.o
FUZZ_LDFLAGS =
FUZZ_OBJS = $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/fuzz/*.c))
ALL_OBJS += $(FUZZ_OBJS)
# These parsers belong to programs, not to a library.
$(B)/fuzz/control: $(B)/obj/daemon/broker/control/control_message.o
$(B)/fuzz/symbolized: $(B)/obj/daemon/msg/symbolized.o $(B)/obj/lib/aggregate/names.o
# The whole broker.
$(B)/fuzz/messages: $(filter-out %/main.o,$(sentry-profd_OBJ)) $(call objects,daemon/msg) \
		$(B)/obj/lib/capture/counters.o
$(B)/fuzz/%: $(B)/obj/tests/fuzz/fuzz_%.o $(B)/obj/tests/fuzz/fuzz.o \
		$(FUZZ_MAIN) $(call archives,config process common \
		unwind export import ship proto base)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(FUZZ_LDFLAGS) -o $@ $(filter %.o,$^) \
		$(filter %.a,$^) $(ALL_LDFLAGS) \
		$(call pkg,$(unit_unwind_PKG) $(unit_ship_PKG) libprotobuf-c) \
		$(unit_unwind_LIBS)

# aarch64. Everything is compiled for it, except files that need libunwind's headers
# for it: clang is a cross compiler, libc6-dev-arm64-cross has the C library's headers,
# and the headers of other libraries are the same. Its recorded samples are unwound
# here.
AARCH64_OBJS = $(filter-out $(B)/obj/daemon/oracle/%,$(DAEMON_OBJS)) \
	$(foreach a,$(ARCHIVES),$(call objects,$(a)))
aarch64-objs: $(AARCH64_OBJS)
	@:
AARCH64_CC = clang --target=aarch64-linux-gnu -Qunused-arguments \
	-isystem /usr/aarch64-linux-gnu/include -idirafter /usr/include \
	-idirafter /usr/include/x86_64-linux-gnu
AARCH64_CHECKS = $(addprefix $(B)/tests/unwind/, \
	cpu/check_cpu_aarch64 check_recorded dwarf/check_rule elf/check_plt)

executables: $(BINS)
	@:
built: $(BINS) $(CLIENT_LIBRARY) $(CHECKS) $(TARGETS) $(BENCH) $(ORACLE)
	@:

# The unit tests under AddressSanitizer and UndefinedBehaviorSanitizer. Reports need line numbers,
# and the normal build has the warnings.
SANITIZE = -w -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all
# Left out: tests that measure memory (the sanitizer's would count), that interrupt
# other programs thousands of times (minutes with it), and that end threads by the bare
# system call (it gets confused).
NO_ASAN = $(B)/tests/aggregate/check_bulk $(B)/tests/capture/restart/check_repair \
	$(B)/tests/capture/restart/check_resume $(B)/tests/client/check_calls \
	$(B)/tests/daemon/unwind/check_resource_limits \
	$(B)/tests/unwind/image/check_cache
ASAN_CHECKS = $(sort $(filter-out $(NO_ASAN),$(CHECKS)))
# Static analysis of daemon/, lib/ and proto/. Each file is checked by clang-tidy (.clang-tidy),
# with clang's warnings, and by the analyzer of gcc. ANALYSIS is deep or shallow: clang's analyzer
# follows fewer paths and calls, and takes a tenth of the time.
ANALYSIS = deep
TIDY_FLAGS = -Wreserved-identifier -Wreserved-macro-identifier \
	-Xclang -analyzer-config -Xclang mode=$(ANALYSIS)
# gcc 12 does not see a pointer that a list or a caller's struct keeps. LeakSanitizer and
# valgrind find leaks in the unit tests. Not optimized: code that only an optimizer removes is
# analyzed, too, in less time.
GCC_ANALYZER = -O0 -g0 -U_FORTIFY_SOURCE -fanalyzer -Wno-analyzer-malloc-leak
CHECKED = $(B)/checked/$(ANALYSIS)
PRODUCT_OBJS := $(sort $(filter $(addprefix $(B)/obj/,daemon/% lib/% proto/%),$(ALL_OBJS)))

$(CHECKED)/%.ok: %.c .clang-tidy Makefile $(B)/flags \
		| $(GENERATED)/pprof.pb-c.h $(GENERATED)/capture_filter.h
	@mkdir -p $(@D)
	$(call say,CHECK,$<)
	$(Q)clang-tidy --quiet $< -- $(ALL_CFLAGS) $(DAEMON_CFLAGS) -I$(GENERATED) \
		$(TIDY_FLAGS) 2>$(@:.ok=.err) || { cat $(@:.ok=.err); exit 1; }
	$(Q)$(CC) $(ALL_CFLAGS) -Werror $(DAEMON_CFLAGS) -I$(GENERATED) $(GCC_ANALYZER) \
		-MMD -MP -MF $(@:.ok=.d) -MT $@ -S -o /dev/null $<
	@touch $@

# Left out: severities style, performance and portability. cppcheck has no description of jansson.
$(B)/checked/cppcheck.ok: $(PRODUCT_OBJS:$(B)/obj/%.o=%.c) Makefile \
		| $(GENERATED)/pprof.pb-c.h $(GENERATED)/capture_filter.h
	@mkdir -p $(@D)
	$(call say,CPPCHECK,daemon lib proto)
	$(Q)cppcheck --quiet --error-exitcode=1 --inline-suppr --enable=warning \
		--std=c11 --library=posix,gnu -I. $(DAEMON_CFLAGS) \
		-D_GNU_SOURCE -D__linux__ -D__$(MACHINE)__ -D__LP64__ -D__GNUC__=12 \
		-DSENTRY_PROFD_VERSION='"$(VERSION)"' \
		'-Djson_array_foreach(a,i,v)=while ((v = json_array_get(a, i = 0)))' \
		$(filter %.c,$^)
	@touch $@

analyzed: $(B)/checked/cppcheck.ok $(PRODUCT_OBJS:$(B)/obj/%.o=$(CHECKED)/%.ok)
	@:

analyze:
	$(Q)BUILD=$(B) tests/tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory $(JOBS) analyzed

# The unit tests under valgrind, which finds reads of uninitialised memory: AddressSanitizer does
# not. Left out: NO_ASAN; tests that trace (ship/check_spool, too) or hang there (check_child,
# check_hints, check_outbox); tests of what valgrind 3.19 lacks: landlock, pidfd_open(2),
# openat2(2), userfaultfd(2), and all that capget(2) writes; and check_sandbox, which calls
# execve(2) with a wrong pointer.
VALGRIND = valgrind -q --error-exitcode=1 --leak-check=full --show-leak-kinds=definite \
	--errors-for-leak-kinds=definite
NO_VALGRIND = $(NO_ASAN) $(B)/tests/capture/% $(B)/tests/ship/check_spool $(addprefix $(B)/tests/daemon/, \
	broker/discovery/check_identify broker/files/check_files \
	broker/targets/check_attach broker/targets/check_target_usage capture/% \
	broker/children/check_child common/check_privileges common/check_sandbox \
	process/check_act_as process/check_process_root process/check_threads \
	ship/check_outbox ship/check_spool_dirs unwind/check_hints)
VALGRIND_CHECKS = $(filter-out $(NO_VALGRIND),$(CHECKS))
$(B)/checked/valgrind/%.ok: $(B)/tests/%
	@mkdir -p $(@D)
	$(call say,VALGRIND,$<)
	$(Q)$(VALGRIND) $< >$(@:.ok=.log) 2>&1 || { cat $(@:.ok=.log); exit 1; }
	@touch $@
valgrinded: $(foreach t,$(VALGRIND_CHECKS:$(B)/tests/%=$(B)/checked/valgrind/%.ok), \
		$(if $(or $(findstring $(T),$(t)),$(if $(T),,all)),$(t)))
	@:
valgrind: $(TARGETS)
	$(Q)BUILD=$(B) tests/tools/deps.sh analyze
	$(Q)$(MAKE) --no-print-directory $(JOBS) -k valgrinded

# The sanitized executables: the variables of the sub-make. The integration tests take
# everything else from the normal build.
SANITIZED = B=$(B)/asan CFLAGS='$(SANITIZE)' EXE_EXTRA=$(B)/asan/obj/tests/tools/sanitized.o
NORMAL = targets bench debian libsentry_profd.so libsentry_profd.so.$(SOVERSION) \
	libsentry_profd.a
define sanitized
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(1) $(SANITIZED)
	$(Q)for n in $(NORMAL); do \
		rm -rf $(B)/asan/$$n && ln -s ../$$n $(B)/asan/$$n || exit; \
	done
endef
FOR_AARCH64 = B=$(B)/for-aarch64 CFLAGS='$(SANITIZE) -DUNWIND_FOR_AARCH64'

# The tests that each target runs, as tests/tools/run_tests.py takes them: DIRECTORY:SCRIPT is a
# script for the executables in that directory. docs/HACKING.md says when to run which target.
#
# Unit tests that take seconds of CPU time: loads, thousands of interrupts and unwound stacks.
SLOW = $(addprefix $(B)/tests/,aggregate/check_bulk capture/check_capture capture/check_sleepers \
	capture/check_record capture/restart/check_repair capture/restart/check_resume \
	daemon/unwind/check_hints unwind/walk/check_walk)
INTEGRATION = $(sort $(wildcard tests/integration/test_*.py tests/integration/test_*.sh))
# Each program, output, command of README, and promise of SAFETY that takes less than 15 seconds.
QUICK = $(patsubst %,tests/integration/test_%,$(addsuffix .py,command config control convert \
	crash delivery_local doctor documents errors leak_check life_family life_jobs \
	life_signal_storm life_signals metrics monitoring notify output privileges profctl python record \
	running secrets send service stacks stats transparency_calls) demo.sh install.sh)
# These run code of the product that no unit test runs, by a measurement of the lines that each
# test covers; children, crash and deaths are about moments that differ from run to run.
SANITIZED_SCRIPTS = $(patsubst %,$(B)/asan:tests/integration/test_%.py,32bit broken_rules broker \
	children compare completion config convert crash_calls deaths errors leak_check life_execs log \
	metrics privileges progress rate_limit record rests running scenario send spotlight stripped \
	symbolize top uring_worker v1)

tests_check = $(sort $(filter-out $(SLOW),$(CHECKS)) $(FUZZ) $(wildcard tests/arch/test_*.py)) \
	$(QUICK)
tests_check-slow = $(SLOW)
tests_check-integration = $(INTEGRATION)
tests_check-asan = $(ASAN_CHECKS:$(B)/%=$(B)/asan/%) $(FUZZ:$(B)/%=$(B)/asan/%)
tests_check-sanitized = $(B)/asan:tests/storm/storm.py $(SANITIZED_SCRIPTS)
tests_check-aarch64-objects = $(AARCH64_CHECKS:$(B)/%=$(B)/for-aarch64/%)
# The sets with the longest tests first: at the end of a run no processor waits for one test.
SETS = check check-sanitized check-slow check-integration check-asan check-aarch64-objects
# Without those of check, which has run before.
tests_check-all = $(filter-out $(tests_check),$(foreach s,$(SETS),$(tests_$(s))))

# With T the tests whose names contain it; make check takes them from all sets.
SET = check
named = $(subst :,/,$(subst tests/,,$(1:$(B)/%=%)))
ALL_TESTS = $(if $(filter check,$(SET)),$(tests_check) $(tests_check-all),$(tests_$(SET)))
TESTS = $(if $(T),$(foreach t,$(ALL_TESTS),$(if $(findstring $(T),$(call named,$(t))),$(t))), \
	$(tests_$(SET)))

# What TESTS need. `built` is all of the normal build, which scripts may use.
HAVE_SCRIPTS = $(filter tests/% $(B)/asan:%,$(TESTS))
UNITS = $(filter $(B)/tests/% $(B)/fuzz/%,$(TESTS))
ASAN_UNITS = $(strip $(filter $(B)/asan/%,$(TESTS)) $(if $(filter $(B)/asan:%,$(TESTS)),executables))
AARCH64_UNITS = $(filter $(B)/for-aarch64/%,$(TESTS))
tests-built: $(UNITS) $(if $(HAVE_SCRIPTS),built,$(TARGETS))
	@:

# make check installs its tools before it builds, so it calls itself; it uses all
# processors unless -j sets another number.
JOBS = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
T =
define run_set
	$(Q)BUILD=$(B) tests/tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory $(JOBS) tests-built SET=$(SET) T='$(T)'
	$(if $(ASAN_UNITS),$(call sanitized,$(ASAN_UNITS)))
	$(if $(AARCH64_UNITS),$(Q)$(MAKE) --no-print-directory $(JOBS) $(AARCH64_UNITS) $(FOR_AARCH64))
	$(Q)BUILD=$(B) tests/tools/run_tests.py '' $(TESTS)
endef

# Everything is compiled for aarch64, not optimized: nobody runs it. Recorded samples are unwound
# with that build's rules.
make_aarch64_objects = $(MAKE) --no-print-directory $(JOBS) aarch64-objs B=$(B)/aarch64 \
	CC='$(AARCH64_CC)' MACHINE=aarch64 CFLAGS=-O0

$(SETS) check-all: SET = $@
check check-slow check-integration check-asan check-sanitized:
	$(run_set)
check-aarch64-objects:
	$(Q)$(make_aarch64_objects)
	$(run_set)
check-all:
	$(Q)$(MAKE) --no-print-directory check
	$(Q)$(MAKE) --no-print-directory $(JOBS) analyzed ANALYSIS=shallow
	$(Q)BUILD=$(B) tests/tools/deps.sh aarch64
	$(Q)tests/aarch64/prepare.sh $(MACHINE_DIR) || [ $$? = 77 ]
	$(Q)if [ -e $(MACHINE_DIR)/prepared ]; then \
		$(MAKE) --no-print-directory $(JOBS) $(CROSS) run-check-aarch64-short; \
	else $(make_aarch64_objects); fi
	$(run_set)
	$(Q)tests/tools/lines.py

# The page in a browser, and the export formats in their own programs. Screenshots are
# in build/pictures.
check-pictures:
	$(Q)tests/tools/deps.sh pictures
	$(Q)$(MAKE) --no-print-directory $(JOBS) pictures
	$(Q)BUILD=$(B) NODE_PATH=$(abspath $(PICTURES))/node_modules \
		tests/tools/run_tests.py '$(T)' $(sort $(wildcard tests/pictures/test_*))

# Each storm whose name contains T, for SECONDS, or for HOURS. Alone, these storms have
# ordinary executables: sanitized ones use other memory, and other moments.
ORDINARY = kills soak spool
storm: SECONDS = 60
storm: HOURS =
storm:
	$(Q)tests/tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(BINS) $(TARGETS)
	$(if $(filter $(ORDINARY),$(T)),,$(call sanitized,executables fuzzers))
	$(Q)BUILD=$(if $(filter $(ORDINARY),$(T)),$(B),$(B)/asan) tests/storm/storm.py '$(T)' \
		$(if $(HOURS),$$(awk 'BEGIN { print int($(HOURS) * 3600) }'),$(SECONDS))

benched: $(BINS) $(BENCH)
	@:

# Seconds of each measurement; with 1.5 everything takes about five minutes.
SECONDS = 1.5
DOC =
bench:
	$(Q)tests/tools/deps.sh bench
	$(Q)$(MAKE) --no-print-directory $(JOBS) benched
	$(Q)BUILD=$(B) tests/bench/bench.py --seconds $(SECONDS) \
		$(if $(DOC),--doc $(DOC)) $(T)

# Fuzzes each target whose name contains T for SECONDS. New inputs are kept in
# $(B)/fuzzer/found, where the next run begins; failures are in $(B)/fuzzer.
fuzz: SECONDS = 60
fuzz:
	$(Q)tests/tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory $(JOBS) fuzzers B=$(B)/fuzzer CC=clang \
		CFLAGS='$(SANITIZE) -U_FORTIFY_SOURCE -fsanitize=fuzzer-no-link' \
		FUZZ_MAIN= FUZZ_LDFLAGS=-fsanitize=fuzzer
	$(Q)BUILD=$(B) tests/tools/fuzz.sh '$(T)' $(SECONDS)

fuzzers: $(FUZZ)
	@:

demo:
	$(Q)tests/tools/deps.sh demo
	$(Q)$(MAKE) --no-print-directory $(JOBS) all
	$(Q)BUILD=$(B) tests/tools/demo.sh

# Installs the package in a Debian of its own, which is made once, and boots it.
NEWER = 99.0.0
check-package:
	$(Q)tests/tools/deps.sh package
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(BINS) $(B)/targets/shares
	$(Q)mkdir -p $(B)/package && rm -f $(B)/package/*.deb
	$(Q)$(MAKE) --no-print-directory deb
	$(Q)$(MAKE) --no-print-directory deb VERSION=$(NEWER)
	$(Q)mv $(B)/sentry-profd_$(VERSION)_*.deb \
		$(B)/sentry-profd_$(NEWER)_*.deb $(B)/package
	$(Q)BUILD=$(B) tests/tools/package.py

.PHONY: $(SETS) check-all check-pictures check-package executables built tests-built pictures \
	aarch64-objs analyze analyzed valgrind valgrinded storm bench benched fuzz fuzzers demo

-include $(PRODUCT_OBJS:$(B)/obj/%.o=$(CHECKED)/%.d)
-include $(patsubst $(B)/tests/%,$(B)/obj/tests/unit/%.d,$(CHECKS))
-include $(patsubst %.o,%.d,$(foreach d,$(UNIT_DIRS),$(unit_$(d)_OBJ)))

# `make run` and `make test` are the two commands; both set up a bare Debian machine by themselves.
PRESET ?= dev
JOBS ?= 2

.PHONY: run test build check bench fuzz clean

run: build
	scripts/run

build:
	scripts/install-packages
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target weird weirctl

# PRESET=asan or PRESET=tsan runs the same suite under the sanitizers.
test:
	scripts/install-packages test
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) -j $(JOBS)
	scripts/fuzz build
	ctest --preset $(PRESET)

check:
	scripts/install-packages test
	scripts/check

bench: build
	scripts/install-packages bench
	bench/compare

clean:
	rm -rf build

# `make run` and `make test` are the two commands; both install what a bare Debian machine lacks.
PRESET ?= dev
JOBS ?= 2

.PHONY: run test integration build package check bench simulate clean

run: build
	scripts/run

build:
	scripts/install-packages
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target weird weirctl

# PRESET=asan or PRESET=tsan runs the same suite under the sanitizers.
test:
	scripts/install-packages build test
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) -j $(JOBS)
	scripts/fuzz build
	@{ [ $(PRESET) = dev ] && integration/with-engine true; } || echo "The cluster in containers is NOT tested."
	ctest --preset $(PRESET)

# A whole cluster in containers, broken in every way that containers allow; `make test` does it too where Docker is there.
integration:
	scripts/install-packages build test containers
	integration/with-engine true
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS) --target integration_tests
	ctest --preset dev -L integration --no-tests=error

# More of what `make test` does: SEEDS of the simulation, and then the deliberate bugs.
SEEDS ?= 20000
simulate:
	scripts/install-packages build test
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) -j $(JOBS) --target simulation
	build/$(PRESET)/simulation --seeds $(SEEDS)
	build/$(PRESET)/simulation --bugs

# A Debian package of the release build, in build/release.
package: build
	scripts/install-packages package
	cpack --config build/release/CPackConfig.cmake -G DEB -B build/release

check:
	scripts/install-packages build test
	scripts/check

bench:
	scripts/install-packages build bench
	cmake --preset release -DWEIR_BENCH=ON
	cmake --build --preset release -j $(JOBS) --target weird weirctl micro_bench throttle_bench
	bench/all

clean:
	rm -rf build

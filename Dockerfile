# Every image of docker-compose.yml, and those that the integration tests add, one target each. Only Debian's packages.
# The older of Docker's builders makes all stages above the one it is asked for, so the long one comes behind all
# that need not wait for it.

FROM debian:bookworm-slim AS etcd
RUN apt-get update && apt-get install -y --no-install-recommends etcd-server etcd-client \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o etcd -g etcd -m 700 /data
USER etcd
VOLUME /data
ENV ETCD_DATA_DIR=/data
EXPOSE 2379 2380 2381
HEALTHCHECK --interval=3s --timeout=3s --retries=5 CMD ["etcdctl", "endpoint", "health"]
ENTRYPOINT ["etcd"]

FROM debian:bookworm-slim AS haproxy
RUN apt-get update && apt-get install -y --no-install-recommends haproxy && rm -rf /var/lib/apt/lists/*
USER haproxy
EXPOSE 4040 8405
ENTRYPOINT ["haproxy", "-db", "-f", "/etc/haproxy/haproxy.cfg"]

FROM debian:bookworm-slim AS prometheus
RUN apt-get update && apt-get install -y --no-install-recommends prometheus && rm -rf /var/lib/apt/lists/*
USER prometheus
EXPOSE 9090
ENTRYPOINT ["prometheus", "--config.file=/etc/prometheus/prometheus.yml"]

FROM debian:bookworm-slim AS demo-upstream
RUN apt-get update && apt-get install -y --no-install-recommends python3 && rm -rf /var/lib/apt/lists/*
COPY scripts/demo-upstream /usr/bin/demo-upstream
USER nobody
EXPOSE 9000
STOPSIGNAL SIGINT
ENTRYPOINT ["demo-upstream", "0.0.0.0:9000"]

# What breaks the network of another container, from within it: the integration tests'.
FROM debian:bookworm-slim AS network-faults
RUN apt-get update && apt-get install -y --no-install-recommends iptables python3-minimal \
 && rm -rf /var/lib/apt/lists/*
COPY integration/network-fault /usr/bin/network-fault

# What makes clocks wrong: the integration tests' too.
FROM debian:bookworm-slim AS faketime
RUN apt-get update && apt-get install -y --no-install-recommends libfaketime && rm -rf /var/lib/apt/lists/* \
 && cp /usr/lib/*/faketime/libfaketime.so.1 / && mkdir /clock

# What weird is run with: the shared libraries that it needs, and not root.
FROM debian:bookworm-slim AS runtime
RUN apt-get update && apt-get install -y --no-install-recommends \
      libgrpc++1.51 libprometheus-cpp-core1.0 libspdlog1.10 libyaml-0-2 \
 && rm -rf /var/lib/apt/lists/*
USER 65532:65532
EXPOSE 4040 9464
HEALTHCHECK --interval=3s --timeout=3s --retries=5 CMD ["weirctl", "ready"]
ENTRYPOINT ["weird"]

# Weir, as its Debian package: what is shipped is what runs in containers.
FROM debian:bookworm-slim AS build
COPY scripts/install-packages /weir/scripts/
RUN /weir/scripts/install-packages build package && rm -rf /var/lib/apt/lists/*
WORKDIR /weir
COPY CMakeLists.txt CMakePresets.json Makefile ./
COPY cmake cmake
COPY proto proto
COPY coordination coordination
COPY proxy proxy
COPY daemon daemon
COPY packaging/CMakeLists.txt packaging/
RUN make build
# A change of these compiles nothing anew.
COPY packaging packaging
COPY README.md CHANGELOG.md ./
RUN make package && dpkg-deb -x build/release/weir_*.deb /package

FROM runtime AS weird
COPY --from=build /package/usr/bin /usr/bin

# A weird whose clocks can be set.
FROM weird AS clocks
COPY --from=faketime /libfaketime.so.1 /usr/lib/
COPY --from=faketime --chown=65532:65532 /clock /clock

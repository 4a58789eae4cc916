# The service as a user without rights, with the two programs of its built-in catalogue and with Slurm's clients.
# `--build-arg SUITE=trixie` takes another release of Debian, with another version of Slurm: that of the cluster, or up to two releases older.
ARG SUITE=bookworm

FROM rust:1.95-${SUITE} AS build
WORKDIR /build
COPY . .
RUN cargo build --release --locked --bin bespeak

FROM debian:${SUITE}-slim
# tini reaps what jobs leave behind; bubblewrap isolates jobs where the container may make user namespaces. Slurm's clients find a cluster
# by /etc/slurm and the socket in /run/munge, both mounted from a machine of the cluster; munged itself does not run here.
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates slurm-client tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --create-home --home-dir /var/lib/bespeak bespeak \
 && install -d -o bespeak -g bespeak -m 0700 /var/lib/bespeak/data
COPY --from=build /build/target/release/bespeak /usr/local/bin/bespeak
USER bespeak
WORKDIR /var/lib/bespeak
# The address is the container's own: publish the port where only a proxy with TLS reaches it, or name a certificate in [tls].
ENV BESPEAK_LISTEN=0.0.0.0:8080 \
    BESPEAK_INSECURE=true \
    BESPEAK_DATA_DIR=/var/lib/bespeak/data
VOLUME /var/lib/bespeak/data
EXPOSE 8080
STOPSIGNAL SIGTERM
# By the environment of the service, so with TLS where its configuration (BESPEAK_CONFIG) has that.
HEALTHCHECK --interval=5s --timeout=6s --start-period=20s --retries=6 CMD ["bespeak", "health"]
ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["bespeak", "serve"]

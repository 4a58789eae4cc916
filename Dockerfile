# The service alone, as a user without rights, with the two programs of its built-in catalogue.

FROM rust:1.95-bookworm AS build
WORKDIR /build
COPY . .
RUN cargo build --release --locked --bin bespeak

FROM debian:bookworm-slim
# tini reaps what jobs leave behind; curl asks whether it is ready; bubblewrap isolates jobs where the container may make user namespaces.
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates curl tini \
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
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=6 \
  CMD ["curl", "--fail", "--silent", "--output", "/dev/null", "http://127.0.0.1:8080/readyz"]
ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["bespeak", "serve"]

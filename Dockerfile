FROM node:24-slim AS base
WORKDIR /app
ENV NEXT_TELEMETRY_DISABLED=1

FROM base AS build
COPY package.json package-lock.json ./
# The workspace that generates the types of the API client.
COPY tests/api/generator/package.json ./tests/api/generator/
RUN npm ci
COPY . .
# The repository is not in the image: --build-arg COMMIT=$(git rev-parse HEAD) names the commit.
ARG COMMIT=
RUN BUILD_STANDALONE=1 npm run build && node lib/cli/database-template.ts

FROM base AS dependencies
COPY package.json package-lock.json ./
RUN npm ci --omit=dev

# Pays batch jobs. Runs from the sources, as Node 24 does.
FROM base AS relay
ENV NODE_ENV=production LISTEN_HOST=0.0.0.0 RELAY_PORT=3100
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json ./
COPY drizzle ./drizzle
COPY lib ./lib
ARG VERSION=1.0.0
ARG COMMIT=
ENV COMMIT=${COMMIT}
LABEL org.opencontainers.image.title="confidential-payroll" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${COMMIT}" \
  org.opencontainers.image.licenses="MIT"
USER node
EXPOSE 3100
HEALTHCHECK --start-period=30s --interval=10s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.RELAY_PORT}/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "lib/cli/relay.ts"]

# The service: what is built without a target.
FROM base AS web
ENV NODE_ENV=production HOSTNAME=0.0.0.0 LISTEN_HOST=0.0.0.0 PORT=3000 DATA_DIR=/data
# The C library gives memory back that the embedded database took to start.
ENV MALLOC_ARENA_MAX=2 MALLOC_TRIM_THRESHOLD_=131072
COPY --from=build /app/.next/standalone ./
COPY --from=build /app/.next/static ./.next/static
# With the source maps, which a standalone build leaves out: stack traces in the log name source files.
COPY --from=build /app/.next/server ./.next/server
# The first start of the embedded database is a copy of this one.
COPY --from=build --chown=node:node /app/.next/cache/database ./.next/cache/database
# What the embedded ledger and its relay check and prove with: a build takes none of it along.
COPY lib/prover/circuits ./lib/prover/circuits
COPY lib/prover/reference-string ./lib/prover/reference-string
COPY --from=dependencies /app/node_modules/@aztec ./node_modules/@aztec
COPY --from=dependencies /app/node_modules/@noir-lang ./node_modules/@noir-lang
COPY --from=dependencies /app/node_modules/comlink ./node_modules/comlink
COPY --from=dependencies /app/node_modules/debug ./node_modules/debug
COPY --from=dependencies /app/node_modules/ms ./node_modules/ms
COPY --from=dependencies /app/node_modules/fflate ./node_modules/fflate
COPY --from=dependencies /app/node_modules/msgpackr ./node_modules/msgpackr
COPY --from=dependencies /app/node_modules/pako ./node_modules/pako
COPY --from=dependencies /app/node_modules/tslib ./node_modules/tslib
RUN install -d -o node -g node -m 700 /data
ARG VERSION=1.0.0
ARG COMMIT=
ENV COMMIT=${COMMIT}
LABEL org.opencontainers.image.title="confidential-payroll" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${COMMIT}" \
  org.opencontainers.image.licenses="MIT"
USER node
EXPOSE 3000
HEALTHCHECK --start-period=30s --interval=10s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/api/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "server.js"]

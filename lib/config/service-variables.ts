import { z } from 'zod'
import {
  count,
  databaseUrl,
  host,
  ip,
  list,
  origin,
  page,
  secret,
  secureUrl,
  seed,
  sender,
  smtpUrl,
  text,
} from './shapes.ts'

/** The addresses of the service. */
export const PLACE = {
  PUBLIC_URL: origin.optional().meta({
    about:
      'The origin at which clients reach the service, without a path. It is the SEP-10 home domain (at most 59 bytes), the issuer of sessions, and the required origin of the dashboard’s forms. No request header can change it.',
    unset: '`http://localhost:{PORT}`; on Vercel the production host, or for a preview the host of its branch',
    example: 'https://payroll.example.com',
  }),
  FRONTEND_URL: page.optional().meta({
    about: 'The URL of the payroll frontend. Invite links lead to its `/invite/` pages.',
    unset: '`PUBLIC_URL`, which serves a simple invite page',
    example: 'https://pay.example.com',
  }),
  CORS_ORIGINS: list.pipe(z.array(origin)).optional().meta({
    about:
      'The origins whose pages may read responses, separated by commas. `/.well-known/stellar.toml` and `/api/auth/sep10` are always open to every origin, as SEP-1 and SEP-10 require.',
    unset: 'every origin',
    example: 'https://pay.example.com,http://localhost:5173',
  }),
  PORT: count(0, 65_535).default(3000).meta({ about: 'The port of `npm start`.' }),
  KEEP_ALIVE_TIMEOUT: count(1_000, 3_600_000).default(65_000).meta({
    about:
      'The milliseconds for which an idle connection stays open, as Next’s standalone server reads it: longer than a proxy in front keeps it, or it may be closed just as it is used.',
  }),
  LISTEN_HOST: ip.optional().meta({
    about:
      'The address on which the service and the relay listen. `127.0.0.1` includes `[::1]`. With an embedded ledger, anyone who can reach the service can get a session for any email. A standalone `server.js` takes its address from `HOSTNAME` instead.',
    unset: '`127.0.0.1` with an embedded ledger, otherwise all addresses; the images set `0.0.0.0`',
    example: '0.0.0.0',
  }),
  TRUST_PROXY: count(0, 10).optional().meta({
    about:
      'The number of your proxies in front of the service. Each appends its client’s address to `X-Forwarded-For`, so the client’s address is this many places from the end. Requests without a session are limited per client address.',
    unset: '`0`, which uses the address of the connection; on Vercel `1`',
    example: '1',
  }),
  COMMIT: text.optional().meta({
    about:
      'The commit that the service and the relays name in `/ready`, the dashboard and the log. A build contains the one that was set when it was built.',
    unset: 'on Vercel `VERCEL_GIT_COMMIT_SHA`, otherwise that of the Git repository, if there is one',
    example: '50a4d0f7a05e6b12ce6ef2cd0a1a8a1a5d1d7f10',
  }),
  DATA_DIR: text.default('.data').meta({
    about: 'The folder for everything embedded: database, ledger and keys. Only one process can use it at a time.',
  }),
}

/** Vercel sets these in builds and in functions. */
export const VERCEL = {
  VERCEL_GIT_COMMIT_SHA: text.optional().meta({
    about: 'The commit of the deployment, if `COMMIT` is not set.',
    example: '50a4d0f7a05e6b12ce6ef2cd0a1a8a1a5d1d7f10',
  }),
  VERCEL: text
    .optional()
    .meta({ about: 'Set on Vercel, where the service has no disk and no long-running process.', example: '1' }),
  VERCEL_ENV: text.optional().meta({
    about: 'The environment of the deployment: `production`, `preview` or `development`.',
    example: 'production',
  }),
  VERCEL_PROJECT_PRODUCTION_URL: host.optional().meta({
    about: 'The host of the production deployment.',
    example: 'payroll.vercel.app',
  }),
  VERCEL_BRANCH_URL: host.optional().meta({
    about: 'The host of the branch.',
    example: 'payroll-git-next-us.vercel.app',
  }),
  VERCEL_URL: host.optional().meta({
    about: 'The host of this deployment.',
    example: 'payroll-3f9a1c2be-us.vercel.app',
  }),
}

export const DATABASE = {
  DATABASE_URL: databaseUrl.optional().meta({
    about:
      'The URL of a PostgreSQL database. A pooled Neon host (with `-pooler.` in its name) is accessed through `@vercel/postgres`. The role needs `CREATE` on the database.',
    unset: '`POSTGRES_URL`, or else PGlite in `DATA_DIR`',
    example: 'postgres://payroll:password@localhost:5432/payroll',
  }),
  POSTGRES_URL: databaseUrl.optional().meta({
    about: 'Set by Vercel’s integrations instead of `DATABASE_URL`.',
    example: 'postgres://payroll:password@ep-name-pooler.eu-central-1.aws.neon.tech/payroll?sslmode=require',
  }),
}

export const SESSIONS = {
  SESSION_SECRET: secret(32).optional().meta({
    about:
      'Signs sessions. The SEP-10 key, invite tokens and more are derived from it. At least 32 bytes: `openssl rand -base64 32`.',
    unset: 'generated and stored with an embedded database; otherwise required',
  }),
  SESSION_TTL: count(60, 86_400).default(3600).meta({ about: 'The lifetime of a session, in seconds: 60 to 86400.' }),
  SEP10_SEED: seed.optional().meta({
    about: 'The key that signs SEP-10 challenges. It must never own an account.',
    unset: 'derived from `SESSION_SECRET`',
  }),
  IDP_ISSUER: text.optional().meta({
    about:
      'The issuer of the identity provider (OIDC) whose tokens are exchanged for sessions. Requires `IDP_AUDIENCE`.',
    unset: 'the embedded ledger’s test issuer; otherwise `/api/auth/idp` responds 501',
    example: 'https://accounts.example.com',
  }),
  IDP_AUDIENCE: text.optional().meta({
    about: 'The audience of the provider’s tokens.',
    example: 'confidential-payroll',
  }),
  IDP_CLIENT_ID: text.optional().meta({
    about:
      'A public client of the provider (authorization code with PKCE, no secret) that the invite page signs in with. Register the redirect URI `/invite/sign-in` under `PUBLIC_URL` at the provider.',
    unset: 'the invite page signs in by wallet only, and refers to the frontend for email',
    example: 'payroll-invites',
  }),
  IDP_JWKS_URL: secureUrl.optional().meta({
    about: 'The URL of the provider’s keys. Required if the issuer is not a URL, such as `privy.io`.',
    unset: 'discovered from the issuer',
    example: 'https://accounts.example.com/jwks',
  }),
  IDP_ALGS: list
    .refine(
      (algs) => algs.every((alg) => /^(RS|PS|ES)(256|384|512)$|^EdDSA$/.test(alg)),
      'not a list of RS, PS, ES or EdDSA algorithms',
    )
    .default(['RS256', 'ES256'])
    .meta({
      about:
        'The accepted signature algorithms of the provider’s tokens, separated by commas. `HS…` is never accepted.',
    }),
  IDP_EMAIL_CLAIM: text.default('email').meta({
    about: 'The claim with the email address. An email is stored only if the provider marks it as verified.',
  }),
}

export const MAIL = {
  SMTP_URL: smtpUrl.optional().meta({
    about:
      'The mail server that sends invites, and tells people when a sign-in is joined to theirs. Requires `MAIL_FROM`.',
    unset: 'no mail is sent; employers send the links themselves',
    example: 'smtps://user:password@mail.example.com',
  }),
  MAIL_FROM: sender.optional().meta({
    about: 'The sender of invites.',
    example: 'Payroll <payroll@example.com>',
  }),
  INVITE_LIMIT: count(1, 100_000).default(200).meta({
    about: 'The number of invites mailed per organisation in 24 hours. Anyone with a wallet can be an employer.',
  }),
}

export const OPERATORS = {
  OPERATOR_PASSWORD: text
    .refine((value) => value.length >= 8, 'shorter than 8 characters')
    .optional()
    .meta({
      about: 'The password for the dashboard. At least 8 characters.',
      unset: 'generated and printed with an embedded database; otherwise the dashboard is closed',
    }),
  METRICS_TOKEN: secret(16).optional().meta({
    about: 'The Bearer token for `/api/metrics`. At least 16 bytes.',
    unset: 'the route is closed',
  }),
  CRON_SECRET: secret(16).optional().meta({
    about: 'The Bearer token for `/api/cron/sweep`. Vercel sends it automatically. At least 16 bytes.',
    unset: 'the route is closed',
  }),
}

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
      'The origin under which clients reach the service, without a path. It is the SEP-10 home domain (at most 59 bytes), the issuer of sessions, and where the dashboard’s forms must come from. No header of a request changes it.',
    unset: '`http://localhost:{PORT}`; on Vercel the production host, and for a preview the host of its branch',
    example: 'https://payroll.example.com',
  }),
  FRONTEND_URL: page.optional().meta({
    about: 'The address of the payroll frontend. Links in invites lead to its `/invite/` pages.',
    unset: '`PUBLIC_URL`, which has a small page of its own',
    example: 'https://pay.example.com',
  }),
  CORS_ORIGINS: list.pipe(z.array(origin)).optional().meta({
    about:
      'The origins whose pages may read the answers, separated by commas. Every wallet may use `/.well-known/stellar.toml` and `/api/auth/sep10` in any case, as SEP-1 and SEP-10 demand.',
    unset: 'every origin',
    example: 'https://pay.example.com,http://localhost:5173',
  }),
  PORT: count(0, 65_535).default(3000).meta({ about: 'The port of `npm start`.' }),
  LISTEN_HOST: ip.optional().meta({
    about:
      'The address on which the service and the relay listen. `127.0.0.1` includes `[::1]`. Beside an embedded ledger, anyone who reaches the service can get a session for any email. A standalone `server.js` takes its address from `HOSTNAME` instead.',
    unset: '`127.0.0.1` with an embedded ledger, otherwise all addresses; the images set `0.0.0.0`',
    example: '0.0.0.0',
  }),
  TRUST_PROXY: count(0, 10).optional().meta({
    about:
      'How many proxies of yours stand in front of the service. Each adds the address of its own client to `X-Forwarded-For`, so the address that this many places from the end is the client’s. Requests without a session are limited by this address.',
    unset: '`0`, which takes the address of the connection; on Vercel `1`',
    example: '1',
  }),
  DATA_DIR: text.default('.data').meta({
    about: 'Where everything embedded is kept: database, ledger, keys. One process uses it at a time.',
  }),
}

/** Vercel sets these in builds and in functions. */
export const VERCEL = {
  VERCEL: text
    .optional()
    .meta({ about: 'Set on Vercel: the service then expects no disk and no lasting process.', example: '1' }),
  VERCEL_ENV: text.optional().meta({
    about: 'The environment of the deployment: `production`, `preview` or `development`.',
    example: 'production',
  }),
  VERCEL_PROJECT_PRODUCTION_URL: host.optional().meta({
    about: 'The host of production.',
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
      'A PostgreSQL, or a pooled Neon host (`-pooler.` in its name), which is reached through `@vercel/postgres`. Its role needs `CREATE` on the database.',
    unset: '`POSTGRES_URL`; without that PGlite in `DATA_DIR`',
    example: 'postgres://payroll:password@localhost:5432/payroll',
  }),
  POSTGRES_URL: databaseUrl.optional().meta({
    about: 'What Vercel’s integrations set in place of `DATABASE_URL`.',
    example: 'postgres://payroll:password@ep-name-pooler.eu-central-1.aws.neon.tech/payroll?sslmode=require',
  }),
}

export const SESSIONS = {
  SESSION_SECRET: secret(32).optional().meta({
    about:
      'Signs sessions; the key of SEP-10, the tokens of invites and more are derived from it. At least 32 bytes: `openssl rand -base64 32`.',
    unset: 'made and kept, if the database is embedded; needed otherwise',
  }),
  SESSION_TTL: count(60, 86_400)
    .default(3600)
    .meta({ about: 'How long a session is good for, in seconds: 60 to 86400.' }),
  SEP10_SEED: seed.optional().meta({
    about: 'The key that signs SEP-10 challenges. It must never own an account.',
    unset: 'derived from `SESSION_SECRET`',
  }),
  IDP_ISSUER: text.optional().meta({
    about: 'The issuer of an identity provider (OIDC) whose tokens become sessions. It needs `IDP_AUDIENCE`.',
    unset: 'the embedded ledger’s test issuer; elsewhere `/api/auth/idp` answers 501',
    example: 'https://accounts.example.com',
  }),
  IDP_AUDIENCE: text.optional().meta({
    about: 'The audience of the provider’s tokens.',
    example: 'confidential-payroll',
  }),
  IDP_CLIENT_ID: text.optional().meta({
    about:
      'A public client of the provider (authorization code with PKCE, no secret), by which the page of an invite signs in. The provider must know the redirect to `PUBLIC_URL` with `/invite/sign-in`.',
    unset: 'the page of an invite offers the wallet alone, and leads to the frontend for an email',
    example: 'payroll-invites',
  }),
  IDP_JWKS_URL: secureUrl.optional().meta({
    about: 'Where the provider’s keys are. An issuer that is no URL, such as `privy.io`, needs it.',
    unset: 'found by discovery',
    example: 'https://accounts.example.com/jwks',
  }),
  IDP_ALGS: list
    .refine(
      (algs) => algs.every((alg) => /^(RS|PS|ES)(256|384|512)$|^EdDSA$/.test(alg)),
      'not a list of RS, PS, ES or EdDSA algorithms',
    )
    .default(['RS256', 'ES256'])
    .meta({ about: 'The algorithms that the provider’s tokens may be signed with, separated by commas; never `HS…`.' }),
  IDP_EMAIL_CLAIM: text.default('email').meta({
    about: 'The claim that holds an email address. It is kept only if the provider calls it verified.',
  }),
}

export const MAIL = {
  SMTP_URL: smtpUrl.optional().meta({
    about: 'The mail server that sends invites. It needs `MAIL_FROM`.',
    unset: 'no mail is sent: the employer passes the link on',
    example: 'smtps://user:password@mail.example.com',
  }),
  MAIL_FROM: sender.optional().meta({
    about: 'The sender of invites.',
    example: 'Payroll <payroll@example.com>',
  }),
  INVITE_LIMIT: count(1, 100_000).default(200).meta({
    about: 'How many invites are mailed for an organisation in 24 hours. Anybody with a wallet can be an employer.',
  }),
}

export const OPERATORS = {
  OPERATOR_PASSWORD: text
    .refine((value) => value.length >= 8, 'shorter than 8 characters')
    .optional()
    .meta({
      about: 'Opens the dashboard. At least 8 characters.',
      unset: 'made and printed, if the database is embedded; otherwise the dashboard is closed',
    }),
  METRICS_TOKEN: secret(16).optional().meta({
    about: 'The Bearer token for `/api/metrics`. At least 16 bytes.',
    unset: 'the route is closed',
  }),
  CRON_SECRET: secret(16).optional().meta({
    about: 'The Bearer token for `/api/cron/sweep`, which Vercel sends by itself. At least 16 bytes.',
    unset: 'the route is closed',
  }),
}

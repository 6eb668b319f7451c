import { FIELDS, REQUIRED_FIELDS } from './fields.ts'

type FieldCode = `${(typeof REQUIRED_FIELDS)[number]}-required` | `${(typeof FIELDS)[number]}-invalid`

/** Why the sponsor refuses a transaction, with the default messages: the codes of its 422. */
export const SPONSOR_REASONS = {
  'muxed-source': 'the source is a muxed account',
  'operation-count': 'exactly one operation is allowed',
  'operation-type': 'the operation is not a contract invocation',
  'operation-source': 'the operation has a different source than the transaction',
  memo: 'a memo is not allowed',
  preconditions: 'the only precondition allowed is time bounds',
  'not-yet-valid': 'minTime is in the future',
  'no-expiry': 'maxTime is missing',
  'expires-too-soon': 'maxTime is less than 10 seconds away',
  'expires-too-late': 'maxTime is more than 330 seconds away',
  contract: 'the contract is not on the allow-list',
  function: 'the function is not on the allow-list',
  arguments: 'the number or the types of the arguments are not those of the function',
  auditor: 'the auditor is not that of the deployment',
  spender: 'the spender is not a channel of the relay',
  'live-until': 'live_until_ledger is out of range',
  'not-payer': 'the payer in the arguments is not the transaction source',
  'auth-count': 'more than one authorization entry',
  'auth-credentials': 'the authorization does not use source-account credentials',
  'auth-invocation': 'the authorization does not cover exactly this call',
  'own-address': 'the transaction involves an address that the service controls',
  'no-resources': 'the transaction carries no Soroban resources',
  'fee-below-resources': 'the fee does not cover the resource fee and an inclusion fee of 100 stroops',
  'resource-fee-cap': 'the resource fee is above the cap',
  'fee-cap': 'the fee is above the cap',
  'bad-signature': 'a signature does not belong to the account on this network',
  'too-little-weight': 'the signatures do not reach the medium threshold',
  'extra-signature': 'there are more signatures than needed, and the network rejects them',
  'no-account': 'the account does not exist',
  sequence: 'the sequence number is not the next one of the account',
  'excess-instructions': 'the declared instructions exceed what the call needs',
  'excess-bytes': 'the declared bytes exceed what the call needs',
  'excess-footprint': 'the declared footprint exceeds what the call needs',
  'too-few-resources': 'the declared resources are less than the call needs',
  'low-resource-fee': 'the declared resource fee is less than the call needs',
  'excess-resource-fee': 'the declared resource fee exceeds what the call needs',
  'would-fail': 'the transaction would fail',
  'another-open': 'another transfer of this account is open until <time>',
  'other-recipient': 'an open transfer with this sequence number is another call or has another recipient',
  'too-many-envelopes': 'three transactions with this sequence number are already open',
  payout: 'the payout does not fit the transfer',
  reconciling: 'payments are stopped until those of the relay are reconciled with the ledger: try again later',
  'quota-transfers': 'the daily number of transfers of this account is used up',
  'quota-stroops': 'the daily fee quota of this account is used up',
  'daily-budget': 'the daily budget of the sponsor is used up',
  float: 'sponsor float exhausted',
} as const

/**
 * Every code that does not name a field, under its HTTP status, with the message that callers get. A caller of `Refusal`
 * may pass a more specific message.
 */
export const REFUSALS = {
  400: {
    'body-invalid': 'the body must be a JSON object in UTF-8',
    'body-incomplete': 'the body ended early',
    'query-unknown': 'the list has no such query parameter',
    'idempotency-key-invalid': 'the Idempotency-Key must be 1 to 255 visible ASCII characters',
    'filter-unknown': 'the list has no such filter, or the filter has no such value',
    'challenge-invalid': 'invalid challenge',
    'challenge-expired': 'invalid challenge: it has expired',
    'challenge-used': 'invalid challenge: it has already been used',
  },
  401: {
    unauthenticated: 'sign in to the dashboard first',
    'bearer-missing': 'missing bearer token',
    'session-expired': 'session expired',
    'bearer-invalid': 'invalid session token',
    'identity-token-invalid': 'invalid identity token',
  },
  403: {
    'employer-required': 'employer role required',
    'identity-joined': 'this identity was joined to another: use the first one, or a wallet',
    'account-unproven': 'sign in with that account first',
    'source-mismatch': 'transaction source is not your session account',
    'own-invite': 'this invite is from your own organisation',
    'invite-for-other': 'this invite is for another email or account',
    'provider-mismatch': 'this user belongs to another identity provider',
  },
  404: {
    'archive-not-found': 'nothing is archived under this address',
    'batch-not-found': 'batch not found',
    'contractor-not-found': 'contractor not found',
    'delivery-not-found': 'delivery not found',
    'identity-not-found': 'no identity of this kind is joined to you',
    'invite-not-found': 'invite not found',
    'job-not-found': 'unknown job',
    'payout-not-found': 'payout not found',
    'webhook-not-found': 'webhook not found',
  },
  409: {
    'account-missing': 'no ledger account',
    'account-unregistered': 'the account is not registered with the confidential token',
    'address-taken': 'another contractor has this address',
    'batch-locked': 'batch is locked',
    'batch-run': 'this batch has had a run',
    'batch-sent': 'a payout of this batch has been sent',
    'contractor-accepted': 'contractor has accepted already',
    'contractor-inactive': 'contractor is inactive',
    'contractors-full': 'the organisation has reached its limit of contractors',
    'email-taken': 'another contractor has this email',
    'external-id-taken': 'another record of the organisation has this externalId',
    'idempotency-key-in-use': 'a request with this Idempotency-Key is not finished: send it again in a moment',
    'invite-accepted': 'invite already accepted',
    'job-running': 'a batch job is already running',
    'organisation-dissolved': 'your organisation no longer exists: sign in again',
    'identity-paying': 'a payment or a run of this wallet is not finished: try again once it is',
    'identity-first': 'this identity has the organisation: remove the one that was joined to it',
    'organisation-in-use': 'both identities have an organisation with records',
    'payout-locked': 'the payout is neither ready nor failed',
    'payout-sent': 'the payout is pending, paid or canceled',
    'run-not-ready': 'the batch cannot be run yet',
    'run-unfinished': 'a run of this batch is not finished',
    'webhook-disabled': 'the webhook is disabled: send it a test event once it works',
    'webhooks-full': 'the organisation has reached its limit of 10 webhooks',
  },
  410: {
    'events-gone': 'the database does not have this event: read the records, and begin again without `after`',
    'package-gone': 'this version of the package is no longer served',
  },
  413: { 'too-large': 'the body is larger than 256 KiB' },
  415: { 'unsupported-media': 'the body must be application/json' },
  422: {
    ...SPONSOR_REASONS,
    'idempotency-key-reused': 'this Idempotency-Key was used for another request in the last 24 hours',
    'mail-refused':
      'the mail server refused the address or the message for good; `inviteUrl` is the link: send it yourself',
  },
  429: {
    'too-soon': 'too many wrong passwords',
    'faucet-cooldown': 'the account was funded recently',
    'invite-limit': 'the organisation has reached its daily limit of mailed invites',
    'rate-limited': 'too many requests from this address',
  },
  500: {
    internal: 'internal error',
    'deposit-failed': 'the deposit failed: nothing was granted',
    'transfer-open': 'the transfer is not decided yet: send the same `signedXDR` again',
    'transfer-refused': 'the network rejected the transaction; `reason` is its result code',
    'transfer-replaced':
      'another transaction with the same sequence number was applied; `hash` names it, or yours if `reason` is `unknown-transaction`',
    'transfer-failed': 'the transfer failed on the ledger; `hash` names the transaction',
    'transfer-expired': 'the transfer was not applied and never will be: build a new one',
    'transfer-unknown': "the ledger's history no longer reaches back to the transfer",
  },
  501: {
    'not-wired': 'the service does not perform this operation',
    'batch-disabled': 'batch execution is disabled',
    'calls-not-sponsored': 'the service sponsors transfers only',
    'cron-not-configured': 'no CRON_SECRET is configured',
    'faucet-not-configured': 'no faucet is configured',
    'idp-not-configured': 'no identity provider is configured',
    'metrics-not-configured': 'metrics are not configured',
    'runs-not-wired': 'no running relay can pay from a delegation',
    'sponsor-not-configured': 'no fee sponsor is configured',
    'vault-not-configured': 'no bridge vault is configured',
    'wallet-required': 'transfers need a wallet session',
  },
  503: {
    busy: 'the service is busy: try again',
    'not-configured': 'the service is not configured; `missing` lists the variables that a payroll needs',
    unavailable: 'the database, the ledger or the identity provider cannot be reached: try again',
    'deposit-open': 'it is not known yet whether the deposit was applied',
    'faucet-busy': 'the faucet is busy: nothing was granted',
    'mail-unavailable': 'the mail could not be sent: try again, or send the link in `inviteUrl` yourself',
  },
} as const

type Table = typeof REFUSALS
type RefusalStatus = keyof Table
/** Every code that a caller can receive. */
export type RefusalCode = FieldCode | { [Status in RefusalStatus]: keyof Table[Status] }[RefusalStatus]

const STATUSES: ReadonlyMap<string, RefusalStatus> = new Map([
  ...FIELDS.map((field) => [`${field}-invalid`, 400] as const),
  ...REQUIRED_FIELDS.map((field) => [`${field}-required`, 400] as const),
  ...Object.entries(REFUSALS).flatMap(([status, codes]) =>
    Object.keys(codes).map((code) => [code, Number(status) as RefusalStatus] as const),
  ),
])

export const REFUSAL_CODES = [...STATUSES.keys()] as RefusalCode[]

export const isRefusalCode = (text: string): text is RefusalCode => STATUSES.has(text)

/** The HTTP status of a code. */
export const statusOf = (code: RefusalCode): RefusalStatus => STATUSES.get(code) ?? 500

const MESSAGES: ReadonlyMap<string, string> = new Map(Object.values(REFUSALS).flatMap((codes) => Object.entries(codes)))

/** The default message of a code. */
export function messageOf(code: RefusalCode): string {
  const problem = code.endsWith('-required') ? 'required' : 'is invalid'
  return MESSAGES.get(code) ?? `${code.replace(/-(required|invalid)$/, '')} ${problem}`
}

/** A field that cannot be used, and why. `path` joins names and indexes by dots. */
export interface FieldProblem {
  path: string
  message: string
}

/** A field of a refusal's body. */
type Detail = string | readonly Readonly<Record<string, string>>[]

interface RefusalOptions {
  /** logged, never sent to the caller */
  cause?: unknown
  /** seconds, for the Retry-After header */
  retryAfter?: number
  /** every bad field of the body or query, if there are several */
  fields?: readonly FieldProblem[]
  /** how many more fields are bad than `fields` lists */
  fieldsOmitted?: number
  /** further fields of the body, such as `hash`, `jobId` or `errors` */
  details?: Readonly<Record<string, Detail>>
}

/**
 * The one error whose message callers see: the body is `{ error: message, code }`. Any other error is a bug, answered with a
 * fixed 500. A build bundles this file for the boot and for the routes: an error of either is an instance of both.
 */
export class Refusal extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Error && value.name === 'Refusal'
  }

  readonly code: RefusalCode
  readonly retryAfter: number | undefined
  readonly fields: readonly FieldProblem[]
  readonly fieldsOmitted: number
  readonly details: Readonly<Record<string, Detail>>

  constructor(code: RefusalCode, message = messageOf(code), options: RefusalOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.name = 'Refusal'
    this.code = code
    this.retryAfter = options.retryAfter
    this.fields = options.fields ?? []
    this.fieldsOmitted = options.fieldsOmitted ?? 0
    this.details = options.details ?? {}
  }
}

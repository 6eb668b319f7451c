/**
 * The fields and query parameters that a request can get wrong, as their codes name them: `name-required` when the field
 * is missing, `name-invalid` when its value cannot be used.
 */
export const FIELDS = [
  'account',
  'address',
  'amount',
  'amounts',
  'batch-id',
  'contractor-id',
  'currency',
  'cursor',
  'email',
  'from',
  'home-domain',
  'instructions',
  'limit',
  'memo',
  'name',
  'org-name',
  'payout-id',
  'q',
  'rate',
  'rows',
  'session',
  'signed-xdr',
  'status',
  'to',
  'token',
  'transaction',
] as const
type FieldCode = `${(typeof FIELDS)[number]}-${'required' | 'invalid'}`

/** Every code but those of fields, under its HTTP status, with what it means. */
export const REFUSALS = {
  400: {
    malformed: 'The request is not as it must be; the message says where.',
    'body-invalid': 'The body is not a JSON object in UTF-8.',
    'body-incomplete': 'The body ended before all of it had come.',
    'challenge-invalid': 'The signed challenge does not pass the checks of SEP-10.',
    'challenge-expired': 'The challenge is older than five minutes: ask for a new one.',
    'challenge-used': 'The challenge has been used already: ask for a new one.',
  },
  401: {
    unauthenticated: 'The credentials are wrong.',
    'bearer-missing': 'The request has no bearer token.',
    'session-expired': 'The session is over: sign in again.',
    'bearer-invalid': 'The bearer token is not one of this service.',
    'identity-token-invalid': 'The token of the identity provider fails verification.',
  },
  403: {
    forbidden: 'The caller may not do this.',
    'employer-required': 'Only an employer may do this.',
    'account-unproven': 'The address is not an account that the caller has signed in with.',
    'source-mismatch': 'The source of the transaction is not the account of the session.',
    'own-invite': 'The invite comes from the caller’s own organisation.',
    'invite-for-other': 'The invite is for another email or another account.',
    'provider-mismatch': 'A user of another identity provider has this id.',
  },
  404: {
    'not-found': 'It does not exist.',
    'batch-not-found': 'No batch of the caller has this id.',
    'contractor-not-found': 'No contractor that the caller may see has this id.',
    'invite-not-found': 'The invite is void or has expired.',
    'job-not-found': 'No batch job of the caller has this id.',
    'payout-not-found': 'No payout of the caller has this id.',
  },
  409: {
    conflict: 'It contradicts what is there.',
    'account-missing': 'The caller has no account on the ledger that could be funded.',
    'account-unregistered': 'The account is not registered with the confidential token.',
    'address-taken': 'Another contractor has this address.',
    'batch-locked': 'The batch is not a draft any more.',
    'batch-sent': 'A payout of the batch has been sent, so the batch stays.',
    'contractor-accepted': 'A user is linked to the contractor already.',
    'contractor-inactive': 'The contractor is inactive.',
    'contractors-full': 'The organisation has as many contractors as it may have.',
    'email-taken': 'Another contractor has this email.',
    'invite-accepted': 'The invite has been accepted already.',
    'job-running': 'A batch job of the caller is running; `jobId` names it.',
    'organisation-dissolved': 'The organisation was dissolved a moment ago: sign in again.',
    'organisation-in-use': 'The organisation of the other session has records.',
    'payout-sent': 'The payout is on its way, paid or canceled.',
  },
  413: { 'too-large': 'The body is larger than 256 KiB.' },
  415: { 'unsupported-media': 'The body is of another type than the operation takes.' },
  422: {
    refused: 'The call would fail, or may not be made.',
    'muxed-source': 'The source is a muxed account.',
    'operation-count': 'The transaction has not exactly one operation.',
    'operation-type': 'The operation is not a contract invocation.',
    'operation-source': 'The operation has a source of its own.',
    memo: 'The transaction has a memo.',
    preconditions: 'The transaction has preconditions other than time bounds.',
    'not-yet-valid': 'The transaction is not valid yet.',
    'no-expiry': 'The transaction has no maxTime.',
    'expires-too-soon': 'maxTime is less than 10 seconds away.',
    'expires-too-late': 'maxTime is more than 330 seconds away.',
    contract: 'The contract is not on the allow-list.',
    function: 'The function is not on the allow-list.',
    arguments: 'The arguments are not (from, to, data).',
    'not-payer': 'The payer in the arguments is not the source.',
    'auth-count': 'There is more than one authorization entry.',
    'auth-credentials': 'The authorization does not use source-account credentials.',
    'auth-invocation': 'The authorization covers more than this call, or another one.',
    'own-address': 'The transaction involves an address that the service controls.',
    'no-resources': 'The transaction carries no Soroban resources.',
    'fee-below-resources': 'The fee does not cover the resource fee and the inclusion fee.',
    'resource-fee-cap': 'The resource fee is above the cap.',
    'fee-cap': 'The fee is above the cap.',
    'bad-signature': 'A signature does not belong to the account on this network.',
    'too-little-weight': 'The signatures do not reach the medium threshold.',
    'extra-signature': 'There are more signatures than the network needs.',
    'no-account': 'The account does not exist.',
    sequence: 'The sequence number is not the next one of the account.',
    'excess-instructions': 'The declared instructions exceed what the call needs.',
    'excess-bytes': 'The declared bytes exceed what the call needs.',
    'excess-footprint': 'The declared footprint exceeds what the call needs.',
    'too-few-resources': 'The declared resources are less than the call needs.',
    'low-resource-fee': 'The declared resource fee is less than the call needs.',
    'excess-resource-fee': 'The declared resource fee exceeds what the call needs.',
    'another-open': 'Another transfer of the account is open.',
    'other-recipient': 'An open transfer with this sequence number pays another recipient.',
    'too-many-envelopes': 'Three transactions with this sequence number are open already.',
    'would-fail': 'The transaction would fail on the ledger.',
    payout: 'The payout that is named does not fit the transfer.',
    'quota-transfers': 'The daily number of transfers of the account is used up.',
    'quota-stroops': 'The daily fee quota of the account is used up.',
    'daily-budget': 'The daily budget of the sponsor is used up.',
    float: 'The sponsor has no funds left for now.',
  },
  429: {
    'too-soon': 'It is too soon to try again.',
    'faucet-cooldown': 'The account was funded a moment ago.',
    'invite-limit': 'The organisation has had as many invites mailed today as it may.',
    'rate-limited': 'There were too many requests from this address.',
  },
  500: {
    internal: 'The service failed unexpectedly.',
    failed: 'It failed on the ledger.',
    'deposit-failed': 'The deposit failed on the ledger: nothing was granted.',
    'transfer-open': 'It is not decided yet: send the same `signedXDR` again.',
    'transfer-refused': 'The network refused the transaction; `reason` holds its result code.',
    'transfer-replaced': 'Another transaction with the same sequence number was applied; `hash` names it.',
    'transfer-failed': 'The transfer failed on the ledger; `hash` names the transaction.',
    'transfer-expired': 'The transfer was never applied and never will be: build a new one.',
    'transfer-unknown': 'The ledger’s history no longer reaches back to the transfer.',
  },
  501: {
    'not-wired': 'The operation is not done by the service.',
    'batch-disabled': 'Batch execution is switched off.',
    'cron-not-configured': 'The operator has set no CRON_SECRET.',
    'faucet-not-configured': 'The service has no faucet key.',
    'idp-not-configured': 'The service has no identity provider.',
    'metrics-not-configured': 'The operator has set no METRICS_TOKEN.',
    'sponsor-not-configured': 'The service has no sponsor key.',
    'vault-not-configured': 'The service knows no bridge vault.',
    'wallet-required': 'Only a wallet session may do this.',
  },
  503: {
    busy: 'More is waiting to be read than the service takes at once: try again.',
    'not-configured': 'The service lacks a variable and did not start; `missing` names what a payroll needs.',
    unavailable:
      'The database, the ledger or the identity provider cannot be reached, or too much waits for the database: try again.',
    'deposit-open': 'It is not known yet whether the deposit has arrived.',
    'faucet-busy': 'The faucet is busy, and nothing was granted: try again.',
    'mail-unavailable': 'The mail could not be sent: try again.',
  },
} as const

type Table = typeof REFUSALS
type RefusalStatus = keyof Table
/** Every way in which a request can be refused: a closed list. */
export type RefusalCode = FieldCode | { [Status in RefusalStatus]: keyof Table[Status] }[RefusalStatus]

const STATUSES: ReadonlyMap<string, RefusalStatus> = new Map([
  ...FIELDS.flatMap((field) => [[`${field}-required`, 400] as const, [`${field}-invalid`, 400] as const]),
  ...Object.entries(REFUSALS).flatMap(([status, codes]) =>
    Object.keys(codes).map((code) => [code, Number(status) as RefusalStatus] as const),
  ),
])

/** Every code there is. */
export const REFUSAL_CODES = [...STATUSES.keys()] as RefusalCode[]

/** Whether `text` is one of the codes. */
export const isRefusalCode = (text: string): text is RefusalCode => STATUSES.has(text)

/** The HTTP status of a code. */
export const statusOf = (code: RefusalCode): RefusalStatus => STATUSES.get(code) ?? 500

const MEANINGS: ReadonlyMap<string, string> = new Map(Object.values(REFUSALS).flatMap((codes) => Object.entries(codes)))

/** The meaning of a code, in a sentence. */
export function meaningOf(code: RefusalCode): string {
  const problem = code.endsWith('-required') ? 'is missing' : 'cannot be used'
  return MEANINGS.get(code) ?? `The field ${code.replace(/-(required|invalid)$/, '')} ${problem}.`
}

/** A field that cannot be used: where it stands, and why. */
export interface FieldProblem {
  path: string
  message: string
}

interface RefusalOptions {
  /** goes into the log, never to the caller */
  cause?: unknown
  /** seconds after which another try makes sense: the Retry-After header */
  retryAfter?: number
  /** every bad field of a body or a query, when there are several */
  fields?: readonly FieldProblem[]
  /** the data that a program needs besides the code: an id, a hash, a result code of the network */
  details?: Readonly<Record<string, string>>
}

class OwnRefusal extends Error {
  readonly code: RefusalCode
  readonly retryAfter: number | undefined
  readonly fields: readonly FieldProblem[]
  readonly details: Readonly<Record<string, string>>

  constructor(code: RefusalCode, message: string, options: RefusalOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.name = 'Refusal'
    this.code = code
    this.retryAfter = options.retryAfter
    this.fields = options.fields ?? []
    this.details = options.details ?? {}
  }
}

const shared = globalThis as { payrollRefusal?: typeof OwnRefusal }
shared.payrollRefusal ??= OwnRefusal

/**
 * The one error that a caller is meant to see: `message` goes out as `error`, `code` beside it. All other errors are bugs,
 * and are answered with a fixed 500. A build bundles this file twice, for the boot and for the routes, so the class that
 * is loaded first serves both.
 */
export const Refusal = shared.payrollRefusal
export type Refusal = OwnRefusal

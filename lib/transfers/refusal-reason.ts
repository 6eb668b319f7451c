import { Refusal } from '#lib/refusal/refusal.ts'

/** The reasons for which the sponsor does not pay: a closed list, each with the words that the caller reads. */
export const REFUSAL_REASONS = {
  'muxed-source': 'the source is a muxed account',
  'operation-count': 'exactly one operation is allowed',
  'operation-type': 'the operation is not a contract invocation',
  'operation-source': 'the operation has a source of its own that is not the transaction source',
  memo: 'a memo is not allowed',
  preconditions: 'the only precondition allowed is time bounds',
  'not-yet-valid': 'minTime is in the future',
  'no-expiry': 'maxTime is missing',
  'expires-too-soon': 'maxTime is less than 10 seconds away',
  'expires-too-late': 'maxTime is more than 330 seconds away',
  contract: 'the contract is not on the allow-list',
  function: 'the function is not on the allow-list',
  arguments: 'the arguments are not (from, to, data)',
  'not-payer': 'the payer in the arguments is not the transaction source',
  'auth-count': 'more than one authorization entry',
  'auth-credentials': 'the authorization does not use source-account credentials',
  'auth-invocation': 'the authorization is not for this very call alone',
  'own-address': 'the transaction involves an address of the service',
  'no-resources': 'the transaction carries no Soroban resources',
  'fee-below-resources': 'the fee does not cover the resource fee and an inclusion fee of 100 stroops',
  'resource-fee-cap': 'the resource fee is above the cap',
  'fee-cap': 'the fee is above the cap',
  'bad-signature': 'a signature does not belong to the account on this network',
  'too-little-weight': 'the signatures do not reach the medium threshold',
  'extra-signature': 'there are more signatures than the network needs, and it refuses them',
  'no-account': 'the account does not exist',
  sequence: 'the sequence number is not the next one of the account',
  'excess-instructions': 'the declared instructions exceed what the call needs',
  'excess-bytes': 'the declared bytes exceed what the call needs',
  'excess-footprint': 'the declared footprint exceeds what the call needs',
  'too-few-resources': 'the declared resources are less than what the call needs',
  'low-resource-fee': 'the declared resource fee is less than what the call needs',
  'excess-resource-fee': 'the declared resource fee exceeds what the call needs',
  'would-fail': 'the transaction would fail',
  'another-open': 'another transfer of this account is open until <time>',
  'other-recipient': 'an open transfer with this sequence number pays another recipient',
  'too-many-envelopes': 'three transactions with this sequence number are open already',
  payout: 'the payout does not fit the transfer',
  'quota-transfers': 'the daily number of transfers of this account is used up',
  'quota-stroops': 'the daily fee quota of this account is used up',
  'daily-budget': 'the daily budget of the sponsor is used up',
  float: 'sponsor float exhausted',
} as const

export type RefusalReason = keyof typeof REFUSAL_REASONS

/** `detail` is appended to a reason's words, or replaces their `<time>`. `asOf` is the ledger that gave the reason. */
interface Particulars {
  detail?: string
  asOf?: number
}

/** The refusal for a reason. */
export function sponsorRefused(reason: RefusalReason, particulars: Particulars = {}): SponsorRefusal {
  return new SponsorRefusal(reason, particulars)
}

/** A Refusal that remembers its reason, for the log and the tests. */
export class SponsorRefusal extends Refusal {
  readonly reason: RefusalReason
  readonly asOf: number | undefined

  constructor(reason: RefusalReason, { detail, asOf }: Particulars) {
    super(reason, `sponsor refused: ${wordsOf(reason, detail)}`)
    this.reason = reason
    this.asOf = asOf
  }
}

function wordsOf(reason: RefusalReason, detail?: string): string {
  const words = REFUSAL_REASONS[reason]
  if (detail === undefined) return words
  return words.includes('<time>') ? words.replace('<time>', detail) : `${words}: ${detail}`
}

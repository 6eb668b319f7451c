import { Refusal, SPONSOR_REASONS } from './refusal.ts'

/** Why the sponsor does not pay: the codes of status 422. */
export type RefusalReason = keyof typeof SPONSOR_REASONS

/**
 * `detail` is appended to the reason's message, or replaces its `<time>`. `asOf` is the ledger that the reason depends on.
 * `details` are further fields of the body.
 */
interface RefusalDetails {
  detail?: string
  asOf?: number
  details?: Readonly<Record<string, string>>
  /** seconds after which it may be tried again */
  retryAfter?: number
}

/** A Refusal that keeps its reason for logs and tests. */
export class SponsorRefusal extends Refusal {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Refusal && 'reason' in value
  }

  readonly reason: RefusalReason
  readonly asOf: number | undefined

  constructor(reason: RefusalReason, { detail, asOf, details = {}, retryAfter }: RefusalDetails) {
    super(reason, `sponsor refused: ${messageOf(reason, detail)}`, {
      details,
      ...(retryAfter !== undefined && { retryAfter }),
    })
    this.reason = reason
    this.asOf = asOf
  }
}

export function sponsorRefused(reason: RefusalReason, particulars: RefusalDetails = {}): SponsorRefusal {
  return new SponsorRefusal(reason, particulars)
}

function messageOf(reason: RefusalReason, detail?: string): string {
  const message: string = SPONSOR_REASONS[reason]
  if (detail === undefined) return message
  return message.includes('<time>') ? message.replace('<time>', detail) : `${message}: ${detail}`
}

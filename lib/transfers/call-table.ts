import { Address, type xdr } from '@stellar/stellar-sdk'
import type { TransferKind } from '#drizzle/schema/transfers.ts'
import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'

/**
 * The part of an argument in its call. `source`: the transaction's source. `owner`: the account whose escrow pays.
 * `payee`: any address, which the service may control. `channel`: a channel of the relay, which it controls as well.
 */
type Part = 'source' | 'owner' | 'payee' | 'channel' | 'auditor' | 'live-until' | 'data'

interface CallForm {
  kind: TransferKind
  parts: readonly Part[]
}

const TRANSFER: CallForm = { kind: 'transfer', parts: ['source', 'payee', 'data'] }

/** The functions of POST /calls, and that of a channel that pays from an escrow. */
const CALL_FORMS = {
  register: { kind: 'register', parts: ['source', 'auditor', 'data'] },
  merge: { kind: 'merge', parts: ['source'] },
  set_spender: { kind: 'set_spender', parts: ['source', 'channel', 'live-until', 'data'] },
  revoke_spender: { kind: 'revoke_spender', parts: ['source', 'channel'] },
  confidential_transfer_from: { kind: 'delegated', parts: ['source', 'owner', 'payee', 'data'] },
} satisfies Record<string, CallForm>

/** The calls that a request may make, if it isn't a transfer. */
export interface CallRules {
  functions: ReadonlySet<string>
  /** the accounts that may be a spender: the relay's channels */
  channels: ReadonlySet<string>
  /** the auditor's number in the token's registry */
  auditorId: number
  /** how many ledgers beyond the latest a delegation must last */
  marginLedgers: number
}

/** The call in an inner transaction. */
export interface Call {
  kind: TransferKind
  /** the account whose escrow pays; null if the source pays itself */
  owner: string | null
  to: string
  /** the last ledger of a delegation */
  liveUntilLedger?: number
  /** the number of the auditor that a registration names */
  auditorId?: number
}

/** Whether a function is one of POST /calls. */
export const isClientCall = (name: string): boolean =>
  Object.hasOwn(CALL_FORMS, name) && CALL_FORMS[name as keyof typeof CALL_FORMS].kind !== 'delegated'

/** Reads the arguments of a call, and refuses others. Without `calls` it must be a transfer. */
export function readArguments(
  { functionName, args }: xdr.InvokeContractArgs,
  source: string,
  calls: CallRules | undefined,
): Call {
  const { kind, parts }: CallForm = calls ? CALL_FORMS[functionName.toString() as keyof typeof CALL_FORMS] : TRANSFER
  if (args.length !== parts.length || !parts.every((part, index) => hasType(args[index], part))) {
    throw sponsorRefused('arguments')
  }
  const addressOf = (part: Part) => {
    const value = args[parts.indexOf(part)]
    return value && Address.fromScVal(value).toString()
  }
  const numberOf = (part: Part) => {
    const value = args[parts.indexOf(part)]
    return value?.type === 'scvU32' ? value.u32 : undefined
  }
  if (addressOf('source') !== source) throw sponsorRefused('not-payer')
  const [auditorId, liveUntilLedger] = [numberOf('auditor'), numberOf('live-until')]
  return {
    kind,
    owner: addressOf('owner') ?? null,
    to: addressOf('payee') ?? addressOf('channel') ?? source,
    ...(liveUntilLedger !== undefined && { liveUntilLedger }),
    ...(auditorId !== undefined && { auditorId }),
  }
}

/** Refuses a delegation to another account than a channel of the relay, and a registration under another auditor. */
export function checkArguments({ kind, to, auditorId }: Call, calls: CallRules | undefined): void {
  const isOfSpender = kind === 'set_spender' || kind === 'revoke_spender'
  if (isOfSpender && !calls?.channels.has(to)) throw sponsorRefused('spender')
  if (auditorId !== undefined && auditorId !== calls?.auditorId) throw sponsorRefused('auditor')
}

function hasType(value: xdr.ScVal | undefined, part: Part): boolean {
  if (part === 'data') return value?.type === 'scvBytes'
  if (part === 'auditor' || part === 'live-until') return value?.type === 'scvU32'
  if (value?.type !== 'scvAddress') return false
  return value.address.type === 'scAddressTypeAccount' || value.address.type === 'scAddressTypeContract'
}

/** The longest lifetime that the ledger gives an entry, 30 days of five seconds each. */
const MAX_LEDGERS = 518_400

/** Refuses a delegation that won't outlast the queued payouts: an expired one blocks its pair of accounts until it is revoked. */
export function checkLiveUntil(liveUntilLedger: number | undefined, marginLedgers: number, latestLedger: number): void {
  if (liveUntilLedger === undefined) return
  const [least, most] = [latestLedger + marginLedgers, latestLedger + MAX_LEDGERS]
  if (liveUntilLedger >= least && liveUntilLedger <= most) return
  throw sponsorRefused('live-until', { detail: `use ${least} to ${most}`, asOf: latestLedger })
}

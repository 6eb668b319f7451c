import { readLedgerRange } from '#lib/stellar/ledger-range.ts'
import { readDelegations } from './account.ts'
import { syncBalance } from './balance.ts'
import { buildDelegation, buildMerge, buildRevocation } from './calls.ts'
import { opens } from './commitment.ts'
import { decryptAllowance } from './decryption.ts'
import type { Deployment } from './deployment.ts'
import { readAccountEvents } from './events.ts'
import { type AnyHolder, deriveDelegationKey } from './keys.ts'
import type { SubmitCall } from './transaction.ts'
import { WalletError } from './wallet-error.ts'

/** A delegation as its owner reads it. */
export interface Delegation {
  spender: string
  /** base units that the spender may still pay; undefined if the owner's keys do not open it */
  left: bigint | undefined
  /** the last ledger in which the spender may pay */
  liveUntilLedger: number
}

/** The owner's delegations to these spenders, and the ledger of the response. */
export async function readOwnDelegations(
  deployment: Deployment,
  { address, keys }: Pick<AnyHolder, 'address' | 'keys'>,
  spenders: readonly string[],
): Promise<{ delegations: Delegation[]; latestLedger: number }> {
  const pairs = spenders.map((spender) => ({ owner: address, spender }))
  const { delegations, latestLedger } = await readDelegations(deployment, pairs)
  return {
    latestLedger,
    delegations: spenders.flatMap((spender, index) => {
      const entry = delegations[index]
      if (!entry) return []
      const rest = decryptAllowance(deriveDelegationKey(keys.vk, spender), { ...entry })
      const left = rest && opens(rest, entry.allowance_commitment) ? rest.value : undefined
      return [{ spender, left, liveUntilLedger: entry.live_until_ledger }]
    }),
  }
}

/** Every spender that the owner has delegated to, with the last ledgers of those delegations. */
export async function readPastDelegations(
  deployment: Deployment,
  { address }: Pick<AnyHolder, 'address'>,
): Promise<Map<string, number[]>> {
  const past = new Map<string, number[]>()
  const { events } = await readAccountEvents(deployment, address)
  for (const { name, addresses, fields } of events) {
    const [owner, spender] = addresses
    if (name !== 'set_spender' || owner !== address || spender === undefined) continue
    const ledger = fields.live_until_ledger
    past.set(spender, [...(past.get(spender) ?? []), ...(typeof ledger === 'number' ? [ledger] : [])])
  }
  return past
}

/** The latest ledger, and how often one has closed on average since the RPC's oldest. @throws LedgerError `unavailable` */
export async function readPace({
  rpc,
}: Pick<Deployment, 'rpc'>): Promise<{ latestLedger: number; secondsPerLedger: number }> {
  const range = await readLedgerRange(rpc)
  const { latestLedger, latestLedgerCloseTime, oldestLedger, oldestLedgerCloseTime } = range
  const seconds = Math.max(latestLedgerCloseTime - oldestLedgerCloseTime, 1)
  return { latestLedger, secondsPerLedger: seconds / Math.max(latestLedger - oldestLedger, 1) }
}

/** The escrow that a channel needs for its payouts. */
export interface Escrow {
  spender: string
  /** base units */
  amount: bigint
  /** how many ledgers from now it must last at least, and how many a new delegation lasts */
  leastLedgers: number
  ledgers: number
}

/** What `ensureEscrow` asks of its caller. */
interface EscrowSteps {
  submit: SubmitCall
  say(line: string): void
  /** called before an existing delegation is kept or replaced, and throws if it may not be */
  use?(liveUntilLedger: number): Promise<void> | void
  /** called before a delegation is made, and when one is kept */
  note?(liveUntilLedger: number): void
  /** the last ledgers of delegations to the spender that manifests name */
  named?: readonly number[]
}

/** How many times a delegation is attempted: each attempt first reads the ledger. */
const ATTEMPTS = 6

/**
 * Makes sure that the spender may pay the amount. An existing delegation that is large and long enough is kept.
 * Otherwise it is revoked, and a new one is made. After an interruption, a second call continues from the ledger's
 * state.
 * @throws WalletError `not-applied` if the ledger does not show what was submitted
 */
export async function ensureEscrow(
  deployment: Deployment,
  holder: AnyHolder,
  { spender, amount, leastLedgers, ledgers }: Escrow,
  { submit, say, use = () => undefined, note = () => undefined, named = [] }: EscrowSteps,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const { delegations, latestLedger } = await readOwnDelegations(deployment, holder, [spender])
    const [existing] = delegations
    if (attempt > ATTEMPTS)
      throw new WalletError('not-applied', `the ledger does not show the delegation to ${spender}`)
    if (existing) await use(existing.liveUntilLedger)
    const isEnough = existing?.left !== undefined && existing.left >= amount
    if (isEnough && existing.liveUntilLedger >= latestLedger + leastLedgers) return note(existing.liveUntilLedger)
    try {
      if (existing) {
        say(`Revoking the delegation to ${spender}`)
        await submit((await buildRevocation(deployment, holder.signer, spender)).signedXdr)
        await untilChanged(deployment, holder, spender, existing.liveUntilLedger)
        continue
      }
      const opening = await ensureSpendable(deployment, holder, amount, submit)
      // A manifest names a delegation by this ledger, so no two delegations of a pair may have the same one.
      const past = new Set([...named, ...((await readPastDelegations(deployment, holder)).get(spender) ?? [])])
      let liveUntilLedger = latestLedger + ledgers
      while (past.has(liveUntilLedger)) liveUntilLedger += 1
      say(`Delegating to ${spender} until ledger ${liveUntilLedger}`)
      const delegation = { spender, amount, liveUntilLedger, opening }
      note(liveUntilLedger)
      await submit((await buildDelegation(deployment, holder, delegation)).signedXdr)
      await untilChanged(deployment, holder, spender, undefined)
    } catch (error) {
      // A call of an interrupted attempt may have been applied in the meantime; the next round will find out.
      if (attempt >= ATTEMPTS || !MAY_PASS.has(codeOf(error))) throw error
      say(`Trying again: ${error instanceof Error ? error.message : error}`)
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}

const RETRY_MS = 500

/** How often the ledger is read until it shows a call that was applied: nodes lag by seconds. */
const READINGS = 40

/** Waits until the ledger shows another delegation to the spender than before, or none. @throws WalletError `not-applied` */
async function untilChanged(
  deployment: Deployment,
  holder: AnyHolder,
  spender: string,
  before: number | undefined,
): Promise<void> {
  for (let reading = 1; reading <= READINGS; reading += 1) {
    const [now] = (await readOwnDelegations(deployment, holder, [spender])).delegations
    if (now?.liveUntilLedger !== before) return
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
  throw new WalletError('not-applied', `the ledger does not show the call about the delegation to ${spender}`)
}

/** The errors of a wallet and of a sponsor that a call in flight explains. */
const MAY_PASS: ReadonlySet<string> = new Set([
  ...['would-fail', 'balance-changed'],
  ...['sequence', 'another-open', 'other-recipient', 'too-many-envelopes', 'excess-resource-fee', 'low-resource-fee'],
  ...['transfer-refused', 'transfer-replaced', 'transfer-failed', 'transfer-expired'],
])

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')

/** The opening of a spendable balance of at least `amount`, after a merge if that is needed. */
async function ensureSpendable(deployment: Deployment, holder: AnyHolder, amount: bigint, submit: SubmitCall) {
  const balance = await syncBalance(deployment, holder)
  if (balance.spendable.value >= amount || balance.receiving.value === 0n) return balance.spendable
  await submit((await buildMerge(deployment, holder.signer)).signedXdr)
  return (await syncBalance(deployment, holder)).spendable
}

/**
 * Revokes these delegations, if they still exist. Resolves to the amount that has returned, in base units, once the ledger shows it.
 * @throws WalletError `not-applied`
 */
export async function revokeAll(
  deployment: Deployment,
  holder: AnyHolder,
  delegations: readonly { channel: string; liveUntilLedger: number }[],
  submit: SubmitCall,
): Promise<bigint> {
  let returned = 0n
  for (const channel of new Set(delegations.map((one) => one.channel))) {
    const [existing] = (await readOwnDelegations(deployment, holder, [channel])).delegations
    const isIts = delegations.some(
      (one) => one.channel === channel && one.liveUntilLedger === existing?.liveUntilLedger,
    )
    if (!existing || !isIts) continue
    await submit((await buildRevocation(deployment, holder.signer, channel)).signedXdr)
    await untilChanged(deployment, holder, channel, existing.liveUntilLedger)
    returned += existing.left ?? 0n
  }
  return returned
}

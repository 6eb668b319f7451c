import { parseUnits } from '#lib/text/money.ts'
import { readDelegations } from '#lib/wallet/account.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildDelegation, buildMerge, buildRevocation } from '#lib/wallet/calls.ts'
import { decryptAllowance } from '#lib/wallet/decryption.ts'
import { readAccountEvents } from '#lib/wallet/events.ts'
import { deriveDelegationKey, type Holder } from '#lib/wallet/keys.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import type { SubmitCall, TestNetwork } from './participants.ts'

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
  network: TestNetwork,
  { address, keys }: Holder,
  spenders: readonly string[],
): Promise<{ delegations: Delegation[]; latestLedger: number }> {
  const pairs = spenders.map((spender) => ({ owner: address, spender }))
  const { delegations, latestLedger } = await readDelegations(network, pairs)
  return {
    latestLedger,
    delegations: spenders.flatMap((spender, index) => {
      const entry = delegations[index]
      if (!entry) return []
      const left = decryptAllowance(deriveDelegationKey(keys.vk, spender), { ...entry })?.value
      return [{ spender, left, liveUntilLedger: entry.live_until_ledger }]
    }),
  }
}

/** Every spender that the owner has delegated to, with the last ledgers of those delegations. */
export async function readPastDelegations(
  network: TestNetwork,
  { address }: Pick<Holder, 'address'>,
): Promise<Map<string, number[]>> {
  const past = new Map<string, number[]>()
  const { events } = await readAccountEvents(network, address)
  for (const { name, addresses, fields } of events) {
    const [owner, spender] = addresses
    if (name !== 'set_spender' || owner !== address || spender === undefined) continue
    const ledger = fields.live_until_ledger
    past.set(spender, [...(past.get(spender) ?? []), ...(typeof ledger === 'number' ? [ledger] : [])])
  }
  return past
}

/** Builds and signs a delegation of an amount (a decimal string) for the next `ledgers` ledgers. Sends nothing. */
export async function signDelegation(
  network: TestNetwork,
  holder: Holder,
  { spender, amount, ledgers }: { spender: string; amount: string; ledgers: number },
): Promise<string> {
  const { spendable: opening } = await syncBalance(network, holder)
  const { sequence } = await network.rpc.getLatestLedger()
  const delegation = { spender, amount: parseUnits(amount), liveUntilLedger: sequence + ledgers, opening }
  return (await buildDelegation(network, holder, delegation)).signedXdr
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

/** How often a delegation is attempted: each attempt first reads what the ledger has. */
const ATTEMPTS = 6

/**
 * Makes sure that the spender may pay the amount. An existing delegation of enough, for long enough, is kept. Otherwise it is
 * revoked, and a new one is made. After an interruption, a second call goes on from what the ledger has.
 */
export async function ensureEscrow(
  network: TestNetwork,
  holder: Holder,
  { spender, amount, leastLedgers, ledgers }: Escrow,
  { submit, say }: { submit: SubmitCall; say: (line: string) => void },
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const { delegations, latestLedger } = await readOwnDelegations(network, holder, [spender])
    const [existing] = delegations
    const isEnough = existing?.left !== undefined && existing.left >= amount
    if (isEnough && existing.liveUntilLedger >= latestLedger + leastLedgers) return
    try {
      if (existing) {
        say(`Revoking the delegation to ${spender}`)
        await submit((await buildRevocation(network, holder.signer, spender)).signedXdr)
        continue
      }
      const opening = await ensureSpendable(network, holder, amount, submit)
      // A manifest names a delegation by this ledger, so no two delegations of a pair may have the same one.
      const past = (await readPastDelegations(network, holder)).get(spender) ?? []
      const liveUntilLedger = Math.max(latestLedger + ledgers, ...past.map((ledger) => ledger + 1))
      say(`Delegating to ${spender} until ledger ${liveUntilLedger}`)
      const delegation = { spender, amount, liveUntilLedger, opening }
      await submit((await buildDelegation(network, holder, delegation)).signedXdr)
    } catch (error) {
      // A call of an interrupted attempt may have been applied meanwhile: the next round finds out.
      if (attempt === ATTEMPTS || (error instanceof WalletError && !MAY_PASS.has(error.code))) throw error
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}

const RETRY_MS = 500

/** The errors of a wallet that a call in flight explains. */
const MAY_PASS: ReadonlySet<string> = new Set(['would-fail', 'balance-changed'])

/** The opening of a spendable balance of at least `amount`, after a merge if that is needed. */
async function ensureSpendable(network: TestNetwork, holder: Holder, amount: bigint, submit: SubmitCall) {
  const balance = await syncBalance(network, holder)
  if (balance.spendable.value >= amount || balance.receiving.value === 0n) return balance.spendable
  await submit((await buildMerge(network, holder.signer)).signedXdr)
  return (await syncBalance(network, holder)).spendable
}

/** Revokes the delegations to these spenders that still exist. Resolves to what came back, in base units. */
export async function revokeAll(
  network: TestNetwork,
  holder: Holder,
  spenders: readonly string[],
  submit: SubmitCall,
): Promise<bigint> {
  let returned = 0n
  for (const spender of spenders) {
    const [existing] = (await readOwnDelegations(network, holder, [spender])).delegations
    if (!existing) continue
    await submit((await buildRevocation(network, holder.signer, spender)).signedXdr)
    returned += existing.left ?? 0n
  }
  return returned
}

import { Account, type Keypair } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/http/refusal.ts'
import { lookUp } from '#lib/stellar/look-up.ts'
import type { Network } from '#lib/stellar/network.ts'
import { contractErrorOf, decodeResult, resultCodeOf } from '#lib/stellar/result.ts'
import { readSequence } from '#lib/stellar/sequence.ts'
import { buildDeposit } from '#lib/wallet/calls.ts'
import type { GrantEnding, SignedDeposit } from './grant-record.ts'

/** Seconds for which a signed deposit can apply: ledgers enough, and not long to wait for its death. */
const VALIDITY = 30

/** Stroops bid for inclusion, so that a busy network takes it, and on top of the simulated resource fee. */
const INCLUSION_FEE = 10_000
const MARGIN = 100_000n

/** What signs deposits. */
export interface Depositor {
  network: Network
  /** the confidential token, C… */
  token: string
  keypair: Keypair
  now: () => Date
}

/**
 * A deposit of `amount` base units into the confidential balance of `to`, with the next sequence number that the ledger
 * has for the faucet. Nothing is sent.
 * @throws Refusal `unavailable`; `refused` when the call would fail, its cause a ContractFailure
 */
export async function signDeposit(
  { network, token, keypair, now }: Depositor,
  { to, amount }: { to: string; amount: bigint },
): Promise<SignedDeposit> {
  const faucet = keypair.publicKey()
  const { sequence, latestLedger } = await readSequence(network, faucet)
  if (sequence === undefined) throw new Refusal('refused', 'the faucet has no account on the ledger')
  const deployment = {
    rpc: network.server,
    passphrase: network.passphrase,
    token,
    now: () => now().getTime(),
  }
  const options = {
    source: new Account(faucet, String(sequence)),
    seconds: VALIDITY,
    inclusionFee: INCLUSION_FEE,
    margin: MARGIN,
  }
  const signed = await buildDeposit(deployment, keypair, { to, amount }, options).catch((cause: unknown) => {
    throw cause instanceof Refusal ? cause : new Refusal('unavailable', 'the ledger cannot be reached', { cause })
  })
  return {
    faucet,
    envelope: signed.signedXdr,
    hash: signed.hash,
    sequence: sequence + 1n,
    maxTime: signed.maxTime,
    sinceLedger: latestLedger,
  }
}

/**
 * What the ledger says of a signed deposit: how it ended, or the last ledger in which it is not. It has ended without
 * effect when an answer whose own last ledger closed after maxTime does not know it (CAP-21: no later ledger can include
 * it); that is proof only if the history of that answer reaches back to the signing.
 * @throws Refusal `unavailable`
 */
export async function lookAtDeposit(
  network: Network,
  deposit: Pick<SignedDeposit, 'hash' | 'maxTime' | 'sinceLedger'>,
): Promise<{ ended: GrantEnding } | { ended: undefined; latestLedger: number }> {
  const answer = await lookUp(network, deposit.hash)
  if (answer.status === 'NOT_FOUND') {
    if (answer.latestLedgerCloseTime <= deposit.maxTime) return { ended: undefined, latestLedger: answer.latestLedger }
    return { ended: { status: answer.oldestLedger <= deposit.sinceLedger ? 'returned' : 'lost' } }
  }
  const resultCode = resultCodeOf(decodeResult(answer.resultXdr))
  const succeeded = answer.status === 'SUCCESS'
  if (succeeded !== (resultCode === 'txSuccess')) throw new Refusal('unavailable', 'the RPC contradicts itself')
  if (succeeded) return { ended: { status: 'granted', resultCode } }
  return {
    ended: { status: 'returned', resultCode, contractError: contractErrorOf(answer.diagnosticEventsXdr ?? []) },
  }
}

import { Account, type Keypair } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/http/refusal.ts'
import type { Network } from '#lib/stellar/network.ts'
import { readSequence } from '#lib/stellar/sequence.ts'
import { buildDeposit } from '#lib/wallet/calls.ts'

/** Seconds for which a signed deposit can apply: ledgers enough, and not long until it has expired. */
export const VALIDITY = 30

/** Stroops bid for inclusion, so that a busy network takes it, and on top of the simulated resource fee. */
const INCLUSION_FEE = 10_000
const MARGIN = 100_000n

/** A deposit, signed and not sent. */
export interface SignedDeposit {
  /** the account that pays it, G… */
  faucet: string
  /** base64 XDR, and its hash, 64 hex digits */
  signed: string
  hash: string
  /** the faucet's sequence number that it uses */
  sequenceNumber: bigint
  /** unix seconds */
  maxTime: number
  /** the ledger of the answer that showed the number unused */
  recordedLedger: number
}

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
    signed: signed.signedXdr,
    hash: signed.hash,
    sequenceNumber: sequence + 1n,
    maxTime: signed.maxTime,
    recordedLedger: latestLedger,
  }
}

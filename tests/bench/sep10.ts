import { Keypair, Networks, TransactionBuilder, WebAuth } from '@stellar/stellar-sdk'
import { buildChallenge, type Sep10Settings } from '#lib/auth/sep10/challenge.ts'
import { checkClientSignatures, readChallenge } from '#lib/auth/sep10/verification.ts'
import type { Measure } from './transfers.ts'

/** CPU time of one check of a signed challenge, compared with the SDK's own. */
export function measureSep10(rounds = 200): Measure[] {
  const domain = 'localhost:3000'
  const signer = Keypair.random()
  const wallet = Keypair.random()
  const settings: Sep10Settings = {
    signer,
    networkPassphrase: Networks.TESTNET,
    homeDomain: domain,
    webAuthDomain: domain,
  }
  const now = new Date()
  const challenge = buildChallenge(settings, { account: wallet.publicKey() }, now)
  const transaction = TransactionBuilder.fromXdr(challenge.transaction, Networks.TESTNET)
  transaction.sign(wallet)
  const signed = transaction.toXdr()
  const signers = [{ key: wallet.publicKey(), weight: 1, type: 'ed25519_public_key' }]
  const auth = { exists: true as const, thresholds: { low: 1, medium: 1, high: 1 }, signers }
  const ours = cpuMs(rounds, () => checkClientSignatures(settings, readChallenge(settings, signed, now), auth))
  const plain = cpuMs(rounds, () =>
    WebAuth.verifyChallengeTxThreshold(signed, signer.publicKey(), Networks.TESTNET, 1, signers, domain, domain),
  )
  return [{ name: 'SEP-10 verify: CPU per challenge', ours, plain, unit: 'ms', goal: "at most 0.2x of the SDK's" }]
}

function cpuMs(rounds: number, work: () => unknown): number {
  for (let warm = 0; warm < 10; warm += 1) work()
  const start = process.cpuUsage()
  for (let round = 0; round < rounds; round += 1) work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000 / rounds
}

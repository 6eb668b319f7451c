import { Keypair } from '@stellar/stellar-sdk'
import { devnetKeys } from '#lib/devnet/devnet.ts'
import type { BatchProgress } from '#lib/directory/batches/status.ts'
import { announceProofs } from '#lib/prover/progress.ts'
import { sponsorCall } from '#lib/sdk/sponsored-call.ts'
import { requestFriendbot } from '#lib/stellar/friendbot.ts'
import { formatUnits, parseUnits } from '#lib/text/money.ts'
import { fetchDeployment } from '#lib/wallet/deployment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { Prover } from '#lib/wallet/prover.ts'
import { endow, openTestNetwork, registerHolder } from '../client/participants.ts'
import { connectWallet, readSponsorAddress, sponsorTransfer } from '../client/wallet-session.ts'
import { showRun } from './delegated-run.ts'
import { decryptedBalance, nativeBalance, type Payment, payOne, table } from './payment.ts'
import {
  acceptInvite,
  followBatch,
  importAndInvite,
  type Payee,
  prepareBatch,
  readPayoutHashes,
  sealAmount,
} from './payroll-steps.ts'
import { awaitRelay, runRelayBatch } from './relay-batch.ts'

export interface Outcome {
  /** the differences from the promised result */
  failures: readonly string[]
  /** parts that the demo skipped, each with the reason */
  skipped: readonly string[]
}

const PROMISE = 'five confidential payments, and not a stroop of XLM from the employer.'

/** The last lines of the demo. They claim nothing about skipped parts. */
export function closingLines({ failures, skipped }: Outcome): string[] {
  const lines = [
    ...failures.map((failure) => `NOT AS PROMISED: ${failure}`),
    ...skipped.map((part) => `SKIPPED: ${part}`),
  ]
  if (failures.length > 0) return lines
  return [...lines, skipped.length === 0 ? `All as promised: ${PROMISE}` : `What was shown is as promised: ${PROMISE}`]
}

/** Bonuses in test USDC that the relay pays from its channels, by contractor. */
const BONUSES = ['100', '80.5', '120.25', '75', '60.0000001']

/** Amounts in test USDC that the relay pays from the employer's delegation, by contractor. */
const RUN_AMOUNTS = ['300', '250.5', '275.25', '310', '240.0000001']

const PAYROLL: readonly Payee[] = [
  { name: 'Ada Lovelace', pay: '4250' },
  { name: 'Grace Hopper', pay: '3980.5' },
  { name: 'Alan Turing', pay: '4100.25' },
  { name: 'Katherine Johnson', pay: '4475' },
  { name: 'Edsger Dijkstra', pay: '3720.0000001' },
]

/** Runs one payroll through the service at `base`. */
export async function runPayroll(
  { base, deploymentUrl, prover }: { base: string; deploymentUrl: string; prover: Prover },
  say: (line?: string) => void,
): Promise<Outcome> {
  // Six registrations, and a transfer to each contractor.
  const proofs = 1 + 2 * PAYROLL.length
  const network = await openTestNetwork(
    deploymentUrl,
    announceProofs(prover, proofs, (line) => say(`  ${line}`)),
  )
  const noRelay = await awaitRelay(base, say)
  const hasRelay = noRelay === undefined
  const sponsor = await readSponsorAddress(base)

  say('Creating accounts for an employer and five contractors …')
  const signers = Array.from({ length: 1 + PAYROLL.length }, () => Keypair.random())
  await Promise.all(signers.map((signer) => requestFriendbot(network.friendbotUrl, signer.publicKey())))
  const reserves = await Promise.all(signers.map((signer) => nativeBalance(network, signer.publicKey())))
  const [employer, ...holders] = await Promise.all(
    signers.map(async (signer) => {
      const own = await connectWallet(base, signer)
      return await registerHolder(network, signer, (signedXdr) => sponsorCall(own, signedXdr))
    }),
  )
  if (!employer) throw new Error('no employer')
  const client = await connectWallet(base, employer.signer)
  const total = PAYROLL.reduce((sum, { pay }) => sum + parseUnits(pay), 0n)
  say(`Depositing ${formatUnits(2n * total)} test USDC into the employer’s confidential balance …`)
  let opening = await endow(network, devnetKeys(network.passphrase).issuer, employer, 2n * total, (signedXdr) =>
    sponsorCall(client, signedXdr),
  )

  say('Signing in with the wallet (SEP-10), importing and inviting the contractors …')
  const invited = await importAndInvite(client, PAYROLL)
  const hired = PAYROLL.map((payee, index) => ({ ...payee, ...requireBoth(invited[index], holders[index]) }))
  const statuses = await Promise.all(hired.map(({ holder, token }) => acceptInvite(base, holder.signer, token)))
  say(`The contractors accept with their own wallets: ${statuses.join(', ')}`)

  const instructions = hired.map(({ id, pay }) => ({
    contractorId: id,
    encryptedAmount: sealAmount(employer.keys.vk, pay),
  }))
  const batch = await prepareBatch(client, 'The payroll', instructions)
  const ended = followBatch(client, batch.id, (progress) => say(`  ${describe(progress)}`))
  const payments: Payment[] = []
  for (const [index, { name, pay, holder }] of hired.entries()) {
    const sent = parseUnits(pay)
    const { next, ...payment } = await payOne(network, employer, opening, { to: holder, sent }, (signedXdr) =>
      sponsorTransfer(client, signedXdr, batch.payoutIds[index]),
    )
    opening = next
    payments.push({ name, sent, ...payment })
  }
  const { status } = await ended
  const left = await Promise.all(signers.map((signer) => nativeBalance(network, signer.publicKey())))
  const [before = 0n, after = 0n] = [reserves[0], left[0]]

  say()
  say(table(payments))
  say()
  say(
    `Employer's XLM before: ${formatUnits(before)}  after: ${formatUnits(after)}  spent: ${formatUnits(before - after)}`,
  )
  say()
  const received = await Promise.all(holders.map((holder) => decryptedBalance(network, holder)))
  for (const [index, { name, sent }] of payments.entries()) {
    say(
      `${name.padEnd(18)} sent ${formatUnits(sent)}  decrypted by the contractor ${formatUnits(received[index] ?? -1n)}`,
    )
  }
  const hashes = await readPayoutHashes(client, batch.id)
  const bonuses = hasRelay ? BONUSES.map((bonus) => parseUnits(bonus)) : []
  const relayed = hasRelay ? await runRelayBatch(client, bonuses, say) : 'completed'
  const rewarded = await Promise.all(holders.map((holder) => decryptedBalance(network, holder)))
  const namesRelay = (await fetchDeployment(deploymentUrl)).relay !== undefined
  const runFailures =
    hasRelay && namesRelay
      ? await showRun(
          { base, deploymentUrl, network, client, employer },
          hired.map(({ id, name, holder }, index) => {
            return { contractorId: id, name, holder, amount: RUN_AMOUNTS[index] ?? '1' }
          }),
          say,
        )
      : []
  const skipped = [
    ...(hasRelay ? [] : [`the relay's job and run (${noRelay})`]),
    ...(hasRelay && !namesRelay ? ['the run (the deployment document names no relay)'] : []),
  ]
  const failures = [
    ...runFailures,
    ...(relayed === 'completed' ? [] : [`the relay's job is ${relayed}`]),
    ...payments
      .filter(({ sent }, index) => hasRelay && rewarded[index] !== sent + (bonuses[index] ?? 0n))
      .map(({ name }) => `the relay paid ${name} a different amount`),
    ...(status === 'completed' ? [] : [`the batch is ${status}`]),
    ...(before === after ? [] : ['the employer spent XLM']),
    ...holders
      .filter((_, index) => left[index + 1] !== reserves[index + 1])
      .map(({ address }) => `${address} spent XLM`),
    ...payments
      .filter(({ sent }, index) => received[index] !== sent)
      .map(({ name }) => `${name} decrypts a different amount`),
    ...payments
      .filter(({ hash }, index) => hashes.get(batch.payoutIds[index] ?? '') !== hash)
      .map(({ name }) => `the payout of ${name} has a different hash`),
    ...payments
      .filter(({ paidBy }) => paidBy !== sponsor)
      .map(({ name, paidBy }) => `${paidBy} paid the fee for ${name}, not the sponsor`),
  ]
  return { failures, skipped }
}

function requireBoth(record: { id: string; token: string } | undefined, holder: Holder | undefined) {
  if (!record || !holder) throw new Error('a contractor is missing')
  return { ...record, holder }
}

function describe({ status, settledCount, payoutCount }: BatchProgress): string {
  return `batch ${status.padEnd(9)}  ${'■'.repeat(settledCount)}${'□'.repeat(payoutCount - settledCount)}  ${settledCount}/${payoutCount} paid`
}

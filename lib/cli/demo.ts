import { composeOperator } from '#lib/auth/operator.ts'
import { keepKeys } from '#lib/config/embedded-keys.ts'
import { environment } from '#lib/config/environment.ts'
import { devnetKeys, generateIdentityKey } from '#lib/devnet/devnet.ts'
import type { BatchProgress } from '#lib/directory/batches/status.ts'
import { loadProver, proverSettings } from '#lib/prover/node/loading.ts'
import { announceProofs } from '#lib/prover/progress.ts'
import { formatUnits, parseUnits } from '#lib/text/money.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { Prover } from '#lib/wallet/prover.ts'
import { runCommand } from './command.ts'
import { closingLines, type Outcome } from './demo/outcome.ts'
import { decryptedBalance, nativeBalance, type Payment, payOne, table } from './demo/payment.ts'
import {
  acceptInvite,
  followBatch,
  importAndInvite,
  type Payee,
  prepareBatch,
  readPayoutHashes,
  sealAmount,
} from './demo/payroll-steps.ts'
import { awaitRelay, runRelayBatch, sayProgress } from './demo/relay-batch.ts'
import { endow, enrol, openTestNetwork } from './participants.ts'
import { answers, type Serving, startServing } from './serve.ts'
import { connectWallet, readSponsorAddress, sponsorTransfer } from './wallet-session.ts'

/** Bonuses that the relay pays from its own channels, in test USDC, to the contractors in their order. */
const BONUSES = ['100', '80.5', '120.25', '75', '60.0000001']

/** The payees of the payroll and their amounts, in test USDC. */
const PAYROLL: readonly Payee[] = [
  { name: 'Ada Lovelace', pay: '4250' },
  { name: 'Grace Hopper', pay: '3980.5' },
  { name: 'Alan Turing', pay: '4100.25' },
  { name: 'Katherine Johnson', pay: '4475' },
  { name: 'Edsger Dijkstra', pay: '3720.0000001' },
]

const say = (line = '') => console.log(line)

/** Runs one payroll through the service. */
async function runPayroll(base: string, deploymentUrl: string, prover: Prover): Promise<Outcome> {
  // Six registrations, and a transfer to each contractor.
  const proofs = 1 + 2 * PAYROLL.length
  const network = await openTestNetwork(
    deploymentUrl,
    announceProofs(prover, proofs, (line) => say(`  ${line}`)),
  )
  const noRelay = await awaitRelay(base, say)
  const hasRelay = noRelay === undefined
  const sponsor = await readSponsorAddress(base)

  say('Making an employer and five contractors on the ledger …')
  const [employer, ...holders] = await Promise.all([enrol(network), ...PAYROLL.map(() => enrol(network))])
  if (!employer) throw new Error('no employer')
  const total = PAYROLL.reduce((sum, { pay }) => sum + parseUnits(pay), 0n)
  say(`Giving the employer ${formatUnits(2n * total)} test USDC, confidentially …`)
  let opening = await endow(network, devnetKeys(network.passphrase).issuer, employer, 2n * total)

  say('Signing in with the wallet (SEP-10), importing the contractors, inviting each …')
  const client = await connectWallet(base, employer.signer)
  const invited = await importAndInvite(client, PAYROLL)
  const hired = PAYROLL.map((payee, index) => ({ ...payee, ...both(invited[index], holders[index]) }))
  const statuses = await Promise.all(hired.map(({ holder, token }) => acceptInvite(base, holder.signer, token)))
  say(`Invites accepted by the contractors' own wallets: ${statuses.join(', ')}`)

  const instructions = hired.map(({ id, pay }) => ({
    contractorId: id,
    encryptedAmount: sealAmount(employer.keys.vk, pay),
  }))
  const batch = await prepareBatch(client, 'The payroll', instructions)
  const before = await nativeBalance(network, employer)
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
  const after = await nativeBalance(network, employer)

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
  const kept = await readPayoutHashes(client, batch.id)
  const bonuses = hasRelay ? BONUSES.map((bonus) => parseUnits(bonus)) : []
  const relayed = hasRelay ? await runRelayBatch(client, bonuses, say) : 'completed'
  const rewarded = await Promise.all(holders.map((holder) => decryptedBalance(network, holder)))
  const skipped = hasRelay ? [] : [`the batch of the relay (${noRelay})`]
  const failures = [
    ...(relayed === 'completed' ? [] : [`the relay's batch is ${relayed}`]),
    ...payments
      .filter(({ sent }, index) => hasRelay && rewarded[index] !== sent + (bonuses[index] ?? 0n))
      .map(({ name }) => `the relay paid ${name} another amount`),
    ...(status === 'completed' ? [] : [`the batch is ${status}`]),
    ...(before === after ? [] : ['the employer spent XLM']),
    ...payments.filter(({ sent }, index) => received[index] !== sent).map(({ name }) => `${name} reads another amount`),
    ...payments
      .filter(({ hash }, index) => kept.get(batch.payoutIds[index] ?? '') !== hash)
      .map(({ name }) => `the payout of ${name} has another hash`),
    ...payments
      .filter(({ paidBy }) => paidBy !== sponsor)
      .map(({ name, paidBy }) => `${paidBy} paid the fee for ${name}, not the sponsor`),
  ]
  return { failures, skipped }
}

function both(record: { id: string; token: string } | undefined, holder: Holder | undefined) {
  if (!record || !holder) throw new Error('a contractor is missing')
  return { ...record, holder }
}

function describe({ status, settledCount, payoutCount }: BatchProgress): string {
  return `batch ${status.padEnd(9)}  ${'■'.repeat(settledCount)}${'□'.repeat(payoutCount - settledCount)}  ${settledCount}/${payoutCount} paid`
}

const USAGE = `npm run demo -- [--once]

Pays five contractors through the service, on the embedded ledger: through the one that answers, or one that it starts.

  --once   ends the service afterwards`

async function demonstrate(isOnce: boolean): Promise<void> {
  const { PUBLIC_URL: base, DEVNET_PORT } = environment()
  let serving: Serving | undefined
  if (await answers(base)) say(`Using the service that answers at ${base}`)
  else {
    say(`Starting the service at ${base} …`)
    serving = await startServing(base, {}, (line) => sayProgress(line, say))
  }
  const end = async () => await serving?.stop()
  process.once('SIGINT', end)
  process.once('SIGTERM', end)
  const prover = await loadProver(proverSettings(environment()), say)
  const outcome = await runPayroll(base, `http://localhost:${DEVNET_PORT}/deployment.json`, prover)
    .catch(async (error) => {
      await end()
      throw error
    })
    .finally(() => prover.destroy?.())
  const hasFailed = outcome.failures.length > 0
  say()
  for (const line of closingLines(outcome)) (hasFailed ? console.error : say)(line)
  if (hasFailed) process.exitCode = 1
  if (isOnce || hasFailed) return await end()
  if (!serving) return
  say(`\nThe service goes on at ${base}/api (try ${base}/api/health). Ctrl-C ends it.`)
  say(`The dashboard is at ${base}/overview, its password ${await dashboardPassword()}`)
}

/**
 * The text to print as the password: the name of the variable that holds it, or the password that the service derives
 * from its embedded keys.
 */
async function dashboardPassword(): Promise<string> {
  const { OPERATOR_PASSWORD, DATABASE_URL, DATA_DIR } = environment()
  if (OPERATOR_PASSWORD) return 'that of OPERATOR_PASSWORD'
  if (DATABASE_URL) return 'none: set OPERATOR_PASSWORD'
  const { sessionSecret } = await keepKeys(DATA_DIR, generateIdentityKey)
  return composeOperator(sessionSecret, { password: undefined, embeddedSecret: sessionSecret })?.password ?? ''
}

await runCommand({
  usage: USAGE,
  options: { once: { type: 'boolean', default: false } },
  run: ({ once }) => demonstrate(once),
  explain: (error) => {
    console.error(error)
    return 'The demo pays on the embedded ledger. A .env in the folder, or a service elsewhere, may name another one.'
  },
})

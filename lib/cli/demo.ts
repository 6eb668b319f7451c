import { StrKey, type xdr } from '@stellar/stellar-sdk'
import { devnetKeys } from '#lib/devnet/keys.ts'
import { environment } from '#lib/env.ts'
import { formatUnits, parseUnits } from '#lib/money.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { endow, enrol, openTestNetwork, type TestNetwork } from './participants.ts'
import { payrollClient } from './payroll-client.ts'
import { answers, type Serving, startServing } from './serve.ts'

/** Who is paid what, in test USDC. */
const PAYROLL = [
  { name: 'Ada Lovelace', pay: '4250' },
  { name: 'Grace Hopper', pay: '3980.5' },
  { name: 'Alan Turing', pay: '4100.25' },
  { name: 'Katherine Johnson', pay: '4475' },
  { name: 'Edsger Dijkstra', pay: '3720.0000001' },
]

interface Payment {
  name: string
  sent: bigint
  hash: string
  ledger: number
  feeStroops: bigint
  paidBy: string
}

const say = (line = '') => console.log(line)

/** Runs one payroll through the service. Resolves to whatever turned out otherwise than promised. */
async function runPayroll(base: string, deploymentUrl: string): Promise<string[]> {
  const network = await openTestNetwork(deploymentUrl)
  const issuer = devnetKeys(network.passphrase).issuer
  const client = payrollClient(base)

  say('Making an employer and five contractors on the ledger …')
  const [employer, ...contractors] = await Promise.all([enrol(network), ...PAYROLL.map(() => enrol(network))])
  if (!employer) throw new Error('no employer')
  const total = PAYROLL.reduce((sum, { pay }) => sum + parseUnits(pay), 0n)
  say(`Giving the employer ${formatUnits(2n * total)} test USDC, confidentially …`)
  let opening = await endow(network, issuer, employer, 2n * total)

  say('Signing in with the wallet (SEP-10) …')
  const session = await client.signIn(employer.signer)
  const before = await nativeBalance(network, employer)
  const payments: Payment[] = []
  for (const [index, { name, pay }] of PAYROLL.entries()) {
    const contractor = contractors[index]
    if (!contractor) throw new Error('a contractor is missing')
    const sent = parseUnits(pay)
    const { next, ...payment } = await payOne(network, employer, opening, { to: contractor, sent }, (signedXdr) =>
      client.transfer(session, signedXdr),
    )
    opening = next
    payments.push({ name, sent, ...payment })
    say(`  ${index + 1}/${PAYROLL.length} paid ${name}: ${payment.hash.slice(0, 12)}… in ledger ${payment.ledger}`)
  }
  const after = await nativeBalance(network, employer)

  say()
  say(table(payments))
  say()
  say(
    `Employer's XLM before: ${formatUnits(before)}  after: ${formatUnits(after)}  spent: ${formatUnits(before - after)}`,
  )
  say()
  const received = await Promise.all(contractors.map((contractor) => decryptedBalance(network, contractor)))
  for (const [index, { name, sent }] of payments.entries()) {
    say(
      `${name.padEnd(18)} sent ${formatUnits(sent)}  decrypted by the contractor ${formatUnits(received[index] ?? -1n)}`,
    )
  }
  return [
    ...(before === after ? [] : ['the employer spent XLM']),
    ...payments.filter(({ sent }, index) => received[index] !== sent).map(({ name }) => `${name} reads another amount`),
    ...payments
      .filter(({ paidBy }) => paidBy === employer.signer.publicKey())
      .map(({ name }) => `the employer paid the fee for ${name}`),
  ]
}

async function payOne(
  network: TestNetwork,
  employer: Holder,
  opening: Opening,
  { to, sent }: { to: Holder; sent: bigint },
  transfer: (signedXdr: string) => Promise<string>,
): Promise<Omit<Payment, 'name' | 'sent'> & { next: Opening }> {
  const built = await buildTransfer(network, employer, { to: to.signer.publicKey(), amount: sent, opening })
  const hash = await transfer(built.signedXdr)
  const found = await network.rpc.getTransaction(hash)
  if (found.status !== 'SUCCESS') throw new Error(`transaction ${hash} is not on the ledger`)
  return {
    hash,
    ledger: found.ledger,
    feeStroops: found.resultXdr.feeCharged,
    paidBy: feeSource(found.envelopeXdr),
    next: built.next,
  }
}

function feeSource(envelope: xdr.TransactionEnvelope): string {
  if (envelope.type === 'envelopeTypeTxFeeBump' && envelope.feeBump.tx.feeSource.type === 'keyTypeEd25519') {
    return StrKey.encodeEd25519PublicKey(envelope.feeBump.tx.feeSource.ed25519.toBytes())
  }
  throw new Error('the transfer does not stand on the ledger as a fee bump')
}

async function nativeBalance(network: TestNetwork, { signer }: Holder): Promise<bigint> {
  return (await network.rpc.getAccountEntry(signer.publicKey())).balance
}

async function decryptedBalance(network: TestNetwork, { signer, keys }: Holder): Promise<bigint> {
  const balance = await syncBalance(network, { address: signer.publicKey(), vk: keys.vk })
  return balance.receiving.value + balance.spendable.value
}

function table(payments: readonly Payment[]): string {
  const rows = [
    ['contractor', 'transaction', 'ledger', 'fee (XLM)', 'paid by'],
    ...payments.map(({ name, hash, ledger, feeStroops, paidBy }) => [
      name,
      hash,
      String(ledger),
      formatUnits(feeStroops),
      `${paidBy.slice(0, 4)}…${paidBy.slice(-4)} (sponsor)`,
    ]),
  ]
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n')
}

async function main(): Promise<void> {
  const { PUBLIC_URL: base, DEVNET_PORT } = environment()
  const once = process.argv.includes('--once')
  let serving: Serving | undefined
  if (await answers(base)) say(`Using the service that answers at ${base}`)
  else {
    say(`Starting the service at ${base} …`)
    serving = await startServing(base)
  }
  const failures = await runPayroll(base, `http://localhost:${DEVNET_PORT}/deployment.json`)
  for (const failure of failures) console.error(`NOT AS PROMISED: ${failure}`)
  if (failures.length > 0) process.exitCode = 1
  else say('\nAll as promised: five confidential payments, and not a stroop of XLM from the employer.')
  if (!serving) return
  if (once || failures.length > 0) return await serving.stop()
  say(`\nThe service goes on at ${base}/api (try ${base}/api/health). Ctrl-C ends it.`)
  process.once('SIGINT', () => void serving.stop())
  process.once('SIGTERM', () => void serving.stop())
}

await main()

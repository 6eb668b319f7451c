import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { type PayrollClient, take } from '#lib/sdk/payroll-client.ts'
import { sponsorCall } from '#lib/sdk/sponsored-call.ts'
import { formatUnits, parseUnits } from '#lib/text/money.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildRevocation } from '#lib/wallet/calls.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { TestNetwork } from '../client/participants.ts'
import { decryptedBalance, nativeBalance } from './payment.ts'
import { followBatch, readPayoutHashes } from './payroll-steps.ts'

/** A contractor who is paid in the run; `amount` is test USDC as a decimal string. */
interface RunPayee {
  contractorId: string
  name: string
  holder: Holder
  amount: string
}

/** How much the employer delegates on top of the payments (test USDC). It gets this back. */
const SURPLUS = 100n * 10_000_000n

/**
 * Lets an employer start a run in a separate process, which then exits, and the relay pay it. Resolves to the
 * differences from the promised result.
 */
export async function showRun(
  {
    base,
    deploymentUrl,
    network,
    client,
    employer,
  }: { base: string; deploymentUrl: string; network: TestNetwork; client: PayrollClient; employer: Holder },
  payees: readonly RunPayee[],
  say: (line?: string) => void,
): Promise<string[]> {
  say()
  say('The employer delegates another batch of five to the relay, and closes the laptop …')
  const total = payees.reduce((sum, { amount }) => sum + parseUnits(amount), 0n)
  const escrow = formatUnits(total + SURPLUS)
  const received = await Promise.all(payees.map(({ holder }) => decryptedBalance(network, holder)))
  const [xlm, balance] = [await nativeBalance(network, employer.address), await syncBalance(network, employer)]
  const { id: batch } = await take(client.POST('/batches', { body: { name: 'The bonuses' } }))
  const channel = await startAsEmployer(
    {
      base,
      deploymentUrl,
      secret: employer.signer.secret(),
      batch,
      escrow,
      payments: payees.map(({ contractorId, holder, amount }) => ({ contractorId, address: holder.address, amount })),
    },
    say,
  )
  const { status } = await followBatch(client, batch, ({ settledCount, payoutCount }) =>
    say(`  the relay: ${settledCount}/${payoutCount} paid from the employer’s escrow`),
  )
  const hashes = await readPayoutHashes(client, batch)
  for (const hash of hashes.values()) say(`  payment ${hash}`)
  const paid = await Promise.all(payees.map(({ holder }) => decryptedBalance(network, holder)))

  await sponsorCall(client, (await buildRevocation(network, employer.signer, channel)).signedXdr)
  const after = await syncBalance(network, employer)
  const spent = balance.spendable.value - after.spendable.value
  const xlmSpent = xlm - (await nativeBalance(network, employer.address))
  say(`  revoked: ${formatUnits(SURPLUS)} test USDC are back. The employer has paid ${formatUnits(spent)} in all,`)
  say(`  with one start, and spent ${formatUnits(xlmSpent)} XLM.`)
  return [
    ...(status === 'completed' ? [] : [`the run's batch is ${status}`]),
    ...(spent === total ? [] : ['the remainder of the escrow did not come back']),
    ...(xlmSpent === 0n ? [] : ['the employer spent XLM on the run']),
    ...payees
      .filter(({ amount }, index) => paid[index] !== (received[index] ?? 0n) + parseUnits(amount))
      .map(({ name }) => `the run paid ${name} a different amount`),
  ]
}

const RESULT = z.object({ channel: z.string() })

/** Runs the employer's process with its task, and waits until it has ended. Resolves to the channel that it chose. */
async function startAsEmployer(task: object, say: (line: string) => void): Promise<string> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.resolve('./employer.ts'))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let channel = ''
  createInterface(child.stdout).on('line', (line) => {
    if (line.startsWith('{')) channel = RESULT.parse(JSON.parse(line)).channel
    else say(line)
  })
  // Through a pipe, because the arguments of a process are visible to others.
  child.stdin.end(JSON.stringify(task))
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`the employer's process ended with code ${code}`)
  return channel
}

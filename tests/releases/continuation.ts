import { expect } from 'vitest'
import { openTestNetwork } from '#lib/cli/client/participants.ts'
import { connectWallet, sponsorTransfer } from '#lib/cli/client/wallet-session.ts'
import { followBatch } from '#lib/cli/demo/payroll-steps.ts'
import { readVersion } from '#lib/config/version.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { take } from '#lib/sdk/payroll-client.ts'
import { parseUnits } from '#lib/text/money.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { type Unfinished, wallet } from './story.ts'

/** A running service on the data of an earlier version. */
export interface Continued {
  base: string
  deploymentUrl: string
  unfinished: Unfinished
}

/** What is overdue ends by its rule, what can go on goes on, and what failed can be paid. */
export async function expectContinuation({ base, deploymentUrl, unfinished }: Continued): Promise<void> {
  const client = await connectWallet(base, wallet('employer'))
  expect(await take(client.GET('/me'))).toMatchObject({ employer: { orgName: 'Upgraded Ltd' } })

  // The run: its relay's open transfer has expired, and its lines are paid from the same delegation.
  expect(await followBatch(client, unfinished.run, () => undefined)).toMatchObject({
    status: 'completed',
    payoutCount: 4,
    settledCount: 4,
  })
  // The client's transfer: its time bounds are over.
  await expect.poll(async () => (await payoutOf(client, unfinished))?.status).not.toBe('pending')
  const expired = await payoutOf(client, unfinished)
  expect(expired).toMatchObject({ status: 'failed', error: expect.stringContaining('expired') })
  // The job: a day is over.
  const another = await connectWallet(base, wallet('Dee'))
  const readJob = () => take(another.GET('/batch/{jobId}', { params: { path: { jobId: unfinished.job } } }))
  await expect.poll(async () => (await readJob()).status).toBe('failed')
  expect((await readJob()).results.map(({ status }) => status)).toEqual(['FAILED', 'FAILED'])

  const network = await openTestNetwork(deploymentUrl, prover)
  const employer = openHolder(wallet('employer'), network.token)
  const { spendable } = await syncBalance(network, employer)
  // 1000 deposited, less the delegation of the run.
  expect(spendable.value).toBeLessThanOrEqual(parseUnits('960'))
  const transfer = { to: wallet('Ann').publicKey(), amount: parseUnits('10'), opening: spendable }
  const { signedXdr } = await buildTransfer(network, employer, transfer)
  const hash = await sponsorTransfer(client, signedXdr, unfinished.payout)
  expect(await payoutOf(client, unfinished)).toMatchObject({ status: 'paid', txHash: hash })
  const { receiving } = await syncBalance(network, openHolder(wallet('Ann'), network.token))
  expect(receiving.value).toBe(parseUnits('20'))
}

async function payoutOf(client: Awaited<ReturnType<typeof connectWallet>>, { batch }: Unfinished) {
  const { payouts } = await take(client.GET('/batches/{id}', { params: { path: { id: batch } } }))
  return payouts[0]
}

/** The pages of an operator, and of the records that the data has left unfinished. */
export async function expectPages({ base, unfinished }: Continued, password: string): Promise<void> {
  const { run, batch, payout, job } = unfinished
  const signIn = await fetch(`${base}/sign-in/password`, {
    method: 'POST',
    redirect: 'manual',
    headers: { Origin: base },
    body: new URLSearchParams({ name: 'Ada', password }),
  })
  const cookie = signIn.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ')
  const read = async (path: string) => {
    const page = await fetch(base + path, { headers: { Cookie: cookie }, redirect: 'manual' })
    expect([path, page.status]).toEqual([path, 200])
    const text = await page.text()
    expect(text).not.toContain('Something went wrong')
    return text
  }
  const overview = await read('/overview')
  expect(overview).toContain(`Version <!-- -->${readVersion().version}`)
  const lists: string[] = [overview]
  for (const path of ['/batches', '/transfers', '/contractors', '/organisations', '/jobs', '/audit', '/search?q=Ann']) {
    lists.push(await read(path))
  }
  const listed = ['transfers', 'contractors', 'organisations'].map(
    (kind) => new RegExp(`/${kind}/[0-9a-f-]{36}`).exec(lists.join(''))?.[0] ?? `no ${kind}`,
  )
  const own = [`/batches/${run}`, `/batches/${batch}`, `/payouts/${payout}`, `/jobs/${job}`]
  for (const path of [...listed, ...own, '/batches.csv', '/transfers.csv', '/audit.csv']) await read(path)
}

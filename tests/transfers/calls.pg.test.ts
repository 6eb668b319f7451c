import { Keypair, Operation, TransactionBuilder } from '@stellar/stellar-sdk'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { endow, enrol, registerHolder, sendAndWait } from '#lib/cli/client/participants.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildDelegation, buildMerge, buildRegister, buildRevocation, buildTransfer } from '#lib/wallet/calls.ts'
import { ensureEscrow, readOwnDelegations, revokeAll } from '#lib/wallet/escrow.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { openApiClient } from '../support/api-client.ts'
import { employerWith } from '../support/fixtures.ts'
import { shareService } from '../support/shared-service.ts'
import type { SignedInPayer, TestService } from '../support/test-service.ts'
import { findDiscrepancies } from './quota-ledger.ts'

let service: TestService<'embedded'>
let channel: Holder
beforeAll(async () => {
  service = await shareService('embedded')
  const { network } = service.ledger
  channel = await enrol(network)
  const seenAt = sql`clock_timestamp()`
  await service.db.insert(relayChannels).values({ token: network.token, address: channel.address, seenAt, runs: true })
})
afterAll(() => service?.close())

const callAs = async ({ session }: { session: string }, signedXDR: string) =>
  await service.ask('POST', '/calls', { session, body: { signedXDR } })

const submitAs = (payer: { session: string }) => async (signedXdr: string) => {
  const { status, body } = await callAs(payer, signedXdr)
  if (status !== 200) throw new Error(String(body.error))
}

const stroopsOf = async (address: string) => (await service.ledger.network.rpc.getAccountEntry(address)).balance

/** Creates an account with exactly the minimum reserve, one XLM, and registers it. */
async function enrolPoor() {
  const { network, issuer } = service.ledger
  const signer = Keypair.random()
  const address = signer.publicKey()
  const source = await network.rpc.getAccount(issuer.publicKey())
  const creation = new TransactionBuilder(source, { fee: '100', networkPassphrase: network.passphrase })
    .addOperation(Operation.createAccount({ destination: address, startingBalance: '1' }))
    .setTimeout(60)
    .build()
  creation.sign(issuer)
  await sendAndWait(network, creation.toXdr())
  const session = await service.wallet(address)
  return { ...(await registerHolder(network, signer, submitAs({ session }))), session }
}

test('lets accounts with nothing but the minimum reserve register, merge, pay, delegate and revoke', async () => {
  const { network, issuer } = service.ledger
  const [payer, payee] = [await enrolPoor(), await enrolPoor()]
  const again = await buildRegister(network, payer, { auditorId: network.auditorId }).catch((error: unknown) => error)
  expect(again).toMatchObject({ contractError: 3500 })
  const opening = await endow(network, issuer, payer, 9n, submitAs(payer))
  const transfer = await buildTransfer(network, payer, { to: payee.address, amount: 4n, opening })
  expect(await service.post(payer, { signedXDR: transfer.signedXdr })).toMatchObject({ status: 200 })
  const { sequence } = await network.rpc.getLatestLedger()
  const delegation = { spender: channel.address, amount: 3n, liveUntilLedger: sequence + 5000, opening: transfer.next }
  await submitAs(payer)((await buildDelegation(network, payer, delegation)).signedXdr)
  await submitAs(payer)((await buildRevocation(network, payer.signer, channel.address)).signedXdr)
  await submitAs(payee)((await buildMerge(network, payee.signer)).signedXdr)
  const balances = await Promise.all([payer, payee].map((holder) => syncBalance(network, holder)))
  expect(balances.map(({ spendable }) => spendable.value)).toEqual([5n, 4n])
  expect(await Promise.all([payer, payee].map(({ address }) => stroopsOf(address)))).toEqual([1_0000000n, 1_0000000n])
})

test('sponsors a delegation and its revocation once each, however often they are posted', async () => {
  const { network } = service.ledger
  const payer = await service.employ()
  const before = await stroopsOf(payer.address)
  const { sequence } = await network.rpc.getLatestLedger()
  const delegation = { spender: channel.address, amount: 5n, opening: payer.opening }
  const early = await buildDelegation(network, payer, { ...delegation, liveUntilLedger: sequence + 100 })
  const refused = await callAs(payer, early.signedXdr)
  expect([refused.status, refused.body.code]).toEqual([422, 'live-until'])
  const { signedXdr, hash } = await buildDelegation(network, payer, { ...delegation, liveUntilLedger: sequence + 5000 })
  const answers = await Promise.all([1, 2, 3].map(() => callAs(payer, signedXdr)))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(await service.findTransfer(hash)).toMatchObject({
    kind: 'set_spender',
    status: 'succeeded',
    account: payer.address,
    owner: null,
    recipient: channel.address,
    payout: null,
  })
  const { delegations } = await readOwnDelegations(network, payer, [channel.address])
  expect(delegations).toEqual([{ spender: channel.address, left: 5n, liveUntilLedger: sequence + 5000 }])
  const revocation = await buildRevocation(network, payer.signer, channel.address)
  expect((await callAs(payer, revocation.signedXdr)).status).toBe(200)
  expect(await service.findTransfer(revocation.hash)).toMatchObject({ kind: 'revoke_spender', status: 'succeeded' })
  expect(await stroopsOf(payer.address)).toBe(before)
  expect(await findDiscrepancies(service.db)).toEqual([])
})

test('refuses a delegation to an account that isn’t a channel', async () => {
  const payer = await service.employ()
  const other = await service.employ()
  const delegation = { spender: other.address, amount: 5n, opening: payer.opening, liveUntilLedger: 5000 }
  const { signedXdr } = await buildDelegation(service.ledger.network, payer, delegation)
  const { status, body } = await callAs(payer, signedXdr)
  expect([status, body.code]).toEqual([422, 'spender'])
})

test('does not mistake the merge of an employer who is also a payee for the payment', async () => {
  const payer = await service.employ()
  const owner = await employerWith({ ...(await openApiClient(service)), db: service.db }, payer)
  const contractor = await owner.engage('the employer', { address: payer.address })
  await owner.prepare([contractor])
  const { signedXdr, hash } = await buildMerge(service.ledger.network, payer.signer)
  expect((await callAs(payer, signedXdr)).status).toBe(200)
  expect(await service.findTransfer(hash)).toMatchObject({ kind: 'merge', recipient: payer.address, payout: null })
  const { body } = await service.ask('GET', '/payouts', { session: payer.session })
  expect(body.payouts).toMatchObject([{ status: 'ready' }])
})

test('the wallet delegates once, keeps a sufficient delegation, and returns the rest', async () => {
  const { network } = service.ledger
  const payer: SignedInPayer = await service.employ(100n)
  const lines: string[] = []
  const means = { submit: submitAs(payer), say: (line: string) => void lines.push(line) }
  const escrow = { spender: channel.address, amount: 30n, leastLedgers: 500, ledgers: 20_000 }
  await ensureEscrow(network, payer, escrow, means)
  await ensureEscrow(network, payer, { ...escrow, amount: 20n }, means)
  expect(lines).toHaveLength(1)
  const [first] = (await readOwnDelegations(network, payer, [channel.address])).delegations
  await ensureEscrow(network, payer, { ...escrow, amount: 40n }, means)
  const [second] = (await readOwnDelegations(network, payer, [channel.address])).delegations
  expect(second?.left).toBe(40n)
  expect(second?.liveUntilLedger).toBeGreaterThan(first?.liveUntilLedger ?? 0)
  await expect(ensureEscrow(network, payer, { ...escrow, amount: 101n }, means)).rejects.toMatchObject({
    code: 'balance-too-low',
  })
  expect(
    await revokeAll(
      network,
      payer,
      [{ channel: channel.address, liveUntilLedger: second?.liveUntilLedger ?? 0 }],
      means.submit,
    ),
  ).toBe(0n)
  expect((await readOwnDelegations(network, payer, [channel.address])).delegations).toEqual([])
})

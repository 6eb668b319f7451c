import { Asset, Keypair, Operation, rpc, type Transaction, TransactionBuilder } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Devnet, devnetKeys, prover, startDevnet } from '#lib/devnet/devnet.ts'
import { readConfidentialAccount } from '#lib/wallet/account.ts'
import { type SyncedBalance, syncBalance } from '#lib/wallet/balance.ts'
import { buildDeposit, buildMerge, buildRegister, buildTransfer, buildWithdraw } from '#lib/wallet/calls.ts'
import { prepareChain } from '#lib/wallet/chain.ts'
import { NOTHING, opens } from '#lib/wallet/commitment.ts'
import { auditRecipient, auditSender, decryptTransfer } from '#lib/wallet/decryption.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { readAccountEvents } from '#lib/wallet/events.ts'
import { type Holder, openHolder } from '#lib/wallet/keys.ts'
import { buildCall, type ContractFailure, type SignedCall, signCall } from '#lib/wallet/transaction.ts'
import { hex, keypair, seeded } from './fixtures.ts'

const PASSPHRASE = 'Standalone Network ; February 2017'
const USDC = 10_000_000n

let devnet: Devnet
let deployment: Deployment
let employer: Holder
let contractors: Holder[]

beforeAll(async () => {
  devnet = await startDevnet({ directory: null, port: 0, closeMs: 100, passphrase: PASSPHRASE })
  const { token, auditor } = devnet.deployment.contracts
  deployment = {
    rpc: new rpc.Server(devnet.rpcUrl, { allowHttp: true }),
    passphrase: PASSPHRASE,
    token,
    auditor,
    prover,
    random: seeded('devnet'),
  }
  employer = openHolder(keypair('employer'), token)
  contractors = Array.from({ length: 5 }, (_, index) => openHolder(keypair(`contractor ${index}`), token))
  await Promise.all([employer, ...contractors].map(open))
})

afterAll(() => devnet?.close())

/** Funds the Stellar account and registers its confidential keys. */
async function open(holder: Holder): Promise<void> {
  const funded = await fetch(`${devnet.friendbotUrl}?addr=${holder.signer.publicKey()}`)
  expect(funded.status).toBe(200)
  await apply(await buildRegister(deployment, holder, { auditorId: 0 }))
}

async function send({ signedXdr, hash }: SignedCall) {
  const sent = await deployment.rpc.sendTransaction(TransactionBuilder.fromXdr(signedXdr, PASSPHRASE))
  expect(sent).toMatchObject({ status: 'PENDING', hash })
  return deployment.rpc.pollTransaction(hash, { attempts: 100, sleepStrategy: () => 50 })
}

async function apply(call: SignedCall): Promise<void> {
  expect((await send(call)).status).toBe('SUCCESS')
}

const address = (holder: Holder): string => holder.signer.publicKey()
const sync = (holder: Holder, known?: SyncedBalance): Promise<SyncedBalance> =>
  syncBalance(deployment, { address: address(holder), vk: holder.keys.vk }, known)
const contractor = (index: number): Holder => contractors[index] ?? employer

async function refusalOf(attempt: Promise<unknown>): Promise<unknown> {
  return attempt.then(
    () => 'nothing was refused',
    (refusal: unknown) => refusal,
  )
}

describe('on a ledger', () => {
  test('a registered account shows its keys and owns nothing', async () => {
    const account = await readConfidentialAccount(deployment.rpc, deployment.token, address(employer))
    expect(account).toMatchObject({ auditorId: 0, archived: false })
    expect(hex(account?.viewingKey ?? new Uint8Array())).toBe(hex(employer.keys.viewingKey))
    expect(hex(account?.spendingKey ?? new Uint8Array())).toBe(hex(employer.keys.spendingKey))
    expect(await sync(employer)).toMatchObject({ spendable: { value: 0n }, receiving: { value: 0n } })
    const nobody = keypair('nobody').publicKey()
    expect(await readConfidentialAccount(deployment.rpc, deployment.token, nobody)).toBeUndefined()
  })

  test('registering twice, or under an auditor that is not there, is refused with the contract error', async () => {
    const again = await refusalOf(buildRegister(deployment, employer, { auditorId: 0 }))
    expect(again).toMatchObject({ code: 'refused', cause: { contractError: 3500 } })
    const other = openHolder(keypair('other'), deployment.token)
    await fetch(`${devnet.friendbotUrl}?addr=${address(other)}`)
    const unknown = await refusalOf(buildRegister(deployment, other, { auditorId: 9 }))
    expect(unknown).toMatchObject({
      code: 'refused',
      cause: { contractError: 3301 } satisfies Partial<ContractFailure>,
    })
  })

  test('a deposit from the issuer arrives, a merge makes it spendable', async () => {
    const issuer = Keypair.fromSecret(devnet.issuerSecret)
    await apply(await buildDeposit(deployment, issuer, { to: address(employer), amount: 1000n * USDC }))
    const received = await sync(employer)
    expect(received.receiving.value).toBe(1000n * USDC)
    const merge = await buildMerge(deployment, employer.signer, received)
    await apply(merge)
    const merged = await sync(employer, received)
    expect(merged.spendable).toEqual(merge.next)
    expect(merged.receiving.value).toBe(0n)
  })

  test('an event that the RPC leaves out is missed, also while its amount is only received', async () => {
    const issuer = Keypair.fromSecret(devnet.issuerSecret)
    const poor = openHolder(keypair('forgotten'), deployment.token)
    await open(poor)
    await apply(await buildDeposit(deployment, issuer, { to: address(poor), amount: USDC }))
    const forgetful = Object.assign(Object.create(deployment.rpc), {
      getEvents: async (request: Parameters<rpc.Server['getEvents']>[0]) => {
        const page = await deployment.rpc.getEvents(request)
        return { ...page, events: page.events.slice(0, -1) }
      },
    })
    const account = { address: address(poor), vk: poor.keys.vk }
    await expect(syncBalance({ ...deployment, rpc: forgetful }, account)).rejects.toMatchObject({ code: 'conflict' })
    expect((await sync(poor)).receiving.value).toBe(USDC)
  })

  test('a transfer is read by sender, recipient and auditor, and by nobody else', async () => {
    const before = await sync(employer)
    const amount = 12_3456789n
    const recipient = contractor(0)
    const transfer = await buildTransfer(deployment, employer, {
      to: address(recipient),
      amount,
      opening: before.spendable,
    })
    await apply(transfer)
    const after = await sync(employer, before)
    expect(after.spendable).toEqual(transfer.next)
    expect(after.spendable.value).toBe(before.spendable.value - amount)
    expect((await sync(recipient)).receiving.value).toBe(amount)

    const { events } = await readAccountEvents(deployment, address(recipient))
    const event = events.find(({ name }) => name === 'transfer')
    expect(event).toMatchObject({ transaction: transfer.hash, addresses: [address(employer), address(recipient)] })
    const fields = event?.fields ?? {}
    const { auditor } = devnetKeys(PASSPHRASE)
    expect(auditRecipient(auditor, fields)?.value).toBe(amount)
    expect(auditSender(auditor, fields)).toMatchObject({ amount, balance: after.spendable.value })
    expect(decryptTransfer(contractor(1).keys.vk, fields)).toBeUndefined()
    expect(await refusalOf(syncBalance(deployment, { address: address(recipient), vk: 5n }))).toMatchObject({
      code: 'conflict',
    })
  })

  test('a transfer proved against a balance that has moved on fails with #3506', async () => {
    const { spendable } = await sync(employer)
    const [source, later] = [await deployment.rpc.getAccount(address(employer)), { seconds: 200 }]
    const transfer = { to: address(contractor(1)), amount: USDC, opening: spendable }
    const first = await buildTransfer(deployment, employer, transfer, { source })
    const stale = await buildTransfer(deployment, employer, transfer, { ...later, source })
    await apply(first)
    const simulation = await deployment.rpc.simulateTransaction(TransactionBuilder.fromXdr(stale.signedXdr, PASSPHRASE))
    expect(simulation).toMatchObject({ error: expect.stringContaining('Error(Contract, #3506)') })
    expect((await send(stale)).status).toBe('FAILED')
    expect((await sync(employer)).spendable).toEqual(first.next)
    expect(await refusalOf(buildTransfer(deployment, employer, transfer))).toMatchObject({ code: 'conflict' })
  })

  test('a chain of five applies in order, to recipients old and new', async () => {
    const before = await sync(employer)
    const payouts = contractors.map((holder, index) => ({ to: address(holder), amount: BigInt(index + 1) * USDC }))
    const earlier = await Promise.all(contractors.map((holder) => sync(holder)))
    const links = await prepareChain(deployment, employer, { opening: before.spendable, payouts })
    expect(links.map(({ to, amount }) => ({ to, amount }))).toEqual(payouts)
    for (const link of links) await apply(link)
    const after = await sync(employer, before)
    expect(after.spendable).toEqual(links.at(-1)?.next)
    expect(after.spendable.value).toBe(before.spendable.value - 15n * USDC)
    for (const [index, holder] of contractors.entries()) {
      const balance = await sync(holder)
      expect(balance.receiving.value - (earlier[index]?.receiving.value ?? 0n)).toBe(BigInt(index + 1) * USDC)
    }
  })

  test('a chain pays one recipient twice, and the sender itself', async () => {
    const { spendable, receiving } = await sync(employer)
    const payouts = [contractor(3), employer, contractor(3)].map((holder) => ({ to: address(holder), amount: USDC }))
    for (const link of await prepareChain(deployment, employer, { opening: spendable, payouts })) await apply(link)
    const after = await sync(employer)
    expect(after.spendable.value).toBe(spendable.value - 3n * USDC)
    expect(after.receiving.value).toBe(receiving.value + USDC)
  })

  test('each link of a chain that begins with new accounts declares a fee that a sponsor takes at its turn', async () => {
    const [payer, payee, newer] = ['payer', 'payee', 'newer payee'].map((name) =>
      openHolder(keypair(name), deployment.token),
    ) as [Holder, Holder, Holder]
    await Promise.all([payer, payee, newer].map(open))
    const payouts = [payee, payee, contractor(0), newer, newer].map((holder) => ({ to: address(holder), amount: 0n }))
    for (const link of await prepareChain(deployment, payer, { opening: NOTHING, payouts })) {
      const transaction = TransactionBuilder.fromXdr(link.signedXdr, PASSPHRASE) as Transaction
      const declared = BigInt(transaction.fee) - 100n
      const simulated = await deployment.rpc.simulateTransaction(transaction)
      const needed = rpc.Api.isSimulationSuccess(simulated) ? BigInt(simulated.minResourceFee) : -1n
      // Rent grows by some stroops with each ledger that closes meanwhile, which a sponsor allows for.
      expect(declared + 1_000n).toBeGreaterThanOrEqual(needed)
      expect(declared).toBeLessThanOrEqual(2n * needed + 100_000n)
      await apply(link)
    }
  })

  test('once a link has failed, the later ones are void', async () => {
    const { spendable } = await sync(employer)
    const payouts = contractors.slice(0, 3).map((holder) => ({ to: address(holder), amount: USDC }))
    const [, second, third] = await prepareChain(deployment, employer, { opening: spendable, payouts })
    const source = await deployment.rpc.getAccount(address(employer))
    const bump = Operation.bumpSequence({ bumpTo: '0' })
    await apply(signCall(buildCall(deployment, source, bump, {}), employer.signer))
    for (const link of [second, third]) if (link) expect((await send(link)).status).toBe('FAILED')
    expect((await sync(employer)).spendable).toEqual(spendable)
  })

  test('a contractor merges and withdraws', async () => {
    const holder = contractor(4)
    const asset = new Asset(devnet.deployment.asset.code, devnet.deployment.asset.issuer)
    const source = await deployment.rpc.getAccount(address(holder))
    await apply(signCall(buildCall(deployment, source, Operation.changeTrust({ asset }), {}), holder.signer))
    await apply(await buildMerge(deployment, holder.signer))
    const { spendable } = await sync(holder)
    expect(spendable.value).toBe(5n * USDC)
    const withdrawal = { to: address(holder), amount: 2n * USDC, opening: spendable }
    const signed = await buildWithdraw(deployment, holder, withdrawal)
    await apply(signed)
    expect((await sync(holder)).spendable).toEqual(signed.next)
    expect(signed.next.value).toBe(3n * USDC)
    expect((await deployment.rpc.getTrustline(address(holder), asset)).balance).toBe(2n * USDC)
    const account = await readConfidentialAccount(deployment.rpc, deployment.token, address(holder))
    expect(account && opens(signed.next, account.spendable)).toBe(true)
  })

  test('what cannot be is refused before it is signed', async () => {
    const { spendable } = await sync(employer)
    const to = address(contractor(0))
    const transfer = { to, amount: 1n, opening: spendable }
    const tooMuch = { ...transfer, amount: spendable.value + 1n }
    const own = { ...transfer, to: address(employer) }
    const nobody = keypair('nobody').publicKey()
    const cases: [() => Promise<unknown>, string][] = [
      [() => buildTransfer(deployment, employer, tooMuch), 'refused'],
      [() => buildWithdraw(deployment, employer, tooMuch), 'refused'],
      [() => prepareChain(deployment, employer, { opening: spendable, payouts: [transfer, tooMuch] }), 'refused'],
      [() => prepareChain(deployment, employer, { opening: spendable, payouts: [own, transfer] }), 'refused'],
      [() => buildTransfer(deployment, employer, { ...transfer, amount: -1n }), 'malformed'],
      [() => buildTransfer(deployment, employer, { ...transfer, to: nobody }), 'not-found'],
      [() => syncBalance(deployment, { address: nobody, vk: 5n }), 'not-found'],
      [() => buildTransfer(deployment, { ...employer, keys: contractor(1).keys }, transfer), 'conflict'],
    ]
    for (const [attempt, code] of cases) expect(await refusalOf(attempt())).toMatchObject({ name: 'Refusal', code })
  })
})

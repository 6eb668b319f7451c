import { createHash } from 'node:crypto'
import { Address, Asset, Keypair, Operation, rpc, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Devnet, devnetKeys, startDevnet } from '#lib/devnet/devnet.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { readUnderlyingAsset } from '#lib/stellar/asset.ts'
import { readConfidentialAccount, readDelegations, readParties } from '#lib/wallet/account.ts'
import { type SyncedBalance, syncBalance } from '#lib/wallet/balance.ts'
import { decodeCallData } from '#lib/wallet/call-data.ts'
import {
  buildDelegation,
  buildDeposit,
  buildMerge,
  buildRegister,
  buildRevocation,
  buildTransfer,
  buildWithdraw,
  signSpending,
} from '#lib/wallet/calls.ts'
import { opens } from '#lib/wallet/commitment.ts'
import { decryptTransfer } from '#lib/wallet/decryption.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import type { Payload } from '#lib/wallet/encryption.ts'
import { readAccountEvents } from '#lib/wallet/events.ts'
import { scAddress, scAmount } from '#lib/wallet/invocation.ts'
import { type Holder, openHolder } from '#lib/wallet/keys.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { openAllowance, proveDelegatedTransfer } from '#lib/wallet/spending.ts'
import { buildCall, type SignedCall, signCall } from '#lib/wallet/transaction.ts'
import { auditRecipient, auditSender } from './auditor.ts'
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
  return deployment.rpc.pollTransaction(hash, { attempts: 10_000, sleepStrategy: () => 50 })
}

async function apply(call: SignedCall): Promise<void> {
  expect((await send(call)).status).toBe('SUCCESS')
}

/** The payload of a signed call, whose last argument is its data. */
function payloadOf({ signedXdr }: SignedCall): Payload {
  const [operation] = TransactionBuilder.fromXdr(signedXdr, PASSPHRASE).operations
  const call = operation?.type === 'invokeHostFunction' ? operation.func : undefined
  const data = call?.type === 'hostFunctionTypeInvokeContract' ? call.invokeContract.args.at(-1) : undefined
  if (data?.type !== 'scvBytes') throw new Error('the call has no data')
  return decodeCallData(new Uint8Array(data.bytes.toBytes())).payload
}

/** The contract call and the authorization of a signed call. */
function signedCallOf(signedXdr: string) {
  const [operation] = TransactionBuilder.fromXdr(signedXdr, PASSPHRASE).operations
  if (operation?.type !== 'invokeHostFunction' || operation.func.type !== 'hostFunctionTypeInvokeContract') {
    throw new Error('not a contract call')
  }
  return { call: operation.func.invokeContract, auth: operation.auth ?? [] }
}

function callOf(contract: string, functionName: string, args: xdr.ScVal[]): xdr.SorobanAuthorizedInvocation {
  const contractAddress = new Address(contract).toScAddress()
  return invocationOf(new xdr.InvokeContractArgs({ contractAddress, functionName, args }), [])
}

function invocationOf(
  call: xdr.InvokeContractArgs,
  subInvocations: xdr.SorobanAuthorizedInvocation[],
): xdr.SorobanAuthorizedInvocation {
  const authorized = xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(call)
  return new xdr.SorobanAuthorizedInvocation({ function: authorized, subInvocations })
}

const hash = (value: { toXdr(format: 'hex'): string }) => createHash('sha256').update(value.toXdr('hex')).digest('hex')

const assetContract = async () => (await readUnderlyingAsset(deployment.rpc, deployment.token)).contract

/** The deployment behind an RPC that changes its simulations of calls. */
function rewriting(
  change: (
    simulation: rpc.Api.SimulateTransactionSuccessResponse,
    call: xdr.InvokeContractArgs,
  ) => rpc.Api.SimulateTransactionSuccessResponse,
): Deployment {
  const lying = Object.assign(Object.create(deployment.rpc), {
    simulateTransaction: async (...request: Parameters<rpc.Server['simulateTransaction']>) => {
      const simulation = await deployment.rpc.simulateTransaction(...request)
      const { call } = signedCallOf(request[0].toXdr())
      const isRead = String(call.functionName) === 'get_key'
      return 'error' in simulation || isRead ? simulation : change(simulation, call)
    },
  })
  return { ...deployment, rpc: lying }
}

const address = (holder: Holder): string => holder.address
const sync = (holder: Holder, known?: SyncedBalance): Promise<SyncedBalance> => syncBalance(deployment, holder, known)
const contractor = (index: number): Holder => contractors[index] ?? employer

async function errorOf(attempt: Promise<unknown>): Promise<unknown> {
  return attempt.then(
    () => 'nothing was refused',
    (refusal: unknown) => refusal,
  )
}

describe('on a ledger', () => {
  test('a registered account has its keys and an empty balance', async () => {
    const account = await readConfidentialAccount(deployment.rpc, deployment.token, address(employer))
    expect(account).toMatchObject({ auditorId: 0 })
    expect(hex(account?.viewingKey ?? new Uint8Array())).toBe(hex(employer.keys.viewingKey))
    expect(hex(account?.spendingKey ?? new Uint8Array())).toBe(hex(employer.keys.spendingKey))
    expect(await sync(employer)).toMatchObject({ spendable: { value: 0n }, receiving: { value: 0n } })
    const nobody = keypair('nobody').publicKey()
    expect(await readConfidentialAccount(deployment.rpc, deployment.token, nobody)).toBeUndefined()
  })

  test('a second registration and an unknown auditor fail with the contract error', async () => {
    const again = await errorOf(buildRegister(deployment, employer, { auditorId: 0 }))
    expect(again).toMatchObject({ code: 'already-registered', contractError: 3500 })
    const other = openHolder(keypair('other'), deployment.token)
    await fetch(`${devnet.friendbotUrl}?addr=${address(other)}`)
    const unknown = await errorOf(buildRegister(deployment, other, { auditorId: 9 }))
    expect(unknown).toMatchObject({
      code: 'would-fail',
      contractError: 3301,
    })
  })

  test('a deposit from the issuer is received, and a merge makes it spendable', async () => {
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

  test('an event that the RPC omits is noticed, even if it only changes the receiving balance', async () => {
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
    await expect(syncBalance({ ...deployment, rpc: forgetful }, poor)).rejects.toMatchObject({
      code: 'history-incomplete',
      message: expect.stringContaining(`the events do not account for the receiving balance of ${address(poor)}`),
    })
    expect((await sync(poor)).receiving.value).toBe(USDC)
  })

  test('only sender, recipient and auditor can decrypt a transfer', async () => {
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
    expect(await errorOf(syncBalance(deployment, { address: address(recipient), keys: { vk: 5n } }))).toMatchObject({
      code: 'history-incomplete',
    })
  })

  test('a transfer that was proved for an earlier balance fails with #3506', async () => {
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
    for (const build of [buildTransfer, buildWithdraw]) {
      expect(await errorOf(build(deployment, employer, transfer))).toMatchObject({
        code: 'balance-changed',
        message: 'the spendable balance on the ledger is not that of the opening: synchronise and try again',
      })
    }
  })

  test('a contractor merges and withdraws', async () => {
    const holder = contractor(4)
    const pay = { to: address(holder), amount: 5n * USDC, opening: (await sync(employer)).spendable }
    await apply(await buildTransfer(deployment, employer, pay))
    const asset = new Asset(devnet.deployment.asset.code, devnet.deployment.asset.issuer)
    const source = await deployment.rpc.getAccount(address(holder))
    await apply(await signCall(buildCall(deployment, source, Operation.changeTrust({ asset }), {}), holder.signer))
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

  test('a spender pays from a delegation, and the owner takes back the rest', async () => {
    const [owner, spender, payee] = [employer, contractor(2), contractor(3)]
    const [before, received] = [await sync(owner), (await sync(payee)).receiving.value]
    const liveUntilLedger = (await deployment.rpc.getLatestLedger()).sequence + 1_000
    const delegation = { spender: address(spender), amount: 9n * USDC, liveUntilLedger, opening: before.spendable }
    const delegated = await buildDelegation(deployment, owner, delegation)
    await apply(delegated)
    expect((await sync(owner, before)).spendable).toEqual(delegated.next)

    for (const amount of [2n * USDC, 3n * USDC]) {
      const { delegations } = await readDelegations(deployment, [{ owner: address(owner), spender: address(spender) }])
      const entry = delegations[0]
      expect(entry?.live_until_ledger).toBe(liveUntilLedger)
      const allowance = entry && openAllowance(spender, address(owner), entry)
      if (!allowance) throw new Error('the spender cannot open its allowance')
      const party = await readParties(deployment, [address(owner), address(payee)])
      const terms = {
        to: address(payee),
        amount,
        viewingKey: party(address(payee)).account.viewingKey,
        auditorRecipient: party(address(payee)).auditor,
        auditorSender: party(address(owner)).auditor,
      }
      const [proved, again] = await Promise.all([
        proveDelegatedTransfer(deployment, spender, allowance, terms),
        proveDelegatedTransfer(deployment, spender, allowance, terms),
      ])
      expect(proved.rest.salt).not.toBe(again.rest.salt)
      await apply(await signSpending(deployment, spender, proved))
    }
    expect((await sync(payee)).receiving.value).toBe(received + 5n * USDC)

    await apply(await buildRevocation(deployment, owner.signer, address(spender)))
    expect((await sync(owner)).spendable.value).toBe(before.spendable.value - 5n * USDC)
    const { delegations } = await readDelegations(deployment, [{ owner: address(owner), spender: address(spender) }])
    expect(delegations).toEqual([undefined])
  })

  test.each([
    ['transfer', buildTransfer, () => address(contractor(0))],
    // The issuer needs no trustline.
    ['withdrawal', buildWithdraw, () => devnetKeys(PASSPHRASE).issuer.publicKey()],
  ] as const)('a %s that is built again has a new salt', async (_, build, payee) => {
    const { spendable: opening } = await sync(employer)
    const payment = { to: payee(), amount: 0n, opening }
    const payloads = await Promise.all([1, 2].map(async () => payloadOf(await build(deployment, employer, payment))))
    const [first, second] = payloads.map(({ sigma }) => hex(sigma ?? new Uint8Array()))
    expect(first).toMatch(/^[0-9a-f]{64}$/)
    expect(first).not.toBe(second)
  })

  test('a delegation that is built again has new salts', async () => {
    const { spendable: opening } = await sync(employer)
    const delegation = { spender: address(contractor(2)), amount: 1n, liveUntilLedger: 1_000_000, opening }
    const payloads = await Promise.all(
      [1, 2].map(async () => payloadOf(await buildDelegation(deployment, employer, delegation))),
    )
    const [first, second] = payloads.map(({ sigma, sigma_a }) =>
      [sigma, sigma_a].map((salt) => hex(salt ?? new Uint8Array())),
    )
    expect(new Set([...(first ?? []), ...(second ?? [])]).size).toBe(4)
  })

  test('a call that would fail is rejected before it is signed', async () => {
    const { spendable } = await sync(employer)
    const to = address(contractor(0))
    const transfer = { to, amount: 1n, opening: spendable }
    const tooMuch = { ...transfer, amount: spendable.value + 1n }
    const nobody = keypair('nobody').publicKey()
    const cases: [() => Promise<unknown>, string][] = [
      [() => buildTransfer(deployment, employer, tooMuch), 'balance-too-low'],
      [() => buildWithdraw(deployment, employer, tooMuch), 'balance-too-low'],
      [() => buildTransfer(deployment, employer, { ...transfer, amount: -1n }), 'malformed'],
      [() => buildTransfer(deployment, employer, { ...transfer, to: nobody }), 'not-registered'],
      [() => syncBalance(deployment, { address: nobody, keys: { vk: 5n } }), 'not-registered'],
      [() => buildTransfer(deployment, { ...employer, keys: contractor(1).keys }, transfer), 'other-keys'],
    ]
    for (const [attempt, code] of cases) expect(await errorOf(attempt())).toMatchObject({ name: 'WalletError', code })
  })

  test('a wallet signs the authorization that it built, and none that the simulation adds', async () => {
    const issuer = Keypair.fromSecret(devnet.issuerSecret)
    const { spendable: opening } = await sync(employer)
    const newcomer = openHolder(keypair('newcomer'), deployment.token)
    await fetch(`${devnet.friendbotUrl}?addr=${address(newcomer)}`)
    const [spender, payee] = [address(contractor(2)), address(contractor(3))]
    const pull = [scAddress(issuer.publicKey()), scAddress(deployment.token), scAmount(7n)]
    const deposit = callOf(await assetContract(), 'transfer', pull)
    const delegation = { spender, amount: 1n, liveUntilLedger: 1_000_000, opening }
    const away = { to: issuer.publicKey(), amount: 0n, opening }
    const calls: [(lying: Deployment) => Promise<SignedCall>, within: xdr.SorobanAuthorizedInvocation[]][] = [
      [(lying) => buildRegister(lying, newcomer, { auditorId: 0 }), []],
      [(lying) => buildDeposit(lying, issuer, { to: payee, amount: 7n }), [deposit]],
      [(lying) => buildMerge(lying, employer.signer), []],
      [(lying) => buildTransfer(lying, employer, { to: payee, amount: 0n, opening }), []],
      [(lying) => buildWithdraw(lying, employer, away), []],
      [(lying) => buildDelegation(lying, employer, delegation), []],
    ]
    const steal = callOf(await assetContract(), 'transfer', [
      scAddress(address(employer)),
      scAddress(payee),
      scAmount(9n),
    ])
    const authorize = (root: xdr.SorobanAuthorizedInvocation) => {
      const credentials = xdr.SorobanCredentials.sorobanCredentialsSourceAccount()
      return new xdr.SorobanAuthorizationEntry({ credentials, rootInvocation: root })
    }
    for (const [build, within] of calls) {
      const own: xdr.InvokeContractArgs[] = []
      const lying = rewriting((simulation, call) => {
        own.push(call)
        const auth = [authorize(invocationOf(call, [...within, steal]))]
        return { ...simulation, result: { retval: xdr.ScVal.scvVoid(), ...simulation.result, auth } }
      })
      const { call, auth } = signedCallOf((await build(lying)).signedXdr)
      expect(own.map((each) => hash(each))).toEqual([hash(call)])
      expect(auth.map((each) => hash(each))).toEqual([hash(authorize(invocationOf(call, within)))])
    }
  })

  test('a wallet signs no resource fee above its bound', async () => {
    const dear = rewriting((simulation) => ({ ...simulation, minResourceFee: '5000000' }))
    expect(await errorOf(buildMerge(dear, employer.signer))).toMatchObject({
      code: 'fee-too-high',
      message: expect.stringMatching(
        /^the call would cost up to 0\.5\d+ XLM in resource fees, and the bound is 0\.5000000 XLM/,
      ),
    })
    const exactly = { margin: 0n }
    expect(await buildMerge(dear, employer.signer, undefined, exactly)).toMatchObject({ hash: expect.any(String) })
    expect(
      await errorOf(buildMerge({ ...dear, maxResourceFee: 4_999_999n }, employer.signer, undefined, exactly)),
    ).toMatchObject({ code: 'fee-too-high' })
    expect(await buildMerge({ ...dear, maxResourceFee: 10_000_000n }, employer.signer)).toMatchObject({
      hash: expect.any(String),
    })
  })

  test('a missing account is distinguished from an RPC that does not respond', async () => {
    const { spendable } = await sync(employer)
    const away = { ...deployment, rpc: new rpc.Server('http://127.0.0.1:1', { allowHttp: true }) }
    const source = await deployment.rpc.getAccount(address(employer))
    const transfer = { to: address(contractor(0)), amount: 1n, opening: spendable }
    for (const attempt of [
      () => buildRegister(away, employer, { auditorId: 0 }),
      () => buildMerge(away, employer.signer),
      () => buildMerge(away, employer.signer, undefined, { source }),
      () => buildTransfer(away, employer, transfer),
      () => syncBalance(away, employer),
    ]) {
      expect(await errorOf(attempt())).toMatchObject({
        name: 'LedgerError',
        code: 'unavailable',
        message: 'the ledger cannot be reached',
      })
    }
    expect(await errorOf(buildMerge(deployment, keypair('nobody')))).toMatchObject({
      name: 'WalletError',
      code: 'no-account',
    })
  })
})

test('signs nothing after its signal, although the proof was in progress', async () => {
  const leaving = new AbortController()
  const aborted = {
    ...deployment,
    signal: leaving.signal,
    prover: {
      prove: async (statement: Parameters<typeof prover.prove>[0]) => {
        leaving.abort(new Error('left'))
        return await prover.prove(statement)
      },
    },
  }
  const { spendable: opening } = await syncBalance(deployment, employer)
  const transfer = { to: contractors[0]?.address ?? '', amount: 0n, opening }
  let signatures = 0
  const signer = keypairSigner(employer.signer)
  const counting = {
    ...signer,
    signTransaction: async (...given: Parameters<typeof signer.signTransaction>) => {
      signatures += 1
      return await signer.signTransaction(...given)
    },
  }
  await expect(buildTransfer(aborted, { ...employer, signer: counting }, transfer)).rejects.toThrow('left')
  await expect(buildMerge(aborted, counting)).rejects.toThrow('left')
  expect(signatures).toBe(0)
})

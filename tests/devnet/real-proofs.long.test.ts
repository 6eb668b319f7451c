import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { Account, Keypair, rpc, scValToNative, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Devnet, startDevnet } from '#lib/devnet/devnet.ts'
import { openProver } from '#lib/prover/node/prover.ts'
import type { RealProver } from '#lib/prover/prover.ts'
import { standIn } from '#lib/prover/stand-in.ts'
import { readAuditorKey, readConfidentialAccount } from '#lib/wallet/account.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { decodeCallData, encodeCallData } from '#lib/wallet/call-data.ts'
import { buildDeposit, buildMerge, buildRegister, buildTransfer, buildWithdraw } from '#lib/wallet/calls.ts'
import { commit, type Opening } from '#lib/wallet/commitment.ts'
import { encryptDelegatedTransfer, encryptDelegation } from '#lib/wallet/delegation.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { encryptTransfer, type Payload } from '#lib/wallet/encryption.ts'
import { encodeField, encodePoint, H, multiply } from '#lib/wallet/grumpkin.ts'
import { invoke, scAddress, scAmount } from '#lib/wallet/invocation.ts'
import { deriveDelegationKey, type Holder, openHolder } from '#lib/wallet/keys.ts'
import type { SetSpenderStatement, SpenderTransferStatement, TransferStatement } from '#lib/wallet/prover.ts'
import { type SignedCall, signCall, simulateCall } from '#lib/wallet/transaction.ts'
import type { WalletError } from '#lib/wallet/wallet-error.ts'
import { keypair } from './network-fixture.ts'

const run = promisify(execFile)
const passphrase = 'Standalone Network ; February 2017'

let devnet: Devnet
let prover: RealProver
let deployment: Deployment
let employer: Holder
let contractor: Holder
let colleague: Holder

beforeAll(async () => {
  devnet = await startDevnet({ directory: null, port: 0, closeMs: 100, passphrase, proofs: 'real' })
  prover = await openProver({ circuits: 'lib/prover/circuits', referenceString: 'lib/prover/reference-string' })
  const { token, auditor } = devnet.deployment.contracts
  deployment = { rpc: new rpc.Server(devnet.rpcUrl, { allowHttp: true }), passphrase, token, auditor, prover }
  const holders = ['employer', 'contractor', 'colleague'].map((name) => openHolder(keypair(name), token))
  for (const holder of holders) {
    await createAccount(holder.signer)
    await apply(await buildRegister(deployment, holder, { auditorId: 0 }))
  }
  ;[employer, contractor, colleague] = holders as [Holder, Holder, Holder]
  const issuer = Keypair.fromSecret(devnet.issuerSecret)
  await apply(await buildDeposit(deployment, issuer, { to: employer.signer.publicKey(), amount: 1_000n }))
  await apply(await buildMerge(deployment, employer.signer))
})
afterAll(async () => {
  await prover?.destroy()
  await devnet?.close()
})

async function createAccount(account: Keypair): Promise<void> {
  expect((await fetch(`${devnet.friendbotUrl}?addr=${account.publicKey()}`)).status).toBe(200)
}

async function send({ signedXdr, hash }: SignedCall) {
  const sent = await deployment.rpc.sendTransaction(TransactionBuilder.fromXdr(signedXdr, passphrase))
  expect(sent.status).toBe('PENDING')
  return await deployment.rpc.pollTransaction(hash, { attempts: 10_000, sleepStrategy: () => 50 })
}

async function apply(call: SignedCall): Promise<void> {
  expect((await send(call)).status).toBe('SUCCESS')
}

/** The arguments of a signed call. */
function argumentsOf({ signedXdr }: SignedCall): xdr.ScVal[] {
  const [operation] = TransactionBuilder.fromXdr(signedXdr, passphrase).operations
  if (operation?.type !== 'invokeHostFunction' || operation.func.type !== 'hostFunctionTypeInvokeContract') {
    throw new Error('not a call')
  }
  return operation.func.invokeContract.args
}

/** The contract's error of a call, or another error's message; undefined for a successful call. */
async function judge(signer: Keypair, name: string, args: xdr.ScVal[]): Promise<number | string | undefined> {
  const source = await deployment.rpc.getAccount(signer.publicKey())
  const refusal: unknown = await simulateCall(deployment, source, invoke(deployment, name, args), {}).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (refusal === undefined) return undefined
  expect(refusal).toMatchObject({ code: 'would-fail' })
  const { contractError, message } = refusal as WalletError
  return contractError ?? message
}

const bytes = (content: Uint8Array): xdr.ScVal => xdr.ScVal.scvBytes(content)
const opened = async (holder: Holder): Promise<Opening> => (await syncBalance(deployment, holder)).spendable

/** A transfer from the employer's current balance. */
async function transfer(amount: bigint, options = {}) {
  const opening = await opened(employer)
  return await buildTransfer(deployment, employer, { to: contractor.signer.publicKey(), amount, opening }, options)
}

const data = (args: xdr.ScVal[]) => decodeCallData(scValToNative(args.at(-1) ?? bytes(new Uint8Array())))
const refused = (signer: Keypair, name: string, args: xdr.ScVal[]) =>
  expect(judge(signer, name, args)).resolves.toBe(3506)

test('registers, pays and withdraws with real proofs', async () => {
  const issuer = Keypair.fromSecret(devnet.issuerSecret)
  await apply(await transfer(300n))
  const received = await syncBalance(deployment, contractor)
  expect(received.receiving.value).toBe(300n)
  expect((await opened(employer)).value).toBe(700n)
  const withdrawal = { to: issuer.publicKey(), amount: 100n, opening: await opened(employer) }
  const call = await buildWithdraw(deployment, employer, withdrawal)
  const [from, to, , data] = argumentsOf(call)
  if (!from || !to || !data) throw new Error('not a withdrawal')
  await refused(employer.signer, 'withdraw', [from, to, scAmount(101n), data])
  await apply(call)
  expect((await opened(employer)).value).toBe(600n)
})

test('sets a delegation, pays from it and revokes it with real proofs', async () => {
  const { token, rpc: server } = deployment
  const before = await opened(employer)
  const entryOf = async (holder: Holder) => {
    const account = await readConfidentialAccount(server, token, holder.address)
    if (!account) throw new Error('not registered')
    return account
  }
  const auditor = await readAuditorKey(deployment, 0)
  const spender = colleague.address
  const call = async (signer: Keypair, name: string, args: xdr.ScVal[]) => {
    const source = await server.getAccount(signer.publicKey())
    await apply(await signCall(await simulateCall(deployment, source, invoke(deployment, name, args), {}), signer))
  }

  const delegated = encryptDelegation({
    keys: employer.keys,
    opening: before,
    amount: 90n,
    auditorSender: auditor,
    salt: 101n,
    spender,
    spenderKey: colleague.keys.spendingKey,
    allowanceSalt: 102n,
  })
  const delegation: SetSpenderStatement = {
    circuit: 'set_spender',
    token,
    spendable: (await entryOf(employer)).spendable,
    spendingKey: employer.keys.spendingKey,
    spender,
    spenderKey: colleague.keys.spendingKey,
    auditorSender: auditor,
    payload: delegated.payload,
    witness: { ...delegated.witness, vA: 90n },
  }
  const data = (payload: Payload, proof: Uint8Array) => bytes(encodeCallData(payload, proof))
  const setArgs = [scAddress(employer.address), scAddress(spender), xdr.ScVal.scvU32(1_000_000)]
  const proof = await prover.prove(delegation)
  await refused(employer.signer, 'set_spender', [...setArgs, data(delegated.payload, proof.with(7_000, 1))])
  await call(employer.signer, 'set_spender', [...setArgs, data(delegated.payload, proof)])
  expect(await opened(employer)).toEqual(delegated.next)

  const paid = encryptDelegatedTransfer({
    keys: colleague.keys,
    delegationKey: deriveDelegationKey(employer.keys.vk, spender),
    allowance: delegated.allowance,
    allowanceSalt: 102n,
    salt: 103n,
    amount: 40n,
    viewingKey: contractor.keys.viewingKey,
    auditorRecipient: auditor,
    auditorSender: auditor,
  })
  const payment: SpenderTransferStatement = {
    circuit: 'spender_transfer',
    allowance: encodePoint(commit(delegated.allowance)),
    allowanceSalt: encodeField(102n),
    spenderKey: colleague.keys.spendingKey,
    viewingKey: contractor.keys.viewingKey,
    auditorRecipient: auditor,
    auditorSender: auditor,
    payload: paid.payload,
    witness: paid.witness,
  }
  const received = (await syncBalance(deployment, contractor)).receiving.value
  const payArgs = [scAddress(spender), scAddress(employer.address), scAddress(contractor.address)]
  const paymentProof = await prover.prove(payment)
  await call(colleague.signer, 'confidential_transfer_from', [...payArgs, data(paid.payload, paymentProof)])
  expect((await syncBalance(deployment, contractor)).receiving.value).toBe(received + 40n)
  expect(await opened(employer)).toEqual(delegated.next)

  await call(employer.signer, 'revoke_spender', [scAddress(employer.address), scAddress(spender)])
  expect((await opened(employer)).value).toBe(before.value - 40n)
})

test('does not start a ledger with a damaged reference string', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'ledger-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await cp('lib/prover', join(folder, 'lib/prover'), { recursive: true })
  const string = join(folder, 'lib/prover/reference-string')
  const code = `
    const { startDevnet } = await import(${JSON.stringify(resolve('lib/devnet/devnet.ts'))})
    const options = { directory: null, port: 0, closeMs: 0, passphrase: 'Test', proofs: 'real' }
    await startDevnet(options).then((devnet) => devnet.close(), (error) => console.log(error.message))`
  const start = async () => {
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], { cwd: folder })
    return stdout.trim()
  }
  expect(await start()).toBe('')
  const bytes = await readFile(join(string, 'bn254_g1.dat'))
  await writeFile(join(string, 'bn254_g1.dat'), bytes.with(1_000_000, (bytes[1_000_000] ?? 0) ^ 1))
  expect(await start()).toBe('bn254_g1.dat in lib/prover/reference-string is not that of the embedded ledger')
  await rm(join(string, 'bn254_g1.dat'))
  expect(await start()).toBe('lib/prover/reference-string/bn254_g1.dat cannot be read')
})

test('lets the wallet command announce its proof, and exit', async () => {
  const network = `${devnet.url}/deployment.json`
  const { stdout, stderr } = await run(process.execPath, ['lib/cli/wallet.ts', 'new', '--network', network], {
    env: { ...process.env, DEVNET_PROOFS: 'real' },
  })
  expect(stdout.trim()).toMatch(/^S[A-Z2-7]{55}$/)
  expect(stderr).toContain('proving 1 of 1')
})

test('makes the wallet command check its configuration before it connects to the network', async () => {
  const network = 'http://127.0.0.1:1/deployment.json'
  const failing = run(process.execPath, ['lib/cli/wallet.ts', 'new', '--network', network], {
    env: { ...process.env, DEVNET_PROOFS: 'real', PROVER_CIRCUITS: 'none' },
  })
  await expect(failing).rejects.toMatchObject({
    stderr: expect.stringMatching(/^PROVER_CIRCUITS: none\/\w+.vk cannot be read\n$/),
  })
})

test('makes the wallet command name a circuit whose key differs on the network before it proves', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'circuits-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await cp('lib/prover/circuits', folder, { recursive: true })
  const key = await readFile(join(folder, 'transfer.vk'))
  await writeFile(join(folder, 'transfer.vk'), key.with(1_000, (key[1_000] ?? 0) ^ 1))
  const failing = run(process.execPath, ['lib/cli/wallet.ts', 'new', '--network', `${devnet.url}/deployment.json`], {
    env: { ...process.env, DEVNET_PROOFS: 'real', PROVER_CIRCUITS: folder },
  })
  await expect(failing).rejects.toMatchObject({
    stderr: "PROVER_CIRCUITS: the network's verifier has another key, or none, for the circuit transfer\n",
  })
})

describe('the ledger rejects a proof', () => {
  let args: [xdr.ScVal, xdr.ScVal, xdr.ScVal]
  const name = 'confidential_transfer'
  beforeAll(async () => {
    args = argumentsOf(await transfer(10n)) as typeof args
    expect(await judge(employer.signer, name, args)).toBeUndefined()
  })

  test('for another payee', async () => {
    const [from, , data] = args
    await refused(employer.signer, name, [from, scAddress(colleague.signer.publicKey()), data])
  })

  test('with one bit changed, in four places, or all zero', async () => {
    const [from, to] = args
    const { payload, proof } = data(args)
    for (const at of [0, 31, 7_000, 14_591]) {
      await refused(employer.signer, name, [
        from,
        to,
        bytes(encodeCallData(payload, proof.with(at, (proof[at] ?? 0) ^ 1))),
      ])
    }
    await refused(employer.signer, name, [from, to, bytes(encodeCallData(payload, new Uint8Array(14_592)))])
  })

  test('with another value in the payload', async () => {
    const [from, to] = args
    const { payload, proof } = data(args)
    for (const field of ['v_tilde', 'b_tilde', 'sigma', 'v_tilde_aud_r', 'r_tilde_aud_s']) {
      const value = payload[field] ?? new Uint8Array(32)
      const other = { ...payload, [field]: value.with(31, (value[31] ?? 0) ^ 1) }
      await refused(employer.signer, name, [from, to, bytes(encodeCallData(other, proof))])
    }
  })

  test('for another auditor or another token', async () => {
    const [from, to] = args
    const statement = await honestStatement(5n)
    const elsewhere = 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC'
    const keys = openHolder(employer.signer, elsewhere).keys
    for (const [other, payload] of [
      encrypt(statement, { auditorRecipient: encodePoint(multiply(H, 5n)) }),
      encrypt(statement, { auditorSender: encodePoint(multiply(H, 5n)) }),
      encrypt(statement, { token: elsewhere, keys }),
    ] as const) {
      const proof = await prover.prove(other)
      await refused(employer.signer, name, [from, to, bytes(encodeCallData(payload, proof))])
    }
  })

  test('for more than the balance holds', async () => {
    const [from, to] = args
    const { spendable, ...statement } = await honestStatement(0n)
    const rich = { value: 1_000_000n, blinding: statement.opening.blinding }
    const [forged, payload] = encrypt({ ...statement, spendable, opening: rich }, { amount: 999_000n })
    await expect(prover.prove(forged)).rejects.toThrow('the opening does not match the balance')
    // A stand-in, which only a ledger with stand-in proofs accepts, and a valid proof of another statement.
    for (const proof of [standIn(forged), data(args).proof]) {
      await refused(employer.signer, name, [from, to, bytes(encodeCallData(payload, proof))])
    }
  })

  test('of a registration for another account', async () => {
    const stranger = keypair('stranger')
    await createAccount(stranger)
    const { signer, keys } = openHolder(stranger, deployment.token)
    const account = contractor.signer.publicKey()
    const statement = {
      circuit: 'register',
      token: deployment.token,
      y: keys.spendingKey,
      pvk: keys.viewingKey,
    } as const
    const witness = { sk: keys.sk, vk: keys.vk }
    const payload = { y: keys.spendingKey, pvk: keys.viewingKey }
    const call = (proof: Uint8Array) => [
      scAddress(signer.publicKey()),
      xdr.ScVal.scvU32(0),
      bytes(encodeCallData(payload, proof)),
    ]
    await refused(signer, 'register', call(await prover.prove({ ...statement, account, witness })))
    const own = await prover.prove({ ...statement, account: signer.publicKey(), witness })
    expect(await judge(signer, 'register', call(own))).toBeUndefined()
  })

  test('for an old balance, in a simulation, in a ledger, and a second time', async () => {
    const { sequenceNumber } = await deployment.rpc
      .getAccount(employer.signer.publicKey())
      .then((account) => ({ sequenceNumber: account.sequenceNumber() }))
    const { value: before } = await opened(employer)
    const first = await transfer(1n)
    const source = new Account(employer.signer.publicKey(), String(BigInt(sequenceNumber) + 1n))
    const second = await transfer(2n, { source })
    await apply(first)
    await refused(employer.signer, name, args)
    await refused(employer.signer, name, argumentsOf(first))
    const outcome = await send(second)
    expect(outcome.status).toBe('FAILED')
    const events = outcome.status === 'FAILED' ? (outcome.diagnosticEventsXdr ?? []) : []
    expect(events.map((event) => JSON.stringify(event.toJson())).join()).toContain('3506')
    expect((await opened(employer)).value).toBe(before - 1n)
  })
})

/** The statement of an honest transfer from the employer to the contractor, as of the current ledger. */
async function honestStatement(amount: bigint) {
  const account = (holder: Holder) =>
    readConfidentialAccount(deployment.rpc, deployment.token, holder.signer.publicKey())
  const [sender, payee] = [await account(employer), await account(contractor)]
  if (!sender || !payee) throw new Error('not registered')
  const key = await readAuditorKey(deployment, 0)
  return {
    token: deployment.token,
    keys: employer.keys,
    opening: await opened(employer),
    spendable: sender.spendable,
    viewingKey: payee.viewingKey,
    auditorRecipient: key,
    auditorSender: key,
    amount,
    salt: 4_242n,
  }
}

/** The statement and payload of a transfer that differs from the honest one in some respects. */
function encrypt(
  honest: Awaited<ReturnType<typeof honestStatement>>,
  other: Partial<typeof honest>,
): [TransferStatement, TransferStatement['payload']] {
  const { keys, amount, opening, salt, ...fields } = { ...honest, ...other }
  const { payload, witness } = encryptTransfer({ keys, opening, amount, salt, ...fields })
  const secrets = { ...witness, vTransfer: amount }
  return [{ circuit: 'transfer', ...fields, spendingKey: keys.spendingKey, payload, witness: secrets }, payload]
}

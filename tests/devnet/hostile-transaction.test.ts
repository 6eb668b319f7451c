import {
  Account,
  Asset,
  Contract,
  type Keypair,
  nativeToScVal,
  Operation,
  type Transaction,
  TransactionBuilder,
  xdr,
} from '@stellar/stellar-sdk'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Deployment, makeGenesis } from '#lib/devnet/apply/genesis.ts'
import { devnetKeys } from '#lib/devnet/apply/keys.ts'
import type { Ledger } from '#lib/devnet/apply/ledger.ts'
import { codeKey, instanceKey } from '#lib/devnet/host/entry-key.ts'
import { loadWhenNeeded } from '#lib/devnet/host/proofs.ts'
import { readAccount, withBalance, writeAccount } from '#lib/devnet/state/account.ts'
import { accountKey } from '#lib/devnet/state/ledger-key.ts'
import { STAND_IN_KEYS } from '#lib/prover/stand-in.ts'
import type { Verify } from '#lib/prover/verifier.ts'
import { captureLog } from '../support/console.ts'
import {
  hashOf,
  issuer,
  keypair,
  openBareLedger,
  openTestNetwork,
  passphrase,
  perturb,
  root,
} from './network-fixture.ts'

const NATIVE = Asset.native().contractId(passphrase)
const hostile = keypair('hostile')
const honest = keypair('honest')
const pay = () => Operation.payment({ destination: issuer.publicKey(), asset: Asset.native(), amount: '1' })

/** Nested lists, 12 bytes each. */
function nest(depth: number): xdr.ScVal {
  let value: xdr.ScVal = xdr.ScVal.scvVoid()
  for (let level = 0; level < depth; level += 1) value = xdr.ScVal.scvVec([value])
  return value
}

/** The declared resources of a call that reads these entries. */
function resources(readOnly: xdr.LedgerKey[]): xdr.SorobanTransactionData {
  return new xdr.SorobanTransactionData({
    ext: xdr.SorobanTransactionDataExt.v0(),
    resourceFee: 5_000_000n,
    resources: new xdr.SorobanResources({
      footprint: new xdr.LedgerFootprint({ readOnly, readWrite: [] }),
      instructions: 100_000_000,
      diskReadBytes: 1_000,
      writeBytes: 1_000,
    }),
  })
}

test('rejects an argument that is nested too deeply, or includes it in a readable ledger', async () => {
  const network = await openTestNetwork()
  onTestFinished(network.stop)
  await network.createAccounts(hostile, honest)
  const draft = await network.draft(hostile, [pay()])
  const call = (depth: number) => {
    const operation = new Contract(NATIVE).call('transfer', nest(depth))
    const ext = xdr.TransactionExt.sorobanData(resources([]))
    return perturb(draft, { operations: [operation], ext, fee: 5_000_200 }, hostile)
  }
  const ask = async (method: string, params: object) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const headers = { 'content-type': 'application/json' }
    return await (await fetch(network.devnet.rpcUrl, { method: 'POST', headers, body })).json()
  }
  // The client's own limit is 370 levels. Counting down, the first accepted depth is the worst possible case.
  let depth = 370
  let sent = await ask('sendTransaction', { transaction: call(depth).toXdr() })
  while (sent.error) {
    expect(sent.error.code).toBe(-32602)
    depth -= 1
    sent = await ask('sendTransaction', { transaction: call(depth).toXdr() })
  }
  expect(depth).toBeGreaterThan(100)
  const other = await network.build(honest, pay())
  expect((await network.settle(other)).status).toBe('SUCCESS')
  for (const xdrFormat of ['base64', 'json']) {
    const response = await ask('getTransaction', { hash: sent.result.hash, xdrFormat })
    expect(response.result).toMatchObject({ status: 'FAILED' })
    for (const method of ['getLatestLedger', 'getLedgers', 'getTransactions']) {
      expect(await ask(method, { startLedger: 2, xdrFormat })).not.toHaveProperty('error')
    }
  }
})

describe('a bug in the ledger', () => {
  let ledger: Ledger
  let deployment: Deployment
  let logged: string[]
  let verify: Verify
  beforeEach(() => {
    logged = captureLog()
    verify = () => {
      throw new Error('unreachable')
    }
    ledger = openBareLedger({
      verify: (...args) => verify(...args),
      genesis: (context) => {
        const genesis = makeGenesis(context, devnetKeys(passphrase), STAND_IN_KEYS)
        deployment = genesis.deployment
        return genesis.entries
      },
    })
  })
  afterEach(() => {
    vi.restoreAllMocks()
    ledger.stop()
  })

  /** A signed transaction with the next sequence number of its source. */
  function build(source: Keypair, operation: xdr.Operation): Transaction {
    const sequence = readAccount(ledger.state, source.publicKey())?.seqNum ?? 0n
    const account = new Account(source.publicKey(), String(sequence))
    const options = { fee: '100', networkPassphrase: passphrase }
    const transaction = new TransactionBuilder(account, options).addOperation(operation).setTimeout(0).build()
    transaction.sign(source)
    return transaction
  }
  function fund(name: string): Keypair {
    const owner = keypair(name)
    const account = Operation.createAccount({ destination: owner.publicKey(), startingBalance: '1000' })
    expect(submit(build(root, account))).toBe('PENDING')
    ledger.close()
    return owner
  }
  const submit = (transaction: Transaction) => ledger.submit(transaction.toXdr()).verdict.status
  const succeeded = (transaction: Transaction) => ledger.history.find(hashOf(transaction))?.transaction.ok

  /** A call that verifies a proof. */
  function check(source: Keypair, proof = new Uint8Array(14_592)): Transaction {
    const { verifier } = deployment.contracts
    const instance = ledger.state.get(instanceKey(verifier).id)?.data
    const executable = instance?.type === 'contractData' ? instance.contractData.val : undefined
    if (executable?.type !== 'scvContractInstance') throw new Error('no verifier')
    if (executable.instance.executable.type !== 'contractExecutableWasm') throw new Error('no code')
    const code = codeKey(executable.instance.executable.wasmHash.value)
    const read = [instanceKey(verifier), code].map(({ key }) => key)
    const operation = new Contract(verifier).call(
      'verify_proof',
      nativeToScVal(2, { type: 'u32' }),
      xdr.ScVal.scvBytes(new Uint8Array(800)),
      xdr.ScVal.scvBytes(proof),
    )
    const ext = xdr.TransactionExt.sorobanData(resources(read))
    return perturb(build(source, operation), { ext, fee: 5_000_200 }, source)
  }

  /** The result of a transaction. */
  function outcomeOf(transaction: Transaction): string | undefined {
    const location = ledger.history.find(hashOf(transaction))
    if (!location) return undefined
    return xdr.TransactionResult.fromXdr(ledger.history.body(location).resultXdr, 'base64').result.type
  }

  test('ends the call that hits it with txINTERNAL_ERROR', () => {
    const [call, payment] = [check(root), build(issuer, pay())]
    expect([call, payment].map(submit)).toEqual(['PENDING', 'PENDING'])
    ledger.close()
    expect([call, payment].map(succeeded)).toEqual([false, true])
    expect(outcomeOf(call)).toBe('txInternalError')
    expect(logged.join()).toContain('unreachable')
  })

  test('fails only the call with that proof, and does not prevent the ledger from closing', async () => {
    const deadly = new Uint8Array(14_592).fill(1)
    const load = vi.fn(
      async (): Promise<Verify> => (_circuit, _inputs, proof) => {
        if (proof[0] === 1) throw new Error('unreachable')
        return true
      },
    )
    const proofs = loadWhenNeeded(load)
    await proofs.ready()
    verify = proofs.verify
    const broken = check(fund('stranger'), deadly)
    const sound = [check(root), check(issuer, new Uint8Array(14_592).fill(2))]
    expect([broken, ...sound].map(submit)).toEqual(['PENDING', 'PENDING', 'PENDING'])
    const { sequence } = ledger.context()
    ledger.close()
    expect(ledger.context().sequence).toBe(sequence + 1)
    expect(outcomeOf(broken)).toBeUndefined()
    expect(submit(broken)).toBe('DUPLICATE')
    for (let closed = 0; closed < 2; closed += 1) {
      await proofs.ready()
      ledger.close()
    }
    expect(sound.map(outcomeOf)).toEqual(['txSuccess', 'txSuccess'])
    expect(outcomeOf(broken)).toBe('txInternalError')
    expect(load).toHaveBeenCalledTimes(3)
  })

  test('makes a call wait for at most four ledgers while it cannot be loaded', () => {
    verify = loadWhenNeeded(() => Promise.reject(new Error('no memory'))).verify
    const [call, payment] = [check(root), build(issuer, pay())]
    expect([call, payment].map(submit)).toEqual(['PENDING', 'PENDING'])
    for (let closed = 0; closed < 3; closed += 1) ledger.close()
    expect([outcomeOf(call), outcomeOf(payment)]).toEqual([undefined, 'txSuccess'])
    expect(submit(call)).toBe('DUPLICATE')
    ledger.close()
    expect(outcomeOf(call)).toBeUndefined()
    expect(submit(call)).toBe('TRY_AGAIN_LATER')
  })

  test('drops and bans the transaction if it occurs outside a call', () => {
    const { sequence } = ledger.context()
    const holder = readAccount(ledger.state, root.publicKey())
    if (!holder) throw new Error('no root account')
    // Its balance exceeds an entry's range, so a ledger with its payment can't be encoded.
    writeAccount(ledger.state, withBalance(holder, 2n ** 64n), 1)
    const [broken, sound] = [build(root, pay()), build(issuer, pay())]
    expect([broken, sound].map(submit)).toEqual(['PENDING', 'PENDING'])
    ledger.close()
    expect(ledger.context().sequence).toBe(sequence + 1)
    expect([broken, sound].map(succeeded)).toEqual([undefined, true])
    expect(submit(broken)).toBe('TRY_AGAIN_LATER')
    expect(logged.join()).toContain(hashOf(broken))
    expect(logged.join()).not.toContain(hashOf(sound))
  })

  test('drops and bans the transaction if it occurs in a repeated validity check', () => {
    const [broken, sound] = [build(root, pay()), build(issuer, pay())]
    expect([broken, sound].map(submit)).toEqual(['PENDING', 'PENDING'])
    const { get } = ledger.state
    const failing = vi.spyOn(ledger.state, 'get').mockImplementation((key) => {
      if (key === accountKey(root.publicKey())) throw new Error('unreadable entry')
      return get(key)
    })
    ledger.close()
    failing.mockRestore()
    expect([broken, sound].map(succeeded)).toEqual([undefined, true])
    expect(submit(broken)).toBe('TRY_AGAIN_LATER')
    expect(logged.join()).toContain('unreadable entry')
  })
})

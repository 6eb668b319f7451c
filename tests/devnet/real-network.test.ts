import {
  Asset,
  authorizeEntry,
  Contract,
  type Keypair,
  Operation,
  SorobanDataBuilder,
  scValToNative,
  type Transaction,
  xdr,
} from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { accountKey } from '#lib/devnet/state/ledger-key.ts'
import { amount, c, g, number } from './host-fixture.ts'
import {
  callTransfer,
  declare,
  foundAccounts,
  issuer,
  keypair,
  passphrase,
  pay,
  perturb,
  root,
  shareNetwork,
  sorobanDataOf,
} from './network-fixture.ts'

/** Compares with responses of stellar-core 26.1 and stellar-rpc 26.0.1 to the same requests. */
const network = shareNetwork()
const accounts = foundAccounts(network, 'payer', 'owner')

const native = Asset.native().contractId(passphrase)
const usdc = new Asset('USDC', issuer.publicKey())
const assetCall = (asset: Asset, name: string, ...args: xdr.ScVal[]) =>
  new Contract(asset.contractId(passphrase)).call(name, ...args)

async function post(body: string) {
  const response = await fetch(network.devnet.rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  return { status: response.status, text: await response.text() }
}

async function call(method: string, params: unknown) {
  const { text } = await post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
  return JSON.parse(text)
}

const simulate = async (source: Keypair, operation: xdr.Operation, params: object = {}) =>
  (await call('simulateTransaction', { transaction: (await network.draft(source, [operation])).toXdr(), ...params }))
    .result

async function instructionsOf(source: Keypair, operation: xdr.Operation): Promise<number> {
  const { transactionData } = await simulate(source, operation)
  return xdr.SorobanTransactionData.fromXdr(transactionData, 'base64').resources.instructions
}

/** The data and contracts of the events of a failed simulation. */
async function errorEvents(source: Keypair, operation: xdr.Operation) {
  const { events = [], error } = await simulate(source, operation)
  return {
    error: String(error).split('\n')[0],
    rest: String(error).split('\n').slice(1).join('\n'),
    events: events.map((event: string) => {
      const { contractId, body } = xdr.DiagnosticEvent.fromXdr(event, 'base64').event
      return { contract: contractId !== null, data: scValToNative(body.value.data) }
    }),
  }
}

/**
 * A transfer of `from`'s XLM in a transaction of `source`, signed by both, with the resources of its simulation. `from`'s
 * signature is valid for this many ledgers, by default for as many as the network allows.
 */
async function foreignTransfer(source: Keypair, from: Keypair, ledgers = 3_110_398): Promise<Transaction> {
  const latest = (await network.server.getHealth()).latestLedger
  const prepared = await network.prepare(source, callTransfer(from, source, 1n))
  const operation = prepared.operations[0]
  if (operation?.type !== 'invokeHostFunction') throw new Error('no call')
  const auth = await Promise.all(
    (operation.auth ?? []).map((entry) => authorizeEntry(entry, from, latest + ledgers, passphrase)),
  )
  const body = xdr.OperationBody.invokeHostFunction(
    new xdr.InvokeHostFunctionOp({ hostFunction: operation.func, auth }),
  )
  return perturb(prepared, { operations: [new xdr.Operation({ sourceAccount: null, body })] }, source)
}

describe('authorization of another account', () => {
  test('simulates a fee that pays for a nonce of the longest lifetime', async () => {
    const { minResourceFee } = await simulate(accounts.payer, callTransfer(accounts.owner, accounts.payer, 1n))
    expect(Math.abs(Number(minResourceFee) - 139_069)).toBeLessThan(300)
    const outcome = await network.settle(await foreignTransfer(accounts.payer, accounts.owner))
    expect(outcome.status).toBe('SUCCESS')
  })

  test('meters a signature check', async () => {
    expect(await instructionsOf(accounts.payer, callTransfer(accounts.owner, accounts.payer, 1n))).toBe(730_980)
    const transaction = await foreignTransfer(accounts.payer, accounts.owner)
    const scarce = declare(
      transaction,
      (data) =>
        data.setResources(
          600_000,
          sorobanDataOf(transaction).resources.diskReadBytes,
          sorobanDataOf(transaction).resources.writeBytes,
        ),
      {},
      accounts.payer,
    )
    const outcome = await network.settle(scarce)
    expect(outcome.status === 'FAILED' && outcome.resultXdr.result.value).toMatchObject([
      { tr: { value: { type: 'invokeHostFunctionResourceLimitExceeded' } } },
    ])
  })
})

describe('instructions of the asset contract', () => {
  test('meters a transfer by its source, and read-only calls', async () => {
    expect(await instructionsOf(accounts.payer, callTransfer(accounts.payer, accounts.owner, 1n))).toBe(236_705)
    const reading = [
      assetCall(Asset.native(), 'decimals'),
      assetCall(Asset.native(), 'name'),
      assetCall(Asset.native(), 'balance', g(accounts.owner)),
      assetCall(usdc, 'admin'),
      assetCall(Asset.native(), 'allowance', g(accounts.owner), g(accounts.payer)),
    ]
    for (const operation of reading) {
      const instructions = await instructionsOf(accounts.payer, operation)
      expect(instructions).toBeGreaterThanOrEqual(127_000)
      expect(instructions).toBeLessThanOrEqual(197_000)
    }
  })
})

describe('fees of the asset contract', () => {
  test('are within one percent of those charged by the network', async () => {
    const { payer, owner } = accounts
    const token = network.devnet.deployment.contracts.token
    const settle = async (transaction: Transaction) => {
      const found = await network.settle(transaction)
      return found.status === 'SUCCESS' ? Number(found.resultXdr.feeCharged) : Number.NaN
    }
    const chargeOf = async (source: Keypair, operation: xdr.Operation) => {
      const prepared = await network.prepare(source, operation)
      prepared.sign(source)
      return await settle(prepared)
    }
    await network.settle(await network.build(owner, Operation.changeTrust({ asset: usdc })))
    await chargeOf(issuer, assetCall(usdc, 'approve', g(issuer), g(payer), amount(9n), number(1_000)))
    const charges = [
      [await chargeOf(payer, callTransfer(payer, owner, 1n)), 13_771],
      [await chargeOf(payer, assetCall(Asset.native(), 'transfer', g(payer), c(token), amount(5n))), 108_368],
      [await chargeOf(issuer, assetCall(usdc, 'mint', g(owner), amount(5n))), 9_103],
      // From an allowance of the issuer, which has no trustline.
      [await chargeOf(payer, assetCall(usdc, 'transfer_from', g(payer), g(issuer), g(owner), amount(5n))), 13_721],
      [await settle(await foreignTransfer(payer, owner, 100)), 20_487],
    ] as const
    for (const [charged, real] of charges) expect(Math.abs(charged / real - 1)).toBeLessThan(0.01)
  })
})

describe('malformed transactions', () => {
  const soroban = async () =>
    sorobanDataOf(await network.prepare(accounts.payer, callTransfer(accounts.payer, accounts.owner, 1n)))
  const sent = async (transaction: Transaction) => {
    const { errorResult } = await network.server.sendTransaction(transaction)
    return [errorResult?.result.type, Number(errorResult?.feeCharged)]
  }

  test('reports the base fee for a classic transaction with Soroban data', async () => {
    const plain = await network.build(accounts.payer, pay())
    const data = xdr.TransactionExt.sorobanData(await soroban())
    expect(await sent(perturb(plain, { ext: data }, accounts.payer))).toEqual(['txMalformed', 100])
  })

  test('reports resource fee and base fee for two contract calls', async () => {
    const prepared = await network.prepare(accounts.payer, callTransfer(accounts.payer, accounts.owner, 1n))
    const envelope = prepared.toEnvelope()
    const [operation] = envelope.type === 'envelopeTypeTx' ? envelope.v1.tx.operations : []
    if (!operation) throw new Error('no call')
    const cheap = declare(
      prepared,
      (data) => data.setResourceFee(10n),
      { operations: [operation, operation], fee: 1_000 },
      accounts.payer,
    )
    expect(await sent(cheap)).toEqual(['txMalformed', 210])
  })

  test('reports the fee by the first operation if classic operations and contract calls are mixed', async () => {
    const call = callTransfer(accounts.payer, accounts.owner, 1n)
    const prepared = await network.prepare(accounts.payer, call)
    const data = new SorobanDataBuilder(sorobanDataOf(prepared)).setResourceFee(10n).build()
    const fields = { ext: xdr.TransactionExt.sorobanData(data), fee: 1_000 }
    const callFirst = await network.draft(accounts.payer, [call, pay()])
    expect(await sent(perturb(callFirst, fields, accounts.payer))).toEqual(['txMalformed', 210])
    const paymentFirst = await network.draft(accounts.payer, [pay(), call])
    for (const other of [{}, fields]) {
      expect(await sent(perturb(paymentFirst, other, accounts.payer))).toEqual(['txMalformed', 200])
    }
  })

  test('reports the base fee for a repeated extra signer', async () => {
    const plain = await network.build(accounts.payer, pay())
    const key = xdr.SignerKey.signerKeyTypeEd25519(root.rawPublicKey())
    const cond = xdr.Preconditions.precondV2(
      new xdr.PreconditionsV2({
        timeBounds: null,
        ledgerBounds: null,
        minSeqNum: null,
        minSeqAge: 0n,
        minSeqLedgerGap: 0,
        extraSigners: [key, key],
      }),
    )
    expect(await sent(perturb(plain, { cond }, accounts.payer, root))).toEqual(['txMalformed', 100])
  })

  test('reports no fee for a contract call without Soroban data', async () => {
    const bare = await network.build(accounts.payer, callTransfer(accounts.payer, accounts.owner, 1n))
    expect(await sent(bare)).toEqual(['txMalformed', 0])
  })
})

describe('errors of the asset contract', () => {
  test('rejects an unknown function with its name', async () => {
    expect(await errorEvents(accounts.payer, assetCall(usdc, 'nothing'))).toMatchObject({
      error: 'HostError: Error(Value, InvalidInput)',
      events: [{ data: ['symbol not found in slice of strs', 'nothing'] }],
    })
  })

  test('emits no error event for the administrator of XLM', async () => {
    const { error, events } = await errorEvents(accounts.payer, assetCall(Asset.native(), 'admin'))
    expect({ error, events }).toEqual({ error: 'HostError: Error(Storage, MissingValue)', events: [] })
  })

  test('has no debug information for an argument of the wrong type', async () => {
    const { error, rest, events } = await errorEvents(accounts.payer, assetCall(usdc, 'balance', number(1)))
    expect({ error, rest, events }).toEqual({
      error: 'HostError: Error(Value, UnexpectedType)',
      rest: 'DebugInfo not available\n',
      events: [],
    })
  })

  test('emits an event without a contract for a missing contract', async () => {
    const missing = new Contract(new Asset('NONE', issuer.publicKey()).contractId(passphrase)).call('name')
    expect(await errorEvents(accounts.payer, missing)).toMatchObject({
      error: 'HostError: Error(Storage, MissingValue)',
      events: [{ contract: false }],
    })
  })

  test('explains a resource fee that is too low', async () => {
    const prepared = await network.prepare(accounts.payer, callTransfer(accounts.payer, accounts.owner, 1n))
    const cheap = declare(prepared, (data) => data.setResourceFee(10n), {}, accounts.payer)
    const { diagnosticEvents = [] } = await network.server.sendTransaction(cheap)
    const topics = diagnosticEvents.map(({ event }) => event.body.value.topics[1])
    expect(topics).toEqual([xdr.ScVal.scvError(xdr.ScError.sceValue(xdr.ScErrorCode.scecExceededLimit))])
  })

  test.each<[string, () => xdr.Operation, unknown[]]>([
    [
      'a transfer below the reserve',
      () => callTransfer(accounts.payer, accounts.owner, 100_0000000n),
      ['resulting balance is not within the allowed range', 10_000_000n, 0n, 2n ** 63n - 1n],
    ],
    [
      'too little for a new account',
      () => callTransfer(accounts.payer, keypair('newcomer'), 5n),
      ['transfer amount is below minimum balance for new account', 5n, 10_000_000n],
    ],
    [
      'a balance without a trustline',
      () => assetCall(usdc, 'balance', g(accounts.owner)),
      ['trustline entry is missing for account', expect.stringMatching(/^G/)],
    ],
    [
      'an allowance that has ended',
      () => assetCall(Asset.native(), 'approve', g(accounts.payer), g(accounts.owner), amount(1n), number(1)),
      ['live_until must be >= ledger sequence', 1, expect.any(Number)],
    ],
    ['too few arguments', () => assetCall(usdc, 'balance'), ['wrong number of args to func', 'balance']],
    [
      'more than a contract holds',
      () => assetCall(Asset.native(), 'transfer', c(native), g(accounts.owner), amount(5n)),
      ['balance is not sufficient to spend', 0n, 5n],
    ],
  ])('%s', async (_name, operation, data) => {
    const params = { authMode: 'record_allow_nonroot' }
    const { events = [] } = await simulate(accounts.payer, operation(), params)
    const first = xdr.DiagnosticEvent.fromXdr(events[0], 'base64').event.body.value.data
    expect(scValToNative(first)).toEqual(data)
  })

  test('rejects a clawback from a trustline that does not allow it', async () => {
    const trust = Operation.changeTrust({ asset: usdc })
    await network.settle(await network.build(accounts.owner, trust))
    const { events } = await errorEvents(issuer, assetCall(usdc, 'clawback', g(accounts.owner), amount(1n)))
    expect(events[0]?.data).toBe("trustline isn't clawbackable")
  })
})

describe('errors of the RPC', () => {
  test.each<[string, unknown, string]>([
    [
      'getTransaction',
      { hash: 5 },
      'json: cannot unmarshal number into Go struct field GetTransactionRequest.hash of type string',
    ],
    [
      'getLedgerEntries',
      { keys: 'x' },
      'json: cannot unmarshal string into Go struct field GetLedgerEntriesRequest.keys of type []string',
    ],
    [
      'sendTransaction',
      { transaction: {} },
      'json: cannot unmarshal object into Go struct field SendTransactionRequest.transaction of type string',
    ],
    [
      'simulateTransaction',
      { transaction: true },
      'json: cannot unmarshal bool into Go struct field SimulateTransactionRequest.transaction of type string',
    ],
    [
      'getEvents',
      { startLedger: '1' },
      'json: cannot unmarshal string into Go struct field GetEventsRequest.startLedger of type uint32',
    ],
    [
      'getEvents',
      { startLedger: 1, filters: {} },
      'json: cannot unmarshal object into Go struct field GetEventsRequest.filters of type []protocol.EventFilter',
    ],
    [
      'getTransactions',
      { startLedger: [] },
      'json: cannot unmarshal array into Go struct field GetTransactionsRequest.startLedger of type uint32',
    ],
    [
      'getLedgers',
      { startLedger: 1.5 },
      'json: cannot unmarshal number 1.5 into Go struct field GetLedgersRequest.startLedger of type uint32',
    ],
  ])('explains a parameter of the wrong type for %s in data', async (method, params, data) => {
    expect((await call(method, params)).error).toEqual({ code: -32602, message: 'invalid parameters', data })
  })

  test('fails to encode a refusal without diagnostics in JSON', async () => {
    const spent = await network.build(accounts.payer, pay())
    await network.settle(spent)
    const stale = perturb(spent, { fee: 200 }, accounts.payer)
    const { error } = await call('sendTransaction', { transaction: stale.toXdr(), xdrFormat: 'json' })
    expect(error).toEqual({
      code: -32603,
      message: "couldn't decode events: xdr:DecodeUint: EOF while decoding 4 bytes",
    })
  })

  test('rejects a repeated key', async () => {
    const key = accountKey(accounts.payer.publicKey())
    expect((await call('getLedgerEntries', { keys: [key, key] })).error).toEqual({
      code: -32603,
      message: 'could not query captive core: http request failed with non-200 status code (400)',
    })
  })

  test('rejects a leeway beyond 32 bits without events', async () => {
    const operation = callTransfer(accounts.payer, accounts.owner, 1n)
    const answer = await simulate(accounts.payer, operation, { resourceConfig: { instructionLeeway: 2 ** 32 } })
    expect(Object.keys(answer).toSorted()).toEqual(['error', 'latestLedger'])
    expect(answer.latestLedger).toBeGreaterThan(0)
  })

  test.each(['{', ''])('rejects the body %j', async (body) => {
    expect(await post(body)).toEqual({ status: 500, text: '[-32700] invalid request value\n' })
  })

  test('rejects a batch that contains a number, and a number as parameters', async () => {
    const batch = JSON.parse((await post('[1]')).text)
    expect(batch[0]).toMatchObject({ error: { code: -32700, message: 'request is not a JSON object' } })
    expect((await call('getHealth', 5)).error).toMatchObject({ message: 'parameters must be array or object' })
  })
})

describe('metadata', () => {
  test('records two changes for bumpSequence to a lower number', async () => {
    const bump = Operation.bumpSequence({ bumpTo: '0' })
    const outcome = await network.settle(await network.build(accounts.payer, bump))
    const meta =
      outcome.status === 'SUCCESS' && outcome.resultMetaXdr.type === 'v4' ? outcome.resultMetaXdr.v4 : undefined
    expect(meta?.operations[0]?.changes.map(({ type }) => type)).toEqual(['ledgerEntryState', 'ledgerEntryUpdated'])
  })

  test('counts two accounts as disk reads of trust, and not the new trustline', async () => {
    const { transactionData } = await simulate(accounts.owner, assetCall(usdc, 'trust', g(accounts.owner)))
    // 144 bytes each once an account has used a sequence number
    expect(xdr.SorobanTransactionData.fromXdr(transactionData, 'base64').resources.diskReadBytes).toBe(288)
  })

  test('sorts footprint and state changes by ledger key', async () => {
    const [low, high] = [accounts.payer, accounts.owner].toSorted((left, right) =>
      Buffer.compare(left.rawPublicKey(), right.rawPublicKey()),
    )
    if (!low || !high) throw new Error('two accounts')
    const { transactionData, stateChanges } = await simulate(high, callTransfer(high, low, 1n))
    const { readWrite } = xdr.SorobanTransactionData.fromXdr(transactionData, 'base64').resources.footprint
    const sorted = [low, high].map((account) => accountKey(account.publicKey()))
    expect(readWrite.map((key) => key.toXdr('base64'))).toEqual(sorted)
    expect(stateChanges.map(({ key }: { key: string }) => key)).toEqual(sorted)
    const trust = await simulate(high, assetCall(usdc, 'trust', g(high)))
    const { footprint } = xdr.SorobanTransactionData.fromXdr(trust.transactionData, 'base64').resources
    expect(footprint.readWrite.map(({ type }) => type)).toEqual(['account', 'trustline'])
    expect(footprint.readOnly.map(({ type }) => type)).toEqual(['account', 'contractData'])
  })

  test('adds a new entry to the size of the live Soroban state', async () => {
    const sizeOf = async () => {
      const { metadataXdr } = await network.server.getLatestLedger()
      return metadataXdr.type === 'v2' ? metadataXdr.v2.totalByteSizeOfLiveSorobanState : 0n
    }
    const before = await sizeOf()
    expect(before).toBeGreaterThan(1_000n)
    const allowance = assetCall(
      Asset.native(),
      'approve',
      g(accounts.payer),
      g(accounts.owner),
      amount(1n),
      number(1_000),
    )
    const prepared = await network.prepare(accounts.payer, allowance)
    prepared.sign(accounts.payer)
    expect((await network.settle(prepared)).status).toBe('SUCCESS')
    const { writeBytes } = sorobanDataOf(prepared).resources
    expect(await sizeOf()).toBe(before + BigInt(writeBytes))
  })
})

import { createHash } from 'node:crypto'
import { Asset, contract, scValToNative, xdr } from '@stellar/stellar-sdk'
import { expect, it } from 'vitest'
import { auditorKeyKey } from '#lib/devnet/host/auditor-registry.ts'
import { codeKey, instanceKey } from '#lib/devnet/host/entry-key.ts'
import { genesisContracts } from '#lib/devnet/host/genesis.ts'
import { entryBytes } from '#lib/devnet/transaction/fees.ts'
import { CIRCUIT_NAMES } from '#lib/prover/circuits.ts'
import { CIRCUIT_TYPES } from '#lib/wallet/statement.ts'
import {
  asset,
  auditorKey,
  employer,
  issuer,
  label,
  ledger,
  number,
  openNetwork,
  passphrase,
  record,
  verificationKeys,
} from './host-fixture.ts'

const genesis = { passphrase, asset, auditorKey, verificationKeys, ledger }

function instanceOf(id: string): xdr.ScContractInstance {
  const data = openNetwork().state.get(instanceKey(id).id)?.data
  if (data?.type !== 'contractData' || data.contractData.val.type !== 'scvContractInstance') throw new Error('none')
  return data.contractData.val.instance
}

function codeOf(id: string): Uint8Array {
  const { executable } = instanceOf(id)
  if (executable.type !== 'contractExecutableWasm') throw new Error('no code')
  const data = openNetwork().state.get(codeKey(executable.wasmHash.value).id)?.data
  if (data?.type !== 'contractCode') throw new Error('no code')
  expect(executable.wasmHash.toString()).toBe(createHash('sha256').update(data.contractCode.code).digest('hex'))
  return data.contractCode.code
}

it('puts the asset contracts at their standard ids', () => {
  const { contracts } = genesisContracts(genesis)
  expect(contracts.native).toBe('CDMLFMKMMD7MWZP3FKUBZPVHTUEDLSX4BYGYKH4GCESXYHS3IHQ4EIG4')
  expect(contracts.native).toBe(Asset.native().contractId(passphrase))
  expect(contracts.underlying).toBe(asset.contractId(passphrase))
})

it('derives contract ids from network and issuer', () => {
  const { contracts } = genesisContracts(genesis)
  expect(genesisContracts({ ...genesis, ledger: { ...ledger, sequence: 9 } }).contracts).toEqual(contracts)
  const networkId = createHash('sha256').update('another').digest()
  const elsewhere = genesisContracts({ ...genesis, ledger: { ...ledger, networkId }, passphrase: 'another' }).contracts
  const otherAsset = genesisContracts({ ...genesis, asset: new Asset('USDC', employer.publicKey()) }).contracts
  for (const name of ['token', 'verifier', 'auditor'] as const) {
    expect(elsewhere[name]).not.toBe(contracts[name])
    expect(otherAsset[name]).not.toBe(contracts[name])
  }
  expect(new Set(Object.values(contracts)).size).toBe(5)
})

it("gives every entry the longest lifetime, except the auditor's key", () => {
  const { contracts, entries } = genesisContracts(genesis)
  expect(new Set(entries.map(({ key }) => key)).size).toBe(entries.length)
  const auditorEntry = auditorKeyKey(contracts.auditor, 0).id
  for (const { key, liveUntil } of entries) {
    expect(liveUntil).toBe(ledger.sequence + (key === auditorEntry ? 120_960 : 3_110_400) - 1)
  }
  // Every contract would reject a map whose keys are out of order.
  for (const { data } of entries) expect(xdr.LedgerEntryData.fromXdr(data.toXdr()).equals(data)).toBe(true)
})

it('sorts the instance storage of an asset contract by key', () => {
  const { contracts } = genesisContracts(genesis)
  const underlying = instanceOf(contracts.underlying)
  expect(underlying.executable.type).toBe('contractExecutableStellarAsset')
  expect((underlying.storage ?? []).map(({ key, val }) => [scValToNative(key), scValToNative(val)])).toEqual([
    ['METADATA', { decimal: 7, name: `USDC:${issuer.publicKey()}`, symbol: 'USDC' }],
    [['Admin'], issuer.publicKey()],
    [['AssetInfo'], ['AlphaNum4', { asset_code: 'USDC', issuer: expect.any(Uint8Array) }]],
  ])
  expect((instanceOf(contracts.native).storage ?? []).map(({ key }) => scValToNative(key))).toEqual([
    'METADATA',
    ['AssetInfo'],
  ])
})

it("stores asset, verifier and auditor in the token's instance", () => {
  const { contracts } = genesisContracts(genesis)
  const settings = (instanceOf(contracts.token).storage ?? []).map(({ key, val }) => [
    scValToNative(key),
    scValToNative(val),
  ])
  expect(settings).toEqual([
    [['AddressAsField'], expect.any(Uint8Array)],
    [['Auditor'], contracts.auditor],
    [['UnderlyingAsset'], contracts.underlying],
    [['Verifier'], contracts.verifier],
  ])
})

it("has the auditor's key and the verification keys, and no others", () => {
  const network = openNetwork()
  const { auditor, verifier } = network.contracts
  const ask = (of: string, name: string, id: number) =>
    record(network, { source: employer, contract: of, name, args: [number(id)] })
  const key = ask(auditor, 'get_key', 0)
  expect(key.ok && Buffer.from(scValToNative(key.returnValue)).equals(auditorKey)).toBe(true)
  for (const circuit of CIRCUIT_NAMES) {
    const key = ask(verifier, 'get_verification_key', CIRCUIT_TYPES[circuit])
    expect(key.ok && Buffer.compare(scValToNative(key.returnValue), verificationKeys[circuit])).toBe(0)
  }
  expect(ask(auditor, 'get_key', 1)).toMatchObject({
    ok: false,
    error: expect.stringContaining('Error(Contract, #3301)'),
  })
  // The circuit type of a clawback, without a registered key.
  expect(label(ask(verifier, 'get_verification_key', 100))).toBe('Error(Contract, #3401)')
  for (const circuit of [5, 99, 4_294_967_295]) {
    expect(label(ask(verifier, 'get_verification_key', circuit))).toBe('Error(WasmVm, InvalidAction)')
  }
})

it('stores the verification keys in the instance entry of the verifier', () => {
  const { contracts } = genesisContracts(genesis)
  expect((instanceOf(contracts.verifier).storage ?? []).map(({ key }) => scValToNative(key))).toEqual([
    ['VerificationKey', 0],
    ['VerificationKey', 1],
    ['VerificationKey', 2],
    ['VerificationKey', 3],
    ['VerificationKey', 4],
  ])
  // As measured on the released contract with three keys.
  const entry = openNetwork({ delegations: false }).state.get(instanceKey(contracts.verifier).id)
  if (!entry) throw new Error('no instance')
  expect(entryBytes(entry)).toBe(5_544)
})

it('stores the interface in the code entry', () => {
  const { contracts } = genesisContracts(genesis)
  const spec = contract.Spec.fromWasm(codeOf(contracts.token))
  expect(spec.funcs().map(({ name }) => name.toString())).toEqual([
    'register',
    'deposit',
    'merge',
    'withdraw',
    'confidential_transfer',
    'confidential_balance',
    'is_spender',
    'set_spender',
    'get_spender_delegation',
    'revoke_spender',
    'confidential_transfer_from',
  ])
  const args = spec.funcArgsToScVals('deposit', { from: employer.publicKey(), to: employer.publicKey(), amount: 5n })
  expect(args.map(({ type }) => type)).toEqual(['scvAddress', 'scvAddress', 'scvI128'])
  expect(contract.Spec.fromWasm(codeOf(contracts.auditor)).funcs()).toHaveLength(1)
  expect(contract.Spec.fromWasm(codeOf(contracts.verifier)).funcs()).toHaveLength(2)
})

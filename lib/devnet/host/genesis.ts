import { createHash } from 'node:crypto'
import { Address, Asset, StrKey, xdr } from '@stellar/stellar-sdk'
import { CIRCUIT_NAMES } from '#lib/prover/circuits.ts'
import { encodeField } from '#lib/wallet/grumpkin.ts'
import { addressToField } from '#lib/wallet/keys.ts'
import type { VerificationKeys } from '#lib/wallet/prover.ts'
import { CIRCUIT_TYPES } from '#lib/wallet/statement.ts'
import type { LedgerContext } from '../state/ledger-context.ts'
import type { StoredEntry } from '../state/state.ts'
import { NETWORK_LIMITS } from '../transaction/fees.ts'
import { nameOf } from './asset-contract/metadata.ts'
import { auditorKeyKey } from './auditor-registry.ts'
import { encodeCode } from './code.ts'
import { BUILT_IN } from './contracts.ts'
import { codeKey, contractData, type EntryKey, instanceKey } from './entry-key.ts'
import { variant } from './instance.ts'
import { address, bytes, string, struct, symbol, u32 } from './scval.ts'
import { verificationKeyName } from './verifier-registry.ts'

export interface Genesis {
  readonly passphrase: string
  /** the test USDC */
  readonly asset: Asset
  /** 64 bytes: the Grumpkin point of auditor 0 */
  readonly auditorKey: Uint8Array
  readonly verificationKeys: VerificationKeys
  readonly ledger: LedgerContext
}

/** Contract ids (C…). `underlying` is the asset contract of the test USDC, `native` that of XLM. */
export interface GenesisContracts {
  readonly token: string
  readonly verifier: string
  readonly auditor: string
  readonly underlying: string
  readonly native: string
}

/**
 * The contracts' entries in the first ledger: instances, code, and the key of auditor 0. They have the network's maximum
 * lifetime, except for the auditor's key, which has the lifetime of a new entry. Contract ids depend only on passphrase
 * and asset.
 */
export function genesisContracts(genesis: Genesis): { entries: StoredEntry[]; contracts: GenesisContracts } {
  const { passphrase, asset, ledger } = genesis
  const contracts: GenesisContracts = {
    token: contractId('confidential-token', genesis),
    verifier: contractId('verifier-registry', genesis),
    auditor: contractId('auditor-registry', genesis),
    underlying: asset.contractId(passphrase),
    native: Asset.native().contractId(passphrase),
  }
  const store = ({ id }: EntryKey, data: xdr.LedgerEntryData): StoredEntry => ({
    key: id,
    data,
    lastModified: ledger.sequence,
    liveUntil: ledger.sequence + NETWORK_LIMITS.maximumTtl - 1,
  })
  // The keys of a map ascend.
  const ascending = CIRCUIT_NAMES.toSorted((left, right) => CIRCUIT_TYPES[left] - CIRCUIT_TYPES[right])
  const verificationKeys = ascending.flatMap((name): [xdr.ScVal, xdr.ScVal][] => {
    const key = genesis.verificationKeys[name]
    return key ? [[verificationKeyName(CIRCUIT_TYPES[name]), bytes(key)]] : []
  })
  // As after a deployment: the first registration pays to extend its lifetime.
  const firstLiveUntil = ledger.sequence + NETWORK_LIMITS.persistentTtl - 1
  const value = (key: EntryKey, val: xdr.ScVal) => store(key, contractData(key, val))
  const instance = (contract: string, executable: xdr.ContractExecutable, settings: [xdr.ScVal, xdr.ScVal][]) =>
    value(instanceKey(contract), instanceOf(executable, settings))
  const builtIn = (name: keyof typeof BUILT_IN, contract: string, settings: [xdr.ScVal, xdr.ScVal][]) => {
    const { hash, data } = codeOf(name)
    const executable = xdr.ContractExecutable.contractExecutableWasm(hash)
    return [store(codeKey(hash), data), instance(contract, executable, settings)]
  }
  const assetExecutable = xdr.ContractExecutable.contractExecutableStellarAsset()
  return {
    contracts,
    entries: [
      instance(contracts.native, assetExecutable, assetSettings(Asset.native())),
      instance(contracts.underlying, assetExecutable, assetSettings(asset)),
      ...builtIn('verifier-registry', contracts.verifier, verificationKeys),
      ...builtIn('auditor-registry', contracts.auditor, []),
      { ...value(auditorKeyKey(contracts.auditor, 0), bytes(genesis.auditorKey)), liveUntil: firstLiveUntil },
      ...builtIn('confidential-token', contracts.token, [
        [variant('AddressAsField'), bytes(encodeField(addressToField(contracts.token)))],
        [variant('Auditor'), address(contracts.auditor)],
        [variant('UnderlyingAsset'), address(contracts.underlying)],
        [variant('Verifier'), address(contracts.verifier)],
      ]),
    ],
  }
}

/** The id of a contract that the asset's issuer deploys with the hash of its name as salt. */
function contractId(name: string, { asset, ledger }: Genesis): string {
  const preimage = xdr.HashIdPreimage.envelopeTypeContractId(
    new xdr.HashIdPreimageContractId({
      networkId: ledger.networkId,
      contractIdPreimage: xdr.ContractIdPreimage.contractIdPreimageFromAddress(
        new xdr.ContractIdPreimageFromAddress({
          address: new Address(asset.getIssuer() ?? '').toScAddress(),
          salt: sha256(Buffer.from(name)),
        }),
      ),
    }),
  )
  return StrKey.encodeContract(sha256(preimage.toXdr()))
}

function codeOf(name: keyof typeof BUILT_IN): { hash: Uint8Array; data: xdr.LedgerEntryData } {
  const code = encodeCode(name, BUILT_IN[name])
  const hash = sha256(code)
  const ext = xdr.ContractCodeEntryExt.v0()
  return { hash, data: xdr.LedgerEntryData.contractCode(new xdr.ContractCodeEntry({ ext, hash, code })) }
}

function instanceOf(executable: xdr.ContractExecutable, settings: [xdr.ScVal, xdr.ScVal][]): xdr.ScVal {
  const storage = settings.map(([key, val]) => new xdr.ScMapEntry({ key, val }))
  return xdr.ScVal.scvContractInstance(
    new xdr.ScContractInstance({ executable, storage: storage.length === 0 ? null : storage }),
  )
}

/** Instance storage of an asset contract, in the order of its keys. The native asset has no administrator. */
function assetSettings(asset: Asset): [xdr.ScVal, xdr.ScVal][] {
  const issuer = asset.getIssuer()
  const code = asset.getCode()
  const metadata = struct({
    decimal: u32(7),
    name: string(nameOf(asset)),
    symbol: string(asset.isNative() ? 'native' : code),
  })
  if (asset.isNative() || issuer === undefined) {
    return [
      [symbol('METADATA'), metadata],
      [variant('AssetInfo'), variant('Native')],
    ]
  }
  const size = code.length > 4 ? 12 : 4
  const info = struct({
    asset_code: string(code.padEnd(size, '\0')),
    issuer: bytes(StrKey.decodeEd25519PublicKey(issuer)),
  })
  return [
    [symbol('METADATA'), metadata],
    [variant('Admin'), address(issuer)],
    [variant('AssetInfo'), variant(`AlphaNum${size}`, info)],
  ]
}

const sha256 = (content: Uint8Array): Uint8Array => createHash('sha256').update(content).digest()

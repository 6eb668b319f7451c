import { Address, Asset, Keypair, StrKey, scValToNative, xdr } from '@stellar/stellar-sdk'
import { contractKey, type EntryReader, readEntries } from './entries.ts'
import { LedgerError } from './ledger-error.ts'

/** A Stellar asset and its contract (C…). */
export interface StellarAsset {
  contract: string
  asset: Asset
}

/** The balance that an asset's contract reports for its issuer. */
const WITHOUT_LIMIT = 2n ** 63n - 1n

/**
 * Reads the contract (C…) of the asset behind a confidential token. The constructor stores it in the instance storage, where
 * it cannot change (contract errors 3508, 3512).
 * @throws LedgerError
 */
export async function readUnderlyingContract(server: EntryReader, token: string): Promise<string> {
  const underlying = settingOf(await readInstance(server, token), 'UnderlyingAsset')
  if (underlying?.type !== 'scvAddress') {
    throw new LedgerError(
      'foreign-contract',
      'the configured contract does not name its asset as a confidential token does',
    )
  }
  return Address.fromScVal(underlying).toString()
}

/** Reads the asset behind a confidential token. @throws LedgerError */
export async function readUnderlyingAsset(server: EntryReader, token: string): Promise<StellarAsset> {
  const contract = await readUnderlyingContract(server, token)
  const instance = await readInstance(server, contract)
  const asset = instance?.executable.type === 'contractExecutableStellarAsset' ? assetOf(instance) : undefined
  if (!asset) throw new LedgerError('foreign-contract', 'the asset of the confidential token is not a Stellar asset')
  return { contract, asset }
}

/**
 * The balance of `address` (G… or C…) in base units; 0 without account, trustline or balance entry.
 * @throws LedgerError
 */
export async function readBalance(
  server: EntryReader,
  { contract, asset }: StellarAsset,
  address: string,
): Promise<bigint> {
  if (address === asset.getIssuer()) return WITHOUT_LIMIT
  const { entries } = await readEntries(server, [balanceKey(contract, asset, address)])
  const entry = entries[0]?.val
  if (!entry) return 0n
  if (entry.type === 'account') return entry.account.balance
  if (entry.type === 'trustline') return entry.trustLine.balance
  if (entry.type !== 'contractData') throw unreadable()
  // For a contract, the asset contract stores { amount: i128, authorized, clawback }.
  const balance: unknown = scValToNative(entry.contractData.val)
  if (typeof balance === 'object' && balance && 'amount' in balance && typeof balance.amount === 'bigint')
    return balance.amount
  throw unreadable()
}

function balanceKey(contract: string, asset: Asset, address: string): xdr.LedgerKey {
  if (StrKey.isValidContract(address)) {
    const key = xdr.ScVal.scvVec([xdr.ScVal.scvSymbol('Balance'), new Address(address).toScVal()])
    return contractKey(contract, key)
  }
  const accountId = Keypair.fromPublicKey(address).xdrAccountId()
  if (asset.isNative()) return xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId }))
  return xdr.LedgerKey.trustline(new xdr.LedgerKeyTrustLine({ accountId, asset: asset.toTrustLineXdrObject() }))
}

/** Reads the instance of a contract (C…): its code and its instance storage. */
export async function readInstance(server: EntryReader, contract: string): Promise<xdr.ScContractInstance | undefined> {
  const { entries } = await readEntries(server, [contractKey(contract, xdr.ScVal.scvLedgerKeyContractInstance())])
  const entry = entries[0]?.val
  if (entry?.type !== 'contractData' || entry.contractData.val.type !== 'scvContractInstance') return undefined
  return entry.contractData.val.instance
}

/** A value in an instance's storage. The key is a vector of one symbol, `name`. */
export function settingOf(instance: xdr.ScContractInstance | undefined, name: string): xdr.ScVal | undefined {
  const item = instance?.storage?.find(({ key }) => {
    const [first, ...rest] = key.type === 'scvVec' ? (key.vec ?? []) : []
    return first?.type === 'scvSymbol' && first.value === name && rest.length === 0
  })
  return item?.val
}

/** AssetInfo of an asset contract: Native, or AlphaNum4 / AlphaNum12 { asset_code, issuer }, its code padded with zeros. */
function assetOf(instance: xdr.ScContractInstance): Asset | undefined {
  const info = settingOf(instance, 'AssetInfo')
  const native: unknown = info && scValToNative(info)
  if (!Array.isArray(native)) return undefined
  const [kind, issued] = native as [unknown, { asset_code?: unknown; issuer?: unknown } | undefined]
  if (kind === 'Native') return Asset.native()
  if (!(issued?.issuer instanceof Uint8Array)) return undefined
  const code = String(issued.asset_code).replace(/\0+$/, '')
  return new Asset(code, StrKey.encodeEd25519PublicKey(issued.issuer))
}

function unreadable(): LedgerError {
  return new LedgerError('unavailable', 'the RPC returned a balance that cannot be read')
}

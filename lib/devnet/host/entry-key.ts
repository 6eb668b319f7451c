import { Address, type Asset, xdr } from '@stellar/stellar-sdk'
import { publicKey } from '../state/ledger-key.ts'

/** A ledger key and its base64 XDR, the key of its entry in the state. */
export interface EntryKey {
  readonly key: xdr.LedgerKey
  readonly id: string
}

type Durability = 'persistent' | 'temporary'

const INSTANCE = xdr.ScVal.scvLedgerKeyContractInstance()

export const entryKey = (key: xdr.LedgerKey): EntryKey => ({ key, id: key.toXdr('base64') })

export function accountKey(account: string): EntryKey {
  return entryKey(xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId: publicKey(account) })))
}

export function trustlineKey(account: string, asset: Asset): EntryKey {
  return entryKey(
    xdr.LedgerKey.trustline(
      new xdr.LedgerKeyTrustLine({ accountId: publicKey(account), asset: asset.toTrustLineXdrObject() }),
    ),
  )
}

export function contractDataKey(owner: string, key: xdr.ScVal, durability: Durability = 'persistent'): EntryKey {
  return entryKey(
    xdr.LedgerKey.contractData(
      new xdr.LedgerKeyContractData({
        contract: new Address(owner).toScAddress(),
        key,
        durability: xdr.ContractDataDurability[durability],
      }),
    ),
  )
}

export const instanceKey = (contract: string): EntryKey => contractDataKey(contract, INSTANCE)

export function codeKey(hash: Uint8Array): EntryKey {
  return entryKey(xdr.LedgerKey.contractCode(new xdr.LedgerKeyContractCode({ hash })))
}

/** The temporary entry that marks a nonce of an address as used. */
export function nonceKey(address: string, nonce: bigint): EntryKey {
  return contractDataKey(address, xdr.ScVal.scvLedgerKeyNonce(new xdr.ScNonceKey({ nonce })), 'temporary')
}

/** The value of a contract data entry under its key. */
export function contractData({ key }: EntryKey, val: xdr.ScVal): xdr.LedgerEntryData {
  if (key.type !== 'contractData') throw new TypeError(`not a contract data key: ${key.type}`)
  const { contract, durability } = key.contractData
  return xdr.LedgerEntryData.contractData(
    new xdr.ContractDataEntry({
      ext: xdr.ExtensionPoint.v0(),
      contract,
      key: key.contractData.key,
      durability,
      val,
    }),
  )
}
